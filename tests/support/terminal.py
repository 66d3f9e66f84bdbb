"""Commands whose output is a terminal."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

from torus_net.patience import Patience, communicate, wait

from .background import Background
from .waiting import wait_for

SAID = {'TORUS_PROGRESS': '1'}


def read_all(reader):
    """What programs write to a terminal, until all of them have closed it. Closes this side."""
    text = b''
    try:
        while piece := os.read(reader, 65536):
            text += piece
    except OSError:  # the other side is closed
        pass
    os.close(reader)
    return text


def resize(terminal, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))


def run_in_terminal(command, columns=80, env=None):
    """(exit status, what it prints on a terminal of that many columns and 24 lines, without carriage returns)."""
    reader, writer = pty.openpty()
    resize(writer, columns)
    process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=writer,
                               env={**os.environ, 'TERM': 'xterm', 'LC_ALL': 'C.UTF-8', **(env or {})})
    os.close(writer)
    text = read_all(reader)
    return wait(process, Patience(60)), text.decode().replace('\r', '')


class Spoken(Background):
    """A command whose standard error is read while it runs: a pipe, or a terminal."""

    def __init__(self, command, terminal=False, env=SAID, columns=100):
        self.text = b''
        self.reader, writer = pty.openpty() if terminal else os.pipe()
        os.set_blocking(self.reader, False)
        if terminal:
            self.resize(columns)
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=writer, env={**os.environ, 'TERM': 'xterm', **env}, text=True)
        os.close(writer)

    def __exit__(self, *_):
        super().__exit__()
        os.close(self.reader)

    def resize(self, columns):
        resize(self.reader, columns)

    def read(self):
        """Its whole standard error so far."""
        try:
            while piece := os.read(self.reader, 65536):
                self.text += piece
        except OSError:  # nothing more for now; or the other side of the terminal is closed
            pass
        return self.text.decode()

    def wait_says(self, pattern):
        return wait_for(lambda: re.search(pattern, self.read()), 30, self.read)

    def end(self, seconds=60):
        out, _ = communicate(self.process, Patience(seconds))
        return self.process.returncode, out, self.read()
