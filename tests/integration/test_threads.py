"""Programs whose threads use libtorus at the same time, each its own groups, with the thread sanitizer."""

import pytest
from support import mpi
from support.mpi import library, torus  # noqa: F401
from support.programs import run_each

pytestmark = [pytest.mark.slow, pytest.mark.full]

# Reports of the sanitizer end a program with this status. It maps memory at addresses that must be free (setarch). What MPI
# libraries do, which are not compiled for it, is left out.
REPORTED = 66
OPTIONS = f'exitcode={REPORTED}:halt_on_error=1:ignore_noninstrumented_modules=1'


def sanitized(torus, name):
    """The path of a program that is built with the thread sanitizer."""
    path = mpi.build_folder(torus) / 'tests' / 'support' / name
    if not path.exists():
        pytest.skip(f'{path} has not been built')
    return path


@pytest.mark.parametrize('dims', ['2x2', '3'])
def test_each_thread_has_groups_of_its_own(shared, dims):
    torus = shared(dims)
    command = f'TSAN_OPTIONS={OPTIONS} exec setarch -R {sanitized(torus, "group_threads")}'
    results = run_each(torus, f'{command} $TORUS_SOCKET 4 3', 240)
    assert [result.stdout for result in results] == ['4 threads: right\n'] * len(results)


@pytest.mark.parametrize('scenario', ['crossing', 'bursts', 'everywhere', 'changing', 'uneven', 'one-thread-elsewhere', 'any-nodes'])
def test_communicators_of_several_threads(torus, library, scenario):
    """The preload, which is a part of the program here: the sanitizer does not work in a library that is preloaded. Nor
    does it work if UCX replaces madvise(), which ends threads."""
    program = sanitized(torus, f'mpi_threads_{library}')
    result = mpi.run(torus, library, ['setarch', '-R', program, scenario], 240, without=range(4), TSAN_OPTIONS=OPTIONS,
                     UCX_MEM_EVENTS='n')
    assert result.stdout.count('right') == 4
    assert sum(mpi.taken(result)[0].values()) > 0


def test_threads_that_remember_calls(torus, library):
    """Calls that stay with MPI, of threads that take the torus from each other. Without statistics, which remember none."""
    program = sanitized(torus, f'mpi_threads_{library}')
    result = mpi.run(torus, library, ['setarch', '-R', program, 'staying'], 240, without=range(4), mode='on', chooses=True,
                     TSAN_OPTIONS=OPTIONS, UCX_MEM_EVENTS='n')
    assert result.stdout.count('right') == 4


def test_the_sanitizer_notices_a_race(shared):
    torus = shared('2x2')
    command = f'TSAN_OPTIONS={OPTIONS} exec setarch -R {sanitized(torus, "group_threads")} race'
    for result in run_each(torus, command, check=False):
        assert result.returncode == REPORTED and 'data race' in result.stderr, result
