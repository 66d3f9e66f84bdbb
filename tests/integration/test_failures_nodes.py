"""Daemons that are killed, end or fall silent during exchanges."""

import re
import signal

import pytest
from support.background import Client, LongExchange, stopped
from support.errors import assert_blames, error_code, names
from support.failures import others, still_works
from support.trees import check_target, listing, make_sources, random_sizes, wait_tidy
from support.waiting import state_of, wait_for, wait_logged, wait_state
from torus_net.patience import Patience, run


# For daemons that must not give up a link while a neighbour is stopped, however long that takes here.
PATIENT = '--silence-ms=300000',


def assert_named(torus, exchange, dead, ranks):
    """Checks that all nodes know that the exchange has failed, and which node is to blame."""
    reasons = wait_state(torus, exchange, ['failed'], ranks, 20)
    for rank in ranks:
        assert f'node {dead} is down' in reasons[rank], (rank, reasons[rank])
        wait_logged(torus.node(rank).log, re.compile(rf'exchange {exchange}.*node {dead} is down'))


# direct: by the engine of at2
@pytest.mark.parametrize('algorithm', ['at2', pytest.param('direct', marks=[pytest.mark.slow, pytest.mark.full])])
@pytest.mark.parametrize('dead', [5, 1, 15], ids=['far', 'neighbour', 'corner'])
def test_a_daemon_is_killed(shared, dead, algorithm):
    torus = shared('4x4')
    with LongExchange(torus, '--json', algorithm=algorithm) as client:
        torus.node(dead).kill()
        assert_blames(client.end(30), dead)
        assert_named(torus, client.id, dead, others(torus, dead))
        wait_for(lambda: any(f'node {dead} is down' in text for text in torus.status()['faults']))
        assert torus.status()['whole'] is False
    refused = torus.ctl(0, '--json', 'exchange', '--algorithm', algorithm, '--block-size', 1)
    assert_blames((refused.returncode, refused.stdout, refused.stderr), dead)
    torus.node(dead).start()
    still_works(torus, rank=dead, algorithm=algorithm)


@pytest.mark.slow
@pytest.mark.parametrize('dims,algorithm,dead', [
    ('1x2', 'ar', 1), ('4x4', 'stream', 5),
    # test_sim_faults and the swarm kill nodes on tori of all shapes
    *(pytest.param(*values, marks=pytest.mark.full) for values in (
        ('1x6', 'ar', 2), ('2x2', 'at2', 3), ('3x4x5', 'direct', 31)))])
def test_a_daemon_is_killed_on_other_tori(shared, dims, algorithm, dead):
    torus = shared(dims)
    with LongExchange(torus, '--json', algorithm=algorithm) as client:
        torus.node(dead).kill()
        assert_blames(client.end(30), dead)
        assert_named(torus, client.id, dead, others(torus, dead))
    torus.node(dead).start()
    still_works(torus, algorithm=algorithm)


def test_a_killed_node_is_not_avoided(torus):
    """An exchange fails if all links of a node are down, whatever the algorithm."""
    with LongExchange(torus, '--json', rank=3, algorithm='auto') as client:
        torus.node(9).kill()
        assert_blames(client.end(30), 9)
        # If its links are lost one after another, the exchange may have been retried in between.
        failed = re.compile(r'exchange (\S+) failed: node 9 is down')
        attempt = failed.findall(wait_logged(torus.node(3).log, failed))[-1]
        if attempt == client.id:
            assert_named(torus, attempt, 9, others(torus, 9))
        for rank in others(torus, 9):
            wait_for(lambda rank=rank: {state_of(torus, id, rank)[0] for id in (attempt, client.id)}
                     <= {'failed', None}, 20)
    torus.node(9).start()
    still_works(torus)


def test_two_daemons_are_killed(torus):
    """Two nodes die, even if that cuts a node off from all others."""
    with LongExchange(torus, '--json', rank=6) as client:
        for rank in 0, 10:
            torus.node(rank).kill()
        assert_blames(client.end(30), 0, 10)
        wait_state(torus, client.id, ['failed'], others(torus, 0, 10))
    for rank in 0, 10:
        torus.node(rank).start()
    still_works(torus, rank=10)


def test_a_daemon_that_ends_in_the_middle(torus):
    """After SIGTERM a daemon ends at once and regularly, whatever runs."""
    with LongExchange(torus, '--json', rank=3) as client:
        assert torus.node(9).terminate(20) == 0
        assert_blames(client.end(30), 9)
        assert_named(torus, client.id, 9, others(torus, 9))
    torus.node(9).start()
    still_works(torus)


@pytest.mark.full
@pytest.mark.parametrize('algorithm', [pytest.param('at2', marks=pytest.mark.slow), 'stream'])
def test_a_daemon_ends_beside_one_that_does_not_read(loopback, algorithm):
    """The same, while more bytes wait to be written to the node than the kernel buffers on loopback."""
    torus = loopback('4x4', memory='1GiB', extra=PATIENT)
    for _ in range(10):  # frames of node 1 at that moment may be for others
        torus.wait_whole(30)
        with LongExchange(torus, algorithm=algorithm), stopped(torus.node(5)):
            ended = piles_up(torus.node(1), 4)
            if ended:
                assert torus.node(1).terminate(20) == 0
                break
    assert ended
    torus.node(1).start()
    still_works(torus, rank=1)


def piles_up(node, seconds):
    patience = Patience(seconds)
    while not patience.over:
        if max(unread(node), default=0) > 30_000:
            return True
    return False


def unread(node):
    """The unread bytes in each of the daemon's connections to neighbours."""
    said = run(['ss', '-tnH']).stdout
    sockets = [line.split()[2:5] for line in said.splitlines()]  # bytes, its own address, the other one's
    return [int(size) for size, *ends in sockets for name, address in node.addresses.items()
            if ends[name[0] == '+'] == address]  # a port + dials that address, a port - has it


@pytest.mark.parametrize('busy,algorithm', [(0, 'at2'), *(
    pytest.param(*values, marks=pytest.mark.slow) for values in ((6, 'at2'), (0, 'stream')))])
def test_a_silent_daemon(torus, busy, algorithm):
    """A daemon falls silent with its connections open: missing heartbeats show it, and not later if the links were busy
    for a long time."""
    with LongExchange(torus, '--json', algorithm=algorithm) as client:
        wait_for(lambda: torus.status()['exchanges'][0]['age_seconds'] >= busy)
        with stopped(torus.node(5)):
            assert_blames(client.end(10), 5)
            # On a busy machine, its neighbours notice one after another: then a link is named.
            reasons = wait_state(torus, client.id, ['failed'], others(torus, 5), 20)
            assert all(names(reason, 5) for reason in reasons.values()), reasons
            wait_logged(torus.node(1).log, 'silent')
        torus.wait_whole(30)
        # It was not there for the abort: it hears the abort, or fails by itself.
        wait_for(lambda: state_of(torus, client.id, 5)[0] in ('failed', None), 30)
    still_works(torus, rank=5, algorithm=algorithm)


@pytest.mark.full
@pytest.mark.parametrize('folders', [False, True], ids=['pattern', 'folders'])
def test_the_asked_daemon_is_killed(loopback, tmp_path, folders):
    torus = loopback('4x4', data_roots=(str(tmp_path),))
    if folders:
        sizes = dict.fromkeys(random_sizes(16, 0), 2_000_000)
        args = ['--from', make_sources(tmp_path, sizes), '--to', f'{tmp_path}/in-%r']
    else:
        args = ['--block-size', '100GiB']
    with Client(torus, '--json', 'exchange', '--algorithm', 'at2', *args, rank=6) as client:
        exchange = wait_for(lambda: next((x['id'] for x in torus.status(0)['exchanges']
                                          if x['state'] == 'running'), None))
        torus.node(6).kill()
        code, out, err = client.end(30)
        if folders:
            assert (code, error_code(out)) == (4, 'in doubt'), (code, out, err)
        else:
            assert (code, error_code(out)) in ((1, 'lost'), (3, 'no daemon')), (code, out, err)
    for rank, reason in wait_state(torus, exchange, ['failed'], others(torus, 6), 20).items():
        assert re.search('node 6.* down', reason), (rank, reason)
    torus.node(6).start()
    torus.wait_whole(30)
    wait_tidy(torus, tmp_path)
    assert not [path for path in listing(tmp_path) if path.startswith('in')]
    still_works(torus, rank=6)
    if folders:
        torus.exchange('at2', source=args[1], target=args[3], rank=6)
        check_target(args[3], sizes)


@pytest.mark.parametrize('algorithm', [pytest.param('at2', marks=(pytest.mark.slow, pytest.mark.full)), 'stream'])
def test_a_daemon_is_killed_while_files_are_written(loopback, tmp_path, algorithm):
    torus = loopback('4x4', data_roots=(str(tmp_path),))
    sizes = dict.fromkeys(random_sizes(16, 0), 2_000_000)
    source, target = make_sources(tmp_path, sizes), f'{tmp_path}/sub/in-%r'
    arguments = '--json', 'exchange', '--algorithm', algorithm, '--from', source, '--to', target
    with Client(torus, *arguments) as client:
        wait_for(lambda: any('.torusd-' in path and path.endswith('/9')
                             for path in listing(tmp_path)))
        torus.node(9).kill()
        assert_blames(client.end(30), 9)
    torus.node(9).start()
    wait_tidy(torus, tmp_path)
    assert not [path for path in listing(tmp_path) if '/in-' in path]
    still_works(torus)
    torus.exchange(algorithm, source=source, target=target)
    check_target(target, sizes)


def test_daemons_come_and_go(loopback):
    """All daemons are restarted one by one, and all at once: the torus becomes whole by itself."""
    torus = loopback('3x3')
    for node in torus.nodes:
        node.restart(signal.SIGKILL if node.rank % 2 else signal.SIGTERM)
    still_works(torus)
    for node in torus.nodes:
        node.kill()
    for node in torus.nodes:
        node.start()
    still_works(torus, rank=8)
