"""A link is one cable: nothing of it crosses a third host, unless that is wanted."""

import pytest
from support.hosts import PORT

pytestmark = pytest.mark.hosts


def ring_on_loopback(hosts, cut=False, **settings):
    """A ring of three. Nodes are known by addresses of their loopback interfaces; each reaches the two others
    over their cables, or over each other. `cut`: the cable between nodes 0 and 1 is from the start."""
    for a in range(3):
        b = (a + 1) % 3
        hosts.cable(a, 'plus', b, 'minus')
        hosts[a].ip(f'address add 10.0.{a}.1/30 dev plus')
        hosts[b].ip(f'address add 10.0.{a}.2/30 dev minus')
    for a in range(3):
        up, down = (a + 1) % 3, (a - 1) % 3
        host = hosts[a]
        host.sysctl('net.ipv4.ip_forward', 1)
        host.ip(f'address add 10.255.0.{a}/32 dev lo')
        for node, metric_up, metric_down in (up, 10, 20), (down, 20, 10):
            source = f'src 10.255.0.{a}'
            host.ip(f'route add 10.255.0.{node} via 10.0.{a}.2 dev plus metric {metric_up} {source}')
            host.ip(f'route add 10.255.0.{node} via 10.0.{down}.1 dev minus metric {metric_down} {source}')
        hosts.configure(a, {'+0': f'10.255.0.{up}:{PORT}', '-0': f'10.255.0.{a}:{PORT}'}, **settings)
    if cut:
        cut_between_0_and_1(hosts)
    hosts.start(0, 1, 2)
    hosts.wait_up()


def cut_between_0_and_1(hosts):
    """At both ends, so that both use their other routes."""
    hosts[0].ip('link set plus down')
    hosts[1].ip('link set minus down')


def test_no_link_crosses_a_third_host(hosts):
    ring = hosts('3', 3)
    ring_on_loopback(ring)
    cut_between_0_and_1(ring)
    ring.wait_link(0, '+0', up=False, reason='no carrier on plus, which is set down')
    ring.end(0)  # a node that has not known the cable
    ring.start(0)
    link = ring.wait_link(0, '+0', up=False, reason='the route there leads over another host (10.255.0.2)')
    assert link['reason'].startswith(f'10.255.0.1:{PORT}: ') and 'hop_limit 1' in link['reason']
    ring.wait_link(1, '-0', up=False)
    ring.wait_link(0, '-0', up=True)
    assert ring.link(1, '+0')['up']
    for a, b, end, gateway in (0, 1, 'plus', '10.0.0.2'), (1, 0, 'minus', '10.0.0.1'):
        ring[a].ip(f'link set {end} up')
        ring[a].ip(f'route add 10.255.0.{b} via {gateway} dev {end} metric 10 src 10.255.0.{a}')
    ring.wait_up()


def test_a_link_may_cross_hosts_if_that_is_wanted(hosts):
    ring = hosts('3', 3)
    ring_on_loopback(ring, cut=True, hop_limit=2)
