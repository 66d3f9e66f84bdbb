"""Daemons that cannot start, and the reasons; settings; and how daemons end."""

import json
import os
import re
import signal
import socket
import subprocess

import pytest
from support.early_signals import assert_ends_well, pending
from support.errors import assert_refused
from support.failures import still_works
from support.trees import listing
from support.waiting import wait_for, wait_logged
from torus_net import find_program
from torus_net.patience import Patience, run, wait


def daemon(*args, seconds=30):
    """Runs a torusd that must end by itself."""
    return run([find_program('torusd'), *map(str, args)], seconds)


def test_a_listening_address_that_is_taken(torus, tmp_path):
    argv = torus.node(5).daemon.argv[1:]
    own = ['--control', tmp_path / 'sock', '--state-dir', tmp_path / 'state']
    result = daemon(*argv, *own)
    assert result.returncode == 1
    taken = [torus.node(5).addresses[name] for name in ('-0', '-1')]
    assert any(address in result.stderr for address in taken), result.stderr
    assert re.search(r'port -[01]', result.stderr) and 'in use' in result.stderr
    assert listing(tmp_path) in ([], ['state']), 'a socket is left behind'
    still_works(torus)


def test_a_control_socket_that_is_taken(torus, tmp_path):
    result = daemon('--dims', '1x1', '--rank', 0, '--control', torus.node(3).socket, '--state-dir',
                    tmp_path / 'state')
    assert result.returncode == 1
    assert torus.node(3).socket in result.stderr and 'another daemon' in result.stderr
    assert torus.status(3)['pid'] == torus.node(3).pid
    still_works(torus, rank=3)


def test_a_control_path_that_is_no_socket(tmp_path):
    (tmp_path / 'file').write_text('precious')
    result = daemon('--dims', '1x1', '--rank', 0, '--control', tmp_path / 'file', '--state-dir',
                    tmp_path / 'state')
    assert result.returncode == 1 and 'not a socket' in result.stderr
    assert (tmp_path / 'file').read_text() == 'precious'


class Lonely:
    """A daemon without neighbours, which has opened both sockets."""

    def __init__(self, folder, *more, prefix=(), control='sock', state='state', ready=True):
        self.control, self.log = folder / control, folder / f'{state}.log'
        with open(self.log, 'w') as log:
            self.process = subprocess.Popen(
                [*prefix, find_program('torusd'), '--control', self.control, '--state-dir', folder / state,
                 *map(str, more or ('--dims', '1x1', '--rank', 0))], stderr=log)
        if ready:
            self.wait_ready()

    def wait_ready(self):
        wait_for(lambda: self.serves() or self.process.poll() is not None, 30)
        assert self.serves(), self.log.read_text()

    def serves(self):
        return self.ctl('status').returncode == 0

    def ctl(self, *args):
        return run([find_program('torusctl'), '--socket', self.control, *map(str, args)])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        assert wait(self.process, Patience(30)) == 0, self.log.read_text()


def test_a_control_socket_of_a_stopped_daemon(tmp_path):
    """The queue of the control socket is full of clients: another daemon does not wait there."""
    waiting = []
    with Lonely(tmp_path) as first:
        first.process.send_signal(signal.SIGSTOP)
        try:
            while len(waiting) < 10000:
                s = socket.socket(socket.AF_UNIX)
                waiting.append(s)
                s.setblocking(False)
                s.connect(str(first.control))
        except BlockingIOError:
            pass
        result = daemon('--dims', '1x1', '--rank', 0, '--control', first.control, '--state-dir', tmp_path / 'other')
        assert result.returncode == 1 and 'another daemon serves' in result.stderr, result.stderr
        for s in waiting:
            s.close()
        first.process.send_signal(signal.SIGCONT)
        wait_for(first.serves, 30)


def test_a_control_path_of_another_kind_of_socket(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(str(tmp_path / 'sock'))
        result = daemon('--dims', '1x1', '--rank', 0, '--control', tmp_path / 'sock', '--state-dir',
                        tmp_path / 'state')
        assert result.returncode == 1 and 'cannot find out' in result.stderr, result.stderr
        assert (tmp_path / 'sock').is_socket()


def test_the_sockets_of_a_successor_stay(tmp_path):
    """A daemon that ends removes its own sockets, but not those that another daemon made in their places."""
    names = 'sock', 'sock.programs'
    with Lonely(tmp_path) as first:
        for name in names:
            (tmp_path / name).unlink()
        with Lonely(tmp_path, state='other') as second:
            first.process.terminate()
            assert wait(first.process, Patience(30)) == 0
            assert all((tmp_path / name).is_socket() for name in names)
            assert second.serves()
    assert not any((tmp_path / name).exists() for name in names)


def test_a_hangup_during_the_start(tmp_path):
    """SIGHUP arrives while the daemon reads its configuration: it reads its settings again once it has started,
    or says why it cannot. (A pipe cannot be read again, and must not keep the daemon from ending.)"""
    made = subprocess.run([find_program('torusctl'), 'key', 'generate', tmp_path / 'key'], capture_output=True)
    assert made.returncode == 0, made.stderr
    os.mkfifo(tmp_path / 'settings')
    started = Lonely(tmp_path, '--config', tmp_path / 'settings', ready=False)
    with started:
        with open(tmp_path / 'settings', 'w') as settings:  # when the daemon reads it
            started.process.send_signal(signal.SIGHUP)
            settings.write(f'[node]\ndims = 1x1\nrank = 0\nkey_file = {tmp_path}/key\n')
        started.wait_ready()
        wait_logged(started.log.read_text, 'settings is not a regular file, and cannot be read a second time')


@pytest.mark.parametrize('signum', [signal.SIGTERM, signal.SIGINT])
def test_a_signal_at_any_moment_of_the_start(tmp_path, signum):
    assert_ends_well([find_program('torusd'), '--dims', '1x1', '--rank', 0, '--control', tmp_path / 'sock', '--state-dir',
                      tmp_path / 'state', '--metrics', '127.0.0.1:0'], signum)
    assert set(listing(tmp_path)) <= {'state'}, 'a socket is left behind'


def test_all_signals_before_the_start(tmp_path):
    done = run([find_program('torusd'), '--dims', '1x1', '--rank', '0', '--control', tmp_path / 'sock', '--state-dir',
                tmp_path / 'state'], preexec_fn=pending(signal.SIGHUP, signal.SIGTERM, signal.SIGINT))
    assert done.returncode == 0 and done.stderr.count('it received') == 1 and done.stderr.endswith('ended\n'), done.stderr


def test_files_that_may_not_be_so_large(tmp_path):
    """A limit on file sizes is an error like a full disk; SIGXFSZ does not end the daemon."""
    (tmp_path / 'out').mkdir()
    (tmp_path / 'out' / '0').write_bytes(bytes(100000))
    with Lonely(tmp_path, '--dims', '1x1', '--rank', 0, '--data-root', tmp_path,
                prefix=['prlimit', '--fsize=50000', '--']) as limited:
        result = limited.ctl('--json', 'exchange', '--from', tmp_path / 'out', '--to', tmp_path / 'in')
        assert_refused(result, 'io')
        (tmp_path / 'out' / '0').write_bytes(bytes(10000))
        result = limited.ctl('exchange', '--from', tmp_path / 'out', '--to', tmp_path / 'in')
        assert result.returncode == 0, result.stderr


@pytest.mark.memory  # sanitizers need descriptors of their own
def test_descriptors_do_not_suffice_to_start(tmp_path):
    """The daemon reports which descriptor it lacks. With fewer descriptors, libuv ends the process."""
    for limit in range(8, 13):
        result = run(['prlimit', f'--nofile={limit}', find_program('torusd'), '--dims', '1x1', '--rank', '0',
                      '--control', tmp_path / 'sock', '--state-dir', tmp_path / 'state'], 30)
        assert result.returncode == 1
        assert re.search('cannot start: .*(oo many open files|EMFILE)', result.stderr), (limit, result.stderr)


@pytest.mark.memory  # sanitizers need far more address space
def test_no_threads(tmp_path):
    """Too little memory for the stacks of threads is reported at the start, not when the first folder is opened."""
    result = run(['prlimit', f'--stack={1 << 33}', f'--as={1 << 32}', find_program('torusd'), '--dims', '1x1',
                  '--rank', '0', '--control', tmp_path / 'sock', '--state-dir', tmp_path / 'state'], 30)
    assert result.returncode == 1 and 'cannot start threads for file operations' in result.stderr


@pytest.mark.parametrize('args,said', [
    ([], 'dims'), (['--dims', '0x4', '--rank', 0], '0x4'), (['--dims', '4x4'], 'rank'),
    (['--dims', '4x4', '--rank', 16], '16'), (['--dims', '4x4', '--rank', 0], 'port'),
    (['--dims', '1x1', '--rank', 0, '--memory', 'much'], 'memory'),
    (['--dims', '1x1', '--rank', 0, '--memory', '4KiB'], '1MiB'),
    (['--dims', '1x1', '--rank', 0, '--data-root', '/nonexistent'], '/nonexistent'),
    (['--dims', '1x1', '--rank', 0, '--config', '/nonexistent'], '/nonexistent'),
    (['--dims', '1x1', '--rank', 0, '--colour', 'red'], '--colour')])
def test_wrong_settings(tmp_path, args, said):
    result = daemon(*args, *([] if args == [] else ['--control', tmp_path / 'sock']))
    assert result.returncode == 2, result.stderr
    assert said in result.stderr and result.stdout == ''


def test_an_option_names_one_data_root(tmp_path):
    """A colon in the name of a data root does not open the folder before the colon."""
    for name in ('a', 'a:b', 'a/out', 'a:b/out'):
        (tmp_path / name).mkdir()
    for name in ('a', 'a:b'):
        (tmp_path / name / 'out' / '0').write_text(name)
    with Lonely(tmp_path, '--dims', '1x1', '--rank', 0, '--data-root', f'{tmp_path}/a:b') as one:
        assert json.loads(one.ctl('--json', 'status').stdout)['data_roots'] == [f'{tmp_path}/a:b']
        result = one.ctl('exchange', '--from', tmp_path / 'a:b/out', '--to', tmp_path / 'a:b/in')
        assert result.returncode == 0, result.stderr
        result = one.ctl('--json', 'exchange', '--from', tmp_path / 'a/out', '--to', tmp_path / 'a/in')
        assert_refused(result, 'refused')
    result = daemon('--dims', '1x1', '--rank', 0, '--control', tmp_path / 'sock', '--data-root', '')
    assert result.returncode == 2 and 'data root' in result.stderr


def test_the_list_of_data_roots_says_what_it_cannot_name(tmp_path):
    (tmp_path / 'a:b').mkdir()
    (tmp_path / 'ini').write_text(f'[node]\ndims = 1x1\nrank = 0\ndata_roots = {tmp_path}/a:b\n')
    result = daemon('--config', tmp_path / 'ini')
    assert result.returncode == 2 and 'ini:4: ' in result.stderr and '--data-root' in result.stderr


def test_one_data_root_of_a_launcher_is_no_list(loopback, tmp_path):
    torus = loopback('1x1', data_roots=str(tmp_path))
    assert torus.json(0, 'status')['data_roots'] == [str(tmp_path)]


def test_a_daemon_ends_by_sigterm_and_the_socket_goes(loopback):
    torus = loopback('2x2')
    path = torus.node(2).socket
    assert os.path.exists(path)
    assert torus.node(2).terminate() == 0
    assert not os.path.exists(path)
    torus.node(2).start()
    still_works(torus)
    torus.node(2).send_signal(signal.SIGINT)
    assert torus.node(2).daemon.wait(20) == 0
    torus.node(2).start()
    still_works(torus)


def test_daemons_without_standard_files(loopback):
    """The daemon starts with standard files closed, as by a careless script: sockets do not take their descriptors."""
    torus = loopback('2x2')
    for node in torus.nodes[1:]:
        node.terminate()
        node.daemon.command = ['sh', '-c', 'exec "$@" <&- >&- 2>&-', 'sh', *node.daemon.command]
        node.start()
    still_works(torus)
    torus.node(3).kill()
    torus.wait_broken(20, ranks=(1, 2))  # which is logged
    torus.node(3).start()
    still_works(torus)
