"""The messages of a schedule, from torusctl's routes, and the marks that draw them on rings and planes."""

from collections import defaultdict
from math import cos, pi, sin

from .. import walk
from ..document import Failed
from .sketch import GREY, INK, Arrow, Heat, Line, Node, Text


def messages(torusctl, dims, algorithm):
    """{step: {(start, dim, direction, hops): [(source, destination), ...]}}. Only the first segment of a block
    counts."""
    torus, moved = walk.Torus(dims), defaultdict(lambda: defaultdict(list))
    for source, destination, segment, legs in torusctl.routes(dims, algorithm):
        node = source
        for step, dim, direction, hops in legs:
            if segment == 0:
                moved[step][node, dim, direction, hops].append((source, destination))
            for _ in range(hops):
                node = torus.neighbour(node, dim, direction)
    return moved


def same(values):
    """The common value of all of these. Raises Failed if they differ."""
    different = set(values)
    if len(different) != 1:
        raise Failed(f'not all the same: {sorted(different)}')
    return different.pop()


def counted(number, what='message'):
    return f'{number} {what}{"" if number == 1 else "s"}'


# ---- Rings ---------------------------------------------------------------------------------------

def on_circle(number, nodes, radius):
    """The place of a node of a ring. Nodes are numbered clockwise from the top."""
    angle = 2 * pi * number / nodes
    return radius * sin(angle), -radius * cos(angle)


def ring(nodes, radius, name, fills):
    """The nodes of a ring and the links between them. Even nodes have fills[0], odd nodes fills[1]."""
    places = [on_circle(i, nodes, radius) for i in range(nodes)]
    marks = [Line([places[i], places[(i + 1) % nodes]], GREY) for i in range(nodes)]
    return marks + [Node(x, y, f'${name}_{{{i}}}$', fills[i % 2], radius=0.36)
                    for i, (x, y) in enumerate(places)]


def ring_arrow(start, direction, hops, nodes, radius, colour):
    """An arrow on a ring. It is bent outwards if it goes clockwise, else inwards, and passes beside the nodes in
    between."""
    ends = on_circle(start, nodes, radius), on_circle(start + direction * hops, nodes, radius)
    length = 2 * radius * sin(pi * hops / nodes)
    beyond = radius * (1 - cos(pi * hops / nodes))  # distance of the nodes in between from the straight line
    if hops == 1:
        bend = 0.16
    elif direction > 0:
        bend = (beyond + 0.52) / length
    else:
        bend = max(0, 0.52 - beyond) / length
    return Arrow(*ends, colour, bend=bend, gap=0.4)


# ---- Planes --------------------------------------------------------------------------------------

def lattice(rows, columns, label=lambda x, y: '', fill=lambda x, y: '#ffffff', wraps=True, **more):
    """The nodes P(x, y) of a torus or mesh and their links. x grows downwards, y to the right."""
    out = 0.45 if wraps else 0
    marks = [Line([(-out, x), (columns - 1 + out, x)], '#c9c9c9') for x in range(rows)]
    marks += [Line([(y, -out), (y, rows - 1 + out)], '#c9c9c9') for y in range(columns)]
    return marks + [Node(y, x, label(x, y), fill(x, y), **more)
                    for x in range(rows) for y in range(columns)]


def plane_arrow(at, axis, direction, hops, sizes, colour, gap=0.3, **more):
    """The arrows of a message from the node at (x, y) along x (axis 0) or y (axis 1). A message that wraps has
    two: one is cut off beside the plane, the other enters at the opposite side."""
    x, y = at
    end = [x, y]
    end[axis] += direction * hops
    bend = 0 if hops == 1 else 0.38 / hops
    if 0 <= end[axis] < sizes[axis]:
        return [Arrow((y, x), (end[1], end[0]), colour, bend=bend, gap=gap, **more)]
    begin = [x, y]
    begin[axis] -= direction * sizes[axis]
    inside = list(end)
    inside[axis] -= direction * sizes[axis]
    window = -0.6, -0.6, sizes[1] - 0.4, sizes[0] - 0.4
    return [Arrow((y, x), (end[1], end[0]), colour, bend=bend, gap=gap, head=False, window=window, **more),
            Arrow((begin[1], begin[0]), (inside[1], inside[0]), colour, bend=bend, gap=gap, window=window,
                  **more)]


def axes_labels(rows, down='x', right='y'):
    """Two short arrows that show the directions of the coordinates."""
    return [Arrow((-1.0, -0.75), (-0.2, -0.75), INK, gap=0, width=0.9),
            Arrow((-1.0, -0.75), (-1.0, 0.05), INK, gap=0, width=0.9),
            Text(0.0, -0.75, f'${right}$'), Text(-1.0, 0.3, f'${down}$')]


# ---- Channel loads -------------------------------------------------------------------------------

def heat(torusctl, dims, algorithm, title, names=None):
    """The blocks on every channel in every step. Channels are grouped by their port and sorted by their node."""
    loads = torusctl.walk(dims, algorithm).loads
    torus = walk.Torus(dims)
    segments = len({segment for *_, segment, _ in torusctl.routes(dims, algorithm)})
    rows, groups = [], []
    for dim in range(len(torus.sizes)):
        for direction in (1, -1):
            channels = [node for node in range(torus.nodes)
                        if torus.neighbour(node, dim, direction) is not None]
            port = f'{"+" if direction > 0 else "−"}{dim}'
            groups.append((len(rows), (names or {}).get(port, port)))
            rows += [[load.get((node, dim, direction), 0) / segments for load in loads]
                     for node in channels]
    return Heat(title, rows, groups)
