"""The protocols of programs, and programs whose protocols differ."""

import json
import re
import socket

import pytest
from support.background import Client
from support.waiting import exchanges, wait_for, wait_logged
from support.wire import (HEAD, HEADER, MINOR, VERSION, Fixed64, connect, fields_of, finish, frame, frames, hello, pass_probe,
                          peer, peer_frame, read_frame, read_key, send, shake_hands, until_closed)
from torus_net import find_program
from torus_net.patience import run

CONTROL = int(re.search(r'#define CONTROL_VERSION (\d+)u', HEADER.read_text())[1])
PROGRAM = int(re.search(r'#define PROGRAM_VERSION (\d+)u', (HEADER.parent / 'program.h').read_text())[1])
FIELDS = {'peer_protocol': VERSION, 'peer_minor': MINOR, 'control_protocol': CONTROL, 'program_protocol': PROGRAM}
TEXT = f'protocols: peer {VERSION}.{MINOR}, control {CONTROL}, program {PROGRAM}'


@pytest.mark.parametrize('program', ['torusd', 'torusctl'])
def test_a_program_tells_its_protocols(program):
    first, second = run([find_program(program), '--version'], 30).stdout.splitlines()
    assert re.fullmatch(program + r' \d+\.\d+\.\d+', first) and second == TEXT


def test_torusctl_tells_them_in_json():
    shown = json.loads(run([find_program('torusctl'), '--version', '--json'], 30).stdout)
    assert shown.items() >= FIELDS.items() and re.fullmatch(r'\d+\.\d+\.\d+', shown['version'])


def test_a_daemon_tells_its_protocols(shared):
    torus = shared('2x2')
    assert torus.json(0, 'status').items() >= FIELDS.items()
    text = torus.ctl(0, 'status', check=True).stdout
    assert re.search(rf'^protocols +{TEXT.partition(": ")[2]}$', text, re.M), text
    wait_logged(torus.node(0).log, f'({TEXT}): node 0 of 2x2')


def test_a_request_of_a_newer_client(shared):
    """It is refused by its number."""
    with connect(shared('2x2').node(0).socket) as s:
        send(s, frame({99: {}, 15: CONTROL}))
        kind, fields, _ = read_frame(s)
    assert kind == 1 and b'unknown request 99: ' in fields[2][0]


@pytest.mark.parametrize('kind', [1, 99])
def test_a_client_of_another_control_protocol(shared, kind):
    """The same holds for a request that only the other protocol has."""
    torus = shared('2x2')
    with connect(torus.node(0).socket) as s:
        send(s, frame({kind: {}, 15: CONTROL + 1}))
        finish(s)
        head, = frames(until_closed(s))
    said = fields_of(fields_of(head)[1][0])[2][0].decode()
    assert f'control protocol {CONTROL + 1}' in said and f' {CONTROL}: install both' in said


@pytest.mark.parametrize('says', [{}, {15: CONTROL}])
def test_a_client_that_may_ask(shared, says):
    """A client of the same protocol, and one from before clients named theirs."""
    with connect(shared('2x2').node(0).socket) as s:
        send(s, frame({1: {}, **says}))
        kind, fields, _ = read_frame(s)
    assert kind == 2 and fields[19] == [CONTROL]


class NewerNeighbour:
    """Node 1 of a ring of three speaks the next protocol: it refuses node 0, and is refused by node 2."""

    def __init__(self, torus):
        self.torus = torus
        host, _, port = torus.node(1).addresses['-0'].rpartition(':')
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((host, int(port)))
        self.listener.listen()
        self.listener.settimeout(60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

    def refuse(self):
        s, _ = self.listener.accept()
        with s:
            s.settimeout(60)
            kind, fields, _ = read_frame(s)
            assert kind == HEAD['hello'] and fields[1] == [VERSION]
            s.sendall(peer('refusal', {1: f'wrong version: node 0 speaks protocol version {VERSION}.{MINOR}, node 1 '
                                          f'speaks version {VERSION + 1}.0'}))

    def dial(self):
        with connect(self.torus.node(2).addresses['-0']) as s:
            send(s, hello('3', 1, 0, version=VERSION + 1, minor=0))
            return frames(until_closed(s))


def link(torus, rank, port):
    return next(link for link in torus.json(rank, 'links')['links'] if link['port'] == port)


def reason(torus, rank, port):
    return link(torus, rank, port)['reason']


def test_a_neighbour_of_another_peer_protocol(loopback):
    """Its links stay down, and both ends say why; other links are not disturbed. Once both ends have the same protocol,
    the links come up by themselves."""
    torus = loopback('3')
    torus.node(1).terminate()
    with NewerNeighbour(torus) as newer:
        newer.refuse()
        wait_for(lambda: f'node 1 speaks version {VERSION + 1}.0' in reason(torus, 0, '+0'), 20)
        heads = newer.dial()
        assert len(heads) == 1 and f'speaks protocol version {VERSION + 1}.0'.encode() in heads[0]
        wait_for(lambda: f'node 1 speaks protocol version {VERSION + 1}.0' in reason(torus, 2, '-0'), 20)
    assert reason(torus, 0, '-0') == '' == reason(torus, 2, '+0')
    torus.node(1).start()
    torus.wait_whole()


@pytest.fixture
def without_node_1(loopback):
    """A ring of three whose node 1 has ended."""
    torus = loopback('3')
    torus.node(1).terminate()
    wait_for(lambda: any(fault.startswith('node 1 is down') for fault in torus.status(2)['faults']), 30)
    yield torus
    torus.node(1).start()
    torus.wait_whole()


@pytest.mark.parametrize('minor', [MINOR - 1, MINOR, MINOR + 1])
def test_a_neighbour_of_the_next_minor_version(without_node_1, minor):
    """Its link comes up, and the other nodes know that it is the oldest. What a newer one sends that this torusd does
    not know is ignored."""
    torus = without_node_1
    with connect(torus.node(2).addresses['-0']) as s:
        shake_hands(s, read_key(torus.run.key), '3', 1, 0, minor=minor)
        pass_probe(s)
        wait_for(lambda: link(torus, 2, '-0')['up'], 20)
        wait_for(lambda: torus.status(2)['least_peer_minor'] == min(minor, MINOR), 20)
        s.sendall(peer_frame({99: {}}))
        if minor > MINOR:
            s.sendall(peer('link_state', {1: [{1: 1, 2: 0, 3: 1, 4: Fixed64(7), 5: 5, 6: minor}]}))
            s.sendall(peer('refusal', {1: 'this is the end'}))
        wait_for(lambda: not link(torus, 2, '-0')['up'], 20)
    wait_for(lambda: torus.status(2)['least_peer_minor'] == MINOR, 20)
    wait_logged(torus.node(2).log, 'this is the end' if minor > MINOR else 'unknown kind')


def test_a_neighbour_that_is_two_minor_versions_newer(without_node_1):
    torus = without_node_1
    with connect(torus.node(2).addresses['-0']) as s:
        send(s, hello('3', 1, 0, minor=MINOR + 2))
        head, = frames(until_closed(s))
    text = f'node 1 speaks protocol version {VERSION}.{MINOR + 2}, node 2 speaks version {VERSION}.{MINOR}'
    assert text.encode() in head
    assert text in reason(torus, 2, '-0')


def test_an_invalid_minor_version():
    result = run([find_program('torusd'), '--protocol-minor', str(MINOR + 1), '--dims', '1', '--rank', '0'], 30)
    assert result.returncode == 2 and f'protocol_minor "{MINOR + 1}" is not' in result.stderr


def least(torus):
    return [torus.status(rank)['least_peer_minor'] for rank in range(len(torus.nodes))]


def test_an_upgrade_node_by_node(loopback):
    """All nodes speak the older minor version, and are restarted one by one with the newer one, each while an exchange
    runs that waits for it. The older version rules until the last node is upgraded."""
    old = f'--protocol-minor={MINOR - 1}'
    torus = loopback('2x2', extra=[old], bw=100)

    def restart(node):
        """Returns whether the exchange was still under way."""
        with Client(torus, '--json', 'exchange', '--block-size', '1MiB', '--repeat', 15, '--on-failure', 'wait',
                    '--timeout', 3600, rank=1) as client:
            wait_for(lambda: exchanges(torus, 1) and exchanges(torus, 1)[0]['state'] == 'running', 60)
            node.terminate()
            if old in node.daemon.command:
                node.daemon.command.remove(old)
            node.start()
            code, out, err = client.end(300)
        assert code == 0, err
        result = json.loads(out)
        assert result['verified'] == 'every byte'
        torus.wait_whole()
        return node.rank == 1 or result.get('reroutes', 0) >= 1

    for node in torus.nodes:
        assert least(torus) == 4 * [MINOR - 1]
        wait_for(lambda: restart(node), 300)  # again, if the exchange was over before
    wait_for(lambda: least(torus) == 4 * [MINOR], 20)
    wait_logged(torus.node(3).log, f'speaks peer protocol {VERSION}.{MINOR - 1}, although it could')
