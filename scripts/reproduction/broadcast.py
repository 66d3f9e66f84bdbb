"""Yang, Wang: All-to-All Communication, its part on all-to-all broadcast in meshes and tori."""

from math import ceil, log

from . import model, pattern
from .document import Curve, Figure, Panel, Paper, Table

ALPHA, GAMMA = model.PARAGON['ts'], model.PARAGON['tw']
EVEN = 'n even: nodes halfway round are reached from both sides, and the figures are not whole'


def paper(torusctl):
    return Paper(
        name='broadcast',
        title='All-to-all broadcast: the broadcast pattern',
        citation='Yang Y., Wang J.: All-to-All Communication, part 1: all-to-all broadcast in '
                 'meshes and tori.',
        parts=[tori(torusctl), even_tori(torusctl), meshes(torusctl), delays(torusctl), comparison(torusctl),
               never_slower(torusctl)],
        remarks=[
            'The algorithm yangwang is the published pattern, cases 1 to 3 and the additional check, '
            'with x along a row. It takes meshes, and tori of odd sizes, where it reaches every node '
            'exactly once. On even sizes, for which the paper gives the same rule and figures, some '
            'nodes are reached twice, and some channels carry more than ceil((n²−1)/4) blocks; '
            'yangwang refuses these tori. The algorithm balanced is this project\'s, not the '
            'paper\'s: on any torus or mesh every node is reached once, and no channel of a torus or '
            'mesh carries more than the bound. On odd n×n tori both have the same cost, by different '
            'trees; where the sizes differ balanced can be better (3×9: 7 blocks, yangwang 8).',
            'The paper says that Saad and Schultz\'s and Calvin\'s algorithms take less time than '
            'the pattern once switching takes more than 2Lγ. By its own formulas the ratio is '
            'larger, since they have more startups and switching of their own; it goes to 2 for '
            'large tori and long messages.',
            'Enumeration counts a startup for each step, the paper one (or two) in all, for nodes '
            'send on what they receive at once. Delays here are by the paper\'s formulas.',
        ])


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


# ---- Blocks on a channel -------------------------------------------------------------------------

def tori(torusctl):
    table = Table('corollary-1', 'Corollary 1: blocks on the busiest channel, n×n torus',
                  ('n', 'in lockstep'), ('broadcast pattern', 'Saad, Schultz'),
                  'Paper: (n²−1)/4, and (n²−1)/2 by the delay formula. Here: what any channel '
                  'carries in all; for Saad and Schultz the rows\' blocks and then the columns\'. '
                  'In lockstep: the pattern\'s transmission with a barrier after every step.')
    for n in range(3, 10, 2):
        dims = f'{n}x{n}'
        lockstep = torusctl.plan(dims, 'yangwang')['transmission']
        here = (torusctl.channel_load(dims, 'yangwang', range(n * n)),
                torusctl.plan(dims, 'saadschultz')['transmission'])
        table.add(n, lockstep, paper=((n * n - 1) / 4, (n * n - 1) / 2), here=here)
    return table


def even_tori(torusctl):
    table = Table('corollary-1-even', 'Corollary 1 on even n×n tori', ('n', 'bound'),
                  ('nodes reached twice', 'busiest channel, as printed',
                   'busiest channel, balanced', 'Saad, Schultz'),
                  'As printed: the published rule, which yangwang refuses here, followed to the '
                  'letter. Bound: ceil((n²−1)/4).')
    for n in range(4, 10, 2):
        dims, printed = f'{n}x{n}', (n * n - 1) / 4
        here = (*pattern.flood(n), torusctl.channel_load(dims, 'balanced', range(n * n)),
                torusctl.plan(dims, 'saadschultz')['transmission'])
        table.add(n, ceil(printed), paper=(0, printed, printed, 2 * printed), here=here, why=EVEN)
    return table


def meshes(torusctl):
    table = Table('corollary-2', 'Corollary 2: blocks on the busiest channel, n×n mesh',
                  ('n', 'at most (n²−1)/2', 'here'), ('within it',),
                  'The bound is taken up to whole blocks.')
    for n in range(3, 9):
        most = ceil((n * n - 1) / 2)
        load = torusctl.channel_load(f'{n}mx{n}m', 'yangwang', range(n * n))
        table.add(n, most, load, paper=(True,), here=(load <= most,))
    return table


# ---- Delay ---------------------------------------------------------------------------------------

def predicted(torusctl, n, algorithm, delta, sizes):
    """Microseconds by the library's formula, for each size."""
    _, times = torusctl.predict(f'{n}x{n}', algorithm, *model.parameters(0), '--tp', delta,
                                '--block-size', ','.join(map(str, sizes)))
    return [row['formula_time_us'] for row in times]


def delays(torusctl):
    table = Table('theorem-4', 'Theorem 4 and "Comparisons": delay on an n×n torus',
                  ('n', 'δ (µs)', 'L (bytes)', 'lower bound (µs)'),
                  tuple(f'{label} (µs)' for label, _ in ALGORITHMS.values()),
                  f'α = {ALPHA} µs, γ = {GAMMA} µs. Paper: theorem 4 and the compared formulas. '
                  'Here: torusctl predict, which has corollary 3\'s form. Lower bound: theorem 1.')
    for n in (5, 9, 17):
        for delta, size in ((1, 16), (1, 1024), (10, 16), (10, 1024)):
            here = [predicted(torusctl, n, algorithm, delta, [size])[0]
                    for algorithm in ALGORITHMS]
            expected = [formula(n, delta, size) for _, formula in ALGORITHMS.values()]
            table.add(n, delta, size, rounded(lower_bound(n, delta, size)),
                      paper=map(rounded, expected), here=map(rounded, here))
    return table


def rounded(number):
    return round(float(number), 3)


def comparison(torusctl):
    panels = []
    for n in (9, 33):
        for delta in (1, 10):
            curves = [Curve(label, model.SIZES,
                            predicted(torusctl, n, algorithm, delta, model.SIZES), True)
                      for algorithm, (label, _) in ALGORITHMS.items()]
            curves.append(Curve('lower bound (theorem 1)', model.SIZES,
                                [lower_bound(n, delta, size) for size in model.SIZES], bound=True))
            for curve in curves:
                curve.y = [time / 1000 for time in curve.y]
            panels.append(Panel(f'{n}×{n} torus, δ = {delta} µs', curves))
    return Figure('broadcast-delay', 'Delay of all-to-all broadcast over message length',
                  'message length L (bytes)', 'delay (ms)', panels,
                  f'By the paper\'s formulas, α = {ALPHA} µs, γ = {GAMMA} µs; the paper names no '
                  'δ and prints no curves. Where δ ≤ Lγ (from 91 bytes on for 1 µs, from 910 '
                  'for 10 µs) the pattern is within δ of the lower bound.')


def never_slower(torusctl):
    table = Table('broadcast-faster', 'Comparisons: "when δ > 2Lγ, both algorithms take less time"',
                  ('n', 'L (bytes)'), ('Saad, Schultz from δ/Lγ =', 'Calvin from δ/Lγ ='),
                  'From which ratio on the compared algorithm is faster than the pattern; by the '
                  'formulas.')
    for n in (5, 9, 33, 129):
        for size in (64, 16384):
            here = [ratio(torusctl, n, algorithm, size) for algorithm in ('saadschultz', 'calvin')]
            more = all(value == 'never' or value > 2 for value in here)
            table.add(n, size, paper=(2, 2), here=here,
                      why='more startups, and switching of their own' if more else '')
    return table


def ratio(torusctl, n, algorithm, size):
    """Where two lines meet: delays are linear in δ above Lγ."""
    send = size * GAMMA
    low, high = 2 * send, 4 * send
    ours = [predicted(torusctl, n, 'yangwang', delta, [size])[0] for delta in (low, high)]
    other = [predicted(torusctl, n, algorithm, delta, [size])[0] for delta in (low, high)]
    closing = (ours[1] - ours[0]) - (other[1] - other[0])
    if closing < 1e-6:  # as steep
        return 'never'
    return float(f'{(low + (high - low) * (other[0] - ours[0]) / closing) / send:.4g}')
