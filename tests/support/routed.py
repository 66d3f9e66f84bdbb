"""What tests of torus-routed share."""

import re
import signal
import subprocess

from torus_net import patience

from .waiting import wait_for

# Everything that torus-routed may change. The kernel needs some time to notice the carrier of a new cable, and to
# forget neighbours.
SHOW = ('{ ip -o link | sed "s/ qlen.*//"; ip -o addr; ip route show table all; ip -6 route show table all; ip rule; '
        'nft list ruleset; } | sed "s/NO-CARRIER,//; s/,LOWER_UP//; s/ linkdown//; s/ state [A-Z]* / /; "'
        '"s/counter packets [0-9]* bytes [0-9]*/counter/"; '
        'cd /proc/sys/net && grep -rs . ipv4 ipv6 | grep -v /route/ | sort')


def state_of(node):
    """The interfaces, addresses, routes, rules and settings of a host, as lines."""
    return node.run('sh', '-c', SHOW).splitlines()


def reachable(geometry, up, start):
    """The nodes that the links of the set `up` lead to from `start`."""
    found, todo = {start}, [start]
    while todo:
        at = todo.pop()
        for port in geometry.ports(at):
            there = geometry.neighbour(at, port)
            if geometry.link(at, port) in up and there not in found:
                found.add(there)
                todo.append(there)
    return found


def connected_pairs(geometry, up):
    """(from, to) of all nodes that the links of the set `up` connect."""
    return [(at, to) for at in range(geometry.nodes) for to in reachable(geometry, up, at) if to != at]


def converged(torus, rank=0, down=''):
    """The report of torus-routed on this host when it knows that these links are down, and has its routes: all hosts
    on the way forward."""
    def report():
        found = torus.ip_hosts.routes(rank)
        whole = found and found['daemon'] and found['settled'] and found['down'] == down and not any(
            route['state'] == 'blocked' for route in found['routes'])
        return found if whole else None
    return wait_for(report, what=lambda: str(torus.ip_hosts.routes(rank)))


def all_converged(torus, down=''):
    return [converged(torus, rank, down) for rank in range(len(torus.nodes))]


def ping_all(torus, missing=(), tries=1, addresses=None):
    """Each node pings every other one, which answers one of that many pings, except the pairs in `missing`."""
    addresses = addresses or torus.ip_hosts.addresses
    for node in torus.nodes:
        others = [address for address in addresses if address != addresses[node.rank]]
        said = node.run('sh', '-c', 'tries=$1; shift; for i; do for try in $(seq $tries); do '
                        'ping -c 1 -W 5 $i >/dev/null 2>&1 && echo $i && break; done & done; wait', 'sh', str(tries),
                        *others)
        wanted = {addresses[other] for other in range(len(addresses)) if other != node.rank and
                  (node.rank, other) not in missing and (other, node.rank) not in missing}
        assert set(said.split()) == wanted, node.rank


class Pings:
    """Pings of one host to another, every 10 ms."""

    def __init__(self, torus, rank, to):
        self.process = subprocess.Popen(
            [*torus.node(rank).host.enter(), 'ping', '-i', '0.01', '-W', '1', torus.ip_hosts.addresses[to]],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.begin = ''
        while 'ttl=' not in self.begin:  # the first answer
            line = self.process.stdout.readline()
            assert line, self.begin
            self.begin += line

    def end(self):
        """(how many were lost, what ping has printed)"""
        self.process.send_signal(signal.SIGINT)
        said = self.begin + patience.communicate(self.process, patience.Patience(30))[0]
        sent, received = map(int, re.search(r'(\d+) packets transmitted, (\d+) received', said).groups())
        return sent - received, said


def next_hops(report, host):
    return next(sorted(hop['host'] for hop in route['ways']) for route in report['routes'] if route['host'] == host)


def give_ipv6(torus, *also):
    """Allows IPv6 on the cables and on these interfaces, and gives cables the addresses that 'torusctl init' gives."""
    for node in torus.nodes:
        names = {port.name: node.interface(port.name) for port in torus.geometry.ports(node.rank)}
        for name in (*names.values(), *also):
            node.run('sh', '-c', f'echo 0 >/proc/sys/net/ipv6/conf/{name}/disable_ipv6')
        for port, name in names.items():
            node.run('ip', '-6', 'addr', 'add', f'fe80::{"a" if port == "+0" else "b"}/64', 'dev', name, 'nodad')


def with_routes(mininet, dims='4', **options):
    """A torus whose hosts have their routes."""
    torus = mininet(dims, **options)
    torus.set_ip_routes()
    all_converged(torus)
    return torus


def stop_routed(torus, rank, how=signal.SIGKILL):
    """Ends torus-routed on a host. Returns its exit status."""
    process = torus.ip_hosts.routed[rank]
    process.send_signal(how)
    return process.wait()
