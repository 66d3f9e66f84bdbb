#!/usr/bin/python3
"""Compares torusctl simulate with SimGrid, which simulates the same messages as flows.

    tests/bench/in_simgrid.py > tests/bench/results/simgrid.md

SimGrid shares a channel equally among the messages that cross it at a time; torusctl simulate sends one after another,
and a message whose head waits keeps what it has. So the times are equal where no message waits for another one, and
similar elsewhere. A message with a startup takes a turn at its first channel, or at its sender's one port, in SimGrid,
too; there it keeps the turn until it has arrived, also while it shares a channel or the port of its receiver, which is a
link of its own. So SimGrid takes longer if messages meet after their first hop, or at a receiver. A head's time at each
hop is a latency in SimGrid and keeps no channel, so SimGrid is faster where many short messages follow each other. A
message of several hops is a flow over all of them, or with store-and-forward a flow for each hop, after the one before.

Exits with 1 if equal times differ by more than a millionth, or similar ones by more than the table below allows. Uses the
torusctl in $TORUS_BIN (default: build). Needs libsimgrid-dev and g++.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from support.simulated import Torus, stepped, streaming  # noqa: E402

TORUSCTL = Path(os.environ.get('TORUS_BIN', HERE.parents[1] / 'build')) / 'torusctl'
# Flows get what their links have, and links what they are given: no windows, no acknowledgements.
MODEL = ('--cfg=network/model:CM02', '--cfg=network/TCP-gamma:0', '--cfg=network/crosstraffic:0',
         '--cfg=network/weight-S:0', '--log=root.thres:warning')
BYTE, BLOCK = 0.01, 1000  # microseconds; bytes
EQUAL = 1e-6
# dims, algorithm, options; the most by which SimGrid's time differs from torusctl's, as a part of it, if messages wait
CASES = (
    ('8', 'ar', {'ts': 75, 'tp': 1}, EQUAL),
    ('4x4', 'pair', {'ts': 10}, EQUAL),
    ('8x8', 'squares', {'ts': 10, 'tp': 1, 'ports': 1}, EQUAL),
    ('4x4x4', 'mt', {'ts': 10, 'ports': 1}, EQUAL),
    ('8x8', 'a2', {'ts': 10, 'ports': 1}, EQUAL),
    ('8x8', 'a3', {'ts': 10}, EQUAL),
    ('4x4', 'cccube-q4', {'ts': 10}, EQUAL),
    ('5x5', 'balanced', {'ts': 10, 'tp': 1}, EQUAL),
    ('5x5', 'saadschultz', {'ts': 10, 'switching': 'store'}, EQUAL),
    ('4x4', 'stream', {'mode': 'streaming', 'switching': 'store'}, EQUAL),
    ('5x5', 'stream', {'mode': 'streaming', 'switching': 'cut-through'}, EQUAL),
    ('4x4', 'direct', {'mode': 'streaming', 'switching': 'cut-through', 'tp': 1}, 0.3),
    ('8x8', 'at2', {'ts': 75}, 0.1),
    ('8x8', 'at2', {'ts': 75, 'tp': 1}, 0.2),
    ('4x4', 'atape', {'ts': 10}, 0.2),
    ('4x4', 'a1', {'ts': 10, 'ports': 1}, 0.4),
)
ALLGATHERS = 'balanced', 'saadschultz'


def torusctl(*words):
    return subprocess.run([TORUSCTL, *map(str, words)], check=True, stdout=subprocess.PIPE, text=True).stdout


def messages_of(torus, dims, algorithm, options):
    lines = map(json.loads, torusctl('plan', '--dims', dims, '--algorithm', algorithm, '--routes').splitlines())
    routes = [(route['src'], route['dst'], route['segment'], route['legs']) for route in lines]
    segments = 1 + max(segment for _, _, segment, _ in routes)
    if options.get('mode') == 'streaming':
        return streaming(torus, routes, options.get('ts', 0)), segments
    return stepped(torus, routes, options.get('ts', 0), algorithm in ALLGATHERS), segments


def flows_of(messages, store):
    """[(message, its hops, the flows that it needs)]: with store-and-forward a flow for each hop."""
    flows, last = [], {}
    for message in sorted(messages, key=lambda m: (m.step, m.order)):
        needs = [last[id(need)] for need in message.needs]
        for hops in [[hop] for hop in message.path] if store else [message.path]:
            flows.append((message, hops, needs))
            needs = [len(flows) - 1]
        last[id(message)] = len(flows) - 1
    return flows


def written(flows, segments, options):
    channels, turns, lines = {}, {}, []

    def channel(key, latency):
        return channels.setdefault(key, (len(channels), latency))[0]

    for message, hops, needs in flows:
        path = [channel(hop, options.get('tp', 0)) for hop in hops]
        if 'ports' in options:
            path.append(channel(('receives', hops[-1][3]), 0))
        sender = hops[0][0] if 'ports' in options else hops[0]
        turn = turns.setdefault(sender, len(turns)) if message.startup else -1
        first = hops[0] == message.path[0]
        bytes_ = message.units * BLOCK // segments
        startup = (message.startup or message.earliest) * first * 1e-6
        lines.append(' '.join(map(str, (bytes_, startup, turn, len(path), *path, len(needs), *needs))))
    head = [f'{BYTE * 1e-6} {latency * 1e-6}' for _, latency in channels.values()]
    return '\n'.join([f'turns {len(turns)}', f'channels {len(channels)}', *head, f'messages {len(flows)}', *lines]) + '\n'


def compare(program, dims, algorithm, options):
    """(torusctl's answer, SimGrid's microseconds)"""
    words = [word for name, value in options.items() for word in (f'--{name}', value)]
    ours = json.loads(torusctl('--json', 'simulate', '--dims', dims, '--algorithm', algorithm, '--tw', BYTE,
                               '--block-size', BLOCK, '--queue', 'fifo', *words))
    torus = Torus(dims)
    messages, segments = messages_of(torus, dims, algorithm, options)
    flows = flows_of(messages, ours['switching'] == 'store')
    theirs = subprocess.run([program, *MODEL], input=written(flows, segments, options), check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    return ours, float(theirs) * 1e6


def main():
    print('# torusctl simulate and SimGrid\n\nWritten by `tests/bench/in_simgrid.py`, whose head says how the models '
          'differ. A block has 1000 bytes, at 10 ns each.\n\n'
          '| torus | algorithm | options | messages | waits | torusctl, us | SimGrid, us | ratio |\n'
          '|---|---|---|---:|---:|---:|---:|---:|')
    good = True
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / 'messages'
        subprocess.run(['g++', '-O1', '-std=c++17', HERE / 'simgrid_messages.cpp', '-lsimgrid', '-o', program],
                       check=True)
        for dims, algorithm, options, allowed in CASES:
            ours, theirs = compare(program, dims, algorithm, options)
            ratio = theirs / ours['time_us']
            good = good and abs(ratio - 1) <= (allowed if ours['waited'] > 0 else EQUAL)
            print(f'| {dims} | {algorithm} | {", ".join(f"{name} {value}" for name, value in options.items())} | '
                  f'{ours["messages"]} | {ours["waited"]} | {ours["time_us"]:.2f} | {theirs:.2f} | {ratio:.4f} |',
                  flush=True)
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
