"""Discovery on hosts made of network namespaces, and setups that are sent over the cables."""

import contextlib
import json
import os
import pty
import random
import signal
import socket
import subprocess
from pathlib import Path

from support.hosts import Hosts
from support.setups import with_torusd
from support.terminal import read_all
from support.waiting import wait_for
from torus_net.patience import Patience, communicate, run, wait
from torus_net.process import find_program

NAMES = ('alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta', 'eta', 'theta', 'iota')


def on_a_terminal(command, *answers):
    """Runs a command on a terminal on which these answers are typed. Returns its exit status, and what it says."""
    leader, follower = pty.openpty()
    with subprocess.Popen(list(map(str, command)), stdin=follower, stdout=follower, stderr=follower,
                          start_new_session=True) as process:
        os.close(follower)
        os.write(leader, ''.join(f'{answer}\n' for answer in answers).encode())
        said = read_all(leader)
    return process.returncode, said.decode()


class Discoveries(Hosts):
    """Hosts with torusd-discover and, where setups are applied, torusd-setup."""

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

    def start(self, number, interfaces, *options, command=None, key=None, config=None, second_key=None, named=None):
        """Starts torusd-discover; with a command for setups, torusd-setup, too."""
        setups = []
        if command:
            self.launch(number, 'torusd-setup', '--command', command, '--key-file', key or self.folder / 'no key',
                        '--second-key-file', second_key or self.folder / 'no key', *self.local(number, config),
                        '--socket', self.setups(number))
            setups = '--setups', self.setups(number)
        elif key:
            setups = '--key-file', key
        self.launch(number, 'torusd-discover', '--interfaces', interfaces, '--name', named or NAMES[number],
                    '--discover-socket', self.socket(number), *setups, *options)
        wait_for(lambda: not self.lives(number) or self.answers(number), 20)
        assert self.lives(number), self.log(number)

    def local(self, number, config=None):
        """The options of torusd-setup that name the files of a host."""
        return '--state', self.state(number), '--config', config or self.folder / 'torusd.ini'

    def launch(self, number, program, *options):
        with open(self.log_path(number), 'a') as log:
            self.processes.setdefault(number, {})[program] = subprocess.Popen(
                ['setpriv', '--pdeathsig', 'KILL', *self[number].enter(), find_program(program), *map(str, options)],
                stdout=log, stderr=log, env=with_torusd())

    def lives(self, number):
        return all(process.poll() is None for process in self.processes[number].values())

    def reload(self, number):
        self.processes[number]['torusd-setup'].send_signal(signal.SIGHUP)

    def root(self, number):
        """The folder with the files that setups write, instead of those of the machine."""
        return self.folder / f'root{number}'

    def start_for_setups(self, number, interfaces, **options):
        """Starts discovery that applies setups below root(number)."""
        if not self.root(number).exists():
            (self.root(number) / 'etc').mkdir(parents=True)
            (self.root(number) / 'srv' / 'torusd').mkdir(parents=True)
            (self.root(number) / 'etc' / 'hosts').write_text('127.0.0.1 localhost\n')
        torusd = self.root(number) / 'etc' / 'torusd'
        self.start(number, interfaces, key=torusd / 'cluster.key', second_key=torusd / 'second.key',
                   command=f'{find_program("torusctl")} --json init --root {self.root(number)} --receive', **options)

    def setups(self, number):
        return self.folder / f'{number}.setup'

    def socket(self, number):
        return self.folder / f'{number}.discover'

    def state(self, number):
        return self.folder / f'{number}.state'

    def answers(self, number):
        with socket.socket(socket.AF_UNIX) as connection:
            return connection.connect_ex(str(self.socket(number))) == 0

    def end(self, number, number_of_signal=signal.SIGTERM):
        """Returns 0 if all processes of the host have ended well."""
        statuses = []
        for process in reversed(self.processes.pop(number).values()):
            process.send_signal(number_of_signal)
            statuses.append(wait(process, Patience(20)))
        return next((status for status in statuses if status), 0)

    def id(self, number):
        """The id of a host, as its owner reads it there."""
        return run([find_program('torusd-discover'), '--id', '--setups', self.setups(number)], 20).stdout.strip()

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

    def send_setup(self, number, name, data, apply=True, key=None):
        """Returns {'status', 'output', 'errors'} or {'code', 'text'} of a setup for the host of this name."""
        process = self.begin_setup(number, name, data, apply, key)
        lines = communicate(process, Patience(120))[0].splitlines()
        return json.loads(lines[-1])

    def begin_setup(self, number, name, data, apply=True, key=None):
        """Returns the process that has sent a setup, and whose last line is the answer."""
        host = self.host(number, name)
        socket, to = (self.setups(number), 'own') if host['self'] else (self.socket(number), host['id'])
        program = Path(find_program('torusctl')).parent / 'tests' / 'support' / 'send_setup'
        process = subprocess.Popen([program, socket, to, 'apply' if apply else 'show', *[key] * bool(key)], text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(data)
            process.stdin.close()
        process.stdin = None
        return process

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
