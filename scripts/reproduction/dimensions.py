"""Yang, Wang: All-to-All Communication: theorem 1, and the broadcast pattern in more than two dimensions."""

from math import ceil

from . import walk
from .document import Failed, Table


def lower_bounds(torusctl):
    table = Table('broadcast-theorem-1', 'Theorem 1: lower bounds in transmissions of a message (Lγ)',
                  ('network',), ('one-to-all', 'all-to-all'),
                  'Beside α + δ. Paper: 2⌊n/2⌋ and (n²−1)/4 on an n×n torus, 2(n−1) and (n²−1)/2 on an '
                  'n×n mesh, taken up to whole messages. Here: torusctl bounds; its one-to-all bound '
                  'must be the number of rounds that a flood of all channels needs from the worst source.')
    for n in range(3, 9):
        for mesh in ('', 'm'):
            dims = f'{n}{mesh}x{n}{mesh}'
            paper = (2 * (n - 1), ceil((n * n - 1) / 2)) if mesh else (2 * (n // 2), ceil((n * n - 1) / 4))
            with table.row(walk.label(dims), paper=paper) as row:
                found = torusctl('bounds', '--dims', dims)['broadcasts']
                rounds = max(len(walk.circles(dims, source)) - 1 for source in range(n * n))
                if rounds != found['one_to_all']:
                    raise Failed(f'torusctl bounds says {found["one_to_all"]}, a flood takes {rounds} rounds')
                row.here = found['one_to_all'], found['all_to_all']
    return table


UNEQUAL = 'a place with coordinates in several dimensions is shared evenly among these, whatever their sizes'
ROUNDED = 'the shares of the boxes around a node are rounded, not their sum'
ABOVE = {  # blocks on the busiest channel where it exceeds the bound, and why
    '3x5x7': (21, UNEQUAL),
    '3mx3mx3m': (10, ROUNDED),
    '4mx4mx4m': (22, ROUNDED),
    '3mx3mx3mx3m': (24, ROUNDED),
}


def more_dimensions(torusctl):
    table = Table('broadcast-dimensions', 'The pattern in more than two dimensions: blocks on the busiest channel',
                  ('network', 'in lockstep'), ('yangwang', 'nodes reached'),
                  'The paper says that the pattern can be extended, and not how: yangwang is this '
                  'project\'s extension. Paper: the bound of theorem 1, ceil((N−1)/2k) on tori of k '
                  'dimensions and ceil((N−1)/k) on meshes; every node is reached once. Here: by all '
                  'routes, of which each block\'s form a tree of shortest paths. In lockstep: the '
                  'transmission with a barrier after every step.')
    for dims in ('3x3x3', '5x5x5', '3x3x3x3', '3x3x3x3x3', '3x5x7', '3mx3mx3m', '4mx4mx4m', '3mx3mx3mx3m'):
        known, why = ABOVE.get(dims, (None, ''))
        nodes = walk.Torus.count(dims)
        with table.row(walk.label(dims), '-', why=why, known=known and (known, nodes - 1),
                       paper=(walk.bounds(dims)['all-to-all broadcast, all-port'], nodes - 1)) as row:
            row.labels = walk.label(dims), torusctl.plan(dims, 'yangwang')['transmission']
            row.here = torusctl.channel_load(dims, 'yangwang'), reached_once(torusctl, dims)
    return table


def reached_once(torusctl, dims):
    """The nodes that the block of node 0 reaches, each once."""
    torus, parents = walk.Torus(dims), {}
    for legs in torusctl.routes_from_0(dims, 'yangwang').values():
        node = 0
        for _, dim, direction, hops in legs:
            for _ in range(hops):
                before, node = node, torus.neighbour(node, dim, direction)
                if parents.setdefault(node, before) != before or node == 0:
                    raise Failed(f'node {node} is reached from nodes {parents[node]} and {before}')
    return len(parents)
