"""torus-routed in random trials: cables are pulled and return, daemons and torus-routed are killed. After each event
all hosts that are connected answer each other within a second, or longer on a busy machine; no packet goes round in a
loop; nothing is left at the end. $TORUS_TRIALS (200) events in all, from the seed $TORUS_TRIALS_SEED (1)."""

import json
import os
import random
import time

import pytest
from support.prober import Prober
from support.routed import connected_pairs, state_of
from support.waiting import wait_for
from torus_net.patience import stretched

TRIALS = int(os.environ.get('TORUS_TRIALS', 200))
SEED = int(os.environ.get('TORUS_TRIALS_SEED', 1))
# Shapes, and their shares of the events
SHAPES = {'4': 5, '3x3': 5, '3mx3m': 5, '4x4': 3, 'complete:4': 2}
SECONDS = 1.0         # within which all pairs must answer: without an event, torus-routed looks only after two seconds
RESTART_SECONDS = 0.1  # after which the unit starts a torus-routed that was killed (RestartSec)


class Trials:
    """`up`: the links that are up."""

    def __init__(self, torus, prober, seed):
        self.torus, self.prober, self.chance = torus, prober, random.Random(seed)
        self.geometry = torus.geometry
        self.up = set(self.geometry.links)
        self.said = []  # of the events so far
        self.slowest = {}

    def answer(self, what, pairs=None):
        pairs = connected_pairs(self.geometry, self.up) if pairs is None else pairs
        try:
            seconds = self.prober.await_answers(pairs, stretched(SECONDS))
        except AssertionError as e:
            raise AssertionError(f'{e}; events: {"; ".join(self.said[-8:])}; routes of the first one: '
                                 f'{self.torus.ip_hosts.routes(0)}') from None
        self.slowest[what] = max(self.slowest.get(what, 0.0), seconds)

    def await_up(self, links):
        """Until both ends use these links."""
        def up():
            ends = [end for link in links for end in link.ends]
            found = {rank: self.torus.ctl(rank, '--json', 'links') for rank in {rank for rank, _ in ends}}
            if any(done.returncode != 0 for done in found.values()):
                return False  # a daemon that has just been started
            found = {rank: {link['port']: link['up'] for link in json.loads(done.stdout)['links']}
                     for rank, done in found.items()}
            return all(found[rank][port.name] for rank, port in ends)
        wait_for(up, 60, what=lambda: f'{links} do not come up; events: {self.said[-8:]}', pause=0.02)

    def event(self):
        rank = self.chance.randrange(self.geometry.nodes)
        down = [link for link in self.geometry.links if link not in self.up]
        kinds = ['helper', 'daemon', *['cut', 'cut', 'cut without helper', 'flap'] * (len(down) < len(self.geometry.links) / 2),
                 *['return', 'return'] * bool(down)]
        kind = self.chance.choice(kinds)
        link = self.chance.choice(down if kind == 'return' else sorted(self.up, key=self.geometry.links.index))
        self.said.append(f'{kind} of {link if kind in ("cut", "return", "cut without helper", "flap") else rank}')
        getattr(self, kind.replace(' ', '_'))(rank, link)
        self.answer(kind)
        if self.chance.random() < 0.5:
            time.sleep(self.chance.random() / 3)  # the next event may come while this one is still being settled

    def cut(self, _rank, link):
        rank, port = link.ends[0]
        self.torus.link_down(rank, port.name)
        self.up.discard(link)

    def __getattr__(self, name):
        if name == 'return':
            return self.mend
        raise AttributeError(name)

    def mend(self, _rank, link):
        rank, port = link.ends[0]
        self.torus.link_up(rank, port.name)
        self.answer('return')  # nothing is lost that was connected
        self.await_up([link])
        self.up.add(link)

    def flap(self, _rank, link):
        """A cable is pulled, and returns while hosts are still changing their routes."""
        self.cut(None, link)
        time.sleep(self.chance.random() / 10)
        self.mend(None, link)

    def helper(self, rank, _link):
        self.kill_helper(rank)
        self.torus.ip_hosts.start_routed(rank)

    def kill_helper(self, rank):
        process = self.torus.ip_hosts.routed[rank]
        process.kill()
        process.wait()

    def cut_without_helper(self, _rank, link):
        """A host hears of the cut only from the next torus-routed."""
        rank = self.chance.choice(link.ends)[0]
        self.kill_helper(rank)
        self.cut(rank, link)
        time.sleep(RESTART_SECONDS)
        self.torus.ip_hosts.start_routed(rank)

    def daemon(self, rank, _link):
        """Others go around the node meanwhile."""
        links = [link for link in self.up if rank in (end[0] for end in link.ends)]
        self.torus.node(rank).kill()
        self.up -= set(links)
        self.answer('daemon, without the node')
        self.torus.node(rank).start()
        self.await_up(links)
        self.up |= set(links)


def run_trials(torus, events, seed):
    before = [state_of(node) for node in torus.nodes]
    torus.set_ip_routes()
    with Prober(torus) as prober:
        trials = Trials(torus, prober, seed)
        trials.answer('begin')
        for _ in range(events):
            trials.event()
            assert not prober.exceeded, f'packets went round in a loop; events: {trials.said[-8:]}'
        for link in set(torus.geometry.links) - trials.up:
            trials.mend(0, link)
        trials.answer('end')
        assert not prober.exceeded, 'packets went round in a loop'
    torus.ip_hosts.undo()
    for node in torus.nodes:
        assert state_of(node) == before[node.rank]
    print(f'{torus.geometry}: {events} events; slowest answers in s: '
          + ', '.join(f'{what} {seconds:.3f}' for what, seconds in sorted(trials.slowest.items())))


def test_some_trials(mininet):
    run_trials(mininet('3mx3m'), 8, SEED)


@pytest.mark.full  # the test above finds most of what this finds
@pytest.mark.parametrize('dims', SHAPES)
def test_many_trials(mininet, dims):
    run_trials(mininet(dims), max(1, TRIALS * SHAPES[dims] // sum(SHAPES.values())), f'{SEED} {dims}')
