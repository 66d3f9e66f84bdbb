"""torusd --from-env: daemons that srun, mpiexec or ssh have started for the time of a job."""

import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import uuid
from pathlib import Path

import pytest
from support.early_signals import assert_ends_well
from support.launcher import bench  # noqa: F401
from support.users import as_user, copy_programs
from support.waiting import wait_for
from torus_net import Geometry, find_program
from torus_net.addresses import link_address
from torus_net.emulated import interface_name
from torus_net.patience import Patience, run, wait

CLUSTER = '''[cluster]
dims = 3
port = 7533
link_mbit = 100
heartbeat_ms = 123
data_roots = /srv/of-the-service
exchange_group = of-the-service
[*]
+0 = torus-none1
-0 = torus-none2
[alpha]
[beta]
-0 = torus-none2 10.9.0.5/30
-0.link_mbit = 2/20
[gamma]
-0 = torus-none3
'''
VARIABLES = ('TORUS_', 'OMPI_', 'PMI', 'SLURM_', 'MPI_')


class Job:
    """A job with a name of its own, and processes of torusd in it, all on this machine."""

    def __init__(self, folder):
        self.name, self.cluster = uuid.uuid4().hex[:12], folder / 'cluster.ini'
        self.cluster.write_text(CLUSTER)
        self.folder = Path(f'/tmp/torusd-{os.geteuid()}', self.name, os.uname().nodename)
        self.daemons = []

    def environment(self, variables):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(VARIABLES)}
        return {**clean, **{name: str(value) for name, value in variables.items()}}

    def command(self, *options):
        return [find_program('torusd'), '--from-env', '--cluster', self.cluster, *map(str, options)]

    def refused(self, *options, **variables):
        """The error of a daemon that must not start."""
        done = run(self.command(*options), env=self.environment(variables))
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done
        return done.stderr

    def start(self, *options, control=None, prefix=(), **variables):
        daemon = subprocess.Popen([*prefix, *self.command(*options)], text=True, stderr=subprocess.PIPE,
                                  env=self.environment({'TORUS_JOB': self.name, **variables}))
        self.daemons.append(daemon)
        socket = control or self.folder / 'control.sock'
        wait_for(lambda: daemon.poll() is not None or run([find_program('torusctl'), '--socket', socket, 'status'])
                 .returncode == 0, 30)
        assert daemon.poll() is None, daemon.stderr.read()
        return daemon

    def ask(self, command, control=None):
        done = run([find_program('torusctl'), '--json', '--socket', control or self.folder / 'control.sock', command])
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def end(self, daemon):
        """Returns the log."""
        daemon.terminate()
        assert wait(daemon, Patience(30)) == 0
        return daemon.stderr.read()


@pytest.fixture
def job(tmp_path):
    it = Job(tmp_path)
    yield it
    for daemon in it.daemons:
        daemon.kill()
        daemon.wait()
        daemon.stderr.close()
    shutil.rmtree(it.folder.parent, ignore_errors=True)


def test_the_host_name_decides(job):
    daemon = job.start('--name', 'beta', SLURM_PROCID=0, SLURM_NTASKS=3, SLURM_LOCALID=0)
    state, links = job.ask('status'), job.ask('links')
    assert state['dims'] == [3] and state['rank'] == 1 and state['link_mbit'] == 100
    assert state['data_roots'] == [str(job.folder / 'data')]
    assert {link['port']: link['address'] for link in links['links']} == {
        '+0': '[fe80::b%torus-none1]:7533', '-0': '10.9.0.5:7533 on torus-none2'}
    assert links['heartbeat_seconds'] == 0.123
    for folder in (job.folder.parent.parent, job.folder):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    log = job.end(daemon)
    assert 'node 1, [beta]' in log and 'SLURM_PROCID' in log and f'TORUS_SOCKET={job.folder}/control.sock' in log
    assert 'no key_file' in log
    assert not job.folder.parent.exists(), 'empty folders are left behind'


def test_a_signal_at_any_moment_of_the_start(job):
    assert_ends_well(job.command('--name', 'beta'), signal.SIGTERM, env=job.environment({'TORUS_JOB': job.name}))
    assert not job.folder.parent.exists(), 'empty folders are left behind'


def test_the_other_end_of_an_address(job):
    job.start('--name', 'alpha.example.org')
    links = job.ask('links')['links']
    assert [link['address'] for link in links if link['port'] == '+0'] == ['10.9.0.5:7533 on torus-none1']


def test_the_rank_of_the_launcher(job):
    """It counts if the file does not have this host's name."""
    daemon = job.start('--name', 'delta', PMI_RANK=2, PMI_SIZE=3)
    assert job.ask('status')['rank'] == 2
    log = job.end(daemon)
    assert 'warning' in log and 'no host [delta]' in log and 'PMI_RANK is 2' in log


def test_options_win(job, tmp_path):
    for name in ('data', 'state'):
        (tmp_path / name).mkdir()
    run([find_program('torusctl'), 'key', 'generate', tmp_path / 'key'])
    daemon = job.start('--rank', 2, '--link-mbit', 10, '--data-root', tmp_path / 'data', '--state-dir',
                       tmp_path / 'state', '--control', tmp_path / 'sock', '--port', '+0=127.0.0.1:9',
                       '--key-file', tmp_path / 'key', control=tmp_path / 'sock', OMPI_COMM_WORLD_RANK=0)
    state = job.ask('status', tmp_path / 'sock')
    assert (state['rank'], state['link_mbit'], state['data_roots']) == (2, 10, [str(tmp_path / 'data')])
    assert {link['port']: link['address'] for link in job.ask('links', tmp_path / 'sock')['links']} == {
        '+0': '127.0.0.1:9', '-0': '[fe80::b%torus-none3]:7533'}
    daemon.send_signal(signal.SIGHUP)
    log = ''
    while 'have been read again' not in log:
        log = daemon.stderr.readline()
        assert log, 'the daemon has ended'
    assert 'changed: nothing' in log
    assert 'no key_file' not in job.end(daemon)


def test_the_socket_that_programs_use(job, tmp_path):
    path = tmp_path / f'{os.uname().nodename}.sock'
    daemon = job.start('--name', 'gamma', control=path, TORUS_SOCKET=tmp_path / '%h.sock')
    assert job.ask('status', path)['rank'] == 2
    assert f'TORUS_SOCKET={path}' in job.end(daemon)


def test_results_stay(job):
    daemon = job.start('--name', 'gamma')
    (job.folder / 'data' / 'result').write_text('precious')
    job.end(daemon)
    assert (job.folder / 'data' / 'result').read_text() == 'precious'


def test_the_end_of_the_process_that_started_it(job, tmp_path):
    """The daemon notices that even if its parent ends as soon as the daemon has begun."""
    script = f'"$@" 2>{tmp_path}/log & echo $! >{tmp_path}/pid; exec sleep 1000'
    with subprocess.Popen(['sh', '-c', script, 'sh', *job.command('--name', 'beta')],
                          env=job.environment({'TORUS_JOB': job.name})) as shell:
        try:
            wait_for((tmp_path / 'log').exists, 30)
            wait_for(lambda: 'TORUS_SOCKET=' in (tmp_path / 'log').read_text(), 30, pause=0)
        finally:
            shell.kill()
    pid = int((tmp_path / 'pid').read_text())
    try:
        wait_for(lambda: not job.folder.exists(), 10, (tmp_path / 'log').read_text)
        assert 'the process that started it has ended' in (tmp_path / 'log').read_text()
    finally:
        if Path(f'/proc/{pid}/cmdline').exists() and b'--from-env' in Path(f'/proc/{pid}/cmdline').read_bytes():
            os.kill(pid, signal.SIGKILL)


def test_no_launcher(job):
    error = job.refused('--name', 'beta')
    for name in ('OMPI_COMM_WORLD_RANK', 'PMI_RANK', 'SLURM_PROCID', 'PMIX_RANK', 'TORUS_JOB'):
        assert name in error
    assert not job.folder.exists()


@pytest.mark.parametrize('variables,options,words', [
    ({'SLURM_PROCID': 0, 'SLURM_NTASKS': 4}, ('--name', 'beta'), ('4 processes', 'SLURM_NTASKS', '3 hosts')),
    ({'PMI_RANK': 1, 'MPI_LOCALRANKID': 1}, ('--name', 'beta'), ('several processes', 'beta', '-ppn 1')),
    ({'PMI_RANK': 'x'}, ('--name', 'beta'), ('PMI_RANK',)),
    ({'PMI_RANK': 3}, ('--name', 'delta'), ('[delta]', '--name')),
    ({'TORUS_JOB': 'a'}, ('--name', 'delta'), ('[delta]', '--name')),
    ({'TORUS_JOB': 'a'}, ('--rank', 3), ('rank 3', '0 to 2')),
    ({'TORUS_JOB': 'a'}, ('--name', 'beta', '--encrypt', 'yes'), ('key_file',)),
    ({'TORUS_JOB': 'a'}, ('--cluster', '/nonexistent.ini'), ('/nonexistent.ini', '--cluster')),
])
def test_errors(job, variables, options, words):
    error = job.refused(*options, '--check', **variables)
    assert all(word in error for word in words), error


def test_cluster_files_without_what_is_needed(job):
    for text, words in (('[alpha]\n[beta]\n', ('no ports', 'torusctl discover')),
                        (CLUSTER.replace('dims = 3\n', ''), ('dims',)),
                        (CLUSTER.replace('link_mbit = 100', 'link_mbit = fast'), ('fast',)),
                        (CLUSTER.replace('[beta]', '[alpha]'), ('cluster.ini:', 'alpha'))):
        job.cluster.write_text(text)
        error = job.refused('--name', 'alpha', TORUS_JOB='a')
        assert all(word in error for word in words), error


def test_from_env_goes_with_no_configuration(job, tmp_path):
    (tmp_path / 'torusd.ini').write_text('[node]\nlog_level = info\n')
    assert '--config' in job.refused('--config', tmp_path / 'torusd.ini', TORUS_JOB='a')
    done = run([find_program('torusd'), '--cluster', job.cluster, '--dims', '1', '--rank', '0'])
    assert done.returncode == 2 and '--from-env' in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason='becomes another user')
@pytest.mark.parametrize('kind', ['foreign', 'open', 'link'])
def test_a_folder_of_somebody_else(job, kind):
    """Everybody may make folders in /tmp: no daemon trusts one that another user can change."""
    user = 60000 + os.getpid() % 5000
    folder, other = Path(f'/tmp/torusd-{user}'), Path(tempfile.mkdtemp(dir='/tmp'))
    other.chmod(0o777)
    torusd, = copy_programs(other, 'torusd')
    (other / 'cluster.ini').write_text(CLUSTER)
    if kind == 'link':
        folder.symlink_to(other)
    else:
        folder.mkdir()
        os.chown(folder, *((0, 0) if kind == 'foreign' else (user, user)))
        folder.chmod(0o700 if kind == 'foreign' else 0o777)
    try:
        command = [*torusd, *job.command('--name', 'beta', '--cluster', other / 'cluster.ini')[1:]]
        done = run([*as_user(user), *command], env=job.environment({'TORUS_JOB': job.name}))
        assert done.returncode == 2 and str(folder) in done.stderr, done
        assert not (other / job.name).exists()
    finally:
        shutil.rmtree(other)
        folder.unlink() if kind == 'link' else shutil.rmtree(folder)


# --- with launchers, on hosts of Mininet ---

# Starts daemons by $1 (the rest is a command), and asks two of them, which no program has started otherwise.
SCRIPT = '''set -u
export TORUS_JOB=$2 TORUS_SOCKET=/tmp/torusd-$(id -u)/$2/%h/control.sock
folder=$1
shift 2
"$@" torusd --from-env --cluster "$folder/cluster.ini" --key-file "$folder/key" >"$folder/log" 2>&1 &
pid=$!
until "$TORUS_AGENT" n4 torusctl --json status 2>/dev/null | grep -q '"whole": *true'; do
    kill -0 $pid || { cat "$folder/log"; exit 1; }
    sleep 0.1
done
for host in n0 n4; do "$TORUS_AGENT" $host torusctl --json status | tr -d '\\n'; echo; done
"$TORUS_AGENT" n4 torusctl --json bench --algorithms auto --sizes 1KiB --repeat 2 >/dev/null || exit 1
kill $pid
wait $pid
while [ -e "/tmp/torusd-$(id -u)/$TORUS_JOB" ]; do sleep 0.1; done
'''


def mininet_cluster(geometry):
    """The cluster file of an emulated torus whose hosts are n0, n1 ..."""
    lines = ['[cluster]', f'dims = {geometry}', 'port = 7533']
    for rank in range(geometry.nodes):
        lines += [f'[n{rank}]', f'rank = {rank}']
        lines += [f'{port.name} = {interface_name(rank, port)} {link_address(geometry.link(rank, port), port)}'
                  for port in geometry.ports(rank)]
    return '\n'.join(lines) + '\n'


@pytest.mark.full
@pytest.mark.mininet
@pytest.mark.parametrize('launcher,options', [
    ('mpiexec.openmpi', ('-npernode', '1', '-x', 'TORUS_JOB', '-x', 'TORUS_SOCKET')),
    ('mpiexec.mpich', ('-ppn', '1', '-n', '9')),
    ('torusrun', ('--no-stdin', '--env', 'TORUS_JOB', '--'))])
def test_launchers(bench, tmp_path, launcher, options):
    path = f'{Path(find_program("torusd")).parent}:{os.environ["PATH"]}'
    if shutil.which(launcher, path=path) is None:
        pytest.skip(f'{launcher} is missing')
    job = f'mpi-{uuid.uuid4().hex[:8]}'
    assert run([find_program('torusctl'), 'key', 'generate', tmp_path / 'key']).returncode == 0
    (tmp_path / 'script').write_text(SCRIPT)
    (tmp_path / 'cluster.ini').write_text(mininet_cluster(Geometry('3x3')))
    done = bench.run('3x3', '--ip-routes', '--quiet', '--run',
                     f'sh {tmp_path}/script {tmp_path} {job} {launcher} {" ".join(options)}', PATH=path)
    shutil.rmtree(f'/tmp/torusd-{os.geteuid()}/{job}', ignore_errors=True)
    assert done.returncode == 0, (done.stdout, done.stderr)
    states = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{')]
    assert [state['rank'] for state in states] == [0, 4]
    assert [state['data_roots'] for state in states] == [[f'/tmp/torusd-{os.geteuid()}/{job}/n{rank}/data']
                                                         for rank in (0, 4)]
