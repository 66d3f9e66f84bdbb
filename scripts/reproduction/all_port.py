"""Liu, Gu, Bi, Tu, Dong: Optimal All-to-All Personalized Communication in All-Port Tori."""

from math import ceil

from . import model
from .document import Figure, Paper, Table


OPPOSITES = 'c is 4 mod 8: all blocks for a logical opposite go the same way'


def lockstep(r, c):
    return 'rings of two lengths in lockstep; critical path as in the paper' if r != c else ''


def paper(torusctl):
    return Paper(
        name='all-port',
        title='All-port tori: AR and AT2',
        citation='Liu Gang, Gu Nai-jie, Bi Kun, Tu Kun, Dong Wan-li: Optimal All-to-All '
                 'Personalized Communication in All-Port Tori.',
        parts=[table_one(torusctl), lemma_two(torusctl), lemma_three(torusctl),
               lemma_four(torusctl), as_printed(torusctl), table_two(torusctl), figure_six(torusctl),
               always_faster(torusctl)],
        remarks=[
            'Table I names one quadrant for the r·c/8 messages of each port, but the sets B, R, T '
            'and L of Fig. 5, which the schedule follows, span two (all even offsets of the other '
            'dimension). Its counts are right.',
            'Lemma 4 holds only with a repair. The paper runs AR as printed on the logical rings of '
            'every second node. If a size is 4 mod 8, their opposite nodes are an odd number of '
            'logical hops apart, and AR sends all blocks for them the same way. On a ring by itself '
            'that is the ceil() of lemma 2; here it costs r blocks where the larger size c is 4 mod '
            '8: 4×4 takes 12 blocks where the lemma has 8, 4×12 76 (72), 12×12 228 (216), and 8×12 '
            'a critical path of 152 (144). That is the algorithm at2-printed. In at2, to which the '
            'other tables refer, half of these blocks go each way, and the lemma holds.',
            'Lemmas 3 and 4 count the longer rings only. Where r and c differ the shorter rings '
            'have their heaviest steps at other times, and on 8×12 and 12×16 a barrier after every '
            'step costs more than the lemma says; nodes that wait only for what they need '
            'themselves finish in exactly its time (critical path).',
            'Section 5 says that AT2 is faster than the others for every message size. By its own '
            'formulas and parameters Suh and Yalamanchili\'s algorithm [6], with its fewer '
            'startups, is faster for messages of 1 byte on 16×16 and on 32×32.',
        ])


# ---- Table I -------------------------------------------------------------------------------------

PORTS = {(0, 1): 'lower', (1, 1): 'right', (0, -1): 'upper', (1, -1): 'left'}
PRINTED = [  # port, share of r*c, group, quadrant
    ('lower', 8, 'G10', 'QI'), ('lower', 16, 'G11', 'QI'),
    ('right', 8, 'G01', 'QII'), ('right', 16, 'G11', 'QII'),
    ('upper', 8, 'G10', 'QIII'), ('upper', 16, 'G11', 'QIII'),
    ('left', 8, 'G01', 'QIV'), ('left', 16, 'G11', 'QIV'),
]


def quadrant(dx, dy, r, c):
    """Section 4."""
    if dy <= c // 2:
        return 'QI' if dx <= r // 2 else 'QII'
    return 'QIV' if dx <= r // 2 else 'QIII'


def table_one(torusctl):
    r = c = 8
    table = Table('all-port-table-1', 'Table I: what node (0,0) of an 8×8 torus sends in step 1',
                  ('port', 'destinations in'), ('messages', 'quadrants'),
                  'Paper: r·c/8 and r·c/16 messages.')
    sent = {}
    for destination, legs in torusctl.routes_from_0(f'{r}x{c}', 'at2').items():
        step, dimension, direction, _ = legs[0]
        if step == 0:
            x, y = divmod(destination, c)
            key = PORTS[dimension, direction], f'G{x % 2}{y % 2}'
            sent.setdefault(key, []).append(quadrant(x, y, r, c))
    for port, share, group, named in PRINTED:
        found = sent.pop((port, group))
        here = ', '.join(sorted(set(found), key=['QI', 'QII', 'QIII', 'QIV'].index))
        table.add(port, group, paper=(r * c // share, named), here=(len(found), here),
                  why='the slip named above' if share == 8 and named in here else '')
    assert not sent
    return table


# ---- The lemmas ----------------------------------------------------------------------------------

def lemma_two(torusctl):
    table = Table('lemma-2', 'Lemma 2: AR on a ring of p nodes', ('p',),
                  ('startups', 'stage 1', 'stage 2 (1)', 'stage 3 (2)', 'transmission'),
                  'Stages and transmission in blocks. The transmission is the lower bound of '
                  'ceil(p²/8).')
    for p in range(4, 21, 2):
        f, g = p // 4, ceil(p / 4)
        loads = torusctl.step_loads(p, 'ar', (0, 1))
        stages = [loads[:1], loads[1:1 + f], loads[1 + f:]]
        plan = torusctl.plan(p, 'ar')
        table.add(p, paper=(p // 2, g, f * g, f * (g - 1), ceil(p * p / 8)),
                  here=(plan['startups'], *map(sum, stages), plan['transmission']))
    return table


SHAPES = [(4, 4), (4, 8), (8, 8), (4, 12), (8, 12), (12, 12), (8, 16), (12, 16), (16, 16)]


def lemma_three(torusctl):
    table = Table('lemma-3', 'Lemma 3 and (4): the phases of AT2 on an r×c torus', ('r', 'c'),
                  ('startups of phase 2', 'phase 1', 'phase 2', 'phase 3'),
                  'Phases in blocks: r·c/4, then twice (r·c/32 + r·c/32 − r/8)·c.')
    for r, c in SHAPES:
        nodes = [x * c + y for x in range(4) for y in range(4)]  # one of each class
        loads = torusctl.step_loads(f'{r}x{c}', 'at2', nodes)
        half = (len(loads) - 2) // 2
        phases = loads[:2], loads[2:2 + half], loads[2 + half:]
        phase = (r * c / 32 + r * c / 32 - r / 8) * c
        table.add(r, c, paper=(c // 4, r * c // 4, phase, phase), here=(half, *map(sum, phases)),
                  why=lockstep(r, c))
    return table


def lemma_four(torusctl):
    table = Table('lemma-4', 'Lemma 4 and section 4.D: AT2 on an r×c torus', ('r', 'c'),
                  ('startups', 'transmission', 'critical path', 'rearranged'),
                  'c/2 + 2 startups, r·c²/8 blocks (the lower bound), 3·r·c rearranged. The '
                  'critical path is the transmission without a barrier after every step.')
    for r, c in SHAPES + [(16, 32), (32, 32), (64, 64), (128, 128)]:
        counts, _ = torusctl.predict(f'{r}x{c}', 'at2')
        blocks = r * c * c // 8
        here = tuple(counts[key]
                     for key in ('startups', 'transmission', 'critical_path', 'rearranged'))
        assert counts['critical_path'] == blocks  # or the reason for a difference does not hold
        table.add(r, c, paper=(c // 2 + 2, blocks, blocks, 3 * r * c), here=here,
                  why=lockstep(r, c))
    return table


def as_printed(torusctl):
    table = Table('lemma-4-printed', 'Lemma 4 without the repair: AR as printed on the logical rings',
                  ('r', 'c', 'critical path of at2'), ('transmission', 'critical path'),
                  'at2-printed. Paper: r·c²/8 blocks.')
    for r, c in SHAPES:
        blocks = r * c * c // 8
        plan = torusctl.plan(f'{r}x{c}', 'at2-printed')
        here = plan['transmission'], plan['critical_path']
        more = r if c % 8 == 4 else 0
        assert here[1] == blocks + more  # or the reason for a difference does not hold
        table.add(r, c, torusctl.plan(f'{r}x{c}', 'at2')['critical_path'], paper=(blocks, blocks),
                  here=here, why=OPPOSITES if more else lockstep(r, c))
    return table


# ---- Comparison ----------------------------------------------------------------------------------

COMPARED = {  # Table II's rows: startups, transmission, rearranged, on 2^d x 2^d
    'tseng': ('[5] Tseng et al.', lambda d: (
        2 ** (d - 1) + 2, 2 ** (3 * d - 2) + 2 ** (2 * d), (2 ** (d - 1) + 1) * 2 ** (2 * d))),
    'suh-yalamanchili': ('[6] Suh, Yalamanchili', lambda d: (
        3 * d - 3, *2 * [9 * 2 ** (3 * d) // 16 + (d * d - 5 * d + 3) * 2 ** (2 * d - 1)])),
    'suh-shin': ('[10] Suh, Shin', lambda d: (
        2 ** (d - 1) + 2, 2 ** (3 * d - 2) + 2 ** (2 * d), 3 * 2 ** (2 * d))),
    'at2': ('proposed (AT2)', lambda d: (
        2 ** (d - 1) + 2, 2 ** (3 * d - 3), 3 * 2 ** (2 * d))),
}


def table_two(torusctl):
    table = Table('all-port-table-2', 'Table II: complete exchange on 2^d × 2^d tori',
                  ('torus', 'algorithm', 'here by'), ('startups', 'transmission', 'rearranged'),
                  'Paper: the row\'s formulas. AT2 is enumerated at every size.')
    for d in range(2, 8):
        for algorithm, (label, row) in COMPARED.items():
            counts, _ = torusctl.predict(f'{2 ** d}x{2 ** d}', algorithm)
            here = counts['startups'], counts['transmission'], counts['rearranged']
            table.add(f'{2 ** d}x{2 ** d}', label, counts['from'], paper=row(d), here=here)
    return table


def figure_six(torusctl):
    algorithms = [(label, name) for name, (label, _) in COMPARED.items()]
    return Figure('all-port-fig-6', 'Fig. 6: estimated completion time over message size',
                  'message size (bytes)', 'completion time (ms)',
                  model.time_panels(torusctl, algorithms, model.PARAGON['rho']),
                  'Solid: from enumeration. Dashed: by formula. The compared algorithms are for one '
                  'port, as the paper notes. It prints no values beside its curves; the '
                  'parameters are its own.')


def always_faster(torusctl):
    compared = {name: label for name, (label, _) in COMPARED.items() if name != 'at2'}
    return model.faster_table(
        torusctl, 'all-port-faster',
        'Section 5: "always outperforms the other algorithms for any message size"', 'at2',
        compared, model.PARAGON['rho'], {'suh-yalamanchili': '[6] has fewer startups'})
