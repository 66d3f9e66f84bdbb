"""Exchanges of generated patterns: delivered, verified, and counted as the schedule says."""

import pytest
from support.errors import assert_refused
from support.expect import (FIRST, accepted, all_cases, bound, check_result, plan, routes, schedule,
                            torusctl)
from support.waiting import wait_for, wait_state
from torus_net import Geometry

SHAPES = {'4x4': ('at2', 'direct'), '5x3': ('at2', 'direct'), '2x2': ('at2', 'direct'),
          '1x6': FIRST, '4x8': ('at2', 'direct'), '1x1': FIRST, '1x2': FIRST, '2x1': FIRST,
          '7': ('ar', 'direct'), '3x4x5': ('direct',)}
SANITIZED = ('4x4', '5x3', '1x6', '1x1')  # every algorithm takes one of these
# tests/contract checks their schedules, tests/sim exchanges on them, and SANITIZED by real daemons.
REPEATED = ('4x8', '3x4x5', '7')
cases = pytest.mark.parametrize('dims,algorithm', [
    pytest.param(dims, algorithm, marks=[pytest.mark.slow] * (dims not in SANITIZED) +
                 [pytest.mark.full] * (dims in REPEATED))
    for dims, algorithm in all_cases(SHAPES)])
SIZES = (0, 1, 1000, 4097, 65536)


@pytest.mark.parametrize('dims', SHAPES)
def test_what_algorithms_take(dims):
    assert tuple(name for name in accepted(dims) if name in FIRST) == SHAPES[dims]


@cases
def test_routes(dims, algorithm):
    """Schedule() has checked that every pair has one route, and that it ends where it should."""
    walked, planned, geometry = schedule(dims, algorithm), plan(dims, algorithm), Geometry(dims)
    assert planned['dims'] == list(geometry.sizes) and planned['algorithm'] == algorithm
    assert planned['port_model'] == 'all-port' or algorithm not in FIRST
    assert planned['startups'] == walked.startups
    assert planned['transmission'] == walked.transmission
    assert planned['bound'] == bound(geometry, algorithm)
    assert planned['contended_steps'] == walked.contended
    assert planned['minimal'] is walked.minimal
    assert walked.transmission >= planned['bound']
    assert planned['transmission'] >= planned['critical_path']
    if algorithm in ('ar', 'at2'):
        assert walked.contended == 0
    assert (len(routes(dims, algorithm)) ==
            geometry.nodes * (geometry.nodes - 1) * walked.segments)


@pytest.mark.parametrize('dims', [pytest.param('4x4', marks=pytest.mark.slow), '5x3'])
def test_every_all_port_algorithm_streams(shared, dims):
    torus = shared(dims)
    for algorithm in accepted(dims):
        if plan(dims, algorithm)['port_model'] != 'all-port':
            continue
        for size in 1, 65536:
            result = torus.exchange(algorithm, size, options=('--mode', 'streaming'))
            check_result(result, dims, algorithm, size, mode='streaming')


@cases
def test_pattern(shared, dims, algorithm):
    torus = shared(dims)
    for size in SIZES:
        result = torus.exchange(algorithm, size, rank=size % torus.geometry.nodes)
        # The root of a tree holds all blocks at some time, and has no memory for all blocks of 64 KiB. With orders, all
        # parts of all blocks are on their way together.
        check_result(result, dims, algorithm, size, rounds=None if algorithm in ('tree', 'orders') else 1)


def test_k_ports(shared):
    """Algorithms that use some of the ports are not in the list of all."""
    torus = shared('4x4')
    for algorithm in 'dim-k2', 'dim-k4':
        check_result(torus.exchange(algorithm, 3000), '4x4', algorithm, 3000)
    in_thirds = torus.exchange('dim-k3', 3000)  # its cost is no exact number
    assert in_thirds['verified'] == 'every byte' and in_thirds['startups'] == 8
    refused = torus.ctl(0, '--json', 'exchange', '--algorithm', 'dim-k5', '--block-size', '1')
    assert_refused(refused, 'refused')
    assert 'takes tori whose nodes have at least 5 ports, not 4x4' in refused.stderr


@pytest.mark.parametrize('dims,block,special', [
    ('1x6', 300001, {'tree': 20001}), pytest.param('5x3', 300001, {'tree': 20001}, marks=pytest.mark.slow),
    # the same rounds, by more nodes
    *(pytest.param(*values, marks=[pytest.mark.slow, pytest.mark.full]) for values in (
        ('4x4', 300001, {'tree': 20001}), ('3x4x5', 30001, {'tree': 5001, 'direct': 150001})))])
def test_rounds(shared, dims, block, special):
    """With little memory, blocks go in several rounds, and every round costs what the plan says. With a tree, all
    blocks meet at one node."""
    torus = shared(dims, memory='1MiB')
    for algorithm in accepted(dims):
        size = special.get(algorithm, block)
        result = torus.exchange(algorithm, size)
        assert result['rounds'] > 1
        check_result(result, dims, algorithm, size)
    wait_for(lambda: torus.status()['memory']['reserved_bytes'] == 0)


@pytest.mark.parametrize('dims,halves', [('1x6', 9), *(
    pytest.param(*values, marks=pytest.mark.slow) for values in (('4x4', 16), ('5x3', 18)))])
def test_bound_and_efficiency(shared, dims, halves):
    """The lower bound for the nominal rate; on a ring of six it is not a whole number of blocks."""
    torus = shared(dims, bw=50)
    for algorithm in accepted(dims):
        result = torus.exchange(algorithm, 10000)
        check_result(result, dims, algorithm, 10000, bw=50)
        if algorithm in FIRST:
            assert result['bound_seconds'] == pytest.approx(halves / 2 * 10000 * 8 / 50e6)
    assert torus.status()['link_mbit'] == 50
    assert torus.exchange('direct', 0)['bound_seconds'] == 0


def test_a_mesh(shared):
    """A dimension that does not wrap has no links at its ends."""
    torus = shared('3mx4')
    result = torus.exchange('direct', 5000)
    walked = schedule('3mx4', 'direct')
    for node in result['per_node']:
        for name, counts in node['ports'].items():
            assert counts['tx_blocks'] == walked.tx_blocks[node['rank'], name]
    assert len(result['per_node'][0]['ports']) == 3
    assert_refused(torus.ctl(0, '--json', 'exchange', '--algorithm', 'at2', '--block-size', 1), 'refused')


@pytest.mark.parametrize('dims', ['4x4', '1x6', pytest.param(
    '3x4x5', marks=[pytest.mark.slow, pytest.mark.full]), '1x1'])
def test_an_algorithm_is_chosen(shared, dims):
    result = shared(dims).exchange(None, 100)
    assert result['algorithm'] in accepted(dims)
    check_result(result, dims, result['algorithm'], 100)


def test_every_node_may_be_asked(shared):
    torus = shared('4x4')
    ids = set()
    for rank in range(16):
        result = torus.exchange('at2', 2048, rank=rank)
        check_result(result, '4x4', 'at2', 2048)
        assert result['id'].startswith(f'{rank}-')
        ids.add(result['id'])
        wait_state(torus, result['id'], ['committed'], [rank])
        wait_state(torus, result['id'], ['finished'], set(range(16)) - {rank})
    assert len(ids) == 16


def test_many_at_once(shared):
    """Exchanges from all nodes at the same time, with different algorithms and sizes."""
    from concurrent.futures import ThreadPoolExecutor
    torus = shared('4x4')
    jobs = [(rank, ('at2', 'direct')[rank % 2], 1000 * rank) for rank in range(16)]

    def run(job):
        rank, algorithm, size = job
        return torus.exchange(algorithm, size, rank=rank)  # exchanges without memory wait

    with ThreadPoolExecutor(8) as pool:
        for (_, algorithm, size), result in zip(jobs, pool.map(run, jobs)):
            check_result(result, '4x4', algorithm, size)


def test_text_output(shared):
    torus = shared('4x4', bw=100)
    result = torus.ctl(0, 'exchange', '--algorithm', 'at2', '--block-size', '64KiB', check=True)
    said = dict(line.split(None, 1) for line in result.stdout.splitlines() if ' ' in line)
    assert said['startups'] == '4' and said['transmission'] == '8' and said['verified'] == 'every byte'
    assert said['torus'] == '4x4' and result.stderr == ''
    per_node = torus.ctl(0, 'exchange', '--algorithm', 'at2', '--block-size', '1', '--per-node',
                         check=True)
    assert len(per_node.stdout.splitlines()) > len(result.stdout.splitlines()) + 16 * 4


@pytest.mark.full
def test_numbers_of_links_and_memory(shared):
    """The counters of the links agree with the report of the exchange, and no memory stays reserved."""
    torus = shared('4x4')
    before = {(n.rank, link['port']): link for n in torus.nodes
              for link in torus.links(n.rank)['links']}
    result = torus.exchange('at2', 100000)
    for node in result['per_node']:
        for link in torus.links(node['rank'])['links']:
            said = node['ports'][link['port']]
            old = before[node['rank'], link['port']]
            for way in 'tx_bytes', 'rx_bytes':
                assert 0 <= link[way] - old[way] - said[way] < 20000
            assert link['connects'] == old['connects'] and link['up'] is True
    for node in torus.nodes:
        wait_for(lambda: torus.status(node.rank)['memory']['reserved_bytes'] == 0)


def test_plan_refuses_what_is_no_torus():
    for dims in '0x4', '4x', 'nonsense', '-1x3', '4x4x':
        result = torusctl('plan', '--dims', dims)
        assert result.returncode == 2 and result.stderr and not result.stdout
