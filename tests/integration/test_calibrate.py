"""Predictions: `auto` for all operations, `exchange --explain`, and `torusctl calibrate` and its effects."""

import os
import pty
import subprocess

import pytest
from support.errors import assert_refused
from support.terminal import read_all
from support.waiting import wait_for, wait_logged
from torus_net import CommandFailed

pytestmark = pytest.mark.full

CANDIDATE = {'algorithm': str, 'mode': str, 'segments': int, 'piece_bytes': int, 'seconds': float}


def costs(torus, rank=0):
    return torus.json(rank, 'status')['calibration']


def check_candidates(found):
    assert found
    for one in found:
        for key, kind in CANDIDATE.items():
            assert type(one[key]) is kind, (key, one)
    seconds = [one['seconds'] for one in found]
    assert seconds == sorted(seconds) and seconds[0] >= 0


@pytest.mark.parametrize('dims', ['1x1', '3mx4m', *(
    # test_predict predicts for all shapes, and the swarm lets nodes choose on them
    pytest.param(dims, marks=[pytest.mark.slow, pytest.mark.full]) for dims in ('1x2', '2x2', '3x3', '2x3x2', '1x7'))])
@pytest.mark.parametrize('size', [0, 1, 100000])
def test_auto_runs_everywhere(shared, dims, size):
    torus = shared(dims)
    named = torus.json(0, 'exchange', '--algorithm', 'auto', '--block-size', size)
    left_out = torus.json(0, 'exchange', '--block-size', size)
    for result in (named, left_out):
        assert result['verified'] == 'every byte' and result['requested'] == 'auto'
        assert result['algorithm'] != 'auto'
    assert left_out['algorithm'] == torus.json(0, 'exchange', '--block-size', size, '--dry-run')[
        'candidates'][0]['algorithm']


def test_auto_for_other_operations_and_modes(shared):
    torus = shared('3x3')
    assert torus.json(1, 'allgather', '--block-size', 100)['requested'] == 'auto'
    assert torus.json(1, 'broadcast', '--root', 2, '--block-size', 100, '--algorithm',
                      'auto')['requested'] == 'auto'
    for mode in 'stepped', 'streaming':
        for size in 1, 1 << 20:
            result = torus.json(0, 'exchange', '--block-size', size, '--mode', mode, '--explain')
            assert result['mode'] == mode
            assert {one['mode'] for one in result['candidates']} == {mode}
    named = torus.json(0, 'exchange', '--block-size', 1, '--algorithm', 'at2')
    assert (named['requested'], named['algorithm']) == ('at2', 'at2')


def test_explain(shared):
    torus = shared('3x3')
    before = len(torus.json(0, 'status')['exchanges'])
    dry = torus.json(0, 'exchange', '--block-size', '64KiB', '--dry-run')
    assert len(torus.json(0, 'status')['exchanges']) == before and 'id' not in dry
    check_candidates(dry['candidates'])
    assert {'stream', 'at2', 'tree', 'dim'} <= {one['algorithm'] for one in dry['candidates']}
    result = torus.json(0, 'exchange', '--block-size', '64KiB', '--explain')
    assert result['candidates'] == dry['candidates']
    assert result['predicted_seconds'] == dry['candidates'][0]['seconds']
    assert result['verified'] == 'every byte'
    text = torus.ctl(0, 'exchange', '--block-size', '64KiB', '--explain', check=True).stdout
    assert text.index('costs') < text.index('(auto)') and 'predicted' in text


def test_calibrate(loopback):
    torus = loopback('3x3')
    assert costs(torus)['source'] == 'default' and costs(torus)['measured_at'] is None
    done = torus.json(4, 'calibrate')
    now = done['costs']
    assert now['source'] == 'measured' and now['measured_at']
    assert now['step_seconds'] >= 0 and now['message_seconds'] >= 0
    assert now['bits_per_second'] > 0
    assert {one['algorithm'] for one in done['single_bytes']} >= {'tree', 'dim', 'stream'}
    assert len(done['links']) == 36 and all(link['min_rtt_us'] for link in done['links'])
    assert {(link['node'], link['port']) for link in done['links']} == \
        {(node, port) for node in range(9) for port in ('+0', '-0', '+1', '-1')}
    for rank in range(9):
        wait_for(lambda: costs(torus, rank) == now, 10, f'node {rank} knows of it')
    assert torus.json(0, 'calibrate', '--show')['costs'] == now
    assert torus.json(0, 'exchange', '--block-size', 1, '--dry-run')['costs'] == now

    # A restarted node knows the calibration from its own disk, or from its neighbours.
    torus.node(7).restart()
    torus.wait_whole(30)
    assert costs(torus, 7) == now
    kept = [torus.run.state(rank) / 'calibration' for rank in range(9)]
    assert all(path.is_file() for path in kept)
    kept = kept[7]
    kept.write_bytes(b'version 9\n')
    torus.node(7).restart()
    torus.wait_whole(30)
    wait_logged(torus.node(7).log, f'{kept} is damaged')
    wait_for(lambda: costs(torus, 7) == now, 10, 'its neighbours have told it')

    assert torus.json(8, 'calibrate', '--reset')['costs']['source'] == 'default'
    for rank in range(9):
        wait_for(lambda: costs(torus, rank)['source'] == 'default', 10, f'node {rank} forgets it')
    assert torus.ctl(0, 'calibrate', '--reset', '--show').returncode == 2


def test_nothing_to_calibrate(shared):
    with pytest.raises(CommandFailed, match='one node has no links'):
        shared('1x1').json(0, 'calibrate')


def test_calibration_of_a_broken_torus_changes_nothing(loopback):
    torus = loopback('2x2')
    torus.node(3).kill()
    torus.wait_broken()
    assert_refused(torus.ctl(0, '--json', 'calibrate'), 'link')
    assert costs(torus)['source'] == 'default'
    torus.node(3).restart()
    torus.wait_whole(30)


@pytest.mark.parametrize('term', ['xterm', 'dumb'])
def test_calibrate_on_a_terminal(shared, term):
    """It shows its progress; in whole lines if the output is not a terminal."""
    torus = shared('2x2')
    main, terminal = pty.openpty()
    process = subprocess.Popen([torus.torusctl, '--socket', torus.node(0).socket, 'calibrate'],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=terminal,
                               env={**os.environ, 'TERM': term})
    os.close(terminal)
    shown = read_all(main)
    assert process.wait() == 0
    if term == 'dumb':
        assert b'\033' not in shown and (shown == b'' or shown.endswith(b'\n'))
    else:
        assert b'blocks of ' in shown and shown.endswith(b'\r\033[J')
