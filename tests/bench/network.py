"""A Mininet torus for both kinds of systems: torusd, which only talks to neighbours, and MPI, whose
hosts must all reach each other.

For MPI, each namespace gets its own address, on one end of a veth pair inside the namespace (the
libraries refuse loopback addresses, and not every kernel has dummy devices), a route to each other
host along a dimension-ordered shortest path, and IP forwarding. For MPI's launchers, which expect
separate hosts, each host has a process (its keeper) that holds a UTS namespace with the host name and
a mount namespace with its own /etc/hosts and /sys.
"""

import ipaddress
import json
import os
import subprocess

from torus_net import MininetTorus, TorusError, interrupts
from torus_net.addresses import link_address
from torus_net.emulated import host_name

from . import arithmetic

DEVICE = 'own0'
OWN = ipaddress.ip_address('10.128.0.1')

# $1 hosts file, $2 host name. `cat` ends with the XX.
KEEPER = '''set -e
hostname "$2"
mount --bind "$1" /etc/hosts
mount -t sysfs sysfs /sys
echo ready
exec cat
'''

AGENT = '''#!/bin/sh
# Used by MPI's launchers in place of ssh: AGENT HOST COMMAND...
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1
shift
read -r pid <"{folder}/$host.pid"
exec nsenter --net=/proc/"$pid"/ns/net --uts=/proc/"$pid"/ns/uts --mount=/proc/"$pid"/ns/mnt \\
    sh -c "$*"
'''


def own_address(rank):
    return str(OWN + rank)


class Network:
    """with Network('4x4', 50, ...) as network: ..."""

    def __init__(self, dims, mbit, *, burst=None, cable=False, bin=None, memory=None, congestion=None,
                 say=None):
        self.torus = MininetTorus(dims, bw=mbit, burst=burst, cable=cable, bin=bin, memory=memory,
                                  say=say)
        self.geometry = self.torus.geometry
        self.mbit = mbit
        self.congestion = congestion  # of MPI's connections, else the machine's default
        self.keepers = []
        self.problems = []

    def __enter__(self):
        self.torus.start()
        return self

    def __exit__(self, kind, _value, _traceback):
        with interrupts.held():
            for keeper in self.keepers:
                keeper.stdin.close()
            for keeper in self.keepers:
                try:
                    keeper.wait(5)
                except subprocess.TimeoutExpired:
                    keeper.kill()
                    keeper.wait()
            failed = kind is not None and issubclass(kind, Exception)
            self.problems = self.torus.stop(failed=failed)

    @property
    def folder(self):
        """A temporary folder that is removed with the network."""
        return self.torus.run.path

    def namespace(self, rank):
        return f'/proc/{self.torus.node(rank).host.pid}/ns/net'

    # --- routes and hosts, for MPI ---

    def prepare_routes(self):
        """Sets addresses, routes, forwarding and TCP options for MPI."""
        for rank in range(self.geometry.nodes):
            self.torus.node(rank).run('sh', '-s', stdin=self._route_script(rank))

    def _route_script(self, rank):
        geometry = self.geometry
        lines = [f'link add {DEVICE} type veth peer name own1', f'link set {DEVICE} up',
                 'link set own1 up', f'addr add {own_address(rank)}/32 dev {DEVICE}']
        gateways = {}
        for port in geometry.ports(rank):
            link = geometry.link(rank, port)
            gateways[port.name] = (f'via {link_address(link, port.opposite)} dev '
                                   f'{self.torus.node(rank).interface(port.name)}')
        control = f' congctl {self.congestion}' if self.congestion else ''
        for other in range(geometry.nodes):
            if other != rank:
                gateway = gateways[arithmetic.next_port(geometry, rank, other)]
                lines.append(f'route add {own_address(other)}/32 {gateway} '
                             f'src {own_address(rank)}{control}')
        return ('set -e\nip -batch - <<END\n' + '\n'.join(lines) + '\nEND\n'
                'cd /proc/sys/net/ipv4\n'
                'echo 1 >ip_forward\n'
                # The two directions between two hosts use different paths.
                'for i in conf/*/rp_filter; do echo 0 >$i; done\n'
                # There are no better routes to be told of.
                'for i in conf/*/send_redirects; do echo 0 >$i; done\n'
                # With deep queues, tail-loss probes only repeat what is in transit.
                'echo 0 >tcp_early_retrans\n')

    def prepare_hosts(self):
        """Starts the keepers; returns the agent that enters a host by its name."""
        folder = self.folder / 'hosts'
        folder.mkdir()
        hosts = folder / 'hosts'
        hosts.write_text('127.0.0.1 localhost\n' + ''.join(
            f'{own_address(rank)} {host_name(rank)}\n' for rank in range(self.geometry.nodes)))
        for rank in range(self.geometry.nodes):
            command = ['setpriv', '--pdeathsig', 'KILL', 'nsenter', f'--net={self.namespace(rank)}',
                       'unshare', '--uts', '--mount', '--propagation', 'private',
                       'sh', '-c', KEEPER, 'keeper', str(hosts), host_name(rank)]
            with interrupts.held():
                self.keepers.append(subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, text=True, start_new_session=True))
        for rank, keeper in enumerate(self.keepers):
            if keeper.stdout.readline() != 'ready\n':
                raise TorusError(f'cannot prepare the hosts for MPI: {keeper.stderr.read().strip()}')
            (folder / f'{host_name(rank)}.pid').write_text(f'{keeper.pid}\n')
        agent = folder / 'agent'
        agent.write_text(AGENT.format(folder=folder))
        os.chmod(agent, 0o755)
        return agent

    # --- what the links do ---

    def sent_bytes(self):
        """Bytes that all nodes have sent on their links since they were created, headers included."""
        total = 0
        for node in self.torus.nodes:
            total += sum(counters['tx_bytes'] for name, counters in node.counters().items()
                         if name[0] in '+-')
        return total

    def goodput(self, flood, seconds, warmup=0.5, congestion=None):
        """Measures the payload rate per direction in Mbit/s while all links are busy both ways."""
        lines = []
        for link in self.geometry.links:
            (a, a_port), (b, b_port) = link.ends
            lines.append(f'{self.namespace(a)} {link_address(link, a_port)} '
                         f'{self.namespace(b)} {link_address(link, b_port)}\n')
        return json.loads(run_program([str(flood), str(seconds), str(warmup), congestion or ''],
                                      ''.join(lines), timeout=seconds + warmup + 30))


def run_program(command, text, timeout):
    """Runs a program with this text as its input. Returns its output."""
    process = None
    try:
        with interrupts.held():
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True, start_new_session=True)
        out, err = process.communicate(text, timeout=timeout)
    except BaseException:
        if process is not None:
            process.kill()
            process.communicate()
        raise
    if process.returncode:
        raise TorusError(f'{command[0]}: {err.strip() or process.returncode}')
    return out
