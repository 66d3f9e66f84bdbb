"""Adapts rounds of chaos (chaos.py) to a torus in Mininet."""

import shutil
import subprocess
from pathlib import Path

from .faulty_torus import make_torus
from .rounds import Program, Programs, PythonProgram
from .trees import check_target, leftovers, make_sources

HANG_MS = 1500


def slow_disk(library, control, state='.state'):
    """The environment of daemons whose disks hang once when the file `control` exists. `state` is a part of the
    paths of state folders."""
    return [f'LD_PRELOAD={library}', 'ASAN_OPTIONS=verify_asan_link_order=0',
            f'SLOW_DISK={control}', f'SLOW_DISK_IN=/.in.torusd:{state}', f'SLOW_DISK_MS={HANG_MS}']


class MininetChaos:
    """Files are below a folder of this machine. The torus is made by make(), or was started with `wrap` and the
    folder as its data root."""

    timeout = 30

    def __init__(self, build, folder):
        self.folder, self.control = Path(folder), Path(folder) / 'hangs'
        self.wrap = ['env', *slow_disk(Path(build) / 'tests' / 'support' / 'libslow_disk.so',
                                       self.control)]
        self.torus = None

    def make(self, given):
        """The torus that the command line's options describe, not started."""
        self.torus = make_torus(given, data_roots=(str(self.folder),), wrap=self.wrap)
        return self.torus

    def daemon(self, rank):
        return self.torus.node(rank)

    def has_died(self, rank):
        return not self.torus.node(rank).alive

    def kinds(self, faults):
        return []

    def folders(self, name):
        return HostFolders(self.torus, self.folder / name)

    def programs(self, seed, survive):
        return Programs(self.torus, seed, PythonProgram if survive and seed % 3 == 0 else Program,
                        survive)

    def let_disks_hang(self, line):
        new = self.folder / 'new'
        new.write_text(f'{line}\n')
        new.rename(self.control)

    def end_round(self):
        self.control.unlink(missing_ok=True)


class HostFolders:
    """The folders of an exchange on this machine, one for each node below `base`."""

    def __init__(self, torus, base):
        self.torus, self.base = torus, base
        self.source, self.target = f'{base}/out-%r', f'{base}/node-%r/in'
        self.full = None
        for rank in range(torus.geometry.nodes):
            (base / f'node-{rank}').mkdir(parents=True)

    def fill_disk(self, rank, kib):
        """Leaves little space for the files of one node."""
        subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={kib}k', 'full',
                        self.base / f'node-{rank}'], check=True)
        self.full = rank

    def write(self, sizes):
        make_sources(self.base, sizes)

    def in_place(self):
        """The nodes whose files are in place."""
        return [rank for rank in range(self.torus.geometry.nodes)
                if (self.base / f'node-{rank}' / 'in').exists()]

    def leftovers(self):
        return leftovers(self.torus, self.base)

    def check(self, sizes, nodes):
        """Checks that each of these nodes has the files that all of them have sent, and no others."""
        check_target(self.target, sizes, nodes=nodes)

    def remove(self):
        if self.full is not None:
            subprocess.run(['umount', '-l', self.base / f'node-{self.full}'], check=False)
        shutil.rmtree(self.base, ignore_errors=True)
