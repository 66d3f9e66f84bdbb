"""Communicators of MPI programs with the preloads (client/mpi), on loopback: many of them, and of all kinds."""

import pytest
from support import mpi

pytestmark = pytest.mark.slow


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


def test_error_handlers(shared, library, nodes):
    run(shared('2x2'), library, nodes, 'handlers')
