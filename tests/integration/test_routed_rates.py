"""torus-routed follows the rates of links: a direction that has become slow is avoided, and is used again when it is well.
What weights are good for is tested by test_ip_weights.py and the planner's tests in C."""

import re
import subprocess

from integration.test_routed_transit import BUSY, SINK, route_to, used
from support.routed import Pings, all_converged, converged, give_ipv6, ping_all
from support.waiting import wait_for

MBIT = 20


def weights_in_kernel(torus, rank, address):
    """{interface: weight} of the kernel's route to an address; 1 for a single next hop."""
    family = '-6' if ':' in address else '-4'
    text = torus.node(rank).run('ip', family, 'route', 'show', address, 'proto', '84')
    return {name: int(weight or 1) for name, weight in re.findall(r'dev (\S+)(?: weight (\d+))?', text)}


def load_until_slow(torus, rank, port):
    def is_slow():
        torus.json(0, 'exchange', '--algorithm', 'auto', '--block-size', '256KiB')
        return any(link['port'] == port and link['planned_from'] == 'observed' for link in torus.links(rank)['links'])
    wait_for(is_slow, 120)


def count_quiet(torus):
    return sum(node.log().count('IP routes avoid the link') for node in torus.nodes)


def test_a_slow_direction_is_avoided_and_used_again(mininet):
    torus = mininet('4', bw=MBIT, rates={(0, '+0'): MBIT / 10})
    give_ipv6(torus)
    torus.set_ip_routes(prefix6='fd00:84::')
    all_converged(torus)
    direct, around = torus.node(0).interface('+0'), torus.node(0).interface('-0')
    addresses = [torus.ip_hosts.addresses[1], 'fd00:84::1']
    addresses[1] = route_to(converged(torus, 0), 'n1')['address6']
    assert [weights_in_kernel(torus, 0, address) for address in addresses] == [{direct: 1}] * 2

    # Three fast links carry more than one slow one. The others send over their shortest paths; on a busy machine, their
    # links may seem slow for a moment, too.
    load_until_slow(torus, 0, '+0')
    wait_for(lambda: [weights_in_kernel(torus, 0, address) for address in addresses] == [{around: 1}] * 2)

    def only_that_link():
        report = converged(torus, 0)
        mbit = {way['interface']: way['mbit'] for way in route_to(report, 'n1')['ways']}
        return (used(report, 'n1') == ['n3'] and (mbit.get(direct) or MBIT) < MBIT / 4 and mbit.get(around) == MBIT and
                'slower than others' in route_to(report, 'n1')['why'] and
                used(converged(torus, 1), 'n0') == ['n0'] and used(converged(torus, 2), 'n1') == ['n1'])
    wait_for(only_that_link, 120)
    pings = Pings(torus, 0, 1)
    ping_all(torus)

    # Several connections take both, by weights, in IPv4 and IPv6.
    sink = subprocess.Popen([*torus.node(1).host.enter(), '/usr/bin/python3', '-c', SINK], stdout=subprocess.PIPE)
    try:
        assert sink.stdout.readline()
        with subprocess.Popen([*torus.node(0).host.enter(), '/usr/bin/python3', '-c', BUSY, addresses[0], '4'],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as sender:
            assert sender.stdout.readline()

            def are_in_kernel():  # the connections fill the slow link, which may become quiet, and be avoided, meanwhile
                said = torus.ctl(0, 'routes', '--from', torus.ip_hosts.routes_socket(0)).stdout
                weights = {way['interface']: way['weight'] for way in route_to(converged(torus, 0), 'n1')['ways']}
                return (3 * weights.get(direct, 99) < weights.get(around, 0) and '%' in said and
                        [weights_in_kernel(torus, 0, address) for address in addresses] == [weights] * 2)
            wait_for(are_in_kernel)
            sender.kill()
        wait_for(lambda: used(converged(torus, 0), 'n1') == ['n3'])
    finally:
        sink.kill()
        sink.wait()
    _, said = pings.end()
    assert 'xceeded' not in said, said

    # Probes find out that the link is well. Nothing is lost when the route returns, unless links have become quiet.
    wait_for(lambda: only_that_link() and all(route['seconds'] > 2 for rank in range(4)
                                              for route in converged(torus, rank)['routes']), 120)
    quiet = count_quiet(torus)
    pings = Pings(torus, 0, 1)
    torus.set_rate(0, '+0', MBIT)
    wait_for(lambda: [weights_in_kernel(torus, 0, address) for address in addresses] == [{direct: 1}] * 2, 60)
    lost, said = pings.end()
    assert lost <= 1 or count_quiet(torus) > quiet, said  # one may be on its way at the end
    assert 'xceeded' not in said, said
    wait_for(lambda: route_to(converged(torus, 0), 'n1')['why'] == 'shortest', 60)
