"""Links of different rates: exchanges, copies and broadcasts, and an exchange during which a link becomes slow.

An exchange is compared with the optimum of any routes: the linear program of flow.py with loads divided by rates. A
copy or a broadcast is compared with the least cut between node 0 and any other node. Both are taken at the goodput: the
payload that equal links reached before some of them became slow, times the rate of each.

The nodes are told the rates (`link_mbit` of ports); then, in the same network, exchanges are measured by nodes that are
not told and have to observe them. MPI uses static routes: all shortest paths, of which a connection takes one. Everything
takes turns in one network.
"""

import filecmp
import json
import random
import re
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from support.background import Client
from support.networks import make
from support.waiting import wait_for
from torus_net import Geometry, TorusError

from . import arithmetic, jobs, machine, mpi, network, systems
from .arithmetic import format_size

TURNS = 5
REPEAT = 3               # exchanges or broadcasts, back to back, of a turn
COPY = 64 << 20          # bytes of the file, or fewer:
COPY_SECONDS = 4.0       # what a copy takes at best, at most,
CAST_SECONDS = 1.5       # and a broadcast
TRIAL = 8                # blocks are so much smaller while the algorithms of MPI are tried
KNOWN_SECONDS = 60.0     # within which nodes must have observed the rates
SLOWED_ROUNDS = 60       # of an exchange during which a link becomes slow
SLOWED_TURNS = 3
SLOWED_MEMORY = '16MiB'  # of a daemon, so that an exchange has many rounds
SLOWED_AT = 0.4          # of the time that the exchange takes on equal links
SILENCE_MS = '60000'     # MPI fills queues that a slow link needs many seconds for
SOURCE = 0               # of copies and broadcasts


@dataclass(frozen=True)
class Case:
    """A network and its slow links. `both`: the other direction of each link is slow, too."""
    dims: str
    mbit: float
    block: int
    slow: str = ''      # what is slow, in words
    channels: tuple = ()  # (rank, port name)
    part: float = 1.0   # of the rate of the others
    both: bool = True
    whole: bool = True  # copies, broadcasts and nodes that are not told, too


def _row(nodes, dim):
    return tuple((rank, f'+{dim}') for rank in nodes)


CASES = {
    'uniform': Case('4x4', 10, 128 << 10),
    'direction-half': Case('4x4', 10, 128 << 10, 'one direction', ((6, '-1'),), 0.5, both=False, whole=False),
    'direction': Case('4x4', 10, 128 << 10, 'one direction', ((6, '-1'),), 0.4, both=False),
    'direction-tenth': Case('4x4', 10, 128 << 10, 'one direction', ((6, '-1'),), 0.1, both=False),
    'link': Case('3x3', 10, 256 << 10, 'one link', ((0, '+0'),), 0.1, whole=False),
    'links': Case('3x3', 10, 256 << 10, 'two links', ((0, '+0'), (4, '+1')), 0.1),
    'row': Case('5x7', 2.5, 16 << 10, 'a row', _row(range(7), 1), 0.5),
    'ring': Case('4', 20, 512 << 10, 'one link', ((0, '+0'),), 0.1),
    'dimension': Case('4x4', 10, 128 << 10, 'a dimension', _row(range(16), 0), 0.5, whole=False),
    'petersen': Case('petersen', 10, 128 << 10, 'one link', ((0, '0:5'),), 0.2),
}
SLOWED = ('direction', 'direction-tenth')  # cases whose links become slow during an exchange


class Channels:
    """What flow.Flow wants to know: the directions of links, and their rates as parts of the fastest."""

    def __init__(self, geometry, slow):
        """`slow`: {(rank, port name): part}"""
        self.nodes, self.gone = geometry.nodes, set()
        self.channels, self.rates = [], []
        for rank in range(geometry.nodes):
            for port in geometry.ports(rank):
                self.channels.append((rank, geometry.neighbour(rank, port), port.dim, port.name))
                self.rates.append(slow.get((rank, port.name), 1.0))

    def least_load(self):
        """Blocks on the busiest channel, divided by its rate."""
        from . import flow  # needs scipy
        return float(flow.Flow(self).least_load())

    def least_cut(self, source):
        """The least sum of rates that parts the source from another node."""
        import numpy
        from scipy.sparse import coo_matrix
        from scipy.sparse.csgraph import maximum_flow
        unit = 1000
        start, end, _, _ = zip(*self.channels)
        capacity = coo_matrix((numpy.rint(numpy.array(self.rates) * unit).astype(numpy.int32), (start, end)),
                              shape=(self.nodes, self.nodes)).tocsr()
        return min(maximum_flow(capacity, source, node).flow_value
                   for node in range(self.nodes) if node != source) / unit


def slow_channels(geometry, case):
    """{(rank, port name): part} of all slow directions."""
    slow = {}
    for rank, name in case.channels:
        slow[rank, name] = case.part
        if case.both:
            port = geometry.port(rank, name)
            slow[geometry.neighbour(rank, port), port.opposite.name] = case.part
    return slow


def complete(options):
    """Fills in the defaults that depend on other options."""
    options.uneven_turns, options.uneven_rounds = min(TURNS, options.repeats), SLOWED_ROUNDS
    options.uneven_slowed_turns, options.uneven_shrink = min(SLOWED_TURNS, options.repeats), 1
    options.uneven_memory = SLOWED_MEMORY
    if options.quick:
        options.uneven_turns = options.uneven_slowed_turns = 1
        options.uneven_rounds, options.uneven_shrink, options.uneven_memory = 10, 8, '2MiB'


def run(options, say, save):
    result = {'networks': [], 'slowed': [], 'failures': []}
    with tempfile.TemporaryDirectory(prefix='torus-uneven-', dir='/dev/shm') as folder:
        for kind, names in ((Uneven, options.uneven), (Slowed, [n for n in options.uneven if n in SLOWED])):
            for name in names:
                with network.attempt('uneven', name, result['failures'], say):
                    one = kind(name, Path(folder), options, result, lambda text, name=name: say(f'uneven {name}: {text}'))
                    one.run()
                save(result)
    return result


class Measured:
    """A network that begins with equal links."""

    def __init__(self, name, folder, options, result, say):
        self.name, self.folder, self.options, self.result, self.say = name, folder, options, result, say
        self.case = CASES[name]
        self.geometry = Geometry(make(folder, self.case.dims))
        self.slow = slow_channels(self.geometry, self.case)
        self.block = self.case.block // options.uneven_shrink
        self.equal = Channels(self.geometry, {}).least_load()
        self.least = Channels(self.geometry, self.slow).least_load()

    def run(self):
        options, case = self.options, self.case
        net = network.Network(str(self.geometry), case.mbit, bin=options.bin, memory=self.memory(),
                              congestion=options.congestion, data_roots=[self.folder])
        net.torus.extra = ['--silence-ms', SILENCE_MS]
        with net as self.net:
            self.torus = self.net.torus
            self.commands = [list(node.daemon.command) for node in self.torus.nodes]
            self.goodput = self.net.goodput(options.out / 'programs', options.goodput_seconds)['mean']
            self.measure()
        self.result['failures'] += [f'{self.name}: {problem}' for problem in self.net.problems]

    def memory(self):
        return self.options.memory

    def head(self):
        case = self.case
        return {'name': self.name, 'dims': case.dims, 'mbit': case.mbit, 'slow': case.slow, 'part': case.part,
                'goodput_mbit': self.goodput, 'load': machine.load()}

    def seconds(self, blocks, block):
        """The time that this many blocks of this size take at the goodput."""
        return blocks * block * 8e-6 / self.goodput

    def make_slow(self):
        for (rank, port), part in self.slow.items():
            self.torus.set_rate(rank, port, part * self.case.mbit)

    def planned(self):
        """Where the rate of each slow direction comes from."""
        return [link['planned_from'] for rank, port in self.slow for link in self.torus.links(rank)['links']
                if link['port'] == port]


class Uneven(Measured):
    """Everything on links some of which are slow all the time."""

    def measure(self):
        said = {**self.head(), 'block': self.block, 'uniform': self.equal, 'least': self.least,
                'shortest': self._equal_routes(), 'uniform_seconds': self.seconds(self.equal, self.block),
                'bound': self.seconds(self.least, self.block), 'systems': {}}
        self.result['networks'].append(said)
        starters = []
        try:
            ways = {systems.OURS: self._stream}
            makers = list(mpi.makers(self.net, self.options.out / 'programs', self.options, {}, self._failure)
                          if self.options.mpi else ())
            if makers:
                self.torus.ip_hosts.keep_routes()
            self.make_slow()
            ways.update(self._libraries(makers, starters))
            self._tell(True)
            if self.case.whole:
                ways.update(self._spreading(said))
            self._turns(ways, said)
            if self.case.whole and self.slow:
                self._observe(said)
        finally:
            for starter in starters:
                starter.stop()

    def _equal_routes(self):
        """Blocks over the rate of the busiest channel if all links are taken for equal."""
        if not self.slow:
            return self.equal
        rates = ','.join(f'{rank}:{port}={part:g}' for (rank, port), part in self.slow.items())
        algorithm = 'stream' if self.geometry.plain else 'direct'
        return self.torus.json(0, 'plan', '--dims', str(self.geometry), '--algorithm', algorithm, '--rate',
                               rates)['busiest']

    def _tell(self, rates):
        """Starts the daemons anew; tells them the rates, or that of all links only."""
        case, torus = self.case, self.torus
        for node in torus.nodes:
            words = []
            for port in self.geometry.ports(node.rank):
                other = self.geometry.neighbour(node.rank, port), port.opposite.name
                parts = [self.slow.get(channel, 1.0) for channel in ((node.rank, port.name), other)]
                if rates and parts != [1.0, 1.0]:
                    sends, receives = (f'{part * case.mbit:g}' for part in parts)
                    words += ['--link-mbit', f'{port.name}={sends}/{receives}']
            node.terminate()
            node.daemon.command = self.commands[node.rank] + words
        for node in torus.nodes:
            node.start()
        torus.wait_whole(60)

    # --- exchanges ---

    def _stream(self):
        timeout = 60 + 60 * self.seconds(self.least, self.block)
        said = self.torus.exchange('stream', self.block, timeout=timeout, options=['--repeat', REPEAT])
        if said['verified'] != 'every byte':
            raise TorusError(f'blocks arrived damaged (verified: {said["verified"]})')
        return said['sustained_seconds']

    def _failure(self, text):
        self.say(text)
        self.result['failures'].append(f'{self.name}: {text}')

    def _libraries(self, makers, starters):
        """The fastest algorithm of each MPI library, {name: function}."""
        ways = {}
        for library, _, make_job in makers:
            starter = jobs.started(make_job, library.family, starters, self.say, self._failure)
            if starter is None:
                continue
            times = {}
            for algorithm in library.algorithms['alltoall']:
                system = mpi.Mpi(starter, library, algorithm, systems.PATIENT)
                try:
                    times[system] = system.measure(self.block // TRIAL, 1, 1, 300).seconds[0]
                except systems.Failed as e:
                    self._failure(f'{system.name}: {e}')
            if times:
                best = min(times, key=times.get)
                ways[best.name] = lambda best=best: self._by_library(best)
        return ways

    def _by_library(self, system):
        system.measure(self.block // TRIAL, 0, 2, 300)  # the queues may be full of the packets of others
        return system.measure(self.block, 0, 1, 600).seconds[0]

    # --- copies and broadcasts ---

    def _spreading(self, said):
        cut = Channels(self.geometry, self.slow).least_cut(SOURCE)
        byte = 8e-6 / (cut * self.goodput)
        shrink = self.options.uneven_shrink

        def fitting(seconds):
            return min(COPY // shrink, int(seconds / shrink / byte) >> 16 << 16)
        size, block = fitting(COPY_SECONDS), fitting(CAST_SECONDS)
        said.update(cut=cut, copy={'size': size, 'bound': size * byte}, broadcast={'size': block, 'bound': block * byte})
        source = self.folder / f'{self.name}-source'
        source.write_bytes(random.Random(0).randbytes(size))
        return {'copy': lambda: self._copy(source), 'broadcast': lambda: self._broadcast(block)}

    def _copy(self, source):
        targets = self.folder / f'{self.name}-copies'
        shutil.rmtree(targets, ignore_errors=True)
        for rank in range(self.geometry.nodes):
            (targets / str(rank)).mkdir(parents=True)
        begin = time.monotonic()
        self.torus.ctl(SOURCE, 'copy', source, '--to', f'{targets}/%r/file', timeout=600, check=True)
        seconds = time.monotonic() - begin
        for rank in range(self.geometry.nodes):
            if rank != SOURCE and not filecmp.cmp(source, targets / str(rank) / 'file', shallow=False):
                raise TorusError(f'node {rank} has another file')
        return seconds

    def _broadcast(self, size):
        said = self.torus.json(0, 'broadcast', '--root', SOURCE, '--block-size', size, '--repeat', REPEAT, timeout=600)
        if said['verified'] != 'every byte':
            raise TorusError(f'a broadcast arrived damaged (verified: {said["verified"]})')
        return said['sustained_seconds']

    # --- turns ---

    def _turns(self, ways, said):
        times = {name: [] for name in ways}
        self._stream()  # connections find the rate of their links
        for _ in range(self.options.uneven_turns):
            for name, measure in ways.items():
                times[name].append(measure())
        for name, seconds in times.items():
            where = said[name] if name in ('copy', 'broadcast') else said['systems'].setdefault(name, {})
            where.update(seconds=seconds, median=arithmetic.median(seconds))
            bound = where.get('bound', said['bound'])
            self.say(f'{name}: {arithmetic.milliseconds(where["median"])} ms, {where["median"] / bound:.3f} times the bound')

    def _observe(self, said):
        """Exchanges by nodes that are not told the rates."""
        self._tell(False)
        begin = time.monotonic()
        while 'nominal' in self.planned():
            if time.monotonic() > begin + KNOWN_SECONDS + 20 * self.seconds(self.least, self.block):
                raise TorusError(f'the rates are not known after {time.monotonic() - begin:.0f} s: {self.planned()}')
            self._stream()
        known = time.monotonic() - begin
        self._stream()
        seconds = [self._stream() for _ in range(self.options.uneven_turns)]
        said['observed'] = {'seconds': seconds, 'median': arithmetic.median(seconds), 'known_after': known,
                            'mistaken': len(self._taken_for_slow() - set(self.slow))}
        self.say(f'rates observed after {known:.1f} s; {arithmetic.median(seconds) / said["bound"]:.3f} times the bound')

    def _taken_for_slow(self):
        """The directions that any daemon has ever taken for slow, by what it observed."""
        return {(node.rank, port) for node in self.torus.nodes
                for port in re.findall(r'port (\S+): the link to node \d+ carries [0-9.]+ of', node.log())}


class Slowed(Measured):
    """A link becomes slow in the middle of an exchange, and nobody tells the nodes."""

    def memory(self):
        return self.options.uneven_memory

    def measure(self):
        rounds, block = self.options.uneven_rounds, self.block
        block = block * rounds // max(1, self._exchange(block)['rounds'])
        whole = [self._timed(block) for _ in range(2)][-1]
        said = {**self.head(), 'block': block, 'least': self.least, 'whole': whole[0], 'rounds': whole[1]['rounds'],
                'turns': []}
        self.result['slowed'].append(said)
        for _ in range(self.options.uneven_slowed_turns):
            said['turns'].append(self._turn(block, whole[0]))
            self.say(f'slowed: {said["turns"][-1]["ratio"]:.3f} times the optimum of what was left '
                     f'(times on equal links {whole[0] / self.seconds(self.equal, block):.3f} times the bound)')

    def _exchange(self, block):
        return self.torus.exchange('stream', block, timeout=600)

    def _timed(self, block):
        begin = time.monotonic()
        said = self._exchange(block)
        return time.monotonic() - begin, said

    def _turn(self, block, whole):
        begin = time.monotonic()
        with Client(self.torus, '--json', 'exchange', '--algorithm', 'stream', '--block-size', block, rank=0) as client:
            time.sleep(max(0.0, begin + SLOWED_AT * whole - time.monotonic()))
            self.make_slow()
            after = time.monotonic() - begin
            code, out, err = client.end(600)
            seconds = time.monotonic() - begin
        if code != 0 or json.loads(out)['verified'] != 'every byte':
            raise TorusError(f'an exchange failed when a link became slow: {err or out}')
        planned, said = self.planned(), json.loads(out)
        for rank, port in self.slow:
            self.torus.set_rate(rank, port, self.case.mbit)
        left = 1 - after / whole
        optimum = left * self.seconds(self.least, block)
        wait_for(lambda: set(self.planned()) == {'nominal'}, 60, 'the rates are not nominal again')
        return {'after': after, 'left': left, 'seconds': seconds, 'optimum': optimum, 'ratio': (seconds - after) / optimum,
                'planned': planned, 'new_plans': said.get('replans', 0)}
