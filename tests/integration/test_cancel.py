"""A request to cancel ends the operation on its connection, which can be used afterwards."""

from support.waiting import wait_for
from support.wire import connect, frame, frames, send

# Kinds of requests and replies in proto/control.proto.in; fields of Spec in proto/control_fields.h.
STATUS, EXCHANGE, CANDIDATES, CANCEL = 1, 3, 4, 6
ERROR, STATUS_REPLY, ACCEPTED, PROGRESS, RESULT = 1, 2, 4, 5, 6
ALGORITHM, BLOCK_BYTES, REPEAT, TIMEOUT_MS = 1, 6, 10, 11
CANCELLED = bytes([1 << 3, 8])  # Error.code: ERROR_CANCELLED


class Connection:
    def __init__(self, torus, rank=5):
        self.socket = connect(torus.node(rank).socket, 30)
        self.data, self.taken = b'', 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, *requests):
        assert send(self.socket, b''.join(frame(fields) for fields in requests))

    def reply(self):
        """The next reply: its kind and its contents."""
        while len(frames(self.data)) == self.taken:
            piece = self.socket.recv(65536)
            assert piece, 'closed without a reply'
            self.data += piece
        head = frames(self.data)[self.taken]
        self.taken += 1
        return head[0] >> 3, head[2:]

    def last_reply(self):
        while True:
            kind, contents = self.reply()
            if kind not in (ACCEPTED, PROGRESS):
                return kind, contents


def exchange(repeat=1):
    return {EXCHANGE: {1: {ALGORITHM: 'at2', BLOCK_BYTES: 1000, REPEAT: repeat,
                           TIMEOUT_MS: 3_000_000}}}


def test_cancelled_exchange(torus):
    """The exchange ends at all nodes, the client is told so, and starts another one."""
    before = {x['id'] for x in torus.json(5, 'status')['exchanges']}
    with Connection(torus) as c:
        for _ in range(2):
            c.send(exchange(1000000))
            assert c.reply()[0] == ACCEPTED
            assert c.reply()[0] == PROGRESS
            c.send({CANCEL: {}})
            kind, contents = c.last_reply()
            assert kind == ERROR and contents.startswith(CANCELLED), contents
        c.send(exchange())
        assert c.last_reply()[0] == RESULT
    ended = [x for x in torus.json(5, 'status')['exchanges'] if x['id'] not in before]
    assert sorted(x['state'] for x in ended) == ['committed', 'failed', 'failed'], ended
    for failed in (x['id'] for x in ended if x['state'] == 'failed'):
        for rank in 0, 15:
            wait_for(lambda failed=failed, rank=rank: any(
                x['id'] == failed and x['state'] == 'failed' and 'cancelled' in x['reason']
                for x in torus.json(rank, 'status')['exchanges']),
                what=f'{failed} has not failed at node {rank}')


def test_cancelled_at_once(torus):
    """The client cancels before the first reply."""
    with Connection(torus) as c:
        c.send(exchange(1000000), {CANCEL: {}})
        kind, contents = c.last_reply()
        assert kind == ERROR and contents.startswith(CANCELLED), contents
        c.send(exchange())
        assert c.last_reply()[0] == RESULT


def test_nothing_to_cancel(torus):
    """The last reply and the request to cancel cross: there is no other reply."""
    with Connection(torus) as c:
        c.send(exchange())
        assert c.last_reply()[0] == RESULT
        c.send({CANCEL: {}}, {STATUS: {}}, {CANCEL: {}})
        assert c.reply()[0] == STATUS_REPLY
        c.send(exchange())
        assert c.last_reply()[0] == RESULT


def test_candidates(torus):
    """The folders are in place on all nodes or on none, and the connection can be used."""
    with Connection(torus) as c:
        c.send({CANDIDATES: {1: 4096}}, {CANCEL: {}}, {STATUS: {}})
        kind, contents = c.reply()
        assert kind == 7 or (kind == ERROR and contents.startswith(CANCELLED)), (kind, contents)
        assert c.reply()[0] == STATUS_REPLY
