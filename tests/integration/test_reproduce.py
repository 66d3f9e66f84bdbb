"""scripts/reproduce: the papers' figures, from what torusctl counts."""

import json
import os
import subprocess

import pytest
from torus_net import CHECKOUT

BIN = os.environ.get('TORUS_BIN', CHECKOUT / 'build')


def reproduce(out, *options):
    return subprocess.run([CHECKOUT / 'scripts' / 'reproduce', '--bin', BIN, '--no-install', '--out',
                           out, *options], capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp('reproduce')
    done = reproduce(out, '--no-plots')
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope='module')
def papers(folder):
    return json.loads((folder / 'results.json').read_text())


@pytest.fixture(scope='module')
def tables(papers):
    """{name of the table: {labels: row}}"""
    return {part['name']: {tuple(row['labels']): row for row in part['rows']}
            for paper in papers for part in paper['parts'] if 'rows' in part}


def same(tables, name, *labels):
    """What the paper and the enumeration agree on."""
    row = tables[name][labels]
    assert row['paper'] == row['here']
    return row['here']


def test_every_difference_has_a_reason(tables):
    for name, rows in tables.items():
        for row in rows.values():
            assert row['paper'] == row['here'] or row['why'], (name, row)


def test_all_port_tables(tables):
    assert same(tables, 'lemma-2', 20) == [10, 5, 25, 20, 50]
    assert same(tables, 'lemma-3', 8, 8) == [2, 16, 24, 24]
    assert same(tables, 'lemma-4', 128, 128) == [66, 262144, 262144, 49152]
    assert tables['lemma-4'][8, 12]['here'] == [8, 152, 144, 288]
    assert tables['lemma-4'][8, 12]['paper'] == [8, 144, 144, 288]
    printed = tables['lemma-4-printed']
    assert {shape: row['here'] for shape, row in printed.items() if row['here'] != row['paper']} == {
        (4, 4, 8): [12, 12], (4, 12, 72): [76, 76], (8, 12, 144): [152, 152],
        (12, 12, 216): [228, 228], (12, 16, 384): [424, 384]}
    assert tables['all-port-table-1']['lower', 'G10']['here'] == [8, 'QI, QIV']
    assert same(tables, 'all-port-table-1', 'left', 'G11') == [4, 'QIV']
    row = same(tables, 'all-port-table-2', '16x16', '[6] Suh, Yalamanchili', 'formula')
    assert row == [9, 2176, 2176]
    row = same(tables, 'all-port-table-2', '16x16', 'proposed (AT2)', 'enumeration')
    assert row == [10, 512, 768]
    assert tables['all-port-faster']['16x16', '[6] Suh, Yalamanchili']['here'] == ['2']


def test_one_port_tables(tables):
    assert same(tables, 'ar1', 12) == [4, 24]
    assert same(tables, 'ar1', 20) == [6, 60]
    assert same(tables, 'one-port-table-1', '16x16', 'AT2', 'enumeration') == [8, 1024, 1024]
    assert same(tables, 'one-port-table-1', '12x12x12', 'MTk', 'enumeration') == [12, 8640, 8640]
    four = tables['one-port-table-1']['8x8x8x8', 'PTk', 'enumeration']
    assert (four['paper'], four['here']) == ([16, 24576, 24576], [12, 24576, 24576])
    assert tables['one-port-table-1']['6x6x6', 'MTk', 'enumeration']['here'] == [9, 756, 756]
    assert tables['pt-coefficients'][8,]['here'] == [16]


def test_broadcast_tables(tables):
    assert same(tables, 'corollary-1', 9, 20) == [20, 40]
    assert tables['corollary-1-even'][4, 4]['here'] == [5, 5, 4, 8]
    assert tables['corollary-1-even'][8, 16]['here'] == [9, 18, 16, 32]
    assert same(tables, 'theorem-4', 9, 1, 1024, 301.28) == [302.28, 608.56, 872.124]
    assert tables['broadcast-faster'][5, 64]['here'] == [58.27, 'never']


def test_product_tables(tables):
    assert same(tables, 'theorem-3', '3x4x5') == [172]
    assert same(tables, 'theorem-3-networks', 'complete:3 x complete:4', 5) == [17]
    for row in tables['corollary-1-status'].values():
        assert row['paper'] == row['here']
        assert row['here'][0] == row['labels'][1]  # as found by search
    assert same(tables, 'theorem-5', '8x8 torus', 64) == [64]
    assert tables['theorem-5']['6x6 torus', 30]['here'] == [30]


def test_pages(folder):
    page = (folder / 'index.html').read_text()
    assert 'http' not in page  # self-contained
    for text in folder.glob('*.txt'):
        assert f'href="{text.name}"' in page
    assert 'Table II' in (folder / 'all-port.txt').read_text()


def test_plots(papers, tmp_path, monkeypatch):
    pytest.importorskip('matplotlib')
    monkeypatch.syspath_prepend(CHECKOUT / 'scripts')
    from reproduction import plots
    from reproduction.document import Curve, Figure, Panel
    drawn = [part for paper in papers for part in paper['parts'] if 'panels' in part]
    assert len(drawn) == 3
    for part in drawn:
        panels = [Panel(panel['title'], [Curve(**curve) for curve in panel['curves']])
                  for panel in part['panels']]
        plots.draw(Figure(**{**part, 'panels': panels}), tmp_path)
        assert (tmp_path / f'{part["name"]}.png').stat().st_size > 10000
        assert '<svg' in (tmp_path / f'{part["name"]}.svg').read_text()


def test_wrong_usage(tmp_path):
    assert reproduce(tmp_path, '--plots').returncode == 2
    done = reproduce(tmp_path, '--bin', tmp_path)
    assert done.returncode == 1
    assert 'no torusctl in' in done.stderr
