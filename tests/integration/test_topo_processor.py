"""Each host's share of a processor: --cpu and --cores."""

import errno
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from support.launcher import bench  # noqa: F401
from support.waiting import wait_for
from torus_net import MininetTorus, UsageError, cgroup, processor

pytestmark = pytest.mark.plain

V1 = '32 31 0:29 / {} rw - cgroup cgroup rw,cpu,cpuacct\n'
V2 = '41 31 0:38 / {} rw - cgroup2 cgroup2 rw\n'
OTHER = '33 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n'


def _groups():
    """The group in which this process may make others; None without quotas."""
    try:
        processor.Shares(0.5, 1, 1).close()
        return processor.find_groups(Path('/proc/self/mountinfo').read_text(), Path('/proc/self/cgroup').read_text())[1]
    except (UsageError, OSError):
        return None


@pytest.fixture
def groups():
    found = _groups()
    if found is None:
        pytest.skip('no cgroups with quotas here')
    return found


# --- the options ---

@pytest.mark.parametrize('text', ['0', '0.009', '1.1', '-1', 'nan', 'inf', 'half', ''])
def test_shares_that_no_host_can_have(text):
    with pytest.raises(UsageError, match='share of a processor'):
        processor.parse_share(text)


@pytest.mark.parametrize('options,says', [
    (['--cpu', '2'], 'share of a processor'), (['--cores', '2'], 'only with --cpu'),
    (['--cpu', '0.5', '--cores', '0'], 'whole number from 1 to 64'), (['--cpu', '0.5', '--loopback'], 'needs Mininet')])
def test_options_that_contradict_each_other(bench, options, says):
    result = bench.run('2x2', *options, '--run', 'true')
    assert result.returncode == 2 and says in result.stderr


@pytest.mark.parametrize('share', [0.01, 0.05, 0.1, 0.33, 1])
def test_quotas(share):
    quota, period = cgroup.quota_and_period(share)
    assert quota / period == pytest.approx(share, rel=1e-3)
    assert quota >= 1000 and 10000 <= period <= 1000000  # what the kernel takes


# --- where groups can be made, and what to do if there is no such place ---

def test_groups_of_version_1_are_in_the_own_one(tmp_path):
    (tmp_path / 'mine').mkdir()
    mounts = OTHER + V1.format(tmp_path) + V2.format('/nonexistent')
    assert processor.find_groups(mounts, '2:cpu,cpuacct:/mine\n0::/x') == ('1', tmp_path / 'mine')
    assert processor.find_groups(mounts, '2:cpu,cpuacct:/gone\n0::/x') == ('1', tmp_path)
    assert processor.find_groups(mounts, '2:cpu,cpuacct:/../x\n0::/x') == ('1', tmp_path)


def test_groups_of_version_2_are_in_the_root(tmp_path):
    controllers = tmp_path / 'cgroup.controllers'
    controllers.write_text('cpuset cpu io\n')
    assert processor.find_groups(OTHER + V2.format(tmp_path), '0::/user.slice') == ('2', tmp_path)
    controllers.write_text('cpuset io\n')
    with pytest.raises(UsageError, match='mount -t cgroup2'):
        processor.find_groups(OTHER + V2.format(tmp_path), '0::/user.slice')


@pytest.mark.parametrize('number,says', [(errno.EINVAL, 'may not use as much'), (errno.EBUSY, 'processes run in it'),
                                         (errno.ENOTSUP, 'CONFIG_CFS_BANDWIDTH'), (errno.EROFS, 'Read-only')])
def test_errors_say_what_to_do(number, says):
    text = processor._explain(OSError(number, os.strerror(number)), '/sys/fs/cgroup', 0.5)
    assert says in text and 'start it' in text


# --- version 2, on plain files ---

@pytest.fixture
def written(monkeypatch):
    """What is written to the files of groups, which it makes as the kernel does."""
    values = []

    def write(path, value):
        values.append((path.parent.name, path.name, str(value)))
        path.write_text(str(value))
    monkeypatch.setattr(cgroup, 'write', write)
    return values


def test_version_2_gives_each_thread_a_group(tmp_path, written):
    host = tmp_path / 'n0'
    host.mkdir()
    (host / 'cgroup.threads').write_text('7\n')
    cgroup.spread_threads(cgroup.Version2, host, 1000, 10000)
    assert written == [('7', 'cgroup.type', 'threaded'), ('7', 'cpu.max', '1000 10000'), ('7', 'cgroup.threads', '7')]
    (host / 'cgroup.threads').write_text('')
    (host / '7' / 'cgroup.threads').write_text('7\n8\n')  # it has made a thread
    written.clear()
    cgroup.spread_threads(cgroup.Version2, host, 1000, 10000)
    assert written[-1] == ('8', 'cgroup.threads', '8') and not any(name == '7' for name, _, _ in written)


def test_version_2_enables_the_controller_once(tmp_path, written):
    control = tmp_path / 'cgroup.subtree_control'
    control.write_text('cpuset cpu\n')
    cgroup.Version2.enable(tmp_path)
    assert written == []
    control.write_text('cpuset\n')
    cgroup.Version2.enable(tmp_path)
    cgroup.Version2.lift_quota(tmp_path)
    assert [value for _, _, value in written] == ['+cpu', 'max']


@pytest.mark.mininet
@pytest.mark.parametrize('options,share', [
    ({}, 1), ({'cpu': 0.01}, 0.01), ({'cpu': 0.01, 'cores': 4}, 0.04), ({'cpu': 0.5, 'cores': 64}, 32)])
def test_torusd_is_told_the_share_of_its_host(options, share):
    """All cores of a host together, but not more than this machine has for each of two hosts."""
    told = MininetTorus('1x2m', **options).daemons_per_processor
    assert told == pytest.approx(max(1, 2 / len(os.sched_getaffinity(0)), 1 / share))


# --- hosts ---

BUSY = 'exec sh -c "while :; do :; done"'


def _quotas(group, torus):
    """The seconds on a processor that a group may have used: the quotas of all periods in which it ran."""
    try:
        counts = dict(line.split() for line in (group / 'cpu.stat').read_text().splitlines())
    except OSError:
        return 0
    return int(counts['nr_periods']) * torus.shares.quota / 1e6


def _used(processes):
    """The seconds on a processor that these processes have used."""
    return sum(int(Path(f'/proc/{process.pid}/schedstat').read_text().split()[0]) for process in processes) / 1e9


def _wait_used(processes, seconds):
    """Until they have used as much: how long that takes depends on what else runs here."""
    return wait_for(lambda: _used(processes) >= seconds and _used(processes), 120)


def _group_of(pid, torus):
    """The group of a process, from that of the torus on."""
    for line in Path(f'/proc/{pid}/cgroup').read_text().splitlines():
        for part in (path := Path(line.split(':', 2)[2])).parts:
            if part == torus.shares.folder.name:
                return Path(*path.parts[path.parts.index(part) + 1:])
    return None


@pytest.fixture
def busy():
    """busy(node, 2): starts as many processes that never wait."""
    started = []

    def start(node, count):
        for _ in range(count):
            started.append(node.start_program(BUSY))
        return started[-count:]
    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.mininet
def test_a_host_has_its_share(mininet, groups, busy):
    torus = mininet('1x2m', cpu=0.1)
    node, host = torus.node(0), torus.shares.folder / 'n0'
    loops = busy(node, 2)
    used = _wait_used(loops, 0.3)
    assert used <= 1.25 * _quotas(host, torus) + 0.03
    for pid in (node.pid, node.host.pid, loops[0].pid):
        assert _group_of(pid, torus) == Path('n0')
    out, _ = node.host.popen('cat /proc/self/cgroup', text=True).communicate()
    assert f'{torus.shares.folder.name}/n0\n' in out
    assert _group_of(torus.node(1).pid, torus) == Path('n1')
    for loop in loops:
        loop.kill()
    folder = torus.shares.folder
    torus.stop()
    assert not folder.exists()


@pytest.mark.mininet
def test_threads_have_cores_of_their_own(mininet, groups, busy):
    torus = mininet('1x2m', cpu=0.1, cores=2)
    host = torus.shares.folder / 'n0'
    threads = os.listdir(f'/proc/{torus.node(0).pid}/task')
    assert len(threads) > 1
    wait_for(lambda: all((host / thread).is_dir() for thread in threads))
    loops = busy(torus.node(0), 1)
    own = host / str(loops[0].pid)
    wait_for(lambda: own.is_dir() or _used(loops) > 1)
    before = _used(loops)
    used = _wait_used(loops, before + 0.3) - before
    assert used <= 1.25 * _quotas(own, torus) + 0.03
    before = _quotas(host, torus)
    more = busy(torus.node(0), 4)  # more than two cores can carry
    used = _wait_used(more, 0.4)
    assert used <= 1.25 * 2 * (_quotas(host, torus) - before) + 0.03


@pytest.mark.mininet
def test_programs_that_the_agent_starts_have_the_share_of_their_host(bench, groups):
    result = bench.run('1x2m', '--cpu', '0.5', '--ip-routes', '--run',
                       '$TORUS_AGENT n1 cat /proc/self/cgroup; cat /proc/self/cgroup')
    assert re.findall(r'/torus-[^/]*/(n[01])$', result.stdout, re.M) == ['n1', 'n0'], result.stderr


# --- nothing is left behind ---

@pytest.mark.mininet
@pytest.mark.parametrize('signum', [signal.SIGINT, signal.SIGKILL])
def test_groups_end_with_the_launcher(bench, groups, signum):
    launcher = bench.torus('1x2m', '--cpu', '0.5', '--wait')
    wait_for(lambda: 'Ctrl-C' in launcher.stderr.readline())
    folder, = groups.glob(f'torus-{launcher.pid}-*')
    assert (folder / 'n1' / 'cgroup.procs').read_text()
    launcher.send_signal(signum)
    assert bench.end(launcher).returncode != 0
    wait_for(lambda: not folder.exists())
    wait_for(lambda: not bench.processes())


@pytest.mark.mininet
def test_groups_that_were_left_behind_are_removed_at_the_next_start(bench, groups):
    ended = subprocess.run(['sh', '-c', 'echo $$'], capture_output=True, text=True).stdout.strip()
    stale = groups / f'torus-{ended}-1-x'
    (stale / 'n0' / '1').mkdir(parents=True)
    with subprocess.Popen(['sleep', '1000']) as process:
        cgroup.write(stale / 'n0' / '1' / 'cgroup.procs', process.pid)
        processor.Shares(0.5, 1, 1).close()
        assert process.wait() == -signal.SIGKILL
    assert not stale.exists()
