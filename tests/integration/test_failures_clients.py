"""Clients that leave, that do not read, and more clients than a daemon accepts."""

import os
import resource
import select
import signal
import struct

import pytest
from support.background import LongExchange
from support.errors import assert_refused, error_code
from support.expect import check_result
from support.failures import still_works
from support.waiting import wait_for, wait_state
from support.wire import connect, error_of, frame, frames, send

REQUEST = frame({1: {}})  # for the status


@pytest.mark.parametrize('how', ['SIGKILL', 'SIGINT', 'SIGTERM'])
def test_the_client_goes(torus, how):
    with LongExchange(torus, '--json', rank=7) as client:
        client.send_signal(getattr(signal, how))
        code, out, err = client.end(20)
        if how == 'SIGKILL':
            assert code != 0 and out == ''
        else:
            assert code in (1, 128 + getattr(signal, how)) and error_code(out) == 'cancelled', (code, out, err)
        for rank, reason in wait_state(torus, client.id, ['failed'], range(16), 10).items():
            assert 'cancelled' in reason, (rank, reason)
    assert torus.status()['whole'] is True
    still_works(torus, rank=7)


def test_a_client_that_does_not_read(torus):
    """The daemon reads only as many of its requests as it reads replies. Other clients are served, and so is this one
    when it reads again."""
    node, sent, replies, data = torus.node(2), 0, 0, b''
    before = node.memory()['RssAnon']
    with connect(node.socket) as s:
        s.setblocking(False)
        # Until there has been no room for a second: 50 MB of requests would be answered with GBs.
        while select.select([], [s], [], 1)[1]:
            sent += s.send(REQUEST * 1000)
            assert sent < 50_000_000, 'all its requests are read'
        assert node.memory()['RssAnon'] - before < 8 << 20
        still_works(torus, rank=2)
        s.be_patient(20)
        while replies < sent // len(REQUEST):
            piece = s.recv(1 << 20)
            assert piece
            data += piece
            while len(data) >= 8 and len(data) >= 8 + struct.unpack('>I', data[:4])[0]:
                data = data[8 + struct.unpack('>I', data[:4])[0]:]
                replies += 1
    still_works(torus, rank=2)


@pytest.mark.full
def test_more_clients_than_a_daemon_takes(torus):
    """Clients above the limit are told so, and get only the status. The other clients, the links and later clients are
    not affected."""
    clients = []
    try:
        while len(clients) < 1000:
            s = connect(torus.node(3).socket)
            clients.append(s)
            send(s, REQUEST)
            said = s.recv(65536)
            if error_of(frames(said)[0]) == 'REFUSED':
                break
            assert frames(said)[0][0] >> 3 == 2  # the status
        assert 64 < len(clients) < 1000
        wait_for(lambda: torus.ctl(3, 'status').returncode == 0, 20)
        assert_refused(torus.ctl(3, '--json', 'exchange', '--block-size', '1'), 'refused')
        assert torus.status(4)['whole'] is True
    finally:
        for s in clients:
            s.close()
    wait_for(lambda: torus.ctl(3, 'status').returncode == 0, 10)
    still_works(torus, rank=3)


def test_no_descriptors_left(loopback):
    """Without descriptors, links that go down come up again, whether dialled or accepted, and clients are told why the
    daemon does not serve them."""
    torus = loopback('3x3')
    node = torus.node(4)
    highest = max(map(int, os.listdir(f'/proc/{node.pid}/fd')))
    resource.prlimit(node.pid, resource.RLIMIT_NOFILE, (highest + 6, highest + 6))
    clients = []
    try:
        while True:
            s = connect(node.socket)
            clients.append(s)
            send(s, REQUEST)
            said = s.recv(65536)
            if error_of(frames(said)[0]) == 'REFUSED':
                break
            # Each client takes a descriptor, and there are few: the limit of clients is not the reason of the refusal.
            assert frames(said)[0][0] >> 3 == 2 and len(clients) < 20
        for rank in 1, 7:  # node 4 is dialled by node 1 and dials node 7
            torus.node(rank).restart()
            wait_for(lambda: torus.status(0)['whole'] and torus.status(rank)['whole'], 20,
                     lambda: node.log())
            check_result(torus.exchange('at2', 30000, rank=rank), '3x3', 'at2', 30000)
        torus.node(7).terminate()
        wait_for(lambda: '+0' in node.log() and torus.status(0)['whole'] is False, 20)
        assert node.alive
        torus.node(7).start()
        wait_for(lambda: torus.status(0)['whole'] is True, 20, lambda: node.log())
    finally:
        for s in clients:
            s.close()
    still_works(torus, rank=4)
