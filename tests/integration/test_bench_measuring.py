"""scripts/bench: how it measures, with fake systems and programs."""

import json
import os
import subprocess
from types import SimpleNamespace

import pytest
from bench import foreign, groups, programs, systems, warm
from torus_net import Geometry

pytestmark = pytest.mark.plain


@pytest.mark.parametrize('times,budget,calls', [
    ([9, 8, 7, 6, 5, 4, 3, 2, 1], 1000, 8), ([9, 3, 3, 3, 3], 1000, 4), ([5, 5, 5, 5], 1000, 3),
    ([9, 8, 7], 12, 2), ([9, 8], 3, 1)])
def test_warming_up(times, budget, calls):
    """The warm-up ends after two calls that are not faster, after 8 calls, or with its budget."""
    made = []
    warm.until_no_faster(lambda: made.append(times[len(made)]) or made[-1], budget)
    assert len(made) == calls


def test_what_programs_of_others_print(tmp_path):
    good = foreign.Espresso().check(tmp_path, '!    total energy              =     -15.86769589 Ry\n'
                                    '     convergence has been achieved in   7 iterations\n'
                                    '     PWSCF        :      0.78s CPU   1m 1.96s WALL\n')
    assert (good.good, good.result, good.seconds) == (True, '-15.86769589 Ry', 61.96)
    assert not foreign.Espresso().check(tmp_path, 'convergence NOT achieved').good
    assert foreign.Fftw().check(tmp_path, 'seconds 0.002 error 6.7e-16\n').good
    assert not foreign.Fftw().check(tmp_path, 'seconds 0.002 error 0.01\n').good
    tests = foreign.Mpi4py('/x')
    assert tests.check(tmp_path, 'Ran 198 tests in 3 s\n\nOK (skipped=2)\n' * 4).result == '198 tests'
    assert not tests.check(tmp_path, 'Ran 198 tests in 3 s\n\nFAILED (errors=1)\nRan 198 tests\nOK\n').good


class DriftingSystem:
    """A build on a machine that slows down all the time: each turn takes longer than the last."""

    def __init__(self, side, factor, turns):
        self.side, self.factor, self.turns = side, factor, turns

    def warm_up(self, size, timeout):
        return 1.0

    def measure(self, size, warmup, repeats, timeout):
        self.turns.append(self.side)
        seconds = self.factor * (100 + len(self.turns))
        return systems.Sample([seconds] * repeats, 0.5 * (warmup + repeats), {'chosen': 'at2'})


def compare(factor):
    from bench import against
    options = SimpleNamespace(cell_seconds=1e-9)
    comparison = against.Comparison('2x2', 50, options, lambda text: None, lambda text: None)
    comparison.geometry = Geometry('2x2')
    turns, cell = [], against.Cell('auto', 1024, 1e-3)
    for _ in 'AB':
        comparison._cell({'A': DriftingSystem('A', 1, turns),
                          'B': DriftingSystem('B', factor, turns)}, cell)
    return cell.as_object(), ''.join(turns)


@pytest.mark.parametrize('factor', [0.5, 1, 2])
def test_drift_cancels_between_two_builds(factor):
    cell, turns = compare(factor)
    assert turns == 2 * ('AB' + 'ABBA')  # a trial of each, then pairs
    assert cell['ratio'] == pytest.approx(factor, rel=1e-9)
    assert cell['ratio_quartiles'][1] == pytest.approx(factor, rel=0.02)
    assert cell['pairs'] == 4 == len(cell['ratios'])
    assert cell['processor_ratio'] == 1 and cell['processor_seconds'] == {'A': 0.5, 'B': 0.5}


# A library for one rank, which on request damages the middle byte of received data.
ONE_RANK = r"""
#include <stdlib.h>
#include <string.h>
#include "collective.h"
static size_t damaged;
static unsigned char *last;
void library_start(int *argc, char ***argv, int *rank, int *ranks)
{ (void)argc; (void)argv; *rank = 0; *ranks = 1; }
void library_abort(void) { exit(3); }
void library_end(void) { exit(0); }
void library_prepare(const char *variable, int value) { (void)variable; (void)value; }
void library_finish(void) {}
void *library_new(size_t bytes, bool registered) { (void)registered; return last = calloc(1, bytes); }
void library_free(void *area, size_t bytes, bool registered)
{ (void)bytes; (void)registered; free(area); }
void library_barrier(void) {}
static void arrive(void *to, const void *from, size_t bytes)
{
    memmove(to, from, bytes);
    if (getenv("DAMAGE") && ++damaged == 3) ((unsigned char *)to)[bytes / 2] ^= 64;
}
void library_alltoall(const void *s, void *r, size_t block) { arrive(r, s, block); }
void library_allgather(const void *s, void *r, size_t block) { arrive(r, s, block); }
void library_broadcast(void *buffer, size_t bytes) { arrive(buffer, buffer, bytes); }
void library_allreduce(const double *s, double *r, size_t count) { arrive(r, s, count * sizeof *s); }
void library_largest(double *values, size_t count) { (void)values; (void)count; }
void library_sum(uint64_t *value) { (void)value; }
"""


def test_damaged_data_are_counted(tmp_path):
    (tmp_path / 'one.c').write_text(ONE_RANK)
    subprocess.run(['cc', '-D_GNU_SOURCE', f'-I{programs.HERE}', programs.HERE / 'collective.c',
                    tmp_path / 'one.c', '-o', tmp_path / 'one'], check=True)
    for operation in groups.SIZES:
        for damage in {}, {'DAMAGE': '1'}:
            said = subprocess.run([tmp_path / 'one', operation, '0' if operation == 'barrier' else '800', '4'],
                                  env={**os.environ, **damage}, capture_output=True, text=True, check=True)
            said = json.loads(said.stdout)
            assert len(said['seconds']) == 4
            assert said['wrong_blocks'] == (1 if damage and operation != 'barrier' else 0), operation
    wrong = subprocess.run([tmp_path / 'one', 'scatter', '8'], capture_output=True, text=True)
    assert wrong.returncode == 3 and 'unknown operation' in wrong.stderr


def test_sizes_of_calls():
    options = SimpleNamespace(groups_sizes=None)
    assert groups.sizes_of('barrier', 50, options) == [0] and groups.sizes_of('barrier', None, options) == []
    assert groups.sizes_of('alltoall', None, options) == [1 << 20]
    options.groups_sizes = [1, 8, 1000]
    assert groups.sizes_of('allreduce', 50, options) == [8, 1000]  # whole elements
    assert groups.sizes_of('alltoall', 50, options) == [1, 8, 1000]


class FakeCaller:
    """A library's algorithm that always takes the same time."""

    def __init__(self, family, algorithm, seconds, fails=False):
        self.family, self.algorithm, self.memory = family, algorithm, ''
        self.name = f'{family} {algorithm}'
        self.connections, self.seconds, self.fails = self, seconds, fails
        self.made = 0

    def offers(self, operation):
        return True

    def calls(self, operation, size, warmup, repeats, timeout, pause=0.0):
        if self.fails:
            raise systems.Failed('it hangs')
        self.made += warmup + repeats
        return [self.seconds] * repeats

    def periods(self, operation, size, repeats, timeout):
        return [self.seconds / 2] * repeats


def test_a_call_by_all_systems():
    """The default and the fastest algorithm of each library are measured. Failures are named, and a system is skipped
    after two failures. Slow algorithms are not tried at larger sizes."""
    options = SimpleNamespace(groups_longest=1, groups_rounds=3, groups_cell_seconds=0.4, repeats=6)
    torus = groups.GroupRun('2x2', 50.0, options, failed := [], lambda text: None)
    sent = iter(range(0, 1 << 60, 1 << 30))
    torus.net = SimpleNamespace(geometry=Geometry('2x2'), sent_bytes=lambda: next(sent))
    members = [FakeCaller('torusd', 'default', 0.01), FakeCaller('MPICH', 'default', 0.02),
               FakeCaller('MPICH', 'ring', 0.01), FakeCaller('MPICH', 'brucks', 0.03),
               FakeCaller('Open MPI', 'default', 0.01, fails=True), FakeCaller('Open MPI', 'ring', 1)]
    for size in 1024, 16384, 16384, 1 << 30:
        torus._call(members, 'alltoall', size)
    small, large, larger = torus.result['calls']  # the bound of the last is too long
    assert [(s['family'], s['algorithm'], s['median'], s['period']) for s in small['systems']] == [
        ('torusd', 'default', 0.01, 0.005), ('Open MPI', 'default', None, None),
        ('MPICH', 'default', 0.02, 0.01), ('MPICH', 'ring', 0.01, 0.005), ('Open MPI', 'ring', 1, 0.5)]
    assert len(small['systems'][0]['seconds']) == 6
    # A trial has none; eight calls of Open MPI's ring take more than two seconds.
    assert [(s['family'], s['algorithm'], s['period']) for s in large['systems'] if s['period']] == [
        ('torusd', 'default', 0.005), ('MPICH', 'default', 0.01), ('MPICH', 'ring', 0.005)]
    assert [(s['family'], s['algorithm']) for s in larger['systems']] == [
        ('torusd', 'default'), ('MPICH', 'ring'), ('Open MPI', 'ring')]
    assert len(failed) == 2 and 'alltoall of 1 KiB by Open MPI default failed: it hangs' in failed[0]
