"""Drawings of the paper on the CC-cube: figure 1, and channel loads with pipelining."""

from .. import cccube as paper
from ..cube import vectors
from ..document import Failed
from . import moves
from .sketch import FILL, FILLS, Box, Drawing, Sketch, Text

D, SHOWN = 3, 4  # dimensions; nodes 0 to 3 are shown
SELECTED = FILLS[2]


def states():
    """The vectors M of all nodes before each iteration, and after the last permutation."""
    nodes, sent = range(1 << D), vectors(D)
    store = {m: [(m, m ^ place) for place in nodes] for m in nodes}
    found = []
    for i in range(D):
        found.append({m: list(blocks) for m, blocks in store.items()})
        places = [place for place in reversed(nodes) if place >> i & 1]
        for m in nodes:
            for place, block in zip(places, sent[m ^ 1 << i, i], strict=True):
                store[m][place] = block
    found.append({m: [store[m][m ^ place] for place in nodes] for m in nodes})
    return found


def check(torusctl):
    """Raises Failed unless torusd sends the same blocks in the same order."""
    sent, routes = vectors(D), torusctl.routes('2mx2mx2m', paper.name(4))
    for i in range(D):
        for m in range(SHOWN):
            here = paper.sends(routes, m, i)
            if here != sent[m, i]:
                raise Failed(f'iteration {i}: node {m} sends {paper.named(here)}, not '
                             f'{paper.named(sent[m, i])}')


def columns(store, iteration):
    """M[0] to M[7] of the first nodes. Blocks that the iteration sends have an asterisk."""
    marks = [Text(-0.45, 0.85 * place + 0.4, f'M[{place}]', 8, align='right') for place in range(1 << D)]
    for m in range(SHOWN):
        marks.append(Text(1.15 * m + 0.5, -0.4, f'node {m}', 9))
        for place, (source, destination) in enumerate(store[m]):
            chosen = iteration is not None and place >> iteration & 1
            marks.append(Box(1.15 * m, 0.85 * place, 1, 0.8, f'{source}{destination}{"*" if chosen else ""}',
                             SELECTED if chosen else FILLS[0], 9))
    return marks


def figure_one(torusctl):
    check(torusctl)
    titles = [f'({"abc"[i]}) iteration {i}: dimension {i}' for i in range(D)] + ['(d) at the end']
    captions = [f'$x_{i}$ of node 0: {paper.named(vectors(D)[0, i])}' for i in range(D)]
    captions.append('after the final permutation')
    sketches = [Sketch(title, columns(store, i if i < D else None), caption, margin=0.25)
                for i, (title, store, caption) in enumerate(zip(titles, states(), captions))]
    return Drawing(
        'cccube-fig-1', 'Figure 1: a CC-cube algorithm for complete exchange, with d = 3', sketches,
        'The cell mj is the block from node m to node j. In iteration i a node sends the marked blocks to its '
        'neighbour in dimension i, the last block first, and stores the received blocks in their places. '
        'torusd\'s cccube-q4 sends the same blocks in the same order.', columns=4, scale=0.5,
        legend=[(FILL + SELECTED, 'sent in this iteration (*)')])


def loads(torusctl):
    return Drawing(
        'cccube-loads', 'Section 3: channel load by step with communication pipelining, 4×4 torus',
        [moves.heat(torusctl, '4x4', paper.name(q), f'degree Q = {q}') for q in (1, 2, 4, 8)],
        'Blocks on each channel in each step, from torusd\'s routes. White: no blocks. With a higher degree, more '
        'dimensions are busy at the same time.', unit='blocks on the channel')


MAKERS = (figure_one, loads)
