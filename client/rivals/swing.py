"""De Sensi, Bonato, Saam, Hoefler: Swing: Short-cutting Rings for Higher Bandwidth Allreduce (NSDI 2024): the
allgather, which is the second half of the bandwidth-optimal allreduce. Its first half, the reduce-scatter, has the same
messages in the opposite order and direction. The rule is the well-known one; the paper's sections were not at hand.

In step s of a ring, even nodes have the partner rho(s) = (1 - (-2)^(s+1)) / 3 nodes higher, odd nodes the one that is
rho(s) lower. On a torus of D dimensions, 2D such operations have a part of each block: operation i begins with dimension
i mod D and takes the dimensions in turn, those from D on are mirrored. The reduce-scatter goes from step 0, the allgather
from the last one."""

import functools

operation = 'allgather'


def refuses(network):
    fits = all(size & (size - 1) == 0 and (wraps or size == 1) for size, wraps in zip(network.sizes, network.wraps))
    return None if fits else 'tori whose sizes are powers of two'


def segments(network):
    return max(2 * sum(size > 1 for size in network.sizes), 1)


def period(network):
    return [2 if size > 1 else 1 for size in network.sizes]


def rounds(network, begin):
    """(dimension, s) of each step of the reduce-scatter."""
    left = {d: size.bit_length() - 1 for d, size in enumerate(network.sizes) if size > 1}
    order, turn = [], list(left)[begin:] + list(left)[:begin]
    while any(left.values()):
        for dimension in turn:
            if left[dimension]:
                order.append((dimension, network.sizes[dimension].bit_length() - 1 - left[dimension]))
                left[dimension] -= 1
    return order


@functools.lru_cache(maxsize=8)
def tree(network, source, segment):
    """The routes of a source to all nodes."""
    routes, half = {source: []}, max(segments(network) // 2, 1)
    for step, (dimension, s) in enumerate(reversed(rounds(network, segment % half))):
        rho = (1 - (-2) ** (s + 1)) // 3
        for node, legs in list(routes.items()):
            place = list(network.coordinates(node))
            move = rho if (place[dimension] % 2 == 0) == (segment < half) else -rho
            place[dimension] += move
            routes[network.rank(place)] = [*legs, (step, dimension, 1 if move > 0 else -1, abs(move))]
    return routes


def route(network, source, destination, segment):
    return tree(network, source, segment)[destination]
