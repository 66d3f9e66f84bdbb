"""Drawings of the paper on products of networks: figures 1, 2 and 5, table 2, and channel loads."""

from .. import walk
from ..document import Failed
from . import moves
from .sketch import (BLUE, FILL, FILLS, GREEN, ORANGE, PURPLE, Arrow, Box, Drawing, Line, Node,
                     Sketch, Text)

FIRST, SECOND = BLUE, ORANGE  # links of dimension 1 and of dimension 2


def link(a, b, colour, bend=0.0):
    return Arrow(a, b, colour, bend=bend, gap=0, head=False, width=1.6)


# ---- Fig. 1 --------------------------------------------------------------------------------------

def prism(name, row):
    """The place of a node of the product. The ring of dimension 2 is a triangle."""
    x, y = {1: (0, 0), 2: (1.6, 0), 3: (0.8, -0.95)}[name]
    return x, y + 2.6 * row


def figure_one(torusctl):
    del torusctl
    path = [link((0, 0), (0, 2.6), FIRST)] + [Node(0, 2.6 * i, name, radius=0.33) for i, name in enumerate('ab')]
    ring = [link(prism(a, 0), prism(b, 0), SECOND) for a, b in ((1, 2), (2, 3), (3, 1))]
    ring += [Node(*prism(i, 0), str(i), radius=0.33) for i in (1, 2, 3)]
    product = [link(prism(i, 0), prism(i, 1), FIRST) for i in (1, 2, 3)]
    product += [link(prism(a, row), prism(b, row), SECOND) for row in (0, 1) for a, b in ((1, 2), (2, 3), (3, 1))]
    product += [Node(*prism(i, row), f'{"ab"[row]},{i}', FILLS[1 + row], radius=0.36)
                for row in (0, 1) for i in (1, 2, 3)]
    return Drawing(
        'products-fig-1', 'Figure 1: Cartesian product of two graphs',
        [Sketch('dimension 1: two-node path', path), Sketch('dimension 2: three-node ring', ring),
         Sketch('their product', product, 'node (a,1): (b,1) in dimension 1,\n(a,2) and (a,3) in dimension 2')],
        'Two nodes are adjacent if they differ in one coordinate only, and are adjacent in that dimension.', columns=3,
        scale=0.62, legend=[(FIRST, 'links of dimension 1'), (SECOND, 'links of dimension 2')])


# ---- Fig. 2 --------------------------------------------------------------------------------------

DOWN, ACROSS = 3, 4
COPIES = (BLUE, ORANGE, GREEN, PURPLE)


def torus(copies):
    """The 4×3 torus. The copies of the ring are coloured: columns if `copies` is 'A', rows if it is 'B'. The link
    that closes a ring is bent."""
    wide, high = 1.5, 1.3
    marks = []
    for dim in 'BA' if copies == 'A' else 'AB':
        number, length = (ACROSS, DOWN) if dim == 'A' else (DOWN, ACROSS)
        for copy in range(number):
            colour = COPIES[copy] if dim == copies else '#d0d0d0'
            places = [(copy * wide, i * high) if dim == 'A' else (i * wide, copy * high) for i in range(length)]
            marks += [link(a, b, colour) for a, b in zip(places, places[1:])]
            bend = 0.14 if dim == 'A' else -0.085
            marks.append(link(places[0], places[-1], colour, -bend if dim == 'A' else bend))
            name = f'${dim}_{copy + 1}$'
            at = (copy * wide, -0.75) if dim == 'A' else (-0.9, copy * high)
            if dim == copies:
                marks.append(Text(*at, name, 11, COPIES[copy]))
    return marks + [Node(j * wide, i * high, f'{i + 1},{j + 1}', radius=0.27, size=7)
                    for i in range(DOWN) for j in range(ACROSS)]


def figure_two(torusctl):
    del torusctl
    return Drawing(
        'products-fig-2', 'Figure 2: a 4×3 torus as copies of rings',
        [Sketch('(a) four copies of a three-node ring', torus('A')),
         Sketch('(b) three copies of a four-node ring', torus('B'))],
        'The numbers in a node are i and j of (v_i, u_j). Bent links close the rings.', columns=2, scale=0.62)


# ---- Fig. 5 and table 2 --------------------------------------------------------------------------

MESH = '3mx3m'
WIDE = 2.0


def mesh_node(rank):
    row, column = divmod(rank, 3)
    return column * WIDE, row * WIDE


def mesh(dashed=True):
    marks = [Line([mesh_node(a), mesh_node(b)], '#c0c0c0', 1.2)
             for a in range(9) for b in (a + 1, a + 3) if b < 9 and (b == a + 3 or b % 3)]
    if dashed:
        for i in range(3):
            marks += [Box(i * WIDE - 0.5, -0.62, 1.0, 2 * WIDE + 1.24, dashed=True, colour=BLUE),
                      Box(-0.75, i * WIDE - 0.4, 2 * WIDE + 1.5, 0.8, dashed=True, colour=ORANGE),
                      Text(i * WIDE, -0.95, f'$A_{i + 1}$', 11, BLUE),
                      Text(-1.15, i * WIDE, f'$B_{i + 1}$', 11, ORANGE)]
    return marks + [Node(*mesh_node(rank), f'{rank // 3 + 1},{rank % 3 + 1}',
                         FILLS[5] if rank == 0 else FILLS[0], radius=0.33, size=8) for rank in range(9)]


def figure_five(torusctl):
    del torusctl
    return Drawing('products-fig-5', 'Figure 5: a 3×3 homogeneous mesh',
                   [Sketch('', mesh(), '$A_j$: copies of dimension 1, $B_i$: of dimension 2')],
                   'The marked node is (1,1): table 2 lists its messages.', scale=0.6)


def exchanges(torusctl):
    """{destination: [(exchange, dimension, start, end, step), ...]} for the blocks of node (1,1) under A3. An
    exchange on an array of three nodes takes two steps."""
    network, found = walk.Torus(MESH), {}
    for destination, legs in torusctl.routes_from_0(MESH, 'a3').items():
        node, ways = 0, []
        for step, dim, direction, hops in legs:
            if hops != 1:
                raise Failed(f'a3 on {MESH} has a leg of {hops} hops')
            end = network.neighbour(node, dim, direction)
            ways.append((step // 2 + 1, dim, node, end, step))
            node = end
        found[destination] = ways
    return found


def message(destination):
    return f'$m_{{(1,1)}}({destination // 3 + 1},{destination % 3 + 1})$'


def in_first(ways, dim):
    """The exchange in which a block moves in this dimension, or a dash."""
    return next((str(exchange) for exchange, way, *_ in ways if way == dim), '–')


def table(found):
    marks = []
    for column in range(3):
        x = 3.6 * column
        marks += [Text(x + 1.7, -0.9, f'For $A_{column + 1}$', 11), Text(x + 0.9, -0.25, 'message', 8),
                  Text(x + 2.2, -0.25, 'in $B_1$', 8),
                  Text(x + 2.95, -0.25, f'in $A_{column + 1}$', 8)]
        for row in range(3):
            destination = 3 * row + column
            y = 0.7 * row
            marks.append(Box(x, y, 1.8, 0.6, message(destination) if destination else '–',
                             FILLS[5] if destination else '#eeeeee', 9))
            if destination:
                marks += [Text(x + 2.2, y + 0.3, in_first(found[destination], 1)),
                          Text(x + 2.95, y + 0.3, in_first(found[destination], 0))]
    return Sketch('', marks, 'in $B_1$, in $A_j$: in which exchange torusd\'s a3 moves the message in this dimension',
                  margin=0.3)


def exchange_panel(found, number):
    """The hops of the messages of node (1,1) in one exchange. Messages that share a link are side by side."""
    marks, beside = mesh(dashed=False), {}
    for destination, ways in sorted(found.items()):
        for exchange, dim, start, end, step in ways:
            if exchange != number:
                continue
            lane = beside[start, end] = beside.get((start, end), -1) + 1
            (x, y), (u, v) = mesh_node(start), mesh_node(end)
            shift = 0.14 if lane == 0 else -0.14
            dx, dy = (shift, 0) if dim == 0 else (0, shift)
            marks.append(Arrow((x + dx, y + dy), (u + dx, v + dy), (BLUE, ORANGE)[dim], gap=0.36, width=1.6))
            name = f'{destination // 3 + 1},{destination % 3 + 1}'
            side = 0.42 if lane == 0 else -0.42
            at = ((x + u) / 2 + (side if dim == 0 else 0), (y + v) / 2 + (0 if dim == 0 else side * 0.62))
            marks.append(Text(*at, name, 7, (BLUE, ORANGE)[dim]))
    return Sketch(f'exchange {number}', marks, margin=0.25)


def table_two(torusctl):
    found = exchanges(torusctl)
    return Drawing(
        'products-table-2-drawn', 'Table 2: messages to be transferred from node (1,1)', [table(found)],
        'The printed messages, and the exchange in which torusd\'s a3 moves each on the mesh of Fig. 5.', scale=0.55)


def algorithm_three(torusctl):
    found = exchanges(torusctl)
    last = max(exchange for ways in found.values() for exchange, *_ in ways)
    return Drawing(
        'products-a3', 'Section 5: Algorithm A3 on the 3×3 mesh of Fig. 5, node (1,1)',
        [exchange_panel(found, number) for number in range(1, last + 1)],
        'The hops of the messages of node (1,1) in each exchange of torusd\'s a3. An exchange in A moves the '
        'messages that the exchange before has moved in B_1.', columns=3, scale=0.55, legend=[
            (ORANGE, 'in $B_1$ (dimension 2)'), (BLUE, 'in a copy of A (dimension 1)'),
            (FILL + FILLS[5], 'node (1,1)')])


# ---- Channel loads -------------------------------------------------------------------------------

def loads(torusctl):
    names = {'+0': '+ of\ndim. 1', '−0': '− of\ndim. 1', '+1': '+ of\ndim. 2', '−1': '− of\ndim. 2'}
    return Drawing(
        'products-loads', 'Section 5: channel load by step under Algorithms A2 and A3, 8×8 torus',
        [moves.heat(torusctl, '8x8', 'a2', 'A2: one dimension after another', names),
         moves.heat(torusctl, '8x8', 'a3', 'A3: both dimensions at the same time', names)],
        'Blocks on each channel in each step, from torusd\'s routes. White: no blocks.',
        unit='blocks on the channel')


MAKERS = (figure_one, figure_two, figure_five, table_two, algorithm_three, loads)
