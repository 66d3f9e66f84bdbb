"""A link's cable is the interface that its connection uses: interfaces that disappear and return with another index,
and addresses that several interfaces share."""

import json
import re

import pytest
from support.hosts import PORT
from support.waiting import wait_for, wait_logged

pytestmark = pytest.mark.hosts


def link_local(two, name='usb0'):
    two.cable(0, name, 1, name, up=False)
    for rank in 0, 1:
        two[rank].ip(f'address add fe80::{rank + 1}/64 dev {name}')
        two[rank].ip(f'link set {name} up')


def ipv4(two, name='eth0'):
    two.cable(0, name, 1, name)
    for rank in 0, 1:
        two[rank].ip(f'address add 10.0.0.{rank + 1}/24 dev {name}')


def check_made_again(two, make):
    """The interfaces at both ends disappear, and return with other indices."""
    make(two)
    two.start(0, 1)
    two.wait_up()
    for time in 1, 2:
        before = two[0].index('usb0'), two[1].index('usb0')
        two[0].ip('link delete usb0')
        for rank, port in (0, '+0'), (1, '-0'):
            two.wait_link(rank, port, up=False, reason='interface usb0')
        for rank in 0, 1:  # an index is not used again at once
            two[rank].ip('link add name spare type veth peer name spare1')
            two[rank].ip('link delete spare')
        make(two)
        assert all(two[rank].index('usb0') != before[rank] for rank in (0, 1))
        two.wait_up()
        assert two.link(0, '+0')['connects'] == two.link(1, '-0')['connects'] == time + 1
        assert two.link(1, '-0')['interface'] == 'usb0'


@pytest.mark.full
@pytest.mark.parametrize('form', ['[{}%usb0]:{}', '[{}]:{} on usb0'])
def test_link_local_addresses(hosts, form):
    two = hosts('2m', 2)
    two.configure(0, {'+0': form.format('fe80::2', PORT)})
    two.configure(1, {'-0': form.format('fe80::2', PORT)})
    check_made_again(two, link_local)
    assert two.link(0, '+0')['address'] == form.format('fe80::2', PORT)
    wait_logged(lambda: two.log(0), f'link to node 1 is up ([fe80::2%usb0]:{PORT})')
    # The dialler may use the address that the kernel has made, too.
    wait_logged(lambda: two.log(1), re.compile(r'link to node 0 is up \(\[fe80::[0-9a-f:]+%usb0\]:'))


@pytest.mark.full
@pytest.mark.parametrize('on', ['', ' on usb0'])
def test_ipv4_addresses(hosts, on):
    two = hosts('2m', 2)
    two.configure(0, {'+0': f'10.0.0.2:{PORT}{on}'})
    two.configure(1, {'-0': f'10.0.0.2:{PORT}{on}'})
    check_made_again(two, lambda two: ipv4(two, 'usb0'))


def shared_addresses(three, on=False):
    """A ring in which each host has one address on both cables, and a route to each neighbour."""
    for a in range(3):
        three.cable(a, 'plus', (a + 1) % 3, 'minus')
    for a in range(3):
        for interface, neighbour in ('plus', (a + 1) % 3), ('minus', (a - 1) % 3):
            three[a].ip(f'address add 10.0.0.{a + 1}/32 dev {interface}')
            three[a].ip(f'route add 10.0.0.{neighbour + 1}/32 dev {interface} src 10.0.0.{a + 1}')
        plus, minus = (' on plus', ' on minus') if on else ('', '')
        three.configure(a, {'+0': f'10.0.0.{(a + 1) % 3 + 1}:{PORT}{plus}', '-0': f'10.0.0.{a + 1}:{PORT}{minus}'})


@pytest.mark.full
@pytest.mark.parametrize('on, strict', [(False, 0), (True, 0), (False, 1)])
@pytest.mark.parametrize('cut', ['plus', 'minus'])
def test_one_address_on_both_cables(hosts, on, strict, cut):
    """strict: as on Red Hat's systems, the kernel drops packets from an interface other than that of the route back."""
    three = hosts('3', 3)
    for a in range(3):
        three[a].sysctl('net.ipv4.conf.all.rp_filter', strict)
    shared_addresses(three, on)
    three.start(0, 1, 2)
    three.wait_up()
    assert {link['port']: link['interface'] for link in three.links(0)} == {'+0': 'plus', '-0': 'minus'}
    gone, other = ('+0', '-0') if cut == 'plus' else ('-0', '+0')
    neighbour, end = (1, '-0') if cut == 'plus' else (2, '+0')
    three[neighbour].ip(f'link set {"minus" if cut == "plus" else "plus"} down')
    three.wait_link(0, gone, up=False, reason=f'no carrier on {cut}')
    three.wait_link(neighbour, end, up=False)
    assert three.link(0, other)['connects'] == 1 and three.link(0, other)['up']
    # The kernel has removed this route with the interface, and does not bring it back.
    interface = 'minus' if cut == 'plus' else 'plus'
    three[neighbour].ip(f'link set {interface} up')
    three[neighbour].ip(f'route add 10.0.0.1/32 dev {interface} src 10.0.0.{neighbour + 1}')
    three.wait_up()
    assert three.link(0, other)['connects'] == 1


def test_two_cables_between_two_hosts_with_one_address_each(hosts):
    """Only the names of the interfaces distinguish the cables."""
    two = hosts('2', 2)
    for a, b in (0, 1), (1, 0):
        two.cable(a, 'plus', b, 'minus')
    for rank, there in (0, 1), (1, 0):
        for interface in 'plus', 'minus':
            two[rank].ip(f'address add 10.0.0.{rank + 1}/32 dev {interface}')
            two[rank].ip(f'route add 10.0.0.{there + 1}/32 dev {interface} src 10.0.0.{rank + 1} metric '
                         f'{1 if interface == "plus" else 2}')
        two.configure(rank, {'+0': f'10.0.0.{there + 1}:{PORT} on plus', '-0': f'10.0.0.{rank + 1}:{PORT} on minus'})
    two.start(0, 1)
    two.wait_up()
    two[1].ip('link set minus down')
    two.wait_link(0, '+0', up=False, reason='no carrier on plus')
    assert two.link(0, '-0')['up'] and two.link(1, '+0')['up']
    two[1].ip('link set minus up')
    two[1].ip('route add 10.0.0.1/32 dev minus src 10.0.0.2 metric 2')
    two.wait_up()
    assert two.link(0, '-0')['connects'] == 1 == two.link(1, '+0')['connects']


def test_a_default_route_does_not_replace_a_cable(hosts):
    """The route over the management network ends at its gateway."""
    two = hosts('2m', 3)
    ipv4(two)
    two.cable(0, 'lan', 2, 'lan0')
    two.cable(1, 'lan', 2, 'lan1')
    two[2].sysctl('net.ipv4.ip_forward', 1)
    for rank in 0, 1:
        two[rank].ip(f'address add 10.9.{rank}.2/24 dev lan')
        two[rank].ip(f'route add default via 10.9.{rank}.1')
        two[2].ip(f'address add 10.9.{rank}.1/24 dev lan{rank}')
        two[2].ip(f'route add 10.0.0.{rank + 1}/32 via 10.9.{rank}.2')
    two.configure(0, {'+0': f'10.0.0.2:{PORT}'})
    two.configure(1, {'-0': f'0.0.0.0:{PORT}'})
    two[0].ip('link set eth0 down')
    two.start(0, 1)
    link = two.wait_link(0, '+0', up=False, reason='the route there leads over another host (10.9.0.1)')
    assert not link['connects']
    two[0].ip('link set eth0 up')
    two.wait_up(0, 1)
    two[0].ip('link set eth0 down')
    two.wait_link(0, '+0', up=False)  # the reason is the carrier at first, and then the route
    two[0].ip('link set eth0 up')
    two.wait_up(0, 1)


def test_an_address_that_moves_and_an_interface_that_is_renamed(hosts):
    two = hosts('2m', 2)
    ipv4(two)
    two.configure(0, {'+0': f'10.0.0.2:{PORT}'})
    two.configure(1, {'-0': f'10.0.0.2:{PORT}'})
    two.start(0, 1)
    two.wait_up()
    two[1].ip('link set eth0 name lan0')
    two.wait_link(1, '-0', up=True, interface='lan0')
    assert two.link(1, '-0')['connects'] == 1
    # Now into a bridge, as for virtual machines.
    two[1].ip('link add name br0 type bridge')
    two[1].ip('link set lan0 master br0')
    two[1].ip('address delete 10.0.0.2/24 dev lan0')
    two.wait_link(1, '-0', reason='the address of this link has been removed from lan0')
    two[1].ip('address add 10.0.0.2/24 dev br0')
    two[1].ip('link set br0 up')
    two.wait_link(1, '-0', up=True, interface='br0')
    two.wait_up()
    two[0].ip('link set eth0 down')
    two.wait_link(1, '-0', up=False, reason='no carrier on br0')
    two[0].ip('link set eth0 up')
    two.wait_up()


def test_addresses_made_for_privacy(hosts):
    """Links do not use temporary IPv6 addresses, which a desktop's kernel prefers and removes after some days."""
    two = hosts('2m', 2)
    two.cable(0, 'eth0', 1, 'eth0')
    two[0].sysctl('net.ipv6.conf.eth0.use_tempaddr', 2)
    for rank in 0, 1:
        two[rank].ip(f'address add fd00::{rank + 1}/64 dev eth0 nodad mngtmpaddr')

    def temporary():
        return [address['local'] for interface in json.loads(two[0].run('ip', '-json', '-6', 'address', 'show', 'eth0'))
                for address in interface.get('addr_info', []) if address.get('temporary')]

    wait_for(lambda: temporary() and 'tentative' not in two[0].ip('-6 address show eth0'))
    assert temporary()[0] in two[0].ip('route get fd00::2'), 'what others would use'
    two.configure(0, {'+0': f'[fd00::2]:{PORT}'})
    two.configure(1, {'-0': f'[fd00::2]:{PORT}'})
    two.start(0, 1)
    two.wait_up()
    wait_logged(lambda: two.log(1), 'link to node 0 is up ([fd00::1]:')
