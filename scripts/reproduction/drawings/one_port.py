"""Drawings of the paper on one-port tori: figures 1 and 3 to 6, and channel loads."""

from itertools import product

from .. import walk
from ..document import Failed
from . import all_port, moves
from .sketch import (BLUE, FILL, FILLS, GREEN, INK, ORANGE, PURPLE, Arrow, Box, Drawing, Line,
                     Node, Sketch, Text)


def figure_one(torusctl):
    del torusctl
    node = [Box(0, 0, 8.4, 5.6, '', '#fafafa'), Box(0.4, 0.4, 2.2, 0.9, 'processor', FILLS[1]),
            Box(0.4, 1.9, 2.2, 0.9, 'local memory', FILLS[3]),
            Box(3.5, 0.9, 1.6, 1.2, 'network\ninterface', FILLS[5]),
            Box(5.6, 3.0, 1.6, 1.4, 'router', FILLS[2]),
            Arrow((1.5, 1.3), (1.5, 1.9), INK, gap=0.03, both=True),
            Arrow((2.6, 0.9), (3.5, 1.3), INK, gap=0.05, both=True),
            Arrow((2.6, 2.2), (3.5, 1.8), INK, gap=0.05, both=True),
            Arrow((4.7, 2.1), (5.75, 3.0), INK, gap=0.05), Arrow((6.2, 3.0), (5.1, 2.0), INK, gap=0.05),
            Text(4.6, 2.75, 'one port', 8), Text(6.4, -0.7, 'upper'), Text(6.4, 6.3, 'lower'),
            Text(9.4, 3.7, 'right'), Text(-0.9, 3.7, 'left')]
    for begin, end in (((6.4, 3.0), (6.4, -0.4)), ((6.4, 4.4), (6.4, 6.0)), ((7.2, 3.7), (8.9, 3.7)),
                       ((5.6, 3.7), (-0.5, 3.7))):
        node.append(Arrow(begin, end, INK, gap=0.03, both=True))
    return Drawing(
        'one-port-fig-1', 'Fig. 1: the structure of a typical 4×4 torus',
        [Sketch('4×4 torus', all_port.torus_4x4((1, 2))), Sketch('a node', node)],
        'One port: a node sends at most one message and receives at most one at a time, while its router '
        'relays others.', scale=0.48)


# ---- Fig. 3 --------------------------------------------------------------------------------------

def figure_three(torusctl):
    moved = moves.messages(torusctl, '12', 'ar1')
    titles = ['Step 1: neighbours swap', *(f'Step {k + 2}: rings turn, $k = {k}$'
                                           for k in range(len(moved) - 2)),
              f'Step {len(moved)}: neighbours swap']
    return Drawing(
        'one-port-fig-3', 'Fig. 3: complete exchange on a ring of 12 nodes',
        [all_port.ring_step(title, moved[step], 12, 'PE', 2.9, False)
         for step, title in enumerate(titles)],
        'The combined messages of torusd\'s ar1 in each step. The messages of even and of odd nodes turn in '
        'opposite directions, and become fewer.', columns=4, legend=[
            (BLUE, 'clockwise'), (ORANGE, 'anticlockwise'), (FILL + FILLS[0], 'even nodes'),
            (FILL + FILLS[5], 'odd nodes')])


# ---- Fig. 4: the binary 4-cube -------------------------------------------------------------------

def cube_place(x, y, s, t):
    """The place of a node. Each X-Y plane is a square; S grows downwards, T to the right. The slant keeps lines
    away from other nodes."""
    return 1.5 * y + 4.0 * t + 0.55 * x, 1.5 * x + 4.0 * s + 0.55 * y


COLOURS = (BLUE, ORANGE, GREEN, PURPLE)
AXES = ('X', 'Y', 'S', 'T')


def even_nodes():
    return [at for at in product((0, 1), repeat=4) if sum(at) % 2 == 0]


def swaps(torusctl, dims='8x8x8x8'):
    """For each step of phase 2, [(node, dimension, other node, blocks)] of the even nodes of one 4-cube. Raises
    Failed if the other node does not send as many blocks back."""
    torus, found = walk.Torus(dims), []
    steps = torusctl.plan(dims, 'pt')['startups']
    for step in range(steps - 4, steps):
        found.append([])
        for at in even_nodes():
            answer = torusctl('plan', '--dims', dims, '--algorithm', 'pt', '--node', torus.node(at))
            sends, receives = ([m for m in answer['messages'] if (m['step'], m['does']) == (step, does)]
                               for does in ('sends', 'receives'))
            for sent, received in zip(sends, receives, strict=True):
                if (sent['node'], sent['blocks']) != (received['node'], received['blocks']):
                    raise Failed(f'step {step} of pt on {dims}: node {at} sends to one node and receives from '
                                 'another')
                found[-1].append((at, int(sent['port'][1:]), sent['node'], sent['blocks']))
    return found


def figure_four(torusctl):
    torus, sketches = walk.Torus('8x8x8x8'), []
    for step, pairs in enumerate(swaps(torusctl), 1):
        marks, dims = [], {dim for _, dim, _, _ in pairs}
        for at in product((0, 1), repeat=4):
            for dim in range(4):
                if at[dim] == 0:
                    other = at[:dim] + (1,) + at[dim + 1:]
                    marks.append(Line([cube_place(*at), cube_place(*other)], '#d8d8d8', 0.8))
        for at, dim, node, _ in pairs:
            other = [c % 2 for c in torus.coordinates(node)]
            marks.append(Arrow(cube_place(*at), cube_place(*other), COLOURS[dim], gap=0.42, both=True,
                               width=2, bend=0))
        marks += [Node(*cube_place(*at), ''.join(map(str, at)), FILLS[sum(at) % 2], radius=0.38, size=7)
                  for at in product((0, 1), repeat=4)]
        blocks = moves.same(count for *_, count in pairs)
        axes = ', '.join(AXES[dim] for dim in sorted(dims))
        sketches.append(Sketch(f'Step {step}: along {axes}', marks,
                               f'$N_1N_2N_3N_4/2$ = {blocks} messages each way', margin=0.2))
    return Drawing(
        'one-port-fig-4', 'Fig. 4: communication pattern in phase 2 on a 4D torus', sketches,
        'A binary 4-cube of torusd\'s pt on 8×8×8×8. The digits in a node are its x, y, s and t modulo 2. In '
        'each step every node swaps messages with its neighbour in one dimension.', columns=2, legend=[
            *zip(COLOURS, AXES), (FILL + FILLS[0], 'even nodes'), (FILL + FILLS[1], 'odd nodes')])


# ---- Figs. 5 and 6: three dimensions -------------------------------------------------------------

CUBE = '6x6x6'
GROUPS = (FILLS[0], FILLS[1], FILLS[2])
THREE = (BLUE, ORANGE, GREEN)


def figure_five(torusctl):
    torus, moved = walk.Torus(CUBE), moves.messages(torusctl, CUBE, 'mt')
    sketches = []
    for step in range(3):
        marks = moves.lattice(6, 6, lambda x, y: '', lambda x, y: GROUPS[(x + y) % 3], radius=0.27)
        along = {}
        for start, dim, direction, hops in sorted(moved[step]):
            x, y, z = torus.coordinates(start)
            if z != 0:
                continue
            along.setdefault((x + y) % 3, set()).add('xyz'[dim])
            if dim < 2:
                marks += moves.plane_arrow((x, y), dim, direction, hops, (6, 6), THREE[dim])
            else:
                marks += [Node(y, x, '', THREE[2], radius=0.1)]
        lines = ', '.join(f'$G_{group}$ along {", ".join(sorted(dims))}'
                          for group, dims in sorted(along.items()))
        sketches.append(Sketch(f'Step {step + 1}', marks + moves.axes_labels(6), lines, margin=0.3))
    return Drawing(
        'one-port-fig-5', 'Fig. 5: communication pattern in phase 1 on a 3D torus', sketches,
        'The plane z = 0 of a 6×6×6 torus under torusd\'s mt. Each group runs AR1 on rings of every third '
        'node. Here such a ring has 2 nodes, which swap messages. Lines that end beside the plane continue '
        'at the opposite side.', columns=3, legend=[
            (BLUE, 'along x'), (ORANGE, 'along y'), (FILL + GREEN, 'dot: along z, out of the plane'),
            *((FILL + fill, f'$G_{i}$') for i, fill in enumerate(GROUPS))])


def figure_six(torusctl):
    torus, moved = walk.Torus(CUBE), moves.messages(torusctl, CUBE, 'mt')
    sketches = []
    for number, step in enumerate(sorted(moved)[3:], 1):
        axis = moves.same(dim for _, dim, _, _ in moved[step])
        shown = (0, 1) if axis < 2 else (2, 1)  # down, right
        hidden = 2 if axis < 2 else 0
        marks = moves.lattice(3, 3, lambda x, y: f'{x}{y}', lambda x, y: FILLS[0], wraps=False)
        for start, dim, direction, hops in sorted(moved[step]):
            at = torus.coordinates(start)
            if at[hidden] == 0 and max(at) < 3:
                place = at[shown[0]], at[shown[1]]
                marks += moves.plane_arrow(place, shown.index(dim), direction, hops, (3, 3),
                                           THREE[dim], width=1.8)
        count = moves.same(map(len, moved[step].values()))
        letters = 'xyz'[shown[0]], 'xyz'[shown[1]]
        sketches.append(Sketch(f'Step {number}: along {"xyz"[axis]}',
                               marks + moves.axes_labels(3, *letters),
                               f'{moves.counted(count)} on each arrow', margin=0.35))
    return Drawing(
        'one-port-fig-6', 'Fig. 6: complete exchange in a 3D sub-mesh of 3×3×3 nodes (phase 2)', sketches,
        'One plane of a sub-mesh under torusd\'s mt on 6×6×6: z = 0 in steps 1 to 4, x = 0 in steps 5 and 6. '
        'The digits in a node are its coordinates downwards and to the right.', columns=6, scale=0.6, legend=[
            (BLUE, 'along x'), (ORANGE, 'along y'), (GREEN, 'along z')])


# ---- Channel loads -------------------------------------------------------------------------------

def loads(torusctl):
    return Drawing(
        'one-port-loads', 'Sections 3, 4 and 5.2: channel load by step',
        [moves.heat(torusctl, '12', 'ar1', 'AR1, ring of 12'),
         moves.heat(torusctl, '8x8', 'at2-1port', 'AT2, 8×8'),
         moves.heat(torusctl, CUBE, 'mt', 'MT3, 6×6×6'),
         moves.heat(torusctl, '8x8', 'a2', 'for comparison: A2, 8×8')],
        'Blocks on each channel in each step, from torusd\'s routes. White: no blocks. The name of a port is its '
        'direction and its dimension. Channels of a port are sorted by node.', unit='blocks on the channel')


MAKERS = (figure_one, figure_three, figure_four, figure_five, figure_six, loads)
