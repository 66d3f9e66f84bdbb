"""Runs an algorithm that is a function in Python, and prints its routes as a schedule: see client/doc/schedules.md.

The arguments are the file, NAME=VALUE for variables of the file, and the network as JSON. An error is printed as one
line, and the exit status is 1."""

import importlib.util
import itertools
import json
import os
import resource
import sys
import traceback

SECONDS_MOST, MEMORY_MOST, ROUTES_MOST = 60, 2 << 30, 1 << 20


class Network:
    """What the functions of the file get: `dims` (as --dims), `sizes`, `wraps` (for each dimension, whether it is a
    ring), `nodes`. Ranks count as in torusctl: the last dimension is the fastest."""

    def __init__(self, told):
        self.dims, self.nodes = told['dims'], 1
        self.sizes = tuple(factor['size'] for factor in told['factors'])
        self.wraps = tuple(factor['wraps'] for factor in told['factors'])
        self._links = [factor.get('links') for factor in told['factors']]
        for size in self.sizes:
            self.nodes *= size

    def coordinates(self, rank):
        place = []
        for size in reversed(self.sizes):
            rank, coordinate = divmod(rank, size)
            place.insert(0, coordinate)
        return tuple(place)

    def rank(self, coordinates):
        rank = 0
        for size, coordinate in zip(self.sizes, coordinates):
            rank = rank * size + coordinate % size
        return rank

    def offsets(self, source, destination):
        """For each dimension, how far the destination is in direction 1, modulo the size."""
        pairs = zip(self.sizes, self.coordinates(source), self.coordinates(destination))
        return tuple((there - here) % size for size, here, there in pairs)

    def direction(self, dimension, here, there):
        """In a graph: the direction of the link between two coordinates of a dimension, or None."""
        ends = self._links[dimension][here]
        return ends.index(there) + 1 if there in ends else None


def fail(text):
    print(text, file=OUT)
    OUT.flush()
    os._exit(1)


def load(path, settings):
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location('algorithm', path)
    if spec is None:
        fail('its name does not end in .py')
    module = importlib.util.module_from_spec(spec)
    # exec_module() takes stored bytecode if the file has changed within a second and kept its size.
    exec(spec.loader.source_to_code(spec.loader.get_data(path), path), module.__dict__)
    for setting in settings:
        name, _, value = setting.partition('=')
        if not hasattr(module, name):
            fail(f'it has no variable {name}')
        setattr(module, name, type(getattr(module, name))(value))
    if not callable(getattr(module, 'route', None)):
        fail('it has no function route(network, source, destination, segment)')
    return module


def value(module, network, name, default):
    """A value of the file, or what its function of the network returns."""
    found = getattr(module, name, default)
    return found(network) if callable(found) else found


def run(path, settings, told):
    module, network = load(path, settings), Network(told)
    refusal = value(module, network, 'refuses', None)
    if refusal:
        fail(f'it takes {refusal}, not {network.dims}')
    period, segments = value(module, network, 'period', None), value(module, network, 'segments', 1)
    stem = os.path.basename(path).rpartition('.')[0]
    header = {'schedule': 1, 'dims': network.dims, 'name': value(module, network, 'name', stem)[:20],
              'operation': value(module, network, 'operation', 'exchange'),
              'ports': value(module, network, 'ports', 'all-port'),
              'mode': value(module, network, 'mode', 'stepped'), 'segments': segments}
    if period is not None:
        header['period'] = list(period)
    box = list(itertools.product(*map(range, period or network.sizes)))
    if len(box) * network.nodes * segments > ROUTES_MOST:
        fail(f'{len(box) * network.nodes * segments} routes are too many (the limit is {ROUTES_MOST}): '
             'a period makes them fewer')
    print(json.dumps(header), file=OUT)
    for source in map(network.rank, box):
        for destination in range(network.nodes):
            for segment in range(segments if source != destination else 0):
                legs = [list(leg) for leg in module.route(network, source, destination, segment)]
                print(f'{{"src":{source},"dst":{destination},"segment":{segment},"legs":{legs}}}', file=OUT)


def main():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS_MOST, SECONDS_MOST))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MOST, MEMORY_MOST))
    try:
        run(sys.argv[1], sys.argv[2:-1], json.loads(sys.argv[-1]))
        OUT.flush()
    except BaseException as error:  # whatever the file raises, SystemExit too
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == sys.argv[1]]
        line = f'line {frames[-1].lineno}: ' if frames else ''
        fail(f'{line}{type(error).__name__}: {error}'.splitlines()[0])


if __name__ == '__main__':
    OUT = os.fdopen(os.dup(1), 'w')
    sys.stdout = open(os.devnull, 'w')  # what the file prints is not a route
    main()
