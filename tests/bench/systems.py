"""The interface of measured systems. A system is one algorithm of torusd or of an MPI library, its family.

    seconds = system.warm_up(size, timeout)
    sample = system.measure(size, warmup, repeats, timeout)
"""

OURS, LIBTORUS, MPICH, OPENMPI = 'torusd', 'libtorus', 'MPICH', 'Open MPI'
PRELOADED = {MPICH: f'{MPICH}, preload', OPENMPI: f'{OPENMPI}, preload'}  # the MPI libraries with torusd's preload
REGISTERED, ORDINARY = 'registered', 'ordinary'  # memory of a program that uses libtorus
PATIENT, SPINNING = '', 'spinning'  # variants: how an MPI library waits


class Failed(Exception):
    """A measurement failed; the message says why."""


class Sample:
    """The times of the repeats in one call, and the CPU-seconds of the system's own processes."""

    def __init__(self, seconds, process_seconds=None, detail=None):
        self.seconds = seconds
        self.process_seconds = process_seconds
        self.detail = detail or {}


class System:
    repeats_cheaply = True  # whether many repeats in one call take little more than their own time

    def __init__(self, connections, family, algorithm, variant=''):
        self.connections = connections  # the same object for all systems that share them
        self.family = family
        self.algorithm = algorithm
        self.variant = variant  # how an MPI library waits

    @property
    def name(self):
        return f'{self.family} {self.algorithm}' + (f' ({self.variant})' if self.variant else '')
