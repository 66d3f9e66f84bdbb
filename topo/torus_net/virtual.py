"""A torus of virtual machines: a kernel, a clock and a file system of its own for every node.

    with VirtualTorus('2x2') as torus:
        torus.exchange('at2', '64KiB')
        torus.node(3).run('ls -l /srv')
        torus.node(3).kill()      # a power failure
        torus.node(3).restart()   # boots it again

A cable is a pair of connected sockets, one for a network card of each of the two machines. There is
no other network, so a machine can only reach its neighbours. The launcher keeps both sockets open, so
a cable survives a machine that is off: the neighbours then see a link on which nobody answers.

A node's daemon is reached through a serial port, over which topo/guest/bridge multiplexes
connections. On the host, R.sock is node R's control socket as on every torus, and R.shell is a socket
on which each connection runs one command in the machine.
"""

import os
import shutil
import socket
import time
from pathlib import Path

from . import interrupts
from .addresses import link_address, port_address
from .geometry import UsageError, port_word
from .guest_image import bridge_program, default_cache, guest_file, make_image
from .limit import Bucket, make_limit
from .machine import Machine, VirtualNode
from .process import TorusError
from .qemu import (CLOCK, CONSOLE, LEAST_RAM_MIB, OVERHEAD_MIB, QEMU, RAM_MIB, available_memory,
                   choose_accelerator, machine_arguments, vm_obstacle)
from .torus import Torus
from .virtual_cable import device, mute, unmute
from .words import counted, plural

SILENCE_MS = 5000         # machines that share processors may be stopped for a second
DAEMON_MEMORY = '32MiB'   # torusd's default would not fit; enough for a group of programs
MOST_NODES = 256
MOST_RAM_MIB = 1 << 20
PROGRAM_MOST = 256 << 20  # bytes, with debugging symbols, which the image leaves out


class VirtualTorus(Torus):
    """See Torus, except that `data_roots` and `wrap` are not supported: files are in the machines,
    below /srv. More options:

    burst        bytes that a link passes at once after a pause, as --burst
    ram          of every machine, in MiB
    accelerator  tcg, kvm, or auto: kvm if a test boot under it succeeds
    rtc          a function of the rank that returns the time of its hardware clock at the start, in
                 seconds since 1970 (None: this machine's time)
    programs     paths of programs to put into /bin of every machine, with their shared libraries
    settings     environment variables of every daemon, as a dictionary
    cache        folder for the kernel and the image
    progress     function called with (machines that are up, number of machines) while they boot
    """

    kind = 'virtual machines'

    def __init__(self, dims, *, burst=None, ram=None, accelerator='auto', rtc=None,
                 programs=(), settings=None, cache=None, progress=None, data_roots=(), wrap=None, **options):
        super().__init__(dims, wrap='', **options)
        if data_roots or wrap:
            raise UsageError('virtual machines have their own files, below /srv, and run torusd '
                             'directly: data roots and a wrapper are not supported')
        self.ram = RAM_MIB if ram is None else int(ram)
        check_machines(self.geometry, self.ram)
        if accelerator not in ('auto', 'tcg', 'kvm'):
            raise UsageError(f'"{accelerator}" is not an accelerator: use auto, tcg or kvm')
        self.accelerator = accelerator
        self.rtc = rtc
        self.limit = make_limit(self.bw, burst)
        self.programs = [_program(path) for path in programs]
        self.settings = dict(settings or {})
        self.cache = Path(cache) if cache else default_cache()
        self.progress = progress or (lambda up, of: None)
        self.memory = self.memory or DAEMON_MEMORY
        self.timeout = options.get('timeout') or 60 + 15 * self.geometry.nodes
        self.boot_seconds = self.join_seconds = None
        self._cables = []
        self._ends = []  # by rank and port name

    def start(self):
        self._check_memory()
        return super().start()

    def shell_socket(self, rank):
        return self.run.path / f'{rank}.shell'

    def _check_memory(self):
        obstacle = vm_obstacle()
        if obstacle:
            raise UsageError(obstacle)
        need, have = self.geometry.nodes * (self.ram + OVERHEAD_MIB), available_memory() >> 20
        if need > have:
            raise TorusError(
                f'{counted(self.geometry.nodes, "virtual machine")} of {self.ram} MiB may need {need} MiB of '
                f'memory including qemu itself, but only {have} MiB are available; choose a '
                'smaller torus or less --ram')

    def _build(self):
        image = make_image([self.torusd, self.torusctl, *self.programs], self.cache, self.say,
                           self.geometry.edge_files())
        self.bridge = bridge_program(self.cache, self.say)
        self.accelerator = choose_accelerator(self.accelerator, image, self.cache, self.say)
        image.initramfs = self._keep_image(image.initramfs)
        self.image = image
        self._ends = ends = [{} for _ in range(self.geometry.nodes)]
        with interrupts.held():
            for link in self.geometry.links:
                pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
                self._cables += pair
                for cable, (rank, port) in zip(pair, link.ends):
                    cable.setblocking(False)
                    ends[rank][port.name] = cable
        for rank in range(self.geometry.nodes):
            addresses = {port.name: port_address(self.geometry, rank, port)
                         for port in self.geometry.ports(rank)}
            cables = {port.name: ends[rank][port.name] for port in self.geometry.ports(rank)}
            self.nodes.append(VirtualNode(self, rank, Machine(rank, self, cables), addresses))
        self.say(f'booting {counted(self.geometry.nodes, "virtual machine")} ({self.accelerator}, {self.ram} '
                 f'MiB each, Linux {image.release})')
        self._begin = time.monotonic()

    def _keep_image(self, path):
        """Keeps the image for machines that boot again after the cache has been cleared."""
        kept = self.run.path / 'initramfs'
        try:
            os.link(path, kept)
        except OSError:
            shutil.copyfile(path, kept)
        return kept

    def _tear_down(self):
        for node in self.nodes:
            node.daemon._end_bridge()
        for cable in self._cables:
            cable.close()
        self._cables = []

    def interface_address(self, rank, port):
        """The address of a node's network card."""
        return str(link_address(self.geometry.link(rank, port), port))

    # --- faults of links ---

    def link_down(self, rank, port_name):
        """Pulls the cable: both ends lose their carrier."""
        self._set_link(rank, port_name, False)

    def link_up(self, rank, port_name):
        self._set_link(rank, port_name, True)

    def _set_link(self, rank, port_name, up):
        for at, name in self._both_ends(rank, port_name):
            self.node(at).daemon.set_link(name, up)

    def link_mute(self, rank, port_name):
        """Keeps the carrier up, but neither end receives what the other sends."""
        for at, name in self._both_ends(rank, port_name):
            mute(self._ends[at][name])

    def link_mute_one_way(self, rank, port_name):
        """The other end no longer receives what this end sends; this end still receives. link_unmute() ends it."""
        _, (at, name) = self._both_ends(rank, port_name)
        mute(self._ends[at][name])

    def link_unmute(self, rank, port_name):
        for at, name in self._both_ends(rank, port_name):
            unmute(self._ends[at][name])

    def _both_ends(self, rank, port_name):
        port = self.geometry.port(rank, port_name)
        return (rank, port_name), (self.geometry.neighbour(rank, port), port.opposite.name)

    # --- machines ---

    def qemu_command(self, rank, serial, monitor, cables):
        """The command line of a machine. serial, monitor, cables: descriptors that it inherits."""
        logs = self.run.logs
        words = [CONSOLE + CLOCK[self.accelerator]]
        if self.bw is not None:
            words.append(f'torus.rate={self.bw:f}')
            if isinstance(self.limit, Bucket):
                words.append(f'torus.burst={self.limit.burst}')
        devices = []
        for port in self.geometry.ports(rank):
            mac = (f'02:00:{rank >> 8:02x}:{rank & 255:02x}:'
                   f'{port.number >> 8:02x}:{port.number & 255:02x}')
            words.append(f'torus.link={interface_name(port)},{mac},'
                         f'{self.interface_address(rank, port)}/31')
            card = device(port.name)
            devices += ['-netdev', f'socket,id={card},fd={cables[port.name].fileno()}',
                        '-device', f'virtio-net-pci,netdev={card},mac={mac},'
                        'romfile=,disable-legacy=on']
        if self.key_file() is not None:
            words.append(f'torus.key={self.key_file().read_text().split()[1]}')
        words += [f'torus.arg={argument}' for argument in self._torusd_arguments(rank)]
        words += [f'torus.set={name}={_passable(value)}' for name, value in self.settings.items()]
        command_line = ' '.join(words)
        if len(command_line) > 2000:
            raise UsageError(f'the options of node {rank} do not fit into a kernel command line')
        clock = []
        if self.rtc is not None:
            shown = time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(self.rtc(rank)))
            clock = ['-rtc', f'base={shown}']
        return [QEMU, '-name', f'torus-{rank}',
                *machine_arguments(self.accelerator, self.ram, self.image), *clock,
                '-append', command_line,
                '-chardev', f'file,id=console,path={_escaped(logs / f"{rank}.console.log")},append=on',
                '-chardev', f'socket,id=monitor,fd={monitor}', '-mon', 'chardev=monitor,mode=control',
                '-serial', 'chardev:console', '-device', 'virtio-serial-pci,disable-legacy=on',
                '-chardev', f'socket,id=control,fd={serial}',
                '-device', 'virtserialport,chardev=control,name=torus.control',
                '-chardev', f'file,id=log,path={_escaped(self.run.log(rank))},append=on',
                '-device', 'virtserialport,chardev=log,name=torus.log', *devices]

    def _torusd_arguments(self, rank):
        arguments = [f'--dims={self.geometry.one_word(guest_file)}', f'--rank={rank}', f'--memory={self.memory}']
        arguments += [f'--port={name}={address}' for name, address in
                      self.nodes[rank].addresses.items()]
        if self.bw is not None:
            arguments.append(f'--link-mbit={self.bw:g}')
            arguments.append(f'--link-burst={self.limit.at_once}')
        arguments.append(f'--daemons-per-processor={self.daemons_per_processor:g}')
        if self.knows('--silence-ms'):
            arguments.append(f'--silence-ms={SILENCE_MS}')
        if self.log_level is not None:
            arguments.append(f'--log-level={self.log_level}')
        arguments += list(self.extra(rank) if callable(self.extra) else self.extra)
        return [_passable(argument) for argument in arguments]

    def _wait_whole(self, patience, ranks=None):
        first = self.boot_seconds is None
        if first:
            self._wait_up(patience)
            self.boot_seconds = time.monotonic() - self._begin
        super()._wait_whole(patience, ranks)
        if first:
            self.join_seconds = time.monotonic() - self._begin

    def _wait_up(self, patience):
        """Waits until the daemon of every machine answers."""
        waiting = set(range(self.geometry.nodes))
        while waiting:
            for rank in sorted(waiting):
                self._look_after_daemons(False, rank)
                if self.run.socket(rank).exists():
                    waiting.discard(rank)
            self.progress(self.geometry.nodes - len(waiting), self.geometry.nodes)
            if waiting and patience.over:
                rank = min(waiting)
                raise TorusError(f'{len(waiting)} of {counted(self.geometry.nodes, "virtual machine")} '
                                 f'{plural(len(waiting), "was", "were")} not up in time\n{self._log_tail(rank)}')
            if waiting:
                time.sleep(0.02)

    def _log_tail(self, rank):
        console = self.nodes[rank].console().splitlines()[-15:]
        return '\n'.join([super()._log_tail(rank), f'--- console of node {rank}, its end ---',
                          *console, '---'])

    def memory_used(self):
        """Bytes used by all machines together: {"rss": ..., "pss": ...}."""
        each = [node.memory() for node in self.nodes]
        return {kind: sum(figures[kind] for figures in each) for kind in ('rss', 'pss')}


def check_machines(geometry, ram):
    """UsageError if there cannot be that many machines with that many MiB of memory each."""
    if geometry.nodes > MOST_NODES:
        raise UsageError(f'{geometry} has {geometry.nodes} nodes; at most {MOST_NODES} virtual machines '
                         'are supported')
    if ram < LEAST_RAM_MIB:
        raise UsageError(f'{ram} MiB is too little for a virtual machine: the minimum is '
                         f'{LEAST_RAM_MIB}')


def _passable(text):
    if not str(text).isprintable() or set(str(text)) & set(' "'):
        raise UsageError(f'"{text}" cannot be passed to a virtual machine')
    return str(text)


def _program(path):
    if not os.access(path, os.X_OK) or not os.path.isfile(path):
        raise UsageError(f'{path} is not a program')
    if os.path.getsize(path) > PROGRAM_MOST:
        raise UsageError(f'{path} is too large for a virtual machine: {os.path.getsize(path) >> 20} MiB of '
                         f'at most {PROGRAM_MOST >> 20}')
    return os.path.abspath(path)


def interface_name(port):
    """The name of a port's network card in the machine: "plus0", "0to3"."""
    return port_word(port)


def _escaped(path):
    """For qemu, a comma ends a value."""
    return str(path).replace(',', ',,')
