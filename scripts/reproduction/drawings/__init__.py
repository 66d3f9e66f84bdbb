"""Drawings of the papers: networks, the messages of each step, timing charts and channel loads.

Each paper has a module with MAKERS, functions that take torusctl and return a sketch.Drawing. Only the module
render needs Matplotlib.
"""

from ..document import Table, parts
from . import all_port, banyan, broadcast, cccube, one_port, products

MAKERS = {'all-port': all_port.MAKERS, 'broadcast': broadcast.MAKERS, 'banyan': banyan.MAKERS,
          'cccube': cccube.MAKERS, 'one-port': one_port.MAKERS, 'products': products.MAKERS}
PAPERS = {  # printed above the titles
    'all-port': 'Liu, Gu, Bi, Tu, Dong: All-Port Tori',
    'broadcast': 'Yang, Wang: All-to-All Communication, broadcast',
    'banyan': 'Yang, Wang: All-to-All Communication, personalized exchange',
    'cccube': 'Díaz de Cerio, Valero-García, González: Meshes and Tori',
    'one-port': 'Liu, Gu, Ren, Xiong: Multidimensional Tori',
    'products': 'Dimakopoulos, Dimopoulos: Multidimensional Interconnection Networks'}


def add(paper, torusctl):
    """Appends the drawings of a document.Paper to its parts, and returns the paper."""
    paper.parts += parts(torusctl, MAKERS[paper.name])
    for part in paper.parts:
        if not isinstance(part, Table):
            part.paper = PAPERS[paper.name]
    return paper


def without_marks(paper):
    """Removes the marks of the drawings from a paper that was turned into a dictionary, and returns it."""
    for part in paper['parts']:
        for sketch in part.get('sketches', ()):
            sketch.pop('marks', None)
    return paper
