"""Limits of the rate of emulated links, as commands of ip and tc for each interface.

None       no limit
Limit      Mininet's own: about 15 KiB pass at once, and a segment of up to 64 KiB as a whole
Bucket     `--burst`: at most this many bytes pass at once; longer segments are cut into packets
Cable      `--cable`: a packet arrives when its last bit has left at the rate of the link, as on a
           cable; the next one follows it. Nothing passes at once
"""

import re
from dataclasses import dataclass, replace

from .cable import STAND_IN, credit_bytes
from .geometry import UsageError
from .rate import parse_mbit

FRAME = 1514             # the longest packet: 1500 bytes of IP and the Ethernet header
QUEUE = 16 << 20         # bytes; more than TCP ever queues, so that nothing is dropped
LONGEST_BURST = 1 << 30
UNITS = {'': 1, 'B': 1, 'K': 1 << 10, 'KIB': 1 << 10, 'M': 1 << 20, 'MIB': 1 << 20, 'G': 1 << 30,
         'GIB': 1 << 30, 'KB': 1000, 'MB': 1000000, 'GB': 1000000000}


def parse_bytes(text):
    """The bytes that a text such as 64, 1KiB or 1 MiB gives; ValueError for others."""
    match = re.fullmatch(r'([0-9]+) ?([A-Za-z]*)', str(text).strip())
    if not match or match[2].upper() not in UNITS:
        raise ValueError(f'"{text}" is not a size such as 64, 1KiB or 1MiB')
    return int(match[1]) * UNITS[match[2].upper()]


def parse_burst(text):
    """UsageError if the text is not a burst that a link can have."""
    try:
        burst = parse_bytes(text)
    except ValueError as e:
        raise UsageError(str(e)) from None
    if burst < FRAME:
        raise UsageError(f'a burst of {text} is too small: a packet has up to {FRAME} bytes '
                         '(nothing passes at once with torus.py --cable)')
    if burst > LONGEST_BURST:
        raise UsageError(f'a burst of {text} is too large: at most 1GiB')
    return burst


@dataclass(frozen=True)
class Limit:
    mbit: float
    at_once = 65536  # bytes that pass at once, for the daemons

    def at(self, mbit):
        """The same kind of limit with another rate."""
        return replace(self, mbit=mbit)

    def ip_lines(self, _interface):
        return []

    def change_lines(self, interface):
        """For tc: sets this rate on an interface that has a limit of the same kind."""
        return [line.replace(' add ', ' change ', 1) for line in self.tc_lines(interface)
                if line.startswith('class')]

    def tc_lines(self, interface):
        """The limit is that of Mininet's TCIntf; the quantum only avoids a warning of the kernel."""
        return [f'qdisc add dev {interface} root handle 5:0 htb default 1',
                f'class add dev {interface} parent 5:0 classid 5:1 htb '
                f'rate {self.mbit:f}Mbit burst 15k quantum 60000']


@dataclass(frozen=True)
class Bucket(Limit):
    burst: int

    @property
    def at_once(self):
        return self.burst

    def change_lines(self, interface):
        return [line.replace(' add ', ' change ', 1) for line in self.tc_lines(interface)]

    def tc_lines(self, interface):
        return [f'qdisc add dev {interface} root tbf rate {self.mbit:f}Mbit burst {self.burst} '
                f'limit {QUEUE + self.burst}']


@dataclass(frozen=True)
class Cable(Limit):
    """See cable.py, whose program must be attached to the interface afterwards."""

    at_once = 0

    def ip_lines(self, interface):
        return [f'link set {interface} gso_max_segs 1']

    def tc_lines(self, interface):
        credit = credit_bytes(self.mbit)
        return [f'qdisc add dev {interface} root handle 5:0 stab overhead -{STAND_IN} htb default 1',
                f'class add dev {interface} parent 5:0 classid 5:1 htb rate {self.mbit:f}Mbit '
                f'burst {credit} cburst {credit} quantum 60000',
                f'qdisc add dev {interface} clsact']


def make_limit(mbit, burst=None, cable=False):
    """The limit that the options describe, or None. UsageError if they contradict each other."""
    if mbit is None:
        if burst is not None or cable:
            raise UsageError(f'{"--cable" if cable else "--burst"} needs the rate of the links (--bw)')
        return None
    mbit = parse_mbit(mbit)
    if cable:
        if burst is not None:
            raise UsageError('--burst and --cable exclude each other: on a cable nothing passes at once')
        return Cable(mbit)
    return Limit(mbit) if burst is None else Bucket(mbit, parse_burst(burst))
