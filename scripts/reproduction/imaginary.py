"""Imaginary nodes: the cost of an algorithm on a torus whose sizes it does not take."""

from dataclasses import dataclass
from typing import Callable

from .document import Table


@dataclass
class Case:
    dims: str
    padded: str  # the sizes with imaginary nodes
    algorithm: str
    formula: Callable  # of the padded sizes: (startups, blocks)
    known: tuple  # the same, as found


def table(torusctl, name, title, formula_name, cases):
    made = Table(name, title,
                 ('torus, padded to', 'algorithm', 'padded torus itself', 'contended steps', 'bound',
                  'stream', 'a2'),
                 ('startups', 'transmission'),
                 f'Paper: {formula_name} for the padded torus; the paper says no more about other '
                 'sizes. Padded torus itself, stream, a2: startups and blocks there, and of these '
                 'two algorithms on the real torus. Bound: of the real torus, for the ports of the '
                 'row\'s algorithm. All enumerated.')
    for case in cases:
        expected = case.formula([int(size) for size in case.padded.split('x')])
        why = ('fewer nodes, fewer blocks' if case.known[1] <= expected[1] else
               'nodes handle the messages of all imaginary nodes that they host')
        labels = [f'{case.dims}, {case.padded}', case.algorithm, '-', '-', '-', '-', '-']
        with made.row(*labels, paper=expected, known=case.known, why=why) as row:
            plan = torusctl.plan(case.dims, case.algorithm)
            others = [counts(torusctl.plan(*which)) for which in (
                (case.padded, case.algorithm), (case.dims, 'stream'), (case.dims, 'a2'))]
            row.labels = (*labels[:2], others[0], plan['contended_steps'], plan['bound'],
                          *others[1:])
            row.here = plan['startups'], plan['transmission']
    return made


def counts(plan):
    return f'{plan["startups"]}, {plan["transmission"]:g}'
