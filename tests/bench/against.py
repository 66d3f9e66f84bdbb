"""Two builds in one network, in turn: is one slower than the other?

The daemons of both builds run at the same time, in the same namespaces and on the same interfaces,
on a TCP port each; only one build exchanges at a time. So the builds can take turns within milliseconds,
without starting and stopping daemons, and both meet the same machine and the same links. Idle daemons (a
heartbeat a second on each link) cost both builds the same.

Everything is measured twice with new daemons; the first time one build starts its daemons first, the second
time the other. So the order, the port, and the luck of a process with its memory favour neither build.

The turns come in pairs, A B, B A, A B, ...: a steady drift of the machine cancels. A turn is one call
of the build's own torusctl, with exchanges that are not counted before those that are. The ratio of
a pair, B over A, compares times of nearly the same moment; the quartiles of these ratios show how
reliable the ratio of the medians is.

`auto` runs uncalibrated: two calibrations differ by chance, and the builds could choose different algorithms.

On unlimited links, the comparison is of payload bytes times hops per second of processor time of the whole
machine, including the kernel.
"""

import statistics
import sys
import time
from dataclasses import dataclass, field

from torus_net import Geometry, MininetTorus, TorusError
from torus_net.addresses import TCP_PORT, port_address
from torus_net.emulated import MininetNode
from torus_net.process import Daemon

from . import arithmetic, machine, ours, systems
from .tables.table import NONE, Table
from .warm import warm_up

TORI = '4x4@50,8x8@10'
SIZES = '1,1KiB,64KiB'
ALGORITHMS = ['auto']
UNLIMITED_DIMS, UNLIMITED_SIZES, UNLIMITED_ALGORITHMS = '4x4', '64KiB,1MiB', ['stream', 'auto']
CELL_SECONDS = 20.0
LEAST_PAIRS, MOST_PAIRS = 2, 20   # pairs each time; an even number
TURN_SECONDS = 0.25   # seconds of counted exchanges in a turn, unless one takes longer
MOST_REPEATS = 100
LONG = 1.0            # an exchange of more seconds than this needs no uncounted exchange before it
UNCOUNTED = 3         # uncounted exchanges in a turn
OVERHEAD = 2.0        # seconds that the warm-up and the calls of a cell take besides
SIDES = 'AB'


class SecondTorus(MininetTorus):
    """Daemons of another build in the namespaces of a running MininetTorus, on another TCP port."""

    def __init__(self, first, bin):
        super().__init__(first.geometry, bw=first.bw, bin=bin, memory=first.memory)
        self.first = first

    def _build(self):
        for node in self.first.nodes:
            addresses = {port.name: port_address(self.geometry, node.rank, port, TCP_PORT + 1)
                         for port in self.geometry.ports(node.rank)}
            daemon = Daemon(node.rank, self.command(node.rank, addresses), self.run, self.wrap,
                            node.host.enter())
            self.nodes.append(MininetNode(self, node.rank, daemon, addresses, node.host))

    def _tear_down(self):
        """Does nothing: the network belongs to the first torus."""


@dataclass
class Cell:
    """One algorithm at one size: the times of both builds, pair by pair."""

    algorithm: str
    size: int
    bound: float
    seconds: dict = field(default_factory=lambda: {side: [] for side in SIDES})    # of exchanges
    turns: dict = field(default_factory=lambda: {side: [] for side in SIDES})      # their medians
    processor: dict = field(default_factory=lambda: dict.fromkeys(SIDES, 0.0))
    machine: dict = field(default_factory=lambda: {side: [] for side in SIDES})  # its, by turn
    exchanges: dict = field(default_factory=lambda: dict.fromkeys(SIDES, 0))
    chosen: dict = field(default_factory=dict)
    failed: str = None

    def add(self, side, sample, exchanges, busy):
        self.machine[side].append(busy / exchanges)
        self.seconds[side] += sample.seconds
        self.turns[side].append(arithmetic.median(sample.seconds))
        self.processor[side] += sample.process_seconds
        self.exchanges[side] += exchanges
        self.chosen[side] = sample.detail.get('chosen')

    def as_object(self):
        result = {'algorithm': self.algorithm, 'size': self.size, 'bound': self.bound}
        if self.failed is not None:
            return {**result, 'failed': self.failed}
        median = {side: arithmetic.median(self.seconds[side]) for side in SIDES}
        ratios = [b / a for a, b in zip(self.turns['A'], self.turns['B'])]
        cost = {side: self.processor[side] / self.exchanges[side] for side in SIDES}
        busy = {side: arithmetic.median(self.machine[side]) for side in SIDES}
        return {**result, 'chosen': self.chosen, 'median': median, 'machine_seconds': busy,
                'ratio': median['B'] / median['A'],
                'ratio_quartiles': statistics.quantiles(ratios, n=4, method='inclusive'),
                'ratios': ratios, 'pairs': len(ratios), 'exchanges': self.exchanges,
                'processor_seconds': cost,
                'processor_ratio': cost['B'] / cost['A'] if cost['A'] else None}


class Comparison:
    """Compares two builds on one torus; `result` is filled cell by cell."""

    def __init__(self, dims, mbit, options, say, progress):
        self.dims, self.mbit, self.options = dims, mbit, options
        self.say, self.progress = say, progress
        self.result = {'dims': dims, 'mbit': mbit, 'cells': [], 'failures': []}

    def run(self, after_each_cell):
        geometry = Geometry(self.dims)
        self.geometry = geometry
        cells = [Cell(algorithm, size, arithmetic.bound_seconds(geometry, size, self.mbit))
                 for algorithm in self.options.algorithms for size in self.options.sizes]
        for first in SIDES:
            self._with_daemons(first, cells, after_each_cell)
        for cell in cells:
            self.say(f'{self._name(cell)}: ' + (cell.failed or ratio_text(cell.as_object())))

    def _with_daemons(self, first, cells, after_each_cell):
        """Starts the daemons of both builds, those of the given side first, and measures all cells."""
        bins = {'A': self.options.against, 'B': self.options.bin}
        second = 'B' if first == 'A' else 'A'
        tori = {first: MininetTorus(self.dims, bw=self.mbit, bin=bins[first],
                                    memory=self.options.memory)}
        try:
            tori[first].start()
            tori[second] = SecondTorus(tori[first], bins[second])
            tori[second].start()
            self.say(f'{rate_text(self.result)}: {self.geometry.nodes} daemons of each '
                     f'build are up, started by {first} first')
            for cell in cells:
                self._cell({side: ours.Ours(tori[side], cell.algorithm, True)
                            for side in SIDES}, cell)
                self.result['cells'] = [done.as_object() for done in cells
                                        if done.failed or done.turns['B']]
                after_each_cell()
        finally:
            failed = sys.exc_info()[0] is not None
            for side in second, first:
                if side in tori:
                    self.result['failures'] += tori[side].stop(failed=failed)

    def _name(self, cell):
        return f'{self.dims} {cell.algorithm} {arithmetic.format_size(cell.size)}'

    def _cell(self, members, cell):
        if cell.failed is None:
            try:
                self._measure(members, cell, self._name(cell))
            except systems.Failed as e:
                cell.failed = str(e)
                self.result['failures'].append(f'{self._name(cell)}: {e}')
            self.progress(None)

    def _measure(self, members, cell, what):
        timeout = 60 + 20 * cell.bound
        estimate = 0.0
        for side in SIDES:
            warm_up(members[side], cell.size, self.geometry, self.mbit)
            trial = members[side].measure(cell.size, 1, 2, timeout)
            estimate = max(estimate, arithmetic.median(trial.seconds))
        repeats = max(1, min(MOST_REPEATS, int(TURN_SECONDS / max(estimate, 1e-6))))
        uncounted = 0 if estimate >= LONG else UNCOUNTED
        end = time.monotonic() + self.options.cell_seconds / len(SIDES)
        for pair in range(MOST_PAIRS):
            if pair >= LEAST_PAIRS and pair % 2 == 0 and time.monotonic() >= end:
                break  # after equal numbers of pairs that A and B began
            for side in SIDES if pair % 2 == 0 else SIDES[::-1]:
                before = machine.Times()
                sample = members[side].measure(cell.size, uncounted, repeats, timeout)
                cell.add(side, sample, uncounted + repeats,
                         machine.Usage(before, machine.Times()).busy)
            self.progress(f'{what}: {len(cell.turns["B"])} pairs')


def rate_text(torus):
    return (f'{torus["dims"]} without a limit' if torus['mbit'] is None else
            f'{torus["dims"]} at {torus["mbit"]:g} Mbit/s')


def hop_gigabytes(torus, cell, side):
    """Payload bytes times hops per second of processor time."""
    geometry = Geometry(torus['dims'])
    payload = cell['size'] * geometry.nodes * (geometry.nodes - 1)
    return payload * arithmetic.mean_hops(geometry) / cell['machine_seconds'][side] / 1e9


def ratio_text(cell):
    low, _, high = cell['ratio_quartiles']
    return (f'A {arithmetic.milliseconds(cell["median"]["A"])} ms, B '
            f'{arithmetic.milliseconds(cell["median"]["B"])} ms, B/A {cell["ratio"]:.3f} '
            f'(quartiles of {cell["pairs"]} pairs {low:.3f} to {high:.3f})')


def expected_seconds(options):
    """About how many seconds the comparison takes."""
    total = 0.0
    for dims, mbit in options.tori:
        geometry = Geometry(dims)
        total += 2 * (2 + 0.1 * geometry.nodes)
        for size in options.sizes:
            bound = arithmetic.bound_seconds(geometry, size, mbit)
            each = max(options.cell_seconds / 2, 2 * LEAST_PAIRS * bound) + 10 * bound + OVERHEAD
            total += 2 * len(options.algorithms) * each
    return total


def tables(results):
    for torus in results['tori']:
        work = ['GB x hops / CPU s: A', 'B', 'B / A'] if torus['mbit'] is None else []
        table = Table(f'{rate_text(torus)}: median times in ms',
                      ['algorithm', 'block', 'A', 'B', 'B / A', 'quartiles', 'pairs', 'CPU B / A',
                       *work])
        for cell in torus['cells']:
            row = [cell['algorithm'], arithmetic.format_size(cell['size'])]
            if 'failed' in cell:
                table.rows.append(row + ['failed'] + [NONE] * (5 + len(work)))
                continue
            low, _, high = cell['ratio_quartiles']
            if cell['algorithm'] == 'auto':
                row[0] += f' ({" / ".join(dict.fromkeys(map(str, cell["chosen"].values())))})'
            cost = cell['processor_ratio']
            table.rows.append(row + [
                arithmetic.milliseconds(cell['median']['A']),
                arithmetic.milliseconds(cell['median']['B']), f'{cell["ratio"]:.3f}',
                f'{low:.3f} to {high:.3f}', str(cell['pairs']),
                NONE if cost is None else f'{cost:.3f}'])
            if work:
                a, b = (hop_gigabytes(torus, cell, side) for side in SIDES)
                table.rows[-1] += [f'{a:.2f}', f'{b:.2f}', f'{b / a:.3f}']
        yield table


def as_text(results):
    lines = [f'A: {results["A"]}', f'B: {results["B"]}']
    for table in tables(results):
        lines += ['', *table.text()]
    lines += ['', 'Quartiles: of the ratios of pairs measured in turn. CPU: time of the daemons for '
              'an exchange.']
    failures = [text for torus in results['tori'] for text in torus['failures']]
    return '\n'.join(lines + (['', 'What failed', '===========', *failures] if failures else [])) \
        + '\n'


def run(options, say, save):
    """Measures all tori. Fills and returns the results; save(results) is called after each cell."""
    results = {'A': str(options.against), 'B': str(options.bin), 'machine': machine.describe(),
               'when': time.strftime('%Y-%m-%d %H:%M %Z'), 'load_before': machine.load(),
               'tori': [], 'complete': False}
    say(f'A is {results["A"]}, B is {results["B"]}; this takes about '
        f'{max(1, round(expected_seconds(options) / 60))} min')
    for dims, mbit in options.tori:
        comparison = Comparison(dims, mbit, options, say, progress_on(sys.stderr))
        results['tori'].append(comparison.result)
        try:
            comparison.run(lambda: save(results))
        except (TorusError, OSError) as e:
            comparison.result['failures'].append(str(e))
            say(f'{dims}: {e}')
        save(results)
    results['complete'] = True
    save(results)
    return results


def progress_on(stream):
    """A function that shows a text on a line that changes in place. It does nothing if there is no terminal."""
    def show(text):
        if stream.isatty():
            print(f'\r\033[K{text or ""}', end='', file=stream, flush=True)
    return show
