"""All or nothing: whichever node dies between the last byte and the last rename, in the end either all nodes or
none have the new folder, and nothing else is left."""

import os
import signal
import time
from pathlib import Path

import pytest
from support.background import Client
from support.trees import check_target, leftovers, listing, make_sources, random_sizes
from support.waiting import wait_for, wait_logged
from torus_net.patience import Patience, stretched

pytestmark = pytest.mark.plain  # the simulator commits with sanitizers

DIMS, NODES, ROOT = '3x4', 12, 5
def workers_rest(pid):
    """Whether all threads of a daemon but its loop wait for work."""
    states = [Path(f'/proc/{pid}/task/{thread}/stat').read_text().rpartition(')')[2].split()[0]
              for thread in os.listdir(f'/proc/{pid}/task') if thread != str(pid)]
    return set(states) == {'S'}


class Bench:
    """A torus with folders that are exchanged again and again into new targets."""

    def __init__(self, torus, base):
        self.torus, self.base = torus, base
        self.sizes = random_sizes(NODES, 'commit', 20000)
        self.source = make_sources(base, self.sizes)
        self.attempts = 0
        self.outcomes = []

    def target_of(self, attempt):
        return f'{self.base}/in-{attempt}-%r'

    def start(self, timeout=None):
        """A client that gives up after `timeout` seconds; the default is enough for an exchange without faults."""
        self.timeout = stretched(2, least=6) if timeout is None else timeout
        self.attempts += 1
        self.target = self.target_of(self.attempts)
        return Client(self.torus, 'exchange', '--algorithm', 'at2', '--from', self.source, '--to',
                      self.target, '--timeout', self.timeout, rank=ROOT)

    def end(self, client):
        """Returns client.end(). After a fault of a node, it may take as long as the client waits."""
        return client.end(self.timeout + 34)

    def start_obstructed(self, rank, **more):
        """Puts a file in the place of the node's target between ready and committed. Also returns its path."""
        frozen = self.torus.node(9)
        obstacle = Path(self.target_of(self.attempts + 1).replace('%r', str(rank)))
        frozen.send_signal(signal.SIGSTOP)
        try:
            client = self.start(**more)
            wait_for(lambda: [path for path in listing(self.base)
                              if path.startswith(f'.{obstacle.name}.torusd')], 20)
            # Then the daemon looks once more whether the target is free.
            wait_for(lambda: workers_rest(self.torus.node(rank).pid))
            obstacle.write_text('mine')
        finally:
            frozen.send_signal(signal.SIGCONT)
        return client, obstacle

    def recorded(self, rank=ROOT):
        """The exchanges that the root has recorded as committed and that not all nodes have confirmed."""
        return [name for name in os.listdir(self.torus.run.state(rank))
                if name.startswith('committed')]

    def left(self):
        """Temporary files and folders of exchanges, including records of their outcome."""
        return leftovers(self.torus, self.base) + [name for rank in range(NODES)
                                                   for name in self.recorded(rank)]

    def wait_recorded(self, client, before, pause=0.0):
        """Returns at the moment of the decision; False if the client ended before."""
        patience = Patience(30)
        while self.recorded() == before:
            assert not patience.over, 'never decided'
            if client.process.poll() is not None:
                return False
        time.sleep(pause)
        return True

    def folders(self):
        return [os.path.isdir(self.target.replace('%r', str(rank))) for rank in range(NODES)]

    def settle(self, code, err):
        """Checks the outcome once all nodes live and are connected again."""
        for node in self.torus.nodes:
            if not node.alive:
                node.start()
        self.torus.wait_whole(40)
        wait_for(lambda: not self.left(), 40,
                 lambda: f'left: {self.left()}; folders: {self.folders()}; {err}')
        there = self.folders()
        assert all(there) or not any(there), (there, err)
        if all(there):
            check_target(self.target, self.sizes)
        if code == 0:
            assert all(there)
        for node in self.torus.nodes:
            assert not [x for x in self.torus.status(node.rank)['exchanges']
                        if x['state'] not in ('committed', 'failed')]
        self.outcomes.append(all(there))
        return all(there)

    def next_works(self):
        with self.start() as client:
            code, _, err = self.end(client)
        assert code == 0, err
        assert self.settle(code, err)


@pytest.fixture
def bench(loopback, tmp_path):
    return Bench(loopback(DIMS, data_roots=(str(tmp_path),)), tmp_path)


@pytest.mark.parametrize('pause', [0, 0.002, 0.01])
def test_the_root_dies_when_it_has_decided(bench, pause):
    for _ in range(6):
        before = bench.recorded()
        with bench.start() as client:
            if bench.wait_recorded(client, before, pause):
                bench.torus.node(ROOT).kill()
            code, _, err = bench.end(client)
        assert bench.settle(code, err), 'what has been recorded as committed is committed'
        if any('is in doubt' in node.log() for node in bench.torus.nodes):
            break  # the other nodes had not heard of the decision: this is the intended moment
    bench.next_works()


def test_entries_that_were_being_written(bench):
    """A crash while a record is written into the state folder leaves nothing there."""
    state = bench.torus.run.state(3)
    bench.torus.node(3).kill()
    (state / '.next-3-00000000-1').write_text('preparing')
    (state / 'exchange-3-00000000-2').write_text('')
    bench.torus.node(3).start()
    bench.torus.wait_whole(30)
    assert [name for name in os.listdir(state) if name.startswith(('.next', 'exchange'))] == []
    bench.next_works()


@pytest.mark.parametrize('pause', [0, 0.002])
@pytest.mark.parametrize('rank', [6, 11])
def test_another_node_dies_when_all_is_decided(bench, rank, pause):
    before = bench.recorded()
    with bench.start() as client:
        if bench.wait_recorded(client, before, pause):
            bench.torus.node(rank).kill()
        code, _, err = bench.end(client)
    assert code == 0 or 'committed' in err, err
    assert bench.settle(code, err), 'what has been recorded as committed is committed'
    bench.next_works()


@pytest.mark.full
@pytest.mark.parametrize('rank', [ROOT, 4])
@pytest.mark.parametrize('restart', [False, True], ids=['', 'restarted'])
def test_a_target_that_appears_meanwhile(bench, rank, restart):
    """An obstacle appears in a target between ready and committed: all other nodes commit, the obstacle stays, and the
    node commits by itself when it is removed."""
    client, obstacle = bench.start_obstructed(rank)
    with client:
        node = bench.torus.node(rank)
        wait_logged(node.log, f'target {obstacle} exists and is not a folder')
        wait_for(lambda: sum(bench.folders()) == NODES - 1, 30)
        if restart:
            node.restart()
            bench.torus.wait_whole(40)
        assert obstacle.read_text() == 'mine'
        assert leftovers(bench.torus, bench.base), 'the finished output is kept'
        obstacle.unlink()
        code, _, err = bench.end(client)
    if not (restart and rank == ROOT):  # the one that the client had asked
        unconfirmed = f'committed, but node {rank} ({rank // 4},{rank % 4}) '  # could not commit yet, or went down
        assert code == 0 or (restart and code == 4 and unconfirmed in err), err
    assert bench.settle(code, err), 'what has been recorded as committed is committed'
    bench.next_works()


@pytest.mark.full
def test_all_die_when_all_is_decided(bench):
    before = bench.recorded()
    with bench.start() as client:
        if bench.wait_recorded(client, before):
            for rank in sorted(range(NODES), key=lambda rank: rank != ROOT):
                bench.torus.node(rank).send_signal(signal.SIGKILL)
            for node in bench.torus.nodes:
                node.daemon.wait(20)
        code, _, err = bench.end(client)
    assert bench.settle(code, err), 'what has been recorded as committed is committed'
    bench.next_works()
