"""Rounds of faults: programs call every operation and check the results, until one program or one daemon is
killed or stopped at a random time."""

import functools
import os
import random
import re
import selectors
import signal
import subprocess
import time
from pathlib import Path

from torus_net.patience import Patience

from .programs import python

DIED = 'cancelled: group "rounds": the program of node {} has died, or has ended without closing the group'
LONGEST_STOP = 3.0  # seconds; links are given up after 5 s of silence
HANGS = 60          # seconds after which a program counts as hanging
# The errors after a daemon was killed: "node 3, where the group began, went down" if it was the group's root;
# "link 3:+0 to node 6 is down" if the daemon is up again before the other nodes know that all its links are
# down. While the group is opened, there may also be MAY_BE_OPEN.
MAY_BE_OPEN = 'in doubt: group "rounds": other programs may have had the group open:'
# Programs open parts of their group, too, which fails while links are down. Those that then give up end with the group
# open, so that the others blame them.
NO_PART = (r'link: (group "rounds": node \d+ refuses: )?this part cannot be opened: without (link|node) .* is not connected|'
           + re.escape(DIED).replace(r'\{\}', r'\d+'))
DOWN = r'link: group "rounds": .*\b(node|link) {}\b.* (is|went) down'


class Program:
    """group_program on a node. survives: it shrinks its group when a link or node goes down."""

    errors = None  # file for its standard error

    def __init__(self, node, seed, survives=False):
        self.node = node
        self.output = b''
        self.ended_at = None
        self.process = node.start_program(self._command(seed, survives), stdin=subprocess.DEVNULL,
                                          stdout=subprocess.PIPE, stderr=self.errors)

    def _command(self, seed, survives):
        path = Path(self.node.torus.torusctl).parent / 'tests' / 'support' / 'group_program'
        return f'exec {path} {self._arguments(seed, survives)}'

    @staticmethod
    def _arguments(seed, survives):
        return f'$TORUS_SOCKET rounds {f"survive {seed}" if survives else f"all {seed} 0"}'

    def terminate(self):
        """Sends SIGTERM, upon which all programs end."""
        self.process.terminate()

    def read(self):
        data = os.read(self.process.stdout.fileno(), 65536)
        self.output += data
        if not data:
            self.process.wait()
            self.ended_at = time.monotonic()

    @property
    def is_open(self):
        return self.output.startswith(b'open\n')

    @property
    def members(self):
        """The nodes of its open group as a list; None: all nodes."""
        lists = re.findall(rb'^shrunk(.*)\nopen\n', self.output, re.M)
        return [int(rank) for rank in lists[-1].split()] if lists else None

    @property
    def is_working(self):
        """Whether it is in a group that has not failed, as far as it knows."""
        return self.ended_at is None and self.output.endswith(b'open\n')

    @property
    def said(self):
        """Its error, or '' if it ended regularly."""
        if self.process.returncode == 0:
            return ''
        text = re.sub(r'^(open|shrunk[ \d]*)\n', '', self.output.decode(), flags=re.M).strip()
        return text or f'exit status {self.process.returncode}'


class PythonProgram(Program):
    """The same program in Python; it always survives."""

    def _command(self, seed, survives):
        library = Path(self.node.torus.watcher).parent / 'client' / 'libtorus.so.1'
        return (f'export TORUS_LIBRARY={library} OPENBLAS_NUM_THREADS=1; '
                + python(f'{Path(__file__).with_name("survivor.py")} {seed}'))


class Programs:
    """with Programs(torus, seed) as programs: starts a program on every node."""

    def __init__(self, torus, seed, kind=Program, survive=False):
        self.seed, self.kind, self.survive = seed, kind, survive
        self.selector = selectors.DefaultSelector()
        self.all = [self._start(node) for node in torus.nodes]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.selector.close()
        for program in self.all:
            if program.ended_at is None:
                program.process.kill()
                program.process.wait()
            program.process.stdout.close()

    def _start(self, node):
        program = self.kind(node, self.seed, self.survive)
        self.selector.register(program.process.stdout, selectors.EVENT_READ, program)
        return program

    def again(self, rank):
        """Starts a program in place of one that has ended."""
        self.all[rank].process.stdout.close()
        self.all[rank] = self._start(self.all[rank].node)

    def wait(self, enough, what, seconds=HANGS):
        """Waits until enough(program) is true for all."""
        patience = Patience(seconds)
        while not all(enough(program) for program in self.all):
            late = [program.node.rank for program in self.all if not enough(program)]
            assert not patience.over, f'not in time: {what}, at nodes {late}'
            self.look(0.1)

    def look(self, seconds):
        """Reads output and notes ends of programs for that many seconds."""
        for key, _ in self.selector.select(seconds):
            key.data.read()
            if key.data.ended_at is not None:
                self.selector.unregister(key.fileobj)

    def ends(self, seconds=5):
        """Exit status and words of the programs that end within that many seconds, by node: one failure may follow another."""
        patience = Patience(seconds)
        while not patience.over and not all(program.ended_at is not None for program in self.all):
            self.look(0.1)
        return {program.node.rank: (program.process.returncode, program.said)
                for program in self.all if program.ended_at is not None}

    def let_run(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.look(left)
        assert not any(program.ended_at for program in self.all), \
            [program.said for program in self.all]

    def errors(self, but):
        """Checks that all programs except those have the same error. Returns it, and when the last of them had it."""
        others = [program for program in self.all if program.node.rank not in but]
        said = {program.node.rank: program.said for program in others}
        assert len(set(said.values())) == 1, f'not the same error: {said}'
        return said[others[0].node.rank], max(program.ended_at for program in others)

    def end_regularly(self):
        self.all[0].terminate()
        self.wait(lambda program: program.ended_at is not None, 'ended regularly')
        assert {program.said for program in self.all} == {''}, \
            [program.said for program in self.all]


def own_memory(torus):
    """The bytes of the daemon with the most memory, without memory shared with programs."""
    return max(node.memory()['RssAnon'] for node in torus.nodes)


def _kill_program(torus, programs, rank, rng):
    begin = time.monotonic()
    programs.all[rank].process.kill()
    programs.wait(lambda program: program.ended_at is not None, 'ended with an error')
    said, end = programs.errors({rank})
    assert said == DIED.format(rank)
    return end - begin, 0


def _kill_daemon(torus, programs, rank, rng):
    begin = time.monotonic()
    torus.node(rank).kill()
    programs.wait(lambda program: program.ended_at is not None, 'ended with an error')
    said, end = programs.errors({rank})
    assert re.match(DOWN.format(rank), said), said
    own = programs.all[rank].said
    assert re.fullmatch('lost: the daemon at .* has gone away', own), own
    torus.node(rank).start()
    torus.wait_whole(40)
    return end - begin, 0


def _end_daemon(torus, programs, rank, rng):
    """SIGTERM."""
    begin = time.monotonic()
    assert torus.node(rank).terminate() == 0
    programs.wait(lambda program: program.ended_at is not None, 'ended with an error')
    said, end = programs.errors({rank})
    assert re.match(DOWN.format(rank), said), said
    assert re.match('(lost|cancelled): ', programs.all[rank].said), programs.all[rank].said
    torus.node(rank).start()
    torus.wait_whole(40)
    return end - begin, 0


def _mute_daemon(torus, programs, rank, rng):
    """A program or daemon is stopped for so long that the others give up on it."""
    begin = time.monotonic()
    node, own = torus.node(rank), programs.all[rank]
    node.send_signal(signal.SIGSTOP)
    try:
        programs.wait(lambda program: program is own or program.ended_at is not None,
                      'ended with an error')
        said, end = programs.errors({rank})
        assert own.ended_at is None, own.said
        programs.look(rng.uniform(0, 2))
    finally:
        node.send_signal(signal.SIGCONT)
    assert re.match(DOWN.format(rank), said), said
    programs.wait(lambda program: program.ended_at is not None, 'ended with an error')
    assert re.match('link: group "rounds": ', own.said), own.said
    torus.wait_whole(40)
    return end - begin, 0


def _stop_program(torus, programs, rank, rng):
    return _stop(torus, programs, programs.all[rank].process, rng)


def _stop_daemon(torus, programs, rank, rng):
    return _stop(torus, programs, torus.node(rank), rng)


def _stop(torus, programs, stopped, rng):
    seconds = rng.uniform(0, LONGEST_STOP)
    stopped.send_signal(signal.SIGSTOP)
    try:
        programs.let_run(seconds)
        memory = own_memory(torus)
    finally:
        stopped.send_signal(signal.SIGCONT)
    programs.let_run(rng.uniform(0, 0.3))
    programs.end_regularly()
    return seconds, memory


# ---- While the group is opened, or closed --------------------------------------------------------

def _kill(torus, programs, rank, daemon):
    """Kills a program, or kills and restarts a daemon."""
    if daemon:
        torus.node(rank).kill()
        torus.node(rank).start()
        torus.wait_whole(40)
    else:
        programs.all[rank].process.kill()


def _opening(torus, programs, rank, rng, daemon=False):
    """Programs that fail try again, until all have opened the group."""
    begin = time.monotonic()
    programs.let_run(rng.choice([0.01, 0.03, 0.1]) * rng.random())
    _kill(torus, programs, rank, daemon)
    fault = DOWN.format(rank) if daemon else re.escape(DIED.format(rank))
    pattern = re.compile('|'.join([
        fault, re.sub(r'^.*?"rounds":', MAY_BE_OPEN, fault), re.escape(DIED.format(rank)),
        'refused: .* has group "rounds" open',
        f'(lost|no daemon): |link: the torus is not whole: |{NO_PART}' if daemon else 'exit status -9']))
    patience = Patience(HANGS)
    while not all(program.ended_at is not None and program.said == '' for program in programs.all):
        programs.look(0.01)
        for program in programs.all:
            if program.ended_at is not None:
                assert pattern.match(program.said), programs.ends()
                programs.again(program.node.rank)
        if all(program.is_open for program in programs.all):  # perhaps before the fault
            programs.all[0].terminate()
            programs.wait(lambda program: program.ended_at is not None, 'ended')
        assert not patience.over, 'the group was not opened'
    return time.monotonic() - begin, 0


def _closing(torus, programs, rank, rng, daemon=False):
    """Checks that the others have ended regularly, or with the error."""
    begin = time.monotonic()
    programs.all[rng.randrange(torus.geometry.nodes)].terminate()
    programs.look(rng.choice([0.001, 0.01, 0.1]) * rng.random())
    _kill(torus, programs, rank, daemon)
    programs.wait(lambda program: program.ended_at is not None, 'ended')
    pattern = re.compile(DOWN.format(rank) if daemon else re.escape(DIED.format(rank)))
    said = {program.said for program in programs.all if program.node.rank != rank} - {''}
    assert len(said) <= 1 and all(pattern.match(text) for text in said), said
    return time.monotonic() - begin, 0


INFLICT = {
    'kill-program': _kill_program,
    'stop-program': _stop_program,
    'kill-daemon': _kill_daemon,
    'stop-daemon': _stop_daemon,
    'end-daemon': _end_daemon,
    'mute-daemon': _mute_daemon,
    'kill-program-opening': _opening,
    'kill-daemon-opening': functools.partial(_opening, daemon=True),
    'kill-program-closing': _closing,
    'kill-daemon-closing': functools.partial(_closing, daemon=True),
}
KINDS = tuple(INFLICT)


def one_round(torus, kind, seed):
    """Runs a round. Returns the seconds until the last program has failed, or the seconds of the stop, and, if
    something was stopped, the bytes of the daemon with the most memory. Raises AssertionError if a check fails."""
    rng = random.Random(seed)
    rank = rng.randrange(torus.geometry.nodes)
    with Programs(torus, rng.randrange(1 << 60)) as programs:
        if not kind.endswith('opening'):
            programs.wait(lambda program: program.is_open or program.ended_at, 'opened the group')
            programs.let_run(rng.choice([0, rng.uniform(0, 0.02), rng.uniform(0, 1)]))
        outcome = INFLICT[kind](torus, programs, rank, rng)
    for node in torus.nodes:
        assert node.alive, f'daemon {node.rank} has died'
    return outcome
