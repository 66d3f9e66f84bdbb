"""A torus of plain processes on 127.0.0.1: no root, no rate limits.

Each link needs its own TCP port. A port is reserved by binding it, with SO_REUSEADDR, to a socket
that never listens and stays open as long as the torus: the kernel gives the port to no other program,
and torusd, which also sets SO_REUSEADDR, can bind it and listen on it however often it restarts.
"""

import socket

from .process import Daemon
from .torus import Node, Torus


class LoopbackTorus(Torus):
    kind = 'loopback'

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self._reserved = []

    def _build(self):
        ports = [self._reserve() for _ in self.geometry.links]
        for rank in range(self.geometry.nodes):
            addresses = {port.name: f'127.0.0.1:{ports[self.geometry.link(rank, port).index]}'
                         for port in self.geometry.ports(rank)}
            daemon = Daemon(rank, self.command(rank, addresses), self.run, self.wrap)
            self.nodes.append(Node(self, rank, daemon, addresses))

    def _tear_down(self):
        for reserved in self._reserved:
            reserved.close()
        self._reserved = []

    def _reserve(self):
        reserved = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._reserved.append(reserved)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(('127.0.0.1', 0))
        return reserved.getsockname()[1]
