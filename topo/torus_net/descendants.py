"""The processes that this program has started, and their descendants."""

import ctypes
import os


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
