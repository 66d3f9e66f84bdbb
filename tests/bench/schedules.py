"""Schedules of others compared with `stream`, in turn on one torus: the multi-commodity flow of flow.py, with
whole blocks and with blocks in four segments, streamed and in steps; and the rivals (client/rivals) that take the torus.

A turn is one verified exchange by each schedule; the result is the median of the turns. A pause between
exchanges lets the limiters of the links refill.
"""

import tempfile
import time
from pathlib import Path

from torus_net import CHECKOUT, Geometry, MininetTorus, TorusError

from . import arithmetic
from .network import attempt

TORI = (('3x5', 20.0), ('4x4', 20.0))
SIZES = (1 << 10, 16 << 10, 64 << 10, 256 << 10)
SPLIT = 4
TURNS = 9
REST = 0.15  # seconds
RIVALS = ('python:{}/bruck.py', 'python:{}/traeff.py', 'python:{}/halfring.py', 'suh-shin')  # for exchanges


def run(options, say):
    result = {'cells': [], 'failures': []}
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
            for rival in RIVALS:
                name = rival.format(CHECKOUT / 'client' / 'rivals')
                if torus.ctl(0, 'plan', '--dims', dims, '--algorithm', name).returncode == 0:
                    ways[Path(name).stem] = ('--algorithm', name)
            for size in options.schedules_sizes:
                times = _turns(torus, ways, size, options.schedules_turns)
                cell = {'dims': dims, 'mbit': mbit, 'size': size, 'load': float(least),
                        'bound': arithmetic.bound_seconds(Geometry(dims), size, mbit),
                        'seconds': {way: arithmetic.median(each) for way, each in times.items()}}
                result['cells'].append(cell)
                say(f'schedules {dims} {arithmetic.format_size(size)}: ' + ', '.join(
                    f'{way} {arithmetic.milliseconds(s)}' for way, s in cell['seconds'].items()))


def _turns(torus, ways, size, turns):
    times = {way: [] for way in ways}
    for turn in range(turns + 1):
        for way, how in ways.items():
            time.sleep(REST)
            said = torus.exchange(block_size=size, options=how)
            if said['verified'] != 'every byte':
                raise TorusError(f'{way}: blocks arrived damaged (verified: {said["verified"]})')
            if turn > 0:  # the first one warms up
                times[way].append(said['seconds'])
    return times
