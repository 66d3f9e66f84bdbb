"""Adapts rounds of chaos (chaos.py) to a torus of virtual machines."""

import os
import subprocess
from pathlib import Path

from torus_net import VirtualTorus

from .chaos_mininet import slow_disk
from .rounds import Program, Programs
from .trees import content_of, seed_of

RAM_MIB = 160  # enough for the files of a round, too, which are in memory
STATE = '/var/lib/torusd'
HANGS = '/run/hangs'


class MachinesChaos:
    """Files are in the machines. Daemons are killed, stopped and started inside their machines."""

    timeout = 60

    def __init__(self, build):
        """build: the folder with the programs."""
        support = Path(build) / 'tests' / 'support'
        library = support / 'libslow_disk.so'
        self.options = {'ram': RAM_MIB, 'programs': [library, support / 'group_program'],
                        'settings': dict(word.split('=', 1) for word in slow_disk(
                            f'/bin/{library.name}', HANGS, STATE))}
        self.torus = None

    def make(self, given):
        """The torus that the command line's options describe, not started."""
        self.torus = VirtualTorus(given.dims, bin=given.bin, bw=given.bw, **self.options)
        return self.torus

    def daemon(self, rank):
        return self.torus.node(rank).inside

    def has_died(self, rank):
        node = self.torus.node(rank)
        return not node.alive or (_has_booted(node) and not node.inside.alive)

    def kinds(self, faults):
        """A power failure. Not while folders are exchanged, because files and journals would be lost."""
        def cut_power(at):
            node, seconds = self.torus.node(faults.rank()), 2 * faults.rng.random()
            faults.outage(at, seconds, f'power of node {node.rank} cut', node.kill, node.start)

        return [] if any(work.durable for work in faults.works) else [cut_power, cut_power]

    def folders(self, name):
        return GuestFolders(self.torus, f'/srv/{name}')

    def programs(self, seed, survive):
        return Programs(self.torus, seed, GuestProgram, survive)

    def let_disks_hang(self, line):
        self._everywhere(f"echo '{line}' >{HANGS}.new; mv {HANGS}.new {HANGS}")

    def end_round(self):
        self._everywhere(f'rm -f {HANGS}')

    def _everywhere(self, command):
        for node in self.torus.nodes:
            if _has_booted(node):
                node.run_bytes(command)


def _has_booted(node):
    return node.alive and os.path.exists(node.shell_socket)


class GuestProgram(Program):
    """group_program in a machine."""

    errors = subprocess.DEVNULL  # the end of the connection, if the machine loses its power

    def _command(self, seed, survives):
        arguments = self._arguments(seed, survives)
        return f"exec sh -c 'echo $$ >/run/rounds.pid; exec group_program {arguments}'"

    def terminate(self):
        self.node.run_bytes('kill $(cat /run/rounds.pid) 2>/dev/null || true')


class GuestFolders:
    """The same as HostFolders, in the machines."""

    def __init__(self, torus, base):
        self.torus, self.base = torus, base
        self.source, self.target = f'{base}/out', f'{base}/node/in'
        for node in torus.nodes:
            node.run('mkdir', '-p', f'{base}/node')

    def fill_disk(self, rank, kib):
        self.torus.node(rank).run('mount', '-t', 'tmpfs', '-o', f'size={kib}k', 'full',
                                  f'{self.base}/node')

    def write(self, sizes):
        nodes = range(self.torus.geometry.nodes)
        for node in self.torus.nodes:
            node.put(self.source, {str(to): _content(sizes, node.rank, to) for to in nodes})

    def in_place(self):
        return [node.rank for node in self.torus.nodes
                if node.run_bytes(f'[ ! -e {self.target} ] || echo there')]

    def leftovers(self):
        found = []
        for node in self.torus.nodes:
            for path in node.run('find', self.base, STATE).split():
                name = path.rpartition('/')[2]
                if '.torusd-' in path or name.startswith(('exchange-', '.next')):
                    found.append(f'{node.rank}: {path}')
        return found

    def check(self, sizes, nodes):
        for node in map(self.torus.node, nodes):
            files = node.get(self.target)
            assert sorted(files) == sorted(map(str, nodes)), f'node {node.rank}: {sorted(files)}'
            wrong = [source for source in nodes
                     if files[str(source)] != _content(sizes, source, node.rank)]
            assert not wrong, f'node {node.rank}: wrong contents from nodes {wrong}'

    def remove(self):
        for node in self.torus.nodes:
            if _has_booted(node):
                node.run_bytes(f'umount {self.base}/node 2>/dev/null; rm -rf {self.base}')


def _content(sizes, source, destination):
    return content_of(seed_of('', source, destination), sizes[source, destination])
