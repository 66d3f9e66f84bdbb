"""The broadcast pattern of Yang and Wang, cases 1 to 3 and the check for tori, to the letter.

Independent of the schedules of torusd. Nodes are (x, y) relative to the source. On a torus these are
hops of a shortest path; of a node halfway round, which has two of them, the positive one."""

from collections import Counter


def _u(x):
    return 1 if x > 0 else 0


def _i(x):
    return 1 if x > 0 else -1


def _next(x, y):
    """The nodes that (x, y) passes a block on to."""
    if x == 0 and y == 0:  # case 1
        return [(x, y + 1), (x, y - 1), (x + 1, y), (x - 1, y)]
    if x == 0:  # case 2.1
        i = _i(y)
        return [(x + (y + _u(i)) % 2, y + i * ((y + 1 - _u(i)) % 2)),
                (x - (y + _u(-i)) % 2, y + i * ((y + 1 - _u(-i)) % 2))]
    if y == 0:  # case 2.2
        i = _i(x)
        return [(x + i * ((x + _u(i)) % 2), y + (x + 1 - _u(i)) % 2),
                (x + i * ((x + _u(-i)) % 2), y - (x + 1 - _u(-i)) % 2)]
    same = _u(_i(x) * _i(y))  # case 3
    return [(x + _i(x) * ((x + y + same) % 2), y + _i(y) * ((x + y + 1 - same) % 2))]


def edges(keep, place=lambda node: node):
    """[(phase, node, next node)] for the hops of a block from (0, 0), limited to hops for which keep(node, next
    node) is true. A node that the block reaches again does not pass it on again. `place` names a node after a
    hop."""
    found, reached, known = [], [(0, 0)], {(0, 0)}
    while reached:
        new = []
        for node in reached:
            for other in filter(lambda other: keep(node, other), _next(*node)):
                found.append((1 + sum(map(abs, node)), node, other))
                if place(other) not in known:
                    known.add(place(other))
                    new.append(place(other))
        reached = new
    return found


def in_infinite_mesh(radius):
    return edges(lambda node, other: abs(other[0]) + abs(other[1]) <= radius)


def in_torus(n):
    def near(c):
        return c % n if 2 * (c % n) <= n else c % n - n

    def distance(node):
        return sum(abs(near(c)) for c in node)

    return edges(lambda node, other: distance(node) < distance(other),
                 lambda node: (near(node[0]), near(node[1])))


def in_mesh(n, x, y):
    """From the node (x, y) of an n×n mesh."""
    return edges(lambda _, other: 0 <= x + other[0] < n and 0 <= y + other[1] < n)


def reached_twice(n):
    """The nodes of an n×n torus that a block reaches more than once; it reaches every node."""
    times = Counter((x % n, y % n) for _, _, (x, y) in in_torus(n))
    assert len(times) == n * n - 1 and (0, 0) not in times
    return sum(count > 1 for count in times.values())


def by_channel(ways):
    """{phase: {direction: blocks}} on a channel. Because all nodes look and send alike, a channel carries as many
    blocks in a phase as one block makes hops in that direction."""
    loads = {}
    for phase, (a, b), (x, y) in ways:
        loads.setdefault(phase, Counter())[x - a, y - b] += 1
    return loads


def torus_load(n):
    """The most blocks on any channel of an n×n torus."""
    loads = sum(by_channel(in_torus(n)).values(), Counter())
    return max(loads.values())


def mesh_load(n):
    """The most blocks on any channel of an n×n mesh."""
    loads = Counter((x + a, y + b, x + c, y + d) for x in range(n) for y in range(n)
                    for _, (a, b), (c, d) in in_mesh(n, x, y))
    return max(loads.values())
