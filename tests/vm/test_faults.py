"""Faults of cables, and of the daemons in the machines."""

import signal

import pytest
from support.waiting import wait_for
from torus_net.virtual import interface_name

pytestmark = pytest.mark.parametrize('dims', ['2x2'])


def carrier(torus, rank, port_name):
    card = interface_name(torus.geometry.port(rank, port_name))
    return torus.node(rank).run('cat', f'/sys/class/net/{card}/carrier').strip()


def hears(torus, rank, of, port_name):
    """Whether node `rank` gets an answer from port `port_name` of another one."""
    there = torus.interface_address(of, torus.geometry.port(of, port_name))
    said = torus.node(rank).run_bytes(f'ping -c 1 -W 5 {there} >/dev/null && echo yes || true')
    return said == b'yes\n'


def test_a_pulled_cable(machines):
    """Both ends notice a pulled cable, even an end that boots in the meantime, and exchanges avoid the link."""
    ends = (0, '+0'), (2, '-0')
    machines.link_down(0, '+0')
    try:
        machines.wait_broken(60, (0, 2))
        assert [carrier(machines, *end) for end in ends] == ['0', '0']
        assert machines.exchange('auto', 5000, rank=1, within=90)['without'] == 'link 0:+0'
        machines.node(2).restart()
        machines.wait_broken(60, (0, 2))
        assert [carrier(machines, *end) for end in ends] == ['0', '0']
    finally:
        machines.link_up(0, '+0')
    machines.wait_whole(60)
    assert [carrier(machines, *end) for end in ends] == ['1', '1']


def test_a_mute_cable(machines):
    """The network cards keep their carrier. A cable can also be mute in one direction only."""
    assert hears(machines, 0, 2, '-0')
    for mute, end in (machines.link_mute, (0, '+0')), (machines.link_mute_one_way, (2, '-0')):
        mute(*end)
        try:
            assert carrier(machines, 0, '+0') == '1' and not hears(machines, 0, 2, '-0')
            machines.wait_broken(60, (0, 2))
        finally:
            machines.link_unmute(*end)
        machines.wait_whole(60)
        assert hears(machines, 0, 2, '-0')


def test_a_daemon_ends_in_its_machine(machines):
    """The machine keeps running, with its files, and the daemon is started again there."""
    node, daemon = machines.node(3), machines.node(3).inside
    node.put('/srv/stays', {'file': b'content'})
    for end, status in (daemon.kill, 128 + signal.SIGKILL), (daemon.terminate, 0):
        assert daemon.alive and end() == status
        assert node.alive and not daemon.alive
        machines.wait_broken(60, (0, 1, 2))
        daemon.start()
        assert daemon.alive
        machines.wait_whole(60)
    assert node.get('/srv/stays') == {'file': b'content'}
    daemon.send_signal(signal.SIGSTOP)
    try:
        wait_for(lambda: machines.status(0)['whole'] is False)
    finally:
        daemon.send_signal(signal.SIGCONT)
    machines.wait_whole(60)
