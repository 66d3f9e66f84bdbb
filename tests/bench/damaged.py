#!/usr/bin/python3
"""Compares routes of damaged tori (torusctl plan --without, --rate) with the least possible load.

The linear program of flow.py finds the least load on the remaining channels. Damages are random: links
and nodes, also several, on tori and meshes of one to four dimensions. If the torus is in parts, both
torusctl and the linear program must report that. With --rates, links are slow instead: one, two or eight,
in one direction or both, or a whole dimension.

    tests/bench/damaged.py                      # the damages of the project's goals, and processor times
    tests/bench/damaged.py --random 300 --seed 7
    tests/bench/damaged.py --rates --random 100
    tests/bench/damaged.py --table > tests/contract/damaged_loads.h
    tests/bench/damaged.py --rates --table > tests/contract/rated_loads.h

Exits with 1 if a load is more than 5 % above the least load, or torusctl's lower bound exceeds the least
load. Uses the torusctl in $TORUS_BIN (default: build). Needs python3-scipy.
"""

import argparse
import json
import os
import pathlib
import random
import resource
import subprocess
import sys

from flow import Flow, Torus

FIGURES = [  # one link (of each dimension if the sizes differ), or one node, is down
    ('3x3', '0:+0'), ('4x4', '3:+0'), ('5x5', '0:+1'), ('4x8', '0:+0'), ('4x8', '0:+1'),
    ('6x6', '7:+0'), ('4x4', '7'), ('5x5', '12'), ('4x8', '0'), ('6x6', '35'), ('4x4', '3:+0,7')]
LARGE = [('8x8', '0:+0'), ('8x8', '0:+0,9:+1,20:+0,33'), ('16x16', '0:+0'),
         ('16x16', '0:+0,3:+1,9:+0,20:+1,77:+0,90:+1,200')]
SHAPES = ['3', '5', '8', '7m', '1x6', '2x2', '2x3', '2x4', '2mx4', '2x8', '3x3', '3x4', '7x3',
          '3x5m', '4x4', '4x4m', '4mx4m', '5x5', '5x5m', '5mx6', '6x6', '6mx6m', '4x8', '2x2x2',
          '3x3x3', '2x3x4', '4x4x2m', '3mx3mx3m', '2x2x2x2']
TOLERANCE = 1.05

RATED = [  # slow directions of links, from the project's goals
    ('4x4', '', '6:-1=0.5'), ('4x4', '', '6:-1=0.4'), ('4x4', '', '6:-1=0.1'),
    ('3x3', '', '0:+0=0.1,3:-0=0.1'), ('4', '', '0:+0=0.1,1:-0=0.1'), ('4x4', '', '*:+0=0.5,*:-0=0.5'),
    ('3x3', '', '0:+0=0.1,3:-0=0.1,4:+1=0.1,5:-1=0.1'), ('5x7', '', '*:+1=0.5,*:-1=0.5'),
    ('5x7', '', ','.join(f'{n}:{p}1=0.5' for n in range(7) for p in '+-')),
    ('4x4', '3:+0', '6:-1=0.4'), ('4x4', '7', '6:-1=0.1'), ('3x3', '', '*:+0=0.3'), ('5', '', '*:+0=0.3'),
    ('4x4x4', '', '*:+2=0.25'),]
RATED_LARGE = [  # their linear programs take a quarter of an hour
    ('4x4x4', '', '0:+0=0.1,16:-0=0.1,21:+2=0.37'), ('8x8', '', '*:+0=0.5,*:-0=0.5'),
    ('8x8', '', '9:+1=0.1,27:-0=0.02'), ('8x8', '', '*:+1=0.3')]
RATED_SHAPES = ['2', '3', '4', '5', '6', '7m', '2x2', '2x3', '2mx4', '3x3', '3x4', '7x3', '3x5m', '4x4',
                '4mx4m', '5x5', '5x5m', '6x6', '4x8', '5x7', '2x2x2', '3x3x3', '4x4x2m', '2x2x2x2']
RATES = ['0.02', '0.05', '0.1', '0.2', '0.25', '0.37', '0.4', '0.5', '0.7', '0.9']


def draw(generator):
    """A random torus, and the links and nodes that are down."""
    dims = generator.choice(SHAPES)
    torus = Torus(dims)
    links = [f'{node}:+{dim}' for node, _, dim, direction in torus.channels if direction > 0]
    most = min(len(links), generator.choice([1, 1, 1, 2, 3, 4, 6]))
    names = generator.sample(links, most)
    if torus.nodes > 4 and generator.random() < 0.35:
        names += map(str, generator.sample(range(torus.nodes), generator.choice([1, 1, 2])))
    return dims, ','.join(names)


def draw_rates(generator):
    """A random torus, whether links or nodes are down, and slow directions of links."""
    dims = generator.choice(RATED_SHAPES)
    torus = Torus(dims)
    slow = generator.sample(torus.channels, min(len(torus.channels), generator.choice([1, 1, 2, 2, 8])))
    both, rates = generator.random() < 0.5, {}
    for node, end, dim, direction in slow:
        rate = generator.choice(RATES)
        rates[f'{node}:{"+" if direction > 0 else "-"}{dim}'] = rate
        if both:
            rates[f'{end}:{"-" if direction > 0 else "+"}{dim}'] = rate
    return dims, '', ','.join(f'{name}={rate}' for name, rate in rates.items())


def plan(dims, without, rates=''):
    """torusctl's plan (None if the torus is in parts), and the seconds of processor time."""
    program = pathlib.Path(os.environ.get('TORUS_BIN', 'build')) / 'torusctl'
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    damage = [*(['--without', without] if without else []), *(['--rate', rates] if rates else [])]
    done = subprocess.run([program, 'plan', '--dims', dims, *damage, '--json'],
                          capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode == 0:
        return json.loads(done.stdout), seconds
    if 'in parts' not in done.stderr + done.stdout:
        raise SystemExit(f'damaged: {dims} {" ".join(damage)}: {done.stderr}')
    return None, seconds


def judge(dims, without, rates='', solve=True):
    """Prints a row. Returns whether torusctl's plan is good."""
    said, seconds = plan(dims, without, rates)
    least = Flow(Torus(dims, without, rates)).least_load() if solve else None
    name = ' '.join(part for part in (without, rates) if part)
    if said is None or (solve and least is None):
        good = said is None and least is None
        print(f'{dims:9} {name:30} in parts{"" if good else ", by torusctl or the linear program but not both"}')
        return good
    least = float(least) if solve else said['bound']
    above = said['busiest'] / least
    good = above <= TOLERANCE + 1e-9 and said['bound'] <= least + 1e-3
    print(f'{dims:9} {name:30} load {said["busiest"]:8.3f}  least {least:8.3f}  {above:6.4f}  '
          f'bound {said["bound"]:8.3f}  {1e3 * seconds:6.0f} ms{"" if good else "  MISSED"}')
    return good


def print_table(seed, count, rated):
    generator = random.Random(seed)
    name = 'rated' if rated else 'damaged'
    cases = RATED if rated else [(dims, without, '') for dims, without in FIGURES]
    cases = cases + [draw_rates(generator) if rated else (*draw(generator), '') for _ in range(count)]
    print('/* The least possible load of the busiest channel on damaged tori, computed by the linear program of\n'
          ' * tests/bench/flow.py and printed by tests/bench/damaged.py. 0: the torus is in parts. */\n'
          '#pragma once\n\n'
          f'static const struct {{\n    const char *dims, *without{", *rates" if rated else ""};\n'
          f'    double least;\n}} {name}_loads[] = {{')
    for dims, without, rates in cases:
        least = Flow(Torus(dims, without, rates)).least_load()
        texts = (dims, without, rates) if rated else (dims, without)
        print('    {' + ', '.join(f'"{text}"' for text in texts) + f', {float(least or 0):.6f}}},', flush=True)
    print('};')


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--random', metavar='N', type=int, help='judge N random damages')
    parser.add_argument('--seed', metavar='S', type=int, default=1, help='the first seed (default: 1)')
    parser.add_argument('--table', action='store_true', help='print the table of the contract test')
    parser.add_argument('--rates', action='store_true', help='links that are slow instead of down')
    options = parser.parse_args()
    if options.table:
        print_table(options.seed, options.random or 150, options.rates)
        return 0
    if options.random:
        generator = random.Random(options.seed)
        drawn = draw_rates if options.rates else draw
        good = [judge(*drawn(generator)) for _ in range(options.random)]
    elif options.rates:
        good = [judge(*case) for case in RATED] + [judge(*case, solve=False) for case in RATED_LARGE]
    else:
        good = [judge(*case) for case in FIGURES] + [judge(*case, solve=False) for case in LARGE]
    print(f'{sum(good)} of {len(good)} plans are good', file=sys.stderr)
    return 0 if all(good) else 1


if __name__ == '__main__':
    sys.exit(main())
