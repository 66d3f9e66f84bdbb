"""Collective operations of a torus on numpy arrays: libtorus (torus/group.h) for Python.

The same program runs on every node of the torus, and makes the same calls there:

    import libtorus
    import numpy as np

    with libtorus.Group() as group:
        blocks = np.full((group.size, 1000), group.rank, dtype=np.float64)
        received = group.alltoall(blocks)       # received[i]: the block from member i
        total = group.allreduce(received.sum())  # the same on all members

Arrays
- Arrays that are passed in may be of any shape; those without the order of C are copied first. An
  operation returns a new array, or `out`, which must be an array in the order of C with the shape and
  type of the result.
- Arrays from Group.array() lie in memory that the daemon shares: their contents are not copied between
  processes.
- In place: pass the same array as input and as `out`, or IN_PLACE as input.

Numbers
- Members, dimensions, counts and sizes are integers of Python or numpy. Other numbers, 1.0 as well, and
  bools raise TypeError; integers that are not possible raise ValueError. Timeouts may be any number
  but a bool.

Without waiting
- Each operation X also has start_X(), which returns a Call at once. Its wait() returns what X returns;
  done() tells whether it has ended. Until then leave the arrays alone. Several calls may be under way;
  they are carried out in the order in which they were started.

Errors
- TorusError is raised for what the library and the daemon report, with the code (ErrorCode).
  ValueError and TypeError are raised for arrays that do not fit; the group is not affected then.
- Ctrl-C interrupts waiting, for other members when a group is opened, too. A call stays under way then:
  close the group.

Threads: one group, with its parts, is used by one thread at a time.

The library is $TORUS_LIBRARY, else the one beside this package (in a checkout: of build/), else
libtorus.so.1 as the system finds it.
"""

from .arrays import IN_PLACE
from .calls import Call
from .errors import ErrorCode, TorusError
from .group import Group

__all__ = ['Call', 'ErrorCode', 'Group', 'IN_PLACE', 'TorusError']

for _public in (Call, ErrorCode, Group, TorusError):
    _public.__module__ = __name__  # where users find them
