"""Drawings of the slides on all-to-all broadcast: distances and circles, the buffers of a node, the broadcast
pattern, the groups of theorem 3, the timing chart of theorem 4, and channel loads. The slides do not number
their drawings. y grows upwards in nodes (x, y), as in the slides; the functions negate it."""

from .. import pattern, walk
from ..document import Failed
from . import moves
from .sketch import (AMBER, BLUE, FILL, FILLS, GREEN, GREY, INK, ORANGE, PURPLE, SKY, Arrow, Box,
                     Drawing, Line, Node, Sketch, Text)

SOURCE = INK
PHASES = (BLUE, ORANGE, GREEN, PURPLE, AMBER, SKY, '#7f3b08', GREY)
CIRCLES = ('#f4b183', '#cfe6f5', '#fdf0c4', '#cdeee2', '#f3d9e8', '#e3e0f5')


def flat(columns, rows, wraps=False):
    """The links between nodes (x, y) with coordinates in these ranges."""
    out = 0.45 if wraps else 0
    left, right, low, high = min(columns), max(columns), min(rows), max(rows)
    return ([Line([(left - out, -y), (right + out, -y)], '#c9c9c9') for y in rows]
            + [Line([(x, -low + out), (x, -high - out)], '#c9c9c9') for x in columns])


# ---- Distances and circles -----------------------------------------------------------------------

def distance(torusctl):
    del torusctl
    columns, rows = range(-2, 4), range(-2, 4)
    ends = {(-1, -1): 'P1', (2, 2): 'P2'}
    way = [(-1, -1), (0, -1), (1, -1), (2, -1), (2, 0), (2, 1), (2, 2)]
    marks = flat(columns, rows, True)
    marks += [Node(x, -y, f'{x},{y}', FILLS[2] if (x, y) in ends else FILLS[0], radius=0.33, size=7)
              for x in columns for y in rows]
    marks += [Arrow((a, -b), (c, -d), BLUE, gap=0.35, width=2.2) for (a, b), (c, d) in zip(way, way[1:])]
    found = sum(abs(a - b) for a, b in zip(way[0], way[-1]))
    return Drawing('broadcast-distance', 'Properties of 2D meshes and tori: the example of a distance',
                   [Sketch('Node (−1,−1) and node (2,2) in a mesh', marks,
                           f'{found}-neighbours: one of the shortest paths has {len(way) - 1} hops')],
                   scale=0.6)


def circled(title, columns, rows, found, wraps, name):
    """A panel of nodes with their distances from (0, 0), which found(x, y) returns."""
    at = {(x, y): found(x, y) for x in columns for y in rows}
    marks = flat(columns, rows, wraps)
    if not wraps:
        for radius in range(1, max(columns) + 1):
            corners = [(radius, 0), (0, radius), (-radius, 0), (0, -radius), (radius, 0)]
            marks.append(Line(corners, GREY, 1.2, dashed=True))
    marks += [Node(x, -y, str(d), CIRCLES[d % len(CIRCLES)], radius=0.3, size=9)
              for (x, y), d in at.items()]
    counts = [list(at.values()).count(d) for d in range(max(at.values()) + 1)]
    if name:
        return Sketch(title, marks, '\n'.join([f'diameter {len(counts) - 1}, perimeters $C_d$:',
                                               ', '.join(map(str, counts))]))
    return Sketch(title, marks, 'perimeters $C_d$:\n1, 4, 8, 12 … = $4d$')


def circles(torusctl):
    del torusctl
    sketches = [circled('an infinite mesh', range(-3, 4), range(-3, 4), lambda x, y: abs(x) + abs(y),
                        False, '')]
    sketches[0].marks = [mark for mark in sketches[0].marks
                         if not isinstance(mark, Node) or abs(mark.x) + abs(mark.y) <= 3]
    for n, low in ((5, -2), (4, -1)):
        torus = walk.Torus(f'{n}x{n}')

        def hops(x, y, torus=torus, n=n):
            return torus.distance(torus.node([0, 0]), torus.node([x % n, y % n]))

        sketches.append(circled(f'a {n}×{n} torus', range(low, low + n), range(low, low + n), hops, True,
                                'torus'))
    return Drawing('broadcast-circles', 'Circles centred at a node, with different radii', sketches,
                   'The number in a node is its distance from the centre. Nodes of one colour are a circle. The '
                   'links at the edges of a torus lead to the opposite side.', columns=3, scale=0.5)


# ---- A node --------------------------------------------------------------------------------------

def buffers(torusctl):
    del torusctl
    node = [Box(0, 0, 9, 6, '', '#fafafa'), Box(3.6, 2.1, 1.8, 1.8, 'buffer\nmatrix\n$n \\times n$', FILLS[3])]
    from . import all_port
    for x, y, across, side in ((4.5, 0.4, False, 2.1), (4.5, 4.3, False, 3.9), (1.6, 3.0, True, 3.6),
                               (6.2, 3.0, True, 5.4)):
        node += all_port.buffers(x, y, across, side)
    node += [Text(4.5, -0.6, '(x, y+1)'), Text(4.5, 6.6, '(x, y−1)'), Text(10.1, 3.0, '(x+1, y)'),
             Text(-1.1, 3.0, '(x−1, y)')]
    message = [Box(0, 0, 3, 0.9, 'source node\naddress', FILLS[2], size=8),
               Box(3, 0, 5, 0.9, 'message content', FILLS[1], size=9)]
    return Drawing('broadcast-node', 'Buffer structure of a node, and logical format of a message',
                   [Sketch('node (x, y): an input and an output buffer for each neighbour', node),
                    Sketch('a message', message)],
                   'torusd has a frame buffer for each link and direction. Its data messages contain the source and '
                   'the destination of each block.', columns=2, scale=0.45)


# ---- The broadcast pattern -----------------------------------------------------------------------

def to_the_letter(radius):
    ways = pattern.in_infinite_mesh(radius)
    marks = flat(range(-radius, radius + 1), range(-radius, radius + 1))
    marks += [Arrow((a, -b), (c, -d), PHASES[phase - 1], gap=0.2, width=1.8)
              for phase, (a, b), (c, d) in ways]
    nodes = {(0, 0)} | {node for _, _, node in ways}
    marks += [Node(x, -y, '', SOURCE if (x, y) == (0, 0) else FILLS[0], radius=0.17) for x, y in nodes]
    inside = [mark for mark in marks if not isinstance(mark, Line)]
    return Sketch('an infinite mesh, to the letter', inside,
                  f'cases 1 to 3: {len(nodes) - 1} nodes up to distance {radius},\n'
                  f'reached by {len(ways)} messages')


def as_run(torusctl, dims, title, source):
    """The tree on which torusd's yangwang broadcasts the block of one node."""
    torus, tree = walk.Torus(dims), {}
    n = torus.sizes[0]
    for start, destination, _, legs in torusctl.routes(dims, 'yangwang'):
        if start != source:
            continue
        node = source
        for _, dim, direction, hops in legs:
            for _ in range(hops):
                other = torus.neighbour(node, dim, direction)
                if tree.setdefault(other, (node, dim, direction)) != (node, dim, direction):
                    raise Failed(f'yangwang on {dims} reaches node {other} from two sides')
                node = other
    wraps = torus.wraps[0]
    marks = [Line([(-0.45 * wraps, y), (n - 1 + 0.45 * wraps, y)], '#c9c9c9') for y in range(n)]
    marks += [Line([(x, -0.45 * wraps), (x, n - 1 + 0.45 * wraps)], '#c9c9c9') for x in range(n)]
    for other, (node, dim, direction) in tree.items():
        phase = torus.distance(source, other)
        marks += moves.plane_arrow(torus.coordinates(node), dim, direction, 1, (n, n), PHASES[phase - 1],
                                   gap=0.2, width=1.8)
    marks += [Node(y, x, '', SOURCE if torus.node([x, y]) == source else FILLS[0], radius=0.17)
              for x in range(n) for y in range(n)]
    return Sketch(title, marks, f'torusd\'s yangwang reaches {len(tree)} nodes,\neach once')


def broadcast_pattern(torusctl):
    return Drawing(
        'broadcast-pattern', 'Broadcast pattern from source node (x0, y0)',
        [to_the_letter(4), as_run(torusctl, '9mx9m', 'a 9×9 mesh, trimmed at its boundary', 40),
         as_run(torusctl, '5x5', 'a 5×5 torus, with the additional check', 12)],
        'The colour of an arrow is its phase, which is the distance of its end from the source. The tori are '
        'drawn with dimension 0 of torusd downwards.',
        columns=3, scale=0.47, legend=[
            *((colour, f'phase {phase}') for phase, colour in enumerate(PHASES, 1)),
            (FILL + SOURCE, 'source')])


def groups(torusctl):
    """The four groups of k-neighbours in the proof of theorem 3."""
    del torusctl
    k = 4
    ways = (lambda i: (i, k - i), lambda i: (-k + i, i), lambda i: (-k + i, -i), lambda i: (i, -k + i))
    marks = flat(range(-k, k + 1), range(-k, k + 1))
    for name, colour, way in zip(('I', 'II', 'III', 'IV'), ('#a6d1ec', '#f9c49b', '#9bdcc2', '#e3b1cf'),
                                 ways):
        (a, b), (c, d) = way(0), way(k)
        marks.append(Line([(a, -b), (c, -d)], colour, 22))
        marks.append(Text((a + c) * 0.65, -(b + d) * 0.65, name, 11, bold=True))
    nodes = {way(i) for way in ways for i in range(k + 1)}
    marks += [Node(x, -y, f'{x},{y}', FILLS[0], radius=0.33, size=7) for x, y in nodes]
    marks.append(Node(0, 0, '$x_0,y_0$', AMBER, radius=0.4, size=7))
    return Drawing('broadcast-groups', 'Theorem 3: the 4k k-neighbours of node (x0, y0), k = 4',
                   [Sketch('', marks, f'{len(nodes)} nodes; the four on the axes are in two groups, so that '
                                      'each group has k + 1')],
                   'Coordinates are relative to (x0, y0).', scale=0.55)


# ---- The timing chart ----------------------------------------------------------------------------

LOADS = (1, 2, 3)  # messages on a channel in phases 1 to 3
ALPHA, GAMMA = 30, 0.01


def schedule(delta, send):
    """[(phase, start and end of switching, start and end of sending)] of one channel. The times begin after the
    startup. The channel switches one message at a time, and sends one at a time. The messages of a phase arrive
    when the first message of the phase before has been sent."""
    switched = sent = 0
    rows, there = [], 0
    for phase, count in enumerate(LOADS, 1):
        first = None
        for _ in range(count):
            begin = max(switched, there)
            switched = begin + delta
            start = max(switched, sent)
            sent = start + send
            rows.append((phase, begin, switched, start, sent))
            first = first or sent
        there = first
    return rows


def chart(title, delta, send, predicted):
    rows = schedule(delta, send)
    unit, startup = 1 / 8, 8.0
    marks = [Box(0, 0, startup * unit, 0.6, '$\\alpha$', '#dddddd'),
             Text(-0.25, 0.3, 'startup', 8, align='right'), Text(-0.25, 1.1, 'switching', 8, align='right'),
             Text(-0.25, 1.9, 'transmission', 8, align='right')]
    end = startup + rows[-1][-1]
    for phase, begin, switched, start, sent in rows:
        fill = FILLS[phase]
        at = [(startup + t) * unit for t in (begin, switched, start, sent)]
        marks += [Box(at[0], 0.8, at[1] - at[0], 0.6, '$\\delta$', fill, 8),
                  Box(at[2], 1.6, at[3] - at[2], 0.6, '$L\\gamma$', fill, 8)]
    marks += [Arrow((0, 2.75), (end * unit + 0.7, 2.75), INK, gap=0, width=1),
              Text(end * unit + 0.85, 2.75, 'time', 8, align='left')]
    firsts = [min(row[1] for row in rows if row[0] == phase) for phase in (1, 2, 3)]
    for phase, begin in enumerate(firsts, 1):
        x = (startup + begin) * unit
        marks.append(Line([(x, 0.7), (x, 2.75)], GREY, 0.9, dashed=True, below=False))
    marks.append(Line([(end * unit, 1.5), (end * unit, 2.85)], GREY, 0.9, dashed=True, below=False))
    total = ALPHA + rows[-1][-1]
    if abs(total - predicted) > 1e-6:
        raise Failed(f'the chart ends after {total} µs, theorem 4 in torusctl says {predicted} µs')
    return Sketch(title, marks, f'e.g. $\\alpha$ = {ALPHA} µs, $\\delta$ = {delta:g} µs, '
                  f'$L\\gamma$ = {send:g} µs: {total:g} µs in all, as by theorem 4 for six messages on a '
                  'channel', margin=0.35)


def timing(torusctl):
    """The chart has six messages on a channel, as many as a channel of a 5×5 torus carries in all."""
    sketches = []
    for letter, sign, delta, send in (('a', '\\leq', 5, 12), ('b', '>', 12, 5)):
        _, times = torusctl.predict('5x5', 'yangwang', '--ts', ALPHA, '--tw', GAMMA, '--rho', 0, '--tp',
                                    delta, '--block-size', round(send / GAMMA))
        sketches.append(chart(f'({letter}) $\\delta {sign} L\\gamma$', delta, send,
                              times[0]['formula_time_us']))
    return Drawing('broadcast-timing',
                   'Theorem 4: the total delay of the first three phases of all-to-all broadcast', sketches,
                   'One channel that sends 1, 2 and 3 messages. Both ends agree with torusctl predict for a 5×5 '
                   'torus, in which a channel also carries six messages.', columns=1, scale=0.62, legend=[
                       (FILL + FILLS[phase], f'phase {phase}') for phase in (1, 2, 3)])


# ---- Channel loads -------------------------------------------------------------------------------

def loads(torusctl):
    names = {'+1': '+x', '−1': '−x', '+0': '+y', '−0': '−y'}
    return Drawing(
        'broadcast-loads', 'Theorem 3 and corollary 1: channel load by step, 9×9 torus',
        [moves.heat(torusctl, '9x9', 'yangwang', 'broadcast pattern (yangwang)', names),
         moves.heat(torusctl, '9x9', 'saadschultz', 'Saad, Schultz', names)],
        'Blocks on each channel in each step, from torusd\'s routes. White: no blocks.',
        unit='blocks on the channel')


MAKERS = (distance, circles, buffers, broadcast_pattern, groups, timing, loads)
