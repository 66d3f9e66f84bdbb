"""Liu, Gu, Ren, Xiong: Efficient and Scalable Algorithms for All-to-All Personalized Communication
on Multidimensional Tori."""

from math import ceil, log2, prod

from . import model
from .document import Figure, Paper, Table

EMPTY_STEP = 'logical rings of 2 nodes are one swap; the formula counts two steps'
LOCKSTEP = 'rings of different lengths in lockstep; critical path as in the paper'
PRINTED_FORM = 'the printed closed form is not what the recurrence gives from k = 8 on'


def paper(torusctl):
    return Paper(
        name='one-port',
        title='One-port tori: AR1, AT2, PTk and MTk',
        citation='Liu Gang, Gu Naijie, Ren Kaixin, Xiong Yan: Efficient and Scalable Algorithms '
                 'for All-to-All Personalized Communication on Multidimensional Tori (in Chinese).',
        parts=[ring(torusctl), table_one(torusctl), powers_of_two(torusctl), coefficients(),
               figure_seven(torusctl), always_faster(torusctl)],
        remarks=[
            'Where the largest size is 2k, so that the longest logical ring has 2 nodes, AR1 on it '
            'is one swap. The formulas count ceil(p/4) + 1 = 2 startups there: for MT3 on 6×6×6 '
            '12 instead of 9, for PT4 on 8×8×8×8 16 instead of 12, for AT2 on 4×4 6 instead of 4.',
            'The formulas count the longest rings only. Where sizes differ a barrier after every '
            'step costs more, as for the all-port algorithm; the critical path is the formula\'s.',
            'Section 6 says that AT2 and MTk have far fewer startups and blocks than Suh and Shin\'s '
            'algorithm [13]. On small tori they have not, by the formulas themselves: on 8×8 AT2 '
            'has as many of both, on 8×8×8×8 MTk has 20 startups against 12 and as many blocks.',
            'MTk ends with exchanges on lines of k nodes. The paper writes them out for k = 3; for '
            'other k it names a source and the cost, k−1 startups and floor(k²/4) blocks. Here the '
            'blocks go round the line as on a ring, floor(k/2) shifts one way and ceil(k/2)−1 the '
            'other, and the way back over the whole line is cut through. That has this cost for '
            'every k, with one port and no contention, and is the printed exchange for k = 3.',
            'PTk for k = 8: the recurrence that section 5.1 describes (twice PTk/2, then k swaps '
            'of half the blocks) gives k/2·(1 + log2 k) = 16 as the coefficient of N1·N2·…·Nk, '
            'where the printed closed form has floor(k²/4) + k/2 = 20. For k = 2 and 4 they agree.',
        ])


def ring(torusctl):
    table = Table('ar1', 'Section 3: AR1 on a ring of p nodes', ('p',),
                  ('startups', 'transmission'),
                  'ceil(p/4) + 1 startups, floor(p²/8) + p/2 blocks.')
    for p in range(4, 21, 2):
        plan = torusctl.plan(p, 'ar1')
        table.add(p, paper=(ceil(p / 4) + 1, p * p // 8 + p // 2),
                  here=(plan['startups'], plan['transmission']))
    return table


# ---- Table 1: (startups, blocks) on a torus of these sizes, the largest first --------------------

def suh_shin(sizes):
    k, longest = len(sizes), sizes[0]
    return k * (longest // 4 + 1), (k * longest / 8 + k / 2) * prod(sizes)


def at2(sizes):
    r, s = sizes[1], sizes[0]
    return 2 * ceil(s / 8) + 4, 4 * r * (s * s // 32) + 2 * r * s


def suh_yalamanchili(sizes):
    d = int(log2(sizes[0]))
    return 3 * d - 3, 9 * 2 ** (3 * d) // 16 + (d * d - 5 * d + 3) * 2 ** (2 * d - 1)


def closed_form(sizes):
    k, longest = len(sizes), sizes[0]
    return (k * k * (longest ** 2 // (8 * k * k))
            + (k * k // 4 + k / 2) * longest) * prod(sizes[1:])


def pt(sizes):
    k = len(sizes)
    return k * (ceil(sizes[0] / (4 * k)) + int(log2(k)) + 1), closed_form(sizes)


def mt(sizes):
    k = len(sizes)
    return k * ceil(sizes[0] / (4 * k)) + k * k, closed_form(sizes)


TWO = [('suh-shin', 'Suh [13]', suh_shin), ('at2-1port', 'AT2', at2)]
MORE = [('suh-shin', 'Suh [13]', suh_shin), ('mt', 'MTk', mt)]
CASES = [
    *[((n, n), TWO) for n in (4, 8, 12, 16, 32, 64)], ((12, 8), TWO), ((16, 8), TWO),
    *[((n, n), [('suh-yalamanchili', 'Suh [12]', suh_yalamanchili)]) for n in (8, 16, 32, 64)],
    ((6, 6, 6), MORE[1:]), ((12, 12, 12), MORE), ((24, 12, 12), MORE),
    ((8, 8, 8, 8), [MORE[0], ('pt', 'PTk', pt), MORE[1]]),
    ((16, 16, 8, 8), [MORE[0], ('pt', 'PTk', pt), MORE[1]]),
]


def table_one(torusctl):
    table = Table('one-port-table-1', 'Table 1: complete exchange on one-port tori',
                  ('torus', 'algorithm', 'here by'), ('startups', 'transmission', 'critical path'),
                  'Paper: the row\'s formulas. The critical path of what is only a formula is its '
                  'transmission.')
    for sizes, algorithms in CASES:
        dims = 'x'.join(map(str, sizes))
        for algorithm, label, formula in algorithms:
            counts, _ = torusctl.predict(dims, algorithm)
            startups, blocks = formula(sizes)
            here = (counts['startups'], counts['transmission'],
                    counts.get('critical_path', counts['transmission']))
            table.add(dims, label, counts['from'], paper=(startups, blocks, blocks), here=here,
                      why=reason(sizes, here, blocks))
    return table


def reason(sizes, here, blocks):
    if sizes[0] == 2 * len(sizes) and here[1:] == (blocks, blocks):
        return EMPTY_STEP
    if len(set(sizes)) > 1 and here[2] == blocks:
        return LOCKSTEP
    return ''


def powers_of_two(torusctl):
    table = Table('one-port-squares', 'Section 6: AT2 on 2^d × 2^d tori', ('torus',),
                  ('startups', 'transmission'),
                  '2^(d−2) + 4 startups, 2^(3d−3) + 2^(2d+1) blocks.')
    for d in range(3, 8):
        counts, _ = torusctl.predict(f'{2 ** d}x{2 ** d}', 'at2-1port')
        table.add(f'{2 ** d}x{2 ** d}',
                  paper=(2 ** (d - 2) + 4, 2 ** (3 * d - 3) + 2 ** (2 * d + 1)),
                  here=(counts['startups'], counts['transmission']))
    return table


def coefficients():
    table = Table('pt-coefficients', 'Section 5.1: PTk, closed form and recurrence', ('k',),
                  ('coefficient of N1·N2·…·Nk',),
                  'Of the transmission, beside the main term. Here: by the recurrence, as in the '
                  'formula pt-recurrence of torusctl predict; 8 dimensions of 16 nodes are more '
                  'than a torus here may have.')
    for k in (2, 4, 8):
        table.add(k, paper=(k * k // 4 + k / 2,), here=(recurrence(k),),
                  why=PRINTED_FORM if k >= 8 else '')
    return table


def recurrence(k):
    """AR1's p/2 blocks are half of what a node has; then PTk/2 twice, and k swaps of half."""
    return 0.5 if k == 1 else 2 * recurrence(k // 2) + k / 2


# ---- Comparison ----------------------------------------------------------------------------------

COMPARED = {'suh-yalamanchili': '[12] Suh, Yalamanchili', 'suh-shin': '[13] Suh, Shin'}


def figure_seven(torusctl):
    algorithms = [(label, name) for name, label in COMPARED.items()]
    return Figure('one-port-fig-7', 'Fig. 7: estimated completion time over message length',
                  'message length (bytes)', 'completion time (ms)',
                  model.time_panels(torusctl, [*algorithms, ('AT2, one-port', 'at2-1port')], 0),
                  'Without time for rearranging, as in the paper. Solid: from enumeration. '
                  'Dashed: by formula. The paper prints no values beside its curves.')


def always_faster(torusctl):
    return model.faster_table(
        torusctl, 'one-port-faster', 'Section 6: faster for long and short messages, on large and '
        'small networks', 'at2-1port', COMPARED, 0, {})
