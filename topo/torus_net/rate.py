"""Link rates in Mbit/s."""

import math

from .geometry import UsageError

# Mininet's TCIntf ignores a higher limit and only logs that it does.
MININET_MAX_MBIT = 1000
MIN_MBIT = 0.001


def parse_mbit(text, limit=None):
    """The rate that `text` gives. UsageError if it is not a rate, or above `limit`."""
    try:
        rate = float(text)
    except (TypeError, ValueError):
        raise UsageError(f'"{text}" is not a rate in Mbit/s') from None
    if math.isnan(rate) or math.isinf(rate) or rate < MIN_MBIT:
        raise UsageError(f'a rate of {text} Mbit/s is too low: the minimum is {MIN_MBIT}')
    if limit is not None and rate > limit:
        raise UsageError(f'a rate of {text} Mbit/s is too high: Mininet supports limits up to '
                         f'{limit} Mbit/s and would not limit these links at all; omit the rate '
                         'for links without a limit')
    return rate
