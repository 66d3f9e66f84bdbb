"""Collective operations on numpy arrays over a torus: the groups of libtorus (torus/group.h) for Python.

The same program runs on every node of the torus and makes the same calls:

    import libtorus
    import numpy as np

    with libtorus.Group() as group:
        blocks = np.full((group.size, 1000), group.rank, dtype=np.float64)
        received = group.alltoall(blocks)       # received[i]: the block from member i
        total = group.allreduce(received.sum())  # the same result on all members

Arrays
- The arrays of all members have the same type and, except in alltoallv() and allgatherv(), the same shape. If those
  of two members differ, the group fails, and the error names the members. The root of a broadcast() and the other
  members of a reduce() may have ended their call by then, and get the error from their next call.
- Input arrays may have any shape. Arrays that are not C-contiguous are copied first. An operation returns
  a new array, or `out` if it is given. `out` must be C-contiguous, and have the shape and type of the
  result.
- Arrays from Group.array() are in memory that this process shares with the daemon, so their contents are
  not copied between processes.
- For an operation in place, pass the same array as input and as `out`, or pass IN_PLACE as input.

Numbers
- Members, dimensions, counts and sizes are Python or numpy integers. Other numbers (also 1.0) and bools
  raise TypeError; integers out of range raise ValueError. Timeouts are numbers of seconds, integer or not.

Without waiting
- Each operation X also has start_X(), which returns a Call at once. Call.wait() returns the result of X;
  Call.done() says whether the call has ended. Do not use the arrays until then. Several calls may be under
  way; they are carried out in the order in which they were started.

Errors
- Errors of the library and the daemon raise TorusError, with the code (ErrorCode). Unsuitable arrays raise
  ValueError or TypeError, and the group stays usable.
- Ctrl-C interrupts waiting, also while a group is being opened. The call itself stays under way: close the
  group.

Threads: use a group and its parts from one thread at a time.

The package loads $TORUS_LIBRARY if set, otherwise the library installed beside it (in a checkout: the one in
build/; a package of the system: none), otherwise libtorus.so.1 as the system finds it.
"""

from .arrays import IN_PLACE
from .calls import Call
from .errors import ErrorCode, TorusError
from .group import Group
from .version import __version__

__all__ = ['Call', 'ErrorCode', 'Group', 'IN_PLACE', 'TorusError', '__version__']

for _public in (Call, ErrorCode, Group, TorusError):
    _public.__module__ = __name__  # where users find them
