"""Networks on which the parts of a block go along trees that share no channel: what every port carries, which trees
the daemon chooses, and calls of programs, also while links are down."""

import pytest
from support import networks
from support.networks import torus_of  # noqa: F401
from support.errors import assert_refused
from support.expect import torusctl, torusctl_json
from support.members import Members
from support.waiting import wait_for

# The network, and how many trees each node has.
TREES = {'complete:4': 3, 'star:5': 1, 'star:5 x 4': 3, '5 x complete:3': 4, 'petersen': 3, 'random': 4}
LARGE = 4 << 20


def carried(result, which='tx_bytes'):
    """By node: the bytes of each of its ports that carried any."""
    return {node['rank']: [port[which] for port in node['ports'].values() if port[which] > 0]
            for node in result['per_node']}


@pytest.mark.parametrize('name', TREES)
def test_plans_and_bounds(root, name):
    """The trees are as many as the bound allows, and an allgather along them meets the bound of the cuts."""
    dims, trees = networks.make(root, name), TREES[name]
    plan = torusctl_json('plan', '--dims', dims, '--algorithm', 'disjoint')
    assert (plan['operation'], plan['trees'], plan['segments']) == ('allgather', trees, trees)
    assert plan['broadcast_bound'] == pytest.approx(1 / trees)
    assert plan['busiest'] == pytest.approx(plan['bound'])
    bounds = torusctl_json('bounds', '--dims', dims)['broadcasts']
    assert bounds['disjoint_trees'] == trees and bounds['in_parts'] == pytest.approx(1 / trees)


def test_plans_without_links():
    plan = torusctl_json('plan', '--dims', '4x4', '--algorithm', 'disjoint', '--without', '0:+0,3:+1,7')
    assert plan['trees'] == 2 and plan['busiest'] == pytest.approx(plan['bound'])


@pytest.mark.parametrize('arguments,says', [
    (('complete:13 x 6', '--algorithm', 'disjoint'), 'up to 64 nodes'),
    (('4x4', '--algorithm', 'at2', '--without', '0:+0'), 'only --algorithm disjoint'),
])
def test_refused(arguments, says):
    result = torusctl('--json', 'plan', '--dims', *arguments)
    assert_refused(result, 'usage', 2)
    assert says in result.stderr


@pytest.mark.parametrize('name', TREES)
def test_each_channel_carries_one_part(torus_of, name):
    """Every node receives each part once, by a link of its own; so also for blocks that are too small to be cut."""
    torus, trees = torus_of(name), TREES[name]
    nodes, part = torus.geometry.nodes, 20_000
    for sender in 0, nodes - 1:
        for size in 1, trees * part:
            result = torus.json(1, 'broadcast', '--root', sender, '--algorithm', 'disjoint', '--block-size', size)
            assert result['verified'] == 'every byte' and result['blocks_delivered'] == nodes - 1
            assert result['algorithm'] == ('disjoint' if trees > 1 else 'spread')
        assert carried(result, 'rx_bytes') == {rank: [part] * trees if rank != sender else []
                                               for rank in range(nodes)}
        sent = carried(result)
        assert set(sum(sent.values(), [])) == {part} and len(sum(sent.values(), [])) == trees * (nodes - 1)
        if len(torus.geometry.ports(sender)) == trees:
            assert len(sent[sender]) == trees


@pytest.mark.parametrize('name', TREES)
def test_an_allgather_loads_no_channel_above_the_bound(torus_of, name):
    torus, trees = torus_of(name), TREES[name]
    nodes, part = torus.geometry.nodes, 3000
    for mode in 'streaming', 'stepped':
        result = torus.json(1, 'allgather', '--algorithm', 'disjoint', '--block-size', trees * part, '--mode', mode)
        assert result['verified'] == 'every byte' and result['blocks_delivered'] == nodes * (nodes - 1)
        assert max(sum(carried(result).values(), [])) == (nodes - 1) * part


def test_the_daemon_chooses_by_size(torus_of):
    for name in 'complete:4', 'petersen':
        torus = torus_of(name)
        for size, algorithm in (1, 'spread'), (LARGE, 'disjoint'):
            result = torus.json(2, 'broadcast', '--root', 1, '--block-size', size)
            assert result['algorithm'] == algorithm and result['verified'] == 'every byte'
    result = torus_of('random').json(2, 'allgather', '--block-size', LARGE // 16)
    assert result['algorithm'] == 'disjoint'


def sent_by(torus, rank):
    return {link['port']: link['tx_bytes'] for link in torus.links(rank)['links']}


@pytest.mark.full
@pytest.mark.parametrize('name', ['complete:4', 'petersen'])
def test_programs_use_all_links(torus_of, name):
    """A long broadcast leaves its root by all links, a third by each."""
    torus, trees = torus_of(name), TREES[name]
    with Members(torus) as members:
        members.do('open g')
        before = sent_by(torus, 0)
        members.do(f'broadcast {LARGE} 0')
        sent = {port: after - before[port] for port, after in sent_by(torus, 0).items()}
        assert len(sent) == trees and all(LARGE / trees <= one < 1.2 * LARGE / trees for one in sent.values()), sent
        for call in 'allgather', 'allreduce', 'reduce':
            for size in 1000, 300_001:
                members.do(f'{call} {size}')
        members.do('close')


@pytest.mark.full
@pytest.mark.mininet
@pytest.mark.parametrize('name', ['petersen', '4x4'])
def test_programs_while_a_link_is_down(shared, root, name):
    from torus_net import MininetTorus
    torus = shared(networks.make(root, name), MininetTorus, bw=100)
    (rank, port), _ = torus.geometry.links[0].ends
    torus.link_down(rank, port.name)
    wait_for(lambda: all(not torus.status(node)['whole'] for node in range(torus.geometry.nodes)))
    with Members(torus) as members:
        members.do('open g')
        before = sent_by(torus, 0)
        members.do(f'broadcast {LARGE} 0', 60)
        sent = [after - before[name] for name, after in sent_by(torus, 0).items()]
        assert max(sent) < 0.7 * LARGE, sent
        for call in 'allgather', 'allreduce', 'broadcast', 'reduce':
            for size in 1000, 300_001:
                members.do(f'{call} {size}', 60)
        members.do('close')
    torus.link_up(rank, port.name)
    torus.wait_whole(20)
