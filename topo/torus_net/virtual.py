"""A torus of virtual machines: a kernel, a clock and a file system of its own for every node.

    with VirtualTorus('2x2') as torus:
        torus.exchange('at2', '64KiB')
        torus.node(3).run('ls -l /srv')
        torus.node(3).kill()      # as if its power had gone
        torus.node(3).restart()   # it boots again

A cable is a pair of connected sockets: one end is the back end of a network card of one qemu, the
other end of its neighbour's. There is no other network, so no virtual machine can reach another
than its neighbours. The launcher holds both ends as well, so that a cable outlives a machine that
is off: its neighbours then see a cable at whose end nobody answers.

A node's daemon is reached through a serial port over which topo/guest/bridge.c carries any number
of connections. Outside, R.sock is node R's control socket as on every torus, and R.shell a socket
where each connection runs one command in the virtual machine.
"""

import io
import json
import os
import shlex
import shutil
import socket
import subprocess
import tarfile
import threading
import time
from pathlib import Path

from . import interrupts
from .geometry import UsageError
from .guest_image import bridge_program, debian_package, default_cache, make_image
from .process import Daemon, TorusError
from .torus import Node, Torus

QEMU = 'qemu-system-x86_64'
TCP_PORT = 7411
RAM_MIB = 96
LEAST_RAM_MIB = 80
OVERHEAD_MIB = 60         # what a qemu takes for itself, about
DAEMON_MEMORY = '16MiB'   # torusd's default would not fit
TRANSLATED_MIB = 24       # of translated code, per machine
TRIAL_SECONDS = 6         # in which a kernel must run, where the processor does it
MOST_NODES = 256
DATA = '/srv'             # in a virtual machine: below it exchanges may read and write
CONSOLE = ('console=ttyS0 quiet loglevel=4 panic=-1 reboot=t no_timer_check nokaslr mitigations=off '
           'init_on_alloc=0 ipv6.disable=1 random.trust_cpu=on cryptomgr.notests=1 '
           'audit=0 apparmor=0 nowatchdog rdinit=/init')
# Where the host is busy an emulated processor's TSC is measured wrongly, and clocks run several times
# too fast; the emulated HPET needs no measuring.
CLOCK = {'tcg': ' tsc=unstable clocksource=hpet', 'kvm': ''}


def vm_obstacle():
    """Why no virtual machines can be started here, in words, or None."""
    if not shutil.which(QEMU):
        return f'{QEMU} is missing {debian_package("qemu-system-x86")}'
    if not shutil.which('busybox'):
        return f'busybox is missing {debian_package("busybox-static")}'
    return None


def available_memory():
    """Bytes that programs may still take on this machine, or in this control group."""
    for line in Path('/proc/meminfo').read_text().splitlines():
        if line.startswith('MemAvailable:'):
            available = int(line.split()[1]) * 1024
    try:
        group = Path('/sys/fs/cgroup')
        limit = (group / 'memory.max').read_text().strip()
        if limit != 'max':
            used = int((group / 'memory.current').read_text())
            available = min(available, int(limit) - used)
    except (OSError, ValueError):
        pass
    return available


def choose_accelerator(wanted, image, cache, say):
    """"kvm" where a kernel really runs under it, else "tcg". That is remembered until the next boot
    of this machine: a device file, or an emulator that starts, does not tell."""
    if wanted != 'auto':
        return wanted
    if not os.access('/dev/kvm', os.R_OK | os.W_OK):
        return 'tcg'
    boot = Path('/proc/sys/kernel/random/boot_id').read_text().strip()
    known = Path(cache) / 'kvm.json'
    key = [boot, image.release, os.stat(shutil.which(QEMU)).st_mtime_ns]
    try:
        remembered = json.loads(known.read_text())
        if remembered['key'] == key:
            return remembered['accelerator']
    except (OSError, ValueError, KeyError, TypeError):
        pass
    say(f'trying whether a kernel runs under kvm here (at most {TRIAL_SECONDS} s; remembered until '
        'this machine boots again)')
    result = 'kvm' if kernel_runs('kvm', image) else 'tcg'
    known.write_text(json.dumps({'key': key, 'accelerator': result}))
    return result


def kernel_runs(accelerator, image, seconds=TRIAL_SECONDS):
    """Whether a kernel, started under an accelerator, comes as far as its first program."""
    command = [QEMU, *machine_arguments(accelerator, RAM_MIB, image), '-serial', 'stdio',
               '-append', f'{CONSOLE} torus.trial']
    process = None
    try:
        with interrupts.held():
            process = subprocess.Popen(['setpriv', '--pdeathsig', 'KILL', *command], text=True,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, start_new_session=True,
                                       errors='replace')
        return 'torus: it runs' in process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        return False
    finally:
        if process is not None:
            process.kill()
            process.communicate()


def machine_arguments(accelerator, ram, image):
    """What all virtual machines have in common: no devices but those that are named."""
    accelerators = {'tcg': f'tcg,thread=single,tb-size={TRANSLATED_MIB}', 'kvm': 'kvm'}
    return ['-accel', accelerators[accelerator], '-cpu', 'host' if accelerator == 'kvm' else 'max',
            '-machine', 'pc,smm=off,graphics=off,vmport=off,usb=off', '-bios', 'qboot.rom',
            '-smp', '1', '-m', str(ram), '-nodefaults', '-no-user-config', '-display', 'none',
            '-no-reboot',
            '-kernel', str(image.kernel), '-initrd', str(image.initramfs)]


class Machine(Daemon):
    """A virtual machine: qemu, and the bridge through which its daemon is reached."""

    def __init__(self, rank, torus, cables):
        super().__init__(rank, [], torus.run)
        self.torus = torus
        self.cables = cables  # by port name: this machine's end of a cable
        self.bridge = None
        self.started = None   # when, by the monotonic clock

    def start(self):
        if self.alive:
            raise TorusError(f'node {self.rank} is running already')
        self._end_bridge()
        for cable in self.cables.values():
            _drain(cable)
        ours, theirs = socket.socketpair()
        with ours, theirs, interrupts.held(), open(self.log_path, 'ab') as log:
            fds = [theirs.fileno(), *(cable.fileno() for cable in self.cables.values())]
            command = ['setpriv', '--pdeathsig', 'TERM', *self.torus.qemu_command(
                self.rank, theirs.fileno(), self.cables)]
            self.started = time.monotonic()
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, start_new_session=True, pass_fds=fds)
            self.expected_end = self.answered = False
            self.run.pid(self.rank).write_text(f'{self.process.pid}\n')
            self.bridge = subprocess.Popen(
                [str(self.torus.bridge), 'outside', str(ours.fileno()),
                 str(self.run.socket(self.rank)), str(self.torus.shell_socket(self.rank))],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                pass_fds=[ours.fileno()])

    def wait(self, timeout=None):
        """Its exit status; with it goes the bridge, for the serial port's end is its own."""
        result = super().wait(timeout)
        self._end_bridge()
        return result

    def _end_bridge(self):
        if self.bridge is None:
            return
        try:
            self.bridge.wait(5)
        except subprocess.TimeoutExpired:
            self.bridge.kill()
            self.bridge.wait()
        self.bridge = None

    def memory(self):
        """Bytes of this machine's processes now: shared pages are shared out ("pss"), or not."""
        total = {'rss': 0, 'pss': 0}
        for process in self.process, self.bridge:
            try:
                text = Path(f'/proc/{process.pid}/smaps_rollup').read_text()
            except (OSError, AttributeError):
                continue
            for line in text.splitlines():
                name, _, rest = line.partition(':')
                if name.lower() in total:
                    total[name.lower()] += int(rest.split()[0]) * 1024
        return total


def _drain(cable):
    """Takes out what the neighbours have sent while nobody was there."""
    while True:
        try:
            cable.recv(65536, socket.MSG_DONTWAIT)
        except OSError:  # among them BlockingIOError: it is empty
            return


class VirtualNode(Node):
    """A node that is a virtual machine. kill() is a power failure, restart() boots it again."""

    @property
    def shell_socket(self):
        return str(self.torus.shell_socket(self.rank))

    @property
    def console_path(self):
        return self.torus.run.logs / f'{self.rank}.console.log'

    def console(self):
        """What the kernel and the first program have printed, over all lives of the machine."""
        try:
            return self.console_path.read_text(errors='replace')
        except FileNotFoundError:
            return ''

    def begin(self, command, timeout=60):
        """Begins a shell command in the machine: a connected socket for its input and output."""
        if '\n' in command:
            raise ValueError('a command of one line is wanted')
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(timeout)
            connection.connect(self.shell_socket)
            connection.sendall(command.encode() + b'\n')
        except OSError as e:
            connection.close()
            raise TorusError(f'node {self.rank} cannot be asked to run "{command}": {e}') from e
        return connection

    def finish(self, connection, command='', stdin=b'', check=True):
        """(exit status, all further output as bytes) of what begin() began. It is given `stdin`, and
        then its input ends."""
        sender = threading.Thread(target=_send_all, args=(connection, stdin), daemon=True)
        with connection:
            sender.start()
            try:
                output = _read_all(connection)
            except OSError as e:
                raise TorusError(f'node {self.rank}: "{command}" did not end: {e}') from e
            finally:
                connection.close()
                sender.join()
        output, mark, status = output.rpartition(b'\0')
        if not mark or not status.isdigit():
            raise TorusError(f'node {self.rank}: "{command}" was cut off: {status[-200:]!r}')
        if check and int(status):
            raise TorusError(f'node {self.rank}: {command}: exit status {int(status)}: '
                             f'{output.decode(errors="replace").strip()}')
        return int(status), output

    def run_bytes(self, command, stdin=b'', timeout=60):
        """Runs a shell command in the machine, in /srv; what it printed, errors as well."""
        connection = self.begin(command, timeout)
        return self.finish(connection, command, stdin)[1]

    def run(self, *argv, stdin='', timeout=60):
        """Runs a command in the machine, in /srv; what it printed, errors as well, as text."""
        return self.run_bytes(shlex.join(map(str, argv)), stdin.encode(), timeout).decode()

    def put(self, folder, files):
        """Makes a folder with files ({name: bytes}) in the machine."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode='w', format=tarfile.USTAR_FORMAT) as tar:
            for name, content in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
        quoted = shlex.quote(str(folder))
        self.run_bytes(f'mkdir -p {quoted} && tar -x -f - -C {quoted}', packed.getvalue())

    def get(self, folder):
        """The files of a folder in the machine: {name: bytes}."""
        packed = self.run_bytes(f'tar -c -f - -C {shlex.quote(str(folder))} .')
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            return {os.path.relpath(entry.name): tar.extractfile(entry).read()
                    for entry in tar if entry.isfile()}

    def memory(self):
        return self.daemon.memory()


def _send_all(connection, data):
    try:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the command has not read it all: its exit status tells


def _read_all(connection):
    parts = []
    while True:
        part = connection.recv(65536)
        if not part:
            return b''.join(parts)
        parts.append(part)


class VirtualTorus(Torus):
    """See Torus; `data_roots` and `wrap` are not taken, files are in the machines, below /srv. More:

    ram          of every machine, in MiB
    accelerator  tcg, kvm, or auto: kvm if a kernel runs under it here
    rtc          a function of the rank that gives what its hardware clock shows at its start, as
                 seconds since 1970 (None: as this machine's)
    cache        folder for the kernel and the image
    progress     function called with (machines that are up, of how many) while they boot
    """

    kind = 'virtual machines'

    def __init__(self, dims, *, ram=None, accelerator='auto', rtc=None, cache=None, progress=None,
                 data_roots=(), wrap=None, **options):
        super().__init__(dims, wrap='', **options)
        if data_roots or wrap:
            raise UsageError('virtual machines have files of their own, below /srv, and run torusd '
                             'itself: no data roots, no wrapper')
        if self.geometry.nodes > MOST_NODES:
            raise UsageError(f'{self.geometry} has {self.geometry.nodes} nodes; at most '
                             f'{MOST_NODES} virtual machines are started')
        self.ram = RAM_MIB if ram is None else int(ram)
        if self.ram < LEAST_RAM_MIB:
            raise UsageError(f'{self.ram} MiB are too little for a virtual machine: at least '
                             f'{LEAST_RAM_MIB} are needed')
        if accelerator not in ('auto', 'tcg', 'kvm'):
            raise UsageError(f'no accelerator "{accelerator}": auto, tcg or kvm')
        self.accelerator = accelerator
        self.rtc = rtc
        self.cache = Path(cache) if cache else default_cache()
        self.progress = progress or (lambda up, of: None)
        self.memory = self.memory or DAEMON_MEMORY
        self.timeout = options.get('timeout') or 60 + 15 * self.geometry.nodes
        self.boot_seconds = self.join_seconds = None
        self._cables = []

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
                f'{self.geometry.nodes} virtual machines of {self.ram} MiB may need {need} MiB of '
                f'memory with what each qemu takes for itself, and {have} MiB are available; take '
                'a smaller torus or less --ram')

    def _build(self):
        image = make_image([self.torusd, self.torusctl], self.cache, self.say)
        self.bridge = bridge_program(self.cache, self.say)
        self.accelerator = choose_accelerator(self.accelerator, image, self.cache, self.say)
        image.initramfs = self._keep_image(image.initramfs)
        self.image = image
        ends = [{} for _ in range(self.geometry.nodes)]
        with interrupts.held():
            for link in self.geometry.links:
                pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
                self._cables += pair
                for cable, (rank, port) in zip(pair, link.ends):
                    cable.setblocking(False)
                    ends[rank][port.name] = cable
        for rank in range(self.geometry.nodes):
            addresses = {port.name: self._address(rank, port) for port in self.geometry.ports(rank)}
            cables = {port.name: ends[rank][port.name] for port in self.geometry.ports(rank)}
            self.nodes.append(VirtualNode(self, rank, Machine(rank, self, cables), addresses))
        self.say(f'booting {self.geometry.nodes} virtual machines ({self.accelerator}, {self.ram} '
                 f'MiB each, Linux {image.release})')
        self._begin = time.monotonic()

    def _keep_image(self, path):
        """The cache may be cleared while this torus runs, and its machines boot again."""
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

    def _address(self, rank, port):
        """A + port dials the neighbour's address, a - port listens on its own."""
        link = self.geometry.link(rank, port)
        return f'{link_address(link, port.opposite if port.sign == "+" else port)}:{TCP_PORT}'

    def interface_address(self, rank, port):
        """The address of a node's network card."""
        return link_address(self.geometry.link(rank, port), port)

    def qemu_command(self, rank, serial, cables):
        """The command line of a machine. serial, cables: descriptors that it inherits."""
        logs = self.run.logs
        words = [CONSOLE + CLOCK[self.accelerator]]
        if self.bw is not None:
            words.append(f'torus.rate={self.bw:f}')
        devices = []
        for port in self.geometry.ports(rank):
            mac = f'02:00:{rank >> 8:02x}:{rank & 255:02x}:00:{port.number:02x}'
            words.append(f'torus.link={interface_name(port)},{mac},'
                         f'{self.interface_address(rank, port)}/31')
            devices += ['-netdev', f'socket,id=n{port.number},fd={cables[port.name].fileno()}',
                        '-device', f'virtio-net-pci,netdev=n{port.number},mac={mac},'
                        'romfile=,disable-legacy=on']
        words += [f'torus.arg={argument}' for argument in self._torusd_arguments(rank)]
        command_line = ' '.join(words)
        if len(command_line) > 2000:
            raise UsageError(f'the options of node {rank} are longer than a kernel command line')
        clock = []
        if self.rtc is not None:
            shown = time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(self.rtc(rank)))
            clock = ['-rtc', f'base={shown}']
        return [QEMU, '-name', f'torus-{rank}',
                *machine_arguments(self.accelerator, self.ram, self.image), *clock,
                '-append', command_line,
                '-chardev', f'file,id=console,path={_escaped(logs / f"{rank}.console.log")},append=on',
                '-serial', 'chardev:console', '-device', 'virtio-serial-pci,disable-legacy=on',
                '-chardev', f'socket,id=control,fd={serial}',
                '-device', 'virtserialport,chardev=control,name=torus.control',
                '-chardev', f'file,id=log,path={_escaped(self.run.log(rank))},append=on',
                '-device', 'virtserialport,chardev=log,name=torus.log', *devices]

    def _torusd_arguments(self, rank):
        arguments = [f'--dims={self.geometry}', f'--rank={rank}', f'--memory={self.memory}']
        arguments += [f'--port={name}={address}' for name, address in
                      self.nodes[rank].addresses.items()]
        if self.bw is not None:
            arguments.append(f'--link-mbit={self.bw:g}')
        arguments.append(f'--daemons-per-processor={self.daemons_per_processor:g}')
        if self.log_level is not None:
            arguments.append(f'--log-level={self.log_level}')
        arguments += list(self.extra(rank) if callable(self.extra) else self.extra)
        for argument in arguments:
            if not str(argument).isprintable() or set(str(argument)) & set(' "'):
                raise UsageError(f'"{argument}" cannot be passed to a virtual machine')
        return arguments

    def wait_whole(self, timeout=30, ranks=None):
        first = self.boot_seconds is None
        deadline = time.monotonic() + timeout
        if first:
            self._wait_up(deadline)
            self.boot_seconds = time.monotonic() - self._begin
        super().wait_whole(max(deadline - time.monotonic(), 1), ranks)
        if first:
            self.join_seconds = time.monotonic() - self._begin

    def _wait_up(self, deadline):
        """Waits until the daemon of every machine answers."""
        waiting = set(range(self.geometry.nodes))
        while waiting:
            for rank in sorted(waiting):
                self._look_after_daemons(False, rank)
                if self.run.socket(rank).exists():
                    waiting.discard(rank)
            self.progress(self.geometry.nodes - len(waiting), self.geometry.nodes)
            if waiting and time.monotonic() >= deadline:
                rank = min(waiting)
                raise TorusError(f'{len(waiting)} of {self.geometry.nodes} virtual machines were '
                                 f'not up in time\n{self._log_tail(rank)}')
            if waiting:
                time.sleep(0.02)

    def _log_tail(self, rank):
        console = self.nodes[rank].console().splitlines()[-15:]
        return '\n'.join([super()._log_tail(rank), f'--- console of node {rank}, its end ---',
                          *console, '---'])

    def memory_used(self):
        """Bytes of all machines together: {"rss": ..., "pss": ...}."""
        each = [node.memory() for node in self.nodes]
        return {kind: sum(figures[kind] for figures in each) for kind in ('rss', 'pss')}


def link_address(link, port):
    """The address of a link's end, 10.0.0.0 + 2 x link for the + end: a /31 for every link."""
    number = 2 * link.index + (port.sign == '-')
    return f'10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}'


def interface_name(port):
    """As it is called in the machine: "plus0"."""
    return f'{"plus" if port.sign == "+" else "minus"}{port.dim}'


def _escaped(path):
    """qemu takes a comma for the end of a value."""
    return str(path).replace(',', ',,')
