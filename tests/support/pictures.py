"""The messages of a schedule as torusctl prints them, and a picture of them as `torusctl plan --svg` draws it."""

import collections
import json
import re
from xml.etree import ElementTree

from torus_net import Geometry
from torus_net.patience import run
from torus_net.process import find_program

SVG = '{http://www.w3.org/2000/svg}'
TIP = re.compile(r'(\d+) to (\d+), port (\S+?)(?:, (\d+) hops)?: ([\d.]+) blocks?')

Message = collections.namedtuple('Message', 'start end port hops')


def torusctl(*arguments, **options):
    return run([find_program('torusctl'), *arguments], text=False, **options)


def plan(dims, algorithm, *arguments):
    done = torusctl('plan', '--dims', dims, '--algorithm', algorithm, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- The expected picture, from the printed routes -----------------------------------------------

class Schedule:
    """{step: {Message: blocks}}, and how many messages cross each channel of a step."""

    def __init__(self, dims, algorithm, source=None):
        self.geometry = Geometry(dims)
        routes = [json.loads(line) for line in plan(dims, algorithm, '--routes').splitlines()]
        algorithms = json.loads(torusctl('--json', 'algorithms').stdout)['algorithms']
        row = next(row for row in algorithms if row['name'] == algorithm)
        self.steps = collections.defaultdict(collections.Counter)
        self.all = collections.defaultdict(set)
        for route in routes:
            here = route['src']
            for index, (step, dim, direction, hops) in enumerate(route['legs']):
                message = Message(here, self.walk(here, dim, direction, hops), (dim, direction), hops)
                here = message.end
                # In an allgather the common part of two routes is sent once.
                if row['operation'] == 'allgather' and index < len(route['legs']) - 1:
                    continue
                self.all[step].add(message)
                if source in (None, route['src']):
                    self.steps[step][message] += 1 / row['segments']

    def walk(self, rank, dim, direction, hops):
        at = list(self.geometry.coordinates(rank))
        at[dim] = (at[dim] + direction * hops) % self.geometry.sizes[dim]
        return self.geometry.rank(at)

    def channels(self, message):
        dim, direction = message.port
        return [(self.walk(message.start, dim, direction, hop), message.port)
                for hop in range(message.hops)]

    def crossings(self, step):
        return collections.Counter(channel for message in self.all[step]
                                   for channel in self.channels(message))

    def load(self):
        load = collections.Counter()
        for messages in self.steps.values():
            for message, blocks in messages.items():
                for node, (dim, direction) in self.channels(message):
                    load[Message(node, self.walk(node, dim, direction, 1), (dim, direction), 1)] += blocks
        return load


# ---- The picture ----------------------------------------------------------------------------------

def points(path):
    numbers = [float(n) for n in re.findall(r'-?[\d.]+', path.get('d'))]
    return list(zip(numbers[::2], numbers[1::2]))


def has_class(element, name):
    return name in element.get('class', '').split()


class Picture:
    """`plain`: the picture shows only rings and lines. In other pictures the port of a message is its name."""

    def __init__(self, text, plain=True):
        self.plain = plain
        self.root = ElementTree.fromstring(text)
        drawn = self.root.find(f'{SVG}defs/{SVG}g')
        circles = [c for c in drawn.iter(f'{SVG}circle') if has_class(c, 'node')]
        ranks = [int(t.text) for t in drawn.iter(f'{SVG}text') if has_class(t, 'r')]
        self.centre = {rank: (float(c.get('cx')), float(c.get('cy')))
                       for rank, c in zip(ranks, circles, strict=True)}
        self.shade = {rank: c.get('class') for rank, c in zip(ranks, circles, strict=True)}
        self.frames = [tuple(float(r.get(k)) for k in ('x', 'y', 'width', 'height'))
                       for r in drawn.iter(f'{SVG}rect')]
        self.texts = [t.text for t in self.root.findall(f'{SVG}text')]
        self.steps, self.bands, self.captions = {}, {}, {}
        for group in self.root.findall(f'{SVG}g'):
            texts = [t.text for t in group.findall(f'{SVG}text')]
            if texts:  # else a part of the legend
                step = int(texts[0].split()[1]) if texts[0].startswith('Step') else texts[0]
                self.captions[step] = texts[1:]
                self.read_step(step, group.find(f'{SVG}g'))

    def read_step(self, step, group):
        self.bands[step] = [p for p in group.findall(f'{SVG}path') if has_class(p, 'crowd')]
        arrows = self.steps[step] = {}
        for arrow in group.findall(f'{SVG}g'):
            start, end, port, hops, blocks = TIP.fullmatch(arrow.find(f'{SVG}title').text).groups()
            body = arrow.find(f'{SVG}g')
            if port[0] in '+-' and self.plain:
                assert body.get('class') == f'p{2 * int(port[1:]) + (port[0] == "-")}'
                port = int(port[1:]), int(port[0] + '1')
            message = Message(int(start), int(end), port, int(hops or 1))
            assert message not in arrows
            arrows[message] = (float(blocks), body)

    def blocks(self, step):
        return {message: blocks for message, (blocks, _) in self.steps[step].items()}


def near(a, b, distance):
    return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 <= distance ** 2


def check_arrow(picture, message, body):
    """An arrow begins at its start, and its last head is at its end, if the picture shows these nodes. No part of it is
    outside of the frames."""
    lines = [p for p in body.iter(f'{SVG}path') if has_class(p, 'l')]
    heads = [p for p in body.iter(f'{SVG}path') if has_class(p, 'h')]
    assert lines
    assert message.start not in picture.centre or near(points(lines[0])[0], picture.centre[message.start], 15)
    assert message.end not in picture.centre or near(points(heads[-1])[0], picture.centre[message.end], 15)
    for point in (point for path in lines for point in points(path)):
        assert any(x <= point[0] <= x + width and y <= point[1] <= y + height
                   for x, y, width, height in picture.frames), (message, point)


def check_thickness(picture):
    arrows = [(blocks, float(line.get('stroke-width'))) for step in picture.steps.values()
              for blocks, body in step.values() for line in body.iter(f'{SVG}path') if has_class(line, 'l')]
    most, widest = max(arrows)
    for blocks, width in arrows:
        assert abs(width - max(1, widest * blocks / most)) < 0.11
