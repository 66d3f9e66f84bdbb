"""scripts/reproduce: the papers' tables and figures, from what torusctl counts. Each
paper is computed once."""

import json
import os
import re
import shlex
import subprocess
from itertools import combinations

import pytest
from support.reproduction import drawings, reproduction  # noqa: F401
from torus_net import CHECKOUT
from torus_net.patience import run

pytestmark = pytest.mark.plain

BIN = os.environ.get('TORUS_BIN', CHECKOUT / 'build')
PAPERS = ('all-port', 'broadcast', 'banyan', 'cccube', 'one-port', 'products')
LIMIT = 300  # seconds of Patience; all papers together take about 15 on an idle machine


def reproduce(out, *options):
    return run([CHECKOUT / 'scripts' / 'reproduce', '--bin', BIN, '--no-install', '--out', out, *options], LIMIT)


def by_table(folder):
    """{name of the table: {labels: row}}"""
    papers = json.loads((folder / 'results.json').read_text())
    return {part['name']: {tuple(row['labels']): row for row in part['rows']}
            for paper in papers for part in paper['parts'] if 'rows' in part}


def compute(paper, out):
    """The error, or None."""
    try:
        done = reproduce(out, '--no-plots', '--paper', paper)
    except subprocess.TimeoutExpired:
        return (f'late: scripts/reproduce --paper {paper} has not ended after {LIMIT} s, without the time that this '
                'machine gave to others')
    return done.stdout + done.stderr if done.returncode != 0 else None


@pytest.fixture(scope='module')
def computed(tmp_path_factory):
    """computed(paper): the folder with its results. Each paper is computed once; one that is late, or wrong, fails the
    tests that use it, and no others."""
    papers = {}

    def get(paper):
        if paper not in papers:
            out = tmp_path_factory.mktemp(paper)
            papers[paper] = out, compute(paper, out)
        out, problem = papers[paper]
        if problem:
            pytest.fail(problem, pytrace=False)
        return out

    return get


def of(*papers):
    """For a test that uses the tables of all of these papers."""
    return pytest.mark.parametrize('tables', [papers], indirect=True, ids=['-'.join(papers)])


@pytest.fixture
def tables(request, computed):
    return {name: table for paper in request.param for name, table in by_table(computed(paper)).items()}


def same(tables, name, *labels):
    """Values on which the paper and the enumeration agree."""
    row = tables[name][labels]
    assert row['paper'] == row['here']
    return row['here']


def rows(tables, name):
    return list(tables[name].values())


@pytest.mark.parametrize('tables', [(paper,) for paper in PAPERS], indirect=True, ids=PAPERS)
def test_every_difference_is_a_known_one(tables):
    for name, of_table in tables.items():
        for row in of_table.values():
            assert not row['failure']
            assert row['paper'] == row['here'] or row['why'] and row['here'] == row['known'], name


@of(*PAPERS)
def test_copies_of_a_formula_are_marked(tables):
    copies = {name for name, of_table in tables.items() for row in of_table.values()
              if row['by'] == 'formula'}
    assert copies == {'all-port-table-2', 'one-port-table-1-compared', 'broadcast-calvin'}
    assert {row['labels'][1] for row in rows(tables, 'all-port-table-2')
            if row['by'] == 'enumeration'} == {'proposed (AT2)', '[10] Suh, Shin'}


@of('all-port')
def test_all_port_tables(tables):
    assert same(tables, 'lemma-2', 20) == [10, 5, 25, 20, 50]
    assert same(tables, 'lemma-3', 8, 8) == [2, 16, 24, 24]
    assert same(tables, 'lemma-4', 128, 128, 49152) == [66, 262144, 262144]
    assert same(tables, 'lemma-4', 8, 12, 288) == [8, 144, 144]
    assert same(tables, 'lemma-4', 12, 20, 720) == [12, 600, 600]
    assert tables['lemma-4'][32, 36, 3456]['here'] == [20, 5192, 5184]
    printed = rows(tables, 'lemma-4-printed')
    assert {tuple(row['labels']): row['here'][1:] for row in printed
            if row['here'] != row['paper']} == {
        (4, 4): [12, 12], (4, 12): [76, 76], (8, 12): [152, 152], (12, 12): [228, 228],
        (12, 16): [424, 384], (12, 20): [620, 612]}
    assert tables['all-port-table-1']['lower', 'G10']['here'] == [8, 'QI, QIV']
    assert same(tables, 'all-port-table-1', 'left', 'G11') == [4, 'QIV']
    assert same(tables, 'all-port-table-2', '16x16', '[6] Suh, Yalamanchili', 'formula',
                2176) == [9, 2176]
    assert same(tables, 'all-port-table-2', '16x16', 'proposed (AT2)', 'enumeration',
                768) == [10, 512]
    assert tables['all-port-faster']['16x16', '[6] Suh, Yalamanchili']['here'] == ['from 2']
    assert tables['all-port-direct'][('32x32',)]['here'] == [4096, 4096, 4096, 0, True]
    assert tables['all-port-previous']['8x12', 8, 352, 320, 144]['here'] == [9120, 0, True, False, False]


@of('one-port')
def test_one_port_tables(tables):
    assert same(tables, 'ar1', 12) == [4, 24]
    assert same(tables, 'ar1', 20) == [6, 60]
    assert same(tables, 'one-port-table-1', '16x16', 'AT2') == [8, 1024, 1024, 0]
    assert same(tables, 'one-port-table-1', '12x12x12', 'MTk') == [12, 8640, 8640, 0]
    four = tables['one-port-table-1']['8x8x8x8', 'PTk']
    assert (four['paper'], four['here']) == ([16, 24576, 24576, 0], [12, 24576, 24576, 0])
    assert tables['one-port-table-1']['6x6x6', 'MTk']['here'] == [9, 756, 756, 0]
    eight = tables['pt-coefficients'][8, '16^8', 16, 'classes']
    assert (eight['paper'], eight['here']) == ([20], [16])


@of('all-port', 'one-port')
def test_imaginary_nodes(tables):
    padded = {tuple(row['labels'][:2]): row
              for name in ('all-port-imaginary', 'one-port-imaginary') for row in rows(tables, name)}
    row = padded['7x9, 8x12', 'at2']
    assert (row['paper'], row['here']) == ([8, 144], [8, 131])
    assert row['labels'] == ['7x9, 8x12', 'at2', '8, 144', 3, 70, '7, 70', '14, 248']
    assert padded['7x9, 8x12', 'at2-1port']['here'] == [36, 1006]


@of('broadcast')
def test_broadcast_tables(tables):
    assert same(tables, 'corollary-1', 9, 20, 20) == [20, 0, 40]
    assert tables['corollary-1'][4, 4, 5]['here'] == [5, 5, 8]
    assert tables['corollary-1'][8, 16, 17]['here'] == [18, 9, 32]
    assert same(tables, 'broadcast-theorem-1', '8×8 mesh') == [14, 32]
    assert same(tables, 'broadcast-theorem-1', '5×5 torus') == [4, 6]
    assert same(tables, 'broadcast-dimensions', '3×3×3 torus', 5) == [5, 26]
    assert same(tables, 'broadcast-dimensions', '5×5×5 torus', 22) == [21, 124]
    assert [row['here'][0] for row in rows(tables, 'broadcast-dimensions')] == [5, 21, 10, 25, 21, 10, 22, 24]
    assert same(tables, 'perimeters', '8×8 torus') == [8, '1 4 8 12 14 12 8 4 1']
    assert same(tables, 'theorem-3-phases', '9×9 torus', 6) == [3, 3]
    for row in rows(tables, 'pattern-parents'):
        assert row['paper'] == row['here']
    assert same(tables, 'theorem-4', 9, 1, 1024, 301.28) == [302.28, 608.56]
    late = tables['theorem-4'][17, 10, 16, 97.672]
    assert late['paper'] == [795.352, 335.344] and late['here'][0] < 795
    assert same(tables, 'broadcast-calvin', 9, 1, 1024) == [872.124]
    assert tables['theorem-4-in-time'][7, 'fifo', 'input']['paper'][:2] == [98, 38]
    assert tables['theorem-4-in-time'][7, 'fifo', 'input']['here'][:2] == [99, 39]
    assert same(tables, 'theorem-4-in-time', 7, 'longest', 'output')[:2] == [98, 38]
    assert tables['broadcast-faster'][5, 64]['here'] == [58.27, 'never']


@of('banyan')
def test_banyan_tables(tables):
    assert same(tables, 'latin-square', 5, '111', 'φ₃φ₂φ₁') == ['7 3 5 1 6 2 4 0'] * 2
    assert same(tables, 'banyan-settings', 4, '×', '×', '=') == ['6 4 2 0 7 5 3 1']
    assert len({row['labels'][1:][i] for row in rows(tables, 'banyan-settings')
                for i in range(3)}) == 2
    assert same(tables, 'banyan-conflicts', 64, 6) == [69, 0, 4096]
    for network in ('omega', 'baseline'):
        assert same(tables, 'banyan-others', network, 64, 6) == [69, 0, 4096]
    assert all(row['here'] == [True] * 4 for row in rows(tables, 'latin-constructions'))
    assert [row['here'][0] for row in rows(tables, 'banyan-networks')] == [8, 8, 4, 4, 6, 6, 1]


@of('cccube')
def test_cccube_tables(tables):
    assert same(tables, 'cccube-figure-1', 0, 0) == ['07 05 03 01']
    assert same(tables, 'cccube-pipelining', '4×4 torus', 4, 8) == [7, 14, 0]
    assert tables['cccube-pipelining']['8×8 torus', 1, 64]['here'] == [10, 320, 0]
    assert same(tables, 'cccube-ports', '4×4 torus', 1, 4) == [16, 32]
    assert same(tables, 'cccube-ports', '4×4×4 torus', 2, 8) == [27, 108]
    best = {tuple(row['labels'][:2]): row for row in rows(tables, 'cccube-best')}
    assert best['4×4 torus', 16384]['paper'] == best['4×4 torus', 16384]['here'] == [8, 2.807]
    assert best['4×4×4 torus', 1024]['paper'][0] == 5
    assert best['4×4×4 torus', 1024]['here'][0] == 4


@of('products')
def test_product_tables(tables):
    assert same(tables, 'theorem-3', '3x4x5') == [172]
    assert same(tables, 'a1', '8x8', 256) == [1152]
    assert same(tables, 'theorem-3-networks', 'complete:3 x complete:4', 5, 17) == [17]
    for name in 'corollary-1-status', 'theorem-3-cayley':
        for row in rows(tables, name):
            assert row['paper'] == row['here']
    assert same(tables, 'theorem-3-cayley', 'star graph') == [62]
    assert same(tables, 'theorem-3-cayley', 'pancake graph × 5') == [5 * 60 + 24 * 6]
    assert same(tables, 'theorem-5', '8×8 torus', 64) == [64, 0, True]
    assert tables['theorem-5']['6×6 torus', 30]['here'] == [30, 0, True]


@pytest.mark.usefixtures('reproduction')
def test_items_are_all_there(computed):
    """What the list of items refers to is made, besides the drawings (test_reproduce_figures.py), and what is made
    belongs to an item."""
    from reproduction import items
    made = {part['name'] for name in PAPERS for paper in json.loads((computed(name) / 'results.json').read_text())
            for part in paper['parts']}
    for paper, listed in items.LIST.items():
        for item in listed:
            assert set(item.where) <= made | drawings(), (paper, item)
    assert made <= {name for listed in items.LIST.values() for item in listed for name in item.where}


@pytest.mark.parametrize('paper', PAPERS)
def test_page_of_a_paper(computed, paper):
    check_page(computed(paper), [paper])


@pytest.mark.full  # computes all papers a second time, for one page with all of them
def test_page_of_all_papers(tmp_path):
    pytest.importorskip('matplotlib')
    done = reproduce(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    check_page(tmp_path, PAPERS)
    assert 'Table II' in (tmp_path / 'all-port.txt').read_text()


def check_page(folder, papers):
    page = (folder / 'index.html').read_text()
    assert not re.search('(src|href)="http', page)  # self-contained
    for name in papers:
        assert f'href="{name}.txt"' in page and (folder / f'{name}.txt').exists()


# ---- Wrong answers -------------------------------------------------------------------------------

WRONG = '''#!/bin/bash
case " $* " in
*' --algorithm a3 '*) echo 'torusctl: a3 has lost its way' >&2; exit 1 ;;
*' --dims 5x5 --algorithm a1 '*) {real} "$@" | sed 's/"transmission":180/"transmission":181/' ;;
*' --dims 4x4 --algorithm a1 --routes '*) {real} "$@" | sed '$d' ;;
*' --dims 3x4x5 --algorithm a1 --routes '*) {real} "$@" | sed 's/,1]]/,2]]/' ;;
*' --dims 8x8x8 --algorithm a2 '*) {real} "$@" | sed 's/"transmission":3072/"transmission":3071/' ;;
*' --dims 4x4x4x4 --algorithm a2 '*) echo '{{"transmission":' ;;
*' bounds '*complete:5*) echo '[]' ;;
*' simulate '*saadschultz*) kill $$ ;;
*) exec {real} "$@" ;;
esac
'''


@pytest.mark.full
def test_wrong_algorithms_are_rows(tmp_path):
    wrong = tmp_path / 'torusctl'
    wrong.write_text(WRONG.format(real=shlex.quote(os.path.abspath(f'{BIN}/torusctl'))))
    wrong.chmod(0o755)
    done = reproduce(tmp_path / 'out', '--bin', tmp_path, '--no-plots', '--paper', 'products',
                     '--paper', 'broadcast')
    assert done.returncode == 1
    assert 'Traceback' not in done.stderr and 'simulate' in done.stderr
    tables = by_table(tmp_path / 'out')
    a1 = {row['labels'][0]: row for row in rows(tables, 'a1')}
    assert 'says transmission 181' in a1['5x5']['failure']
    assert 'no route' in a1['4x4']['failure']
    assert a1['3x4x5']['failure']
    assert a1['8x8']['here'] == a1['8x8']['paper'] and not a1['8x8']['failure']
    a2 = {row['labels'][0]: row for row in rows(tables, 'theorem-3')}
    assert a2['8x8x8']['here'] == [3071] and not a2['8x8x8']['why']
    assert 'makes no sense' in a2['4x4x4x4']['failure']
    assert a2['8x8']['here'] == [256]
    assert all('a3 has lost its way' in row['failure'] for row in rows(tables, 'theorem-5'))
    status = {row['labels'][0]: row for row in rows(tables, 'corollary-1-status')}
    assert [name for name, row in status.items() if row['failure']] == [
        'complete:5 x complete:5 x complete:5']
    page = (tmp_path / 'out' / 'index.html').read_text()
    assert 'a3 has lost its way' in page
    assert 'Missing: 9×9 torus, δ = 1 µs, Saad, Schultz' in page
    assert 'Missing' in (tmp_path / 'out' / 'broadcast.txt').read_text()


@pytest.mark.usefixtures('reproduction')
def test_a_known_difference_excuses_no_other():
    from reproduction.document import Paper, Table
    table = Table('name', 'title', ('n',), ('blocks',))
    for n, here in ((1, 7), (2, 8), (3, 9)):
        table.add(n, paper=(7,), here=(here,), known=(8,), why='a reason')
    with table.row(4, paper=(7,)) as row:
        row.here = (1 // 0,)
    assert [row.explained for row in table.rows] == [True, True, False, False]
    assert 'not explained (known: 8)' in table.cells(table.rows[2])[-1]
    assert len(Paper('name', 'title', 'citation', [table]).unexplained) == 2


@pytest.mark.usefixtures('reproduction')
def test_routes_are_followed():
    from reproduction.document import Failed
    from reproduction.walk import follow
    right = [(0, 1, 0, [[0, 0, 1, 1]]), (1, 0, 0, [[0, 0, -1, 1]])]
    counts = follow('2m', right)
    assert (counts.startups, counts.transmission, counts.contended) == (1, 1, 0)
    assert counts.keeps('one-port, single hops')
    for wrong in (right[:1], right + right[:1], [(0, 1, 0, []), right[1]],
                  [(0, 1, 0, [[0, 0, -1, 1]]), right[1]],
                  [(0, 1, 0, [[1, 0, 1, 1], [1, 0, -1, 1], [2, 0, 1, 1]]), right[1]]):
        with pytest.raises(Failed):
            follow('2m', wrong)
    shared = follow('3m', [(0, 1, 0, [[0, 0, 1, 1]]), (0, 2, 0, [[0, 0, 1, 2]]),
                           (1, 2, 0, [[1, 0, 1, 1]]), (1, 0, 0, [[1, 0, -1, 1]]),
                           (2, 1, 0, [[0, 0, -1, 1]]), (2, 0, 0, [[2, 0, -1, 2]])])
    assert (shared.startups, shared.transmission, shared.contended) == (3, 4, 1)
    assert not shared.keeps('all-port') and not shared.one_port


# ---- Plots ---------------------------------------------------------------------------------------

@pytest.fixture
def figures(computed, reproduction):
    pytest.importorskip('matplotlib')
    from reproduction.document import Curve, Figure, Panel
    drawn = [part for name in PAPERS for paper in json.loads((computed(name) / 'results.json').read_text())
             for part in paper['parts'] if 'panels' in part]
    assert len(drawn) == 5
    return [Figure(**{**part, 'panels': [
        Panel(panel['title'], [Curve(**curve) for curve in panel['curves']])
        for panel in part['panels']]}) for part in drawn]


def test_plots(figures):
    from matplotlib import pyplot
    from reproduction import plots
    from support import axes
    for figure in figures:
        canvas = plots.make(figure)
        canvas.canvas.draw()
        for axis in canvas.axes:
            for which in 'xy':
                assert len(axes.labelled(axis, which)) >= 3, (figure.name, axis.get_title(), which)
            assert_no_hidden_markers(axis)
        assert not list(axes.unreadable(canvas)), figure.name
        pyplot.close(canvas)


def assert_no_hidden_markers(axis):
    """None lies on a marker of another curve, not even in part."""
    places = []
    for line in axis.get_lines():
        if line.get_marker() not in (None, 'None'):
            first, step = line.get_markevery()
            size = line.get_markersize() * axis.figure.dpi / 72
            points = axis.transData.transform(line.get_xydata()[first::step])
            assert len(points) > 0
            places.append((line.get_label(), points, size))
    for (a, these, size), (b, those, _) in combinations(places, 2):
        for x, y in these:
            nearest = min((x - u) ** 2 + (y - v) ** 2 for u, v in those) ** 0.5
            assert nearest > size, (axis.get_title(), a, b)


def test_plots_do_not_change(figures, tmp_path):
    from reproduction import plots
    figure = figures[1]
    del figure.panels[1:]
    files = []
    for name in ('one', 'two'):
        folder = tmp_path / name
        folder.mkdir()
        plots.draw(figure, folder)
        files.append([(file.name, file.read_bytes()) for file in sorted(folder.iterdir())])
    assert files[0] == files[1]
    assert [name.rpartition('.')[2] for name, _ in files[0]] == ['pdf', 'png', 'svg']
    assert all(len(content) > 10000 for _, content in files[0])


def test_few_decades_have_labels_too(reproduction):
    pytest.importorskip('matplotlib')
    from matplotlib import pyplot
    from support import axes
    for low, high in ((1, 1e6), (0.3, 700), (2, 90), (3, 8), (4.1, 4.9), (1, 1.02)):
        for base in (2, 4, 10):
            canvas, axis = pyplot.subplots()
            axis.plot([1, 2], [low, high])
            axes.logarithmic(axis, 'y', base)
            canvas.canvas.draw()
            labels = axes.labelled(axis, 'y')
            assert 3 <= len(labels) <= 12, (low, high, base, labels)
            pyplot.close(canvas)


def test_wrong_usage(tmp_path):
    assert reproduce(tmp_path, '--plots').returncode == 2
    assert reproduce(tmp_path, '--paper', 'seven').returncode == 2
    done = reproduce(tmp_path, '--bin', tmp_path)
    assert done.returncode == 1
    assert 'no torusctl in' in done.stderr
