"""Faults of cables between virtual machines. A cable is a pair of connected sockets, one for a network card of
each machine. The launcher keeps both ends open, too."""

import ctypes
import json
import socket

from .process import TorusError

SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27
ANSWER_SECONDS = 600  # qemu answers as soon as it runs; if it has died, the connection is closed


class _Instruction(ctypes.Structure):
    _fields_ = [('code', ctypes.c_uint16), ('jt', ctypes.c_uint8), ('jf', ctypes.c_uint8),
                ('k', ctypes.c_uint32)]


class _Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_uint16), ('instructions', ctypes.POINTER(_Instruction))]


def mute(end):
    """From now on this end receives nothing, and the sender does not notice. The filter (return 0: keep no byte of
    the packet) belongs to the socket, so it also applies to qemu, which has the same socket open."""
    nothing = _Instruction(code=0x06, k=0)
    program = _Program(1, ctypes.pointer(nothing))
    end.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, bytes(program))


def unmute(end):
    try:
        end.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
    except FileNotFoundError:
        pass  # it was not muted


class Monitor:
    """A connection to qemu's monitor (QMP), which controls a machine's network cards."""

    def __init__(self, connection, rank):
        connection.settimeout(ANSWER_SECONDS)
        self.connection, self.rank = connection, rank
        self.lines = connection.makefile('rb')
        self.greeted = False

    def close(self):
        self.lines.close()
        self.connection.close()

    def set_link(self, port_name, up):
        self._execute('set_link', name=device(port_name), up=up)

    def _execute(self, command, **arguments):
        if not self.greeted:
            self.greeted = True
            self._execute('qmp_capabilities')
        try:
            self.connection.sendall(json.dumps({'execute': command, 'arguments': arguments}).encode())
            while line := self.lines.readline():
                said = json.loads(line)
                if 'return' in said:
                    return
                if 'error' in said:  # not an event, nor the greeting
                    raise TorusError(f'node {self.rank}: qemu: {command}: {said["error"]["desc"]}')
        except (OSError, ValueError) as e:
            raise TorusError(f'node {self.rank}: qemu does not answer: {e}') from e
        raise TorusError(f'node {self.rank}: qemu has ended')


def device(port_name):
    """The name by which qemu knows the network card of a port."""
    return f'card{port_name.replace("+", "p").replace("-", "m").replace(":", "t")}'
