"""Tori of daemons on one machine, for the launcher, for tests and for scripts.

LoopbackTorus: plain processes on 127.0.0.1. MininetTorus: a network namespace per node and a
rate-limited cable per link (requires root and Debian's `mininet` package). VirtualTorus: a virtual
machine per node (requires qemu and a Debian kernel package).
"""

from .geometry import Geometry, Link, Port, UsageError
from .limit import parse_bytes
from .loopback import LoopbackTorus
from .obstacle import mininet_obstacle
from .process import CHECKOUT, TorusError, find_program, same_layout
from .qemu import vm_obstacle
from .rate import MININET_MAX_MBIT, parse_mbit
from .torus import CommandFailed, Node, Torus
from .virtual import VirtualTorus
from .words import counted, plural

__all__ = ['CHECKOUT', 'CommandFailed', 'Geometry', 'Link', 'LoopbackTorus', 'MININET_MAX_MBIT',
           'Node', 'Port', 'Torus', 'TorusError', 'UsageError', 'VirtualTorus', 'counted',
           'find_program', 'mininet_obstacle', 'parse_bytes', 'parse_mbit', 'plural', 'same_layout',
           'vm_obstacle']


def __getattr__(name):
    if name == 'MininetTorus':  # Mininet is imported only where it is used
        from .emulated import MininetTorus
        return MininetTorus
    raise AttributeError(name)
