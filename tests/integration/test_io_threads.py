"""I/O threads encrypt and write, or read and decrypt, the long frames of fast encrypted links (io_threads). A line of three
nodes: all that node 0 and node 2 send each other passes node 1."""

import signal
from pathlib import Path

import pytest
from support.background import Client, LongExchange
from support.cable import CabledTorus
from support.expect import check_result
from support.waiting import exchanges, wait_for

from test_reload import Settings, log_after

SIZE = 4 << 20
NAME = 'torusd-io'
ENCRYPTED = ('--encrypt=yes', '--io-threads=2')
REASON = 'the received bytes are not what the neighbour encrypted'


@pytest.fixture
def torus(shared):
    return shared('1x3m', CabledTorus, end=0, port='+1', extra=ENCRYPTED)


def threads(torus, rank):
    """{thread: (name, its nanoseconds on a processor, how often it has waited)} of a daemon."""
    found = {}
    for folder in Path(f'/proc/{torus.node(rank).pid}/task').iterdir():
        waits = (folder / 'status').read_text().split('\nvoluntary_ctxt_switches:')[1].split()[0]
        found[folder.name] = ((folder / 'comm').read_text().strip(),
                              int((folder / 'schedstat').read_text().split()[0]), int(waits))
    return found


def io_threads(torus, rank):
    return {thread: facts[1:] for thread, facts in threads(torus, rank).items() if facts[0] == NAME}


def check_threads(torus, algorithm='stream'):
    """All blocks arrive, and both threads of the relay, one for each direction, take part."""
    torus.wait_whole(30)
    before = io_threads(torus, 1)
    check_result(torus.exchange(algorithm, SIZE), '1x3m', algorithm, SIZE)
    after = io_threads(torus, 1)
    assert len(after) == 2
    assert all(after[thread][1] > before.get(thread, (0, 0))[1] for thread in after), (before, after)


@pytest.mark.parametrize('algorithm', ['stream', 'direct'])
def test_threads_carry_the_bytes(torus, algorithm):
    check_threads(torus, algorithm)


@pytest.mark.parametrize('what, size, options', [
    ('short', 1000, ENCRYPTED), ('none', SIZE, ('--encrypt=yes', '--io-threads=0')), ('plain', SIZE, ENCRYPTED[1:])])
def test_bytes_that_one_thread_carries(loopback, what, size, options):
    torus = loopback('1x3m', extra=options)
    check_result(torus.exchange('stream', size), '1x3m', 'stream', size)
    assert not any(io_threads(torus, rank) for rank in range(3)), what


def test_slow_links_have_no_threads(loopback):
    torus = loopback('1x3m', bw=500, extra=ENCRYPTED)
    assert torus.exchange('stream', 1 << 20)['verified'] == 'every byte'
    assert not any(io_threads(torus, rank) for rank in range(3))


def test_threads_that_have_no_work_sleep(torus):
    """While the daemon's first thread wakes up for its heartbeats, they do not."""
    check_threads(torus)
    pid = str(torus.node(1).pid)
    before = threads(torus, 1)
    wait_for(lambda: threads(torus, 1)[pid][2] >= before[pid][2] + 10, 60)
    after = threads(torus, 1)
    assert [after[thread][2] - before[thread][2] for thread in before if before[thread][0] == NAME] == [0, 0]


def test_a_damaged_record_costs_the_connection(torus):
    """Only what a thread opens comes in so large pieces."""
    link = {one['neighbour']: one for one in torus.json(1, 'links')['links']}[0]
    begin = len(torus.node(1).log())
    with LongExchange(torus, rank=2, algorithm='stream', block_size='64MiB') as client:
        torus.cable.change_once(20000, lambda data: data[:-1] + bytes([data[-1] ^ 4]))
        wait_for(lambda: REASON in torus.node(1).log()[begin:] + torus.node(0).log(), 60)
        client.process.send_signal(signal.SIGINT)
        client.end(60)
    torus.wait_whole(30)
    assert {one['neighbour']: one for one in torus.json(1, 'links')['links']}[0]['connects'] > link['connects']
    check_threads(torus)


@pytest.mark.parametrize('end', ['cut', 'kill', 'cancel', 'terminate'])
def test_a_link_that_ends_while_threads_have_jobs(torus, end):
    """The other link stays up, or comes back."""
    with LongExchange(torus, rank=2, algorithm='stream', block_size='64MiB') as client:
        if end == 'cut':
            torus.cable.cut_after(100000)
        elif end == 'kill':
            torus.node(0).kill()
        elif end == 'terminate':
            assert torus.node(1).terminate() == 0
        else:
            client.process.send_signal(signal.SIGINT)
        code, _, err = client.end(60)
        assert code != 0 and err, err
    if end == 'cut':
        torus.cable.mend()
    elif end != 'cancel':
        torus.node(0 if end == 'kill' else 1).start()
    check_threads(torus)


def test_a_link_that_becomes_slow_leaves_its_threads(loopback, tmp_path):
    """By reloading, in the middle of an exchange, and back: each byte arrives once."""
    settings = Settings(tmp_path)
    torus = loopback('1x3m', extra=lambda rank: [*settings.options(rank), *ENCRYPTED])
    with Client(torus, '--json', 'exchange', '--algorithm', 'stream', '--block-size', SIZE, '--repeat', 40,
                '--timeout', 3000) as client:
        wait_for(lambda: exchanges(torus, 0) and exchanges(torus, 0)[0]['state'] == 'running', 60)
        for rate in (450, 100000, 450, 100000):
            settings.write(1, link_mbit=rate)
            assert 'changed: link_mbit\n' in log_after(torus, 1)
        code, out, err = client.end(300)
        assert code == 0 and '"every byte"' in out, err
    check_threads(torus)
