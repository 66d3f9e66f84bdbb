"""Groups whose programs, daemons and links are killed, stopped or cut: all nodes get the same error, and never wrong
data; a program that is only late does not disturb the others."""

import contextlib
import re
import signal

import pytest
from support.background import stopped
from support.members import Members, around, calls_done, paused, same_error, wait_calls
from support.rounds import KINDS, Program, Programs, one_round, own_memory
from support.waiting import wait_for

BLOCK = 3000
MIB = 1 << 20


@pytest.fixture
def torus(shared):
    return shared('2x3')


@pytest.fixture
def members(torus):
    with Members(torus) as members:
        yield members


def is_well(members, name='after'):
    """Checks that a new group works at once."""
    members.do(f'open {name}')
    members.do(f'alltoall {BLOCK} 5')
    members.do('allreduce 1000')
    members.do('close')


@pytest.mark.full
def test_a_daemon_that_is_slow_for_longer_than_ten_seconds(shared):
    """A program that waits for an answer of its daemon goes on waiting. So does the daemon's memory for a program that
    was slow: the program allocates it again."""
    torus = shared('1x1')
    with Members(torus) as members:
        one = members[0]
        one.do('open g')
        with stopped(torus.node(0)):
            one.tell(f'memory {1 * MIB}')
            assert not one.has_answered(11)
        assert one.answer() == 'ok'
        assert one.do(f'alltoall {BLOCK} 5') == 'ok'
        one.do('close')


def test_all_that_the_program_of_these_tests_can_call(members):
    members.do('open g')
    for memory in 'barrier', f'memory {1 * MIB}':
        members.do(memory)
        for size in 1, 1000, 100001:
            for call in 'alltoall', 'alltoallv', 'allgather', 'allreduce', 'broadcast', 'reduce':
                members.do(f'{call} {size}')
        members.do('part 2')
        members.do('alltoall 5000 3')
        members.do('part 0')
    members.do('close')


# ---- Programs that die --------------------------------------------------------------------------

@pytest.mark.parametrize('call', [f'alltoall {BLOCK} 0', 'alltoall 1000000 0', 'barrier 1000000000'])
def test_a_program_is_killed_in_the_middle_of_calls(torus, members, call):
    members.do('open g')
    members.tell(call)
    wait_calls(torus, 1, 'g', 5)
    members[4].kill()
    assert same_error(members.but(4)) == ('cancelled: group "g": the program of node 4 has died, or '
                                          'has ended without closing the group')


def test_a_program_is_killed_while_the_others_wait_for_it(torus, members):
    members.do('open g')
    for member in members.but(2):
        member.tell('barrier')
    for rank in 0, 1, 3, 4, 5:
        wait_for(lambda: members[rank].is_in_call())
    members[2].kill()
    said = same_error(members.but(2))
    assert said.startswith('cancelled: ') and 'node 2' in said
    for member in members.but(2):  # for ever, for all operations
        assert member.do('barrier') == member.do('alltoall 10') == member.do('part 1') == said
        assert member.do('close') == 'ok'
    wait_for(lambda: all(torus.status(rank)['groups'] == [] for rank in range(6)))


def test_a_program_is_killed_while_the_group_is_opened(torus, members):
    """Programs that have entered the group by then are told so, and open it again."""
    for member in members.but(5):
        member.tell('open g')
    wait_for(lambda: all(torus.status(member.node.rank)['groups'] for member in members.but(5)))
    members[2].kill()
    said = members[0].answer()
    assert said.startswith('cancelled: ') and 'node 2' in said
    members.replace(2)
    for rank in 0, 2, 5:
        members[rank].tell('open g')
    waiting = set(members)
    while waiting:
        for member in [member for member in waiting if member.has_answered(0.01)]:
            answer = member.answer()
            assert answer in ('ok', said), answer
            if answer == 'ok':
                waiting.remove(member)
            else:
                member.tell('open g')
    members.do('alltoall 100')


def test_programs_of_all_nodes_are_killed_at_once(torus, members):
    members.do('open g')
    members.tell(f'alltoall {BLOCK} 0')
    wait_calls(torus, 0, 'g')
    for member in members:
        member.send_signal(signal.SIGKILL)
    wait_for(lambda: all(torus.status(rank)['groups'] == [] for rank in range(6)))
    with Members(torus) as others:
        is_well(others, 'g')


def test_a_group_can_be_opened_as_soon_as_another_has_failed(torus, members):
    """The remaining programs, and a new one in place of the dead one, open a group with the same name."""
    for turn in range(5):
        rank = turn % 6
        members.do('open g')
        members.tell(f'alltoall {BLOCK} 0')
        wait_calls(torus, 1, 'g', 5)
        members[rank].kill()
        said = same_error(members.but(rank))
        assert said.startswith('cancelled: ') and f'node {rank}' in said
        for member in members.but(rank):
            assert member.do('close') == 'ok'
        members.replace(rank)


def test_a_group_that_waits_for_memory_reports_it(shared):
    """An open group has reserved all memory that one user may have."""
    torus = shared('2x3', memory='12MiB')
    with Members(torus) as first, Members(torus) as second:
        first.do('open full')
        second.tell('open more 2000')
        said = [member.answer() for member in second]
        assert re.match(r'timeout: group "more": .*user \d+ has \d+ of 12582912 bytes of the memory budget for groups, '
                        r'wants \d+ more, but may have at most \d+, .* raise memory in torusd.ini', said[0]), said


@pytest.mark.full
def test_one_user_can_have_eight_groups_of_all_nodes(shared):
    """With the default memory; all make large calls at the same time."""
    torus = shared('4x4')
    with contextlib.ExitStack() as stack:
        groups = [stack.enter_context(Members(torus)) for _ in range(8)]
        for number, each in enumerate(groups):
            each.tell(f'open g{number}')
        for call in None, 'alltoall 40000 3', 'allreduce 100000', 'broadcast 3000000':
            for each in groups:
                if call is not None:
                    each.tell(call)
            for each in groups:
                assert each.answers(300) == ['ok'] * 16
        assert len(torus.status(5)['groups']) == 8


# ---- Programs that are late, or end early -------------------------------------------------------

@pytest.mark.parametrize('block,count', [(BLOCK, 300), (200000, 30)])
def test_a_program_that_is_stopped_is_late(torus, members, block, count):
    members.do('open g')
    members.tell(f'alltoall {block} {count}')
    wait_calls(torus, 1, 'g', 5)
    with paused(members[3]):
        last = None
        while last != (last := calls_done(torus, 0, 'g')):
            torus.ctl(0, 'links')  # until nothing moves any more
        assert torus.ctl(1, 'exchange', '--block-size', '10000').returncode == 0
    assert members.answers(60) == ['ok'] * 6
    members.do('close')


def test_a_program_that_is_late_finds_what_has_come_before_its_call(members):
    members.do('open g')
    for member in members.but(0):
        member.tell('broadcast 100000 1')
        member.tell('alltoall 5000 2')
        member.tell('allgather 5000')
        member.tell('allreduce 3000')
    assert members[1].answer() == 'ok'  # the root waits for no other call
    with paused(members[0]):
        wait_for(lambda: all(member.is_in_call() for member in members.but(0)))
    for call in 'broadcast 100000 1', 'alltoall 5000 2', 'allgather 5000', 'allreduce 3000':
        assert members[0].do(call) == 'ok'
    assert members[1].answer() == 'ok'
    for _ in range(2):
        assert [member.answer() for member in members.but(0)] == ['ok'] * 5
    for member in members.but(0, 1):
        assert member.answer() == 'ok'


def test_a_program_that_closes_its_group_disturbs_nobody(torus, members):
    """The group fails at once; calls of another group go on."""
    with Members(torus) as others:
        members.do('open g')
        others.do('open h')
        others.tell(f'alltoall {BLOCK} 300')
        members.do(f'alltoall {BLOCK} 10')
        assert members[1].do('close') == 'ok'
        members[1].kill()
        for member in members.but(1):
            assert member.do('close') == 'ok'
        assert others.answers(60) == ['ok'] * 6


def test_a_call_on_a_group_that_a_member_has_left(members):
    members.do('open g')
    members.do('barrier')
    assert members[0].do('close') == 'ok'
    for member in members.but(0):
        member.tell('barrier')
    said = same_error(members.but(0))
    assert said.startswith('usage: ') and 'member 0' in said and 'barrier' in said
    assert members[0].do('open other 200').startswith('timeout')


def test_two_groups_of_different_programs(torus, members):
    """One fails, the other goes on."""
    with Members(torus) as others:
        members.do('open g')
        others.do('open h')
        members.tell(f'alltoall {BLOCK} 0')
        others.tell(f'alltoall {BLOCK} 300')
        wait_calls(torus, 1, 'g')
        members[0].kill()
        assert 'the program of node 0 has died' in same_error(members.but(0))
        assert others.answers(60) == ['ok'] * 6
        others.do('close')


# ---- Members that disagree ----------------------------------------------------------------------


# ---- Timeouts -----------------------------------------------------------------------------------

def test_a_call_with_a_timeout_names_who_has_not_made_it(members):
    members.do('open g')
    for member in members.but(4):
        assert member.do('timeout 300') == 'ok'
        member.tell('barrier')
    said = same_error(members.but(4))
    assert said.startswith('timeout') and 'barrier' in said
    assert members[4].do('barrier') == said


def test_a_timeout_of_one_member_is_enough(members):
    members.do('open g')
    assert members[5].do('timeout 300') == 'ok'
    for member in members.but(0):
        member.tell('alltoall 1000000')
    said = same_error(members.but(0))
    assert said.startswith('timeout') and 'alltoall' in said


def test_opening_with_a_timeout_names_who_has_not_opened_it(members):
    for member in members.but(1):
        member.tell('open g 2000')
    said = same_error(members.but(1))
    assert said.startswith('timeout') and '1' in said
    is_well(members, 'g')


# ---- Daemons ------------------------------------------------------------------------------------

def test_a_daemon_is_killed(torus, members):
    members.do('open g')
    members.tell(f'alltoall {BLOCK} 0')
    wait_calls(torus, 0, 'g')
    torus.node(4).kill()
    said = same_error(members.but(4))
    assert said.startswith('link: ') and 'node 4' in said, said
    own = members[4].answer()
    assert own.startswith('lost: the daemon at') and own.endswith('has gone away')
    torus.node(4).start()
    torus.wait_whole(40)
    for member in members:
        assert member.do('close') == 'ok'
    is_well(members, 'g')


def test_a_daemon_is_stopped_for_a_while(torus, members):
    members.do('open g')
    members.tell(f'alltoall {BLOCK} 500')
    wait_calls(torus, 1, 'g', 5)
    with stopped(torus.node(2)):
        wait_for(lambda: torus.node(2).daemon.stopped)
        last = None
        while last != (last := calls_done(torus, 3, 'g')):
            pass
    assert members.answers(60) == ['ok'] * 6
    members.do('close')


def test_a_daemon_ends_regularly(torus, members):
    """As with systemctl restart: the daemon's program and all others get an error, and the daemon does not hang."""
    members.do('open g')
    members.tell(f'alltoall {BLOCK} 0')
    wait_calls(torus, 0, 'g')
    assert torus.node(1).terminate() == 0
    assert 'node 1 ' in same_error(members.but(1))
    assert members[1].answer().startswith('lost: ')
    torus.node(1).start()
    torus.wait_whole(40)
    members.do('close')
    is_well(members, 'g')


class PoorAtNode1(Program):
    """The program there has no descriptor left for what the daemon sends when the group is open."""

    def _command(self, seed, survives):
        return ('ulimit -n 6; ' if self.node.rank == 1 else '') + super()._command(seed, survives)


def test_a_program_that_cannot_finish_opening_has_not_died(loopback):
    """It says why, and others learn that it has left."""
    with Programs(loopback('2x2'), 1, PoorAtNode1) as programs:
        programs.wait(lambda program: program.ended_at is not None, 'ended')
        assert 'ulimit -n' in programs.all[1].said
        others = {program.said for program in programs.all if program.node.rank != 1}
        assert all('member 1 has left' in text for text in others), others


# ---- Memory -------------------------------------------------------------------------------------

@pytest.mark.memory
@pytest.mark.slow
def test_large_buffers_and_a_late_program_take_no_memory_of_daemons(loopback):
    torus = loopback('2x2')
    with Members(torus) as members:
        members.do('open g')
        members.do(f'memory {64 * MIB}')
        for member in members.but(3):
            member.tell(f'alltoall {16 * MIB}')
        wait_for(lambda: all(member.is_in_call() for member in members.but(3)))
        assert own_memory(torus) < 40 * MIB
        members[3].tell(f'alltoall {16 * MIB}')
        wait_for(lambda: own_memory(torus) < 40 * MIB and members[0].has_answered())
        assert members.answers(120) == ['ok'] * 4
        assert own_memory(torus) < 40 * MIB


# ---- All operations -----------------------------------------------------------------------------

@pytest.mark.full
@pytest.mark.parametrize('kind', KINDS)
def test_rounds_of_faults(torus, kind):
    one_round(torus, kind, 1)


@pytest.mark.full
@pytest.mark.mininet
@pytest.mark.parametrize('kind', KINDS)
def test_rounds_of_faults_in_namespaces(shared, kind):
    """scripts/faults runs hundreds of them."""
    from torus_net import MininetTorus
    torus = shared('3x3', MininetTorus, bw=50)
    one_round(torus, kind, 2)


# ---- Links --------------------------------------------------------------------------------------

def test_a_link_goes_down_before_the_root_of_reduces_has_called(cabled):
    """All other members have completed the reduces, and have overwritten their data; data that went to the root over
    that link is sent again on another route."""
    torus = cabled('3x3')
    with Members(torus) as members:
        members.do('open g')
        for count in 1, 1000, 10000:
            for member in members.but(5):
                member.tell(f'reduce {count} 5')
            assert [member.answer() for member in members.but(5)] == ['ok'] * 8
        torus.cable.cut_after(0)
        wait_for(lambda: around(torus, 'g') == {'link 4:+1'}, 30)
        for count in 1, 1000, 10000:
            assert members[5].do(f'reduce {count} 5') == 'ok'
        members.do('barrier')
        members.do('reduce 100000 5')
        members.do('close')
