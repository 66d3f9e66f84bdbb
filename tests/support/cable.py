"""A cable that goes through this process, which can cut it after any byte, change what passes, or record it; and a
loopback torus with one such cable."""

import contextlib
import socket
import threading

from torus_net import LoopbackTorus
from torus_net.process import Daemon
from torus_net.torus import Node

from .wire import DIALLER, LISTENER, connect

NEVER = float('inf')
SMALL, LARGE = 16384, 1 << 18  # bytes of a piece


class Cable:
    """Relays connections to `target` ("127.0.0.1:4711", or the path of a Unix socket), until it is cut. `path` is that of
    its own Unix socket, if it has one. change(data, role), if set, gets each piece that passes, and returns the bytes to
    pass on. With `record`, heard[DIALLER] and heard[LISTENER] have what they have sent since the last connection."""

    def __init__(self, target, path=None, change=None, record=False):
        self.target, self.change, self.changed = target, change, 0
        self.record, self.heard = record, {}
        self.lock = threading.Lock()
        self.ends, self.passed, self.limit = [], 0, NEVER
        self.listener = (socket.create_server(str(path), family=socket.AF_UNIX) if path else
                         socket.create_server(('127.0.0.1', 0)))
        self.address = str(path or '127.0.0.1:%d' % self.listener.getsockname()[1])
        self._start(self._accept)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def cut_after(self, size):
        """Cuts the cable after that many more bytes."""
        with self.lock:
            self.limit = self.passed + size

    @property
    def is_cut(self):
        return self.limit != NEVER and self.passed >= self.limit

    def mend(self):
        with self.lock:
            self.limit = NEVER

    def change_once(self, least, change, only=(DIALLER, LISTENER)):
        """Lets change(data) alter the next piece of at least that many bytes that one of these sends."""
        def once(data, role):
            if len(data) < least or role not in only:
                return data
            self.change = None
            self.changed += 1
            return change(data)
        self.change = once

    def close(self):
        self.cut_after(0)
        self.listener.close()
        self._hang_up()

    def _start(self, function, *args):
        threading.Thread(target=function, args=args, daemon=True).start()

    def _accept(self):
        while True:
            try:
                dialler, _ = self.listener.accept()
            except OSError:
                return
            try:
                if self.is_cut:
                    raise OSError('cut')
                listener = connect(self.target, None)
            except OSError:
                dialler.close()
                continue
            with self.lock:
                self.ends += [dialler, listener]
                self.heard = {DIALLER: b'', LISTENER: b''}
            self._start(self._pass_on, dialler, listener, DIALLER)
            self._start(self._pass_on, listener, dialler, LISTENER)

    def _pass_on(self, source, sink, role):
        with contextlib.suppress(OSError):
            while data := source.recv(LARGE if self.change else SMALL):
                with self.lock:
                    self.passed += len(data)
                    if self.change:
                        data = self.change(data, role)
                    if self.record:
                        self.heard[role] += data
                if self.is_cut:
                    break
                sink.sendall(data)
        self._hang_up([source, sink])

    def _hang_up(self, ends=None):
        with self.lock:
            for end in list(self.ends) if ends is None else ends:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                if end in self.ends:
                    self.ends.remove(end)


class CabledTorus(LoopbackTorus):
    """The link at port `port` of node `end` is torus.cable."""

    def __init__(self, *args, end=4, port='+1', **options):
        super().__init__(*args, **options)
        self.end, self.port, self.cable = end, port, None

    def _build(self):
        super()._build()
        addresses = self.nodes[self.end].addresses
        self.cable = Cable(addresses[self.port])
        addresses = {**addresses, self.port: self.cable.address}
        daemon = Daemon(self.end, self.command(self.end, addresses), self.run, self.wrap)
        self.nodes[self.end] = Node(self, self.end, daemon, addresses)

    def _tear_down(self):
        if self.cable is not None:
            self.cable.close()
        super()._tear_down()
