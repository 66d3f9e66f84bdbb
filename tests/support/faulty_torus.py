"""The torus of scripts that run rounds of faults, and its options."""

import argparse
import sys

from torus_net import LoopbackTorus, UsageError


def _rounds(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of rounds, of at least 1")
    return int(text)


def give_up(name, error):
    """Ends the script, with status 2 for invalid usage, otherwise 1."""
    print(f'{name}: {error}', file=sys.stderr)
    sys.exit(2 if isinstance(error, UsageError) else 1)


def parser_of(description):
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('dims', nargs='?', default='3x3')
    parser.add_argument('--rounds', type=_rounds, default=100, help='default: 100')
    parser.add_argument('--seed', type=int, default=1, help='seed of the first round (default: 1)')
    parser.add_argument('--bw', default=None, help='rate of links in Mbit/s (Mininet; default: 50)')
    return parser


def make_torus(given, loopback=False, **options):
    """Not started."""
    if loopback:
        return LoopbackTorus(given.dims, bin=given.bin, bw=given.bw, **options)
    from torus_net import MininetTorus
    return MininetTorus(given.dims, bin=given.bin, bw=given.bw or 50, **options)


def mend(torus):
    """Repairs the torus after a round that has failed."""
    for node in torus.nodes:
        if not node.alive:
            node.start()
    torus.wait_whole(60)
