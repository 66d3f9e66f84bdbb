"""Whatever strangers do at the address of metrics, exchanges go on, links stay up, and descriptors and memory of the
daemon stay free."""

import os
import random
import resource
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.attacks import connects
from support.openmetrics import Metrics, get
from support.waiting import wait_for
from torus_net.patience import Patience, stretched

PLACES = 16    # connections that the daemon has at the same time
SECONDS = 10   # that it gives to each


@pytest.fixture
def torus(shared):
    return shared('4', extra=('--metrics', '127.0.0.1:0'))


def address(torus, rank=0):
    host, port = torus.status(rank)['metrics'].split(':')
    return host, int(port)


def connect(torus, **options):
    return socket.create_connection(address(torus), timeout=60, **options)


def descriptors(node):
    return len(os.listdir(f'/proc/{node.pid}/fd'))


def read_all(s):
    """What arrives until the daemon closes the connection."""
    data = b''
    try:
        while part := s.recv(65536):
            data += part
    except ConnectionError:
        pass
    return data


def exchange(torus):
    torus.ctl(0, 'exchange', '--algorithm', 'direct', '--block-size', '64KiB', check=True)


def check_undisturbed(torus, before):
    assert [connects(torus, rank) for rank in range(4)] == before
    exchange(torus)
    assert get('{}:{}'.format(*address(torus)))[0] == 200


def requests(rng):
    return {
        'random bytes': rng.randbytes(100000),
        'lines of random bytes': b'\r\n'.join(rng.randbytes(30) for _ in range(1000)) + b'\r\n\r\n',
        'zeros': bytes(50000),
        'a long path': b'GET /' + b'a' * 100000 + b' HTTP/1.1\r\n\r\n',
        'a path with escapes': b'GET /metrics%00/%2e%2e%ff%zz?%=%&&= HTTP/1.1\r\nHost: a\r\n\r\n',
        'a path that leads up': b'GET /../../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n',
        'many headers': b'GET /metrics HTTP/1.1\r\n' + b'A: b\r\n' * 20000 + b'\r\n',
        'a long header': b'GET /metrics HTTP/1.1\r\nAccept: ' + b'text/plain;q=0.1,' * 10000 + b'\r\n\r\n',
        'a hostile Accept': b'GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: ;;,q=,\xff;q=1e9999,text/;q\r\n\r\n',
        'a body without end': b'POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n' + bytes(100000),
        'chunks without end': b'PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n' +
                              b'fff\r\n' + bytes(0xfff) + b'\r\n',
        'a length that is not a number': b'GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n',
        'a method that does not exist': b'STEAL /metrics HTTP/1.1\r\nHost: a\r\n\r\n',
        'a version that does not exist': b'GET /metrics HTTP/9.9\r\n\r\n',
        'HTTP 0.9': b'GET /metrics\r\n\r\n',
        'HTTP 2': b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
        'TLS': bytes.fromhex('16030100c8010000c403030000') + rng.randbytes(200) + b'\r\n\r\n',
        'many requests at once': b'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n' * 2000,
        'an upgrade': b'GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
        'nothing': b'',
    }


@pytest.mark.parametrize('what', requests(random.Random(0)))
def test_a_request_of_any_bytes(torus, what):
    before, used = [connects(torus, rank) for rank in range(4)], descriptors(torus.node(0))
    with connect(torus) as s:
        try:
            s.sendall(requests(random.Random(0))[what])
            s.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the daemon has closed the connection
        answer = read_all(s)
    assert len(answer) < 100000, 'more than one answer'
    assert b'passwd' not in answer and b'root:' not in answer
    wait_for(lambda: descriptors(torus.node(0)) <= used)
    check_undisturbed(torus, before)


def test_only_reading_is_possible(torus):
    one = '{}:{}'.format(*address(torus))
    assert get(one, '/')[0] == get(one, '/metrics/')[0] == get(one, '/healthz2')[0] == 404
    for method in 'POST', 'PUT', 'DELETE', 'OPTIONS':
        status, headers, _ = get(one, method=method)
        assert status == 405 and headers['Allow'] == 'GET, HEAD'
    status, headers, text = get(one, method='HEAD')
    assert status == 200 and int(headers['Content-Length']) > 1000 and text == ''


def test_no_other_address_is_reachable(torus):
    host, port = address(torus)
    for other in '127.0.0.2', '127.1.2.3':
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((other, port), timeout=60)
    inodes = {os.readlink(f'/proc/{torus.node(0).pid}/fd/{fd}') for fd in os.listdir(f'/proc/{torus.node(0).pid}/fd')}
    listening = [line.split()[1] for table in ('tcp', 'tcp6') for line in Path(f'/proc/net/{table}').read_text().splitlines()
                 if line.split()[3] == '0A' and f'socket:[{line.split()[9]}]' in inodes]
    assert [place for place in listening if place.endswith(f':{port:04X}')] == [f'0100007F:{port:04X}']


def test_silent_connections_do_not_keep_others_out(torus):
    """A new connection closes the oldest one."""
    used = descriptors(torus.node(0))
    dropped = Metrics(torus).value('torus_metrics_dropped_connections_total')
    with ExitStack() as stack:
        patience = Patience(SECONDS - 1)
        silent = [stack.enter_context(connect(torus)) for _ in range(3 * PLACES)]
        wait_for(lambda: Metrics(torus).value('torus_metrics_dropped_connections_total') >= dropped + 2 * PLACES)
        assert not patience.over, 'they were closed only when their time was over'
        assert read_all(silent[0]) == b''
        assert descriptors(torus.node(0)) <= used + PLACES + 1
    wait_for(lambda: descriptors(torus.node(0)) <= used)


def test_slow_clients_are_closed_in_time(torus):
    """One sends its request byte by byte, one says nothing, and one does not read its answer."""
    with connect(torus) as silent, connect(torus) as slow, connect(torus) as deaf:
        deaf.sendall(b'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n')
        began = time.monotonic()
        silent.setblocking(False)
        slow.sendall(b'GET /metrics HTTP/1.1\r\nA: ')

        def is_closed(s):
            try:
                s.setblocking(False)
                return s.recv(1) == b''
            except BlockingIOError:
                return False
            except ConnectionError:
                return True

        def drips():
            try:
                slow.send(b'a')
            except BlockingIOError:
                pass
            except ConnectionError:
                return True
            return is_closed(slow)
        wait_for(drips, 2 * SECONDS, pause=0.2)
        wait_for(lambda: is_closed(silent), 2 * SECONDS)
        assert time.monotonic() - began > SECONDS - 2, 'closed too early'
    wait_for(lambda: get('{}:{}'.format(*address(torus)))[0] == 200)


@pytest.mark.memory
def test_ten_thousand_connections(torus):
    """They wait in the kernel; the exchanges meanwhile take no longer than usual."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(10000, hard - 200)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + 200), hard))
    node, where = torus.node(0), address(torus)
    before, used, memory = [connects(torus, rank) for rank in range(4)], descriptors(node), node.memory()['RssAnon']
    began = time.monotonic()
    for _ in range(5):
        exchange(torus)
    usual = time.monotonic() - began
    try:
        with ExitStack() as stack:
            for number in range(count):
                s = stack.enter_context(socket.socket())
                s.setblocking(False)
                s.connect_ex(where)
                if number % 1000 == 999:
                    exchange(torus)
                    assert descriptors(node) <= used + PLACES + 8
            began = time.monotonic()
            for _ in range(5):
                exchange(torus)
            assert time.monotonic() - began < stretched(3 * usual + 1)
            assert descriptors(node) <= used + PLACES + 8
            assert node.memory()['RssAnon'] < memory + (8 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    wait_for(lambda: descriptors(node) <= used, 60)
    check_undisturbed(torus, before)
