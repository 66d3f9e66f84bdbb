"""Wrong cables. All + interfaces have the address fe80::a and all - interfaces fe80::b, so that the nodes'
configurations differ only in the rank."""

import pytest
from support.hosts import PORT
from support.waiting import wait_for, wait_logged

pytestmark = pytest.mark.hosts


def right_cables(sizes):
    """[(node, interface, node, interface)]: from each + to the - of the next node."""
    count, cables = 1, []
    for size in sizes:
        count *= size
    for node in range(count):
        stride = count
        for dim, size in enumerate(sizes):
            stride //= size
            at = node // stride % size
            cables.append((node, f'plus{dim}', node + ((at + 1) % size - at) * stride, f'minus{dim}'))
    return cables


def cabled(hosts, sizes, cables=None, ranks=None, nodad=True, start=True):
    """A torus in which the node on host I has the rank ranks[I]."""
    cables = cables or right_cables(sizes)
    count = max(node for a, _, b, _ in cables for node in (a, b)) + 1
    torus = hosts('x'.join(map(str, sizes)), count)
    for a, interface_a, b, interface_b in cables:
        if a == b:
            torus[a].ip(f'link add name {interface_a} type veth peer name {interface_b}')
        else:
            torus.cable(a, interface_a, b, interface_b, up=False)
        for node, interface in (a, interface_a), (b, interface_b):
            torus[node].ip(f'link set {interface} up')
    for node in range(count):
        for dim in range(len(sizes)):
            for side, address in ('plus', 'fe80::a'), ('minus', 'fe80::b'):
                if f'{side}{dim}' in torus[node].interfaces():
                    torus[node].ip(f'address add {address}/64 dev {side}{dim}' + (' nodad' if nodad else ''))
        rank = (ranks or range(count))[node]
        torus.configure(node, {f'{sign}{dim}': f'[fe80::b%{side}{dim}]:{PORT}'
                               for dim in range(len(sizes)) for sign, side in (('+', 'plus'), ('-', 'minus'))},
                        rank=rank)
    if start:
        torus.start(*range(count))
    return torus


def crossed(cables, one, other):
    """Swaps the far ends of two cables."""
    cables = list(cables)
    (a, x, b, y), (c, z, d, w) = cables[one], cables[other]
    cables[one], cables[other] = (a, x, d, w), (c, z, b, y)
    return cables


@pytest.mark.full
def test_configurations_differ_by_rank_alone(hosts):
    torus = cabled(hosts, [2, 3])
    torus.wait_up()
    wait_for(lambda: torus.status(3)['whole'] and torus.status(3)['cables'] == [], what=lambda: torus.status(3))
    configurations = {'\n'.join(line for line in (torus.folder / f'{node}.ini').read_text().splitlines()
                                if not line.startswith(('rank', 'control', 'state_dir'))) for node in range(6)}
    assert len(configurations) == 1


@pytest.mark.full
def test_two_crossed_cables_are_named_at_all_nodes(hosts):
    """Swapped cables of node 0 and node 4, each in a ring of three."""
    cables = right_cables([2, 3])
    one, other = cables.index((0, 'plus1', 1, 'minus1')), cables.index((4, 'plus1', 5, 'minus1'))
    torus = cabled(hosts, [2, 3], crossed(cables, one, other))
    expected = {(0, '+1'): ('wrong-cable', 5, '-1'), (5, '-1'): ('wrong-cable', 0, '+1'),
                (4, '+1'): ('wrong-cable', 1, '-1'), (1, '-1'): ('wrong-cable', 4, '+1')}
    for asked in range(6):
        torus.wait_faults(asked, expected)
    text = 'node 0 port +1 is cabled to node 5 port -1; it expects node 1 port -1'
    wait_for(lambda: text in {one['text'] for one in torus.status(2)['cables']})
    torus.wait_link(0, '+1', reason=text)
    # Put right, without a daemon restarted.
    for node, interface in (0, 'plus1'), (4, 'plus1'):
        torus[node].ip(f'link delete {interface}')
    for a, b in (0, 1), (4, 5):
        torus.cable(a, 'plus1', b, 'minus1')
        torus[a].ip('address add fe80::a/64 dev plus1 nodad')
        torus[b].ip('address add fe80::b/64 dev minus1 nodad')
    torus.wait_up()
    for asked in range(6):
        torus.wait_faults(asked, {})


def test_plus_to_plus(hosts):
    """In a ring of three, one cable joins the + ports of nodes 0 and 1, and another one the - ports of nodes 1 and 2:
    no node dials an existing address."""
    cables = [(0, 'plus0', 1, 'plus0'), (1, 'minus0', 2, 'minus0'), (2, 'plus0', 0, 'minus0')]
    torus = cabled(hosts, [3], cables)
    expected = {(0, '+0'): ('same-side', 1, '+0'), (1, '+0'): ('same-side', 0, '+0'),
                (1, '-0'): ('same-side', 2, '-0'), (2, '-0'): ('same-side', 1, '-0')}
    for asked in 0, 2:  # node 1 cannot tell the others, which have found out the same
        torus.wait_faults(asked, {port: fault for port, fault in expected.items() if port[0] != 1})
    torus.wait_faults(1, {port: fault for port, fault in expected.items() if port[0] == 1})
    torus.wait_link(1, '+0', reason='node 1 port +0 is cabled to node 0 port +0: a + port must be cabled to a - port; it '
                                    'expects node 2 port -0')


def test_the_kernel_finds_the_address_of_the_other_end(hosts):
    """Without nodad: at least one of two - ports has no usable address."""
    two = cabled(hosts, [2], [(0, 'plus0', 1, 'plus0'), (0, 'minus0', 1, 'minus0')], nodad=False, start=False)
    wait_for(lambda: any('dadfailed' in two[node].ip('address show dev minus0') for node in (0, 1)), 20)
    node = 0 if 'dadfailed' in two[0].ip('address show dev minus0') else 1
    two.start(0, 1)
    wait_logged(lambda: two.log(node), 'another machine with address fe80::b at minus0')
    two.wait_faults(node, {(node, '+0'): ('same-side', 1 - node, '+0'), (node, '-0'): ('same-side', 1 - node, '-0')})


@pytest.mark.full
def test_two_nodes_of_one_rank(hosts):
    """The node where rank 2 should be says that it has rank 1."""
    torus = cabled(hosts, [3], ranks=[0, 1, 1])
    torus.wait_faults(0, {(0, '-0'): ('duplicate-rank', 1, '+0'), (1, '+0'): ('duplicate-rank', 1, '-0')})
    torus.wait_faults(1, {(0, '-0'): ('duplicate-rank', 1, '+0'), (1, '+0'): ('duplicate-rank', 1, '-0')})
    torus.wait_link(0, '-0', reason='another machine has that rank, too: correct its rank')
    wait_for(lambda: torus.faults(2) == {(1, '+0'): ('duplicate-rank', 0, '-0')} or
             torus.faults(2).get((1, '-0')) == ('duplicate-rank', 1, '+0'), 30)
    torus.end(2)
    torus.configure(2, {'+0': f'[fe80::b%plus0]:{PORT}', '-0': f'[fe80::b%minus0]:{PORT}'}, rank=2)
    torus.start(2)
    torus.wait_up()
    for asked in range(3):
        torus.wait_faults(asked, {})


def test_a_cable_to_the_same_machine(hosts):
    torus = cabled(hosts, [2], [(0, 'plus0', 0, 'minus0'), (1, 'plus0', 1, 'minus0')])
    torus.wait_faults(0, {(0, '+0'): ('loop', 0, '-0'), (0, '-0'): ('loop', 0, '+0')})


def test_two_machines_of_one_rank_with_a_right_cable_each(hosts):
    """A machine is replaced cable by cable: node 0 takes one machine for node 1, and node 2 takes the other one."""
    cables = [(0, 'plus0', 1, 'minus0'), (3, 'plus0', 2, 'minus0'), (2, 'plus0', 0, 'minus0')]
    torus = cabled(hosts, [3], cables, ranks=[0, 1, 2, 1])
    torus.end(2)  # the second machine's reports about its links change more often, and are believed
    torus.start(2)
    for asked in range(4):
        def named(asked=asked):
            said = torus.status(asked)['cables']
            return said and all(one['code'] == 'duplicate-rank' and 'two machines have rank 1' in one['text'] for one in said)
        wait_for(named, what=lambda: f'{torus.status(asked)["cables"]}\n{torus.log(asked)}', pause=0.5)
    torus.end(3)
    torus[3].ip('link delete plus0')
    torus.cable(1, 'plus0', 2, 'minus0')
    torus[1].ip('address add fe80::a/64 dev plus0 nodad')
    torus[2].ip('address add fe80::b/64 dev minus0 nodad')
    torus.wait_up()
