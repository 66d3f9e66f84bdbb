"""Drawings of the paper on all-port tori: figures 1, 3 and 4, and channel loads."""

from . import moves
from .sketch import (AMBER, BLUE, FILL, FILLS, GREEN, GREY, INK, ORANGE, PURPLE, Arrow, Box, Drawing, Line,
                     Node, Sketch, Text, sets)

PORTS = {'+0': 'lower\nports', '−0': 'upper\nports', '+1': 'right\nports', '−1': 'left\nports'}


def torus_4x4(highlighted):
    """A 4×4 torus in which one node is marked."""
    marks = []
    for i in range(4):
        marks += [Line([(0, i), (3, i)]), Line([(i, 0), (i, 3)])]
        for a, b in (((-0.55, i), (0, i)), ((3, i), (3.55, i)), ((i, -0.55), (i, 0)),
                     ((i, 3), (i, 3.55))):
            marks.append(Line([a, b]))
    marks += [Node(y, x, '', FILLS[2] if (x, y) == highlighted else FILLS[1], radius=0.22)
              for x in range(4) for y in range(4)]
    x, y = highlighted
    return marks + [Box(y - 0.4, x - 0.4, 0.8, 0.8, dashed=True)]


def buffers(x, y, across, router):
    """The input and the output buffer of one direction. `across`: the channels are horizontal. `router` is the
    coordinate of the side of the router that the buffers are connected to."""
    marks = []
    for what, off in (('in', -0.36), ('out', 0.36)):
        if across:
            marks.append(Box(x, y + off - 0.22, 1.2, 0.44, what, FILLS[5], size=8))
            outer = (9, y + off) if x > router else (0, y + off)
            inner, side = (x if x > router else x + 1.2, y + off), (router, y + off)
            far = (x + 1.2 if x > router else x, y + off)
        else:
            marks.append(Box(x + off - 0.25, y, 0.5, 1.3, what, FILLS[5], size=8))
            outer = (x + off, 6) if y > router else (x + off, 0)
            inner, side = (x + off, y if y > router else y + 1.3), (x + off, router)
            far = (x + off, y + 1.3 if y > router else y)
        beyond = [2 * a - b if a != b else a for a, b in zip(outer, far)]
        beyond = [a + max(-0.3, min(0.3, b - a)) for a, b in zip(outer, beyond)]
        if what == 'in':
            marks += [Arrow(inner, side, INK, gap=0.02), Arrow(tuple(beyond), far, INK, gap=0.02)]
        else:
            marks += [Arrow(side, inner, INK, gap=0.02), Arrow(far, tuple(beyond), INK, gap=0.02)]
    return marks


def figure_one(torusctl):
    del torusctl
    node = [Box(0, 0, 9, 6, '', '#fafafa'), Box(0.4, 0.5, 2.2, 1.2, 'processor', FILLS[1]),
            Box(6.3, 0.5, 2.3, 1.2, 'buffer matrix', FILLS[3]),
            Box(3.6, 2.2, 1.8, 1.6, 'router', FILLS[2]),
            Arrow((2.6, 1.5), (3.6, 2.4), INK, gap=0.05, both=True),
            Arrow((5.4, 2.4), (6.3, 1.5), INK, gap=0.05, both=True)]
    for x, y, across, router in ((4.5, 0.4, False, 2.2), (4.5, 4.3, False, 3.8),
                                 (1.6, 3.0, True, 3.6), (6.2, 3.0, True, 5.4)):
        node += buffers(x, y, across, router)
    node += [Text(4.5, -0.5, 'upper channels'), Text(4.5, 6.5, 'lower channels'),
             Text(9.9, 3.0, 'right\nchannels'), Text(-0.9, 3.0, 'left\nchannels')]
    return Drawing(
        'all-port-fig-1', 'Fig. 1: the internal structure of a node in a 4×4 all-port torus',
        [Sketch('4×4 torus', torus_4x4((1, 2))), Sketch('a node', node)],
        'Each pair of channels has two first-in-first-out buffers. torusd has a socket for each link and a '
        'frame buffer for each direction.', scale=0.48)


# ---- Fig. 3 --------------------------------------------------------------------------------------

STAGES = ('Stage 1', 'Stage 2, $k = 0$', 'Stage 2, $k = 1$', 'Stage 3, $k = 0$')


def ring_step(title, moved, nodes, name, radius=2.0, spelled=True):
    """A panel with one step on a ring. The caption has the number of messages on each arrow, and the messages of
    nodes 0 and 1 if they are spelled."""
    marks = moves.ring(nodes, radius, name, (FILLS[0], FILLS[5]))
    lines = [f'{moves.counted(moves.same(map(len, moved.values())))} on each arrow']
    for (start, _, direction, hops), blocks in sorted(moved.items()):
        marks.append(moves.ring_arrow(start, direction, hops, nodes, radius,
                                      BLUE if direction > 0 else ORANGE))
        if spelled and start < 2:
            end = (start + direction * hops) % nodes
            lines.append(f'${name}_{{{start}}}$ sends {sets(blocks)} to ${name}_{{{end}}}$')
    return Sketch(title, marks, '\n'.join(lines), margin=0.3)


def figure_three(torusctl):
    moved = moves.messages(torusctl, '8', 'ar')
    return Drawing(
        'all-port-fig-3', 'Fig. 3: complete exchange on an all-port ring of 8 nodes',
        [ring_step(title, moved[step], 8, 'P') for step, title in enumerate(STAGES)],
        'The combined messages of torusd\'s ar in each step. M^s_d is the message from P_s to P_d, as in '
        'Fig. 2.', columns=4, legend=[
            (BLUE, 'clockwise (positive)'), (ORANGE, 'anticlockwise (negative)'),
            (FILL + FILLS[0], 'even sub-ring'), (FILL + FILLS[5], 'odd sub-ring')])


# ---- Fig. 4 --------------------------------------------------------------------------------------

GROUPS = {(0, 0): FILLS[0], (0, 1): FILLS[1], (1, 0): FILLS[2], (1, 1): FILLS[3]}
SIZES = 8, 8
CENTRE = 4, 4  # of G00


def plane(marked=None):
    return moves.lattice(*SIZES, lambda x, y: f'{x % 2}{y % 2}',
                         lambda x, y: AMBER if (x, y) == marked else GROUPS[x % 2, y % 2],
                         radius=0.27, size=7)


def phase_one(moved):
    """The messages of P(x0, y0) in step 1, and their second hop in step 2."""
    marks = plane(CENTRE) + [Box(y - 0.42, x - 0.42, 1.84, 1.84, dashed=True, colour=GREY)
                       for x in range(0, 8, 2) for y in range(0, 8, 2)]
    source = CENTRE[0] * SIZES[1] + CENTRE[1]
    counts = []
    for step, colour in ((0, GREEN), (1, PURPLE)):
        for (start, dim, direction, hops), blocks in sorted(moved[step].items()):
            own = [block for block in blocks if block[0] == source]
            if own:
                marks += moves.plane_arrow(divmod(start, 8), dim, direction, hops, SIZES, colour,
                                           width=2.2)
                counts.append((step, len(own)))
    first, second = (moves.same(count for at, count in counts if at == step) for step in (0, 1))
    return Sketch('(a) Phase 1', marks,
                  f'step 1: $r{{\\cdot}}c/8 + r{{\\cdot}}c/16$ = {first} messages of $P(x_0, y_0)$ on each arrow\n'
                  f'step 2: $r{{\\cdot}}c/16$ = {second} of them on each arrow', margin=0.35)


def later_phase(title, moved, row_groups):
    marks = plane()
    for (start, dim, direction, hops), _ in sorted(moved.items()):
        marks += moves.plane_arrow(divmod(start, 8), dim, direction, hops, SIZES,
                                   BLUE if dim == 1 else ORANGE, width=1)
    count = moves.same(map(len, moved.values()))
    return Sketch(title, marks, f'first step of algorithm AR: {moves.counted(count)} on each arrow\n'
                  f'{row_groups} along rows, the others along columns', margin=0.35)


def figure_four(torusctl):
    moved = moves.messages(torusctl, '8x8', 'at2')
    half = (max(moved) - 1) // 2
    found = {}
    for phase in (2, 2 + half):
        rows = {(start // 8 % 2, start % 2) for start, dim, _, _ in moved[phase] if dim == 1}
        found[phase] = ' and '.join(f'$G_{{{i}{j}}}$' for i, j in sorted(rows))
    return Drawing(
        'all-port-fig-4', 'Fig. 4: communication pattern on an all-port 2D torus',
        [phase_one(moved), later_phase('(b) Phase 2', moved[2], found[2]),
         later_phase('(c) Phase 3', moved[2 + half], found[2 + half])],
        'torusd\'s at2 on an 8×8 torus. The number of a node is that of its group G_ij. Lines that end '
        'beside the torus continue at the opposite side.', columns=3, scale=0.5, legend=[
            (GREEN, '(a) step 1'), (PURPLE, '(a) step 2'), (BLUE, '(b), (c) along rows'),
            (ORANGE, '(b), (c) along columns'),
            (FILL + AMBER, '$P(x_0, y_0)$'), (GREY, 'sub-mesh 2×2')])


# ---- Channel loads -------------------------------------------------------------------------------

def loads(torusctl):
    return Drawing(
        'all-port-loads', 'Sections 3.A and 4.B: channel load by step',
        [moves.heat(torusctl, '8', 'ar', 'AR, ring of 8', {'+0': 'positive', '−0': 'negative'}),
         moves.heat(torusctl, '8x8', 'at2', 'AT2, 8×8', PORTS),
         moves.heat(torusctl, '8x12', 'at2', 'AT2, 8×12: the columns\' rings are shorter', PORTS),
         moves.heat(torusctl, '8x8', 'direct', 'direct exchange, 8×8', PORTS)],
        'Blocks on each channel in each step, from torusd\'s routes. White: no blocks. The paper says that '
        'all communication links are fully utilized: on rings and square tori no channel is idle in any '
        'step, and all channels of a step have the same load. Channels of a port are sorted by node.',
        unit='blocks on the channel')


MAKERS = (figure_one, figure_three, figure_four, loads)
