"""Whatever comes from a stranger, a peer or a client costs one connection at most, is logged with a
reason, and disturbs nobody else."""

import os
import random
import re
import select
import struct
import threading
import time

import pytest
from support.background import LongExchange
from support.expect import check_result
from support.waiting import wait_for
from support.wire import (HEAD, Fixed64, connect, finish, frame, frames, hello, message, pass_probe, peer,
                          peer_frame, read_key, send, shake_hands, until_closed, varint)


@pytest.fixture
def torus(shared):
    return shared('4x4')


def still_works(torus, rank=0):
    """Whole again, a right exchange, and no storm of frames going round between the nodes."""
    torus.wait_whole(30)
    check_result(torus.exchange('at2', 30000, rank=rank), '4x4', 'at2', 30000)
    wait_for(lambda: is_quiet(torus), 10, 'the links do not fall silent')


def is_quiet(torus):
    """Nothing but heartbeats on the links, for a moment."""
    def sent():
        return sum(link['tx_bytes'] for node in torus.nodes[::3]
                   for link in torus.links(node.rank)['links'])
    begin, before = time.monotonic(), sent()
    return sent() - before < 1500 + 10000 * (time.monotonic() - begin)


def connects(torus, rank):
    return [link['connects'] for link in torus.links(rank)['links']]


def pids(torus):
    return [node.pid for node in torus.nodes if node.alive]


def log_from_now(torus, rank):
    """A function that gives what the node logs from now on. A stranger may see that it is sent away
    before that is logged."""
    begin = len(torus.node(rank).log())
    return lambda: torus.node(rank).log()[begin:]


ID = '1-00000001-1'


def prepare(id=ID, root=1, dims='4x4', algorithm='at2', block_bytes=100, source='', target='',
            round_bytes=100, mode='stepped', window=1, timeout_ms=1000, without=()):
    spec = {1: algorithm, 2: mode, 6: block_bytes, 7: source, 8: target, 11: timeout_ms}
    more = {8: b''.join(map(varint, without))} if without else {}
    return peer('prepare', {1: 77, 2: id, 3: root, 4: dims, 5: spec, 6: round_bytes, 7: window, **more})


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
        'a head that is no message': frame(rng.randbytes(60)),
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
    'its torus is no text': (hello(b'\x1b[31m\n4x4' * 20, 1, 0), 'is in a torus'),
    'its version is another': (hello('4x4', 1, 0, version=99), 'version 99'),
    'it says nothing': (peer('hello'), 'version 0'),
}


@pytest.mark.parametrize('what', garbage())
def test_garbage_on_a_peer_port(torus, what):
    """At the port `-0` of node 10, whose neighbour there is node 6. Of so many, only the first reasons are
    logged: tests that look for theirs use another port."""
    before = connects(torus, 10), pids(torus)
    with connect(torus.node(10).addresses['-0']) as s:
        send(s, garbage()[what])
        finish(s)
        heads = frames(until_closed(s))
    assert len(heads) <= 1  # a refusal
    assert all(head.startswith(varint(HEAD['refusal'] << 3 | 2)) for head in heads)
    assert (connects(torus, 10), pids(torus)) == before
    assert torus.status()['whole'] is True
    log = torus.node(10).log()
    assert '\x1b' not in log and '\nfake' not in log
    still_works(torus, rank=10)


@pytest.mark.parametrize('how', STRANGERS)
def test_strangers_are_turned_away_by_name(torus, how):
    data, said = STRANGERS[how]
    before = connects(torus, 5), pids(torus)
    log = log_from_now(torus, 5)
    with connect(torus.node(5).addresses['-0']) as s:
        send(s, data)
        heads = frames(until_closed(s))
    assert len(heads) == 1 and said.encode() in heads[0], heads
    wait_for(lambda: re.search(f'a connection that is not the neighbour was rejected: .*{re.escape(said)}', log()))
    assert '\x1b' not in log()
    assert (connects(torus, 5), pids(torus)) == before
    still_works(torus, rank=5)


def test_who_says_nothing_is_sent_away_in_time(torus):
    """Also who says it drop by drop: a hello that would take half a minute."""
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
    wait_for(lambda: 'did not say hello within' in log())
    still_works(torus, rank=5)


def test_a_flood_of_connections(torus):
    """Two hundred that say nothing, at a port whose neighbour is connected."""
    crowd = []
    try:
        for _ in range(200):
            crowd.append(connect(torus.node(5).addresses['-0'], 30))
        assert torus.status(5)['whole'] is True
        still_works(torus, rank=5)
    finally:
        for s in crowd:
            s.close()
    still_works(torus)
    assert len(os.listdir(f'/proc/{torus.node(5).pid}/fd')) < 100 or wait_for(
        lambda: len(os.listdir(f'/proc/{torus.node(5).pid}/fd')) < 100, 20)


def test_a_neighbour_comes_back_through_a_flood(loopback):
    """Strangers hold connections without an end, but the neighbour still gets in."""
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
        still_works(torus, rank=1)
    finally:
        over.set()
        for thread in crowd:
            thread.join()
    still_works(torus)


def test_a_running_exchange_is_not_disturbed(torus):
    """Garbage, strangers and floods at every peer port and control socket."""
    before, over = [connects(torus, node.rank) for node in torus.nodes], threading.Event()

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
    assert [connects(torus, node.rank) for node in torus.nodes] == before


# --- a neighbour that has the cluster key, and then lies ---

class FalseNeighbour:
    """In the place of node 1 of a 4x4, as node 5 sees it at its port -0; the real one has ended."""

    def __init__(self, torus):
        self.torus = torus
        self.version = 1 << 20
        torus.node(1).terminate()
        # Of all its links, not only of this one: news of another would end what begins here.
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
    """Of {rank: (hops, version)}, that none of its ports is up."""
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
# These are taken as what they say, or refused in the exchange's own way.
ODDITIES = {
    'a prepare with an unknown algorithm': prepare(algorithm='\x1b[2Jx'),
    'a prepare with huge rounds': prepare(block_bytes=1 << 45, round_bytes=1 << 60),
    'a prepare that reads everything': prepare(source='/etc', target='/etc/x-%r'),
    'verdicts on nothing': b''.join(
        peer('verdict', {1: n, 2: f'1-00000001-{n}', 3: 5, 4: 'x' * 300, 5: n % 20})
        for n in range(1000)),
    'objections to nothing': b''.join(
        peer('objection', {1: n, 2: f'{r}-00000001-{n}', 3: r, 4: 5, 5: 'x' * 300})
        for n in range(500) for r in (5, 9)),
    'outcome queries': b''.join(peer('outcome_query', {1: f'{n % 16}-00000001-{n}', 2: 1, 3: n})
                                for n in range(500)),
    'outcomes': b''.join(peer('outcome', {1: f'9-00000001-{n}', 2: 1, 3: n % 16})
                         for n in range(500)),
    'an old state of our own': link_state({5: (3, 0)}),
    'heartbeats': peer('heartbeat') * 10000,
}
# Of an exchange that has been forgotten these may still be on their way.
LATE = [
    peer('stepped_data', {1: 9999, 4: 1}, bytes(5000)),
    peer('streamed_data', {1: 9999, 3: b'\0'}, bytes(5000)),
    *(peer(kind, {1: 9999, 2: 5}) for kind in ('ready', 'go', 'round_done', 'round_go', 'commit',
                                             'clear', 'repeated', 'sized', 'layout')),
    peer('done', {1: 9999, 2: {1: 4000000000}}),
]


@pytest.fixture
def false_neighbour(torus):
    with FalseNeighbour(torus) as it:
        yield it


@pytest.mark.slow  # test_sim_lies tells them, and others
@pytest.mark.parametrize('what', LIES)
def test_lies_cost_the_connection(torus, false_neighbour, what):
    with false_neighbour.connect() as s:
        send(s, LIES[what])
        assert until_closed(s)
    wait_for(lambda: not false_neighbour.link()['up'], 20)
    assert false_neighbour.link()['reason']
    torus.node(1).start()
    still_works(torus, rank=5)
    torus.node(1).terminate()


def test_messages_of_an_exchange_that_is_not_known(torus, false_neighbour):
    """They are ignored, however many: the connection stays up and answers what comes after them."""
    log = log_from_now(torus, 5)
    with false_neighbour.connect() as s:
        before = connects(torus, 5)
        send(s, b''.join(LATE) * 100 + peer('outcome_query', {1: '5-00000001-1', 2: 1}))
        data = b''
        while not any(head.startswith(varint(HEAD['outcome'] << 3 | 2)) for head in frames(data)):
            piece = s.recv(65536)
            assert piece, frames(data)
            data += piece
        assert connects(torus, 5) == before and false_neighbour.link()['up']
        assert 0 < log().count('ignoring a message of exchange 9999') < 20
    torus.node(1).start()
    still_works(torus, rank=5)
    torus.node(1).terminate()


def pieces(*places, round=0, body=0, sizes=(), fields=None):
    """A data frame without steps."""
    packed = {number: b''.join(map(varint, values))
              for number, values in ((3, places), (4, sizes)) if values}
    return peer('streamed_data', {1: 77, 2: round, **packed, **(fields or {})}, bytes(body))


# Of an exchange around the other links of node 1, which are down: blocks of two rounds, both under way,
# of 12 pieces each. Node 5 does not look at what is for others.
PIECE = 256
ROUND = 12 * PIECE
ONLY_LINK = peer('link_state', {1: {1: 1, 2: 0, 3: 1, 4: Fixed64(1), 5: 1 << 20}})
OTHER_LINKS = {'0:+1': 1, '1:+1': 3, '13:+0': 26}
STREAMED = {
    'no piece': (pieces(body=50), 'a frame without pieces'),
    'a piece that is none': (pieces(5000, body=50), 'piece 5000 of a channel that has'),
    'a piece twice': (pieces(0, 0, body=2 * PIECE), 'has arrived already'),
    'a piece of nothing': (pieces(0), 'comes without a byte'),
    'bytes of no piece': (pieces(0, 1, body=2 * PIECE + 1), '1 byte more than'),
    'part of a piece that is not the last': (pieces(0, 1, body=PIECE - 1), '1 byte less than'),
    'sizes that all know': (pieces(0, body=50, sizes=(50,)), '1 size more than pieces begin in it'),
    'a round that is not under way': (pieces(0, round=2, body=50), 'unexpected data in this state'),
    'thousands of pieces': (pieces(*[0] * 20000, body=2 * PIECE), 'has arrived already'),
    'data of a step': (peer('stepped_data', {1: 77, 4: 1}, bytes(50)), 'does not run in steps'),
    'a clear': (peer('clear', {1: 77}), 'does not run in steps'),
}


def know_the_links(torus):
    """All but node 1: that the one to node 5 is its only link."""
    def known(rank):
        faults = torus.status(rank)['faults']
        return len(faults) == len(OTHER_LINKS) and all(
            any(fault.startswith(f'link {link} ') for fault in faults) for link in OTHER_LINKS)
    return all(known(rank) for rank in range(16) if rank != 1)


@pytest.mark.slow  # fuzz_peer, and the engines' own tests
@pytest.mark.parametrize('what', STREAMED)
def test_lies_in_a_streaming_exchange(torus, false_neighbour, what):
    """Node 5 and those behind it are ready, and the false root sends what it must not."""
    data, said = STREAMED[what]
    with false_neighbour.connect() as s:
        send(s, ONLY_LINK)
        wait_for(lambda: know_the_links(torus), 20)
        send(s, prepare(id=f'1-00000001-{100 + list(STREAMED).index(what)}', algorithm='auto',
                        mode='streaming', window=2, block_bytes=2 * ROUND, round_bytes=ROUND,
                        timeout_ms=60000, without=OTHER_LINKS.values()))
        heads = b''
        while not any(head.startswith(varint(HEAD['ready'] << 3 | 2)) for head in frames(heads)):
            piece = s.recv(65536)
            assert piece, frames(heads)
            heads += piece
        send(s, data)
        until_closed(s)
    wait_for(lambda: not false_neighbour.link()['up'], 20)
    assert said in false_neighbour.link()['reason']
    torus.node(1).start()
    wait_for(lambda: not any(x['state'] in ('ready', 'running') for rank in (4, 5, 6, 9)
                             for x in torus.status(rank)['exchanges']), 20)
    still_works(torus, rank=5)
    torus.node(1).terminate()


@pytest.mark.parametrize('what', ODDITIES)
def test_oddities(torus, false_neighbour, what):
    with false_neighbour.connect() as s:
        send(s, ODDITIES[what])
        finish(s)
        until_closed(s)
    wait_for(lambda: not false_neighbour.link()['up'], 20)
    assert '\x1b' not in torus.node(5).log()
    assert not os.path.exists('/etc/x-5') and not os.path.exists('/tmp/x-5')
    torus.node(1).start()
    still_works(torus, rank=5)
    torus.node(1).terminate()


def test_the_highest_version_of_a_state(loopback):
    """A false word about a node, with the highest version there is, does not stay: no daemon needs
    to be restarted but the one that was not there while its place was taken."""
    torus = loopback('4x4')
    for version in (1 << 31) - 1, (1 << 32) - 2, (1 << 32) - 1:
        with FalseNeighbour(torus) as it, it.connect() as s:
            send(s, link_state({rank: (hops, version) for rank, hops in
                                ((0, 1), (1, 0), (5, 1), (10, 3))}))
            finish(s)
            until_closed(s)
        still_works(torus, rank=5)
        torus.node(10).restart()
        still_works(torus, rank=10)


def calibration(id, version, replaced=()):
    def double(value):
        return Fixed64(struct.unpack('<Q', struct.pack('<d', value))[0])
    return peer('calibration', {
        1: version, 2: 1700000000, 3: double(1e-6), 4: double(1e-6), 5: double(1e9),
        6: Fixed64(id), 7: b''.join(struct.pack('<Q', old) for old in replaced)})


@pytest.mark.slow
def test_the_highest_version_of_a_calibration(loopback):
    """It is taken, and kept on disk; what is said at any node replaces it, also after a restart."""
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
    still_works(torus, rank=5)


@pytest.mark.memory
def test_questions_without_reading_the_answers(torus, false_neighbour):
    """Its own connection is what it costs, when it has taken nothing for a while."""
    node = torus.node(5)
    questions = b''.join(peer('outcome_query', {1: f'5-00000001-{n}', 2: 1}) for n in range(1000))
    before = node.memory()['RssAnon']
    with false_neighbour.connect() as s:
        s.setblocking(False)
        sent = 0
        while false_neighbour.link()['up']:  # until it is closed no more are read than are answered
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
    torus.node(1).start()
    still_works(torus, rank=5)
    torus.node(1).terminate()


@pytest.mark.slow  # fuzz_peer
def test_random_frames_after_the_hello(torus, false_neighbour):
    """Well-formed messages of all kinds with random fields, some bodies, some bits turned over."""
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
    torus.node(1).start()
    still_works(torus, rank=5)
    still_works(torus, rank=1)
    torus.node(1).terminate()


# --- the control socket ---

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
    assert heads and heads[-1].startswith(varint(1 << 3 | 2)), 'no error was sent'
    wait_for(lambda: 'a control client was rejected' in log())
    still_works(torus, rank=5)


@pytest.mark.parametrize('what', TRUNCATED)
def test_truncated_requests(torus, what):
    with connect(torus.node(5).socket) as s:
        send(s, TRUNCATED[what])
        finish(s)
        assert until_closed(s) == b''
    still_works(torus, rank=5)


def request(torus, fields, rank=5):
    """What a daemon answers to one request, as the bytes of the last frame's head."""
    with connect(torus.node(rank).socket, 30) as s:
        send(s, frame(fields))
        data = b''
        while True:
            piece = s.recv(65536)
            assert piece, 'closed without an answer'
            data += piece
            for head in frames(data):
                if len(head) > 1 and head[0] >> 3 not in (4, 5):  # accepted, progress
                    return head


@pytest.mark.parametrize('spec,said', [
    ({1: 'magic', 6: 1}, b'magic'),
    ({1: '', 6: 1}, b'algorithm'),
    ({1: 'at2', 6: (1 << 64) - 1}, b'blocks are larger than'),
    ({1: 'at2', 7: 'relative', 8: 'relative'}, b'absolute'),
    ({1: 'at2', 7: '/tmp/x'}, b'target'),
    ({1: 'at2', 8: '/tmp/x'}, b'source'),
    # Both, as either may be looked at first.
    ({1: 'at2', 7: '/' + 'x' * 5000, 8: '/' + 'x' * 5000}, b'path'),
    ({1: 'at2', 7: '/tmp/%q', 8: '/tmp/%q'}, b'%'),
    ({1: 'at2', 7: '/tmp/x', 8: '/tmp/\x1b[2J'}, b''),
    ({1: 'x' * 60000, 6: 1}, b'algorithm'),
])
def test_requests_that_torusctl_would_not_send(torus, spec, said):
    head = request(torus, {3: {1: spec}})
    assert head[0] >> 3 == 1 and said in head, head
    still_works(torus, rank=5)


def test_two_requests_on_one_connection(torus):
    """A second one in the middle of an exchange is refused; one after another is welcome."""
    exchange = frame({3: {1: {1: 'at2', 6: 1 << 20}}})
    with connect(torus.node(5).socket, 30) as s:
        send(s, exchange + frame({1: {}}))
        data = b''
        while not any(head[0] >> 3 == 6 for head in frames(data)):
            piece = s.recv(65536)
            assert piece
            data += piece
        assert any(head[0] >> 3 == 1 and b'one request at a time' in head for head in frames(data))
        send(s, frame({1: {}}))
        count = len(frames(data))
        while len(frames(data)) == count:
            data += s.recv(65536)
        assert frames(data)[-1][0] >> 3 == 2
    still_works(torus, rank=5)


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
    still_works(torus, rank=5)
    wait_for(lambda: len(os.listdir(f'/proc/{torus.node(5).pid}/fd')) < 60, 20)


@pytest.mark.memory
def test_memory_does_not_grow(torus):
    """Thousands of strangers and refused clients later, the daemon needs no more than before."""
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


def test_message_encoding():
    """Of these tests' own encoder: the examples of protobuf's documentation."""
    assert message({1: 150}) == b'\x08\x96\x01'
    assert message({2: 'testing'}) == b'\x12\x07testing'
    assert message({3: {1: 150}}) == b'\x1a\x03\x08\x96\x01'
