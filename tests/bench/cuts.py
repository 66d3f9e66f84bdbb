"""Links that go down, and nodes that die: the times of exchanges on the rest of the torus, of exchanges
that run when a fault happens, and of calls of programs that run when a cable is pulled.

Exchanges on the rest of the torus are compared with the plan's load at the goodput of the links, and with
the least load of any routes, by the linear program of flow.py (for large tori with the plan's lower bound,
which is not larger). An exchange with a fault may take 300 ms plus 1.25 times the time that the bytes that
had not arrived need at the least load. Every call of programs must complete with the right data.
"""

import json
import random
import re
import time
from contextlib import ExitStack

from support.background import Client
from support.waiting import exchanges, wait_for
from torus_net import TorusError

from . import arithmetic, network

TORI = '3x3@50,4x4@50,5x5@50,4x8@20,8x8@10'
SIZES = (64 << 10, 256 << 10)
TURNS = 5
REST = 0.15       # seconds
LP_NODES = 36     # nodes; for more, the linear program takes minutes
ROUNDS = 10       # of each fault
SIZE = 256 << 10  # block size of exchanges with a fault
ALLOWED, SHARE = 0.3, 1.25
FAULTS = ('one link', 'three links', 'a link that flaps', 'a node', 'a node, --on-failure shrink')
CALLS = (('alltoall', 256 << 10), ('alltoall', 1 << 10), ('allreduce', 4 << 20), ('allreduce', 8))
CALLS_SECONDS = 3.0  # a loop of calls


def run(options, say, save):
    result = {'damaged': [], 'faults': [], 'calls': [], 'failures': []}
    for dims, mbit in options.cuts:
        with network.attempt('cuts', dims, result['failures'], say):
            with network.Network(dims, mbit, bin=options.bin, memory=options.memory,
                                 congestion=options.congestion) as net:
                Cuts(net, dims, mbit, options, result, say, save).run()
            result['failures'] += [f'{dims}: {problem}' for problem in net.problems]
    return result


class Cuts:
    def __init__(self, net, dims, mbit, options, result, say, save):
        self.net, self.torus, self.dims, self.mbit = net, net.torus, dims, mbit
        self.options, self.result, self.save = options, result, save
        self.say = lambda text: say(f'cuts {dims} at {mbit:g} Mbit/s: {text}')
        self.random = random.Random(dims)
        self.rate = mbit

    def run(self):
        self.rate = self.net.goodput(self.options.out / 'programs', self.options.goodput_seconds)['mean']
        for dim, size in enumerate(self.net.geometry.sizes):
            if size > 2:
                self._damaged(f'0:+{dim}')
        if self.dims == self.options.cuts[0][0] or self.dims == '4x4':
            for fault in FAULTS:
                self._faults(fault)
            for operation, size in self.options.cuts_calls:
                self._calls(operation, size)

    def _plan(self, without):
        """The plan of a damaged torus, and the least load of the busiest channel by any routes; for a large
        torus, a lower bound of it."""
        plan = json.loads(self.torus.ctl(0, '--json', 'plan', '--dims', self.dims, '--without',
                                         without).stdout)
        if self.net.geometry.nodes > LP_NODES:
            return plan, plan['bound']
        from . import flow  # needs scipy
        return plan, float(flow.Flow(flow.Torus(self.dims, without)).least_load())

    # --- exchanges on damaged tori ---

    def _damaged(self, without):
        plan, least = self._plan(without)
        rank, port = int(without.split(':')[0]), without.split(':')[1]
        with Pulled(self.torus, [(rank, port)]):
            for size in self.options.cuts_sizes:
                if least * size * 8e-6 / self.mbit > self.options.longest:
                    continue
                times = []
                for turn in range(self.options.cuts_turns + 1):
                    time.sleep(REST)
                    said = self.torus.exchange(block_size=size)
                    if said['verified'] != 'every byte' or said['without'] != f'link {without}':
                        raise TorusError(f'without {without}: {said}')
                    if turn > 0:  # the first one warms up
                        times.append(said['seconds'])
                each = size * 8e-6 / self.rate
                self.result['damaged'].append(
                    {'dims': self.dims, 'mbit': self.mbit, 'goodput_mbit': self.rate,
                     'without': without, 'size': size, 'load': plan['busiest'], 'least': least,
                     'seconds': arithmetic.median(times), 'load_seconds': plan['busiest'] * each,
                     'least_seconds': least * each})
                self.save(self.result)
                self.say(f'without {without}, {arithmetic.format_size(size)}: '
                         f'{arithmetic.milliseconds(arithmetic.median(times))} ms, its load takes '
                         f'{arithmetic.milliseconds(plan["busiest"] * each)}')

    # --- faults during an exchange ---

    def _faults(self, fault):
        whole = [self.torus.exchange(block_size=SIZE)['seconds'] for _ in range(3)][-1]
        rounds = []
        for _ in range(self.options.cuts_rounds):
            if fault == 'a node':
                said = self._node(whole)
            elif fault.startswith('a node'):
                said = self._without_node(whole)
            else:
                said = self._links(fault, whole)
            rounds.append(said)
            self.torus.wait_whole(120)
        self.result['faults'].append({'dims': self.dims, 'mbit': self.mbit, 'fault': fault,
                                      'size': SIZE, 'rounds': rounds})
        self.save(self.result)
        good = sum(said['good'] for said in rounds)
        self.say(f'{fault}: {good} of {len(rounds)} passed, '
                 f'{arithmetic.milliseconds(arithmetic.median([s["seconds"] for s in rounds]))} ms after the fault')

    def _links(self, fault, whole):
        links = self.random.sample(self.net.geometry.links, 3 if fault == 'three links' else 1)
        ends = [(link.plus, f'+{link.dim}') for link in links]
        with self._exchange() as client:
            self._wait(whole)
            at = time.monotonic()
            with Pulled(self.torus, ends):
                if fault == 'a link that flaps':
                    for _ in range(3):
                        time.sleep(0.02)
                        self.torus.link_up(*ends[0])
                        time.sleep(0.02)
                        self.torus.link_down(*ends[0])
                code, out, err = client.end(60)
                seconds = time.monotonic() - at
        result = json.loads(out) if code == 0 else {}
        said = {'good': result.get('verified') == 'every byte', 'seconds': seconds,
                'reroutes': result.get('reroutes', 0)}
        if said['good'] and result.get('without'):
            without = result['without'].replace('link ', '').replace(' ', '')
            left = 1 - result.get('kept_bytes', 0) / result['bytes_delivered']
            least = self._plan(without)[1] * SIZE * 8e-6 / self.rate
            said.update(without=without, left=left, allowed=ALLOWED + SHARE * left * least)
        elif not said['good']:
            said['error'] = err.strip()
        return said

    def _node(self, whole):
        root, victim = self.random.sample(range(self.net.geometry.nodes), 2)
        others = [rank for rank in range(self.net.geometry.nodes) if rank != victim]
        with self._exchange(root) as client:
            self._wait(whole)
            at = time.monotonic()
            self.torus.node(victim).kill()
            code, _, err = client.end(60)
            good = code == 1 and re.search(rf'node {victim} is down', err) is not None
            try:
                for rank in others if good else ():
                    wait_for(lambda rank=rank: self._has_failed(rank, victim), 10)
            except AssertionError:
                good, err = False, 'not all other nodes report it'
            seconds = time.monotonic() - at
        self.torus.node(victim).start()
        return {'good': good, 'seconds': seconds, 'allowed': 2.0, 'error': '' if good else err.strip()}

    def _has_failed(self, rank, victim):
        """The id of one of the latest exchanges, as this node reports it."""
        return any(x['state'] == 'failed' and f'node {victim} is down' in x['reason']
                   for x in exchanges(self.torus, rank)[:2])

    def _without_node(self, whole):
        root, victim = self.random.sample(range(self.net.geometry.nodes), 2)
        with self._exchange(root, '--on-failure', 'shrink') as client:
            self._wait(whole)
            at = time.monotonic()
            self.torus.node(victim).kill()
            code, out, err = client.end(60)
            seconds = time.monotonic() - at
        self.torus.node(victim).start()
        result = json.loads(out) if code == 0 else {}
        # If the node died in the last moments of the exchange, the exchange may have been complete there.
        good = result.get('verified') == 'every byte' and result.get('missing', []) in ([victim], [])
        return {'good': good, 'seconds': seconds, 'error': '' if good else (err or out).strip()}

    def _exchange(self, root=None, *options):
        root = self.random.randrange(self.net.geometry.nodes) if root is None else root
        return Client(self.torus, '--json', 'exchange', '--block-size', SIZE, '--timeout', 30, *options,
                      rank=root)

    def _wait(self, whole):
        """Waits until a random moment of an exchange that was just requested."""
        time.sleep(self.random.uniform(0.01, 0.95 * whole))

    # --- calls of programs ---

    def _calls(self, operation, size):
        before = arithmetic.median(self._loop(operation, size, 5)['seconds'])
        repeat = min(max(int(CALLS_SECONDS / before), 5), 2000)
        rounds = []
        for _ in range(self.options.cuts_rounds):
            link = self.random.choice(self.net.geometry.links)
            rounds.append(self._loop(operation, size, repeat, [(link.plus, f'+{link.dim}')]))
            self.torus.wait_whole(120)
        self.result['calls'].append({'dims': self.dims, 'mbit': self.mbit, 'operation': operation, 'size': size,
                                     'before': before, 'rounds': rounds})
        self.save(self.result)
        self.say(f'{operation} of {arithmetic.format_size(size)}: {sum(r["good"] for r in rounds)} of '
                 f'{len(rounds)}, {arithmetic.milliseconds(before)} ms, with a cable pulled '
                 f'{arithmetic.milliseconds(arithmetic.median([max(r["seconds"] or [0]) for r in rounds]))} ms')

    def _loop(self, operation, size, repeat, ends=()):
        """Makes that many calls on each node, one after another, and pulls these cables at a random moment."""
        nodes = range(self.net.geometry.nodes)
        with ExitStack() as stack:
            clients = [stack.enter_context(Client(
                self.torus, '--json', 'perf', operation, '--sizes', size, '--repeat', repeat, '--pause', 0,
                '--verify', '--timeout', 60, rank=rank)) for rank in nodes]
            if ends:
                wait_for(lambda: self.torus.status(0)['groups'] != [], 60)
                time.sleep(self.random.uniform(0.05, 0.6) * CALLS_SECONDS)
                stack.enter_context(Pulled(self.torus, ends))
            ended = [client.end(120) for client in clients]
        good = all(code == 0 for code, _, _ in ended)
        said = {'good': good, 'seconds': json.loads(ended[0][1])['results'][0]['latency_seconds_each'] if good else [],
                'error': next((err.strip() for code, _, err in ended if code != 0), '')}
        if not good and not ends:
            raise TorusError(f'{operation}: {said["error"]}')
        return said


class Pulled:
    """with Pulled(torus, ends): pulls these cables, and puts them in again at the end of the block."""

    def __init__(self, torus, ends):
        self.torus, self.ends = torus, ends

    def __enter__(self):
        for end in self.ends:
            self.torus.link_down(*end)
        for rank, _ in self.ends:
            wait_for(lambda rank=rank: self.torus.status(rank)['whole'] is False, 30)

    def __exit__(self, *_):
        for end in self.ends:
            self.torus.link_up(*end)
        self.torus.wait_whole(120)
