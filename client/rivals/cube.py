"""A pipelined cube, after the CC-cube of Díaz de Cerio, Valero-García and González: Complete Exchange Algorithms for
Meshes and Tori Using a Systematic Approach. In stage i + p, packet p of every node's blocks goes through dimension i of the
cube. The paper has it for two coordinates in each dimension. Ours, with proofs in client/doc/open-questions.md:

- Products of complete graphs of any sizes, and the division of the blocks into q packets (theorem 4).
- Tori with sizes that are powers of two, with several numberings of their rings. Segment s of a block uses torusctl's
  numbering (cccube), moved by s nodes. All messages of a stage are one step, although several cross a channel."""

from math import gcd, lcm

q = 1
segments = 1


def name(network):
    return f'cube-q{q}' + (f'-s{segments}' if segments > 1 else '')


def refuses(network):
    if q < 1 or q > network.nodes:
        return f'q from 1 to the number of nodes, not {q}'
    if all(network.wraps) and network.nodes & (network.nodes - 1) == 0:
        return None
    for dimension, size in enumerate(network.sizes):
        if size > 1 and (network.wraps[dimension] or network.direction(dimension, 0, size - 1) is None):
            return 'products of complete graphs, and tori of 2^d nodes'
    return None


def period(network):
    return [size if wraps else 1 for size, wraps in zip(network.sizes, network.wraps)]


def number(sizes, offsets):
    """The place of a block, by its offsets. Blocks in a row have different offsets in each dimension."""
    place, before = 0, 1
    for size, offset in zip(sizes, offsets):
        moved = (offset - place) % gcd(before, size)
        while (place + moved - offset) % size != 0:
            place += before
        place += moved * lcm(before, size)
        before *= size
    return place


def route(network, source, destination, segment):
    if network.wraps[0]:
        return route_on_rings(network, network.coordinates(source), network.coordinates(destination), segment)
    offsets = network.offsets(source, destination)
    packet = number(network.sizes, offsets) * q // network.nodes
    here = network.coordinates(source)
    return [(i + packet, i, network.direction(i, here[i], (here[i] + offset) % network.sizes[i]), 1)
            for i, offset in enumerate(offsets) if offset != 0]


def route_on_rings(network, here, to, moved):
    order = [(dimension, bit) for bit in range(max(network.sizes).bit_length())
             for dimension, size in reversed(list(enumerate(network.sizes))) if size >> bit > 1]
    numbers = [tuple(renumber(size, (at - moved) % size) for size, at in zip(network.sizes, place)) for place in (here, to)]
    offsets = [(numbers[0][dimension] ^ numbers[1][dimension]) >> bit & 1 for dimension, bit in order]
    packet = number([2] * len(order), offsets) * q // network.nodes
    legs, at = [], list(numbers[0])
    for i, (dimension, bit) in enumerate(order):
        if offsets[i]:
            size, before = network.sizes[dimension], renumber(network.sizes[dimension], at[dimension])
            at[dimension] ^= 1 << bit
            up = (renumber(size, at[dimension]) - before) % size
            legs.append((i + packet, dimension, 1, up) if 2 * up <= size else (i + packet, dimension, -1, size - up))
    return legs


def renumber(size, at):
    """Between the numbers of a ring's nodes in the cube and their places: the xor embedding, which is its own inverse."""
    return at ^ size // 4 if at & size // 2 and size > 2 else at
