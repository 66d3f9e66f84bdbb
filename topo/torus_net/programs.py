"""--run-each: a program on every node, as mpiexec starts them, with their output in one place."""

import os
import selectors
import signal
import subprocess
import sys

from . import interrupts
from .descendants import adopt_orphans, descendants
from .patience import Patience
from .process import end_all

GRACE = 3.0           # seconds in which the other programs can end by themselves after one has failed
LONGEST_LINE = 1 << 20


def run_programs(torus, each, command=None, complain=lambda text: None):
    """Runs the shell command `each` on every node, with %r replaced by the rank, and `command` beside
    them. Waits until all processes that they started have ended. Returns the exit status of the first that
    failed, or 0. Each line of the programs' output gets the rank as a prefix; the command's output is unchanged.
    If the reader of the output goes away, all programs are ended, and this ends as by SIGPIPE."""
    adopt_orphans()
    before = descendants()
    with _Programs(complain) as programs:
        try:
            with interrupts.held():
                for node in torus.nodes:
                    programs.start_at(node, each.replace('%r', str(node.rank)),
                                      reads=node.rank == 0 and command is None)
                if command is not None:
                    programs.add('the command of --run', subprocess.Popen(
                        [*torus.enter(), '/bin/sh', '-c', command], env=torus.environment()))
            programs.wait(lambda: programs.unread or programs.grace is not None and programs.grace.over)
        except KeyboardInterrupt:
            # On a terminal, Ctrl-C reached the programs too: let them exit by themselves.
            if sys.stdin.isatty():
                patience = Patience(GRACE)
                programs.wait(lambda: patience.over)
            raise
        finally:
            with interrupts.held():
                programs.ending = True
                end_all(lambda: descendants() - before, programs.look)
                programs.finish_output()
    if programs.unread:
        raise interrupts.Terminated(signal.SIGPIPE)
    return programs.status


class _Programs:
    """Running programs, and the pipes that they write to."""

    def __init__(self, complain):
        self.complain = complain
        self.selector = selectors.DefaultSelector()
        self.running = {}      # process: its name in messages
        self.status = 0        # exit status of the first that failed
        self.grace = None      # once one has failed: how long the others may still run
        self.ending = False    # from here on the launcher ends them, which is not a failure
        self.unread = False    # nobody reads the output any more: the rest is discarded

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for key in list(self.selector.get_map().values()):
            self._close(key)
        self.selector.close()

    def start_at(self, node, command, reads):
        """reads: whether it gets this program's standard input."""
        process = node.start_program(command, stdin=None if reads else subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.add(f'node {node.rank}', process)
        for source, target in (process.stdout, 1), (process.stderr, 2):
            self.selector.register(source, selectors.EVENT_READ,
                                   _Lines(source, target, f'{node.rank}: '.encode()))

    def add(self, name, process):
        self.running[process] = name
        self.selector.register(os.pidfd_open(process.pid), selectors.EVENT_READ, process)

    def wait(self, enough):
        """Returns when all have ended, or enough() is true."""
        while self.running and not enough():
            self.look(0.1 if self.grace is not None or self.ending else 1)

    def look(self, seconds):
        """Waits at most that many seconds for output or the end of a program, and handles it."""
        for key, _ in self.selector.select(seconds):
            if isinstance(key.data, _Lines):
                try:
                    more = key.data.pass_on()
                except BrokenPipeError:
                    more, self.unread = False, True
                if not more:
                    self._close(key)
            elif key.data.poll() is not None:
                self._ended(key.data)
                self._close(key)

    def finish_output(self):
        """Passes on the rest of the output, after all writers have ended."""
        while any(isinstance(key.data, _Lines) for key in self.selector.get_map().values()):
            if not self.selector.select(0):
                return
            self.look(0)

    def _ended(self, process):
        name, code = self.running.pop(process), process.returncode
        if code == 0 or self.grace is not None or self.ending:
            return
        self.status, self.grace = code if code > 0 else 128 - code, Patience(GRACE)
        how = f'exit status {code}' if code > 0 else f'killed by signal {-code}'
        if self.running:
            how += f'; what is still running in {GRACE:g} s will be ended'
        self.complain(f'{name}: {how}')

    def _close(self, key):
        self.selector.unregister(key.fileobj)
        if isinstance(key.data, _Lines):
            key.data.close()
        else:
            os.close(key.fd)


class _Lines:
    """Passes on the output from a pipe in whole lines, each with a prefix."""

    def __init__(self, source, target, prefix):
        self.source, self.target, self.prefix = source, target, prefix
        self.begun = b''  # of a line

    def pass_on(self):
        """Reads once. Returns whether there may be more."""
        data = os.read(self.source.fileno(), 65536)
        *lines, self.begun = (self.begun + data).split(b'\n')
        if self.begun and (not data or len(self.begun) > LONGEST_LINE):
            lines.append(self.begun)
            self.begun = b''
        _write(self.target, b''.join(self.prefix + line + b'\n' for line in lines))
        return bool(data)

    def close(self):
        self.source.close()


def _write(target, data):
    while data:
        data = data[os.write(target, data):]
