"""Discovery processes on hosts made of network namespaces, and requests at their sockets."""

import contextlib
import json
import os
import pty
import random
import signal
import socket
import subprocess

from support.hosts import Hosts
from support.waiting import wait_for
from torus_net.patience import Patience, wait
from torus_net.process import find_program

NAMES = ('alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta', 'eta', 'theta', 'iota')


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(message):
    """{number: value} of a message without repeated fields."""
    found, at = {}, 0

    def number():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = number()
        if key & 7 == 0:
            found[key >> 3] = number()
        else:
            length = number()
            found[key >> 3] = message[at:at + length]
            at += length
    return found


def receive(connection, size):
    data = b''
    while len(data) < size:
        part = connection.recv(size - len(data))
        assert part, 'the discovery process has closed the connection'
        data += part
    return data


def on_a_terminal(command, *answers):
    """Runs a command on a terminal on which these answers are typed. Returns its exit status, and what it says."""
    leader, follower = pty.openpty()
    with subprocess.Popen(list(map(str, command)), stdin=follower, stdout=follower, stderr=follower,
                          start_new_session=True) as process:
        os.close(follower)
        os.write(leader, ''.join(f'{answer}\n' for answer in answers).encode())
        said = b''
        with contextlib.suppress(OSError):
            while part := os.read(leader, 65536):
                said += part
        os.close(leader)
    return process.returncode, said.decode()


class Discoveries(Hosts):
    """Hosts with a discovery process each."""

    def __init__(self, count):
        super().__init__('', count)
        self.processes = {}

    def torus(self, rows, columns, seed):
        """Cables the hosts as a torus, with interfaces e0 to e3 at random. Returns the cables."""
        draw = random.Random(seed)
        ports = {i: draw.sample(['e0', 'e1', 'e2', 'e3'], 4) for i in range(rows * columns)}
        cables = []
        for r in range(rows):
            for c in range(columns):
                for other in ((r + 1) % rows * columns + c, r * columns + (c + 1) % columns):
                    here = r * columns + c
                    cables.append((here, ports[here].pop(), other, ports[other].pop()))
        for cable in cables:
            self.cable(*cable)
        return cables

    def pull(self, host, interface):
        self[host].ip(f'link delete {interface}')

    def start(self, number, interfaces, *options):
        with open(self.log_path(number), 'a') as log:
            self.processes[number] = subprocess.Popen(
                ['setpriv', '--pdeathsig', 'KILL', *self[number].enter(), find_program('torusd-discover'),
                 '--interfaces', interfaces, '--name', NAMES[number], '--discover-socket', self.socket(number),
                 '--state', self.state(number), *map(str, options)], stdout=log, stderr=log)
        wait_for(lambda: self.processes[number].poll() is not None or self.answers(number), 20)
        assert self.processes[number].poll() is None, self.log(number)

    def root(self, number):
        """The folder with the files that setups write, instead of those of the machine."""
        return self.folder / f'root{number}'

    def start_for_setups(self, number, interfaces, *options):
        """Starts discovery that applies setups below root(number)."""
        if not self.root(number).exists():
            (self.root(number) / 'etc').mkdir(parents=True)
            (self.root(number) / 'etc' / 'hosts').write_text('127.0.0.1 localhost\n')
        torusd = self.root(number) / 'etc' / 'torusd'
        self.start(number, interfaces, '--key-file', torusd / 'cluster.key', '--second-key-file', torusd / 'second.key',
                   '--accept-setups', f'{find_program("torusctl")} --json init --root {self.root(number)} --receive', *options)

    def socket(self, number):
        return self.folder / f'{number}.discover'

    def state(self, number):
        return self.folder / f'{number}.state'

    def answers(self, number):
        with socket.socket(socket.AF_UNIX) as connection:
            return connection.connect_ex(str(self.socket(number))) == 0

    def end(self, number, number_of_signal=signal.SIGTERM):
        process = self.processes.pop(number)
        process.send_signal(number_of_signal)
        return wait(process, Patience(20))

    def run(self, number, *options):
        """torusctl on a host."""
        return subprocess.run([*self[number].enter(), find_program('torusctl'), *map(str, options)],
                              capture_output=True, text=True)

    def discover(self, number, *options):
        return self.run(number, '--json', 'discover', '--discover-socket', self.socket(number), *options)

    def host(self, number, name):
        """What the process of a host says about the host of this name, or None."""
        found = json.loads(self.discover(number, '--wait', '0.1').stdout)
        return next((host for host in found['hosts'] if host['name'] == name), None)

    def wait_reachable(self, number, name, **expected):
        def holds():
            host = self.host(number, name)
            return host and host['reachable'] and all(host[key] == value for key, value in expected.items()) and host
        return wait_for(holds, 60, lambda: f'{name}: {self.host(number, name)}\n{self.log(number)}')

    def send_setup(self, number, name, data, apply=True):
        """Returns {'status', 'output', 'errors'} or {'code', 'text'} of a setup for the host of this name."""
        with self.begin_setup(number, name, data, apply) as connection:
            return self.finish_setup(connection)

    def begin_setup(self, number, name, data, apply=True):
        """Returns the connection over which a setup was sent."""
        host = bytes.fromhex(self.host(number, name)['id'])
        request = field(2, field(1, host) + field(2, int(apply)) + field(3, data))
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self.socket(number)))
        connection.settimeout(120)
        connection.sendall(len(request).to_bytes(4, 'big') + bytes(4) + request)
        return connection

    @staticmethod
    def finish_setup(connection):
        reply = fields(receive(connection, int.from_bytes(receive(connection, 8)[:4], 'big')))
        if 2 in reply:
            setup = fields(reply[2])
            return {'status': setup.get(1, 0), 'output': setup.get(2, b''), 'errors': setup.get(3, b'')}
        failure = fields(reply[3])
        return {'code': failure[1], 'text': failure[2].decode()}

    def close(self):
        problems = []
        for number in list(self.processes):
            status = self.end(number)
            if status != 0 or 'bug' in self.log(number):
                problems.append(f'the discovery process of host {number} ended with {status}:\n{self.log(number)}')
        return problems + super().close()


@contextlib.contextmanager
def discoveries(count):
    made = Discoveries(count)
    try:
        yield made
    finally:
        problems = made.close()
    assert not problems, '\n'.join(problems)
