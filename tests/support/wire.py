"""Frames as a hostile peer or client could send them: prefix, protobuf head, body. The field numbers are those
of proto/peer_fields.h and proto/control.proto.in. The handshake follows daemon/torusd/router/handshake.h; the check of a
peer's head follows daemon/torusd/router/outgoing.h."""

import ctypes
import hashlib
import os
import re
import socket
import struct
from pathlib import Path

from torus_net.patient_socket import PatientSocket

PROTO = Path(__file__).resolve().parents[2] / 'proto'
HEADER = PROTO / 'frame.h'
VERSION = int(re.search(r'#define PROTOCOL_VERSION (\d+)u', HEADER.read_text())[1])
MINOR = int(re.search(r'#define PROTOCOL_MINOR (\d+)u', HEADER.read_text())[1])
CODES = re.findall(r'^    ERROR_(\w+)', (PROTO / 'error.h').read_text(), re.M)  # in the order of their numbers

HEAD = {name: number for number, name in enumerate(
    ('stepped_data', 'hello', 'refusal', 'heartbeat', 'link_state', 'prepare', 'ready', 'go',
     'round_done', 'round_go', 'done', 'commit', 'confirm', 'abort', 'streamed_data', 'outcome',
     'clear', 'repeated', 'calibration', 'sizes', 'layout', 'nack', 'outcome_query'), 1)}
HEAD['proof'] = 29
HEAD['probe'], HEAD['probe_answered'] = 35, 36
CHECK = 33

xxhash = ctypes.CDLL('libxxhash.so.0')
xxhash.XXH3_64bits_withSeed.argtypes = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64
xxhash.XXH3_64bits_withSeed.restype = ctypes.c_uint64


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


def peer_frame(head, body=b''):
    """A head with the check at its end that peers require."""
    head = head if isinstance(head, bytes) else message(head)
    check = xxhash.XXH3_64bits_withSeed(head, len(head), len(head) << 32 | len(body)) & (1 << 32) - 1
    return frame(head + varint(CHECK << 3 | 5) + struct.pack('<I', check), body)


def peer(kind, fields=None, body=b''):
    """A frame for a peer port."""
    return peer_frame({HEAD[kind]: fields or {}}, body)


def hello(dims, rank, port, version=VERSION, boot=7, keys=(), challenge=b'', minor=MINOR):
    fields = {1: version, 2: dims, 3: rank, 4: port, 5: Fixed64(boot), 10: minor}
    if keys:
        fields.update({6: [key_id(key) for key in keys], 7: challenge})
    return peer('hello', fields)


def read_key(path):
    """The bytes of a key file."""
    return bytes.fromhex(Path(path).read_text().split()[1])


def key_id(key):
    return hashlib.blake2b(b'torusd key id', key=key, digest_size=16).digest()[:8]


def read_varint(data, at):
    """The number that begins at this byte, and where it ends."""
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def packed(data):
    """The numbers of a packed field."""
    found, at = [], 0
    while at < len(data):
        value, at = read_varint(data, at)
        found.append(value)
    return found


def fields_of(data):
    """{number: [values]} of a protobuf message."""
    found, at = {}, 0
    while at < len(data):
        tag, at = read_varint(data, at)
        if tag & 7 == 0:
            value, at = read_varint(data, at)
        elif tag & 7 == 1:
            value, at = struct.unpack_from('<Q', data, at)[0], at + 8
        elif tag & 7 == 5:
            value, at = struct.unpack_from('<I', data, at)[0], at + 4
        else:
            length, at = read_varint(data, at)
            value, at = data[at:at + length], at + length
        found.setdefault(tag >> 3, []).append(value)
    return found


DIALLER, LISTENER = 0, 1


def proof_digest(key, role, dialler, listener):
    """The proof of `role` for the fields of the dialler's and the listener's hello."""
    def side(fields):
        zeros = bytes(32)
        keys = fields.get(6, [])
        return (struct.pack('>IIQBI', fields.get(3, [0])[0], fields.get(4, [0])[0],
                            fields.get(5, [0])[0], fields.get(8, [0])[0], fields.get(10, [0])[0]) +
                fields.get(7, [zeros])[0] + fields.get(9, [zeros])[0] +
                bytes([len(keys)]) + b''.join(keys))

    dims = dialler[2][0]
    return hashlib.blake2b(b'torusd link' + bytes([role]) + struct.pack('>I', VERSION) +
                           struct.pack('>H', len(dims)) + dims + side(dialler) + side(listener),
                           key=key, digest_size=32).digest()


def read_frame(s):
    """(number of its kind in the head, its fields, all its bytes)."""
    def exactly(length):
        data = b''
        while len(data) < length:
            piece = s.recv(length - len(data))
            if not piece:
                raise ConnectionResetError('closed by the other side')
            data += piece
        return data

    prefix = exactly(8)
    head, body = struct.unpack('>II', prefix)
    rest = exactly(head + body)
    (kind, [value]), *check = fields_of(rest[:head]).items()
    assert not check or check[0][0] == CHECK
    return kind, fields_of(value), prefix + rest


def shake_hands(s, key, dims, rank, port, boot=7, minor=MINOR):
    """Does the dialler's part of a handshake for a node at a port. Returns the sent and the received messages."""
    mine = hello(dims, rank, port, boot=boot, keys=[key], challenge=os.urandom(32), minor=minor)
    s.sendall(mine)
    kind, theirs, heard = read_frame(s)
    assert kind == HEAD['hello'], theirs
    ours = fields_of(fields_of(mine[8:])[HEAD['hello']][0])
    kind, fields, more = read_frame(s)
    assert kind == HEAD['proof'] and fields[1] == [proof_digest(key, LISTENER, ours, theirs)]
    sent = peer('proof', {1: proof_digest(key, DIALLER, ours, theirs)})
    s.sendall(sent)
    return mine + sent, heard + more


def pass_probe(s):
    """After shake_hands(): makes the link come up by exchanging frames of full size."""
    kind, fields, _ = read_frame(s)
    assert kind == HEAD['probe'], fields
    s.sendall(peer('probe_answered', {1: len(fields[1][0])}) + peer('probe', {1: bytes(3000)}))
    assert read_frame(s)[0] == HEAD['probe_answered']


def connect(address, timeout=20):
    """A TCP connection to "127.0.0.1:4711", or to the Unix socket of that path: a PatientSocket."""
    host, _, port = address.rpartition(':')
    s = PatientSocket(socket.AF_UNIX if '/' in address else socket.AF_INET, timeout)
    try:
        s.connect(address if '/' in address else (host, int(port)))
    except OSError:
        s.close()
        raise
    return s


def says_whole(path):
    """Whether the daemon with this control socket reports that every link of every node is up. Much cheaper than
    starting torusctl."""
    try:
        with connect(path, 5) as s:
            s.sendall(frame({1: {}}))
            kind, fields, _ = read_frame(s)
    except OSError:
        return False
    return kind == 2 and fields.get(6) == [1]


def error_of(head):
    """The code of an error reply from a control socket, as in proto/error.h ("REFUSED"); None for another reply."""
    error = fields_of(head).get(1)
    return error and CODES[fields_of(error[0])[1][0]]


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


def is_kind(head, kind):
    return head.startswith(varint(HEAD[kind] << 3 | 2))


def heads_until(s, found):
    """The heads that arrive until found(head) holds for one."""
    data = b''
    while not any(map(found, frames(data))):
        piece = s.recv(65536)
        assert piece, frames(data)
        data += piece
    return frames(data)
