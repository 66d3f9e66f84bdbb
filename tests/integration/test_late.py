"""Addresses, interfaces and names that are missing when a daemon starts, and appear later. Other links work."""

import pytest
from support.hosts import PORT
from support.waiting import wait_logged
from torus_net.patience import Patience, wait

pytestmark = [pytest.mark.hosts, pytest.mark.full]

V4 = {'+0': f'10.0.0.2:{PORT}', '-0': f'10.0.0.2:{PORT}'}


@pytest.fixture
def pair(hosts):
    """Two hosts with a cable: node 0 dials (10.0.0.1, eth0), node 1 listens (10.0.0.2, eth1)."""
    two = hosts('2m', 2)
    two.cable(0, 'eth0', 1, 'eth1')
    two[0].ip('address add 10.0.0.1/24 dev eth0')
    return two


def configure(two, dials=f'10.0.0.2:{PORT}', listens=f'10.0.0.2:{PORT}'):
    two.configure(0, {'+0': dials})
    two.configure(1, {'-0': listens})


def refused(two, rank):
    """Runs a daemon that does not start. Returns its exit status and its output."""
    two.spawn(rank)
    status = wait(two.daemons.pop(rank), Patience(20))
    return status, two.log(rank)


def test_an_address_that_comes_later(pair):
    configure(pair)
    pair.start(0, 1)
    link = pair.wait_link(1, '-0', state='waiting', reason='no interface has this address')
    assert link['reason'] == f'cannot listen on 10.0.0.2:{PORT}: no interface has this address (yet)'
    assert any(link['reason'] in fault for fault in pair.status(1)['faults']), pair.status(1)
    assert wait_logged(lambda: pair.log(1), link['reason']).count(link['reason']) == 1
    pair[1].ip('address add 10.0.0.2/24 dev eth1')
    pair.wait_up()
    wait_logged(lambda: pair.log(1), 'port -0 to node 0: listening')
    assert pair.link(1, '-0')['interface'] == 'eth1' and pair.link(0, '+0')['interface'] == 'eth0'


def test_the_other_ports_work_meanwhile(hosts):
    line = hosts('3m', 3)
    line.cable(0, 'eth0', 1, 'eth1')
    line[0].ip('address add 10.0.0.1/24 dev eth0')
    line[1].ip('address add 10.0.0.2/24 dev eth1')
    line.configure(0, {'+0': f'10.0.0.2:{PORT}'})
    line.configure(1, {'-0': f'10.0.0.2:{PORT}', '+0': f'[fe80::2%usb0]:{PORT}'})
    line.configure(2, {'-0': f'[fe80::2%usb0]:{PORT}'})
    line.start(0, 1, 2)
    line.wait_link(1, '-0', up=True)
    for rank, port in (1, '+0'), (2, '-0'):
        line.wait_link(rank, port, state='waiting', reason='there is no interface usb0')
    line.cable(1, 'usb0', 2, 'usb0', up=False)
    line[2].ip('address add fe80::2/64 dev usb0')
    line[1].ip('link set usb0 up')
    line[2].ip('link set usb0 up')
    line.wait_up()
    assert line.link(1, '+0')['address'] == f'[fe80::2%usb0]:{PORT}'
    wait_logged(lambda: line.log(1), f'link to node 2 is up ([fe80::2%usb0]:{PORT})')


def test_an_address_that_is_checked_for_duplicates(pair):
    configure(pair, f'[fd00::2]:{PORT}', f'[fd00::2]:{PORT}')
    pair[0].ip('address add fd00::1/64 dev eth0 nodad')
    pair[1].sysctl('net.ipv6.conf.eth1.dad_transmits', 100)  # one a second
    pair[1].ip('address add fd00::2/64 dev eth1')
    assert 'tentative' in pair[1].ip('address show dev eth1')
    pair.start(0, 1)
    pair.wait_link(1, '-0', state='waiting', reason='no interface has this address')
    assert 'tentative' in pair[1].ip('address show dev eth1')
    pair[1].sysctl('net.ipv6.neigh.eth1.retrans_time_ms', 10)
    pair.wait_up()


def name_is_known(two, rank, *lines):
    """/etc/hosts of this host only."""
    path = two.folder / f'{rank}.hosts'
    known = path.exists()
    path.write_text(''.join(f'{line}\n' for line in ('127.0.0.1 localhost', *lines)))
    if not known:
        two[rank].run('mount', '--bind', path, '/etc/hosts')


def test_a_name_that_resolves_later(pair):
    for rank in 0, 1:
        name_is_known(pair, rank)
    configure(pair, f'Peer_b.cable.test:{PORT}', f'peer_b.cable.test:{PORT}')
    pair[1].ip('address add 10.0.0.2/24 dev eth1')
    pair.start(0, 1)
    for rank, port in (0, '+0'), (1, '-0'):
        pair.wait_link(rank, port, up=False, reason='the name cannot be looked up')
    for rank in 0, 1:
        name_is_known(pair, rank, '10.0.0.2 peer_b.cable.test')
    pair.wait_up()


def test_a_name_of_which_one_address_works(pair):
    name_is_known(pair, 0, '10.0.0.77 peer.test', '10.0.0.2 peer.test')
    pair[0].ip('route add blackhole 10.0.0.77')
    configure(pair, f'peer.test:{PORT}')
    pair[1].ip('address add 10.0.0.2/24 dev eth1')
    pair.start(0, 1)
    pair.wait_up()


def test_listening_everywhere(pair):
    configure(pair, listens=f'[::]:{PORT}')
    pair.start(0, 1)
    pair[1].ip('address add 10.0.0.2/24 dev eth1')
    pair.wait_up()
    assert pair.link(1, '-0')['interface'] == 'eth1'
    pair[0].ip('link set eth0 down')
    pair.wait_link(1, '-0', up=False, reason='no carrier on eth1')
    pair[0].ip('link set eth0 up')
    pair.wait_up()


def test_settings_that_can_never_become_right(pair):
    for text, why in ((f'10.0.0.2:{99999}', 'the port must be a number from 1 to 65535'),
                      ('10.0.0.2:0', 'the port must be a number from 1 to 65535'),
                      ('10.0.0.2', 'the port is missing'), (f'[fe80::2]:{PORT}', 'needs its interface')):
        configure(pair, dials=text)
        status, log = refused(pair, 0)
        assert status == 2 and why in log and '0.ini:' in log, log


def test_an_address_in_use_ends_the_start(pair):
    """Another torusd seems to run here already."""
    configure(pair)
    pair[1].ip('address add 10.0.0.2/24 dev eth1')
    pair.start(0, 1)
    pair.wait_up()
    text = (pair.folder / '1.ini').read_text().replace('1.sock', 'other.sock').replace('1.state', 'other.state')
    (pair.folder / '1.ini').write_text(text)
    (pair.folder / 'other.state').mkdir()
    first = pair.daemons.pop(1)
    status, log = refused(pair, 1)
    pair.daemons[1] = first
    assert status == 1 and f'port -0: cannot listen on 10.0.0.2:{PORT}: address already in use' in log


def test_a_name_server_that_does_not_answer(pair):
    """A name server that does not answer delays neither the start, nor requests, nor the end."""
    path = pair.folder / 'resolv.conf'
    path.write_text('nameserver 10.0.0.2\noptions timeout:30 attempts:5\n')
    pair[0].run('mount', '--bind', path, '/etc/resolv.conf')
    pair[1].ip('address add 10.0.0.2/24 dev eth1')
    pair[1].ip('route add blackhole 10.0.0.1')  # no answer, not even that nobody listens
    configure(pair, dials=f'peer.cable.test:{PORT}')
    pair.start(0)
    pair.wait_link(0, '+0', up=False, state='dialling')
    assert pair.end(0) == 0
