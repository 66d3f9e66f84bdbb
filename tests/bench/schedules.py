"""Schedules of others compared with `stream`, in turn on one torus: the multi-commodity flow of flow.py, with
whole blocks and with blocks in four segments, streamed and in steps; and the rivals (client/rivals) that take the torus.
Then the allgathers of rivals, beside those of torusctl.

A turn is one verified exchange, or allgather, by each schedule; the result is the median of the turns. A pause between
exchanges lets the limiters of the links refill.
"""

import tempfile
import time
from pathlib import Path

from torus_net import CHECKOUT, Geometry, MininetTorus, TorusError

from . import arithmetic
from .network import attempt

TORI = (('3x5', 20.0), ('4x4', 20.0), ('8', 20.0))
SIZES = (1 << 10, 16 << 10, 64 << 10, 256 << 10)
SPLIT = 4
TURNS = 9
REST = 0.15  # seconds
RIVALS = ('python:{}/bruck.py', 'python:{}/traeff.py', 'python:{}/halfring.py', 'suh-shin')  # for exchanges
GATHERS = ('disjoint', 'balanced', 'saadschultz', 'python:{}/swing.py', 'python:{}/bine.py')  # swing, bine: rings, 2^k


def run(options, say):
    result = {'cells': [], 'gathers': [], 'failures': []}
    for dims, mbit in options.schedules_tori:
        with attempt('schedules', dims, result['failures'], say):
            _torus(dims, mbit, options, result, say)
    return result


def _torus(dims, mbit, options, result, say):
    from . import flow  # needs scipy
    with tempfile.TemporaryDirectory(prefix='torus-bench-') as base:
        ways = {'stream': ('--algorithm', 'stream')}
        for segments in 1, SPLIT:
            text, least = flow.make(dims, segments)
            path = Path(base) / f'flow-{segments}.json'
            path.write_text(text)
            ways[f'flow {segments}'] = ('--schedule', str(path), '--mode', 'streaming')
            ways[f'steps {segments}'] = ('--schedule', str(path), '--mode', 'stepped')
        with MininetTorus(dims, bw=mbit, bin=options.bin, memory=options.memory) as torus:
            ways |= _those_that_take(torus, RIVALS)
            gathers = _those_that_take(torus, GATHERS)
            for size in options.schedules_sizes:
                times = _turns(torus, 'exchange', ways, size, options.schedules_turns)
                _add(result['cells'], dims, mbit, size, times, say, load=float(least),
                     bound=arithmetic.bound_seconds(Geometry(dims), size, mbit))
                times = _turns(torus, 'allgather', gathers, size, options.schedules_turns)
                _add(result['gathers'], dims, mbit, size, times, say)


def _those_that_take(torus, names):
    """{short name: options} of the algorithms that take the torus."""
    ways = {}
    for name in names:
        name = name.format(CHECKOUT / 'client' / 'rivals')
        if torus.ctl(0, 'plan', '--dims', str(torus.geometry), '--algorithm', name).returncode == 0:
            ways[Path(name).stem] = ('--algorithm', name)
    return ways


def _add(cells, dims, mbit, size, times, say, **more):
    cell = {'dims': dims, 'mbit': mbit, 'size': size, **more,
            'seconds': {way: arithmetic.median(each) for way, each in times.items()}}
    cells.append(cell)
    say(f'schedules {dims} {arithmetic.format_size(size)}: ' + ', '.join(
        f'{way} {arithmetic.milliseconds(s)}' for way, s in cell['seconds'].items()))


def _turns(torus, operation, ways, size, turns):
    times = {way: [] for way in ways}
    for turn in range(turns + 1):
        for way, how in ways.items():
            time.sleep(REST)
            said = torus.json(0, operation, '--block-size', str(size), *how, timeout=600)
            if said['verified'] != 'every byte':
                raise TorusError(f'{way}: blocks arrived damaged (verified: {said["verified"]})')
            if turn > 0:  # the first one warms up
                times[way].append(said['seconds'])
    return times
