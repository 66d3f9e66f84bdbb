"""The broadcast pattern of Yang and Wang as its paper prints it: functions U, I and mod2, cases 1 to
3 and the additional check. For tori on which it is not right, so that torusctl has no schedule."""

from collections import Counter


def U(x):
    return int(x > 0)


def I(x):
    return 1 if x > 0 else -1


def neighbours(x, y):
    """Those to which the node at (x, y), relative to the source, sends."""
    if x == y == 0:  # case 1
        return [(0, 1), (0, -1), (1, 0), (-1, 0)]
    if x == 0:  # case 2.1
        return [(x + (y + U(I(y))) % 2, y + I(y) * ((y + 1 - U(I(y))) % 2)),
                (x - (y + U(-I(y))) % 2, y + I(y) * ((y + 1 - U(-I(y))) % 2))]
    if y == 0:  # case 2.2
        return [(x + I(x) * ((x + U(I(x))) % 2), y + (x + 1 - U(I(x))) % 2),
                (x + I(x) * ((x + U(-I(x))) % 2), y - (x + 1 - U(-I(x))) % 2)]
    same = U(I(x) * I(y))  # case 3
    return [(x + I(x) * ((x + y + same) % 2), y + I(y) * ((x + y + 1 - same) % 2))]


def flood(n):
    """On an n x n torus: (nodes that get the block again, blocks on the busiest channel)."""
    def distance(node):
        return sum(min(abs(offset), n - abs(offset)) for offset in node)

    reached, twice, sent = {(0, 0)}, 0, Counter()
    nodes = [(0, 0)]
    for node in nodes:
        for other in neighbours(*node):
            if distance(node) >= distance(other):  # additional check
                continue
            # Every source's block does the same, so a channel carries one for each such send.
            sent[other[0] - node[0], other[1] - node[1]] += 1
            place = other[0] % n, other[1] % n
            if place in reached:
                twice += 1
            else:
                reached.add(place)
                nodes.append(other)
    assert len(reached) == n * n
    return twice, max(sent.values())
