"""Programs that call collective operations: libtorus compared with the daemons alone and with both MPI
libraries, in turn in one network.

The latency of a call is the longest time of all ranks; each rank measures from its own start, after a pause in
which the links' limiters refill, and a barrier. For small sizes and short exchanges the period is measured, too:
the time per call of many calls without a pause between them. Data are verified outside of the measured time.

For each MPI library, the default algorithm is measured, and also the fastest of the others in a trial. An
algorithm that took much longer at one size is not tried at larger sizes. Long calls get fewer repeats, and
for MPI only the trial.
"""

import subprocess
from pathlib import Path

from torus_net import TorusError, find_program

from . import arithmetic, jobs, mpi, network, programs, systems
from .arithmetic import format_size, milliseconds
from .warm import until_no_faster

TORI = '4x4@50,4x8@20,5x7@20,8x8@10,4x4'
SIZES = {'alltoall': (1, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10),
         'allgather': (8, 1 << 10, 4 << 10, 64 << 10),
         'allreduce': (8, 1 << 10, 4 << 10, 64 << 10, 1 << 20, 4 << 20),
         'broadcast': (8, 4 << 10, 1 << 20),
         'barrier': (0,)}
UNLIMITED_SIZES = {'alltoall': (1 << 20,)}  # unlimited links, where the processors are the limit
ELEMENT = 8          # bytes of an element of allreduce
SMALL = 16 << 10     # below this size: pauses, and periods in every round
PAUSE = 0.02         # seconds before each call of a small size
BATCH = 8            # calls that are timed together for a period
LONGEST_BATCH = 2.0  # seconds; no period is measured for longer calls
UNCOUNTED = 2        # uncounted batches at the beginning, in which the limiters let bytes pass at once
ROUNDS = 3
CELL_SECONDS = 1.0
LONGEST = 1.0        # sizes with a longer bound, in seconds, are skipped
QUICK_TRIAL = 0.05   # seconds; shorter calls are tried three times
FASTER = 0.9         # an algorithm below this share of the default's time is measured, too
TOO_SLOW = 1.5       # an algorithm this many times slower than the fastest is not tried at larger sizes
FAILURES = 2         # failures of a system after which it is skipped

MPI = (systems.MPICH, systems.OPENMPI)
COMMANDS = {'alltoall': ('exchange',), 'allgather': ('allgather',), 'broadcast': ('broadcast', '--root', '0')}


class Daemons:
    """Operations of the daemons alone, on generated data: torusctl exchange --repeat."""

    def __init__(self, torus):
        self.connections = torus
        self.torus = torus
        self.family, self.algorithm, self.memory = systems.OURS, 'default', ''

    name = systems.OURS

    def offers(self, operation):
        return operation in COMMANDS

    def _repeat(self, operation, size, count, timeout):
        try:
            said = self.torus.json(0, *COMMANDS[operation], '--block-size', size, '--repeat', count,
                                   '--timeout', int(timeout) + 1, timeout=timeout + 10)
        except subprocess.TimeoutExpired:
            raise systems.Failed(f'not finished within {timeout:.0f} s') from None
        except TorusError as e:
            raise systems.Failed(str(e)) from e
        if said['verified'] != 'every byte':
            raise systems.Failed(f'blocks arrived damaged (verified: {said["verified"]})')
        return said

    def calls(self, operation, size, warmup, repeats, timeout, pause=0.0):
        said = self._repeat(operation, size, warmup + repeats, timeout)
        return said.get('seconds_each', [said['seconds']])[warmup:]

    def periods(self, operation, size, repeats, timeout):
        return [self._repeat(operation, size, BATCH * repeats, timeout)['sustained_seconds']]


class Program:
    """collective.c with a library: one of its algorithms, one kind of memory."""

    def __init__(self, starter, family, library=None, algorithm='default', memory=systems.ORDINARY, uncounted=0,
                 batches=UNCOUNTED):
        self.connections = starter
        self.starter = starter
        self.family = family
        self.library = library
        self.algorithm = algorithm
        self.memory = memory if library is None else ''
        self.uncounted = uncounted  # the least uncounted calls
        self.batches = batches      # uncounted batches

    @property
    def name(self):
        detail = self.memory or (self.algorithm if self.algorithm != 'default' else '')
        return f'{self.family} {detail}'.strip()

    def offers(self, operation):
        return self.library is None or self.algorithm in self.library.algorithms[operation]

    def _run(self, operation, size, warmup, repeats, timeout, **how):
        selection = () if self.library is None else self.library.selection(operation, self.algorithm)
        try:
            return self.starter.running().run(operation, size, warmup, repeats, timeout,
                                              memory=self.memory or systems.ORDINARY,
                                              selection=selection, **how)
        except systems.Failed as e:
            self.starter.failed(e)
            raise

    def calls(self, operation, size, warmup, repeats, timeout, pause=0.0):
        uncounted = max(warmup, self.uncounted)
        return self._run(operation, size, uncounted, repeats, timeout * (1 + uncounted // repeats), pause=pause)

    def periods(self, operation, size, repeats, timeout):
        return self._run(operation, size, self.batches, repeats, timeout, batch=BATCH)


class Cell:
    """The measurement of one call by one system."""

    def __init__(self, system):
        self.system = system
        self.estimate = None   # estimated seconds of a call
        self.complete = False  # everything was measured
        self.seconds, self.periods = [], []
        self.failed = None

    def as_object(self):
        def middle(values):
            return arithmetic.median(values) if values else None
        return {'family': self.system.family, 'algorithm': self.system.algorithm,
                'memory': self.system.memory, 'median': middle(self.seconds), 'seconds': self.seconds,
                'period': middle(self.periods), 'periods': self.periods,
                **({'failed': self.failed} if self.failed else {})}


def sizes_of(operation, mbit, options):
    """The sizes to measure: the requested ones that are possible for the operation."""
    if operation == 'barrier':
        return [0] if mbit is not None else []
    table = SIZES if mbit is not None else UNLIMITED_SIZES
    sizes = options.groups_sizes or table.get(operation, ())
    if operation == 'allreduce':
        sizes = [-(-size // ELEMENT) * ELEMENT for size in sizes]
    return sorted(set(sizes))


class GroupRun:
    """Measures one torus. `result` is filled step by step and can be saved at any time."""

    title = 'groups'

    def __init__(self, dims, mbit, options, failures, say):
        self.dims, self.mbit = dims, mbit
        self.all_failures = failures
        self.options = options
        self.name = dims if mbit is None else f'{dims} at {mbit:g} Mbit/s'
        self.speak = say
        self.starters = []
        self.turn_of = None      # the system that used the network last
        self.failures = {}       # system: how many
        self.too_slow = set()    # (operation, system)
        self.last = {}           # (operation, system): seconds of a call of the previous size
        self.result = {'dims': dims, 'mbit': mbit, 'goodput_mbit': mbit, 'calls': []}

    def say(self, text):
        self.speak(f'{self.title} {self.name}: {text}')

    def failure(self, text):
        self.say(text)
        self.all_failures.append(f'{self.name}: {text}')

    def run(self, after_each_call):
        options = self.options
        with network.Network(self.dims, self.mbit, bin=options.bin, memory=options.memory,
                             congestion=options.congestion) as net:
            self.net = net
            self.result['nodes'] = net.geometry.nodes
            try:
                self._measure_goodput()
                if options.groups_calibrated:
                    said = net.torus.ctl(0, 'calibrate')
                    self.say('calibrated' if said.returncode == 0 else said.stderr.strip())
                members = self._members()
                for operation in options.groups_operations:
                    for size in sizes_of(operation, self.mbit, options):
                        self._call(members, operation, size)
                        after_each_call()
            finally:
                for starter in self.starters:
                    starter.stop()
        for problem in net.problems:
            self.failure(problem)

    def _measure_goodput(self):
        if self.mbit is None:
            return
        try:
            measured = self.net.goodput(self.folder, self.options.goodput_seconds)
            self.result['goodput_mbit'] = measured['mean']
            self.say(f'all {measured["directions"]} directions at once give '
                     f'{measured["mean"]:.2f} Mbit/s each')
        except (TorusError, programs.Unavailable) as e:
            self.failure(f'goodput not measured, using the nominal rate: {e}')

    @property
    def folder(self):
        return self.options.out / 'programs'

    # --- systems ---

    def _members(self):
        return [Daemons(self.net.torus), *self._libtorus(), *(self._mpi() if self.options.mpi else [])]

    def _start(self, name, make_job):
        return jobs.started(make_job, name, self.starters, self.say, self.failure)

    def _libtorus(self):
        try:
            built = Path(find_program('torusd', self.options.bin)).parent
            program = programs.with_libtorus(self.folder, built)
        except programs.Unavailable as e:
            self.failure(f'{systems.LIBTORUS} cannot be measured: {e}')
            return []
        folder = self.net.folder / 'libtorus'
        starter = self._start(systems.LIBTORUS,
                              lambda: jobs.GroupJob(self.net, program, folder))
        kinds = (systems.REGISTERED,) + (systems.ORDINARY,) * (self.mbit is None)
        return [Program(starter, systems.LIBTORUS, memory=kind) for kind in kinds if starter]

    def _mpi(self):
        members = []
        for library, _, make_job in mpi.makers(self.net, self.folder, self.options, self.result, self.failure):
            starter = self._start(library.family, make_job)
            names = dict.fromkeys(name for each in library.algorithms.values() for name in each)
            members += [Program(starter, library.family, library, name) for name in names if starter]
        return members

    # --- calls ---

    def _call(self, members, operation, size):
        """Measures one call by all systems in turn."""
        bound = arithmetic.bound_seconds(self.net.geometry, size, self.result['goodput_mbit'], operation)
        if bound > self.options.groups_longest:
            self.say(f'{operation} {format_size(size)}: skipped, the bound alone is {bound:.1f} s')
            return
        cells = self._try_all([system for system in members if system.offers(operation)],
                              operation, size, bound)
        for turn in range(self.options.groups_rounds):
            at = turn % max(1, len(cells))
            for cell in cells[at:] + cells[:at]:
                if cell.failed is None and not cell.complete:
                    self._attempt(cell, operation, size, lambda cell=cell: self._measure(
                        cell, operation, size, bound, turn))
        self.result['calls'].append({'operation': operation, 'size': size, 'bound': bound,
                                     'systems': [cell.as_object() for cell in cells]})
        said = [f'{cell.system.name} ' + (milliseconds(arithmetic.median(cell.seconds))
                                          if cell.seconds else 'failed') for cell in cells]
        self.say(f'{operation} {format_size(size)}: bound {milliseconds(bound)}, '
                 + ', '.join(said) + ' ms')

    def _try_all(self, members, operation, size, bound):
        """The cells to measure: of the algorithms of a library, the default and the fastest."""
        cells, kept = [], {}
        for system in members:
            if self.failures.get(system, 0) >= FAILURES or (operation, system) in self.too_slow:
                continue
            cell = Cell(system)
            self._attempt(cell, operation, size,
                          lambda cell=cell: self._try(cell, operation, size, bound))
            if system.family not in MPI or cell.failed:
                cells.append(cell)
            else:
                kept.setdefault(system.family, []).append(cell)
        for several in kept.values():
            fastest = min(several, key=lambda cell: cell.estimate)
            default = [cell for cell in several if cell.system.algorithm == 'default']
            cells += default
            if not default or fastest.estimate < FASTER * default[0].estimate:
                cells.append(fastest)
            if size >= SMALL:
                self.too_slow |= {(operation, cell.system) for cell in several
                                  if cell.estimate > TOO_SLOW * fastest.estimate}
        return cells

    def _try(self, cell, operation, size, bound):
        seconds = self._calls(cell, operation, size, self._uncounted(bound), 1, 60 + 20 * bound)
        if seconds[0] < QUICK_TRIAL:
            seconds += self._calls(cell, operation, size, 1, 3, 60 + 20 * bound)
        cell.estimate = self.last[operation, cell.system] = arithmetic.median(seconds)
        if (cell.system.family in MPI and size >= SMALL
                and cell.estimate > self.options.groups_cell_seconds):
            cell.seconds, cell.complete = seconds, True

    def _settle(self, system, operation, size, timeout):
        """Runs uncounted calls when the network passes from one system to another. Long calls do not need this:
        a slow beginning changes them little."""
        if system.connections is self.turn_of:
            return
        self.turn_of = system.connections
        if self.last.get((operation, system), 0.0) < self.options.groups_cell_seconds / 4:
            until_no_faster(lambda: system.calls(operation, size, 0, 1, timeout)[0],
                            self.options.groups_cell_seconds / 2)

    def _calls(self, cell, operation, size, warmup, repeats, timeout, pause=0.0):
        self._settle(cell.system, operation, size, timeout)
        sent = self.net.sent_bytes()
        seconds = cell.system.calls(operation, size, warmup, repeats, timeout, pause)
        least = arithmetic.least_bytes(self.net.geometry, operation, size) * (warmup + repeats)
        sent = self.net.sent_bytes() - sent
        if sent < least:
            raise systems.Failed(f'only {sent} bytes crossed the links instead of at least {least}')
        return seconds

    def _uncounted(self, bound):
        """The number of uncounted calls at the beginning of a measurement, which touch its new memory: none if
        the links make calls so long that new memory changes nothing."""
        return 1 if bound < self.options.groups_cell_seconds / 4 else 0

    def _measure(self, cell, operation, size, bound, turn):
        budget, pause = self.options.groups_cell_seconds, PAUSE if size < SMALL else 0.0
        rounds, repeats = arithmetic.share_out(self.options.repeats, self.options.groups_rounds, cell.estimate + pause,
                                               budget)
        if turn >= rounds:
            return
        timeout = 60 + 3 * repeats * (cell.estimate + bound + pause)
        cell.seconds += self._calls(cell, operation, size, self._uncounted(bound), repeats, timeout, pause)
        if size < SMALL:
            cell.periods += cell.system.periods(operation, size, repeats, timeout)
        elif turn == 0 and operation == 'alltoall' and BATCH * cell.estimate <= LONGEST_BATCH:
            cell.periods += cell.system.periods(operation, size, 2, timeout)

    def _attempt(self, cell, operation, size, action):
        try:
            action()
        except systems.Failed as e:
            cell.failed = str(e)
            self.failures[cell.system] = self.failures.get(cell.system, 0) + 1
            self.failure(f'{operation} of {format_size(size)} by {cell.system.name} failed: {e}')


def run(options, say, save, kind=None, tori=None):
    """Measures all tori. Saves the result after each call."""
    result = {'tori': [], 'failures': []}
    for dims, mbit in tori or options.groups:
        torus = (kind or GroupRun)(dims, mbit, options, result['failures'], say)
        result['tori'].append(torus.result)
        try:
            torus.run(lambda: save(result))
        except (TorusError, OSError) as e:
            torus.failure(str(e))
    return result
