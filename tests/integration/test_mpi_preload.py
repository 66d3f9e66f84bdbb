"""MPI programs with the preloads (client/mpi), on loopback: the results are the same as without a preload."""

import importlib.util
import os
import re
import signal
import subprocess
from fractions import Fraction

import pytest
from support import mpi
from support.mpi import library, torus  # noqa: F401
from support.waiting import wait_for

pytestmark = pytest.mark.slow

LIBRARIES = ['mpich', 'openmpi']


def collectives(torus, library, folder, seed, count, columns, seconds=60, **options):
    """Runs the same operations with and without the preload. Returns the calls that the torus took."""
    runs = []
    for mode in 'stats', None:
        path = folder / (mode or 'alone')
        path.mkdir()
        runs.append((library, [mpi.program(torus, library, 'collectives'), seed, count, columns, path],
                     {'mode': mode, **options}))
    with_it, _ = mpi.run_all(torus, runs, seconds)
    ranks = sorted(path.name for path in (folder / 'alone').iterdir())
    for rank in ranks:
        mpi.compare(folder / 'stats' / rank, folder / 'alone' / rank)
    return mpi.taken(with_it)


NONBLOCKING = {'Iallgather', 'Iallgatherv', 'Iallreduce', 'Ialltoall', 'Ialltoallv', 'Ialltoallw', 'Ibarrier', 'Ibcast', 'Igather',
               'Igatherv', 'Ireduce', 'Ireduce_scatter', 'Ireduce_scatter_block', 'Iscatter', 'Iscatterv'}
OPERATIONS = {'Allgather', 'Allgatherv', 'Allreduce', 'Alltoall', 'Alltoallv', 'Alltoallw', 'Barrier',
              'Bcast', 'Exscan', 'Gather', 'Gatherv', 'Reduce', 'Reduce_scatter', 'Reduce_scatter_block', 'Scan',
              'Scatter', 'Scatterv'}
NEIGHBORS = {f'Neighbor_{name}' for name in ('allgather', 'allgatherv', 'alltoall', 'alltoallv', 'alltoallw')}
NONBLOCKING_NEIGHBORS = {'In' + name[1:] for name in NEIGHBORS}


def how_many(request, few):
    return request.config.getoption('--mpi-collectives') or few


def test_random_collectives(torus, library, tmp_path, request):
    taken, fallen_back = collectives(torus, library, tmp_path, 1, how_many(request, 100), 2)
    assert set(taken) == OPERATIONS
    assert sum(taken.values()) > sum(fallen_back.values())


@pytest.mark.full
@pytest.mark.parametrize('library,dims,nodes,columns', [
    ('openmpi', '2x2', [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3], 8),
    ('mpich', '2x2', [0, 1, 2, 3, 3, 2, 1, 0], 4)])
def test_several_ranks_a_node(shared, library, dims, tmp_path, request, nodes, columns):
    torus = shared(dims)
    mpi.skip_without(torus, library)
    taken, _ = collectives(torus, library, tmp_path, 4, how_many(request, 80), columns, nodes=nodes)
    assert set(taken) == OPERATIONS


def test_halves_of_the_ranks_of_each_node(shared):
    """The communicator of the lowest ranks on the nodes uses the group of the program; that of the others has its own."""
    torus = shared('2x2')
    mpi.skip_without(torus, 'openmpi')
    result = mpi.run(torus, 'openmpi', [mpi.program(torus, 'openmpi', 'scenarios'), 'halves'],
                     nodes=[3, 1, 0, 2, 0, 1, 2, 3], mode='verbose')
    taken, fallen_back = mpi.taken(result)
    # One on the half, one on the world; each half's first call is left to MPI.
    assert taken.pop('Alltoall') == 1 and set(taken.values()) == {2}
    assert fallen_back == {'Alltoall': 1}
    assert result.stderr.count('a communicator of size 4 on 4 nodes has a group now') == 1


@pytest.mark.parametrize('dims,nodes,columns', [
    ('2x3', [5, 0, 3, 1, 4, 2], 3), ('2x2x2', range(8), 4), ('5', range(5), 5), ('2x3m', range(6), 3),
    ('1x2', [0, 0, 0, 1, 1, 1], 3), ('1x3', [0, 1, 2, 0, 1, 2], 3),
    ('2x2', [0, 1, 2, 3, 3, 2, 1, 0], 4),
    ('2x2', [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3], 8)])
def test_many_random_collectives(shared, library, dims, nodes, columns, tmp_path, request):
    """With --mpi-collectives only."""
    count = request.config.getoption('--mpi-collectives')
    if count is None:
        pytest.skip('takes long: --mpi-collectives')
    torus = shared(dims)
    mpi.skip_without(torus, library)
    taken, _ = collectives(torus, library, tmp_path, count, count, columns, nodes=nodes, seconds=500)
    assert taken


# ---- Scenarios of programs ------------------------------------------------------------------------

def scenario(torus, library, *names, program='scenarios', **options):
    mpi.skip_without(torus, library)
    return mpi.run(torus, library, [mpi.program(torus, library, program), *names], **options)


def right(result, ranks=4):
    assert sorted(result.stdout.splitlines()) == [f'rank {rank}: right' for rank in range(ranks)]


@pytest.mark.full
def test_all_is_taken(torus, library):
    """Ranks that are late, for the first call or for later calls; a large MPI_Isend that is pending when its sender
    waits on the torus; communicators that are made and freed; a thread that is cancelled while it reads; an error
    handler that does not return."""
    result = scenario(torus, library, 'late-at-first', 'late', 'isend', 'many-communicators',
                      'cancels-a-reader', 'handler-jumps')
    right(result)
    taken, fallen_back = mpi.taken(result)
    # One each in the first, in that with MPI_Isend, and in the last two, and the one that fails there. The first
    # call on each of the many communicators is left to MPI.
    assert taken['Alltoall'] == 1 + 4 + 1 + 1 + 2
    assert taken['Barrier'] == 1 + 4 + 2 + 40 + 2 and fallen_back == {'Alltoall': 40}


def test_the_root_of_a_reduce_is_late(shared, library):
    """The other ranks do not wait for it."""
    result = scenario(shared('2x3'), library, 'late-root', nodes=[3, 0, 5, 1, 4, 2])
    right(result, 6)
    taken, fallen_back = mpi.taken(result)
    assert taken['Reduce'] == 12 and not fallen_back


def test_ranks_that_only_send_go_on(torus, library):
    result = scenario(torus, library, 'ahead')
    right(result)
    taken, fallen_back = mpi.taken(result)
    assert (taken['Bcast'], taken['Reduce'], taken['Gather']) == (114, 114, 100) and not fallen_back
    right(scenario(torus, library, 'ahead', mode='torus'))  # statistics would make all ranks meet in MPI_Finalize


@pytest.mark.full
def test_whom_a_call_waits_for(torus, library):
    """After a while, one of the waiting ranks reports that; on request, none does."""
    program = mpi.program(torus, library, 'scenarios')
    said, silent = mpi.run_all(torus, [(library, [program, 'late-at-first'], {'mode': 'on', 'TORUS_MPI_LATE': late})
                                       for late in ('1', '0')])
    right(said)
    right(silent)
    warning, = warnings(said)
    assert re.fullmatch(r'torus: rank [023] has waited \d+ s in MPI_Alltoall on a communicator of 4 ranks: '
                        'node 1 has not called it', warning), warning
    assert not warnings(silent)


@pytest.mark.full
@pytest.mark.parametrize('dims,nodes', [('2x2', [0, 1, 2, 3]), ('1x2', [0, 1, 1, 0])])
def test_pending_messages(shared, library, dims, nodes):
    """Large messages that are pending while their senders or receivers wait on the torus: in both directions,
    around rings, for every operation."""
    torus = shared(dims)
    mpi.skip_without(torus, library)
    result = mpi.run(torus, library, [mpi.program(torus, library, 'pending'), 1000000, 1], nodes=nodes, seconds=180,
                     OMPI_MCA_btl='tcp,self')  # with shared memory, the receiver alone moves a message
    right(result)
    taken, fallen_back = mpi.taken(result)
    assert set(taken.values()) == {12} and len(taken) == 7 and not fallen_back


def test_cartesian_communicators(torus, library):
    """The torus serves the grid, its rows and columns, but not a communicator of some ranks or between two groups."""
    result = scenario(torus, library, 'cartesian', mode='verbose')
    right(result)
    taken, fallen_back = mpi.taken(result)
    two_of_four = Fraction(1, 2)  # the calls of two ranks that are a row
    assert taken['Barrier'] == 3 + two_of_four
    assert fallen_back == {'Alltoall': 3 + two_of_four, 'Allreduce': 1, 'Barrier': 1}  # the first calls, and the others
    assert re.search('a communicator of size 2 is left to .*: an intercommunicator', result.stderr)


@pytest.mark.full
def test_a_link_is_down_at_first(cabled, library, tmp_path):
    """The torus is used without the link. Communicators of a line that is no longer connected have a group of their own,
    which uses other links."""
    torus = cabled('2x3m', end=1, port='+1')
    mpi.skip_without(torus, library)
    torus.cable.cut_after(0)
    for node in torus.nodes:
        wait_for(lambda rank=node.rank: torus.status(rank)['whole'] is False, 30)
    taken, _ = collectives(torus, library, tmp_path, 6, 60, 3)
    assert sum(taken.values()) > 20
    result = mpi.run(torus, library, [mpi.program(torus, library, 'collectives'), 6, 60, 3, tmp_path],
                     mode='verbose')
    for said in 'size 6 is on 6 nodes', 'size 2 is on 2 nodes', 'size 3 on 3 nodes has a group now':
        assert f'a communicator of {said}' in result.stderr, result.stderr


def test_threads(torus, library):
    """Four communicators at once, two of them on the same nodes, of which one gets a group of its own."""
    result = scenario(torus, library, 'threads')
    right(result)
    taken, _ = mpi.taken(result)
    assert taken['Alltoall'] >= 4 * 40 * 0.8


def test_large_counts(shared):
    result = scenario(shared('2x2'), 'mpich', 'large-counts', program='buffers')
    right(result)
    taken, fallen_back = mpi.taken(result)
    assert set(taken) == OPERATIONS - {'Barrier'} | NEIGHBORS and fallen_back == {'Barrier': 1}  # the first call on the ring


def test_invalid_arguments(torus, library):
    """The same error classes as without a preload."""
    with_it, alone = (scenario(torus, library, 'arguments', mode=mode) for mode in ('on', None))
    assert sorted(with_it.stdout.splitlines()) == sorted(alone.stdout.splitlines())
    assert len(with_it.stdout.splitlines()) == 4 * 23


@pytest.mark.full
def test_types_with_addresses(torus, library):
    result = scenario(torus, library, 'bottom', program='buffers')
    right(result)
    assert mpi.taken(result) == [{'Bcast': 1}, {}]


def test_buffers_that_begin_alike(torus, library):
    """Both buffers begin at the same address, at one rank only; the torus takes the calls on all ranks."""
    result = scenario(torus, library, 'same-buffers', program='buffers')
    right(result)
    assert mpi.taken(result) == [{'Alltoallv': 1, 'Alltoallw': 2, 'Allgather': 1}, {}]


def test_types_of_nothing(shared):
    """One rank has nothing but null types."""
    result = scenario(shared('2x2'), 'mpich', 'null-types', program='buffers')
    right(result)
    assert mpi.taken(result) == [{'Alltoallw': 1}, {}]


def test_abort(torus, library):
    result = scenario(torus, library, 'aborts', check=False)
    assert result.returncode == 7 and 'right' not in result.stdout


# ---- The faster way -------------------------------------------------------------------------------

CHOICE = re.compile(r'torus: (MPI_\w+)(?: of at most \d+ bytes)? on a communicator of (\d) ranks goes by (the torus|.*MPI.*): '
                    r'\d+ us by the torus, \d+ us by ')


@pytest.mark.parametrize('lying', [(), (1,)])
def test_all_ranks_choose_alike(torus, library, lying):
    """While both ways are timed, one rank is late now and then, and the clock of one may be wrong: every call ends, with
    right results, and takes the same way on all ranks."""
    result = scenario(torus, library, 'choosing', mode='verbose', chooses=True, lying=lying, seconds=120)
    right(result)
    chosen = CHOICE.findall(result.stderr)
    assert {name for name, ranks, _ in chosen if ranks == '4'} >= {'MPI_Allreduce', 'MPI_Bcast', 'MPI_Barrier',
                                                                   'MPI_Reduce', 'MPI_Alltoall', 'MPI_Allgather'}
    taken, left = mpi.taken(result)
    for name in 'Barrier', 'Bcast', 'Alltoall', 'Allgather', 'Allreduce':
        calls = taken.get(name, 0) + left.get(name, 0)
        assert calls % (150 + 150 + 40) == 0 and calls, name
    # Rows of two ranks choose for themselves.
    assert all((2 * count).denominator == 1 for count in map(Fraction, (*taken.values(), *left.values())))


def test_a_table_of_choices(torus, library, tmp_path):
    """A run writes the table, and later runs go by it; a table of another job is ignored."""
    table = tmp_path / 'table'

    def chosen():
        result = scenario(torus, library, 'choosing', chooses=True, TORUS_MPI_TABLE=str(table), seconds=120)
        right(result)
        return result, *mpi.taken(result)
    chosen()
    first = table.read_text()
    head, entries = first.splitlines()[:2], first.splitlines()[2:]
    assert '4 ranks on 2x2' in head[1] and len(entries) > 10
    for way in 'torus', 'MPI':
        table.write_text('\n'.join(head + [re.sub(r'\w+$', way, entry) for entry in entries]) + '\n')
        _, taken, left = chosen()
        for name in 'Barrier', 'Allreduce', 'Allgather':
            assert (taken if way == 'torus' else left)[name] > 100 and (left if way == 'torus' else taken).get(name, 0) < 3, name
    table.write_text(first.replace('4 ranks', '5 ranks'))
    result, _, _ = chosen()
    assert f'{table} is no table for this program' in result.stderr
    assert table.read_text() == first.replace('4 ranks', '5 ranks')


ALIKE = pytest.mark.parametrize('alike', ['alike', 'alike-if-threaded'])


@ALIKE
def test_calls_that_stay_are_counted_alike(torus, library, alike):
    """A rank that has not remembered a call counts it as the others do: all ask at the same calls."""
    right(scenario(torus, library, alike, mode='on', chooses=True, seconds=120))


@ALIKE
def test_calls_that_stay_cost_little(torus, library, alike, tmp_path):
    """A call that stays with MPI as the one before does not look for the record of its communicator."""
    table = tmp_path / 'table'
    scenario(torus, library, 'plain', mode='on', chooses=True, TORUS_MPI_TABLE=str(table))
    table.write_text(''.join(table.read_text().splitlines(keepends=True)[:2]))  # short calls by their usual way, MPI
    result = scenario(torus, library, alike, mode='on', chooses=True, counting={1}, TORUS_MPI_TABLE=str(table))
    right(result)
    count, = re.findall(r'(\d+) looks for records', result.stderr)
    assert int(count) < 100, result.stderr  # of 2800 calls


# ---- What is not served ---------------------------------------------------------------------------

def library_of(program):
    """The MPI library that a program is linked with."""
    linked = subprocess.run(['ldd', program], check=True, capture_output=True, text=True).stdout
    path, = re.findall(r'libmpi(?:ch)?\.so\S* => (\S+)', linked)
    return path


def test_all_collectives_are_seen(torus, library):
    """The preload defines every function of collective communication that the library has, by both names."""
    exist = mpi.collectives_of(library_of(mpi.program(torus, library, 'unserved')))
    assert len(exist) > 100 and mpi.collectives_of(mpi.preload(torus, library)) == exist


def base_names(symbols):
    return {re.sub('P?MPIX?_|_c$', '', symbol) for symbol in symbols}


def test_unserved_collectives_are_counted(torus, library):
    """All unserved operations are counted, each call once, with its bytes and the reason, and with the starts of
    persistent requests."""
    program = mpi.program(torus, library, 'unserved')
    result = mpi.run(torus, library, [program])
    right(result)
    taken, fallen_back = mpi.taken(result)
    unserved, turns = mpi.unserved(result), 1 if library == 'openmpi' else 2  # with large counts
    exist = mpi.collectives_of(library_of(program))
    assert not taken and set(fallen_back) == base_names(exist) - OPERATIONS - NEIGHBORS
    assert set(unserved) == set(fallen_back) - NONBLOCKING - NONBLOCKING_NEIGHBORS  # these have no group yet
    for name, (calls, starts, size, why) in unserved.items():
        persistent = name.endswith('_init')
        assert calls == (1 if name == 'Barrier_init' else turns), name
        assert starts == 0 or persistent and starts % calls == 0 and starts <= 3 * calls, name
        assert why == 'not served by torusd' + (
            ': persistent' if persistent else ': nonblocking'), name
        if re.fullmatch('I?(ex)?scan', name, re.IGNORECASE):
            assert size == turns * 4, name
    assert unserved['Allreduce_init'][:3] == (turns, 3 * turns, 3 * turns * 4)


def test_calls_inside_mpi_are_not_counted(torus, library, tmp_path):
    """Calls inside the MPI library's collective input and output do not count as the program's calls."""
    result = mpi.run(torus, library, [mpi.program(torus, library, 'files'), tmp_path], OMPI_MCA_io='romio321')
    right(result)
    assert mpi.taken(result) == [{'Barrier': 1}, {}]


# ---- Without the torus ---------------------------------------------------------------------------

def warnings(result):
    return [line for line in result.stderr.splitlines() if 'torus:' in line]


LACKING = {
    'the preload': ({'without': {2}}, 'nodes? .*2'),
    'the preload at rank 0': ({'without': {0}}, 'node 0 '),
    'the preload at ranks 0 and 1': ({'without': {0, 1}}, 'node 0 '),
    'the preload at all but one': ({'without': {0, 1, 2}}, 'node 0 '),
    'the preload at rank 0, which is on node 3': ({'without': {0}, 'nodes': [3, 2, 1, 0]}, 'nodes? .*3'),
    'a daemon': ({'nodes': [0, 1, None, 3]}, '(nodes? .*2|/nowhere)'),
    'a daemon at rank 0': ({'nodes': [None, 1, 2, 3]}, '(node 0 |/nowhere)'),
    'all daemons': ({'nodes': [None] * 4}, '/nowhere')}


@pytest.mark.full
def test_ranks_that_lack_something(torus, library):
    """All ranks go on with MPI alone, and the first one that knows reports it."""
    results = mpi.run_all(torus, [
        (library, [mpi.program(torus, library, 'scenarios'), 'plain'], {'TORUS_MPI_TIMEOUT': '1', **options})
        for options, _ in LACKING.values()])
    for result, (_, said) in zip(results, LACKING.values()):
        right(result)
        warning, = warnings(result)
        assert 'this program does not use the torus' in warning and re.search(said, warning), warning


@pytest.mark.full
def test_set_up_fails_at_one_rank(torus, library):
    """The setup fails at the last moment, when the other ranks assume that they can use the torus: all ranks go on with
    MPI alone, with one or two ranks per node. The rank with the failure reports it."""
    runs = [(what, losing, options) for what in ('barrier', 'open', 'unseen') for losing, options in (
        ({0}, {}), ({3}, {}), ({0, 2}, {}), ({1}, {'nodes': [0, 1, 2, 3] * 2}))]
    results = mpi.run_all(torus, [
        (library, [mpi.program(torus, library, 'scenarios'), 'plain'],
         {'losing': losing, 'LOST_SETUP': what, **options}) for what, losing, options in runs])
    for result, (what, losing, options) in zip(results, runs):
        right(result, len(options.get('nodes', range(4))))
        assert 'torus: served' not in result.stderr
        warning, = warnings(result)
        # In the other nodes' barrier the group fails, too.
        assert 'this program does not use the torus' in warning
        assert what != 'barrier' or f'rank {min(losing)}: ' in warning and 'lost: barrier' in warning, warning


def test_ranks_that_do_not_fit(shared):
    result = scenario(shared('2x2'), 'openmpi', 'plain', nodes=[0, 1, 2, 3, 0])
    right(result, 5)
    warning, = warnings(result)
    assert '5 ranks' in warning and '4 nodes' in warning


def test_unevenly_spread_ranks(shared):
    result = scenario(shared('1x2'), 'mpich', 'plain', nodes=[0, 0, 0, 1], TORUS_MPI_TIMEOUT='1')
    right(result)
    warning, = warnings(result)
    assert re.match(r'torus: rank \d: this program does not use the torus', warning)


@pytest.mark.parametrize('count,job', [(4, None), (4, 'mine'), (2, None)])
def test_ranks_that_a_program_has_started(shared, count, job):
    """They have the preload and the variables of the program, four of them a socket for each node, and yet are no part of it:
    they say at once that they use MPI alone. (MPICH 4.0.2 of Debian 12 refuses MPI_Comm_spawn, also without the preload.)"""
    torus = shared('2x2')
    mpi.skip_without(torus, 'openmpi')
    result = mpi.run(torus, 'openmpi', [mpi.program(torus, 'openmpi', 'spawn'), count, mpi.ON_NODE], seconds=120,
                     **({'TORUS_MPI_JOB': job} if job else {}))
    assert sorted(result.stdout.splitlines()) == ['first: 4 ranks', f'second: {count} ranks']
    assert warnings(result)[:-1] == ['torus: rank 0: this program does not use the torus, but Open MPI alone: '
                                     'MPI_Comm_spawn has started it']
    assert mpi.taken(result)[0] == {'Allreduce': 5}, result.stderr


@pytest.mark.full
def test_modes(shared):
    torus, modes = shared('2x2'), {'off': 0, 'on': 0, 'stats': 1, 'nonsense': 1}
    mpi.skip_without(torus, 'openmpi')
    runs = [('openmpi', [mpi.program(torus, 'openmpi', 'scenarios'), 'plain'], {'mode': mode}) for mode in modes]
    for result, (mode, lines) in zip(mpi.run_all(torus, runs), modes.items()):
        right(result)
        assert len(warnings(result)) == lines
        assert mode != 'nonsense' or 'TORUS_MPI ' in result.stderr


def test_the_other_library(shared):
    """The preload of MPICH in a program of Open MPI, and the other way round."""
    torus = shared('2x2')
    for library, other in ('mpich', 'openmpi'), ('openmpi', 'mpich'):
        mpi.skip_without(torus, library)
        mpi.skip_without(torus, other)
        result = scenario(torus, library, 'plain', preloaded=other, check=False)
        assert result.returncode != 0
        assert f'libtorus-{other}.so: this program does not use' in result.stderr


def test_programs_without_mpi(torus, library):
    """mpiexec, shells and the like inherit LD_PRELOAD."""
    preload = mpi.preload(torus, library)
    result = subprocess.run(['/bin/sh', '-c', 'cat /dev/null; echo well'], capture_output=True, text=True,
                            check=True, env={'LD_PRELOAD': str(preload), 'LD_BIND_NOW': '1'})
    assert (result.stdout, result.stderr) == ('well\n', '')


# ---- Failures ------------------------------------------------------------------------------------

def until(running, text, ranks=4):
    """Waits until all ranks have printed that line."""
    lines = set()
    while len(lines) < ranks:
        line = running.process.stdout.readline()
        assert line, running.process.communicate()[1]
        if text in line:
            lines.add(line)


@pytest.mark.full
def test_a_daemon_is_killed(torus, library):
    """With one or two ranks per node, the error handler is called on every rank, with an error class of torusd; if
    errors are fatal, as by default, the program ends."""
    program = mpi.program(torus, library, 'scenarios')
    with mpi.Run(torus, library, [program, 'until-error']) as one, \
            mpi.Run(torus, library, [program, 'until-error'], nodes=[0, 1, 2, 3] * 2) as two, \
            mpi.Run(torus, library, [program, 'until-abort']) as fatal:
        for running, ranks in (one, 4), (two, 8), (fatal, 4):
            until(running, 'running', ranks)
        torus.node(3).kill()
        results = [running.end() for running in (one, two, fatal)]
    torus.node(3).start()
    torus.wait_whole(20)
    for result, ranks in zip(results, (4, 8)):
        assert result.returncode == 0, result.stderr
        errors = [line for line in result.stdout.splitlines() if ' error: ' in line]
        assert len(errors) == ranks
        for error in errors:
            assert 'error: new class: ' in error and 'the torus failed: ' in error
        assert sum(line.endswith(': right') for line in result.stdout.splitlines()) == ranks
    # Sometimes mpiexec of Open MPI 4.1.4 loses the text that it should show, and only names its source (its show_help).
    assert results[2].returncode != 0
    assert re.search('the torus failed: |ORTE_ERROR_LOG: .*/show_help.c ', results[2].stderr + results[2].stdout)


def test_a_rank_is_killed(torus, library):
    with mpi.Run(torus, library, [mpi.program(torus, library, 'scenarios'), 'until-abort']) as running:
        until(running, 'running')
        os.kill(mpi.pid_of(torus, 2), signal.SIGKILL)
        result = running.end()
    assert result.returncode != 0
    right(scenario(torus, library, 'plain'))


# ---- Languages -----------------------------------------------------------------------------------

UNSERVED_FORTRAN = {'Allreduce_init'}


@pytest.mark.full
def test_languages(torus, library):
    """C++, Fortran with three bindings, and mpi4py (Debian's package, for Open MPI, which asks for
    MPI_THREAD_MULTIPLE): every call is seen exactly once."""
    fortran = [mpi.program(torus, library, name) for name in ('mpif_h', 'use_mpi', 'use_mpi_f08')]
    commands = [[program] for program in [mpi.program(torus, library, 'cxx'), *fortran] if program.exists()]
    if library == 'openmpi' and importlib.util.find_spec('mpi4py'):
        commands.append(['/usr/bin/python3', mpi.ON_NODE.parent / 'mpi4py_program.py'])
    for command in commands:  # one after the other: with second groups the daemons' memory is too small for all
        result = mpi.run(torus, library, command)
        assert result.stdout == 'right\n'
        taken, fallen_back = mpi.taken(result)
        if command[0] in fortran:
            assert set(taken) == OPERATIONS | {'Neighbor_allgather', 'Iallgather', 'Iallreduce', 'Ialltoallw', 'Ibcast'}
            assert (taken['Alltoall'], taken['Allreduce'], taken['Barrier']) == (2, 4, 2)
            # The first call on a row and on a ring, and the first nonblocking call on each communicator.
            assert fallen_back == {'Allreduce': 1, 'Neighbor_allgather': 1, 'Ibarrier': 1, 'Ineighbor_alltoall': 1,
                                   **dict.fromkeys(UNSERVED_FORTRAN, 1)}
            assert mpi.unserved(result)['Allreduce_init'][:3] == (1, 2, 8)
        elif len(command) == 1:
            assert (taken, fallen_back) == ({'Allgather': 1, 'Allreduce': 2, 'Alltoall': 1, 'Barrier': 1}, {})
        else:
            assert (taken['Alltoall'], taken['Barrier'], taken['Reduce_scatter_block']) == (2, 1, 1)
            assert (taken['Iallreduce'], taken['Ibarrier']) == (3, 1)
            assert taken.get('Neighbor_alltoall', 0) + fallen_back['Neighbor_alltoall'] == 2
            assert taken['Scan'] == 1


PATTERNS = {'transpose': (['6', '1'], {'Alltoall', 'Alltoallv', 'Alltoallw'}),
            'fourier': (['8', '1'], {'Alltoallv', 'Allreduce'}),
            'particles': (['20', '2'], {'Alltoall', 'Alltoallv', 'Allgather', 'Allreduce', 'Reduce', 'Bcast'}),
            'scf': (['12'], {'Allgatherv', 'Allreduce', 'Bcast'})}


@pytest.mark.full
def test_patterns(shared):
    """The programs that scripts/mpi-bench runs with MPICH give the same results with and without the preload."""
    torus = shared('2x2')
    mpi.skip_without(torus, 'mpich')
    runs = [('mpich', [mpi.program(torus, 'mpich', name), *arguments], {'mode': mode})
            for name, (arguments, _) in PATTERNS.items() for mode in ('stats', None)]
    results = mpi.run_all(torus, runs)
    for name, (_, operations) in PATTERNS.items():
        with_it, alone = results.pop(0), results.pop(0)
        said = [re.match(r'(\w+: right, .+), +\S+ s$', result.stdout) for result in (with_it, alone)]
        assert all(said) and said[0][1] == said[1][1], (with_it.stdout, alone.stdout)
        taken, _ = mpi.taken(with_it)
        assert name in said[0][1] and set(taken) >= operations, taken


@pytest.mark.full
def test_programs_at_the_same_time(shared):
    """Programs of both libraries, and two of the same library, at the same time."""
    torus = shared('2x2')
    for library in LIBRARIES:
        mpi.skip_without(torus, library)
    for result in mpi.run_all(torus, [(library, [mpi.program(torus, library, 'scenarios'), 'plain'], {})
                                      for library in ('mpich', 'openmpi', 'openmpi')]):
        right(result)
        assert mpi.taken(result)[0]['Alltoall'] == 1


@pytest.mark.full
def test_the_launcher_is_preloaded(torus, library):
    """LD_PRELOAD=... mpiexec ..."""
    result = scenario(torus, library, 'plain', without=range(4), mode='stats',
                      LD_PRELOAD=str(mpi.preload(torus, library)))
    right(result)
    assert mpi.taken(result)[0]['Alltoall'] == 1
