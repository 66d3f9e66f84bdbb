"""Requests that are refused, wait for their start, or take too long: the error is clear, and everything works
afterwards."""

import json
import re
import socket

import pytest
from support.background import Client, LongExchange, stopped
from support.errors import assert_refused
from support.expect import check_result, torusctl
from support.failures import still_works
from support.waiting import wait_for
from torus_net.patience import stretched


@pytest.mark.parametrize('args,code,named', [
    (['--algorithm', 'magic', '--block-size', '1'], 'usage', 'magic'),
    (['--algorithm', 'ar', '--block-size', '1'], 'refused', '4x4'),
    (['--block-size', '-1'], 'usage', '--block-size'),
    (['--block-size', '10parsecs'], 'usage', '--block-size'),
    (['--block-size', '99999999999GiB'], 'usage', '--block-size'),
    (['--block-size', '1', '--timeout', 'soon'], 'usage', '--timeout'),
    (['--block-size', '1', '--from', 'a', '--to', 'b'], 'usage', '--block-size'),
    (['--from', 'a'], 'usage', '--to'),
    (['--to', 'a'], 'usage', '--from'),
    (['--missing-ok', '--block-size', '1'], 'usage', '--missing-ok'),
    (['--block-size', '1', '--on-failure', 'explode'], 'usage', '--on-failure'),
    (['--on-failure', 'explode'], 'usage', '--on-failure'),
    (['--block-size', '1', '--on-failure', 'shrink', '--algorithm', 'at2'], 'usage', '--algorithm'),
    (['--block-size', '1', '--on-failure', 'shrink', '--schedule', 'x'], 'usage', '--schedule'),
    (['--from', 'a-%q', '--to', 'b-%q'], 'usage', '%'),
    (['--nonsense'], 'usage', '--nonsense'),
    (['surplus', '--block-size', '1'], 'usage', 'surplus'),
    ([], 'usage', '--block-size'),
])
def test_wrong_requests(torus, args, code, named):
    result = torus.ctl(0, '--json', 'exchange', *args)
    assert_refused(result, code, 2 if code == 'usage' else 1)
    assert named in result.stderr and result.stderr.startswith('torusctl: ')
    still_works(torus)


def test_an_unknown_algorithm_names_the_known_ones(torus):
    result = torus.ctl(0, 'exchange', '--algorithm', 'at3', '--block-size', 1)
    assert (result.returncode, result.stdout) == (2, '')
    assert all(name in result.stderr for name in ('ar', 'at2', 'direct'))


@pytest.mark.parametrize('dims,algorithm', [('2x3x2', 'at2'), ('4x4', 'ar'), ('2x2', 'ar'), ('3mx4', 'at2')])
def test_sizes_that_an_algorithm_does_not_take(shared, dims, algorithm):
    torus = shared(dims)
    result = torus.ctl(1, '--json', 'exchange', '--algorithm', algorithm, '--block-size', 1)
    assert_refused(result, 'refused')
    assert algorithm in result.stderr and dims in result.stderr
    torus.exchange('direct', 1000, rank=1)
    planned = torusctl('--json', 'plan', '--dims', dims, '--algorithm', algorithm)
    assert_refused(planned, 'usage', 2)
    assert algorithm in planned.stderr and dims in planned.stderr


def test_no_daemon(tmp_path):
    for path in tmp_path / 'nothing', tmp_path:
        result = torusctl('--socket', path, 'status')
        assert result.returncode == 3 and str(path) in result.stderr and result.stdout == ''
    stale = tmp_path / 'stale'
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(stale))
    result = torusctl('--socket', stale, 'exchange', '--block-size', 1)
    assert result.returncode == 3 and str(stale) in result.stderr


@pytest.mark.full
@pytest.mark.slow
def test_more_exchanges_than_memory(shared):
    """Exchanges without memory wait for their start, here or at another node, and do not disturb running exchanges. A
    client that has waited too long is told for what, with figures."""
    torus = shared('4x4', memory='8MiB')
    args = ['exchange', '--algorithm', 'at2', '--block-size', '4MiB']
    running = []
    try:
        for rank in 0, 0, 5:  # a quarter of the memory each; one user gets no more
            running.append(Client(torus, *args[:-1], '100GiB', rank=rank))
        for rank in 0, 5:
            wait_for(lambda: [x['state'] for x in torus.status(rank)['exchanges']].count('running')
                     == 3, 20)
        for rank in 0, 9:
            late = torus.ctl(rank, '--json', *args, '--timeout', stretched(0.5))
            assert_refused(late, 'timeout')
            assert re.search(r'node \d+ .*memory.* \d+ of \d+ bytes', late.stderr), late.stderr
        with Client(torus, '--json', *args, rank=9) as waiting:
            wait_for(lambda: any(x['state'] == 'waiting' for x in torus.status(9)['exchanges']))
            assert all(client.process.poll() is None for client in running)
            running[2].process.kill()
            code, out, err = waiting.end(60)
            assert code == 0, err
        check_result(json.loads(out), '4x4', 'at2', 4 << 20)
        assert [client.process.poll() for client in running] == [None, None, -9]
    finally:
        for client in running:
            client.__exit__()
    still_works(torus)


def test_more_exchanges_than_a_node_runs_at_once(shared):
    """Exchanges wait in the order of their requests, and all succeed."""
    torus = shared('4x4')
    running = []
    try:
        for _ in range(4):  # one user's share of the memory is enough for all of them
            running.append(LongExchange(torus, '--repeat', '1000000', block_size='64KiB'))
        assert_refused(torus.ctl(0, '--json', 'exchange', '--block-size', 1, '--timeout', '0.5'), 'timeout')
        running.append(Client(torus, '--json', 'exchange', '--algorithm', 'at2', '--block-size', 1))
        wait_for(lambda: any(x['state'] == 'waiting' for x in torus.status()['exchanges']))
        check_result(torus.exchange('at2', 1000, rank=1), '4x4', 'at2', 1000)
        running[0].process.kill()
        code, out, err = running[4].end(20)
        assert code == 0, err
        check_result(json.loads(out), '4x4', 'at2', 1)
    finally:
        for client in running:
            client.__exit__()
    still_works(torus)


def test_a_timeout(torus):
    with stopped(torus.node(10)):
        result = torus.ctl(0, '--json', 'exchange', '--algorithm', 'at2', '--block-size', '1MiB',
                           '--timeout', 2)
    assert_refused(result, 'timeout')
    still_works(torus)
