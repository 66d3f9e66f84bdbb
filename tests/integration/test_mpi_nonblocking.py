"""Nonblocking collective operations of MPI programs with the preloads (client/mpi), on loopback: tests/mpi/nonblocking.c
compares the results of the torus with those of MPI."""

import pytest
from support import mpi
from support.mpi import library, torus  # noqa: F401

from test_mpi_preload import NONBLOCKING, until

pytestmark = pytest.mark.slow


def run(torus, library, *scenarios, **options):
    """Checks that all results are right. Returns the calls of each rank that the torus has taken, and the others."""
    nodes = options.get('nodes', range(len(torus.nodes)))
    result = mpi.run(torus, library, [mpi.program(torus, library, 'nonblocking'), *scenarios], **options)
    said = sorted(line for line in result.stdout.splitlines() if line.endswith('right'))
    assert said == sorted(f'rank {rank}: right' for rank in range(len(nodes)))
    return mpi.taken(result)


def test_all_operations(torus, library):
    """Up to 130 calls of all operations by the torus, and as many by MPI, are under way at the same time, and completed
    in any order, by all functions, also between blocking calls."""
    taken, _ = run(torus, library, 'mixed')
    assert NONBLOCKING <= set(taken)


@pytest.mark.parametrize('scenario', ['row', 'freed', 'orders', 'independent', 'threads', 'handed-over',
                                      'reused-handles'])
def test_communicators(torus, library, scenario):
    """Of some nodes, freed while their calls are under way, used in orders that differ between ranks; in threads, also
    beside requests of MPI that get the handles of others."""
    taken, _ = run(torus, library, scenario)
    assert sum(calls for name, calls in taken.items() if name in NONBLOCKING) > 20


def test_more_calls_than_fit(torus, library):
    """They start when others have ended, also while the program waits in a function that knows nothing of them."""
    taken, _ = run(torus, library, 'many')
    assert taken['Iallreduce'] >= 2 * 200


def test_the_choice(torus, library):
    """All ranks choose alike, also for calls of operations that are being timed."""
    taken, fallen_back = run(torus, library, 'mixed', chooses=True, lying={1})
    assert NONBLOCKING & set(taken) and NONBLOCKING & set(fallen_back)


def test_the_torus_fails(loopback, library):
    """Calls that are under way fail on every rank, as do those that are made afterwards."""
    torus = loopback('2x2')
    mpi.skip_without(torus, library)
    with mpi.Run(torus, library, [mpi.program(torus, library, 'nonblocking'), 'until-error']) as running:
        until(running, 'running')
        torus.node(3).kill()
        result = running.end()
    assert result.returncode == 0, result.stderr
    assert sum('error: the torus failed: ' in line for line in result.stdout.splitlines()) == 4
    assert sum(line.endswith('right') for line in result.stdout.splitlines()) == 4
