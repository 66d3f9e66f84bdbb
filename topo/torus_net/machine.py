"""One node of a torus of virtual machines: its process, and commands in the machine."""

import io
import os
import shlex
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

from . import interrupts
from .geometry import UsageError
from .patience import Patience, wait
from .patient_socket import PatientSocket
from .process import Daemon, TorusError
from .torus import Node
from .virtual_cable import Monitor

GUEST = '/run/torusd'           # the beginning of paths in the machine, as in topo/guest/init
GUEST_SOCKET = f'{GUEST}.sock'  # of the daemon


class Machine(Daemon):
    """A virtual machine: qemu, and the bridge through which its daemon is reached."""

    def __init__(self, rank, torus, cables):
        super().__init__(rank, [], torus.run)
        self.torus = torus
        self.cables = cables  # by port name: this machine's end of a cable
        self.pulled = set()   # names of ports whose cable is out
        self.bridge = self.monitor = None
        self.started = None   # when, by the monotonic clock

    def start(self):
        if self.alive:
            raise TorusError(f'node {self.rank} is already running')
        self._end_bridge()
        for cable in self.cables.values():
            _drain(cable)
        ours, theirs = socket.socketpair()
        monitor, its_monitor = socket.socketpair()
        with ours, theirs, its_monitor, interrupts.held(), open(self.log_path, 'ab') as log:
            self.monitor = Monitor(monitor, self.rank)
            fds = [theirs.fileno(), its_monitor.fileno(),
                   *(cable.fileno() for cable in self.cables.values())]
            command = ['setpriv', '--pdeathsig', 'TERM', *self.torus.qemu_command(
                self.rank, theirs.fileno(), its_monitor.fileno(), self.cables)]
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
        for name in self.pulled:
            self.monitor.set_link(name, False)

    def set_link(self, name, up):
        """Puts in or pulls out the cable of a port: its network card has a carrier, or none."""
        (self.pulled.discard if up else self.pulled.add)(name)
        if self.alive:
            self.monitor.set_link(name, up)

    def wait(self, timeout=None):
        """Waits for qemu, and for the bridge, which ends with qemu's serial port. Returns qemu's exit status."""
        result = super().wait(timeout)
        self._end_bridge()
        return result

    def _end_bridge(self):
        if self.bridge is None:
            return
        self.monitor.close()
        try:
            wait(self.bridge, Patience(5))
        except subprocess.TimeoutExpired:
            self.bridge.kill()
            self.bridge.wait()
        self.bridge = None

    def memory(self):
        """Current memory of this machine's processes in bytes: {"rss": ..., "pss": ...}."""
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
    """Discards packets that the neighbours sent while the machine was off."""
    while True:
        try:
            cable.recv(65536, socket.MSG_DONTWAIT)
        except OSError:  # also BlockingIOError: nothing is left
            return


class GuestDaemon:
    """The daemon in a machine. kill() ends the daemon alone: the machine keeps running, and start() starts the
    daemon there again, with its files and state."""

    def __init__(self, node):
        self.node, self.rank = node, node.rank

    @property
    def alive(self):
        return self.node.run_bytes(f'[ ! -e {GUEST}.status ] || echo not').strip() == b''

    def send_signal(self, signum):
        """Sends any signal, including SIGSTOP and SIGCONT, without waiting."""
        self.node.run_bytes(f'kill {_option(signum)} $(cat {GUEST}.pid)')

    def kill(self, signum=signal.SIGKILL):
        """Kills the daemon and waits until it has exited. Returns the exit status as a shell reports it."""
        return int(self.node.run_bytes(
            f'[ -p {GUEST}.again ] || mkfifo {GUEST}.again; kill {_option(signum)} $(cat {GUEST}.pid); '
            f'until [ -s {GUEST}.status ]; do usleep 5000; done; cat {GUEST}.status'))

    def terminate(self):
        return self.kill(signal.SIGTERM)

    def start(self):
        self.node.run_bytes(f'echo >{GUEST}.again; while [ -e {GUEST}.status ]; do usleep 5000; done')


def _option(signum):
    return f'-{signal.Signals(signum).name[len("SIG"):]}'


class VirtualNode(Node):
    """A node that is a virtual machine. kill() is a power failure; restart() boots the machine again.
    `inside` is the daemon alone."""

    @property
    def inside(self):
        return GuestDaemon(self)

    @property
    def shell_socket(self):
        return str(self.torus.shell_socket(self.rank))

    @property
    def console_path(self):
        return self.torus.run.logs / f'{self.rank}.console.log'

    def console(self):
        """What the kernel and init have printed, including earlier boots."""
        try:
            return self.console_path.read_text(errors='replace')
        except FileNotFoundError:
            return ''

    def begin(self, command, timeout=60):
        """Starts a shell command in the machine. Returns a connected socket for its input and output."""
        if '\n' in command:
            raise ValueError('the command has more than one line')
        connection = PatientSocket(socket.AF_UNIX, timeout)
        try:
            connection.connect(self.shell_socket)
            connection.sendall(command.encode() + b'\n')
        except OSError as e:
            connection.close()
            raise TorusError(f'node {self.rank}: cannot start "{command}": {e}') from e
        return connection

    def start_program(self, command, **options):
        """As Node.start_program(), in the machine. The program's errors arrive with its output."""
        torus = self.torus
        variables = {'TORUS_SOCKET': GUEST_SOCKET, 'TORUS_RANK': self.rank,
                     'TORUS_NODES': torus.geometry.nodes, 'TORUS_DIMS': torus.geometry}
        if '\n' in command:
            raise UsageError('a command for virtual machines must be one line')
        settings = ' '.join(f'{name}={value}' for name, value in variables.items())
        return subprocess.Popen([sys.executable, str(Path(__file__).with_name('remote.py')),
                                 self.shell_socket, f'export {settings}; {command}'], **options)

    def finish(self, connection, command='', stdin=b'', check=True):
        """Finishes a command of begin(): sends `stdin` and closes the input. Returns the exit status
        and the remaining output as bytes."""
        sender = threading.Thread(target=_send_all, args=(connection, stdin), daemon=True)
        with connection:
            sender.start()
            try:
                output = _read_all(connection)
            except OSError as e:
                raise TorusError(f'node {self.rank}: "{command}" did not finish: {e}') from e
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
        """Runs a shell command in the machine, in /srv. Returns its output and errors as bytes."""
        connection = self.begin(command, timeout)
        return self.finish(connection, command, stdin)[1]

    def run(self, *argv, stdin='', timeout=60):
        """Runs a command in the machine, in /srv. Returns its output and errors as text."""
        return self.run_bytes(shlex.join(map(str, argv)), stdin.encode(), timeout).decode()

    def put(self, folder, files):
        """Creates a folder with files ({name: bytes}) in the machine."""
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
        pass  # the command did not read all of its input; its exit status says whether that is an error


def _read_all(connection):
    parts = []
    while True:
        part = connection.recv(65536)
        if not part:
            return b''.join(parts)
        parts.append(part)
