"""Exchanges that are not counted, which warm connections up before a measurement."""

import math

from . import arithmetic

SECONDS = 1.5   # that the bound allows one such exchange
FACTOR = 4      # times the size to be measured
MOST = 8        # exchanges
FASTER = 0.95   # of the shortest before: then it goes on
IN_VAIN = 2     # in a row that are not faster: enough


def until_no_faster(exchange, budget=math.inf):
    """Calls what returns the seconds of an exchange until they become no shorter, or have used up the
    budget. Whoever used the network last may have filled its queues, in which packets of other
    connections were lost."""
    best, in_vain, used = math.inf, 0, 0.0
    for _ in range(MOST):
        seconds = exchange()
        used += seconds
        in_vain = in_vain + 1 if seconds > FASTER * best else 0
        if in_vain == IN_VAIN or used >= budget:
            break
        best = min(best, seconds)


def warm_up(system, size, geometry, mbit):
    """Runs exchanges until they become no faster."""
    most = arithmetic.largest_within(geometry, SECONDS, mbit)
    until_no_faster(lambda: system.warm_up(min(FACTOR * size, most), 60 + 20 * SECONDS))
