"""Overload: many clients, many exchanges, many folders, and nodes that hang. Refusals and delays never cost a link,
and requests without room wait for their start."""

import selectors
import signal
import time
from collections import Counter, namedtuple
from types import SimpleNamespace

import pytest
from support.attacks import connects
from support.background import LongExchange, stopped
from support.memory import MemoryWatch
from support.trees import check_target, make_sources, wait_tidy
from support.waiting import wait_for
from support.wire import connect, fields_of, frame, frames, pass_probe, peer, peer_frame, read_key, shake_hands
from torus_net.patience import Patience

REFUSED = 2              # enum error_code
ERROR, EXCHANGED = 1, 6  # kinds of replies
FLOOD_SECONDS = 3


def spec(algorithm='at2', block_bytes=1, source='', target='', timeout=60, mode=''):
    """An ExchangeRequest: of generated blocks, or of folders."""
    return frame({3: {1: {1: algorithm, 2: mode, 6: 0 if source else block_bytes, 7: source,
                          8: target, 11: int(timeout * 1000)}}})


Answer = namedtuple('Answer', 'rank code text seconds')  # code 0: success


def crowd(torus, requests, within):
    """Runs a client for each (rank, request), all at once. Returns the answers in their order; code 0 is success. All
    answers must arrive within that many seconds."""
    selector = selectors.DefaultSelector()
    began, patience = time.monotonic(), Patience(within)
    answers = [None] * len(requests)
    clients = []
    try:
        for number, (rank, request) in enumerate(requests):
            s = connect(torus.node(rank).socket)
            clients.append(s)
            s.sendall(request)
            s.setblocking(False)
            selector.register(s, selectors.EVENT_READ, [number, rank, b''])
        while None in answers:
            assert not patience.over, f'{answers.count(None)} of {len(answers)} clients got no answer'
            for key, _ in selector.select(patience.pause):
                number, rank, data = key.data
                piece = key.fileobj.recv(65536)
                assert piece, f'node {rank} has closed the connection'
                key.data[2] = data = data + piece
                for head in frames(data):
                    if len(head) > 1 and head[0] >> 3 in (ERROR, EXCHANGED):
                        error = fields_of(fields_of(head)[ERROR][0]) if head[0] >> 3 == ERROR else {}
                        answers[number] = Answer(rank, error.get(1, [0])[0], error.get(2, [b''])[0].decode(),
                                                 time.monotonic() - began)
                        selector.unregister(key.fileobj)
                        break
    finally:
        for s in clients:
            s.close()
        selector.close()
    return answers


def nothing_is_reserved(torus):
    return all(torus.status(node.rank)['memory']['reserved_bytes'] == 0 for node in torus.nodes)


def codes(answers):
    return Counter(answer.code for answer in answers)


@pytest.mark.full
@pytest.mark.slow
def test_refusals_among_many_clients(loopback, tmp_path):
    """32 clients at each of 16 nodes, half of them refused by nodes near and far: each gets its own
    answer, no link closes, and nothing stays reserved."""
    torus = loopback('4x4', data_roots=(str(tmp_path),))
    missing = make_sources(tmp_path, dict.fromkeys(((s, d) for s in range(16) for d in range(16)), 10))
    (tmp_path / 'out-13' / '4').unlink()
    before = connects(torus)
    requests, said = [], []
    for number in range(32):
        for rank in range(16):
            target = f'{tmp_path}/in-{number}-{rank}-%r'
            request, text = (
                (spec('at2'), ''), (spec('direct'), ''),
                (spec(source=f'{tmp_path}/none-%r', target=target), 'No such file or directory'),
                (spec(source=missing, target=target), 'is missing; with --missing-ok'),
                (spec('stream'), ''), (spec('at2', block_bytes=1000), ''),
                (spec(source='/etc', target=target), 'is not below the configured data_roots'),
                (spec(source=missing, target=target), 'is missing; with --missing-ok'))[number % 8]
            requests.append((rank, request))
            said.append(text)
    answers = crowd(torus, requests, 60)
    for answer, text in zip(answers, said):
        assert text in answer.text and (answer.code == 0) == (text == ''), answer
    assert connects(torus) == before
    wait_for(lambda: nothing_is_reserved(torus), 10)
    wait_tidy(torus, tmp_path)


@pytest.mark.full
@pytest.mark.slow
def test_folder_exchanges_at_once(loopback, tmp_path):
    """4 and 16 exchanges of 4 KiB files from as many nodes; then 16 into the same target, of which one succeeds."""
    torus = loopback('4x4', data_roots=(str(tmp_path),))
    sizes = dict.fromkeys(((s, d) for s in range(16) for d in range(16)), 4096)
    source = make_sources(tmp_path, sizes)
    before = connects(torus)
    for count in 4, 16:
        targets = [f'{tmp_path}/in-{count}-{number}-%r' for number in range(count)]
        answers = crowd(torus, [(number * 5 % 16, spec(source=source, target=target))
                                for number, target in enumerate(targets)], 60)
        assert codes(answers) == {0: count}, answers
        for target in targets:
            check_target(target, sizes)
    target = f'{tmp_path}/one-%r'
    answers = crowd(torus, [(rank, spec(source=source, target=target)) for rank in range(16)], 60)
    assert codes(answers) == {0: 1, REFUSED: 15}, answers
    assert all('exists and is not empty' in answer.text for answer in answers if answer.code)
    check_target(target, sizes)
    assert connects(torus) == before
    wait_tidy(torus, tmp_path)


@pytest.mark.full
@pytest.mark.slow
def test_what_does_not_fit_waits(loopback):
    """With little memory, exchanges of large and small blocks all run eventually."""
    torus = loopback('4x4', memory='4MiB')
    before = connects(torus)
    big = [(n % 16, spec(('at2', 'direct', 'stream')[n % 3], 256 << 10)) for n in range(32)]
    beside = [(n % 16, spec('at2', 20000)) for n in range(100)] + [(3, spec('stream', 4 << 20))]
    for requests in big, beside:
        answers = crowd(torus, requests, 60)
        assert codes(answers) == {0: len(requests)}, answers
    assert connects(torus) == before
    wait_for(lambda: nothing_is_reserved(torus), 10)



@pytest.mark.full
@pytest.mark.parametrize('neighbours', [('+0',), ('+0', '-1')], ids=['one', 'two'])
def test_sigterm_while_neighbours_do_not_read(loopback, neighbours):
    """A daemon that ends does not wait for neighbours that will never read."""
    torus = loopback('3x3', extra=['--silence-ms=300000'])  # no link is given up meanwhile
    around = {'+0': 7, '-1': 3}
    with LongExchange(torus, rank=4, algorithm='direct') as client:
        with stopped(*(torus.node(around[name]) for name in neighbours)):
            def full():  # except for heartbeats
                sent = sum(link['tx_bytes'] for link in torus.links(4)['links'])
                time.sleep(0.2)
                return sum(link['tx_bytes'] for link in torus.links(4)['links']) < sent + 1000
            wait_for(full)
            node = torus.node(4)
            node.send_signal(signal.SIGTERM)
            began = time.monotonic()
            assert node.daemon.wait(3) == 0
            print(f'ended after {time.monotonic() - began:.2f} s')
        client.end(60)
    torus.node(4).start()
    torus.wait_whole(40)


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.memory
@pytest.mark.parametrize('kind', ['prepares', 'queries', 'aborts'])
def test_floods_of_a_neighbour(loopback, kind):
    """A neighbour sends messages for some seconds and reads no answers: memory stays bounded, no other link closes, all
    daemons answer."""
    torus = loopback('4x4')
    torus.node(1).terminate()
    wait_for(lambda: any(f.startswith('node 1 is down') for f in torus.status(5)['faults']), 20)
    ranks = [node.rank for node in torus.nodes if node.rank != 1]

    def others():
        return [(rank, link['port'], link['connects']) for rank in ranks
                for link in torus.links(rank)['links'] if link['neighbour'] != 1]

    def message(number):
        name = f'1-00000007-{number}'
        if kind == 'prepares':
            return peer('prepare', {1: number, 2: name, 3: 1, 4: '4x4', 6: 1000, 7: 1,
                                    5: {1: 'at2', 2: 'stepped', 6: 1000, 11: 4000}})
        if kind == 'queries':
            return peer_frame({23: {1: f'5-00000007-{number}', 2: 1}})
        return peer_frame({14: {1: number, 2: name, 3: REFUSED, 4: 'x' * 200, 5: 16}})

    before = others()
    usual = {rank: torus.node(rank).memory()['RssAnon'] for rank in ranks}
    number, over = 0, time.monotonic() + FLOOD_SECONDS
    alive = SimpleNamespace(nodes=[torus.node(rank) for rank in ranks])
    with MemoryWatch(alive) as watch:
        while time.monotonic() < over:
            with connect(torus.node(5).addresses['-0']) as s:
                shake_hands(s, read_key(torus.run.key), '4x4', 1, 0, boot=number + 1)
                pass_probe(s)
                s.settimeout(0.5)
                while time.monotonic() < over:
                    try:
                        s.sendall(b''.join(message(number + i) for i in range(1000)))
                    except OSError:
                        break
                    number += 1000
            assert torus.status(6)['rank'] == 6
    print(number, 'messages;', {rank: (watch.most[rank] - usual[rank]) >> 10 for rank in ranks}, 'KiB')
    assert max(watch.most[rank] - usual[rank] for rank in ranks) < 32 << 20
    assert others() == before
    torus.node(1).start()
    torus.wait_whole(30)
    assert crowd(torus, [(5, spec())], 30)[0].code == 0
