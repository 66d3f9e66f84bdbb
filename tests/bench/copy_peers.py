"""The ways to copy a tree from node 0 to all other nodes: torusctl copy, and what people use without it. Each one
reaches the nodes over the routes of torus-routed.

A way has a name, the programs that it starts, prepare() and run(). run() returns when every node has the tree. Programs that wait for work, such as
rsync's daemon, are started by prepare(), outside of the measured time."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.waiting import wait_for
from torus_net import interrupts, same_layout

from . import torrent

RSYNC_PORT, SSH_PORT, PIPE_PORT, TRACKER_PORT, TORRENT_PORT = 1873, 1022, 7000, 6969, 6881
LIMIT = 900     # seconds of any one program
LISTENS = '0A'  # in /proc/net/tcp
RSYNCD = 'use chroot = no\nuid = 0\ngid = 0\nnumeric ids = yes\nmax connections = 0\n[data]\npath = {}\nread only = no\n'
SSH_SERVER = '/usr/sbin/sshd'
SSHD = '''Port {port}
HostKey {folder}/ssh-key
AuthorizedKeysFile {folder}/ssh-key.pub
PermitRootLogin yes
StrictModes no
UsePAM yes
PidFile none
PrintMotd no
MaxStartups 100
Subsystem sftp internal-sftp
'''


class Failed(Exception):
    """A way cannot copy the tree; the message says why."""


class Bed:
    """The nodes, their folders, and the programs that run on them. Node R has the folder base/R."""

    def __init__(self, torus, base, folder):
        self.torus, self.base, self.folder = torus, Path(base), Path(folder)
        self.geometry = torus.geometry
        self.others = range(1, self.geometry.nodes)
        self.processes = []

    def own(self, rank):
        return self.base / str(rank)

    def target(self, rank):
        return self.own(rank) / 'tree'

    def address(self, rank):
        return self.torus.ip_hosts.addresses[rank]

    def start(self, rank, *command, output=subprocess.DEVNULL):
        """Starts a program on a node. It ends with stop() at the latest."""
        with interrupts.held():
            process = subprocess.Popen(
                ['setpriv', '--pdeathsig', 'KILL', *self.torus.node(rank).host.enter(), *same_layout(), *map(str, command)],
                cwd='/', stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE, text=True,
                start_new_session=True)
            self.processes.append(process)
        return process

    def end(self, process, what):
        """Waits until a program has ended well."""
        try:
            error = process.communicate(timeout=LIMIT)[1]
        except subprocess.TimeoutExpired:
            raise Failed(f'{what} has not ended within {LIMIT} s') from None
        with interrupts.held():
            self.processes.remove(process)
        if process.returncode:
            raise Failed(f'{what}: {error.strip()[-300:] or process.returncode}')

    def run(self, rank, *command):
        self.end(self.start(rank, *command), command[0])

    def wait_listening(self, rank, port):
        """Waits until a program on the node listens on a port. No program may have ended before."""
        wanted = f':{port:04X}'

        def listens():
            for process in self.processes:
                if process.poll() is not None:
                    raise Failed(f'{process.args[-3:]} has ended: {process.communicate()[1].strip()[-300:]}')
            lines = [line.split() for name in ('tcp', 'tcp6')
                     for line in Path(f'/proc/{self.torus.node(rank).host.pid}/net/{name}').read_text().splitlines()]
            return any(fields[1].endswith(wanted) and fields[3] == LISTENS for fields in lines)
        wait_for(listens, 20, f'nothing listens on port {port} of node {rank}')

    def stop(self):
        """Ends all programs that still run."""
        with interrupts.held():
            for process in self.processes:
                try:
                    os.killpg(process.pid, signal.SIGTERM)
                except ProcessLookupError:
                    pass
            for process in self.processes:
                try:
                    process.communicate(timeout=5)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.communicate()
            self.processes = []


def chain(geometry):
    """All nodes from node 0 on, each a neighbour of the one before."""
    nodes = [[]]
    for size in reversed(geometry.sizes):
        nodes = [[at, *rest] for at in range(size) for rest in (nodes if at % 2 == 0 else reversed(nodes))]
    return [geometry.rank(node) for node in nodes]


def children(geometry):
    """A tree of shortest paths from node 0: {node: nodes that get it from there}."""
    known, found, edge = {0}, {}, [0]
    while edge:
        here = edge.pop(0)
        for port in geometry.ports(here):
            there = geometry.neighbour(here, port)
            if there not in known:
                known.add(there)
                found.setdefault(here, []).append(there)
                edge.append(there)
    return found


def one_after_another(bed, source, send):
    for rank in bed.others:
        send(0, rank, source)


def along_a_chain(bed, source, send):
    nodes = chain(bed.geometry)
    for here, there in zip(nodes, nodes[1:]):
        send(here, there, source if here == 0 else bed.target(here))


def along_a_tree(bed, source, send):
    """Each node sends to those below it at once, as soon as it has everything."""
    below = children(bed.geometry)

    def pass_on(here):
        def one(there):
            send(here, there, source if here == 0 else bed.target(here))
            pass_on(there)
        if here in below:
            with ThreadPoolExecutor(len(below[here])) as pool:
                list(pool.map(one, below[here]))
    pass_on(0)


class Torusd:
    name = 'torusctl copy'
    programs = ()  # those of the build
    kinds = ('file', 'environment', 'cache')
    loses = ''

    def prepare(self, bed):
        """The daemons run all the time."""

    def run(self, bed, source):
        bed.torus.ctl(0, 'copy', source, '--to', f'{bed.base}/%r/tree', timeout=3600, check=True)


class Way:
    """A way in which one node sends to another one: send()."""

    loses = ''

    def __init__(self, order, words, kinds=('file', 'environment', 'cache')):
        self.order, self.name, self.kinds = order, f'{self.tool}, {words}', kinds

    def run(self, bed, source):
        self.order(bed, source, lambda here, there, what: self.send(bed, here, there, what))


class Rsync(Way):
    tool, programs = 'rsync', ('rsync',)

    def prepare(self, bed):
        for rank in bed.others:
            config = bed.folder / f'rsyncd-{rank}'
            config.write_text(RSYNCD.format(bed.own(rank)))
            bed.start(rank, 'rsync', '--daemon', '--no-detach', f'--config={config}', f'--port={RSYNC_PORT}')
        for rank in bed.others:
            bed.wait_listening(rank, RSYNC_PORT)

    def send(self, bed, here, there, what):
        slash = '/' if what.is_dir() else ''
        bed.run(here, 'rsync', '-a', f'{what}{slash}', f'rsync://{bed.address(there)}:{RSYNC_PORT}/data/tree{slash}')


class Ssh(Way):
    programs = ('ssh', 'ssh-keygen', SSH_SERVER)

    def prepare(self, bed):
        key = bed.folder / 'ssh-key'
        if not key.exists():
            subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', key], check=True)
        (bed.folder / 'sshd').write_text(SSHD.format(port=SSH_PORT, folder=bed.folder))
        Path('/run/sshd').mkdir(exist_ok=True)
        for rank in bed.others:
            bed.start(rank, SSH_SERVER, '-D', '-e', '-f', bed.folder / 'sshd')
        for rank in bed.others:
            bed.wait_listening(rank, SSH_PORT)

    @staticmethod
    def options(bed):
        return ['-F', 'none', '-i', bed.folder / 'ssh-key', '-o', 'StrictHostKeyChecking=no', '-o', 'LogLevel=ERROR', '-o',
                'UserKnownHostsFile=/dev/null', '-o', 'BatchMode=yes']


class RsyncOverSsh(Ssh):
    tool, programs = 'rsync over ssh', ('rsync', *Ssh.programs)

    def send(self, bed, here, there, what):
        slash = '/' if what.is_dir() else ''
        shell = shlex.join(['ssh', '-p', str(SSH_PORT), *map(str, self.options(bed))])
        bed.run(here, 'rsync', '-a', '-e', shell, f'{what}{slash}', f'{bed.address(there)}:{bed.target(there)}{slash}')


class Scp(Ssh):
    tool, programs = 'scp', ('scp', *Ssh.programs)

    def send(self, bed, here, there, what):
        whole = f'{what}/.' if what.is_dir() else what
        bed.run(here, 'scp', '-q', '-r', '-p', '-P', SSH_PORT, *self.options(bed), whole,
                f'{bed.address(there)}:{bed.target(there)}')


class Pipe:
    """tar through nc from neighbour to neighbour, all at the same time."""

    name = 'tar and nc, piped along a chain'
    programs = ('bash', 'nc', 'tar', 'tee')
    kinds = ('file', 'environment', 'cache')
    loses = ''
    receive = 'nc -d -l {port}'
    send = 'nc -N {next} {port}'

    def prepare(self, bed):
        """Every node listens before the one before it, which connects at once."""
        self.nodes = chain(bed.geometry)
        self.receivers = []
        for place, rank in reversed(list(enumerate(self.nodes))[1:]):
            command = f'{self.receive} | tar -xipf - -C {bed.own(rank)}'
            if place + 1 < len(self.nodes):
                pipe = bed.folder / f'pipe-{rank}'
                pipe.unlink(missing_ok=True)
                os.mkfifo(pipe)
                command = (f'{self.send} <{pipe} & {self.receive} | tee {pipe} | tar -xipf - -C {bed.own(rank)}; '
                           'wait $!')
            self.receivers.append(bed.start(rank, 'bash', '-o', 'pipefail', '-c', self.filled(bed, place, command)))
            self.wait_ready(bed, rank)

    def wait_ready(self, bed, rank):
        bed.wait_listening(rank, PIPE_PORT)

    def filled(self, bed, place, command):
        there = self.nodes[place + 1] if place + 1 < len(self.nodes) else 0
        before = self.nodes[place - 1]
        return command.format(port=PIPE_PORT, next=bed.address(there), before=bed.address(before))

    def run(self, bed, source):
        command = f'tar -cf - -C {source.parent} {source.name} | {self.send}'
        bed.run(0, 'bash', '-o', 'pipefail', '-c', self.filled(bed, 0, command))
        for process in self.receivers:
            bed.end(process, 'tar')


class Udpcast(Pipe):
    """udp-sender to one receiver, along the same chain: its multicast does not cross a hop."""

    name = 'udpcast, piped along a chain'
    programs = ('bash', 'tar', 'tee', 'udp-receiver', 'udp-sender')
    kinds = ('file',)
    receive = 'udp-receiver --interface torus0 --nokbd --mcast-rdv-address {before} 2>/dev/null'
    send = ('udp-sender --interface torus0 --pointopoint --nokbd --min-receivers 1 --mcast-rdv-address {next} '
            '2>/dev/null')

    def wait_ready(self, bed, rank):
        """udp-sender repeats its question until the receiver answers."""


class Aria2:
    name = 'aria2c, BitTorrent'
    programs = ('aria2c',)
    kinds = ('file', 'environment', 'cache')
    loses = 'loses links, modes, times and empty folders'
    common = ['--enable-dht=false', '--enable-dht6=false', '--enable-peer-exchange=false', '--bt-enable-lpd=false',
              '--disable-ipv6=true', '--seed-ratio=0.0', '--file-allocation=none', '--check-integrity=true',
              '--bt-max-peers=0', '--console-log-level=error', '--summary-interval=0', '--no-conf=true',
              '--show-console-readout=false', f'--bt-tracker-interval={torrent.INTERVAL}', '--max-concurrent-downloads=9',
              f'--listen-port={TORRENT_PORT}', '--allow-overwrite=true', '--bt-max-open-files=1000']

    def prepare(self, bed):
        bed.start(0, sys.executable, torrent.__file__, TRACKER_PORT)
        bed.wait_listening(0, TRACKER_PORT)
        for rank in bed.others:
            hook = self.hook(bed, rank)
            hook.write_text(f'#!/bin/sh\n: >{hook}.ran\n')
            hook.chmod(0o755)
            self.complete(bed, rank).unlink(missing_ok=True)

    @staticmethod
    def hook(bed, rank):
        return bed.folder / f'complete-{rank}'

    @classmethod
    def complete(cls, bed, rank):
        return cls.hook(bed, rank).with_suffix('.ran')

    def run(self, bed, source):
        path = bed.folder / 'tree.torrent'
        torrent.write_torrent(path, source, f'http://{bed.address(0)}:{TRACKER_PORT}/announce')
        clients = [bed.start(0, 'aria2c', *self.common, '-d', source.parent, path)]
        clients += [bed.start(rank, 'aria2c', *self.common, f'--on-bt-download-complete={self.hook(bed, rank)}', '-d',
                              bed.own(rank), path) for rank in bed.others]
        begin = time.monotonic()
        while not all(self.complete(bed, rank).exists() for rank in bed.others):
            if time.monotonic() - begin > LIMIT:
                raise Failed(f'aria2c has not ended within {LIMIT} s')
            for rank, client in enumerate(clients):
                if client.poll() is not None:
                    raise Failed(f'aria2c of node {rank} has ended: {client.communicate()[1].strip()[-300:]}')
            time.sleep(0.01)
        for client in clients:
            client.terminate()


def all_ways():
    """Those that are no better with trees than the others, or follow symbolic links (scp), copy only single files."""
    single = ('file',)
    return [Torusd(), Rsync(one_after_another, 'one after another'), Rsync(along_a_chain, 'along a chain', single),
            Rsync(along_a_tree, 'along a tree'), RsyncOverSsh(one_after_another, 'one after another', single),
            Scp(one_after_another, 'one after another', single), Pipe(), Udpcast(), Aria2()]


def missing_program(way):
    """A program of a way that this machine lacks, or None."""
    return next((program for program in way.programs if not shutil.which(program)), None)


def multicast_crosses(bed, seconds=6):
    """Whether udp-sender on node 0 reaches all other nodes by multicast over the routed addresses."""
    data = bed.folder / 'multicast'
    data.write_bytes(b'some bytes')
    receivers = [bed.start(rank, 'timeout', seconds, 'udp-receiver', '--interface', 'torus0', '--nokbd', '--ttl', 8,
                           '--file', bed.folder / f'multicast-{rank}') for rank in bed.others]
    sender = bed.start(0, 'timeout', seconds, 'udp-sender', '--interface', 'torus0', '--nokbd', '--ttl', 16,
                       '--min-receivers', len(receivers), '--max-wait', seconds - 2, '--file', data)
    statuses = [process.wait() for process in (sender, *receivers)]
    bed.stop()
    return not any(statuses)


def installed(ways, say):
    """Those of the ways whose programs this machine has."""
    for way in ways:
        if missing_program(way):
            say(f'without {way.name}: {missing_program(way)} is not installed')
    return [way for way in ways if not missing_program(way)]
