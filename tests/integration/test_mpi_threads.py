"""Communicators of several threads with the preloads (client/mpi), on loopback, under MPI_THREAD_MULTIPLE: in any order
of calls, all calls end with right results, and most use the torus."""

import importlib.util

import pytest
from support import mpi
from support.mpi import library, torus  # noqa: F401
from torus_net import LoopbackTorus

pytestmark = [pytest.mark.slow, pytest.mark.full]


def checked(torus, library, command, nodes=(0, 1, 2, 3), **options):
    """Checks that all results of a run are right. Returns the run."""
    mpi.skip_without(torus, library)
    result = mpi.run(torus, library, command, nodes=nodes, **options)
    said = sorted(line for line in result.stdout.splitlines() if line.endswith('right'))
    assert said == sorted(f'rank {rank}: right' for rank in range(len(nodes)))
    return result


def run(*arguments, **options):
    """The share of the calls that the torus has taken."""
    taken, fallen_back = (sum(counts.values()) for counts in mpi.taken(checked(*arguments, **options)))
    return taken / (taken + fallen_back)


# The least share that the torus takes in each scenario of tests/mpi/threads.c. More depends on the threads' timing.
@pytest.mark.parametrize('scenario,share', [
    ('crossing', 0.85), ('one-freed', 0.9), ('world-once', 0.95), ('uneven', 0.75), ('one-thread-elsewhere', 0.85)])
def test_most_is_taken(torus, library, scenario, share):
    assert run(torus, library, [mpi.program(torus, library, 'threads'), scenario]) > share


@pytest.mark.parametrize('scenario', ['everywhere', 'changing', 'bursts'])
def test_communicators_compete(torus, library, scenario):
    """More communicators than lanes, on all nodes, rows and columns, which are made and freed."""
    assert run(torus, library, [mpi.program(torus, library, 'threads'), scenario]) > 0


def test_calls_that_stay_are_counted_alike(torus, library):
    """While threads take the torus from each other, all ranks ask at the same calls, whether they remember them or not."""
    checked(torus, library, [mpi.program(torus, library, 'threads'), *['staying'] * 4], mode='on', chooses=True, seconds=120)


def test_a_second_group(torus, library):
    """Two communicators that are always in use at the same time get a group each."""
    result = checked(torus, library, [mpi.program(torus, library, 'threads'), 'crossing'], mode='verbose')
    assert 'a second group is open' in result.stderr


def test_no_memory_for_a_second_group(library):
    """The daemons have room for one group only: the program goes on with that."""
    with LoopbackTorus('2x2', memory='12MiB') as torus:
        result = checked(torus, library, [mpi.program(torus, library, 'threads'), 'crossing'], mode='verbose')
    assert 'a second group could not be opened' in result.stderr
    assert 'a second group is open' not in result.stderr
    taken, fallen_back = mpi.taken(result)
    assert taken and fallen_back


# With one rank a node, the same threads compete in test_communicators_compete.
@pytest.mark.parametrize('scenario,share', [
    ('crossing', 0.85), *(pytest.param(scenario, 0, marks=pytest.mark.full) for scenario in ('bursts', 'everywhere'))])
def test_several_ranks_a_node(shared, scenario, share):
    torus = shared('2x2')
    assert run(torus, 'openmpi', [mpi.program(torus, 'openmpi', 'threads'), scenario], nodes=[0, 1, 2, 3] * 2) > share


def test_mpi4py(shared):
    """mpi4py asks for MPI_THREAD_MULTIPLE by default; here, only one thread makes calls."""
    if not importlib.util.find_spec('mpi4py'):
        pytest.skip('there is no mpi4py')
    torus = shared('2x2')
    assert run(torus, 'openmpi', ['/usr/bin/python3', mpi.ON_NODE.parent / 'mpi4py_communicators.py']) > 0.85
