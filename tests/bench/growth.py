"""How cost grows with the torus: the cost of a daemon on tori from 4x4 to 16x16, and predicted times of
exchanges on tori up to 128x128."""

import json
import subprocess
import time

from torus_net import LoopbackTorus, MininetTorus, TorusError, find_program

from . import machine, ours
from .network import attempt

TORI = ('4x4', '8x8', '12x12', '16x16')
MODEL_TORI = ('4x4', '8x8', '16x16', '32x32', '64x64', '128x128')
MODEL_ALGORITHMS = ('at2', 'pt', 'direct', 'stream', 'tree', 'pair', 'dim')
MODEL_SIZES = (64, 1024, 65536)
MODEL = {'ts': 30, 'tw': 0.008, 'rho': 0}  # about Ethernet of 1 Gbit/s
BLOCK = 1024


def run(options, say):
    result = {'tori': [], 'model': None, 'failures': []}
    for kind in (LoopbackTorus, MininetTorus):
        for dims in options.growth_tori:
            with attempt('growth', f'{dims} ({kind.kind})', result['failures'], say):
                row = _life(kind, dims, options)
                result['tori'].append(row)
                say(f'growth: {dims} ({kind.kind}): up in {row["up_seconds"]:.1f} s, exchange of '
                    f'1 KiB blocks {row["exchange_seconds"]:.3f} s, verified, down in '
                    f'{row["down_seconds"]:.1f} s')
    with attempt('growth', 'model', result['failures'], say):
        result['model'] = model(find_program('torusctl', options.bin))
    return result


def _life(kind, dims, options):
    """Starts a torus, runs two exchanges, and stops it. Returns the costs."""
    limits = {'bw': options.growth_mbit} if kind is MininetTorus else {}
    torus = kind(dims, bin=options.bin, memory=options.memory, **limits)
    cpu, begin = machine.Times(), time.monotonic()
    torus.start()
    try:
        row = {'dims': dims, 'network': kind.kind, 'nodes': torus.geometry.nodes, 'block': BLOCK,
               'mbit': options.growth_mbit if limits else None,
               'up_seconds': time.monotonic() - begin,
               'up_cpu_seconds': machine.Usage(cpu, machine.Times()).busy,
               'daemon_up_cpu_seconds': machine.daemon_seconds(torus) / torus.geometry.nodes,
               'memory_idle': _memory(torus)}
        first = torus.exchange(None, BLOCK, timeout=300)
        process_seconds, cpu = machine.daemon_seconds(torus), machine.Times()
        begin = time.monotonic()
        second = torus.exchange(None, BLOCK, timeout=300)
        row.update(call_seconds=time.monotonic() - begin,
                   cpu_seconds=machine.Usage(cpu, machine.Times()).busy / torus.geometry.nodes,
                   process_seconds=(machine.daemon_seconds(torus) - process_seconds) / torus.geometry.nodes,
                   first_seconds=first['seconds'], exchange_seconds=second['seconds'],
                   bound_seconds=second['bound_seconds'], verified=second['verified'],
                   memory=_memory(torus), **ours.messages(second))
        if 'nothing' in (first['verified'], second['verified']):
            raise TorusError('blocks arrived damaged')
    finally:
        begin = time.monotonic()
        problems = torus.stop()
    if problems:
        raise TorusError('; '.join(problems[:3]))
    row['down_seconds'] = time.monotonic() - begin
    return row


def _memory(torus):
    """The daemons' own memory: mean and most, in bytes."""
    each = [memory['RssAnon'] + memory['RssShmem']
            for memory in (node.memory() for node in torus.nodes)]
    return {'mean': sum(each) / len(each), 'most': max(each)}


# --- the model ---

def model(torusctl):
    """Times predicted by `torusctl predict`."""
    rows = []
    every = _ask(torusctl, 'algorithms', '--dims', '4x4')['algorithms']
    known = {row['algorithm'] for row in every}
    for dims in MODEL_TORI:
        for algorithm in (name for name in MODEL_ALGORITHMS if name in known):
            try:
                said = _ask(torusctl, 'predict', '--dims', dims, '--algorithm', algorithm,
                            '--block-size', ','.join(map(str, MODEL_SIZES)),
                            *(word for name, value in MODEL.items()
                              for word in (f'--{name}', value)))
            except TorusError:
                continue  # this algorithm does not take this torus, or has no formula for it
            rows += _model_rows(dims, algorithm, said)
    return {'parameters': MODEL, 'sizes': MODEL_SIZES, 'rows': rows}


def _model_rows(dims, algorithm, said):
    counts = {row['algorithm']: row for row in said['algorithms']}.get(algorithm)
    for row in said['times']:
        if row['algorithm'] == algorithm and counts is not None:
            yield {'dims': dims, 'nodes': said['node_count'], 'algorithm': algorithm,
                   'size': row['block_size'], 'startups': counts['startups'],
                   'transmission': counts['transmission'], 'from': row['from'],
                   'seconds': row['time_us'] * 1e-6, 'start_seconds': row['startup_us'] * 1e-6,
                   'transmit_seconds': row['transmission_us'] * 1e-6}


def _ask(torusctl, *words):
    done = subprocess.run([torusctl, '--json', *map(str, words)], capture_output=True, text=True,
                          check=False, timeout=120)
    if done.returncode:
        raise TorusError(done.stderr.strip())
    return json.loads(done.stdout)
