"""A loopback torus with one link that goes through this process, which can cut the link after any byte."""

import socket
import threading

from torus_net import LoopbackTorus
from torus_net.process import Daemon
from torus_net.torus import Node

NEVER = float('inf')


class Cable:
    """Relays connections to `target`, in both directions, until it is cut."""

    def __init__(self, target):
        host, port = target.rsplit(':', 1)
        self.target = (host, int(port))
        self.lock = threading.Lock()
        self.ends, self.passed, self.limit = [], 0, NEVER
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.address = '127.0.0.1:%d' % self.listener.getsockname()[1]
        self._start(self._accept)

    def cut_after(self, size):
        """Cuts the cable after so many more bytes."""
        with self.lock:
            self.limit = self.passed + size

    @property
    def is_cut(self):
        return self.limit != NEVER and self.passed >= self.limit

    def mend(self):
        with self.lock:
            self.limit = NEVER

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
                listener = socket.create_connection(self.target)
            except OSError:
                dialler.close()
                continue
            with self.lock:
                self.ends += [dialler, listener]
            self._start(self._pass_on, dialler, listener)
            self._start(self._pass_on, listener, dialler)

    def _pass_on(self, source, sink):
        try:
            while data := source.recv(16384):
                with self.lock:
                    self.passed += len(data)
                if self.is_cut:
                    break
                sink.sendall(data)
        except OSError:
            pass
        self._hang_up([source, sink])

    def _hang_up(self, ends=None):
        with self.lock:
            ends = list(self.ends) if ends is None else ends
            for end in ends:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
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
