"""Programs that other users run, two daemons that run as an ordinary user without capabilities, and commands of
other users."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from support.waiting import wait_for
from torus_net import find_program
from torus_net.patience import Patience, run, wait

DAEMON, STRANGER = 54321, 54322  # users and groups that no system has

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason='only root can run programs as other users')


def as_user(user, *groups):
    """A command prefix: this user, the group with the same number, these further groups, and no capabilities."""
    return ['setpriv', f'--reuid={user}', f'--regid={user}',
            f'--groups={",".join(map(str, groups))}' if groups else '--clear-groups',
            '--bounding-set=-all', '--inh-caps=-all', '--pdeathsig=TERM']


@contextlib.contextmanager
def open_folder():
    """A folder that every user can enter. (The folders of pytest are those of one user.)"""
    folder = Path(tempfile.mkdtemp(prefix='torus-open-', dir='/tmp'))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder)


def copy_programs(folder, *names):
    """Copies programs and the libraries that they load from the build into a folder: the build may be where only its
    owner can enter. Returns the command that starts each program."""
    built = Path(find_program(names[0])).parent
    for library in [*built.glob('libtorus.so*'), *built.glob('**/libtorus.so*')]:
        if not (folder / library.name).exists():
            shutil.copy(library, folder / library.name)
    for name in names:
        shutil.copy(find_program(name), folder / name)
    return [['env', f'LD_LIBRARY_PATH={folder}', str(folder / name)] for name in names]


_reserved = []  # sockets that do not listen


def free_port():
    """A port of 127.0.0.1 for a daemon, or on which nobody listens. As long as this process lives, the kernel gives it
    only to programs that ask for it, and set SO_REUSEADDR as daemons do."""
    reserved = socket.socket()
    _reserved.append(reserved)
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(('127.0.0.1', 0))
    return reserved.getsockname()[1]


class Ring:
    """Two daemons of a separate user on 127.0.0.1, with programs and files that all users can reach."""

    def __init__(self, folder, *options, groups=()):
        self.folder = folder
        torusd, self.torusctl = copy_programs(folder, 'torusd', 'torusctl')
        subprocess.run([*self.torusctl, 'key', 'generate', folder / 'key'], check=True, capture_output=True)
        os.chown(folder / 'key', DAEMON, DAEMON)
        self.processes = []
        self.logs = [folder / f'{rank}.log' for rank in range(2)]
        ports = [free_port(), free_port()]
        for rank in range(2):
            for kind in 'run', 'state', 'data':
                (folder / f'{kind}{rank}').mkdir()
                os.chown(folder / f'{kind}{rank}', DAEMON, DAEMON)
            command = [*as_user(DAEMON, *groups), *torusd, '--dims', '2', '--rank', str(rank),
                       f'--port=+0=127.0.0.1:{ports[rank]}', f'--port=-0=127.0.0.1:{ports[1 - rank]}',
                       '--control', self.socket(rank), '--state-dir', folder / f'state{rank}',
                       '--data-root', folder / f'data{rank}', '--key-file', folder / 'key', *options]
            with open(self.logs[rank], 'wb') as log:
                self.processes.append(subprocess.Popen(command, stdout=log, stderr=log))

    def socket(self, rank):
        return self.folder / f'run{rank}' / 'sock'

    def ctl(self, *args, prefix=(), rank=0):
        return run([*prefix, *self.torusctl, '--socket', self.socket(rank), *args])

    def wait_whole(self):
        def whole():
            assert all(p.poll() is None for p in self.processes), self.log()
            result = self.ctl('--json', 'status')
            return result.returncode == 0 and json.loads(result.stdout)['whole']
        wait_for(whole, 20, self.log)

    def log(self):
        return '\n'.join(path.read_text() for path in self.logs)

    def close(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            assert wait(process, Patience(20)) == 0, self.log()


@contextlib.contextmanager
def ring(*options, groups=()):
    with open_folder() as folder:
        running = Ring(folder, *options, groups=groups)
        try:
            running.wait_whole()
            yield running
        finally:
            running.close()
