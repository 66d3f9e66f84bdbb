"""A torus of daemons on this machine: what all kinds of torus share.

    with LoopbackTorus('4x4') as torus:
        result = torus.exchange('at2', '64KiB')
        torus.node(5).kill()
"""

import json
import os
import resource
import shlex
import signal
import subprocess
import time
from pathlib import Path

from . import interrupts
from .geometry import Geometry, UsageError
from .patience import SLOWNESS, Patience, communicate, run
from .process import RunFolder, TorusError, find_program, same_layout, stop_all, tail
from .rate import parse_mbit
from .words import counted


class CommandFailed(TorusError):
    """torusctl exited with a status other than 0."""

    def __init__(self, result):
        self.result = result
        self.returncode = result.returncode
        self.stdout = result.stdout
        self.stderr = result.stderr
        super().__init__(f'{shlex.join(map(str, result.args))}: exit status {result.returncode}: '
                         f'{(result.stderr or result.stdout).strip()}')


class Node:
    """One node of a running torus."""

    def __init__(self, torus, rank, daemon, addresses):
        self.torus = torus
        self.rank = rank
        self.coordinates = torus.geometry.coordinates(rank)
        self.daemon = daemon
        self.addresses = addresses  # {"+0": "127.0.0.1:40001"}: dialled (+), listened on (-)

    @property
    def pid(self):
        return self.daemon.pid

    @property
    def alive(self):
        return self.daemon.alive

    @property
    def returncode(self):
        return self.daemon.returncode

    @property
    def socket(self):
        return str(self.torus.run.socket(self.rank))

    @property
    def log_path(self):
        return self.daemon.log_path

    def log(self):
        return self.daemon.log()

    def start(self):
        self.daemon.start()

    def kill(self, signum=signal.SIGKILL):
        """Kills the daemon and waits until it has exited."""
        self.daemon.send_signal(signum)
        self.daemon.wait(30)

    def terminate(self, timeout=30):
        """SIGTERM. Returns the exit status."""
        self.daemon.send_signal(signal.SIGTERM)
        return self.daemon.wait(timeout)

    def send_signal(self, signum):
        """Sends any signal, including SIGSTOP and SIGCONT, without waiting."""
        self.daemon.send_signal(signum)

    def restart(self, signum=signal.SIGTERM):
        """Ends the daemon if it is running, and starts it again with the same ports and state."""
        if self.alive:
            self.kill(signum)
        self.start()

    def ctl(self, *args, **kwargs):
        return self.torus.ctl(self.rank, *args, **kwargs)

    def environment(self):
        """For programs on this node: see Torus.environment()."""
        return {**self.torus.environment(), 'TORUS_SOCKET': self.socket,
                'TORUS_RANK': str(self.rank)}

    def enter(self):
        """A command prefix that runs a command on this node."""
        return []

    def start_program(self, command, **options):
        """Starts a shell command on this node, with environment(). Returns its subprocess.Popen, made with
        these options. The kernel terminates the command if this program is killed."""
        return subprocess.Popen([*self.enter(), 'setpriv', '--pdeathsig', 'TERM', *same_layout(),
                                 '/bin/sh', '-c', command], env=self.environment(), **options)

    def memory(self):
        """The daemon's current memory in bytes: {"RssAnon": ..., "RssShmem": ..., "VmHWM": ...}."""
        wanted = ('RssAnon', 'RssShmem', 'VmHWM')
        status = Path(f'/proc/{self.pid}/status').read_text()
        lines = (line.split() for line in status.splitlines())
        return {f[0].rstrip(':'): int(f[1]) * 1024 for f in lines if f[0].rstrip(':') in wanted}


class Torus:
    """The parent of LoopbackTorus, MininetTorus and VirtualTorus.

    dims        "4x8" or a Geometry
    bw          nominal rate of each link in Mbit/s (enforced by Mininet; on loopback only passed on)
    bin         folder with torusd and torusctl (default: $TORUS_BIN, PATH, build/). If $TORUS_WATCH_BIN is
                set, status(), links(), exchange() and the waits use the torusctl in that folder: they start
                it very often, and an instrumented torusctl is slow
    memory      memory of each daemon for blocks in transit, e.g. "64MiB"
    data_roots  folders below which exchanges may read and write files
    wrap        command prefix for each torusd, e.g. "valgrind -q" (default: $TORUS_WRAP)
    keep_logs   folder for the logs, which are kept; without it they are removed unless a run fails
    key         whether the daemons have a cluster key, a new one for each run (default: yes)
    extra       more options for each torusd, or a function of the rank that returns them
    timeout     seconds within which the torus must be whole (default: depends on its size). This and all
                other limits on waiting are a Patience, see patience.py
    say         function called with progress messages
    """

    kind = 'torus'
    max_mbit = None

    def __init__(self, dims, *, bw=None, bin=None, memory=None, data_roots=(), wrap=None,
                 keep_logs=None, key=True, extra=(), log_level=None, timeout=None, say=None):
        self.geometry = dims if isinstance(dims, Geometry) else Geometry(dims)
        self.bw = None if bw is None else parse_mbit(bw, self.max_mbit)
        self.torusd = find_program('torusd', bin)
        self.torusctl = find_program('torusctl', bin)
        self.watcher = find_program('torusctl', os.environ.get('TORUS_WATCH_BIN') or bin)
        self.memory = memory
        if isinstance(data_roots, (str, os.PathLike)):  # one folder, not a list
            data_roots = (data_roots,)
        self.data_roots = [_data_root(folder) for folder in data_roots]
        wrap = os.environ.get('TORUS_WRAP', '') if wrap is None else wrap
        self.wrap = shlex.split(wrap) if isinstance(wrap, str) else list(wrap)
        self.keep_logs = keep_logs
        self.key = key
        self.extra = extra
        self.log_level = log_level
        self.daemons_per_processor = max(1, self.geometry.nodes / len(os.sched_getaffinity(0)))
        self.slowness = max(SLOWNESS, 10 if self.wrap else 1)
        self.timeout = timeout or 30 + 0.25 * self.geometry.nodes
        self.say = say or (lambda text: None)
        self.limit = None  # see limit.py
        self._help = None
        self.run = None
        self.nodes = []
        self.kept_logs = None  # after stop(): the folder in which logs remain
        self.problems = []     # after stop(): daemons that failed, as texts

    # --- life ---

    def start(self):
        """Starts everything; returns when every node reports that the torus is whole."""
        _raise_limits()
        try:
            with interrupts.held():
                self.run = RunFolder(self.keep_logs, self.data_roots)
            self._build()
            self.say(f'starting {counted(len(self.nodes), "daemon")}')
            for node in self.nodes:
                node.start()
            self.wait_whole(self.timeout)
        except BaseException as e:
            self.stop(failed=not isinstance(e, (KeyboardInterrupt, interrupts.Terminated)))
            if isinstance(e, TorusError) and self.kept_logs:
                raise TorusError(f'{e}\nlogs: {self.kept_logs}') from e
            raise
        return self

    def stop(self, failed=False):
        """Takes everything down; keeps the logs if `failed`. Returns the problems as texts."""
        if self.run is None:
            return self.problems
        with interrupts.held():
            self.problems = stop_all([node.daemon for node in self.nodes], self.slowness)
            self._tear_down()
            self.kept_logs = self.run.close(keep_logs=failed or bool(self.problems))
            self.run = None
        return self.problems

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, value, traceback):
        self.stop(failed=kind is not None)

    def _build(self):
        """Creates the network and self.nodes. If it fails halfway, _tear_down() undoes it."""
        raise NotImplementedError

    def _tear_down(self):
        raise NotImplementedError

    # --- use ---

    def node(self, rank):
        return self.nodes[rank]

    def knows(self, option):
        """Whether torusd has this option. Benchmarks also run older builds, which lack some options."""
        if self._help is None:
            try:
                self._help = run([self.torusd, '--help'], 10).stdout
            except subprocess.TimeoutExpired:
                self._help = ''  # it will not start either; start() reports that
        return option in self._help

    def key_file(self):
        """The file with the cluster key of this run, made at the first call; None without a key."""
        if not self.key or not self.knows('--key-file'):
            return None
        path = self.run.key
        if not path.exists():
            made = subprocess.run([self.torusctl, 'key', 'generate', str(path)], text=True,
                                  stdin=subprocess.DEVNULL, capture_output=True)
            if made.returncode:
                raise TorusError(f'the cluster key cannot be made: {made.stderr.strip()}')
        return path

    def command(self, rank, addresses):
        """The torusd command line of a node."""
        run = self.run
        argv = [self.torusd, '--dims', str(self.geometry), '--rank', str(rank)]
        for name, address in addresses.items():
            argv.append(f'--port={name}={address}')
        argv += ['--daemons-per-processor', f'{self.daemons_per_processor:g}']
        argv += ['--control', str(run.socket(rank)), '--state-dir', str(run.state(rank))]
        if self.key_file() is not None:
            argv += ['--key-file', str(self.key_file())]
        for folder in self.data_roots:
            argv += ['--data-root', folder]
        if self.bw is not None:
            argv += ['--link-mbit', f'{self.bw:g}']
            if self.limit is not None and self.knows('--link-burst'):
                argv += ['--link-burst', str(self.limit.at_once)]
        if self.memory is not None:
            argv += ['--memory', str(self.memory)]
        if self.log_level is not None:
            argv += ['--log-level', self.log_level]
        return argv + list(self.extra(rank) if callable(self.extra) else self.extra)

    def environment(self):
        """For commands that use this torus: torusctl is in PATH and connects to node 0 by default."""
        return {**os.environ,
                'PATH': os.path.dirname(self.torusctl) + ':' + os.environ.get('PATH', os.defpath),
                'TORUS_SOCKET': str(self.run.socket(0)),
                'TORUS_RUN_DIR': str(self.run.path),
                'TORUS_LOG_DIR': str(self.run.logs),
                'TORUS_NODES': str(self.geometry.nodes),
                'TORUS_DIMS': str(self.geometry)}

    def enter(self):
        """A command prefix that runs a command in the network for which environment() is meant."""
        return []

    def ctl(self, rank, *args, timeout=120, check=False, program=None):
        """Runs torusctl (or `program`) at a node. Returns a subprocess.CompletedProcess with text."""
        result = self._ctl(rank, args, Patience(timeout, self.slowness), program)
        if check and result.returncode:
            raise CommandFailed(result)
        return result

    def _ctl(self, rank, args, patience, program):
        env = {**os.environ, 'TORUS_SOCKET': str(self.run.socket(rank))}
        process = None
        try:
            with interrupts.held():
                process = subprocess.Popen([program or self.torusctl, *map(str, args)], env=env, text=True,
                                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, start_new_session=True)
            out, err = communicate(process, patience)
        except BaseException:
            if process is not None:
                process.kill()
                process.communicate()
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def json(self, rank, *args, timeout=120, program=None):
        """Runs torusctl --json. Returns what it prints as an object, or raises CommandFailed."""
        result = self.ctl(rank, '--json', *args, timeout=timeout, check=True, program=program)
        try:
            return json.loads(result.stdout)
        except ValueError as e:
            raise TorusError(f'torusctl {shlex.join(map(str, args))} did not print JSON ({e}): '
                             f'{result.stdout[:200]!r}') from e

    def status(self, rank=0):
        return self.json(rank, 'status', program=self.watcher)

    def links(self, rank=0):
        return self.json(rank, 'links', program=self.watcher)

    def exchange(self, algorithm=None, block_size=None, *, rank=0, source=None, target=None,
                 missing_ok=False, within=None, timeout=600, options=()):
        """Requests an exchange at node `rank`. Returns the result as an object, or raises CommandFailed.

        source, target: folders (--from, --to); within: --timeout of torusctl in seconds;
        timeout: seconds that this call waits at most; options: more options of `torusctl exchange`.
        """
        args = ['exchange']
        for name, value in (('--algorithm', algorithm), ('--block-size', block_size),
                            ('--from', source), ('--to', target), ('--timeout', within)):
            if value is not None:
                args += [name, str(value)]
        if missing_ok:
            args.append('--missing-ok')
        return self.json(rank, *args, *options, timeout=timeout, program=self.watcher)

    def wait_whole(self, timeout=30, ranks=None):
        """Returns when the given nodes (default: all) report that every link is up."""
        self._wait_whole(Patience(timeout, self.slowness), ranks)

    def _wait_whole(self, patience, ranks=None):
        for rank in range(self.geometry.nodes) if ranks is None else ranks:
            self._wait_status(rank, patience, lambda status: status['whole'])

    def wait_broken(self, timeout=30, ranks=(0,)):
        """Returns when the given nodes report that the torus is not whole."""
        patience = Patience(timeout, self.slowness)
        for rank in ranks:
            self._wait_status(rank, patience, lambda status: not status['whole'], False)

    def _wait_status(self, rank, patience, wanted, all_alive=True):
        pause = 0.02
        while True:
            self._look_after_daemons(all_alive, rank)
            late = patience.over
            said = 'it does not answer'
            result = None
            if self.run.socket(rank).exists():
                try:
                    result = self._ctl(rank, ['--json', 'status'], patience, self.watcher)
                except subprocess.TimeoutExpired:
                    pass
            if result is not None and result.returncode == 0:
                self.nodes[rank].daemon.answered = True
                try:
                    status = json.loads(result.stdout)
                except ValueError:
                    raise TorusError(f'{self.watcher} --json status printed no JSON: '
                                     f'{result.stdout[:200]!r}') from None
                if wanted(status):
                    return status
                said = '; '.join(status['faults']) or 'it reports no fault'
            elif result is not None and result.returncode == 2:
                raise CommandFailed(result)  # not our torusctl
            elif result is not None:
                said = result.stderr.strip() or said
            if late:
                raise TorusError(f'node {rank} was not ready in time: {said}\n'
                                 + self._log_tail(rank))
            time.sleep(pause)
            pause = min(pause * 1.5, 0.25)

    def _look_after_daemons(self, all_alive, rank):
        for node in self.nodes if all_alive else [self.nodes[rank]]:
            if not node.alive:
                code = node.returncode
                raise TorusError((node.daemon.problem() or f'node {node.rank} ended ({code})')
                                 + '\n' + self._log_tail(node.rank))

    def _log_tail(self, rank):
        text = tail(self.nodes[rank].log())
        return f'--- log of node {rank}, its end ---\n{text}\n---' if text else '(its log is empty)'


def _data_root(folder):
    path = os.path.abspath(folder)  # links stay: torusd knows a root by the name that users write, too
    if not os.path.isdir(path):
        raise UsageError(f'data root {folder} is not a folder')
    return path


def _raise_limits():
    """Raises the soft limit of open files, which is often too low for hundreds of nodes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 16384:
        wanted = 16384 if hard == resource.RLIM_INFINITY else min(hard, 16384)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
