"""Networks with factors that are neither rings nor lines, for tests."""

import random

import pytest

PETERSEN = [edge for i in range(5) for edge in ((i, (i + 1) % 5), (i, i + 5), (5 + i, 5 + (i + 2) % 5))]


def four_regular(nodes, seed):
    """Edges of a random graph in which each node has four: two Hamiltonian cycles without a common edge."""
    rng = random.Random(seed)
    while True:
        order = list(range(nodes))
        rng.shuffle(order)
        cycles = [list(range(nodes)), order]
        edges = {tuple(sorted((cycle[i - 1], cycle[i]))) for cycle in cycles for i in range(nodes)}
        if len(edges) == 2 * nodes:
            return sorted(edges)


def write_edges(path, edges):
    """Writes a file of edges. Returns the factor that names it."""
    path.write_text(''.join(f'{a} {b}\n' for a, b in edges))
    return f'graph:{path}'


def make(folder, name):
    """The text of a network: `petersen` and `random` stand for graphs whose files are written here."""
    graphs = {'petersen': PETERSEN, 'random': four_regular(24, 1)}
    return ' x '.join(write_edges(folder / f'{word}.edges', graphs[word]) if word in graphs else word
                      for word in name.split(' x '))


@pytest.fixture
def torus_of(shared, root):
    """torus_of(name): a torus that tests share."""
    return lambda name: shared(make(root, name))
