"""Limits on waiting that do not depend on how busy the machine is.

A limit in wall-clock time is a guess at how long something takes on a machine that does nothing else. A
Patience does not count the time in which this process and its descendants had work to do but no processor.
Linux measures that time for every thread (/proc/PID/task/TID/schedstat); without it, all time counts. So:
- waiting for something that never happens ends after the limit, because a sleeping process loses no time;
- a program that computes gets the limit as processor time;
- beside other work, or at a low priority, waiting takes longer by the time that the other work takes.
"""

import os
import subprocess
import threading
import time
from contextlib import suppress

from .descendants import descendants

# Programs under valgrind ($TORUS_WRAP) and in emulated machines compute more slowly.
SLOWNESS = float(os.environ.get('TORUS_SLOWNESS') or (10 if os.environ.get('TORUS_WRAP') else 1))
PERIOD = 1.0       # seconds between two reads of the counters
MOST_DELAYED = 100  # a limit never takes more than this many times its length in wall-clock time


class Patience:
    """`seconds` to wait, times `slowness`:

        patience = Patience(20)
        while not condition():
            if patience.over:
                raise ...
            time.sleep(min(0.01, patience.pause))
    """

    def __init__(self, seconds, slowness=SLOWNESS):
        self.seconds = self._left = seconds * slowness
        self._period = min(PERIOD, self.seconds)
        self._since = time.monotonic()
        self._end = self._since + self.seconds * MOST_DELAYED
        self._passed = self._ran = self._waited = 0.0  # in all periods: a wait may have begun in an earlier one
        self._counters = None  # at _since. Most waits end soon: the first period reads none, and does not count

    @property
    def over(self):
        """Whether no seconds are left."""
        if time.monotonic() - self._since >= self._period and self._left > 0:
            self._look()
        return self._left <= 0 or time.monotonic() >= self._end

    @property
    def pause(self):
        """Ask again after at most this many seconds."""
        return max(self._since + self._period - time.monotonic(), 0.01)

    def _look(self):
        before, since = self._counters, self._since
        self._since, self._counters = _look(since)
        if before is not None:
            ran, waited = _grown(before, self._counters)
            self._ran, self._waited = self._ran + ran, self._waited + waited
            self._passed += self._since - since
            self._left = self.seconds - self._passed + _lost(self._ran, self._waited, self._passed)


_latest = 0.0, {}  # look


def _look(since):
    """When the counters were read, and {thread: (seconds on a processor, seconds of waiting for one)} of this process
    and all its descendants. Threads that wait at the same time share a look."""
    global _latest
    now = time.monotonic()
    when, counters = _latest
    if now - when < PERIOD / 4 and when - since > PERIOD / 2:
        return when, counters
    counters = {}
    for pid in (os.getpid(), *descendants()):
        try:
            for thread in os.listdir(f'/proc/{pid}/task'):
                with open(f'/proc/{pid}/task/{thread}/schedstat') as file:
                    ran, waited, _ = file.read().split()
                counters[thread] = int(ran) / 1e9, int(waited) / 1e9
        except OSError:
            continue  # it has just ended, or the kernel does not count
    _latest = now, counters
    return _latest


def _grown(before, after):
    """The seconds that all threads together ran, and that they waited for a processor, between two reads of the
    counters. The kernel counts a wait when it is over."""
    ran = waited = 0.0
    for thread, (ran_after, waited_after) in after.items():
        ran_before, waited_before = before.get(thread, (0.0, 0.0))
        ran += max(ran_after - ran_before, 0.0)
        waited += max(waited_after - waited_before, 0.0)
    return ran, waited


def _lost(ran, waited, seconds):
    """How many of these seconds were lost to other work. If the threads ran one after another, this is their total
    waiting time. If running and waiting add up to more than the wall-clock time, the waiting time is scaled down by the
    same factor."""
    return waited * min(1.0, seconds / (ran + waited)) if waited > 0 else 0.0


def stretched(seconds, least=0):
    """For a wall-clock limit that is passed to a program, such as --timeout of torusctl: these seconds times the
    number of threads that want to run on each processor, now or on average in the last minute."""
    with open('/proc/loadavg') as file:
        average, _, _, threads, _ = file.read().split()
    want = max(float(average), int(threads.partition('/')[0]))
    return round(max(seconds * max(1.0, want / len(os.sched_getaffinity(0))), least) * SLOWNESS, 1)


def _send(stdin, text):
    with suppress(BrokenPipeError), stdin:
        stdin.write(text)


def communicate(process, patience, text=None):
    """process.communicate() while there is patience; then subprocess.TimeoutExpired."""
    if text is not None:  # process.communicate() would send it until its first timeout only
        threading.Thread(target=_send, args=(process.stdin, text), daemon=True).start()
        process.stdin = None
    while True:
        try:
            return process.communicate(timeout=patience.pause)
        except subprocess.TimeoutExpired:
            if patience.over:
                raise subprocess.TimeoutExpired(process.args, patience.seconds) from None


def wait(process, patience):
    """process.wait() while there is patience; then subprocess.TimeoutExpired."""
    while True:
        try:
            return process.wait(patience.pause)
        except subprocess.TimeoutExpired:
            if patience.over:
                raise subprocess.TimeoutExpired(process.args, patience.seconds) from None


def run(command, seconds=60, input=None, **options):
    """Runs a command as subprocess.run() does, with `input` as its standard input, and captures its output as text
    unless options of subprocess.Popen say otherwise. After that many seconds it ends the command and raises
    subprocess.TimeoutExpired."""
    options = {'stdin': subprocess.DEVNULL if input is None else subprocess.PIPE, 'stdout': subprocess.PIPE,
               'stderr': subprocess.PIPE, 'text': True, **options}
    with subprocess.Popen(command, **options) as process:
        try:
            out, err = communicate(process, Patience(seconds), input)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)
