"""Torus geometry: ranks, coordinates, ports, links. Pure arithmetic.

Ranks are row-major: the last dimension varies fastest. A dimension wraps (ring) or not (mesh: its
size is followed by `m`). A wrapping dimension of size 2 has two separate links between the same two
nodes; a dimension of size 1 has none. One end of each link is a `+` port, which dials;
the other is a `-` port, which listens.
"""

import math
import re
from dataclasses import dataclass

MAX_DIMS = 8        # as in daemon/schedule/torus.h
MOST_NODES = 4096   # on one machine; a larger torus is refused before anything is created


class UsageError(Exception):
    """The request is invalid; the message says why."""


@dataclass(frozen=True)
class Port:
    """One port of a node: `+0` is the upward port of dimension 0."""

    dim: int
    sign: str  # '+' or '-'

    @property
    def name(self):
        return f'{self.sign}{self.dim}'

    @property
    def number(self):
        return 2 * self.dim + (self.sign == '-')

    @property
    def opposite(self):
        return Port(self.dim, '-' if self.sign == '+' else '+')


@dataclass(frozen=True)
class Link:
    """The cable from the `+` port of node `plus` to the `-` port of node `minus`."""

    index: int
    dim: int
    plus: int
    minus: int

    @property
    def ends(self):
        return (self.plus, Port(self.dim, '+')), (self.minus, Port(self.dim, '-'))


class Geometry:
    """The torus or mesh described by a text such as `4x8`, `6` or `3x4mx5`."""

    def __init__(self, text):
        parts = str(text).lower().split('x')
        if not all(re.fullmatch(r'[1-9][0-9]{0,5}m?', part) for part in parts):
            raise UsageError(f'"{text}" is not a torus: expected sizes of at least 1 joined by '
                             '"x", such as 4x8 (a size followed by "m" does not wrap)')
        if len(parts) > MAX_DIMS:
            raise UsageError(f'"{text}" has {len(parts)} dimensions; at most {MAX_DIMS} are supported')
        self.sizes = tuple(int(part.rstrip('m')) for part in parts)
        self.wraps = tuple(not part.endswith('m') for part in parts)
        self.nodes = math.prod(self.sizes)
        if self.nodes > MOST_NODES:
            raise UsageError(f'"{text}" has {self.nodes} nodes; at most {MOST_NODES} can be started on '
                             'one machine')
        self.links = tuple(self._links())
        self._at = {end: link for link in self.links for end in link.ends}

    def __str__(self):
        return 'x'.join(f'{size}{"" if wrap else "m"}'
                        for size, wrap in zip(self.sizes, self.wraps))

    def coordinates(self, rank):
        result = []
        for size in reversed(self.sizes):
            rank, coordinate = divmod(rank, size)
            result.append(coordinate)
        return tuple(reversed(result))

    def rank(self, coordinates):
        result = 0
        for size, coordinate in zip(self.sizes, coordinates):
            result = result * size + coordinate
        return result

    def neighbour(self, rank, port):
        """The rank cabled to `port`, or None (dimension of size 1, edge of a mesh)."""
        size = self.sizes[port.dim]
        coordinates = list(self.coordinates(rank))
        there = coordinates[port.dim] + (1 if port.sign == '+' else -1)
        if size == 1 or (not self.wraps[port.dim] and not 0 <= there < size):
            return None
        coordinates[port.dim] = there % size
        return self.rank(coordinates)

    def ports(self, rank):
        """The node's cabled ports, in the order of their numbers."""
        every = (Port(dim, sign) for dim in range(len(self.sizes)) for sign in '+-')
        return [port for port in every if self.neighbour(rank, port) is not None]

    def link(self, rank, port):
        return self._at[rank, port]

    def port(self, rank, name):
        """The node's port called `name` ("+0")."""
        for port in self.ports(rank):
            if port.name == name:
                return port
        raise UsageError(f'node {rank} of {self} has no port "{name}"; it has '
                         + (', '.join(port.name for port in self.ports(rank)) or 'none'))

    def _links(self):
        index = 0
        for rank in range(self.nodes):
            for dim in range(len(self.sizes)):
                there = self.neighbour(rank, Port(dim, '+'))
                if there is not None:
                    yield Link(index, dim, rank, there)
                    index += 1
