"""Dimakopoulos, Dimopoulos: A Theory for Total Exchange in Multidimensional Interconnection
Networks."""

from collections import defaultdict, deque
from itertools import permutations, product
from math import ceil, prod
from pathlib import Path
from tempfile import TemporaryDirectory

from . import walk
from .document import Failed, Paper, Table, parts, remarks


def paper(torusctl):
    return Paper(
        name='products',
        title='Products of networks: A1, A2 and A3',
        citation='Dimakopoulos V. V., Dimopoulos N. J.: A Theory for Total Exchange in '
                 'Multidimensional Interconnection Networks.',
        parts=parts(torusctl, (statuses, a1, single_port, other_networks, cayley_graphs, multiport)),
        remarks=remarks(torusctl, (
            'A3 on rings of 2 mod 4 nodes (6×6): the bound (4) of one ring, n²/8, is not whole, '
            'and its exchange takes ceil(n²/8). A3 does n of them, and so is above the bound of '
            'the torus, which is whole: theorem 5 asks for the bound of the ring itself.',
            'The paper takes the exchanges of single rings and arrays, from which A3 is made, from its '
            'reference [7]. Those used here are this project\'s own, which keep to the paper\'s model: '
            'messages go from neighbour to neighbour (column "single hops"), and no channel has more '
            'than one in a step.',
            'Arrays are not Cayley graphs, and the paper gives no exchange on them that meets the '
            'bound (3), so it does not say that A2 is optimal on meshes. With the exchange used '
            'here (everything one way, then everything the other; on an even number of nodes the '
            'two in the middle swap first) an array takes floor((n²−1)/2) blocks, as many as its '
            'middle nodes have to send, against an average status of (n²−1)/3.',
            'A3 on 4 or 8 dimensions: in (7) and (8) the paper adds to the numbers of a half\'s nodes, modulo '
            'their count. Here the offset of a block within a half is taken in each of its dimensions, and '
            'these offsets are the digits of one number. So blocks have other rounds than by the numbers; '
            'in either case a node sends one block to each other node of the half in a round, and the time '
            'is that of corollary 3. On two dimensions both are the same.',
            'The paper sends one block at a time; here the blocks of a round travel in one message, '
            'and the rounds of a ring\'s exchange are the steps. Blocks are counted as in the paper.',
        )))


# ---- Networks: [(graph, nodes)] ------------------------------------------------------------------

NETWORKS = [
    [('ring', 4), ('ring', 8)], [('ring', 3), ('ring', 4), ('ring', 5)],
    [('complete', 2)] * 8, [('complete', 3), ('complete', 4)], [('complete', 5)] * 3,
    [('ring', 6), ('complete', 4)], [('array', 3), ('array', 3)],
    [('array', 4), ('array', 4)], [('array', 5), ('array', 3)], [('ring', 8), ('array', 4), ('complete', 3)],
]


def text(network):
    return ' x '.join(f'{graph}:{nodes}' for graph, nodes in network)


def short(network):
    """complete:2^8"""
    if len(network) > 3 and len(set(network)) == 1:
        return text(network[:1]) + f'^{len(network)}'
    return text(network)


def average_status(graph, n):
    """The status of one dimension: the sum of the distances between all pairs, over n."""
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
                  ('network',), ('average status', 'average distance'),
                  'Paper: sum over i of N/n_i · AS(G_i), and that over N − 1. Here: by a search from '
                  'every node of the graph itself; torusctl bounds must say the same.')
    for network in NETWORKS:
        status, nodes = corollary_one(network), prod(n for _, n in network)
        with table.row(short(network),
                       paper=(rounded(status), rounded(status / (nodes - 1)))) as row:
            found = searched(network)
            row.here = rounded(found), rounded(found / (nodes - 1))
            answer = torusctl('bounds', '--network', text(network))
            said = rounded(answer['status']['average']), rounded(answer['average_distance'])
            if said != row.here:
                raise Failed(f'torusctl bounds says {said} for {text(network)}, the search finds '
                             f'{row.here}')
    return table


def rounded(number):
    return round(float(number), 4)


# ---- Optimality ----------------------------------------------------------------------------------

def single_port(torusctl):
    table = Table('theorem-3', 'Theorem 3: A2 on tori, one port, single hops', ('torus',),
                  ('blocks',),
                  'Paper: the average status, sum over i of N/n_i · floor(n_i²/4), which is the '
                  'lower bound (3). Here: the blocks that A2 takes, by enumeration, with one '
                  'message sent and one received by a node in a step.')
    for sizes in ((8,), (9,), (4, 4), (5, 5), (6, 8), (8, 8), (3, 4, 5), (6, 6, 6), (8, 8, 8),
                  (4, 4, 4, 4), (2, 2, 2, 2), (2,) * 8):
        hypercube = set(sizes) == {2}
        dims = 'x'.join(f'{size}m' if hypercube else str(size) for size in sizes)
        status = sum(prod(sizes) // n * (n * n // 4) for n in sizes)
        with table.row(walk.label(dims) if hypercube else dims, paper=(status,)) as row:
            row.here = (kept(torusctl, dims, 'a2')['transmission'],)
    return table


def kept(torusctl, dims, algorithm):
    """The counts of torusctl plan. Raises Failed unless the algorithm keeps to the paper's model."""
    plan = torusctl.plan(dims, algorithm)
    if not plan['port_model_kept']:
        raise Failed(f'{algorithm} on {dims} does not keep to {plan["bound_of"]}')
    return plan


def a1(torusctl):
    table = Table('a1', 'Algorithm A1, of which A2 is the improvement', ('torus', 'A2'), ('blocks',),
                  'Paper: Fig. 3 with lines 1 to 4 as improved below it. The nodes of the last '
                  'dimension B, one after another, send to every other one the blocks for its copy '
                  'of A: n_B · status · N/n_B; then n_B exchanges within the copies of A. Here: by '
                  'enumeration.')
    for sizes in ((8,), (4, 4), (5, 5), (4, 8), (8, 8), (3, 4, 5)):
        dims, blocks, below = 'x'.join(map(str, sizes)), sizes[0] ** 2 // 4, sizes[0]
        for n in sizes[1:]:
            blocks, below = n * (below * (n * n // 4) + blocks), below * n
        with table.row(dims, '-', paper=(blocks,)) as row:
            row.labels = dims, torusctl.plan(dims, 'a2')['transmission']
            row.here = (kept(torusctl, dims, 'a1')['transmission'],)
    return table


WITH_ARRAYS = {  # the blocks that A2 takes there
    'array:3 x array:3': 24, 'array:4 x array:4': 56, 'array:5 x array:3': 56,
    'ring:8 x array:4 x complete:3': 424}


def other_networks(torusctl):
    table = Table('theorem-3-networks', 'Theorem 3: A2 on other products',
                  ('network', 'steps', 'tighter bound'), ('blocks',),
                  'Paper: the lower bound (3). Here: torusctl simulate, which runs A2 block by block. '
                  'Its messages, followed independently with one sent and one received by any node '
                  'in a step, and torusctl bounds must come to the same. Tighter bound: '
                  'torusctl\'s, with what some nodes of a mesh have to send on average: the middle of '
                  'an array, all but the corners, or every second node where all sizes are odd. On '
                  '3×3 the four nodes between the corners send half of all hops: 18 blocks each.')
    for network in NETWORKS:
        known = WITH_ARRAYS.get(short(network))
        with table.row(short(network), '-', '-', paper=(rounded(corollary_one(network)),),
                       known=known and (known,),
                       why=known and 'with arrays, of which theorem 3 says nothing' or '') as row:
            run = torusctl.simulate('--network', text(network))
            steps, row.here = run['startups'], (run['transmission'],)
            row.labels = short(network), steps, rounded(run['bound'])
            said = torusctl('bounds', '--network', text(network))['a2']
            for whose, counts in (('its messages', dimension_by_dimension(network)),
                                  ('torusctl bounds', (said['startups'], said['transmission']))):
                if counts != (steps, *row.here):
                    raise Failed(f'{steps} steps and {row.here[0]} blocks of A2 on {text(network)} '
                                 f'by torusctl simulate, by {whose} {counts[0]} and {counts[1]}')
    return table


def swapped(at, i, j):
    at = list(at)
    at[i], at[j] = at[j], at[i]
    return tuple(at)


GENERATORS = {  # of the permutations of four places
    'star graph': [lambda at, i=i: swapped(at, 0, i) for i in (1, 2, 3)],
    'bubble-sort graph': [lambda at, i=i: swapped(at, i - 1, i) for i in (1, 2, 3)],
    'pancake graph': [lambda at, i=i: at[i::-1] + at[i + 1:] for i in (1, 2, 3)],
}


def permutation_graph(generators):
    """{node: neighbours}, numbered in lexicographic order."""
    number = {at: i for i, at in enumerate(permutations(range(4)))}
    return {number[at]: {number[one(at)] for one in generators} for at in number}


def status(graph):
    """The sum of the distances from node 0."""
    distance, queue = {0: 0}, deque([0])
    while queue:
        node = queue.popleft()
        for other in graph[node] - set(distance):
            distance[other] = distance[node] + 1
            queue.append(other)
    return sum(distance.values())


def cayley_graphs(torusctl):
    table = Table('theorem-3-cayley', 'Section 4.1: A2 on products with Cayley graphs of 24 permutations', ('network',),
                  ('blocks',),
                  'Paper: the average status, by corollary 1 from the distances in the graph itself. It says that '
                  'all Cayley graphs have such an exchange ([8]), and gives none. Here: enumeration; torusctl finds a '
                  'group of each graph from its edges, and chooses the route of a block by the offset in the group.')
    with TemporaryDirectory() as folder:
        for name, generators in GENERATORS.items():
            graph, file = permutation_graph(generators), Path(folder) / name.replace(' ', '-')
            file.write_text(''.join(f'{node} {other}\n' for node, others in graph.items()
                                    for other in sorted(others) if node < other))
            for other, nodes, own in (('', 1, 0), ('5', 5, 6), ('complete:3', 3, 2)):
                label = f'{name} × {other}' if other else name
                with table.row(label, paper=(nodes * status(graph) + 24 * own,)) as row:
                    dims = f'graph:{file} x {other}' if other else f'graph:{file}'
                    plan = torusctl('plan', '--dims', dims, '--algorithm', 'a2')
                    if not plan['port_model_kept']:
                        raise Failed(f'a2 on {label} does not keep to {plan["bound_of"]}')
                    row.here = (plan['transmission'],)
    return table


def way(graph, n, a, b):
    """The first step of a block's route in one dimension, and the nodes that it passes."""
    forth, back = (b - a) % n, (a - b) % n
    if graph == 'complete':
        return forth - 1, [b]
    if graph == 'ring':
        if forth <= n // 2:
            return 0, [(a + hop) % n for hop in range(1, forth + 1)]
        return n // 2, [(a - hop) % n for hop in range(1, back + 1)]
    if a > b:
        step, nodes = way(graph, n, n - 1 - a, n - 1 - b)
        middle = step == 0 and n % 2 == 0
        return step if middle else step + n - 1, [n - 1 - node for node in nodes]
    if n % 2 == 0 and (a, b) == (n // 2 - 1, n // 2):
        return 0, [b]
    return (n % 2 == 0) + n - 1 - b, list(range(a + 1, b + 1))


def dimension_by_dimension(network):
    """(steps, blocks) of A2 by its messages: the last dimension first, all in step."""
    every = list(product(*(range(n) for _, n in network)))
    steps = blocks = 0
    for i in reversed(range(len(network))):
        graph, n = network[i]
        messages = defaultdict(int)  # blocks by (step, from, to)
        passing = prod(n for _, n in network) // n  # blocks with these ends, at each node
        for line in {node[:i] + node[i + 1:] for node in every}:
            for a, b in product(range(n), repeat=2):
                if a == b:
                    continue
                step, nodes = way(graph, n, a, b)
                for here, there in zip([a, *nodes], nodes):
                    messages[step, line, here, there] += passing
                    step += 1
        one_port(messages)
        first, load = steps, defaultdict(int)
        for (step, *_), size in messages.items():
            load[step] = max(load[step], size)
            steps = max(steps, first + step + 1)
        blocks += sum(load.values())
    return steps, blocks


def one_port(messages):
    sends = {(step, line, here) for step, line, here, _ in messages}
    takes = {(step, line, there) for step, line, _, there in messages}
    if len(sends) < len(messages) or len(takes) < len(messages):
        raise Failed('A2 has a node with two messages in a step')


THEOREM_FIVE = {  # dims: blocks, contended steps, single hops
    '6x6': (30, 0, True), '2x2x2x2': (8, 0, True)}


def multiport(torusctl):
    table = Table('theorem-5', 'Theorem 5: A3, all ports', ('network', 'corollary 3'),
                  ('blocks', 'contended steps', 'single hops'),
                  'Paper: the lower bound (4), one message on a link at a time, and messages between '
                  'neighbours only. Corollary 3: the dimension\'s own time, times the nodes of the '
                  'others; a complete graph takes one step. Here: by enumeration. The hypercube has one '
                  'cable in a dimension; a torus of 2×2×2×2 has two, and half the bound.')
    for n, dimensions, mesh in ((8, 1, ''), (4, 2, ''), (5, 2, ''), (6, 2, ''), (8, 2, ''),
                                (12, 2, ''), (16, 2, ''), (4, 4, ''), (2, 4, ''), (2, 4, 'm'),
                                (4, 2, 'm'), (6, 2, 'm'), (8, 2, 'm')):
        dims = 'x'.join([f'{n}{mesh}'] * dimensions)
        one = (n // 2) * ceil(n / 2) if mesh else n * n // 4 / 2
        others = n ** (dimensions - 1)
        with table.row(walk.label(dims), ceil(one) * others,
                       paper=(one * others, 0, True), known=THEOREM_FIVE.get(dims),
                       why='the ring\'s bound is not whole' if dims in THEOREM_FIVE else '') as row:
            plan = torusctl.plan(dims, 'a3')
            row.here = (plan['transmission'], plan['contended_steps'],
                        torusctl.single_hops(dims, 'a3'))
    for n, dimensions in ((3, 1), (4, 2), (7, 2), (3, 4)):  # a complete graph takes one step
        dims, others = f'complete:{n}^{dimensions}', n ** (dimensions - 1)
        with table.row(dims, others, paper=(others, 0, True)) as row:
            plan = torusctl('plan', '--dims', dims, '--algorithm', 'a3')
            counts, _ = torusctl.predict(dims, 'a3')
            row.here = (plan['transmission'], plan['contended_steps'],
                        counts['hops'] == counts['startups'])
    return table
