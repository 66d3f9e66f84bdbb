"""A socket whose waiting is limited as patience.py says."""

import select
import socket

from .patience import Patience


class PatientSocket(socket.socket):
    """A stream socket whose connect(), sendall() and recv() raise TimeoutError after that many seconds (None: no
    limit). settimeout() and setblocking() suspend the limit until be_patient()."""

    def __init__(self, family, seconds):
        super().__init__(family, socket.SOCK_STREAM)
        self.seconds = seconds

    def connect(self, address):
        if self.seconds is None or self.family == socket.AF_UNIX:
            # A non-blocking Unix socket would not wait for room in the listener's queue.
            return super().connect(address)
        super().setblocking(False)
        try:
            super().connect(address)
        except BlockingIOError:
            self._await(select.POLLOUT, Patience(self.seconds))
            error = self.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error:
                raise OSError(error, f'cannot connect to {address}') from None
        super().setblocking(True)

    def recv(self, *args):
        if self.seconds is not None:
            self._await(select.POLLIN, Patience(self.seconds))
        return super().recv(*args)

    def sendall(self, data):
        if self.seconds is None:
            return super().sendall(data)
        patience, left = Patience(self.seconds), memoryview(data)
        while left:
            self._await(select.POLLOUT, patience)
            left = left[self.send(left, socket.MSG_DONTWAIT):]

    def be_patient(self, seconds):
        super().setblocking(True)
        self.seconds = seconds

    def settimeout(self, seconds):
        self.seconds = None
        super().settimeout(seconds)

    def setblocking(self, flag):
        self.seconds = None
        super().setblocking(flag)

    def _await(self, what, patience):
        poll = select.poll()
        poll.register(self, what)
        while not poll.poll(1000 * patience.pause):
            if patience.over:
                raise TimeoutError(f'nothing within {patience.seconds:g} s')
