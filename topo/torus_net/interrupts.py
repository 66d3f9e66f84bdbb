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
import time
from _thread import start_new_thread
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
_dropping = False


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
    global _raising, _dropping
    exception = unraisable.exc_value
    if isinstance(exception, (Interrupted, Terminated)):
        _dropping = _raising = True
        start_new_thread(_send_again, (exception.signum,))
        _dropping = False
    else:
        sys.__unraisablehook__(unraisable)


def _send_again(signum):
    """In a thread of its own, which the main thread does not wait for. What is raised while that is still in _dropped()
    would be dropped without a trace."""
    while True:
        time.sleep(0.01)
        if not _dropping:
            os.kill(os.getpid(), signum)
            return


def _throw(signum):
    global _raising, _pending
    _pending = None
    if signum == signal.SIGINT:
        _raising = _prompting
        raise Interrupted()
    _raising = False
    raise Terminated(signum)
