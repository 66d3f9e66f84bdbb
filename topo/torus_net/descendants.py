"""The processes that this program has started, and what these have started."""

import ctypes
import os
import signal
import time


def adopt_orphans():
    """Makes processes whose parent has exited children of this one, so that they can be found."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants():
    """The process ids of all descendants of this process that have not ended."""
    children = {}
    for entry in os.listdir('/proc'):
        if not entry.isdigit():
            continue
        try:
            with open(f'/proc/{entry}/stat') as stat:
                state, parent = stat.read().rpartition(')')[2].split()[:2]
        except OSError:
            continue
        if state not in 'ZX':
            children.setdefault(int(parent), []).append(int(entry))
    found, todo = set(), [os.getpid()]
    while todo:
        for child in children.get(todo.pop(), ()):
            found.add(child)
            todo.append(child)
    return found


def end_all(which, pause=time.sleep):
    """Ends the processes that which() returns: SIGTERM, and SIGKILL after 3 seconds. pause(seconds)
    passes the time between two looks at them."""
    for signum, patience in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 5.0)):
        for pid in which():
            try:
                os.kill(pid, signum)
            except ProcessLookupError:
                pass
        deadline = time.monotonic() + patience
        while which() and time.monotonic() < deadline:
            pause(0.02)
        if not which():
            return
