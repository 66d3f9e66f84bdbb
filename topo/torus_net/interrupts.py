"""SIGINT, SIGTERM and SIGHUP as exceptions that never fall into the middle of a creation.

A process, namespace or folder that has been made but not yet been written down would be lost by an
exception between the two. Code that makes such things does so inside `with held():`, where a signal
only leaves a note; the exception comes at the end of the block. Once one exception has been raised,
or `stop_raising()` called, later signals do nothing: cleaning up is not interrupted.
"""

import signal
from contextlib import contextmanager


class Interrupted(KeyboardInterrupt):
    """Ctrl-C. A KeyboardInterrupt, so that Mininet's prompt can end the command it waits for."""

    signum = signal.SIGINT


class Terminated(BaseException):
    """SIGTERM or SIGHUP."""

    def __init__(self, signum):
        super().__init__(signum)
        self.signum = signum


_depth = 0
_pending = None
_raising = False
_prompting = False


def install():
    """Takes over the three signals, for the main thread of a program."""
    global _raising
    _raising = True
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _received)


def stop_raising():
    global _raising, _pending
    _raising = False
    _pending = None


@contextmanager
def held():
    """Signals that come in this block take effect at its end."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if _depth == 0 and _pending is not None and _raising:
            _throw(_pending)


@contextmanager
def at_prompt():
    """In this block Ctrl-C may be raised, and caught, any number of times."""
    global _prompting
    _prompting = True
    try:
        yield
    finally:
        _prompting = False


def _received(signum, _frame):
    global _pending
    if not _raising:
        return
    if _depth:
        _pending = signum
    else:
        _throw(signum)


def _throw(signum):
    global _raising, _pending
    _pending = None
    if signum == signal.SIGINT:
        _raising = _prompting
        raise Interrupted()
    _raising = False
    raise Terminated(signum)
