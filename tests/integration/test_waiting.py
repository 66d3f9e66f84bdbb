"""Limits on waiting (torus_net.patience), and tests that share a fixture that fails."""

import ast
import io
import os
import re
import resource
import select
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support.waiting import wait_for
from torus_net import CHECKOUT, patience
from torus_net.patience import Patience
from torus_net.patient_socket import PatientSocket

pytestmark = pytest.mark.plain

SUPPORT = Path(__file__).resolve().parents[1]
BUSY = ['/bin/sh', '-c', 'while :; do :; done']


class Clock:
    """A fake clock, and counters according to which a share of each second was lost."""

    def __init__(self, monkeypatch, lost=0.0):
        self.now, self.lost, self.ran, self.waited = 100.0, lost, 0.0, 0.0
        monkeypatch.setattr(patience.time, 'monotonic', lambda: self.now)
        monkeypatch.setattr(patience, '_look', lambda since: (self.now, {'7': (self.ran, self.waited)}))

    def pass_until_over(self, limit):
        """How long it takes in wall-clock time."""
        begin = self.now
        while not limit.over:
            step = min(limit.pause, 0.125)
            self.now += step
            self.ran += step * (1 - self.lost)
            self.waited += step * self.lost
        return self.now - begin


@pytest.mark.parametrize('lost,wall', [(0, 20), (0.5, 40), (0.9, 200), (0.999, 20 * patience.MOST_DELAYED)])
def test_only_time_without_a_processor_is_given_back(monkeypatch, lost, wall):
    took = Clock(monkeypatch, lost).pass_until_over(Patience(20, slowness=1))
    assert wall <= took <= wall + 2 * patience.PERIOD + 0.2


def test_a_limit_below_the_period(monkeypatch):
    assert 0.25 <= Clock(monkeypatch).pass_until_over(Patience(0.25, slowness=1)) <= 0.75


@pytest.mark.parametrize('threads,lost', [
    ({}, 0), ({'1': (0, 0)}, 0), ({'1': (0.5, 0)}, 0),
    ({'1': (0.1, 0.3)}, 0.3),                       # it slept for the rest
    ({'1': (0.1, 0.2), '2': (0.1, 0.4)}, 0.6),      # one after another
    ({'1': (0.5, 1.5), '2': (0.5, 1.5)}, 0.75),     # at the same time, each at a quarter of its speed
])
def test_what_is_lost(threads, lost):
    before = {'1': (10.0, 20.0), '3': (5.0, 5.0)}  # 2 is new, 3 has ended
    after = {name: tuple(a + b for a, b in zip(times, before.get(name, (0, 0)))) for name, times in threads.items()}
    assert patience._lost(*patience._grown(before, after), 1.0) == pytest.approx(lost)


def test_a_long_wait_that_the_kernel_counts_at_its_end(monkeypatch):
    clock, limit = Clock(monkeypatch), Patience(20, slowness=1)
    begin, waited = clock.now, 0.0
    while not limit.over:
        clock.now += min(limit.pause, 0.125)
        waited += 0.125
        if waited >= 15 and not clock.waited:
            clock.waited = waited
    assert 34 <= clock.now - begin <= 37


@pytest.fixture
def one_processor():
    """This process and its children share one processor with another, busy process."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    busy = subprocess.Popen(BUSY)
    try:
        yield
    finally:
        busy.kill()
        busy.wait()
        os.sched_setaffinity(0, allowed)


@pytest.mark.full
@pytest.mark.skipif(not Path('/proc/self/schedstat').exists(), reason='the kernel does not count')
def test_a_program_gets_its_seconds_of_processor_time(one_processor):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with pytest.raises(subprocess.TimeoutExpired):
        patience.run(BUSY, 1)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before > 0.8  # wall-clock time: half of 1


@pytest.mark.full
def test_waiting_for_nothing_ends(one_processor):
    with pytest.raises(AssertionError, match='it did not come'):
        wait_for(lambda: None, 0.5, 'it did not come')
    with pytest.raises(subprocess.TimeoutExpired):
        patience.run(['sleep', '1000'], 0.5)


def test_input_and_output_of_a_slow_program():
    text = 'x' * 200000
    done = patience.run(['/bin/sh', '-c', 'sleep 1.5; cat; sleep 1.5; echo end; exit 3'], input=text)
    assert (done.stdout, done.stderr, done.returncode) == (f'{text}end\n', '', 3)
    assert patience.run(['cat'], input=text).stdout == text and patience.run(['cat']).stdout == ''


def test_more_threads_stretch_times(monkeypatch):
    monkeypatch.setattr(patience.os, 'sched_getaffinity', lambda pid: {0, 1})

    def at(load):
        monkeypatch.setattr(patience, 'open', lambda path: io.StringIO(load), raising=False)
        return patience.stretched(3) / patience.SLOWNESS
    assert at('0.50 9.00 9.00 1/100 77') == 3
    assert at('8.00 1.00 1.00 1/100 77') == 12
    assert at('0.50 1.00 1.00 20/100 77') == 30
    assert patience.stretched(3, least=40) == 40 * patience.SLOWNESS


def test_a_patient_socket(tmp_path):
    with socket.create_server(('127.0.0.1', 0)) as server, PatientSocket(socket.AF_INET, 0.2) as client:
        client.connect(server.getsockname())
        other, _ = server.accept()
        with other:
            other.sendall(b'here')
            assert client.recv(100) == b'here'
            with pytest.raises(TimeoutError):
                client.recv(100)
            with pytest.raises(TimeoutError):
                client.sendall(bytes(100_000_000))  # nobody reads that
            client.setblocking(False)
            with pytest.raises(BlockingIOError):
                client.recv(100)
            client.be_patient(0.2)
            with pytest.raises(TimeoutError):
                client.recv(100)
            assert select.select([other], [], [], 0)[0]
        address = server.getsockname()
    with PatientSocket(socket.AF_INET, 5) as client, pytest.raises(ConnectionRefusedError):
        client.connect(address)


def limits_on_the_wall(path):
    """Calls of subprocess, or of its processes, with a limit in wall-clock time."""
    for call in ast.walk(ast.parse(path.read_text())):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        name, of = call.func.attr, getattr(call.func.value, 'id', '')
        timeout = any(keyword.arg == 'timeout' for keyword in call.keywords)
        if timeout and (name == 'communicate' or of == 'subprocess') or \
                name == 'wait' and call.args and isinstance(call.args[0], ast.Constant) and of != 'over' and \
                getattr(call.func.value, 'attr', '') not in ('daemon', 'over'):
            yield f'{path}:{call.lineno}'


def test_no_program_has_a_wall_clock_limit():
    folders = [CHECKOUT / folder for folder in ('tests/integration', 'tests/support', 'tests/vm', 'topo/torus_net',
                                                'scripts/reproduction')]
    files = [path for folder in folders for path in folder.glob('*.py') if path != Path(patience.__file__).resolve()]
    assert len(files) > 100
    assert [found for path in files for found in limits_on_the_wall(path)] == []


def test_wall_clock_limits_are_found(tmp_path):
    (tmp_path / 'x.py').write_text('subprocess.run(command,\n    timeout=5)\nprocess.wait(5)\nclient.communicate(timeout=9)\n'
                                   'run(command, 5)\nprocess.wait()\ntorus.ctl(timeout=3)\nself.over.wait(0.2)\n')
    assert [found.rpartition(':')[2] for found in limits_on_the_wall(tmp_path / 'x.py')] == ['1', '3', '4']


FILE = '''
import pytest

@pytest.fixture(scope='module')
def late():
    raise RuntimeError('too late')

@pytest.fixture
def another():
    raise RuntimeError('of its own')

def test_one(late): pass
def test_two(late): pass
def test_three(another): pass
def test_four(another): pass
def test_five(): pass
def test_six(late): pass
'''
CONFTEST = '''
from support.shared_failures import SharedFailures

def pytest_configure(config):
    config.pluginmanager.register(SharedFailures(config))
'''


@pytest.mark.full
@pytest.mark.parametrize('parallel', [(), ('-p', 'support.spread', '--workers', '2')], ids=['alone', 'parallel'])
def test_a_shared_fixture_that_fails_is_one_failure(tmp_path, parallel):
    (tmp_path / 'test_it.py').write_text(textwrap.dedent(FILE))
    (tmp_path / 'conftest.py').write_text(CONFTEST)

    def run(*options):
        env = {name: value for name, value in os.environ.items() if not name.startswith('PYTEST_')}
        env['PYTHONPATH'] = str(SUPPORT)
        return patience.run([sys.executable, '-m', 'pytest', '-q', '-rsE', '--rootdir', tmp_path, *options, tmp_path],
                            cwd=tmp_path, env=env).stdout
    said = run(*parallel)
    assert '1 passed, 2 skipped, 3 errors' in said
    assert set(re.findall(r'^ERROR test_it.py::(\w+)', said, re.M)) == {'test_one', 'test_three', 'test_four'}
    assert 'its fixture failed in test_it.py::test_one' in said
    (tmp_path / 'test_it.py').write_text(textwrap.dedent(FILE).replace("raise RuntimeError('too late')", 'pass'))
    assert '3 passed, 2 errors' in run('--last-failed')
