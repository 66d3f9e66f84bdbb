"""Measures every system at every size on one torus, in turn in one network.

All systems take turns at each size, in as many rounds as time allows, so that changes on the machine
affect all of them. Slow systems are measured less often, and very slow ones are skipped at larger
sizes; the results say so.
"""

import pathlib
import time

from torus_net import TorusError

from . import arithmetic, jobs, machine, mpi, network, ours, programs, systems
from .arithmetic import format_size, milliseconds
from .warm import warm_up

ROUNDS = 3
SETTLED = 4      # of the bound; a system that is the best at this multiple is roughly the best at larger sizes, too
FAILURES = 2     # failures of a system, at different sizes, after which it is skipped
FILL = 0.3      # seconds of short repeats, enough to measure the use of processors
CONTENDER = 1.5  # systems this many times slower than the best of their family get a quarter of the time
NEAR = 1.1       # systems that exceed their time are measured only if they are at most this times the best's time


class Cell:
    """A system at a size."""

    def __init__(self, system, size):
        self.system = system
        self.size = size
        self.seconds = []
        self.exchanges = 0           # including uncounted ones
        self.busy_seconds = 0.0      # CPU-seconds of all processors, including the kernel
        self.stolen_seconds = 0.0
        self.processor_seconds = 0.0
        self.process_seconds = 0.0
        self.sent_bytes = 0
        self.detail = {}
        self.failed = None
        self.left_out = None
        self.predicted = None
        self.simulated = None
        self.estimate = None         # seconds of an exchange
        self.budget = 0.0            # seconds for all of them

    @property
    def median(self):
        return arithmetic.median(self.seconds) if self.seconds else None

    def as_object(self, geometry, bound):
        result = {'family': self.system.family, 'algorithm': self.system.algorithm,
                  'variant': self.system.variant, 'size': self.size, 'median': self.median,
                  'seconds': self.seconds, 'bound': bound}
        if self.seconds:
            ideal = arithmetic.total_hops(geometry) * self.size * self.exchanges
            result.update(
                exchanges=self.exchanges,
                busy=(self.busy_seconds / self.processor_seconds if self.processor_seconds else
                      None),
                stolen=(self.stolen_seconds / self.processor_seconds if self.processor_seconds
                        else None),
                cpu_seconds=self.busy_seconds / self.exchanges,
                process_seconds=self.process_seconds / self.exchanges,
                bytes_on_links=self.sent_bytes / self.exchanges,
                bytes_over_shortest=self.sent_bytes / ideal if ideal else None, **self.detail)
        for name in ('failed', 'left_out', 'predicted', 'simulated'):
            if getattr(self, name) is not None:
                result[name] = getattr(self, name)
        return result


class TorusRun:
    """Measures one torus. `result` is filled step by step and can be saved at any time."""

    def __init__(self, dims, mbit, cable, options, folder, say):
        self.dims = dims
        self.mbit = mbit
        self.cable = cable
        self.options = options
        self.folder = folder
        self.say = say
        self.starters = []
        self.turn_of = None  # the job or daemons that used the network last
        self.result = {'dims': dims, 'mbit': mbit, 'cable': cable, 'cells': [], 'failures': []}

    def run(self, after_each_size):
        begin = time.monotonic()
        options = self.options
        with network.Network(self.dims, self.mbit, cable=self.cable, bin=options.bin, memory=options.memory,
                             congestion=options.congestion) as net:
            self.net = net
            geometry = net.geometry
            # The ranks' send and receive buffers, and half as much again inside of the library.
            self._copies = 3 * geometry.nodes ** 2
            self.result.update(
                nodes=geometry.nodes, links=len(geometry.links), congestion=options.congestion,
                bound_blocks=float(arithmetic.bound_blocks(geometry)),
                mean_hops=arithmetic.mean_hops(geometry),
                up_seconds=time.monotonic() - begin)
            self.say(f'{self.dims}: {geometry.nodes} daemons up after '
                     f'{self.result["up_seconds"]:.1f} s')
            try:
                self._measure_goodput()
                members = ours.our_systems(net.torus, options.algorithms, self._failure)
                self.result['repeats_in_a_session'] = any(s.repeats_itself for s in members)
                if any(s.algorithm == 'auto' for s in members):
                    said = net.torus.ctl(0, 'calibrate')
                    self.say(f'{self.dims}: calibrated' if said.returncode == 0 else said.stderr)
                self.predict = ours.explainer(net.torus)
                # The simulated links have the limiter of the others.
                self.simulate = ours.not_simulated if self.cable else ours.simulator(
                    pathlib.Path(options.bin or 'build') / 'tests/sim/simulate', str(self.dims),
                    self.goodput)
                if options.mpi:
                    members += self._mpi_systems()
                self._measure_all(members, after_each_size)
            finally:
                for starter in self.starters:
                    starter.stop()
        for problem in net.problems:
            self._failure(problem)
        self.result['seconds'] = time.monotonic() - begin

    def _failure(self, text):
        self.say(f'{self.dims}: {text}')
        self.result['failures'].append(str(text))

    def _measure_goodput(self):
        try:
            measured = self.net.goodput(self.folder, self.options.goodput_seconds)
            self.goodput = measured['mean']
            self.say(f'{self.dims}: all {measured["directions"]} directions at once give '
                     f'{measured["mean"]:.2f} Mbit/s each (least {measured["least"]:.2f}, most '
                     f'{measured["most"]:.2f}), processors {measured["busy"]:.0%} busy')
            self.result['goodput'] = measured
        except (TorusError, programs.Unavailable) as e:
            self._failure(f'goodput not measured, using the nominal rate: {e}')
            self.goodput = self.mbit
        self.result['goodput_mbit'] = self.goodput

    def _mpi_systems(self):
        """The systems of every library that can be built and started."""
        members = []
        variants = (systems.PATIENT, systems.SPINNING) if self.options.spinning else (systems.PATIENT,)
        for library, variant, make_job in mpi.makers(self.net, self.folder, self.options, self.result, self._failure,
                                                     variants):
            starter = jobs.started(make_job, f'{library.family} {variant}'.strip(), self.starters,
                                   lambda text: self.say(f'{self.dims}: {text}'), self._failure)
            names = list(library.algorithms['alltoall']) if variant == systems.PATIENT else ['default']
            members += [mpi.Mpi(starter, library, name, variant) for name in names if starter]
        return members

    # --- sizes ---

    def _measure_all(self, members, after_each_size):
        given_up = {}   # systems that are skipped, and why
        last = {}       # their cells of the size before
        failures = {}
        for size in self.options.cable_sizes if self.cable else self.options.sizes:
            bound = arithmetic.bound_seconds(self.net.geometry, size, self.goodput)
            cells = self._choose(members, size, bound, last, given_up)
            self._measure_size([cell for cell in cells if cell.left_out is None], bound)
            for cell in cells:
                if cell.system.family == systems.OURS:
                    cell.predicted = self.predict(cell.system.algorithm, size)
                    cell.simulated = self.simulate(cell.system.algorithm, size)
                if cell.failed is not None:
                    failures[cell.system] = failures.get(cell.system, 0) + 1
                    if failures[cell.system] == FAILURES:
                        given_up[cell.system] = 'failed too often'
            self.result['cells'] += [cell.as_object(self.net.geometry, bound) for cell in cells]
            last = {cell.system: cell for cell in cells if cell.seconds}
            self._report(size, bound, cells)
            after_each_size()

    def _choose(self, members, size, bound, last, given_up):
        """A cell for each system, and how long it may take. Once bytes matter more than messages, systems that
        would take too long and were not the best are skipped for the rest of the sizes."""
        best = {}
        for system, cell in last.items():
            key = system.family, system.variant
            if key not in best or cell.median < best[key].median:
                best[key] = cell
        cells = []
        for system in members:
            cell = Cell(system, size)
            cells.append(cell)
            cell.budget = self.options.cell_seconds
            if system in last:
                before, leader = last[system], best[system.family, system.variant]
                rank = before.median / leader.median
                if rank > CONTENDER:
                    cell.budget /= 4
                cell.estimate = arithmetic.estimate_next(before.median, before.size, size, bound)
                settled = leader.median < SETTLED * bound * before.size / size
                if (before is not leader and system.algorithm != 'auto' and settled
                        and cell.estimate > cell.budget
                        and (rank > NEAR or cell.estimate > 2 * cell.budget)):
                    given_up[system] = (f'slow to measure, and at {format_size(before.size)} '
                                        f'{rank:.2f} times as slow as {leader.system.algorithm}')
            if system.variant == systems.SPINNING and size > self.options.spinning_up_to:
                given_up[system] = 'spinning is only measured at small sizes'
            if system.family != systems.OURS and size * self._copies > machine.available_memory():
                given_up[system] = 'not enough memory for the blocks of all ranks'
            if bound > self.options.longest:
                given_up[system] = f'the bound alone is {bound:.0f} s'
            cell.left_out = given_up.get(system)
        return cells

    def _measure_size(self, cells, bound):
        plan = {}
        for cell in cells:
            if cell.estimate is None:
                cell.estimate = self._trial(cell, bound)
                if cell.estimate is None:
                    continue
            rounds, each = arithmetic.share_out(self.options.repeats, ROUNDS, cell.estimate,
                                                cell.budget,
                                                FILL if cell.system.repeats_cheaply else 0.0)
            plan[cell] = rounds, each, 1 if cell.estimate < cell.budget / 4 else 0
        for turn in range(ROUNDS):
            for cell, (rounds, each, warmup) in plan.items():
                if turn < rounds and cell.failed is None:
                    timeout = 30 + 3 * (cell.estimate + bound) * (each + warmup)
                    self._measure(cell, warmup, each, timeout)

    def _warm_up(self, system, size):
        """Runs uncounted exchanges when the network passes from one system to another."""
        if system.connections is self.turn_of:
            return
        self.turn_of = system.connections
        warm_up(system, size, self.net.geometry, self.goodput)

    def _trial(self, cell, bound):
        """The seconds of a system's first exchange, or None if it fails."""
        try:
            self._warm_up(cell.system, cell.size)
            return arithmetic.median(cell.system.measure(cell.size, 1, 1, 60 + 20 * bound).seconds)
        except systems.Failed as e:
            self._cell_failed(cell, e)
            return None

    def _measure(self, cell, warmup, repeats, timeout):
        try:
            self._warm_up(cell.system, cell.size)
        except systems.Failed as e:
            self._cell_failed(cell, e)
            return
        sent = self.net.sent_bytes()
        before = machine.Times()
        try:
            sample = cell.system.measure(cell.size, warmup, repeats, timeout)
        except systems.Failed as e:
            self._cell_failed(cell, e)
            return
        usage = machine.Usage(before, machine.Times())
        sent = self.net.sent_bytes() - sent
        exchanges = warmup + repeats
        least = cell.size * exchanges * arithmetic.total_hops(self.net.geometry)
        if sent < least and cell.system.family != systems.OURS:
            self._cell_failed(cell, f'only {sent} bytes crossed the links instead of at least {least}')
            return
        cell.seconds += sample.seconds
        cell.exchanges += exchanges
        cell.busy_seconds += usage.busy
        cell.stolen_seconds += usage.stolen
        cell.processor_seconds += usage.available
        cell.process_seconds += sample.process_seconds or 0.0
        cell.sent_bytes += sent
        cell.detail = sample.detail

    def _cell_failed(self, cell, reason):
        cell.failed = str(reason)
        self._failure(f'{cell.system.name} at {format_size(cell.size)} failed: {reason}')

    def _report(self, size, bound, cells):
        said = [f'bound {milliseconds(bound)}']
        best = {}
        for cell in cells:
            if cell.seconds:
                key = cell.system.family, cell.system.variant
                if key not in best or cell.median < best[key].median:
                    best[key] = cell
        said += [f'{cell.system.name} {milliseconds(cell.median)}' for cell in best.values()]
        self.say(f'{self.dims} {format_size(size):>7}: ' + ', '.join(said) + ' ms')
