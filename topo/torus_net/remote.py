"""Runs a shell command in a virtual machine as if it ran here: `remote.py R.shell COMMAND`. Standard
input and output are the command's, and the exit status; its errors come with its output."""

import os
import re
import socket
import sys
import threading


def main(path, command):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        connection.sendall(command.encode() + b'\n')
        threading.Thread(target=_send_input, args=(connection,), daemon=True).start()
        held = b''  # from the last zero byte on: this may be the status
        while True:
            data = connection.recv(65536)
            held += data
            mark = re.search(rb'\0\d{0,3}\Z', held)
            if not data:
                break
            end = mark.start() if mark else len(held)
            _write(held[:end])
            held = held[end:]
    if len(held) < 2:
        sys.exit('remote.py: the connection to the machine was lost')
    return int(held[1:])


def _send_input(connection):
    try:
        while data := os.read(0, 65536):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the command has not read all of its input


def _write(data):
    while data:
        data = data[os.write(1, data):]


if __name__ == '__main__':
    status = main(*sys.argv[1:])
    os._exit(status)  # the thread may still read
