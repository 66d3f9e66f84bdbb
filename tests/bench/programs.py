"""Compiles the C programs in this folder, those for MPI with each library's own compiler."""

import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
FLAGS = ['-std=gnu11', '-D_GNU_SOURCE', '-O2', '-g', '-Wall', '-Wextra', '-Wconversion', '-Wshadow']


class Unavailable(Exception):
    """Something that a measurement needs is missing; the message says what."""


def _compile(folder, name, source, compiler, *more):
    if shutil.which(compiler) is None:
        raise Unavailable(f'{compiler} is missing')
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / name
    command = [compiler, *FLAGS, str(HERE / source), '-o', str(target), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f'{" ".join(command)}: {done.stderr.strip()}')
    return target


def alltoall(folder, library, compiler):
    return _compile(folder, f'alltoall-{library}', 'alltoall.c', compiler)


def patient_poll(folder):
    return _compile(folder, 'patient_poll.so', 'patient_poll.c', 'cc', '-shared', '-fPIC')


def flood(folder):
    return _compile(folder, 'flood', 'flood.c', 'cc', '-pthread')
