#!/usr/bin/python3
"""Compares routes of damaged tori (torusctl plan --without) with the least possible load.

The linear program of flow.py finds the least load on the remaining channels. Damages are random: links
and nodes, also several, on tori and meshes of one to four dimensions. If the torus is in parts, both
torusctl and the linear program must report that.

    tests/bench/damaged.py                      # the damages of the project's goals, and processor times
    tests/bench/damaged.py --random 300 --seed 7
    tests/bench/damaged.py --table > tests/contract/damaged_loads.h

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


def plan(dims, without):
    """torusctl's plan (None if the torus is in parts), and the seconds of processor time."""
    program = pathlib.Path(os.environ.get('TORUS_BIN', 'build')) / 'torusctl'
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([program, 'plan', '--dims', dims, '--without', without, '--json'],
                          capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode == 0:
        return json.loads(done.stdout), seconds
    if 'in parts' not in done.stderr + done.stdout:
        raise SystemExit(f'damaged: {dims} without {without}: {done.stderr}')
    return None, seconds


def judge(dims, without, solve=True):
    """Prints a row. Returns whether torusctl's plan is good."""
    said, seconds = plan(dims, without)
    least = Flow(Torus(dims, without)).least_load() if solve else None
    if said is None or (solve and least is None):
        good = said is None and least is None
        print(f'{dims:9} {without:30} in parts{"" if good else ", by torusctl or the linear program but not both"}')
        return good
    least = float(least) if solve else said['bound']
    above = said['busiest'] / least
    good = above <= TOLERANCE + 1e-9 and said['bound'] <= least + 1e-3
    print(f'{dims:9} {without:30} load {said["busiest"]:8.3f}  least {least:8.3f}  {above:6.4f}  '
          f'bound {said["bound"]:8.3f}  {1e3 * seconds:6.0f} ms{"" if good else "  MISSED"}')
    return good


def print_table(seed, count):
    generator = random.Random(seed)
    cases = FIGURES + [draw(generator) for _ in range(count)]
    print('/* The least load of the busiest channel of damaged tori, by the linear program of\n'
          ' * tests/bench/flow.py; 0: the torus is in parts. Printed by tests/bench/damaged.py. */\n'
          '#ifndef TORUSD_TESTS_CONTRACT_DAMAGED_LOADS_H\n'
          '#define TORUSD_TESTS_CONTRACT_DAMAGED_LOADS_H\n\n'
          'static const struct {\n    const char *dims, *without;\n    double least;\n'
          '} damaged_loads[] = {')
    for dims, without in cases:
        least = Flow(Torus(dims, without)).least_load()
        print(f'    {{"{dims}", "{without}", {float(least or 0):.6f}}},')
    print('};\n\n#endif')


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--random', metavar='N', type=int, help='judge N random damages')
    parser.add_argument('--seed', metavar='S', type=int, default=1, help='the first seed (default: 1)')
    parser.add_argument('--table', action='store_true', help='print the table of the contract test')
    options = parser.parse_args()
    if options.table:
        print_table(options.seed, options.random or 150)
        return 0
    if options.random:
        generator = random.Random(options.seed)
        good = [judge(*draw(generator)) for _ in range(options.random)]
    else:
        good = [judge(*case) for case in FIGURES] + [judge(*case, solve=False) for case in LARGE]
    print(f'{sum(good)} of {len(good)} plans are good', file=sys.stderr)
    return 0 if all(good) else 1


if __name__ == '__main__':
    sys.exit(main())
