"""Others' tests for MPI with the preloads (tests/mpi/suites.py). Their sources are not part of this project: name checkouts
of them with --mpich and --mpi4py."""

import subprocess

import pytest
from support import mpi
from torus_net import CHECKOUT

SUITES = CHECKOUT / 'tests' / 'mpi' / 'suites.py'
pytestmark = [pytest.mark.slow, pytest.mark.full]

# Stands for MPICH's sources: programs that pass, fail, and fail with the preload only.
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, size, all;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        puts(all == size * (size - 1) / 2 && FAILS == 0 ? " No Errors" : "Found 1 errors");
    MPI_Finalize();
    return 0;
}
"""
SHARED = ['dtpools/src/dtpools.c', 'util/mtest.c', 'util/mtest_common.c', 'util/mtest_single.c', 'util/dtypes.c']
TESTS = {'coll/right': '0', 'coll/wrong': '1', 'comm/ours': '(strcmp(getenv("TORUS_MPI"), "off,torus") != 0)'}


def run(torus, *options):
    return subprocess.run([SUITES, *map(str, options)], env=torus.environment(), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)


@pytest.mark.parametrize('library', ['mpich', 'openmpi'])
def test_tests_are_compared(shared, library, tmp_path):
    """A test that fails with the preload only is told, and one that fails although the list does not say so."""
    torus = shared('2x2')
    mpi.skip_without(torus, library)
    folder = tmp_path / 'sources' / 'test' / 'mpi'
    for name in SHARED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f'int {name.partition("/")[2][:-2].replace("/", "_")};\n')
    for name in 'coll', 'comm':
        (folder / name).mkdir()
        (folder / name / 'testlist.in').write_text('# the tests\n' + ''.join(
            f'{test.partition("/")[2]} 4 arg=-x timeLimit=9 # comment\n' for test in TESTS if test.startswith(name)))
    for test, fails in TESTS.items():
        (folder / f'{test}.c').write_text(f'#define FAILS {fails}\n{PROGRAM}')
    (folder / 'coll' / 'testlist.in').open('a').write('@largetest@huge 8\nnbmissing 4\n')
    done = run(torus, '--mpich', tmp_path / 'sources', '--library', library, '--built', tmp_path / 'built')
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines() == [
        'coll/right -x  passes; 1 calls by the torus',
        'NOT AS LISTED  coll/wrong -x  finds errors; 1 calls by the torus',
        'NOT AS LISTED  coll/nbmissing  cannot be built; 0 calls by the torus',
        'DIFFERENT  comm/ours -x  torus: finds errors, faster: finds errors, without: passes; 1 calls by the torus',
        f'4 tests with {library}: 3 not as without the preload or not as listed']


@pytest.mark.parametrize('dims,ranks', [('2x2', 1), ('2x2', 2), ('3x2', 1), ('5', 1), ('1x2', 1)])
@pytest.mark.parametrize('suite', ['mpich', 'mpi4py'])
@pytest.mark.parametrize('library', ['mpich', 'openmpi'])
def test_suite(shared, request, suite, library, dims, ranks):
    """Every test of the suite ends as without the preload, and as suites.txt says."""
    sources = request.config.getoption(f'--{suite}')
    if sources is None:
        pytest.skip(f'--{suite}: needs the sources of {suite}')
    torus = shared(dims)
    mpi.skip_without(torus, library)
    done = run(torus, f'--{suite}', sources, '--library', library, '--ranks', ranks)
    assert done.returncode == 0, done.stdout + done.stderr
