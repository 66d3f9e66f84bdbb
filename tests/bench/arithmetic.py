"""Sizes, medians and the lower bound. Pure arithmetic."""

import statistics
from fractions import Fraction

from torus_net import parse_bytes as parse_size  # noqa: F401


def format_size(size):
    for unit, factor in (('MiB', 1 << 20), ('KiB', 1 << 10)):
        if size >= factor and size % factor == 0:
            return f'{size // factor} {unit}'
    return f'{size} B'


def median(values):
    return statistics.median(values)


def digits(value, wanted=3):
    """A number with about the wanted number of significant digits, without an exponent."""
    if value == 0:
        return '0'
    places = wanted
    while places > 0 and abs(value) >= 10 ** (wanted - places):
        places -= 1
    if abs(value) < 0.1:
        places = wanted
        while abs(value) * 10 ** places < 10 ** (wanted - 2) and places < 9:
            places += 1
    return f'{value:.{places}f}'


def milliseconds(seconds):
    return digits(seconds * 1000)


# --- the torus ---

def ring_distances(size, wraps):
    """The sum of the distances over all ordered pairs of nodes of a ring, or of a linear array."""
    return size * (size * size // 4) if wraps else size * (size * size - 1) // 3


def bound_blocks(geometry):
    """The least number of blocks on the busiest channel that any algorithm needs.

    In a ring: the sum of distances divided by the channels. In a linear array: the blocks that must cross the
    middle.
    """
    least = Fraction(0)
    for size, wraps in zip(geometry.sizes, geometry.wraps):
        others = geometry.nodes // size
        blocks = (Fraction(others * (size * size // 4), 2) if wraps else
                  Fraction(others * (size // 2) * ((size + 1) // 2)))
        least = max(least, blocks)
    return least


def bound_of(geometry, operation):
    """The least number of blocks on the busiest channel for any operation. A block is the data of each node (alltoall,
    allgather), the data (broadcast), or the vector (allreduce); blocks can be divided.

    A node has to receive, by all of its links, N - 1 blocks of an allgather and one of a broadcast. Each
    element of an allreduce has to go over N - 1 channels on its way to the sum, and the sum over as
    many; and a node has to receive as much as the vector.
    """
    fewest = min(len(list(geometry.ports(rank))) for rank in range(geometry.nodes))
    return {'alltoall': bound_blocks(geometry),
            'allgather': Fraction(geometry.nodes - 1, fewest),
            'broadcast': Fraction(1, fewest),
            'allreduce': max(Fraction(geometry.nodes - 1, len(geometry.links)), Fraction(1, fewest)),
            'barrier': Fraction(0)}[operation]


def least_bytes(geometry, operation, size):
    """The bytes that must cross all links together in a call of an operation."""
    others = geometry.nodes - 1
    return size * {'alltoall': total_hops(geometry), 'allgather': geometry.nodes * others,
                   'broadcast': others, 'allreduce': 2 * others, 'barrier': 0}[operation]


def bound_seconds(geometry, block, mbit, operation='alltoall'):
    """The lower bound of an operation over links that carry `mbit` (None: without limit) in each
    direction."""
    if mbit is None:
        return 0.0
    return float(bound_of(geometry, operation)) * block * 8e-6 / mbit


def largest_within(geometry, seconds, mbit):
    """The largest power of two of bytes for which the bound of a block is at most that many seconds."""
    size = 1
    if mbit is None:
        return 1 << 62
    while bound_seconds(geometry, 2 * size, mbit) <= seconds:
        size *= 2
    return size


def total_hops(geometry):
    """The hops of shortest paths, summed over all ordered pairs of nodes."""
    total = 0
    for size, wraps in zip(geometry.sizes, geometry.wraps):
        others = geometry.nodes // size
        total += others * others * ring_distances(size, wraps)
    return total


def mean_hops(geometry):
    return total_hops(geometry) / (geometry.nodes * (geometry.nodes - 1))


# --- how often to measure ---

def share_out(repeats, rounds, estimate, budget, fill=0.0):
    """(rounds, repeats in each) for something that takes `estimate` seconds.

    As many repeats as wanted; more (up to 20 times as many) if they take less than `fill` seconds, fewer
    if they would take more than about `budget` seconds, but at least one.
    """
    estimate = max(estimate, 1e-6)
    wanted = max(repeats, min(20 * repeats, int(fill / estimate)))
    affordable = max(1, min(wanted, int(budget / estimate)))
    rounds = min(rounds, affordable)
    return rounds, max(1, affordable // rounds)


def estimate_next(seconds, size, next_size, bound):
    """An upper estimate for a larger block, given `seconds` for `size` and the bound for next_size."""
    return min(seconds * next_size / max(size, 1), seconds + 6 * bound)
