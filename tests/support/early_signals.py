"""Signals that reach a daemon while it starts."""

import signal
import subprocess
import time

from torus_net.patience import Patience, communicate, run

MOMENTS, FIRST_LINES = 30, 5


def pending(*signums):
    """For preexec_fn: the program has received these signals before its first instruction, and blocks them. They
    wait until it lets them in."""
    def before():
        signal.pthread_sigmask(signal.SIG_BLOCK, signums)
        for signum in signums:
            signal.raise_signal(signum)
    return before


def _signalled(command, signum, wait, options):
    """Starts the daemon and sends the signal when wait(process) returns. Returns its exit status and its log."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options) as process:
        try:
            said = wait(process) or ''
            process.send_signal(signum)
            log = communicate(process, Patience(30))[1]
        except subprocess.TimeoutExpired:
            status = process.poll()
            process.kill()
            raise AssertionError(f'status {status} 30 s after the signal: {said}{process.communicate()[1]}') from None
        except BaseException:
            process.kill()
            raise
    return process.returncode, said + log


def _results(command, signum, options):
    began = time.monotonic()
    done = run(command, 30, preexec_fn=pending(signum), **options)
    seconds = time.monotonic() - began
    yield done.returncode, done.stderr
    for _ in range(FIRST_LINES):
        yield _signalled(command, signum, lambda process: process.stderr.readline(), options)
    for moment in range(MOMENTS):
        yield _signalled(command, signum, lambda _, pause=seconds * moment / MOMENTS: time.sleep(pause), options)


def assert_ends_well(command, signum, **options):
    """At any moment of its start, the signal ends a daemon either before it has done or said anything, or as at any
    later time."""
    for status, log in _results(list(map(str, command)), signum, options):
        if log or status != -signum:
            assert status == 0 and f'it received {signum.name}' in log and log.endswith('ended\n'), (status, log)
