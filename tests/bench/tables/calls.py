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
    """Latencies or periods of all calls on a torus; None if there are none."""
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
    """Of each torus what calls of MPI programs take, with and without the preload."""
    for index, torus in enumerate(result['tori']):
        table = Table(f'{name_of(torus)}: latency with and without the preload, milliseconds',
                      ['call', 'size', 'bound', 'torusd', 'MPICH', 'preload', 'times', 'Open MPI', 'preload',
                       'times'],
                      note=f'The bound is at {torus["goodput_mbit"]:.2f} Mbit/s of payload, measured on all '
                           'links at once.' + (PRELOADS_NOTE if index + 1 == len(result['tori']) else ''))
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
    """Programs of others, and what the preload says about them."""
    table = Table('Times with and without the preload, and bytes on the links',
                  ['program', 'torus', 'without, s', 'preload, s', 'times', 'mpiexec, without', 'preload',
                   'MB, without', 'MB, preload', 'by torusd', 'checked'])
    said = Table('Calls that torusd took, and that it left to the MPI library and why, as rank 0 says '
                 '(TORUS_MPI=stats)', ['program', 'torus', 'taken', 'left'])
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
            'failed' if failed else '**differs**' if not row['alike'] else results or 'by itself'])
        if preloaded['said']:
            served, _, left = preloaded['said'].partition('; left to MPI: ')
            said.rows.append([row['program'], row['torus'], _counted(served), _counted(left)])
    table.note = FOREIGN_NOTE
    return [each for each in (table, said) if each.rows]


def _counted(said):
    """The calls in a line of the preload, by the reason if they have one: "Alltoall 12, Bcast 3"."""
    reasons = {}
    for name, calls, reason in re.findall(r'MPIX?_(\w+) (\d+) calls?[^;(]*(?:\((.*?)\))?(?=;|$)', said):
        reasons.setdefault(reason, []).append(f'{name} {calls}')
    return '; '.join(', '.join(calls) + (f' ({reason})' if reason else '')
                     for reason, calls in reasons.items()) or 'nothing'


FOREIGN_NOTE = """\
Unmodified, as Debian has built them, or for MPICH its compilers; one rank a host; medians of runs in turn.
*s*: what the program times itself (a transform of FFTW, the loop of LAMMPS, the run of pw.x), else from
mpiexec's start to its end. *MB*: on all links, each hop counted; *by torusd*: the bytes that torusd wrote to
its connections, of these (headers of TCP and IP, and acknowledgements, are left to the rest). *checked*: the
program's own checks passed, and what it printed was the same in all runs with and without the preload. The
other bytes are point-to-point: PTRANS, HPL and the measurements of bandwidth of HPC Challenge, exchanges that
FFTW's planner tries beside MPI_Alltoall, the halos of LAMMPS; and calls that torusd left to the MPI library.
Debian has these programs with Open MPI only; those with MPICH are of this project, and communicate as they do
(tests/mpi/programs)."""

PRELOADS_NOTE = """

The same program (tests/bench/collective.c) with and without the library that gives MPI programs the torus'
operations, by both MPI libraries, in turn in one network; beside them the daemons' own. *times*: how much
longer the call takes without the preload, by the library's best algorithm. The page "Programs"
says how calls are timed."""


def groups_tables(result):
    judged = Table('Goals', ['torus', 'call', 'size', 'what', 'wanted', 'reached', 'met'])
    several = []
    for torus in result['tori']:
        name = (name_of(torus) if torus['mbit'] is not None else
                f'{torus["dims"]} without a limit')
        latency = _calls_table(torus, name, 'latency', 'median')
        period = _calls_table(torus, name, 'back to back', 'period')
        if latency is not None and torus['mbit'] is not None:
            latency.note = (f'The bound is at {torus["goodput_mbit"]:.2f} Mbit/s of payload, measured on '
                            'all links at once.')
        several += [table for table in (latency, period) if table is not None]
        for goal in goals.goals_of(torus):
            judged.rows.append([
                name, goal.operation, format_size(goal.size) if goal.size else NONE, goal.what,
                goal.wanted, goal.reached, 'yes' if goal.met else '**no**'])
    judged.note = CALLS_NOTE.strip()
    return ([judged] if judged.rows else []) + several


CALLS_NOTE = """\
Latency: of one call, the longest of all ranks, each from its own start after a barrier and, below 16
KiB, a pause of 20 ms in which the limiters of the links refill; of torusd, `exchange`, `allgather` and
`broadcast --repeat` without a pause. (A rank that starts late may find a broadcast there already.) Back
to back: the time from one call to the next with nothing between them, in groups of 8 calls; of torusd,
what is sustained with everything between included. Medians; data are verified outside of the time (back
to back: those of the last call). libtorus: registered memory unless said otherwise. Of each MPI library,
the best of its default algorithm and of the one that was the fastest in a trial; without those that were
much slower at a smaller size. The vectors of allreduce are doubles, their operation is the sum;
broadcasts are from rank 0. Sizes are of a block (alltoall, allgather), of the data, or of the vector.

Short calls cost processor time, which many nodes share here: in a barrier of the 16 programs of 4x4, 30
messages and 32 processes make some 90 wake-ups (traced on 2 processors, which were busy throughout). Each took
about 20 us of processor time with calls back to back, and 35 us on average, up to 150, after a pause, when
caches are cold. A daemon makes one epoll_wait, one read and one writev for a message, and wakes its program
by one futex call.
"""
