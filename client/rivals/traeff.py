"""Träff: Effective MPI: User-defined Datatypes and Cartesian Communicators for Zero-copy All-to-all Communication in
Multidimensional Tori (arXiv 2605.29970, 2026): an all-to-all in each dimension after the other, among the nodes of a line.
A block goes to the coordinate of its destination.

The abstract, which was at hand, does not say how the all-to-all of a dimension works. Here (ours)
it is the pairwise one: in round j each node sends to the node that is j higher, along a ring on the shorter side."""

ports = 'one-port'


def refuses(network):
    for dimension, (size, wraps) in enumerate(zip(network.sizes, network.wraps)):
        if size > 1 and not wraps and network.direction(dimension, 0, size - 1) is None:
            return 'products of rings and complete graphs'
    return None


def period(network):
    return [1] * len(network.sizes)


def route(network, source, destination, segment):
    legs, first, here = [], 0, network.coordinates(source)
    for dimension, offset in enumerate(network.offsets(source, destination)):
        size = network.sizes[dimension]
        if offset != 0:
            legs.append((first + offset - 1, dimension, *run(network, dimension, here[dimension], offset)))
        first += size - 1
    return legs


def run(network, dimension, here, offset):
    """Direction and hops to the coordinate that is `offset` higher."""
    size = network.sizes[dimension]
    if not network.wraps[dimension]:
        return network.direction(dimension, here, (here + offset) % size), 1
    return (1, offset) if 2 * offset <= size else (-1, size - offset)
