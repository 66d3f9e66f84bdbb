"""Programs on a torus: the examples, and `torusctl perf`."""

import json
import os
import re

import pytest
from support.programs import example, finish_each, python, run_each, start_each
from support.waiting import wait_for
from torus_net import counted

EXAMPLES = {'transpose': r'transposed a matrix of (\d+) x \1 on {nodes} \({dims}\): 0 elements wrong',
            'sample_sort': r'sorted \d+ numbers on {nodes} \({dims}\): right',
            'halos': r'100 steps on \d+ x 256 cells on {nodes} \({dims}\): largest error \S+',
            'conjugate_gradients': r'solved \d+ equations on {nodes} \({dims}\) in \d+ steps: '
                                   r'error \S+'}
SIZED = ['alltoall', 'alltoallv', 'allgather', 'gather', 'scatter', 'broadcast', 'allreduce', 'reduce', 'reduce-scatter']


@pytest.mark.parametrize('dims', ['1', '1x2', '2x3', '2x2x2', '4m'])
@pytest.mark.parametrize('name', EXAMPLES)
def test_examples(shared, dims, name):
    """Each example verifies its own result."""
    torus = shared(dims)
    first, *others = run_each(torus, example(torus, name))
    pattern = EXAMPLES[name].format(nodes=counted(torus.geometry.nodes, 'node'), dims=dims)
    assert re.fullmatch(pattern + '\n', first.stdout), first.stdout
    assert [result.stdout for result in others] == [''] * len(others)


@pytest.mark.parametrize('arguments', ['transpose 1', 'sample_sort 0', 'sample_sort 1', 'halos 1',
                                       'conjugate_gradients 1'])
def test_examples_with_very_little_data(shared, arguments):
    torus = shared('2x3')
    run_each(torus, example(torus, arguments))


def perf(torus, arguments):
    first, *others = run_each(torus, f'exec {torus.torusctl} perf {arguments} --json')
    assert [result.stdout for result in others] == [''] * len(others)
    return json.loads(first.stdout)


@pytest.mark.parametrize('memory', ['--registered', '--ordinary'])
@pytest.mark.parametrize('operation', SIZED)
def test_perf_verifies_what_arrives(shared, operation, memory):
    torus = shared('2x3', bw=50)
    report = perf(torus, f'{operation} --sizes 0,1,1000,20000 --repeat 3 --pause 0 --verify {memory}')
    assert (report['dims'], report['node_count'], report['operation']) == ([2, 3], 6, operation)
    assert report['memory'] == memory.lstrip('-')
    unit = 8 if 'reduce' in operation else 1
    assert [row['bytes'] for row in report['results']] == [0] + [max(size // unit, 1) * unit
                                                                 for size in (1, 1000, 20000)]
    assert report['results'].pop(0)['wrong'] == 0
    for row in report['results']:
        assert row['wrong'] == 0
        small = row['bytes'] < 16384
        assert len(row['latency_seconds_each']) == 3
        assert len(row['period_seconds_each']) == (3 if small else 0)
        assert (row['period_seconds'] is not None) == small
        assert row['latency_q1_seconds'] <= row['latency_seconds'] <= row['latency_q3_seconds']
        assert row['bound_seconds'] > 0 and row['ratio'] > 0


def test_perf_of_a_barrier(shared):
    report = perf(shared('2x3', bw=50), 'barrier --repeat 4')
    row, = report['results']
    assert len(row['latency_seconds_each']) == len(row['period_seconds_each']) == 4
    assert row['bound_seconds'] is None and row['bits_per_second'] is None and 'bytes' not in row


@pytest.mark.parametrize('part,dims', [('0', '2'), ('1', '3'), ('0,1', '2x3')])
def test_perf_in_parts(shared, part, dims):
    report = perf(shared('2x3', bw=50), f'alltoall --part {part} --sizes 100 --repeat 2 --verify')
    assert report['part'] == dims and report['results'][0]['wrong'] == 0


@pytest.mark.parametrize('part', [0, 1])
def test_perf_in_a_line(shared, part):
    """The parts are single nodes, or all of it."""
    report = perf(shared('1x2'), f'allreduce --part {part} --sizes 100 --repeat 2 --verify')
    assert report['part'] == '12'[part] and report['results'][0]['wrong'] == 0


@pytest.mark.parametrize('kind', ['int8', 'uint16', 'float32'])
def test_perf_of_types_and_operators(shared, kind):
    torus = shared('2x3', bw=50)
    for operator in ('sum', 'product', 'min', 'max', 'and', 'or', 'xor'):
        if kind == 'float32' and operator in ('and', 'or', 'xor'):
            continue
        report = perf(torus, f'allreduce --type {kind} --op {operator} --sizes 777 --repeat 1 '
                             '--pause 0 --verify')
        assert report['type'] == kind and report['operator'] == operator
        assert report['results'][0]['wrong'] == 0


def test_perf_prints_a_table_at_rank_0(shared):
    torus = shared('2x3', bw=50)
    first, *others = run_each(torus, f'exec {torus.torusctl} perf broadcast --root 4 --sizes 8,32K '
                                     '--repeat 2')
    assert [result.stdout for result in others] == [''] * len(others)
    assert re.search(r'^root +4$', first.stdout, re.M)
    assert re.search(r'^ *8 B +2 +\S+ \ws ', first.stdout, re.M), first.stdout
    assert re.search(r'^ *32 KiB +2 +\S+ \ws .* - ', first.stdout, re.M), first.stdout


@pytest.mark.parametrize('arguments,said', [('alltoall --part 2', '--part: the dimensions of 2x3 are 0 to 1'),
                                            ('broadcast --root 6', '--root: the ranks are 0 to 5')])
def test_perf_knows_the_torus(shared, arguments, said):
    for result in run_each(shared('2x3', bw=50), f'exec torusctl perf {arguments}', check=False):
        assert result.returncode == 2 and said in result.stderr


def test_perf_waits_for_the_other_nodes_no_longer_than_told(shared):
    torus = shared('2x3', bw=50)
    result = torus.ctl(1, 'perf', 'alltoall', '--timeout', '0.5')
    assert result.returncode == 1 and result.stdout == ''
    assert 'group "perf"' in result.stderr and 'node 0' in result.stderr


STATUS_PROGRAM = """
import os, sys, numpy, libtorus
group = libtorus.Group('shown')
group.barrier()
call = group.start_allgather(numpy.zeros(1000, 'u1')) if group.rank == 0 else None
print('ready', flush=True)
open(sys.argv[1]).read()  # until the test writes to this pipe
call = call or group.start_allgather(numpy.zeros(1000, 'u1'))
call.wait()
group.barrier()
print('done', flush=True)
open(sys.argv[1]).read()
"""


CIRCLE = """
import gc
import libtorus

circle = [libtorus.Group('circle', timeout=60)]
circle.append(circle[0].part(1))
circle.append(circle)
circle[1].barrier()
del circle
gc.collect()  # calls the destructors of the objects of a circle in any order
"""


def test_a_group_may_be_dropped_before_its_parts(shared, tmp_path):
    (tmp_path / 'circle.py').write_text(CIRCLE)
    run_each(shared('1x2'), python(f'{tmp_path}/circle.py'))


def test_status_shows_groups(shared, tmp_path):
    """Groups while they are opened, with a call that only one node has made, and without calls."""
    pytest.importorskip('numpy')
    torus = shared('1x2')
    (tmp_path / 'program.py').write_text(STATUS_PROGRAM)
    pipes = [tmp_path / str(rank) for rank in range(2)]
    for pipe in pipes:
        os.mkfifo(pipe)

    def group(rank):
        found = torus.status(rank)['groups']
        assert len(found) == 1 and found[0]['name'] == 'shown' and found[0]['reserved_bytes'] > 0
        return found[0]

    processes = start_each(torus, python(f'{tmp_path}/program.py {tmp_path}/%r'))
    try:
        assert [process.stdout.readline() for process in processes] == ['ready\n'] * 2
        here, there = group(0), group(1)
        assert here['id'] == there['id'] and here['state'] == there['state'] == 'open'
        assert [here['pid'], there['pid']] == [process.pid for process in processes]
        assert (here['calls'], here['calls_done']) == (2, 1)
        assert (there['calls'], there['calls_done']) == (1, 1)
        table = torus.ctl(0, 'status').stdout
        assert re.search(rf'^shown +open +{here["pid"]} +2 +1 ', table, re.M), table
        for pipe in pipes:
            pipe.write_text('go')
        assert [process.stdout.readline() for process in processes] == ['done\n'] * 2
        for info in group(0), group(1):
            assert (info['calls'], info['calls_done']) == (3, 3)
            assert info['bytes_sent'] == info['bytes_received'] == 1000 + 8  # and a digest
            assert info['early_bytes'] == 0
        for pipe in pipes:
            pipe.write_text('go')
    except BaseException:
        for process in processes:
            process.kill()
        raise
    finally:
        results = finish_each(processes)
    assert [result.returncode for result in results] == [0, 0], results[0].stderr
    wait_for(lambda: not torus.status(0)['groups'] + torus.status(1)['groups'])
    for rank, other in (1, '0'), (0, '1'):
        opening = start_each(torus, python(f'{tmp_path}/program.py {tmp_path}/%r'), ranks=[rank])
        wait_for(lambda: torus.status(rank)['groups'])  # noqa: B023
        info, = torus.status(rank)['groups']
        assert (info['state'], info['pid'], info['calls']) == ('opening', opening[0].pid, 0)
        assert info['missing'] == other
        opening[0].kill()
        finish_each(opening)
        wait_for(lambda: not torus.status(rank)['groups'])  # noqa: B023


@pytest.mark.mininet
def test_examples_in_namespaces(mininet):
    torus = mininet('2x2', bw=50)
    for name in EXAMPLES:
        run_each(torus, example(torus, name))


@pytest.mark.mininet
def test_perf_in_namespaces(mininet):
    """No operation is faster than its bound for the rate of the links, if these have no burst."""
    torus = mininet('3x3', bw=50, burst=1514)
    for operation in SIZED:
        row, = perf(torus, f'{operation} --sizes 50000 --repeat 3 --verify')['results']
        assert row['wrong'] == 0 and 0.9 < row['ratio'] < 20, (operation, row)
