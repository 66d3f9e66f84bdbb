"""One user cannot use up a daemon's resources: two users, each with its own processes."""

import contextlib
import json
import struct
import subprocess

import pytest
from support.errors import assert_refused
from support.users import DAEMON, STRANGER, as_user, needs_root, ring
from support.waiting import wait_for, wait_logged

GREEDY, OTHER = as_user(STRANGER, DAEMON), as_user(STRANGER + 1, DAEMON)
OPEN, OPENED, MEMORY, FILE, READY, REFUSED = 1, 2, 4, 5, 6, 8  # proto/program.h
MESSAGE = '<IIIIIIQ320s'
CONNECTED = 'connected'

# Opens that many connections, and keeps them. For each line that it reads with a connection and a message in hexadecimal
# digits, it sends the message; for a line with a connection alone, it prints the next bytes from there.
GUEST = '''
import socket, sys
kind, path, count = sys.argv[1:]
kept = [socket.socket(socket.AF_UNIX, getattr(socket, kind)) for _ in range(int(count))]
for s in kept:
    s.connect(path)
print('connected', flush=True)
for line in sys.stdin:
    s, *message = line.split()
    if message:
        try:
            kept[int(s)].sendall(bytes.fromhex(message[0]))
        except OSError:
            pass
    else:
        try:
            data = kept[int(s)].recv(65536)
        except ConnectionResetError:  # it was closed with unread bytes; its last message follows
            data = kept[int(s)].recv(65536)
        print(data.hex(), flush=True)
'''


class Guest:
    """Connections of one process to a Unix socket, which break no rule but use many resources."""

    def __init__(self, prefix, path, count=1, kind='SOCK_SEQPACKET'):
        self.process = subprocess.Popen([*prefix, '/usr/bin/python3', '-c', GUEST, kind, str(path), str(count)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline().strip() == CONNECTED

    def send(self, at, data):
        self.process.stdin.write(f'{at} {data.hex()}\n')
        self.process.stdin.flush()

    def hear(self, at=0):
        self.process.stdin.write(f'{at}\n')
        self.process.stdin.flush()
        return bytes.fromhex(self.process.stdout.readline())

    def say(self, kind, size=0, number=0, text='', at=0):
        """Sends a message to the socket for programs."""
        self.send(at, struct.pack(MESSAGE, 0x50726f67, 1, kind, 0, number, 0, size, text.encode()))

    def answer(self, at=0):
        """The next message from there: (kind, number, text)."""
        data = self.hear(at)
        if not data:
            return None, 0, ''
        fields = struct.unpack(MESSAGE, data)
        return fields[2], fields[4], fields[7].split(bytes(1))[0].decode()

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@contextlib.contextmanager
def guests():
    """A function that starts guests, which end with the test."""
    started = []

    def start(*args, **kwargs):
        started.append(Guest(*args, **kwargs))
        return started[-1]
    try:
        yield start
    finally:
        for guest in started:
            guest.close()


def programs(torus, rank):
    return f'{torus.socket(rank)}.programs'


def shares(torus, rank=0):
    """What users have, by resource and user, from torusctl status."""
    result = torus.ctl('--json', 'status', rank=rank)
    assert result.returncode == 0, result.stderr
    return {(share['resource'], share['user']): share for share in json.loads(result.stdout)['shares']}


def open_everywhere(torus, start, prefix, name):
    """A guest at each node; together they have opened the group."""
    members = [start(prefix, programs(torus, rank)) for rank in range(2)]
    for member in members:
        member.say(OPEN, text=name)
    for member in members:
        kind, _, text = member.answer()
        assert kind == OPENED, text
    return members


@needs_root
def test_memory_that_is_requested_and_never_used():
    """Memory that a program requests and never uses leaves a share for others, and is released after a while."""
    with ring() as torus, guests() as start:
        greedy = open_everywhere(torus, start, GREEDY, 'greedy')[0]
        other = open_everywhere(torus, start, OTHER, 'other')[0]
        size = 1 << 62
        while True:  # as much as there is
            greedy.say(MEMORY, size)
            kind, number, text = greedy.answer()
            if kind == FILE:
                break
            assert kind == REFUSED, text
            size -= max(size >> 4, 1)
        key = 'program_memory_bytes', STRANGER
        assert shares(torus)[key]['held'] == size
        assert size > shares(torus)[key]['capacity'] // 2
        other.say(MEMORY, 1 << 20)
        kind, _, text = other.answer()
        assert kind == FILE, text
        wait_for(lambda: key not in shares(torus), 60, torus.log)
        wait_logged(torus.log, f'user {STRANGER} has requested {size} bytes')
        greedy.say(READY, number=number)
        kind, _, text = greedy.answer()
        assert kind == REFUSED and 'the daemon has released them' in text
        greedy.say(MEMORY, 4096)  # and it goes on
        assert greedy.answer()[0] == FILE


@pytest.mark.full
@needs_root
def test_places_for_programs():
    """Many processes of one user together get only the user's share."""
    with ring() as torus, guests() as start:
        refused = 0
        for process in range(9):
            guest = start(GREEDY, programs(torus, 0), 30)
            for at in range(30):
                guest.say(OPEN, text=f'{process}-{at}', at=at)
            if refused:
                continue
            held = shares(torus).get(('programs', STRANGER), {'held': 0})
            if held['held'] == held.get('most'):
                kind, _, text = guest.answer(29)
                assert f'user {STRANGER} has {held["held"]} of {held["capacity"]} places for groups' in text
                refused += 1
        taken = shares(torus)['programs', STRANGER]
        assert refused and taken['held'] == taken['most'] == taken['capacity'] // 2
        assert 'programs  ' in torus.ctl('status').stdout
        open_everywhere(torus, start, OTHER, 'other')


@needs_root
def test_groups_that_are_never_complete():
    """Groups that are opened at one node only, without a timeout, reserve memory there for ever."""
    with ring('--memory', '128MiB') as torus, guests() as start:
        for process in range(4):
            guest = start(GREEDY, programs(torus, 0), 16)
            for at in range(16):
                guest.say(OPEN, text=f'{process}-{at}', at=at)

        def most():
            held = shares(torus).get(('group_bytes', STRANGER))
            return held is not None and held['held'] > held['capacity'] // 2
        wait_for(most, 30, torus.log)
        open_everywhere(torus, start, OTHER, 'other')
        result = torus.ctl('exchange', '--block-size', '1MiB', prefix=OTHER)
        assert result.returncode == 0, result.stderr


@needs_root
def test_places_for_clients():
    """A user without a place for clients still gets the status; other users have places."""
    with ring() as torus, guests() as start:
        start(GREEDY, torus.socket(0), 300, kind='SOCK_STREAM')
        taken = shares(torus)['connections', STRANGER]
        assert taken['held'] == taken['capacity'] // 2

        def answers():  # the last of those that have no place have gone
            return torus.ctl('status', prefix=GREEDY).returncode == 0
        wait_for(answers, 20, torus.log)
        assert torus.ctl('links', prefix=GREEDY).returncode == 0
        result = torus.ctl('--json', 'exchange', '--block-size', '1', prefix=GREEDY)
        assert_refused(result, 'refused')
        assert f'user {STRANGER} has {taken["held"]} of {taken["capacity"]} connections' in result.stderr
        for args in ('status',), ('exchange', '--block-size', '1'):
            result = torus.ctl(*args, prefix=OTHER)
            assert result.returncode == 0, result.stderr


@needs_root
def test_exchanges_that_take_long():
    """However many exchanges of one user run and wait, an exchange of another user starts."""
    with ring() as torus:
        endless = ['exchange', '--block-size', '1', '--repeat', '1000000', '--timeout', '100000']
        command = [*GREEDY, *torus.torusctl, '--socket', torus.socket(0), *endless]
        running = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                   for _ in range(8)]
        try:
            def all_asked():
                held = shares(torus).get(('exchanges', STRANGER))
                return held is not None and held['held'] == 8
            wait_for(all_asked, 30, torus.log)
            assert shares(torus)['running', STRANGER]['held'] == 4
            result = torus.ctl('exchange', '--block-size', '1', '--timeout', '60', prefix=OTHER)
            assert result.returncode == 0, result.stderr
            assert shares(torus)['running', STRANGER]['held'] == 4
        finally:
            for process in running:
                process.terminate()
            for process in running:
                process.wait()
