"""A client that watches the link states of the whole torus, as torus-routed does."""

import struct

from .wire import Fixed64, connect, fields_of, frame, frames, packed, send

WATCH = frame({9: {}})
LINK_STATES = 11
# What torus-routed tells: hosts by state, ways lost and gained, milliseconds without a change.
COUNTS = {1: bytes((9, 1, 0, 2, 0, 3, 0)), 2: 7, 3: 12, 4: 5000}


class Watcher:
    """What a client that watches the links of a node knows."""

    def __init__(self, torus, rank):
        self.socket = connect(torus.node(rank).socket, 30)
        self.data, self.up, self.confirmed, self.forwards, self.rates, self.messages = b'', {}, {}, {}, {}, []
        send(self.socket, WATCH)

    def hear(self):
        """Waits for a message, and returns what it says about the nodes."""
        seen = len(self.messages)
        while len(self.messages) == seen:
            piece = self.socket.recv(65536)
            assert piece, 'closed'
            self.data += piece
            heads = frames(self.data)
            self.messages = [fields_of(fields_of(head)[LINK_STATES][0]) for head in heads]
        for message in self.messages[seen:]:
            nodes, rates = packed(message.get(5, [b''])[0]), packed(message.get(12, [b''])[0])
            self.up.update(zip(nodes, packed(message.get(6, [b''])[0])))
            self.forwards.update(zip(nodes, packed(message.get(11, [b''])[0])))
            ports = len(rates) // len(nodes) if nodes else 0
            self.rates.update((node, rates[i * ports:(i + 1) * ports]) for i, node in enumerate(nodes))
            digests = message.get(10, [b''])[0]
            self.confirmed.update(zip(packed(message.get(9, [b''])[0]), struct.unpack(f'<{len(digests) // 8}Q', digests)))
        return self.up

    def hear_until(self, up):
        while self.up != up:
            self.hear()

    def tell_routes(self, forwards=True, counts=COUNTS, by_rates=True):
        """Says what torus-routed says about its routes; without `counts` or `by_rates`, as an earlier release of it."""
        send(self.socket, frame({10: {1: Fixed64(1), 2: int(forwards), **({3: counts} if counts else {}),
                                      **({4: 1} if by_rates else {})}}))
