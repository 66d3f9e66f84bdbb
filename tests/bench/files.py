"""The cost of exchanging files, compared with generated data and with `cp` of the same bytes.

A turn is an exchange of generated blocks, an exchange of files, and a copy of the same bytes by `cp` within
the file system, from its cache. A pause between turns lets the limiters of the links refill. In a skewed set
one file, for the node farthest away, is much larger than the others; the generated blocks then have the mean
size.
"""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from support.trees import make_sources
from torus_net import Geometry, MininetTorus

from . import arithmetic, machine
from .network import attempt

TORI = (('3x3', 50.0), ('4x4', 20.0), ('4x4', 50.0), ('2x2', None))
SIZES = (100, 16 << 10, 256 << 10, 1 << 20, 64 << 20)
SKEW = 1024           # one file is this many times as large as the others
TURNS = 5
LONGEST = 1.0         # the bound of a measured size, in seconds
MOST_BYTES = 1 << 30  # bytes of all files
REST = 0.15           # seconds


def run(options, say):
    result = {'folders': [], 'cells': [], 'failures': []}
    for folder in options.files_in:
        with tempfile.TemporaryDirectory(prefix='torus-bench-', dir=folder) as base:
            kind = _file_system(base)
            result['folders'].append({'folder': folder, 'file_system': kind})
            for dims, mbit in options.files_tori:
                with attempt('files', f'{dims} on {kind}', result['failures'], say):
                    _torus(dims, mbit, kind, Path(base), options, result, say)
    return result


def _file_system(folder):
    done = subprocess.run(['df', '--output=fstype', folder], capture_output=True, text=True,
                          check=True)
    return done.stdout.split()[-1]


def _sets(dims, mbit, each):
    """(name, size, sizes by pair, mean size) of each set of files that is measured on a torus."""
    geometry = Geometry(dims)
    nodes = range(geometry.nodes)
    pairs = [(s, d) for s in nodes for d in nodes if s != d]
    far = geometry.rank([size // 2 for size in geometry.sizes])
    for size in each:
        even = dict.fromkeys(pairs, size)
        for name, sizes in ('even', even), ('skewed', even | {(0, far): SKEW * size}):
            total = sum(sizes.values())
            mean = total // len(pairs)
            if total > MOST_BYTES or (mbit and arithmetic.bound_seconds(geometry, mean, mbit) > LONGEST):
                continue
            yield name, size, sizes, mean


def _torus(dims, mbit, kind, base, options, result, say):
    with MininetTorus(dims, bw=mbit, bin=options.bin, memory=options.memory,
                      data_roots=[str(base)]) as torus:
        for name, size, sizes, mean in _sets(dims, mbit, options.files_sizes):
            for cached in (True, False) if kind != 'tmpfs' else (True,):
                cell = _cell(torus, base, sizes, mean, cached, options.files_turns)
                cell.update(dims=dims, mbit=mbit, file_system=kind, set=name, size=size,
                            files=len(sizes), bytes=sum(sizes.values()), cached=cached)
                result['cells'].append(cell)
                say(f'files {dims} {name} {arithmetic.format_size(size)} on {kind}'
                    f'{"" if cached else ", not cached"}: {arithmetic.milliseconds(cell["files_seconds"])} '
                    f'ms, generated {arithmetic.milliseconds(cell["generated_seconds"])}')


def _cell(torus, base, sizes, mean, cached, turns):
    work = base / 'work'
    times = {}
    try:
        source = make_sources(work / 'from', sizes)
        for turn in range(turns + 1):
            said = {}
            _exchange(torus, said, 'generated', block_size=mean)
            if not cached:
                _drop(work / 'from')
            _exchange(torus, said, 'files', source=source, target=f'{work}/to/%r', missing_ok=True)
            said.update(_copy(work))
            shutil.rmtree(work / 'to')
            if turn > 0:  # the first one warms up
                for key, value in said.items():
                    times.setdefault(key, []).append(value)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    chosen = times.pop('files_chosen')[-1]
    return {key: arithmetic.median(values) for key, values in times.items()} | {'chosen': chosen}


def _exchange(torus, said, what, **arguments):
    time.sleep(REST)
    before, begin = machine.daemon_seconds(torus), time.monotonic()
    result = torus.exchange(**arguments)
    said[f'{what}_call'] = time.monotonic() - begin
    said[f'{what}_cpu'] = machine.daemon_seconds(torus) - before
    said[f'{what}_seconds'] = result['seconds']
    if what == 'files':
        said['files_chosen'] = result['algorithm']


def _copy(work):
    before, begin = machine.children_seconds(), time.monotonic()
    subprocess.run(['cp', '-r', '--reflink=never', work / 'from', work / 'to' / 'copy'], check=True)
    return {'cp_seconds': time.monotonic() - begin, 'cp_cpu': machine.children_seconds() - before}


def _drop(folder):
    """Writes files to disk, and drops them from the page cache."""
    for path in folder.rglob('*'):
        if path.is_file():
            fd = os.open(path, os.O_RDONLY)
            try:
                os.fsync(fd)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(fd)
