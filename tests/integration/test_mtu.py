"""A link is up when it carries frames of full size in both directions. Here, a bridge in the cable silently drops
packets that are larger than its MTU."""

import json
import re
import subprocess

import pytest
from support.hosts import PORT
from support.waiting import wait_for, wait_logged
from torus_net.process import find_program

pytestmark = [pytest.mark.hosts, pytest.mark.full]

QUESTION = 'none acknowledged: do both ends have the same MTU (9000 here)?'


def address(rank, family):
    return f'10.0.0.{rank + 1}' if family == 4 else f'fd00::{rank + 1}'


def bridged(hosts, mtu=1500, family=4, **settings):
    """Two nodes with interfaces of 9000 bytes. Between them, on host 2, are two bridges, and between these a cable
    whose ends have this MTU."""
    three = hosts('2m', 3)
    middle = three[2]
    middle.ip('link add name middle0 type veth peer name middle1')
    for rank in 0, 1:
        three.cable(rank, 'cable', 2, f'end{rank}')
        # A pair of virtual interfaces passes on packets of any size if they could be cut later.
        three[rank].ip('link set cable mtu 9000 gso_max_segs 1 gso_max_size 9000')
        three[rank].ip(f'address add {address(rank, family)}/{24 if family == 4 else 64} dev cable' +
                       (' nodad' if family == 6 else ''))
        middle.ip(f'link add name bridge{rank} type bridge')
        for interface in f'end{rank}', f'middle{rank}':
            middle.ip(f'link set {interface} mtu 9000 master bridge{rank}')
            middle.ip(f'link set {interface} up')
        middle.ip(f'link set bridge{rank} up')
    set_mtu(three, mtu)
    listens = f'{address(1, family)}:{PORT}' if family == 4 else f'[{address(1, family)}]:{PORT}'
    three.configure(0, {'+0': listens}, **settings)
    three.configure(1, {'-0': listens}, **settings)
    return three


def set_mtu(three, mtu):
    for rank in 0, 1:
        three[2].ip(f'link set middle{rank} mtu {mtu}')


def check_never_up(three, reasons):
    for rank, port in (0, '+0'), (1, '-0'):
        link = three.wait_link(rank, port, up=False, reason=reasons[rank])
        assert link['connects'] == 0, link
        wait_logged(lambda: three.log(rank), reasons[rank])


@pytest.mark.parametrize('family', [4, 6])
def test_a_cable_that_drops_large_packets_never_counts_as_up(hosts, family):
    three = bridged(hosts, family=family)
    three.start(0, 1)
    check_never_up(three, [QUESTION, QUESTION])
    fault, = wait_for(lambda: three.status(0)['cables'])
    assert (fault['node'], fault['port'], fault['code']) == (0, '+0', 'mtu')
    assert re.fullmatch(r'node 0 port \+0 to node 1: sent \d{4,} bytes, none acknowledged: '
                        r'do both ends have the same MTU \(9000 at node 0\)\?', fault['text'])
    assert three.link(0, '+0')['state'] in ('probing', 'dialling', 'waiting', 'hello')
    set_mtu(three, 9000)
    three.wait_up(0, 1)
    wait_for(lambda: three.status(0)['whole'])


@pytest.mark.parametrize('kind', ['slow', 'encrypted'])
def test_whatever_the_link(hosts, tmp_path, kind):
    """Slow links write smaller parts, and encrypted links write records."""
    settings = {'link_mbit': 10}
    if kind == 'encrypted':
        settings = {'key_file': tmp_path / 'key', 'encrypt': 'yes'}
        subprocess.run([find_program('torusctl'), 'key', 'generate', settings['key_file']], check=True)
    three = bridged(hosts, **settings)
    three.start(0, 1)
    check_never_up(three, [QUESTION, QUESTION])
    set_mtu(three, 9000)
    three.wait_up(0, 1)


def test_one_way_is_not_enough(hosts):
    """Packets to node 1 are dropped; packets from node 1 take another cable."""
    three = bridged(hosts)
    three.cable(0, 'back', 1, 'back')
    for rank in 0, 1:
        three[rank].ip('link set back mtu 9000')
        three[rank].ip(f'route add {address(1 - rank, 4)}/32 dev {"back" if rank else "cable"} src {address(rank, 4)}')
    three.start(0, 1)
    check_never_up(three, [QUESTION, 'its own probe has not arrived: do both ends have the same MTU (9000 here)'])


def test_smaller_packets_that_the_kernel_finds_will_do(hosts):
    three = bridged(hosts)
    for rank in 0, 1:
        three[rank].sysctl('net.ipv4.tcp_mtu_probing', 1)
    three.start(0, 1)
    three.wait_up(0, 1)
    done = three.ctl(0, 'exchange', '--block-size', '1MiB')
    assert done.returncode == 0, done.stderr


def test_a_cable_that_begins_to_drop_them_is_named(hosts):
    three = bridged(hosts, mtu=9000)
    three.start(0, 1)
    three.wait_up(0, 1)
    assert three.ctl(0, 'exchange', '--block-size', '1MiB').returncode == 0
    set_mtu(three, 1500)
    done = three.ctl(0, 'exchange', '--block-size', '1MiB', '--timeout', '60')
    assert done.returncode != 0
    for rank, port in (0, '+0'), (1, '-0'):
        three.wait_link(rank, port, up=False, reason='do both ends have the same MTU (9000 here)')
        assert 'stopped or overloaded' not in three.log(rank)
    assert three.link(0, '+0')['connects'] == 1, three.log(0)
    set_mtu(three, 9000)
    three.wait_up(0, 1)
    assert json.loads(three.ctl(0, 'exchange', '--block-size', '1MiB').stdout)['bytes_delivered'] > 0
