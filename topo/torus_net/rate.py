"""Link rates in Mbit/s: one for all links, and others for single links in one direction."""

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


def parse_channel(text, geometry):
    """(rank, port name) of a text such as "6:-1"; UsageError if there is no such port."""
    rank, colon, name = text.partition(':')
    if not colon or not rank.isdecimal() or int(rank) >= geometry.nodes:
        raise UsageError(f'"{text}" is not a port of a node of {geometry}, such as 6:-1')
    return int(rank), geometry.port(int(rank), name).name


def parse_rates(texts, geometry, limit=None):
    """(rate of all links or None, {(rank, port name): rate}) of texts such as "20", and "6:-1=8" for what node 6
    sends by its port -1. UsageError if a text is wrong, or if there are rates of single links only."""
    mbit, rates = None, {}
    for text in texts or ():
        channel, equals, rate = text.rpartition('=')
        if equals:
            rates[parse_channel(channel, geometry)] = parse_mbit(rate, limit)
        elif mbit is not None:
            raise UsageError(f'--bw {text}: the rate of all links has been given already')
        else:
            mbit = parse_mbit(text, limit)
    if rates and mbit is None:
        raise UsageError('--bw has rates of single links: give the rate of all others, too, such as --bw 20')
    return mbit, rates
