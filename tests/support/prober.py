"""Pings between all nodes of a MininetTorus, all the time, from one process.

Each ping may cross as many hosts as there are nodes: a way without a loop needs no more. A host at which a ping runs
out of hops says so (ICMP "time exceeded"), and so it does for answers.
"""

import ctypes
import os
import selectors
import socket
import struct
import threading
import time
from contextlib import contextmanager

from torus_net.patience import Patience

INTERVAL = 0.05       # seconds between two pings of a pair
CLONE_NEWNET = 0x40000000
SOL_RAW, ICMP_FILTER = 255, 1
ECHO, ECHO_REPLY, TIME_EXCEEDED = 8, 0, 11
PAYLOAD = struct.Struct('!4sIId')  # MARK, from, to, when it was sent
MARK = b'prob'
LIBC = ctypes.CDLL(None, use_errno=True)


@contextmanager
def namespace_of(pid):
    """This thread is in the network namespace of that process."""
    with open('/proc/thread-self/ns/net', 'rb') as home, open(f'/proc/{pid}/ns/net', 'rb') as there:
        _set_namespace(there)
        try:
            yield
        finally:
            _set_namespace(home)


def _set_namespace(file):
    if LIBC.setns(file.fileno(), CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), file.name)


def _checksum(data):
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


class Prober:
    """with Prober(torus) as prober: ...  `exceeded` are the packets that ran out of hops."""

    def __init__(self, torus):
        self.torus = torus
        self.addresses = list(torus.ip_hosts.addresses)
        self.exceeded = []
        self._answered = {}      # (from, to): (when the latest ping that was answered was sent, when it was answered)
        self._first = {}         # the same for the first one that was sent after _since
        self._since = 0.0
        self._lock = threading.Lock()
        self._ends = threading.Event()
        self._sockets = []
        self._former = {}        # settings of each host
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.error = None

    def __enter__(self):
        for node, address in zip(self.torus.nodes, self.addresses):
            self._set(node, ip_default_ttl=len(self.addresses), icmp_ratelimit=0)
            with namespace_of(node.host.pid):
                end = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
            self._sockets.append(end)
            end.setsockopt(SOL_RAW, ICMP_FILTER, struct.pack('=I', 0xffffffff & ~(1 << ECHO_REPLY | 1 << TIME_EXCEEDED)))
            end.bind((address, 0))
            end.setblocking(False)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        self._thread.join()
        for end in self._sockets:
            end.close()
        for node in self.torus.nodes:
            self._set(node, **self._former[node.rank])

    def _set(self, node, **settings):
        for name, value in settings.items():
            path = f'/proc/sys/net/ipv4/{name}'
            self._former.setdefault(node.rank, {}).setdefault(name, node.run('cat', path).strip())
            node.run('sh', '-c', f'echo {value} >{path}')

    def await_answers(self, pairs, seconds, since=None):
        """Returns after how many seconds the last of these pairs was answered, with pings that were sent from now (or
        `since`) on. AssertionError if that takes longer than `seconds`."""
        with self._lock:
            self._since = time.monotonic() if since is None else since
            self._first = {pair: times for pair, times in self._answered.items() if times[0] >= self._since}
        patience = Patience(seconds)
        while True:
            late = patience.over
            with self._lock:
                missing = [pair for pair in pairs if pair not in self._first]
                if not missing:
                    return max((self._first[pair][1] - self._since for pair in pairs), default=0.0)
            assert self.error is None, self.error
            assert not late, f'no answer within {seconds:g} s: {missing}'
            time.sleep(0.005)

    def _run(self):
        try:
            with selectors.DefaultSelector() as selector:
                for rank, end in enumerate(self._sockets):
                    selector.register(end, selectors.EVENT_READ, rank)
                at = time.monotonic()
                while not self._ends.is_set():
                    if time.monotonic() >= at:
                        self._send_all()
                        at = time.monotonic() + INTERVAL
                    for key, _ in selector.select(max(0.0, at - time.monotonic())):
                        self._receive(key.fileobj, key.data)
        except Exception as e:  # what await_answers() says
            self.error = e
            raise

    def _send_all(self):
        for rank, end in enumerate(self._sockets):
            for to, address in enumerate(self.addresses):
                if to == rank:
                    continue
                body = PAYLOAD.pack(MARK, rank, to, time.monotonic())
                head = struct.pack('!BBHHH', ECHO, 0, 0, rank, 0)
                head = struct.pack('!BBHHH', ECHO, 0, _checksum(head + body), rank, 0)
                try:
                    end.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, len(self.addresses))
                    end.sendto(head + body, (address, 0))
                except OSError:  # no route at the moment
                    continue

    def _receive(self, end, rank):
        while True:
            try:
                packet, (source, _) = end.recvfrom(2048)
            except OSError:
                return
            icmp = packet[4 * (packet[0] & 15):]
            if icmp[0] == TIME_EXCEEDED:
                self.exceeded.append((time.monotonic(), rank, source))
            elif icmp[0] == ECHO_REPLY and len(icmp) == 8 + PAYLOAD.size:
                mark, sender, to, sent = PAYLOAD.unpack(icmp[8:])
                if mark == MARK and sender == rank:
                    with self._lock:
                        times = self._answered[rank, to] = sent, time.monotonic()
                        if sent >= self._since:
                            self._first.setdefault((rank, to), times)
