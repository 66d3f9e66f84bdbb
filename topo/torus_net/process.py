"""Finding the programs, running one daemon, and the folder of a run."""

import functools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from . import interrupts
from .geometry import UsageError
from .patience import Patience, wait
from .storage import is_volatile

GRACE = 15.0  # seconds that daemons have to exit
CHECKOUT = Path(__file__).resolve().parents[2]


class TorusError(Exception):
    """The torus could not be started, or one of its nodes has failed; the message says why."""


def find_program(name, bin_dir=None):
    """Looks in `--bin DIR` (or TORUS_BIN of the environment), else in PATH, else in build/ of the checkout."""
    bin_dir = bin_dir or os.environ.get('TORUS_BIN')
    if bin_dir:
        path = Path(bin_dir) / name
        if not os.access(path, os.X_OK):
            raise UsageError(f'{name} is not in {bin_dir}')
        return str(path.resolve())
    found = shutil.which(name)
    if found:
        return os.path.abspath(found)
    path = CHECKOUT / 'build' / name
    if os.access(path, os.X_OK):
        return str(path)
    raise UsageError(f'{name} is neither in PATH nor in {CHECKOUT / "build"}; build it '
                     '(cmake -B build && cmake --build build), or give its folder with --bin')


@functools.cache
def same_layout():
    """A command prefix that turns address space randomization off, so that a program's code has
    the same addresses in every process. Empty if that is forbidden, as in some containers.

    Separate machines have separate branch predictors. Processes on one machine share them, and
    disturb each other's predictions if their code lies at different addresses: with randomization,
    exchanges of small blocks take 20 % more CPU time.
    """
    command = ['setarch', '-R']
    try:
        allowed = subprocess.run([*command, 'true'], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL).returncode == 0
    except FileNotFoundError:
        allowed = False
    return tuple(command) if allowed else ()


class RunFolder:
    """The folder of one run. Node R has R.sock (control socket), R.log, R.pid and R.state/ there.

    Without `keep` it is a temporary folder, removed at the end; the logs stay if something went
    wrong. With `keep` the logs are written to that folder and always stay.

    A state folder must be as durable as the data roots. If temporary folders are on a file system in
    memory and a data root is not, the state folders are in a hidden folder of that data root, which
    is also removed at the end.
    """

    def __init__(self, keep=None, data_roots=()):
        # The path of a Unix socket has at most 107 characters; some temporary folders have longer paths.
        where = tempfile.gettempdir()
        if len(where) > 60:
            where = '/tmp'
        with interrupts.held():
            self.path = Path(tempfile.mkdtemp(prefix='torus-', dir=where))
            self.states = self.path
            try:
                self._place_states(data_roots)
            except OSError as e:
                self.close()
                raise UsageError(f'cannot create a folder for the daemons\' state: {e}') from e
        self.logs = self.path
        self.kept = keep is not None
        if keep is not None:
            self.logs = Path(keep).resolve()
            try:
                self.logs.mkdir(parents=True, exist_ok=True)
            except OSError as e:
                self.close()
                raise UsageError(f'cannot create the log folder: {e}') from e

    def _place_states(self, data_roots):
        durable = [root for root in data_roots if not is_volatile(root)]
        if durable and is_volatile(self.path):
            self.states = Path(tempfile.mkdtemp(prefix='.torus-state-', dir=durable[0]))

    def socket(self, rank):
        return self.path / f'{rank}.sock'

    def log(self, rank):
        return self.logs / f'{rank}.log'

    def state(self, rank):
        return self.states / f'{rank}.state'

    def pid(self, rank):
        return self.path / f'{rank}.pid'

    @property
    def key(self):
        """The cluster key of the run's daemons."""
        return self.path / 'key'

    def close(self, keep_logs=False):
        """Removes everything except logs that are kept. Returns the folder of the logs, or None."""
        if self.states != self.path:
            shutil.rmtree(self.states, ignore_errors=True)
        if not keep_logs or self.kept or not any(self.path.glob('*.log')):
            shutil.rmtree(self.path, ignore_errors=True)
            return self.logs if self.kept else None
        for entry in list(self.path.iterdir()):
            if entry.suffix == '.log':
                continue
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
        return self.path


class Daemon:
    """One torusd: a process that only this object starts and ends.

    `enter` is a command prefix that runs the daemon in a network namespace. If this program is
    killed, the kernel terminates the daemon (it belongs to the thread that started it).
    """

    def __init__(self, rank, argv, run, wrap=(), enter=(), env=None):
        self.rank = rank
        self.argv = list(argv)
        self.command = [*enter, 'setpriv', '--pdeathsig', 'TERM', *same_layout(), *wrap, *argv]
        self.run = run
        self.env = env
        self.process = None
        self.expected_end = False  # this program ended it
        self.answered = False      # until then a signal may kill it

    @property
    def pid(self):
        return self.process.pid if self.process else None

    @property
    def alive(self):
        return self.process is not None and self.process.poll() is None

    @property
    def stopped(self):
        """Whether a signal such as SIGSTOP has stopped the process."""
        try:
            stat = Path(f'/proc/{self.pid}/stat').read_text()
        except OSError:
            return False
        return stat.rpartition(')')[2].split()[0] == 'T'

    @property
    def returncode(self):
        return self.process.poll() if self.process else None

    @property
    def log_path(self):
        return self.run.log(self.rank)

    def log(self):
        """Everything that the daemon has logged, including earlier starts."""
        try:
            return self.log_path.read_text(errors='replace')
        except FileNotFoundError:
            return ''

    def start(self):
        if self.alive:
            raise TorusError(f'node {self.rank} is already running')
        self.run.state(self.rank).mkdir(exist_ok=True)
        with interrupts.held(), open(self.log_path, 'ab') as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, start_new_session=True, env=self.env)
            self.expected_end = self.answered = False
            self.run.pid(self.rank).write_text(f'{self.process.pid}\n')

    def send_signal(self, signum):
        """Sends a signal if the process is still running."""
        if self.alive:
            if signum in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
                self.expected_end = True
            self.process.send_signal(signum)

    def wait(self, timeout=None):
        """Waits for the process, at most `timeout` seconds. Returns its exit status, or minus the number of the
        signal that killed it."""
        return self.process.wait() if timeout is None else wait(self.process, Patience(timeout))

    def problem(self):
        """Why the process's exit was a failure, as text, or None."""
        code = self.returncode
        if code is None or self.process is None:
            return None
        if code < 0:
            name = signal.Signals(-code).name
            if self.expected_end and (-code == signal.SIGKILL or not self.answered):
                return None
            return f'node {self.rank} was killed by {name}'
        if code == 0:
            return None if self.expected_end else f'node {self.rank} exited unexpectedly'
        return f'node {self.rank} exited with status {code}'


def stop_all(daemons, slowness=1):
    """Ends the daemons: SIGTERM to all, SIGKILL to those that still run after GRACE seconds.

    Returns the problems as texts: daemons that had died before, exited with an error, or did not
    exit.
    """
    problems = [text for text in (daemon.problem() for daemon in daemons) if text]
    running = [daemon for daemon in daemons if daemon.alive]
    for daemon in running:
        daemon.send_signal(signal.SIGTERM)
    patience = Patience(GRACE, slowness)
    left = running
    while left and not patience.over:
        time.sleep(0.005)
        left = [daemon for daemon in left if daemon.alive]
        for daemon in left:
            # Only if it is stopped: a leak checker stops its own program while it examines it.
            if daemon.stopped:
                daemon.send_signal(signal.SIGCONT)
    for daemon in left:
        problems.append(f'node {daemon.rank} did not exit within {patience.seconds:g} s of SIGTERM')
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()
    problems += [text for text in (daemon.problem() for daemon in running if daemon not in left)
                 if text]
    return problems


def end_all(which, pause=time.sleep):
    """Ends the processes whose ids which() returns: SIGTERM, and SIGKILL after 3 seconds. pause(seconds)
    waits between two calls of which()."""
    for signum, seconds in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 5.0)):
        for pid in which():
            try:
                os.kill(pid, signum)
            except ProcessLookupError:
                pass
        patience = Patience(seconds)
        while which() and not patience.over:
            pause(0.02)
        if not which():
            return


def tail(text, lines=15):
    return '\n'.join(text.splitlines()[-lines:])
