"""torusctl's lower bound with one port and single hops, beside the best one that weights can prove.

A linear program finds weights of the nodes that make the bound of product.c as large as
possible. Its dual is the routing, with blocks in parts, whose busiest node sends as few blocks as
possible. So a larger bound than this needs another argument than weights, and a larger figure of
torusctl would be wrong."""

from itertools import product

import numpy
import pytest
from support.expect import torusctl_json

BEST = ['2mx4m', '2mx6m', '3mx3m', '3mx4m', '3mx5m', '4mx4m', '4mx5m', '5mx5m', '5mx7m', '3mx3mx3m', '4x3m', '8m', '9m']
BELOW = {'3mx7m': 74.34, '4x5m': 53.45}  # what weights other than 0 and 1 prove


def neighbours(sizes, wraps, node):
    for dim, (size, wrap) in enumerate(zip(sizes, wraps)):
        for other in (node[dim] - 1, node[dim] + 1):
            if wrap or 0 <= other < size:
                yield node[:dim] + (other % size,) + node[dim + 1:]


def best_bound(dims):
    """Variables: the weight of each node, then for each source the weight of the lightest path to each node,
    which does not include the last node. It is at most that to a neighbour, with the neighbour."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix
    sizes = [int(size.rstrip('m')) for size in dims.split('x')]
    wraps = [not size.endswith('m') for size in dims.split('x')]
    nodes = list(product(*map(range, sizes)))
    count, index = len(nodes), {node: i for i, node in enumerate(nodes)}
    rows, columns, values = [], [], []
    lines = 0
    for source in range(count):
        for node in nodes:
            for other in set(neighbours(sizes, wraps, node)):
                path = [(count * (1 + source) + index[other], 1), (index[node], -1)]
                if index[other] == source:
                    continue
                if index[node] != source:
                    path.append((count * (1 + source) + index[node], -1))
                for column, value in path:
                    rows.append(lines), columns.append(column), values.append(value)
                lines += 1
    gain = -numpy.ones(count * (count + 1))
    gain[:count] = 0
    gain[[count * (1 + source) + source for source in range(count)]] = 0
    weights = numpy.zeros((1, gain.size))
    weights[0, :count] = 1
    found = linprog(gain, coo_matrix((values, (rows, columns)), shape=(lines, gain.size)), numpy.zeros(lines),
                    weights, [1], bounds=(0, None), method='highs')
    assert found.status == 0, found.message
    return -found.fun


def said(dims):
    return torusctl_json('bounds', '--dims', dims)['bounds']['one_port_single_hops']


@pytest.mark.full
@pytest.mark.parametrize('dims', BEST)
def test_no_weights_prove_more(dims):
    assert said(dims) == pytest.approx(best_bound(dims))


@pytest.mark.full
@pytest.mark.parametrize('dims', BELOW)
def test_weights_prove_more(dims):
    assert best_bound(dims) == pytest.approx(BELOW[dims], abs=0.01)
    assert said(dims) <= BELOW[dims]


def test_odd_meshes():
    """3x3: 16 by the average, 16.8 without the corners, 18 by the four nodes between the corners."""
    assert said('3mx3m') == 18
