"""scripts/mpi-bench: errors for wrong options and for programs that fail. test_bench_runs.py tests what it
measures."""

from pathlib import Path

import pytest
from bench import foreign
from torus_net import CHECKOUT, find_program
from torus_net.patience import run

pytestmark = [pytest.mark.slow, pytest.mark.full]


@pytest.mark.parametrize('options,said', [
    (['--frob'], 'mpi-bench: unrecognized arguments: --frob (try --help)\n'),
    (['--torus', '4x4'], 'mpi-bench: argument --torus: "4x4" is not a torus with a rate, such as 4x4@50 '
                         '(try --help)\n'),
    (['--programs-on', '2@x'], 'mpi-bench: argument --programs-on: '),
    (['--torus'], 'mpi-bench: --torus requires a value (try --help)\n'),
    (['--bin'], 'mpi-bench: --bin requires a value (try --help)\n')])
def test_errors_name_the_command(options, said):
    built = Path(find_program('torusd')).parent
    done = run([CHECKOUT / 'scripts' / 'mpi-bench', '--no-install', '--bin', built, *options])
    assert (done.returncode, done.stdout) == (2, '') and done.stderr.startswith(said), done.stderr


def test_why_a_program_failed():
    end = 'mpiexec.openmpi detected that one or more processes exited\n  Exit code:    1\n'
    assert foreign.why_it_failed('FAILED (errors=13)\n' + end) == \
        'FAILED (errors=13) | mpiexec.openmpi detected that one or more processes exited |   Exit code:    1'
    assert foreign.why_it_failed('mpi4py.MPI.Exception: the torus failed: node 1 is down\n' + 9 * end) == \
        'the torus failed: node 1 is down'


def test_what_programs_with_mpich_print(tmp_path):
    scf = foreign.Pattern(*foreign.PATTERNS['scf'])
    verdict = scf.check(tmp_path, 'scf: right, energy -1.5472492 after 19 iterations, .086483 s\n')
    assert (verdict.good, verdict.result, verdict.seconds) == (True, 'energy -1.5472492 after 19 iterations', 0.086483)
    assert not scf.check(tmp_path, 'scf: energies -1.5 -1.6 after 19 19\n').good
