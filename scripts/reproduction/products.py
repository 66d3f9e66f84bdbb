"""Dimakopoulos, Dimopoulos: A Theory for Total Exchange in Multidimensional Interconnection
Networks."""

from collections import deque
from itertools import product
from math import ceil, prod

from .document import Paper, Table


def paper(torusctl):
    return Paper(
        name='products',
        title='Products of networks: A2 and A3',
        citation='Dimakopoulos V. V., Dimopoulos N. J.: A Theory for Total Exchange in '
                 'Multidimensional Interconnection Networks.',
        parts=[statuses(torusctl), single_port(torusctl), other_networks(torusctl),
               multiport(torusctl)],
        remarks=[
            'A3 on rings of 2 mod 4 nodes (6×6): the bound (4) of one ring, n²/8, is not whole, '
            'and its exchange takes ceil(n²/8). A3 does n of them, and so is above the bound of '
            'the torus, which is whole: theorem 5 asks for the bound of the ring itself.',
            'Arrays are no Cayley graphs, and no exchange of theirs is given that meets the bound '
            '(3): the paper does not say that A2 is optimal on meshes, and with the exchange used '
            'here (all one way, then all the other) it is not.',
        ])


# ---- Networks: [(graph, nodes)] ------------------------------------------------------------------

NETWORKS = [
    [('ring', 4), ('ring', 8)], [('ring', 3), ('ring', 4), ('ring', 5)],
    [('complete', 2)] * 8, [('complete', 3), ('complete', 4)], [('complete', 5)] * 3,
    [('ring', 6), ('complete', 4)], [('array', 4), ('array', 4)], [('array', 5), ('array', 3)],
    [('ring', 8), ('array', 4), ('complete', 3)],
]


def text(network):
    return ' x '.join(f'{graph}:{nodes}' for graph, nodes in network)


def short(network):
    """complete:2^8"""
    if len(network) > 3 and len(set(network)) == 1:
        return text(network[:1]) + f'^{len(network)}'
    return text(network)


def average_status(graph, n):
    """Of one dimension: the sum of the distances between all pairs, over n."""
    if graph == 'ring':
        return n * n // 4
    return n - 1 if graph == 'complete' else (n * n - 1) / 3


def corollary_one(network):
    nodes = prod(n for _, n in network)
    return sum(nodes / n * average_status(graph, n) for graph, n in network)


def searched(network):
    """The average status by a breadth-first search from every node of the graph itself."""
    every = list(product(*(range(n) for _, n in network)))
    total = 0
    for start in every:
        distance, queue = {start: 0}, deque([start])
        while queue:
            node = queue.popleft()
            for neighbour in neighbours(network, node):
                if neighbour not in distance:
                    distance[neighbour] = distance[node] + 1
                    queue.append(neighbour)
        total += sum(distance.values())
    return total / len(every)


def neighbours(network, node):
    for i, (graph, n) in enumerate(network):
        if graph == 'complete':
            others = range(n)
        elif graph == 'ring':
            others = ((node[i] + 1) % n, (node[i] - 1) % n)
        else:
            others = (other for other in (node[i] - 1, node[i] + 1) if 0 <= other < n)
        for other in others:
            yield node[:i] + (other,) + node[i + 1:]


def statuses(torusctl):
    table = Table('corollary-1-status', 'Theorem 1 and corollary 1: average status of a product',
                  ('network', 'by search'), ('average status', 'average distance'),
                  'Paper: sum over i of N/n_i · AS(G_i), and that over N − 1. Here: torusctl '
                  'bounds. By search: from every node of the graph itself.')
    for network in NETWORKS:
        answer = torusctl('bounds', '--network', text(network))
        status = corollary_one(network)
        nodes = prod(n for _, n in network)
        table.add(short(network), rounded(searched(network)),
                  paper=(rounded(status), rounded(status / (nodes - 1))),
                  here=(rounded(answer['status']['average']), rounded(answer['average_distance'])))
    return table


def rounded(number):
    return round(float(number), 4)


# ---- Optimality ----------------------------------------------------------------------------------

def single_port(torusctl):
    table = Table('theorem-3', 'Theorem 3: A2 on tori, one port, single hops', ('torus',),
                  ('blocks',),
                  'Paper: the average status, sum over i of N/n_i · floor(n_i²/4), which is the '
                  'lower bound (3). Here: the blocks that A2 takes, by enumeration. Rings of 2 '
                  'make a hypercube.')
    for sizes in ((8,), (9,), (4, 4), (5, 5), (6, 8), (8, 8), (3, 4, 5), (6, 6, 6), (8, 8, 8),
                  (2, 2, 2, 2), (4, 4, 4, 4), (2,) * 8):
        dims = 'x'.join(map(str, sizes))
        status = sum(prod(sizes) // n * (n * n // 4) for n in sizes)
        table.add(dims, paper=(status,), here=(torusctl.plan(dims, 'a2')['transmission'],))
    return table


def other_networks(torusctl):
    table = Table('theorem-3-networks', 'Theorem 3: A2 on other products', ('network', 'steps'),
                  ('blocks',),
                  'Paper: the lower bound (3). Here: what A2 takes by corollary 2, of torusctl '
                  'bounds.')
    for network in NETWORKS:
        answer = torusctl('bounds', '--network', text(network))
        covered = all(graph != 'array' for graph, _ in network)
        table.add(short(network), answer['a2']['startups'],
                  paper=(rounded(corollary_one(network)),),
                  here=(rounded(answer['a2']['transmission']),),
                  why='' if covered else 'with arrays, of which theorem 3 says nothing')
    return table


def multiport(torusctl):
    table = Table('theorem-5', 'Theorem 5: A3, all ports', ('network', 'corollary 3'), ('blocks',),
                  'Paper: the lower bound (4). Corollary 3: the dimension\'s own time, times the '
                  'nodes of the others. Here: by enumeration.')
    for n, dimensions, mesh in ((8, 1, ''), (4, 2, ''), (5, 2, ''), (6, 2, ''), (8, 2, ''),
                                (12, 2, ''), (16, 2, ''), (4, 4, ''), (4, 2, 'm'), (6, 2, 'm'),
                                (8, 2, 'm')):
        dims = 'x'.join([f'{n}{mesh}'] * dimensions)
        one = (n // 2) * ceil(n / 2) if mesh else n * n // 4 / 2
        others = n ** (dimensions - 1)
        table.add(dims.replace('m', '') + (' mesh' if mesh else ' torus'), ceil(one) * others,
                  paper=(one * others,), here=(torusctl.plan(dims, 'a3')['transmission'],),
                  why='the ring\'s bound is not whole' if one != ceil(one) else '')
    return table
