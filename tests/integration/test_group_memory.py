"""Groups that do not fit into the memory of the daemons. Opening fails soon where the program asks for that, although its
timeout is long, such as torch's."""

import re

import pytest
from support.members import Members, same_error
from support.waiting import wait_for

LONG, SHORT = 3600000, 1000  # milliseconds
MEMORY = '14MiB'  # a group of all nodes takes 8, one of some nodes 10 at its members and 5 at others: not two of them


@pytest.mark.parametrize('holders,lacking', [('0,1,2,3', '[0-3]'), ('2,3', '[23]'), ('0,1', '[01]')])
def test_opening_names_the_node_without_memory(shared, holders, lacking):
    """All programs get the same error, whether the node that begins the group lacks memory, or another one."""
    torus = shared('2x2', memory=MEMORY)
    with Members(torus) as first, Members(torus) as second:
        holding = [member for member in first if str(member.node.rank) in holders.split(',')]
        for member in holding:
            member.tell(f'open full 0 0 {holders if len(holding) < 4 else ""}')
        assert [member.answer() for member in holding] == ['ok'] * len(holding)
        second.tell(f'open more {LONG} {SHORT}')
        said = same_error(second)
    assert re.search(rf'\Amemory: group "more": no memory for it within 1.0 s: (node \d reports: )?node {lacking} is busy: the '
                     r'group needs memory there: user \d+ has [1-9]\d* of 14680064 bytes of the memory budget for groups, '
                     r'wants \d+ more, but may have at most \d+, .* raise memory in torusd.ini\Z', said), said


def test_a_node_that_only_passes_data_on_lacks_memory(shared):
    """A group of some nodes reserves 10 MiB at its members, and 5 MiB at the nodes between them."""
    torus = shared('4', memory='30MiB')  # 22.5 MiB for one user
    with Members(torus) as first, Members(torus) as second, Members(torus) as third:
        for number, members in enumerate((first, second)):
            for rank in 1, 3:
                members[rank].tell(f'open full{number} 0 0 1,3')
            assert [members[rank].answer() for rank in (1, 3)] == ['ok', 'ok']
        for rank in 0, 2:
            third[rank].tell(f'open some {LONG} {SHORT} 0,2')
        said = same_error([third[0], third[2]])
    assert re.match(r'memory: group "some": no memory for it within 1.0 s: (node \d reports: )?node [13] is busy: ', said), said


def test_opening_waits_for_a_group_that_is_closed_in_time(shared):
    torus = shared('2x2', memory=MEMORY)
    with Members(torus) as first, Members(torus) as second:
        first.do('open full')
        second.tell(f'open more {LONG} {LONG}')
        wait_for(lambda: all(any(group['name'] == 'more' for group in torus.status(rank)['groups']) for rank in range(4)))
        first.do('close')
        assert second.answers() == ['ok'] * 4
