"""torusctl doctor finds planted faults on machines made of namespaces, names the machines, and says how to mend them."""

import json
import re
import shutil
import subprocess

import pytest
from support.hosts import PORT
from support.waiting import wait_for
from torus_net import find_program

pytestmark = pytest.mark.hosts

HINTS = {'clocks', 'system', 'load'}  # the machine on which the tests run may have these


def ring(hosts, count=3, mtu=None, cables=None, **settings):
    """Machines in a ring: plus0 of each is cabled to minus0 of the next one. mtu: {(node, interface): bytes}."""
    return cable_ring(hosts(str(count), count), count, mtu, cables, **settings)


def cable_ring(torus, count=3, mtu=None, cables=None, **settings):
    for a, interface_a, b, interface_b in cables or [(i, 'plus0', (i + 1) % count, 'minus0') for i in range(count)]:
        torus.cable(a, interface_a, b, interface_b)
    for (node, interface), size in (mtu or {}).items():
        torus[node].ip(f'link set {interface} mtu {size}')
    for node in range(count):
        for side, address in ('plus0', 'fe80::a'), ('minus0', 'fe80::b'):
            torus[node].ip(f'address add {address}/64 dev {side} nodad')
        torus.configure(node, {'+0': f'[fe80::b%plus0]:{PORT}', '-0': f'[fe80::b%minus0]:{PORT}'}, **settings)
    return torus


def doctor(torus, asked=0, *options):
    """(exit status, {check: [finding]}) without hints about the machine of the tests, and what cannot be seen there."""
    done = torus.ctl(asked, 'doctor', *options)
    value = json.loads(done.stdout)
    found = {}
    for finding in value['findings']:
        if finding['severity'] != 'not seen' and (
                finding['check'] not in HINTS or finding['severity'] not in ('hint', 'fine')):
            found.setdefault(finding['check'], []).append(finding)
    return done.returncode, found


def wait_found(torus, asked, check):
    """Waits until the doctor finds something by this check. Returns (exit status, findings)."""
    def found():
        status, all_found = doctor(torus, asked)
        return (status, all_found) if check in all_found else None
    return wait_for(found, 30, lambda: f'{doctor(torus, asked)}\n{torus.log(asked)}')


def test_nothing_is_wrong(hosts):
    torus = ring(hosts)
    torus.start(0, 1, 2)
    torus.wait_up()
    status, found = doctor(torus, 1, '--all')
    assert status == 0, found
    assert {severity for finding in found.values() for severity in [one['severity'] for one in finding]} \
        <= {'fine', 'hint'}
    for check in 'nodes', 'links', 'losses', 'cables', 'mtu', 'interface errors', 'disks', 'memory', 'rp_filter':
        assert [(one['severity'], one['ranks']) for one in found[check]] == [('fine', [0, 1, 2])], check
    value = json.loads(torus.ctl(1, 'doctor').stdout)
    assert value['worst'] in ('fine', 'hint', 'not seen') and value['answered'] == {'state': 3, 'facts': 3}
    for check in value['checks']:  # each check says a result for each node
        assert check['fine'] + check['not_seen'] + check['wrong'] == 3, check
    done = subprocess.run([find_program('torusctl'), '--socket', torus.folder / '1.sock', 'doctor'], capture_output=True,
                          text=True)
    assert re.search(r'^3 of 3 hosts answered: 0 errors, 0 warnings, \d hints?', done.stdout, re.M), done.stdout


def test_an_mtu_that_differs(hosts):
    torus = ring(hosts, mtu={(0, 'plus0'): 9000})
    torus.start(0, 1, 2)
    for node, port in (1, '+0'), (2, '+0'), (2, '-0'):
        torus.wait_link(node, port, up=True)
    status, found = wait_found(torus, 2, 'mtu')
    assert status == 2, found
    what = ' '.join(one['what'] for one in found['mtu'])
    assert '9000' in what and '1500' in what and 'plus0' in what
    assert any('ip link set dev' in one['mend'] for one in found['mtu'])


def test_crossed_cables(hosts):
    """The cables of two rows of a mesh have changed places at one end. That is one finding, in the words of 'torusctl
    discover', and the links have no other fault."""
    torus = hosts('3mx2m', 6)
    ports = {node: {} for node in range(6)}

    def cable(a, one, b, other, dim):
        torus.cable(a, one, b, other)
        for node, interface, address, side in (a, one, 'a', '+'), (b, other, 'b', '-'):
            torus[node].ip(f'address add fe80::{address}/64 dev {interface} nodad')
            ports[node][f'{side}{dim}'] = f'[fe80::b%{interface}]:{PORT}'
    for node in range(4):
        cable(node, 'south', node + 2, 'north', 0)
    for a, b in (0, 3), (2, 1), (4, 5):
        cable(a, 'east', b, 'west', 1)
    for node in range(6):
        torus.configure(node, ports[node])
    torus.start(*range(6))
    host = subprocess.run(['uname', '-n'], capture_output=True, text=True, check=True).stdout.strip()

    def found():
        _, all_found = doctor(torus, 1)
        return None if 'nodes' in all_found else [one for one in all_found.get('cables', []) if 'swap' in one['mend']]
    # Each node learns a moment after the cable who is at its other end.
    one, = wait_for(found, what=lambda: doctor(torus, 1))
    assert re.fullmatch(rf"swap the cables in {host} \(node \d\)'s (east|west) and {host} \(node \d\)'s \1", one['mend']), one
    assert re.match(rf"{host} \(node \d\)'s (east|west) \(port [+-]1\) leads to {host} \(node \d\)'s", one['what']), one
    assert len(one['each']) == 1 and 'links' not in doctor(torus, 1)[1]


def test_swapped_cables_of_the_machine_that_is_asked(hosts):
    """It reaches no other machine, and has found out by itself where its cables lead."""
    torus = ring(hosts, cables=[(0, 'plus0', 2, 'plus0'), (0, 'minus0', 1, 'minus0'), (1, 'plus0', 2, 'minus0')])
    torus.start(0, 1, 2)

    def mends():
        return [one['mend'] for finding in doctor(torus, 0)[1].get('cables', []) for one in finding['each']]
    # Until it has heard from both ends, it knows of one wrong cable only, and says to move that.
    wait_for(lambda: ['swap the cables in' in mend for mend in mends()] == [True], what=lambda: doctor(torus, 0))


def test_a_full_disk(hosts):
    torus = hosts('3', 3)
    root = torus.folder / 'data'
    root.mkdir()
    cable_ring(torus, data_roots=root)
    torus[1].run('mount', '-t', 'tmpfs', '-o', 'size=1m', 'none', root)
    torus[1].run('sh', '-c', f'head -c 990000 /dev/zero > {root}/file')
    torus.start(0, 1, 2)
    torus.wait_up()
    status, found = doctor(torus, 2)
    assert status == 2, found
    [one] = found['disks']
    assert one['ranks'] == [1] and f'data_root {root} has 0 MiB left of 1 MiB' in one['what']
    assert f'du -xsh {root}' in one['mend']


def test_an_interface_that_is_down(hosts):
    torus = ring(hosts)
    torus.start(0, 1, 2)
    torus.wait_up()
    torus[0].ip('link set plus0 down')
    one = wait_for(lambda: next((one for one in doctor(torus, 1)[1].get('links', [])
                                 if 'ip link set dev plus0 up' in one['mend']), None),
                   what=lambda: doctor(torus, 1))
    assert 'port +0' in one['what'] and 'port -0' in one['what'] and 'plus0' in one['what']


@pytest.mark.skipif(not shutil.which('nft'), reason='nft is missing')
def test_a_cable_that_loses_packets(hosts):
    """The end that sends them again is named, with the time in which it did so."""
    torus = ring(hosts)
    torus.start(0, 1, 2)
    torus.wait_up()
    try:
        torus[1].run('nft', 'add table netdev lossy; add chain netdev lossy c { type filter hook ingress device minus0 '
                     'priority 0; }; add rule netdev lossy c numgen random mod 20 < 1 drop')
    except AssertionError as error:
        pytest.skip(f'no rules in a network namespace here: {error}')

    def found():
        done = torus.ctl(2, 'exchange', '--block-size', '1MiB')
        assert done.returncode == 0, done.stderr
        return doctor(torus, 2)[1].get('losses')
    [one, *_] = wait_for(found, what=lambda: torus.ctl(0, 'links').stdout)
    assert one['ranks'] == [0] and 'port +0 of' in one['what'] and 'plus0' in one['what'], one
    assert re.search(r'has sent \d+ packets again, of about \d+, in the last \d+ (s|min)', one['what']), one
    link = json.loads(torus.ctl(0, 'links').stdout)['links'][0]
    assert link['last_hour']['retransmits'] >= 100, link


def test_a_dead_node(hosts):
    """What its neighbours know of it is shown."""
    torus = ring(hosts)
    torus.start(0, 1, 2)
    torus.wait_up()
    torus.kill(2)
    status, found = wait_found(torus, 1, 'nodes')
    [one] = found['nodes']
    assert status == 2 and one['ranks'] == [2]
    assert 'port -0 of' in one['what'] and 'port +0 of' in one['what']


@pytest.mark.full
def test_a_node_of_an_older_release(hosts):
    """It knows no surveys, so only this machine is judged, until it is upgraded."""
    torus = ring(hosts)
    ports = {'+0': f'[fe80::b%plus0]:{PORT}', '-0': f'[fe80::b%minus0]:{PORT}'}
    for node in 0, 1:
        torus.configure(node, ports, protocol_minor=1)
    torus.configure(2, ports, protocol_minor=0)
    torus.start(0, 1, 2)
    torus.wait_up()
    status, found = wait_found(torus, 0, 'versions')
    [one] = found['versions']
    assert status == 3 and 'older release' in one['what'] and 'same release' in one['mend']
    assert 'older release' in torus.ctl(0, 'status', '--all').stderr
    assert torus.end(2) == 0
    torus.configure(2, ports, protocol_minor=1)
    torus.start(2)
    torus.wait_up()
    wait_for(lambda: doctor(torus)[0] == 0, what=lambda: doctor(torus))


@pytest.mark.full
def test_ip_routes(hosts):
    """A machine without the routes that others have; routes that are missing; a machine that forwards nothing, and one
    whose firewall drops what it should forward."""
    torus = ring(hosts, 4)
    (torus.folder / 'hosts.ini').write_text('[*]\n+0 = plus0\n-0 = minus0\n' +
                                            ''.join(f'[h{i}]\nrank = {i}\n' for i in range(4)))
    done = torus.ctl(0, 'ip-routes', '--dims', '4', '--hosts', torus.folder / 'hosts.ini', '--to', torus.folder / 'to',
                     '--state', torus.folder)
    assert done.returncode == 0, done.stderr
    torus.start(0, 1, 2, 3)
    torus.wait_up()
    assert 'ip routes' not in doctor(torus)[1]

    def up(node):
        torus[node].run('env', f'TORUS_HOST=h{node}', 'sh', torus.folder / 'to' / f'h{node}.sh', 'up')
    for node in 0, 1, 2:
        up(node)
    one = wait_for(lambda: next((one for one in doctor(torus)[1].get('ip routes', []) if one['ranks'] == [3]
                                 and one['severity'] == 'error'), None), what=lambda: doctor(torus))
    assert '.sh up' in one['mend']
    up(3)
    torus[1].run('ip', 'route', 'del', '10.128.0.4')
    torus[2].sysctl('net.ipv4.ip_forward', 0)
    found = wait_for(lambda: found if 'forwarding' in (found := doctor(torus, 3)[1])
                     and [one['ranks'] for one in found.get('ip routes', [])] == [[1]] else None,
                     what=lambda: doctor(torus, 3))
    assert '2 of 3' in found['ip routes'][0]['what'] and found['forwarding'][0]['ranks'] == [2]


@pytest.mark.skipif(not shutil.which('nft'), reason='nft is missing')
def test_a_firewall_that_drops_forwarded_packets(hosts):
    """torusd runs as root here, so it sees the rules."""
    torus = ring(hosts)
    for node in range(3):
        torus[node].ip('link add torus0 type veth peer name torus0-peer')
    try:
        torus[1].run('nft', 'add table ip filter; add chain ip filter FORWARD '
                     '{ type filter hook forward priority 0; policy drop; }')
    except AssertionError as error:
        pytest.skip(f'no rules in a network namespace here: {error}')
    torus[1].ip('link add docker0 type veth peer name container')
    torus.start(0, 1, 2)
    status, found = wait_found(torus, 0, 'firewall')
    one = next(one for one in found['firewall'] if one['severity'] == 'error')
    assert status == 2 and one['ranks'] == [1] and 'Docker' in one['what'] and 'DOCKER-USER' in one['mend']


def test_without_a_daemon(hosts):
    torus = ring(hosts)
    done = torus.ctl(0, 'doctor')
    value = json.loads(done.stdout)
    assert done.returncode == 3 and value['daemon'] is False
    assert any(one['check'] == 'daemon' and 'start torusd' in one['mend'] for one in value['findings'])
