"""torusctl's answers as Python values."""

import json
import subprocess
from collections import Counter
from textwrap import shorten

from torus_net import patience

from . import walk
from .document import Failed

TIMEOUT = 60  # seconds; the longest answer takes two
WALKED = 81  # nodes: on tori up to this size, the counts of plan are checked against its routes


class Torusctl:
    def __init__(self, program):
        self.program = str(program)
        self._answers = {}
        self._walks = {}
        self._failed = {}

    def _run(self, *words):
        """The output of `torusctl WORDS`. A command that has failed once does not run again."""
        words = tuple(str(word) for word in words)
        if words in self._failed:
            raise self._failed[words]
        try:
            return self._output(words)
        except Failed as failure:
            self._failed[words] = failure
            raise

    def _output(self, words):
        what = f'torusctl {" ".join(words)}'
        try:
            done = patience.run([self.program, *words], TIMEOUT)
        except subprocess.TimeoutExpired as late:
            raise Failed(f'{what}: no answer within {TIMEOUT} s') from late
        except (OSError, UnicodeDecodeError) as error:
            raise Failed(f'{what}: {error}') from error
        if done.returncode != 0:
            reason = done.stderr.strip().removeprefix('torusctl: ').partition('\n')[0]
            raise Failed(f'{what}: {shorten(reason, 160) or f"exit status {done.returncode}"}')
        return done.stdout

    def __call__(self, *words):
        """The JSON object that `torusctl WORDS --json` prints. The command runs only once."""
        words = tuple(str(word) for word in words)
        if words not in self._answers:
            self._answers[words] = json.loads(self._run(*words, '--json'))
        return self._answers[words]

    def plan(self, dims, algorithm, *more):
        """The counts of torusctl plan. On small tori its routes are followed as well, and must give the same
        counts."""
        counts = self('plan', '--dims', dims, '--algorithm', algorithm, *more)
        dims = str(dims)
        if walk.Torus.count(dims) <= WALKED:
            self._check(dims, algorithm, counts)
        return counts

    def _check(self, dims, algorithm, counts):
        walked = self.walk(dims, algorithm)
        for key, again in (('startups', walked.startups), ('transmission', walked.transmission),
                           ('contended_steps', walked.contended), ('minimal', walked.minimal),
                           ('port_model_kept', walked.keeps(counts['bound_of']))):
            if counts[key] != again:
                raise Failed(f'torusctl plan says {key} {counts[key]} for {algorithm} on {dims}, '
                             f'its routes give {again}')
        bound = walk.bounds(dims).get(counts['bound_of'], counts['bound'])
        if abs(counts['bound'] - bound) > 1e-9:
            raise Failed(f'torusctl plan says bound {counts["bound"]} for {algorithm} on {dims}, the '
                         f'cables give {bound}')

    def walk(self, dims, algorithm):
        """The walk.Counts of the routes that torusctl plan prints."""
        if (dims, algorithm) not in self._walks:
            routes = self.routes(dims, algorithm)
            self._walks[dims, algorithm] = walk.follow(dims, routes, self._is_allgather(algorithm))
        return self._walks[dims, algorithm]

    def _is_allgather(self, algorithm):
        rows = self('algorithms', '--dims', '4x4')['algorithms']
        return any(row['algorithm'] == algorithm and row['operation'] == 'allgather' for row in rows)

    def predict(self, dims, algorithm, *more):
        """(counts, [row of each block size])"""
        answer = self('predict', '--dims', dims, '--algorithm', algorithm, *more)
        return answer['algorithms'][0], answer['times']

    def accepts(self, dims, algorithm):
        """Whether an algorithm takes this torus."""
        rows = self('algorithms', '--dims', dims)['algorithms']
        return next(row['accepts'] for row in rows if row['algorithm'] == algorithm)

    def single_hops(self, dims, algorithm):
        """Whether all legs of an algorithm have one hop."""
        counts, _ = self.predict(dims, algorithm)  # hops: the longest leg of each step, summed up
        found = counts['hops'] == counts['startups']
        if walk.Torus.count(dims) <= WALKED and found != all(
                hops == 1 for hops in self.walk(dims, algorithm).legs):
            raise Failed(f'torusctl predict says {counts["hops"]} hops in {counts["startups"]} steps '
                         f'for {algorithm} on {dims}, its routes give other numbers')
        return found

    def simulate(self, *words):
        return self('simulate', *words)

    def routes(self, dims, algorithm):
        """[(source, destination, segment, [[step, dimension, direction, hops], ...]), ...]"""
        lines = self._run('plan', '--dims', dims, '--algorithm', algorithm, '--routes').splitlines()
        return [(route['src'], route['dst'], route['segment'], route['legs'])
                for route in json.loads(f'[{",".join(lines)}]')]

    def routes_from_0(self, dims, algorithm):
        """{destination: [[step, dimension, direction, hops], ...]} for the blocks of node 0."""
        return {destination: legs for source, destination, _, legs in self.routes(dims, algorithm)
                if source == 0}

    def step_loads(self, dims, algorithm, nodes):
        """The most blocks on any channel that leaves one of these nodes, for each step."""
        channels = self._channels(dims, algorithm, nodes)
        steps = 1 + max(step for step, _, _ in channels)
        return [max(load for (at, _, _), load in channels.items() if at == step)
                for step in range(steps)]

    def channel_load(self, dims, algorithm):
        """The most blocks that any channel carries in all, by the routes."""
        totals = Counter()
        for loads in self.walk(dims, algorithm).loads:
            totals.update(loads)
        return max(totals.values())

    def _channels(self, dims, algorithm, nodes):
        """{(step, node, port): blocks that leave there}"""
        channels = {}
        for node in nodes:
            for message in self.plan(dims, algorithm, '--node', node)['messages']:
                if message['does'] == 'receives':
                    continue
                port = message['port']
                if message['does'] == 'relays':  # came in by `port`, leaves on the other side
                    port = port.translate(str.maketrans('+-', '-+'))
                key = message['step'], node, port
                channels[key] = channels.get(key, 0) + message['blocks']
        return channels
