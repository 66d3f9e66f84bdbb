"""torus-routed notices what others change on its hosts, sets it again, and says what keeps it from doing so."""

import json
import re
import signal
import subprocess
import time

import pytest
from support.early_signals import pending
from support.routed import converged, give_ipv6, state_of, stop_routed, with_routes
from support.users import as_user, copy_programs, open_folder
from support.waiting import wait_for, wait_logged
from torus_net import find_program
from torus_net.patience import Patience, run


def routes_of(node, version='-4'):
    return node.run('ip', version, 'route', 'show', 'proto', '84')


def destinations(node, version='-4'):
    return len(re.findall('^[0-9a-f]', routes_of(node, version), re.M))


def log_of(torus, rank):
    return (torus.run.logs / f'{rank}.routes.log').read_text()


@pytest.fixture
def ring(mininet):
    """A torus of four hosts, with routes. Nothing is left at the end."""
    torus = mininet('4')
    before = [state_of(node) for node in torus.nodes]
    torus.set_ip_routes()
    yield torus
    torus.ip_hosts.undo()
    assert [state_of(node) for node in torus.nodes] == before


# --- the interface ---

@pytest.mark.parametrize('command', ['ip addr flush dev torus0', 'ip link del torus0', 'ip link set torus0 down',
                                     'ip addr add 10.9.9.9/24 dev torus0'])
def test_the_interface_comes_back(ring, command):
    node = ring.node(0)

    def state():
        shown = node.run('sh', '-c', 'ip addr show torus0 || true')
        return re.findall(r'inet \S+|state \w+', shown), routes_of(node)

    wanted = state()
    node.run('sh', '-c', command)
    wait_for(lambda: state() == wanted, what=lambda: log_of(ring, 0))
    wait_for(lambda: all(route['in_kernel'] for route in converged(ring)['routes']))


def test_a_foreign_interface_keeps_routes_out_and_is_named(ring):
    """Somebody has removed torus0, and uses its name for something else."""
    node, hosts = ring.node(0), ring.ip_hosts
    node.run('sh', '-c', 'ip link del torus0 && ip link add torus0 type veth peer name elsewhere')
    try:
        # Before torus-routed has noticed it, the kernel has no routes.
        wait_for(lambda: 'torus-routed has not made it' in ((hosts.routes(0) or {}).get('problem') or ''))
        wait_for(lambda: {route['state'] for route in hosts.routes(0)['routes']} == {'missing'})
        shown = ring.ctl(0, 'routes', '--from', hosts.routes_socket(0)).stdout
        assert 'missing' in shown and 'has not made it' in shown
    finally:
        node.run('ip', 'link', 'del', 'torus0')
    wait_for(lambda: {route['state'] for route in hosts.routes(0)['routes']} == {'routed'})
    assert hosts.routes(0)['problem'] is None
    said = wait_logged(lambda: log_of(ring, 0), 'has not made it')
    assert said.count('has not made it') == 1  # each problem is said once


# --- settings, cables, firewalls ---

def test_settings_of_the_host_come_back(mininet):
    torus = with_routes(mininet)
    node = torus.node(1)
    names = ['net.ipv4.conf.all.arp_ignore', 'net.ipv4.conf.all.rp_filter', 'net.ipv4.fib_multipath_hash_policy',
             f'net.ipv4.conf.{node.interface("+0")}.forwarding']
    wanted = node.run('sysctl', *names)
    node.run('sysctl', '-qw', *(f'{name}={value}' for name, value in zip(names, (1, 1, 0, 0))))
    wait_for(lambda: node.run('sysctl', *names) == wanted)
    # The end restores what somebody has set meanwhile.
    torus.ip_hosts.undo()
    assert node.run('sysctl', '-n', *names[:2]).split() == ['1', '1']


@pytest.mark.full
@pytest.mark.parametrize('how', ['ip link set {0} down; ip link set {0} name {1}; ip link set {1} up',
                                 'ip link set {0} name {1}'])
def test_a_cable_can_be_renamed(ring, how):
    node, hosts = ring.node(2), ring.ip_hosts
    old = node.interface('+0')

    def rename(before, after):
        node.run('sh', '-c', how.format(before, after))

        def back():
            report = converged(ring, 2)
            names = {way['interface'] for route in report['routes'] for way in route['ways']}
            return after in names and before not in names and after in routes_of(node)
        wait_for(back, what=lambda: f'{hosts.routes(2)} {routes_of(node)}')
        assert node.run('sysctl', '-n', f'net.ipv4.conf.{after}.forwarding').strip() == '1'
        wait_for(lambda: '1 received' in node.run('sh', '-c', f'ping -c 1 -W 1 {hosts.addresses[3]} || true'))

    rename(old, 'cable')
    settings = (hosts.routes_socket(2).parent / 'settings').read_text()
    assert '/cable/forwarding 0' in settings and f'/{old}/' not in settings
    rename('cable', old)


def test_the_mtu_of_a_cable_can_change(ring):
    node = ring.node(0)
    node.run('ip', 'link', 'set', node.interface('+0'), 'mtu', '1300')
    wait_for(lambda: routes_of(node).count('mtu 1300') == 3, what=lambda: routes_of(node))
    # So can that of a cable whose torus-routed has been killed, and its congestion control.
    stop_routed(ring, 0)
    node.run('ip', 'link', 'set', node.interface('+0'), 'mtu', '1500')
    ring.ip_hosts.commands[0] += ['--congestion', 'reno']
    ring.ip_hosts.start_routed(0)
    wait_for(lambda: routes_of(node).count('congctl reno') == 3 and 'mtu' not in routes_of(node),
             what=lambda: routes_of(node))


def test_lost_reports_of_interfaces(ring):
    """More changes than the socket holds while torus-routed does not run: it still hears of the next ones at once."""
    node, process = ring.node(0), ring.ip_hosts.routed[0]
    cable = node.interface('+0')
    changes = ''.join(f'link set dev lo mtu {60000 + i % 2}\n' for i in range(600))
    process.send_signal(signal.SIGSTOP)
    node.host.run('ip', '-batch', '-', stdin=changes + 'link set dev lo mtu 65536\n')
    process.send_signal(signal.SIGCONT)

    def change(mtu):
        node.run('ip', 'link', 'set', cable, 'mtu', str(mtu))
        wait_for(lambda: routes_of(node).count(f'mtu {mtu}') == 3, pause=0.01)

    change(1200)
    patience = Patience(5)
    for mtu in range(1201, 1206):
        change(mtu)  # the checks come every two seconds, and each of these changes just after one
    late = patience.over
    node.run('ip', 'link', 'set', cable, 'mtu', '1500')
    wait_for(lambda: 'mtu' not in routes_of(node))
    assert not late


def test_torusd_hears_of_a_cable_after_lost_reports(ring):
    node, daemon = ring.node(0), ring.node(0).daemon
    changes = ''.join(f'route {verb} 10.77.1.0/24 dev lo\n' for _ in range(600) for verb in ('add', 'del'))
    daemon.send_signal(signal.SIGSTOP)
    node.host.run('ip', '-batch', '-', stdin=changes)
    daemon.send_signal(signal.SIGCONT)
    converged(ring)
    ring.link_down(1, '-0')  # at the other end
    converged(ring, 0, 'link 0:+0')
    log = wait_logged(node.log, f'no carrier on {node.interface("+0")}')  # node 1 tells of the link, too
    assert 'no longer watches' not in log
    ring.link_up(1, '-0')
    converged(ring)


# --- addresses that do not fit ---

def test_addresses_that_are_too_few_change_nothing(ring):
    hosts, node = ring.ip_hosts, ring.node(0)
    file = hosts.routes_socket(0).parent.parent / 'addresses'
    good, routes = file.read_text(), routes_of(node)
    file.write_text(''.join(good.splitlines(True)[:3]))
    hosts.routed[0].send_signal(signal.SIGHUP)
    log = wait_logged(lambda: log_of(ring, 0), 'the addresses stay as they are')
    assert 'has 3 hosts, but the torus has 4 nodes' in log and routes_of(node) == routes
    ring.link_down(0, '+0')  # the routes still follow the links
    converged(ring, 0, 'link 0:+0')
    ring.link_up(0, '+0')
    # A new process finds no place: then old routes go, the reason is told, and a correction is taken up.
    stop_routed(ring, 0)
    hosts.start_routed(0)
    report = wait_for(lambda: report if (report := hosts.routes(0)) and report['problem'] else None)
    assert report['problem'].endswith('has 3 hosts, but the torus has 4 nodes') and not routes_of(node)
    file.write_text(good)
    wait_for(lambda: re.findall('^10[^ ]*', routes_of(node), re.M) == re.findall('^10[^ ]*', routes, re.M))


# --- IPv6 ---

def test_ipv6_where_new_interfaces_have_none(mininet):
    torus = mininet('4')
    give_ipv6(torus)
    node = torus.node(0)
    assert node.run('sysctl', '-n', 'net.ipv6.conf.default.disable_ipv6').strip() == '1'
    torus.set_ip_routes(prefix6='fd12:3456:789a::')
    converged(torus)
    assert destinations(node) == 3 and destinations(node, '-6') == 3
    # An address that somebody has removed comes back, and is the source again.
    node.run('ip', '-6', 'addr', 'flush', 'dev', 'torus0', 'scope', 'global')
    wait_for(lambda: routes_of(node, '-6').count('src fd12:3456:789a::1') == 3 and
             'fd12:3456:789a::1/128' in node.run('ip', '-6', 'addr', 'show', 'torus0'), what=lambda: routes_of(node, '-6'))
    # Without IPv6 addresses, no IPv6 routes are left.
    file = torus.ip_hosts.routes_socket(0).parent.parent / 'addresses'
    file.write_text(re.sub(',[^ ]*', '', file.read_text()))
    torus.ip_hosts.routed[0].send_signal(signal.SIGHUP)
    wait_for(lambda: not routes_of(node, '-6'))
    assert 'fd12' not in node.run('ip', '-6', 'addr', 'show', 'torus0') and destinations(node) == 3


# --- firewalls ---

DOCKER = ('add table ip filter; add chain ip filter DOCKER-USER; add chain ip filter FORWARD '
          '{ type filter hook forward priority 0; policy drop; }; add rule ip filter FORWARD jump DOCKER-USER')


@pytest.mark.skipif(subprocess.run(['sh', '-c', 'command -v nft'], capture_output=True).returncode != 0,
                    reason='nft is not installed')
def test_a_chain_that_others_empty(mininet):
    torus = mininet('4')
    node = torus.node(1)
    node.run('nft', DOCKER)
    torus.set_ip_routes()

    def rules():
        return node.run('sh', '-c', 'nft list chain ip filter TORUS-ROUTED 2>&1 || true')

    cables = {node.interface(port) for port in ('+0', '-0')}
    wait_for(lambda: cables <= set(re.findall('"(.*?)" accept', rules())), what=rules)
    node.run('nft', 'flush chain ip filter TORUS-ROUTED')
    # The firewall is looked at every half minute, and by a new process.
    stop_routed(torus, 1)
    torus.ip_hosts.start_routed(1)
    wait_for(lambda: cables <= set(re.findall('"(.*?)" accept', rules())), what=rules)
    # Docker may end first.
    node.run('nft', 'flush chain ip filter FORWARD; flush chain ip filter DOCKER-USER; '
             'delete chain ip filter DOCKER-USER')
    torus.ip_hosts.undo()
    assert 'TORUS-ROUTED' not in node.run('nft', 'list', 'ruleset')


def test_the_doctor_knows_torus_routed(mininet):
    torus = mininet('4')
    torus.node(1).run('nft', DOCKER)
    torus.set_ip_routes()
    checks = 'forwarding', 'firewall', 'ip routes'

    def findings():
        found = json.loads(torus.ctl(0, '--json', 'doctor').stdout)['findings']
        return [one for one in found if one['check'] in checks and one['severity'] not in ('fine', 'not seen')]

    wait_for(lambda: not findings(), what=lambda: findings())
    # A route that leads nowhere does not count, nor does one to a host that is known to be missing.
    torus.node(2).daemon.send_signal(signal.SIGKILL)
    torus.node(2).daemon.wait()
    converged(torus, 0, 'node 2')
    wait_for(lambda: not findings(), what=lambda: findings())
    torus.node(2).start()
    converged(torus)
    # Without torus-routed, the same host does not forward.
    stop_routed(torus, 1, signal.SIGTERM)
    found = wait_for(lambda: found if len(found := findings()) == 3 else None, what=lambda: findings())
    assert {one['check'] for one in found} == set(checks)
    assert all('restart torus-routed' in one['mend'] for one in found if one['check'] != 'firewall'), found


# --- what is not torus-routed's ---

def alone(tmp_path, *commands, addresses='10.128.0.1 a\n', program=None):
    """Runs commands in a network namespace of their own. $R is torus-routed with its options."""
    if run(['unshare', '--net', 'true']).returncode != 0:
        pytest.skip('network namespaces need root')
    (tmp_path / 'addresses').write_text(addresses)
    script = '\n'.join(('exec 2>&1', 'make() { ip link add "$1" type dummy 2>/dev/null || '
                        'ip link add "$1" type veth peer name "$1"-peer; ip link set "$1" up; }',
                        f'R="{program or find_program("torus-routed")} --state {tmp_path}/state --socket /nowhere"', *commands))
    done = run(['unshare', '--net', 'sh', '-c', script])
    return done.stdout


def test_a_foreign_interface_stays(tmp_path):
    said = alone(tmp_path, 'ip link add eth7 type veth peer name eth8',
                 f'$R --addresses {tmp_path}/addresses --interface eth7; echo "status $?"', 'ip -br link show eth7')
    assert 'the interface eth7 exists' in said and 'status 1' in said and said.strip().splitlines()[-1].startswith('eth7')
    said = alone(tmp_path, 'ip link add eth7 type veth peer name eth8', '$R --down --interface eth7; echo "status $?"',
                 'ip -br link show eth7')
    assert 'status 0' in said and said.strip().splitlines()[-1].startswith('eth7')


def test_a_failed_start_removes_nothing_of_others(tmp_path):
    said = alone(tmp_path, 'make torus0', 'ip route add 10.128.0.2 dev torus0 proto 84',
                 '$R --addresses /nonexistent; echo "status $?"', 'ip -br link show torus0', 'ip route show proto 84')
    assert 'status 1' in said and 'torus0@' in said + '@' and '10.128.0.2' in said.splitlines()[-1]


def test_down_says_what_it_cannot_remove():
    with open_folder() as folder:
        program, = copy_programs(folder, 'torus-routed')
        folder.chmod(0o777)
        said = alone(folder, 'make torus0', 'ip route add 10.128.0.2 dev torus0 proto 84',
                     f'{" ".join(as_user(65534))} $R --down; echo "status $?"', '$R --down; echo "root: status $?"',
                     'ip route show proto 84; ip -br link', program=' '.join(program))
    assert '\nstatus 1' in said and 'could not be removed' in said
    rest = said[said.index('root: status 0'):]
    assert '10.128' not in rest and 'torus0' not in rest


# --- the first moment ---

def test_a_signal_of_the_first_moment_is_heard(ring):
    """SIGTERM waits for a process that is about to take over what a killed one has left."""
    hosts = ring.ip_hosts
    stop_routed(ring, 1)

    process = run(hosts.commands[1], 30, preexec_fn=pending(signal.SIGTERM))
    assert process.returncode == 0 and '10.128' not in routes_of(ring.node(1))
    assert 'torus0' not in ring.node(1).run('ip', '-br', 'link')
    hosts.start_routed(1)
    wait_for(lambda: destinations(ring.node(1)) == 3)
