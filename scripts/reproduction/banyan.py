"""Yang, Wang: All-to-All Communication, its part on all-to-all personalized exchange (ATAPE)."""

from dataclasses import dataclass
from math import log2
from typing import Callable

from . import unique_path, walk
from .document import Failed, Paper, Table, parts, remarks

PRINTED = [  # the Latin square of the second construction's example, n = 8
    '0 4 2 6 1 5 3 7', '1 5 3 7 0 4 2 6', '3 7 1 5 2 6 0 4', '2 6 0 4 3 7 1 5',
    '6 2 4 0 7 3 5 1', '7 3 5 1 6 2 4 0', '5 1 7 3 4 0 6 2', '4 0 6 2 5 1 7 3']


def paper(torusctl):
    return Paper(
        name='banyan',
        title='All-to-all personalized exchange: ATAPE on banyan networks',
        citation='Yang Y., Wang J.: All-to-All Communication, part 2: all-to-all personalized '
                 'exchange in multistage interconnection networks.',
        parts=parts(torusctl, (links, latin_square, constructions, settings, conflicts,
                               unique_path.others, networks)),
        remarks=remarks(torusctl, (
            on_tori,
            'The printed example of the second construction begins with the list 0 4 2 6 1 5 3 7. That '
            'is not the square of the paper\'s 8×8 network: with nothing crossed τ passes '
            '0 2 4 6 1 3 5 7, by the definition of τ_i. (The square printed for the network is '
            'missing in the copy of the paper that this project has.)',
            'The table of networks has the orders of growth of algorithms that it does not name. Here a '
            'schedule stands for each, at two sizes; that its delay grows by the paper\'s order from '
            'one to the other is what can be compared.',
        )))


def on_tori(torusctl):
    plan = torusctl.plan('4x4', 'atape')
    return ('A banyan network is switches, not a torus: torusctl simulate runs it, and it is followed '
            'here line by line, independently. On a torus torusd runs the Latin square as an order for '
            'the direct exchange (atape): in step i node j sends its block for node a(i,j), straight '
            'to it. There rows are not free of contention: on 4×4 messages share channels in '
            f'{plan["contended_steps"]} of {plan["startups"]} steps.')


# ---- The network: m stages of switches, each with lines 2i and 2i+1 ------------------------------

def interstage(stage, line):
    """τ_i: bit 0 changes places with bit i+1."""
    low, high = line & 1, line >> (stage + 1) & 1
    return line & ~(1 | 1 << (stage + 1)) | high | low << (stage + 1)


def lines(m, crossed, source):
    """The lines that a message from an input takes behind each stage; the last one is the output. `crossed` has
    for each stage whether all of its switches cross."""
    line, way = source, []
    for stage in range(m):
        line ^= crossed[stage]  # σ_i is φ_1 or I
        way.append(line)
        if stage + 1 < m:
            line = interstage(stage, line)
    return way


def permutation(m, crossed):
    return [lines(m, crossed, source)[-1] for source in range(1 << m)]


def self_routed(m, source, output):
    """The lines of a message if every switch sends it up or down according to a bit of its destination."""
    line, way = source, []
    for stage in range(m):
        line = line & ~1 | output >> ((stage + 1) % m) & 1
        way.append(line)
        if stage + 1 < m:
            line = interstage(stage, line)
    return way


def links(torusctl):
    del torusctl
    table = Table('banyan-links', 'The links between the stages of the 8×8 banyan network',
                  ('behind stage', *(f'line {line}' for line in range(8))), (),
                  'τ_i swaps bit 0 for bit i+1 of a line\'s number.')
    for stage in range(2):
        table.add(stage, *(interstage(stage, line) for line in range(8)))
    return table


def numbers(row):
    return ' '.join(map(str, row))


# ---- Latin squares -------------------------------------------------------------------------------

def phi(k, number):
    """Flips bit k-1."""
    return number ^ 1 << (k - 1)


def by_products(m, first):
    """The first construction: the list itself, and under each product of basic permutations; row i
    under the φ_k whose bits k-1 are set in i. The paper leaves the order of the rows open."""
    rows = [list(first)]
    for chosen in range(1, 1 << m):
        row = first
        for k in range(1, m + 1):
            if chosen >> (k - 1) & 1:
                row = [phi(k, number) for number in row]
        rows.append(list(row))
    return rows


def basic_list(k):
    """BuildBasicList: φ_1 .. φ_k in the order of a Gray code."""
    return [1] if k == 1 else basic_list(k - 1) + [k] + basic_list(k - 1)


def by_iteration(m, first):
    """The second construction: each row is the one above under the next permutation of the list."""
    rows = [list(first)]
    for k in basic_list(m):
        rows.append([phi(k, number) for number in rows[-1]])
    return rows


def tau(m):
    """τ(0), τ(1) ...: the first row of the square for the network, nothing crossed."""
    return permutation(m, [0] * m)


def run_order(torusctl, dims):
    """The square of torusctl's atape: row i has, for each source, the destination of the block that leaves in
    step i, or the source's own number if none leaves."""
    nodes = walk.Torus.count(dims)
    rows = [list(range(nodes)) for _ in range(nodes)]
    for source, destination, _, legs in torusctl.routes(dims, 'atape'):
        rows[legs[0][0]][source] = destination
    return rows


def latin_square(torusctl):
    del torusctl
    table = Table('latin-square', 'The example of an 8×8 Latin square, by both constructions',
                  ('row', 'Gray code', 'product'), ('second construction', 'first construction'),
                  'Paper: as printed for the second one; both are equivalent. Here: the algorithm '
                  'LatinSquare, begun with the list of row 0; and that list under the product of '
                  'basic permutations whose numbers the row\'s Gray code has.')
    start = [int(number) for number in PRINTED[0].split()]
    first, second, codes = by_products(3, start), by_iteration(3, start), by_iteration(3, [0])
    for i, printed in enumerate(PRINTED):
        code = codes[i][0]
        factors = [f'φ{"₁₂₃"[k]}' for k in reversed(range(3)) if code >> k & 1]
        with table.row(i, f'{code:03b}', ''.join(factors) or 'I', paper=(printed,) * 2) as row:
            row.here = numbers(second[i]), numbers(first[code])
    return table


def is_latin(rows):
    every = list(range(len(rows)))
    return (all(sorted(row) == every for row in rows)
            and all(sorted(column) == every for column in zip(*rows)))


TORI = {2: '2', 4: '2x2', 8: '8', 16: '4x4', 32: '4x8', 64: '8x8', 128: '8x16'}


def constructions(torusctl):
    table = Table('latin-constructions', 'Two methods for constructing a Latin square',
                  ('n', 'atape on'),
                  ('first is one', 'second is one', 'the same rows', 'atape sends by it'),
                  'Whether each construction gives a Latin square, whether both have the same rows, '
                  'and whether torusctl\'s atape has them in the order of the second one.')
    for n, dims in TORI.items():
        m = int(log2(n))
        with table.row(n, dims, paper=(True,) * 4) as row:
            first, second = by_products(m, tau(m)), by_iteration(m, tau(m))
            row.here = (is_latin(first), is_latin(second), sorted(first) == sorted(second),
                        run_order(torusctl, dims) == second)
    return table


# ---- Running ATAPE -------------------------------------------------------------------------------

def crossings(m, wanted):
    """Which stages cross for this permutation; every stage crosses everywhere or nowhere."""
    for setting in range(1 << m):
        crossed = [setting >> stage & 1 for stage in range(m)]
        if permutation(m, crossed) == wanted:
            return crossed
    raise Failed(f'no setting of the stages passes {numbers(wanted)}')


def settings(torusctl):
    table = Table('banyan-settings', 'All switch settings of the 8×8 banyan network, and its Latin '
                  'square', ('row', 'stage 0', 'stage 1', 'stage 2'), ('permutation',),
                  'All switches of a stage are straight (=) or cross (×). Paper: the rows of '
                  'LatinSquare({τ(0), τ(1) …}). Here: where the network passes inputs 0 1 2 … with '
                  'these settings, found by trying all eight. torusctl simulate must have the same; '
                  'messages that route themselves by the bits of their destination must take the '
                  'same lines; and torusctl\'s atape must send in this order on a ring of 8 nodes.')
    for i, wanted in enumerate(by_iteration(3, tau(3))):
        with table.row(i, '-', '-', '-', paper=(numbers(wanted),)) as row:
            crossed = crossings(3, wanted)
            row.labels = (i, *('×' if cross else '=' for cross in crossed))
            for source, output in enumerate(wanted):
                if self_routed(3, source, output) != lines(3, crossed, source):
                    raise Failed(f'row {i}: the message from {source} takes other lines when it routes itself')
            sent = run_order(torusctl, '8')[i]
            run = torusctl.simulate('--banyan', 8, '--rows')['rows'][i]
            if sent != wanted or run['outputs'] != wanted:
                raise Failed(f'atape sends in the order {numbers(sent)}, torusctl simulate in '
                             f'{numbers(run["outputs"])}')
            if run['settings'] != ''.join('=x'[cross] for cross in crossed):
                raise Failed(f'torusctl simulate sets the stages to {run["settings"]}')
            row.here = (numbers(permutation(3, crossed)),)
    return table


def conflicts(torusctl):
    table = Table('banyan-conflicts', 'ATAPE on an n×n banyan network', ('n', 'stages'),
                  ('steps', 'conflicts', 'delivered'),
                  'Row i of the square enters in step i, and is a stage farther in every step; '
                  'messages route themselves. Paper: n + log n − 1 steps, the form of its '
                  'O(n + log n) in which nothing waits (its lower bound is Ω(n + log n)), no '
                  'conflict, n² messages, one from each input for each output. Here: every message '
                  'followed from line to line, where a conflict is two on one line in one step; '
                  'torusctl simulate must come to the same.')
    for m in range(1, 8):
        n = 1 << m
        with table.row(n, m, paper=(n + m - 1, 0, n * n)) as row:
            row.here = passed(m)
            run = torusctl.simulate('--banyan', n)
            said = run['steps'], run['conflicts'], run['delivered']
            if said != row.here:
                raise Failed(f'torusctl simulate says {said}, not {row.here}')
    return table


def passed(m):
    """(steps, conflicts, messages that have come to their outputs) of ATAPE."""
    taken, clashes, done, last = set(), 0, set(), 0
    for i, outputs in enumerate(by_iteration(m, tau(m))):
        last = i + m
        for source, output in enumerate(outputs):
            way = self_routed(m, source, output)
            for stage, line in enumerate(way):
                clashes += (i + stage, stage, line) in taken
                taken.add((i + stage, stage, line))
            done |= {(source, way[-1])} if way[-1] == output else set()
    return last, clashes, len(done)


# ---- Networks ------------------------------------------------------------------------------------

@dataclass
class Kind:
    """A row of the paper's table. Its orders are functions of the number of nodes."""
    name: str
    sizes: tuple  # two tori or meshes of this kind
    algorithm: str
    degree: Callable
    diameter: Callable
    delay: Callable


def cubes(*dimensions):
    return tuple('x'.join(['2m'] * d) for d in dimensions)


KINDS = [
    Kind('hypercube, 1-port', cubes(4, 8), 'a2', log2, log2, lambda n: n * log2(n)),
    Kind('hypercube, all-port', cubes(4, 8), 'stream', log2, log2, lambda n: n),
    Kind('2D torus', ('8x8', '16x16'), 'stream', lambda n: 4, lambda n: n ** (1 / 2),
         lambda n: n ** (3 / 2)),
    Kind('2D mesh', ('8mx8m', '16mx16m'), 'stream', lambda n: 4, lambda n: n ** (1 / 2),
         lambda n: n ** (3 / 2)),
    Kind('3D torus', ('4x4x4', '8x8x8'), 'stream', lambda n: 6, lambda n: n ** (1 / 3),
         lambda n: n ** (4 / 3)),
    Kind('3D mesh', ('4mx4mx4m', '6mx6mx6m'), 'stream', lambda n: 6, lambda n: n ** (1 / 3),
         lambda n: n ** (4 / 3)),
]
STEADY = 1.15  # the most by which a ratio to the order may rise from the smaller size to the larger one


def networks(torusctl):
    table = Table('banyan-networks', '"Time complexity and comparisons" of networks',
                  ('network', 'nodes', 'by', 'diameter or stages', 'delay (blocks)'),
                  ('node degree', 'diameter has its order', 'delay has its order'),
                  'Node degree: of the larger network; where it is log n, by its n. Has its order: divided '
                  'by the paper\'s order (diameter: log n in hypercubes and banyan networks, √n in two '
                  f'dimensions, ∛n in three; delay: n log n, n, n^(3/2), n^(4/3), n), it rises by less '
                  f'than {STEADY - 1:.0%} from one size to the other. Delays: of schedules that '
                  'torusctl enumerates (a2) or runs segment by segment (stream); of the banyan '
                  'network, as in the table above.')
    for kind in KINDS:
        nodes = [walk.Torus.count(dims) for dims in kind.sizes]
        with table.row(kind.name, either(nodes), kind.algorithm, '-', '-',
                       paper=(kind.degree(nodes[1]), True, True)) as row:
            torus = walk.Torus(kind.sizes[1])
            diameters = [len(walk.circles(dims, 0)) - 1 for dims in kind.sizes]  # 0: a mesh's corner
            delays = [delay(torusctl, dims, kind.algorithm) for dims in kind.sizes]
            row.labels = (*row.labels[:3], either(diameters), either(delays))
            row.here = (max(map(torus.ports, range(torus.nodes))),
                        steady(nodes, diameters, kind.diameter), steady(nodes, delays, kind.delay))
    with table.row('banyan', '8, 64', 'ATAPE', '-', '-', paper=(1, True, True)) as row:
        delays = [passed(m)[0] for m in (3, 6)]
        row.labels = (*row.labels[:3], '3, 6', either(delays))
        row.here = 1, steady((8, 64), (3, 6), log2), steady((8, 64), delays, lambda n: n)
    return table


def delay(torusctl, dims, algorithm):
    """The delay in blocks; for stream, which has no steps, the time in blocks."""
    if algorithm == 'stream':
        return torusctl.simulate('--dims', dims)['block_times']
    return torusctl.plan(dims, algorithm)['transmission']


def either(values):
    return f'{values[0]:g}, {values[1]:g}'


def steady(nodes, values, order):
    small, large = (value / order(n) for value, n in zip(values, nodes))
    return large < small * STEADY
