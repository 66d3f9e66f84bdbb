"""Links that carry one packet after another, as a cable does.

A token bucket lets a packet through at once if the link has been idle, and waits afterwards; so short
messages take no time at all. On a cable, a packet arrives when its last bit has left. Here an eBPF
program at the exit of each interface (clsact) sends a stand-in ahead of every packet, through the same
queue: HTB lets the stand-in through, goes into debt by its length, and so holds the packet itself back
for as long as its bits take. The packet itself costs nothing. The stand-in of the next packet leaves
together with it.

HTB has a burst of CREDIT, so that a late timer costs the link nothing: the packets after it leave
earlier. An idle link would gain that credit, too. So the program remembers when its link becomes idle,
and makes the first stand-in afterwards longer by the credit that has accrued since.

Stand-ins are STAND_IN bytes longer than their packets, and the queue counts everything as STAND_IN
bytes shorter (tc-stab), so the stand-in costs the packet's length and the packet nothing. The veth
device drops stand-ins because they exceed its MTU; they appear in its counter of dropped packets only.
"""

import ctypes
import os
import platform
import socket
import struct

from .process import TorusError

STAND_IN = 2048     # bytes; longer than any packet
CREDIT = 2_000_000  # nanoseconds
CREDIT_MOST = 12000  # bytes: the most by which the kernel can lengthen a packet
MARK = 0x70726f78   # of packets on their way through the queue


def credit_bytes(mbit):
    return min(CREDIT_MOST, int(CREDIT * mbit / 8000))


# --- the program (linux/bpf.h) ---

_LEN, _MARK, _IFINDEX = 0, 8, 40  # offsets in struct __sk_buff
_KTIME, _CLONE_REDIRECT, _CHANGE_HEAD = 5, 13, 43
_LOAD, _STORE, _LOAD_LONG, _STORE_LONG, _IMMEDIATE = 0x61, 0x63, 0x79, 0x7b, 0x18
_CALL, _EXIT, _JEQ, _JSGE, _JLE = 0x85, 0x95, 0x15, 0x7d, 0xb5
_MOVE, _SET, _ADD, _ADD_TO, _SUBTRACT, _TIMES, _SHIFT = 0xbf, 0xb7, 0x0f, 0x07, 0x1f, 0x27, 0x77
_MAP_VALUE = 2
_FRACTION = 16  # bits after the point


def _assemble(lines):
    """Lines of (label) and (code, to, of, offset or label, value) as the kernel's instructions."""
    at, labels = 0, {}
    for line in lines:
        if isinstance(line, str):
            labels[line] = at
        else:
            at += 1
    result, at = [], 0
    for line in lines:
        if isinstance(line, str):
            continue
        code, to, of, offset, value = line
        at += 1
        if isinstance(offset, str):
            offset = labels[offset] - at
        result.append(struct.pack('<BBhi', code, to | of << 4, offset, value))
    return b''.join(result)


def _program(mbit, clocks, index):
    """The program of one interface. It keeps its time in entry `index` of the map `clocks` (a descriptor)."""
    def one(code, to=0, of=0, offset=0, value=0):
        return code, to, of, offset, value

    limit = credit_bytes(mbit)
    return _assemble([
        one(_MOVE, 6, 1),                          # r6 = skb
        one(_LOAD, 1, 6, _MARK),
        one(_JEQ, 1, 0, 'stand-in', MARK),
        one(_SET, 1, value=MARK),                  # a packet: a marked copy goes ahead
        one(_STORE, 6, 1, _MARK),
        one(_MOVE, 1, 6),
        one(_LOAD, 2, 6, _IFINDEX),
        one(_SET, 3),
        one(_CALL, value=_CLONE_REDIRECT),         # runs this program on the copy
        one(_SET, 0),                              # TC_ACT_OK
        one(_EXIT),
        'stand-in',
        one(_LOAD, 7, 6, _LEN),                    # r7 = its length
        one(_CALL, value=_KTIME),                  # r0 = now
        one(_IMMEDIATE, 9, _MAP_VALUE, 0, clocks), one(0, 0, 0, 0, 8 * index),
        one(_LOAD_LONG, 1, 9, 0),                  # r1 = when the link is idle, r8 = the credit
        one(_SET, 8),
        one(_JSGE, 1, 0, 'busy'),
        one(_MOVE, 8, 0),
        one(_SUBTRACT, 8, 1),
        one(_MOVE, 1, 0),
        one(_JLE, 8, 0, 'short', CREDIT),
        one(_SET, 8, value=CREDIT),
        'short',
        one(_TIMES, 8, value=int(mbit / 8000 * 2 ** _FRACTION)),
        one(_SHIFT, 8, value=_FRACTION),
        one(_JLE, 8, 0, 'busy', limit),
        one(_SET, 8, value=limit),
        'busy',
        one(_TIMES, 7, value=int(8000 / mbit * 2 ** 8)),
        one(_SHIFT, 7, value=8),
        one(_ADD, 1, 7),                           # the link is busy until then
        one(_STORE_LONG, 9, 1, 0),
        one(_MOVE, 1, 6),
        one(_MOVE, 2, 8),
        one(_ADD_TO, 2, value=STAND_IN),
        one(_SET, 3),
        one(_CALL, value=_CHANGE_HEAD),            # longer by this
        one(_SET, 0),
        one(_EXIT)])


_BPF = {'x86_64': 321, 'aarch64': 280, 'riscv64': 280, 'ppc64le': 361, 's390x': 351}
_MAP_CREATE, _ARRAY, _PROG_LOAD, _SCHED_CLS = 0, 2, 5, 3
_libc = ctypes.CDLL(None, use_errno=True)


def _bpf(command, attributes):
    number = _BPF.get(platform.machine())
    if number is None:
        raise TorusError(f'--cable does not know the system calls of {platform.machine()}')
    fd = _libc.syscall(number, command, ctypes.create_string_buffer(attributes.ljust(128, b'\0')), 128)
    return fd, os.strerror(ctypes.get_errno()) if fd < 0 else None


class Cables:
    """The ends of all cables of a torus. For each end, a map holds the time at which the link becomes idle."""

    def __init__(self, ends):
        self.ends = {}  # name of an interface: its place in the map
        self.clocks, error = _bpf(_MAP_CREATE, struct.pack('=IIIII', _ARRAY, 4, 8 * ends, 1, 0))
        if error:
            raise TorusError(f'--cable: the kernel refuses an eBPF map: {error}')

    def close(self):
        """Closes the map. Attached programs stay."""
        os.close(self.clocks)

    def attach(self, pid, interfaces):
        """Attaches a program to each of these interfaces, {name: rate}, in the network namespace of a process,
        in place of the one that it has. Each interface must have a clsact."""
        with _Namespace(pid), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW,
                                            socket.NETLINK_ROUTE) as channel:
            for name, mbit in interfaces.items():
                program = self._load(mbit, self.ends.setdefault(name, len(self.ends)))
                try:
                    channel.send(_request(program, socket.if_nametoindex(name)))
                finally:
                    os.close(program)
                kind, error = struct.unpack_from('=4xH10xi', channel.recv(65536))
                if kind != _NLMSG_ERROR or error:
                    raise TorusError(f'--cable: cannot attach the eBPF program to {name}: '
                                     f'{os.strerror(-error)}')

    def _load(self, mbit, end):
        program = _program(mbit, self.clocks, end)
        code, licence = ctypes.create_string_buffer(program), ctypes.create_string_buffer(b'BSD')
        log = ctypes.create_string_buffer(1 << 16)
        fd, error = _bpf(_PROG_LOAD, struct.pack(
            '=IIQQIIQ', _SCHED_CLS, len(program) // 8, ctypes.addressof(code),
            ctypes.addressof(licence), 1, len(log), ctypes.addressof(log)))
        if error:
            said = log.value.decode(errors='replace').strip().splitlines()
            raise TorusError(': '.join(['--cable: the kernel refuses the eBPF program', error,
                                        *said[-1:]]))
        return fd


# --- attaching it (linux/rtnetlink.h, linux/pkt_cls.h) ---

_RTM_NEWTFILTER, _REQUEST, _ACK, _CREATE, _REPLACE = 44, 1, 4, 0x400, 0x100
_NLMSG_ERROR = 2
_EGRESS = 0xfffffff3  # of clsact
_TCA_KIND, _TCA_OPTIONS, _TCA_BPF_FD, _TCA_BPF_NAME, _TCA_BPF_FLAGS = 1, 2, 6, 7, 8
_DIRECT_ACTION = 1
_ALL_PROTOCOLS, _PRIORITY = 0x0300, 1  # ETH_P_ALL in network order
_CLONE_NEWNET = 0x40000000


def _attribute(kind, value):
    return struct.pack('=HH', 4 + len(value), kind) + value + b'\0' * (-len(value) % 4)


def _request(program, index):
    options = (_attribute(_TCA_BPF_FD, struct.pack('=I', program))
               + _attribute(_TCA_BPF_NAME, b'cable\0')
               + _attribute(_TCA_BPF_FLAGS, struct.pack('=I', _DIRECT_ACTION)))
    body = (struct.pack('=BxxxiIII', socket.AF_UNSPEC, index, 0, _EGRESS,
                        _PRIORITY << 16 | _ALL_PROTOCOLS)
            + _attribute(_TCA_KIND, b'bpf\0') + _attribute(_TCA_OPTIONS, options))
    return struct.pack('=IHHII', 16 + len(body), _RTM_NEWTFILTER,
                       _REQUEST | _ACK | _CREATE | _REPLACE, index, 0) + body


class _Namespace:
    """with _Namespace(pid): this thread is in the network namespace of that process."""

    def __init__(self, pid):
        self.pid = pid

    def __enter__(self):
        self.before = os.open('/proc/thread-self/ns/net', os.O_RDONLY)
        there = os.open(f'/proc/{self.pid}/ns/net', os.O_RDONLY)
        try:
            self._enter(there)
        except BaseException:
            os.close(self.before)
            raise
        finally:
            os.close(there)

    def __exit__(self, *_):
        try:
            self._enter(self.before)
        finally:
            os.close(self.before)

    def _enter(self, fd):
        if _libc.setns(fd, _CLONE_NEWNET) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f'cannot enter a network namespace: {os.strerror(number)}')
