"""The messages of a schedule, made from its routes, independently of torusctl simulate."""

from dataclasses import dataclass, field


class Torus:
    def __init__(self, dims):
        self.dims = dims
        self.sizes = [int(size.rstrip('m')) for size in dims.split('x')]
        self.wraps = [not size.endswith('m') for size in dims.split('x')]
        self.nodes = 1
        for size in self.sizes:
            self.nodes *= size

    def at(self, node):
        coordinates = []
        for size in reversed(self.sizes):
            node, rest = divmod(node, size)
            coordinates.insert(0, rest)
        return coordinates

    def rank(self, coordinates):
        node = 0
        for size, coordinate in zip(self.sizes, coordinates):
            node = node * size + coordinate % size
        return node

    def next(self, node, dim, direction):
        coordinates = self.at(node)
        coordinates[dim] += direction
        assert self.wraps[dim] or 0 <= coordinates[dim] < self.sizes[dim]
        return self.rank(coordinates)

    def offset(self, source, destination):
        return self.rank([b - a for a, b in zip(self.at(source), self.at(destination))])


@dataclass
class Message:
    order: tuple  # decides last
    step: int
    start: int
    path: list  # (node, dimension, direction, node at the end)
    units: int = 0
    startup: int = 0
    beyond: int = 0
    earliest: int = 0
    needs: set = field(default_factory=set)  # messages


def port(dim, direction):
    return 2 * dim + (direction < 0)


def path_of(torus, node, legs):
    path = []
    for _, dim, direction, hops in legs:
        for _ in range(hops):
            path.append((node, dim, direction, torus.next(node, dim, direction)))
            node = path[-1][3]
    return path


def with_lanes(torus, messages):
    """Adds the lane to each channel: 1 from the hop of a message on which the coordinate jumps over the end of a ring."""
    for message in messages:
        second = set()
        for hop, (node, dim, direction, end) in enumerate(message.path):
            if torus.wraps[dim] and torus.at(end)[dim] - torus.at(node)[dim] != direction:
                second.add(dim)
            message.path[hop] = node, dim, direction, end, int(dim in second)
    return messages


def stepped(torus, routes, startup, allgather):
    messages = {}
    for source, _, _, legs in routes:
        node, before, left = source, None, sum(leg[3] for leg in legs)
        for number, leg in enumerate(legs):
            step, dim, direction, hops = leg
            key = step, node, port(dim, direction), hops
            path = path_of(torus, node, [leg])
            message = messages.setdefault(key, Message(key, step, node, path, startup=startup))
            if not allgather or number == len(legs) - 1:
                message.units += 1
                if before:
                    message.needs.add(before)
            left -= hops
            message.beyond = max(message.beyond, left)
            before, node = key, path[-1][3]
    for message in messages.values():
        message.needs = [messages[key] for key in message.needs]
    return list(messages.values())


def streaming(torus, routes, startup, allgather=False):
    """Each segment on its own: in an exchange on its whole route, in an allgather on each leg of its tree."""
    messages = {}
    for source, destination, segment, legs in routes:
        order = source, torus.offset(source, destination), segment
        whole = path_of(torus, source, legs)
        path = whole[-legs[-1][3]:] if allgather else whole
        messages[source, destination, segment] = Message(
            order, 0, path[0][0], path, units=1, earliest=startup if len(path) == len(whole) else 0)
    for source, destination, segment, legs in routes if allgather else ():
        node, left = source, sum(leg[3] for leg in legs)
        for leg in legs[:-1]:
            node = path_of(torus, node, [leg])[-1][3]
            left -= leg[3]
            before = messages[source, node, segment]
            before.beyond = max(before.beyond, left)
        if len(legs) > 1:
            messages[source, destination, segment].needs = [before]
    return list(messages.values())
