"""Routes followed hop by hop, independently of torusctl's own counting."""

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from functools import cache
from math import ceil, prod

from .document import Failed


class Torus:
    """'4x8m': sizes, and which dimensions do not wrap. Nodes are numbered row-major."""

    def __init__(self, dims):
        self.sizes = [int(size.rstrip('m')) for size in dims.split('x')]
        self.wraps = [not size.endswith('m') for size in dims.split('x')]
        self.nodes = prod(self.sizes)
        self._places = [self._place(node) for node in range(self.nodes)]
        self._next = {(dim, direction): [self._neighbour(node, dim, direction)
                                         for node in range(self.nodes)]
                      for dim in range(len(self.sizes)) for direction in (1, -1)}

    @staticmethod
    def count(dims):
        """Its nodes."""
        return prod(int(size.rstrip('m')) for size in dims.split('x'))

    def coordinates(self, node):
        return list(self._places[node])

    def _place(self, node):
        at = []
        for size in reversed(self.sizes):
            node, rest = divmod(node, size)
            at.append(rest)
        return at[::-1]

    def node(self, coordinates):
        node = 0
        for size, coordinate in zip(self.sizes, coordinates):
            node = node * size + coordinate
        return node

    def _neighbour(self, node, dim, direction):
        """None beyond the edge of a mesh."""
        at = self.coordinates(node)
        at[dim] += direction
        if not 0 <= at[dim] < self.sizes[dim]:
            if not self.wraps[dim] or self.sizes[dim] == 1:
                return None
            at[dim] %= self.sizes[dim]
        return self.node(at)

    def neighbour(self, node, dim, direction):
        return self._next[dim, direction][node]

    def distance(self, a, b):
        hops = 0
        for x, y, size, wraps in zip(self._places[a], self._places[b], self.sizes, self.wraps):
            apart = abs(x - y)
            hops += min(apart, size - apart) if wraps else apart
        return hops

    def ports(self, node):
        return sum(other[node] is not None for other in self._next.values())


def label(dims):
    """The network in words. A hypercube has one cable in each dimension, so that it is a mesh of 2;
    a torus of 2 has two."""
    torus = Torus(dims)
    if set(torus.sizes) == {2} and not any(torus.wraps):
        return f'hypercube, d = {len(torus.sizes)}'
    if len(torus.sizes) == 1:
        return f'{"ring" if torus.wraps[0] else "array"} of {torus.sizes[0]}'
    if len(set(torus.wraps)) > 1:
        return dims.replace('x', '×')
    return '×'.join(map(str, torus.sizes)) + (' torus' if torus.wraps[0] else ' mesh')


@cache
def bounds(dims):
    """The lower bounds by the cables, by their names in torusctl's `bound_of`. A cut through the
    middle of a dimension: blocks from one half to the other, by the channels between them. One port:
    also the blocks that a node has to send. Broadcast: the blocks that a node has to take in, by its
    channels."""
    torus, cuts = Torus(dims), [0]
    for dim, size in enumerate(torus.sizes):
        if size > 1:
            near = {node for node in range(torus.nodes) if torus.coordinates(node)[dim] < size // 2}
            channels = sum(torus.neighbour(node, dim, direction) not in near | {None}
                           for node in near for direction in (1, -1))
            cuts.append(len(near) * (torus.nodes - len(near)) / channels)
    fewest = min(map(torus.ports, range(torus.nodes)))
    return {'all-port': max(cuts), 'one-port, cut-through': max(*cuts, torus.nodes - 1),
            'all-to-all broadcast, all-port': ceil((torus.nodes - 1) / max(fewest, 1))}


def circles(dims, start):
    """The number of nodes at each distance from one node, by a search, up to the farthest."""
    torus = Torus(dims)
    distance, queue = {start: 0}, deque([start])
    while queue:
        node = queue.popleft()
        for dim in range(len(torus.sizes)):
            for direction in (1, -1):
                other = torus.neighbour(node, dim, direction)
                if other is not None and other not in distance:
                    distance[other] = distance[node] + 1
                    queue.append(other)
    counts = Counter(distance.values())
    return [counts[d] for d in range(max(counts) + 1)]


@dataclass
class Counts:
    """The numbers that torusctl plan counts, counted independently."""
    startups: int = 0
    transmission: float = 0  # blocks
    contended: int = 0  # steps in which two messages share a channel
    congestion: int = 0  # the most messages on one channel in one step
    hops: int = 0  # sum over steps of the longest leg
    minimal: bool = True
    one_port: bool = True  # every node starts and ends at most one message in each step
    loads: list = field(default_factory=list)  # {channel: segments} of each step
    crowds: list = field(default_factory=list)  # {channel: messages} of each step
    legs: list = field(default_factory=list)  # the longest of each step

    def keeps(self, ports):
        """Whether the routes keep to the port model of this name, as in torusctl's `bound_of`."""
        return (self.contended == 0 and (self.one_port or not ports.startswith('one-port'))
                and (self.hops <= self.startups or not ports.endswith('single hops')))


def follow(dims, routes, allgather=False):
    """The Counts of routes, each (source, destination, segment, [[step, dim, direction, hops], ...]).
    Raises Failed unless every block comes to its destination exactly once, on channels that exist,
    in rising steps. The copies of a block of an all-gather share their path as far as they can."""
    torus, counts = Torus(dims), Counts()
    blocks = defaultdict(set if allgather else int)  # by (step, channel)
    messages = defaultdict(set)
    legs = defaultdict(int)
    starts, ends = defaultdict(set), defaultdict(set)
    pairs = defaultdict(int)
    for source, destination, _, route in routes:
        node, last, length = source, -1, 0
        pairs[source, destination] += 1
        for step, dim, direction, hops in route:
            if step <= last:
                raise Failed(f'block {source}->{destination}: step {step} after step {last}')
            last, length, start = step, length + hops, node
            legs[step] = max(legs[step], hops)
            message = start, dim, direction, hops
            for _ in range(hops):
                channel = step, node, dim, direction
                if allgather:
                    blocks[channel].add(source)
                else:
                    blocks[channel] += 1
                messages[channel].add(message)
                node = torus.neighbour(node, dim, direction)
                if node is None:
                    raise Failed(f'block {source}->{destination} leaves the mesh in step {step}')
            starts[step, start].add(message)
            ends[step, node].add(message)
        if node != destination:
            raise Failed(f'block {source}->{destination} ends at node {node}')
        counts.minimal &= length == torus.distance(source, destination)
    segments = _check_pairs(torus, pairs)
    _sum_up(counts, blocks, messages, legs, allgather)
    counts.transmission /= segments
    counts.one_port = all(len(who) == 1 for who in (*starts.values(), *ends.values()))
    return counts


def _check_pairs(torus, pairs):
    """Returns the segments that every block has."""
    segments = set(pairs.values())
    for source in range(torus.nodes):
        for destination in range(torus.nodes):
            if (source != destination) != ((source, destination) in pairs):
                raise Failed(f'block {source}->{destination} has '
                             f'{pairs.get((source, destination), "no")} route')
    if len(segments) > 1:
        raise Failed('some blocks have more routes than others')
    return segments.pop() if segments else 1


def _sum_up(counts, blocks, messages, legs, allgather):
    loads, crowds = defaultdict(dict), defaultdict(dict)
    for (step, *channel), load in blocks.items():
        loads[step][tuple(channel)] = len(load) if allgather else load
        crowds[step][tuple(channel)] = len(messages[step, *channel])
    for step in sorted(loads):
        most = max(crowds[step].values())
        counts.startups += 1
        counts.transmission += max(loads[step].values())
        counts.contended += most > 1
        counts.congestion = max(counts.congestion, most)
        counts.hops += legs[step]
        counts.loads.append(loads[step])
        counts.crowds.append(crowds[step])
        counts.legs.append(legs[step])
