"""Any bytes of a stranger at a peer port cost at most one connection, are logged with a reason, and do not disturb
others."""

import os
import random
import re
import struct
import threading

import pytest
from support.attacks import connects, log_from_now, prepare, still_works_quietly
from support.expect import check_result
from support.waiting import wait_for, wait_logged
from support.wire import connect, finish, frame, frames, hello, is_kind, peer, send, until_closed


def pids(torus):
    return [node.pid for node in torus.nodes if node.alive]


def garbage(seed=0):
    rng = random.Random(seed)
    return {
        'random bytes': rng.randbytes(100000),
        'zeros': bytes(100000),
        'ones': b'\xff' * 100000,
        'text': b'GET / HTTP/1.1\r\nHost: torus\r\n\r\n' * 100,
        'a huge head': struct.pack('>II', 0xffffffff, 0),
        'a huge body': struct.pack('>II', 10, 0xffffffff) + bytes(10),
        'a large head': struct.pack('>II', 4 * 1024 * 1024, 0) + bytes(100000),
        'a body before the hello': struct.pack('>II', 10, 100) + bytes(110),
        'a head that is not a message': frame(rng.randbytes(60)),
        'an empty head': frame(b''),
        'an unknown kind': frame({99: {1: 1}}),
        'half a prefix': b'\0\0\0',
        'half a head': hello('4x4', 1, 0)[:14],
        'nothing': b'',
        'data before the hello': peer('stepped_data', {1: 1, 3: 1, 4: 1}, bytes(1000)),
        'a prepare before the hello': prepare(),
        'a refusal': peer('refusal', {1: '\x1b[2J\nfake log line' * 20}),
        'endless varints': frame(b'\x08' + b'\xff' * 400),
        'deep nesting': frame({2: {2: {2: {2: {2: {2: 'x'}}}}}}),
    }


STRANGERS = {
    'its rank is another': (hello('4x4', 14, 0), 'wrong cabling'),
    'its rank is none': (hello('4x4', 4000000000, 0), 'wrong cabling'),
    'its port is another': (hello('4x4', 1, 1), 'wrong cabling'),
    'its port is none': (hello('4x4', 1, 4000000000), 'wrong cabling'),
    'its torus is another': (hello('8x8', 1, 0), 'is in a torus 8x8'),
    'its torus is not a text': (hello(b'\x1b[31m\n4x4' * 20, 1, 0), 'is in a torus'),
    'its version is another': (hello('4x4', 1, 0, version=99), 'version 99'),
    'it says nothing': (peer('hello'), 'version 0'),
}


@pytest.mark.parametrize('what', garbage())
def test_garbage_on_a_peer_port(torus, what):
    """Attacks at port `-0` of node 10, whose neighbour there is node 6. Only the first reasons of many are logged, so
    tests that look for theirs use another port."""
    before = connects(torus, 10), pids(torus)
    with connect(torus.node(10).addresses['-0']) as s:
        send(s, garbage()[what])
        finish(s)
        heads = frames(until_closed(s))
    assert len(heads) <= 1  # a refusal
    assert all(is_kind(head, 'refusal') for head in heads)
    assert (connects(torus, 10), pids(torus)) == before
    assert torus.status()['whole'] is True
    log = torus.node(10).log()
    assert '\x1b' not in log and '\nfake' not in log
    still_works_quietly(torus, rank=10)


@pytest.mark.parametrize('how', STRANGERS)
def test_strangers_are_turned_away_by_name(torus, how):
    data, said = STRANGERS[how]
    before = connects(torus, 5), pids(torus)
    log = log_from_now(torus, 5)
    with connect(torus.node(5).addresses['-0']) as s:
        send(s, data)
        heads = frames(until_closed(s))
    assert len(heads) == 1 and said.encode() in heads[0], heads
    wait_logged(log, re.compile(f'a connection that is not from the neighbour was rejected: .*{re.escape(said)}'))
    assert '\x1b' not in log()
    assert (connects(torus, 5), pids(torus)) == before
    still_works_quietly(torus, rank=5)


def test_a_silent_connection_is_closed_in_time(torus):
    """The same for a hello that is sent byte by byte, and would take half a minute."""
    log = log_from_now(torus, 5)
    silent, slow = (connect(torus.node(5).addresses['-1'], 30) for _ in range(2))
    over = threading.Event()

    def drip():
        for byte in hello('4x4' * 60, 14, 2):
            if over.wait(0.2) or not send(slow, bytes([byte])):
                return

    drops = threading.Thread(target=drip)
    drops.start()
    try:
        with silent, slow:
            until_closed(silent)
            until_closed(slow)
    finally:
        over.set()
        drops.join()
    wait_logged(log, 'did not say hello within')
    still_works_quietly(torus, rank=5)


def test_a_flood_of_connections(torus):
    """Two hundred silent connections at a port whose neighbour is connected."""
    crowd = []
    try:
        for _ in range(200):
            crowd.append(connect(torus.node(5).addresses['-0'], 30))
        assert torus.status(5)['whole'] is True
        still_works_quietly(torus, rank=5)
    finally:
        for s in crowd:
            s.close()
    still_works_quietly(torus)
    assert len(os.listdir(f'/proc/{torus.node(5).pid}/fd')) < 100 or wait_for(
        lambda: len(os.listdir(f'/proc/{torus.node(5).pid}/fd')) < 100, 20)


def test_a_neighbour_comes_back_through_a_flood(loopback):
    """Strangers hold connections for ever, but the neighbour can still connect."""
    torus = loopback('4x4')
    address, over = torus.node(5).addresses['-0'], threading.Event()

    def hold():
        while not over.is_set():
            try:
                with connect(address, 5) as s:
                    s.settimeout(0.5)
                    while not over.is_set() and s.recv(1000):
                        pass
            except OSError:
                over.wait(0.05)

    crowd = [threading.Thread(target=hold) for _ in range(30)]
    for thread in crowd:
        thread.start()
    try:
        torus.node(1).restart(9)
        still_works_quietly(torus, rank=1)
    finally:
        over.set()
        for thread in crowd:
            thread.join()
    still_works_quietly(torus)


def test_a_running_exchange_is_not_disturbed(torus):
    """Garbage, strangers and floods at every peer port and control socket."""
    before, over = connects(torus), threading.Event()

    def disturb(node):
        rng = random.Random(node.rank)
        everything = list(garbage(node.rank).values()) + [data for data, _ in STRANGERS.values()]
        while not over.is_set():
            listening = [a for name, a in node.addresses.items() if name[0] == '-']
            for address in listening + [node.socket]:
                try:
                    with connect(address, 5) as s:
                        s.settimeout(0.05)
                        send(s, rng.choice(everything))
                        s.recv(1000)
                except OSError:
                    pass

    crowd = [threading.Thread(target=disturb, args=(node,)) for node in torus.nodes[::5]]
    for thread in crowd:
        thread.start()
    try:
        for algorithm in 'at2', 'direct':
            result = torus.exchange(algorithm, '4MiB', rank=3)
            check_result(result, '4x4', algorithm, 4 << 20)
    finally:
        over.set()
        for thread in crowd:
            thread.join()
    assert connects(torus) == before
