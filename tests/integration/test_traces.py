"""Traced runs: every node records, the file is what viewers read, and the report names what is slow."""

import json
import os
import re
from pathlib import Path

import pytest
from support import traces
from support.errors import error_code
from support.programs import python, run_each
from support.trees import make_sources, random_sizes
from torus_net import CHECKOUT
from torus_net.process import find_program

PROGRAM = CHECKOUT / 'tests' / 'support' / 'traced_group.py'
SLOW_DISK = Path(find_program('torusd')).parent / 'tests' / 'support' / 'libslow_disk.so'


@pytest.fixture
def torus(shared, tmp_path):
    torus = shared('3x3')
    traces.wait_aligned(torus, tmp_path)
    return torus


def run_traced(torus, path, *command):
    result = torus.json(torus.geometry.nodes // 2, *command, '--trace', path)
    trace = traces.read(path)
    traces.check_structure(trace, range(torus.geometry.nodes))
    traces.check_data(trace, range(torus.geometry.nodes))
    assert trace['torusd']['id'] == result['id'] == trace['torusd']['run']['id']
    assert trace['torusd']['seconds'] >= trace['torusd']['run']['seconds']
    return trace


@pytest.mark.parametrize('command', [
    ('exchange', '--block-size', '1MiB'), ('exchange', '--algorithm', 'direct', '--block-size', '100KiB', '--repeat', 20),
    ('allgather', '--block-size', '4MiB'), ('broadcast', '--block-size', '4MiB', '--root', 2)],
    ids=['exchange', 'repeated', 'allgather', 'broadcast'])
def test_commands(torus, tmp_path, command):
    trace = run_traced(torus, tmp_path / 'trace.json', *command)
    if command[0] != 'broadcast':
        assert all(traces.sent(trace, rank) > 1 << 20 for rank in range(9))
    names = {event['name'] for event in trace['traceEvents'] if event['ph'] == 'X'}
    assert 'running' in names and 'on the link' in names, names


def test_steps_of_papers_are_in_the_trace(shared, tmp_path):
    torus = shared('4x4')
    traces.wait_aligned(torus, tmp_path)
    trace = run_traced(torus, tmp_path / 'trace.json', 'exchange', '--algorithm', 'at2', '--block-size', '256KiB')
    for rank in range(16):
        steps = [event['name'] for event in trace['traceEvents'] if event['ph'] == 'X' and event['pid'] == rank
                 and event['tid'] == 0 and event['name'].startswith('step')]
        assert steps == ['step 0', 'step 1', 'step 2', 'step 3']


@pytest.mark.full
def test_a_schedule_plays_as_it_ran(shared, tmp_path):
    """torusctl plan --html --trace: each step takes as long as in the run."""
    torus, path, page = shared('4x4'), tmp_path / 'trace.json', tmp_path / 'page.html'
    torus.json(3, 'exchange', '--algorithm', 'at2', '--block-size', '256KiB', '--repeat', 3, '--trace', path)
    plan = ('plan', '--dims', '4x4', '--algorithm', 'at2', '--html', page, '--trace', path)
    torus.ctl(0, *plan, check=True)
    data = json.loads(re.search('const DATA = (.*);</script>', page.read_text())[1])
    trace = traces.read(path)['torusd']
    schedule, = data['schedules']
    assert len(schedule['measured']) == 4 and schedule['run'] == trace['id']
    assert min(schedule['measured']) >= 0 and 0 < sum(schedule['measured']) < trace['seconds']
    for other in ('--algorithm', 'direct'), ('--algorithm', 'stream'), ('--dims', '4x8'):
        result = torus.ctl(0, '--json', *plan, *other)
        assert (result.returncode, error_code(result.stdout)) == (1, 'refused'), result
    page.unlink()
    result = torus.ctl(0, '--json', 'plan', '--dims', '4x4', '--html', page, '--trace', page)
    assert result.returncode == 1 and not page.exists()
    assert torus.ctl(0, 'plan', '--dims', '4x4', '--trace', path).returncode == 2


def test_files_on_disk(loopback, tmp_path):
    torus = loopback('2x2', data_roots=(str(tmp_path),))
    traces.wait_aligned(torus, tmp_path)
    source = make_sources(tmp_path, random_sizes(4, 'trace', 300000))
    path = tmp_path / 'trace.json'
    run_traced(torus, path, 'exchange', '--from', source, '--to', f'{tmp_path}/in-%r')


def test_nothing_has_been_traced(loopback, tmp_path):
    torus = loopback('2')
    torus.exchange('direct', 1000)
    result = torus.ctl(0, '--json', 'trace', tmp_path / 'none.json')
    assert (result.returncode, error_code(result.stdout)) == (1, 'refused')
    assert '--trace FILE' in result.stderr and not list(tmp_path.iterdir())


def test_a_trace_that_cannot_be_written(torus, tmp_path):
    """The exchange itself has been carried out."""
    result = torus.ctl(0, 'exchange', '--block-size', 1000, '--trace', tmp_path / 'missing' / 'trace.json')
    assert result.returncode == 1 and 'missing/trace.json' in result.stderr


@pytest.mark.parametrize('command', ['exchange --block-size 1', 'copy /a --to /b', 'perf barrier'])
def test_standard_output_is_for_the_report(torus, command):
    result = torus.ctl(0, *command.split(), '--trace', '-')
    assert (result.returncode, result.stdout) == (2, '') and 'name a file' in result.stderr


def test_the_last_run_again(torus, tmp_path):
    """torusctl trace writes it at any node; '-' is standard output. Runs without --trace do not replace it."""
    first = run_traced(torus, tmp_path / 'first.json', 'exchange', '--block-size', '64KiB')
    torus.exchange('direct', 1000)
    again = json.loads(torus.ctl(7, 'trace', '-', check=True).stdout)
    traces.check_structure(again, range(9))
    assert again['torusd']['id'] == first['torusd']['id'] and again['torusd']['run'] is None
    assert [traces.sent(again, rank) for rank in range(9)] == [traces.sent(first, rank) for rank in range(9)]


def test_a_node_is_down(loopback, tmp_path):
    torus = loopback('3x3')
    traces.wait_aligned(torus, tmp_path)
    torus.json(0, 'exchange', '--block-size', '64KiB', '--trace', tmp_path / 'whole.json')
    torus.node(5).kill()
    torus.wait_broken()
    result = torus.ctl(0, 'trace', tmp_path / 'rest.json', check=True)
    assert '8 of 9 nodes' in result.stderr
    trace = traces.read(tmp_path / 'rest.json')
    traces.check_structure(trace, set(range(9)) - {5})
    traces.check_data(trace, set(range(9)) - {5})
    alone = torus.ctl(0, 'report', tmp_path / 'rest.json').stdout
    both = torus.ctl(0, 'report', tmp_path / 'rest.json', '--html', tmp_path / 'page.html').stdout
    assert alone == both
    torus.node(5).start()


def test_programs(torus, tmp_path):
    pytest.importorskip('numpy')
    path = tmp_path / 'trace.json'
    run_each(torus, 'export TORUS_TRACE=1; ' + python(f'{PROGRAM} -1 0'))
    torus.ctl(2, 'trace', path, check=True)
    trace = traces.read(path)
    traces.check_structure(trace, range(9))
    traces.check_data(trace, range(9))
    for rank in range(9):
        calls = [event['name'] for event in trace['traceEvents'] if event['ph'] == 'b' and event['pid'] == rank]
        assert len([name for name in calls if name.startswith('alltoall, call') and 'dimension' not in name]) == 5
        assert len([name for name in calls if name.startswith('allreduce, call')]) == 5
        assert len([name for name in calls if name == 'alltoall, call 1 on dimension 0' or
                    name == 'alltoall, call 0 on dimension 0']) == 1, calls


def test_perf(torus, tmp_path):
    """Rank 0 writes the trace, with its table as what is known about the run."""
    path = tmp_path / 'trace.json'
    run_each(torus, f'torusctl --json perf alltoall --sizes 64KiB --repeat 5 --warm-up 1 --trace {path}')
    trace = traces.read(path)
    traces.check_structure(trace, range(9))
    traces.check_data(trace, range(9))
    assert trace['torusd']['run']['operation'] == 'alltoall'
    assert [row['bytes'] for row in trace['torusd']['run']['results']] == [65536]
    for rank in range(9):
        calls = [event['name'] for event in trace['traceEvents'] if event['ph'] == 'b' and event['pid'] == rank]
        assert len([name for name in calls if name.startswith('alltoall, call')]) == 5 + 1, calls
        assert traces.sent(trace, rank) > (5 + 1) * 8 * 65536


# --- planted faults: the report's first sentence names the place ---


def slow_disk(control, word, milliseconds, *more):
    """A prefix for daemons: the first call of each kind on a path with this word takes this time."""
    return ['env', f'LD_PRELOAD={SLOW_DISK}', 'ASAN_OPTIONS=verify_asan_link_order=0', f'SLOW_DISK={control}',
            f'SLOW_DISK_IN={word}', f'SLOW_DISK_MS={milliseconds}', *more]


@pytest.mark.full
@pytest.mark.skipif(not SLOW_DISK.exists(), reason=f'{SLOW_DISK} has not been built')
@pytest.mark.parametrize('word,kind', [('/.in-2.torusd', 'disk'), ('/out-2', 'source')])
def test_a_slow_disk(loopback, tmp_path, word, kind):
    """It is not booked on the disks of other nodes, which wait for its blocks."""
    control = tmp_path / 'hangs'
    torus = loopback('2x2', data_roots=(str(tmp_path),), wrap=slow_disk(control, word, 700))
    traces.wait_aligned(torus, tmp_path)
    source = make_sources(tmp_path, random_sizes(4, 'slow', 300000))
    path = tmp_path / 'trace.json'
    control.touch()
    torus.json(0, 'exchange', '--from', source, '--to', f'{tmp_path}/in-%r', '--timeout', 3000, '--trace', path)
    assert traces.first_finding(torus, path)[:2] == (kind, 2)
    assert {found[:2] for found in traces.findings(torus, path) if found[0] in ('disk', 'link')} <= {(kind, 2)}


@pytest.mark.skipif(not SLOW_DISK.exists(), reason=f'{SLOW_DISK} has not been built')
@pytest.mark.parametrize('word,calls,found', [
    ('out-2', 'write', ('disk', 2)), pytest.param('/from', 'read', ('source', 0), marks=pytest.mark.full)])
def test_waits_of_a_copy(loopback, tmp_path, word, calls, found):
    """They are disk, source or network: a copy has no program."""
    control = tmp_path / 'hangs'
    torus = loopback('2x2', data_roots=(str(tmp_path),), wrap=slow_disk(control, word, 60, 'SLOW_DISK_EACH=1'))
    traces.wait_aligned(torus, tmp_path)
    (tmp_path / 'from').mkdir()
    for i in range(40):
        (tmp_path / 'from' / f'{i}').write_bytes(os.urandom(100_000))
    path = tmp_path / 'trace.json'
    control.write_text(f'#1 {calls}\n')
    torus.json(0, 'copy', tmp_path / 'from', '--to', f'{tmp_path}/out-%r', '--trace', path)
    control.unlink()
    assert traces.first_finding(torus, path)[:2] == found
    waits = [one for one in torus.json(0, 'report', path)['findings'] if one['kind'] in ('disk', 'source', 'link', 'program')]
    assert (waits[0]['kind'], waits[0]['node']) == found
    assert all(one['seconds'] < waits[0]['seconds'] / 4 for one in waits[1:]), waits  # a busy machine delays all a little


class Quota:
    """In this block a daemon gets a hundredth of a processor, in parts of a millisecond."""

    def __init__(self, pid):
        first, second = Path('/sys/fs/cgroup/cpu'), Path('/sys/fs/cgroup')
        self.pid, self.root = pid, first if first.exists() else second
        self.folder = self.root / f'torus-test-{pid}'
        self.limits = ({'cpu.cfs_period_us': '100000', 'cpu.cfs_quota_us': '1000'} if first.exists() else
                       {'cpu.max': '1000 100000'})

    def __enter__(self):
        try:
            self.folder.mkdir()
            for name, value in self.limits.items():
                (self.folder / name).write_text(value)
            (self.folder / 'cgroup.procs').write_text(str(self.pid))
        except OSError as e:
            self.__exit__()
            pytest.skip(f'no limit of the processor can be set: {e}')
        return self

    def __exit__(self, *_):
        if self.folder.exists():
            (self.root / 'cgroup.procs').write_text(str(self.pid))
            self.folder.rmdir()


def test_a_daemon_without_a_processor(mininet, tmp_path):
    # On a busy machine, it is silent for seconds, and the exchange must not be repeated on other routes.
    torus = mininet('2x2', bw=200, extra=('--silence-ms=60000',))
    path = tmp_path / 'trace.json'
    with Quota(torus.node(3).pid):
        torus.json(0, 'exchange', '--block-size', '8MiB', '--timeout', 3000, '--trace', path)
    kind, node, text = traces.first_finding(torus, path, besides=())
    assert (kind, node) == ('processor', 3), text


@pytest.mark.parametrize('rank,port', [(4, '+1'), (0, '-0')])
def test_a_slow_link(mininet, tmp_path, rank, port):
    """One cable at a twenty-fifth of the rate of the others, in both directions: on a busy machine, daemons that wait for a
    processor cost as much time as a fifth would, which the simulated matrix has."""
    torus = mininet('3x3', bw=50)
    path = tmp_path / 'trace.json'
    node = torus.node(rank)
    neighbour = next(link['neighbour'] for link in torus.links(rank)['links'] if link['port'] == port)
    there = ('-' if port[0] == '+' else '+') + port[1]
    for end, name in (node, port), (torus.node(neighbour), there):
        end.run('tc', 'class', 'change', 'dev', end.interface(name), 'parent', '5:0', 'classid', '5:1', 'htb',
                'rate', '2Mbit', 'burst', '15k', 'quantum', '60000')
    torus.json(0, 'exchange', '--algorithm', 'stream', '--block-size', '128KiB', '--trace', path)
    kind, at, text = traces.first_finding(torus, path)
    assert kind == 'link', text
    assert (at, f'(port {port})' in text) == (rank, True) or (at, f'(port {there})' in text) == (neighbour, True), text
    # Its other direction is not a second fault.
    assert [found[2] for found in traces.findings(torus, path) if found[0] in ('link', 'disk')] == [text]


# Runs on healthy links whose ports often wait: for the receiver, for the next hop, for steps, for acknowledgements.
HEALTHY = {
    'stream': ('exchange', '--algorithm', 'stream', '--block-size', '128KiB'),
    'pair': ('exchange', '--algorithm', 'pair', '--block-size', '256KiB'),
    'at2': ('exchange', '--algorithm', 'at2', '--block-size', '128KiB'),
    'gather': ('gather', '{}/of-%r', '--to', '{}/all/%r'),
    'scatter': ('scatter', '{}/for/%r', '--to', '{}/got-%r'),
}


@pytest.mark.full
@pytest.mark.parametrize('run', list(HEALTHY))
def test_healthy_links(mininet, tmp_path, run):
    torus = mininet('4x4', bw=20, data_roots=(str(tmp_path),))
    traces.wait_aligned(torus, tmp_path)
    for rank in range(16):
        for folder in tmp_path / f'of-{rank}', tmp_path / 'for' / f'{rank}':
            folder.mkdir(parents=True)
            (folder / 'file').write_bytes(os.urandom(3 << 20))
    path = tmp_path / 'trace.json'
    torus.json(0, *(word.format(tmp_path) for word in HEALTHY[run]), '--trace', path)
    found = traces.findings(torus, path)
    unfounded = {'link', 'resending', 'down', 'program'}
    if HEALTHY[run][0] == 'exchange':  # files may really wait for a disk that others use as well
        unfounded.add('disk')
    assert not [text for kind, _, text in found if kind in unfounded]
    assert ('algorithm' in [kind for kind, *_ in found]) == (run == 'pair'), found


def test_nothing_stands_out(mininet, tmp_path):
    torus = mininet('3x3', bw=50)
    path = tmp_path / 'trace.json'
    torus.json(0, 'exchange', '--algorithm', 'stream', '--block-size', '128KiB', '--trace', path)
    assert {found[0] for found in traces.findings(torus, path)} <= {'nothing', 'processor'}
