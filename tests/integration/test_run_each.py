"""--run-each: a program on every node."""

import os
import re
import shutil
import signal
import sys

import pytest
from support.launcher import bench  # noqa: F401
from support.waiting import wait_for
from torus_net.patience import Patience, wait

pytestmark = pytest.mark.plain

NETWORKS = [pytest.param(['--loopback'], id='loopback'),
            pytest.param(['--bw', '100'], id='mininet', marks=pytest.mark.mininet)]
network = pytest.mark.parametrize('network', NETWORKS)


def by_rank(text):
    """The lines of each rank, without their prefix."""
    found = {}
    for line in text.split('\n')[:-1]:
        rank, colon, rest = line.partition(': ')
        assert colon and rank.isdigit(), line
        found.setdefault(int(rank), []).append(rest)
    assert text == '' or text.endswith('\n')
    return found


def remove_logs(result):
    shutil.rmtree(re.search(r'logs: (\S+)', result.stderr)[1])


@network
def test_every_program_is_on_its_node(bench, network):
    script = ('echo %r $TORUS_RANK $TORUS_NODES $TORUS_DIMS $(torusctl --json status | '
              'grep -o \'"rank":[0-9]*\'); test -f $TORUS_RUN_DIR/%r.pid && ip -o link | wc -l')
    result = bench.run('2x3', *network, '--run-each', script)
    assert result.returncode == 0, result.stderr
    found = by_rank(result.stdout)
    assert sorted(found) == list(range(6))
    for rank, (words, interfaces) in found.items():
        assert words == f'{rank} {rank} 6 2x3 "rank":{rank}'
        if '--loopback' not in network:
            assert int(interfaces) == 5, 'lo and four ports'
    bench.assert_nothing_left()


def test_lines_are_whole_and_errors_apart(bench):
    """Many long lines at once from all, written in pieces, and a last one without its end."""
    script = bench.folder / 'program.py'
    script.write_text('import os\n'
                      'for i in range(300):\n'
                      '    os.write(1, b"%d " % i + b"x" * 3000)\n'
                      '    os.write(1, b"y\\n")\n'
                      'os.write(2, b"wrong\\n\\n")\n'
                      'os.write(1, b"the end")\n')
    result = bench.run('1x4', '--loopback', '--quiet', '--run-each', f'{sys.executable} {script}')
    assert result.returncode == 0, result.stderr
    wanted = [f'{i} {"x" * 3000}y' for i in range(300)] + ['the end']
    assert by_rank(result.stdout) == {rank: wanted for rank in range(4)}
    assert by_rank(result.stderr) == {rank: ['wrong', ''] for rank in range(4)}


def test_node_0_reads_standard_input(bench):
    result = bench.run('1x3', '--loopback', '--run-each', 'cat', text='given\n')
    assert result.returncode == 0, result.stderr
    assert by_rank(result.stdout) == {0: ['given']}


@network
def test_a_command_beside_the_programs(bench, network):
    """Each waits for the other, and the command has the standard input."""
    folder = bench.folder / 'meeting'
    folder.mkdir()
    await_file = 'until test -e {}; do sleep 0.01; done; '
    each = f'cat; touch {folder}/%r; ' + await_file.format(folder / 'go') + 'echo done'
    command = ''.join(await_file.format(folder / str(rank)) for rank in range(2))
    result = bench.run('1x2', *network, '--run-each', each, '--run', command + f'cat; touch {folder}/go',
                       text='given\n')
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == ['0: done', '1: done', 'given']
    shutil.rmtree(folder)
    bench.assert_nothing_left()


@network
def test_the_first_failure_is_the_result_and_ends_the_others(bench, network):
    """Node 1 hangs until it is ended, node 2 fails after node 0."""
    each = ('case %r in 0) echo first; exit 7;; 1) trap "echo ended; exit 1" TERM; while :; do '
            f'sleep 0.05; done;; 2) until test -e {bench.folder}/go; do sleep 0.01; done; exit 8;; esac')
    launcher = bench.torus('1x3', *network, '--run-each', each)
    for line in launcher.stderr:
        if 'node 0: exit status 7' in line:
            break
    (bench.folder / 'go').touch()
    result = bench.end(launcher)
    (bench.folder / 'go').unlink()
    assert result.returncode == 7, result.stderr
    assert by_rank(result.stdout) == {0: ['first'], 1: ['ended']}
    assert 'node 2' not in result.stderr
    remove_logs(result)
    bench.assert_nothing_left()


def test_a_program_that_ends_by_itself_after_another_failed_may(bench):
    """It has some seconds to find out, and to say what the failure means to it."""
    each = (f'if test %r = 0; then until test -e {bench.folder}/go; do sleep 0.01; done; exit 7; fi; '
            f'touch {bench.folder}/go; sleep 0.5; echo by itself')
    result = bench.run('1x2', '--loopback', '--run-each', each)
    assert (result.returncode, by_rank(result.stdout)) == (7, {1: ['by itself']})


def test_programs_killed_by_a_signal(bench):
    result = bench.run('1x1', '--loopback', '--run-each', 'kill -KILL $$')
    assert result.returncode == 128 + signal.SIGKILL
    assert 'node 0: killed by signal 9' in result.stderr


def test_a_failing_command_ends_the_programs(bench):
    result = bench.run('1x2', '--loopback', '--run-each', 'sleep 1000', '--run', 'exit 5')
    assert result.returncode == 5
    assert 'the command of --run: exit status 5' in result.stderr
    wait_for(lambda: not bench.processes(), 5)


def test_what_programs_leave_running_is_ended(bench):
    result = bench.run('1x2', '--loopback', '--run-each', 'sleep 1000 & setsid sleep 1001 & echo done')
    assert result.returncode == 0, result.stderr
    assert by_rank(result.stdout) == {0: ['done'], 1: ['done']}
    bench.assert_nothing_left()


@network
@pytest.mark.parametrize('signum', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all(bench, network, signum):
    launcher = bench.torus('2x2', *network, '--run-each', 'echo running; sleep 1000')
    for _ in range(4):
        assert launcher.stdout.readline().endswith(': running\n')
    os.kill(launcher.pid, signum)
    result = bench.end(launcher)
    assert result.returncode == 128 + signum, result.stderr
    bench.assert_nothing_left()


def test_output_that_nobody_reads_ends_all(bench):
    """Quietly, as with other programs before "| head -1"."""
    launcher = bench.torus('1x2', '--loopback', '--quiet', '--run-each', 'while :; do echo y; done')
    launcher.stdout.readline()
    launcher.stdout.close()
    stderr = launcher.stderr.read()
    assert (wait(launcher, Patience(60)), stderr) == (128 + signal.SIGPIPE, '')
    wait_for(lambda: not bench.processes(), 5)


def test_not_with_wait(bench):
    result = bench.run('1x2', '--loopback', '--run-each', 'true', '--wait')
    assert (result.returncode, result.stdout) == (2, '')
    assert '--wait' in result.stderr and '--run-each' in result.stderr
