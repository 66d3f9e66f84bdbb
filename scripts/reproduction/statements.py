"""Tables for statements of the papers that no other table here compares: lemma 1 of both papers on tori, theorem 2
of the broadcast pattern, the time of a product by the times of its dimensions, and two lists of messages."""

from math import prod

from . import pattern, walk
from .document import Failed, Table

# ---- Lemma 1 of both papers on tori --------------------------------------------------------------

TORI = ((8,), (4, 4), (8, 8), (8, 6), (12, 8), (16, 16), (4, 4, 4), (6, 5, 3), (12, 8, 6), (4, 4, 4, 4))


def lemma_one(name):
    def maker(torusctl):
        table = Table(name, 'Lemma 1: the lower bound on message transmission', ('torus',), ('blocks',),
                      'Paper: N_1·(N_1·N_2·…·N_k)/8, where N_1 is the largest size, and even. Here: the number of '
                      'blocks that cross the middle of a dimension, divided by the number of channels there, '
                      'both counted; torusctl bounds must agree.')
        for sizes in TORI:
            dims = 'x'.join(map(str, sizes))
            with table.row(dims, paper=(sizes[0] * prod(sizes) / 8,)) as row:
                row.here = (walk.bounds(dims)['all-port'],)
                said = torusctl('bounds', '--dims', dims)['bounds']['all_port']
                if abs(said - row.here[0]) > 1e-9:
                    raise Failed(f'torusctl bounds says {said} for {dims}, not {row.here[0]}')
        return table

    maker.__name__ = 'lemma_one'
    return maker


# ---- Broadcast -----------------------------------------------------------------------------------

def reached_once(torusctl):
    del torusctl
    table = Table('broadcast-theorem-2', 'Theorem 2: nodes of an infinite mesh that the pattern reaches',
                  ('distance',), ('nodes', 'messages'),
                  'Up to this distance d. Paper: 2d(d+1) nodes, each by one message. Here: the pattern, '
                  'followed to the letter.')
    for radius in range(1, 13):
        nodes = 2 * radius * (radius + 1)
        with table.row(radius, paper=(nodes, nodes)) as row:
            ways = pattern.in_infinite_mesh(radius)
            row.here = len({node for _, _, node in ways} - {(0, 0)}), len(ways)
    return table


# ---- Products ------------------------------------------------------------------------------------

PRODUCTS = ('ring:4 x ring:8', 'array:4 x array:4', 'array:5 x array:3', 'complete:3 x complete:4',
            'ring:6 x complete:4', 'ring:3 x ring:4 x ring:5', 'ring:8 x array:4 x complete:3')


def single_port_sum(torusctl):
    table = Table('products-theorem-2', 'Theorem 2 and corollary 2: the time of A2 by that of each dimension',
                  ('network', 'times of the dimensions'), ('blocks',),
                  'Paper: the sum over i of N/n_i · T_i. Here: torusctl simulate runs A2 block by block on the '
                  'product, and on each dimension alone for T_i. The theorem holds with arrays as well, unlike '
                  'theorem 3.')
    for network in PRODUCTS:
        factors = network.split(' x ')
        sizes = [int(factor.partition(':')[2]) for factor in factors]
        with table.row(network, '-', paper=('-',)) as row:
            times = [torusctl.simulate('--network', factor)['transmission'] for factor in factors]
            row.labels = network, ', '.join(f'{time:g}' for time in times)
            row.paper = (sum(prod(sizes) // n * time for n, time in zip(sizes, times)),)
            row.here = (torusctl.simulate('--network', network)['transmission'],)
    return table


HOMOGENEOUS = (('8', 2), ('5', 2), ('6', 2), ('12', 2), ('4', 4), ('4m', 2), ('8m', 2), ('2m', 2), ('2m', 4))


def multiport_power(torusctl):
    table = Table('products-theorem-4', 'Theorem 4 and corollary 3: the time of A3 by that of one dimension',
                  ('network', 'T_H'), ('blocks',),
                  'Paper: n·T_H in two dimensions, n^(d−1)·T_H in d = 2^j dimensions. Here: enumeration of A3 on '
                  'the network, and on one dimension for T_H.')
    for one, d in HOMOGENEOUS:
        dims, n = 'x'.join([one] * d), int(one.rstrip('m'))
        with table.row(walk.label(dims), '-', paper=('-',)) as row:
            time = torusctl.plan(one, 'a3')['transmission']
            row.labels = row.labels[0], time
            row.paper = (n ** (d - 1) * time,)
            row.here = (torusctl.plan(dims, 'a3')['transmission'],)
    return table


def ends_in_second(torusctl, dims, algorithm):
    """{destination: the node where a block of node 0 ends its hops in dimension 1}"""
    torus, found = walk.Torus(dims), {}
    for destination, legs in torusctl.routes_from_0(dims, algorithm).items():
        node = end = 0
        for _, dim, direction, hops in legs:
            for _ in range(hops):
                node = torus.neighbour(node, dim, direction)
            end = node if dim == 1 else end
        found[destination] = end
    return found


def table_one(torusctl):
    rows, columns = 3, 4
    table = Table('products-table-1', 'Table 1: messages to be transferred from node (1,1), 4×3 torus of Fig. 2',
                  ('row',), tuple(f'for A_{k}' for k in range(1, columns + 1)),
                  'Row R_r has the messages for the nodes (r, k). Paper: the exchange in B_1 moves a message for '
                  'A_k to node (1, k). Here: the node to which torusd\'s a2 moves it before it moves in A_k.')
    with_ends = None
    for r in range(rows):
        paper = [f'1,{k + 1}' for k in range(columns)]
        with table.row(f'R_{r + 1}', paper=paper) as row:
            with_ends = with_ends or ends_in_second(torusctl, f'{rows}x{columns}', 'a2')
            row.here = [f'{end // columns + 1},{end % columns + 1}' for k in range(columns)
                        for end in [with_ends.get(r * columns + k, 0)]]
    return table


def table_two(torusctl):
    table = Table('products-table-2', 'Table 2: messages to be transferred from node (1,1), 3×3 mesh of Fig. 5',
                  ('message for', 'copy of A'), ('exchange in B_1', 'exchange in A'),
                  'Paper (section 5): the r-th exchange in B_1 moves messages for v_2, v_3, rotated by r − 1, the '
                  'last exchange those for v_1. The next exchange in A moves them on. Here: the steps of torusd\'s a3, '
                  'two for an exchange on an array of three nodes.')
    for i in range(3):
        for j in range(3):
            if i == j == 0:
                continue
            in_b = 0 if j == 0 else (i - j) % 2 + 1 if i > 0 else 3
            in_a = 0 if i == 0 else in_b + 1
            with table.row(f'({i + 1},{j + 1})', f'A_{j + 1}', paper=(in_b or '-', in_a or '-')) as row:
                legs = torusctl.routes_from_0('3mx3m', 'a3')[3 * i + j]
                row.here = [next((step // 2 + 1 for step, dim, _, _ in legs if dim == wanted), '-')
                            for wanted in (1, 0)]
    return table


MAKERS = {'all-port': (lemma_one('all-port-lemma-1'),), 'one-port': (lemma_one('one-port-lemma-1'),),
          'broadcast': (reached_once,),
          'products': (single_port_sum, multiport_power, table_one, table_two)}
