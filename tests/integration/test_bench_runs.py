"""scripts/bench: its options, and small runs of it."""

import json
import os
import shutil
from pathlib import Path

import pytest
from bench.tables.model import MODEL
from torus_net import CHECKOUT
from torus_net.patience import run

pytestmark = [pytest.mark.plain, pytest.mark.full]

BIN = os.environ.get('TORUS_BIN', CHECKOUT / 'build')


def bench(*options):
    return run([CHECKOUT / 'scripts' / 'bench', '--bin', BIN, '--no-install', *options], 120)


@pytest.mark.parametrize('wrong', [
    ['--torus', '4x4'], ['--torus', '4x4@5000'], ['--sizes', 'x'], ['--frobnicate'], ['--groups', '4x'],
    ['--groups', '--operations', 'scatter'], ['--into', 'missing'], ['--against', BIN, '--growth'],
    ['--against'], ['--json'], ['--uneven', 'square'], ['--files', '--files-in', 'missing']], ids=lambda words: ' '.join(map(str, words[:2])))
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
    """The failure is listed, and fails the bench."""
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
    results = tmp_path / 'pages'
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
    assert '2x2 at 50 Mbit/s' in (results / '2x2-at-50-mbit.md').read_text()


@pytest.mark.mininet
def test_schedules(tmp_path):
    done = bench('--schedules', '--quick', '--no-tori', '--no-plots', '--out', tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads((tmp_path / 'results.json').read_text())['schedules']
    (cell,), (gather,) = said['cells'], said['gathers']
    assert cell['load'] == 1 and cell['bound'] == pytest.approx(1024 * 8 / 50e6)
    assert set(cell['seconds']) == {'stream', 'traeff', 'halfring', 'flow 1', 'flow 4', 'steps 1',
                                    'steps 4'}
    assert set(gather['seconds']) == {'disjoint', 'balanced', 'saadschultz', 'swing'}
    assert all(seconds > 0 for seconds in (*cell['seconds'].values(), *gather['seconds'].values()))
    assert "A solver's schedules on 2x2 at 50 Mbit/s" in done.stdout
    assert 'Allgathers by rivals on 2x2 at 50 Mbit/s' in done.stdout


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
def test_uneven(tmp_path):
    done = bench('--uneven', 'direction', '--quick', '--no-tori', '--no-plots', '--out', tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    uneven = json.loads((tmp_path / 'results.json').read_text())['uneven']
    network, = uneven['networks']
    assert network['uniform'] == 8 and network['least'] == pytest.approx(8 * 1.081, abs=0.01)
    assert network['shortest'] == pytest.approx(20) and network['cut'] == pytest.approx(3.4)
    assert set(network['systems']) == {'torusd'}
    for cell in (network['systems']['torusd'], network['observed'], network['copy'], network['broadcast']):
        assert len(cell['seconds']) == 1 and cell['median'] > 0
    slowed, = uneven['slowed']
    assert slowed['rounds'] > 3
    turn, = slowed['turns']
    assert 0 < turn['left'] < 1 and turn['seconds'] > turn['after'] and turn['optimum'] > 0
    assert 'Exchanges: times as multiples of the bound for equal links' in done.stdout


@pytest.mark.mininet
def test_groups(tmp_path):
    page = tmp_path / 'programs.md'
    page.write_text('# Programs\n\nold\n\n## Notes\n\nkept\n')
    done = bench('--groups', '--quick', '--no-tori', '--no-plots', '--sizes', '1,64KiB', '--repeats', '3',
                 '--cell-seconds', '0.1', '--goodput-seconds', '0.2', '--out', tmp_path, '--into', tmp_path)
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
    assert '**Goals**' in page.read_text() and page.read_text().endswith('\n## Notes\n\nkept\n')
    assert '2x2 at 50 Mbit/s: back to back, milliseconds' in done.stdout


@pytest.mark.mininet
def test_preloads(tmp_path):
    for library in 'mpich', 'openmpi':
        if not (Path(BIN) / 'client' / f'libtorus-{library}.so').exists() or not all(
                shutil.which(f'{program}.{library}') for program in ('mpicc', 'mpiexec')):
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
    """The failure is listed, and fails the bench; the other systems are measured."""
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
    assert MODEL in done.stdout and '2x2 at 50 Mbit/s, links like cables' in done.stdout


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


@pytest.mark.mininet
def test_copy(tmp_path):
    done = bench('--copy', '--quick', '--no-tori', '--no-plots', '--copy-with', 'torusctl,one after another,tar',
                 '--sizes', '256KiB', '--copy-files', '120', '--goodput-seconds', '0.2', '--files-in', tmp_path, '--out',
                 tmp_path / 'out')
    assert done.returncode == 0, done.stdout + done.stderr
    torus, = json.loads((tmp_path / 'out' / 'results.json').read_text())['copy']['tori']
    assert {(row['kind'], row['change'], row['cold']) for row in torus['rows']} >= {
        ('file', 'first copy', False), ('environment', 'after 1 % has changed', False), ('cache', 'first copy', False)}
    for row in torus['rows']:
        assert 'torusctl copy' in [way['name'] for way in row['ways']] and row['bound'] > 0
        for way in row['ways']:
            assert 'failed' not in way and way['median_seconds'] > 0 and way['median_processor'] > 0, way
    assert '3 at 50 Mbit/s: time divided by that of torusctl copy' in done.stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ['out']  # nothing is left
