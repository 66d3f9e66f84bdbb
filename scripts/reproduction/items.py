"""The list of all figures, tables, theorems, lemmas, corollaries, algorithms and examples of the papers. An item is
run (a table compares it with torusctl) or drawn. If a paper says more than what is run, the item says what is. The
slides do not number their drawings: the list numbers them in their order."""

from dataclasses import dataclass

RUN, DRAWN = 'run', 'drawn'
KINDS = ('figure', 'table', 'theorem', 'lemma', 'corollary', 'algorithm', 'example')


@dataclass(frozen=True)
class Item:
    kind: str
    number: str  # or name, as printed; drawings of slides and examples are counted
    what: str
    how: str
    where: tuple = ()  # the names of tables, plots and drawings
    members: str = ''  # for which networks it is run or holds, if that is not all that the paper says


LIST = {
    'Liu, Gu, Bi, Tu, Dong: All-Port Tori': (
        Item('figure', '1', 'internal structure of a node', DRAWN, ('all-port-fig-1',)),
        Item('figure', '2', 'Algorithm AR', RUN, ('lemma-2', 'all-port-fig-3')),
        Item('figure', '3', 'complete exchange on a ring of 8 nodes', DRAWN, ('all-port-fig-3',)),
        Item('figure', '4', 'communication pattern on a 2D torus', DRAWN, ('all-port-fig-4',)),
        Item('figure', '5', 'Algorithm AT2', RUN, ('all-port-table-1', 'lemma-4', 'all-port-fig-4')),
        Item('figure', '6', 'estimated performance', DRAWN, ('all-port-fig-6',)),
        Item('table', 'I', 'communication pattern of a node', RUN, ('all-port-table-1',)),
        Item('table', 'II', 'comparison on 2^d × 2^d tori', RUN, ('all-port-table-2',),
             'AT2 and [10]; of [5] and [6] the paper prints counts and no schedule, and abstracts were all that was at hand: '
             'formulas'),
        Item('lemma', '1', 'lower bound on transmission', RUN, ('all-port-lemma-1',)),
        Item('lemma', '2', 'cost of AR', RUN, ('lemma-2', 'all-port-loads')),
        Item('lemma', '3', 'cost of phase 2', RUN, ('lemma-3', 'all-port-loads')),
        Item('lemma', '4', 'transmission of AT2', RUN, ('lemma-4', 'lemma-4-printed'),
             'as printed, if c is a multiple of 8, and with barriers only if the rings of both dimensions keep pace; '
             'repaired (at2), except with barriers where r is a multiple of 8, c is not, and 7r > 6c'),
        Item('algorithm', 'AR', 'exchange on an all-port ring', RUN, ('lemma-2',)),
        Item('algorithm', 'AT2', 'exchange on an all-port torus', RUN, ('lemma-4', 'all-port-imaginary')),
        Item('algorithm', '[3, 4]', 'direct exchange, cited in section 1', RUN,
             ('all-port-direct', 'all-port-faster', 'cccube-direct'),
             'n × n tori, n a power of two from 4 to 256; the paper has its counts for 2^d × 2^d only, and no schedule'),
        Item('algorithm', '[7, 8]', 'previous scheme of section 4.A', RUN, ('all-port-previous',)),
    ),
    'Yang, Wang: All-to-All Communication': (
        Item('figure', '1', 'node (−1,−1) and node (2,2)', DRAWN, ('broadcast-distance',)),
        Item('figure', '2', 'circles in a mesh', DRAWN, ('broadcast-circles',)),
        Item('figure', '3', 'circles in a 5×5 torus', DRAWN, ('broadcast-circles',)),
        Item('figure', '4', 'circles in a 4×4 torus', DRAWN, ('broadcast-circles',)),
        Item('figure', '5', 'buffer structure of a node', DRAWN, ('broadcast-node',)),
        Item('figure', '6', 'logical format of a message', DRAWN, ('broadcast-node',)),
        Item('figure', '7', 'broadcast pattern', DRAWN, ('broadcast-pattern',)),
        Item('figure', '8', '4k k-neighbours in four groups', DRAWN, ('broadcast-groups',)),
        Item('figure', '9', 'total delay of the first three phases', DRAWN, ('broadcast-timing',)),
        Item('figure', '10', 'n×n MIN', DRAWN, ('banyan-min',)),
        Item('figure', '11', '8×8 banyan network', DRAWN, ('banyan-network',)),
        Item('figure', '12', 'basic permutations', DRAWN, ('banyan-basic',)),
        Item('figure', '13', 'Gray code and Latin square', DRAWN, ('banyan-latin',)),
        Item('figure', '14', 'all possible switch settings', DRAWN, ('banyan-all-settings',)),
        Item('table', '1', 'the additional check for a torus', RUN, ('corollary-1', 'pattern-parents')),
        Item('table', '2', 'the all-to-all broadcast algorithm', RUN, ('pattern-parents',)),
        Item('table', 'Comparisons', 'networks: degree, diameter, delay', RUN,
             ('banyan-networks', 'broadcast-delay', 'broadcast-calvin', 'broadcast-faster'),
             'the pattern, and Saad and Schultz; Calvin, Perennes and Trystram by the formula that the paper prints: no '
             'text of their schedule was at hand'),
        Item('theorem', '1', 'lower bounds on delay', RUN,
             ('broadcast-theorem-1', 'perimeters', 'broadcast-bound')),
        Item('theorem', '2', 'the pattern reaches each node once', RUN,
             ('broadcast-theorem-2', 'broadcast-pattern', 'broadcast-dimensions'),
             'meshes, and tori of odd sizes; on tori of even sizes some nodes are reached twice'),
        Item('theorem', '3', 'd messages on each channel in phase d', RUN,
             ('theorem-3-phases', 'broadcast-groups', 'broadcast-loads')),
        Item('theorem', '4', 'total delay on a torus', RUN, ('theorem-4-in-time', 'theorem-4', 'broadcast-timing'),
             'simulated on n × n tori, n odd from 3 to 17, where it holds if the message with the longest path goes '
             'first; the chart follows the rules of the proof for three phases'),
        Item('corollary', '1', 'messages on a channel of a torus', RUN, ('corollary-1',),
             'odd n; on even n some channels carry more'),
        Item('corollary', '2', 'messages on a channel of a mesh', RUN, ('corollary-2',)),
        Item('corollary', '3', 'total delay in two cases', RUN, ('theorem-4-in-time', 'theorem-4'),
             'as theorem 4, of which it is the cases δ > Lγ and δ ≤ Lγ'),
        Item('algorithm', 'broadcast', 'all-to-all broadcast', RUN,
             ('pattern-parents', 'corollary-1', 'broadcast-dimensions')),
        Item('algorithm', 'ATAPE', 'all-to-all personalized exchange', RUN,
             ('banyan-conflicts', 'banyan-settings', 'banyan-others')),
        Item('algorithm', 'LatinSquare', 'the second construction', RUN,
             ('latin-square', 'latin-constructions')),
        Item('example', '1', '6-neighbours in a mesh', DRAWN, ('broadcast-distance',)),
        Item('example', '2', 'an 8×8 banyan network', RUN, ('banyan-links', 'banyan-network')),
        Item('example', '3', 'basic permutations', DRAWN, ('banyan-basic',)),
        Item('example', '4', 'the second construction', RUN, ('latin-square', 'banyan-latin')),
        Item('example', '5', 'permutations of an 8×8 banyan network', RUN,
             ('banyan-settings', 'banyan-all-settings')),
    ),
    'Díaz de Cerio, Valero-García, González: Meshes and Tori': (
        Item('figure', '1', 'CC-cube algorithm, d = 3', DRAWN, ('cccube-fig-1', 'cccube-figure-1')),
        Item('algorithm', 'CC-cube', 'complete exchange, and its pipelining', RUN,
             ('cccube-figure-1', 'cccube-embedding', 'cccube-pipelining', 'cccube-ports', 'cccube-loads', 'cccube-best',
              'cccube-degree', 'cccube-cost', 'cccube-twice'),
             'without shared channels on hypercubes and rings of 4; the embeddings are reconstructed'),
    ),
    'Liu, Gu, Ren, Xiong: Multidimensional Tori': (
        Item('figure', '1', 'structure of a 4×4 torus', DRAWN, ('one-port-fig-1',)),
        Item('figure', '2', 'Algorithm AR1', RUN, ('ar1', 'one-port-fig-3')),
        Item('figure', '3', 'complete exchange on a ring of 12 nodes', DRAWN, ('one-port-fig-3',)),
        Item('figure', '4', 'phase 2 on a 4D torus', DRAWN, ('one-port-fig-4',)),
        Item('figure', '5', 'phase 1 on a 3D torus', DRAWN, ('one-port-fig-5',)),
        Item('figure', '6', 'exchange in a 3×3×3 sub-mesh', DRAWN, ('one-port-fig-6',)),
        Item('figure', '7', 'estimated performance', DRAWN, ('one-port-fig-7', 'one-port-faster')),
        Item('table', '1', 'comparison of algorithms on tori', RUN,
             ('one-port-table-1', 'one-port-table-1-compared', 'one-port-fewer'),
             'AT2, PTk, MTk, and [13] on two dimensions; [12], and [13] on more, by formulas: no text of their schedules was '
             'at hand'),
        Item('lemma', '1', 'lower bound on transmission', RUN, ('one-port-lemma-1',)),
        Item('algorithm', 'AR1', 'exchange on a ring', RUN, ('ar1', 'one-port-loads')),
        Item('algorithm', 'AT2', 'exchange on a 2D torus', RUN,
             ('one-port-table-1', 'one-port-squares', 'one-port-imaginary')),
        Item('algorithm', 'PT4', 'exchange on a 4D torus', RUN, ('one-port-table-1', 'one-port-fig-4')),
        Item('algorithm', 'PTk', 'exchange on a torus of k = 2^d dimensions', RUN,
             ('one-port-table-1', 'pt-coefficients'), 'k = 2 and 4; for k = 8 the blocks are counted by classes'),
        Item('algorithm', 'MT3', 'exchange on a 3D torus', RUN,
             ('one-port-table-1', 'one-port-orders', 'one-port-fig-6')),
        Item('algorithm', 'MTk', 'exchange on a torus of k dimensions', RUN,
             ('one-port-table-1', 'one-port-imaginary'), 'k = 3 and 4'),
    ),
    'Dimakopoulos, Dimopoulos: Multidimensional Interconnection Networks': (
        Item('figure', '1', 'Cartesian product of two graphs', DRAWN, ('products-fig-1',)),
        Item('figure', '2', '4×3 torus as copies of rings', DRAWN, ('products-fig-2',)),
        Item('figure', '3', 'Algorithm A1', RUN, ('a1',)),
        Item('figure', '4', 'Algorithm A2', RUN, ('theorem-3', 'theorem-3-networks')),
        Item('figure', '5', '3×3 homogeneous mesh', DRAWN, ('products-fig-5', 'products-a3')),
        Item('figure', '6', 'Algorithm A3', RUN, ('theorem-5', 'products-a3')),
        Item('table', '1', 'messages of a node, by rows', RUN, ('products-table-1',)),
        Item('table', '2', 'messages of node (1,1)', DRAWN, ('products-table-2-drawn', 'products-table-2')),
        Item('theorem', '1', 'status in a product', RUN, ('corollary-1-status',)),
        Item('theorem', '2', 'time of A2 on two dimensions', RUN, ('products-theorem-2',)),
        Item('theorem', '3', 'A2 is optimal', RUN, ('theorem-3', 'theorem-3-networks', 'theorem-3-cayley'),
             'products of rings, complete graphs, and other Cayley graphs for which torusctl finds the group: three of '
             '24 nodes are here'),
        Item('theorem', '4', 'time of A3 on two dimensions', RUN, ('products-theorem-4',)),
        Item('theorem', '5', 'A3 is optimal', RUN, ('theorem-5',),
             'meshes and products of complete graphs; tori of n nodes a dimension, n odd or a multiple of 4: on others '
             'the bound of the ring is not whole'),
        Item('corollary', '1', 'average status of a product', RUN, ('corollary-1-status',)),
        Item('corollary', '2', 'time of A2 on k dimensions', RUN, ('products-theorem-2',)),
        Item('corollary', '3', 'time of A3 on 2^j dimensions', RUN, ('products-theorem-4',)),
        Item('algorithm', 'A1', 'one port, node after node', RUN, ('a1',)),
        Item('algorithm', 'A2', 'one port, all nodes in parallel', RUN, ('theorem-3', 'products-loads')),
        Item('algorithm', 'A3', 'many ports, dimensions overlapped', RUN, ('theorem-5', 'products-loads')),
        Item('example', '1', 'average distance in generalized hypercubes', RUN, ('corollary-1-status',)),
        Item('example', '2', 'A2 on hypercubes', RUN, ('theorem-3',)),
    ),
}


def verdict(item):
    return f'{item.how} ({item.members})' if item.members else item.how


def lines():
    """The list as text."""
    for paper, items in LIST.items():
        yield paper
        for item in items:
            yield f'  {item.kind} {item.number}: {item.what}. {", ".join(item.where)}: {verdict(item)}'
        yield ''


def lost(papers):
    """A line for each item that refers to a part that none of these papers has, and for each part of no item."""
    made = {part.name for paper in papers for part in paper.parts}
    named = {name: f'{paper}, {item.kind} {item.number}'
             for paper, items in LIST.items() for item in items for name in item.where}
    return ([f'{item}: there is no {name}' for name, item in named.items() if name not in made]
            + [f'{name} belongs to no item' for name in sorted(made - set(named))])
