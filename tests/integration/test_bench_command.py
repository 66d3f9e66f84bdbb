"""torusctl bench: algorithms measured against each other on a running torus."""

import csv
import io
import json
import signal
import statistics

import pytest
from support.background import Client
from support.waiting import wait_running


def bench(torus, *words):
    with Client(torus, 'bench', *words) as client:
        return client.end()


def test_json(shared):
    torus = shared('4x4', bw=1000)
    status, out, err = bench(torus, '--algorithms', 'at2,direct', '--sizes', '64,2KiB',
                             '--repeat', 3, '--json')
    value = json.loads(out)
    assert (status, err) == (0, '')
    assert value['dims'] == [4, 4] and value['repeat'] == 3 and value['complete'] is True
    pairs = [(x['block_bytes'], x['algorithm']) for x in value['results']]
    assert pairs == [(64, 'at2'), (64, 'direct'), (2048, 'at2'), (2048, 'direct')]
    for x in value['results']:
        assert len(x['seconds_each']) == 3 and x['mode'] in ('stepped', 'streaming')
        assert abs(x['seconds'] - statistics.median(x['seconds_each'])) < 1e-9
        same = [y for y in value['results'] if y['block_bytes'] == x['block_bytes']]
        assert x.get('best', False) == (x is min(same, key=lambda y: y['seconds']))
    assert value['results'][0]['id'] != value['results'][1]['id']


def test_what_auto_chooses(shared):
    torus = shared('4x4', bw=1000)
    status, out, err = bench(torus, '--algorithms', 'auto,direct', '--sizes', '1', '--json')
    auto, direct = json.loads(out)['results']
    assert (status, err) == (0, '')
    assert (auto['algorithm'], direct['algorithm']) == ('auto', 'direct')
    names = [row['algorithm'] for row in
             torus.json(0, 'algorithms', '--dims', '4x4')['algorithms']]
    assert auto['chosen'] in names and 'chosen' not in direct


def test_every_algorithm_in_a_table(shared):
    torus = shared('4x4', bw=1000)
    status, out, err = bench(torus, '--sizes', '1,500', '--repeat', 2)
    assert (status, err) == (0, '')
    table = out.split('\n\n')[1].splitlines()
    names = [row['algorithm'] for row in
             torus.json(0, 'algorithms', '--dims', '4x4')['algorithms']
             if row['accepts'] and row['operation'] == 'exchange']
    assert table[0].split() == ['block', *names, 'bound']
    assert [line.split()[:2] for line in table[1:]] == [['1', 'B'], ['500', 'B']]
    assert all(line.count('*') == 1 for line in table[1:])
    assert 'failed' not in out


def test_csv_and_one_that_fails(shared):
    torus = shared('3x2', bw=1000)
    status, out, err = bench(torus, '--algorithms', 'ar,direct', '--sizes', '10,20',
                             '--repeat', 2, '--csv')
    assert status == 1 and err == 'torusctl: 2 of 4 measurements failed\n'
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row['block_bytes'], row['algorithm']) for row in rows] == [
        ('10', 'ar'), ('10', 'direct'), ('20', 'ar'), ('20', 'direct')]
    for row in rows:
        assert (row['error'] == '') == (row['algorithm'] == 'direct') == (row['seconds'] != '')
    status, out, err = bench(torus, '--algorithms', 'ar,direct', '--sizes', '10', '--repeat', 2)
    assert status == 1 and 'failed' in out


def fitted(points):
    """ts and tw with the least squares of relative residuals, found in another way: by descent along one parameter,
    with the best value of the other one for it."""
    def tw_for(ts):
        shares = [(1 - ts * s / t, b / t) for s, b, t in points]
        return sum(x * y for x, y in shares) / sum(y * y for _, y in shares)

    def squares(ts):
        return sum((1 - (ts * s + tw_for(ts) * b) / t) ** 2 for s, b, t in points)

    low, high = -1.0, 1.0
    while high - low > 1e-12:
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if squares(a) < squares(b) else (a, high)
    return low, tw_for(low)


def test_fit(shared):
    torus = shared('4x4', bw=1000)
    status, out, err = bench(torus, '--fit', '--algorithms', 'pair,at2', '--sizes', '64,4KiB,64KiB',
                             '--repeat', 2, '--json')
    value = json.loads(out)
    assert (status, err) == (0, '') and value['complete'] is True
    assert [fit['algorithm'] for fit in value['fits']] == ['pair', 'at2', 'all']
    for result in value['results']:
        assert result['mode'] == 'stepped'
        # three turns of two, or of one where the machine is too slow for two in a turn
        assert 3 <= len(result['seconds_each']) <= 6
        assert result['seconds'] == pytest.approx(statistics.median(result['seconds_each']))
    for fit in value['fits'][:2]:
        plan = torus.json(0, 'plan', '--dims', '4x4', '--algorithm', fit['algorithm'])
        assert fit['startups'] == plan['startups'] == 4
        assert fit['critical_path'] == plan['critical_path']
        mine = [point for point in value['points'] if point['algorithm'] == fit['algorithm']]
        assert [point['block_bytes'] for point in mine] == [64, 4096, 65536] and fit['points'] == 3
        ts, tw = fitted([(fit['startups'], fit['critical_path'] * point['block_bytes'],
                          point['seconds']) for point in mine])
        assert fit['ts_seconds'] == pytest.approx(ts, rel=1e-3, abs=1e-8)
        assert fit['tw_seconds'] == pytest.approx(tw, rel=1e-3)
        assert fit['ts_interval'][0] <= fit['ts_seconds'] <= fit['ts_interval'][1]
        for point in mine:
            model = 4 * ts + fit['critical_path'] * point['block_bytes'] * tw
            assert point['model_seconds'] == pytest.approx(model, rel=1e-3)
            assert point['residual'] == pytest.approx(1 - model / point['seconds'], abs=1e-3)
        assert fit['residual_worst'] == pytest.approx(max(abs(p['residual']) for p in mine))
    assert any(text.startswith('at2: legs go over several links') for text in value['remarks'])
    assert not any(text.startswith('pair: legs') for text in value['remarks'])
    assert len(value['left_out']) >= 3


def test_fit_as_text(shared):
    """By default, the algorithms that send only to neighbours and do not take too long."""
    torus = shared('3x2', bw=1000)
    counts = torus.json(0, 'predict', '--dims', '3x2')['algorithms']
    bound = torus.json(0, 'plan', '--dims', '3x2', '--algorithm', 'dim')['bound']
    wanted = [row['algorithm'] for row in counts if row['runs_here']
              and row['hops'] == row['startups'] and row['critical_path'] <= 8 * bound]
    assert 'dim' in wanted and len(wanted) < len(counts)
    status, out, err = bench(torus, '--fit', '--sizes', '64,1KiB,4KiB', '--repeat', 1)
    assert (status, err) == (0, '')
    head, fits, points, rest = out.split('\n\n')
    names = [line.split()[0] for line in fits.splitlines()[1:]]
    assert sorted(names[:-1]) == sorted(wanted) and names[-1] == 'all'
    assert len(points.splitlines()) == 1 + 3 * (len(names) - 1)
    assert 'startups x ts' in head and 'the model leaves out' in rest


def test_fit_of_what_fails(shared):
    torus = shared('3x2', bw=1000)
    status, out, err = bench(torus, '--fit', '--algorithms', 'ar,dim', '--sizes', '64,1KiB,4KiB',
                             '--repeat', 1, '--json')
    value = json.loads(out)
    assert status == 1 and err == 'torusctl: 3 of 6 measurements failed\n'
    assert [fit['algorithm'] for fit in value['fits']] == ['dim']
    assert any(text.startswith('ar: failed: ') for text in value['remarks'])
    status, out, err = bench(torus, '--fit', '--algorithms', 'ar', '--sizes', '64,1KiB,4KiB')
    assert status == 1 and 'ar: failed: ' in err


def test_fit_wrongly_used(shared):
    torus = shared('3x2', bw=1000)
    for words, says in ((['--sizes', '64'], 'at least 3 different block sizes'),
                        (['--sizes', '64,4KiB,64'], 'at least 3 different block sizes'),
                        (['--mode', 'streaming'], 'streaming'), (['--csv'], '--csv'),
                        (['--algorithms', 'dim,auto'], 'auto')):
        status, _, err = bench(torus, '--fit', *words)
        assert status == 2 and says in err, (words, err)


def test_interrupted(loopback):
    torus = loopback('2x2')
    with Client(torus, 'bench', '--algorithms', 'at2,direct', '--sizes', '1,100MiB', '--repeat',
                20, '--json') as client:
        wait_running(torus, 0, tx_bytes=20_000_000)
        client.send_signal(signal.SIGINT)
        status, out, err = client.end()
    value = json.loads(out)
    assert status == 1 and value['complete'] is False and err
    assert [x['algorithm'] for x in value['results']][:2] == ['at2', 'direct']
    assert len(value['results']) < 4
    assert torus.exchange('at2', '1KiB')['verified'] == 'every byte'


def test_interrupted_fit(loopback):
    """Progress counts runs; each size and algorithm has three."""
    torus = loopback('2x2')
    with Client(torus, 'bench', '--fit', '--algorithms', 'at2', '--sizes', '1,2,100MiB', '--repeat',
                20) as client:
        wait_running(torus, 0, tx_bytes=20_000_000)
        client.send_signal(signal.SIGINT)
        status, _, err = client.end()
    assert status == 1 and ' of 9 runs' in err


def test_a_daemon_that_goes_away(loopback):
    torus = loopback('2x2')
    with Client(torus, 'bench', '--algorithms', 'at2,direct', '--sizes', '1,100MiB', '--repeat',
                20, '--json') as client:
        wait_running(torus, 0, tx_bytes=20_000_000)
        torus.node(0).kill()
        status, out, err = client.end()
    value = json.loads(out)
    assert status == 1 and value['complete'] is False and err
    assert value['results'][-1]['error']['code'] == 'lost'
    torus.node(0).restart()
    torus.wait_whole()


@pytest.mark.full
def test_wrong_usage(shared):
    torus = shared('3x2', bw=1000)
    for words in (['--algorithms', 'none'], ['--algorithms', 'yangwang'], ['--algorithms', 'at2,at2'],
                  ['--algorithms', ''], ['--sizes', '1,,2'], ['--sizes', '1Q'], ['--repeat', '0'],
                  ['--mode', 'x'], ['--csv', '--json'], ['--timeout', '0']):
        status, _, err = bench(torus, *words)
        assert status == 2, (words, err)
