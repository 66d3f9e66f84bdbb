"""A network that is not a torus, with a factor from a file of edges, on separate kernels."""

import json
import random
import re

import pytest
from support.programs import run_each
from torus_net.programs import run_programs
from torus_net.virtual import interface_name

on = pytest.mark.parametrize


@pytest.fixture(scope='session')
def edges(tmp_path_factory):
    """A triangle with a tail of one node."""
    path = tmp_path_factory.mktemp('graphs') / 'tail.edges'
    path.write_text('# a triangle and a tail\n0 1\n1 2\n2 0\n2 3\n')
    return path


def check(result, torus):
    nodes = torus.geometry.nodes
    assert result['verified'] == 'every byte' and result['algorithm'] == 'stream'
    assert result['blocks_delivered'] == nodes * (nodes - 1)
    for node in result['per_node']:
        assert node['ports'].keys() == {port.name for port in torus.geometry.ports(node['rank'])}


@on('dims', ['complete:4'])
def test_cards_have_the_names_of_ports(machines):
    for node in machines.nodes:
        ports = machines.geometry.ports(node.rank)
        cards = node.run('ls', '/sys/class/net').split()
        assert sorted(cards) == sorted(['lo', *map(interface_name, ports)])
        macs = set()
        for port in ports:
            there = machines.geometry.neighbour(node.rank, port)
            address = machines.interface_address(there, port.opposite)
            assert '0% packet loss' in node.run('ping', '-c', '1', '-W', '5', '-I', interface_name(port), address)
            macs.add(node.run('cat', f'/sys/class/net/{interface_name(port)}/address').strip())
        assert len(macs) == len(ports)


@on('dims', ['complete:4'])
def test_exchanges_and_a_pulled_cable(machines):
    check(machines.exchange(None, 20001, rank=2, within=90), machines)
    machines.link_down(0, '0:2')
    machines.wait_broken(30)
    result = machines.exchange(None, 20001, rank=1, within=90)
    assert result['without'] == 'link 0:0:2' and result['blocks_delivered'] == 12
    machines.link_up(0, '0:2')
    machines.wait_whole(60)
    check(machines.exchange(None, 5000, within=90), machines)


@on('dims', ['complete:4'])
def test_files(machines):
    nodes, rng = range(machines.geometry.nodes), random.Random(4)
    files = {s: {str(d): rng.randbytes(rng.randrange(20000)) for d in nodes} for s in nodes}
    for rank in nodes:
        machines.node(rank).put(f'/srv/mesh/out-{rank}', files[rank])
    result = machines.exchange(source='/srv/mesh/out-%r', target='/srv/mesh/in-%r', rank=1, within=90)
    assert result['verified'] == 'digests' and result['blocks_delivered'] == 12
    for rank in nodes:
        assert machines.node(rank).get(f'/srv/mesh/in-{rank}') == {str(s): files[s][str(rank)] for s in nodes}


@on('dims', ['complete:4'])
def test_programs(machines, capfd):
    """Groups: allgather, allreduce and exchanges in the examples, each of which verifies its result."""
    assert run_programs(machines, 'transpose && sample_sort 20000 && halos && conjugate_gradients') == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ['transposed', 'sorted', '100', 'solved'], lines
    assert all('on 4 nodes (complete:4)' in line for line in lines)
    for operation in ('allgather', 'allreduce'):
        first, *_ = run_each(machines, f'exec torusctl perf {operation} --sizes 8,100000 --repeat 3 --verify --json')
        assert [row['wrong'] for row in json.loads(first.stdout)['results']] == [0, 0]


@on('dims', ['complete:4'])
def test_a_machine_that_boots_again(machines):
    machines.node(1).kill()
    result = machines.exchange(None, 1000, rank=0, within=90, options=('--on-failure', 'shrink'))
    assert result['missing'] == [1] and result['blocks_delivered'] == 6
    machines.node(1).restart()
    machines.wait_whole(120)
    check(machines.exchange(None, 5000, rank=1, within=90), machines)


def test_machines_have_the_file_of_edges(edges):
    from torus_net import VirtualTorus
    with VirtualTorus(f'graph:{edges}') as torus:
        check(torus.exchange(None, 20001, rank=3, within=90), torus)
        status = torus.status(3)
        assert re.fullmatch('graph:4:[0-9a-f]{16}', status['network'])
        # The launcher's graph and the file in the machine are the same edges.
        named = re.search(r'--dims=graph:(\S+?)\^1', torus.node(3).run('cat', '/proc/cmdline'))[1]
        assert torus.node(3).run('cat', named) == edges.read_text()
