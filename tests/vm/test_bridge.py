"""The bridge alone, between a pseudo terminal and sockets, without a virtual machine.

The "daemon" is a socket of the test, so that it can do things that torusd never does.
"""

import os
import pty
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import tty
from pathlib import Path

import pytest
from support.waiting import wait_for
from support.wire import until_closed
from torus_net.guest_image import GUEST, bridge_program, default_cache
from torus_net.patience import Patience, stretched, wait

CHANNELS = 64  # of one bridge


class Bridge:
    """Both sides, the byte stream between them, and a listening socket instead of the daemon."""

    def __init__(self, folder):
        self.folder = folder
        program = str(bridge_program(default_cache(), print))
        self.control, self.shell = str(folder / 'control'), str(folder / 'shell')
        self.daemon = socket.socket(socket.AF_UNIX)
        self.daemon.settimeout(stretched(20))
        self.daemon.bind(str(folder / 'daemon'))
        self.stream, device = pty.openpty()
        tty.setraw(device)
        self.outside = subprocess.Popen([program, 'outside', str(self.stream), self.control,
                                         self.shell], pass_fds=[self.stream])
        self.inside = subprocess.Popen([program, 'inside', os.ttyname(device),
                                        str(folder / 'daemon'), str(GUEST / 'shell')])
        self.device = device

    def serve(self):
        """From now on, the daemon accepts connections."""
        self.daemon.listen(200)
        self.accept().close()  # the inside has connected to it
        wait_for(lambda: os.path.exists(self.control), what='the outside does not listen')

    def accept(self):
        connection = self.daemon.accept()[0]
        connection.settimeout(stretched(20))
        return connection

    def connect(self, path=None):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(stretched(20))

        def connected():
            try:
                return connection.connect(path or self.control) or True
            except BlockingIOError:  # the daemon's queue is full
                return False
        wait_for(connected, 20)
        return connection

    def pair(self):
        """A client's connection and the daemon's end of it."""
        client = self.connect()
        return client, self.accept()

    def close(self):
        for process in self.outside, self.inside:
            process.kill()
            process.wait()
        os.close(self.stream)
        os.close(self.device)
        self.daemon.close()


@pytest.fixture
def unserved():
    folder = Path(tempfile.mkdtemp(prefix='tb', dir='/tmp'))
    bridge = Bridge(folder)
    yield bridge
    bridge.close()
    shutil.rmtree(folder)


@pytest.fixture
def bridge(unserved):
    unserved.serve()
    return unserved


def ended(connection):
    """Whether the other end has been closed completely."""
    poll = select.poll()
    poll.register(connection, 0)
    return bool(poll.poll(0))


def test_nobody_is_let_in_before_the_daemon_answers(unserved):
    with pytest.raises(FileNotFoundError):
        unserved.connect()
    unserved.serve()
    client, daemon = unserved.pair()
    client.sendall(b'now')
    assert daemon.recv(9) == b'now'


def test_a_signal_ends_it_before_the_daemon_answers(unserved):
    status, caught = Path(f'/proc/{unserved.inside.pid}/status'), 1 << (signal.SIGTERM - 1)
    wait_for(lambda: int(re.search(r'^SigCgt:\s*(\w+)', status.read_text(), re.M)[1], 16) & caught)
    unserved.inside.terminate()
    assert wait(unserved.inside, Patience(20)) == 0


@pytest.mark.parametrize('size', [0, 1, 65535, 65536, 65537, 1_000_000])
def test_both_ways_to_the_end(bridge, size):
    content = random.Random(size).randbytes(size)
    client, daemon = bridge.pair()
    sender = threading.Thread(target=lambda: (client.sendall(content),
                                              client.shutdown(socket.SHUT_WR)))
    sender.start()
    assert until_closed(daemon) == content
    sender.join()
    sender = threading.Thread(target=lambda: (daemon.sendall(content), daemon.close()))
    sender.start()
    assert until_closed(client) == content
    sender.join()


def test_one_way_may_end_before_the_other(bridge):
    """A client that is interrupted shuts down its sending side, and still expects the reply."""
    client, daemon = bridge.pair()
    client.shutdown(socket.SHUT_WR)
    assert daemon.recv(9) == b''
    assert not ended(daemon)
    daemon.sendall(b'cancelled')
    assert client.recv(9) == b'cancelled'
    daemon.close()
    assert client.recv(9) == b''


@pytest.mark.parametrize('unread', [0, 10, 1_000_000])
def test_a_client_that_is_killed(bridge, unread):
    """The daemon notices, even if part of a reply is unread or in transit."""
    client, daemon = bridge.pair()
    client.sendall(b'request')
    assert daemon.recv(9) == b'request'
    sender = threading.Thread(target=send_until_refused, args=(daemon, b'x' * unread))
    sender.start()
    if unread:
        assert client.recv(3) == b'xxx'
    client.close()
    wait_for(lambda: ended(daemon), 10, 'the daemon was not told')
    sender.join()
    try:
        assert daemon.recv(9) == b''
    except ConnectionResetError:  # as from a client that has not read everything
        pass
    with pytest.raises(BrokenPipeError):
        daemon.sendall(b'more')


def send_until_refused(connection, data):
    try:
        connection.sendall(data)
    except OSError:
        pass


def test_a_daemon_that_goes_away_in_mid_answer(bridge):
    client, daemon = bridge.pair()
    client.sendall(b'request')
    daemon.sendall(b'half an an')
    daemon.close()  # it has not even read the request
    try:
        assert until_closed(client) == b'half an an'
    except ConnectionResetError:
        pass
    other, daemon = bridge.pair()
    other.sendall(b'next')
    assert daemon.recv(9) == b'next'


def test_a_client_that_does_not_read_does_not_delay_others(bridge):
    lazy, busy_daemon = bridge.pair()
    content = random.Random(1).randbytes(3_000_000)
    sender = threading.Thread(target=lambda: (busy_daemon.sendall(content), busy_daemon.close()))
    sender.start()
    for _ in range(20):
        client, daemon = bridge.pair()
        client.sendall(b'question')
        assert daemon.recv(9) == b'question'
        daemon.sendall(b'answer' * 1000)
        daemon.close()
        assert until_closed(client) == b'answer' * 1000
        client.close()
    assert until_closed(lazy) == content
    sender.join()


def test_opened_and_closed(bridge):
    """Many more than there are channels."""
    def open_and_close():
        for _ in range(5 * CHANNELS):
            bridge.connect().close()
        with bridge.connect() as last:
            last.sendall(b'last')

    clients = threading.Thread(target=open_and_close)
    clients.start()
    heard = b''
    while heard != b'last':
        with bridge.accept() as daemon:
            heard = daemon.recv(9)
    clients.join()


def test_a_daemon_that_does_not_accept_holds_up_no_shell(bridge):
    bridge.daemon.listen(0)
    clients = [bridge.connect() for _ in range(10)]
    for number, client in enumerate(clients):
        client.sendall(b'%d' % number)
    clients.pop(3).close()
    with bridge.connect(bridge.shell) as shell:
        shell.sendall(b'echo here\n')
        assert until_closed(shell).startswith(b'here')
    heard = set()
    wanted = {b'%d' % number for number in range(10) if number != 3}
    while not heard >= wanted:
        with bridge.accept() as daemon:
            heard.add(daemon.recv(9))


def test_more_clients_than_channels_wait_for_a_channel(bridge):
    clients = [bridge.connect() for _ in range(CHANNELS + 20)]
    for number, client in enumerate(clients):
        client.sendall(b'%d' % number)
    heard = []
    for _ in clients:  # closing a daemon's end makes room for the next connection
        daemon = bridge.accept()
        heard.append(int(daemon.recv(9)))
        daemon.sendall(b'%d' % heard[-1])
        daemon.close()
        assert until_closed(clients[heard[-1]]) == b'%d' % heard[-1]
        clients[heard[-1]].close()
    assert sorted(heard) == list(range(len(clients)))


def test_everything_at_once(bridge):
    """Clients talk, stall and die in any order; the others receive exactly their own data."""
    def echo():
        while True:
            try:
                connection = bridge.daemon.accept()[0]
            except OSError:
                return
            threading.Thread(target=echo_one, args=(connection,), daemon=True).start()

    def echo_one(connection):
        with connection:
            try:
                while part := connection.recv(5000):
                    connection.sendall(part)
            except OSError:
                pass

    def client(seed):
        rng = random.Random(seed)
        content = rng.randbytes(rng.choice((0, 10, 70_000, 300_000)))
        try:
            with bridge.connect() as connection:
                if rng.random() < 0.4:  # dies somewhere
                    part = content[:rng.randrange(len(content) + 1) // 8]
                    connection.sendall(part)
                    if part and rng.random() < 0.5:
                        connection.recv(1)
                    return
                sender = threading.Thread(target=lambda: (connection.sendall(content),
                                                          connection.shutdown(socket.SHUT_WR)))
                sender.start()
                if until_closed(connection) != content:
                    wrong.append(seed)
                sender.join()
        except OSError as e:
            wrong.append(f'{seed}: {e}')

    wrong = []
    threading.Thread(target=echo, daemon=True).start()
    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(150)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert bridge.outside.poll() is None and bridge.inside.poll() is None


def test_the_end_of_the_stream_ends_everything(bridge):
    client, _ = bridge.pair()
    bridge.inside.kill()
    bridge.inside.wait()
    os.close(bridge.device)
    bridge.device = os.dup(bridge.stream)
    assert client.recv(9) == b''
    assert wait(bridge.outside, Patience(20)) == 0
    assert not os.path.exists(bridge.control) and not os.path.exists(bridge.shell)


def test_a_stream_without_a_bridge_is_refused(unserved):
    os.write(unserved.device, b'Debian GNU/Linux 12 login: ')
    assert wait(unserved.outside, Patience(20)) == 1
    assert not os.path.exists(unserved.control)


def test_the_shell(bridge):
    with bridge.connect(bridge.shell) as shell:
        shell.sendall(b'tr a-z A-Z; ls /nonexistent; exit 7\nwhat follows')
        shell.shutdown(socket.SHUT_WR)
        output, _, status = until_closed(shell).partition(b'\0')
    assert output.startswith(b'WHAT FOLLOWSls:') and status == b'7'


def test_a_shell_whose_client_is_killed_is_hung_up(bridge):
    with bridge.connect(bridge.shell) as shell:
        shell.sendall(b'echo $$; exec sleep 1000\n')
        pid = int(shell.recv(20))
        assert os.path.exists(f'/proc/{pid}')
    wait_for(lambda: not os.path.exists(f'/proc/{pid}'), 10, 'the shell goes on')
