"""One bare machine: qemu, with a disk of its own that survives power cuts."""

import base64
import json
import os
import shlex
import shutil
import socket
import subprocess
import threading
from pathlib import Path

from torus_net.patience import SLOWNESS
from torus_net.process import TorusError
from torus_net.qemu import CLOCK, QEMU
from torus_net.virtual_cable import Monitor

RAM_MIB = 288
CONSOLE = ('console=ttyS0 quiet loglevel=3 panic=-1 no_timer_check nokaslr mitigations=off random.trust_cpu=on '
           'audit=0 apparmor=0 nowatchdog net.ifnames=0 selinux=0 systemd.show_status=1')
BOOT_SECONDS = 240
SHELLS = 4  # commands that may run at the same time


class BareMachine:
    """interfaces: how many network cards it has, eth0, eth1 ... folder: where its disk, sockets and logs are."""

    def __init__(self, name, interfaces, image, panel, folder, accelerator='tcg'):
        self.name, self.image, self.panel, self.accelerator = name, image, panel, accelerator
        self.folder = Path(folder) / name
        self.folder.mkdir(parents=True)
        self.number = abs(hash(name)) & 0xffff
        self.interfaces = [f'eth{index}' for index in range(interfaces)]
        self.cards = {interface: panel.add((name, interface)) for interface in self.interfaces}
        self.process = self.monitor = None
        self.ports, self.busy, self.lock = {}, set(), threading.Lock()
        subprocess.run(['qemu-img', 'create', '-q', '-f', 'qcow2', '-F', 'raw', '-b', image.disk,
                        self.folder / 'disk'], check=True)

    # --- power ---

    def start(self):
        pairs = [socket.socketpair() for _ in range(SHELLS + 1)]
        self.monitor = Monitor(pairs[0][0], self.name)
        self.ports = {port: pairs[port + 1][0] for port in range(SHELLS)}
        theirs = [pair[1].fileno() for pair in pairs]
        with open(self.folder / 'qemu.log', 'ab') as log:
            self.process = subprocess.Popen(
                self._command(*theirs), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                pass_fds=[*theirs, *(card.fileno() for card in self.cards.values())])
        for pair in pairs:
            pair[1].close()

    def _command(self, monitor, *shells):
        devices = []
        for index, (interface, card) in enumerate(self.cards.items()):
            mac = f'02:00:{self.number >> 8:02x}:{self.number & 255:02x}:00:{index:02x}'
            devices += ['-netdev', f'socket,id={interface},fd={card.fileno()}', '-device',
                        f'virtio-net-pci,netdev={interface},mac={mac},romfile=,disable-legacy=on']
        for port, shell in enumerate(shells):
            devices += ['-chardev', f'socket,id=shell{port},fd={shell}', '-device',
                        f'virtserialport,chardev=shell{port},name=test.{port}']
        return ['setpriv', '--pdeathsig', 'KILL', QEMU, '-name', self.name,
                '-accel', 'tcg,thread=single,tb-size=64' if self.accelerator == 'tcg' else 'kvm',
                '-cpu', 'max' if self.accelerator == 'tcg' else 'host',
                '-machine', 'pc,smm=off,graphics=off,vmport=off,usb=off', '-bios', 'qboot.rom', '-smp', '1',
                '-m', str(RAM_MIB), '-nodefaults', '-no-user-config', '-display', 'none',
                '-kernel', str(self.image.kernel), '-initrd', str(self.image.initramfs),
                '-append', f'{CONSOLE}{CLOCK[self.accelerator]} systemd.hostname={self.name}',
                '-drive', f'file={self.folder / "disk"},format=qcow2,if=none,id=disk,cache=unsafe',
                '-device', 'virtio-blk-pci,drive=disk,disable-legacy=on',
                '-chardev', f'file,id=console,path={self.folder / "console.log"},append=on',
                '-serial', 'chardev:console',
                '-chardev', f'socket,id=monitor,fd={monitor}', '-mon', 'chardev=monitor,mode=control',
                '-device', 'virtio-serial-pci,disable-legacy=on', *devices]

    @property
    def alive(self):
        return self.process is not None and self.process.poll() is None

    def power_off(self):
        """A power cut: what was not synced to the disk is lost."""
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        self.monitor.close()
        for connection in filter(None, self.ports.values()):
            connection.close()
        self.process = None

    def remove(self):
        self.power_off()
        shutil.rmtree(self.folder)

    # --- cables ---

    def carrier(self, interface, up):
        """Gives a card a carrier, or takes it away."""
        self.monitor._execute('set_link', name=interface, up=up)

    # --- commands ---

    def try_run(self, command, stdin=b'', timeout=60):
        """Runs a shell command. Returns its exit status and its output with errors as text."""
        if stdin:
            command = f'echo {base64.b64encode(stdin).decode()} | base64 -d | ({command})'
        port = self._free_port()
        try:
            answer = self._ask(port, base64.b64encode(command.encode()) + b'\n', timeout)
        except OSError as e:
            self.ports[port].close()
            self.ports[port] = None
            raise TorusError(f'{self.name}: "{command[:200]}" did not finish: {e}') from e
        finally:
            self.busy.discard(port)
        output, _, status = answer.strip().rpartition(b' ')
        return int(status), base64.b64decode(output).decode(errors='replace')

    def _free_port(self):
        with self.lock:
            for port in range(SHELLS):
                if port not in self.busy and self.ports[port] is not None:
                    self.busy.add(port)
                    return port
        raise TorusError(f'{self.name}: no shell is free')

    def _ask(self, port, line, timeout):
        connection = self.ports[port]
        connection.settimeout(timeout * SLOWNESS)
        connection.sendall(line)
        answer = b''
        while not answer.endswith(b'\n'):
            part = connection.recv(65536)
            if not part:
                raise OSError('the machine is off')
            answer += part
        return answer

    def run(self, *argv, stdin=b'', timeout=60):
        """Runs a command; a list of words, or one shell command. Returns its output as text."""
        command = argv[0] if len(argv) == 1 else shlex.join(map(str, argv))
        status, output = self.try_run(command, stdin, timeout)
        if status:
            raise TorusError(f'{self.name}: {command}: exit status {status}: {output.strip()}')
        return output

    def json(self, *argv, timeout=60):
        """Runs torusctl with --json, a list of words or one text. Returns what it prints, without its progress."""
        command = argv[0] if len(argv) == 1 else shlex.join(map(str, argv))
        return json.loads(self.run(f'torusctl --json {command} 2>/tmp/errors || {{ cat /tmp/errors; exit 1; }}',
                                   timeout=timeout))

    def wait_up(self, seconds=BOOT_SECONDS):
        """Waits until systemd has started everything. A request waits in the serial port until the machine has booted."""
        try:
            state = self.try_run('systemctl is-system-running --wait', timeout=seconds)[1].strip()
        except TorusError as e:
            raise TorusError(f'{e}\n{self.console()}') from e
        assert state in ('running', 'degraded'), f'{self.name}: {state}\n{self.console()}'

    def console(self):
        try:
            return os.linesep.join((self.folder / 'console.log').read_text(errors='replace').splitlines()[-20:])
        except FileNotFoundError:
            return ''
