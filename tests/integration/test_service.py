"""What torusd tells the service manager, and the units in scripts/packaging/systemd."""

import os
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest
from support.users import free_port
from support.waiting import wait_for
from torus_net import CHECKOUT, find_program
from torus_net.patience import Patience, run, wait

UNITS = CHECKOUT / 'scripts' / 'packaging' / 'systemd'
EXPOSURE_MOST = 20  # tenths: "below 2.0"


class Manager:
    """Stands in for the service manager: collects the messages of daemons."""

    def __init__(self, address, name=None):
        self.name = name or str(address)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.setblocking(False)
        self.messages = []

    def read(self):
        try:
            while True:
                self.messages.append(self.socket.recv(4096).decode())
        except BlockingIOError:
            return self.messages

    def await_message(self, message, seconds=30):
        """Waits for a message that is equal to this one, and forgets it and all before it."""
        wait_for(lambda: message in self.read(), seconds)
        del self.messages[:self.messages.index(message) + 1]

    def states(self):
        return [m for m in self.read() if not m.startswith(('STATUS=', 'WATCHDOG='))]


class Daemon:
    def __init__(self, folder, manager, *options, name='sock', **environment):
        self.control, self.log = folder / name, folder / f'{name}.log'
        with open(self.log, 'w') as log:
            self.process = subprocess.Popen(
                [find_program('torusd'), '--control', self.control, '--state-dir', folder / f'{name}.state',
                 *map(str, options or ('--dims', '1x1', '--rank', 0))],
                stderr=log, env={**os.environ, 'NOTIFY_SOCKET': manager, **environment})

    def ctl(self, *args):
        return run([find_program('torusctl'), '--socket', self.control, *map(str, args)])

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return wait(self.process, Patience(30))


@pytest.fixture
def manager(tmp_path):
    one = Manager(str(tmp_path / 'notify'))
    with one.socket:
        yield one


@pytest.fixture
def start(tmp_path):
    """start(manager, option, ..., VARIABLE=value): a Daemon, which must end with 0."""
    made = []

    def start(manager, *options, **more):
        made.append(Daemon(tmp_path, manager, *options, **more))
        return made[-1]

    yield start
    for daemon in made:
        if daemon.process.poll() is None:
            assert daemon.end() == 0, daemon.log.read_text()


def test_ready_reload_stop(manager, start):
    daemon = start(manager.name)
    manager.await_message('READY=1')
    assert daemon.ctl('status').returncode == 0, 'ready before the control socket accepts'
    manager.await_message('STATUS=node 0 of 1x1: 0 of 0 links, 0 exchanges')
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    daemon.process.send_signal(signal.SIGHUP)
    manager.await_message('READY=1')
    daemon.process.send_signal(signal.SIGHUP)
    wait_for(lambda: len(manager.states()) == 2, 30)
    reloading, ready = manager.states()
    usec = re.fullmatch(r'RELOADING=1\nMONOTONIC_USEC=(\d+)', reloading)
    assert usec and int(usec[1]) > before and ready == 'READY=1'
    assert daemon.end() == 0
    assert manager.states()[2:] == ['STOPPING=1'] and manager.messages[-1] == 'STOPPING=1'


def test_status_follows_links_and_exchanges(manager, start, tmp_path):
    address = f'127.0.0.1:{free_port()}'
    quiet = str(tmp_path / 'nobody')
    first = start(manager.name, '--dims', '2m', '--rank', 0, '--port', f'+0={address}', WATCHDOG_USEC='300000')
    manager.await_message('STATUS=node 0 of 2m: 0 of 1 link, 0 exchanges')
    second = start(quiet, '--dims', '2m', '--rank', 1, '--port', f'-0={address}', name='second')
    manager.await_message('STATUS=node 0 of 2m: 1 of 1 link, 0 exchanges')
    assert second.end() == 0
    manager.await_message('STATUS=node 0 of 2m: 0 of 1 link, 0 exchanges')
    waits = subprocess.Popen([find_program('torusctl'), '--socket', str(first.control), 'exchange', '--block-size', '1',
                              '--on-failure', 'wait'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        manager.await_message('STATUS=node 0 of 2m: 0 of 1 link, 1 exchange')
    finally:
        waits.kill()
        wait(waits, Patience(30))
    manager.await_message('STATUS=node 0 of 2m: 0 of 1 link, 0 exchanges')
    wait_for(lambda: manager.read().count('WATCHDOG=1') >= 25, 30)  # more than two seconds pass
    assert set(manager.messages) == {'WATCHDOG=1'}, 'the status has not changed, and is repeated'


def test_the_watchdog_of_another_process(manager, start):
    own = start(manager.name, WATCHDOG_USEC='60000')
    manager.await_message('WATCHDOG=1')
    assert own.end() == 0
    manager.await_message('STOPPING=1')
    other = start(manager.name, name='other', WATCHDOG_USEC='60000', WATCHDOG_PID='1')
    manager.await_message('STATUS=node 0 of 1x1: 0 of 0 links, 0 exchanges')
    assert other.end() == 0
    assert manager.read() == ['STOPPING=1']


def test_an_abstract_socket(start, tmp_path):
    name = f'torusd-test-{os.getpid()}-{tmp_path.name}'
    manager = Manager(f'\0{name}', f'@{name}')
    with manager.socket:
        start(manager.name)
        manager.await_message('READY=1')


@pytest.mark.parametrize('value, warns', [('nonsense', 'is "nonsense", and not the path of a socket'),
                                          ('/' + 200 * 'x', 'too long'), ('/nowhere/notify', None)])
def test_a_manager_that_cannot_be_told(start, value, warns):
    daemon = start(value)
    wait_for(lambda: daemon.ctl('status').returncode == 0, 30)
    assert daemon.end() == 0
    assert warns is None or warns in daemon.log.read_text()


def analyze(*args):
    return subprocess.run(['systemd-analyze', *map(str, args)], capture_output=True, text=True)


def obstacle():
    if shutil.which('systemd-analyze') is None:
        return 'systemd-analyze is not installed'
    if os.geteuid() != 0 and not os.path.isdir('/run/systemd'):
        return 'systemd does not run here, and only root can make the folder in which systemd-analyze works'
    return ''


needs_systemd = pytest.mark.skipif(bool(obstacle()), reason=obstacle())
every_unit = pytest.mark.parametrize('unit', ['torusd.service', 'torusd@.service'])


@needs_systemd
@every_unit
def test_units_are_hardened(unit):
    result = analyze('security', '--offline=yes', f'--threshold={EXPOSURE_MOST - 1}', UNITS / unit)
    level = re.search(r'Overall exposure level for .*: ([\d.]+)', result.stdout)
    assert level and float(level[1]) * 10 < EXPOSURE_MOST, result.stdout + result.stderr
    assert result.returncode == 0, result.stdout


@needs_systemd
@every_unit
def test_units_are_valid(unit, tmp_path):
    """The daemon need not be installed: the unit gets the path of the one that is tested."""
    text = (UNITS / unit).read_text()
    assert text.count('/usr/sbin/torusd ') == 2  # starts it, and checks settings
    one = tmp_path / unit.replace('@', '@name')
    one.write_text(text.replace('/usr/sbin/torusd ', os.path.realpath(find_program('torusd')) + ' '))
    result = analyze('verify', '--man=no', one)
    about_units = [line for line in result.stderr.splitlines() if 'torusd' in line]
    assert result.returncode == 0 and not about_units, result.stderr


def settings(unit):
    return [line for line in (UNITS / unit).read_text().splitlines() if line and line[0] != '#']


def test_both_units_have_the_same_rules():
    """Only what names the instance differs."""
    one, several = settings('torusd.service'), settings('torusd@.service')
    assert {line.partition('=')[0] for line in set(one) ^ set(several)} == {
        'Description', 'RequiresMountsFor', 'ConditionPathExists', 'ExecStart', 'ExecReload', 'RuntimeDirectory',
        'StateDirectory', 'RuntimeDirectoryPreserve'}
