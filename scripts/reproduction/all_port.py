"""Liu, Gu, Bi, Tu, Dong: Optimal All-to-All Personalized Communication in All-Port Tori."""

from math import ceil

from . import cited, imaginary, model
from .document import ENUMERATION, FORMULA, Figure, Paper, Table, parts, remarks

LOCKSTEP = 'rings of two lengths in lockstep; critical path as in the paper'


def paper(torusctl):
    return Paper(
        name='all-port',
        title='All-port tori: AR and AT2',
        citation='Liu Gang, Gu Nai-jie, Bi Kun, Tu Kun, Dong Wan-li: Optimal All-to-All '
                 'Personalized Communication in All-Port Tori.',
        parts=parts(torusctl, (table_one, lemma_two, lemma_three, lemma_four, as_printed,
                               table_two, figure_six,
                               always_faster, imaginary_nodes, cited.direct, cited.previous)),
        remarks=remarks(torusctl, (
            'Table I names one quadrant for the r·c/8 messages of each port, but the sets B, R, T '
            'and L of Fig. 5, which the schedule follows, span two (all even offsets of the other '
            'dimension). Its counts are right.',
            barriers, repair, impossible, cited.RECONSTRUCTED,
            'The 3·r·c rearranged blocks of section 4.D are printed here and priced in Fig. 6, but '
            'not compared: torusd rearranges no blocks between phases, so nothing is counted.',
            'Section 5 says that AT2 is faster than the others for every message size. By the '
            'paper\'s formulas and parameters the algorithm [6] of Suh and Yalamanchili, which has '
            'fewer startups, is faster with the smallest messages on some tori. The direct exchanges '
            '[3, 4], which the paper leaves out of this comparison, transmit as many blocks as AT2 '
            'and rearrange none. So they are faster with long messages if AT2\'s rearrangement is '
            'counted as in section 4.D.',
            'Section 6 says that imaginary nodes make AT2 run on every torus, but not what that costs. '
            'Here an imaginary node is hosted by the nearest real node before it on its ring. The '
            'table below also has the blocks of the padded torus itself, the steps in which messages '
            'share a channel, and the bound of the real torus.',
        )))


def barriers(torusctl):
    slower = [f'{counts["transmission"]:g} instead of {counts["critical_path"]:g} on {r}×{c}'
              for r, c in UNEQUAL for counts in [torusctl.predict(f'{r}x{c}', 'at2-printed')[0]]
              if counts['transmission'] > counts['critical_path']]
    exceptions = [f'{counts["transmission"]:g} instead of {counts["critical_path"]:g} on {r}×{c}'
                  for r, c in LESS_THAN_FIT
                  for counts in [torusctl.predict(f'{r}x{c}', 'at2')[0]]]
    return ('Lemmas 3 and 4 count the longer rings only. Where r < c, the shorter rings as printed '
            'have some of their heaviest steps while the longer ones have light steps, and with a '
            f'barrier after every step AT2 takes more blocks ({", ".join(slower)}). In at2 the '
            'shorter rings begin stage 3 of AR when the longer ones do. If r is a multiple of 8 and c '
            'is not, half of the blocks that go to the next node of a shorter ring also wait until '
            'after its stage 3. Then the lemma holds with barriers too, except if r is a multiple of '
            f'8, c is not, and 7r > 6c ({", ".join(exceptions)}).')


def impossible(torusctl):
    del torusctl
    below = [f'{blocks} blocks for {label}, d = {d}' for name, (label, formula) in COMPARED.items()
             for d in range(2, 8) for blocks in [formula(d)[1]]
             if name != 'at2' and blocks < 4 ** d - 1]
    return ('Table II has no lower limit for d, and compares algorithms for one port, with which a '
            'node takes 2^(2d) − 1 block times to receive its blocks. The formulas give '
            f'{", ".join(below)}; there they cannot hold, and are left out here.')


def repair(torusctl):
    longer = []
    for r, c in SHAPES:
        blocks = torusctl.plan(f'{r}x{c}', 'at2-printed')['critical_path']
        if blocks != r * c * c // 8:
            longer.append(f'{blocks} instead of {r * c * c // 8} on {r}×{c}')
    return ('Lemma 4 holds only with a repair. The paper runs AR as printed on the logical rings of '
            'every second node. If a size is 4 mod 8, opposite nodes of these rings are an odd number '
            'of logical hops apart, and AR sends all blocks for them the same way. On a ring by '
            'itself that is the ceil() of lemma 2; here the critical path is r blocks longer if the '
            f'larger size c is 4 mod 8 ({", ".join(longer)}). That is the algorithm at2-printed. In '
            'at2, to which the other tables refer, half of these blocks go each way (not on shorter '
            'rings beside rings of a multiple of 4 nodes), and the lemma holds.')


# ---- Table I -------------------------------------------------------------------------------------

PORTS = {(0, 1): 'lower', (1, 1): 'right', (0, -1): 'upper', (1, -1): 'left'}
PRINTED = [  # port, share of r*c, group, quadrant; quadrants of Fig. 5
    ('lower', 8, 'G10', 'QI', 'QI, QIV'), ('lower', 16, 'G11', 'QI', 'QI'),
    ('right', 8, 'G01', 'QII', 'QI, QII'), ('right', 16, 'G11', 'QII', 'QII'),
    ('upper', 8, 'G10', 'QIII', 'QII, QIII'), ('upper', 16, 'G11', 'QIII', 'QIII'),
    ('left', 8, 'G01', 'QIV', 'QIII, QIV'), ('left', 16, 'G11', 'QIV', 'QIV'),
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
    for port, share, group, named, spanned in PRINTED:
        with table.row(port, group, paper=(r * c // share, named),
                       known=(r * c // share, spanned), why='the slip named above') as row:
            found = sent.pop((port, group), [])
            here = sorted(set(found), key=['QI', 'QII', 'QIII', 'QIV'].index)
            row.here = len(found), ', '.join(here)
    for (port, group), more in sent.items():
        table.add(port, group, paper=(0, ''), here=(len(more), ', '.join(sorted(set(more)))))
    return table


# ---- The lemmas ----------------------------------------------------------------------------------

def lemma_two(torusctl):
    table = Table('lemma-2', 'Lemma 2: AR on a ring of p nodes', ('p',),
                  ('startups', 'stage 1', 'stage 2 (1)', 'stage 3 (2)', 'transmission'),
                  'Stages and transmission in blocks. The transmission is the lower bound of '
                  'ceil(p²/8).')
    for p in range(4, 21, 2):
        f, g = p // 4, ceil(p / 4)
        with table.row(p, paper=(p // 2, g, f * g, f * (g - 1), ceil(p * p / 8))) as row:
            plan = torusctl.plan(p, 'ar')
            loads = torusctl.step_loads(p, 'ar', (0, 1))
            stages = [loads[:1], loads[1:1 + f], loads[1 + f:]]
            row.here = plan['startups'], *map(sum, stages), plan['transmission']
    return table


SHAPES = [(4, 4), (4, 8), (8, 8), (4, 12), (8, 12), (12, 12), (8, 16), (12, 16), (16, 16)]
LARGER = [(16, 32), (32, 32), (64, 64), (128, 128)]
UNEQUAL = [(8, 12), (12, 16), (12, 20), (16, 32)]


def lemma_three(torusctl):
    table = Table('lemma-3', 'Lemma 3 and (4): the phases of AT2 on an r×c torus', ('r', 'c'),
                  ('startups of phase 2', 'phase 1', 'phase 2', 'phase 3'),
                  'Phases in blocks: r·c/4, then twice (r·c/32 + r·c/32 − r/8)·c.')
    for r, c in SHAPES:
        phase = (r * c / 32 + r * c / 32 - r / 8) * c
        with table.row(r, c, paper=(c // 4, r * c // 4, phase, phase)) as row:
            nodes = [x * c + y for x in range(4) for y in range(4)]  # one of each class
            loads = torusctl.step_loads(f'{r}x{c}', 'at2', nodes)
            half = (len(loads) - 2) // 2
            phases = loads[:2], loads[2:2 + half], loads[2 + half:]
            row.here = half, *map(sum, phases)
    return table


LESS_THAN_FIT = {(32, 36): 5192}  # transmission


def lemma_four(torusctl):
    table = Table('lemma-4', 'Lemma 4 and section 4.D: AT2 on an r×c torus',
                  ('r', 'c', 'rearranged, by the paper'),
                  ('startups', 'transmission', 'critical path'),
                  'c/2 + 2 startups, r·c²/8 blocks (the lower bound). The critical path is the '
                  'transmission without a barrier after every step.')
    for r, c in SHAPES + [(12, 20)] + LARGER + list(LESS_THAN_FIT):
        blocks, slower = r * c * c // 8, LESS_THAN_FIT.get((r, c))
        with table.row(r, c, 3 * r * c, paper=(c // 2 + 2, blocks, blocks),
                       known=slower and (c // 2 + 2, slower, blocks),
                       why=slower and LOCKSTEP or '') as row:
            counts, _ = torusctl.predict(f'{r}x{c}', 'at2')
            row.here = tuple(counts[key] for key in ('startups', 'transmission', 'critical_path'))
    return table


PRINTED_AR = {  # transmission and critical path of at2-printed
    (4, 4): (12, 12), (4, 12): (76, 76), (8, 12): (152, 152), (12, 12): (228, 228),
    (12, 16): (424, 384), (12, 20): (620, 612)}


def as_printed(torusctl):
    table = Table('lemma-4-printed', 'Lemma 4 with AR as printed in phases 2 and 3 (at2-printed)',
                  ('r', 'c'), ('startups', 'transmission', 'critical path'),
                  'As above, without the repair.')
    for r, c in SHAPES + [(12, 20)]:
        blocks, more = r * c * c // 8, PRINTED_AR.get((r, c))
        why = '' if more is None else LOCKSTEP if more[1] == blocks else \
            'c is 4 mod 8: all blocks for the opposite node of a logical ring go the same way'
        with table.row(r, c, paper=(c // 2 + 2, blocks, blocks), why=why,
                       known=more and (c // 2 + 2, *more)) as row:
            plan = torusctl.plan(f'{r}x{c}', 'at2-printed')
            row.here = plan['startups'], plan['transmission'], plan['critical_path']
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
                  ('torus', 'algorithm', 'here by', 'rearranged, by the paper'),
                  ('startups', 'transmission'),
                  'Paper: the row\'s formulas. AT2 and suh-shin, which is reconstructed, are enumerated '
                  'at every size. Of the other algorithms only the formulas are known, which '
                  'torusctl also has: their rows show that both copies are the same.')
    for d in range(2, 8):
        for algorithm, (label, formula) in COMPARED.items():
            startups, transmission, rearranged = formula(d)
            if algorithm != 'at2' and transmission < 4 ** d - 1:
                continue  # impossible with one port
            by = ENUMERATION if algorithm in ('at2', 'suh-shin') else FORMULA
            with table.row(f'{2 ** d}x{2 ** d}', label, by, rearranged, by=by,
                           paper=(startups, transmission)) as row:
                row.here = model.counted(torusctl, f'{2 ** d}x{2 ** d}', algorithm, by)
    return table


def figure_six(torusctl):
    algorithms = [(label, name) for name, (label, _) in COMPARED.items()]
    figure = Figure('all-port-fig-6', 'Fig. 6: estimated completion time over message size',
                    'message size (bytes)', 'completion time (ms)', [],
                    'Solid: from enumeration. Dashed: by formula. All with the rearranged blocks of '
                    'Table II, by the paper. The compared algorithms are for one port, as the '
                    'paper notes. It prints no values beside its curves; the parameters are its '
                    'own.')
    return model.time_panels(torusctl, figure, algorithms, model.PARAGON['rho'])


def always_faster(torusctl):
    compared = {name: label for name, (label, _) in COMPARED.items() if name != 'at2'}
    return model.faster_table(
        torusctl, 'all-port-faster',
        'Section 5: "always outperforms the other algorithms for any message size"', 'at2',
        {**compared, model.DIRECT: '[3, 4] direct'}, model.PARAGON['rho'],
        {'suh-yalamanchili': ({16: 'from 2', 32: 'from 2'}, '[6] has fewer startups'),
         model.DIRECT: ({
             16: 'up to 3501', 32: 'up to 7111', 64: 'up to 14270', 128: 'up to 28564'},
             'it rearranges nothing')})


# ---- Other sizes ---------------------------------------------------------------------------------

def lemma_four_of(sizes):
    r, c = min(sizes), max(sizes)
    return c // 2 + 2, r * c * c // 8


def imaginary_nodes(torusctl):
    return imaginary.table(
        torusctl, 'all-port-imaginary', 'Section 6: AT2 on other tori, by imaginary nodes',
        'Lemma 4', [imaginary.Case('5x5', '8x8', 'at2', lemma_four_of, (6, 47)),
                    imaginary.Case('6x6', '8x8', 'at2', lemma_four_of, (6, 56)),
                    imaginary.Case('5x7', '8x8', 'at2', lemma_four_of, (6, 62)),
                    imaginary.Case('7x9', '8x12', 'at2', lemma_four_of, (8, 131)),
                    imaginary.Case('9x9', '12x12', 'at2', lemma_four_of, (8, 174)),
                    imaginary.Case('10x14', '12x16', 'at2', lemma_four_of, (10, 380))])
