"""Groups that are opened while nodes are down: without these nodes, or after they have returned."""

import re

import pytest
from support.programs import finish_each, python, start_each
from support.waiting import wait_for
from torus_net import CHECKOUT

NODES = range(9)


@pytest.fixture
def start():
    """Starts programs, and ends them with the test."""
    started = []

    def start(torus, on_failure, ranks, *again):
        script = CHECKOUT / 'tests' / 'support' / 'open_group.py'
        programs = start_each(torus, python(' '.join([str(script), on_failure, *again])), ranks)
        started.extend(programs)
        return programs
    yield start
    for program in started:
        if program.poll() is None:
            program.kill()
            program.communicate()


def wait_entered(torus, *ranks):
    """Waits until a program at each of these nodes has the group open, or opens it."""
    for rank in ranks:
        wait_for(lambda rank=rank: any(g['name'] == 'opened' for g in torus.status(rank)['groups']), 60)


def others(*ranks):
    return [rank for rank in NODES if rank not in ranks]


def check(processes, members, lines=('open', 'done')):
    for result in finish_each(processes, 120):
        out = result.stdout.splitlines()
        assert result.returncode == 0, (out, result.stderr)
        assert [line.split()[0] for line in out] == list(lines), out
        assert out[0] == ' '.join(['open', *map(str, members)]), out


@pytest.mark.full
@pytest.mark.parametrize('down', [[5], [0, 4]], ids=['one', 'also the first'])
def test_without_nodes_that_are_down(shared, start, down):
    torus = shared('3x3')
    for rank in down:
        torus.node(rank).kill()
    left = others(*down)
    torus.wait_broken(30, left)
    check(start(torus, 'shrink', left), left)
    for rank in down:
        torus.node(rank).start()
    torus.wait_whole(30)
    check(start(torus, 'shrink', NODES), NODES)


def test_a_node_goes_down_while_it_is_opened(shared, start):
    """The other programs wait for the node."""
    torus = shared('3x3')
    programs = start(torus, 'shrink', others(8))
    wait_entered(torus, *others(8))
    torus.node(8).kill()
    check(programs, others(8))
    torus.node(8).start()
    torus.wait_whole(30)


# The group's root, and another node.
EITHER = [0, pytest.param(5, marks=pytest.mark.full)]  # test_sim_entered and the swarm: any node


@pytest.mark.parametrize('down', EITHER)
def test_it_waits_for_a_node(shared, start, down):
    torus = shared('3x3')
    torus.node(down).kill()
    torus.wait_broken(30, others(down))
    programs = start(torus, 'wait', others(down))
    wait_entered(torus, *others(down))
    first = others(down)[0]
    wait_for(lambda: [g['missing'] for g in torus.status(first)['groups'] if g['name'] == 'opened'] == [str(down)])
    torus.node(down).start()
    programs += start(torus, 'wait', [down])
    check(programs, NODES)
    torus.wait_whole(30)


@pytest.mark.parametrize('down', EITHER)
def test_daemons_are_restarted_while_it_is_opened(shared, start, down):
    """The program opens the group at the restarted daemon, and the others do not notice."""
    torus = shared('3x3')
    programs = start(torus, 'wait', others(8))
    wait_entered(torus, *others(8))
    torus.node(down).kill()
    torus.wait_broken(30, others(down))
    torus.node(down).start()
    torus.wait_whole(30)
    wait_entered(torus, down)
    programs += start(torus, 'wait', [8])
    check(programs, NODES)
    torus.wait_whole(30)


def test_an_open_group_fails_and_is_opened_again(shared, start):
    """Data of calls at a daemon is lost with the daemon, so the group fails; the next group works."""
    torus = shared('3x3')
    programs = start(torus, 'wait', NODES, 'again')
    for program in programs:
        assert program.stdout.readline() == ' '.join(['open', *map(str, NODES)]) + '\n'
    torus.node(5).kill()
    torus.wait_broken(30, others(5))
    torus.node(5).start()
    for result in finish_each(programs, 120):
        out = result.stdout.splitlines()
        assert result.returncode == 0 and [line.split()[0] for line in out] == ['failed', 'open', 'done'], (
            out, result.stderr)
    torus.wait_whole(30)


def test_all_have_to_ask_for_the_same(shared, start):
    torus = shared('3x3')
    results = finish_each(start(torus, 'fail', [0]) + start(torus, 'wait', [4]), 120)
    for result in results:
        assert result.returncode == 1 and re.match('usage: .*waits for nodes that are down', result.stdout), (
            result.stdout, result.stderr)
