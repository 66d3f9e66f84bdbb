"""The protocols of programs, and programs whose protocols differ."""

import json
import re
import socket

import pytest
from support.waiting import wait_for
from support.wire import (HEAD, HEADER, VERSION, connect, fields_of, finish, frame, frames, hello, peer, read_frame,
                          send, until_closed)
from torus_net import find_program
from torus_net.patience import run

CONTROL = int(re.search(r'#define CONTROL_VERSION (\d+)u', HEADER.read_text())[1])
PROGRAM = int(re.search(r'#define PROGRAM_VERSION (\d+)u', (HEADER.parent / 'program.h').read_text())[1])
FIELDS = {'peer_protocol': VERSION, 'control_protocol': CONTROL, 'program_protocol': PROGRAM}
TEXT = f'protocols: peer {VERSION}, control {CONTROL}, program {PROGRAM}'


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
    assert f'({TEXT}): node 0 of 2x2' in torus.node(0).log()


@pytest.mark.parametrize('kind', [1, 99])
def test_a_client_of_another_control_protocol(shared, kind):
    """Also if it sends a request that only the other protocol has."""
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
    """Node 1 of a ring of three, of the next protocol: it refuses node 0, and is refused by node 2."""

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
            s.sendall(peer('refusal', {1: f'wrong version: node 0 speaks protocol version {VERSION}, node 1 '
                                          f'speaks version {VERSION + 1}'}))

    def dial(self):
        with connect(self.torus.node(2).addresses['-0']) as s:
            send(s, hello('3', 1, 0, version=VERSION + 1))
            return frames(until_closed(s))


def reason(torus, rank, port):
    return next(link['reason'] for link in torus.json(rank, 'links')['links'] if link['port'] == port)


def test_a_neighbour_of_another_peer_protocol(loopback):
    """Its links stay down, and both ends say why; other links are not disturbed. Once both ends have the same protocol,
    the links come up by themselves."""
    torus = loopback('3')
    torus.node(1).terminate()
    with NewerNeighbour(torus) as newer:
        newer.refuse()
        wait_for(lambda: f'node 1 speaks version {VERSION + 1}' in reason(torus, 0, '+0'), 20)
        heads = newer.dial()
        assert len(heads) == 1 and f'speaks protocol version {VERSION + 1}'.encode() in heads[0]
        wait_for(lambda: f'node 1 speaks protocol version {VERSION + 1}' in reason(torus, 2, '-0'), 20)
    assert reason(torus, 0, '-0') == '' == reason(torus, 2, '+0')
    torus.node(1).start()
    torus.wait_whole()
