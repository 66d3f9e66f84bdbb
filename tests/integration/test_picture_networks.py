"""torusctl plan --svg on networks with factors that are neither rings nor lines."""

import collections
import itertools
import json
import math

import pytest
from support import networks
from support.pictures import SVG, Message, Picture, check_arrow, check_thickness, plan, points, torusctl
from torus_net import Geometry

NAMED = ['complete:4', '5 x complete:3', 'star:5 x 4', 'tree:2^3', 'petersen', 'random']


@pytest.fixture(scope='session')
def network(tmp_path_factory):
    """The text of a network, by its name."""
    folder = tmp_path_factory.mktemp('graphs')
    return lambda name: networks.make(folder, name)


class NetworkSchedule:
    """{step: {Message: blocks}} from the printed routes. A port has its name."""

    def __init__(self, dims, algorithm):
        self.geometry = Geometry(dims)
        routes = [json.loads(line) for line in plan(dims, algorithm, '--routes').splitlines()]
        segments = 1 + max(route['segment'] for route in routes)
        # In a graph, routes to neighbours tell where each direction leads.
        self.leads = {(dim, direction, self.geometry.coordinates(route['src'])[dim]):
                      self.geometry.coordinates(route['dst'])[dim]
                      for route in routes if len(route['legs']) == 1 for _, dim, direction, hops in route['legs']
                      if hops == 1}
        self.steps = collections.defaultdict(collections.Counter)
        for route in routes:
            here = route['src']
            for step, dim, direction, hops in route['legs']:
                way = [here]
                for _ in range(hops):
                    way.append(self.after(way[-1], dim, direction))
                self.steps[step][Message(here, way[-1], self.port(way, dim, direction), hops)] += 1 / segments
                here = way[-1]
            assert here == route['dst']

    def after(self, rank, dim, direction):
        at = list(self.geometry.coordinates(rank))
        at[dim] = self.leads[dim, direction, at[dim]]
        return self.geometry.rank(at)

    def port(self, way, dim, direction):
        names = {port.name for port in self.geometry.ports(way[0])}
        plain = f'{"+" if direction > 0 else "-"}{dim}'
        name = plain if plain in names else f'{dim}:{self.geometry.coordinates(way[1])[dim]}'
        assert name in names
        return name


def picture_of(dims, algorithm, *more):
    return Picture(plan(dims, algorithm, '--svg', '-', *more), plain=False)


@pytest.mark.parametrize(('dims', 'algorithm'), [
    *((dims, 'direct') for dims in NAMED), ('5 x complete:3', 'a2'), ('star:5 x 4', 'a1'), ('complete:4', 'tree'),
    ('complete:3 x 2 x 3m', 'direct'), ('tree:6^2', 'direct'), ('2 x petersen', 'direct'),
    ('1 x complete:3 x 1', 'direct')])
def test_arrows_are_the_messages(network, dims, algorithm):
    schedule = NetworkSchedule(network(dims), algorithm)
    picture = picture_of(network(dims), algorithm)
    assert sorted(picture.centre) == list(range(schedule.geometry.nodes))
    assert list(picture.steps) == sorted(schedule.steps)
    for step, messages in schedule.steps.items():
        assert picture.blocks(step) == pytest.approx(messages)
        for message, (_, body) in picture.steps[step].items():
            check_arrow(picture, message, body)
    check_thickness(picture)


@pytest.mark.parametrize('dims', NAMED)
def test_load_of_the_channels(network, dims):
    dims = network(dims)
    load = collections.Counter()
    for messages in NetworkSchedule(dims, 'stream').steps.values():
        for message, blocks in messages.items():
            assert message.hops == 1
            load[message] += blocks
    picture = picture_of(dims, 'stream')
    assert picture.blocks('Load of the channels') == pytest.approx(load, rel=1e-6)


def curve(path, samples=16):
    """Points of a line between two nodes."""
    a, *control, b = points(path)
    if not control:
        control = [((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)]
    for i in range(samples + 1):
        t = i / samples
        yield tuple((1 - t) ** 2 * p + 2 * t * (1 - t) * q + t * t * r
                    for p, q, r in zip(a, control[0], b, strict=True))


@pytest.mark.parametrize('dims', [*NAMED, 'complete:8', 'complete:5 x complete:4', '3 x tree:2^2', '2 x complete:3'])
def test_links_join_their_nodes_and_pass_others_in_some_distance(network, dims):
    dims = network(dims)
    geometry, picture = Geometry(dims), picture_of(dims, 'direct')
    for a, b in itertools.combinations(picture.centre.values(), 2):
        assert math.dist(a, b) >= 30
    rank_at = {place: rank for rank, place in picture.centre.items()}
    drawn = collections.Counter()
    for path in picture.root.findall(f'{SVG}defs/{SVG}g/{SVG}path[@class="link"]'):
        way = list(curve(path))
        ends = [min(rank_at, key=lambda place, end=end: math.dist(place, end)) for end in (way[0], way[-1])]
        assert all(math.dist(place, end) < 1 for place, end in zip(ends, (way[0], way[-1]), strict=True))
        drawn[tuple(sorted(rank_at[place] for place in ends))] += 1
        for place in picture.centre.values():
            if place not in ends:
                assert all(math.dist(place, point) > 11 for point in way), (dims, ends, place)
    links = collections.Counter(
        tuple(sorted((rank, geometry.neighbour(rank, port))))
        for rank in range(geometry.nodes) for port in geometry.ports(rank))
    assert drawn == {ends: ports // 2 for ends, ports in links.items()}


def test_links_to_other_frames_name_the_node_there(network):
    dims = network('petersen x 2m x complete:3')
    geometry, picture = Geometry(dims), picture_of(dims, 'direct', '--source', '7')
    drawn = picture.root.find(f'{SVG}defs/{SVG}g')
    assert len(picture.frames) == 10
    labels = [(int(text.text), (float(text.get('x')), float(text.get('y')) - 2.5))
              for text in drawn.findall(f'{SVG}text[@class="n"]')]
    named = collections.Counter()
    for number, place in labels:
        node = min(picture.centre, key=lambda rank, at=place: abs(math.dist(picture.centre[rank], at) - 34))
        named[number] += 1
        assert math.dist(picture.centre[node], place) == pytest.approx(34, abs=0.6)
    assert named == dict.fromkeys(range(geometry.nodes), 3)
    assert any('in another frame' in text for text in picture.texts)


@pytest.mark.full
@pytest.mark.parametrize(('dims', 'part'), [
    ('random x 64m', '(0-23, 0-41) are drawn, 1008 of 1536'),
    ('tree:2^8 x complete:3 x 3', '(0-112, 0-2, 0-2) are drawn, 1017 of 4599')])
@pytest.mark.slow
def test_a_part_of_a_large_network(network, dims, part):
    done = torusctl('plan', '--dims', network(dims), '--algorithm', 'direct', '--svg', '-', '--source', '0', '--load')
    assert done.returncode == 0 and b'what it leaves out' in done.stderr
    picture = Picture(done.stdout, plain=False)
    assert any(f'Only nodes {part}' in text for text in picture.texts)
    for message, (_, body) in picture.steps['Load of the channels'].items():
        assert message.start in picture.centre or message.end in picture.centre
        assert body.findall(f'{SVG}path')


@pytest.mark.parametrize('dims', ['5 x complete:3', 'random'])
def test_the_same_network_has_the_same_picture(network, dims):
    assert plan(network(dims), 'stream', '--svg', '-') == plan(network(dims), 'stream', '--svg', '-')
