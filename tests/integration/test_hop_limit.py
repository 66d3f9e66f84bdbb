"""A link is one cable: its packets do not cross a third host, unless the configuration permits that."""

import pytest
from support.hosts import PORT
from support.waiting import wait_for
from support.wire import MINOR, VERSION, Fixed64, message

pytestmark = [pytest.mark.hosts, pytest.mark.full]


class IPv4:
    known = {'forward': 'net.ipv4.ip_forward', 'host': 32, 'cable': 30, 'options': ''}
    node, plus, minus = '10.255.0.{}', '10.0.{}.1', '10.0.{}.2'
    endpoint = '{}:' + str(PORT)


class IPv6:
    known = {'forward': 'net.ipv6.conf.all.forwarding', 'host': 128, 'cable': 64, 'options': 'nodad'}
    node, plus, minus = 'fd00:ff::{}', 'fd00:{}::1', 'fd00:{}::2'
    endpoint = '[{}]:' + str(PORT)


class Ring:
    """A ring of three. Nodes have addresses on their loopback interfaces, and reach both other nodes over their cables
    or through each other. `cut`: the cable between nodes 0 and 1 is down from the start."""

    def __init__(self, hosts, family, cut=False, **settings):
        self.hosts, self.family, known = hosts, family, family.known
        for a in range(3):
            b = (a + 1) % 3
            hosts.cable(a, 'plus', b, 'minus')
            hosts[a].ip(f'address add {self.plus(a)}/{known["cable"]} dev plus {known["options"]}')
            hosts[b].ip(f'address add {self.minus(a)}/{known["cable"]} dev minus {known["options"]}')
        for a in range(3):
            up, down = (a + 1) % 3, (a - 1) % 3
            hosts[a].sysctl(known['forward'], 1)
            hosts[a].ip(f'address add {self.node(a)}/{known["host"]} dev lo {known["options"]}')
            for node, metric_up, metric_down in (up, 10, 20), (down, 20, 10):
                self.route(a, node, f'via {self.minus(a)} dev plus metric {metric_up}')
                self.route(a, node, f'via {self.plus(down)} dev minus metric {metric_down}')
            hosts.configure(a, {'+0': self.endpoint(up), '-0': self.endpoint(a)}, **settings)
        if cut:
            self.cut()
        hosts.start(0, 1, 2)
        hosts.wait_up()

    def node(self, rank):
        return self.family.node.format(rank)

    def plus(self, cable):
        return self.family.plus.format(cable)

    def minus(self, cable):
        return self.family.minus.format(cable)

    def endpoint(self, rank):
        return self.family.endpoint.format(self.node(rank))

    def route(self, rank, to, how):
        self.hosts[rank].ip(f'route add {self.node(to)} {how} src {self.node(rank)}')

    def cut(self):
        """Sets down both ends of the cable between nodes 0 and 1, so that both nodes use their other routes."""
        self.hosts[0].ip('link set plus down')
        self.hosts[1].ip('link set minus down')

    def mend(self):
        known = self.family.known
        for rank, other, end, own, gateway in (0, 1, 'plus', self.plus(0), self.minus(0)), \
                (1, 0, 'minus', self.minus(0), self.plus(0)):
            self.hosts[rank].ip(f'link set {end} up')
            if self.family is IPv6:  # interfaces that are set down lose their routes
                self.hosts[rank].ip(f'address add {own}/{known["cable"]} dev {end} {known["options"]}')
            self.route(rank, other, f'via {gateway} dev {end} metric 10')


@pytest.mark.parametrize('family', [IPv4, IPv6])
def test_no_link_crosses_a_third_host(hosts, family):
    torus = hosts('3', 3)
    ring = Ring(torus, family)
    ring.cut()
    torus.wait_link(0, '+0', up=False, reason='no carrier on plus, which is set down')
    torus.end(0)  # a node that has not known the cable
    torus.start(0)
    link = torus.wait_link(0, '+0', up=False, reason=f'the route there leads over another host ({ring.node(2)})')
    assert link['reason'].startswith(f'{ring.endpoint(1)}: ') and 'hop_limit 1' in link['reason']
    torus.wait_link(1, '-0', up=False)
    torus.wait_link(0, '-0', up=True)
    assert torus.link(1, '+0')['up']
    ring.mend()
    torus.wait_up()


@pytest.mark.parametrize('family', [IPv4, IPv6])
def test_a_link_may_cross_hosts_if_that_is_wanted(hosts, family):
    Ring(hosts('3', 3), family, cut=True, hop_limit=2)


# Sends a beacon out of an interface, once the interface has an address.
BEACON = """import contextlib, socket, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
with contextlib.suppress(OSError):
    s.sendto(bytes.fromhex(sys.argv[2]), ('ff02::1', 7411, 0, socket.if_nametoindex(sys.argv[1])))"""


def test_the_cable_of_another_port_is_not_wrong(hosts):
    """The route to the neighbour leads over the cable of another port, so what is heard there seems to come from this
    port's cable, until the other port has its link."""
    torus = hosts('3', 3)
    ring = Ring(torus, IPv4)
    ring.cut()
    for rank in 0, 2:
        torus.end(rank)
    torus.start(0)
    torus.wait_link(0, '+0', reason='the route there leads over another host')
    beacon = b'torusd\0b' + message({1: VERSION, 2: '3', 3: 2, 4: 0, 5: Fixed64(7), 10: MINOR})

    def is_heard():
        torus[2].run('/usr/bin/python3', '-c', BEACON, 'plus', beacon.hex())
        return torus.faults(0) == {(0, '+0'): ('same-side', 2, '+0')}
    wait_for(is_heard)
    torus.start(2)
    torus.wait_link(0, '-0', up=True)
    torus.wait_link(0, '+0', reason='the route there leads over another host')
    assert torus.faults(0) == {}
