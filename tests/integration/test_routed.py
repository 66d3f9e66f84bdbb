"""torus-routed: IP routes follow the links; nothing is lost when a link returns; a killed process is taken over, and
at the end nothing is left. test_routed_trials.py does all of it at random."""

import re
import signal
import subprocess

import pytest
from support.openmetrics import Metrics
from support.routed import Pings, all_converged, converged, give_ipv6, next_hops, ping_all, state_of, stop_routed, with_routes
from support.users import copy_programs, open_folder
from support.waiting import wait_for, wait_logged
from torus_net import find_program, patience


def test_routes_go_around_a_cut_and_return_without_loss(mininet):
    torus = with_routes(mininet)
    assert next_hops(converged(torus), 'n2') == ['n1', 'n3'] and next_hops(converged(torus), 'n1') == ['n1']
    pings = Pings(torus, 0, 1)
    torus.link_down(0, '+0')
    reports = all_converged(torus, down='link 0:+0')
    assert [next_hops(reports[0], host) for host in ('n1', 'n2', 'n3')] == [['n3']] * 3
    route = reports[0]['routes'][0]
    assert route['hops'] == 3 and route['why'] == 'longer by 2 than if all links were up; down: link 0:+0'
    ping_all(torus)
    lost, said = pings.end()
    assert 'xceeded' not in said, said  # no packet has gone round until its time was over
    # A link that returns at once is treated with care, which may cost packets (see planner.h).
    wait_for(lambda: all(route['seconds'] > 3 * report['settle_seconds'] for rank in range(4)
                         for report in [converged(torus, rank, 'link 0:+0')] for route in report['routes']
                         if route['hops'] > 1))
    pings = Pings(torus, 0, 1)
    torus.link_up(0, '+0')
    assert next_hops(all_converged(torus)[0], 'n1') == ['n1']
    lost, said = pings.end()
    assert lost <= 1, said  # one may be on its way at the end
    kernel = torus.node(0).run('ip', 'route', 'show', 'proto', '84')
    assert len(re.findall('^10.128', kernel, re.M)) == 3


# Prints what a host of its own network answers to an HTTP request.
FETCH = "import sys, urllib.request as u; sys.stdout.write(u.urlopen(sys.argv[1]).read().decode())"


def test_monitoring_sees_the_routes(mininet):
    """torus-routed tells its torusd, which serves it. Each way of a route was gained once more than it was lost."""
    torus = mininet('4', extra=('--metrics', '127.0.0.1:0'))
    node = torus.node(0)

    def read(address):
        return 200, None, node.run('/usr/bin/python3', '-c', FETCH, f'http://{address}/metrics')

    def sees(name, value, **labels):
        key = name, *labels.items()
        wait_for(lambda: Metrics(torus, get=read).samples.get(key) == value, 60,
                 lambda: str(Metrics(torus, get=read).samples))

    def counts():
        seen = Metrics(torus, get=read)
        return seen.value('torus_route_ways_lost_total'), seen.value('torus_route_ways_gained_total')

    sees('torus_routed_up', 0)
    torus.set_ip_routes()
    all_converged(torus)
    sees('torus_routes', 3, state='routed')
    sees('torus_routed_up', 1)
    sees('torus_routed_forwards', 1)
    assert Metrics(torus, get=read).value('torus_routed_problem') == 0
    # torus-routed may have told its state last when one of the two ways to the opposite node was still missing
    wait_for(lambda: counts()[1] - counts()[0] == 4)
    lost = counts()[0]
    torus.link_down(0, '+0')
    all_converged(torus, 'link 0:+0')
    wait_for(lambda: counts()[0] >= lost + 2 and counts()[1] - counts()[0] == 3)
    torus.link_up(0, '+0')
    all_converged(torus)
    node.run('sh', '-ec', 'ip route add 10.128.0.0/9 dev lo table 52; ip rule add pref 5270 lookup 52')
    stop_routed(torus, 0, signal.SIGTERM)
    sees('torus_routed_up', 0)
    torus.ip_hosts.start_routed(0)
    sees('torus_routes', 3, state='diverted')


def cut_and_mend(torus, ranks):
    """How long each of these hosts has waited for the others after a cut, as a part of the time that is always enough."""
    torus.link_down(0, '+0')
    reports = [converged(torus, rank, 'link 0:+0') for rank in ranks]
    torus.link_up(0, '+0')
    for rank in ranks:
        converged(torus, rank)
    calm = patience.Patience(5 * reports[0]['settle_seconds'])  # then confirmations count again
    wait_for(lambda: calm.over)
    return [report['waited_seconds'] / report['settle_seconds'] for report in reports]


def test_hosts_that_confirm_are_not_waited_for(mininet):
    torus = with_routes(mininet)
    wait_for(lambda: max(cut_and_mend(torus, range(4))) < 0.9)  # on a busy machine not at once
    # A host without an answer: the others wait as long as the proof needs.
    torus.ip_hosts.routed[2].send_signal(signal.SIGSTOP)
    try:
        assert min(cut_and_mend(torus, (0, 1, 3))) >= 1
    finally:
        torus.ip_hosts.routed[2].send_signal(signal.SIGCONT)
    wait_for(lambda: max(cut_and_mend(torus, range(4))) < 0.9)
    ping_all(torus)


def test_connections_stay_alive_through_a_cut(mininet):
    torus = with_routes(mininet)
    script = 'import socket\ns = socket.create_server(("", 7))\nc = s.accept()[0]\nwhile (d := c.recv(9)): c.sendall(d)'
    server = subprocess.Popen([*torus.node(1).host.enter(), '/usr/bin/python3', '-c', script])
    client = subprocess.Popen([*torus.node(0).host.enter(), '/usr/bin/python3', '-uc', '''
import socket, sys, time
for attempt in range(500):
    try:
        s = socket.create_connection((sys.argv[1], 7), 5)
        break
    except ConnectionRefusedError:
        time.sleep(0.01)
s.settimeout(20)
for line in sys.stdin:
    s.sendall(line.encode())
    print(s.recv(9).decode(), end="")
''', torus.ip_hosts.addresses[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def echo(text):
        client.stdin.write(text)
        client.stdin.flush()
        return client.stdout.readline()

    try:
        assert echo('a\n') == 'a\n'
        torus.link_down(0, '+0')
        assert echo('b\n') == 'b\n'
        all_converged(torus, down='link 0:+0')
        torus.link_up(0, '+0')
        assert echo('c\n') == 'c\n'
        all_converged(torus)
        assert echo('d\n') == 'd\n'
    finally:
        for process in client, server:
            process.kill()
            process.wait()


@pytest.mark.parametrize('dims,dead', [('3x3m', '4:+1'), ('complete:4', None)])
def test_every_pair_pings_and_no_trace_is_left(mininet, dims, dead):
    torus = mininet(dims)
    before = [state_of(node) for node in torus.nodes]
    torus.set_ip_routes(without=dead)
    ping_all(torus)
    settings = torus.node(0).run('sysctl', '-n', 'net.ipv4.ip_forward', 'net.ipv4.conf.all.rp_filter',
                                 'net.ipv4.conf.all.send_redirects', 'net.ipv4.fib_multipath_hash_policy')
    assert settings.split() == ['0', '0', '0', '1']
    torus.ip_hosts.undo()
    for node in torus.nodes:
        assert state_of(node) == before[node.rank]


def test_a_killed_process_is_taken_over(mininet):
    torus = mininet('4')
    hosts = torus.node(1)
    before = state_of(hosts)
    torus.set_ip_routes()
    routes = hosts.run('ip', 'route', 'show', 'proto', '84')
    pings = Pings(torus, 0, 2)
    stop_routed(torus, 1)
    assert hosts.run('ip', 'route', 'show', 'proto', '84') == routes
    torus.ip_hosts.start_routed(1)
    converged(torus, 1)
    lost, said = pings.end()
    assert lost <= 1, said
    stop_routed(torus, 1)
    hosts.run('ip', 'route', 'add', '10.128.0.99', 'dev', 'lo', 'proto', '84', 'metric', '84')  # of a host that is gone
    hosts.run('ip', 'route', 'del', '10.128.0.1', 'proto', '84', 'metric', '84')
    torus.ip_hosts.start_routed(1)
    converged(torus, 1)
    wait_for(lambda: hosts.run('ip', 'route', 'show', 'proto', '84') == routes)
    # Without a successor, --down removes everything.
    stop_routed(torus, 1)
    state = torus.ip_hosts.routes_socket(1).parent
    hosts.run(find_program('torus-routed'), '--state', str(state), '--down')
    assert state_of(hosts) == before


def test_the_addresses_can_change(mininet):
    torus = with_routes(mininet)
    hosts = torus.ip_hosts
    file = hosts.routes_socket(0).parent.parent / 'addresses'
    file.write_text(file.read_text().replace('10.128.0.3 n2', '10.128.9.3 n2'))
    pings = Pings(torus, 0, 1)
    for process in hosts.routed:
        process.send_signal(signal.SIGHUP)
    wait_for(lambda: re.findall('^10[^ ]*', torus.node(0).run('ip', 'route', 'show', 'proto', '84'), re.M) ==
             ['10.128.0.2', '10.128.0.4', '10.128.9.3'])
    hosts.addresses[2] = '10.128.9.3'
    all_converged(torus)
    lost, said = pings.end()
    assert lost <= 1, said
    ping_all(torus)
    file.write_text('nonsense\n')
    hosts.routed[0].send_signal(signal.SIGHUP)
    wait_logged((torus.run.logs / '0.routes.log').read_text, 'the addresses stay as they are')
    ping_all(torus)


def test_daemons_that_restart(mininet):
    torus = with_routes(mininet)
    torus.node(1).daemon.send_signal(signal.SIGKILL)
    torus.node(1).daemon.wait()
    report = converged(torus, 0, down='node 1')
    assert next(route['state'] for route in report['routes'] if route['host'] == 'n1') == 'direct'
    found = torus.ip_hosts.routes(1)
    assert not found['daemon'] and found['daemon_lost_seconds'] >= 0
    torus.node(1).start()
    all_converged(torus)
    ping_all(torus)


def test_routes_that_others_remove_come_back(mininet):
    torus = with_routes(mininet)
    node = torus.node(0)
    routes = node.run('ip', 'route', 'show', 'proto', '84')
    node.run('ip', 'route', 'flush', 'proto', '84')
    wait_for(lambda: node.run('ip', 'route', 'show', 'proto', '84') == routes)


def test_ipv6(mininet):
    """With the addresses of cables that 'torusctl init' gives."""
    torus = mininet('4')
    give_ipv6(torus, 'default', 'lo')
    torus.set_ip_routes(prefix6='fd12:3456:789a::')
    converged(torus)
    said = torus.node(0).run('ping', '-6', '-c', '1', '-W', '5', 'fd12:3456:789a::3')
    assert '1 received' in said
    torus.link_down(0, '+0')
    all_converged(torus, down='link 0:+0')
    assert '1 received' in torus.node(0).run('ping', '-6', '-c', '1', '-W', '5', 'fd12:3456:789a::2')
    torus.ip_hosts.undo()
    assert 'fd12' not in torus.node(0).run('ip', '-6', 'route', 'show', 'table', 'all')
    assert torus.node(0).run('sysctl', '-n', 'net.ipv6.conf.all.forwarding').strip() == '0'


FIREWALLS = '''table ip filter {
    chain DOCKER-USER {
        counter return
    }
    chain FORWARD {
        type filter hook forward priority filter; policy drop;
        jump DOCKER-USER
    }
}
table inet firewalld {
    chain filter_FORWARD {
        type filter hook forward priority filter + 10; policy accept;
        ct state { established, related } accept
        reject
    }
}
'''


@pytest.mark.skipif(subprocess.run(['sh', '-c', 'command -v nft'], capture_output=True).returncode != 0,
                    reason='nft is not installed')
def test_the_firewalls_of_others_let_packets_pass(mininet):
    torus = mininet('4')
    for node in torus.nodes:
        node.host.run('nft', '-f', '-', stdin=FIREWALLS)
    before = [state_of(node) for node in torus.nodes]
    torus.set_ip_routes()
    # The firewalls get their rules one after another, and packets take either way around the ring.
    ping = f'ping -c 1 -W 1 {torus.ip_hosts.addresses[2]} || true'
    wait_for(lambda: '1 received' in torus.node(0).run('sh', '-c', ping))
    torus.ip_hosts.undo()
    assert [state_of(node) for node in torus.nodes] == before


def test_one_capability_is_enough(mininet):
    """As the unit runs it: another user, in the group of the control socket, with CAP_NET_ADMIN only."""
    torus = mininet('4')
    before = state_of(torus.node(1))
    torus.set_ip_routes()
    hosts = torus.ip_hosts
    routes = torus.node(1).run('ip', 'route', 'show', 'proto', '84')
    hosts.routed[1].terminate()
    assert hosts.routed[1].wait() == 0 and state_of(torus.node(1)) == before
    torus.run.path.chmod(0o755)
    hosts.routes_socket(1).parent.chmod(0o777)
    command = hosts.commands[1]
    program = next(i for i, word in enumerate(command) if word.endswith('torus-routed'))
    with open_folder() as folder:
        routed, = copy_programs(folder, 'torus-routed')
        hosts.commands[1] = [*command[:program], 'setpriv', '--reuid', '65534', '--regid', '0', '--clear-groups',
                             '--inh-caps', '-all,+net_admin', '--ambient-caps', '-all,+net_admin',
                             '--bounding-set', '-all,+net_admin', '--no-new-privs', *routed, *command[program + 1:]]
        hosts.start_routed(1)
        converged(torus, 1)
        assert torus.node(1).run('ip', 'route', 'show', 'proto', '84') == routes
        ping_all(torus)
        hosts.routed[1].terminate()
        assert hosts.routed[1].wait() == 0 and state_of(torus.node(1)) == before


@pytest.mark.hosts  # needs root
@pytest.mark.parametrize('text,says', [
    ('10.128.0.1 n0\n', 'has 1 hosts, but the torus has 2 nodes'),
    ('10.128.0.1 n0\n10.128.0.1 n1\n', ':2: n1 has the address of n0'),
    ('10.128.0.1 n0\n10.128.0 n1\n', ':2: "10.128.0" is not an address'),
    ('# none\n', 'has no hosts'),
    ('fd00::1 n0\n', ':1: no IPv4 address'),
    ('10.128.0.1\n', ':1: expected addresses and a name'),
    ('10.128.0.1,10.128.0.2 n0\n', ':1: two addresses of one kind'),
    ('10.0.0.2,fd00::1 n0\n10.0.0.1,fd00::1 n1\n', ':2: n1 has the address of n0 (line 1)'),
    ('10.0.0.2 n0\n# none\n10.0.0.1 n0\n', ':3: n0 has the name of n0 (line 1)'),
    *((f'10.128.0.1 n0\n{address} n1\n', f':2: {address} cannot be')
      for address in ('0.0.0.0', '127.0.0.1', '224.0.0.1', '255.255.255.255')),
    *((f'10.128.0.1,{address} n0\n', f':1: {address} cannot be') for address in ('::', '::1', 'fe80::1', 'ff02::1')),
])
def test_mistakes_in_the_addresses(loopback, tmp_path, text, says):
    torus = loopback('2')
    (tmp_path / 'addresses').write_text(text)
    process = subprocess.Popen(
        ['unshare', '--net', find_program('torus-routed'), '--socket', str(torus.node(0).socket), '--addresses',
         str(tmp_path / 'addresses'), '--state', str(tmp_path / 'state')], stderr=subprocess.PIPE, text=True)
    try:
        said = ''
        while says not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize('arguments,says', [
    (['--interface', 'a-name-that-is-too-long'], 'at most 9 characters'), (['--nothing'], '--help lists'),
    (['more'], 'unexpected argument'), (['--log-level', 'loud'], 'warning, info')])
def test_mistakes_in_the_options(arguments, says):
    done = subprocess.run([find_program('torus-routed'), *arguments], capture_output=True, text=True)
    assert done.returncode == 2 and says in done.stderr
