"""Cables with different MTUs: TCP and ping find out what passes on the whole way (path MTU discovery), because the
hosts on the way say so."""

import re
import subprocess

import pytest
from support.routed import converged, give_ipv6
from support.waiting import wait_for
from torus_net.patience import Patience, communicate

NARROW = 1300
PREFIX6 = 'fd12:3456:789a::'
BYTES = 3_000_000
# The first ping may be too large; the answer says how large the next one may be.
PING = ('ping {version} -c 1 -W 1 -M do -s {size} {to}; ping {version} -c 1 -W 5 -M do -s {fits} {to}; '
        'ip {version} route get {to}')
SERVER = ('import socket, sys\ns = socket.create_server((sys.argv[1], 7), family=int(sys.argv[2]))\nprint("ready", flush=True)\n'
          'c = s.accept()[0]\nn = 0\nwhile d := c.recv(1 << 16): n += len(d)\nprint(n)')
CLIENT = ('import socket, sys\nwith socket.create_connection((sys.argv[1], 7), 20) as c:\n'
          '    c.sendall(bytes(int(sys.argv[2])))\n    print(c.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG))')


@pytest.fixture
def line(mininet):
    """A line of four hosts. The cable in its middle, which ends at neither of the outer ones, is narrow."""
    torus = mininet('4m')
    give_ipv6(torus, 'default', 'lo')
    for rank, port in (1, '+0'), (2, '-0'):
        torus.node(rank).run('ip', 'link', 'set', torus.node(rank).interface(port), 'mtu', str(NARROW))
    torus.set_ip_routes(prefix6=PREFIX6)
    converged(torus)
    return torus


def address(torus, rank, version):
    return torus.ip_hosts.addresses[rank] if version == '-4' else f'{PREFIX6}{rank + 1:x}'


@pytest.mark.parametrize('version,head', [('-4', 28), ('-6', 48)])
def test_hosts_on_the_way_say_what_passes(line, version, head):
    to = address(line, 3, version)
    said = line.node(0).run('sh', '-c', PING.format(version=version, size=1500 - head, fits=NARROW - head, to=to))
    assert '1 received' in said.partition('statistics')[2].partition('statistics')[2], said
    assert re.search(rf'(mtu ?= ?{NARROW}|mtu {NARROW})', said.partition('statistics')[0]), said
    assert f'mtu {NARROW}' in said.rpartition('statistics')[2], said  # the kernel has noted it
    # torus-routed looks at its routes again and again, and leaves alone what is right.
    another = address(line, 1, version)
    line.node(0).run('ip', version, 'route', 'del', another, 'proto', '84', 'metric', '84')
    wait_for(lambda: another in line.node(0).run('ip', version, 'route', 'show', 'proto', '84'))
    assert f'mtu {NARROW}' in line.node(0).run('ip', version, 'route', 'get', to)
    line.ip_hosts.undo()
    assert 'could not be removed' not in (line.run.logs / '0.routes.log').read_text()


@pytest.mark.parametrize('version,family,head', [('-4', 2, 40), ('-6', 10, 60)])
def test_tcp_finds_the_size_that_passes(line, version, family, head):
    to = address(line, 3, version)
    server = subprocess.Popen([*line.node(3).host.enter(), '/usr/bin/python3', '-uc', SERVER, to, str(family)],
                              stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline() == 'ready\n'
        segment = int(line.node(0).run('/usr/bin/python3', '-c', CLIENT, to, str(BYTES)))
        assert segment <= NARROW - head
        assert int(communicate(server, Patience(20))[0]) == BYTES
    finally:
        server.kill()
        server.wait()


def test_routes_have_the_mtu_of_the_narrowest_own_cable(line):
    """Its other hosts need not find it out."""
    for version in '-4', '-6':
        for rank, narrow in (0, False), (1, True), (2, True), (3, False):
            said = line.node(rank).run('ip', version, 'route', 'show', 'proto', '84')
            assert said.count(f'mtu {NARROW}') == (3 if narrow else 0), said
