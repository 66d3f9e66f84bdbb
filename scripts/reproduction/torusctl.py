"""torusctl's answers as Python values."""

import json
import subprocess


class Failed(Exception):
    """torusctl did not do what it was asked to."""


class Torusctl:
    def __init__(self, program):
        self.program = str(program)
        self._answers = {}

    def _run(self, *words):
        done = subprocess.run([self.program, *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f'torusctl {" ".join(words)}: {done.stderr.strip()}')
        return done.stdout

    def __call__(self, *words):
        """The JSON object that `torusctl WORDS --json` prints; the same question is asked once."""
        words = tuple(str(word) for word in words)
        if words not in self._answers:
            self._answers[words] = json.loads(self._run(*words, '--json'))
        return self._answers[words]

    def plan(self, dims, algorithm, *more):
        return self('plan', '--dims', dims, '--algorithm', algorithm, *more)

    def predict(self, dims, algorithm, *more):
        """(counts, [row of each block size])"""
        answer = self('predict', '--dims', dims, '--algorithm', algorithm, *more)
        return answer['algorithms'][0], answer['times']

    def routes_from_0(self, dims, algorithm):
        """{destination: [[step, dimension, direction, hops], ...]} for the blocks of node 0."""
        lines = self._run('plan', '--dims', dims, '--algorithm', algorithm, '--routes')
        routes = map(json.loads, lines.splitlines())
        return {route['dst']: route['legs'] for route in routes if route['src'] == 0}

    def step_loads(self, dims, algorithm, nodes):
        """The most blocks on any channel that leaves one of these nodes, for each step."""
        channels = self._channels(dims, algorithm, nodes)
        steps = 1 + max(step for step, _, _ in channels)
        return [max(load for (at, _, _), load in channels.items() if at == step)
                for step in range(steps)]

    def channel_load(self, dims, algorithm, nodes):
        """The most blocks that any channel that leaves one of these nodes carries in all."""
        totals = {}
        for (_, node, port), load in self._channels(dims, algorithm, nodes).items():
            totals[node, port] = totals.get((node, port), 0) + load
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
