"""Launchers whose processes and files can be distinguished from others."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import uuid
from pathlib import Path

import pytest
from torus_net import CHECKOUT
from torus_net.patience import Patience, communicate

from .waiting import wait_for

LAUNCHER = str(CHECKOUT / 'topo' / 'torus.py')


class LauncherBench:
    """Starts programs whose processes and files can be distinguished from others."""

    def __init__(self):
        self.tag = f'TORUS_TEST_TAG={uuid.uuid4()}'
        self.folder = Path(tempfile.mkdtemp(prefix='tt', dir='/tmp'))
        name, _, value = self.tag.partition('=')
        self.environment = {**os.environ, name: value, 'TMPDIR': str(self.folder)}
        self.environment.pop('TORUS_SOCKET', None)

    def start(self, *argv, stdin=subprocess.DEVNULL, **extra):
        return subprocess.Popen([*argv], env={**self.environment, **extra}, stdin=stdin, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                start_new_session=True)

    def torus(self, *arguments, **options):
        return self.start(LAUNCHER, *arguments, **options)

    def run(self, *arguments, text=None, **extra):
        process = self.torus(*arguments, stdin=subprocess.PIPE, **extra)
        return self.end(process, text)

    @staticmethod
    def end(process, text=None, seconds=120):
        out, err = communicate(process, Patience(seconds), text)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def processes(self):
        """The descendants of the programs started here, whatever their parent is now."""
        found = []
        for entry in Path('/proc').iterdir():
            if entry.name.isdigit():
                try:
                    environment = (entry / 'environ').read_bytes()
                    state = (entry / 'stat').read_text().rpartition(')')[2].split()[0]
                except OSError:
                    continue
                if self.tag.encode() in environment.split(b'\0') and state not in 'ZX':
                    found.append(int(entry.name))
        return found

    def files(self):
        return sorted(entry.name for entry in self.folder.iterdir())

    def assert_nothing_left(self):
        wait_for(lambda: not self.processes(), 5)
        assert self.files() == []
        links = subprocess.run(['ip', '-o', 'link'], capture_output=True, text=True).stdout
        assert not re.search(r'\bn\d+-(plus|minus)\d', links)


def launcher_bench(kind):
    """For a fixture: yields a bench of this kind, then kills its remaining processes and removes its files."""
    it = kind()
    yield it
    for pid in it.processes():
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(it.folder, ignore_errors=True)


@pytest.fixture
def bench():
    yield from launcher_bench(LauncherBench)
