"""Compiles the C programs in this folder, collective.c with each MPI library's own compiler."""

import shutil
import subprocess
from pathlib import Path

from torus_net import CHECKOUT

HERE = Path(__file__).resolve().parent
PATTERNS = CHECKOUT / 'tests' / 'mpi' / 'programs'
COMPILERS = {'.c': 'mpicc', '.cpp': 'mpicxx', '.f90': 'mpifort'}
FLAGS = ['-std=gnu11', '-D_GNU_SOURCE', '-O2', '-g', '-Wall', '-Wextra', '-Wconversion', '-Wshadow']


class Unavailable(Exception):
    """A requirement of a measurement is missing; the message says which."""


def require(*names):
    """Raises Unavailable if one of these programs is missing."""
    for name in names:
        if shutil.which(name) is None:
            raise Unavailable(f'{name} is missing')


def _compile(folder, name, sources, compiler, *more, flags=FLAGS):
    require(compiler)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / name
    command = [compiler, *flags, *(str(HERE / source) for source in sources), '-o', str(target), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f'{" ".join(command)}: {done.stderr.strip()}')
    return target


def with_mpi(folder, library, compiler):
    require(f'mpiexec.{library}')
    return _compile(folder, f'collective-{library}', ['collective.c', 'collective_mpi.c'], compiler)


def with_libtorus(folder, built):
    """Compiles collective_torus.c with the libtorus of the same build as torusd, in the folder `built`."""
    library = built / 'client'
    if not (library / 'libtorus.so').exists():
        raise Unavailable(f'libtorus.so is not in {library}')
    return _compile(folder, 'collective-torus', ['collective.c', 'collective_torus.c'], 'cc',
                    f'-I{CHECKOUT / "client" / "include"}', f'-L{library}', '-ltorus',
                    f'-Wl,-rpath,{library}')


def with_fftw(folder):
    """Debian's FFTW for MPI is built with Open MPI."""
    require('mpiexec.openmpi')
    return _compile(folder, 'fftw_mpi', ['fftw_mpi.c'], 'mpicc.openmpi', '-lfftw3_mpi', '-lfftw3', '-lm')


def with_pattern(folder, library, source):
    """A program of tests/mpi/programs, as users compile it."""
    require(f'mpiexec.{library}')
    compiler = f'{COMPILERS[Path(source).suffix]}.{library}'
    own = ['-fallow-argument-mismatch', '-w'] if compiler.startswith('mpifort') else ['-Wall']
    return _compile(folder, f'{Path(source).stem}-{library}', [PATTERNS / source], compiler, '-lm',
                    flags=['-O2', '-g', *own])


def patient_poll(folder):
    return _compile(folder, 'patient_poll.so', [CHECKOUT / 'topo' / 'preload' / 'patient_poll.c'], 'cc',
                    '-shared', '-fPIC')


def flood(folder):
    return _compile(folder, 'flood', ['flood.c'], 'cc', '-pthread')
