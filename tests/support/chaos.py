"""Rounds of chaos: exchanges of folders and of generated blocks and groups of programs run while links
fail in all possible ways, daemons are killed and stopped, clients die, and disks are full or hang. At the
end of each round, whatever happened in it, the following must hold:

- the client of every exchange ends within its timeout plus the time to notice a dead link;
- folders are committed at all nodes, with the contents that were sent, or at none, and the client's report
  is true. An exchange that shrinks may leave out nodes that were down at some time;
- all nodes that were up all the time and could reach each other give the same reason for a failure;
- the programs of a group end regularly, or with the same error. If they shrink the group, the programs on the
  remaining nodes go on, receive the right data, and end regularly;
- all daemons run, the torus becomes whole, no files are left behind, and an exchange works.

Rounds are the same for every kind of torus. An object (`ground`, such as MininetChaos) adapts them to one
kind. It has:

    torus                         with link_down() and so on
    timeout                       seconds of each exchange
    daemon(rank)                  an object with kill(), terminate(), start() and send_signal()
    has_died(rank)                whether that daemon, or its machine, has ended
    kinds(faults)                 further faults of this kind of torus: functions of a time, as those of Faults
    folders(name)                 new folders for an exchange (HostFolders)
    programs(seed, survive)       a group of programs, started (Programs)
    let_disks_hang(line)          makes disks hang until end_round(); `line` is for slow_disk.c
"""

import itertools
import json
import random
import re
import signal
import subprocess
import time

from torus_net import TorusError
from torus_net.patience import Patience

from .background import Client
from .trees import random_sizes
from .waiting import wait_for

NOTICED = 15      # seconds after its timeout until its client has ended
RECOVERY = 60     # seconds until the torus is whole again, and leftovers are gone
FULL_DISK = 64    # KiB
COMMITTED, FAILED, IN_DOUBT = 0, 1, 4  # exit statuses of torusctl
DISK_CALLS = ('fsync', 'writeback', 'rename', 'unlink', 'mkdir', 'open', 'read', 'write', 'stat')
ALGORITHMS = ('auto', 'auto', 'stream', 'direct', 'tree')


_hangs = itertools.count(1)  # numbers the hangs: daemons take each number as a new one


class Exchange:
    """A client at some node that has started an exchange."""

    def __init__(self, ground, rng, arguments):
        self.torus, self.timeout = ground.torus, ground.timeout
        self.rank = rng.randrange(self.torus.geometry.nodes)
        self.algorithm = rng.choice(ALGORITHMS)
        self.shrinks = self.algorithm == 'auto' and rng.random() < 0.4
        arguments = [*arguments, '--algorithm', self.algorithm,
                     *(['--on-failure', 'shrink'] if self.shrinks else [])]
        self.patience = Patience(self.timeout + NOTICED)
        self.killed = False
        self.client = Client(self.torus, '--json', 'exchange', '--timeout', self.timeout, *arguments,
                             rank=self.rank)

    def kill_client(self):
        self.killed = True
        self.client.process.kill()

    def end(self):
        """Waits for the client. Returns its exit status; None if it was killed."""
        try:
            self.status, self.said, self.error = self.client.end(self.patience)
        except subprocess.TimeoutExpired:
            raise AssertionError(f'{self}: the client of node {self.rank} has not ended') from None
        finally:
            self.client.__exit__()
        if self.killed:
            self.status = None
            return None
        assert self.status in (0, 1, 3, 4), f'{self}: exit status {self.status}: {self.error}'
        assert self.status == 0 or self.error, f'{self}: exit status {self.status} without a reason'
        return self.status

    def how(self):
        return f'by {self.algorithm} from node {self.rank}' + (' that shrinks' if self.shrinks else '')

    def missing(self, may_be):
        """The nodes that were left out, as the client has reported; if it has no report, those that may have been."""
        may_be = may_be if self.shrinks else set()
        if self.status != COMMITTED:
            return may_be
        missing = set(json.loads(self.said).get('missing', ()))
        assert missing <= may_be, f'{self}: without nodes {missing}'
        return missing


class Blocks(Exchange):
    """An exchange of generated blocks."""

    durable = False

    def __init__(self, ground, rng):
        self.size = rng.choice((1, 1000, 20000, 100000, 400000))
        repeat = rng.choice((1, 1, 10))
        super().__init__(ground, rng, ['--block-size', self.size,
                                       *(['--repeat', repeat] if repeat > 1 else [])])

    def __str__(self):
        return f'blocks of {self.size} B {self.how()}'

    def check(self, may_be_missing):
        """Does nothing: the daemons have checked the blocks."""
        self.missing(may_be_missing)

    def remove(self):
        """Does nothing: there are no files."""


class Folders(Exchange):
    """An exchange of folders."""

    durable = True

    def __init__(self, ground, rng, name):
        self.folders, self.full = ground.folders(name), None
        nodes = ground.torus.geometry.nodes
        self.sizes = random_sizes(nodes, rng.random(), rng.choice((2000, 300000)))
        if rng.random() < 0.15:
            self.full = rng.randrange(nodes)
            self.folders.fill_disk(self.full, FULL_DISK)
        self.folders.write(self.sizes)
        super().__init__(ground, rng, ['--from', self.folders.source, '--to', self.folders.target])

    def __str__(self):
        return (f'folders {self.how()}' +
                (f', disk of node {self.full} full' if self.full is not None else ''))

    def check(self, may_be_missing):
        """Checks the outputs. Call this when the client has ended and the torus is whole."""
        nodes, folders = set(range(self.torus.geometry.nodes)), self.folders
        missing = self.missing(may_be_missing)

        def settled():
            there = set(folders.in_place())
            return not there or nodes - there <= missing

        # Doubts end when the torus is whole.
        said = f'the client ended with status {self.status}: {self.error}'
        wait_for(settled, RECOVERY,
                 lambda: f'{self}: only in place at nodes {folders.in_place()}; {said}')
        wait_for(lambda: not folders.leftovers(), RECOVERY,
                 lambda: f'{self}: left: {folders.leftovers()}')
        assert settled(), f'{self}: only in place at nodes {folders.in_place()}'
        there = set(folders.in_place())
        assert self.status != COMMITTED or there == nodes - missing, \
            f'{self}: done without {sorted(missing)}, but in place at {sorted(there)}'
        assert self.status != FAILED or not there, f'{self}: in place, but failed: {self.error}'
        if there:
            folders.check(self.sizes, sorted(there))

    def remove(self):
        self.folders.remove()


class Faults:
    """The faults of a round: a list of (seconds, text, function)."""

    def __init__(self, ground, rng, works, programs, survive):
        self.ground, self.torus, self.rng, self.works = ground, ground.torus, rng, works
        self.programs, self.survive = programs, survive
        self.actions, self.returns, self.disturbed = [], [], set()
        self.links_hit, self.programs_hit = set(), set()
        outages = [self._kill, self._end, *ground.kinds(self)]
        others = [self._down, self._flap, self._mute, self._half_open, self._client, self._hang]
        if survive:
            chosen = self._survivable(outages, others)
        else:
            kinds = [*others, *outages, self._stop, *([self._program] if programs else [])]
            chosen = [rng.choice(kinds) for _ in range(rng.choice((1, 1, 2, 3)))]
        for inflict in chosen:
            inflict(rng.choice((0, 0.03, 0.1, 0.3, 1)) * rng.random())
        self.actions.sort(key=lambda action: action[0])

    def _survivable(self, outages, others):
        """Random faults with at least one node down, after which the remaining nodes are connected and more than half
        of all."""
        rng, geometry = self.rng, self.torus.geometry
        many = all(len({geometry.neighbour(rank, port) for port in geometry.ports(rank)}) >= 4
                   for rank in range(geometry.nodes))
        chosen = [rng.choice(outages) for _ in range(rng.choice((1, 1, 2)) if many else 1)]
        return chosen + [rng.choice(others) for _ in range(rng.choice((0, 0, 1)))]

    def __str__(self):
        return '; '.join(f'{at:.3f} s: {text}' for at, text, _ in self.actions if text)

    def add(self, at, text, function, *arguments):
        self.actions.append((at, text, lambda: function(*arguments)))

    def may_be_missing(self):
        """The nodes that an exchange may have left out by shrinking: those with a fault, and those outside the largest
        set of nodes that could always reach each other."""
        *small, _ = sorted(self.parts(), key=len)
        return self.disturbed.union(*small)

    def inflict(self):
        begin = time.monotonic()
        for at, _, function in self.actions:
            time.sleep(max(0, begin + at - time.monotonic()))
            function()

    # --- links ---

    def _port(self):
        rank = self.rng.randrange(self.torus.geometry.nodes)
        port = self.rng.choice(self.torus.geometry.ports(rank))
        self.links_hit.add(self.torus.geometry.link(rank, port))
        return rank, port.name

    def parts(self):
        """The nodes without a fault, as sets of nodes that could always reach each other."""
        geometry, parts = self.torus.geometry, []
        left = set(range(geometry.nodes)) - self.disturbed
        while left:
            part, new = set(), [left.pop()]
            while new:
                rank = new.pop()
                part.add(rank)
                for port in geometry.ports(rank):
                    there = geometry.neighbour(rank, port)
                    if there in left and geometry.link(rank, port) not in self.links_hit:
                        left.remove(there)
                        new.append(there)
            parts.append(part)
        return parts

    def _pair(self, at, seconds, kind, break_it, mend_it):
        rank, port = self._port()
        self.add(at, f'link {rank}:{port} {kind} for {seconds:.2f} s', break_it, rank, port)
        self.add(at + seconds, '', mend_it, rank, port)

    def _down(self, at):
        self._pair(at, self.rng.choice((0.05, 1, 4)) * self.rng.random(), 'down',
                   self.torus.link_down, self.torus.link_up)

    def _mute(self, at):
        self._pair(at, self.rng.choice((0.5, 8)) * self.rng.random(), 'mute', self.torus.link_mute,
                   self.torus.link_unmute)

    def _half_open(self, at):
        self._pair(at, self.rng.choice((0.5, 8)) * self.rng.random(), 'mute in one direction',
                   self.torus.link_mute_one_way, self.torus.link_unmute)

    def _flap(self, at):
        rank, port = self._port()
        times = self.rng.randrange(2, 6)
        self.add(at, f'link {rank}:{port} flaps {times} times', self.torus.link_down, rank, port)
        for number in range(times):
            if number > 0:
                self.add(at, '', self.torus.link_down, rank, port)
            at += 0.3 * self.rng.random()
            self.add(at, '', self.torus.link_up, rank, port)
            at += 0.3 * self.rng.random()

    # --- daemons, clients, disks ---

    def rank(self):
        """Chooses a node that has no fault yet, and marks it."""
        rank = self.rng.choice([rank for rank in range(self.torus.geometry.nodes)
                                if rank not in self.disturbed])
        self.disturbed.add(rank)
        return rank

    def _node(self):
        return self.ground.daemon(self.rank())

    def outage(self, at, seconds, text, end, start):
        """Kills or ends the daemon of a node. If the group must survive that, the node stays down until
        let_return()."""
        if self.survive:
            self.add(at, text, end)
            self.returns.append(start)
        else:
            self.add(at, text + (f' for {seconds:.2f} s' if seconds else ' and started'), end)
            self.add(at + seconds, '', start)

    def let_return(self):
        while self.returns:
            self.returns.pop()()

    def _kill(self, at):
        node, seconds = self._node(), self.rng.choice((0.1, 3)) * self.rng.random()
        self.outage(at, seconds, f'daemon {node.rank} killed', node.kill, node.start)

    def _end(self, at):
        node = self._node()
        self.outage(at, 0, f'daemon {node.rank} ended', node.terminate, node.start)

    def _stop(self, at):
        node, seconds = self._node(), self.rng.choice((0.5, 9)) * self.rng.random()
        self.add(at, f'daemon {node.rank} stopped for {seconds:.2f} s', node.send_signal,
                  signal.SIGSTOP)
        self.add(at + seconds, '', node.send_signal, signal.SIGCONT)

    def _client(self, at):
        work = self.rng.choice(self.works)
        self.add(at, f'client of node {work.rank} killed', work.kill_client)

    def _program(self, at):
        program = self.rng.choice(self.programs.all)
        self.programs_hit.add(program.node.rank)
        self.add(at, f'program of node {program.node.rank} killed', program.process.kill)

    def _hang(self, at):
        calls = self.rng.sample(DISK_CALLS, 3)
        self.add(at, f'disks hang in {", ".join(calls)}', self.ground.let_disks_hang,
                 f'#{next(_hangs)} {" ".join(calls)}')


def _reasons(torus, but):
    """{id: {rank: (state, reason)}} of ended exchanges, at nodes without a fault."""
    found = {}
    for rank in range(torus.geometry.nodes):
        if rank not in but:
            for x in torus.status(rank)['exchanges']:
                found.setdefault(x['id'], {})[rank] = (x['state'], x['reason'])
    return found


def _settled_reasons(torus, but):
    """Waits until all exchanges have ended. A node that was cut off from the root's abort when an attempt was
    withdrawn fails by itself, after two times four seconds."""
    def ended():
        found = _reasons(torus, but)
        failing = [state for nodes in found.values() for state, _ in nodes.values() if state == 'failing']
        return (found,) if not failing else None

    found, = wait_for(ended, NOTICED, lambda: f'still failing: {_reasons(torus, but)}')
    return found


def _check_reasons(before, after, faults):
    for name, nodes in after.items():
        for part in faults.parts() if name not in before else ():
            _check_reason(name, {rank: nodes[rank] for rank in part & nodes.keys()}, faults.disturbed)


def _check_reason(name, nodes, disturbed):
    failed = {reason for state, reason in nodes.values() if state == 'failed'}
    assert len(failed) <= 1, f'exchange {name} failed with several reasons: {nodes}'
    # A node that has done its part hears no abort if no node is left to send one.
    root = int(name.partition('-')[0])
    also = {'failed', 'finished'} if root in disturbed else {'failed'}
    assert not failed or {state for state, _ in nodes.values()} <= also, \
        f'exchange {name} failed at some nodes only: {nodes}'


def _may_fail(faults):
    """Whether a group that does not shrink may fail. If only links had faults, it goes on unless a row or column
    that it has open is no longer connected."""
    return bool(faults.disturbed or faults.programs_hit or len(faults.parts()) > 1)


def _check_group(programs, faults):
    if not _may_fail(faults):
        programs.wait(lambda program: program.is_open or program.ended_at is not None, 'open')
    programs.all[0].terminate()
    # If some programs could not open it, the others wait for them, here without a time limit.
    programs.wait(lambda program: program.ended_at is not None or not program.is_open, 'ended')
    # A program that could not open the group may give its own reason; one that had left it gives none.
    hit = faults.disturbed | faults.programs_hit
    said = {program.node.rank: program.said for program in programs.all
            if program.is_open and program.node.rank not in hit}
    for part in faults.parts():
        texts = {said[rank] for rank in part & said.keys()}
        assert len(texts - {''}) <= 1, f'not the same error: {said}'
    unjust = {text for text in said.values() if 'is not connected' not in text} - {''}
    assert _may_fail(faults) or not unjust, f'failed without a fault: {said}'
    wrong = [text for text in said.values() if re.search('wrong|damaged', text)]
    assert not wrong, wrong


class Survivors:
    """The programs of a group whose nodes remain."""

    def __init__(self, programs, faults):
        self.programs, self.torus = programs, faults.torus
        self.ranks = sorted(set(range(self.torus.geometry.nodes)) - faults.disturbed)
        self.all = [programs.all[rank] for rank in self.ranks]

    def _wait(self, enough, what):
        self.programs.wait(lambda program: program not in self.all or enough(program), what)

    def _check(self):
        said = {program.node.rank: program.said for program in self.all
                if program.ended_at is not None}
        assert not said, f'did not survive: {said}'

    def wait_shrunk(self):
        """Waits until all programs are in the group of these nodes, which avoids links that are down."""
        def there(program):
            return program.ended_at is not None or \
                (program.is_working and program.members == self.ranks)
        self._wait(there, f'in a group of nodes {self.ranks}')
        self._check()

    def end(self):
        """Ends the group after the other nodes have returned, which are not members of it."""
        self.programs.look(0)
        self._check()
        self.all[0].terminate()
        self._wait(lambda program: program.ended_at is not None, 'ended')
        said = {program.node.rank: program.said for program in self.all}
        assert set(said.values()) == {''}, f'did not survive: {said}'
        assert all(program.members == self.ranks for program in self.all), \
            [program.members for program in self.all]


def mend(ground):
    """Repairs the torus after a round that has failed."""
    torus = ground.torus
    for link in torus.geometry.links:
        rank, port = link.ends[0]
        torus.link_up(rank, port.name)
        torus.link_unmute(rank, port.name)
    for node in torus.nodes:
        if not node.alive:
            node.start()
        elif ground.has_died(node.rank):
            ground.daemon(node.rank).start()
        else:
            ground.daemon(node.rank).send_signal(signal.SIGCONT)
    torus.wait_whole(RECOVERY)


def one_round(ground, seed):
    """Runs a round. Returns a line of text about it; raises AssertionError if something was wrong."""
    rng, torus = random.Random(f'chaos {seed}'), ground.torus
    before = _reasons(torus, ())
    programs, works, survive = None, [], False
    told = 'a group is opened'
    try:
        if rng.random() < 0.3:
            survive = rng.random() < 0.4 and \
                min(len(torus.geometry.ports(rank)) for rank in range(torus.geometry.nodes)) >= 4
            programs = ground.programs(rng.randrange(1 << 60), survive)
        if survive:
            programs.wait(lambda program: program.is_open or program.ended_at is not None, 'open')
        for number in range(rng.choice((1, 1, 2, 3))):
            works.append(Folders(ground, rng, f'{seed}/{number}') if rng.random() < 0.6 else
                         Blocks(ground, rng))
        faults = Faults(ground, rng, works, programs, survive)
        group = ', a group that shrinks' if survive else ', a group' if programs else ''
        told = f'{", ".join(map(str, works))}{group}; {faults}'
        faults.inflict()
        if survive:
            survivors = Survivors(programs, faults)
            survivors.wait_shrunk()
            faults.let_return()
        statuses = [work.end() for work in works]
        for node in torus.nodes:
            assert not ground.has_died(node.rank), f'daemon {node.rank} has died'
        torus.wait_whole(RECOVERY)
        for work in works:
            work.check(faults.may_be_missing())
        if survive:
            survivors.end()
        elif programs is not None:
            _check_group(programs, faults)
        _check_reasons(before, _settled_reasons(torus, faults.disturbed), faults)
        torus.exchange('auto', 20000, rank=rng.randrange(torus.geometry.nodes))
    except (AssertionError, TorusError) as e:
        raise AssertionError(f'{told}: {e}') from e
    finally:
        if programs is not None:
            programs.__exit__()
        ground.end_round()
        for work in works:
            work.client.__exit__()
            work.remove()
    return f'{told}: {", ".join(_outcome(status) for status in statuses)}'


def _outcome(status):
    return {None: 'client killed', 0: 'done', 1: 'failed', 3: 'no daemon', 4: 'in doubt'}[status]
