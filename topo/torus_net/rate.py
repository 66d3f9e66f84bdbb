"""Link rates in Mbit/s."""

import math

from .geometry import UsageError

# Mininet's TCIntf ignores a higher limit with no more than a line in its log.
MININET_MAX_MBIT = 1000
MIN_MBIT = 0.001


def parse_mbit(text, limit=None):
    """The rate that `text` names, or UsageError. `limit`: the highest that can be kept."""
    try:
        rate = float(text)
    except (TypeError, ValueError):
        raise UsageError(f'a rate of "{text}" is no number of Mbit/s') from None
    if math.isnan(rate) or math.isinf(rate) or rate < MIN_MBIT:
        raise UsageError(f'a rate of {text} Mbit/s is refused: at least {MIN_MBIT} is wanted')
    if limit is not None and rate > limit:
        raise UsageError(f'a rate of {text} Mbit/s is refused: Mininet limits links to at most '
                         f'{limit} Mbit/s and would leave these unlimited; leave the rate out '
                         'for links without a limit')
    return rate
