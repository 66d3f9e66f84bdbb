"""The drawings of scripts/reproduce: they show the messages that torusctl counts, their labels can be read, and the
list of the papers' items is complete."""

import os
from collections import Counter

import pytest
from support.reproduction import drawings as names
from support.reproduction import reproduction  # noqa: F401
from torus_net import CHECKOUT

pytestmark = [pytest.mark.plain, pytest.mark.usefixtures('reproduction')]

BIN = os.environ.get('TORUS_BIN', CHECKOUT / 'build')

# Counted in the texts of the papers, where two of the algorithms for all-port tori are only cited. The slides of Yang
# and Wang do not number their drawings.
NUMBERED = {
    'Liu, Gu, Bi, Tu, Dong: All-Port Tori': {
        'figure': 6, 'table': 2, 'lemma': 4, 'algorithm': 4},
    'Yang, Wang: All-to-All Communication': {
        'figure': 14, 'table': 3, 'theorem': 4, 'corollary': 3, 'algorithm': 3, 'example': 5},
    'Díaz de Cerio, Valero-García, González: Meshes and Tori': {
        'figure': 1, 'algorithm': 1},
    'Liu, Gu, Ren, Xiong: Multidimensional Tori': {
        'figure': 7, 'table': 1, 'lemma': 1, 'algorithm': 6},
    'Dimakopoulos, Dimopoulos: Multidimensional Interconnection Networks': {
        'figure': 6, 'table': 2, 'theorem': 5, 'corollary': 3, 'algorithm': 3, 'example': 2},
}
NAMED = {  # items with a name instead of a number
    ('Liu, Gu, Bi, Tu, Dong: All-Port Tori', 'algorithm'): ['AR', 'AT2', '[3, 4]', '[7, 8]'],
    ('Liu, Gu, Bi, Tu, Dong: All-Port Tori', 'table'): ['I', 'II'],
    ('Yang, Wang: All-to-All Communication', 'algorithm'): ['broadcast', 'ATAPE', 'LatinSquare'],
    ('Yang, Wang: All-to-All Communication', 'table'): ['1', '2', 'Comparisons'],
    ('Díaz de Cerio, Valero-García, González: Meshes and Tori', 'algorithm'): ['CC-cube'],
    ('Liu, Gu, Ren, Xiong: Multidimensional Tori', 'algorithm'): ['AR1', 'AT2', 'PT4', 'PTk', 'MT3', 'MTk'],
    ('Dimakopoulos, Dimopoulos: Multidimensional Interconnection Networks', 'algorithm'): ['A1', 'A2', 'A3'],
}


LARGE = 'one-port-fig-4'  # takes eight seconds: plans for 4096 nodes


@pytest.fixture(scope='module')
def torusctl():
    from reproduction.torusctl import Torusctl
    return Torusctl(f'{BIN}/torusctl')


@pytest.fixture(scope='module')
def drawn(torusctl):
    """{name: Drawing}, without the large one"""
    from reproduction import drawings
    from reproduction.drawings import one_port
    found = {}
    for makers in drawings.MAKERS.values():
        for make in makers:
            if make is one_port.figure_four:
                continue
            drawing = make(torusctl)
            assert drawing.name not in found
            found[drawing.name] = drawing
    return found


# ---- The list ------------------------------------------------------------------------------------

def test_list_agrees_with_the_numbering_of_the_papers():
    from reproduction import items
    assert {paper: dict(Counter(item.kind for item in listed)) for paper, listed in items.LIST.items()} == NUMBERED
    for paper, kinds in NUMBERED.items():
        for kind, count in kinds.items():
            numbers = [item.number for item in items.LIST[paper] if item.kind == kind]
            assert numbers == NAMED.get((paper, kind), [str(i) for i in range(1, count + 1)]), (paper, kind)


def test_every_item_has_a_verdict():
    from reproduction import items
    for listed in items.LIST.values():
        for item in listed:
            assert item.how in (items.RUN, items.DRAWN)
            assert item.kind in items.KINDS
            assert not item.members or item.how == items.RUN, item
            assert item.where, item


def test_all_drawings_are_made(drawn):
    assert {*drawn, LARGE} == names()


# ---- What they show ------------------------------------------------------------------------------

def arrows(sketch):
    from reproduction.drawings.sketch import Arrow
    return [mark for mark in sketch.marks if isinstance(mark, Arrow)]


@pytest.mark.parametrize('name, counts', [
    ('all-port-fig-3', [16, 8, 8, 8]),  # AR on 8: all channels, then every second node each way
    ('one-port-fig-3', [12, 12, 12, 12]),  # AR1 on 12: all nodes send one message in each step
    ('broadcast-pattern', [40, 80, 24]),  # one for each node that is reached
])
def test_an_arrow_for_each_message(drawn, name, counts):
    assert [len(arrows(sketch)) for sketch in drawn[name].sketches] == counts


@pytest.mark.full
def test_each_node_of_the_4_cube_swaps_with_another(torusctl):
    from reproduction.drawings import one_port
    drawing = one_port.figure_four(torusctl)
    assert drawing.name == LARGE and [len(arrows(sketch)) for sketch in drawing.sketches] == [8] * 4


def test_phase_one_reaches_the_eight_nodes_around(drawn):
    first = arrows(drawn['all-port-fig-4'].sketches[0])
    assert len(first) == 8
    assert {arrow.end for arrow in first} == {(4 + x, 4 + y) for x in (-1, 0, 1) for y in (-1, 0, 1)} - {(4, 4)}


def test_groups_take_all_three_dimensions(drawn):
    captions = [sketch.caption for sketch in drawn['one-port-fig-5'].sketches]
    assert captions == ['$G_0$ along x, $G_1$ along y, $G_2$ along z', '$G_0$ along y, $G_1$ along z, $G_2$ along x',
                        '$G_0$ along z, $G_1$ along x, $G_2$ along y']


@pytest.mark.parametrize('name, panel, transmission', [
    ('all-port-loads', 0, 8), ('all-port-loads', 1, 64), ('one-port-loads', 2, 756), ('products-loads', 0, 256),
    ('products-loads', 1, 64), ('broadcast-loads', 0, 20), ('cccube-loads', 0, 32)])
def test_loads_sum_up_to_the_transmission(drawn, name, panel, transmission):
    rows = drawn[name].sketches[panel].rows
    assert sum(max(column) for column in zip(*rows)) == transmission


# ---- How they look -------------------------------------------------------------------------------

def test_labels_can_be_read(drawn):
    pytest.importorskip('matplotlib')
    from matplotlib import pyplot
    from reproduction import drawings
    from reproduction.drawings import render
    from support import axes
    problems = {}
    for drawing in drawn.values():
        drawing.paper = max(drawings.PAPERS.values(), key=len)
        canvas = render.make(drawing)
        problems[drawing.name] = list(axes.unreadable(canvas))
        pyplot.close(canvas)
    assert not any(problems.values()), problems


def test_titles_say_what_is_drawn(drawn):
    from reproduction import drawings
    for drawing in drawn.values():
        assert drawing.title and drawing.note + drawing.sketches[0].title, drawing.name
    for prefix, paper in drawings.PAPERS.items():
        assert any(drawing.name.startswith(prefix) for drawing in drawn.values()), paper


def test_files_are_the_same_in_every_run(drawn, tmp_path):
    pytest.importorskip('matplotlib')
    from reproduction import plots
    for run in ('one', 'two'):
        (tmp_path / run).mkdir()
        plots.draw(drawn['products-fig-5'], tmp_path / run)
    files = sorted(file.name for file in (tmp_path / 'one').iterdir())
    assert files == ['products-fig-5.pdf', 'products-fig-5.png', 'products-fig-5.svg']
    for name in files:
        assert (tmp_path / 'one' / name).read_bytes() == (tmp_path / 'two' / name).read_bytes()


# ---- Wrong answers -------------------------------------------------------------------------------

class Wrong:
    """A torusctl whose a3 has a leg of two hops."""

    def routes_from_0(self, dims, algorithm):
        return {2: [[0, 1, 1, 2]]}


def test_a_wrong_schedule_is_not_drawn():
    from reproduction.document import Failed, parts
    from reproduction.drawings import products
    with pytest.raises(Failed):
        products.exchanges(Wrong())
    table, = parts(Wrong(), (products.algorithm_three,))
    assert 'leg of 2 hops' in table.rows[0].failure
