"""Uncounted exchanges that warm up connections before a measurement."""

import math

from . import arithmetic

SECONDS = 1.5   # the bound of an uncounted exchange is at most this
FACTOR = 4      # its blocks are at most this times the measured size
MOST = 8        # uncounted exchanges
FASTER = 0.95   # an exchange counts as faster if it takes less than this share of the shortest so far
IN_VAIN = 2     # enough exchanges in a row that are not faster


def until_no_faster(exchange, budget=math.inf):
    """Calls a function, which returns the seconds of an exchange, until the times get no shorter or the budget is
    used up. The previous user of the network may have filled its queues, so that other connections lost packets."""
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
