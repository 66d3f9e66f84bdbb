"""Liu, Gu, Ren, Xiong: Efficient and Scalable Algorithms for All-to-All Personalized Communication
on Multidimensional Tori."""

from itertools import product
from math import ceil, log2, prod

from . import imaginary, model
from .document import (DEDUCTION, ENUMERATION, FORMULA, Failed, Figure, Paper, Table, parts,
                       remarks)

EMPTY_STEP = 'logical rings of 2 nodes are one swap; the formula counts two steps'
EARLIER = 'the formula takes the longest ring in every step; no node waits that long'
LOCKSTEP = 'rings of different lengths in lockstep; critical path as in the paper'
PRINTED_FORM = 'the printed closed form is not what the recurrence gives from k = 8 on'


def paper(torusctl):
    return Paper(
        name='one-port',
        title='One-port tori: AR1, AT2, PTk and MTk',
        citation='Liu Gang, Gu Naijie, Ren Kaixin, Xiong Yan: Efficient and Scalable Algorithms '
                 'for All-to-All Personalized Communication on Multidimensional Tori (in Chinese).',
        parts=parts(torusctl, (ring, orders, table_one, table_one_compared, powers_of_two,
                               coefficients, figure_seven, always_faster, fewer_of_both,
                               imaginary_nodes)),
        remarks=remarks(torusctl, (
            empty_steps,
            'at2-1port has the dimensions of the paper\'s AT2 the other way round. In section 4 the '
            'even nodes, those with x + y even, begin with their rows (dimension 1) and the odd nodes '
            'with their columns; here the even nodes begin with dimension 0, as in the paper\'s PTk '
            'with k = 2. Both dimensions are busy at the same time in either case, so that the counts '
            'are the same. MTk has the order of the paper.',
            'The formulas count the longest rings only. Where sizes differ a barrier after every '
            'step can cost more, as for the all-port algorithm; the critical path is the formula\'s, or '
            'less (PTk on 16×8×8×8).',
            smaller_tori,
            'Section 6 says that AT2 is faster than the known algorithms with long and with short '
            'messages. The direct exchanges [6, 7] are faster with long ones: by section 1 they '
            'transmit no more blocks than the lower bound of lemma 1, 2^(3d−3) on 2^d × 2^d, in as '
            'many startups. Section 1 itself recommends them for such messages.',
            'MTk ends with exchanges on lines of k nodes. The paper writes them out for k = 3; for '
            'other k it names a source and the cost, k−1 startups and floor(k²/4) blocks. Here the '
            'blocks go round the line as on a ring, floor(k/2) shifts one way and ceil(k/2)−1 the '
            'other, and the way back over the whole line is cut through. That has this cost for '
            'every k, with one port and no contention, and is the printed exchange for k = 3.',
            'PTk for k = 8: the recurrence that section 5.1 describes (twice PTk/2, then k swaps '
            'of half the blocks) gives k/2·(1 + log2 k) = 16 as the coefficient of N1·N2·…·Nk, and '
            'so do the blocks counted by classes, where the printed closed form has floor(k²/4) + '
            'k/2 = 20. For k = 2 and 4 they agree.',
            'Section 7 says that imaginary nodes make the algorithms run on every torus, not what '
            'that costs. With one port it is expensive: a node handles the messages of all '
            'imaginary nodes that it hosts one after another.',
        )))


def empty_steps(torusctl):
    cases = [f'{name} on {"×".join(map(str, sizes))} ({formula(sizes)[0]} instead of {startups})'
             for sizes, algorithm, name, formula in (
                 ((4, 4), 'at2-1port', 'AT2', at2), ((6, 6, 6), 'mt', 'MT3', mt),
                 ((8, 8, 8, 8), 'pt', 'PT4', pt))
             for startups in [torusctl.plan('x'.join(map(str, sizes)), algorithm)['startups']]
             if startups < formula(sizes)[0]]
    return ('Where the largest size is 2k, so that the longest logical ring has 2 nodes, AR1 on it is '
            'one swap. The formulas count ceil(p/4) + 1 = 2 startups there, and so too many for '
            f'{", ".join(cases)}.')


def smaller_tori(torusctl):
    small = [f'{label} on {dims.replace("x", "×")} ({ours} against {other})'
             for dims, algorithm, label, known in AGAINST_SUH_SHIN if known is not None
             for ours, other in [[f'{startups:g} and {blocks:g}' for startups, blocks in
                                  both(torusctl, dims, algorithm)]]]
    return ('Section 6 says that AT2 and MTk have far fewer startups and blocks than Suh and Shin\'s '
            'algorithm [13]. On small tori they do not have fewer of both: '
            f'{", ".join(small)}.')


# ---- The order of the dimensions -----------------------------------------------------------------

ROUNDS = [  # torus, algorithm, its name, nodes, which they are, the dimensions that they take in turn
    ('8x8', 'at2-1port', 'AT2', 0, 'x + y even', '1 0'),
    ('8x8', 'at2-1port', 'AT2', 1, 'x + y odd', '0 1'),
    ('12x12x12', 'mt', 'MT3', 0, 'x + y + z = 0 mod 3', '0 1 2'),
    ('12x12x12', 'mt', 'MT3', 1, 'x + y + z = 1 mod 3', '1 2 0'),
    ('12x12x12', 'mt', 'MT3', 2, 'x + y + z = 2 mod 3', '2 0 1'),
]


def orders(torusctl):
    table = Table('one-port-orders', 'Sections 4 and 5.2: the order of the dimensions in phase 1',
                  ('torus', 'algorithm', 'nodes'), ('dimensions',),
                  'The dimensions along which nodes of a group run AR1, one after another; in the '
                  'paper rows are along y, dimension 1. Here: what a node of the group sends.')
    for dims, algorithm, name, node, group, order in ROUNDS:
        known = ' '.join(reversed(order.split())) if algorithm == 'at2-1port' else None
        with table.row(dims, name, group, paper=(order,), known=known and (known,),
                       why=known and 'the dimensions change places' or '') as row:
            found = []
            for message in torusctl.plan(dims, algorithm, '--node', node)['messages']:
                if message['does'] == 'sends' and message['port'][1:] not in found:
                    found.append(message['port'][1:])
            row.here = (' '.join(found),)
    return table


def ring(torusctl):
    table = Table('ar1', 'Section 3: AR1 on a ring of p nodes', ('p',),
                  ('startups', 'transmission'),
                  'ceil(p/4) + 1 startups, floor(p²/8) + p/2 blocks.')
    for p in range(4, 21, 2):
        with table.row(p, paper=(ceil(p / 4) + 1, p * p // 8 + p // 2)) as row:
            plan = torusctl.plan(p, 'ar1')
            row.here = plan['startups'], plan['transmission']
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


AT2, PTK, MTK = ('at2-1port', 'AT2', at2), ('pt', 'PTk', pt), ('mt', 'MTk', mt)
CASES = [
    *[((n, n), AT2) for n in (4, 8, 12, 16, 32, 64)], ((12, 8), AT2), ((16, 8), AT2),
    *[(sizes, MTK) for sizes in ((6, 6, 6), (12, 12, 12), (24, 12, 12))],
    *[(sizes, algorithm) for sizes in ((8, 8, 8, 8), (16, 8, 8, 8)) for algorithm in (PTK, MTK)],
]
KNOWN = {  # torus, algorithm: startups, transmission, critical path, contended steps; why
    ('4x4', 'AT2'): ((4, 32, 32, 0), EMPTY_STEP),
    ('12x8', 'AT2'): ((8, 352, 320, 0), LOCKSTEP),
    ('6x6x6', 'MTk'): ((9, 756, 756, 0), EMPTY_STEP),
    ('8x8x8x8', 'PTk'): ((12, 24576, 24576, 0), EMPTY_STEP),
    ('8x8x8x8', 'MTk'): ((16, 24576, 24576, 0), EMPTY_STEP),
    ('16x8x8x8', 'PTk'): ((16, 65536, 61440, 0), EARLIER),
}


def table_one(torusctl):
    table = Table('one-port-table-1', 'Table 1: complete exchange on one-port tori',
                  ('torus', 'algorithm'),
                  ('startups', 'transmission', 'critical path', 'contended steps'),
                  'Paper: the row\'s formulas, and that there is no contention.')
    for sizes, (algorithm, label, formula) in CASES:
        dims = 'x'.join(map(str, sizes))
        startups, blocks = formula(sizes)
        known, why = KNOWN.get((dims, label), (None, ''))
        with table.row(dims, label, paper=(startups, blocks, blocks, 0), known=known,
                       why=why) as row:
            plan = torusctl.plan(dims, algorithm)
            row.here = tuple(plan[key] for key in ('startups', 'transmission', 'critical_path',
                                                   'contended_steps'))
    return table


def table_one_compared(torusctl):
    table = Table('one-port-table-1-compared', 'Table 1: the algorithms compared',
                  ('torus', 'algorithm'), ('startups', 'transmission'),
                  'On two dimensions suh-shin, which is reconstructed, is enumerated. Otherwise only '
                  'the formulas of [12] and [13] are known, which torusctl also has: these rows show '
                  'that both copies are the same.')
    for name, label, formula, shapes in (
            ('suh-yalamanchili', '[12]', suh_yalamanchili, ('8x8', '16x16', '64x64')),
            ('suh-shin', '[13]', suh_shin, ('8x8', '12x8', '64x64', '24x12x12', '16x16x8x8'))):
        for dims in shapes:
            sizes = [int(size) for size in dims.split('x')]
            by = ENUMERATION if name == 'suh-shin' and len(sizes) == 2 else FORMULA
            with table.row(dims, label, paper=formula(sizes), by=by) as row:
                row.here = model.counted(torusctl, dims, name, by)
    return table


def powers_of_two(torusctl):
    table = Table('one-port-squares', 'Section 6: AT2 on 2^d × 2^d tori', ('torus',),
                  ('startups', 'transmission'),
                  '2^(d−2) + 4 startups, 2^(3d−3) + 2^(2d+1) blocks.')
    for d in range(3, 8):
        dims = f'{2 ** d}x{2 ** d}'
        with table.row(dims, paper=(2 ** (d - 2) + 4, 2 ** (3 * d - 3) + 2 ** (2 * d + 1))) as row:
            row.here = model.counted(torusctl, dims, 'at2-1port', ENUMERATION)
    return table


def coefficients(torusctl):
    table = Table('pt-coefficients', 'Section 5.1: PTk, closed form and recurrence',
                  ('k', 'torus', 'by the recurrence', 'here by'),
                  ('coefficient of N1·N2·…·Nk',),
                  'Of the transmission, beside the main term, which is 0 where all sizes are 2k. '
                  'Paper: the closed form. torusctl enumerates k = 2 and 4. A torus of 8 '
                  'dimensions of 16 nodes has more nodes than torusctl takes; there the blocks of '
                  'each step are counted by classes of sources and destinations, as they are for '
                  '2 and 4 too, which must give torusctl\'s counts.')
    for k in (2, 4, 8):
        dims, nodes = 'x'.join([str(2 * k)] * k), (2 * k) ** k
        known = (16.0,) if k == 8 else None
        with table.row(k, dims.replace('x'.join(['16'] * 8), '16^8'), recurrence(k),
                       'classes' if k == 8 else 'torusctl', paper=(k * k // 4 + k / 2,),
                       known=known, why=PRINTED_FORM if known else '') as row:
            loads = loads_by_classes(k)
            if k < 8:
                plan = torusctl.plan(dims, 'pt')
                if (plan['startups'], plan['transmission']) != (len(loads), sum(loads)):
                    raise Failed(f'pt on {dims}: {len(loads)} steps and {sum(loads)} blocks by '
                                 f'classes, {plan["startups"]} and {plan["transmission"]} by plan')
            row.here = (sum(loads) / nodes,)
    return table


def recurrence(k):
    """AR1's p/2 blocks are half of a node's blocks; then follow PTk/2 twice, and k swaps of half the blocks."""
    return 0.5 if k == 1 else 2 * recurrence(k // 2) + k / 2


def loads_by_classes(k):
    """The blocks that a node sends in each step of PTk on a torus of k dimensions of 2k nodes. The
    blocks that pass a node belong to a class for each dimension: where they come from and where
    they go to along it. Section 5.1 from the inside out: exchanges on rings of every k-th node,
    which have two nodes; then at each doubling of the dimensions a swap with the node of the other
    parity, in logical tori of half the stride. A step in one dimension moves the same share of
    each class of all others; which dimension it is depends on the node's parities alone."""
    size = 2 * k
    moved = {}  # blocks, by the stride of the step
    stride = k
    while stride >= 1:
        pairs = [(a, b) for a, b in product(range(size), repeat=2)
                 if a // stride % 2 != b // stride % 2]
        moved[stride] = len(pairs) * size ** k // size ** 2
        stride //= 2
    loads = [moved[k]]  # one dimension
    dims = 1
    while dims < k:
        dims *= 2
        loads = 2 * loads + dims * [moved[k // dims]]
    return loads


# ---- Comparison ----------------------------------------------------------------------------------

COMPARED = {'suh-yalamanchili': '[12] Suh, Yalamanchili', 'suh-shin': '[13] Suh, Shin'}
AGAINST_SUH_SHIN = [  # torus, algorithm, its name: (fewer startups, fewer blocks), or None if it has fewer of both
    ('8x8', 'at2-1port', 'AT2', (False, False)), ('16x16', 'at2-1port', 'AT2', None),
    ('64x64', 'at2-1port', 'AT2', None), ('12x12x12', 'mt', 'MTk', (False, True)),
    ('24x12x12', 'mt', 'MTk', None), ('8x8x8x8', 'mt', 'MTk', (False, False)),
    ('8x8x8x8', 'pt', 'PTk', (False, False))]


def figure_seven(torusctl):
    algorithms = [*((label, name) for name, label in COMPARED.items()),
                  ('AT2, one-port', 'at2-1port')]
    figure = Figure('one-port-fig-7', 'Fig. 7: estimated completion time over message length',
                    'message length (bytes)', 'completion time (ms)', [],
                    'Without time for rearranging, as in the paper. Solid: from enumeration. '
                    'Dashed: by formula. The paper prints no values beside its curves.')
    return model.time_panels(torusctl, figure, algorithms, 0)


def always_faster(torusctl):
    return model.faster_table(
        torusctl, 'one-port-faster', 'Section 6: faster for long and short messages, on large and '
        'small networks', 'at2-1port', {**COMPARED, model.DIRECT: '[6, 7] direct'}, 0,
        {model.DIRECT: ({
            16: 'up to 6711', 32: 'up to 13596', 64: 'up to 27256', 128: 'up to 54537'},
            'it transmits fewer blocks')})


def both(torusctl, dims, algorithm):
    """(startups, blocks) of the algorithm, and of Suh and Shin's."""
    plan = torusctl.plan(dims, algorithm)
    return ((plan['startups'], plan['transmission']),
            model.counted(torusctl, dims, 'suh-shin', ENUMERATION if dims.count('x') == 1 else FORMULA))


def fewer_of_both(torusctl):
    table = Table('one-port-fewer', 'Section 6: fewer startups and fewer blocks than Suh and Shin\'s '
                  'algorithm [13]', ('torus', 'algorithm', 'startups, blocks', 'of [13]'),
                  ('fewer startups', 'fewer blocks'),
                  'The paper says "far fewer" of both. The algorithm\'s own counts are enumerated.')
    for dims, algorithm, label, known in AGAINST_SUH_SHIN:
        with table.row(dims, label, '-', '-', paper=(True, True), known=known, by=DEDUCTION,
                       why='a small torus' if known else '') as row:
            ours, other = both(torusctl, dims, algorithm)
            row.labels = (*row.labels[:2], f'{ours[0]:g}, {ours[1]:g}',
                          f'{other[0]:g}, {other[1]:g}')
            row.here = ours[0] < other[0], ours[1] < other[1]
    return table


# ---- Other sizes ---------------------------------------------------------------------------------

def imaginary_nodes(torusctl):
    return imaginary.table(
        torusctl, 'one-port-imaginary', 'Section 7: AT2 and MTk on other tori, by imaginary nodes',
        'Table 1', [imaginary.Case('5x5', '8x8', 'at2-1port', table_at2, (24, 304)),
                    imaginary.Case('6x6', '8x8', 'at2-1port', table_at2, (32, 516)),
                    imaginary.Case('7x9', '8x12', 'at2-1port', table_at2, (36, 1006)),
                    imaginary.Case('9x9', '12x12', 'at2-1port', table_at2, (40, 1197)),
                    imaginary.Case('3x4x5', '6x6x6', 'mt', mt, (23, 766))])


def table_at2(sizes):
    return at2(sorted(sizes, reverse=True))
