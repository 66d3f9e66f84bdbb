"""The geometry of a network: ranks, coordinates, ports, links.

A network is a product of factors, one a dimension: rings (`4`), lines (`4m`), and other graphs
(`complete:4`, `star:5`, `tree:2^3`, `graph:FILE`). Ranks are row-major: the last dimension varies
fastest. A ring of 2 has two separate links between the same two nodes; a dimension of size 1 has none.
One end of each link dials, the other one listens: in rings and lines the `+` end dials, in other graphs
the end with the smaller coordinate.
"""

import math
import re
from dataclasses import dataclass
from pathlib import Path

MAX_DIMS = 8         # as in daemon/lib/schedule/torus.h
MOST_PORTS = 32      # of a node
MOST_NODES = 4096    # on one machine; a larger torus is refused before anything is created
GRAPH_NODES = 1024   # of one factor from a file, as in daemon/lib/schedule/graph/graph.h


class UsageError(Exception):
    """The request is invalid; the message says why."""


@dataclass(frozen=True)
class Port:
    """A port in a ring or line: `+0` is the upward port of dimension 0."""

    dim: int
    sign: str  # '+' or '-'

    @property
    def name(self):
        return f'{self.sign}{self.dim}'

    @property
    def dials(self):
        return self.sign == '+'

    @property
    def number(self):
        """Different for each port of a node."""
        return 2 * self.dim + (self.sign == '-')

    @property
    def opposite(self):
        """The port at the other end of the link."""
        return Port(self.dim, '-' if self.sign == '+' else '+')


@dataclass(frozen=True)
class GraphPort:
    """A port in another graph: `0:3` leads along dimension 0 to the neighbour with coordinate 3."""

    dim: int
    at: int  # the coordinates of the two ends
    to: int
    first: int  # the number of a port to coordinate 0

    @property
    def name(self):
        return f'{self.dim}:{self.to}'

    @property
    def dials(self):
        return self.at < self.to

    @property
    def number(self):
        return self.first + self.to

    @property
    def opposite(self):
        return GraphPort(self.dim, self.to, self.at, self.first)


def port_word(port):
    """A port in the name of an interface: "plus0", "0to3"."""
    if isinstance(port, GraphPort):
        return f'{port.dim}to{port.to}'
    return f'{"plus" if port.sign == "+" else "minus"}{port.dim}'


@dataclass(frozen=True)
class Link:
    """The cable from the port of one node that dials to the port of another one that listens."""

    index: int
    ends: tuple  # (rank, port) that dials; (rank, port) that listens

    @property
    def dim(self):
        return self.ends[0][1].dim

    @property
    def plus(self):
        """The rank at the end that dials: the `+` end of a ring or line."""
        return self.ends[0][0]

    @property
    def minus(self):
        return self.ends[1][0]


@dataclass(frozen=True)
class Factor:
    """One dimension. `neighbours`: of each coordinate, in ascending order; None for rings and lines."""

    text: str
    size: int
    wraps: bool = False
    neighbours: tuple = None


def _neighbours(size, edges):
    result = [set() for _ in range(size)]
    for a, b in edges:
        result[a].add(b)
        result[b].add(a)
    return tuple(tuple(sorted(some)) for some in result)


def _tree_edges(branches, depth):
    nodes = sum(branches ** level for level in range(depth + 1))
    return nodes, [((node - 1) // branches, node) for node in range(1, nodes)]


def _read_edges(path):
    """The edges in a file: two numbers a line; `#` begins a comment. torusd checks them more closely."""
    edges = []
    try:
        lines = Path(path).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise UsageError(f'cannot read the edges of a graph from {path}: {e}') from e
    for number, line in enumerate(lines, 1):
        words = line.split('#')[0].split()
        if words and (len(words) != 2 or not all(re.fullmatch('[0-9]{1,4}', word) for word in words)):
            raise UsageError(f'{path}, line {number}: expected two numbers of nodes, as in "0 1"')
        if words:
            edges.append(tuple(map(int, words)))
    if not edges or max(map(max, edges)) >= GRAPH_NODES:
        raise UsageError(f'{path}: a graph has at least one edge, and at most {GRAPH_NODES} nodes, from 0')
    return edges


def _graph(kind, argument, text):
    """The size and the edges of a factor with a name."""
    if kind == 'graph':
        edges = _read_edges(argument)
        return max(map(max, edges)) + 1, edges
    if kind == 'tree':
        branches, depth = map(int, argument.split('^'))
        if not (1 <= branches < MOST_PORTS and depth >= 1 and branches ** depth < GRAPH_NODES):
            raise UsageError(f'"{text}": a tree has 1 to {MOST_PORTS - 1} children a node, and at most '
                             f'{GRAPH_NODES} nodes')
        return _tree_edges(branches, depth)
    size = int(argument)
    if not 2 <= size <= MOST_PORTS + 1:
        raise UsageError(f'"{text}": a {kind} graph has 2 to {MOST_PORTS + 1} nodes')
    return size, [(a, b) for b in range(size) for a in range(b) if kind == 'complete' or a == 0]


_PLAIN = re.compile(r'(ring:|line:|array:)?([1-9][0-9]{0,5})([mM]?)')
_NAMED = re.compile(r'(complete|star):([0-9]{1,4})|(tree):([0-9]{1,4}\^[0-9]{1,4})|(graph):([^ ^]+)')


def _whole_path(file):
    """The path by which torusd finds a file of edges from any folder."""
    path = str(Path(file).resolve())
    if set(path) & set(' ^'):
        raise UsageError(f'the path of a file of edges cannot contain a blank or "^", which end its name: {path}')
    return path


def _factor(text, whole):
    """The factor at the beginning of `text`, and what follows it."""
    if match := _NAMED.match(text):
        kind, argument = (word for word in match.groups() if word is not None)
        size, edges = _graph(kind, argument, match[0])
        name = f'graph:{_whole_path(argument)}' if kind == 'graph' else match[0]
        return Factor(name, size, False, _neighbours(size, edges)), text[match.end():]
    match = _PLAIN.match(text)
    if not match or (match[1] and match[3]):
        raise UsageError(f'"{whole}" is not a torus: expected sizes of at least 1 joined by "x", such as '
                         '4x8 (a size followed by "m" does not wrap), or factors such as complete:4')
    wraps = match[1] == 'ring:' or (not match[1] and not match[3])
    return Factor(f'{match[2]}{"" if wraps else "m"}', int(match[2]), wraps), text[match.end():]


def _factors(text):
    rest, result = text, []
    while True:
        factor, rest = _factor(rest, text)
        power = re.match(r'\^([1-9][0-9]?)', rest)
        result += [factor] * (int(power[1]) if power else 1)
        rest = rest[power.end():] if power else rest
        if not rest:
            return result
        times = re.match(' *[xX] *', rest)
        if not times:
            raise UsageError(f'"{text}" is not a torus: expected "x" between factors, not "{rest[:16]}"')
        rest = rest[times.end():]


class Geometry:
    """The network described by a text such as `4x8`, `6`, `3x4mx5` or `5 x complete:3`."""

    def __init__(self, text):
        text = str(text)
        self.factors = tuple(_factors(text))
        if len(self.factors) > MAX_DIMS:
            raise UsageError(f'"{text}" has {len(self.factors)} dimensions; at most {MAX_DIMS} are supported')
        self.sizes = tuple(factor.size for factor in self.factors)
        self.wraps = tuple(factor.wraps for factor in self.factors)
        self.plain = all(factor.neighbours is None for factor in self.factors)
        self.nodes = math.prod(self.sizes)
        if self.nodes > MOST_NODES:
            raise UsageError(f'"{text}" has {self.nodes} nodes; at most {MOST_NODES} can be started on '
                             'one machine')
        self._first = [2 * len(self.factors) + sum(self.sizes[:dim]) for dim in range(len(self.factors))]
        self.links = tuple(self._links())
        self._at = {end: link for link in self.links for end in link.ends}

    def __str__(self):
        return ('x' if self.plain else ' x ').join(factor.text for factor in self.factors)

    def edge_files(self):
        """The files that hold the edges of factors, each once."""
        return sorted({factor.text.removeprefix('graph:') for factor in self.factors
                       if factor.text.startswith('graph:')})

    def one_word(self, place):
        """The text without blanks; place(FILE) is where torusd finds a file of edges."""
        words = []
        for factor in self.factors:
            kind, _, file = factor.text.partition(':')
            words.append(f'graph:{place(file)}^1' if kind == 'graph' else factor.text)
        return 'x'.join(words)

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
        """The rank cabled to `port`, or None (dimension of size 1, end of a line)."""
        size = self.sizes[port.dim]
        coordinates = list(self.coordinates(rank))
        if isinstance(port, GraphPort):
            there = port.to
            if coordinates[port.dim] != port.at or there not in self.factors[port.dim].neighbours[port.at]:
                return None
        else:
            there = coordinates[port.dim] + (1 if port.sign == '+' else -1)
            if size == 1 or (not self.wraps[port.dim] and not 0 <= there < size):
                return None
        coordinates[port.dim] = there % size
        return self.rank(coordinates)

    def ports(self, rank):
        """The node's cabled ports, by dimension."""
        result = []
        for dim, at in enumerate(self.coordinates(rank)):
            neighbours = self.factors[dim].neighbours
            every = ([Port(dim, sign) for sign in '+-'] if neighbours is None else
                     [GraphPort(dim, at, to, self._first[dim]) for to in neighbours[at]])
            result += [port for port in every if self.neighbour(rank, port) is not None]
        return result

    def link(self, rank, port):
        return self._at[rank, port]

    def port(self, rank, name):
        """The node's port called `name` ("+0", "0:3")."""
        for port in self.ports(rank):
            if port.name == name:
                return port
        raise UsageError(f'node {rank} of {self} has no port "{name}"; it has '
                         + (', '.join(port.name for port in self.ports(rank)) or 'none'))

    def _links(self):
        dialling = [(rank, port) for rank in range(self.nodes) for port in self.ports(rank) if port.dials]
        for index, (rank, port) in enumerate(dialling):
            yield Link(index, ((rank, port), (self.neighbour(rank, port), port.opposite)))
