"""A pipelined cube of any radices, after the CC-cube of Díaz de Cerio, Valero-García and González: Complete Exchange
Algorithms for Meshes and Tori Using a Systematic Approach. In stage i + p, packet p of every node's blocks goes through
dimension i, straight to the coordinate of its destination. The paper has it for two coordinates in each dimension;
more are ours, and so is the division of the blocks into q packets. Theorem 4 of client/doc/open-questions.md."""

from math import gcd, lcm

q = 1


def name(network):
    return f'cube-q{q}'


def refuses(network):
    if q < 1 or q > network.nodes:
        return f'q from 1 to the number of nodes, not {q}'
    for dimension, size in enumerate(network.sizes):
        if size > 1 and (network.wraps[dimension] or network.direction(dimension, 0, size - 1) is None):
            return 'products of complete graphs'
    return None


def period(network):
    return [1] * len(network.sizes)


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
    offsets = network.offsets(source, destination)
    packet = number(network.sizes, offsets) * q // network.nodes
    here = network.coordinates(source)
    return [(i + packet, i, network.direction(i, here[i], (here[i] + offset) % network.sizes[i]), 1)
            for i, offset in enumerate(offsets) if offset != 0]
