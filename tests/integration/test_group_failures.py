"""Programs of a group (torus/group.h): every operation with all kinds of memory, and failures of groups."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support.background import Background
from support.members import around, wait_calls
from support.waiting import wait_for
from torus_net import patience
from torus_net.patience import Patience, communicate
from torus_net.process import find_program

PROGRAM = Path(find_program('torusd')).parent / 'tests' / 'support' / 'group_program'


class Program(Background):
    """A group_program at a node."""

    def __init__(self, torus, rank, name, *command):
        self.rank = rank
        self.process = subprocess.Popen(
            [PROGRAM, torus.node(rank).socket, name, *map(str, command)], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)

    def wait_open(self):
        assert self.process.stdout.readline() == 'open\n'

    def end(self, left=None):
        """Waits until it exits. Returns (exit status, standard output)."""
        out, _ = communicate(self.process, left or Patience(60))
        return self.process.returncode, out


class Programs:
    """Programs on all nodes."""

    def __init__(self, torus, name, *command, ranks=None):
        self.all = [Program(torus, rank, name, *command)
                    for rank in (range(len(torus.nodes)) if ranks is None else ranks)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in self.all:
            program.__exit__()

    def wait_open(self):
        for program in self.all:
            program.wait_open()

    def end(self):
        return [program.end() for program in self.all]


def run(torus, name, *command):
    with Programs(torus, name, *command) as programs:
        for rank, (status, out) in enumerate(programs.end()):
            assert status == 0, f'node {rank}: {out}'


def still_works(torus):
    run(torus, 'works', 'all', 7, 12)


@pytest.fixture
def torus(shared):
    return shared('2x3')


@pytest.mark.parametrize('dims,seeds', [('2x3', 2), ('1x1', 1), ('3m', 2), ('2x2x2', 2), ('1x4', 1)])
def test_every_operation(shared, dims, seeds):
    """All operations with ordinary and registered memory, in place or not, with sizes from 0 to 100 KB; two groups at
    the same time."""
    torus = shared(dims)
    for seed in range(seeds):
        with Programs(torus, 'one', 'all', seed, 60) as one, \
                Programs(torus, 'two', 'all', 100 + seed, 60) as two:
            for status, out in one.end() + two.end():
                assert status == 0, out


def some(name, ranks):
    """The name of a group of these nodes, as group_program takes it."""
    return f'{name}:{",".join(map(str, ranks))}'


@pytest.mark.parametrize('dims,ranks', [('2x3', [0, 4, 5]), ('2x2x2', [6, 1])])
def test_every_operation_among_some_nodes(shared, dims, ranks):
    """Beside a group of all nodes."""
    torus = shared(dims)
    with Programs(torus, some('some', ranks), 'all', 3, 60, ranks=ranks) as programs, \
            Programs(torus, 'all', 'all', 4, 30) as others:
        for status, out in programs.end() + others.end():
            assert status == 0, out


def test_another_list_of_members_is_named(torus):
    with Programs(torus, some('g', [0, 4]), 'all', 1, 1, ranks=[0]) as one, \
            Programs(torus, some('g', [0, 4, 5]), 'all', 1, 1, ranks=[4]) as other:
        for status, out in one.end() + other.end():
            assert status == 1 and 'node 4 opens group "g" of 0,4-5, node 0 of 0,4: ' in out, out


def test_names(torus):
    """A name can be open only once at a node; it is free again when the group is closed."""
    with Programs(torus, 'taken', 'barrier', 0) as programs:
        programs.wait_open()
        with Program(torus, 2, 'taken', 'barrier', 1) as second:
            status, out = second.end()
        assert status == 1 and out.startswith('refused: ') and '"taken"' in out
        for name in 'n' * 64, b'\xe4', 'two\nlines':
            with Program(torus, 2, name, 'barrier', 1) as second:
                status, out = second.end()
            assert status == 1 and out.startswith('usage: ')


def ends_everywhere(torus, programs, besides, seconds):
    """Checks that all others end in time with the same error. Returns the error."""
    texts, left = set(), Patience(seconds + 5)
    for program in programs.all:
        if program.rank not in besides:
            status, out = program.end(left)
            assert status == 1, out
            texts.add(out)
    assert len(texts) == 1, texts
    return texts.pop()


@pytest.mark.parametrize('command', [('barrier', 0), ('loop', 1000, 0), ('loop', 300000, 0)])
def test_death_of_a_program(torus, command):
    with Programs(torus, 'mortal', *command) as programs:
        programs.wait_open()
        programs.all[4].process.kill()
        text = ends_everywhere(torus, programs, {4}, 1)
    assert 'the program of node 4 has died' in text
    still_works(torus)


def test_death_while_opening(torus):
    with Programs(torus, 'early', 'barrier', 0, ranks=[0, 1, 3]) as programs:
        for rank in (0, 1, 3):
            wait_for(lambda rank=rank: any(group['name'] == 'early'
                                           for group in torus.status(rank)['groups']))
        programs.all[1].process.kill()
        text = ends_everywhere(torus, programs, {1}, 1)
    assert 'node 1' in text
    still_works(torus)


@pytest.mark.parametrize('command', [('barrier', 0), ('loop', 30000, 0)])
def test_a_stopped_program_delays_its_group_only(torus, command):
    with Programs(torus, 'late', *command) as programs:
        programs.wait_open()
        stopped = programs.all[3].process
        stopped.send_signal(signal.SIGSTOP)
        try:
            still_works(torus)
            time.sleep(0.3)  # nothing may happen in the meantime
            assert [p.process.poll() for p in programs.all] == [None] * 6
        finally:
            stopped.send_signal(signal.SIGCONT)
        still_works(torus)
        assert [p.process.poll() for p in programs.all] == [None] * 6


def test_death_of_a_daemon(loopback):
    torus = loopback('2x3')
    with Programs(torus, 'lost', 'barrier', 0) as programs:
        programs.wait_open()
        torus.node(5).kill()
        text = ends_everywhere(torus, programs, {5}, 2)
        assert text.startswith('link: ') and 'node 5 is down' in text, text
        status, out = programs.all[5].end()
        assert status == 1 and out.startswith('lost: ') and 'has gone away' in out
    torus.node(5).start()
    torus.wait_whole(20)
    still_works(torus)


@pytest.mark.parametrize('dims,dead', [('3x3', (4, 0)), ('2x3', (0, 5)), ('5', (2,))])
def test_shrink(loopback, dims, dead):
    """Programs go on without nodes that go down one after another, including the first node."""
    torus = loopback(dims)
    left = list(range(len(torus.nodes)))
    with Programs(torus, 'shrinks', 'shrink', 5, 0, len(dead)) as programs:
        programs.wait_open()
        for victim in dead:
            left.remove(victim)
            torus.node(victim).kill()  # before its program, because a program that dies alone is another failure
            programs.all[victim].process.kill()
            for rank in left:
                line = programs.all[rank].process.stdout.readline()
                assert line.split() == ['shrunk', *map(str, left)], line
        missing = ', '.join(f'node {rank}' for rank in sorted(dead))
        for rank in left:
            wait_for(lambda rank=rank: [group['avoids'] for group in torus.status(rank)['groups']] == [missing],
                     what=lambda rank=rank: torus.status(rank)['groups'])
        assert re.search(f'^shrinks +open +{missing} ', torus.ctl(left[0], 'status').stdout, re.M)
        for rank in left:
            programs.all[rank].process.stdout.readline()  # it is open
        programs.all[left[0]].process.terminate()
        for rank in left:
            status, out = programs.all[rank].end()
            assert status == 0, f'node {rank}: {out}'
    for rank in dead:
        torus.node(rank).start()
    torus.wait_whole(20)
    still_works(torus)


def after_some_calls(process, get):
    """The value of get() after a few calls of a group. Then it waits for this program of it, which is stopped: that spares
    the processors."""
    process.send_signal(signal.SIGCONT)
    time.sleep(0.05)
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.2)
    return get()


def test_a_link_that_is_down_is_avoided(cabled):
    """Rows and columns avoid the link, too. The group uses the link again after it has been up for a while."""
    torus = cabled('3x3')
    torus.cable.cut_after(0)
    for rank in range(9):
        wait_for(lambda rank=rank: torus.status(rank)['whole'] is False, 30)
    with Programs(torus, 'around', 'all', 3, 0) as programs:
        programs.wait_open()
        assert around(torus, 'around') == {'link 4:+1'}
        assert re.search('^around +open +link 4:[+]1 ', torus.ctl(0, 'status').stdout, re.M)
        torus.cable.mend()
        torus.wait_whole(30)
        still_works(torus)
        wait_for(lambda: after_some_calls(programs.all[2].process, lambda: around(torus, 'around')) == {''}, 60)
        programs.all[2].process.send_signal(signal.SIGCONT)
        programs.all[2].process.terminate()
        for rank, (status, out) in enumerate(programs.end()):
            assert status == 0, f'node {rank}: {out}'


def calls_done(torus, name):
    """At the node where fewest are."""
    return min(group['calls_done'] for node in torus.nodes for group in torus.status(node.rank)['groups']
               if group['name'] == name)


# It takes ten seconds until the link is used again. Only the test above waits for that.
@pytest.mark.parametrize('times', [1, pytest.param(3, marks=pytest.mark.full)])
@pytest.mark.parametrize('command', [('all', 3, 0), ('loop', 1000, 0), ('loop', 300000, 0)])
def test_a_link_goes_down_under_way(cabled, command, times):
    """Programs check all data that they receive."""
    torus = cabled('3x3')
    with Programs(torus, 'goes on', *command) as programs:
        programs.wait_open()
        for turn in range(times):
            if turn > 0:
                torus.cable.mend()
                wait_for(lambda: around(torus, 'goes on') == {''}, 60)
            torus.cable.cut_after(0)
            wait_for(lambda: around(torus, 'goes on') == {'link 4:+1'}, 30)
        done = calls_done(torus, 'goes on')
        wait_for(lambda: calls_done(torus, 'goes on') > done + 3, 60)
        assert [program.process.poll() for program in programs.all] == [None] * 9
        if command[0] != 'all':
            return  # the programs would go on for ever
        programs.all[2].process.terminate()
        for rank, (status, out) in enumerate(programs.end()):
            assert status == 0, f'node {rank}: {out}'


def test_a_node_that_is_no_member_is_killed(loopback):
    """The members go on without it."""
    torus = loopback('3x3')
    with Programs(torus, some('some', [0, 4, 8]), 'all', 3, 0, ranks=[0, 4, 8]) as programs:
        programs.wait_open()
        torus.node(1).kill()
        wait_for(lambda: around(torus, 'some', [0, 4, 8]) == {'node 1'}, 30)
        wait_calls(torus, 4, 'some', 4)
        torus.node(1).start()
        torus.wait_whole(20)
        programs.all[1].process.terminate()
        for status, out in programs.end():
            assert status == 0, out


def test_ten_thousand_opens(shared):
    """Programs above the limit cost the daemon no more than accepted ones, and end with an error."""
    torus = shared('1x1')
    node = torus.node(0)
    still_works(torus)

    def descriptors():
        return len(os.listdir(f'/proc/{node.pid}/fd'))

    before = descriptors()
    with Program(torus, 0, 'many', 'open', 10000) as program:
        status, out = program.end()
    assert status == 1 and re.match('busy: |timeout: |memory: ', out), out
    # Earlier programs may have been closed in the meantime.
    wait_for(lambda: descriptors() <= before, what=lambda: f'{descriptors()}, not {before}')
    still_works(torus)


def test_the_socket_is_not_for_everybody(torus):
    path = f'{torus.node(0).socket}.programs'
    assert os.stat(path).st_mode & 0o777 == 0o660


def test_a_control_path_too_long_for_both_sockets(tmp_path):
    path = tmp_path / ('s' * (103 - len(str(tmp_path)) - 1))
    result = patience.run([find_program('torusd'), '--dims', '1x1', '--rank', '0', '--control', path,
                        '--state-dir', tmp_path / 'state'])
    assert result.returncode == 1 and 'at most 98 bytes are possible' in result.stderr
    assert not path.exists()
