"""Algorithms that the paper on all-port tori describes but does not print: the direct exchange of its references
[3, 4], and the scheme of [7, 8] that AT2 improves."""

from . import walk
from .document import Table

RECONSTRUCTED = (
    'Two algorithms that the paper only cites run here, reconstructed. For the direct exchange [3, 4] the paper '
    'gives the steps and blocks, 2^(3d−3) of both on 2^d × 2^d; the schedule (tseng-gupta) is this project\'s. In '
    'the paper\'s wormhole network a message turns a corner within a step; here it has a leg in each of two '
    'steps. For the scheme [7, 8] section 4.A gives the two parts, but neither counts nor the exchange within the '
    'groups. Here (squares) the groups run AR1 along rows and columns, an algorithm of the same authors that has '
    'the main term p²/8, which the abstract of [8] gives.')


def direct(torusctl):
    table = Table('all-port-direct', 'Section 1: the direct exchange [3, 4] on 2^d × 2^d tori', ('torus',),
                  ('steps', 'blocks', 'lower bound', 'contended steps', 'shortest paths'),
                  'Paper: 2^(3d−3) steps, and as many blocks, the lower bound; each block goes straight to its '
                  'destination. Here: enumeration of tseng-gupta.')
    for d in range(2, 6):
        dims, count = f'{2 ** d}x{2 ** d}', 2 ** (3 * d - 3)
        with table.row(dims, paper=(count, count, count, 0, True)) as row:
            plan = torusctl.plan(dims, 'tseng-gupta')
            row.here = tuple(plan[key] for key in ('startups', 'transmission', 'bound', 'contended_steps', 'minimal'))
    return table


TORI = ('4x4', '8x8', '8x12', '12x12')


def in_group(torus, source, destination, legs):
    """Whether a block, after the first two steps, is in the 2×2 sub-mesh of its source, and in the group of its
    destination."""
    node = source
    for step, dim, direction, hops in legs:
        for _ in range(hops if step < 2 else 0):
            node = torus.neighbour(node, dim, direction)
    here, start, end = (torus.coordinates(one) for one in (node, source, destination))
    return all(a // 2 == b // 2 and a % 2 == c % 2 for a, b, c in zip(here, start, end))


def previous(torusctl):
    table = Table('all-port-previous', 'Section 4.A: the previous scheme [7, 8]',
                  ('torus', 'startups', 'blocks', 'critical path', 'lower bound'),
                  ('blocks in their group after two steps', 'contended steps', 'one port', 'shortest paths',
                   'lower bound attained'),
                  'Paper: in two steps in the 2×2 sub-meshes all blocks come to the group of their destination; '
                  'the scheme keeps to one port, does not use shortest paths, and is not optimal. Here: '
                  'enumeration of squares.')
    for dims in TORI:
        torus = walk.Torus(dims)
        with table.row(dims, '-', '-', '-', '-', paper=(torus.nodes * (torus.nodes - 1), 0, True, False, False)) as row:
            plan = torusctl.plan(dims, 'squares')
            bound = walk.bounds(dims)['all-port']
            row.labels = dims, plan['startups'], plan['transmission'], plan['critical_path'], bound
            row.here = (sum(in_group(torus, source, destination, legs)
                            for source, destination, _, legs in torusctl.routes(dims, 'squares')),
                        plan['contended_steps'], plan['port_model_kept'], plan['minimal'],
                        plan['critical_path'] <= bound)
    return table
