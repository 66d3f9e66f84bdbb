"""The expected report of an exchange, computed from the routes that `torusctl plan` prints and from the
geometry, without any count of a daemon."""

import functools
import json
import math
from collections import Counter, defaultdict, namedtuple
from fractions import Fraction

from torus_net import Geometry, Port, UsageError, find_program
from torus_net.patience import run

FIRST = ('ar', 'at2', 'direct')  # the first three; there are more
Message = namedtuple('Message', 'start step port hops')  # a combined message


def torusctl(*args):
    """Runs a torusctl command that does not need a daemon."""
    return run([find_program('torusctl'), *map(str, args)], 120)


def torusctl_json(*args):
    result = torusctl('--json', *args)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@functools.lru_cache(None)
def accepted(dims):
    """The exchange algorithms that support a torus, as torusctl reports."""
    rows = [row for row in torusctl_json('algorithms', '--dims', dims)['algorithms']
            if row.get('operation', 'exchange') == 'exchange']
    assert set(FIRST) <= {row['algorithm'] for row in rows}
    return tuple(row['algorithm'] for row in rows if row['accepts'])


def all_cases(shapes):
    """(dims, algorithm) for all algorithms of torusctl, or for the FIRST if torusctl is missing."""
    try:
        return [(dims, algorithm) for dims in shapes for algorithm in accepted(dims)]
    except (AssertionError, OSError, UsageError):
        return [(dims, algorithm) for dims in shapes for algorithm in FIRST
                if algorithm == 'direct' or dims.count('x') == 1 and algorithm == 'at2']


@functools.lru_cache(None)
def plan(dims, algorithm):
    return torusctl_json('plan', '--dims', dims, '--algorithm', algorithm)


@functools.lru_cache(None)
def routes(dims, algorithm):
    result = torusctl('plan', '--dims', dims, '--algorithm', algorithm, '--routes', '--json')
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def _distance(geometry, a, b):
    total = 0
    for x, y, size, wraps in zip(geometry.coordinates(a), geometry.coordinates(b), geometry.sizes,
                                 geometry.wraps):
        apart = abs(x - y)
        total += min(apart, size - apart) if wraps else apart
    return total


def bound(geometry, algorithm):
    """Blocks that the busiest channel must carry, whatever the schedule (tori only)."""
    assert all(geometry.wraps)
    planned = plan(str(geometry), algorithm)
    if planned['port_model'] != 'all-port':
        return planned['bound']
    return max(Fraction(geometry.nodes // p * (p * p // 4), 2) for p in geometry.sizes)


class Schedule:
    """The load of every channel, by walking all routes of an algorithm on a torus."""

    def __init__(self, dims, algorithm):
        self.geometry = geometry = Geometry(dims)
        self.tx_blocks = Counter()              # (node, port name): blocks put on the channel
        self.messages = defaultdict(set)        # (node, port name): combined messages begun there
        self.channel = defaultdict(Counter)     # step: {(node, port): blocks}
        self.on_channel = defaultdict(set)      # (step, node, port): combined messages that pass
        self.through = defaultdict(list)        # (node, port name): (src, dst) of the blocks that pass
        self.minimal = True
        pairs = Counter()
        for route in routes(dims, algorithm):
            self._walk(route)
            pairs[route['src'], route['dst'], route['segment']] += 1
        wanted = {(s, d) for s in range(geometry.nodes) for d in range(geometry.nodes) if s != d}
        self.segments = segments = 1 + max((segment for _, _, segment in pairs), default=0)
        assert pairs == Counter({(s, d, k): 1 for s, d in wanted for k in range(segments)})
        self.startups = len(self.channel)
        self.transmission = Fraction(sum(max(blocks.values()) for blocks in self.channel.values()),
                                     segments)
        self.contended = len({step for (step, *_), passing in self.on_channel.items()
                              if len(passing) > 1})

    def _walk(self, route):
        geometry, at, before, hops_in_all = self.geometry, route['src'], -1, 0
        assert route['legs'], route
        for step, dim, direction, hops in route['legs']:
            assert direction in (1, -1) and hops >= 1 and 0 <= dim < len(geometry.sizes), route
            assert step > before, f'steps in no order: {route}'
            before = step
            port = Port(dim, '+' if direction == 1 else '-')
            message = Message(at, step, port.name, hops)
            self.messages[at, port.name].add(message)
            for _ in range(hops):
                self.tx_blocks[at, port.name] += 1
                self.through[at, port.name].append((route['src'], route['dst']))
                self.channel[step][at, port.name] += 1
                self.on_channel[step, at, port.name].add(message)
                at = geometry.neighbour(at, port)
                assert at is not None, f'over an edge: {route}'
            hops_in_all += hops
        assert at == route['dst'], f'ends at {at}: {route}'
        if hops_in_all != _distance(geometry, route['src'], route['dst']):
            self.minimal = False


@functools.lru_cache(None)
def schedule(dims, algorithm):
    return Schedule(dims, algorithm)


COUNTS = ('tx_bytes', 'rx_bytes', 'tx_blocks', 'combined_messages')
PORT_KEYS = {*COUNTS, 'min_rtt_us', 'rate_bps'}
KEYS = {'id': str, 'dims': list, 'algorithm': str, 'mode': str, 'node_count': int, 'block_bytes': int,
        'seconds': float, 'rounds': int,
        'call_seconds': float, 'blocks_delivered': int, 'bytes_delivered': int, 'verified': str,
        'per_node': list}


def close_to(a, b):
    return abs(a - b) <= 1e-9 + 1e-6 * abs(b)


def mode_of(algorithm):
    """The default mode of an algorithm."""
    return 'streaming' if algorithm == 'stream' else 'stepped'


def _check_streamed(result, geometry, walked, sizes, largest, uniform):
    """When streaming, the number of messages depends on timing; the blocks that they carry do not."""
    rounds, ports = result['rounds'], {node['rank']: node['ports'] for node in result['per_node']}
    every = [(rank, name, said) for rank in ports for name, said in ports[rank].items()]
    for rank, name, said in every:
        most = rounds * walked.tx_blocks[rank, name]
        assert said['tx_blocks'] <= most if uniform else said['tx_blocks'] == most, (rank, name)
        assert (said['combined_messages'] > 0) == (said['tx_blocks'] > 0), (rank, name)
        if walked.segments == 1:
            assert said['tx_bytes'] == sum(sizes[pair] for pair in walked.through[rank, name])
    if walked.minimal:
        wanted = sum(_distance(geometry, s, d) * size for (s, d), size in sizes.items())
        assert sum(said['tx_bytes'] for _, _, said in every) == wanted
    busiest = max((said['tx_bytes'] for _, _, said in every), default=0)
    assert result['startups'] is None and result['transmission'] is None and result['channel_bytes'] == busiest
    if uniform and largest > 0:
        assert close_to(result['channel_blocks'], busiest / largest)
    else:
        assert 'channel_blocks' not in result


def check_result(result, dims, algorithm, block_bytes=None, sizes=None, bw=None, rounds=None,
                 mode=None):
    """Checks a whole result. `block_bytes` is for patterns, `sizes` of files by (source, destination);
    `mode` is the requested mode, if any."""
    uniform = sizes is None
    geometry, walked, planned = Geometry(dims), schedule(dims, algorithm), plan(dims, algorithm)
    nodes = geometry.nodes
    for key, kind in KEYS.items():
        assert type(result[key]) is kind, (key, result.get(key))
    if sizes is None:
        sizes = {(s, d): block_bytes for s in range(nodes) for d in range(nodes)}
        largest = block_bytes
    else:
        largest = max(sizes.values())
    if rounds is not None:
        assert result['rounds'] == rounds
    rounds = result['rounds']
    assert rounds >= 1
    assert result['dims'] == list(geometry.sizes) and result['node_count'] == nodes
    assert result['algorithm'] == algorithm and result['mode'] == (mode or mode_of(algorithm))
    assert result['id'].split('-')[0].isdigit()
    assert result['verified'] == ('every byte' if uniform else 'digests')
    assert result['block_bytes'] == largest
    assert planned['startups'] == walked.startups
    assert planned['transmission'] == walked.transmission
    streamed = result['mode'] == 'streaming'
    if streamed:
        _check_streamed(result, geometry, walked, sizes, largest, uniform)
    else:
        assert result['startups'] == walked.startups
        assert result['transmission'] == math.ceil(walked.transmission)
    assert result['blocks_delivered'] == nodes * (nodes - 1)
    assert result['bytes_delivered'] == sum(n for (s, d), n in sizes.items() if s != d)
    assert 0 <= result['seconds'] <= result['call_seconds'] < 3600
    assert sorted(node['rank'] for node in result['per_node']) == list(range(nodes))
    assert close_to(result['seconds'], max(node['seconds'] for node in result['per_node']))
    if bw is None:
        assert result['bound_seconds'] is None and result['efficiency'] is None
    else:
        wanted = float(bound(geometry, algorithm)) * largest * 8 / (bw * 1e6)
        assert close_to(result['bound_seconds'], wanted)
        if result['seconds'] > 0:
            assert close_to(result['efficiency'], wanted / result['seconds'])
    ports = {node['rank']: node['ports'] for node in result['per_node']}
    for rank in range(nodes):
        assert ports[rank].keys() == {port.name for port in geometry.ports(rank)}
        for port in geometry.ports(rank):
            said, here = ports[rank][port.name], (rank, port.name)
            assert said.keys() == PORT_KEYS and all(type(said[k]) is int for k in COUNTS)
            there = ports[geometry.neighbour(rank, port)][port.opposite.name]
            assert said['rx_bytes'] == there['tx_bytes'], here
            if streamed:
                continue
            assert said['tx_blocks'] == rounds * walked.tx_blocks[here], (here, said)
            assert said['combined_messages'] == rounds * len(walked.messages[here]), (here, said)
            wanted = sum(sizes[pair] for pair in walked.through[here])
            if walked.segments == 1:
                assert said['tx_bytes'] == wanted, here
            else:  # a segment is a share of its block
                assert said['tx_bytes'] <= wanted, here
