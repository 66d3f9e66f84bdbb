"""Allgather, broadcast and barrier in Mininet: the interfaces carried the reported bytes, within the links' rate."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.errors import assert_refused
from test_allgather import check
from test_mininet import check_counters, counters
from torus_net.patience import stretched

pytestmark = pytest.mark.mininet

RATE = 50
SIZE = 60_000
SHAPES = '4x4', '3x2'
shapes = pytest.mark.parametrize('dims', SHAPES)
cases = pytest.mark.parametrize(
    'dims,algorithm', [(dims, name) for dims in SHAPES for name in ('balanced', 'saadschultz')])


@pytest.fixture
def torus_of(shared):
    def get(dims):
        from torus_net import MininetTorus
        return shared(dims, MininetTorus, bw=RATE)
    return get


def measured(torus, *args, rank=0):
    """Returns the result, after checking the interfaces' counters."""
    before = counters(torus)
    result = torus.json(rank, *args)
    check_counters(torus, before, counters(torus), result)
    return result


def check_rate(result, blocks):
    """Checks that the time is not shorter than the busiest channel needs for that many blocks at the links' rate."""
    least = blocks * SIZE * 8 / (RATE * 1e6)
    assert abs(result['bound_seconds'] - least) < 1e-9
    assert abs(result['efficiency'] - least / result['seconds']) < 1e-6


@cases
def test_allgather(torus_of, dims, algorithm):
    torus = torus_of(dims)
    nodes = torus.geometry.nodes
    result = measured(torus, 'allgather', '--algorithm', algorithm, '--block-size', SIZE,
                      rank=nodes - 1)
    check(result, dims, algorithm, {rank: SIZE for rank in range(nodes)})
    check_rate(result, -(-(nodes - 1) // 4))


@cases
def test_broadcast(torus_of, dims, algorithm):
    torus = torus_of(dims)
    sender = torus.geometry.nodes // 2
    result = measured(torus, 'broadcast', '--root', sender, '--algorithm', algorithm,
                      '--block-size', SIZE)
    check(result, dims, algorithm, {sender: SIZE}, 'broadcast')
    check_rate(result, 1)


@shapes
def test_barrier(torus_of, dims):
    """The barrier ends when all have entered it; no link carries blocks."""
    torus = torus_of(dims)
    nodes = torus.geometry.nodes
    before = counters(torus)
    with ThreadPoolExecutor(nodes) as pool:
        results = list(pool.map(lambda rank: torus.json(rank, 'barrier', '--timeout', 600),
                                range(nodes)))
    assert all(result['operation'] == 'barrier' and result['nodes'] == results[0]['nodes'] and
               result['nodes'][result['last']]['after_seconds'] is not None for result in results)
    assert len({result['id'] for result in results}) == 1
    check_counters(torus, before, counters(torus), {'per_node': [
        {'rank': rank, 'ports': {port.name: {'tx_bytes': 0, 'rx_bytes': 0} for port in torus.geometry.ports(rank)}}
        for rank in range(nodes)]})


@shapes
def test_a_barrier_that_one_does_not_come_to(torus_of, dims):
    torus = torus_of(dims)
    last, limit = torus.geometry.nodes - 1, stretched(2)
    with ThreadPoolExecutor(last) as pool:
        results = list(pool.map(lambda rank: torus.ctl(rank, '--json', 'barrier', '--timeout', limit),
                                range(last)))
    for result in results:
        assert_refused(result, 'timeout')
        assert re.search(rf'\b{last}\b', result.stderr), result.stderr
