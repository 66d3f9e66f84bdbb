"""The papers' model compared with the links: `torusctl bench --fit` on links like cables and on links with a
burst, the times of single messages over each kind of link, and the capacity of all links together."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

from torus_net import TorusError, interrupts
from torus_net.addresses import link_address

from . import arithmetic, machine

TORI = '4x4@5'
ALGORITHMS = 'at2,pt,a2,a3,cccube,cccube-q2,cccube-q4,pair,pair-s2,pair-s4,dim,dim-s2'
ON_BUCKETS = 'at2,a2,pair-s4,dim'  # enough to show the effect of a burst
SIZES = '256,1KiB,4KiB,16KiB,64KiB,256KiB'
REPEATS = 7        # in each of torusctl's turns
LONGEST = 8.0      # sizes whose lower bound is more seconds than this are left out
RATES = [10.0, 20.0, 50.0]
CAPACITY = '4x4'
TRANSIT_MBIT = 20.0
TRANSIT_SIZES = [64, 256, 1024, 1400, 4096, 16384, 65536, 262144]
SEGMENT, HEADERS = 1448, 66  # bytes of TCP's payload in a full packet, and of all its headers
KINDS = {'bucket': {}, 'one packet': {'burst': '1514'}, 'cable': {'cable': True}}


def run(options, say):
    from . import network  # it needs Mininet
    result = {'tori': [], 'transit': [], 'capacity': [], 'capacity_dims': CAPACITY,
              'rates': options.fit_rates, 'failures': []}

    def attempt(what):
        return network.attempt('fit', what, result['failures'], say)

    for kind, how in KINDS.items():
        with attempt(f'a message, {kind}'):
            result['transit'].append(_transit(network, kind, how, options, say))
    for mbit in options.fit_rates:
        for kind, how in KINDS.items():
            with attempt(f'capacity, {kind}'):
                result['capacity'].append(_capacity(network, kind, how, mbit, options, say))
    for (dims, mbit), cable in [*((torus, True) for torus in options.fit), (options.fit[0], False)]:
        with attempt(dims):
            result['tori'].append(_fit(network, dims, mbit, cable, options, say))
    return result


# --- one message ---

def wire_seconds(size, mbit):
    """The seconds that the bits of a message and of its answer of one byte take."""
    packets = -(-size // SEGMENT)
    return (size + HEADERS * packets + HEADERS + 1) * 8e-6 / mbit


def _transit(network, kind, how, options, say):
    program = [sys.executable, str(Path(__file__).with_name('transit.py'))]
    wanted = options.fit_messages
    sizes = ','.join(map(str, wanted))
    with network.Network('1x2m', TRANSIT_MBIT, bin=options.bin, **how) as net:
        link, = net.geometry.links
        (a, _), (b, b_port) = link.ends
        there = str(link_address(link, b_port))
        with _background(['nsenter', f'--net={net.namespace(b)}', *program, there]):
            said = network.run_program(['nsenter', f'--net={net.namespace(a)}', *program, there, sizes],
                                       '', timeout=120)
    times = json.loads(said)
    row = {'links': kind, 'mbit': TRANSIT_MBIT, 'sizes': wanted, 'load': machine.load(),
           'wire_seconds': [wire_seconds(size, TRANSIT_MBIT) for size in wanted],
           'seconds': [each[len(each) // 2] for each in times],
           'late_seconds': [each[len(each) * 9 // 10] for each in times]}
    say(f'fit: {kind}: ' + ', '.join(
        f'{arithmetic.format_size(size)} {arithmetic.milliseconds(seconds)}'
        for size, seconds in zip(wanted, row['seconds'])) + ' ms')
    return row


@contextlib.contextmanager
def _background(command):
    """Runs a program that prints a line when it is ready, and ends it after the block."""
    with interrupts.held():
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   text=True, start_new_session=True)
    try:
        if process.stdout.readline() != 'ready\n':
            raise TorusError(f'{command[-2]} did not start')
        yield
    finally:
        process.kill()
        process.communicate()


# --- all links ---

def _capacity(network, kind, how, mbit, options, say):
    load = machine.load()
    with network.Network(CAPACITY, mbit, bin=options.bin, **how) as net:
        measured = net.goodput(options.out / 'programs', options.goodput_seconds)
    say(f'fit: {CAPACITY} at {mbit:g} Mbit/s, {kind}: {measured["mean"]:.2f} Mbit/s each, processors '
        f'{measured["busy"]:.0%} busy')
    return {'links': kind, 'mbit': mbit, 'goodput': measured['mean'], 'least': measured['least'],
            'busy': measured['busy'], 'load': load}


# --- the model ---

def _fit(network, dims, mbit, cable, options, say):
    load = machine.load()
    with network.Network(dims, mbit, cable=cable, bin=options.bin, memory=options.memory) as net:
        sizes = [text for text in options.fit_sizes.split(',') if arithmetic.bound_seconds(
            net.geometry, arithmetic.parse_size(text), mbit) <= LONGEST]
        rows = net.torus.json(0, 'algorithms', '--dims', dims)['algorithms']
        taken = {row['algorithm'] for row in rows if row['accepts']}
        wanted = options.algorithms or (ALGORITHMS if cable else ON_BUCKETS).split(',')
        names = [name for name in wanted if name in taken]
        said = net.torus.json(0, 'bench', '--fit', '--repeat', options.fit_repeats, '--sizes',
                              ','.join(sizes), '--algorithms', ','.join(names), timeout=3600)
    for fit in said['fits']:
        say(f'fit: {dims} at {mbit:g} Mbit/s, {"cables" if cable else "buckets"}: {fit["algorithm"]}: '
            f'ts {fit["ts_seconds"] * 1e6:.0f} us, {8e-6 / fit["tw_seconds"]:.2f} Mbit/s, residuals '
            f'{fit["residual_median"]:.1%}, at worst {fit["residual_worst"]:.1%}')
    kept = {key: said[key] for key in ('fits', 'points', 'remarks', 'left_out')}
    return {'dims': dims, 'mbit': mbit, 'cable': cable, 'load': load, 'load_after': machine.load(),
            'repeats': options.fit_repeats, **kept}
