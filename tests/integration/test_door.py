"""Only neighbours with the cluster key may join."""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import threading

import pytest
from torus_net import LoopbackTorus
from torus_net.patience import Patience, communicate, run

from support.attacks import log_from_now
from support.cable import Cable
from support.errors import assert_refused
from support.expect import check_result
from support.memory import MemoryWatch
from support.waiting import wait_for, wait_logged
from support.wire import (DIALLER, HEAD, connect, fields_of, frames, hello, key_id, peer, proof_digest, read_frame,
                          read_key, send, shake_hands, until_closed)


def make_key(torus, path):
    subprocess.run([torus.torusctl, 'key', 'generate', str(path)], check=True, capture_output=True)
    return path


def link(torus, rank, port='-0'):
    return next(one for one in torus.links(rank)['links'] if one['port'] == port)


def refused(torus, rank, text):
    """Waits until node `rank` has logged a refusal with this text."""
    wait_logged(torus.node(rank).log, re.compile(text))


@contextlib.contextmanager
def one_node_with(torus, rank, *options):
    """Restarts a node with more options for a `with` block."""
    node = torus.node(rank)
    node.terminate()
    before = node.daemon.command
    node.daemon.command = [*before, *map(str, options)]
    try:
        node.start()
        yield
    finally:
        node.terminate()
        node.daemon.command = before
        node.start()
        torus.wait_whole(30)


# --- the key file ---

def test_keys_are_made_and_their_ids_shown(shared, tmp_path):
    torus, path = shared('2x2'), tmp_path / 'key'
    made = json.loads(torus.ctl(0, '--json', 'key', 'generate', path, check=True).stdout)
    assert path.stat().st_mode & 0o7777 == 0o600
    assert made == json.loads(torus.ctl(0, '--json', 'key', 'id', path, check=True).stdout)
    assert made['key'] == key_id(read_key(path)).hex()
    before = path.read_bytes()
    assert_refused(torus.ctl(0, '--json', 'key', 'generate', path), 'refused')
    assert path.read_bytes() == before
    assert torus.ctl(0, 'key').returncode == torus.ctl(0, 'key', 'steal', path).returncode == 2
    assert all(one['key'] == key_id(read_key(torus.run.key)).hex() and one['security'] == 'proved'
               for node in torus.nodes for one in torus.links(node.rank)['links'])


def test_a_key_that_cannot_be_written_leaves_no_file(shared, tmp_path):
    torus, path = shared('2x2'), tmp_path / 'key'
    # Its output goes into a pipe, which has no size.
    result = subprocess.run(['prlimit', '--fsize=0', '--', torus.torusctl, '--json', 'key', 'generate', str(path)],
                            capture_output=True, text=True)
    assert_refused(result, 'io')
    assert not path.exists()


@pytest.mark.parametrize('mode', (0o640, 0o604))
def test_a_daemon_refuses_a_key_that_others_can_read(shared, tmp_path, mode):
    torus = shared('2x2')
    path = make_key(torus, tmp_path / 'key')
    path.chmod(mode)
    result = run([torus.torusd, '--dims', '1x1', '--rank', '0', '--key-file', str(path),
                  '--control', str(tmp_path / 'sock'), '--state-dir', str(tmp_path)], 20)
    assert result.returncode == 1
    assert f'{path} has mode {mode:04o}' in result.stderr and 'chmod 600' in result.stderr
    result = torus.ctl(0, '--json', 'key', 'id', path)
    assert_refused(result, 'refused')
    assert f'{mode:04o}' in result.stderr


# --- neighbours ---

def test_another_key_is_refused_by_name_on_both_sides(loopback, tmp_path):
    torus = loopback('2x2')
    mine, other = key_id(read_key(torus.run.key)).hex(), make_key(torus, tmp_path / 'other')
    theirs = key_id(read_key(other)).hex()
    with one_node_with(torus, 3, '--key-file', other):
        for neighbour in 1, 2:
            refused(torus, neighbour, f'(refused by .*wrong key|wrong key: node 3 has the cluster key {theirs}, '
                                      f'node {neighbour} has {mine})')
        refused(torus, 3, f'wrong key: node \\d has the cluster key {mine}, node 3 has {theirs}')
        refused(torus, 3, 'refused by .*wrong key')
        wait_for(lambda: torus.status(0)['whole'] is False)
        assert not any(one['up'] for one in torus.links(3)['links'])


def test_a_node_without_a_key_is_refused_by_name_on_both_sides(loopback):
    torus = loopback('2x2')
    with one_node_with(torus, 3, '--key-file', ''):
        refused(torus, 3, r'no key: node \d has a cluster key, node 3 has none \(key_file\)')
        refused(torus, 3, r'refused by .*no key: node 3 has no cluster key')
        for neighbour in 1, 2:
            refused(torus, neighbour, r'no key: node 3 has no cluster key, node \d requires one')
            refused(torus, neighbour, r'refused by .*no key')
        wait_logged(torus.node(3).log, 'anybody who reaches a port of this node can speak to it')


def test_without_keys_everything_is_open(loopback):
    torus = loopback('2x2', key=False)
    check_result(torus.exchange('direct', 10000), '2x2', 'direct', 10000)
    assert {one['security'] for one in torus.links(0)['links']} == {'open'}


def test_the_key_is_changed_while_an_exchange_runs(loopback, tmp_path):
    """The key changes on all nodes, one after another, with a restart of a node at every stage: its neighbours have
    the key of the stage before or after."""
    folders = [tmp_path / str(rank) for rank in range(4)]

    def options(rank):
        return ['--key-file', folders[rank] / 'key', '--second-key-file', folders[rank] / 'second']

    old, new = (make_key(LoopbackTorus('2x2'), tmp_path / name) for name in ('old', 'new'))
    for folder in folders:
        folder.mkdir()
        shutil.copy(old, folder / 'key')
    torus = loopback('2x2', key=False, extra=options)

    def reread(rank, says):
        log = log_from_now(torus, rank)
        torus.node(rank).daemon.send_signal(signal.SIGHUP)
        wait_logged(log, says)

    def to_both(folder):
        shutil.copy(new, folder / 'second')

    def to_new(folder):
        (folder / 'key').rename(folder / 'third')
        (folder / 'second').rename(folder / 'key')
        (folder / 'third').rename(folder / 'second')

    def to_new_only(folder):
        (folder / 'second').unlink()

    ids = [key_id(read_key(key)).hex() for key in (old, new)]
    before = [[one['connects'] for one in torus.links(rank)['links']] for rank in range(4)]
    stages = ((to_both, f'{ids[0]}, second key {ids[1]} accepted'),
              (to_new, f'{ids[1]}, second key {ids[0]} accepted'),
              (to_new_only, f'cluster key {ids[1]}; links'))
    running = subprocess.Popen([torus.torusctl, '--socket', str(torus.run.socket(0)), '--json', 'exchange',
                                '--block-size', '64KiB', '--repeat', '100000', '--timeout', '3000'],
                               stdout=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: any(x['state'] == 'running' for x in torus.status(0)['exchanges']))
        for stage, says in stages:
            for rank in range(4):
                stage(folders[rank])
                reread(rank, says)
        assert running.poll() is None
        after = [[one['connects'] for one in torus.links(rank)['links']] for rank in range(4)]
        assert after == before  # no link has gone down
        assert {one['key'] for one in torus.links(0)['links']} == {ids[0]}
        wait_logged(torus.node(0).log, 'is no longer accepted')
    finally:
        running.send_signal(signal.SIGINT)
        communicate(running, Patience(60))
    # Back to the old key, with restarts now: at any time two neighbours have a key in common.
    old, new = new, old
    ids.reverse()
    for stage, says in stages:
        for rank in range(4):
            stage(folders[rank])
            torus.node(rank).terminate()
            torus.node(rank).start()
            torus.wait_whole(30)
    assert {one['key'] for node in torus.nodes for one in torus.links(node.rank)['links']} == {ids[1]}
    # The new key cannot be read: the daemon goes on with the old one.
    (folders[0] / 'key').chmod(0o644)
    reread(0, 'settings were not read again')
    check_result(torus.exchange('direct', 1000), '2x2', 'direct', 1000)


# --- strangers at the port -0 of node 5, whose neighbour there is node 1 ---

def recorded(torus):
    """The recorded bytes of both directions when the link between node 1 and node 5 comes up."""
    node = torus.node(1)
    with Cable(torus.node(5).addresses['-0'], record=True) as cable:
        with one_node_with(torus, 1, f'--port=+0={cable.address}'):
            torus.wait_whole(30)
            heard = dict(cable.heard)
    assert node.alive
    return heard


def first_frames(data, count):
    """The first recorded frames, as bytes."""
    end = 0
    for _ in range(count):
        end += 8 + int.from_bytes(data[end:end + 4], 'big') + int.from_bytes(data[end + 4:end + 8], 'big')
    return data[:end]


def told(s):
    """The reason in the reply to a peer that is refused."""
    heads = [fields_of(head) for head in frames(until_closed(s))]
    refusals = [fields_of(value)[1][0].decode() for head in heads
                for value in head.get(HEAD['refusal'], [])]
    return refusals[-1] if refusals else None


def check_sent_away(torus, reason, text):
    assert reason and text in reason, reason
    refused(torus, 5, 'port -0: a connection that is not from the neighbour was rejected: .*' + re.escape(text))
    assert link(torus, 5)['up'] is True


def test_a_recorded_connection_is_a_replay(torus):
    heard = recorded(torus)
    connects = link(torus, 5)['connects']
    with connect(torus.node(5).addresses['-0']) as s:
        send(s, heard[DIALLER])
        check_sent_away(torus, told(s), 'another connection (a replay)')
    assert link(torus, 5)['connects'] == connects


def test_a_reflected_proof_is_refused(torus):
    with connect(torus.node(5).addresses['-0']) as s:
        s.sendall(hello('4x4', 1, 0, keys=[read_key(torus.run.key)], challenge=bytes(32)))
        assert read_frame(s)[0] == HEAD['hello']
        kind, _, proof = read_frame(s)
        assert kind == HEAD['proof']
        s.sendall(proof)
        check_sent_away(torus, told(s), 'reflection: ')


def test_a_reflecting_neighbour_is_refused(torus):
    """Node 1 dials a mirror."""
    mirror = socket.create_server(('127.0.0.1', 0))

    def reflect():
        with contextlib.suppress(OSError):
            while True:
                with mirror.accept()[0] as s:
                    while data := s.recv(65536):
                        s.sendall(data)

    threading.Thread(target=reflect, daemon=True).start()
    try:
        with one_node_with(torus, 1, '--port=+0=127.0.0.1:%d' % mirror.getsockname()[1]):
            refused(torus, 1, 'reflection: the peer sent the challenge of node 1 back')
    finally:
        mirror.close()


def test_the_right_key_in_the_wrong_place_is_refused(torus):
    key = read_key(torus.run.key)
    for (dims, rank, port), text in ((('4x4', 2, 0), 'wrong cabling'), (('4x4', 1, 2), 'wrong cabling'),
                                     (('4x8', 1, 0), 'is in a torus 4x8')):
        with connect(torus.node(5).addresses['-0']) as s:
            send(s, hello(dims, rank, port, keys=[key], challenge=bytes(32)))
            check_sent_away(torus, told(s), text)
    # A proof for another place: node 1 at its port +1 says that it is at +0.
    with connect(torus.node(5).addresses['-0']) as s:
        ours = hello('4x4', 1, 0, keys=[key], challenge=bytes(32))
        s.sendall(ours)
        _, theirs, _ = read_frame(s)
        read_frame(s)
        moved = {**fields_of(fields_of(ours[8:])[HEAD['hello']][0]), 4: [2]}
        s.sendall(peer('proof', {1: proof_digest(key, DIALLER, moved, theirs)}))
        check_sent_away(torus, told(s), 'wrong proof')


def test_a_stranger_without_the_key_gets_nowhere(torus):
    wrong = bytes(32)
    with connect(torus.node(5).addresses['-0']) as s:
        send(s, hello('4x4', 1, 0, keys=[wrong], challenge=bytes(32)))
        check_sent_away(torus, told(s), f'wrong key: ')
    with connect(torus.node(5).addresses['-0']) as s, pytest.raises((AssertionError, ConnectionResetError)):
        shake_hands(s, wrong, '4x4', 1, 0)
    with connect(torus.node(5).addresses['-0']) as s:  # the attacker knows the id of the key
        one = fields_of(fields_of(hello('4x4', 1, 0, keys=[wrong], challenge=bytes(32))[8:])[HEAD['hello']][0])
        one[6] = [key_id(read_key(torus.run.key))]
        send(s, peer('hello', {1: one[1], 2: one[2], 3: one[3], 4: 0, 6: one[6], 7: one[7], 10: one[10]}))
        _, theirs, _ = read_frame(s)
        read_frame(s)
        send(s, peer('proof', {1: proof_digest(wrong, DIALLER, one, theirs)}))
        check_sent_away(torus, told(s), 'wrong proof')
    with connect(torus.node(5).addresses['-0'], 20) as s:  # and waits
        send(s, peer('hello', {1: one[1], 2: one[2], 3: one[3], 4: 0, 6: one[6], 7: one[7], 10: one[10]}))
        until_closed(s)
    refused(torus, 5, 'did not prove that it has the cluster key within')


def test_frames_before_the_proof_are_refused(torus):
    with connect(torus.node(5).addresses['-0']) as s:
        send(s, hello('4x4', 1, 0, keys=[read_key(torus.run.key)], challenge=bytes(32)))
        read_frame(s), read_frame(s)
        send(s, peer('heartbeat'))
        check_sent_away(torus, told(s), 'did not begin with the proof')


STRANGERS = 1000


@pytest.mark.memory
def test_strangers_delay_nobody(torus):
    """A thousand connections with garbage, half a hello, or recorded bytes, while exchanges run."""
    heard = recorded(torus)
    rng, address = random.Random(3), torus.node(5).addresses['-0']
    sayings = [lambda: rng.randbytes(200), lambda: hello('4x4', 1, 0)[:15], lambda: b'',
               lambda: first_frames(heard[DIALLER], 1), lambda: first_frames(heard[DIALLER], 2),
               lambda: heard[DIALLER][:3000]]
    pid, log = torus.node(5).pid, log_from_now(torus, 5)
    usual = len(os.listdir(f'/proc/{pid}/fd'))
    connects = [one['connects'] for one in torus.links(5)['links']]

    def exchange():
        return subprocess.Popen([torus.torusctl, '--socket', str(torus.run.socket(0)), '--json', 'exchange',
                                 '--block-size', '4KiB', '--repeat', '1000', '--timeout', '3000'],
                                stdout=subprocess.PIPE, text=True)

    def end(client):
        out, _ = communicate(client, Patience(120))
        assert client.returncode == 0 and json.loads(out)['repeat'] == 1000

    with MemoryWatch(torus) as watch:
        running = exchange()
        memory = watch.most[5]
        crowd, descriptors = [], 0
        for i in range(STRANGERS):
            s = connect(address, 20)
            send(s, rng.choice(sayings)())
            crowd.append(s)
            if i % 50 == 0:
                descriptors = max(descriptors, len(os.listdir(f'/proc/{pid}/fd')))
                if running.poll() is not None:
                    end(running)
                    running = exchange()
            if len(crowd) > 200:
                crowd.pop(0).close()
        end(running)
        for s in crowd:
            s.close()
    assert descriptors - usual <= 70  # 32 of that port, 32 that read why they are closed, and a few
    assert watch.most[5] - memory < 4 << 20
    assert [one['connects'] for one in torus.links(5)['links']] == connects
    # A few lines in the log: one by one at first, then the number.
    wait_for(lambda: STRANGERS / 3 < sum(int(n) for n in re.findall(
        r'port -0: (\d+) more connections that are not from the neighbour were rejected in', log())), 60,
             'too few strangers are counted')
    assert len([line for line in log().splitlines() if 'rejected' in line]) < 60
    check_result(torus.exchange('at2', 3000), '4x4', 'at2', 3000)


# --- encryption ---

def encrypting(loopback, dims='3x3', **options):
    return loopback(dims, extra=('--encrypt', 'yes'), **options)


@pytest.mark.parametrize('dims', ('2', '3x3', '4x2m'))
def test_encrypted_links_carry_what_others_do(loopback, dims):
    torus = encrypting(loopback, dims)
    assert {(one['up'], one['security'], one['key']) for node in torus.nodes
            for one in torus.links(node.rank)['links']} == {
                (True, 'encrypted', key_id(read_key(torus.run.key)).hex())}
    for algorithm, size in ('stream', 1), ('stream', 100_000), ('direct', 3_000_000), ('stream', 1 << 20):
        check_result(torus.exchange(algorithm, size), dims, algorithm, size)
    torus.node(1).kill()
    torus.node(1).restart()
    torus.wait_whole(30)
    check_result(torus.exchange('direct', 5000), dims, 'direct', 5000)


@pytest.mark.parametrize('encrypt', (True, False))
def test_what_crosses_an_encrypted_link_cannot_be_read(loopback, tmp_path, encrypt):
    """Files of known text, through a recorder between nodes 0 and 1 of a ring."""
    options = {'data_roots': [tmp_path], 'extra': ('--encrypt', 'yes' if encrypt else 'no')}
    torus = loopback('3', **options)
    secret = b'nobody but node 1 is to read this. ' * 100
    for rank in range(3):
        (tmp_path / f'out{rank}').mkdir()
        for to in range(3):
            (tmp_path / f'out{rank}' / str(to)).write_bytes(secret)
    with Cable(torus.node(1).addresses['-0'], record=True) as cable:
        with one_node_with(torus, 0, f'--port=+0={cable.address}'):
            torus.wait_whole(30)
            torus.exchange(source=tmp_path / 'out%r', target=tmp_path / 'in%r')
            assert (tmp_path / 'in1' / '0').read_bytes() == secret
            assert len(cable.heard[DIALLER]) > len(secret)
            assert (secret[:35] in cable.heard[DIALLER]) is not encrypt


def test_both_ends_have_to_encrypt(loopback):
    torus = encrypting(loopback, '2x2')
    with one_node_with(torus, 3, '--encrypt', 'no'):
        refused(torus, 3, r'node 3 does not encrypt its links, node \d does: set encrypt')
        refused(torus, 3, r'refused by .*node \d encrypts its links, node 3 does not: set encrypt')
        assert not any(one['up'] for one in torus.links(3)['links'])


def test_a_damaged_record_costs_the_connection(loopback):
    """A relay on the cable between nodes 0 and 1 flips a bit."""
    torus = encrypting(loopback, '3')
    with Cable(torus.node(1).addresses['-0']) as cable:
        with one_node_with(torus, 0, f'--port=+0={cable.address}'):
            torus.wait_whole(30)
            cable.change_once(1, lambda data: data[:-1] + bytes([data[-1] ^ 4]), only=(DIALLER,))
            refused(torus, 1, 'the received bytes are not what the neighbour encrypted')
            torus.wait_whole(30)
            check_result(torus.exchange('direct', 5000), '3', 'direct', 5000)
