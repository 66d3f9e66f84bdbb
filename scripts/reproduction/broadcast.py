"""Yang, Wang: All-to-All Communication, its part on all-to-all broadcast in meshes and tori."""

from math import ceil, log

from . import dimensions, model, pattern, timed, walk
from .document import DEDUCTION, FORMULA, Curve, Failed, Figure, Panel, Paper, Table, parts, remarks

ALPHA, GAMMA = model.PARAGON['ts'], model.PARAGON['tw']
EVEN = 'n even: nodes halfway round get a block from both sides; the printed figures are not whole numbers'


def paper(torusctl):
    return Paper(
        name='broadcast',
        title='All-to-all broadcast: the broadcast pattern',
        citation='Yang Y., Wang J.: All-to-All Communication, part 1: all-to-all broadcast in '
                 'meshes and tori.',
        parts=parts(torusctl, (perimeters, dimensions.lower_bounds, phases, tori, meshes, within_bound,
                               dimensions.more_dimensions, parents, delays, calvin, in_time, comparison,
                               never_slower)),
        remarks=remarks(torusctl, (
            pattern_on_tori, balanced,
            'The paper says that Saad and Schultz\'s and Calvin\'s algorithms take less time than '
            'the pattern once switching takes more than 2Lγ. By its own formulas the ratio is '
            'larger, since these algorithms have more startups and switching of their own; it tends to 2 for '
            'large tori and long messages.',
            'Theorem 4 does not hold for buffers that serve first what comes first: for each odd n from 5 '
            'on the pattern then takes min(δ, Lγ) longer (client/doc/open-questions.md has the proof). The paper draws the first three phases, in '
            'which a channel waits once for a message to be switched, and takes for granted that it '
            'never waits again. But on a torus the phases shrink towards the end. In the last one a '
            'channel sends one message, which follows from a message of the phase before. If that '
            'message came last, the channel has nothing else to send while it is switched. If the '
            'message with the longest path ahead goes first, that message comes earlier, and the '
            'theorem holds, if δ is at most Lγ.',
            'Enumeration counts a startup for each step, the paper one (or two) in all, because nodes '
            'pass blocks on at once.',
        )))


def pattern_on_tori(torusctl):
    twice = [f'{n}×{n}: {pattern.reached_twice(n)} of {n * n - 1}' for n in (4, 8)]
    even = 'refuses' if not torusctl.accepts('4x4', 'yangwang') else 'takes'
    return ('The pattern is followed to the letter here (cases 1 to 3 and the additional check), '
            'independently of torusd. torusd runs it as yangwang, with x along a row, on meshes and on '
            'tori of odd sizes, where it reaches every node exactly once; in more than two dimensions it '
            'is this project\'s extension. On even sizes, for which the paper gives the same rule and '
            'figures, nodes halfway round are reached from both sides '
            f'({", ".join(twice)}), and some channels carry more than ceil((n²−1)/4) blocks; yangwang '
            f'{even} these tori.')


def balanced(torusctl):
    most = most_dimensions(torusctl, 'balanced')
    return (f'The algorithm balanced is this project\'s, not the paper\'s. It takes tori and meshes of '
            f'at most {most} dimensions of more than one node, and reaches every node once. The '
            f'busiest channel carries no more than the bound, except where rings of 2 cross longer arrays. On '
            f'odd n×n tori balanced and yangwang cost the same, by different trees; where the sizes '
            f'differ balanced can be better. In more dimensions matched keeps to the bound.')


def most_dimensions(torusctl, algorithm):
    """The most dimensions of more than one node that the algorithm balanced takes."""
    return max(k for k in range(1, 5) if torusctl.accepts('x'.join(['3'] * k), algorithm))


def delay_pattern(n, delta, size):
    """Theorem 4."""
    send = size * GAMMA
    return (ALPHA + delta + send + ((n * n - 1) / 4 - 1) * max(delta, send) + min(delta, send))


def delay_saad_schultz(n, delta, size):
    return 2 * ALPHA + 2 * (n // 2) * delta + (n * n - 1) / 2 * size * GAMMA


def delay_calvin(n, delta, size):
    return (2 * log(n * n, 5) * ALPHA + 3 / 2 * (n - 1) * delta
            + (n * n - 1) / 2 * size * GAMMA)


def lower_bound(n, delta, size):
    """Theorem 1 (2)."""
    return ALPHA + delta + (n * n - 1) / 4 * size * GAMMA


ALGORITHMS = {'yangwang': ('broadcast pattern', delay_pattern),
              'saadschultz': ('Saad, Schultz', delay_saad_schultz),
              'calvin': ('Calvin, Perennes, Trystram', delay_calvin)}


# ---- Circles -------------------------------------------------------------------------------------

def perimeters(torusctl):
    del torusctl
    table = Table('perimeters', 'Properties of 2D meshes and tori: perimeters of circles',
                  ('network',), ('diameter', 'C_0, C_1, C_2 …'),
                  'The nodes at each distance from one. Paper: 4d in an infinite mesh, and the '
                  'formulas for tori of odd and even size. Here: by a search, in an infinite mesh '
                  'up to distance 6, where there is no diameter. Of n×n meshes the paper has the '
                  'diameter only.')
    with table.row('infinite mesh', paper=('-', circles(4 * d or 1 for d in range(7)))) as row:
        row.here = '-', circles(walk.circles('13mx13m', 6 * 13 + 6)[:7])
    for n in range(3, 11):
        with table.row(f'{n}×{n} torus', paper=(
                2 * (n // 2), circles(perimeter(n, d) for d in range(2 * (n // 2) + 1)))) as row:
            found = walk.circles(f'{n}x{n}', 0)
            row.here = len(found) - 1, circles(found)
    for n in range(3, 7):
        with table.row(f'{n}×{n} mesh', paper=(2 * (n - 1), '-')) as row:
            row.here = max(len(walk.circles(f'{n}mx{n}m', node)) - 1 for node in range(n * n)), '-'
    return table


def circles(numbers):
    return ' '.join(map(str, numbers))


def perimeter(n, d):
    k = n // 2
    if d == 0:
        return 1
    if n % 2 != 0:
        return 4 * d if d <= k else 4 * (2 * k + 1 - d)
    if d == 2 * k:
        return 1
    return 4 * k - 2 if d == k else 4 * d if d < k else 4 * (2 * k - d)


# ---- Blocks on a channel -------------------------------------------------------------------------

def phases(torusctl):
    del torusctl
    table = Table('theorem-3-phases', 'Theorem 3 and corollary 1: blocks on each channel in phase d',
                  ('network', 'd'), ('fewest', 'most'),
                  'Paper: d on each of a node\'s channels in an infinite mesh, C_d/4 on an n×n torus. '
                  'Here: the pattern, followed to the letter.')
    for name, ways, loads in (
            ('infinite mesh', pattern.in_infinite_mesh(6), range(1, 7)),
            ('9×9 torus', pattern.in_torus(9), [perimeter(9, d) // 4 for d in range(1, 9)])):
        for d, load in enumerate(loads, 1):
            with table.row(name, d, paper=(load, load)) as row:
                found = pattern.by_channel(ways)[d].values()
                row.here = min(found), max(found)
    return table


TO_THE_LETTER = {4: (5, 5), 6: (11, 7), 8: (18, 9), 10: (28, 11)}  # most blocks, nodes reached twice


def tori(torusctl):
    table = Table('corollary-1', 'Corollary 1: blocks on the busiest channel, n×n torus',
                  ('n', 'balanced', 'in lockstep'),
                  ('broadcast pattern', 'nodes reached twice', 'Saad, Schultz'),
                  'Paper: (n²−1)/4, none (theorem 2, for an infinite mesh), and (n²−1)/2 by the delay '
                  'formula. Here: what any channel carries in all; for Saad and Schultz the rows\' '
                  'blocks and then the columns\'. Balanced: the busiest channel of torusd\'s own '
                  'pattern, and its transmission with a barrier after every step.')
    for n in range(3, 11):
        dims, both = f'{n}x{n}', (n * n - 1) / 2
        most, twice = TO_THE_LETTER.get(n, (both / 2, 0))
        with table.row(n, '-', '-', paper=(both / 2, 0, both), known=(most, twice, ceil(both)),
                       why=EVEN if n % 2 == 0 else '') as row:
            row.labels = (n, torusctl.channel_load(dims, 'balanced'),
                          torusctl.plan(dims, 'balanced')['transmission'])
            row.here = (pattern.torus_load(n), pattern.reached_twice(n),
                        torusctl.plan(dims, 'saadschultz')['transmission'])
    return table


def meshes(torusctl):
    table = Table('corollary-2', 'Corollary 2: blocks on the busiest channel, n×n mesh',
                  ('n', 'balanced'), ('broadcast pattern',),
                  'Paper: at most (n²−1)/2, taken up to whole blocks. Balanced: torusd\'s own pattern.')
    for n in range(3, 9):
        with table.row(n, '-', paper=(ceil((n * n - 1) / 2),)) as row:
            row.labels = n, torusctl.channel_load(f'{n}mx{n}m', 'balanced')
            row.here = (pattern.mesh_load(n),)
    return table


BEYOND = {  # blocks on the busiest channel of algorithm balanced where they exceed the bound, and the reason
    '2x5m': (4, 'the shortest paths to the end of an array of 5 or more'),
    '2x9m': (8, 'the shortest paths to the end of an array of 5 or more'),
}


def within_bound(torusctl):
    table = Table('broadcast-bound', 'Theorem 1 (2) on other sizes: blocks on the busiest channel',
                  ('network', 'broadcast pattern'), ('balanced, matched',),
                  'Paper: the bound for n×n, for any sizes and dimensions: N − 1 blocks come to a node '
                  'by its channels, which are fewest in the corner of a mesh. Here: torusd\'s own '
                  'patterns, balanced in two dimensions and matched in more. Broadcast pattern: yangwang. m: the '
                  'dimension does not wrap.')
    for dims in ('5x5', '4x4', '3x9', '5x7', '4x9', '2x12', '5mx5m', '4mx7m', '2mx9m', '5x9m', '4x5m',
                 '2x4m', '2x5m', '2x9m', '3x3x3', '3mx3mx3m', '3x5x7', '4x4x4', '3mx3mx3mx3m'):
        known, why = BEYOND.get(dims, (None, ''))
        with table.row(walk.label(dims), '-', why=why, known=known and (known,),
                       paper=(walk.bounds(dims)['all-to-all broadcast, all-port'],)) as row:
            row.labels = walk.label(dims), busiest(torusctl, dims, 'yangwang')
            two = torusctl.accepts(dims, 'balanced')
            row.here = (busiest(torusctl, dims, 'balanced' if two else 'matched'),)
    return table


def busiest(torusctl, dims, algorithm):
    return torusctl.channel_load(dims, algorithm) if torusctl.accepts(dims, algorithm) else 'refused'


def parents(torusctl):
    table = Table('pattern-parents', 'The pattern as torusd runs it (yangwang)', ('network',),
                  ('channels taken',),
                  'The channels on which each of n² blocks comes to its nodes: paper, by the pattern '
                  'to the letter; here, how many of these torusd\'s routes take.')
    for n, mesh in ((3, ''), (5, ''), (7, ''), (9, ''), (3, 'm'), (4, 'm'), (5, 'm'), (6, 'm')):
        with table.row(f'{n}×{n} {"mesh" if mesh else "torus"}', paper=(n * n * (n * n - 1),)) as row:
            dims = f'{n}{mesh}x{n}{mesh}'
            row.here = (len(to_the_letter(n, mesh) & by_routes(torusctl, dims)),)
    return table


def to_the_letter(n, mesh):
    """{(source, from, to)}: a block of a source goes from one node to another. x counts along the last
    dimension."""
    taken = set()
    for y, x in ((y, x) for y in range(n) for x in range(n)):
        ways = pattern.in_mesh(n, x, y) if mesh else pattern.in_torus(n)
        for _, *ends in ways:
            taken.add((y * n + x, *((y + b) % n * n + (x + a) % n for a, b in ends)))
    return taken


def by_routes(torusctl, dims):
    torus, taken = walk.Torus(dims), set()
    for source, _, _, legs in torusctl.routes(dims, 'yangwang'):
        node = source
        for _, dim, direction, hops in legs:
            for _ in range(hops):
                other = torus.neighbour(node, dim, direction)
                taken.add((source, node, other))
                node = other
    return taken


# ---- Delay ---------------------------------------------------------------------------------------

def predicted(torusctl, n, algorithm, delta, sizes):
    """Microseconds by torusctl's formula, for each size."""
    _, times = torusctl.predict(f'{n}x{n}', algorithm, *model.parameters(0), '--tp', delta,
                                '--block-size', ','.join(map(str, sizes)))
    return [row['formula_time_us'] for row in times]


def run_pattern(torusctl, n, delta, size, alpha=ALPHA):
    """The pattern in time, with the message with the longest path first, in microseconds."""
    return torusctl.simulate('--dims', f'{n}x{n}', '--algorithm', 'yangwang', '--mode', 'streaming', '--ts', alpha,
                             '--tp', delta, '--block-size', size, '--queue', 'longest', '--switch', 'input')['time_us']


def run_saad_schultz(torusctl, n, delta, size):
    """Rows, then columns, in steps. The paper counts one startup for each of the two."""
    return 2 * ALPHA + torusctl.simulate('--dims', f'{n}x{n}', '--algorithm', 'saadschultz', '--barrier', '--switching',
                                         'store', '--tp', delta, '--block-size', size)['time_us']


def delays(torusctl):
    table = Table('theorem-4', 'Theorem 4 and "Comparisons": delay on an n×n torus',
                  ('n', 'δ (µs)', 'L (bytes)', 'lower bound (µs)'), ('broadcast pattern (µs)', 'Saad, Schultz (µs)'),
                  f'α = {ALPHA} µs, γ = {GAMMA} µs. Paper: theorem 4 and the compared formula. Here: torusctl simulate. '
                  'The pattern runs with the buffers of the paper and the message with the longest path first (see '
                  'the next table but one), and a second simulation must come to the same; Saad and Schultz in steps, '
                  'with a startup for the rows and one for the columns. Lower bound: theorem 1.')
    for n in (5, 9, 17):
        for delta, size in ((1, 16), (1, 1024), (10, 16), (10, 1024)):
            expected = [rounded(formula(n, delta, size)) for formula in (delay_pattern, delay_saad_schultz)]
            again = ALPHA + timed.delay(n, delta * 1000, size * 11, True, True) / 1000
            known = (rounded(again), expected[1]) if delta > size * GAMMA else None
            with table.row(n, delta, size, rounded(lower_bound(n, delta, size)), paper=expected, known=known,
                           why=LESS if known else '') as row:
                found = run_pattern(torusctl, n, delta, size)
                if rounded(found) != rounded(again):
                    raise Failed(f'torusctl simulate says {found} us, a second simulation {again} us')
                row.here = rounded(found), rounded(run_saad_schultz(torusctl, n, delta, size))
    return table


def calvin(torusctl):
    table = Table('broadcast-calvin', '"Comparisons": delay of Calvin, Perennes and Trystram on an n×n torus',
                  ('n', 'δ (µs)', 'L (bytes)'), ('delay (µs)',),
                  'The paper has a formula, and no schedule that could be run. Here: the formula of torusctl predict.')
    for n in (5, 9, 17):
        for delta, size in ((1, 1024), (10, 16)):
            with table.row(n, delta, size, by=FORMULA, paper=(rounded(delay_calvin(n, delta, size)),)) as row:
                row.here = (rounded(predicted(torusctl, n, 'calvin', delta, [size])[0]),)
    return table


RATIOS_IN_TIME = ((1, 8), (1, 3), (2, 3), (5, 5), (3, 2), (4, 1))  # δ and Lγ, µs
WAITS = 'in the last phase a channel waits for a message to be switched'
LESS = 'δ > Lγ: messages that go no further are switched last'


def in_time(torusctl):
    table = Table('theorem-4-in-time', 'Theorem 4 in time: delay without α (µs) on an n×n torus',
                  ('n', 'goes first', 'switches at'),
                  tuple(f'δ = {delta}, Lγ = {send}' for delta, send in RATIOS_IN_TIME),
                  'Paper: at most δ + Lγ + ((n²−1)/4 − 1)·max(δ, Lγ) + min(δ, Lγ). Here: torusctl '
                  'simulate, which follows each message through the buffers of the nodes, and a '
                  'second simulation must come to the same. Longest: the message with the longest '
                  'way ahead. The paper\'s nodes switch at the input buffers.')
    for n in range(3, 14, 2):
        for queue in ('fifo', 'longest'):
            for place in ('input', 'output'):
                row_in_time(torusctl, table, n, queue, place)
    return table


def row_in_time(torusctl, table, n, queue, place):
    again = [timed.delay(n, delta, send, queue == 'longest', place == 'input')
             for delta, send in RATIOS_IN_TIME]
    paper = [delta + send + ((n * n - 1) // 4 - 1) * max(delta, send) + min(delta, send)
             for delta, send in RATIOS_IN_TIME]
    if n > 3 and queue == 'fifo':
        known, why = [us + min(ratio) for us, ratio in zip(paper, RATIOS_IN_TIME)], WAITS
    elif n > 3 and place == 'input':
        known, why = [us if ratio[0] <= ratio[1] else found
                      for us, found, ratio in zip(paper, again, RATIOS_IN_TIME)], LESS
    else:
        known, why = None, ''
    with table.row(n, queue, place, paper=paper, known=known, why=why) as row:
        row.here = [torusctl.simulate('--dims', f'{n}x{n}', '--algorithm', 'yangwang', '--mode', 'streaming',
                                      '--tp', delta, '--tw', 1, '--block-size', send, '--queue', queue,
                                      '--switch', place)['time_us'] for delta, send in RATIOS_IN_TIME]
        if list(row.here) != again:
            raise Failed(f'torusctl simulate says {row.here} us, a second simulation {again} us')


def rounded(number):
    return round(float(number), 3)


RUNS = {'yangwang': run_pattern, 'saadschultz': run_saad_schultz}


def comparison(torusctl):
    figure = Figure('broadcast-delay', 'Delay of all-to-all broadcast over message length',
                    'message length L (bytes)', 'delay (ms)', [],
                    f'α = {ALPHA} µs, γ = {GAMMA} µs; the paper names no δ and prints no curves. The pattern and '
                    'Saad, Schultz are runs of torusctl simulate, Calvin is a formula. Where δ ≤ Lγ (from 91 bytes on '
                    'for 1 µs, from 910 for 10 µs) the pattern is within δ of the lower bound.')
    for n in (9, 33):
        for delta in (1, 10):
            panel = Panel(f'{n}×{n} torus, δ = {delta} µs', [])
            figure.panels.append(panel)
            for algorithm, (label, _) in ALGORITHMS.items():
                run = RUNS.get(algorithm)
                with figure.curve(panel, label):
                    times = ([run(torusctl, n, delta, size) for size in model.SIZES] if run
                             else predicted(torusctl, n, algorithm, delta, model.SIZES))
                    panel.curves.append(Curve(label, model.SIZES, [us / 1000 for us in times], not run))
            panel.curves.append(Curve(
                'lower bound (theorem 1)', model.SIZES,
                [lower_bound(n, delta, size) / 1000 for size in model.SIZES], bound=True))
    return figure


RATIOS = {  # (n, L): the ratios found
    (5, 64): (58.27, 'never'), (5, 16384): (5.208, 'never'),
    (9, 64): (12.04, 64.15), (9, 16384): (3.201, 4.982),
    (33, 64): (2.702, 6.077), (33, 16384): (2.26, 2.434),
    (129, 64): (2.089, 2.394), (129, 16384): (2.063, 2.097),
}


def never_slower(torusctl):
    table = Table('broadcast-faster', 'Comparisons: "when δ > 2Lγ, both algorithms take less time"',
                  ('n', 'L (bytes)'), ('Saad, Schultz from δ/Lγ =', 'Calvin from δ/Lγ ='),
                  'From which ratio on the compared algorithm is faster than the pattern; by the '
                  'formulas.')
    for (n, size), known in RATIOS.items():
        with table.row(n, size, paper=(2, 2), known=known, by=DEDUCTION,
                       why='more startups, and switching of their own') as row:
            row.here = [ratio(torusctl, n, algorithm, size)
                        for algorithm in ('saadschultz', 'calvin')]
    return table


def ratio(torusctl, n, algorithm, size):
    """The ratio at which two curves meet: delays are linear in δ above Lγ."""
    send = size * GAMMA
    low, high = 2 * send, 4 * send
    ours = [predicted(torusctl, n, 'yangwang', delta, [size])[0] for delta in (low, high)]
    other = [predicted(torusctl, n, algorithm, delta, [size])[0] for delta in (low, high)]
    closing = (ours[1] - ours[0]) - (other[1] - other[0])
    if closing < 1e-6:  # as steep
        return 'never'
    return float(f'{(low + (high - low) * (other[0] - ours[0]) / closing) / send:.4g}')
