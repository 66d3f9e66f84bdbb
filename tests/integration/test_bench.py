"""scripts/bench: its arithmetic, its tables, and a small run of it."""

import copy
import json
import os
import subprocess
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench import arithmetic, systems, tables
from torus_net import CHECKOUT, Geometry

BIN = os.environ.get('TORUS_BIN', CHECKOUT / 'build')
TORI = ['2x2', '4x4', '4x8', '5x7', '6x6', '8x8', '3x4x5', '1x6', '4x4m', '3mx5']


def bench(*options):
    return subprocess.run([CHECKOUT / 'scripts' / 'bench', '--bin', BIN, '--no-install', *options],
                          capture_output=True, text=True, check=False, timeout=120)


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


def test_shares_of_time():
    assert arithmetic.share_out(15, 3, 0.001, 4) == (3, 5)
    assert arithmetic.share_out(15, 3, 0.001, 4, fill=0.6) == (3, 100)
    assert arithmetic.share_out(15, 3, 1, 4) == (3, 1)
    assert arithmetic.share_out(15, 3, 2, 4) == (2, 1)
    assert arithmetic.share_out(15, 3, 60, 4) == (1, 1)
    assert arithmetic.share_out(15, 3, 0, 4) == (3, 5)
    assert arithmetic.estimate_next(0.001, 1, 4, 0) == 0.001
    assert arithmetic.estimate_next(2, 1024, 4096, 100) == 8


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


# --- the program ---

def test_wrong_usage(tmp_path):
    for wrong in ['--torus', '4x4'], ['--torus', '4x4@5000'], ['--sizes', 'x'], ['--frobnicate']:
        done = bench('--out', tmp_path, *wrong)
        assert done.returncode == 2, wrong
        assert 'usage' in done.stderr
    done = bench('--files', '--files-in', tmp_path / 'missing', '--out', tmp_path)
    assert done.returncode == 2 and 'missing is not a folder' in done.stderr
    assert '--spinning' in bench('--help').stdout
    for wrong in ['--against', BIN, '--growth'], ['--against'], ['--json']:
        done = bench('--out', tmp_path, *wrong)
        assert done.returncode == 2 and 'usage' in done.stderr, wrong


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
    assert 20 < torus['goodput_mbit'] < 50
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
