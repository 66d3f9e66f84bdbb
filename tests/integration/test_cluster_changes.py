"""daemon/doc/changes.md: each change of a cluster, with the commands of the page, on hosts made of namespaces."""

import contextlib
import json
import random
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from support.discovery import NAMES, discoveries, on_a_terminal
from support.waiting import wait_for
from torus_net.patience import run
from torus_net.process import find_program

PAGE = Path(__file__).resolve().parents[2] / 'daemon' / 'doc' / 'changes.md'

pytestmark = pytest.mark.hosts


class Cluster:
    """Three hosts in a line, alpha to gamma, with their files in folders. Two of them are in the cluster at first."""

    def __init__(self, hosts):
        self.hosts, self.file, self.used = hosts, hosts.folder / 'cluster.ini', set()
        self.names, self.ports = list(NAMES[:3]), ['ea', 'ea,eb', 'ea']
        hosts.cable(0, 'ea', 1, 'ea')
        hosts.cable(1, 'eb', 2, 'ea')
        for number in range(3):
            self.start(number)
        self.write({'alpha': '+0 = ea', 'beta': '-0 = ea'})
        hosts.wait_reachable(0, 'gamma')

    def root(self, number):
        return self.hosts.root(number)

    def start(self, number):
        self.hosts.start_for_setups(number, self.ports[number], named=self.names[number])

    def rename(self, number, name):
        """The host gets another name; so does its section of the file."""
        self.hosts.end(number)
        self.edit(rf'^\[{self.names[number]}\]', f'[{name}]')
        self.names[number] = name
        self.start(number)

    def rename_interface(self, number, name):
        """The last interface of the host gets another name, also in the file."""
        self.hosts.end(number)
        *others, former = self.ports[number].split(',')
        for command in 'down', f'name {name}', 'up':
            self.hosts[number].ip(f'link set {name if command == "up" else former} {command}')
        self.edit(rf'= {former}$', f'= {name}')
        self.ports[number] = ','.join([*others, name])
        self.start(number)

    def write(self, hosts):
        """The file, with the ids that it had."""
        ids = dict(re.findall(r'^\[(\w+)\][^[]*^id = (\w+)', self.file.read_text(), re.M)) if self.file.exists() else {}
        self.file.write_text(f'[cluster]\ndims = {len(hosts)}m\n' + ''.join(
            f'[{name}]\n{ports}\n' + (f'id = {ids[name]}\n' if name in ids else '') for name, ports in hosts.items()))

    def edit(self, before, after):
        text = self.file.read_text()
        assert re.search(before, text, re.M), text
        self.file.write_text(re.sub(before, after, text, flags=re.M))

    def page(self, command, *answers):
        """A command of the page on alpha, on a terminal on which these answers are typed. Returns what it says."""
        self.used.add(command)
        words = [str(self.file) if word == 'cluster.ini' else word for word in command.split()]
        words[0] = find_program(words[0])
        more = ['--discover-socket', str(self.hosts.socket(0))] + (['--no-wait'] if words[1] == 'init' else [])
        self.status, said = on_a_terminal([*self.hosts[0].enter(), *words, *more], *answers)
        return said

    def change(self, command, *answers):
        said = self.page(command, *answers)
        assert self.status == 0, said
        return said

    def key(self, number):
        path = self.root(number) / 'etc' / 'torusd' / 'cluster.key'
        return path.read_text() if path.exists() else None

    def names_at(self, number):
        """The names that a host has for the hosts of the cluster."""
        return re.findall(r'^10\.\S+ (\w+)$', (self.root(number) / 'etc' / 'hosts').read_text(), re.M)

    def ids(self):
        return re.findall(r'^id = (\w+)$', self.file.read_text(), re.M)

    def found(self):
        return {host['name']: host['id'] for host in json.loads(self.hosts.discover(0, '--wait', '0.1').stdout)['hosts']}


INIT = 'torusctl init cluster.ini --links'


THREE = {'alpha': '+0 = ea', 'beta': '-0 = ea\n+0 = eb', 'gamma': '-0 = ea'}


def interrupted(hosts, c, kill, *options):
    """Runs init over the cables, and kills it, or the process of a host that carries it out. Then runs the same command to
    its end. Twelve successive numbers kill each of the four in each third of the two seconds that this takes."""
    command = [*hosts[0].enter(), find_program('torusctl'), 'init', c.file, '--links', '--discover-socket',
               hosts.socket(0), '--no-wait', '--yes', *options]
    victim, third = kill % 4, kill // 4 % 3
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait((third + random.Random(kill).random()) * 2 / 3)
        if victim < 3:  # the processes of a host; what they run goes on
            hosts.end(victim, signal.SIGKILL)
            c.start(victim)
        else:
            process.kill()
        process.communicate()
    for name in c.names:
        hosts.wait_reachable(0, name)
    ends = []

    def finishes():
        ends.append(run(command, 120))
        return ends[-1].returncode == 0
    wait_for(finishes, 60, lambda: ends[-1].stdout + ends[-1].stderr)


# Of the numbers of interrupted(), three by default: three victims, each in another third.
KILLS = pytest.mark.parametrize('kills', [(0, 5, 10), *(
    pytest.param(kills, marks=pytest.mark.full) for kills in ((1, 2, 3), (4, 6, 7), (8, 9, 11)))],
                                ids=['few', 'second', 'third', 'fourth'])
SHIFT = 5  # the next change of a test has another victim, in another third


@pytest.mark.full  # the same for a change of the key
@KILLS
def test_a_killed_change_of_the_key_is_finished_over_the_cables(kills):
    with discoveries(3) as hosts:
        c = Cluster(hosts)
        c.write(THREE)
        c.change(INIT + ' --trust-cables --yes')
        for kill in kills:
            for number in range(3):
                hosts.wait_reachable(0, NAMES[number], trust='proved')
            before = c.key(0)
            interrupted(hosts, c, kill, '--new-key', '--key', c.root(0) / 'etc' / 'torusd' / 'cluster.key')
            assert c.key(0) == c.key(1) == c.key(2) != before
            assert not any((c.root(number) / 'etc/torusd/second.key').exists() for number in range(3))


@KILLS
def test_a_killed_setup_is_finished_over_the_cables(kills):
    """The first setup of three hosts, then one of them is removed, and added again."""
    def dims(number):
        return re.search('^dims = (.*)', (c.root(number) / 'etc/torusd/torusd.ini').read_text(), re.M)[1]

    with discoveries(3) as hosts:
        c = Cluster(hosts)
        for kill in kills:
            c.write(THREE)
            for number in range(3):
                hosts.wait_reachable(0, NAMES[number], accepts_setups=True)
            interrupted(hosts, c, kill, '--trust-cables')
            assert c.key(0) == c.key(1) == c.key(2) and len(c.ids()) == 3
            assert [dims(number) for number in range(3)] == ['3m'] * 3
            ids = c.ids()
            for number in range(3):
                hosts.wait_reachable(0, NAMES[number], trust='proved')
            c.write({'alpha': '+0 = ea', 'beta': '-0 = ea'})
            interrupted(hosts, c, kill + SHIFT)
            assert [dims(number) for number in range(3)] == ['2m', '2m', '3m'] and c.names_at(1) == ['alpha', 'beta']
            for number in range(3):
                hosts.wait_reachable(0, NAMES[number], trust='proved')
            c.write(THREE)
            interrupted(hosts, c, kill + 2 * SHIFT)
            assert [dims(number) for number in range(3)] == ['3m'] * 3 and c.ids() == ids and c.key(2) == c.key(0)
            # All hosts are new again.
            for path in c.file, c.file.with_name('cluster.key'):
                path.unlink()
            for number in range(3):
                hosts.end(number)
                (hosts.state(number) / 'set-up').unlink()
                shutil.rmtree(c.root(number))
                c.start(number)


@pytest.mark.full  # test_init_killed kills a renaming by ssh
@KILLS
def test_a_killed_renaming_is_finished_over_the_cables(kills):
    """Changes the name of a host, and of an interface."""
    def wait_proved():
        for name in c.names:
            hosts.wait_reachable(0, name, trust='proved')

    with discoveries(3) as hosts:
        c = Cluster(hosts)
        c.write(THREE)
        c.change(INIT + ' --trust-cables --yes')
        key, ids = c.key(0), c.ids()
        for kill in kills:
            c.rename(2, f'gamma{kill}')
            wait_proved()
            interrupted(hosts, c, kill)
            assert [c.names_at(number) for number in range(3)] == [c.names] * 3
            wait_proved()
            c.rename_interface(1, f'lan{kill}')
            wait_proved()
            interrupted(hosts, c, kill + SHIFT)
            assert set((c.root(1) / 'etc/torusd/links').read_text().split()[::2]) == {'ea', f'lan{kill}'}
            wait_proved()
            assert c.key(0) == c.key(1) == c.key(2) == key and c.ids() == ids


def test_every_change_of_the_page():
    with discoveries(3) as hosts:
        c = Cluster(hosts)
        c.change(INIT, 'y', 'y')
        assert c.key(0) == c.key(1) and c.names_at(0) == ['alpha', 'beta'] and c.key(2) is None
        # Add a machine.
        said = c.page('torusctl discover --output cluster.ini')
        assert c.status == 1 and '--dims 3m' in said
        c.change('torusctl discover --dims 3m --output cluster.ini')
        said = c.change(INIT, 'y', 'y')
        assert c.found()['gamma'] in said and c.key(2) == c.key(0) and c.names_at(2) == ['alpha', 'beta', 'gamma']
        assert len(c.ids()) == 3
        # Take one out for repair, change the others, and put it back.
        for number in 0, 1, 2:
            hosts.wait_reachable(0, NAMES[number], trust='proved')
        hosts.end(2)
        c.edit('^dims = .*', r'\g<0>\nlink_mbit = 1000')
        refused = c.page(INIT, 'y')
        assert c.status == 1 and 'nothing was changed' in refused
        c.change(INIT + ' --without gamma', 'y')
        c.start(2)
        hosts.wait_reachable(0, 'gamma', trust='proved')
        c.change(INIT + ' --host gamma', 'y')
        assert all('link_mbit = 1000' in (c.root(number) / 'etc/torusd/torusd.ini').read_text() for number in range(3))
        # It is installed again: another id, no key, no file.
        hosts.end(2)
        for name in 'identity', 'set-up':
            (hosts.state(2) / name).unlink()
        for path in (c.root(2) / 'etc/torusd').iterdir():
            path.unlink()
        former = c.ids()[2]
        c.start(2)
        wait_for(lambda: c.found().get('gamma', former) != former, 60)
        refused = c.page(INIT, 'y')
        assert c.status == 1 and 'does not have the id' in refused and c.key(2) is None
        c.edit(f'^id = {former}\n', '')
        hosts.wait_reachable(0, 'gamma', trust='open')
        said = c.change(INIT + ' --host gamma', 'y', 'y')
        assert c.found()['gamma'] in said and c.key(2) == c.key(0)
        # Rename it: the id stays, so that nothing is asked but the changes.
        c.rename(2, 'delta')
        hosts.wait_reachable(0, 'delta', trust='proved')
        c.change(INIT, 'y')
        assert c.names_at(1) == ['alpha', 'beta', 'delta']
        # An interface has another name.
        c.change('torusctl discover --cluster cluster.ini')
        c.edit(r'^\+0 = eb', '+0 = lan0')
        said = c.page('torusctl discover --cluster cluster.ini')
        assert c.status == 1 and 'beta has port +0 at lan0 in the file, and at eb here' in said
        said = c.change('torusctl discover --output cluster.ini')
        assert 'beta has port +0 at eb now, not at lan0' in said
        c.change(INIT, 'y')
        # Make it less safe.
        c.edit('^dims = .*', r'\g<0>\nencrypt = yes')
        c.change(INIT, 'y')
        c.edit('^encrypt = yes\n', '')
        refused = c.page(INIT, 'y')
        assert c.status == 1 and '3 hosts would become less safe: alpha, beta, delta' in refused
        c.change(INIT + ' --allow-less-safe', 'y')
        assert all('encrypt' not in (c.root(number) / 'etc/torusd/torusd.ini').read_text() for number in range(3))
        # Change the key; then again, without a machine that is dead.
        first = c.key(0)
        c.change(INIT + ' --new-key', 'y')
        assert c.key(0) == c.key(1) == c.key(2) != first
        second = c.key(0)
        hosts.end(2)
        c.change(INIT + ' --new-key --without delta', 'y')
        assert c.key(0) == c.key(1) != second == c.key(2)
        # It comes back as a stranger, and leaves the cluster.
        c.start(2)
        hosts.wait_reachable(0, 'delta', trust='other key')
        c.page(INIT, 'y')
        assert c.status == 1
        c.write({'alpha': '+0 = ea', 'beta': '-0 = ea'})
        c.change(INIT, 'y')
        assert c.names_at(0) == ['alpha', 'beta']
        opened = 'torusd-setup --open'
        c.used.add(opened)
        for path in (c.root(2) / 'etc/torusd').iterdir():
            path.unlink()
        done = run([find_program('torusd-setup'), '--open', *hosts.local(2), '--key-file', hosts.folder / 'no key',
                    '--second-key-file', hosts.folder / 'no key'], 20)
        assert done.returncode == 0, done.stderr
        hosts.end(2)
        c.start(2)
        hosts.wait_reachable(0, 'delta', accepts_setups=True)
        c.change(INIT + ' --dry-run')
        commands = {re.sub(r'\b(?:gamma|delta)$', 'beta', command) for command in c.used}
        # vm/test_bare_machines.py upgrades machines.
        assert commands | {'torusctl status'} == set(re.findall(r'^    (tor.*)$', PAGE.read_text(), re.M))
