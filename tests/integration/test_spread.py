"""support/spread.py: tests that run in several processes."""

import os
import re
import signal
import subprocess
import sys

import pytest
from support.waiting import wait_for
from torus_net import CHECKOUT
from torus_net.patience import Patience, communicate

pytestmark = pytest.mark.plain

CONFTEST = '''
import os, pathlib, pytest
LOG = pathlib.Path(__file__).with_name('log')

@pytest.fixture(scope='module')
def shared():
    yield os.getpid()
    with LOG.open('a') as log: log.write('shared ends\\n')

@pytest.fixture
def note(request):
    def write(text):
        with LOG.open('a') as log: log.write(f'{request.node.name} {text}\\n')
    return write

def pytest_collection_modifyitems(items):
    for item in items:
        item.quiet = item.name.startswith('test_quiet')
'''


@pytest.fixture
def tests(tmp_path):
    """tests('def test_a(): ...'): pytest with two workers, in the background."""
    started = []

    def start(*files, options=()):
        (tmp_path / 'conftest.py').write_text(CONFTEST)
        for number, text in enumerate(files):
            (tmp_path / f'test_{number}.py').write_text('import os, signal, time\n' + text)
        environment = {**os.environ, 'PYTHONPATH': f'{CHECKOUT / "tests"}:{CHECKOUT / "topo"}'}
        process = subprocess.Popen([sys.executable, '-m', 'pytest', '-q', '-p', 'support.spread', '--workers', '2',
                                    *options, '--rootdir', tmp_path, tmp_path], env=environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def end(process):
    return communicate(process, Patience(60))[0]


def test_each_test_runs_once_and_failures_are_told(tests, tmp_path):
    said = end(tests(*['def test_good(note): note("ran")\ndef test_bad(note):\n  note("ran")\n  assert 1 == 2\n'] * 3))
    assert '3 failed, 3 passed' in said and 'assert 1 == 2' in said, said
    assert sorted((tmp_path / 'log').read_text().split('\n')) == ['', *['test_bad ran'] * 3, *['test_good ran'] * 3]


def test_a_worker_that_dies_fails_its_test_only(tests):
    said = end(tests('def test_dies(): os._exit(3)\ndef test_killed(): os.kill(os.getpid(), signal.SIGKILL)\n'
                     'def test_good(): pass\n', 'def test_good(): pass\n'))
    assert '2 failed, 2 passed' in said, said
    assert 'ended with status 3' in said and 'ended with status -9' in said, said


def test_what_shares_a_fixture_of_its_file_stays_together(tests, tmp_path):
    text = ''.join(f'def test_{n}(shared, note): note(shared)\n' for n in range(5))
    said = end(tests(text, text))
    assert '10 passed' in said, said
    log = (tmp_path / 'log').read_text()
    assert log.count('shared ends') == 2, log
    # A worker that is slow to start may leave both files to another one.
    ran = re.findall(r'test_(\d) (\d+)', log)
    for worker in {worker for _, worker in ran}:
        assert ''.join(test for test, by in ran if by == worker) in ('01234', 2 * '01234'), log


def test_what_measures_runs_when_nothing_else_does(tests, tmp_path):
    said = end(tests('def test_quiet(note): note("began")\n',
                     *['def test_long(note):\n  time.sleep(0.3)\n  note("ended")\n'] * 3))
    assert '4 passed' in said, said
    assert (tmp_path / 'log').read_text().split('\n')[-2] == 'test_quiet began'


def test_no_test_begins_after_the_time(tests, tmp_path):
    """Neither of another unit, nor of one that has begun."""
    one = 'def test_slow(note):\n  note("ran")\n  time.sleep(0.2)\n'
    unit = ''.join(f'def test_{n}(shared, note):\n  note("ran")\n  time.sleep(0.2)\n' for n in range(10))
    said = end(tests(*[one] * 20, unit, unit, options=('--most', '0.5')))
    log = tmp_path / 'log'
    ran = log.read_text().count('ran') if log.exists() else 0
    assert ran < 40 and (f'{ran} passed' if ran else 'no tests ran') in said, said
    assert f'NOT RUN, because the time was over: {40 - ran} tests' in said, said


def test_a_run_without_a_test_fails(tests):
    process = tests(*['def test_one(): pass\ndef test_two(shared): pass\n'] * 3, options=('--most', '0'))
    said = end(process)
    assert process.returncode == 1 and 'the time was over before a test could begin' in said, said
    assert 'NOT RUN, because the time was over: 6 tests' in said, said


def test_all_tests_run_before_the_time(tests):
    said = end(tests(*['def test_one(): pass\ndef test_two(shared): pass\n'] * 3, options=('--most', '10000')))
    assert '6 passed' in said and 'NOT RUN' not in said, said


def test_ctrl_c_ends_all_workers_in_order(tests, tmp_path):
    text = 'def test_long(shared, note):\n  note("began")\n  time.sleep(1000)\n'
    process = tests(text, text)
    log = tmp_path / 'log'
    wait_for(lambda: log.exists() and log.read_text().count('began') == 2)
    os.killpg(process.pid, signal.SIGINT)
    said = end(process)
    assert process.returncode == 2 and 'KeyboardInterrupt' in said, said
    assert log.read_text().count('shared ends') == 2
