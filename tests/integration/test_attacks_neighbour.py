"""Any bytes of a neighbour that has the cluster key and lies cost at most one connection, are logged with a reason,
and do not disturb others."""

import os
import random
import select
import struct

import pytest
from support.attacks import ID, connects, log_from_now, prepare, still_works_quietly
from support.waiting import wait_for, wait_logged
from support.wire import (HEAD, Fixed64, connect, finish, frame, heads_until, hello, is_kind, pass_probe, peer, peer_frame,
                          read_key, send, shake_hands, until_closed, varint)


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
    'an objection for nobody': peer('objection', {1: 77, 2: ID, 3: 16, 4: 1}),
    'an objection for where it comes from': peer('objection', {1: 77, 2: ID, 3: 1, 4: 1}),
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
    'verdicts on nothing': b''.join(
        peer('verdict', {1: n, 2: f'1-00000001-{n}', 3: 5, 4: 'x' * 300, 5: n % 20})
        for n in range(1, 1001)),
    'objections to nothing': b''.join(
        peer('objection', {1: n, 2: f'{r}-00000001-{n}', 3: r, 4: 5, 5: 'x' * 300})
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
                                             'clear', 'repeated', 'sized', 'layout')),
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


def pieces(*places, round=0, body=0, sizes=(), fields=None):
    """A data frame of a streaming exchange."""
    packed = {number: b''.join(map(varint, values))
              for number, values in ((3, places), (4, sizes)) if values}
    return peer('streamed_data', {1: 77, 2: round, **packed, **(fields or {})}, bytes(body))


# An exchange that avoids the other links of node 1, which are down: blocks of two overlapping rounds, with 12 pieces
# each. Node 5 does not check blocks for other nodes.
PIECE = 256
ROUND = 12 * PIECE
ONLY_LINK = peer('link_state', {1: {1: 1, 2: 0, 3: 1, 4: Fixed64(1), 5: 1 << 20}})
OTHER_LINKS = {'0:+1': 2, '1:+1': 6, '13:+0': 52}  # each as node * ports + port
STREAMED = {
    'no piece': (pieces(body=50), 'a frame without pieces'),
    'a piece that is none': (pieces(5000, body=50), 'no piece 5000: this channel has'),
    'a piece twice': (pieces(0, 0, body=2 * PIECE), 'has arrived before'),
    'a piece of nothing': (pieces(0), 'the frame has no byte of it'),
    'bytes of no piece': (pieces(0, 1, body=2 * PIECE + 1), '1 byte more than'),
    'part of a piece that is not the last': (pieces(0, 1, body=PIECE - 1), '1 byte less than'),
    'sizes that all know': (pieces(0, body=50, sizes=(50,)), '1 size more than pieces that begin in it'),
    'a round that is not under way': (pieces(0, round=2, body=50), 'unexpected data in this state'),
    'thousands of pieces': (pieces(*[0] * 20000, body=2 * PIECE), 'has arrived before'),
    'data of a step': (peer('stepped_data', {1: 77, 4: 1}, bytes(50)), 'does not run in steps'),
    'a clear': (peer('clear', {1: 77}), 'does not run in steps'),
}


def know_the_links(torus):
    """All nodes except node 1 know that node 1 has only its link to node 5."""
    def known(rank):
        faults = torus.status(rank)['faults']
        return len(faults) == len(OTHER_LINKS) and all(
            any(fault.startswith(f'link {link} ') for fault in faults) for link in OTHER_LINKS)
    return all(known(rank) for rank in range(16) if rank != 1)


@pytest.mark.slow  # fuzz_peer, and the engines' own tests
@pytest.mark.parametrize('what', STREAMED)
def test_lies_in_a_streaming_exchange(torus, false_neighbour, what):
    """Node 5 and the nodes behind it are ready, and the false root sends invalid frames."""
    data, said = STREAMED[what]
    with false_neighbour.connect() as s:
        send(s, ONLY_LINK)
        wait_for(lambda: know_the_links(torus), 20)
        send(s, prepare(id=f'1-00000001-{100 + list(STREAMED).index(what)}', algorithm='auto',
                        mode='streaming', window=2, block_bytes=2 * ROUND, round_bytes=ROUND,
                        timeout_ms=60000, without=OTHER_LINKS.values()))
        heads_until(s, lambda head: is_kind(head, 'ready'))
        send(s, data)
        until_closed(s)
    wait_for(lambda: not false_neighbour.link()['up'], 20)
    assert said in false_neighbour.link()['reason']
    wait_for(lambda: not any(x['state'] in ('ready', 'running') for rank in (4, 5, 6, 9)
                             for x in torus.status(rank)['exchanges']), 20)


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


def calibration(id, version, replaced=()):
    def double(value):
        return Fixed64(struct.unpack('<Q', struct.pack('<d', value))[0])
    return peer('calibration', {
        1: version, 2: 1700000000, 3: double(1e-6), 4: double(1e-6), 5: double(1e9),
        6: Fixed64(id), 7: b''.join(struct.pack('<Q', old) for old in replaced)})


@pytest.mark.full
@pytest.mark.slow
def test_the_highest_version_of_a_calibration(loopback):
    """The calibration is accepted and kept on disk. A calibration at any node replaces it, also after a restart."""
    torus = loopback('4x4')

    def measured(rank):
        return torus.status(rank)['calibration']['measured_at'] is not None

    for version in (1 << 32) - 2, (1 << 32) - 1:
        with FalseNeighbour(torus) as it, it.connect() as s:
            send(s, calibration(version << 32, version, range(1, 17)))
            wait_for(lambda: all(measured(rank) for rank in range(16) if rank != 1), 10)
            finish(s)
            until_closed(s)
        torus.wait_whole(30)
        torus.node(12).restart()
        torus.wait_whole(30)
        assert measured(12)
        assert torus.ctl(12, 'calibrate', '--reset').returncode == 0
        wait_for(lambda: not any(measured(rank) for rank in range(16)), 10)
    still_works_quietly(torus, rank=5)


@pytest.mark.full  # test_router_queues, by the daemon's own clock
@pytest.mark.memory
def test_questions_without_reading_the_answers(torus, false_neighbour):
    """The attack costs the attacker's connection, once it has read nothing for a while."""
    node = torus.node(5)
    questions = b''.join(peer('outcome_query', {1: f'5-00000001-{n}', 2: 1}) for n in range(1, 1001))
    before = node.memory()['RssAnon']
    with false_neighbour.connect() as s:
        s.setblocking(False)
        sent = 0
        while false_neighbour.link()['up']:  # until then, the daemon reads no more than it answers
            for _ in range(100):
                if not select.select([], [s], [], 1)[1]:
                    break
                try:
                    sent += s.send(questions)
                except ConnectionError:
                    break
            assert sent < 100_000_000, 'it takes any number of questions'
    wait_for(lambda: 'has read nothing for' in false_neighbour.link()['reason'], 20)
    assert node.memory()['RssAnon'] - before < 20 << 20


@pytest.mark.full  # fuzz_peer plays many more
@pytest.mark.slow
def test_random_frames_after_the_hello(torus, false_neighbour):
    """Well-formed messages of all kinds with random fields, some with bodies, some with flipped bits."""
    rng = random.Random('frames')
    numbers = [0, 1, 2, 5, 15, 16, 77, 127, 128, 65535, 65536, 1 << 31, (1 << 32) - 1,
               (1 << 64) - 1]
    texts = ['', '4x4', ID, 'at2', 'direct', 'stepped', '/', '%', 'x' * 5000, '\0', '\udcff'.encode(
        'utf-8', 'surrogateescape'), '../..']

    def field(depth=0):
        kind = rng.randrange(4 if depth < 2 else 3)
        if kind == 0:
            return rng.choice(numbers)
        if kind == 1:
            return rng.choice(texts)
        if kind == 2:
            return Fixed64(rng.choice(numbers))
        return {rng.randrange(1, 7): field(depth + 1) for _ in range(rng.randrange(5))}

    # The fields that every kind has, with the right types, most of the time.
    ints = {'stepped_data': (1, 2, 3, 4, 5), 'streamed_data': (1, 2), 'ready': (1,),
            'go': (1, 2, 3), 'round_done': (1, 2), 'round_go': (1, 2), 'commit': (1,), 'done': (1,),
            'verdict': (1, 3, 5), 'objection': (1, 3, 4), 'outcome_query': (2,), 'outcome': (2, 3),
            'prepare': (1, 3, 6, 7), 'hello': (1, 3, 4), 'clear': (1, 2, 3, 4, 5),
            'repeated': (1, 2, 3), 'sized': (1, 2), 'layout': (1, 2, 3, 4), 'confirm': (2,),
            'calibration': (1, 2)}
    strings = {'prepare': (2, 4), 'verdict': (2, 4), 'objection': (2, 5), 'confirm': (1, 3),
               'outcome': (1,), 'outcome_query': (1,), 'refusal': (1,), 'hello': (2,)}
    spec = {'ints': (3, 4, 6, 9, 10, 11), 'strings': (1, 2, 5, 7, 8)}
    for _ in range(300):
        with false_neighbour.connect() as s:
            for _ in range(5):
                kind = rng.choice(list(HEAD))
                fields = {n: rng.choice(numbers) for n in ints.get(kind, ())}
                fields.update({n: rng.choice(texts) for n in strings.get(kind, ())})
                if kind == 'prepare':
                    fields[5] = {n: rng.choice(numbers) for n in spec['ints']}
                    fields[5].update({n: rng.choice(texts) for n in spec['strings']})
                if rng.random() < 0.3:
                    fields[rng.randrange(1, 13)] = field()
                if kind == 'link_state':
                    fields = {1: {1: rng.choice(numbers), 2: rng.randrange(20),
                                  3: rng.choice(numbers), 5: rng.choice(numbers)}}
                body = rng.randbytes(rng.choice((0, 0, 1, 1000, 65536)))
                data = bytearray(peer(kind, fields, body))
                if rng.random() < 0.2:
                    data[rng.randrange(8, len(data))] ^= 1 << rng.randrange(8)
                if not send(s, data):
                    break
            if rng.random() < 0.5:
                finish(s)
        wait_for(lambda: not false_neighbour.link()['up'], 20)
