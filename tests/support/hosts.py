"""Hosts that a test sets up by hand: each has network and mount namespaces of its own, and cables are pairs of
virtual interfaces. The test adds addresses, routes and names."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from support.waiting import wait_for
from torus_net.patience import Patience, wait
from torus_net.process import find_program

PORT = 7411


def obstacle():
    """Why this machine cannot have such hosts, or None."""
    if os.geteuid() != 0:
        return 'network namespaces need root'
    for tool in 'ip', 'nsenter', 'setpriv', 'unshare':
        if shutil.which(tool) is None:
            return f'{tool} is missing'
    made = subprocess.run(['unshare', '--net', '--mount', 'true'], capture_output=True, text=True)
    return None if made.returncode == 0 else f'network namespaces cannot be made: {made.stderr.strip()}'


class Host:
    """A host. Its namespaces live as long as the process that holds them."""

    def __init__(self, name):
        self.name = name
        self.daemon = self.holder = None
        self.boot()

    def boot(self):
        self.holder = subprocess.Popen(
            ['setpriv', '--pdeathsig', 'KILL', 'unshare', '--net', '--mount', '--propagation', 'private', 'sh', '-c',
             'ip link set lo up && echo up && exec cat'],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.holder.stdout.readline() == 'up\n', self.name
        for scope in 'all', 'default':
            self.sysctl(f'net.ipv4.conf.{scope}.rp_filter', 0)

    def halt(self):
        """Removes the host and its cables. (Without this, the kernel may remove the interfaces of a namespace much
        later.)"""
        for link in json.loads(self.run('ip', '-json', 'link', 'show', 'type', 'veth')):
            if link and link['ifname'] in self.interfaces():
                self.ip(f'link delete {link["ifname"]}')
        self.holder.stdin.close()
        self.holder.stdout.close()
        wait(self.holder, Patience(20))

    def enter(self):
        return ['nsenter', '--target', str(self.holder.pid), '--net', '--mount', '--']

    def run(self, *command):
        done = subprocess.run([*self.enter(), *map(str, command)], capture_output=True, text=True)
        assert done.returncode == 0, f'{self.name}: {command}: {done.stderr}'
        return done.stdout

    def ip(self, text):
        return self.run('ip', *text.split())

    def sysctl(self, name, value):
        self.run('sh', '-c', f'echo {value} >/proc/sys/{name.replace(".", "/")}')

    def interfaces(self):
        return {link['ifname'] for link in json.loads(self.run('ip', '-json', 'link'))}

    def index(self, interface):
        return json.loads(self.run('ip', '-json', 'link', 'show', interface))[0]['ifindex']


class Hosts:
    """Some hosts, and the daemons of one torus: node R runs on host R."""

    def __init__(self, dims, count):
        self.dims = dims
        # In memory if that is possible: the doctor also judges how much room the disks have.
        self.folder = Path(tempfile.mkdtemp(prefix='torus-hosts-', dir='/dev/shm' if os.access('/dev/shm', os.W_OK) else '/tmp'))
        self.hosts = [Host(f'host {i}') for i in range(count)]
        self.daemons = {}

    def __getitem__(self, rank):
        return self.hosts[rank]

    def cable(self, a, interface_a, b, interface_b, up=True):
        """Makes a cable between two hosts, given by their numbers."""
        self[a].ip(f'link add name {interface_a} type veth peer name {interface_b} '
                   f'netns {self[b].holder.pid}')
        if up:
            self[a].ip(f'link set {interface_a} up')
            self[b].ip(f'link set {interface_b} up')

    # --- daemons ---

    def configure(self, number, ports, **settings):
        """Writes a node's configuration. Its rank is the host's number, or rank=. `ports`: addresses by port name."""
        state = self.folder / f'{number}.state'
        state.mkdir(exist_ok=True)
        node = {'dims': self.dims, 'rank': number, 'control': self.folder / f'{number}.sock', 'state_dir': state,
                **settings}
        text = '[node]\n' + ''.join(f'{name} = {value}\n' for name, value in node.items())
        text += '[ports]\n' + ''.join(f'{name} = {value}\n' for name, value in ports.items())
        (self.folder / f'{number}.ini').write_text(text)

    def start(self, *ranks):
        for rank in ranks:
            self.spawn(rank)
        for rank in ranks:
            wait_for(lambda: self.daemons[rank].poll() is not None or self.answers(rank), 20)
            assert self.daemons[rank].poll() is None, self.log(rank)

    def spawn(self, rank):
        """Starts a daemon without waiting for it."""
        with open(self.log_path(rank), 'a') as log:
            self.daemons[rank] = subprocess.Popen(
                ['setpriv', '--pdeathsig', 'KILL', *self[rank].enter(), find_program('torusd'), '--config',
                 self.folder / f'{rank}.ini'], stdout=log, stderr=log)

    def answers(self, rank):
        return self.ctl(rank, 'status').returncode == 0

    def ctl(self, rank, *command):
        return subprocess.run([find_program('torusctl'), '--json', '--socket', self.folder / f'{rank}.sock', *command],
                              capture_output=True, text=True)

    def status(self, rank):
        done = self.ctl(rank, 'status')
        assert done.returncode == 0, done.stderr + self.log(rank)
        return json.loads(done.stdout)

    def link(self, rank, port):
        done = self.ctl(rank, 'links')
        assert done.returncode == 0, done.stderr + self.log(rank)
        return next(link for link in json.loads(done.stdout)['links'] if link['port'] == port)

    def links(self, rank):
        return json.loads(self.ctl(rank, 'links').stdout)['links']

    def wait_link(self, rank, port, **expected):
        """Waits until the link reports these values; for a reason, until it contains the text. Returns that report."""
        def holds():
            link = self.link(rank, port)
            return link if all(text in (link['reason'] or '') if key == 'reason' else link[key] == text
                               for key, text in expected.items()) else None
        return wait_for(holds, 20, lambda: f'node {rank}: {self.link(rank, port)}, not {expected}\n{self.log(rank)}')

    def wait_faults(self, asked, expected):
        """Waits until the node reports exactly these faults of cables, {(node, port): (code, found node, found port)}."""
        wait_for(lambda: self.faults(asked) == expected, 30,
                 lambda: f'node {asked}: {self.status(asked)["cables"]}\n{self.log(asked)}')

    def faults(self, asked):
        return {(one['node'], one['port']): (one['code'], one['found_node'], one['found_port'])
                for one in self.status(asked)['cables']}

    def wait_up(self, *ranks):
        for rank in ranks or list(self.daemons):
            for link in self.links(rank):
                self.wait_link(rank, link['port'], up=True)

    def log_path(self, rank):
        return self.folder / f'{rank}.log'

    def log(self, rank):
        return self.log_path(rank).read_text()

    def end(self, rank):
        """SIGTERM. Returns the exit status."""
        daemon = self.daemons.pop(rank)
        daemon.send_signal(signal.SIGTERM)
        try:
            return wait(daemon, Patience(20))
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
            raise

    def kill(self, rank):
        daemon = self.daemons.pop(rank)
        daemon.kill()
        daemon.wait()

    def close(self):
        """Returns the problems as texts: daemons that had ended before, or ended with an error."""
        problems = []
        for rank in list(self.daemons):
            status = self.end(rank)
            if status != 0 or 'ERROR' in self.log(rank):
                problems.append(f'node {rank} ended with {status}:\n{self.log(rank)}')
        for host in self.hosts:
            host.halt()
        shutil.rmtree(self.folder)
        return problems
