"""torusrun: programs on several hosts, and how they end. A program takes the place of ssh, so all hosts are this machine;
the last tests, with --full, use hosts in namespaces, and sshd on them."""

import contextlib
import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest
from support.launcher import bench  # noqa: F401
from support.routed import with_routes
from support.sshd import ssh  # noqa: F401
from support.waiting import wait_for
from torus_net import find_program
from torus_net.patience import Patience, wait

# Takes the place of ssh: [-OPTION...] -- [USER@]HOST COMMAND. As with ssh, what it starts is in another session.
SSH = f'''#!{sys.executable}
import os, subprocess, sys, threading
at = sys.argv.index('--')
host, command = sys.argv[at + 1], sys.argv[at + 2]
problem = {{
    'away': (255, 'ssh: connect to host away port 22: Connection refused'),
    'unknown': (255, 'No ED25519 host key is known for unknown.\\r\\nHost key verification failed.'),
    'closed': (255, 'me@closed: Permission denied (publickey,password).'),
    'bare': (127, 'sh: 1: exec: torusctl: not found'),
}}.get(host)
if problem:
    print(problem[1], file=sys.stderr)
    sys.exit(problem[0])
print('Welcome to', host, flush=True)
remote = subprocess.Popen(['sh', '-c', command], env={{**os.environ, 'FAKE_HOST': host}}, start_new_session=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)

def copy(source, target):
    try:
        while data := os.read(source, 65536):
            while data:
                data = data[os.write(target, data):]
    except OSError:
        pass
    os.close(target)

threading.Thread(target=copy, args=(0, remote.stdin.fileno()), daemon=True).start()
copy(remote.stdout.fileno(), 1)
os._exit(remote.wait())
'''
SLEEPING = 'sleep\x001000'
TORUSRUN = Path(find_program('torusctl')).with_name('torusrun')


class Runs:
    """Runs of torusrun on alpha, beta and gamma."""

    def __init__(self, bench, folder):  # noqa: F811
        self.bench, self.folder = bench, folder
        self.hosts('alpha', 'beta slots=1', 'bob@gamma')
        self.ssh = folder / 'ssh'
        self.ssh.write_text(SSH)
        self.ssh.chmod(0o755)
        self.environment = {'TORUS_SSH': str(self.ssh), 'TORUS_HOSTS': str(folder / 'hosts')}

    def hosts(self, *lines):
        (self.folder / 'hosts').write_text(''.join(f'{line}\n' for line in lines))

    def start(self, *arguments, **options):
        return self.bench.start(TORUSRUN, *arguments, **{**self.environment, **options})

    def run(self, *arguments, text='', **options):
        (self.folder / 'input').write_text(text)
        with open(self.folder / 'input') as stdin:
            return self.bench.end(self.start(*arguments, stdin=stdin, **options))

    def shell(self, script, *options):
        """Starts a script on all hosts, and waits until each has printed `up`."""
        process = self.start(*options, '--', 'sh', '-c', script)
        seen = {process.stdout.readline().strip() for _ in range(3)}
        assert seen == {'alpha: up', 'beta: up', 'gamma: up'}, (seen, process.stderr.read())
        return process

    def nothing_left(self):
        wait_for(lambda: not self.bench.processes(), 20, lambda: str(self.bench.processes()))

    def processes(self, *words):
        """The processes whose command lines have these words."""
        found = []
        for pid in self.bench.processes():
            with contextlib.suppress(OSError):  # it has just ended
                line = Path(f'/proc/{pid}/cmdline').read_bytes()
                found += [pid] if all(word.encode() in line for word in words) else []
        return found


@pytest.fixture
def runs(bench, tmp_path):  # noqa: F811
    return Runs(bench, tmp_path)


# --- starting ---

def test_arguments_variables_and_the_folder_arrive(runs, tmp_path):
    words = ['a b', '', "it's", '$HOME `id` "x" \\', '%h', '*', 'new\nline', '--json', '\udcff']
    folder = tmp_path / "a 'folder'"
    folder.mkdir()
    done = runs.run('--folder', folder, '--env', 'PASSED', '--env', "GIVEN=it's=1", '--ranks-per-node', '2', '--json',
                    '--', sys.executable, '-c',
                    'import os, sys; names = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK MASTER_ADDR '
                    'MASTER_PORT PASSED GIVEN TORUS_SOCKET FAKE_HOST".split(); open(os.environ["RANK"], "w").write(repr('
                    '(sys.argv[1:], os.getcwd(), [os.environ.get(name) for name in names])))',
                    *words, PASSED='yes', TORUS_SOCKET='/run/%h.sock', NOT_PASSED='no')
    assert done.returncode == 0, done.stderr
    for rank in range(6):
        host = ('alpha', 'beta', 'bob@gamma')[rank // 2]
        wanted = [str(rank), '6', str(rank % 2), '2', str(rank // 2), 'alpha', '29500', 'yes', "it's=1", '/run/%h.sock', host]
        assert (folder / str(rank)).read_text() == repr((words, str(folder), wanted))
    report = json.loads(done.stdout)
    assert report['exit_code'] == 0 and report['started'] and report['failure'] is None
    assert [(rank['host'], rank['rank'], rank['exit_code']) for rank in report['ranks']] == [
        (host, rank, 0) for rank, host in enumerate(('alpha', 'alpha', 'beta', 'beta', 'gamma', 'gamma'))]
    runs.nothing_left()


def test_output_has_the_names_of_the_hosts(runs):
    script = 'echo "$RANK out"; printf "no end" >&2'
    done = runs.run('sh', '-c', script)
    assert sorted(done.stdout.splitlines()) == ['alpha: 0 out', 'beta: 1 out', 'gamma: 2 out']
    assert sorted(done.stderr.splitlines()) == ['alpha: no end', 'beta: no end', 'gamma: no end']
    done = runs.run('--only', 'beta', '--ranks-per-node', '2', 'sh', '-c', script)
    assert sorted(done.stdout.splitlines()) == ['beta/0: 0 out', 'beta/1: 1 out']
    done = runs.run('--without', 'alpha,gamma', '--no-prefix', 'sh', '-c', script)
    assert (done.stdout, done.stderr) == ('0 out\n', 'no end')
    done = runs.run('--json', '--only', 'beta', 'sh', '-c', script)
    assert done.stderr == 'beta: 0 out\nbeta: no end\n' and json.loads(done.stdout)['exit_code'] == 0


def test_rank_0_reads_standard_input(runs):
    """More than fits into pipes, and back; the others read nothing."""
    text = ''.join(f'{i}\n' for i in range(200000))
    done = runs.run('sh', '-c', 'test $RANK = 0 && exec cat; wc -c', text=text)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and [line for line in lines if line.startswith('alpha')] == [
        f'alpha: {line}' for line in text.splitlines()]
    assert {line for line in lines if not line.startswith('alpha')} == {'beta: 0', 'gamma: 0'}
    done = runs.run('--no-prefix', '--no-stdin', 'wc', '-c', text='given')
    assert done.stdout.split() == ['0', '0', '0']
    done = runs.run('true', text=text)  # which does not read it
    assert done.returncode == 0, done.stderr


def test_nobody_reads_the_output(runs):
    """The program ends, and torusrun with it."""
    process = runs.start('--no-prefix', 'yes')
    assert process.stdout.read(2) == 'y\n'
    process.stdout.close()
    assert wait(process, Patience(60)) == 128 + signal.SIGPIPE
    runs.nothing_left()


def test_sixteen_hosts(runs):
    names = [f'host{rank}' for rank in range(16)]
    runs.hosts(*names)
    done = runs.run('sh', '-c', 'echo $RANK')
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(f'{name}: {rank}' for rank, name in enumerate(names))


def test_dry_run(runs, tmp_path):
    done = runs.run('--dry-run', '--env', 'A=b c', '--', 'touch', tmp_path / 'made by it')
    assert done.returncode == 0 and 'RANK=2 LOCAL_RANK=0 WORLD_SIZE=3' in done.stdout and "'A=b c'" in done.stdout
    assert f"touch '{tmp_path}/made by it'" in done.stdout and '-- bob@gamma ' in done.stdout
    plan = json.loads(runs.run('--dry-run', '--json', 'touch', tmp_path / 'made').stdout)
    assert [host['host'] for host in plan['hosts']] == ['alpha', 'beta', 'gamma']
    assert plan['hosts'][2]['ssh'][-2] == 'bob@gamma' and plan['program'] == ['touch', str(tmp_path / 'made')]
    assert not list(tmp_path.glob('made*'))


# --- what cannot start ---

def refused(runs, tmp_path, code, *arguments):
    """Nothing runs on any host. Returns what torusrun says."""
    done = runs.run(*arguments, 'sh', '-c', f'touch {tmp_path}/ran') if arguments[-1:] != ('end',) else runs.run(*arguments[:-1])
    assert done.returncode == code, done.stderr
    assert not (tmp_path / 'ran').exists() and done.stdout == ''
    runs.nothing_left()
    return done.stderr


def test_a_missing_folder_or_program(runs, tmp_path):
    """It is missing on one host only."""
    (tmp_path / 'program').write_text('#!/bin/sh\ntouch ran\n')
    said = refused(runs, tmp_path, 125, '--folder', tmp_path / 'none')
    for host in 'alpha', 'beta', 'gamma':
        assert f'torusrun: {host}: cannot enter the folder {tmp_path}/none: No such file or directory' in said
    assert said.endswith('torusrun: nothing was started\n')
    (tmp_path / 'few').mkdir()
    (tmp_path / 'few' / 'sh').symlink_to('/bin/sh')
    runs.ssh.write_text(SSH.replace("'FAKE_HOST': host", f"'FAKE_HOST': host, **({{'PATH': '{tmp_path}/few'}} if host == 'beta' else {{}})"))
    said = refused(runs, tmp_path, 127, 'touch', tmp_path / 'ran', 'end')
    assert said == 'torusrun: beta: cannot run the program touch: No such file or directory\ntorusrun: nothing was started\n'
    runs.ssh.write_text(SSH)
    assert 'cannot run the program' in refused(runs, tmp_path, 126, tmp_path / 'program', 'end')


@pytest.mark.parametrize('host,text', [
    ('away', 'away: ssh: connect to host away port 22: Connection refused'),
    ('unknown', "unknown: ssh does not know the key of this host, or it has changed: log in once with 'ssh unknown'"),
    ('closed', "closed: ssh cannot log in without a password: me@closed: Permission denied (publickey,password).; "
               "'ssh-copy-id closed' installs your key there"),
    ('bare', 'bare: torusctl is not there: install the package torusd'),
])
def test_a_host_that_ssh_does_not_reach(runs, tmp_path, host, text):
    runs.hosts('alpha', host)
    assert text in refused(runs, tmp_path, 125)


def test_a_host_that_does_not_answer_in_time(runs, tmp_path):
    runs.ssh.write_text(SSH.replace("print('Welcome to'", "host == 'beta' and __import__('time').sleep(1000)\nprint('Welcome to'"))
    said = refused(runs, tmp_path, 125, '--timeout', '1')
    assert 'torusrun: beta: not ready within 1 s' in said or len(re.findall('not ready within', said)) > 1


def test_wrong_usage(runs):
    for arguments, text in (((), 'the program is missing'), (('--only', 'delta', 'ls'), 'no host "delta"'),
                            (('--env', 'NOT_SET', 'ls'), 'the variable NOT_SET is not set here'),
                            (('--env', 'a b=1', 'ls'), 'not the name of a variable'), (('--hots', 'x', 'ls'), '--hosts?'),
                            (('--ranks-per-node', '0', 'ls'), '1 or more'), (('--folder', 'x', 'ls'), 'a path from / on')):
        done = runs.run(*arguments)
        assert done.returncode == 2 and text in done.stderr and done.stderr.startswith('torusrun: '), done


# --- ending ---

@pytest.mark.parametrize('how,code,text', [('exit 7', 7, 'ended with exit status 7'),
                                           ('kill -SEGV $$', 139, 'was ended by signal 11 (Segmentation fault)')])
def test_the_first_failure_ends_all(runs, tmp_path, how, code, text):
    script = (f'trap "echo ended; exit 3" TERM; (exec setsid sleep 1000) & echo up; '
              f'if test $RANK = 1; then until test -e {tmp_path}/go; do sleep 0.01; done; {how}; fi; '
              'while :; do sleep 0.01; done')
    process = runs.shell(script, '--env', 'A=1')
    (tmp_path / 'go').touch()
    done = runs.bench.end(process)
    assert done.returncode == code and done.stderr.startswith(f'torusrun: beta: rank 1 {text}\n')
    assert sorted(done.stdout.splitlines()) == ['alpha: ended', 'gamma: ended']
    runs.nothing_left()


def test_a_rank_that_succeeds_ends_no_other(runs, tmp_path):
    done = runs.run('sh', '-c', f'test $RANK = 0 && touch {tmp_path}/first; until test -e {tmp_path}/first; do sleep 0.01; '
                    'done; sleep 0.2; echo done')
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 3
    runs.nothing_left()


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_goes_to_all(runs, number):
    name = number.name.removeprefix('SIG')
    process = runs.shell(f'trap "echo {name}; exit 0" {name}; (exec setsid sleep 1000) & echo up; '
                         'while :; do sleep 0.01; done')
    process.send_signal(number)
    done = runs.bench.end(process)
    assert done.returncode == 128 + number and 'ending the program on 3 hosts' in done.stderr
    assert sorted(done.stdout.splitlines()) == [f'alpha: {name}', f'beta: {name}', f'gamma: {name}']
    runs.nothing_left()


DEAF = 'trap "" INT TERM HUP; (exec setsid sleep 1000) & echo up; while :; do sleep 0.01; done'


def test_a_second_signal_kills(runs):
    process = runs.shell(DEAF, '--grace', '1000')
    process.send_signal(signal.SIGINT)
    assert 'ending the program' in process.stderr.readline()
    assert len(runs.processes(SLEEPING)) == 3
    process.send_signal(signal.SIGINT)
    assert runs.bench.end(process).returncode == 130
    runs.nothing_left()


def test_after_the_time_of_grace_they_are_killed(runs):
    process = runs.shell(DEAF, '--grace', '0.3')
    process.send_signal(signal.SIGTERM)
    assert runs.bench.end(process).returncode == 143
    runs.nothing_left()


def test_torusrun_is_killed(runs):
    process = runs.shell(DEAF, '--grace', '0.3')
    process.kill()
    runs.bench.end(process)
    runs.nothing_left()


def test_torusrun_hangs(runs):
    """The hosts notice the silence."""
    process = runs.shell(DEAF, '--grace', '0.3', '--silence', '3')
    process.send_signal(signal.SIGSTOP)
    wait_for(lambda: not runs.processes(SLEEPING), 20)
    process.kill()
    runs.bench.end(process)
    runs.nothing_left()


@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGSTOP])
def test_a_connection_is_cut(runs, number):
    """By the end of ssh, or by silence."""
    process = runs.shell('(exec setsid sleep 1000) & echo up; while :; do sleep 0.01; done', '--silence', '3')
    client, = runs.processes(str(runs.ssh), '--\x00beta')
    os.kill(client, number)
    done = runs.bench.end(process)
    assert done.returncode == 125 and 'torusrun: beta: the connection is lost' in done.stderr
    runs.nothing_left()


@pytest.mark.parametrize('which', [0, 1], ids=['guard', 'server'])
def test_a_process_of_the_host_side_is_killed(runs, which):
    process = runs.shell(DEAF, '--grace', '0.3')

    def both():
        """By host: (guard, server)."""
        parents = {pid: int(Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[1])
                   for pid in runs.processes('torusctl\x00run\x00--receive')}
        return [(parents[pid], pid) for pid in parents if parents[pid] in parents]
    pairs = both()
    assert len(pairs) == 3
    os.kill(pairs[0][which], signal.SIGKILL)
    done = runs.bench.end(process)
    assert done.returncode in (125, 137), done.stderr  # the end of its ranks may arrive before it
    runs.nothing_left()


# --- hosts of their own ---

def on_hosts(torus, *command):
    return torus.ip_hosts.enter(0) + ['env', *(f'{name}={value}' for name, value in torus.ip_hosts.environment().items()
                                               if name.startswith('TORUS')), *command]


@pytest.mark.full
def test_hosts_in_namespaces(mininet, bench):  # noqa: F811
    """Each has its own name, and its own daemon."""
    torus = with_routes(mininet)
    done = bench.end(bench.start(*on_hosts(torus, TORUSRUN, torus.torusctl, 'perf', 'allreduce', '--sizes', '8,64KiB',
                                           '--repeat', '2', '--verify')))
    assert done.returncode == 0 and all(line.startswith('n0: ') for line in done.stdout.splitlines()), done
    done = bench.end(bench.start(*on_hosts(torus, TORUSRUN, 'hostname')))
    assert sorted(done.stdout.splitlines()) == [f'n{rank}: n{rank}' for rank in range(4)], done


@pytest.mark.full
def test_sshd(ssh, bench):  # noqa: F811
    """Over the routes of the torus: start, exit code, the end by a signal and by a connection that is cut."""
    torus, servers = ssh

    def start(*command):
        return bench.start(*on_hosts(torus, 'env', f'TORUS_SSH={servers.command}', TORUSRUN, '--env',
                                     bench.tag, *command))

    done = bench.end(start('--', 'sh', '-c', 'hostname; exit $((RANK + 4))', "it's"))
    assert done.returncode in range(4, 8) and re.search(r'^n(\d): n\1$', done.stdout, re.M), done
    words = [chr(code) for code in range(1, 128)]
    done = bench.end(start('--no-prefix', '--only', 'n3', '--', sys.executable, '-c',
                           'import sys; print(sys.argv[1:])', ''.join(words)))
    assert done.stdout == f'{["".join(words)]}\n', done
    for number, code in (signal.SIGINT, 130), (signal.SIGKILL, -9):
        process = start('--grace', '0.5', '--', 'sh', '-c', DEAF)
        assert len({process.stdout.readline() for _ in range(4)}) == 4
        process.send_signal(number)
        assert bench.end(process).returncode == code
        wait_for(lambda: not bench.processes(), 30)
    process = start('--grace', '0.5', '--silence', '3', '--', 'sh', '-c', DEAF)
    assert len({process.stdout.readline() for _ in range(4)}) == 4
    torus.node(3).run('ip', 'link', 'set', 'torus0', 'down')  # packets to its address are lost
    try:
        done = bench.end(process)
        assert done.returncode == 125 and 'torusrun: n3: the connection is lost' in done.stderr, done
        wait_for(lambda: not bench.processes(), 30)
    finally:
        torus.node(3).run('ip', 'link', 'set', 'torus0', 'up')
