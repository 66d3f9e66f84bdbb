"""Statements of the papers' page about algorithms, which it makes from torusctl's answers, compared with independent
rules. This makes only parts of the page; test_reproduce.py makes all of it."""

import json
import os
import shlex
import sys
from collections import defaultdict
from itertools import product
from math import ceil, prod

import pytest
from torus_net import CHECKOUT
from torus_net.patience import run

pytestmark = pytest.mark.plain

BIN = os.environ.get('TORUS_BIN', CHECKOUT / 'build')
TS, TW = 75, 0.011  # of the Intel Paragon, microseconds: Liu et al., section 5


def ask(*words):
    """The JSON object that a command of torusctl prints."""
    done = run([f'{BIN}/torusctl', *map(str, words), '--json'])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def routes(dims, algorithm):
    done = run([f'{BIN}/torusctl', 'plan', '--dims', dims, '--algorithm', algorithm, '--routes'])
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope='module')
def page():
    """The page's modules by name, and torusctl as they ask it."""
    sys.path.insert(0, str(CHECKOUT / 'scripts'))
    from reproduction import (all_port, broadcast, cccube, document, model, one_port, products, text,
                              torusctl)
    yield {'torusctl': torusctl.Torusctl(f'{BIN}/torusctl'), 'all_port': all_port,
           'broadcast': broadcast, 'cccube': cccube, 'document': document, 'model': model,
           'one_port': one_port, 'products': products, 'text': text, 'program': torusctl.Torusctl}
    sys.path.remove(str(CHECKOUT / 'scripts'))


def paper_of(page, module, tmp_path):
    """(its tables by name, its text)"""
    paper = page[module].paper(page['torusctl'])
    page['text'].write(paper, tmp_path / 'paper.txt')
    return ({table.name: table for table in paper.tables},
            ' '.join((tmp_path / 'paper.txt').read_text().split()))


def columns(table, row):
    """{head: cell}"""
    cells = dict(zip(table.labels, row.labels))
    return cells | dict(zip(table.quantities, row.here))


# ---- Bounds --------------------------------------------------------------------------------------

def shape(dims):
    return [(int(size.rstrip('m')), not size.endswith('m')) for size in dims.split('x')]


def cables(dims):
    """Every cable as its two ends, coordinates. A ring of 2 has two between the same nodes."""
    sizes = shape(dims)
    for node in product(*(range(n) for n, _ in sizes)):
        for dim, (n, wraps) in enumerate(sizes):
            if node[dim] + 1 < n or wraps and n > 1:
                yield node, node[:dim] + ((node[dim] + 1) % n,) + node[dim + 1:]


def cut_bound(dims):
    """The most blocks that a cut through the middle of a dimension asks of each cable it cuts."""
    sizes, every = shape(dims), list(cables(dims))
    nodes, most = prod(n for n, _ in sizes), 0
    for dim, (n, _) in enumerate(sizes):
        cut = sum((a[dim] < n // 2) != (b[dim] < n // 2) for a, b in every)
        near = nodes // n * (n // 2)
        most = max(most, near * (nodes - near) / cut if cut else 0)
    return most


def fewest_cables(dims):
    ends = defaultdict(int)
    for a, b in cables(dims):
        ends[a] += 1
        ends[b] += 1
    return min(ends.values())


TWOS = ['2', '2m', '2x2', '2mx2m', '2x2m', '2x2x2', '2mx2mx2m', '2x2x2x2', '2mx2mx2mx2m', '2x4', '2mx4',
        '2x4m', '2mx4m', '2x3x2m', '4x4', '4mx4', '3x5', '2x6m', '2mx2x4', 'x'.join(['2m'] * 8)]


@pytest.mark.parametrize('dims', TWOS)
def test_bounds_count_the_cables(dims):
    bound, nodes = cut_bound(dims), prod(n for n, _ in shape(dims))
    network = ' x '.join(f'{"ring" if wraps else "array"}:{n}' for n, wraps in shape(dims))
    for answer in (ask('bounds', '--dims', dims), ask('bounds', '--network', network)):
        assert answer['bounds']['all_port'] == pytest.approx(bound)
        assert answer['bounds']['one_port'] == pytest.approx(max(bound, nodes - 1))
        assert answer['reductions']['reduce_scatter'] == pytest.approx(
            (nodes - 1) / nodes / fewest_cables(dims))
    assert ask('plan', '--dims', dims, '--algorithm', 'stream')['bound'] == pytest.approx(bound)
    assert ask('plan', '--dims', dims, '--algorithm', 'saadschultz')['bound'] == ceil(
        (nodes - 1) / fewest_cables(dims))


@pytest.mark.parametrize('d', [1, 3, 4, 8])
def test_a_hypercube_is_no_torus_of_2(d):
    for network in ('--network', f'complete:2^{d}'), ('--dims', 'x'.join(['2m'] * d)):
        assert ask('bounds', *network)['bounds']['all_port'] == 2 ** (d - 1)
    assert ask('bounds', '--dims', 'x'.join(['2'] * d))['bounds']['all_port'] == 2 ** (d - 1) / 2


def test_hypercubes_on_the_page(page):
    """Half of all blocks cross from one half of a hypercube to the other, by a cable for each node."""
    tables = [page['cccube'].pipelining(page['torusctl']), page['products'].multiport(page['torusctl'])]
    found = 0
    for table, row in ((table, row) for table in tables for row in table.rows):
        if str(row.labels[0]).startswith('hypercube'):
            d = int(row.labels[0].rpartition(' ')[2])
            assert columns(table, row).get('bound', row.paper[0]) == 2 ** (d - 1)
            found += 1
    assert found == 5


def test_a_wrong_bound_is_a_failure(page, tmp_path):
    torusctl = altered(page, tmp_path, '" plan "*" 4x4 "*" cccube "',
                       r's/"bound":8/"bound":4/')
    failed = [row for row in page['cccube'].pipelining(torusctl).rows if row.failure]
    assert [row.labels[:2] for row in failed] == [('4×4 torus', 1)]
    assert 'bound 4' in failed[0].failure


def altered(page, folder, where, change):
    """A torusctl whose answers to some questions are changed by sed."""
    program = folder / 'torusctl'
    real = shlex.quote(os.path.abspath(f'{BIN}/torusctl'))
    pattern = where.replace('"', "'")
    program.write_text('#!/bin/bash\n'
                       f'case " $* " in\n*{pattern}*) {real} "$@" | sed {shlex.quote(change)} ;;\n'
                       f'*) exec {real} "$@" ;;\nesac\n')
    program.chmod(0o755)
    return page['program'](program)


# ---- A3 ------------------------------------------------------------------------------------------

def test_messages_of_a3_go_between_neighbours(page):
    for dims in ('8', '5', '4x4', '6x6', '8x8', '4mx4m', '2mx2mx2mx2m'):
        assert {leg[3] for route in routes(dims, 'a3') for leg in route['legs']} == {1}
    table = page['products'].multiport(page['torusctl'])
    assert 'single hops' in table.quantities and len(table.rows) >= 12
    for row in table.rows:
        assert columns(table, row)['single hops'] is True, row


def test_longer_legs_of_a3_are_a_difference(page, tmp_path):
    torusctl = altered(page, tmp_path, '" predict "*" 12x12 "*" a3 "', r's/"hops":72/"hops":84/')
    table = page['products'].multiport(torusctl)
    assert [row.labels[0] for row in table.rows if not row.explained] == ['12×12 torus']


# ---- The direct exchange -------------------------------------------------------------------------

def direct_time(d, size):
    """Without contention: as many steps as blocks, 2^(3d-3) on 2^d x 2^d."""
    return 2 ** (3 * d - 3) * (TS + size * TW)


def time_of(dims, algorithm, size):
    answer = ask('predict', '--dims', dims, '--algorithm', algorithm, '--ts', TS, '--tw', TW,
                 '--rho', 0, '--block-size', size)
    return answer['times'][0]['time_us']


def test_direct_exchange_against_the_cc_cube(page):
    table = page['cccube'].direct_exchange(page['torusctl'])
    found = {}
    for row in table.rows:
        cells = columns(table, row)
        side = int(cells['torus'].partition('×')[0])
        d, size = side.bit_length() - 1, cells['block (bytes)']
        assert cells['startups'] == cells['transmission'] == 2 ** (3 * d - 3)
        ratio = direct_time(d, size) / time_of(f'{side}x{side}', 'cccube-best', size)
        assert cells["part of the CC-cube's time"] == pytest.approx(ratio, abs=0.005)
        found[side, size] = cells["part of the CC-cube's time"]
    assert (found[8, 16384], found[16, 16384]) == (0.71, 0.8)


def test_the_best_older_algorithm_is_the_best(page):
    """On tori the CC-cube is not compared with anything that another older algorithm beats."""
    table, checked = page['cccube'].twice_as_fast(page['torusctl']), 0
    for row in table.rows:
        name, ports, size = row.labels[:3]
        side = int(name.partition('×')[0])
        if name.endswith('torus') and side >= 8:
            d, dims = side.bit_length() - 1, f'{side}x{side}'
            ours = time_of(dims, 'cccube' if ports == 'one' else 'cccube-best', size)
            least = min(direct_time(d, size), time_of(dims, 'tseng', size),
                        time_of(dims, 'suh-yalamanchili', size))
            assert row.here[0] <= least / ours * 1.05
            checked += 1
    assert checked == 9


@pytest.mark.parametrize('dims', ['4x4', '8x8', '16x16', '8x12', '4x4x4', '5x5'])
def test_no_formula_is_below_the_bound(dims):
    nodes = prod(n for n, _ in shape(dims))
    rows = ask('predict', '--dims', dims)['algorithms']
    for row in rows:
        least = max(cut_bound(dims), nodes - 1) if row['port_model'] == 'one-port' else cut_bound(dims)
        assert row['transmission'] >= least, row
        assert row.get('formula_transmission', least) >= least, row
    assert len(rows) > 10


def test_faster_with_which_blocks(page):
    def counts(startups, transmission):
        return {'startups': startups, 'transmission': transmission, 'rearranged': 0}
    faster = page['model'].faster_at
    assert faster(counts(2, 10), counts(3, 10), 0) == 'any'
    assert faster(counts(2, 9), counts(2, 10), 0) == 'any'
    assert faster(counts(3, 9), counts(2, 10), 0) == f'from {ceil(TS / TW)}'
    assert faster(counts(2, 10), counts(3, 9), 0) == f'up to {ceil(TS / TW) - 1}'
    assert faster(counts(3, 10), counts(2, 10), 0) == 'never'
    assert faster(counts(2, 10), counts(2, 10), 0) == 'never'


# ---- Broadcast -----------------------------------------------------------------------------------

def accepts(dims, algorithm):
    return next(row['accepts'] for row in ask('algorithms', '--dims', dims)['algorithms']
                if row['algorithm'] == algorithm)


@pytest.mark.full
def test_what_balanced_takes(page, tmp_path):
    tables, text = paper_of(page, 'broadcast', tmp_path)
    most = max(k for k in range(1, 5) if accepts('x'.join(['4'] * k), 'balanced'))
    assert most == 2
    assert f'at most {most} dimensions' in text
    for row in tables['broadcast-bound'].rows:
        dims = row.labels[0].split(' ')[0].replace('×', 'x')
        if row.labels[0].endswith('mesh'):
            dims = 'x'.join(f'{size}m' for size in dims.split('x'))
        nodes = prod(n for n, _ in shape(dims))
        assert row.paper[0] == ceil((nodes - 1) / fewest_cables(dims))
        algorithm = 'balanced' if accepts(dims, 'balanced') else 'matched'
        assert row.here[0] == busiest(dims, algorithm)
        assert (algorithm == 'matched') == (dims.count('x') + 1 > most)


def busiest(dims, algorithm):
    """The most blocks that cross a channel; copies of a block share a channel once."""
    sizes, loads = shape(dims), defaultdict(set)
    for route in routes(dims, algorithm):
        node, rest = [], route['src']
        for n, _ in reversed(sizes):
            rest, at = divmod(rest, n)
            node.insert(0, at)
        for _, dim, direction, hops in route['legs']:
            for _ in range(hops):
                loads[tuple(node), dim, direction].add(route['src'])
                node[dim] = (node[dim] + direction) % sizes[dim][0]
    return max(map(len, loads.values()))


# ---- One port ------------------------------------------------------------------------------------

def test_which_dimension_even_nodes_begin_with(page):
    """Section 4 of the one-port paper: even nodes in their rows, which are along dimension 1."""
    first = {}
    for route in routes('8x8', 'at2-1port'):
        step, dim, _, _ = route['legs'][0]
        if step == 0:
            x, y = divmod(route['src'], 8)
            first.setdefault((x + y) % 2, set()).add(dim)
    assert first == {0: {0}, 1: {1}}
    table = page['one_port'].orders(page['torusctl'])
    by_nodes = {row.labels[1:]: row for row in table.rows}
    even, odd = by_nodes['AT2', 'x + y even'], by_nodes['AT2', 'x + y odd']
    assert (even.paper, even.here, odd.paper, odd.here) == (('1 0',), ('0 1',), ('0 1',), ('1 0',))
    assert all(row.equal for row in table.rows if row.labels[1] == 'MT3')


# ---- What torusctl algorithms says -----------------------------------------------------------------

STATED = [  # algorithm, quantity, the statement about it; dims, and the rule for them
    ('disjoint', 'startups', 'on a ring n - 1', {'5': 4, '8': 7}),
    ('disjoint', 'startups', 'sum of the sizes - d + 1', {'4x8': 11, '3x3x3': 7}),
    ('pt', 'startups', 'n = 2k: k fewer', {'4x4': 2 * (1 + 1 + 1) - 2}),
    ('mt', 'startups', 'n = 2k: k fewer', {'4x4': 2 * 1 + 4 - 2, '6x6x6': 3 * 1 + 9 - 3}),
    ('at2-1port', 'startups', '4x4: 4', {'4x4': 4}),
    ('at2', 'startups', "ring: ar's", {'1x8': 4, '12x1': 6}),
    ('at2', 'transmission', 'r*c^2/8', {'8x12': 8 * 12 * 12 // 8, '12x16': 12 * 16 * 16 // 8, '28x24': 2352}),
    ('at2', 'critical_path', '7r > 6c: critical path', {'32x36': 32 * 36 * 36 // 8}),
    ('pt', 'critical_path', 'critical path', {'8x12': 2 * 2 * (144 // 32) * 8 + 2 * 96}),
    ('cccube-q2', 'startups', 'rings of up to 4 and arrays of 2', {
        '2mx2mx2m': 4, '2x2x2': 4, '4x4': 5, '2mx4x2': 5}),
]


@pytest.mark.parametrize('algorithm, quantity, statement, rules', STATED)
def test_statements_of_the_list_hold(algorithm, quantity, statement, rules):
    said = next(row for row in ask('algorithms')['algorithms'] if row['name'] == algorithm)
    assert statement in said['transmission' if quantity == 'critical_path' else quantity]
    for dims, count in rules.items():
        assert ask('plan', '--dims', dims, '--algorithm', algorithm)[quantity] == count


def test_what_the_list_says_of_balanced():
    said = next(row for row in ask('algorithms')['algorithms'] if row['name'] == 'balanced')
    assert 'm > 4: m - 1' in said['transmission'] and 'up to two dimensions' in said['accepts']
    for m in range(2, 10):
        bound = ceil((2 * m - 1) / 3)
        assert busiest(f'2x{m}m', 'balanced') == (m - 1 if m > 4 else bound)
    for dims in ('3x5m', '4x5m', '5x4m', '6x6m', '4x4', '3x9', '2mx9m', '4mx7m'):
        assert busiest(dims, 'balanced') == ceil(
            (prod(n for n, _ in shape(dims)) - 1) / fewest_cables(dims))


# ---- What is said of counts ----------------------------------------------------------------------

def test_remarks_are_made_of_counts(page):
    torusctl = page['torusctl']
    printed = ask('plan', '--dims', '12x12', '--algorithm', 'at2-printed')['critical_path']
    assert f'{printed} instead of {12 ** 3 // 8} on 12×12' in page['all_port'].repair(torusctl)
    barriers = page['all_port'].barriers(torusctl)
    assert '424 instead of 384 on 12×16' in barriers and '8×12' not in barriers
    assert '5192 instead of 5184 on 32×36' in barriers
    startups = ask('plan', '--dims', '6x6x6', '--algorithm', 'mt')['startups']
    assert f'(12 instead of {startups})' in page['one_port'].empty_steps(torusctl)


def test_a_remark_that_cannot_be_made_is_a_failure(page, tmp_path):
    document = page['document']

    def steps(_):
        raise document.Failed('no answer')
    paper = document.Paper('name', 'title', 'citation',
                           remarks=document.remarks(None, ('a remark', steps)))
    assert paper.remarks.texts == ['a remark']
    assert paper.unexplained == ['remark on steps: no answer']
    page['text'].write(paper, tmp_path / 'paper.txt')
    assert 'Missing: remark on steps: no answer' in (tmp_path / 'paper.txt').read_text()
