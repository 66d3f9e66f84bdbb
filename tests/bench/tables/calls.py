"""Tables of calls of programs: libtorus, MPI, and MPI with the preload."""

import re

from .. import goals
from ..arithmetic import digits, format_size, milliseconds
from ..systems import LIBTORUS, MPICH, OPENMPI, ORDINARY, OURS, PRELOADED, REGISTERED
from .table import NONE, Table
from .torus import name_of

PROGRAMS = 'Programs'
PRELOADS, FOREIGN = 'MPI programs', 'MPI programs of others'

# head, family, kind of memory
CALLERS = (('torusd', OURS, None), ('libtorus', LIBTORUS, REGISTERED),
           ('libtorus, ordinary memory', LIBTORUS, ORDINARY), ('MPICH', MPICH, None),
           ('Open MPI', OPENMPI, None))


def _call_cell(call, family, memory, key):
    system = goals.best(call, family, memory, key)
    if system is None:
        failed = any('failed' in one for one in call['systems']
                     if one['family'] == family and memory in (None, one['memory']))
        return 'failed' if failed else NONE
    name = f' {system["algorithm"]}' if system['algorithm'] != 'default' else ''
    return milliseconds(system[key]) + name


def _ratio_of(over, under, key):
    return digits(over[key] / under[key]) if over and under else NONE


def _calls_table(torus, name, what, key):
    """A table of the latencies or periods of all calls on a torus; None if there are none."""
    calls = [call for call in torus['calls'] if any(one[key] is not None for one in call['systems'])
             or (key == 'median' and call['systems'])]
    callers = [(head, family, memory) for head, family, memory in CALLERS
               if any(one['family'] == family and memory in (None, one['memory'])
                      for call in calls for one in call['systems'])]
    table = Table(f'{name}: {what}, milliseconds', ['call', 'size', 'bound']
                  + [head for head, _, _ in callers]
                  + ['libtorus / bound', 'libtorus / torusd', 'MPI / libtorus'])
    for call in calls:
        programs = goals.best(call, LIBTORUS, REGISTERED, key)
        bound = {key: call['bound']} if call['bound'] else None
        table.rows.append([
            call['operation'], format_size(call['size']) if call['operation'] != 'barrier' else NONE,
            milliseconds(call['bound']) if call['bound'] else NONE,
            *(_call_cell(call, family, memory, key) for _, family, memory in callers),
            _ratio_of(programs, bound, key), _ratio_of(programs, goals.best(call, OURS, key=key), key),
            _ratio_of(goals.best_mpi(call, key), programs, key)])
    return table if table.rows else None


def preloads_tables(result):
    """A table for each torus: times of calls of MPI programs, with and without the preload."""
    for index, torus in enumerate(result['tori']):
        table = Table(f'{name_of(torus)}: latency with and without the preload, milliseconds',
                      ['call', 'size', 'bound', 'torusd', 'MPICH', 'MPICH, preload', 'speedup', 'Open MPI',
                       'Open MPI, preload', 'speedup'],
                      note=f'The bound is for {torus["goodput_mbit"]:.2f} Mbit/s of payload in each direction, '
                           'measured while all links were busy.'
                           + (PRELOADS_NOTE if index + 1 == len(result['tori']) else ''))
        for call in torus['calls']:
            row = [call['operation'], format_size(call['size']) if call['size'] else NONE,
                   milliseconds(call['bound']) if call['bound'] else NONE,
                   _call_cell(call, OURS, None, 'median')]
            for family in MPICH, OPENMPI:
                without, preloaded = (goals.best(call, name, key='median')
                                      for name in (family, PRELOADED[family]))
                row += [_call_cell(call, family, None, 'median'),
                        _call_cell(call, PRELOADED[family], None, 'median'),
                        _ratio_of(without, preloaded, 'median')]
            table.rows.append(row)
        yield table


def foreign_tables(result):
    """Tables of MPI programs: times, and the preload's counts of their calls."""
    table = Table('Times with and without the preload, and bytes on the links',
                  ['program', 'torus', 'time without, s', 'time with preload, s', 'speedup', 'mpiexec without, s',
                   'mpiexec with preload, s', 'MB without', 'MB with preload', 'share of torusd', 'checks'])
    said = Table('Calls that torusd took or left to the MPI library, added up over all ranks (TORUS_MPI=stats)',
                 ['program', 'torus', 'taken', 'left, and why'])
    for row in result['programs']:
        without, preloaded = row['without'], row['with']
        failed = without['failed'] or preloaded['failed']
        results = ', '.join(text if len(text) < 30 else 'same output'
                            for text in preloaded['results'] if text)
        table.rows.append([
            f'{row["program"]}: {row["what"]}', row['torus'],
            *(digits(side['seconds']) if side['seconds'] else 'failed' for side in (without, preloaded)),
            NONE if failed else digits(without['seconds'] / preloaded['seconds']),
            *(f'{side["whole"]:.1f}' if side['whole'] else 'failed' for side in (without, preloaded)),
            *(f'{side["link_bytes"] / 1e6:.1f}' if side['link_bytes'] else NONE
              for side in (without, preloaded)),
            f'{preloaded["torus_bytes"] / preloaded["link_bytes"]:.0%}' if preloaded['link_bytes'] else NONE,
            'failed' if failed else '**differs**' if not row['alike'] else results or 'passed'])
        if preloaded['said']:
            served, _, left = preloaded['said'].partition('; left to MPI: ')
            said.rows.append([row['program'], row['torus'], _counted(served), _counted(left)])
    table.note = FOREIGN_NOTE
    return [each for each in (table, said) if each.rows]


def _counted(said):
    """The calls in a line of the preload, grouped by reason if they have one: "Alltoall 12, Bcast 3"."""
    reasons = {}
    for name, calls, reason in re.findall(r'MPIX?_(\w+) (\d+) calls?[^;(]*(?:\((.*?)\))?(?=;|$)', said):
        reasons.setdefault(reason, []).append(f'{name} {calls}')
    return '; '.join(', '.join(calls) + (f' ({reason})' if reason else '')
                     for reason, calls in reasons.items()) or 'nothing'


FOREIGN_NOTE = """\
The programs are unmodified: Debian's packages with Open MPI, or compiled with MPICH. One rank runs on each host.
Times are medians of runs in turn. *time*: as the program measures it (a transform of FFTW, the loop of LAMMPS,
the run of pw.x), otherwise the time of mpiexec. *mpiexec*: from its start to its end. *MB*: on all links, counted
on each hop. *share of torusd*: the bytes that torusd wrote to its connections, without headers of TCP and IP and
acknowledgements, as a share of these. *checks*: the program's own checks passed, and its results were the same in
all runs with and without the preload. The other bytes are point-to-point messages (PTRANS, HPL and the bandwidth
tests of HPC Challenge, exchanges that FFTW's planner tries besides MPI_Alltoall, the halos of LAMMPS) and calls
that torusd left to the MPI library. Debian has these programs with Open MPI only. The programs with MPICH belong to
this project, and communicate in the same ways (tests/mpi/programs)."""

PRELOADS_NOTE = """

One program (tests/bench/collective.c) makes the calls with each MPI library, with and without torusd's preload, in
turn in one network. *torusd*: the same operation by the daemons alone. *speedup*: the time without the
preload, divided by the time with it. The library chooses its algorithm, and the preload, when it has timed both,
whether calls go by MPI or by the torus. The page "Programs" says how calls are timed."""


def groups_tables(result):
    judged = Table('Goals', ['torus', 'call', 'size', 'quantity', 'goal', 'measured', 'met'])
    several = []
    for torus in result['tori']:
        name = (name_of(torus) if torus['mbit'] is not None else
                f'{torus["dims"]} without a limit')
        latency = _calls_table(torus, name, 'latency', 'median')
        period = _calls_table(torus, name, 'back to back', 'period')
        if latency is not None and torus['mbit'] is not None:
            latency.note = (f'The bound is for {torus["goodput_mbit"]:.2f} Mbit/s of payload in each direction, '
                            'measured while all links were busy.')
        several += [table for table in (latency, period) if table is not None]
        for goal in goals.goals_of(torus):
            judged.rows.append([
                name, goal.operation, format_size(goal.size) if goal.size else NONE, goal.what,
                goal.wanted, goal.reached, 'yes' if goal.met else '**no**'])
    judged.note = CALLS_NOTE.strip()
    return ([judged] if judged.rows else []) + several


CALLS_NOTE = """\
All times are medians. *Latency*: the time of one call. Each rank measures from its own start to its own end, and
the longest time counts. Before each call there is a barrier and, below 16 KiB, a pause of 20 ms in which the
limiters of the links refill. (In a broadcast, the data may already be there when a rank starts late.) *Back to
back*: the time from one call to the next without a pause, in batches of 8 calls. *torusd*: the daemons' own
`exchange`, `allgather` and `broadcast --repeat`; their back-to-back times include everything between repetitions.
Data are verified outside of the measured time (back to back: the data of the last call). *libtorus*: registered
memory, unless the table says otherwise. *MPICH, Open MPI*: the faster of two algorithms, the library's default
and the one that was the fastest in a trial; algorithms that were much slower at a smaller size were not tried.
The vectors of allreduce are doubles, and their operation is the sum. Broadcasts are from rank 0. A size is that of a
block (alltoall, allgather), of the data (broadcast), or of the vector (allreduce).

The processors, which all nodes share here, limit short calls. In a barrier of 16 programs on 4x4, 30 messages
and 32 processes cause about 90 wake-ups (traced on 2 processors, which were always busy). A wake-up took about
20 us of processor time back to back; after a pause, when caches are cold, it took 35 us on average, and up to
150 us. For each message, a daemon makes one epoll_wait, one read and one writev, and wakes its program by one
futex call.
"""
