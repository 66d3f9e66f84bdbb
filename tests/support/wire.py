"""Frames as a hostile peer or client would send them: prefix, protobuf head, body. The field numbers
are those of proto/peer.proto and proto/control.proto."""

import socket
import struct

HEAD = {name: number for number, name in enumerate(
    ('stepped_data', 'hello', 'refusal', 'heartbeat', 'link_state', 'prepare', 'ready', 'go',
     'round_done', 'round_go', 'done', 'commit', 'confirm', 'verdict', 'streamed_data', 'outcome',
     'clear', 'repeated', 'calibration', 'sized', 'layout', 'objection', 'outcome_query'), 1)}


class Fixed64(int):
    """An integer that protobuf writes as eight bytes."""


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def message(fields):
    """{number: value}: int, Fixed64, str, bytes or (nested) dict, or a list of those."""
    out = b''
    for number, values in fields.items():
        for value in values if isinstance(values, list) else [values]:
            if isinstance(value, Fixed64):
                out += varint(number << 3 | 1) + struct.pack('<Q', value & (1 << 64) - 1)
            elif isinstance(value, int):
                out += varint(number << 3) + varint(int(value))
            else:
                data = (message(value) if isinstance(value, dict) else
                        value.encode() if isinstance(value, str) else value)
                out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def frame(head, body=b''):
    head = head if isinstance(head, bytes) else message(head)
    return struct.pack('>II', len(head), len(body)) + head + body


def peer(kind, fields=None, body=b''):
    """A frame for a peer port."""
    return frame({HEAD[kind]: fields or {}}, body)


def hello(dims, rank, port, version=3, boot=7):
    return peer('hello', {1: version, 2: dims, 3: rank, 4: port, 5: Fixed64(boot)})


def connect(address, timeout=20):
    """A TCP connection to "127.0.0.1:4711", or to the Unix socket of that path."""
    if '/' in address:
        s = socket.socket(socket.AF_UNIX)  # to wait for room in the queue it has to block
        s.connect(address)
        s.settimeout(timeout)
        return s
    host, _, port = address.rpartition(':')
    return socket.create_connection((host, int(port)), timeout)


def send(s, data):
    """Sends the data. Returns whether the other side was still there."""
    try:
        s.sendall(data)
        return True
    except (BrokenPipeError, ConnectionResetError):
        return False


def finish(s):
    """Shuts down the sending side."""
    try:
        s.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the other side was faster


def until_closed(s):
    """Returns everything received until the other side closes."""
    data = b''
    try:
        while piece := s.recv(65536):
            data += piece
    except ConnectionResetError:
        pass
    return data


def frames(data):
    """The heads in a stream of frames."""
    heads = []
    while len(data) >= 8:
        head, body = struct.unpack('>II', data[:8])
        heads.append(data[8:8 + head])
        data = data[8 + head + body:]
    return heads
