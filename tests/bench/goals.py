"""Goals for the times of calls through libtorus, and whether they are met. Pure arithmetic on the results of
groups.py."""

from dataclasses import dataclass

from .arithmetic import digits, milliseconds
from .systems import LIBTORUS, MPICH, OPENMPI, ORDINARY, OURS, REGISTERED

# (dims, Mbit/s, operation, size): seconds
LATENCY = {('4x4', 50.0, 'alltoall', 1): 0.35e-3, ('4x4', 50.0, 'alltoall', 1 << 10): 0.75e-3,
           ('4x8', 20.0, 'alltoall', 1): 0.8e-3, ('8x8', 10.0, 'alltoall', 1): 2.0e-3,
           ('4x4', 50.0, 'broadcast', 8): 0.35e-3, ('4x4', 50.0, 'allreduce', 8): 0.35e-3,
           ('4x4', 50.0, 'barrier', 0): 0.35e-3}
PERIOD = 1.1         # of the larger of the bound and the daemons' own period, below LARGE
LARGE = 16 << 10
OF_DAEMONS = 1.02    # of the daemons' own time, from LARGE on
RATE = {REGISTERED: 0.95, ORDINARY: 0.75}  # of the daemons' own rate on unlimited links
REDUCTION = {('4x4', 50.0): 1.10, ('5x7', 20.0): 1.15}  # of the bound, from REDUCTION_FROM on
REDUCTION_FROM = 1 << 20
# From these sizes on, calls should be at least as fast as MPI's.
AHEAD_OF_MPI = {'alltoall': 1, 'allgather': 4096, 'allreduce': 4096, 'broadcast': 4096}


@dataclass
class Goal:
    operation: str
    size: int
    what: str
    wanted: str
    reached: str
    met: bool


def best(call, family, memory=None, key='median'):
    """The fastest of a family in a call, by its latency or its period; None if there is none."""
    found = [system for system in call['systems'] if system['family'] == family
             and system[key] is not None and memory in (None, system['memory'])]
    return min(found, key=lambda system: system[key], default=None)


def best_mpi(call, key='median'):
    found = [system for family in (MPICH, OPENMPI) if (system := best(call, family, key=key))]
    return min(found, key=lambda system: system[key], default=None)


def goals_of(torus):
    """The goals of all calls of a torus that were measured with libtorus."""
    for call in torus['calls']:
        programs = best(call, LIBTORUS, REGISTERED)
        if programs is not None:
            limited = _limited if torus['mbit'] is not None else _unlimited
            yield from limited(torus, call, programs)
            yield from _of_mpi(call, programs)


def _limited(torus, call, programs):
    operation, size, bound = call['operation'], call['size'], call['bound']
    seconds, own = programs['median'], best(call, OURS)
    most = LATENCY.get((torus['dims'], torus['mbit'], operation, size))
    if most is not None:
        yield Goal(operation, size, 'latency', f'at most {milliseconds(most)} ms',
                   f'{milliseconds(seconds)} ms', seconds <= most)
    if operation == 'alltoall' and own is not None:
        if size >= LARGE:
            yield _ratio(call, "latency / torusd's latency", OF_DAEMONS, seconds / own['median'])
            if programs['period'] and own['period']:
                yield _ratio(call, "back to back / torusd's back to back", OF_DAEMONS,
                             programs['period'] / own['period'])
        elif programs['period'] and own['period']:
            yield _ratio(call, "back to back / the larger of the bound and torusd's back to back", PERIOD,
                         programs['period'] / max(bound, own['period']))
    most = REDUCTION.get((torus['dims'], torus['mbit']))
    if operation == 'allreduce' and size >= REDUCTION_FROM and most is not None:
        yield _ratio(call, 'latency / bound', most, seconds / bound)


def _unlimited(_torus, call, _programs):
    own = best(call, OURS)
    for memory, least in RATE.items():
        programs = best(call, LIBTORUS, memory)
        if own is not None and programs is not None:
            rate = own['median'] / programs['median']
            yield Goal(call['operation'], call['size'], f"rate with {memory} memory / torusd's rate",
                       f'at least {least:g}', digits(rate), rate >= least)


def _of_mpi(call, programs):
    mpi = best_mpi(call)
    if mpi is not None and call['size'] >= AHEAD_OF_MPI.get(call['operation'], float('inf')):
        yield _ratio(call, f"latency / latency of {mpi['family']}", 1.0, programs['median'] / mpi['median'])


def _ratio(call, what, most, ratio):
    return Goal(call['operation'], call['size'], what, f'at most {most:g}', digits(ratio), ratio <= most)
