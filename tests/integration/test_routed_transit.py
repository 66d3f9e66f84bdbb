"""IP routes lead only through hosts that say that they forward; a host whose torusd does not run is reached over the cables
to its neighbours; a cable that passes nothing, but has a carrier, is avoided before its link is given up."""

import signal
import subprocess

import pytest
from support.netdev import silence
from support.routed import Pings, all_converged, converged, next_hops, ping_all, stop_routed, with_routes
from support.waiting import wait_for


def route_to(report, host):
    return next(route for route in report['routes'] if route['host'] == host)


def avoids(torus, ranks, host):
    """Whether no route of these hosts to others leads over that host any more, and all are whole."""
    for rank in ranks:
        report = torus.ip_hosts.routes(rank)
        if not report or not report['settled']:
            return False
        for route in report['routes']:
            if route['host'] != host and (route['state'] != 'routed' or host in [w['host'] for w in route['ways']]):
                return False
    return True


def test_a_host_that_stops_to_forward_is_avoided_without_loss(mininet):
    torus = with_routes(mininet)
    addresses = torus.ip_hosts.addresses
    others = (0, 1, 3)
    flows = [Pings(torus, start, to) for start in others for to in others if start != to]
    assert stop_routed(torus, 2, signal.SIGTERM) == 0
    wait_for(lambda: avoids(torus, others, 'n2'))
    for flow in flows:
        lost, said = flow.end()
        assert lost <= 1 and 'xceeded' not in said, said  # one may be on its way at the end
    report = converged(torus, 1)
    assert route_to(report, 'n3')['state'] == 'routed' and next_hops(report, 'n3') == ['n0']
    assert addresses[3] in torus.node(1).run('ip', 'route', 'show', 'proto', '84')
    torus.ip_hosts.start_routed(2)
    wait_for(lambda: all(next_hops(converged(torus, rank), to) == ['n0', 'n2'] for rank, to in ((1, 'n3'), (3, 'n1'))))
    ping_all(torus)


def test_a_host_whose_process_is_killed_is_avoided(mininet):
    torus = with_routes(mininet)
    others = (0, 1, 3)
    stop_routed(torus, 2)
    wait_for(lambda: avoids(torus, others, 'n2'))
    # Its routes have stayed, and it is reached.
    assert route_to(converged(torus, 0), 'n2')['state'] == 'routed'
    ping_all(torus)
    torus.ip_hosts.start_routed(2)
    wait_for(lambda: next_hops(converged(torus, 1), 'n3') == ['n0', 'n2'])


@pytest.mark.full  # takes half a minute
def test_a_host_whose_process_stands_still_is_avoided(mininet):
    torus = with_routes(mininet)
    others = (0, 1, 3)
    torus.ip_hosts.routed[2].send_signal(signal.SIGSTOP)
    try:
        wait_for(lambda: avoids(torus, others, 'n2'), seconds=120)
    finally:
        torus.ip_hosts.routed[2].send_signal(signal.SIGCONT)
    wait_for(lambda: next_hops(converged(torus, 1), 'n3') == ['n0', 'n2'])


def test_hosts_behind_one_that_does_not_forward_are_unreachable(mininet):
    torus = with_routes(mininet, '3m')
    stop_routed(torus, 1)
    wait_for(lambda: route_to(torus.ip_hosts.routes(0), 'n2')['state'] == 'blocked')
    report = torus.ip_hosts.routes(0)
    assert 'do not forward' in route_to(report, 'n2')['why'] and route_to(report, 'n1')['state'] == 'routed'
    assert 'No route' in torus.node(0).run('sh', '-c', f'ip route get {torus.ip_hosts.addresses[2]} 2>&1 || true')
    torus.ip_hosts.start_routed(1)
    all_converged(torus)
    ping_all(torus)


def test_a_host_without_torusd_is_reached_by_its_neighbours(mininet):
    torus = with_routes(mininet)
    addresses = torus.ip_hosts.addresses
    torus.node(1).daemon.send_signal(signal.SIGKILL)
    torus.node(1).daemon.wait()
    for rank in (0, 2):
        route = route_to(converged(torus, rank, 'node 1'), 'n1')
        assert route['state'] == 'direct' and [way['host'] for way in route['ways']] == ['n1']
        assert '1 received' in torus.node(rank).run('ping', '-c', '1', '-W', '5', addresses[1])
        assert '1 received' in torus.node(1).run('ping', '-c', '1', '-W', '5', addresses[rank])
    assert route_to(converged(torus, 3, 'node 1'), 'n1')['state'] == 'unreachable'
    ping_all(torus, missing=[(1, 3)])
    # Without a carrier there is no way.
    torus.link_down(0, '+0')
    wait_for(lambda: route_to(torus.ip_hosts.routes(0), 'n1')['state'] == 'unreachable')
    torus.link_up(0, '+0')
    torus.node(1).start()
    all_converged(torus)
    ping_all(torus)


def test_a_silent_cable_is_avoided_before_its_link_is_given_up(mininet):
    """Its link would last for minutes; the packets go around."""
    torus = with_routes(mininet, '4', extra=('--silence-ms=600000',))
    pings = Pings(torus, 0, 1)
    with silence(torus, 0, '+0'):
        converged(torus, 0, 'link 0:+0')
        ping_all(torus)
        assert torus.links(0)['links'][0]['state'] == 'up'
    all_converged(torus)
    assert next_hops(converged(torus, 0), 'n1') == ['n1']
    _, said = pings.end()
    assert 'xceeded' not in said, said


BUSY = '''import socket, sys, threading
sockets = [socket.create_connection((sys.argv[1], 7)) for _ in range(int(sys.argv[2]))]
print('connected', flush=True)
def send(s):
    while True:
        s.sendall(bytes(1 << 16))
for s in sockets:
    threading.Thread(target=send, args=(s,), daemon=True).start()
sys.stdin.read()
'''
SINK = '''import socket, threading
server = socket.create_server(("", 7), backlog=64)
print('listens', flush=True)
def take(s):
    while s.recv(1 << 16):
        pass
while True:
    threading.Thread(target=take, args=(server.accept()[0],), daemon=True).start()
'''


def used(report, host):
    return [way['host'] for way in route_to(report, host)['ways'] if way['used']]


def test_connections_of_a_pair_are_spread_if_several_send_much(mininet):
    torus = with_routes(mininet, '4', bw=20)
    # Between opposite hosts, even hosts take one direction and odd ones the other: no two share a cable.
    chosen = {rank: used(converged(torus, rank), f'n{(rank + 2) % 4}') for rank in range(4)}
    assert [len(ways_of) for ways_of in chosen.values()] == [1] * 4
    assert chosen == {0: ['n1'], 1: ['n0'], 2: ['n3'], 3: ['n2']}
    sink = subprocess.Popen([*torus.node(2).host.enter(), '/usr/bin/python3', '-c', SINK], stdout=subprocess.PIPE)
    assert sink.stdout.readline()
    try:
        for count, several in (1, False), (4, True):
            with subprocess.Popen([*torus.node(0).host.enter(), '/usr/bin/python3', '-c', BUSY,
                                   torus.ip_hosts.addresses[2], str(count)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE) as sender:
                assert sender.stdout.readline()
                if several:
                    wait_for(lambda: used(converged(torus, 0), 'n2') == ['n1', 'n3'])
                    assert torus.node(0).run('ip', 'route', 'show', 'proto', '84').count('nexthop') == 2
                else:
                    wait_for(lambda: '64 bytes' in torus.node(0).run(
                        'sh', '-c', f'ping -c 1 -W 1 {torus.ip_hosts.addresses[2]} || true'))
                    assert used(converged(torus, 0), 'n2') == ['n1']
                sender.kill()
        wait_for(lambda: used(converged(torus, 0), 'n2') == ['n1'])
    finally:
        sink.kill()
        sink.wait()


