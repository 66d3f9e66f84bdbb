"""scripts/bench: its arithmetic, its tables, and a small run of it."""

import copy
import json
import os
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench import arithmetic, foreign, goals, groups, programs, systems, tables, warm
from torus_net import CHECKOUT, Geometry
from torus_net.patience import run

BIN = os.environ.get('TORUS_BIN', CHECKOUT / 'build')
TORI = ['2x2', '4x4', '4x8', '5x7', '6x6', '8x8', '3x4x5', '1x6', '4x4m', '3mx5']


def bench(*options):
    return run([CHECKOUT / 'scripts' / 'bench', '--bin', BIN, '--no-install', *options], 120)


# --- arithmetic ---

@pytest.mark.parametrize('text,size', [('1', 1), ('64B', 64), ('1KiB', 1024), ('2 MiB', 2 << 20),
                                       ('16K', 16384), ('1KB', 1000)])
def test_sizes(text, size):
    assert arithmetic.parse_size(text) == size
    assert arithmetic.parse_size(arithmetic.format_size(size)) == size


@pytest.mark.parametrize('text', ['', 'KiB', '1.5K', '-1', '1 TiB', '1 KiB x'])
def test_no_sizes(text):
    with pytest.raises(ValueError):
        arithmetic.parse_size(text)


def test_digits():
    for value, text in ((0, '0'), (12345.6, '12346'), (123.4, '123'), (12.34, '12.3'),
                        (1.234, '1.23'), (0.1234, '0.123'), (0.0012, '0.0012')):
        assert arithmetic.digits(value) == text
    assert arithmetic.milliseconds(0.0213) == '21.3'


@pytest.mark.parametrize('dims,blocks', [('4x4', 8), ('4x8', 32), ('5x7', 30), ('8x8', 64),
                                         ('2x2', 1), ('1x6', Fraction(9, 2)), ('4x4m', 16)])
def test_bound(dims, blocks):
    geometry = Geometry(dims)
    assert arithmetic.bound_blocks(geometry) == blocks
    # 8 blocks of 256 KiB at 50 Mbit/s, as in the README
    assert arithmetic.bound_seconds(geometry, 1 << 18, 50) == pytest.approx(
        0.33554432 * float(blocks) / 8)


@pytest.mark.parametrize('dims', TORI)
def test_routes_are_shortest_paths(dims):
    """And their load adds up; where all sizes are even, no channel has more than the bound."""
    geometry = Geometry(dims)
    loads = arithmetic.routed_loads(geometry)
    assert sum(loads.values()) == arithmetic.total_hops(geometry)
    assert max(loads.values()) >= arithmetic.bound_blocks(geometry)
    if all(geometry.wraps) and dims in ('4x4', '4x8', '8x8', '5x7'):
        assert max(loads.values()) == arithmetic.bound_blocks(geometry)


def test_bounds_of_operations():
    """On 4x4, as counted by hand; a reduction's, as torusctl knows it, on all tori."""
    bounds = {operation: arithmetic.bound_of(Geometry('4x4'), operation) for operation in groups.SIZES}
    assert bounds == {'alltoall': 8, 'allgather': Fraction(15, 4), 'broadcast': Fraction(1, 4),
                      'allreduce': Fraction(15, 32), 'barrier': 0}
    assert arithmetic.bound_of(Geometry('4x4m'), 'allgather') == 5  # the first node has three links
    assert arithmetic.bound_seconds(Geometry('4x4'), 1 << 20, 50, 'allreduce') == pytest.approx(
        2 * 15 / 16 / 4 * 8 * 2 ** 20 / 50e6)
    for dims in TORI:
        said = subprocess.run([Path(BIN) / 'torusctl', 'bounds', '--dims', dims, '--json'],
                              capture_output=True, text=True, check=True)
        assert float(arithmetic.bound_of(Geometry(dims), 'allreduce')) == pytest.approx(
            json.loads(said.stdout)['reductions']['allreduce']), dims


@pytest.mark.parametrize('dims', TORI)
def test_bounds_are_no_less_than_the_average_channel(dims):
    geometry = Geometry(dims)
    channels = 2 * len(geometry.links)
    for operation in groups.SIZES:
        least = arithmetic.least_bytes(geometry, operation, 1000)
        assert 1000 * arithmetic.bound_of(geometry, operation) * channels >= least, operation


def test_shares_of_time():
    assert arithmetic.share_out(15, 3, 0.001, 4) == (3, 5)
    assert arithmetic.share_out(15, 3, 0.001, 4, fill=0.6) == (3, 100)
    assert arithmetic.share_out(15, 3, 1, 4) == (3, 1)
    assert arithmetic.share_out(15, 3, 2, 4) == (2, 1)
    assert arithmetic.share_out(15, 3, 60, 4) == (1, 1)
    assert arithmetic.share_out(15, 3, 0, 4) == (3, 5)
    assert arithmetic.estimate_next(0.001, 1, 4, 0) == 0.001
    assert arithmetic.estimate_next(2, 1024, 4096, 100) == 8


@pytest.mark.parametrize('times,budget,calls', [
    ([9, 8, 7, 6, 5, 4, 3, 2, 1], 1000, 8), ([9, 3, 3, 3, 3], 1000, 4), ([5, 5, 5, 5], 1000, 3),
    ([9, 8, 7], 12, 2), ([9, 8], 3, 1)])
def test_warming_up(times, budget, calls):
    """Ends when it becomes no faster, twice, after 8 calls, or with the budget."""
    made = []
    warm.until_no_faster(lambda: made.append(times[len(made)]) or made[-1], budget)
    assert len(made) == calls


# --- tables ---

def cell(family, algorithm, size, median, **more):
    return {'family': family, 'algorithm': algorithm, 'variant': '', 'size': size, 'median': median,
            'seconds': [median], 'bound': size * 1e-6, 'busy': 0.5, 'cpu_seconds': 0.002, **more}


RESULTS = {
    'when': '2025-01-01', 'commit': 'abc', 'seconds': 60,
    'options': {'wait_ms': 1, 'congestion': 'cubic'},
    'machine': {name: '?' for name in ('processor', 'processors', 'memory_gib', 'kernel', 'system',
                                       'default_congestion_control', 'mpich', 'openmpi', 'iperf3',
                                       'mininet')},
    'tori': [{'dims': '4x4', 'mbit': 50.0, 'bound_blocks': 8.0, 'goodput_mbit': 64.0,
              'failures': ['Open MPI pairwise at 1 KiB failed: a | reason'],
              'cells': [cell('torusd', 'at2', 1024, 0.002, predicted=0.003),
                        cell('torusd', 'direct', 1024, 0.004),
                        cell('MPICH', 'default', 1024, 0.009), cell('MPICH', 'brucks', 1024, 0.006),
                        cell('Open MPI', 'default', 1024, 0.008),
                        {**cell('Open MPI', 'pairwise', 1024, None), 'failed': 'a | reason'}]}],
    'unlimited': None, 'growth': None}


def test_tables():
    torus = RESULTS['tori'][0]
    assert tables.best_mpi(torus, 1024)['algorithm'] == 'brucks'
    row = dict(zip(tables.summary(torus).heads, tables.summary(torus).rows[0]))
    assert row == {'block': '1 KiB', 'bound': '1.02', 'torusd best': '2.00 (1.95) at2',
                   'MPICH default': '9.00 (8.79)', 'MPICH best': '6.00 (5.86) brucks',
                   'Open MPI default': '8.00 (7.81)', 'Open MPI best': '8.00 (7.81) default',
                   'MPI / torusd': '3.00'}
    text = tables.as_text(RESULTS)
    assert 'What failed' in text
    assert tables.algorithms(torus, 'Open MPI').rows == [['default', '8.00'],
                                                         ['pairwise', 'failed']]
    assert tables.predictions(torus).rows == [['at2', '1.5']]


def test_markdown():
    text = tables.as_markdown(RESULTS, [{'file': 'times.png', 'caption': 'Times', 'heading': ''}])
    assert '![Times](times.png)' in text
    for _, several in tables.all_tables(RESULTS):
        for table in several:
            lines = [line for line in table.markdown() if line.startswith('|')]
            assert len({line.count('|') for line in lines}) == 1, lines


FIT = {
    'transit': [{'links': name, 'sizes': [64, 1400], 'wire_seconds': [79e-6, 613e-6],
                 'seconds': [1e-4, 7e-4], 'late_seconds': [2e-4, 9e-4]} for name in ('bucket', 'cable')],
    'capacity_dims': '4x4', 'rates': [20.0, 50.0], 'failures': ['4x4: too slow'],
    'capacity': [{'links': 'cable', 'mbit': 20.0, 'goodput': 19.0, 'busy': 0.5, 'load': 0.2}],
    'tori': [{'dims': '4x4', 'mbit': 20.0, 'cable': True, 'load': 0.1, 'load_after': 1.5,
              'remarks': ['pair: ts may be zero'],
              'fits': [{'algorithm': 'pair', 'startups': 4, 'critical_path': 32, 'hops': 4, 'points': 2,
                        'ts_seconds': -0.0003, 'ts_interval': [-0.0004, -0.0002], 'r2': 0.99,
                        'tw_seconds': 0.4e-6, 'tw_interval': [-0.1e-6, 0.8e-6],
                        'residual_median': 0.03, 'residual_worst': 0.07},
                       {'algorithm': 'all', 'points': 2, 'ts_seconds': 0.001, 'r2': 0.9,
                        'ts_interval': [0.0005, 0.0015], 'tw_seconds': 0.4e-6,
                        'tw_interval': [0.32e-6, 0.8e-6], 'residual_median': 0.1,
                        'residual_worst': 0.2}],
              'points': [{'algorithm': 'pair', 'block_bytes': size, 'seconds': 0.002,
                          'model_seconds': 0.0021, 'residual': -0.05} for size in (256, 1024)]}]}


def test_fit_tables():
    results = {**copy.deepcopy(RESULTS), 'fit': FIT}
    transit, capacity, fits, points = tables.fit_tables(FIT)
    assert transit.rows == [['64', '0.079', '0.100 (0.200)', '0.100 (0.200)'],
                            ['1400', '0.613', '0.700 (0.900)', '0.700 (0.900)']]
    assert capacity.rows == [['cable', '19.00 (50%; 0.2)', '-']]
    assert fits.rows[0] == ['pair', '4', '32', '4', '-0.300 (-0.400 to -0.200)',
                            '20.00 (10.00 to -)', '0.9900', '3.0%', '7.0%']
    assert fits.rows[1][:5] == ['all', '-', '-', '-', '1.00 (0.500 to 1.50)']
    assert points.rows == [['pair', '2.00 (-5.0%)', '2.00 (-5.0%)']]
    assert '- fit: 4x4: too slow' in tables.as_markdown(results)
    plot = {'file': 'model.png', 'caption': 'The model', 'heading': tables.MODEL}
    page = tables.as_markdown(results, [plot])
    assert page.index(f'## {tables.MODEL}') < page.index('![The model](model.png)')


def caller(family, median, period=None, algorithm='default', memory='', **more):
    return {'family': family, 'algorithm': algorithm, 'memory': memory, 'median': median,
            'seconds': [median], 'period': period, 'periods': [period], **more}


GROUPS = {'failures': ['4x4: Open MPI hung'], 'tori': [
    {'dims': '4x4', 'mbit': 50.0, 'goodput_mbit': 48.0, 'calls': [
        {'operation': 'alltoall', 'size': 1024, 'bound': 0.001, 'systems': [
            caller('torusd', 0.0005, 0.0008), caller('libtorus', 0.0006, 0.0012, memory='registered'),
            caller('MPICH', 0.003, 0.004), caller('MPICH', 0.002, 0.005, 'brucks'),
            caller('Open MPI', None, None, failed='hung')]},
        {'operation': 'alltoall', 'size': 65536, 'bound': 0.08, 'systems': [
            caller('torusd', 0.08, 0.09), caller('libtorus', 0.084, 0.0909, memory='registered'),
            caller('MPICH', 0.07)]},
        {'operation': 'allreduce', 'size': 1 << 20, 'bound': 0.1, 'systems': [
            caller('libtorus', 0.109, memory='registered'), caller('Open MPI', 0.2)]},
        {'operation': 'barrier', 'size': 0, 'bound': 0.0, 'systems': [
            caller('libtorus', 0.0004, 0.0002, memory='registered'), caller('MPICH', 0.0001, 0.0001)]}]},
    {'dims': '4x4', 'mbit': None, 'goodput_mbit': None, 'calls': [
        {'operation': 'alltoall', 'size': 1 << 20, 'bound': 0.0, 'systems': [
            caller('torusd', 0.1), caller('libtorus', 0.104, memory='registered'),
            caller('libtorus', 0.2, memory='ordinary')]}]}]}


def test_goals():
    limited, unlimited = GROUPS['tori']
    assert [(goal.operation, goal.size, goal.wanted, goal.reached, goal.met)
            for goal in goals.goals_of(limited)] == [
        ('alltoall', 1024, 'at most 0.750 ms', '0.600 ms', True),
        ('alltoall', 1024, 'at most 1.1', '1.20', False),  # of the bound, which is longer than 0.8 ms
        ('alltoall', 1024, 'at most 1', '0.300', True),    # of MPICH's brucks
        ('alltoall', 65536, 'at most 1.02', '1.05', False),
        ('alltoall', 65536, 'at most 1.02', '1.01', True),  # back to back
        ('alltoall', 65536, 'at most 1', '1.20', False),
        ('allreduce', 1 << 20, 'at most 1.1', '1.09', True),
        ('allreduce', 1 << 20, 'at most 1', '0.545', True),
        ('barrier', 0, 'at most 0.350 ms', '0.400 ms', False)]
    assert [(goal.wanted, goal.reached, goal.met) for goal in goals.goals_of(unlimited)] == [
        ('at least 0.95', '0.962', True), ('at least 0.75', '0.500', False)]
    nothing = {**limited, 'calls': [{**call, 'systems': []} for call in limited['calls']]}
    assert list(goals.goals_of(nothing)) == []


def test_groups_tables():
    judged, latency, period, unlimited = tables.groups_tables(GROUPS)
    assert len(judged.rows) == 11
    assert judged.rows[1][:3] == ['4x4 at 50 Mbit/s', 'alltoall', '1 KiB'] and judged.rows[1][-1] == '**no**'
    assert dict(zip(latency.heads, latency.rows[0])) == {
        'call': 'alltoall', 'size': '1 KiB', 'bound': '1.00', 'torusd': '0.500', 'libtorus': '0.600',
        'MPICH': '2.00 brucks', 'Open MPI': 'failed', 'libtorus / bound': '0.600',
        'libtorus / torusd': '1.20', 'MPI / libtorus': '3.33'}
    assert latency.rows[3] == ['barrier', '-', '-', '-', '0.400', '0.100', '-', '-', '-', '0.250']
    assert [row[:2] for row in period.rows] == [['alltoall', '1 KiB'], ['alltoall', '64 KiB'], ['barrier', '-']]
    assert period.rows[0][5] == '4.00'  # MPICH's default is faster back to back
    assert unlimited.title == '4x4 without a limit: latency, milliseconds'
    assert unlimited.rows[0][2:6] == ['-', '100', '104', '200']
    assert '- groups: 4x4: Open MPI hung' in tables.as_markdown({**RESULTS, 'groups': GROUPS})


def test_preloads_tables():
    def system(family, seconds, algorithm='default'):
        return {'family': family, 'algorithm': algorithm, 'memory': '', 'median': seconds, 'period': None}

    calls = [{'operation': 'alltoall', 'size': 4096, 'bound': 0.002, 'systems': [
        system('torusd', 0.003), system('MPICH', 0.012), system('MPICH', 0.009, 'brucks'),
        system('MPICH, preload', 0.003), system('Open MPI', None),
        {**system('Open MPI, preload', None), 'failed': 'it hung'}]}]
    said = {'tori': [{'dims': '4x4', 'mbit': 50.0, 'goodput_mbit': 47.5, 'calls': calls}], 'failures': []}
    table, = tables.preloads_tables(said)
    assert table.rows == [['alltoall', '4 KiB', '2.00', '3.00', '9.00 brucks', '3.00', '3.00', '-', 'failed', '-']]
    results = {**RESULTS, 'preloads': said, 'load_before': 7}
    page = tables.with_sections('# M\n', results, [{'heading': 'MPI programs', 'caption': 'a plot', 'file': 'x.png'}])
    assert '![a plot](x.png)' in page and 'a load of 7' in page


SAID = ('taken: MPI_Alltoall 12 calls, 4096 bytes, 0.003 s; MPI_Bcast 1 call, 8 bytes, 0.001 s; fallen back: '
        'MPI_Allreduce 3 calls, 0.1 s (an operator that torusd lacks); MPI_Bcast 5 calls, 0.000 s (one node)')


def test_foreign_tables():
    def side(seconds, **more):
        return {'seconds': seconds, 'whole': seconds and seconds + 1, 'results': ['-15.8 Ry'], 'said': '',
                'link_bytes': 2e6, 'torus_bytes': 1.5e6, 'failed': '', **more}

    row = {'torus': '2x2 at 50 Mbit/s', 'program': 'P', 'what': 'w', 'alike': True}
    said = {'failures': [], 'programs': [
        {**row, 'without': side(3.0), 'with': side(1.5, said=SAID)},
        {**row, 'alike': False, 'without': side(3.0), 'with': side(1.5)},
        {**row, 'without': side(3.0), 'with': side(None, failed='no', link_bytes=None)}]}
    times, calls = tables.foreign_tables(said)
    assert times.rows[0][2:] == ['3.00', '1.50', '2.00', '4.0', '2.5', '2.0', '2.0', '75%', '-15.8 Ry']
    assert [row[-1] for row in times.rows[1:]] == ['**differs**', 'failed']
    assert calls.rows == [['P', '2x2 at 50 Mbit/s', 'Alltoall 12, Bcast 1',
                           'Allreduce 3 (an operator that torusd lacks); Bcast 5 (one node)']]


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


def test_sections_are_replaced():
    """What was measured replaces its section; all else in the file stays."""
    page = '# Measurements\n\n## 4x4\n\none\n\n## Programs\n\nold\n\n## Further\n\ntwo\n'
    results = {**RESULTS, 'groups': GROUPS}
    once = tables.with_sections(page, results)
    assert once.startswith(page.partition('old')[0]) and once.endswith('\n\n## Further\n\ntwo\n')
    assert '\nold\n' not in once and '**Goals**' in once and '- groups: 4x4: Open MPI hung' in once
    assert tables.with_sections(once, results) == once
    without = page.replace('## Programs\n\nold\n\n', '')
    added = tables.with_sections(without, results)
    assert added.startswith(without + '\n## Programs\n') and added.count('## ') == 3


def test_links_like_cables_are_named_so():
    torus = {**RESULTS['tori'][0], 'cable': True}
    assert tables.name_of(torus) == '4x4 at 50 Mbit/s, links like cables'
    assert tables.summary(torus).title.startswith('4x4 at 50 Mbit/s, links like cables: ms'[:38])


def test_nothing_measured():
    empty = copy.deepcopy(RESULTS)
    empty['tori'][0]['cells'] = []
    assert 'What failed' in tables.as_text(empty)


def test_plots(tmp_path):
    pytest.importorskip('matplotlib')
    from bench import plots
    cables = {**RESULTS['tori'][0], 'cable': True}
    made = plots.draw({**RESULTS, 'tori': [*RESULTS['tori'], cables], 'fit': FIT}, tmp_path)
    assert [plot['file'] for plot in made] == ['times.png', 'model.png', 'times-4x4.png',
                                               'times-4x4-cables.png']
    for plot in made:
        assert (tmp_path / plot['file']).stat().st_size > 5000
    assert plots.draw({**RESULTS, 'tori': []}, tmp_path) == []


def test_overview(tmp_path):
    """The plot for the README, from the measurements in the repository."""
    pytest.importorskip('matplotlib')
    from bench import plots
    text = (CHECKOUT / 'tests' / 'bench' / 'RESULTS.md').read_text()
    title, columns = plots._first_table(text)
    assert title == '4x4 at 50 Mbit/s'
    assert (columns['block'][0], columns['block'][-1]) == ('1 B', '1 MiB')
    assert set(plots.OVERVIEW) <= set(columns)
    assert plots._leading_number('19.8 (0.90) a3') == 19.8
    assert plots.overview(text, tmp_path).stat().st_size > 5000
    with pytest.raises(ValueError, match='no summary table'):
        plots.overview('# Measurements\n', tmp_path)


# --- two builds in turn ---

class DriftingSystem:
    """A build on a machine that becomes slower all the time: each turn takes longer than the last."""

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


# --- programs that call collective operations ---

# A library for one rank, which damages the byte in the middle of what arrives if it is told to.
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
    """Of a library, its default and its fastest algorithm; what fails is named, and skipped after that
    has happened twice; what is slow is not tried at larger sizes."""
    options = SimpleNamespace(groups_longest=1, groups_cell_seconds=0.4, repeats=6)
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


# --- the program ---

@pytest.mark.parametrize('wrong', [
    ['--torus', '4x4'], ['--torus', '4x4@5000'], ['--sizes', 'x'], ['--frobnicate'], ['--groups', '4x'],
    ['--groups', '--operations', 'scatter'], ['--into', 'missing'], ['--against', BIN, '--growth'],
    ['--against'], ['--json'], ['--files', '--files-in', 'missing']], ids=lambda words: ' '.join(map(str, words[:2])))
def test_wrong_arguments(wrong, capsys):
    from bench.__main__ import parse_arguments
    with pytest.raises(SystemExit) as end:
        parse_arguments([str(word) for word in wrong])
    said = capsys.readouterr().err
    assert end.value.code == 2 and 'usage' in said and (wrong[-1] != 'missing' or 'missing is not' in said)


def test_wrong_usage(tmp_path):
    done = bench('--out', tmp_path, '--frobnicate')
    assert done.returncode == 2 and 'usage' in done.stderr
    assert '--spinning' in bench('--help').stdout


@pytest.mark.mininet
def test_a_build_against_itself(tmp_path):
    done = bench('--against', BIN, '--torus', '2x2@50', '--sizes', '1,1KiB', '--cell-seconds', '0.2',
                 '--algorithms', 'at2,auto', '--out', tmp_path / 'out', '--json')
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'this takes about 1 min' in done.stderr
    said = json.loads(done.stdout)
    assert said == json.loads((tmp_path / 'out' / 'against.json').read_text())
    assert said['A'] == said['B'] == str(Path(BIN).resolve()) and said['complete']
    torus, = said['tori']
    assert (torus['dims'], torus['mbit'], torus['failures']) == ('2x2', 50.0, [])
    assert [(c['algorithm'], c['size']) for c in torus['cells']] == [
        (algorithm, size) for algorithm in ('at2', 'auto') for size in (1, 1024)]
    for c in torus['cells']:
        assert c['ratio'] == pytest.approx(c['median']['B'] / c['median']['A'])
        low, middle, high = c['ratio_quartiles']
        assert 0 < low <= middle <= high and len(c['ratios']) == c['pairs'] >= 4
        assert c['processor_ratio'] > 0 and c['exchanges']['A'] == c['exchanges']['B']


@pytest.mark.mininet
def test_a_build_against_itself_without_a_limit(tmp_path):
    done = bench('--against', BIN, '--unlimited', '--sizes', '64KiB', '--cell-seconds', '0.2',
                 '--algorithms', 'stream', '--out', tmp_path / 'out')
    assert done.returncode == 0, done.stdout + done.stderr
    torus, = json.loads((tmp_path / 'out' / 'against.json').read_text())['tori']
    assert (torus['dims'], torus['mbit'], torus['failures']) == ('4x4', None, [])
    cell, = torus['cells']
    assert cell['bound'] == 0 and all(cell['machine_seconds'][side] > 0 for side in 'AB')
    payload = 240 * 65536 * 2  # a block crosses two links or 32/15 of them, on average
    worked = [payload * 16 / 15 / cell['machine_seconds'][side] / 1e9 for side in 'AB']
    words = done.stdout.split('stream', 1)[1].splitlines()[0].split()
    assert words[-3:-1] == [f'{x:.2f}' for x in worked], (words, worked)


@pytest.mark.mininet
def test_a_part_that_fails_as_a_whole(tmp_path):
    """Is listed among what failed, and fails the bench."""
    for name, text in (('torusd', '#!/bin/sh\nexit 3\n'), ('torusctl', '#!/bin/sh\n')):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    done = bench('--bin', tmp_path, '--unlimited', '--no-plots', '--out', tmp_path / 'out')
    assert done.returncode == 1, done.stdout + done.stderr
    assert 'unlimited: node ' in done.stdout and 'exited with status 3' in done.stdout


@pytest.mark.mininet
def test_a_build_against_a_folder_without_one(tmp_path):
    done = bench('--against', tmp_path, '--out', tmp_path / 'out')
    assert done.returncode == 2 and f'torusd is not in {tmp_path}' in done.stderr


@pytest.mark.mininet
def test_a_small_run(tmp_path):
    results = tmp_path / 'RESULTS.md'
    done = bench('--quick', '--no-plots', '--algorithms', 'at2,direct', '--out', tmp_path / 'out',
                 '--results', results)
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads((tmp_path / 'out' / 'results.json').read_text())
    assert said['complete']
    torus, = said['tori']
    assert torus['failures'] == []
    assert 0 < torus['goodput_mbit'] < 50
    assert {(c['algorithm'], c['size']) for c in torus['cells']} == {
        (algorithm, size) for algorithm in ('at2', 'direct') for size in (1, 1024, 65536)}
    for measured in torus['cells']:
        assert measured['median'] > 0 and measured['exchanges'] >= 1
        assert measured['bytes_over_shortest'] > 1
    assert '2x2 at 50 Mbit/s' in done.stdout
    assert '2x2 at 50 Mbit/s' in results.read_text()


@pytest.mark.mininet
def test_schedules(tmp_path):
    done = bench('--schedules', '--quick', '--no-tori', '--no-plots', '--out', tmp_path)
    assert done.returncode == 0, done.stderr
    cell, = json.loads((tmp_path / 'results.json').read_text())['schedules']['cells']
    assert cell['load'] == 1 and cell['bound'] == pytest.approx(1024 * 8 / 50e6)
    assert set(cell['seconds']) == {'stream', 'flow 1', 'flow 4', 'steps 1', 'steps 4'}
    assert all(seconds > 0 for seconds in cell['seconds'].values())
    assert "A solver's schedules on 2x2 at 50 Mbit/s" in done.stdout


@pytest.mark.mininet
def test_cuts(tmp_path):
    done = bench('--cuts', '--quick', '--no-tori', '--no-plots', '--out', tmp_path)
    assert done.returncode == 0, done.stderr
    cuts = json.loads((tmp_path / 'results.json').read_text())['cuts']
    assert [(c['without'], c['load'] >= c['least'] > 3) for c in cuts['damaged']] == [
        ('0:+0', True), ('0:+1', True)]
    assert all(c['seconds'] > 0 for c in cuts['damaged'])
    assert [c['fault'] for c in cuts['faults']] == [
        'one link', 'three links', 'a link that flaps', 'a node', 'a node, --on-failure shrink']
    assert all(one['good'] for c in cuts['faults'] + cuts['calls'] for one in c['rounds']), cuts
    assert [(c['operation'], c['size'], c['before'] > 0) for c in cuts['calls']] == [('alltoall', 65536, True)]
    assert 'Calls of programs while a cable is pulled' in done.stdout
    assert 'Links that go down' in done.stdout


@pytest.mark.mininet
def test_groups(tmp_path):
    page = tmp_path / 'RESULTS.md'
    page.write_text('# Measurements\n')
    done = bench('--groups', '--quick', '--no-tori', '--no-plots', '--sizes', '1,64KiB', '--repeats', '3',
                 '--cell-seconds', '0.1', '--goodput-seconds', '0.2', '--out', tmp_path, '--into', page)
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads((tmp_path / 'results.json').read_text())['groups']
    assert said['failures'] == []
    torus, = said['tori']
    assert [(c['operation'], c['size']) for c in torus['calls']] == [
        ('alltoall', 1), ('alltoall', 65536), ('allgather', 1), ('allgather', 65536),
        ('allreduce', 8), ('allreduce', 65536), ('broadcast', 1), ('broadcast', 65536), ('barrier', 0)]
    for call in torus['calls']:
        families = [s['family'] for s in call['systems']]
        own = call['operation'] not in ('allreduce', 'barrier')
        assert families == ['torusd'] * own + ['libtorus'], call
        for system in call['systems']:
            assert system['median'] > 0 and (system['period'] or 0) > 0 or call['size'] == 65536
            assert 'failed' not in system
    assert page.read_text().startswith('# Measurements\n\n## Programs\n\n')
    assert '2x2 at 50 Mbit/s: back to back, milliseconds' in done.stdout


@pytest.mark.mininet
def test_preloads(tmp_path):
    for library in 'mpich', 'openmpi':
        if not (Path(BIN) / 'client' / f'libtorus-{library}.so').exists() or not shutil.which(f'mpicc.{library}'):
            pytest.skip(f'there is no libtorus-{library}.so, or no {library}')
    done = bench('--preloads', '--quick', '--no-tori', '--no-plots', '--sizes', '64', '--operations', 'alltoall',
                 '--repeats', '2', '--cell-seconds', '0.1', '--goodput-seconds', '0.2', '--out', tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads((tmp_path / 'results.json').read_text())['preloads']
    call, = said['tori'][0]['calls']
    assert said['failures'] == [] and {system['family'] for system in call['systems']} == {
        'torusd', 'MPICH', 'MPICH, preload', 'Open MPI', 'Open MPI, preload'}
    assert all(system['median'] > 0 for system in call['systems'])


@pytest.mark.mininet
def test_groups_without_the_library(tmp_path):
    """Is listed among what failed, and fails the bench; the others are measured."""
    for name in 'torusd', 'torusctl':
        shutil.copy(Path(BIN) / name, tmp_path)
    done = bench('--bin', tmp_path, '--groups', '--quick', '--no-tori', '--no-plots', '--sizes', '1',
                 '--operations', 'alltoall', '--out', tmp_path / 'out')
    assert done.returncode == 1, done.stdout + done.stderr
    assert 'groups: 2x2 at 50 Mbit/s: libtorus cannot be measured: libtorus.so is not in' in done.stdout
    said = json.loads((tmp_path / 'out' / 'results.json').read_text())['groups']
    assert [s['family'] for s in said['tori'][0]['calls'][0]['systems']] == ['torusd']


@pytest.mark.mininet
def test_links_like_cables_and_the_model(tmp_path):
    done = bench('--quick', '--cables', '2x2@50', '--no-tori', '--fit', '--no-plots', '--algorithms',
                 'pair,dim', '--out', tmp_path / 'out')
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads((tmp_path / 'out' / 'results.json').read_text())
    torus, = said['tori']
    assert torus['cable'] is True and torus['failures'] == [] and len(torus['cells']) == 6
    # A cable passes nothing at once: no exchange is faster than the bound at the nominal rate.
    for cell in torus['cells']:
        assert min(cell['seconds']) >= 0.9 * 8e-6 * cell['size'] / 50, cell
    fit = said['fit']
    assert fit['failures'] == [] and [row['links'] for row in fit['transit']] == [
        'bucket', 'one packet', 'cable']
    assert all(seconds > 0 for row in fit['transit'] for seconds in row['seconds'])
    cable = fit['transit'][2]
    assert all(seconds > 0.9 * wire for seconds, wire in zip(cable['seconds'], cable['wire_seconds']))
    assert {row['links'] for row in fit['capacity']} == {'bucket', 'one packet', 'cable'}
    assert [model['cable'] for model in fit['tori']] == [True, False]
    for model in fit['tori']:
        assert [row['algorithm'] for row in model['fits']] == ['pair', 'dim', 'all']
    assert tables.MODEL in done.stdout and '2x2 at 50 Mbit/s, links like cables' in done.stdout


@pytest.mark.mininet
def test_files(tmp_path):
    done = bench('--files', '--quick', '--no-tori', '--no-plots', '--files-in', tmp_path, '--out',
                 tmp_path / 'out')
    assert done.returncode == 0, done.stdout + done.stderr
    files = json.loads((tmp_path / 'out' / 'results.json').read_text())['files']
    assert files['failures'] == [] and [f['folder'] for f in files['folders']] == [str(tmp_path)]
    cells = {(c['set'], c['size'], c['cached']): c for c in files['cells']}
    assert {key[:2] for key in cells} == {(name, size) for name in ('even', 'skewed')
                                          for size in (100, 16384)}
    for (name, size, _), c in cells.items():
        assert c['files'] == 12 and c['bytes'] == size * (12 if name == 'even' else 11 + 1024)
        assert c['chosen'] and 0 < c['files_seconds'] <= c['files_call'] and c['cp_seconds'] > 0
    assert f'Files on {files["folders"][0]["file_system"]}' in done.stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ['out']  # nothing is left
