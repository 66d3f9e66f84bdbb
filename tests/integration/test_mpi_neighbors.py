"""Neighborhood operations of MPI programs with the preloads (client/mpi), on loopback: tests/mpi/neighbors.c checks every
block."""

import pytest
from support import mpi
from support.mpi import library, torus  # noqa: F401

from test_mpi_preload import NEIGHBORS, NONBLOCKING_NEIGHBORS, scenario

pytestmark = pytest.mark.slow


def run(torus, library, *scenarios, program='neighbors', **options):
    """Checks that all results are right. Returns the calls of each rank that the torus has taken, and the others."""
    nodes = options.setdefault('nodes', range(len(torus.nodes)))
    result = mpi.run(torus, library, [mpi.program(torus, library, program), *scenarios], **options)
    said = sorted(line for line in result.stdout.splitlines() if line.endswith('right'))
    assert said == sorted(f'rank {rank}: right' for rank in range(len(nodes)))
    return mpi.taken(result)


def test_all_topologies(torus, library):
    """Grids, graphs and directed graphs, also with neighbors that are repeated or missing. MPICH keeps its own order of the
    blocks of a repeated neighbor."""
    taken, left = run(torus, library, 'cartesian', 'graph', 'dist-graph')
    assert set(taken) >= NEIGHBORS
    calls = 4 * 26  # of each operation, on all communicators; on each of them MPI_Allgather was called before
    for name in NEIGHBORS - {'Neighbor_alltoallw'}:
        assert taken[name] + left.get(name, 0) == calls, name
    assert taken['Neighbor_allgather'] == taken['Neighbor_allgatherv'] == calls
    assert library == 'mpich' or taken['Neighbor_alltoall'] == taken['Neighbor_alltoallv'] == calls


@pytest.mark.full
@pytest.mark.parametrize('dims,nodes', [('2x3', [3, 0, 5, 1, 4, 2]), ('2x2', [0, 1, 2, 3, 3, 2, 1, 0]),
                                        ('1x2', [0, 1, 0, 1])])
def test_other_places(shared, library, dims, nodes):
    """Ranks in another order than the nodes, and several ranks a node."""
    torus = shared(dims)
    mpi.skip_without(torus, library)
    taken, _ = run(torus, library, 'cartesian', 'graph', 'dist-graph', nodes=nodes)
    assert set(taken) >= NEIGHBORS


def test_nonblocking(torus, library):
    """Calls of all operations, under way at the same time, between blocking ones."""
    taken, left = run(torus, library, 'nonblocking')
    assert set(taken) >= NONBLOCKING_NEIGHBORS
    for name in NONBLOCKING_NEIGHBORS:
        assert taken[name] > left[name] and taken[name] + left[name] == 12 * 40 // 5, name


@pytest.mark.full
def test_the_choice(torus, library):
    """Each communicator times its calls, and all its ranks choose alike."""
    taken, left = run(torus, library, 'choosing', mode='verbose', chooses=True, seconds=120)
    for name in 'alltoall', 'allgather', 'alltoallv':
        calls = [part.get(f'Neighbor_{name}', 0) for part in (taken, left)]
        assert all(count == int(count) for count in calls) and sum(calls) == 120, name


@pytest.mark.full
def test_invalid_arguments(torus, library):
    """The same error classes as without a preload."""
    with_it, alone = (scenario(torus, library, 'arguments', program='neighbors', mode=mode) for mode in ('on', None))
    assert sorted(with_it.stdout.splitlines()) == sorted(alone.stdout.splitlines())
    assert len(with_it.stdout.splitlines()) == 4 * 5
