"""Communicators whose nodes form no row, column or plane, with the preloads (client/mpi), on loopback: each gets a group
of its own."""

import re

import pytest
from support import mpi
from support.mpi import library, torus  # noqa: F401
from torus_net import LoopbackTorus

pytestmark = pytest.mark.slow

OPENED = r'torus: a communicator of size (\d+) on (\d+) nodes has a group now'


def run(torus, library, *scenarios, program='any_nodes', nodes=(0, 1, 2, 3), **options):
    mpi.skip_without(torus, library)
    result = mpi.run(torus, library, [mpi.program(torus, library, program), *scenarios], nodes=nodes,
                     **{'mode': 'verbose'} | options)
    said = sorted(line for line in result.stdout.splitlines() if line.endswith('right'))
    assert said == sorted(f'rank {rank}: right' for rank in range(len(nodes)))
    return result


def opened(result):
    """(ranks, nodes) of each communicator that has got a group."""
    return sorted((int(ranks), int(nodes)) for ranks, nodes in re.findall(OPENED, result.stderr))


def test_one(torus, library):
    """Three of four nodes: all calls but the first one go by the torus."""
    result = run(torus, library, 'one')
    assert opened(result) == [(3, 3)]
    taken, fallen_back = mpi.taken(result)
    assert fallen_back == {'Alltoall': mpi.each(3, 4)} and taken['Barrier'] == 40 + 40 * 3 / 4


def test_a_group_that_pays_off(torus, library):
    """By the faster way, only a communicator that is in use for some time gets a group. Its calls are timed then."""
    result = run(torus, library, 'long-use', chooses=True)
    assert opened(result) == [(3, 3)]
    assert re.search('MPI_Barrier .* on a communicator of 3 ranks goes by', result.stderr)


def test_a_table(torus, library, tmp_path):
    """With a table the same calls go by the torus in every run: the group is opened in the 16th."""
    table = tmp_path / 'table'
    run(torus, library, 'long-use', chooses=True, TORUS_MPI_TABLE=str(table))
    table.write_text(re.sub(r'MPI$', 'torus', table.read_text(), flags=re.MULTILINE))
    assert re.search('^dimensions 0, 1 ranks a node, MPI_Barrier, .*: torus$', table.read_text(), re.MULTILINE)
    results = [run(torus, library, 'one', chooses=True, TORUS_MPI_TABLE=str(table)) for _ in range(2)]
    assert [opened(result) for result in results] == [[(3, 3)]] * 2
    taken, again = (mpi.taken(result) for result in results)
    assert taken == again and taken[0]['Barrier'] >= mpi.each(37 * 3, 4)


@pytest.mark.full
def test_overlapping(torus, library):
    """More communicators than groups for them. Those of freed ones are used again."""
    result = run(torus, library, 'overlapping')
    assert len(opened(result)) > 4
    assert 'is left to' in result.stderr and 'has no group of its own' in result.stderr
    taken, fallen_back = mpi.taken(result)
    assert taken and fallen_back


@pytest.mark.full
def test_several_ranks_a_node(torus, library):
    result = run(torus, library, 'overlapping', nodes=[0, 1, 2, 3, 3, 2, 1, 0], seconds=120)
    assert len(opened(result)) > 4 and 'could not open' not in result.stderr


@pytest.mark.full
def test_threads_of_several_ranks_a_node(torus, library):
    """The ranks of a node send each other messages for several communicators at the same time."""
    assert opened(run(torus, library, 'any-nodes', program='threads', nodes=[0, 1, 2, 3, 3, 2, 1, 0], seconds=120))


def test_freed_soon(torus, library):
    """Closing a group at one member does not disturb calls of the others."""
    result = run(torus, library, 'freed-soon')
    assert opened(result) == [(3, 3)] * 60


def test_nonblocking(torus, library):
    result = run(torus, library, 'nonblocking')
    assert mpi.taken(result)[0]['Iallreduce'] == 20 * 5 / 4


def test_threads(torus, library):
    result = run(torus, library, 'any-nodes', program='threads')
    assert {(3, 3), (2, 2)} <= set(opened(result))


def test_no_memory(library):
    """The daemons have no room for another group: the program goes on without."""
    with LoopbackTorus('2x2', memory='12MiB') as torus:
        result = run(torus, library, 'one')
    assert not opened(result)
    assert 'a communicator of size 3 on 3 nodes could not open a group: ' in result.stderr
    taken, _ = mpi.taken(result)
    assert taken['Barrier'] == 40


@pytest.mark.parametrize('bytes', [2000, 8000, 20000])
def test_a_link_that_goes_down(cabled, library, bytes):
    """Calls on a group of five of six nodes, and on all nodes, avoid the link from then on."""
    torus = cabled('2x3', end=1, port='+1')
    mpi.skip_without(torus, library)
    torus.cable.cut_after(bytes)
    result = run(torus, library, 'one', 'nonblocking', nodes=range(6))
    assert torus.cable.is_cut and (5, 5) in opened(result)
