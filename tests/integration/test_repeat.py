"""Several exchanges back to back in one session: torusctl exchange --repeat."""

import json
import signal
import statistics

import pytest
from support.background import Client
from support.errors import assert_blames
from support.expect import check_result
from support.waiting import wait_running

ALGORITHMS = {'4x4': ('at2', 'stream', 'a2', 'direct'), '3x2': ('at2', 'direct')}
CASES = [(dims, algorithm) for dims, names in ALGORITHMS.items() for algorithm in names]


def check_times(result, repeat):
    each = result['seconds_each']
    assert result['repeat'] == repeat == len(each)
    assert all(seconds > 0 for seconds in each)
    assert result['seconds'] == pytest.approx(statistics.median(each), rel=1e-9, abs=1e-9)
    assert result['seconds_min'] == min(each) and result['seconds_max'] == max(each)
    assert 0 <= result['seconds_spread'] <= max(each) - min(each) + 1e-12
    assert sum(each) / repeat <= result['sustained_seconds'] <= result['call_seconds'] / repeat


@pytest.mark.parametrize('dims,algorithm', CASES)
def test_five_exchanges(shared, dims, algorithm):
    torus = shared(dims, bw=1000)
    result = torus.json(0, 'exchange', '--algorithm', algorithm, '--block-size', 12000,
                        '--repeat', 5)
    check_times(result, 5)
    assert result['efficiency'] == pytest.approx(result['bound_seconds'] / result['seconds'])
    last = max(node['seconds'] for node in result['per_node'])
    assert last == pytest.approx(result['seconds_each'][-1])
    nodes = torus.geometry.nodes
    assert result['blocks_delivered'] == nodes * (nodes - 1)  # of one exchange
    assert result['bytes_delivered'] == nodes * (nodes - 1) * 12000
    assert result['verified'] == 'every byte'
    if result['mode'] == 'stepped':  # the counts of ports are also those of one exchange
        one = dict(result, seconds=last, bound_seconds=None, efficiency=None)
        check_result(one, dims, algorithm, block_bytes=12000)


@pytest.mark.full
def test_many_rounds(loopback):
    torus = loopback('4x4', memory='1MiB')
    for algorithm in 'at2', 'stream':
        result = torus.json(0, 'exchange', '--algorithm', algorithm, '--block-size', 100000,
                            '--repeat', 3)
        check_times(result, 3)
        assert result['rounds'] > 2
        assert result['bytes_delivered'] == 16 * 15 * 100000


def test_allgathers(shared):
    result = shared('4x4', bw=1000).json(3, 'allgather', '--block-size', 5000, '--repeat', 4)
    check_times(result, 4)
    assert result['operation'] == 'allgather'
    assert result['blocks_delivered'] == 16 * 15


def test_modes(shared):
    torus = shared('4x4', bw=1000)
    for mode in 'stepped', 'streaming':
        result = torus.json(0, 'exchange', '--algorithm', 'at2', '--block-size', 3000, '--mode', mode)
        assert result['mode'] == mode
        assert 'seconds_each' not in result
        assert result['bytes_delivered'] == 16 * 15 * 3000
    assert torus.json(0, 'exchange', '--algorithm', 'stream', '--block-size', 3000)['mode'] == 'streaming'
    for words in (['--algorithm', 'a2', '--mode', 'streaming'], ['--mode', 'dreaming'],
                  ['--repeat', '0'], ['--repeat', '1000001'], ['--repeat', 'x']):
        with Client(torus, 'exchange', '--block-size', 10, *words) as client:
            status, out, err = client.end()
            assert status == 2 and out == '', (words, err)
    with Client(torus, 'exchange', '--from', '/a', '--to', '/b', '--repeat', 2) as client:
        status, _, err = client.end()
        assert status == 2 and '--repeat' in err


def test_the_text(shared):
    torus = shared('4x4', bw=1000)
    with Client(torus, 'exchange', '--block-size', '1KiB', '--repeat', 3) as client:
        status, out, err = client.end()
    assert (status, err) == (0, '')
    lines = dict(line.split('  ', 1) for line in out.splitlines())
    assert lines['repetitions'].strip() == '3'
    for label in 'median time', 'shortest', 'longest', 'interquartile range', 'sustained, each':
        assert lines[label].split()[1] in ('us', 'ms', 's')


@pytest.mark.full
@pytest.mark.parametrize('signum', [signal.SIGINT, signal.SIGKILL])
def test_a_client_that_leaves_in_mid_session(loopback, signum):
    torus = loopback('4x4')
    with Client(torus, 'exchange', '--block-size', '2KiB', '--repeat', 1000000, '--json') as client:
        wait_running(torus, 0, tx_bytes=2_000_000)
        client.send_signal(signum)
        status, out, err = client.end()
    if signum == signal.SIGINT:
        assert status == 1 and ' of 1000000' in err
        assert json.loads(out)['error']['code'] == 'cancelled'
    result = torus.json(5, 'exchange', '--block-size', 3000, '--repeat', 2)
    check_times(result, 2)


def test_a_node_dies_in_mid_session(loopback):
    torus = loopback('3x3')
    with Client(torus, '--json', 'exchange', '--block-size', '2KiB', '--repeat', 1000000) as client:
        wait_running(torus, 0, tx_bytes=2_000_000)
        torus.node(4).kill()
        ended = client.end()
    assert_blames(ended, 4)
    assert ' of 1000000' in ended[2]
    torus.wait_broken(ranks=[1])
    torus.node(4).restart()
    torus.wait_whole()
    check_times(torus.json(0, 'exchange', '--block-size', 3000, '--repeat', 2), 2)
