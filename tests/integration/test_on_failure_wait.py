"""torusctl exchange --on-failure wait: the exchange does not fail when daemons are restarted."""

import json
import signal
from pathlib import Path

import pytest
from support.background import Client
from support.errors import assert_refused, error_code
from support.terminal import Spoken
from support.trees import check_target, listing, make_sources, random_sizes, wait_tidy
from support.waiting import exchanges, wait_for

WAIT = ('--on-failure', 'wait', '--timeout', 3600)
IN_DOUBT = 4  # exit status of torusctl
NODES = 9


def states(torus, rank):
    return [x['state'] for x in exchanges(torus, rank)]


def wait_for_state(torus, rank, state):
    wait_for(lambda: state in states(torus, rank), 60, lambda: f'{state}: {exchanges(torus, rank)}')


def done(client):
    code, out, err = client.end(300)
    assert code == 0, err
    return json.loads(out)


@pytest.mark.full
@pytest.mark.parametrize('signum', [signal.SIGTERM, signal.SIGKILL])
def test_the_daemon_that_was_asked_is_restarted(shared, signum):
    torus = shared('3x3')
    with Client(torus, '--json', 'exchange', '--block-size', '16MiB', *WAIT, rank=4) as client:
        wait_for_state(torus, 4, 'running')
        torus.node(4).kill(signum)
        assert client.process.poll() is None
        torus.node(4).start()
        assert done(client)['verified'] == 'every byte'
    torus.wait_whole(30)


class Files:
    def __init__(self, loopback, base):
        self.base = base
        self.torus = loopback('3x3', data_roots=(str(base),))
        self.sizes = dict.fromkeys(random_sizes(NODES, 0), 3_000_000)
        self.target = f'{base}/in-%r'
        self.arguments = ('--json', 'exchange', '--from', make_sources(base, self.sizes), '--to', self.target, *WAIT)

    def start(self, rank):
        client = Client(self.torus, *self.arguments, rank=rank)
        wait_for(lambda: any('.torusd-' in path and path.endswith('/4') for path in listing(self.base)), 60)
        return client

    def check(self):
        check_target(self.target, self.sizes)
        self.torus.wait_whole(30)
        wait_tidy(self.torus, self.base)


@pytest.mark.parametrize('signum', [signal.SIGTERM, signal.SIGKILL])
def test_files_wait_for_a_node(loopback, tmp_path, signum):
    files = Files(loopback, tmp_path)
    with files.start(0) as client:
        files.torus.node(4).kill(signum)
        wait_for_state(files.torus, 0, 'waiting')
        assert not [path for path in listing(tmp_path) if path.startswith('in')]
        files.torus.node(4).start()
        done(client)
    files.check()


def kept_files(base):
    """Files of outputs that are not complete, of which something has arrived."""
    found = [base / path for path in listing(base) if '.torusd-' in path]
    return [path for path in found if path.is_file() and path.stat().st_size > 100]


def asleep(pid):
    """Whether no thread of the process writes or waits for a processor. If the test overwrote bytes while torusd writes to the same file, they might count as torusd's own; the threads of a daemon that waits write nothing."""
    threads = Path(f'/proc/{pid}/task').iterdir()
    return all((thread / 'stat').read_text().rpartition(')')[2].split()[0] == 'S' for thread in threads)


def test_kept_files_that_somebody_changes(loopback, tmp_path):
    """What has arrived is kept while the exchange waits; what somebody overwrites of it arrives again."""
    files = Files(loopback, tmp_path)
    with files.start(0) as client:
        wait_for(lambda: kept_files(tmp_path), 60)
        files.torus.node(4).kill()
        wait_for_state(files.torus, 0, 'waiting')
        for rank in set(range(NODES)) - {0, 4}:
            wait_for(lambda rank=rank: set(states(files.torus, rank)) <= {'withdrawn', 'failed'}, 60,
                     lambda rank=rank: exchanges(files.torus, rank))
        wait_for(lambda: all(asleep(files.torus.node(rank).pid) for rank in range(NODES) if rank != 4), 60)
        for path in kept_files(tmp_path):
            with path.open('r+b') as file:
                file.seek(path.stat().st_size // 2)
                file.write(b'damage')
        files.torus.node(4).start()
        done(client)
    files.check()
    wait_for(lambda: any('a new file that had arrived' in files.torus.node(rank).log() for rank in range(NODES) if rank != 4))


@pytest.mark.full
def test_files_of_a_daemon_that_is_stopped(loopback, tmp_path):
    """The daemon reports that nothing was decided: the client requests the files again."""
    files = Files(loopback, tmp_path)
    with files.start(4) as client:
        files.torus.node(4).restart(signal.SIGTERM)
        done(client)
    files.check()


def test_files_of_a_daemon_that_is_killed(loopback, tmp_path):
    """The outcome is not known: the client does not request the files again."""
    files = Files(loopback, tmp_path)
    with files.start(4) as client:
        files.torus.node(4).restart(signal.SIGKILL)
        code, out, err = client.end(60)
    assert (code, error_code(out)) == (IN_DOUBT, 'in doubt'), err
    files.torus.wait_whole(30)
    wait_tidy(files.torus, tmp_path)


def test_what_it_waits_for_is_said(shared):
    """The client shows on a terminal which node it waits for, also if the node was down before the start."""
    torus = shared('3x3')
    torus.node(5).kill()
    torus.wait_broken(30, (4,))
    with Spoken([torus.torusctl, '--socket', torus.node(4).socket, 'exchange', '--block-size', '1KiB', *WAIT],
                terminal=True, env={}) as command:
        command.wait_says(r'waiting for node 5 \(1,2\)')
        torus.node(5).start()

        def has_ended():
            command.read()  # the terminal must not be flooded
            return command.process.poll() is not None
        wait_for(has_ended, 60, command.read)
        assert command.process.returncode == 0 and 'every byte' in command.process.stdout.read()
    torus.wait_whole(30)


def test_a_node_that_does_not_come_back(shared):
    """The timeout ends it, with the name of the node."""
    torus = shared('3x3')
    torus.node(5).kill()
    torus.wait_broken(30, (4,))
    failed = torus.ctl(4, '--json', 'allgather', '--block-size', '1KiB', '--on-failure', 'wait', '--timeout', 1)
    assert_refused(failed, 'timeout')
    assert 'node 5 (1,2)' in failed.stderr
    torus.node(5).start()
    torus.wait_whole(30)
