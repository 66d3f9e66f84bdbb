"""A patch panel: every network card ends in a socket, and a thread carries frames between the sockets that a cable
connects. Cables can be plugged while the machines run."""

import selectors
import socket
import threading

FRAME = 65600


class Panel:
    def __init__(self):
        self._ours = {}    # by (machine, interface): our end of its socket
        self._theirs = {}  # qemu's end, which stays open while the machine is off
        self._peer = {}    # by end, the end of the other plug of its cable
        self._mute = set()
        self._selector = selectors.DefaultSelector()
        self._stop, self._stopped = socket.socketpair()
        self._selector.register(self._stop, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def add(self, end):
        """Adds a card, (machine, interface). Returns the socket for qemu."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        ours.setblocking(False)
        theirs.setblocking(False)
        self._ours[end], self._theirs[end] = ours, theirs
        self._selector.register(ours, selectors.EVENT_READ, end)
        return theirs

    def plug(self, a, b):
        """Connects two cards by a cable; cables that they had are pulled."""
        self.pull(a)
        self.pull(b)
        self._peer[a], self._peer[b] = b, a

    def pull(self, end):
        """Pulls the cable of a card. Returns the card at its other end, or None."""
        other = self._peer.pop(end, None)
        if other is not None:
            self._peer.pop(other, None)
        return other

    def other_end(self, end):
        return self._peer.get(end)

    def mute(self, end, muted=True):
        """What this card sends is lost, while its carrier stays: a cable that works one way."""
        (self._mute.add if muted else self._mute.discard)(end)

    def close(self):
        self._stopped.send(b'x')
        self._thread.join()
        for connection in [*self._ours.values(), *self._theirs.values(), self._stop, self._stopped]:
            connection.close()

    def _carry(self):
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    return
                self._forward(key.data)

    def _forward(self, end):
        """Passes on up to 64 frames; a full socket loses frames, as a switch does."""
        for _ in range(64):
            try:
                frame = self._ours[end].recv(FRAME)
            except OSError:
                return
            other = self._peer.get(end)
            if other is None or end in self._mute:
                continue
            try:
                self._ours[other].send(frame)
            except OSError:
                pass
