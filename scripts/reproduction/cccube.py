"""Diaz de Cerio, Valero-Garcia, Gonzalez: Complete Exchange Algorithms for Meshes and Tori Using a
Systematic Approach."""

from math import ceil, floor, log2, sqrt

from . import model, walk
from .cube import cube, vectors
from .document import (DEDUCTION, ENUMERATION, Curve, Failed, Figure, Panel, Paper, Table, parts,
                       remarks)
from .model import PARAGON, SIZES

SHARED = 'messages that need the same channel take turns'
WHOLE = 'packets are whole blocks'
UNNAMED = 'the paper names neither proposals nor sizes'


def paper(torusctl):
    return Paper(
        name='cccube',
        title='Meshes and tori by a systematic approach: the CC-cube',
        citation='Díaz de Cerio L., Valero-García M., González A.: Complete Exchange Algorithms for '
                 'Meshes and Tori Using a Systematic Approach.',
        parts=parts(torusctl, (figure_one, embeddings, pipelining, ports, best_degree, time_by_degree,
                               costs, twice_as_fast, direct_exchange)),
        remarks=remarks(torusctl, (
            'The paper is "a strongly reduced version" of a report. It has the algorithm (section 4, '
            'Fig. 1) and the cost of a message without conflicts, t_s + d·t_p + N·t_e, but neither '
            'the two embeddings nor the routing nor any formula or plot of the resulting costs; it '
            'takes these from its references. The values under "deduced" here follow from '
            'that cost: d + Q − 1 steps of 2^(d−1)/Q blocks, without conflicts.',
            'The embeddings are reconstructed. The bits of a node are dealt to the dimensions in '
            'turn, so that iterations which follow each other use different ones. Mesh (standard): '
            'the bits of a coordinate as they are. Ring (xor): the second highest bit XOR the '
            'highest, so that both are a quarter of the ring away.',
            'Section 3 demands routes without conflicts, "optimal in terms of communication cost", '
            'by dimension order and minimal, and does not say how. On hypercubes and on rings of 4 '
            'no channel is shared, and all counts are the paper\'s. On rings of 8 nodes or more and on '
            'arrays of 4 or more the nodes of some iterations are 2 or more hops apart, and with these '
            'embeddings as many messages as there are hops need the channel in the middle between '
            'them. Here they leave one after another, in as many steps as there are on the '
            'busiest channel: no conflicts, but more startups and blocks than d + Q − 1 steps.',
            against_direct,
        )))


def against_direct(torusctl):
    direct, shared = [[f'{part(torusctl, dims, algorithm, 16384):.2f} ({walk.label(dims)})'
                       for dims in SQUARES] for algorithm in (model.DIRECT, 'direct')]
    return ('Section 5 finds the algorithms "about twice as fast as the best previous proposal" in '
            'many cases. The paper does not say which proposals it compares, on which machines and with '
            'which sizes; here they are the older ones whose counts torusctl has. Two of these send '
            'every block straight to its destination. The direct exchanges that the paper on all-port '
            'tori cites as [3, 4] are free of contention, and take 2^(3d−3) steps and blocks on a '
            '2^d × 2^d torus. tseng-gupta has these counts. With blocks of 16 KiB '
            f'it takes {" and ".join(direct)} of the CC-cube\'s time. The exchange direct lets messages share '
            'channels and takes '
            f'{" and ".join(shared)} of it.')


# ---- The algorithm -------------------------------------------------------------------------------

def name(degree, ports=None):
    base = f'cccube-k{ports}' if ports else 'cccube'
    return base if degree == 1 else f'{base}-q{degree}'


def figure_one(torusctl):
    table = Table('cccube-figure-1', 'Fig. 1: what nodes 0 to 3 send in each iteration, d = 3',
                  ('iteration', 'node'), ('blocks of x_i, in their order',),
                  'Paper: section 4 carried out on the vectors M (x_0 of node 0, which the text '
                  'spells out, is 07 05 03 01); all blocks end where they belong. Here: '
                  'torusctl\'s cccube-q4 on the hypercube, whose packets are single blocks, so that '
                  'their order shows.')
    sent = vectors(3)
    routes = []
    for i in range(3):
        for m in range(4):
            with table.row(i, m, paper=(named(sent[m, i]),)) as row:
                routes = routes or torusctl.routes('2mx2mx2m', name(4))
                row.here = (named(sends(routes, m, i)),)
    return table


def named(blocks):
    return ' '.join(f'{source}{destination}' for source, destination in blocks)


def sends(routes, node, iteration):
    """The blocks that leave a node in an iteration, which has a dimension of its own."""
    leaving = []
    for source, destination, _, legs in routes:
        at = source
        for step, dim, _, _ in legs:
            if (at, dim) == (node, 2 - iteration):
                leaving.append((step, source, destination))
            at ^= 1 << (2 - dim)
    return [tuple(block) for _, *block in sorted(leaving)]


# ---- Embeddings ----------------------------------------------------------------------------------

def distance(size, wraps, bit):
    """Hops between nodes that differ in a bit of the hypercube's number, by the embedding."""
    return size // 4 if wraps and size > 2 and 2 << bit == size else 1 << bit


def embeddings(torusctl):
    table = Table('cccube-embedding', 'Embeddings: dilation and congestion of each iteration',
                  ('network', 'average dilation'), ('dilation', 'congestion'),
                  'Dilation: the hops between the nodes that exchange in iterations 0, 1 …. '
                  'Congestion: the most messages of an iteration that cross one channel, all the '
                  'shortest path. Deduced: by the definition (bit b of a coordinate is 2^b hops away, '
                  'the two highest of a ring a quarter of it), and no conflicts. Here: all messages '
                  'followed; torusctl\'s cccube must have legs of these hops, in as many steps as '
                  'messages cross a channel, with one message on each.',
                  source='deduced')
    for dims in ('2mx2mx2mx2m', '4x4', '4x4x4', '4x8', '8x8', '16x16', '16', '4mx4m', '8mx8m', '16m'):
        net = cube(dims)
        torus, every = net.torus, range(net.d)
        expected = [distance(torus.sizes[dim], torus.wraps[dim], bit) for dim, bit in net.bits]
        shared = max(expected) > 1
        with table.row(walk.label(dims), sum(expected) / net.d,
                       paper=(listed(expected), listed([1] * net.d)),
                       known=(listed(expected), listed(expected)) if shared else None,
                       why=SHARED if shared else '') as row:
            row.here = listed(map(net.dilation, every)), listed(map(net.congestion, every))
            if torus.nodes <= 64:
                walked = torusctl.walk(dims, name(1))
                steps = [net.dilation(i) for i in every for _ in range(net.congestion(i))]
                if walked.legs != steps or walked.contended:
                    raise Failed(f'cccube on {dims} has legs of {listed(walked.legs)} hops, and '
                                 f'{walked.contended} contended steps')
    return table


def listed(numbers):
    return ' '.join(map(str, numbers))


# ---- Pipelining ----------------------------------------------------------------------------------

SHARING = {  # network, Q: startups, transmission, contended steps
    ('8x8', 1): (10, 320, 0),
    ('8x8', 2): (12, 192, 0),
    ('8x8', 4): (16, 128, 0),
    ('8x8', 8): (29, 116, 0),
    ('8x8', 16): (53, 106, 0),
    ('8x8', 32): (101, 101, 0),
    ('4mx4m', 1): (6, 48, 0),
    ('4mx4m', 2): (8, 32, 0),
    ('4mx4m', 4): (12, 24, 0),
    ('4mx4m', 8): (20, 20, 0),
    ('8mx8m', 1): (14, 448, 0),
    ('8mx8m', 2): (18, 288, 0),
    ('8mx8m', 4): (26, 208, 0),
    ('8mx8m', 8): (47, 188, 0),
    ('8mx8m', 16): (87, 174, 0),
    ('8mx8m', 32): (167, 167, 0),
}


def free(d, degree):
    """(startups, blocks) if no channel is shared."""
    return d + degree - 1, (d + degree - 1) * 2 ** (d - 1) / degree


def pipelining(torusctl):
    table = Table('cccube-pipelining', 'Communication pipelining of degree Q, all ports',
                  ('network', 'Q', 'bound'), ('startups', 'transmission', 'contended steps'),
                  'Q = 1 is the algorithm without pipelining. Deduced: d + Q − 1 startups, '
                  '(d + Q − 1)·2^(d−1)/Q blocks, no conflicts. Here: torusctl\'s cccube-qQ; all '
                  'packets, followed independently of it, must come to the same. Bound: what a cut '
                  'through the middle of a dimension asks of each channel. The 4×4 torus is the '
                  'hypercube, too, and has its bound.',
                  source='deduced')
    for dims, degrees in (('2mx2mx2mx2m', (1, 2, 4, 8)), ('4x4', (1, 2, 4, 8)),
                          ('4x4x4', (1, 2, 4, 8, 16, 32)), ('8x8', (1, 2, 4, 8, 16, 32)),
                          ('4mx4m', (1, 2, 4, 8)), ('8mx8m', (1, 2, 4, 8, 16, 32))):
        net = cube(dims)
        for degree in degrees:
            known = SHARING.get((dims, degree))
            with table.row(walk.label(dims), degree, '-', paper=(*free(net.d, degree), 0), known=known,
                           why=SHARED if known else '') as row:
                plan = torusctl.plan(dims, name(degree))
                row.here = plan['startups'], plan['transmission'], plan['contended_steps']
                if row.here[:2] != net.counts(degree):
                    raise Failed(f'torusctl says {row.here[0]} startups and {row.here[1]} blocks, the '
                                 f'packets come to {net.counts(degree)}')
                row.labels = walk.label(dims), degree, plan['bound']
    return table


def startups_with_ports(d, degree, k):
    """The startups if a node sends at most k messages in a step. The number of iterations that overlap grows from
    1 to the most that can overlap, and falls again."""
    most = min(d, degree)
    ramps = 2 * sum(ceil(active / k) for active in range(1, most))
    return ramps + (d + degree - 1 - 2 * (most - 1)) * ceil(most / k)


def ports(torusctl):
    table = Table('cccube-ports', 'One port and k ports', ('network', 'ports k', 'Q'),
                  ('startups', 'transmission'),
                  'A step in which a node has more than k packets to send is divided. Deduced: '
                  '2·(⌈1/k⌉ + … + ⌈(a−1)/k⌉) + (d + Q + 1 − 2a)·⌈a/k⌉ startups, where a is the '
                  'smaller of d and Q, of 2^(d−1)/Q blocks each. Here: torusctl\'s cccube-k1, -k2 and -k4; all '
                  'packets, followed independently of it, must come to the same. With one port '
                  'pipelining costs startups and gains nothing.',
                  source='deduced')
    for dims in ('2mx2mx2mx2m', '4x4', '4x4x4'):
        net = cube(dims)
        for k in (1, 2, 4):
            for degree in (1, 2, 4, 8):
                startups = startups_with_ports(net.d, degree, k)
                with table.row(walk.label(dims), k, degree,
                               paper=(startups, startups * net.blocks / degree)) as row:
                    plan = torusctl.plan(dims, name(degree, k))
                    row.here = plan['startups'], plan['transmission']
                    if row.here != net.counts(degree, k):
                        raise Failed(f'torusctl says {row.here[0]} startups and {row.here[1]} blocks, the '
                                     f'packets come to {net.counts(degree, k)}')
    return table


# ---- The degree ----------------------------------------------------------------------------------

def price(startups, blocks, size):
    """Milliseconds."""
    return (startups * PARAGON['ts'] + blocks * size * PARAGON['tw']) / 1000


def counts(torusctl, dims, degree):
    """(startups, blocks) as torusctl enumerates them."""
    return model.counted(torusctl, dims, name(degree), ENUMERATION)


def best(torusctl, dims, size):
    """(milliseconds, degree) of the fastest degree."""
    return min((price(*counts(torusctl, dims, degree), size), degree)
               for degree in range(1, cube(dims).blocks + 1))


def optimum(d, size):
    """The whole number Q from 1 to 2^(d−1) for which (d + Q − 1)·(ts + 2^(d−1)/Q · m·tw) is least: one of the two
    beside the root of the derivative."""
    root = sqrt((d - 1) * 2 ** (d - 1) * size * PARAGON['tw'] / PARAGON['ts'])
    whole = {min(max(1, round_(root)), 2 ** (d - 1)) for round_ in (floor, ceil)}
    return min(whole, key=lambda degree: price(*free(d, degree), size))


BEST = {  # network, bytes: degree, milliseconds; why
    ('4x4x4', 1024): ((4, 1.486), WHOLE),
    ('4x4x4', 16384): ((16, 9.144), WHOLE),
    ('8x8', 64): ((1, 0.9753), SHARED),
    ('8x8', 1024): ((4, 2.642), SHARED),
    ('8x8', 16384): ((11, 23.04), SHARED),
    ('8mx8m', 64): ((1, 1.365), SHARED),
    ('8mx8m', 1024): ((4, 4.293), SHARED),
    ('8mx8m', 16384): ((8, 37.41), SHARED),
}


def best_degree(torusctl):
    table = Table('cccube-best', 'The best degree of pipelining',
                  ('network', 'block (bytes)', 'without pipelining (ms)'),
                  ('Q', 'time (ms)'),
                  'Deduced: Q = √((d−1)·2^(d−1)·m·t_e/t_s), where (d + Q − 1)·(t_s + 2^(d−1)/Q·m·t_e) is '
                  'least, without conflicts. Here: the fastest of all degrees by its enumerated '
                  'counts; packets are whole blocks. torusctl\'s cccube-best must be the same. All '
                  'ports, Paragon parameters, t_p = 0.',
                  source='deduced')
    for dims in ('4x4', '4x4x4', '8x8', '8mx8m'):
        d = cube(dims).d
        for size in (64, 1024, 16384):
            degree = optimum(d, size)
            known, why = BEST.get((dims, size), (None, ''))
            with table.row(walk.label(dims), size, '-', known=known, why=why,
                           paper=(degree, shown(price(*free(d, degree), size)))) as row:
                time, found = best(torusctl, dims, size)
                row.here = found, shown(time)
                row.labels = (*row.labels[:2], price(*counts(torusctl, dims, 1), size))
                if chosen(torusctl, dims, size) != found:
                    raise Failed(f'torusctl takes Q = {chosen(torusctl, dims, size)}, not {found}')
    return table


def chosen(torusctl, dims, size):
    """The degree of torusctl's cccube-best."""
    member, _ = torusctl.predict(dims, 'cccube-best', *model.parameters(0), '--block-size', size)
    return 1 if member['algorithm'] == 'cccube' else int(member['algorithm'].removeprefix('cccube-q'))


def shown(time):
    return float(f'{time:.4g}')


def time_by_degree(torusctl):
    figure = Figure('cccube-degree', 'Time over the degree of pipelining', 'degree Q', 'time (ms)', [],
                    'All ports, Paragon parameters. From enumeration; without sharing channels: '
                    '(d + Q − 1)·(t_s + 2^(d−1)/Q·m·t_e).')
    for dims in ('4x4x4', '8x8', '8mx8m', '16x16'):
        degrees = [1 << power for power in range(cube(dims).d)]
        panel = Panel(f'{walk.label(dims)}, blocks of 1 KiB', [])
        figure.panels.append(panel)
        with figure.curve(panel, 'enumerated'):
            panel.curves.append(Curve('enumerated', degrees, [
                price(*counts(torusctl, dims, degree), 1024) for degree in degrees]))
        panel.curves.append(Curve('if no channel were shared', degrees, [
            price(*free(cube(dims).d, degree), 1024) for degree in degrees], dashed=True))
    return figure


# ---- Cost comparison -----------------------------------------------------------------------------

OLDER = {'tseng': 'Tseng et al.', 'suh-yalamanchili': 'Suh, Yalamanchili',
         model.DIRECT: 'direct, no contention', 'direct': 'direct, shared channels'}
COMPARED = {  # network, ports of the CC-cube: older algorithms
    ('8x8', None): tuple(OLDER),
    ('16x16', None): tuple(OLDER),
    ('8x8', 1): ('tseng', 'suh-yalamanchili', model.DIRECT),
    ('8mx8m', None): ('direct',),
}
NOT_DRAWN = {('4x4', None): ('tseng', 'direct')}
SQUARES = ('8x8', '16x16')


OURS = {  # by ports; with one port pipelining gains nothing
    None: (('cccube', 'CC-cube, Q = 1'), ('cccube-best', 'CC-cube, best Q')),
    1: (('cccube', 'CC-cube, Q = 1'),),
}


def times(torusctl, dims, algorithm):
    _, rows = torusctl.predict(dims, algorithm, *model.parameters(0), '--block-size',
                               listed(SIZES).replace(' ', ','))
    return [row['time_us'] / 1000 for row in rows]


def costs(torusctl):
    figure = Figure('cccube-cost', 'Cost of complete exchange over block size', 'block (bytes)',
                    'time (ms)', [],
                    'Solid: from enumeration. Dashed: by formula, for one port. Paragon parameters, '
                    't_p = 0, without time for rearranging. The paper prints no plot; the older '
                    'algorithms are those whose counts torusctl has.')
    for (dims, k), older in COMPARED.items():
        panel = Panel(f'{walk.label(dims)}, {"one port" if k else "all ports"}', [])
        figure.panels.append(panel)
        for algorithm, label in (*((one, OLDER[one]) for one in older), *OURS[k]):
            with figure.curve(panel, label):
                panel.curves.append(Curve(label, SIZES, times(torusctl, dims, algorithm),
                                          dashed=algorithm in OLDER and algorithm not in (model.DIRECT, 'direct')))
        with figure.curve(panel, 'lower bound'):
            bound = torusctl.plan(dims, 'cccube')['bound']
            blocks = max(bound, cube(dims).torus.nodes - 1) if k else bound
            panel.curves.append(Curve('lower bound', SIZES,
                                      [price(1, blocks, size) for size in SIZES], bound=True))
    return figure


RATIOS = {  # network, ports, bytes: how many times as fast
    ('4x4', None, 64): 1.0,
    ('4x4', None, 1024): 1.1,
    ('4x4', None, 16384): 1.4,
    ('8x8', None, 64): 0.6,
    ('8x8', None, 1024): 0.99,
    ('8x8', None, 16384): 0.71,
    ('16x16', None, 64): 0.53,
    ('16x16', None, 1024): 1.0,
    ('16x16', None, 16384): 0.8,
    ('8x8', 1, 64): 0.6,
    ('8x8', 1, 1024): 0.6,
    ('8x8', 1, 16384): 0.28,
    ('8mx8m', None, 64): 3.5,
    ('8mx8m', None, 1024): 1.6,
    ('8mx8m', None, 16384): 0.96,
}


def twice_as_fast(torusctl):
    table = Table('cccube-twice', 'Section 5: "in many cases … about twice as fast as the best '
                  'previous proposal"', ('network', 'ports', 'block (bytes)', 'best older one', 'Q'),
                  ('times as fast',),
                  'By the counts of the plots above, and on a torus on which the CC-cube shares no '
                  'channel. Q: the best one. Where the CC-cube uses all ports, the older algorithms '
                  'still use one, except the two direct ones. With one port tseng-gupta needs the messages '
                  'of a wormhole network, which turn a corner within a step.')
    for (dims, k), older in {**NOT_DRAWN, **COMPARED}.items():
        for size in (64, 1024, 16384):
            known = RATIOS.get((dims, k, size))
            with table.row(walk.label(dims), 'one' if k else 'all', size, '-', '-', paper=(2.0,),
                           by=DEDUCTION, known=known and (known,), why=UNNAMED if known else '') as row:
                at = SIZES.index(size)
                fastest, other = min((times(torusctl, dims, algorithm)[at], algorithm)
                                     for algorithm in older)
                time = min(times(torusctl, dims, algorithm)[at] for algorithm, _ in OURS[k])
                row.labels = (*row.labels[:3], OLDER[other],
                              1 if k else chosen(torusctl, dims, size))
                row.here = (float(f'{fastest / time:.2g}'),)
    return table


def part(torusctl, dims, algorithm, size):
    """The time of an algorithm by torusctl, as a fraction of the CC-cube's time with the best degree."""
    at = SIZES.index(size)
    return times(torusctl, dims, algorithm)[at] / times(torusctl, dims, 'cccube-best')[at]


def direct_exchange(torusctl):
    table = Table('cccube-direct', 'Direct exchange without contention',
                  ('torus', 'block (bytes)', 'Q', 'CC-cube (ms)'),
                  ('startups', 'transmission', 'part of the CC-cube\'s time'),
                  'The direct exchanges of Lam, Huang and Sadayappan and of Tseng and Gupta (tseng-gupta). Deduced: '
                  '2^(3d−3) startups and blocks, by section 1 of the paper on all-port tori, and the '
                  'CC-cube\'s packets followed with every degree. Here: enumeration by torusctl predict. '
                  'All ports; parameters as above.',
                  source='deduced')
    for dims in SQUARES:
        net = cube(dims)
        blocks = 2 ** (3 * int(log2(net.torus.sizes[0])) - 3)
        for size in (64, 1024, 16384):
            least = min(price(*net.counts(degree), size) for degree in range(1, net.blocks + 1))
            with table.row(walk.label(dims), size, '-', '-', paper=(
                    blocks, blocks, hundredths(price(blocks, blocks, size) / least))) as row:
                row.labels = (*row.labels[:2], chosen(torusctl, dims, size),
                              shown(times(torusctl, dims, 'cccube-best')[SIZES.index(size)]))
                row.here = (*model.counted(torusctl, dims, model.DIRECT, ENUMERATION),
                            hundredths(part(torusctl, dims, model.DIRECT, size)))
    return table


def hundredths(ratio):
    return round(ratio, 2)
