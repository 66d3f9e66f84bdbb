"""Bodies of long frames that only pass a node go from socket to socket in pipes. A line of three nodes: all that node 0
and node 2 send each other passes node 1."""

import json
import os

import pytest
from support.background import LongExchange
from support.cable import CabledTorus
from support.expect import check_result

SIZE = 8 << 20  # a channel carries enough for long frames


@pytest.fixture
def torus(shared):
    return shared('1x3m', CabledTorus, end=0, port='+1')


def pipes(torus, rank):
    """How many pipes the daemon of a node has open."""
    folder = f'/proc/{torus.node(rank).pid}/fd'
    return sum(os.readlink(f'{folder}/{fd}').startswith('pipe:') for fd in os.listdir(folder))


def check_passing(torus):
    """All blocks arrive, and pass node 1 in pipes; the other nodes, which pass nothing on, have none."""
    torus.wait_whole(30)
    check_result(torus.exchange('stream', SIZE), '1x3m', 'stream', SIZE)
    assert pipes(torus, 1) > pipes(torus, 0) == pipes(torus, 2)
    assert pipes(torus, 1) - pipes(torus, 0) <= 2 * 3 * 4  # both ends of three pipes a port


def test_long_bodies_pass_in_pipes(torus):
    check_passing(torus)


@pytest.mark.parametrize('what, size, options', [
    ('short', 100000, {}), ('encrypted', SIZE, {'extra': ('--encrypt=yes',)}),
    ('older', SIZE, {'extra': ('--protocol-minor=6',)}), ('slow', SIZE, {'bw': 1000})])
def test_bodies_that_are_copied(loopback, what, size, options):
    torus = loopback('1x3m', **options)
    assert torus.exchange('stream', size)['verified'] == 'every byte'
    assert pipes(torus, 0) == pipes(torus, 1) == pipes(torus, 2), what


@pytest.mark.parametrize('options, least, most', [({}, 250000, 262144), ({'bw': 1000}, 1, 66000),
                                                  ({'extra': ('--protocol-minor=6',)}, 1, 66000)])
def test_frames_are_long_where_no_relay_waits(loopback, options, least, most):
    result = loopback('1x2', **options).exchange('stream', SIZE)
    for port in result['per_node'][0]['ports'].values():
        assert least <= port['tx_bytes'] / port['combined_messages'] <= most


def flip(data):
    data = bytearray(data)
    data[len(data) // 2] ^= 0x10
    return bytes(data)


def test_damage_is_found_at_the_end(torus):
    """Node 1 passes a damaged body on; the node at its end notices, and asks for the piece again."""
    found = tries = 0
    while found == 0:
        tries += 1
        assert tries <= 20, 'hardly ever is it a head that is hit'
        torus.cable.change_once(20000, flip)
        result = torus.ctl(0, '--json', 'exchange', '--algorithm', 'stream', '--block-size', SIZE)
        torus.cable.change = None
        if result.returncode == 0:
            found += json.loads(result.stdout).get('damages', 0)
        torus.wait_whole(30)
    check_passing(torus)


@pytest.mark.parametrize('end', ['cut', 'kill', 'cancel'])
def test_a_body_that_ends_on_the_way(torus, end):
    """The bytes that have passed leave whole frames only, so that the link behind stays up."""
    connects = torus.json(1, 'links')['links']
    with LongExchange(torus, rank=2, algorithm='stream', block_size='64MiB') as client:
        if end == 'cut':
            torus.cable.cut_after(100000)
        elif end == 'kill':
            torus.node(0).kill()
        else:
            client.process.send_signal(2)
        code, _, err = client.end(60)
        assert code != 0 and err, err
    if end == 'cut':
        torus.cable.mend()
    elif end == 'kill':
        torus.node(0).start()
    check_passing(torus)
    after = {link['neighbour']: link for link in torus.json(1, 'links')['links']}
    assert [after[link['neighbour']]['connects'] == link['connects'] for link in connects
            if link['neighbour'] == 2] == [True]
