"""torusctl simulate against a second simulation, which looks at every microsecond: random schedules and some of the
algorithms, in each switching mode, with one, two and all ports. All times are whole microseconds."""

import json
import os
import random
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from support.simulated import Message, Torus, port, stepped, streaming, with_lanes
from torus_net import CHECKOUT, find_program
from torus_net.patience import run

pytestmark = pytest.mark.plain

SWITCHINGS = ('store', 'cut-through', 'wormhole')
QUEUES = ('fifo', 'longest', 'step')


def torusctl(*words, status=0):
    done = run([find_program('torusctl'), *map(str, words)], 60)
    assert done.returncode == status, done.stderr
    return done.stdout


# ---- Schedules ---------------------------------------------------------------------------------

def a_random_schedule(rng, torus, segments):
    """[(source, destination, segment, legs)]: any way round, in legs of any length, in any rising steps."""
    routes = []
    for source in range(torus.nodes):
        for destination in set(range(torus.nodes)) - {source}:
            for segment in range(segments):
                legs = []
                for dim in rng.sample(range(len(torus.sizes)), len(torus.sizes)):
                    hops = torus.at(destination)[dim] - torus.at(source)[dim]
                    direction = 1 if hops > 0 else -1
                    if torus.wraps[dim] and hops != 0 and rng.random() < 0.5:
                        hops, direction = torus.sizes[dim] - abs(hops), -direction
                    hops = abs(hops)
                    while hops > 0:
                        some = rng.randint(1, hops)
                        legs.append([dim, direction, some])
                        hops -= some
                steps = sorted(rng.sample(range(len(legs) + 3), len(legs)))
                routes.append((source, destination, segment,
                               [[step, *leg] for step, leg in zip(steps, legs)]))
    return routes


def channels(torus):
    """(node, dimension, direction) of each channel."""
    for node in range(torus.nodes):
        for dim, (at, size, wraps) in enumerate(zip(torus.at(node), torus.sizes, torus.wraps)):
            yield from ((node, dim, direction) for direction in (1, -1) if wraps or 0 <= at + direction < size)


def as_file(path, torus, segments, routes):
    lines = [json.dumps({'schedule': 1, 'dims': torus.dims, 'segments': segments})]
    lines += [json.dumps({'src': source, 'dst': destination, 'segment': segment, 'legs': legs})
              for source, destination, segment, legs in routes]
    path.write_text('\n'.join(lines) + '\n')
    return path


# ---- Every microsecond ---------------------------------------------------------------------------

@dataclass(eq=False)
class State:
    message: Message
    held: list = field(default_factory=list)  # for each hop taken: when its head has crossed, and what it carried
    given_back: set = field(default_factory=set)
    asked: int = None  # waits since then
    entry: int = 0
    arrived: bool = False


class Slow:
    """`model` has switching, queue, tp, unit, buffer, lanes, slots, ports, barrier and slow: the channels of half the rate.
    Two data are what a channel of the full rate carries in a microsecond. With these rates nothing happens between two
    microseconds."""

    def __init__(self, torus, messages, model):
        self.torus, self.model = torus, model
        self.states = [State(message) for message in sorted(messages, key=lambda m: m.order)]
        self.by_message = {id(state.message): state for state in self.states}
        self.needs = {id(state): {id(self.by_message[id(m)]) for m in state.message.needs} for state in self.states}
        self.holder, self.sends, self.receives, self.slots = {}, defaultdict(int), defaultdict(int), defaultdict(int)
        self.now = 0
        self.unstarted = list(self.states)
        self.news = []  # arrivals of this time

    def entry(self, channel):
        lanes = self.model['lanes'] or 1
        return port(channel[1], -channel[2]) * lanes + (channel[4] if lanes > 1 else 0) + 1

    def total(self, state):
        return 2 * state.message.units * self.model['unit']

    def speed(self, channel):
        return 1 if channel[:3] in self.model['slow'] else 2

    def takes(self, state, hop):
        """(send, receive, slot): what a message takes beside a channel."""
        store, last = self.model['switching'] == 'store', hop == len(state.message.path) - 1
        ports = self.model['ports']
        return (ports and (store or hop == 0), ports and (store or last), self.model['slots'] and not last)

    def key(self, state):
        message, hop = state.message, len(state.held)
        rule = {'fifo': 0, 'longest': -(len(message.path) - hop + message.beyond), 'step': message.step}
        return (rule[self.model['queue']], state.asked, state.entry, self.entry(message.path[hop]), message.order)

    def can_take(self, state):
        hop = len(state.held)
        channel = state.message.path[hop]
        send, receive, slot = self.takes(state, hop)
        return (channel not in self.holder
                and not (send and self.sends[channel[0]] >= self.model['ports'])
                and not (receive and self.receives[channel[3]] >= self.model['ports'])
                and not (slot and self.slots[channel] >= self.model['slots']))

    def take(self, state):
        hop = len(state.held)
        channel = state.message.path[hop]
        send, receive, slot = self.takes(state, hop)
        self.holder[channel] = state
        self.sends[channel[0]] += bool(send)
        self.receives[channel[3]] += bool(receive)
        self.slots[channel] += bool(slot)
        state.held.append([self.now + self.model['tp'] + (state.message.startup if hop == 0 else 0), 0])
        state.asked = None

    def give_back(self, state, hop):
        channel = state.message.path[hop]
        send, receive, _ = self.takes(state, hop)
        state.given_back.add(hop)
        del self.holder[channel]
        self.sends[channel[0]] -= bool(send)
        self.receives[channel[3]] -= bool(receive)
        if hop > 0 and self.takes(state, hop - 1)[2]:
            self.slots[state.message.path[hop - 1]] -= 1
        if hop == len(state.message.path) - 1:
            state.arrived = True
            self.news.append(state)

    def begin(self):
        """Messages that can start now ask for their first channel. Returns whether one did."""
        began = False
        for state in list(self.unstarted):
            message = state.message
            if message.earliest > self.now or any(not self.by_message[id(m)].arrived for m in message.needs):
                continue
            if self.model['barrier'] and any(not other.arrived and other.message.step < message.step
                                             for other in self.states):
                continue
            last = [s for s in self.news if id(s) in self.needs[id(state)]]
            state.entry = max((self.entry(s.message.path[-1]) for s in last), default=state.entry)
            state.asked = self.now
            self.unstarted.remove(state)
            began = True
        for state in self.unstarted:  # a later message decides what comes last
            last = [s for s in self.news if id(s) in self.needs[id(state)]]
            if last:
                state.entry = max(self.entry(s.message.path[-1]) for s in last)
        return began

    def settle(self):
        """What happens at this time, until nothing more happens."""
        changed = True
        while changed:
            changed = False
            for state in self.states:
                for hop, (crossed, carried) in enumerate(state.held):
                    if hop not in state.given_back and crossed <= self.now and carried == self.total(state):
                        self.give_back(state, hop)
                        changed = True
                hop = len(state.held)
                if state.asked is None and 0 < hop < len(state.message.path):
                    may = (hop - 1 in state.given_back if self.model['switching'] == 'store'
                           else state.held[-1][0] <= self.now)
                    if may:
                        state.asked, state.entry = self.now, self.entry(state.message.path[hop - 1])
                        changed = True
            changed = self.begin() or changed
            if changed:
                continue
            for state in sorted((s for s in self.states if s.asked is not None), key=self.key):
                if self.can_take(state):
                    self.take(state)
                    changed = True
        self.news = []

    def carry(self):
        """One microsecond. Returns whether anything moves or will."""
        moves = False
        for state in self.states:
            before = [carried for _, carried in state.held]
            after = [min(carried + self.speed(channel) * (crossed <= self.now), self.total(state))
                     for (crossed, carried), channel in zip(state.held, state.message.path)]
            room = 2 * self.model['buffer']
            for _ in after if self.model['switching'] != 'store' else ():
                for hop in range(1, len(after)):  # no more than has come
                    after[hop] = min(after[hop], after[hop - 1])
                if self.model['switching'] == 'wormhole':
                    for hop in reversed(range(len(after))):  # room is made from the head backwards
                        more = after[hop + 1] if hop + 1 < len(after) else 0
                        if hop + 1 < len(state.message.path):
                            after[hop] = min(after[hop], more + room)
            for hop, carried in enumerate(after):
                state.held[hop][1] = carried
            moves = moves or after != before or any(crossed > self.now for crossed, _ in state.held)
        self.now += 1
        return moves

    def run(self):
        """The time, or None for a deadlock."""
        last = 0
        while True:
            self.settle()
            if all(state.arrived for state in self.states):
                return last
            idle = not self.carry()
            last = self.now
            if idle and all(state.message.earliest < self.now for state in self.unstarted):
                return None


# ---- Comparisons ---------------------------------------------------------------------------------

def a_machine(rng, segments):
    switching = rng.choice(SWITCHINGS)
    return {'switching': switching, 'queue': rng.choice(QUEUES), 'ts': rng.choice((0, 0, 1, 5)),
            'tp': rng.choice((0, 0, 1, 3)), 'tw': segments * rng.randint(1, 3),
            'buffer': rng.randint(0, 4) if switching == 'wormhole' else None,
            'lanes': rng.choice((None, 2)) if switching == 'wormhole' else None,
            'slots': rng.choice((None, None, 1, 2)) if switching != 'wormhole' else None,
            'slow': frozenset(), 'ports': rng.choice(('one', 2, 'all')), 'barrier': rng.random() < 0.25,
            'mode': rng.choice(('stepped', 'streaming'))}


def options(machine):
    words = ['--block-size', 1]
    for name in 'mode', 'switching', 'queue', 'ts', 'tp', 'tw', 'ports', 'buffer', 'lanes', 'slots':
        if machine[name] is not None:
            words += [f'--{name}', machine[name]]
    if machine['slow']:
        words += ['--rate', ','.join(f'{node}:{"+" if direction > 0 else "-"}{dim}=0.5'
                                     for node, dim, direction in sorted(machine['slow']))]
    return words + ['--barrier'] * machine['barrier']


def slowly(torus, routes, segments, machine, allgather=False):
    lanes = machine['lanes'] or 1
    model = dict(machine, unit=machine['tw'] // segments * lanes, buffer=(machine['buffer'] or 0) * machine['tw'] * lanes,
                 slots=machine['slots'] or 0, ports={'all': 0, 'one': 1}.get(machine['ports'], machine['ports']))
    messages = (streaming(torus, routes, machine['ts'], allgather) if machine['mode'] == 'streaming'
                else stepped(torus, routes, machine['ts'], allgather))
    if lanes > 1:
        messages = with_lanes(torus, messages)
    return Slow(torus, messages, model).run()


def agree(words, torus, routes, segments, machine, allgather=False):
    machine['barrier'] = machine['barrier'] and machine['mode'] == 'stepped'
    wanted = slowly(torus, routes, segments, machine, allgather)
    command = ['--json', 'simulate', *words, *options(machine)]
    found = json.loads(torusctl(*command, status=wanted is None))
    assert found['time_us'] == wanted, ' '.join(map(str, command))
    assert bool(found.get('deadlock')) == (wanted is None)
    return wanted


@pytest.mark.parametrize('seed', range(4))
def test_random_schedules(tmp_path, seed):
    rng, deadlocks = random.Random(seed), 0
    for number in count():
        torus, segments = Torus(rng.choice(('3', '4', '5m', '2x3', '3mx3', '2x2', '3x3m'))), rng.choice((1, 1, 2))
        routes = a_random_schedule(rng, torus, segments)
        file = as_file(tmp_path / 'schedule', torus, segments, routes)
        machine = a_machine(rng, segments)
        if number % 3 == 2:
            machine['slow'] = frozenset(channel for channel in channels(torus) if rng.random() < 0.3)
        deadlocks += agree(['--import', file], torus, routes, segments, machine) is None
        if number >= 20 and deadlocks > 0:
            break


@pytest.mark.parametrize('dims,algorithm', [
    ('3x3', 'direct'), ('8', 'ar'), ('4x4', 'at2'), ('3x4', 'a2'), ('3x3', 'stream'), ('4x4', 'cccube'), ('4x4', 'atape'),
    ('3x3m', 'tree'), ('3x3', 'saadschultz'), ('3mx3m', 'balanced'), ('3x3', 'yangwang'), ('2x4m', 'disjoint'), ('8', 'ar1'), ('2x2m', 'direct')])
def test_algorithms(dims, algorithm):
    """One node stands for all that behave alike: the second simulation has all of them."""
    rng, torus = random.Random(dims + algorithm), Torus(dims)
    lines = map(json.loads, torusctl('plan', '--dims', dims, '--algorithm', algorithm, '--routes').splitlines())
    routes = [(route['src'], route['dst'], route['segment'], route['legs']) for route in lines]
    segments = 1 + max(segment for _, _, segment, _ in routes)
    allgather = algorithm in ('saadschultz', 'balanced', 'yangwang', 'disjoint')
    for switching in SWITCHINGS:
        machine = a_machine(rng, segments)
        worms = switching == 'wormhole'
        machine.update(switching=switching, slots=None, buffer=rng.randint(0, 4) if worms else None,
                       lanes=rng.choice((None, 2)) if worms else None)
        agree(['--dims', dims, '--algorithm', algorithm], torus, routes, segments, machine, allgather)


@pytest.mark.parametrize('dims', ['5', '8', '4x5', '5x4m'])
def test_two_lanes_keep_worms_from_circles(dims):
    """Routes through the dimensions in order: with one lane they wait in a circle, with two they do not."""
    words = ['--json', 'simulate', '--dims', dims, '--algorithm', 'direct', '--mode', 'streaming', '--switching', 'wormhole']
    one = json.loads(torusctl(*words, status=1))
    two = json.loads(torusctl(*words, '--lanes', 2))
    assert one['deadlock'] and two['lanes'] == 2 and 'deadlock' not in two and two['messages'] > one['messages']
    nodes = two['node_count']
    assert two['messages'] == nodes * (nodes - 1) and two['time_us'] >= two['bound_us']


@pytest.mark.parametrize('dims', ['8x8', '4x4x4'])
def test_barriers_give_the_times_of_the_cost_model(dims):
    """What predict counts, without hops and rearrangement, where no two messages of a step share a channel."""
    words = '--ts', 75, '--tw', 0.01, '--block-size', 1000
    predicted = json.loads(torusctl('--json', 'predict', '--dims', dims, '--rho', 0, *words))['times']
    compared = 0
    for row in predicted:
        name = row['algorithm']
        if row['from'] != 'enumeration' or json.loads(torusctl(
                '--json', 'plan', '--dims', dims, '--algorithm', name))['contended_steps'] > 0:
            continue
        run = json.loads(torusctl('--json', 'simulate', '--dims', dims, '--algorithm', name, '--mode', 'stepped',
                                  '--barrier', '--ports', 'all', *words))
        assert run['time_us'] == pytest.approx(row['time_us'], rel=1e-6), name
        compared += 1
    assert compared > 10


@pytest.mark.full
@pytest.mark.skipif(not Path('/usr/include/simgrid/s4u.hpp').exists(), reason='libsimgrid-dev is not installed')
def test_simgrid():
    """Its times are equal where messages do not wait for each other, and similar elsewhere."""
    done = run([CHECKOUT / 'tests' / 'bench' / 'in_simgrid.py'], 300,
               env={**os.environ, 'TORUS_BIN': str(Path(find_program('torusctl')).parent)})
    assert done.returncode == 0, done.stdout + done.stderr
