"""Exchanges that are not counted, which warm connections up before a measurement."""

import math

from . import arithmetic

SECONDS = 1.5   # that the bound allows one such exchange
FACTOR = 4      # times the size to be measured
MOST = 8        # exchanges
FASTER = 0.95   # of the shortest before: then it goes on
IN_VAIN = 2     # in a row that are not faster: enough


def warm_up(system, size, geometry, mbit):
    """Runs exchanges until they become no faster. Whoever used the network last may have filled its
    queues, in which packets of other connections were lost."""
    most = arithmetic.largest_within(geometry, SECONDS, mbit)
    best, in_vain = math.inf, 0
    for _ in range(MOST):
        seconds = system.warm_up(min(FACTOR * size, most), 60 + 20 * SECONDS)
        in_vain = in_vain + 1 if seconds > FASTER * best else 0
        if in_vain == IN_VAIN:
            break
        best = min(best, seconds)
