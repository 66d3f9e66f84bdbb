"""A day of three hosts: cables are unplugged and plugged in again, a host reboots, an address comes late. In the
evening every link is up, and only the daemon of the rebooted host has been restarted."""

import pytest
from support.hosts import PORT
from support.waiting import wait_for

pytestmark = [pytest.mark.hosts, pytest.mark.full]


class Own:
    """A subnet for each cable."""
    on = ''

    def address(self, a, side):
        cable = a if side == 'plus' else (a - 1) % 3
        return f'10.0.{cable}.{1 if side == "plus" else 2}'

    def set_up(self, host, a, side):
        host.ip(f'address add {self.address(a, side)}/30 dev {side}')

    def listens(self, a):
        return f'{self.address(a, "minus")}:{PORT}'

    def dials(self, a):
        return self.listens((a + 1) % 3)


class LinkLocal(Own):
    """fe80::a on every + interface, and fe80::b on every - interface."""

    def set_up(self, host, a, side):
        host.ip(f'address add fe80::{"a" if side == "plus" else "b"}/64 dev {side}')

    def listens(self, a):
        return f'[fe80::b%minus]:{PORT}'

    def dials(self, a):
        return f'[fe80::b%plus]:{PORT}'


class Shared(Own):
    """One address for each machine, on both its cables, and a route to each neighbour."""

    def set_up(self, host, a, side):
        neighbour = (a + 1) % 3 if side == 'plus' else (a - 1) % 3
        host.ip(f'address add 10.0.0.{a + 1}/32 dev {side}')
        host.ip(f'route add 10.0.0.{neighbour + 1}/32 dev {side} src 10.0.0.{a + 1}')

    def listens(self, a):
        return f'10.0.0.{a + 1}:{PORT}'


ENDS = {'plus': '+0', 'minus': '-0'}


class Ring:
    def __init__(self, hosts, kind):
        self.hosts, self.kind = hosts, kind
        for a in range(3):
            hosts.configure(a, {'+0': kind.dials(a), '-0': kind.listens(a)})

    def plug_in(self, cable, without=()):
        """The cable between machines `cable` and `cable` + 1. No addresses for the machines `without`."""
        a, b = cable, (cable + 1) % 3
        self.hosts.cable(a, 'plus', b, 'minus')
        for host, side in (a, 'plus'), (b, 'minus'):
            if host not in without:
                self.kind.set_up(self.hosts[host], host, side)

    def unplug(self, cable):
        """As a network card on USB: the interfaces go, too."""
        self.hosts[cable].ip('link delete plus')

    def check_down(self, cable):
        for rank, port in (cable, '+0'), ((cable + 1) % 3, '-0'):
            self.hosts.wait_link(rank, port, up=False)

    def check_whole(self):
        self.hosts.wait_up(0, 1, 2)
        for rank in range(3):
            wait_for(lambda: self.hosts.status(rank)['whole'], 20, lambda: self.hosts.status(rank))
            assert {x['port']: x['interface'] for x in self.hosts.links(rank)} == {'+0': 'plus', '-0': 'minus'}


# Interfaces that come and go with other kinds of addresses: test_interfaces, test_late, test_carrier.
@pytest.mark.parametrize('kind', [LinkLocal, *(pytest.param(kind, marks=pytest.mark.full) for kind in (Own, Shared))])
def test_a_day(hosts, kind):
    three = hosts('3', 3)
    ring = Ring(three, kind())
    # In the morning one machine has no addresses yet, and one cable is not plugged in.
    ring.plug_in(0, without=(1,))
    ring.plug_in(1, without=(1,))
    three.start(0, 1, 2)
    three.wait_link(1, '-0', up=False, state='waiting')
    for side in ENDS:
        ring.kind.set_up(three[1], 1, side)
    three.wait_link(0, '+0', up=True)
    three.wait_link(1, '+0', up=True)
    ring.check_down(2)
    ring.plug_in(2)
    ring.check_whole()
    started = {rank: daemon.pid for rank, daemon in three.daemons.items()}

    for cable in 0, 2:
        others = {rank: three.link(rank, '+0')['connects'] for rank in range(3) if rank != cable}
        ring.unplug(cable)
        ring.check_down(cable)
        ring.plug_in(cable)
        ring.check_whole()
        assert {rank: three.link(rank, '+0')['connects'] for rank in others} == others

    # Machine 1 loses its power; both ends of its cables go with it.
    three.kill(1)
    three[1].halt()
    three.wait_link(0, '+0', up=False)
    three.wait_link(2, '-0', up=False)
    three[1].boot()
    three.start(1)
    three.wait_link(1, '-0', up=False)
    ring.plug_in(1)
    ring.plug_in(0)
    ring.check_whole()

    assert {rank: daemon.pid for rank, daemon in three.daemons.items() if rank != 1} == \
        {rank: pid for rank, pid in started.items() if rank != 1}
    assert all(daemon.poll() is None for daemon in three.daemons.values())
    done = three.ctl(0, 'exchange', '--block-size', '20000')
    assert done.returncode == 0, done.stderr
