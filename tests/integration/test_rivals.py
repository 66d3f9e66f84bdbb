"""Rivals: published algorithms as functions in Python (client/rivals). What they send is compared with references that are
written from the papers (support/rivals.py), their counts with the papers' formulas, and daemons run them."""

import json
import math
import os
from collections import Counter, defaultdict

import pytest
from support import rivals
from support.expect import torusctl
from torus_net import CHECKOUT, Geometry, Port

FOLDER = CHECKOUT / 'client' / 'rivals'


def named(rival):
    """suh-shin is one of torusctl's own algorithms."""
    return f'python:{FOLDER}/{rival}' if '.py' in rival else rival


def planned(dims, rival):
    return json.loads(torusctl('plan', '--dims', dims, '--algorithm', named(rival), '--json').stdout)


def routes(dims, rival):
    said = torusctl('plan', '--dims', dims, '--algorithm', named(rival), '--routes').stdout
    return [json.loads(line) for line in said.splitlines()]


def end_of(dims, node, dim, direction, hops):
    """The node at the end of a leg; in a complete graph direction d leads to the coordinate that is d higher."""
    sizes = [int(part.split(':')[-1]) for part in dims.replace(' ', '').split('x')]
    place = list(rivals.places(sizes)[node])
    place[dim] += direction * hops
    return rivals.rank(sizes, place)


def sent(dims, rival, gathers=False):
    """[{(from, to): blocks}] by step, as the routes say. A message of an allgather has what its node has so far."""
    steps = defaultdict(lambda: defaultdict(set))
    for route in routes(dims, rival):
        here = route['src']
        block = (route['src'], route['segment']) if gathers else (route['src'], route['dst'], route['segment'])
        for step, dim, direction, hops in route['legs']:
            there = end_of(dims, here, dim, direction, hops)
            steps[step][here, there].add(block)
            here = there
        assert here == route['dst']
    return [dict(steps[step]) for step in range(max(steps) + 1)]


CASES = [
    ('bruck.py', 'complete:8', lambda: rivals.bruck(8, 2)),
    ('bruck.py:radix=3', 'complete:9', lambda: rivals.bruck(9, 3)),
    ('bruck.py:radix=3', '12', lambda: rivals.bruck(12, 3)),
    ('bruck.py:radix=8', 'complete:8', lambda: rivals.bruck(8, 8)),
    ('bruck.py', '11', lambda: rivals.bruck(11, 2)),
    ('traeff.py', 'complete:3 x complete:4', lambda: rivals.traeff((3, 4))),
    ('traeff.py', '3x5x2', lambda: rivals.traeff((3, 5, 2))),
    ('suh-shin', '4x4', lambda: rivals.suh_shin((4, 4))),
    ('suh-shin', '8x12', lambda: rivals.suh_shin((8, 12))),
    ('suh-shin', '12x8', lambda: rivals.suh_shin((12, 8))),
    ('halfring.py', '7', lambda: rivals.halfring((7,))),
    ('halfring.py', '8', lambda: rivals.halfring((8,))),
    ('halfring.py', '4x6', lambda: rivals.halfring((4, 6))),
    ('halfring.py', '3x4x4', lambda: rivals.halfring((3, 4, 4))),
    ('swing.py', '16', lambda: rivals.swing((16,))),
    ('swing.py', '4x8', lambda: rivals.swing((4, 8))),
    ('swing.py', '4x4x4', lambda: rivals.swing((4, 4, 4))),
    ('bine.py', '8', lambda: rivals.bine(8)),
    ('bine.py', '32', lambda: rivals.bine(32)),
]


@pytest.mark.plain
@pytest.mark.parametrize('rival,dims,reference', CASES, ids=[f'{rival}-{dims}' for rival, dims, _ in CASES])
def test_it_sends_what_the_paper_says(rival, dims, reference):
    gathers = rival.startswith(('swing', 'bine'))
    expected = [{pair: blocks for pair, blocks in rivals.merge(messages).items() if blocks} for messages in reference()]
    assert sent(dims, rival, gathers) == expected


COUNTS = [
    # Bruck et al.: (r - 1) log_r n start-ups and as many times n / r blocks, for n a power of r.
    ('bruck.py', 'complete:16', 4, 4 * 8), ('bruck.py:radix=3', 'complete:9', 4, 4 * 3),
    ('bruck.py:radix=4', 'complete:16', 6, 6 * 4), ('bruck.py:radix=16', 'complete:16', 15, 15),
    # Träff: pairwise all-to-alls of n_i nodes, with N / n_i blocks in each message.
    ('traeff.py', 'complete:3 x complete:4', 5, 2 * 4 + 3 * 3), ('traeff.py', 'complete:5', 4, 4),
    # Suh, Shin: n/2 + 2 start-ups, (n/4 + 1) N blocks (Table II of Liu, Gu, Bi, Tu, Dong).
    ('suh-shin', '4x4', 4, 32), ('suh-shin', '8x8', 6, 192), ('suh-shin', '8x12', 8, 384),
    ('suh-shin', '16x16', 10, 1280),
    # HalfRing: n^2/8 or (n^2 - 1)/8 blocks; DimRotation: N/n times as many. Start-ups: the diameter.
    ('halfring.py', '8', 4, 8), ('halfring.py', '9', 4, 10), ('halfring.py', '4x4', 4, 8),
    ('halfring.py', '5x5', 4, 15), ('halfring.py', '4x4x4', 6, 32),
    # A cube: k + q - 1 stages; one block on each channel in each, if q is N/n. Those of cccube if all sizes are 2.
    ('cube.py:q=4', 'complete:4 x complete:4', 5, 5), ('cube.py:q=9', 'complete:3 x complete:3 x complete:3', 11, 11),
    ('cube.py:q=3', 'complete:3 x complete:3 x complete:3', 5, 5 * 3), ('cube.py', 'complete:3 x complete:4', 2, 4 + 3),
    ('cube.py:q=4', 'complete:2 x complete:2 x complete:2', 6, 6),
    ('cube.py:q=2', 'complete:4 x complete:2 x complete:4', 4, 4 + 8 + 8 + 4),
]


@pytest.mark.plain
@pytest.mark.parametrize('rival,dims,startups,blocks', COUNTS)
def test_its_counts_are_those_of_the_paper(rival, dims, startups, blocks):
    plan = planned(dims, rival)
    assert (plan['startups'], plan['transmission'], plan['contended_steps']) == (startups, blocks, 0)
    assert plan['port_model_kept']


@pytest.mark.plain
@pytest.mark.parametrize('sizes,packets', [((4, 4), 4), ((3, 3, 3), 3), ((3, 3, 3), 9), ((2, 3, 6), 6), ((6, 4, 2), 4),
                                           ((3, 4), 1)])
def test_packets_of_a_cube_are_even(sizes, packets):
    """Theorem 4 of client/doc/open-questions.md: packet p passes dimension i in stage i + p, with as many blocks on each
    channel."""
    dims, nodes, carried = ' x '.join(f'complete:{size}' for size in sizes), math.prod(sizes), Counter()
    assert all(nodes // packets % size == 0 for size in sizes)
    for route in routes(dims, f'cube.py:q={packets}'):
        here, packet = route['src'], {step - dim for step, dim, *_ in route['legs']}
        assert len(packet) == 1 and packet <= set(range(packets))
        for step, dim, direction, hops in route['legs']:
            there = end_of(dims, here, dim, direction, hops)
            carried[step, here, there] += 1
            here = there
        assert here == route['dst']
    for size, dim in zip(sizes, range(len(sizes))):
        for stage in range(dim, dim + packets):
            blocks = [count for (step, here, there), count in carried.items() if step == stage and dim == [
                a != b for a, b in zip(rivals.places(sizes)[here], rivals.places(sizes)[there])].index(True)]
            assert blocks == [nodes // packets // size] * (nodes * (size - 1))


@pytest.mark.plain
@pytest.mark.parametrize('segments,blocks,busiest', [(1, 101, 96), (2, 84.5, 80)])
def test_a_cube_on_rings(segments, blocks, busiest):
    """Several numberings share the load of the channels evenly."""
    plan = planned('8x8', f'cube.py:q=32:segments={segments}')
    assert (plan['startups'], plan['transmission'], plan['busiest']) == (37, blocks, busiest)


@pytest.mark.plain
@pytest.mark.parametrize('rival,dims,parts', [('swing.py', '16', 2), ('swing.py', '8x8', 4), ('bine.py', '16', 1)])
def test_an_allgather_of_an_allreduce(rival, dims, parts):
    """log2 N steps; a node sends N - 1 blocks in all; the distances of a ring are 1, 1, 3, 5, 11 from the last step."""
    nodes, by_step = Geometry(dims).nodes, defaultdict(set)
    assert planned(dims, rival)['startups'] == math.log2(nodes)
    steps = sent(dims, rival, gathers=True)
    for node in range(nodes):
        assert sum(len(blocks) for step in steps for (here, _), blocks in step.items() if here == node) == \
            parts * (nodes - 1)
    for route in routes(dims, rival):
        for step, _, _, hops in route['legs']:
            by_step[step].add(hops)
    rings = len(dims.split('x'))
    assert [by_step[step] for step in reversed(range(len(steps)))] == [
        {distance} for distance in (1, 1, 3, 5)[:len(steps) // rings] for _ in range(rings)]


def crossings(dims, rival):
    """{(rank, port): segments} that cross, each leg of an allgather's tree once."""
    geometry, legs = Geometry(dims), set()
    for route in routes(dims, rival):
        here, gathers = route['src'], rival.startswith(('swing', 'bine'))
        for step, dim, direction, hops in route['legs']:
            legs.add((route['src'], None if gathers else route['dst'], route['segment'], step, here, dim, direction, hops))
            here = end_of(dims, here, dim, direction, hops)
    counts = Counter()
    for *_, here, dim, direction, hops in legs:
        port = Port(dim, '+' if direction == 1 else '-')
        for _ in range(hops):
            counts[here, port.name] += 1
            here = geometry.neighbour(here, port)
    return counts


RUNS = [('4x4', 'suh-shin'), ('4x4', 'traeff.py'), ('4x4', 'halfring.py'), ('4x4', 'swing.py'),
        ('8', 'bruck.py:radix=3'), ('8', 'bine.py'), ('4x4', 'cube.py:q=4')]


@pytest.mark.parametrize('dims,rival', RUNS, ids=['-'.join(run) for run in RUNS])
def test_daemons_run_it(loopback, dims, rival):
    torus, size, counts = loopback(dims), 960, crossings(dims, rival)
    operation = 'allgather' if rival.startswith(('swing', 'bine')) else 'exchange'
    result = torus.json(1, operation, '--algorithm', named(rival), '--block-size', size, '--per-node')
    assert result['mode'] == 'stepped' and result['verified'] == 'every byte'
    segments = max(route['segment'] for route in routes(dims, rival)) + 1
    for node in result['per_node']:
        for name, port in node['ports'].items():
            assert port['tx_bytes'] * segments == counts[node['rank'], name] * size, (node['rank'], name)


# --- functions in Python ---

GOOD = '''
segments = 2
def route(network, source, destination, segment):
    up = (destination - source) % network.nodes
    return [(0, 0, 1, up)] if segment == 0 else [(1, 0, -1, network.nodes - up)]
'''


def plan_of(tmp_path, text, *arguments, dims='5'):
    path = tmp_path / 'mine.py'
    path.write_text(text)
    return torusctl('plan', '--dims', dims, '--algorithm', ':'.join([f'python:{path}', *arguments]))


@pytest.mark.plain
def test_the_schedule_of_a_function_is_a_file_like_others(tmp_path):
    path = tmp_path / 'mine.py'
    path.write_text(GOOD)
    for period in ('', 'period = [1]\n'):
        path.write_text(period + GOOD)
        exported = torusctl('plan', '--dims', '5', '--algorithm', f'python:{path}', '--export', 'torusd').stdout
        assert json.loads(exported.splitlines()[0])['name'] == 'mine'
        (tmp_path / 'file').write_text(exported)
        text = torusctl('plan', '--import', tmp_path / 'file').stdout
        assert 'every segment of all 20 blocks arrives once' in text
    assert torusctl('predict', '--dims', '5', '--algorithm', f'python:{path}').stdout.count('mine@')


@pytest.mark.plain
def test_a_file_that_changes_within_a_second_is_read_again(tmp_path, monkeypatch):
    monkeypatch.delenv('PYTHONDONTWRITEBYTECODE', raising=False)
    path = tmp_path / 'mine.py'
    for dimension, says in ((0, 'it ends at node 1'), (3, 'a dimension must be a number')):
        path.write_text(f'def route(n, s, d, segment):\n    return [(0, {dimension}, 1, 1)]\n')
        os.utime(path, (1, 1))
        assert says in torusctl('plan', '--dims', '5', '--algorithm', f'python:{path}').stderr


@pytest.mark.plain
@pytest.mark.parametrize('text,says', [
    ('def route(n, s, d, segment):\n    return [][0]\n', 'line 2: IndexError: list index out of range'),
    ('def route(n, s, d, segment)\n', 'SyntaxError'),
    ('x = 1\n', 'it has no function route(network, source, destination, segment)'),
    ('refuses = "even rings"\n' + GOOD, 'it takes even rings, not 5'),
    ('def route(n, s, d, segment):\n    return [(0, 0, 1, 1)]\n', 'it ends at node 1 in step 0, not at node 2'),
    ('def route(n, s, d, segment):\n    return [(0, 3, 1, 1)]\n', 'a dimension must be a number from 0 to 0'),
    ('import sys\nsys.exit("no")\n', 'SystemExit: no'),
    ('print("not a route")\n' + GOOD.replace('segments = 2', 'segments = 99999'), 'routes are too many')])
def test_a_wrong_function_is_refused(tmp_path, text, says):
    done = plan_of(tmp_path, text)
    assert done.returncode == 1 and says in done.stderr, done.stderr


@pytest.mark.plain
def test_variables_of_the_file(tmp_path):
    assert plan_of(tmp_path, GOOD, 'segments=2').returncode == 0
    assert 'it has no variable wide' in plan_of(tmp_path, GOOD, 'wide=2').stderr
    assert 'needs --dims' in torusctl('plan', '--algorithm', 'python:mine.py').stderr


@pytest.mark.plain
def test_a_function_without_an_end(tmp_path):
    """The limit is a minute of processor time; here a second, in the same program."""
    import signal
    import subprocess
    program = (CHECKOUT / 'client/cli/schedule_files/python_algorithm.py').read_text()
    path = tmp_path / 'mine.py'
    path.write_text('while True: pass\n')
    short = program.replace('SECONDS_MOST, MEMORY_MOST = 60', 'SECONDS_MOST, MEMORY_MOST = 1')
    short = program.replace(' = 60,', ' = 1,')
    assert short != program
    ended = subprocess.run(['python3', '-c', short, path, json.dumps({'dims': '5', 'factors': []})], check=False)
    assert ended.returncode == -signal.SIGXCPU or ended.returncode == -signal.SIGKILL
