"""A Mininet torus for torusd, whose nodes only talk to neighbours, and for MPI, whose hosts must all reach each
other (topo/torus_net/ip_hosts.py)."""

import contextlib
import json
import subprocess

from torus_net import MininetTorus, TorusError, interrupts, same_layout
from torus_net.addresses import link_address
from torus_net.ip_hosts import DEVICE  # noqa: F401 (other modules import it from here)

from . import machine, programs


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

    def goodput(self, folder, seconds):
        """The payload rate per direction in Mbit/s while all links are busy both ways, and how busy the processors are.
        `folder` is for the program that measures it."""
        lines = []
        for link in self.geometry.links:
            (a, a_port), (b, b_port) = link.ends
            lines.append(f'{self.namespace(a)} {link_address(link, a_port)} '
                         f'{self.namespace(b)} {link_address(link, b_port)}\n')
        flood, warmup, before = programs.flood(folder), min(1.0, seconds), machine.Times()
        measured = json.loads(run_program([str(flood), str(seconds), str(warmup), 'reno'], ''.join(lines),
                                          timeout=seconds + warmup + 30))
        measured['busy'] = machine.Usage(before, machine.Times()).share
        return measured

    def iperf(self, pairs, seconds, streams=1):
        """Runs iperf3 from the first to the second node of each pair, all at once, with that many streams. Returns what has
        been received, [{'bytes', 'bits_per_second', ...}], and the use of the processors."""
        programs.require('iperf3')
        servers, clients = [], []
        try:
            for _, to in pairs:
                servers.append(self._iperf(to, '--server', '--one-off', '--forceflush', '--bind', self.own_address(to)))
            for server in servers:
                if not any('Server listening' in line for line in server.stdout):
                    raise TorusError('an iperf3 server did not start')
            before = machine.Times()
            for rank, to in pairs:
                clients.append(self._iperf(rank, '--client', self.own_address(to), '--json', '--time', str(seconds),
                                           '--parallel', str(streams)))
            answers = [json.loads(client.communicate(timeout=seconds + 60)[0]) for client in clients]
            usage = machine.Usage(before, machine.Times())
        except subprocess.TimeoutExpired as e:
            raise TorusError('iperf3 does not end') from e
        finally:
            with interrupts.held():
                for process in servers + clients:
                    process.kill()
                    process.communicate()
        for answer in answers:
            if 'error' in answer:
                raise TorusError(answer['error'])
        return [answer['end']['sum_received'] for answer in answers], usage

    def _iperf(self, rank, *arguments):
        with interrupts.held():
            return subprocess.Popen(
                ['setpriv', '--pdeathsig', 'KILL', *self.torus.node(rank).host.enter(), *same_layout(), 'iperf3', *arguments],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                start_new_session=True)


@contextlib.contextmanager
def attempt(part, what, failures, say):
    """Adds a failure of the block to the failures of a part of the bench, and says it."""
    try:
        yield
    except (TorusError, programs.Unavailable, OSError, subprocess.SubprocessError) as e:
        failures.append(f'{what}: {e}')
        say(f'{part}: {failures[-1]}')


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
