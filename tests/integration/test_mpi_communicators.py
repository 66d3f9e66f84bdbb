"""Communicators of MPI programs with the preloads (client/mpi), on loopback: many of them, and of all kinds."""

import pytest
from support import mpi

pytestmark = pytest.mark.slow

COLLECTIVES = ('Allgather', 'Allreduce', 'Alltoall', 'Barrier', 'Bcast')  # in each use() of tests/mpi/scenario.h
WAYS = 7  # to make a communicator of all ranks, in tests/mpi/communicators.c


@pytest.fixture(params=['mpich', 'openmpi'])
def library(request):
    return request.param


@pytest.fixture(params=[1, 2], ids=['one rank a node', 'two ranks a node'])
def nodes(request):
    return [0, 1, 2, 3] * request.param


def run(torus, library, nodes, *scenarios, program='communicators', **options):
    """Checks that all results are right. Returns what the torus has taken, and what it has not."""
    mpi.skip_without(torus, library)
    result = mpi.run(torus, library, [mpi.program(torus, library, program), *scenarios], nodes=nodes, **options)
    said = [line for line in result.stdout.splitlines() if line.endswith('right')]
    assert sorted(said) == sorted(f'rank {rank}: right' for rank in range(len(nodes)))
    return mpi.taken(result)


def uses(count):
    return dict.fromkeys(COLLECTIVES, count)


@pytest.mark.parametrize('scenario,count', [
    ('kept', 2 * WAYS), ('freed', 6 * WAYS), ('left-open', WAYS), ('between', 8)])
def test_mpi_has_few_left(shared, library, nodes, scenario, count):
    """The preload needs none of them."""
    taken, _ = run(shared('2x2'), library, nodes, 'few-left', scenario)
    assert taken == uses(count)


def test_mpi_has_none_left(shared, library, nodes):
    """Those that there are go on, and those that are made when some have been freed."""
    taken, fallen_back = run(shared('2x2'), library, nodes, 'until-none')
    assert not fallen_back
    assert set(taken) == set(COLLECTIVES) and taken['Barrier'] >= 2 * 18 + 2


def test_callbacks(shared, library, nodes):
    """Those of attributes make, use and free other communicators."""
    taken, fallen_back = run(shared('2x2'), library, nodes, 'callbacks')
    assert (taken, fallen_back) == (uses(6), {})


def test_error_handlers(shared, library, nodes):
    run(shared('2x2'), library, nodes, 'handlers')
