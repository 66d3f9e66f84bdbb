"""Called by scripts/routing-bench: IP routes that heal. How long a ping every 10 ms gets no answer after a cut, how
many pings are lost when the link returns, and what passes over the routes: torus-routed beside OSPF of FRR and of
BIRD, both with BFD, and babeld, in turn on the same emulated torus."""

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'topo'))

from torus_net import CHECKOUT, TorusError, UsageError, interrupts, mininet_obstacle, same_layout  # noqa: E402
from torus_net.ip_hosts import wait_ms  # noqa: E402
from torus_net.patience import Patience  # noqa: E402

from . import arithmetic, jobs, machine, mpi, network, programs, systems  # noqa: E402
from .routing_systems import PREPARE, SYSTEMS  # noqa: E402
from .tables import routing as tables  # noqa: E402

SIZES = (1 << 10, 64 << 10)  # blocks of MPI_Alltoall
REPEATS = 9
IDLE_SECONDS = 5
ALL_PING = ('for i; do for try in 1 2 3; do ping -c 1 -W 1 $i >/dev/null 2>&1 && echo $i && break; done & done; wait')


class Pings:
    """Pings every 10 ms from one node's own address to another one's."""

    def __init__(self, net, rank, to):
        self.process = subprocess.Popen(
            [*net.torus.node(rank).host.enter(), 'ping', '-D', '-i', '0.01', '-W', '1', '-I', net.own_address(rank),
             net.own_address(to)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def end(self):
        """(longest time between two answers in ms, how many were lost between answers, whether a hop limit ended)"""
        self.process.send_signal(signal.SIGINT)
        said = self.process.communicate()[0]
        answers = [(float(when), int(number)) for when, number in
                   re.findall(r'^\[(\d+\.\d+)\] \d+ bytes .*icmp_seq=(\d+)', said, re.M)]
        if not answers:
            raise TorusError('no ping was answered')
        times = [when for when, _ in answers]
        numbers = {number for _, number in answers}
        longest = max((after - before for before, after in zip(times, times[1:])), default=0)
        return 1000 * longest, max(numbers) - min(numbers) + 1 - len(numbers), 'xceeded' in said


def opposite(geometry, rank):
    """The node half around each ring, or mirrored in each line."""
    return geometry.rank([(at + size // 2) % size if wraps else size - 1 - at for at, size, wraps in
                          zip(geometry.coordinates(rank), geometry.sizes, geometry.wraps)])


class Turn:
    """One system on one torus. `result` is filled step by step."""

    def __init__(self, net, system, options):
        self.net, self.system, self.options = net, system, options
        self.to = net.geometry.neighbour(0, net.geometry.port(0, '+0'))
        self.result = {'idle': [], 'idle_with_torusd': [], 'cuts_ms': [], 'silent_ms': [], 'lost': [], 'loops': 0,
                       'iperf_mbit': [], 'mpi': {}, 'failures': [], 'lines': system.lines()}

    def run(self):
        self._await_all()
        time.sleep(self.options.rest)
        self._idle()
        self._load()
        for _ in range(self.options.cuts):
            self._cut('cuts_ms', lambda: self.net.torus.link_down(0, '+0'), lambda: self.net.torus.link_up(0, '+0'))
        for _ in range(self.options.silent):
            self._cut('silent_ms', lambda: self._silence(True), lambda: self._silence(False))
        return self.result

    def failure(self, text):
        print(f'{self.system.name}: {text}', file=sys.stderr, flush=True)
        self.result['failures'].append(text)

    def _await_all(self):
        addresses = [self.net.own_address(rank) for rank in range(self.net.geometry.nodes)]
        patience = Patience(90)
        for node in self.net.torus.nodes:
            others = set(addresses) - {addresses[node.rank]}
            while set(node.run('sh', '-c', ALL_PING, 'sh', *others).split()) != others:
                if patience.over:
                    raise TorusError(f'node {node.rank} does not reach all others')

    def _idle(self):
        """Processor seconds a second and host."""
        own = self.system.processes
        both = own + [node.daemon.process for node in self.net.torus.nodes if node.daemon.process]
        before = [sum(machine.process_seconds(process.pid) for process in each) for each in (own, both)]
        time.sleep(IDLE_SECONDS)
        after = [sum(machine.process_seconds(process.pid) for process in each) for each in (own, both)]
        for name, begin, end in zip(('idle', 'idle_with_torusd'), before, after):
            self.result[name].append((end - begin) / IDLE_SECONDS / self.net.geometry.nodes)

    # --- cuts ---

    def _silence(self, silent):
        """Neither end of the cable hears the other one, though both have a carrier."""
        geometry = self.net.geometry
        port = geometry.port(0, '+0')
        for rank, name in (0, port.name), (self.to, port.opposite.name):
            node = self.net.torus.node(rank)
            interface = node.interface(name)
            node.run('nft', f'add table netdev silent; add chain netdev silent here {{ type filter hook ingress device '
                     f'"{interface}" priority 0; policy drop; }}' if silent else 'delete table netdev silent')

    def _reaches(self):
        return subprocess.run([*self.net.torus.node(0).host.enter(), 'ping', '-c', '1', '-W', '1', '-I',
                               self.net.own_address(0), self.net.own_address(self.to)], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0

    def _await_direct(self):
        """Until packets to the neighbour leave over the cable that will be cut."""
        node, patience = self.net.torus.node(0), Patience(60)
        while f' dev {node.interface("+0")} ' not in node.run(
                'sh', '-c', 'ip route get $1 || true', 'sh', self.net.own_address(self.to)):
            if patience.over:
                raise TorusError('the link that has returned is not used after 60 s')
            time.sleep(0.1)

    def _cut(self, key, cut, mend):
        self._await_direct()
        pings = Pings(self.net, 0, self.to)
        time.sleep(0.3)
        cut()
        time.sleep(1)
        patience = Patience(60)
        while not self._reaches():
            if patience.over:
                self.failure('no way around the cut after 60 s')
                break
            time.sleep(0.1)
        outage, _, looped = pings.end()
        self.result[key].append(outage)
        time.sleep(self.options.rest)
        pings = Pings(self.net, 0, self.to)
        time.sleep(0.3)
        mend()
        time.sleep(self.options.rest)
        _, lost, looped_again = pings.end()
        self.result['lost'].append(lost)
        self.result['loops'] += looped + looped_again

    # --- load ---

    def _load(self):
        try:
            for _ in range(self.options.iperf_runs if self.options.iperf_seconds else 0):
                self.result['iperf_mbit'].append(self._iperf())
        except (programs.Unavailable, TorusError, ValueError, KeyError) as e:
            self.failure(f'iperf3: {e}')
        for library in mpi.LIBRARIES if self.options.mpi else ():
            try:
                self._alltoall(library)
            except (systems.Failed, programs.Unavailable, TorusError) as e:
                self.failure(f'{library.family}: {e}')

    def _iperf(self):
        """Mbit/s of all streams together, from each node to the opposite one, all at once; or of one pair."""
        pairs = [(rank, opposite(self.net.geometry, rank)) for rank in range(self.net.geometry.nodes)]
        pairs = [(rank, to) for rank, to in pairs[:1 if self.options.iperf_one_pair else None] if rank != to]
        received, _ = self.net.iperf(pairs, self.options.iperf_seconds, self.options.iperf_streams)
        return sum(one['bits_per_second'] for one in received) / 1e6

    def _alltoall(self, library):
        folder = CHECKOUT / 'build' / 'bench' / 'programs'
        program = programs.with_mpi(folder, library.key, library.compiler)
        environment = {'LD_PRELOAD': str(programs.patient_poll(folder)),
                       'PATIENT_POLL_MS': str(wait_ms(self.net.geometry.nodes))}
        job = mpi.MpiJob(self.net, library, program, self.net.torus.ip_hosts.agent, environment,
                         self.net.folder / library.key)
        job.start(60)
        try:
            for size in SIZES:
                seconds = job.run('alltoall', size, 2, REPEATS, 120)
                self.result['mpi'][f'{library.family} {arithmetic.format_size(size)}'] = [1000 * s for s in seconds]
        finally:
            job.stop()


def measure(dims, mbit, name, options):
    """The figures of one system, in a network of its own."""
    with tempfile.TemporaryDirectory(prefix='routing') as folder, network.Network(dims, mbit) as net:
        for node in net.torus.nodes:
            node.run('sh', '-s', stdin=PREPARE.format(congestion=options.congestion))
        system = SYSTEMS[name](net, Path(folder))
        try:
            turn = Turn(net, system, options)
            begin = machine.load()
            result = turn.run()
        finally:
            system.stop()
    return {'system': name, 'dims': dims, 'mbit': mbit, 'load': begin, 'rest': options.rest,
            'congestion': options.congestion, **result}


def add_round(result, more):
    """Adds the figures of another round to `result`, in place."""
    for key, value in more.items():
        if key == 'mpi':
            for call, times in value.items():
                result[key].setdefault(call, []).extend(times)
        elif key == 'loops':
            result[key] += value
        elif isinstance(value, list):
            result[key] += value
    result['load'] = max(result['load'], more['load'])


def measure_all(dims, mbit, options, failed):
    """The figures of all systems, which take turns. A system that fails is left out from then on."""
    results, names = {}, list(options.systems)
    for round_number in range(options.rounds):
        for name in list(names):
            shares = {key: getattr(options, key) * (round_number + 1) // options.rounds -
                      getattr(options, key) * round_number // options.rounds for key in ('cuts', 'silent')}
            try:
                more = measure(dims, mbit, name, argparse.Namespace(**{**vars(options), **shares}))
            except (TorusError, UsageError, OSError) as e:
                failed(f'{dims}: {name}: {e}')
                names.remove(name)
                continue
            if name in results:
                add_round(results[name], more)
            else:
                results[name] = more
    return [results[name] for name in options.systems if name in results]


def positive(text):
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def torus_at_rate(text):
    dims, at, rate = text.partition('@')
    return dims, float(rate) if at else None


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog='routing-bench', description='Measures how long hosts do not reach each other after a cut, what is lost '
        'when the link returns, and what passes over the routes: torus-routed beside FRR, BIRD and babeld, in turn. '
        'Prints a line of JSON for each of them. Needs root, and the packages of the group bench '
        '(scripts/packages.txt).')
    parser.add_argument('tori', nargs='*', type=torus_at_rate, default=[('4', None)], metavar='DIMS[@MBIT]',
                        help='tori, and the rates of their links (default: 4, without a limit)')
    parser.add_argument('--cuts', type=positive, default=10, metavar='N', help='cuts for each system (10)')
    parser.add_argument('--silent', type=positive, default=3, metavar='N',
                        help='faults after which a cable passes nothing, but has a carrier (3)')
    parser.add_argument('--rounds', type=positive, default=1, metavar='N',
                        help='how often each system has its turn; the cuts are shared out (1)')
    parser.add_argument('--rest', type=float, default=6, metavar='SECONDS',
                        help='how long nothing happens between a cut and a return (6: a router of OSPF says news at '
                        'most every 5 s)')
    parser.add_argument('--systems', default=','.join(SYSTEMS), metavar='NAME,...',
                        help=f'some of {",".join(SYSTEMS)} (all)')
    parser.add_argument('--iperf-seconds', type=positive, default=3, metavar='N', help='of each run of iperf3 (3); 0: none')
    parser.add_argument('--iperf-runs', type=positive, default=3, metavar='N',
                        help='runs of iperf3 in a turn (3); each gives its streams other ways')
    parser.add_argument('--iperf-streams', type=positive, default=1, metavar='N', help='streams of each pair (1)')
    parser.add_argument('--iperf-one-pair', action='store_true', help='only from node 0 to the node opposite to it')
    parser.add_argument('--no-mpi', dest='mpi', action='store_false', help='no MPI_Alltoall')
    parser.add_argument('--congestion', default='cubic', metavar='NAME', help='congestion control of TCP (cubic)')
    parser.add_argument('--into', type=Path, metavar='DIR',
                        help=f'put the results into {tables.FILE} there, in place of those of the same system on the '
                        f'same torus, and write {tables.PAGE}')
    parser.add_argument('--check-options', action='store_true', help='only check the options')
    options = parser.parse_args()
    options.systems = options.systems.split(',')
    for name in options.systems:
        if name not in SYSTEMS:
            parser.error(f'argument --systems: "{name}" is none of {", ".join(SYSTEMS)}')
    if options.into and not options.into.is_dir():
        parser.error(f'--into: {options.into} is not a folder')
    return options


def main():
    options = parse_arguments()
    if options.check_options:
        return 0
    obstacle = mininet_obstacle()
    if obstacle:
        sys.exit(f'routing-bench: {obstacle}')
    interrupts.install()
    about = {'when': time.strftime('%Y-%m-%d %H:%M %Z', time.gmtime()).replace('GMT', 'UTC'),
             'commit': machine.commit(), 'machine': machine.describe()}
    failures = []

    def failed(text):
        print(f'routing-bench: {text}', file=sys.stderr, flush=True)
        failures.append(text)

    for dims, mbit in options.tori:
        for result in measure_all(dims, mbit, options, failed):
            result.update(about)
            failures += result['failures']
            print(json.dumps(result), flush=True)
            if options.into:
                tables.put(options.into, result)
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
