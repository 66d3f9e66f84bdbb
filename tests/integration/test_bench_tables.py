"""scripts/bench: its tables, its pages and its plots."""

import copy

import pytest
from bench import goals
from bench.tables.calls import foreign_tables, groups_tables, preloads_tables
from bench.tables.copies import copy_tables
from bench.tables.model import MODEL, fit_tables
from bench.tables.page import all_tables, as_pages, as_text, file_name, with_notes
from bench.tables.torus import algorithms, best_mpi, name_of, predictions, summary
from bench.tables.uneven import uneven_tables
from torus_net import CHECKOUT

pytestmark = pytest.mark.plain


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
    assert best_mpi(torus, 1024)['algorithm'] == 'brucks'
    row = dict(zip(summary(torus).heads, summary(torus).rows[0]))
    assert row == {'block': '1 KiB', 'bound': '1.02', 'torusd best': '2.00 (1.95) at2',
                   'MPICH default': '9.00 (8.79)', 'MPICH best': '6.00 (5.86) brucks',
                   'Open MPI default': '8.00 (7.81)', 'Open MPI best': '8.00 (7.81) default',
                   'MPI / torusd': '3.00'}
    text = as_text(RESULTS)
    assert 'What failed' in text
    assert algorithms(torus, 'Open MPI').rows == [['default', '8.00'],
                                                         ['pairwise', 'failed']]
    assert predictions(torus).rows == [['at2', '1.5']]


def test_pages():
    plot = {'file': 'times.png', 'caption': 'Times', 'heading': '4x4 at 50 Mbit/s'}
    (name, text), = as_pages(RESULTS, [plot, {**plot, 'heading': 'Growth', 'file': 'other.png'}])
    assert name == '4x4-at-50-mbit.md' and text.startswith('# 4x4 at 50 Mbit/s\n\n2025-01-01, on ? processors')
    assert '; torusd abc; 1 minutes.\nCongestion control of the connections of MPI and iperf3: cubic.\n' in text
    assert '![Times](times.png)' in text and 'other.png' not in text
    assert text.endswith('What failed:\n\n- Open MPI pairwise at 1 KiB failed: a | reason\n')
    assert file_name('8x8 at 2.5 Mbit/s, links like cables') == '8x8-at-2.5-mbit-links-like-cables.md'
    assert file_name(MODEL) == 'the-papers-model-against-the-links.md'
    for _, several in all_tables(RESULTS):
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
    transit, capacity, fits, points = fit_tables(FIT)
    assert transit.rows == [['64', '0.079', '0.100 (0.200)', '0.100 (0.200)'],
                            ['1400', '0.613', '0.700 (0.900)', '0.700 (0.900)']]
    assert capacity.rows == [['cable', '19.00 (50%; 0.2)', '-']]
    assert fits.rows[0] == ['pair', '4', '32', '4', '-0.300 (-0.400 to -0.200)',
                            '20.00 (10.00 to -)', '0.9900', '3.0%', '7.0%']
    assert fits.rows[1][:5] == ['all', '-', '-', '-', '1.00 (0.500 to 1.50)']
    assert points.rows == [['pair', '2.00 (-5.0%)', '2.00 (-5.0%)']]
    plot = {'file': 'model.png', 'caption': 'The model', 'heading': MODEL}
    page = dict(as_pages(results, [plot]))[file_name(MODEL)]
    assert page.startswith(f'# {MODEL}\n') and '![The model](model.png)' in page
    assert '\n- 4x4: too slow\n' in page


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
    judged, latency, period, unlimited = groups_tables(GROUPS)
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
    assert '- 4x4: Open MPI hung' in dict(as_pages({**RESULTS, 'groups': GROUPS}))['programs.md']


def test_preloads_tables():
    def system(family, seconds, algorithm='default'):
        return {'family': family, 'algorithm': algorithm, 'memory': '', 'median': seconds, 'period': None}

    calls = [{'operation': 'alltoall', 'size': 4096, 'bound': 0.002, 'systems': [
        system('torusd', 0.003), system('MPICH', 0.012), system('MPICH', 0.009, 'brucks'),
        system('MPICH, preload', 0.003), system('Open MPI', None),
        {**system('Open MPI, preload', None), 'failed': 'it hung'}]}]
    said = {'tori': [{'dims': '4x4', 'mbit': 50.0, 'goodput_mbit': 47.5, 'calls': calls}], 'failures': []}
    table, = preloads_tables(said)
    assert table.rows == [['alltoall', '4 KiB', '2.00', '3.00', '9.00 brucks', '3.00', '3.00', '-', 'failed', '-']]
    results = {**RESULTS, 'preloads': said, 'load_before': 7}
    plot = {'heading': 'MPI programs', 'caption': 'a plot', 'file': 'x.png'}
    page = dict(as_pages(results, [plot]))['mpi-programs.md']
    assert '![a plot](x.png)' in page and 'a load of 7' in page


SAID = ('served: MPI_Alltoall 12 calls, 4096 bytes, 0.003 s; MPI_Bcast 1 call, 8 bytes, 0.001 s; left to MPI: '
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
    times, calls = foreign_tables(said)
    assert times.rows[0][2:] == ['3.00', '1.50', '2.00', '4.0', '2.5', '2.0', '2.0', '75%', '-15.8 Ry']
    assert [row[-1] for row in times.rows[1:]] == ['**differs**', 'failed']
    assert calls.rows == [['P', '2x2 at 50 Mbit/s', 'Alltoall 12, Bcast 1',
                           'Allreduce 3 (an operator that torusd lacks); Bcast 5 (one node)']]


def test_notes_stay():
    """A new page replaces the old one; the notes written at the end of the old page stay."""
    new = dict(as_pages({**RESULTS, 'groups': GROUPS}))['programs.md']
    old = '# Programs\n\nold\n'
    notes = '\n## Notes\n\nA slow hour.\n\n| a | b |\n|---|---|\n'
    assert with_notes(new, old) == with_notes(new, '') == new
    once = with_notes(new, old + notes)
    assert once == new + notes and with_notes(new, once) == once


@pytest.mark.parametrize('option', ['--results', '--into'])
def test_pages_are_written(tmp_path, option):
    """--results writes new pages, --into keeps notes; both leave other files alone."""
    from bench.__main__ import parse_arguments, present
    results = copy.deepcopy({**RESULTS, 'groups': GROUPS})
    folder = tmp_path / 'pages'
    folder.mkdir()
    (folder / 'programs.md').write_text('# Programs\n\nold\n\n## Notes\n\nkept\n')
    (folder / 'growth.md').write_text('# Growth\n')
    options = parse_arguments(['--no-plots', '--out', str(tmp_path / 'out'), option, str(folder)])
    present(results, options, str)
    assert sorted(path.name for path in folder.iterdir()) == ['4x4-at-50-mbit.md', 'growth.md', 'programs.md']
    text = (folder / 'programs.md').read_text()
    assert '\nold\n' not in text and '**Goals**' in text
    assert text.endswith('\n## Notes\n\nkept\n') == (option == '--into')
    assert (folder / 'growth.md').read_text() == '# Growth\n'


def test_links_like_cables_are_named_so():
    torus = {**RESULTS['tori'][0], 'cable': True}
    assert name_of(torus) == '4x4 at 50 Mbit/s, links like cables'
    assert summary(torus).title.startswith('4x4 at 50 Mbit/s, links like cables: ms'[:38])


def test_nothing_measured():
    empty = copy.deepcopy(RESULTS)
    empty['tori'][0]['cells'] = []
    assert 'What failed' in as_text(empty)


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
    text = (CHECKOUT / 'tests' / 'bench' / 'results' / '4x4-at-50-mbit.md').read_text()
    title, columns = plots._first_table(text)
    assert title == '4x4 at 50 Mbit/s'
    assert columns['block'][0] == '1 B' and len(columns['block']) >= 4
    assert set(plots.OVERVIEW) <= set(columns)
    assert plots._leading_number('19.8 (0.90) a3') == 19.8
    assert plots.overview(text, tmp_path).stat().st_size > 5000
    with pytest.raises(ValueError, match='no summary table'):
        plots.overview('# Measurements\n', tmp_path)


def test_copy_tables():
    def way(name, seconds, **more):
        return {'name': name, 'loses': '', 'median_seconds': seconds, 'median_processor': seconds and 0.5, **more}

    row = {'kind': 'file', 'size': 1 << 20, 'entries': 1, 'change': 'first copy', 'cold': True, 'bound': 0.25}
    small = {**row, 'kind': 'environment', 'size': 2_000_000, 'entries': 300, 'cold': False}
    torus = {'dims': '4', 'mbit': 200.0, 'goodput_mbit': 190.0, 'multicast': False, 'rows': [
        {**row, 'ways': [way('torusctl copy', 0.5), way('scp', 2.0, loses='loses time')]},
        {**small, 'ways': [way('torusctl copy', 0.5), way('rsync', None, failed='why')]}]}
    times, compared, processors = copy_tables({'tori': [torus]})
    assert times.heads == ['what', 'bound', 'torusctl copy', 'scp', 'rsync']
    assert times.rows == [['a file of 1 MiB, first copy, cold', '0.250', '0.500 (2.00)', '2.00 (8.00)', '-'],
                          ['300 entries of an environment, 2 MB, first copy', '0.250', '0.500 (2.00)', '-', 'failed']]
    assert 'multicast' in times.note and 'scp loses time.' in times.note
    assert [line[1:] for line in compared.rows] == [['4.00', '-'], ['-', '-']]
    assert processors.rows[1][1:] == ['0.500', '-', '-']
    without, _, _ = copy_tables({'tori': [{**torus, 'mbit': None, 'rows': [{**torus['rows'][0], 'bound': None}]}]})
    assert without.heads[:2] == ['what', 'torusctl copy'] and without.rows[0][1] == '0.500'


def test_uneven_tables():
    head = {'name': 'ring', 'dims': '4', 'mbit': 20.0, 'slow': 'one link', 'part': 0.1, 'goodput_mbit': 19.0, 'load': 3.2}
    spread = {'size': 1 << 20, 'bound': 0.5, 'seconds': [0.6], 'median': 0.6}
    ring = {**head, 'block': 1 << 16, 'uniform': 2.0, 'least': 3.636, 'shortest': 20.0, 'uniform_seconds': 0.1,
            'bound': 0.1818, 'systems': {'torusd': {'median': 0.2}, 'MPICH scattered': {'median': 1.2}},
            'cut': 1.1, 'copy': spread, 'broadcast': spread, 'observed': {'median': 0.19, 'known_after': 4.4, 'mistaken': 1}}
    equal = {**head, 'slow': '', 'part': 1.0, **{key: ring[key] for key in ('block', 'uniform', 'uniform_seconds')},
             'least': 2.0, 'shortest': 2.0, 'bound': 0.1, 'systems': {'torusd': {'median': 0.1}}}
    turn = {'after': 4.0, 'left': 0.6, 'seconds': 12.0, 'optimum': 7.0, 'ratio': 1.143, 'planned': ['observed'], 'new_plans': 1}
    slowed = {**head, 'block': 1 << 20, 'least': 3.6, 'whole': 10.0, 'rounds': 60, 'turns': [turn, turn]}
    compared, goals, during = uneven_tables({'networks': [ring, equal, {**ring, 'systems': {}}], 'slowed': [slowed]})
    assert compared.rows == [['4 at 20, one link at 0.1', '1.818', '10.0', '2.000', '12.00 scattered', '-', '6.00', '-'],
                             ['4 at 20', '1.000', '1.00', '1.000', '-', '-', '-', '-']]
    assert goals.rows[0] == ['4 at 20, one link at 0.1', '19.00', '3', '64 KiB', '200', '1.100', '1.045', '4', '1',
                             '1 MiB', '1.200', '1 MiB', '1.200']
    assert goals.rows[1][5:] == ['1.000', *['-'] * 7]
    assert during.rows == [['4 at 20, one link at 0.1', '3', '1 MiB', '60', '10.0', '4.0', '12.0', '7.0', '1.143', '1, 1']]
