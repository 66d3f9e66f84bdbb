"""Blocks of programs with memory that is shared with the daemon: bodies go from the socket straight into it."""

import pytest
from support.cable import CabledTorus
from support.openmetrics import Metrics
from support.programs import run_each

SIZE = 1 << 20
METRICS = ('--metrics', '127.0.0.1:0')


def placed(torus, rank):
    return Metrics(torus, rank).value('torus_link_placed_bytes_total')


def perf(torus, *options, calls=10):
    """Calls alltoall; every byte is checked."""
    first, *_ = run_each(torus, f'exec {torus.torusctl} perf alltoall --sizes {SIZE} --repeat {calls} --pause 0 --verify '
                         + ' '.join(options))
    assert 'right' in first.stdout


@pytest.mark.parametrize('dims', ['1x2', '1x3m', '3x3'])
def test_blocks_go_straight_into_shared_memory(loopback, dims):
    torus = loopback(dims, extra=METRICS)
    calls = 10
    perf(torus, calls=calls)
    for node in torus.nodes:
        assert placed(torus, node.rank) > SIZE * (len(torus.nodes) - 1) * calls / 4


@pytest.mark.parametrize('what, options', [('encrypted', ('--encrypt=yes',)), ('older', ('--protocol-minor=6',))])
def test_blocks_that_are_copied(loopback, what, options):
    torus = loopback('1x2', extra=METRICS + options)
    perf(torus)
    share = placed(torus, 0) / (10 * SIZE)
    assert share == 0 if what == 'encrypted' else share < 1, what


def flip(data):
    data = bytearray(data)
    data[len(data) // 2] ^= 0x10
    return bytes(data)


def test_damage_is_found(shared):
    """Bytes that are damaged on their way are not what a program gets: the call is repeated."""
    torus = shared('1x3m', CabledTorus, end=0, port='+1', extra=METRICS)
    torus.wait_whole(30)
    torus.cable.change_once(100000, flip)
    perf(torus, calls=20)
    torus.cable.change = None
    assert torus.cable.changed >= 1
    torus.wait_whole(30)
    assert sum(placed(torus, node.rank) for node in torus.nodes) > 0
