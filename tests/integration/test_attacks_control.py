"""Any bytes of a client at the control socket cost at most one connection, are logged with a reason, and do not
disturb others."""

import os
import random
import struct

import pytest
from support.attacks import log_from_now, still_works_quietly
from support.background import LongExchange
from support.waiting import wait_for, wait_logged
from support.wire import connect, error_of, finish, frame, frames, heads_until, hello, send, until_closed


CONTROL = {
    'random bytes': random.Random(1).randbytes(100000),
    'a huge head': struct.pack('>II', 0xffffffff, 0) + bytes(1000),
    'a head over the limit': struct.pack('>II', 65537, 0) + bytes(1000),
    'a body': struct.pack('>II', 4, 4) + bytes(8),
    'no message': frame(b'\x07' * 50),
    'an empty head': frame(b''),
    'an unknown kind': frame({99: {1: 1}}),
    'text': b'status\n' * 100,
}
TRUNCATED = {'nothing': b'', 'half a prefix': b'\0\0\0', 'half a head': frame({3: {1: {1: 'at2'}}})[:10],
             'the prefix only': struct.pack('>II', 5000, 0)}


@pytest.mark.parametrize('what', CONTROL)
def test_garbage_on_the_control_socket(torus, what):
    log = log_from_now(torus, 5)
    with connect(torus.node(5).socket) as s:
        send(s, CONTROL[what])
        heads = frames(until_closed(s))
    assert heads and error_of(heads[-1]) == 'PROTOCOL', heads
    wait_logged(log, 'a control client was rejected')
    still_works_quietly(torus, rank=5)


@pytest.mark.parametrize('what', TRUNCATED)
def test_truncated_requests(torus, what):
    with connect(torus.node(5).socket) as s:
        send(s, TRUNCATED[what])
        finish(s)
        assert until_closed(s) == b''
    still_works_quietly(torus, rank=5)


def request(torus, fields, rank=5):
    """The daemon's reply to a request, as the bytes of the last frame's head."""
    with connect(torus.node(rank).socket, 30) as s:
        send(s, frame(fields))
        return heads_until(s, lambda head: len(head) > 1 and head[0] >> 3 not in (4, 5))[-1]  # accepted, progress


@pytest.mark.parametrize('spec,code', [
    ({1: 'magic', 6: 1}, 'USAGE'),
    ({1: '', 6: 1}, 'USAGE'),
    ({1: 'at2', 6: (1 << 64) - 1}, 'USAGE'),
    ({1: 'at2', 7: 'relative', 8: 'relative'}, 'USAGE'),
    ({1: 'at2', 7: '/tmp/x'}, 'USAGE'),
    ({1: 'at2', 8: '/tmp/x'}, 'USAGE'),
    # Both answers are right: the daemon may check either first.
    ({1: 'at2', 7: '/' + 'x' * 5000, 8: '/' + 'x' * 5000}, 'USAGE'),
    ({1: 'at2', 7: '/tmp/%q', 8: '/tmp/%q'}, 'USAGE'),
    ({1: 'at2', 7: '/tmp/x', 8: '/tmp/\x1b[2J'}, 'REFUSED'),
    ({1: 'x' * 60000, 6: 1}, 'USAGE'),
])
def test_requests_that_torusctl_would_not_send(torus, spec, code):
    head = request(torus, {3: {1: spec}})
    assert error_of(head) == code, head
    still_works_quietly(torus, rank=5)


def test_two_requests_on_one_connection(torus):
    """A second request during an exchange is refused; requests after each other are served."""
    exchange = frame({3: {1: {1: 'at2', 6: 1 << 20}}})
    with connect(torus.node(5).socket, 30) as s:
        send(s, exchange + frame({1: {}}))
        heads = heads_until(s, lambda head: head[0] >> 3 == 6)
        assert any(error_of(head) == 'PROTOCOL' for head in heads)
        send(s, frame({1: {}}))
        assert heads_until(s, bool)[-1][0] >> 3 == 2
    still_works_quietly(torus, rank=5)


def test_a_flood_of_clients(torus):
    with LongExchange(torus, rank=5) as client:
        crowd = []
        for number in range(200):
            s = connect(torus.node(5).socket, 30)
            crowd.append(s)
            send(s, (b'', frame({1: {}}), b'\xff' * 50, frame({2: {}}))[number % 4])
        assert torus.status(5)['whole'] is True
        for s in crowd:
            s.close()
        assert client.process.poll() is None
    still_works_quietly(torus, rank=5)
    wait_for(lambda: len(os.listdir(f'/proc/{torus.node(5).pid}/fd')) < 60, 20)


@pytest.mark.memory
def test_memory_does_not_grow(torus):
    """After thousands of strangers and refused clients, the daemon uses no more memory than before."""
    node = torus.node(5)

    def round_of_nonsense(count):
        for number in range(count):
            with connect(node.addresses['-0']) as s:
                send(s, hello('4x4', 14, 0))
                until_closed(s)
            with connect(node.socket) as s:
                send(s, CONTROL['no message'])
                until_closed(s)
            torus.ctl(5, 'status') if number % 50 == 0 else None

    round_of_nonsense(300)
    before = node.memory()['RssAnon']
    round_of_nonsense(1500)
    assert node.memory()['RssAnon'] - before < 1 << 20


def test_control_socket_is_not_for_everybody(torus):
    assert os.stat(torus.node(0).socket).st_mode & 0o007 == 0
