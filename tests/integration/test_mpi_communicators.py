"""Communicators of MPI programs with the preloads (client/mpi), on loopback: many of them, and of all kinds."""

import pytest
from support import mpi
from support.mpi import library, torus  # noqa: F401

pytestmark = [pytest.mark.slow, pytest.mark.full]

COLLECTIVES = ('Allgather', 'Allreduce', 'Alltoall', 'Barrier', 'Bcast')  # in each use() of tests/mpi/scenario.h
WAYS = 7  # to make a communicator of all ranks, in tests/mpi/communicators.c


@pytest.fixture(params=[1, 2], ids=['one rank a node', 'two ranks a node'])
def nodes(request):
    return [0, 1, 2, 3] * request.param


def run(torus, library, nodes, *scenarios, program='communicators', **options):
    """Checks that all results are right. Returns the calls that the torus has taken, and the others."""
    mpi.skip_without(torus, library)
    result = mpi.run(torus, library, [mpi.program(torus, library, program), *scenarios], nodes=nodes, **options)
    said = [line for line in result.stdout.splitlines() if line.endswith('right')]
    assert sorted(said) == sorted(f'rank {rank}: right' for rank in range(len(nodes)))
    return mpi.taken(result)


def uses(count, communicators):
    """The calls that the torus takes of that many uses of that many communicators: all except the first calls, which are
    short."""
    taken = dict.fromkeys(COLLECTIVES, count) | {'Alltoall': count - communicators}
    return {name: calls for name, calls in taken.items() if calls}


@pytest.mark.parametrize('scenario,count,communicators', [
    ('kept', 2 * WAYS, WAYS), ('freed', 6 * WAYS, 6 * WAYS), ('left-open', WAYS, WAYS), ('between', 8, 8)])
def test_mpi_has_few_left(torus, library, nodes, scenario, count, communicators):
    """The program can use up all communicators: the preload needs none of them."""
    taken, _ = run(torus, library, nodes, 'few-left', scenario)
    assert taken == uses(count, communicators)


def test_mpi_has_none_left(torus, library, nodes):
    """Existing communicators go on, and so do new ones that are made after others were freed."""
    taken, fallen_back = run(torus, library, nodes, 'until-none')
    assert set(fallen_back) == {'Alltoall'}
    assert set(taken) == set(COLLECTIVES) and taken['Barrier'] >= 2 * 18 + 2


@pytest.mark.parametrize('scenarios', [
    ['create', 'create-group', 'meanwhile'], ['split', 'split-type', 'from-group'],
    ['cart', 'graph', 'dist-graph', 'merge']], ids=' '.join)
def test_every_constructor(torus, library, nodes, scenarios):
    """Communicators of all ranks and of some, in several orders, and their duplicates: three calls of each operation
    give the right results, whatever is known about the parent."""
    taken, _ = run(torus, library, nodes, *scenarios, program='constructors', seconds=180)
    assert set(taken) == {'Allgather', 'Allgatherv', 'Allreduce', 'Alltoall', 'Alltoallv', 'Alltoallw', 'Barrier',
                          'Bcast', 'Gather', 'Gatherv', 'Reduce', 'Reduce_scatter', 'Reduce_scatter_block', 'Scatter',
                          'Scatterv'}
    assert min(taken.values()) > 50


def test_callbacks(torus, library, nodes):
    """Callbacks of attributes make, use and free other communicators."""
    taken, fallen_back = run(torus, library, nodes, 'callbacks')
    assert (taken, fallen_back) == (uses(6, 4), {'Alltoall': 4})


def test_error_handlers(torus, library, nodes):
    run(torus, library, nodes, 'handlers')


def test_short_lived(torus, library, nodes):
    """A communicator that is made for one short call is left to MPI; one that is made for a long one is not."""
    taken, fallen_back = run(torus, library, nodes, 'short-lived', 'long-first-call')
    assert fallen_back == {'Allreduce': 201}
    assert taken == {'Alltoall': 1, 'Allreduce': 1 + 1, 'Bcast': 1, 'Allgather': 1, 'Barrier': 1 + 201}
