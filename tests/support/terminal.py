"""Commands whose output is a terminal."""

import fcntl
import os
import pty
import struct
import subprocess
import termios

from torus_net.patience import Patience, wait


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


def run_in_terminal(command, columns=80, env=None):
    """(exit status, what it prints on a terminal of so many columns and 24 lines, without carriage returns)."""
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
    process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=writer,
                               env={**os.environ, 'TERM': 'xterm', 'LC_ALL': 'C.UTF-8', **(env or {})})
    os.close(writer)
    text = read_all(reader)
    return wait(process, Patience(60)), text.decode().replace('\r', '')
