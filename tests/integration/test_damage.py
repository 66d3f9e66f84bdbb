"""A link that changes bytes (unnoticed by TCP's checksum), swallows them, or repeats them: "verified" means that
this would have been noticed."""

import json
import os
import re
import shutil

import pytest
from support.background import LongExchange
from support.cable import CabledTorus
from support.errors import error_code
from support.expect import check_result
from support.trees import check_target, listing, make_sources, random_sizes, wait_tidy
from support.waiting import wait_for

RANK, PORT = 5, '+1'


@pytest.fixture
def torus(shared, tmp_path_factory):
    return shared('4x4', CabledTorus, end=RANK, port=PORT, data_roots=(str(tmp_path_factory.getbasetemp()),))


def flip(data):
    data = bytearray(data)
    data[len(data) // 2] ^= 0x10
    return bytes(data)


def test_a_tap_that_does_nothing(torus):
    check_result(torus.exchange('at2', 100000), '4x4', 'at2', 100000)
    torus.cable.change_once(1, lambda data: data)
    check_result(torus.exchange('at2', 100000), '4x4', 'at2', 100000)
    assert torus.cable.changed == 1


def flip_all(data, _role):
    return flip(data) if len(data) >= 20000 else data


@pytest.mark.parametrize('algorithm', ['at2', 'direct', 'auto'])
def test_a_bit_of_a_pattern(torus, algorithm):
    """The exchange repairs the piece, and counts that, unless a head is hit, which costs the link."""
    again = tries = 0
    while again < 3:
        tries += 1
        assert tries <= 20, 'hardly ever is it a head that is hit'
        torus.cable.change_once(20000, flip)
        result = torus.ctl(0, '--json', 'exchange', '--algorithm', algorithm, '--block-size', 300000)
        assert torus.cable.changed
        if result.returncode == 0:
            shown = json.loads(result.stdout)
            assert shown['verified'] == 'every byte'
            again += shown.get('damages', 0)
        torus.wait_whole(30)
    check_result(torus.exchange('at2', 30000), '4x4', 'at2', 30000)


def test_a_cable_that_damages_all(torus):
    """After a few damages the exchange fails, with the code for damaged data."""
    named = tries = 0
    while not named:
        tries += 1
        assert tries <= 20, 'hardly ever is it a head that is hit'
        torus.cable.change = flip_all
        result = torus.ctl(0, '--json', 'exchange', '--algorithm', 'at2', '--block-size', '300000')
        torus.cable.change = None
        assert result.returncode == 1, result.stdout
        named += error_code(result.stdout) == 'damaged'
        torus.wait_whole(30)
    check_result(torus.exchange('at2', 30000), '4x4', 'at2', 30000)


def named_pieces(text):
    """The pieces that a text reports as damaged: source, destination, first and last byte."""
    return [tuple(map(int, numbers)) for numbers in re.findall(
        r'block from node (\d+) to node (\d+) is damaged in its bytes (\d+) to (\d+)', text)]


def number_of(shown):
    """The number in the id of an exchange; each attempt of a root gets the next number."""
    return int(shown['id'].rpartition('-')[2])


@pytest.mark.parametrize('algorithm', ['at2', 'direct', 'stream'])
def test_a_bit_of_a_file(torus, tmp_path, algorithm):
    """The digest of the piece detects the damage, and the error names the piece, which is repaired while the exchange
    goes on. However much is damaged, either all files arrive whole, or no node gets its folder."""
    sizes = dict.fromkeys(random_sizes(16, 0), 100000)
    source = make_sources(tmp_path, sizes)
    logs = []

    def exchange():
        """The result of the exchange; None if it has failed, with the reason in the logs."""
        begins = [len(node.log()) for node in torus.nodes]
        result = torus.ctl(3, '--json', 'exchange', '--algorithm', algorithm, '--from', source, '--to',
                           f'{tmp_path}/in-%r')
        torus.cable.change = None
        torus.wait_whole(30)
        wait_tidy(torus, tmp_path)
        damages = json.loads(result.stdout).get('damages', 0) if result.returncode == 0 else 0

        def named():
            logs[:] = [node.log()[begin:] for node, begin in zip(torus.nodes, begins)]
            return sum(len(named_pieces(log)) for log in logs) >= damages
        wait_for(named, what='the logs name too few pieces')
        if result.returncode != 0:
            assert not [name for name in os.listdir(tmp_path) if name.startswith('in')]
            return None
        check_target(f'{tmp_path}/in-%r', sizes)
        for rank in range(16):
            shutil.rmtree(f'{tmp_path}/in-{rank}')
        return json.loads(result.stdout)

    def check_named():
        for rank, log in enumerate(logs):
            for origin, destination, first, last in named_pieces(log):
                assert origin < 16 and destination < 16 and origin != destination
                assert first <= last < 100000
            found = re.findall(r'(block from .*?): asking for it again', log)
            assert all(named_pieces(text)[0][1] == rank for text in found), found
        return sum(len(named_pieces(log)) for log in logs)

    named = tries = 0
    while not named:
        tries += 1
        assert tries <= 20, 'hardly ever is it a head that is hit'
        torus.cable.change = flip_all
        shown = exchange()
        named = check_named()
        assert shown is None or named >= shown.get('damages', 0)
    again = tries = 0
    while not again:
        tries += 1
        assert tries <= 20, 'hardly ever is it a head that is hit'
        before = number_of(torus.exchange('at2', 1000, rank=3))
        torus.cable.change_once(20000, flip)
        shown = exchange()
        if shown is not None and shown.get('damages', 0) > 0:
            again += shown['damages']
            assert check_named() == shown['damages']
            assert number_of(shown) == before + 1, 'the exchange was repeated as a whole'
    torus.exchange(algorithm, source=source, target=f'{tmp_path}/in-%r')
    check_target(f'{tmp_path}/in-%r', sizes)
    assert [path for path in listing(tmp_path) if path.endswith('in-3/7')]


@pytest.mark.parametrize('change', [lambda data: data[:-1000], lambda data: data + data,
                                    lambda data: data[:100] + data[200:], lambda data: data[::-1],
                                    lambda data: os.urandom(len(data))],
                         ids=['cut', 'repeated', 'gap', 'reversed', 'random'])
def test_a_stream_that_is_disturbed(torus, change):
    """The connection is closed with a reason, the exchange fails on all nodes, and the torus works again. If a damaged
    block is noticed first, the exchange is retried and may run after the link is up again: then it is disturbed
    again."""
    changed = torus.cable.changed
    with LongExchange(torus, algorithm='direct') as client:
        def ended():
            if torus.cable.change is None:
                torus.cable.change_once(5000, change)
            return client.process.poll() is not None

        wait_for(ended, 30)
        code, _, err = client.end(30)
        torus.cable.change = None
        assert code == 1 and err, err
    assert torus.cable.changed > changed
    torus.wait_whole(30)
    check_result(torus.exchange('at2', 30000, rank=RANK), '4x4', 'at2', 30000)
