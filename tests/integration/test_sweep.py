"""torusctl bench: algorithms measured against each other on a running torus."""

import csv
import io
import json
import signal
import statistics

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
    assert status == 1 and err == 'torusctl: 2 of 4 failed\n'
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row['block_bytes'], row['algorithm']) for row in rows] == [
        ('10', 'ar'), ('10', 'direct'), ('20', 'ar'), ('20', 'direct')]
    for row in rows:
        assert (row['error'] == '') == (row['algorithm'] == 'direct') == (row['seconds'] != '')
    assert 'ar takes a ring' in rows[0]['error']
    status, out, err = bench(torus, '--algorithms', 'ar,direct', '--sizes', '10', '--repeat', 2)
    assert status == 1 and 'failed' in out and 'ar takes a ring' in out


def test_interrupted(loopback):
    torus = loopback('2x2')
    with Client(torus, 'bench', '--algorithms', 'at2,direct', '--sizes', '1,100MiB', '--repeat',
                20, '--json') as client:
        wait_running(torus, 0, tx_bytes=20_000_000)
        client.send_signal(signal.SIGINT)
        status, out, err = client.end()
    value = json.loads(out)
    assert status == 1 and value['complete'] is False and 'ended early' in err
    assert [x['algorithm'] for x in value['results']][:2] == ['at2', 'direct']
    assert len(value['results']) < 4
    assert torus.exchange('at2', '1KiB')['verified'] == 'every byte'


def test_a_daemon_that_goes_away(loopback):
    torus = loopback('2x2')
    with Client(torus, 'bench', '--algorithms', 'at2,direct', '--sizes', '1,100MiB', '--repeat',
                20, '--json') as client:
        wait_running(torus, 0, tx_bytes=20_000_000)
        torus.node(0).kill()
        status, out, err = client.end()
    value = json.loads(out)
    assert status == 1 and value['complete'] is False and 'ended early' in err
    assert value['results'][-1]['error']['code'] == 'lost'
    torus.node(0).restart()
    torus.wait_whole()


def test_wrong_usage(shared):
    torus = shared('3x2', bw=1000)
    for words in (['--algorithms', 'none'], ['--algorithms', 'yangwang'], ['--algorithms', 'at2,at2'],
                  ['--algorithms', ''], ['--sizes', '1,,2'], ['--sizes', '1Q'], ['--repeat', '0'],
                  ['--mode', 'x'], ['--csv', '--json'], ['--timeout', '0']):
        status, _, err = bench(torus, *words)
        assert status == 2, (words, err)
