"""Allgather and broadcast of generated patterns and of files: every block arrives, and counts match the trees
that `torusctl plan` prints."""

import json
import re
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.errors import assert_refused
from support.expect import KEYS, PORT_KEYS, plan, routes
from support.trees import same_file, seed_of, wait_tidy, write_file
from support.waiting import wait_for
from torus_net import CommandFailed, Geometry, Port
from torus_net.patience import stretched

SHAPES = {'4x4': ('balanced', 'saadschultz'), '5x3': ('balanced', 'yangwang', 'saadschultz'),
          '3mx4m': ('balanced', 'yangwang', 'saadschultz'), '2x2': ('balanced',),
          '1x7': ('balanced', 'yangwang'), '1x1': ('balanced', 'yangwang', 'saadschultz'),
          '1x2': ('saadschultz',), '2x3x2': ('saadschultz',)}
SANITIZED = ('5x3', '1x1')
REPEATED = ('4x4', '1x7', '2x2')  # tests/sim runs allgathers on these, and other tests here use the same algorithms


def shapes(dims):
    return [pytest.param(one, marks=[pytest.mark.slow] * (one not in ('3mx4m', '3mx5m', '1x1'))) for one in dims]


cases = pytest.mark.parametrize('dims,algorithm', [
    pytest.param(dims, name, marks=[pytest.mark.slow] * (dims not in SANITIZED) +
                 [pytest.mark.full] * (dims in REPEATED))
    for dims, names in SHAPES.items() for name in names])
SIZES = (0, 1, 4097, 200000)


class Trees:
    """The tree of each source, from its routes."""

    def __init__(self, dims, algorithm):
        self.geometry = geometry = Geometry(dims)
        edges = {}  # (source, node): the port at which the block arrives
        for route in routes(dims, algorithm):
            at = route['src']
            for step, dim, direction, hops in route['legs']:
                assert hops == 1, route
                port = Port(dim, '+' if direction == 1 else '-')
                start, at = at, geometry.neighbour(at, port)
                assert edges.setdefault((route['src'], at), (step, start, port.name)) == \
                    (step, start, port.name), f'no tree: {route}'
            assert at == route['dst']
        assert len(edges) == geometry.nodes * (geometry.nodes - 1)
        self.edges = edges

    def counts(self, sources):
        """(node, port name): sources whose block leaves there; and steps that use it; by step: the
        busiest channel."""
        through, messages, channel = defaultdict(list), defaultdict(set), defaultdict(Counter)
        for (source, _), (step, start, port) in self.edges.items():
            if source in sources:
                through[start, port].append(source)
                messages[start, port].add(step)
                channel[step][start, port] += 1
        return through, messages, [max(blocks.values()) for blocks in channel.values()]


def check(result, dims, algorithm, sizes, operation='allgather', mode='stepped'):
    """`sizes`: by source. When streaming, the number of messages depends on timing."""
    geometry = Geometry(dims)
    through, messages, busiest = Trees(dims, algorithm).counts(sizes)
    for key, kind in KEYS.items():
        assert type(result[key]) is kind, (key, result.get(key))
    assert result['operation'] == operation and result['algorithm'] == algorithm
    assert result['mode'] == mode
    assert result['verified'] in ('every byte', 'digests')
    assert result['block_bytes'] == max(sizes.values())
    if mode == 'stepped':
        assert result['startups'] == len(busiest) and result['transmission'] == sum(busiest)
    assert result['blocks_delivered'] == len(sizes) * (geometry.nodes - 1)
    assert result['bytes_delivered'] == sum(sizes.values()) * (geometry.nodes - 1)
    ports = {node['rank']: node['ports'] for node in result['per_node']}
    assert sorted(ports) == list(range(geometry.nodes))
    for rank in range(geometry.nodes):
        for port in geometry.ports(rank):
            said, here = ports[rank][port.name], (rank, port.name)
            there = ports[geometry.neighbour(rank, port)][port.opposite.name]
            assert said.keys() == PORT_KEYS
            if mode == 'stepped':
                assert said['tx_blocks'] == result['rounds'] * len(through[here]), here
                assert said['combined_messages'] == result['rounds'] * len(messages[here]), here
            assert said['tx_bytes'] == sum(sizes[source] for source in through[here]), here
            assert said['rx_bytes'] == there['tx_bytes'], here


def run(torus, *args, rank=0):
    return torus.json(rank, *args)


@cases
def test_pattern(shared, dims, algorithm):
    torus = shared(dims)
    nodes = torus.geometry.nodes
    for size in SIZES:
        result = run(torus, 'allgather', '--algorithm', algorithm, '--block-size', size,
                     rank=size % nodes)
        check(result, dims, algorithm, {s: size for s in range(nodes)})
        assert result['rounds'] == 1
        if nodes > 1:
            planned = plan(dims, algorithm)
            assert result['startups'] == planned['startups']
            assert result['transmission'] == planned['transmission']


@cases
def test_broadcast(shared, dims, algorithm):
    torus = shared(dims)
    nodes = torus.geometry.nodes
    for sender in {0, nodes // 2, nodes - 1}:
        result = run(torus, 'broadcast', '--root', sender, '--algorithm', algorithm,
                     '--block-size', 70001, rank=(sender + 1) % nodes)
        check(result, dims, algorithm, {sender: 70001}, 'broadcast')


@cases
def test_streaming(shared, dims, algorithm):
    torus = shared(dims)
    nodes = torus.geometry.nodes
    for size in SIZES:
        options = ('--algorithm', algorithm, '--block-size', size, '--mode', 'streaming')
        result = run(torus, 'allgather', *options, rank=size % nodes)
        check(result, dims, algorithm, {s: size for s in range(nodes)}, mode='streaming')
        for sender in {0, nodes // 2}:
            result = run(torus, 'broadcast', '--root', sender, *options, '--repeat', 3, rank=nodes - 1)
            assert len(result['seconds_each']) == 3
            assert result['blocks_delivered'] == nodes - 1


def test_streaming_in_rounds(shared):
    torus = shared('4x4', memory='1MiB')
    for operation, sources in (('allgather', range(16)), ('broadcast', (11,))):
        root = ('--root', 11) if operation == 'broadcast' else ()
        result = run(torus, operation, *root, '--algorithm', 'balanced', '--block-size', 300001,
                     '--mode', 'streaming')
        assert result['rounds'] > 1
        check(result, '4x4', 'balanced', {s: 300001 for s in sources}, operation, 'streaming')
    wait_for(lambda: torus.status()['memory']['reserved_bytes'] == 0)


def test_rounds(shared):
    torus = shared('4x4', memory='1MiB')
    for name, size in (('balanced', 300001), ('saadschultz', 300001)):
        result = run(torus, 'allgather', '--algorithm', name, '--block-size', size)
        assert result['rounds'] > 1
        check(result, '4x4', name, {s: size for s in range(16)})
    wait_for(lambda: torus.status()['memory']['reserved_bytes'] == 0)


def make_files(folder, nodes):
    """folder/RANK for every node; the sizes by rank."""
    sizes = {rank: (0, 1, 65536, 300000 + rank)[rank % 4] for rank in range(nodes)}
    folder.mkdir()
    for rank, size in sizes.items():
        write_file(folder / str(rank), seed_of('', rank, rank), size)
    return sizes


def check_outputs(base, nodes, sizes):
    for rank in range(nodes):
        folder = base / 'in' / str(rank)
        assert sorted(path.name for path in folder.iterdir()) == sorted(map(str, sizes))
        for source, size in sizes.items():
            assert same_file(folder / str(source), seed_of('', source, source), size), (rank, source)


@cases
def test_files(shared, root, base, dims, algorithm):
    """Each node's file by its own name, then the folder that they are in."""
    torus = shared(dims, data_roots=(str(root),))
    nodes = torus.geometry.nodes
    sizes = make_files(base / 'out', nodes)
    for mode, source in (('stepped', f'{base}/out/%r'), ('streaming', f'{base}/out')):
        result = run(torus, 'allgather', '--algorithm', algorithm, '--from', source,
                     '--to', f'{base}/in/%r', '--mode', mode, rank=nodes - 1)
        check(result, dims, algorithm, sizes, mode=mode)
        check_outputs(base, nodes, sizes)
        wait_tidy(torus, base)
        (base / 'in').rename(base / f'in-{mode}')


def test_broadcast_of_a_file(shared, root, base):
    """Nodes other than the sender need no file."""
    torus = shared('4x4', data_roots=(str(root),))
    write_file(base / 'news', seed_of('', 6, 6), 123457)
    result = run(torus, 'broadcast', '--root', 6, '--algorithm', 'balanced', '--mode', 'stepped',
                 '--from', f'{base}/news', '--to', f'{base}/in/%r', rank=2)
    check(result, '4x4', 'balanced', {6: 123457}, 'broadcast')
    check_outputs(base, 16, {6: 123457})
    wait_tidy(torus, base)


def test_files_in_parts(shared, root, base):
    """Files of unknown sizes are treated as large: each is sent along several trees."""
    torus = shared('4x4', data_roots=(str(root),))
    sizes = make_files(base / 'out', 16)
    result = run(torus, 'allgather', '--from', f'{base}/out', '--to', f'{base}/in/%r')
    assert (result['algorithm'], result['mode']) == ('disjoint', 'streaming')
    check_outputs(base, 16, sizes)
    wait_tidy(torus, base)
    (base / 'in').rename(base / 'first')
    result = run(torus, 'broadcast', '--root', 7, '--from', f'{base}/out', '--to', f'{base}/in/%r')
    assert (result['algorithm'], result['mode']) == ('disjoint', 'streaming')
    check_outputs(base, 16, {7: sizes[7]})
    sent = {name: port['tx_bytes'] for name, port in result['per_node'][7]['ports'].items()}
    assert sum(sent.values()) == sizes[7] and max(sent.values()) <= sizes[7] / 4 + 12, sent


@pytest.mark.parametrize('dims', shapes(['4x4', '3x5', '2x3x2', '3mx4m', '4x3m', '1x7', '2', '1x1']))
def test_large_blocks_use_all_links(shared, dims):
    """The daemon splits blocks into parts, which use all links of the node with the fewest links."""
    torus, size = shared(dims), 2 << 20
    nodes = torus.geometry.nodes
    links = min(len(list(torus.geometry.ports(rank))) for rank in range(nodes))
    result = run(torus, 'broadcast', '--root', nodes // 2, '--block-size', size)
    assert result['blocks_delivered'] == nodes - 1
    if nodes > 1:
        assert (result['algorithm'], result['mode']) == ('disjoint', 'streaming')
        most = max(port['tx_bytes'] for node in result['per_node'] for port in node['ports'].values())
        assert most <= size / links + 12
    result = run(torus, 'allgather', '--algorithm', 'disjoint', '--block-size', size // 8)
    assert result['blocks_delivered'] == nodes * (nodes - 1) and result['mode'] == 'streaming'
    if nodes > 1:
        most = max(port['tx_bytes'] for node in result['per_node'] for port in node['ports'].values())
        assert most <= (nodes - 1) * (size // 8 / links + 12)


def test_a_missing_file(shared, root, base):
    torus = shared('4x4', data_roots=(str(root),))
    sizes = make_files(base / 'out', 16)
    (base / 'out' / '5').unlink()
    args = ('allgather', '--from', f'{base}/out', '--to', f'{base}/in/%r')
    failed = torus.ctl(0, '--json', *args)
    assert_refused(failed, 'refused')
    assert 'node 5' in failed.stderr and 'out/5' in failed.stderr, failed.stderr
    wait_for(lambda: not list(base.glob('in/*')), what='a target stays')
    result = run(torus, *args, '--algorithm', 'balanced', '--missing-ok')
    check(result, '4x4', 'balanced', {**sizes, 5: 0})


@pytest.mark.parametrize('args,named', [
    (('allgather', '--algorithm', 'at2', '--block-size', 1), 'at2'),
    (('exchange', '--algorithm', 'yangwang', '--block-size', 1), 'yangwang'),
    (('allgather',), 'allgather'),
    (('broadcast', '--block-size', 1), '--root'),
    (('broadcast', '--root', 'x', '--block-size', 1), '--root'),
    (('broadcast', '--root', 16, '--block-size', 1), 'node 16'),
])
def test_refused(shared, args, named):
    failed = shared('4x4').ctl(0, '--json', *args)
    assert_refused(failed, 'usage', 2)
    assert named in failed.stderr and named in json.loads(failed.stdout)['error']['text'], failed


def test_three_dimensions(shared):
    """The daemon chooses an algorithm that can do it."""
    result = run(shared('2x3x2'), 'allgather', '--block-size', 10)
    assert result['algorithm'] in ('saadschultz', 'disjoint')
    with pytest.raises(CommandFailed, match='balanced takes'):
        run(shared('2x3x2'), 'allgather', '--algorithm', 'balanced', '--block-size', 10)


def is_entered(torus, rank):
    """Whether a client of this node has entered a barrier. Node 0 prepares a barrier when it is entered there; from then on
    the states of other nodes do not say whether they have entered it, so node 0 must come after them."""
    state = 'preparing' if rank == 0 else 'entered'
    return any(one['state'] == state for one in torus.status(rank)['exchanges'])


@pytest.mark.parametrize('dims,last', [('4x4', 0), ('4x4', 9), ('3mx4m', 11), ('1x2', 1), ('1x1', 0)])
def test_barrier(shared, dims, last):
    """No client completes the barrier before the last one has entered it."""
    torus = shared(dims)
    nodes, came, through = torus.geometry.nodes, {}, {}
    alone = nodes == 1

    def enter(rank):
        came[rank] = time.monotonic()
        result = torus.json(rank, 'barrier', '--timeout', 600)
        through[rank] = time.monotonic()
        return result

    with ThreadPoolExecutor(nodes) as pool:
        others = [rank for rank in range(1, nodes) if rank != last]
        early = [pool.submit(enter, rank) for rank in others]
        wait_for(lambda: all(is_entered(torus, rank) for rank in others))
        if last != 0:
            early.append(pool.submit(enter, 0))
            wait_for(lambda: is_entered(torus, 0))
        results = [enter(last)] + [future.result() for future in early]
    assert min(through.values()) >= came[last]
    assert len({result['id'] for result in results}) == 1
    for result in results:
        assert result['operation'] == 'barrier' and result['node_count'] == nodes
        assert [node['rank'] for node in result['nodes']] == list(range(nodes))
        assert result['nodes'] == results[0]['nodes'] and result['nodes'][result['first']]['after_seconds'] == 0
        assert result['last'] == last and (alone or result['first'] != last)
    assert results[0]['waited_seconds'] == min(result['waited_seconds'] for result in results)


def test_a_barrier_says_who_was_last(shared):
    """At every node, in the order in which they came."""
    torus = shared('2x2')
    with ThreadPoolExecutor(4) as pool:
        early = []
        for rank in 3, 1, 0:
            early.append(pool.submit(torus.ctl, rank, 'barrier', '--name', 'who', '--timeout', 600))
            wait_for(lambda: is_entered(torus, rank))
        said = [torus.ctl(2, 'barrier', '--name', 'who', '--timeout', 600)] + [future.result() for future in early]
    for barrier in said:
        assert barrier.returncode == 0 and re.search(r'^barrier +who$', barrier.stdout, re.M), barrier
        assert re.search(r'^came first +node 3$', barrier.stdout, re.M), barrier.stdout
        assert re.search(r'^came last +node 2, [\d.]+ [mu]?s later$', barrier.stdout, re.M), barrier.stdout
        assert re.search(r'^waited here +[\d.]+ [mu]?s$', barrier.stdout, re.M), barrier.stdout
        table = barrier.stdout.split('after the first\n')[1]
        assert [int(line.split()[0]) for line in table.splitlines() if line.strip()] == [3, 1, 0, 2], barrier.stdout


def test_a_barrier_with_older_daemons(loopback):
    """The nodes do not tell each other when they were entered, so torusctl does not say which was last."""
    torus = loopback('2', extra=['--protocol-minor=3'])
    with ThreadPoolExecutor(4) as pool:
        other = pool.submit(torus.ctl, 1, 'barrier', '--timeout', 600)
        result = torus.json(0, 'barrier', '--timeout', 600)
        text = other.result().stdout
    assert result['last'] is None and result['first'] is None and result['waited_seconds'] >= 0
    assert result['nodes'] == [{'rank': rank, 'after_seconds': None} for rank in range(2)]
    assert re.search(r'^came last +not known: not every node said when it came$', text, re.M), text


def test_barriers_of_other_names_and_again(shared):
    torus = shared('2x3')

    def enter(rank):
        for name in ('', 'b', 'b', ''):
            torus.json(rank, 'barrier', *(['--name', name] if name else []), '--timeout', 600)
        return True

    nodes = torus.geometry.nodes
    with ThreadPoolExecutor(nodes) as pool:
        assert all(pool.map(enter, range(nodes)))


@pytest.mark.full
@pytest.mark.parametrize('missing,named', [(0, 'node 0 '), (3, 'node 3 '), (5, 'nodes 4, 5, 6, 7, 8, 9, 10, 11 ')])
def test_a_barrier_that_one_does_not_come_to(shared, missing, named):
    """All clients see the same missing nodes, as node 0 knows them."""
    torus, limit = shared('4x4'), stretched(3 if missing else 3.5)
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(
            lambda rank: torus.ctl(rank, '--json', 'barrier', '--timeout', limit),
            [rank for rank in range(16) if rank != missing]))
    for result in results:
        assert_refused(result, 'timeout')
        assert named in result.stderr
    test_barriers_of_other_names_and_again(lambda dims: torus)
