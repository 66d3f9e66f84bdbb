#!/usr/bin/python3
"""Makes schedules with a solver: a multi-commodity flow with the least load on the busiest channel.

A complete exchange is N commodities, one for each source: N-1 blocks leave it, and every other node
keeps one. A linear program finds the least load of the busiest channel, and then, among the flows with that
load, one with the fewest hops, so that nothing goes in circles. Blocks are split into the fewest equal
segments (at least --segments) for which an integer program finds such a flow in whole segments. The flow of
each source is then split into one path for each segment of each block. This is the method of
Basu et al., Efficient all-to-all collective communication schedules for direct-connect topologies
(2023), without its bound on the number of steps.

The only part of torusd that it knows is the format of schedules. It needs python3-scipy.

    tests/bench/flow.py 3x5 > flow-3x5.json
    torusctl plan --import flow-3x5.json
    torusctl exchange --schedule flow-3x5.json --block-size 64KiB
"""

import argparse
import itertools
import json
import math
import sys
from fractions import Fraction

import numpy
from scipy.optimize import LinearConstraint, Bounds, linprog, milp
from scipy.sparse import coo_matrix

SEGMENTS_MOST = 8
SECONDS = 60  # seconds for the integer program with one number of segments


class Torus:
    def __init__(self, dims, without='', rates=''):
        """`without`: links and nodes that are down, such as '3:+0,7'; `rates`: directions of links that are slower
        than the others, such as '6:-1=0.4,*:+0=0.5' (the latter: of all nodes)."""
        self.dims = dims
        self.sizes, self.wraps = [], []
        for part in dims.split('x'):
            self.wraps.append(not part.endswith('m'))
            self.sizes.append(int(part.rstrip('m')))
        self.nodes = math.prod(self.sizes)
        at = list(itertools.product(*map(range, self.sizes)))  # by rank: the last dimension fastest
        rank = {place: number for number, place in enumerate(at)}
        # (from, to, dimension, direction) of every channel
        self.channels = []
        for node, place in enumerate(at):
            for dim, (size, wraps) in enumerate(zip(self.sizes, self.wraps)):
                for direction in (1, -1):
                    there = place[dim] + direction
                    if size < 2 or (not wraps and not 0 <= there < size):
                        continue
                    end = place[:dim] + (there % size,) + place[dim + 1:]
                    self.channels.append((node, rank[end], dim, direction))
        self._take_out(without.split(',') if without else [])
        self.rates = [1.0] * len(self.channels)
        for part in rates.split(',') if rates else []:
            name, rate = part.split('=')
            for i, (node, _, dim, direction) in enumerate(self.channels):
                port = f'{"+" if direction > 0 else "-"}{dim}'
                if name in (f'{node}:{port}', f'*:{port}'):
                    self.rates[i] = float(rate)

    def _take_out(self, names):
        self.gone = {int(name) for name in names if ':' not in name}
        dead = set()
        for name in names:
            if ':' in name:
                node, port = name.split(':')
                dead.add((int(node), int(port[1:]), 1 if port[0] == '+' else -1))
        for node, end, dim, direction in self.channels:  # the other direction of the same links
            if (node, dim, direction) in dead:
                dead.add((end, dim, -direction))
        self.channels = [c for c in self.channels
                         if (c[0], *c[2:]) not in dead and not self.gone & {c[0], c[1]}]


class Flow:
    """The linear and integer programs. Variables: the blocks of source s on channel c, and the largest load."""

    def __init__(self, torus):
        self.torus = torus
        n, m = torus.nodes, len(torus.channels)
        self.variables = n * m + 1
        entries, needed = [], []
        for source in range(n):
            for channel, (start, end, _, _) in enumerate(torus.channels):
                for node, sign in ((end, 1), (start, -1)):
                    if node != source:  # blocks that enter a node and do not leave it stay there
                        entries.append((source * n + node, source * m + channel, sign))
            needed += [int(node != source and not torus.gone & {node, source})
                       for node in range(n)]
        self.stays, self.needed = self._matrix(entries, n * n), numpy.array(needed)
        entries = [(channel, source * m + channel, 1) for source in range(n) for channel in range(m)]
        entries += [(channel, n * m, -rate) for channel, rate in enumerate(torus.rates)]
        self.loads = self._matrix(entries, m)
        self.hops = numpy.append(numpy.ones(n * m), 0)
        self.largest = numpy.append(numpy.zeros(n * m), 1)

    def _matrix(self, entries, rows):
        row, column, value = zip(*entries) if entries else ((), (), ())
        return coo_matrix((value, (row, column)), shape=(rows, self.variables)).tocsr()

    def least_load(self):
        """The least number of blocks on the busiest channel, divided by its rate; None if the torus is in parts."""
        solved = linprog(self.largest, A_ub=self.loads, b_ub=numpy.zeros(self.loads.shape[0]),
                         A_eq=self.stays, b_eq=self.needed, method='highs')
        if solved.status == 2:
            return None
        if solved.status != 0:
            raise SystemExit(f'flow: the linear program has not been solved: {solved.message}')
        return Fraction(solved.fun).limit_denominator(1000)

    def whole(self, segments, load):
        """The flow in whole segments, [source][channel], with at most that many on any channel and
        the fewest hops; None if there is none or it was not found in time."""
        upper = numpy.full(self.variables, segments * self.torus.nodes, dtype=float)
        upper[-1] = load
        solved = milp(self.hops, integrality=numpy.ones(self.variables), bounds=Bounds(0, upper),
                      constraints=[LinearConstraint(self.stays, segments * self.needed,
                                                    segments * self.needed),
                                   LinearConstraint(self.loads, -numpy.inf, 0)],
                      options={'time_limit': SECONDS, 'mip_rel_gap': 0.02})
        if solved.x is None:
            return None
        return numpy.rint(solved.x[:-1]).astype(int).reshape(self.torus.nodes, -1)


def paths(torus, source, flow, segments):
    """{destination: [path of each segment]} of one source's flow, each path a list of channels."""
    left = list(flow)
    leaving = [[] for _ in range(torus.nodes)]
    for channel, (start, _, _, _) in enumerate(torus.channels):
        leaving[start].append(channel)
    kept = {node: 0 if node == source else segments for node in range(torus.nodes)}
    found = {node: [] for node in range(torus.nodes) if node != source}
    while any(kept.values()):
        # Breadth first: the nearest node that still waits for a segment.
        before, order = {source: None}, [source]
        for node in order:
            if kept[node] > 0:
                break
            for channel in leaving[node]:
                end = torus.channels[channel][1]
                if left[channel] > 0 and end not in before:
                    before[end] = channel
                    order.append(end)
        else:
            raise AssertionError('flow: the flow has a path that ends at no node')
        kept[node] -= 1
        path, at = [], node
        while before[at] is not None:
            path.append(before[at])
            left[before[at]] -= 1
            at = torus.channels[before[at]][0]
        found[node].append(path[::-1])
    return found


def solve(torus, least_segments=1):
    """(segments, least load, flow)"""
    if torus.nodes == 1:
        return least_segments, Fraction(0), numpy.zeros((1, 0), dtype=int)
    flow = Flow(torus)
    least = flow.least_load()
    for segments in range(least_segments, least_segments + SEGMENTS_MOST):
        load = least * segments
        if load.denominator == 1:
            whole = flow.whole(segments, int(load))
            if whole is not None:
                return segments, least, whole
    raise SystemExit(f'flow: no flow in {least_segments} to {least_segments + SEGMENTS_MOST - 1} '
                     'whole segments found')


def schedule(torus, segments, flow, name):
    """The lines of a schedule in which hop h of a path is in step h."""
    yield {'schedule': 1, 'dims': torus.dims, 'name': name, 'mode': 'streaming',
           'segments': segments}
    for source in range(torus.nodes):
        for destination, found in sorted(paths(torus, source, flow[source], segments).items()):
            for segment, path in enumerate(found):
                legs = [[step, *torus.channels[channel][2:], 1] for step, channel in enumerate(path)]
                yield {'src': source, 'dst': destination, 'segment': segment, 'legs': legs}


def make(dims, least_segments=1):
    """The text of the schedule for a torus, and the least load in blocks."""
    torus = Torus(dims)
    segments, least, flow = solve(torus, least_segments)
    lines = schedule(torus, segments, flow, f'flow-{dims}'[:20])
    return ''.join(json.dumps(line, separators=(',', ':')) + '\n' for line in lines), least


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('dims', metavar='DIMS', help='the torus or mesh, e.g. 4x4, 3x5, 4x4m')
    parser.add_argument('--segments', metavar='S', type=int, default=1,
                        help='split blocks into at least so many segments (1)')
    options = parser.parse_args()
    if options.segments < 1:
        parser.error('--segments must be at least 1')
    text, least = make(options.dims, options.segments)
    print(f'flow: {least} blocks on the busiest channel', file=sys.stderr)
    sys.stdout.write(text)


if __name__ == '__main__':
    main()
