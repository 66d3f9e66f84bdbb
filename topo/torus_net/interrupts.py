"""SIGINT, SIGTERM and SIGHUP as exceptions that never interrupt the creation of a resource.

A process, namespace or folder would leak if an exception came after it was created and before it was
recorded. Code that creates such resources uses `with held():`, in which a signal is only noted; the
exception is raised at the end of the block. After the first exception, or after `stop_raising()`,
signals have no effect: cleaning up is not interrupted.

Python prints and drops what is raised inside a destructor, and subprocess.Popen, files and sockets have one. A signal
that was dropped in this way is sent again a moment later.
"""

import os
import signal
import sys
import threading
import time
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
    """Handles the three signals in the main thread of a program."""
    global _raising
    _raising = True
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _received)
    sys.unraisablehook = _dropped


def stop_raising():
    global _raising, _pending
    _raising = False
    _pending = None


@contextmanager
def held():
    """Signals that arrive in this block take effect at its end."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if _depth == 0 and _pending is not None and _raising:
            _throw(_pending)


def wait():
    """Waits until a signal raises its exception. signal.pause() would miss a signal that arrives just
    before the call."""
    while True:
        time.sleep(1)


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


def _dropped(unraisable):
    global _raising
    exception = unraisable.exc_value
    if isinstance(exception, (Interrupted, Terminated)):
        _raising = True
        # Not from here: it would be raised inside the same destructor.
        threading.Timer(0.01, os.kill, (os.getpid(), exception.signum)).start()
    else:
        sys.__unraisablehook__(unraisable)


def _throw(signum):
    global _raising, _pending
    _pending = None
    if signum == signal.SIGINT:
        _raising = _prompting
        raise Interrupted()
    _raising = False
    raise Terminated(signum)
