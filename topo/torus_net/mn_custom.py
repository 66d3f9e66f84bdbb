"""What `mn --custom topo/torus.py` uses: the topology, its prompt, and a check of the options."""

import signal
import sys

from .emulated import TorusTopo, rate_of_link_option
from .geometry import UsageError
from .process import TorusError
from .prompt import make_mininet_prompt

CLI = make_mininet_prompt()


def _torus(*sizes, **options):
    # SystemExit, because after an Exception mn kills processes and removes files of others.
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda signum, _frame: sys.exit(128 + signum))
    try:
        return TorusTopo(*sizes, **options)
    except (UsageError, TorusError) as e:
        raise SystemExit(f'torus: {e}') from e


def validate(options):
    """mn calls this before it creates anything."""
    if options.topo.split(',')[0] == 'torus':
        try:
            rate_of_link_option(options.link)
        except UsageError as e:
            raise SystemExit(f'torus: {e}') from e


topos = {'torus': _torus}
