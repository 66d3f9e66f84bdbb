"""Schedules from files: a solver's schedules on real links, and errors of other files."""

import json
from collections import Counter

import pytest
from bench import flow
from support.errors import assert_refused
from support.expect import torusctl
from support.trees import check_target, make_sources
from torus_net import Geometry, Port

SHAPES = ('3x5', '4x4')


@pytest.fixture(scope='module')
def flows(tmp_path_factory):
    """dims: (file, least load on the busiest channel, in blocks)"""
    folder = tmp_path_factory.mktemp('schedules')
    made = {}
    for dims in SHAPES:
        text, least = flow.make(dims)
        path = folder / f'flow-{dims}.json'
        path.write_text(text)
        made[dims] = path, least
    return made


def lines(path):
    header, *routes = map(json.loads, path.read_text().splitlines())
    return header, routes


def crossings(dims, path):
    """{(rank, port name): segments that cross}, by an own walk over the file."""
    geometry, counts = Geometry(dims), Counter()
    for route in lines(path)[1]:
        at = route['src']
        for _, dim, direction, hops in route['legs']:
            port = Port(dim, '+' if direction == 1 else '-')
            for _ in range(hops):
                counts[at, port.name] += 1
                at = geometry.neighbour(at, port)
        assert at == route['dst']
    return counts


def check_run(result, dims, path, size, mode):
    header, _ = lines(path)
    nodes = Geometry(dims).nodes
    assert result['mode'] == mode and result['verified'] == 'every byte'
    assert result['algorithm'].startswith(header['name'] + '@')
    assert result['blocks_delivered'] == nodes * (nodes - 1)
    counts = crossings(dims, path)
    for node in result['per_node']:
        for name, port in node['ports'].items():
            crossed = counts[node['rank'], name]
            assert port['tx_bytes'] == crossed * size / header['segments'], (node['rank'], name)
            if mode == 'stepped':  # streamed, empty pieces are left out
                assert port['tx_blocks'] == crossed


@pytest.mark.parametrize('dims', SHAPES)
def test_the_flow_of_a_linear_program_meets_the_bound(flows, dims):
    path, least = flows[dims]
    planned = json.loads(torusctl('plan', '--import', path, '--json').stdout)
    assert planned['bound'] == least == planned['busiest']
    segments = lines(path)[0]['segments']
    assert max(crossings(dims, path).values()) == least * segments


@pytest.mark.parametrize('dims', SHAPES)
def test_it_runs_on_real_links(loopback, flows, dims):
    torus, (path, _) = loopback(dims), flows[dims]
    for rank, mode, size in ((0, 'streaming', 6000), (7, 'stepped', 6000), (14, 'streaming', 0)):
        result = torus.exchange(block_size=size, rank=rank,
                                options=('--schedule', path, '--mode', mode))
        check_run(result, dims, path, size, mode)
    repeated = torus.exchange(block_size=64, options=('--schedule', path, '--repeat', '5'))
    assert repeated['repeat'] == 5 and repeated['mode'] == 'streaming'


@pytest.mark.mininet
@pytest.mark.parametrize('dims', SHAPES)
def test_it_runs_in_mininet(mininet, flows, dims):
    torus, (path, least) = mininet(dims, bw=50), flows[dims]
    for mode in ('streaming', 'stepped'):
        result = torus.exchange(block_size=65536, options=('--schedule', path, '--mode', mode))
        check_run(result, dims, path, 65536, mode)
    for node in torus.nodes:
        assert node.alive


def test_a_node_that_comes_back_fetches_it_again(loopback, flows, tmp_path):
    torus, (path, _) = loopback('3x5', data_roots=(str(tmp_path),)), flows['3x5']
    options = ('--schedule', path)
    torus.exchange(block_size=1000, options=options)
    torus.node(7).kill()
    torus.wait_broken()
    torus.node(7).restart()
    torus.wait_whole()
    sizes = {(s, d): 100 * s + d for s in range(15) for d in range(15)}
    target = f'{tmp_path}/in-%r'
    result = torus.exchange(source=make_sources(tmp_path, sizes), target=target, options=options)
    assert result['verified'] == 'digests'
    check_target(target, sizes)


def damaged(path, tmp_path, change):
    header, routes = lines(path)
    change(routes)
    wrong = tmp_path / 'wrong.json'
    wrong.write_text(''.join(json.dumps(line) + '\n' for line in [header, *routes]))
    return wrong


def drop(routes):
    del routes[40]


def double(routes):
    routes.append(routes[40])


def misroute(routes):
    routes[40]['legs'][-1][2] *= -1


@pytest.mark.parametrize('change,says', [
    (drop, 'has no route'),
    (double, 'it already has a route, in line 42'),
    (misroute, 'it ends at node {end} in step {step}, not at node {dst}')])
def test_a_file_that_drops_doubles_or_misroutes_one_block_is_refused(loopback, flows, tmp_path, change,
                                                              says):
    path, geometry = flows['3x5'][0], Geometry('3x5')
    route = lines(path)[1][40]
    step, dim, direction, _ = route['legs'][-1]
    back = Port(dim, '-' if direction == 1 else '+')
    end = geometry.neighbour(geometry.neighbour(route['dst'], back), back)
    said = f'block {route["src"]} -> {route["dst"]}, segment {route["segment"]}'
    wrong = damaged(path, tmp_path, change)
    torus = loopback('3x5')
    for done in (torusctl('plan', '--import', wrong),
                 torus.ctl(3, 'exchange', '--schedule', wrong, '--block-size', '1')):
        assert done.returncode == 1
        assert said in done.stderr
        assert says.format(**route, end=end, step=step) in done.stderr


def test_a_schedule_for_another_torus_is_refused(loopback, flows):
    done = loopback('3x5').ctl(0, '--json', 'exchange', '--schedule', flows['4x4'][0], '--block-size', '1')
    assert_refused(done, 'refused')
    assert ' 4x4' in done.stderr and '3x5' in done.stderr
