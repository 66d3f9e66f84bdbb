"""A Mininet torus for torusd, whose nodes only talk to neighbours, and for MPI, whose hosts must all reach each
other (topo/torus_net/ip_hosts.py)."""

import json
import subprocess

from torus_net import MininetTorus, TorusError, interrupts
from torus_net.addresses import link_address
from torus_net.ip_hosts import DEVICE  # noqa: F401 (other modules import it from here)


class Network:
    """with Network('4x4', 50, ...) as network: ..."""

    def __init__(self, dims, mbit, *, burst=None, cable=False, bin=None, memory=None, congestion=None,
                 data_roots=(), say=None):
        self.torus = MininetTorus(dims, bw=mbit, burst=burst, cable=cable, bin=bin, memory=memory,
                                  data_roots=data_roots, say=say)
        self.geometry = self.torus.geometry
        self.mbit = mbit
        self.congestion = congestion  # congestion control of MPI's connections; None: the machine's default
        self.problems = []

    def __enter__(self):
        self.torus.start()
        return self

    def __exit__(self, kind, _value, _traceback):
        with interrupts.held():
            failed = kind is not None and issubclass(kind, Exception)
            self.problems = self.torus.stop(failed=failed)

    @property
    def folder(self):
        """A temporary folder that is removed with the network."""
        return self.torus.run.path

    def namespace(self, rank):
        return f'/proc/{self.torus.node(rank).host.pid}/ns/net'

    def prepare_hosts(self):
        """Sets addresses and routes for MPI, and its TCP options. Returns the agent that takes the place
        of ssh."""
        self.torus.set_ip_routes(congestion=self.congestion)
        for node in self.torus.nodes:
            # With deep queues, tail-loss probes only repeat bytes that are still in transit.
            node.run('sh', '-c', 'echo 0 >/proc/sys/net/ipv4/tcp_early_retrans')
        return self.torus.ip_hosts.agent

    def own_address(self, rank):
        return self.torus.ip_hosts.addresses[rank]

    # --- the links ---

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
