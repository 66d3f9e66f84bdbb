"""Qin, Cui, Cai, Huang: Optimizing All-to-All Collective Communication with Fault Tolerance on Torus Networks (MICRO 2025),
HalfRing and DimRotation, as in the authors' published simulator (HalfRing.cc, ND_Torus_Ring.cc).

HalfRing: on a ring every block goes the shorter way, hop by hop, and half of it each way to the opposite node. DimRotation:
a block has a chunk for each dimension, chunk i goes through the dimensions i, i + 1, .. in turn. The simulator counts
blocks. That what leaves a node together is one message is ours."""


def dimensions(network):
    return [dimension for dimension, size in enumerate(network.sizes) if size > 1]


def refuses(network):
    return None if all(wraps or size == 1 for size, wraps in zip(network.sizes, network.wraps)) else 'tori'


def segments(network):
    return 2 * max(len(dimensions(network)), 1)


def period(network):
    return [1] * len(network.sizes)


def route(network, source, destination, segment):
    rotated, offsets = dimensions(network), network.offsets(source, destination)
    chunk, half = divmod(segment, 2)
    longest, legs = max(network.sizes) // 2, []
    for phase in range(len(rotated)):
        dimension = rotated[(chunk + phase) % len(rotated)]
        size, offset = network.sizes[dimension], offsets[dimension]
        up = 2 * offset < size or (2 * offset == size and half == 0)
        for hop in range(offset if up else size - offset if offset else 0):
            legs.append((phase * longest + hop, dimension, 1 if up else -1, 1))
    return legs
