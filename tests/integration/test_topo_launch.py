"""The launcher as a program: exit status, output, environment, and cleaning up."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.launcher import bench  # noqa: F401
from support.waiting import wait_for
from torus_net import CHECKOUT
from torus_net.patience import run

pytestmark = pytest.mark.plain

LAUNCHER = str(CHECKOUT / 'topo' / 'torus.py')
NETWORKS = [pytest.param(['--loopback'], id='loopback'),
            pytest.param(['--bw', '100'], id='mininet', marks=pytest.mark.mininet)]
network = pytest.mark.parametrize('network', NETWORKS)


@network
def test_output_is_the_commands_and_nothing_else(bench, network):
    result = bench.run('2x3', *network, '--run', 'echo out; echo err >&2; cat', text='given')
    assert result.returncode == 0, result.stderr
    assert result.stdout == 'out\ngiven'
    assert 'err\n' in result.stderr
    bench.assert_nothing_left()


@network
def test_exit_status_is_the_commands(bench, network):
    result = bench.run('1x2', *network, '--run', 'exit 7')
    assert result.returncode == 7
    kept = re.search(r'logs: (\S+)', result.stderr)[1]
    assert sorted(os.listdir(kept)) == ['0.log', '1.log']
    shutil.rmtree(kept)
    bench.assert_nothing_left()


def test_a_command_ended_by_a_signal(bench):
    result = bench.run('1x1', '--loopback', '--run', 'kill -TERM $$')
    assert result.returncode == 128 + signal.SIGTERM


@network
def test_the_command_reaches_every_node(bench, network):
    script = ('torusctl --json status && for r in $(seq 0 $((TORUS_NODES - 1))); do '
              'torusctl --socket $TORUS_RUN_DIR/$r.sock --json status >/dev/null || exit 9; '
              'kill -0 $(cat $TORUS_RUN_DIR/$r.pid) || exit 8; test -f $TORUS_LOG_DIR/$r.log || exit 6;'
              'done; test $TORUS_DIMS = 2x3')
    result = bench.run('2x3', *network, '--run', script)
    assert result.returncode == 0, result.stderr
    assert '"whole": true' in re.sub(r'"whole":\s*true', '"whole": true', result.stdout)
    bench.assert_nothing_left()


@network
@pytest.mark.parametrize('dims', ['1x1', '3x2x2', *(pytest.param(dims, marks=pytest.mark.full)
                                                    for dims in ('1x6', '2x2', '5x3', '3mx2m'))])
def test_shapes(bench, network, dims):
    result = bench.run(dims, *network, '--run', 'torusctl --json status')
    assert result.returncode == 0, result.stderr
    bench.assert_nothing_left()


def test_logs_can_be_kept(bench):
    logs = bench.folder / 'deep' / 'logs'
    result = bench.run('1x2', '--loopback', '--keep-logs', str(logs), '--run', 'true')
    assert result.returncode == 0, result.stderr
    assert sorted(os.listdir(logs)) == ['0.log', '1.log']
    assert bench.files() == ['deep']


def test_options_reach_the_daemons(bench):
    roots = [bench.folder / name for name in ('a', 'b')]
    for root in roots:
        root.mkdir()
    result = bench.run('1x2', '--loopback', '--bw', '50', '--memory', '32MiB', '--data-root',
                       str(roots[0]), '--data-root', str(roots[1]), '--run',
                       r'tr "\0" " " </proc/$(cat $TORUS_RUN_DIR/1.pid)/cmdline')
    assert result.returncode == 0, result.stderr
    for words in (f'--data-root {roots[0]}', f'--data-root {roots[1]}', '--link-mbit 50',
                  '--memory 32MiB', '--dims 1x2', '--rank 1', '--daemons-per-processor '):
        assert words in result.stdout


@network
def test_all_daemons_have_one_layout(bench, network):
    """Checked by the stack, whose address is otherwise random."""
    same = subprocess.run(['setarch', '-R', 'true'], stderr=subprocess.DEVNULL).returncode == 0
    result = bench.run('2x2', *network, '--run', 'for r in 0 1 2 3; do '
                       'grep -F "[stack]" /proc/$(cat $TORUS_RUN_DIR/$r.pid)/maps; done')
    assert result.returncode == 0, result.stderr
    ends = [re.match(r'[0-9a-f]+-([0-9a-f]+)', line)[1] for line in result.stdout.splitlines()]
    assert len(ends) == 4
    assert (len(set(ends)) == 1) == same


def test_where_one_layout_is_forbidden_there_are_several(bench):
    folder = bench.folder / 'path'
    folder.mkdir()
    (folder / 'setarch').write_text('#!/bin/sh\nexit 1\n')
    (folder / 'setarch').chmod(0o755)
    result = bench.run('1x2', '--loopback', '--run', 'torusctl status',
                       PATH=f'{folder}:{os.environ["PATH"]}')
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize('rate', ['0', '-5', 'nan', 'inf', '1001', 'fast'])
def test_rates_that_cannot_be_kept_are_refused(bench, rate):
    result = bench.run('2x2', f'--bw={rate}', '--run', 'true')
    assert (result.returncode, result.stdout) == (2, '')
    assert 'rate' in result.stderr
    bench.assert_nothing_left()


@pytest.mark.parametrize('arguments', [['0x4', '--loopback'], ['nonsense', '--loopback'],
                                       ['2x2', '--loopback', '--data-root', '/nonexistent'],
                                       ['2x2', '--loopback', '--bin', '/nonexistent'],
                                       ['2x2', '--loopback', '--run', 'true', '--wait'], []])
def test_wrong_usage(bench, arguments):
    result = bench.run(*arguments)
    assert (result.returncode, result.stdout) == (2, '')
    assert result.stderr
    bench.assert_nothing_left()


def _other_bin(bench, torusd):
    """A folder with a replacement for torusd and the real torusctl."""
    from torus_net import find_program
    folder = bench.folder / 'bin'
    folder.mkdir()
    (folder / 'torusd').write_text(torusd)
    (folder / 'torusd').chmod(0o755)
    (folder / 'torusctl').symlink_to(find_program('torusctl'))
    return str(folder)


@network
def test_a_daemon_that_dies_early_is_noticed_at_once(bench, network):
    folder = _other_bin(bench, '#!/bin/sh\necho "the reason" >&2\nexit 3\n')
    result = bench.run('2x2', *network, '--bin', folder, '--timeout', '1000', '--run', 'echo no')
    assert (result.returncode, result.stdout) == (1, '')
    assert 'exited with status 3' in result.stderr and 'the reason' in result.stderr
    kept = re.search(r'logs: (\S+)', result.stderr)[1]
    shutil.rmtree(kept)
    shutil.rmtree(folder)
    bench.assert_nothing_left()


def test_a_torus_that_does_not_come_up_has_a_deadline(bench):
    folder = _other_bin(bench, '#!/bin/sh\necho "hanging" >&2\nexec sleep 1000\n')
    result = bench.run('2x2', '--loopback', '--bin', folder, '--timeout', '0.5', '--run', 'echo no')
    assert (result.returncode, result.stdout) == (1, '')
    assert 'not ready in time' in result.stderr and 'hanging' in result.stderr
    wait_for(lambda: not bench.processes(), 5)


def test_what_the_command_leaves_running_is_ended(bench):
    script = 'sleep 1000 & setsid sleep 1001 & (sleep 1002 &) ; exit 0'
    result = bench.run('1x1', '--loopback', '--run', script)
    assert result.returncode == 0, result.stderr
    bench.assert_nothing_left()


@network
@pytest.mark.parametrize('signum,processes', [
    (signal.SIGINT, 2), (signal.SIGTERM, 5), (signal.SIGHUP, 9), (signal.SIGINT, 14), *(
        pytest.param(signum, processes, marks=pytest.mark.full) for signum, processes in (
            (signal.SIGTERM, 2), (signal.SIGHUP, 2), (signal.SIGINT, 5), (signal.SIGHUP, 5), (signal.SIGINT, 9),
            (signal.SIGTERM, 9), (signal.SIGTERM, 14), (signal.SIGHUP, 14)))])
def test_a_signal_during_the_start(bench, network, signum, processes):
    launcher = bench.torus('3x4', *network, '--run', 'sleep 1000')
    wait_for(lambda: len(bench.processes()) >= processes)
    os.kill(launcher.pid, signum)
    result = bench.end(launcher)
    assert result.returncode == 128 + signum, result.stderr
    assert 'Traceback' not in result.stderr
    bench.assert_nothing_left()


IN_A_DESTRUCTOR = """
import os, sys
sys.path.insert(0, sys.argv[1])
from torus_net import interrupts
class Dies:
    def __del__(self):
        os.kill(os.getpid(), int(sys.argv[2]))
        list(range(10))
interrupts.install()
try:
    Dies()
    interrupts.wait()
except (interrupts.Interrupted, interrupts.Terminated) as error:
    print(error.signum)
"""


@pytest.mark.parametrize('signum', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_a_destructor(signum):
    """Python drops what is raised there."""
    done = run([sys.executable, '-c', IN_A_DESTRUCTOR, CHECKOUT / 'topo', str(int(signum))], 30)
    assert (done.stdout, done.stderr, done.returncode) == (f'{int(signum)}\n', '', 0)


@network
@pytest.mark.parametrize('signum,how', [(signal.SIGINT, ['--wait']),
                                        (signal.SIGTERM, ['--run', 'echo running; sleep 1000'])])
def test_a_signal_while_it_serves(bench, network, signum, how):
    launcher = bench.torus('2x2', *network, *how)
    for line in launcher.stderr:
        if ' up after ' in line:
            break
    if '--run' in how:
        assert launcher.stdout.readline() == 'running\n'
    os.kill(launcher.pid, signum)
    result = bench.end(launcher)
    assert result.returncode == 128 + signum, result.stderr
    bench.assert_nothing_left()


@network
def test_the_prompt(bench, network):
    commands = 'torusctl --json status\nnodes\nat 3 --json status\nat 99 status\nlog 1\nexit\n'
    result = bench.run('2x2', *network, text=commands)
    assert result.returncode == 0, result.stderr
    assert re.search(r'"rank":\s*0', result.stdout) and re.search(r'"rank":\s*3', result.stdout)
    assert '"99" is not a node' in result.stderr
    bench.assert_nothing_left()


@pytest.mark.full
@network
def test_two_side_by_side(bench, network):
    launchers = [bench.torus('3x3', *network, '--run', 'torusctl --json status') for _ in range(2)]
    for launcher in launchers:
        result = bench.end(launcher)
        assert result.returncode == 0, result.stderr
    bench.assert_nothing_left()


@pytest.mark.mininet
class TestMn:
    """Mininet's mn with the custom topology."""

    def mn(self, bench, *options, **extra):
        return bench.start('mn', '--custom', LAUNCHER, *options, stdin=subprocess.PIPE, **extra)

    def test_as_documented(self, bench):
        process = self.mn(bench, '--topo', 'torus,2,3', '--link', 'tc,bw=20')
        result = bench.end(process, 'torusctl --json status\nn0 tc class show dev n0-plus0\n')
        assert process.returncode == 0, result.stderr
        assert re.search(r'"whole":\s*true', result.stdout), result.stderr
        assert re.search(r'"link_mbit":\s*20\b', result.stdout) or '"20"' in result.stdout
        assert 'rate 20Mbit' in result.stderr
        bench.assert_nothing_left()

    @pytest.mark.parametrize('rate', ['2000', '0', '-1', 'nan', 'fast'])
    def test_refused_rates(self, bench, rate):
        result = bench.end(self.mn(bench, '--topo', 'torus,2,2', '--link', f'tc,bw={rate}'))
        assert result.returncode == 1
        assert 'Mbit/s is too ' in result.stderr or 'is not a rate' in result.stderr
        bench.assert_nothing_left()

    def test_sigterm(self, bench):
        process = self.mn(bench, '--topo', 'torus,2,2')
        for line in process.stderr:
            if 'Starting CLI' in line:
                break
        process.send_signal(signal.SIGTERM)
        bench.end(process)
        bench.assert_nothing_left()


def test_the_launcher_runs_with_debians_python():
    assert Path(LAUNCHER).read_text().startswith('#!/usr/bin/python3\n')
    assert os.access(LAUNCHER, os.X_OK)
    assert sys.version_info >= (3, 9)
