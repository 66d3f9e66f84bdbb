"""The CC-cube algorithm of Diaz de Cerio, Valero-Garcia and Gonzalez, from their section 4, on tori
and meshes. Independent of the schedules of torusd."""

from collections import Counter
from functools import cache, cached_property
from math import log2

from .document import Failed
from .walk import Torus


def vectors(d):
    """The blocks that the nodes of a hypercube send, by the text of section 4: {(node, iteration): [(source,
    destination), ...]}, in the order of x_i. Raises Failed unless every block reaches its destination."""
    nodes = range(1 << d)
    store = {m: [(m, m ^ place) for place in nodes] for m in nodes}  # block (m, j) in M[m XOR j]
    sent = {}
    for i in range(d):
        places = [place for place in reversed(nodes) if place >> i & 1]
        for m in nodes:
            sent[m, i] = [store[m][place] for place in places]
        for m in nodes:
            for place, block in zip(places, sent[m ^ 1 << i, i]):
                store[m][place] = block
    if any(store[m][m ^ j] != (j, m) for m in nodes for j in nodes):
        raise Failed('CC-cube: a block did not reach its destination')
    return sent


@cache
def cube(dims):
    """The Cube on this torus or mesh."""
    return Cube(dims)


class Cube:
    """A hypercube on a torus or mesh of 2^d nodes: its bits are dealt to the dimensions in turn, the
    last one first, so that iterations which follow each other use different ones. A mesh has the
    standard embedding, the bits of a coordinate as they are; a ring the xor embedding, the second
    highest bit XOR the highest."""

    def __init__(self, dims):
        self.torus = Torus(dims)
        self.bits = []  # (dimension, bit of its coordinate) of each iteration
        widths = [int(log2(size)) for size in self.torus.sizes]
        for bit in range(max(widths)):
            self.bits += [(dim, bit) for dim in reversed(range(len(widths))) if bit < widths[dim]]
        self.d = len(self.bits)
        self.blocks = 1 << (self.d - 1) if self.d else 0  # in every message of every iteration

    def place(self, number):
        """The node of the torus for one of the hypercube."""
        at = [0] * len(self.torus.sizes)
        for i, (dim, bit) in enumerate(self.bits):
            at[dim] |= (number >> i & 1) << bit
        for dim, (size, wraps) in enumerate(zip(self.torus.sizes, self.torus.wraps)):
            if wraps and at[dim] & size // 2:
                at[dim] ^= size // 4
        return self.torus.node(at)

    def ways(self, i):
        """The channels that each message of an iteration takes: the shortest path, + if both are."""
        dim = self.bits[i][0]
        size, wraps = self.torus.sizes[dim], self.torus.wraps[dim]
        for number in range(1 << self.d):
            node, end = self.place(number), self.place(number ^ 1 << i)
            ahead = self.torus.coordinates(end)[dim] - self.torus.coordinates(node)[dim]
            forward = 2 * (ahead % size) <= size if wraps else ahead > 0
            way = []
            while node != end:
                way.append((node, dim, 1 if forward else -1))
                node = self.torus.neighbour(*way[-1])
            yield way

    def dilation(self, i):
        return max(map(len, self.ways(i)))

    def crowd(self, i):
        """The messages of an iteration on each channel."""
        return Counter(channel for way in self.ways(i) for channel in way)

    def congestion(self, i):
        return max(self.crowd(i).values())

    @cached_property
    def channels(self):
        """The different channels: how many messages of each iteration they have."""
        crowds = [self.crowd(i) for i in range(self.d)]
        return {tuple(crowd[channel] for crowd in crowds) for channel in set().union(*crowds)}

    def packets(self, degree):
        """The number of blocks in each packet of a message: whole numbers, as even as possible."""
        places = Counter((self.blocks - 1 - place) * degree // self.blocks
                         for place in range(self.blocks))
        return [places[q] for q in range(degree)]

    def steps(self, degree, ports=None):
        """[{iteration: blocks of its packet}, ...] with pipelining: packet q of iteration i in step
        i + q. A node that sends no more than `ports` messages at a time divides a step."""
        packets, steps = self.packets(degree), []
        for step in range(self.d + degree - 1):
            now = [(i, packets[step - i]) for i in range(self.d) if 0 <= step - i < degree]
            at_once = ports or len(now)
            steps += [dict(now[first:first + at_once]) for first in range(0, len(now), at_once)]
        return steps

    def counts(self, degree, ports=None):
        """(startups, blocks) without conflicts: messages that need the same channel leave one after another,
        in as many steps as the busiest channel has messages. Exact if all packets have the same size or no
        channel is shared; otherwise a lower bound for these routes."""
        startups = blocks = 0
        for sizes in self.steps(degree, ports):
            startups += max(sum(channel[i] for i in sizes) for channel in self.channels)
            blocks += max(sum(channel[i] * size for i, size in sizes.items())
                          for channel in self.channels)
        return startups, blocks
