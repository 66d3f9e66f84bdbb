"""Routes of IP over links of different rates: their weights, beside the optimum of the linear program (bench/flow.py) and
beside equal weights on all shortest paths. All nodes send as much to each other."""

import random
import re
import statistics

import pytest
from bench import flow
from support.expect import torusctl_json
from torus_net import Geometry

NAMED = [('4x4', '6:-1=0.5'), ('4x4', '6:-1=0.4'), ('4x4', '6:-1=0.1'), ('3x3', '4:+0=0.1,7:-0=0.1'),
         ('4', '0:+0=0.1,1:-0=0.1'), ('4x4', '*:+0=0.5,*:-0=0.5'), ('3x3', '4:-0=0.001,4:-1=0.001')]
SHAPES = ('4x4', '3x4', '3x3', '4x4m', '6', '2x3x2', '5m')


def networks():
    found, draw = list(NAMED), random.Random(5)
    for dims in SHAPES:
        for slow in (1, 2, 4, 8):
            channels = draw.sample(flow.Torus(dims).channels, min(slow, len(flow.Torus(dims).channels)))
            found.append((dims, ','.join(f'{node}:{name_of(dim, direction)}={draw.choice((0.7, 0.5, 0.25, 0.1, 0.02))}'
                                         for node, _, dim, direction in channels)))
    return found


def name_of(dim, direction):
    return f'{"+" if direction > 0 else "-"}{dim}'


def find_weights(folder, torus, options):
    """{(node, destination): {channel: weight}}, from the scripts."""
    geometry, channel = Geometry(torus.dims), {}
    lines = []
    for rank in range(torus.nodes):
        lines += [f'[h{rank}]', f'rank = {rank}', *(f'{port.name} = eth{port.number}' for port in geometry.ports(rank))]
    for number, (node, _, dim, direction) in enumerate(torus.channels):
        channel[node, f'eth{geometry.port(node, name_of(dim, direction)).number}'] = number
    (folder / 'hosts.ini').write_text('\n'.join(lines) + '\n')
    said = torusctl_json('ip-routes', '--dims', torus.dims, '--hosts', folder / 'hosts.ini', '--to', folder / 'out', *options)
    found = {}
    for rank in range(torus.nodes):
        for to, hops in re.findall(r'^route add 10\.128\.0\.(\d+)/32(.*)$', (folder / 'out' / f'h{rank}.sh').read_text(),
                                   re.M):
            found[rank, int(to) - 1] = {channel[rank, interface]: int(weight or 1) for interface, weight in
                                        re.findall(r'via \S+ dev (\S+)(?: weight (\d+))?', hops)}
    return found, said


def largest_load(torus, routes):
    """The most that a channel carries, over its rate. Fails if packets can go in circles."""
    loads = [0.0] * len(torus.channels)
    for to in range(torus.nodes):
        before = [0] * torus.nodes
        for node in range(torus.nodes):
            for channel in routes.get((node, to), {}):
                before[torus.channels[channel][1]] += 1
        ready, passing, seen = [node for node in range(torus.nodes) if not before[node]], [1.0] * torus.nodes, 0
        while ready:
            node = ready.pop()
            seen += 1
            hops = routes.get((node, to), {})
            assert hops or node == to
            for channel, weight in hops.items():
                part, there = passing[node] * weight / sum(hops.values()), torus.channels[channel][1]
                loads[channel] += part
                passing[there] += part
                before[there] -= 1
                if not before[there]:
                    ready.append(there)
        assert seen == torus.nodes
    return max(load / rate for load, rate in zip(loads, torus.rates))


def equal_weights(torus):
    """All shortest paths, by the number of links."""
    routes = {}
    for to in range(torus.nodes):
        hops, nodes = {to: 0}, [to]
        for at in nodes:
            for start, end, _, _ in torus.channels:
                if end == at and start not in hops:
                    hops[start] = hops[at] + 1
                    nodes.append(start)
        for number, (start, end, _, _) in enumerate(torus.channels):
            if hops[end] < hops[start]:
                routes.setdefault((start, to), {})[number] = 1
    return routes


@pytest.mark.plain
def test_weights_are_near_the_optimum(tmp_path, record_property):
    ours, equal = [], []
    for dims, rates in networks():
        torus = flow.Torus(dims, rates=rates)
        least = float(flow.Flow(torus).least_load())
        routes, said = find_weights(tmp_path, torus, ['--rate', rates])
        load = largest_load(torus, routes)
        assert abs(said['busiest_by_rate'] - load) < 0.001, (dims, rates)
        ours.append(load / least)
        equal.append(largest_load(torus, equal_weights(torus)) / least)
        assert ours[-1] < 1.2, (dims, rates, ours[-1])
        assert ours[-1] < max(1.1, equal[-1]), (dims, rates, ours[-1], equal[-1])
    figures = (f'{len(ours)} networks: largest load over the optimum: mean {statistics.mean(ours):.3f}, worst '
               f'{max(ours):.3f}; equal weights: mean {statistics.mean(equal):.2f}, worst {max(equal):.1f}')
    print(figures)
    record_property('figures', figures)
    assert statistics.mean(ours) < 1.04 and statistics.mean(equal) > 2, figures


@pytest.mark.plain
def test_the_full_rate_changes_nothing(tmp_path):
    torus = flow.Torus('4x3')
    assert find_weights(tmp_path, torus, ['--link-rate', '0:+0=1']) == find_weights(tmp_path, torus, [])
