"""Any bytes of a neighbour that has the cluster key and lies cost at most one connection, are logged with a reason,
and do not disturb others."""

import os
import struct

import pytest
from support.attacks import ID, connects, log_from_now, prepare, still_works_quietly
from support.waiting import wait_for, wait_logged
from support.wire import (HEAD, Fixed64, connect, finish, frame, heads_until, hello, is_kind, pass_probe, peer,
                          peer_frame, read_key, send, shake_hands, until_closed)


class FalseNeighbour:
    """A connection in place of node 1 of a 4x4, at port -0 of node 5; the real node has ended."""

    def __init__(self, torus):
        self.torus = torus
        self.version = 1 << 20
        torus.node(1).terminate()
        # For all its links, not only for this one: news of another link would end the exchange.
        wait_for(lambda: any(fault.startswith('node 1 is down')
                             for fault in torus.status(5)['faults']), 20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.torus.node(1).start()

    def link(self):
        return next(link for link in self.torus.links(5)['links'] if link['port'] == '-0')

    def connect(self):
        s = connect(self.torus.node(5).addresses['-0'])
        shake_hands(s, read_key(self.torus.run.key), '4x4', 1, 0)
        pass_probe(s)
        wait_for(lambda: self.link()['up'], 10)
        return s


def link_state(claims):
    """Link states of {rank: (hops, version)}: no port of these nodes is up."""
    return peer('link_state', {1: [{1: rank, 2: hops, 3: 0, 4: Fixed64(9), 5: version}
                                   for rank, (hops, version) in claims.items()]})


LIES = {
    'hello twice': hello('4x4', 1, 0),
    'a body over the limit': struct.pack('>II', 4, 65537) + bytes(100),
    'a head over the limit': struct.pack('>II', 4 * 1024 * 1024 + 1, 0) + bytes(100),
    'no message': peer_frame(b'\x07' * 50),
    'an unknown kind': peer_frame({99: {}}),
    'a head without a check': frame({HEAD['heartbeat']: {}}),
    'a head with another check': peer('heartbeat')[:-1] + bytes([peer('heartbeat')[-1] ^ 1]),
    'the state of nobody': link_state({4000000000: (9, 1)}),
    'a state from nearer than it can be': link_state({10: (2, 1)}),
    'a prepare of nobody': prepare(root=4000000000),
    'a prepare for us': prepare(root=5),
    'a prepare of another torus': prepare(dims='8x8'),
    'a prepare with a path in its id': prepare(id='../../../tmp/x', source='/etc',
                                               target='/tmp/x-%r'),
    'a prepare with the id of another root': prepare(id='2-00000001-1'),
    'a prepare of nothing': peer('prepare', {1: 77, 2: ID, 3: 1, 4: '4x4'}),
    'a prepare twice': 2 * prepare(id='1-00000001-2', timeout_ms=60000),
    'a nack for nobody': peer('nack', {1: 77, 2: ID, 3: 16, 4: 1}),
    'a nack for where it comes from': peer('nack', {1: 77, 2: ID, 3: 1, 4: 1}),
    "a confirmation of nobody's exchange": peer('confirm', {1: 'x' * 10000, 2: b'\1'}),
    'a confirmation by nobody': peer('confirm', {1: '9-00000001-1', 2: b'\x10'}),
    'an outcome for nobody': peer('outcome', {1: '9-00000001-1', 2: 1, 3: 16}),
    'a query of nobody': peer('outcome_query', {1: '9-00000001-1', 2: 16}),
    'a query about nothing': peer('outcome_query', {1: '99-00000001-1', 2: 1}),
}
# These are valid, or refused by the exchange without cost for the link.
ODDITIES = {
    'a prepare with an unknown algorithm': prepare(algorithm='\x1b[2Jx'),
    'a prepare with huge rounds': prepare(block_bytes=1 << 45, round_bytes=1 << 60),
    'a prepare that reads everything': prepare(source='/etc', target='/etc/x-%r'),
    'aborts on nothing': b''.join(
        peer('abort', {1: n, 2: f'1-00000001-{n}', 3: 5, 4: 'x' * 300, 5: n % 20})
        for n in range(1, 1001)),
    'nacks to nothing': b''.join(
        peer('nack', {1: n, 2: f'{r}-00000001-{n}', 3: r, 4: 5, 5: 'x' * 300})
        for n in range(1, 501) for r in (5, 9)),
    'outcome queries': b''.join(peer('outcome_query', {1: f'{n % 16}-00000001-{n}', 2: 1, 3: n})
                                for n in range(1, 501)),
    'outcomes': b''.join(peer('outcome', {1: f'9-00000001-{n}', 2: 1, 3: n % 16})
                         for n in range(1, 501)),
    'an old state of our own': link_state({5: (3, 0)}),
    'heartbeats': peer('heartbeat') * 10000,
}
# These may still arrive for an exchange that was forgotten.
LATE = [
    peer('stepped_data', {1: 9999, 4: 1}, bytes(5000)),
    peer('streamed_data', {1: 9999, 3: b'\0'}, bytes(5000)),
    *(peer(kind, {1: 9999, 2: 5}) for kind in ('ready', 'go', 'round_done', 'round_go', 'commit',
                                             'clear', 'repeated', 'sizes', 'layout')),
    peer('done', {1: 9999, 2: {1: 4000000000}}),
]


@pytest.fixture
def false_neighbour(torus):
    """Afterwards the real neighbour is back, and the torus works."""
    with FalseNeighbour(torus) as it:
        yield it
    still_works_quietly(torus, rank=5)


@pytest.mark.slow  # test_sim_lies sends these lies, and others
@pytest.mark.parametrize('what', LIES)
def test_lies_cost_the_connection(torus, false_neighbour, what):
    with false_neighbour.connect() as s:
        send(s, LIES[what])
        assert until_closed(s)
    wait_for(lambda: not false_neighbour.link()['up'], 20)
    assert false_neighbour.link()['reason']


def test_messages_of_an_exchange_that_is_not_known(torus, false_neighbour):
    """The node ignores any number of them: the connection stays up, and later messages are answered."""
    log = log_from_now(torus, 5)
    with false_neighbour.connect() as s:
        before = connects(torus, 5)
        send(s, b''.join(LATE) * 100 + peer('outcome_query', {1: '5-00000001-1', 2: 1}))
        heads_until(s, lambda head: is_kind(head, 'outcome'))
        assert connects(torus, 5) == before and false_neighbour.link()['up']
        assert wait_logged(log, says := 'ignoring a message about handle 9999').count(says) < 20


@pytest.mark.parametrize('what', ODDITIES)
def test_oddities(torus, false_neighbour, what):
    with false_neighbour.connect() as s:
        send(s, ODDITIES[what])
        finish(s)
        until_closed(s)
    wait_for(lambda: not false_neighbour.link()['up'], 20)
    assert '\x1b' not in torus.node(5).log()
    assert not os.path.exists('/etc/x-5') and not os.path.exists('/tmp/x-5')


def test_the_highest_version_of_a_state(loopback):
    """A false report about a node, with the highest possible version, does not last: only the daemon whose place was
    taken must be restarted."""
    torus = loopback('4x4')
    for version in (1 << 31) - 1, (1 << 32) - 2, (1 << 32) - 1:
        with FalseNeighbour(torus) as it, it.connect() as s:
            send(s, link_state({rank: (hops, version) for rank, hops in
                                ((0, 1), (1, 0), (5, 1), (10, 3))}))
            finish(s)
            until_closed(s)
        still_works_quietly(torus, rank=5)
        torus.node(10).restart()
        still_works_quietly(torus, rank=10)
