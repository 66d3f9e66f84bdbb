"""Networks that are products of any factors, on loopback: exchanges, allgathers, broadcasts, files,
programs, and what torusctl says about them."""


import pytest
from support import mpi, networks
from support.background import LongExchange
from support.errors import assert_refused
from support.members import Members
from support.trees import check_target, make_sources, random_sizes, wait_tidy
from support.waiting import wait_for
from torus_net import Geometry

NETWORKS = ['complete:4', '5 x complete:3', '2m^4', 'star:5 x 4', 'petersen', 'random', 'tree:2^2 x 2m']
SMALL = ['complete:4', 'star:5', 'petersen', '3 x complete:3']


@pytest.fixture
def torus_of(shared, root):
    return lambda name: shared(networks.make(root, name), data_roots=(str(root),))


@pytest.mark.parametrize('name', NETWORKS)
def test_every_link_is_up_and_has_a_name(torus_of, name):
    torus = torus_of(name)
    for rank in range(torus.geometry.nodes):
        ports = {link['port']: link['neighbour'] for link in torus.links(rank)['links']}
        assert ports == {port.name: torus.geometry.neighbour(rank, port)
                         for port in torus.geometry.ports(rank)}
    status = torus.status(0)
    assert status['whole'] and status['dims'] == list(torus.geometry.sizes)


@pytest.mark.parametrize('name', NETWORKS)
def test_exchanges(torus_of, name):
    """Every block of every pair arrives (the daemons check each byte), by each algorithm."""
    torus = torus_of(name)
    nodes = torus.geometry.nodes
    for algorithm, size in (None, 1), (None, 20001), ('tree', 77), ('direct', 3000), ('stream', 50000):
        result = torus.exchange(algorithm, size, rank=nodes - 1)
        assert result['verified'] and result['blocks_delivered'] == nodes * (nodes - 1)
        if algorithm:
            assert result['algorithm'] == algorithm
    for node in result['per_node']:
        assert node['ports'].keys() == {port.name for port in torus.geometry.ports(node['rank'])}


@pytest.mark.parametrize('name,algorithms', [
    ('complete:4', ('a1', 'a2', 'a3')),
    ('complete:3^2', ('a3',)),
    ('2m^4', ('a2', 'a3', 'cccube', 'cccube-q4', 'cccube-k1', 'cccube-k2', 'cccube-k3-q4')),
    ('star:5 x 4', ('a1', 'a2')),
    ('tree:2^2 x 2m', ('a1', 'a2')),
    ('petersen', ('a2', 'a3')),
    ('random', ('a2', 'a3')),
    ('star:3 x star:3', ('a2', 'a3')),
])
@pytest.mark.full
def test_the_papers_algorithms(torus_of, root, name, algorithms):
    """A1, A2, A3 and the CC-cube take the steps and blocks that torusctl counts."""
    torus = torus_of(name)
    nodes = torus.geometry.nodes
    for algorithm in algorithms:
        planned = torus.json(0, 'plan', '--dims', networks.make(root, name), '--algorithm', algorithm)
        assert planned['contended_steps'] == 0 and planned['port_model_kept']
        for size in 1, 3000:
            result = torus.exchange(algorithm, size, rank=nodes - 1)
            assert result['verified'] and result['blocks_delivered'] == nodes * (nodes - 1)
            assert result['algorithm'] == algorithm
            assert (result['startups'], result['transmission']) == (planned['startups'], planned['transmission'])


def test_ports_of_the_cccube(torus_of, root):
    """One, two and all ports, in the names of the family and with --q."""
    torus = torus_of('2m^4')
    for algorithm, ports, startups in (('cccube-k1', 'one-port', 4 * 4), ('cccube-k2', '2-port', 10),
                                       ('cccube', 'all-port', 7)):
        planned = torus.json(0, 'plan', '--dims', '2m^4', '--algorithm', algorithm, '--q', 4)
        assert (planned['port_model'], planned['startups']) == (ports, startups)
        assert planned['transmission'] == 2 * startups
        predicted = torus.json(0, 'predict', '--dims', '2m^4', '--algorithm', algorithm, '--q', 'best')
        assert predicted['times'][0]['algorithm'].startswith(algorithm)
    refused = torus.ctl(0, '--json', 'exchange', '--algorithm', 'cccube-k2', '--block-size', '1', '--mode', 'streaming')
    assert_refused(refused, 'usage', 2)
    assert '2-port' in refused.stderr


@pytest.mark.parametrize('name', ['star:5 x 4', 'petersen', 'tree:2^2 x 2m'])
def test_bounds(shared, root, name):
    bounds = shared('2').json(0, 'bounds', '--dims', networks.make(root, name))
    assert bounds['a2']['transmission'] >= bounds['bounds']['one_port_single_hops'] >= bounds['status']['average']


@pytest.mark.parametrize('name', NETWORKS)
def test_allgather_broadcast_and_barrier(torus_of, name):
    torus = torus_of(name)
    nodes = torus.geometry.nodes
    for size in 1, 20001:
        gathered = torus.json(1, 'allgather', '--block-size', size)
        assert gathered['verified'] and gathered['blocks_delivered'] == nodes * (nodes - 1)
        for root in 0, nodes - 1:
            sent = torus.json(1, 'broadcast', '--root', root, '--block-size', size)
            assert sent['verified'] and sent['blocks_delivered'] == nodes - 1


@pytest.mark.parametrize('name', SMALL)
def test_files(torus_of, root, name):
    torus = torus_of(name)
    base = root / name.replace(' ', '_').replace(':', '_')
    base.mkdir()
    sizes = random_sizes(torus.geometry.nodes, name)
    torus.exchange(None, source=make_sources(base, sizes), target=f'{base}/in/%r', rank=1)
    check_target(f'{base}/in/%r', sizes)
    wait_tidy(torus, base)


@pytest.mark.parametrize('name', SMALL)
def test_programs(torus_of, name):
    """All calls of a group, of all sizes; of its parts, too."""
    torus = torus_of(name)
    with Members(torus) as members:
        members.do('open g')
        for size in 1, 1000, 100001:
            for call in 'alltoall', 'alltoallv', 'allgather', 'allreduce', 'broadcast', 'reduce':
                members.do(f'{call} {size}')
        members.do('barrier')
        if len(torus.geometry.sizes) > 1:
            members.do('part 1')
            members.do('alltoall 5000 3')
            members.do('allreduce 5000')
        members.do('close')


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize('library', ['mpich', 'openmpi'])
def test_mpi(torus_of, library, tmp_path):
    torus = torus_of('complete:4')
    mpi.skip_without(torus, library)
    runs = []
    for mode in 'stats', None:
        path = tmp_path / (mode or 'alone')
        path.mkdir()
        runs.append((library, [mpi.program(torus, library, 'collectives'), 7, 40, 2, path], {'mode': mode}))
    with_it, _ = mpi.run_all(torus, runs, 60)
    for path in (tmp_path / 'alone').iterdir():
        mpi.compare(tmp_path / 'stats' / path.name, path)
    taken, _ = mpi.taken(with_it)
    assert sum(taken.values()) > 0


def test_a_killed_node_is_left_out(loopback, tmp_path):
    torus = loopback(networks.make(tmp_path, 'petersen'))
    torus.node(7).kill()
    result = torus.exchange(None, 20001, rank=3, options=('--on-failure', 'shrink'), timeout=60)
    assert result['missing'] == [7] and result['blocks_delivered'] == 9 * 8
    torus.node(7).start()
    torus.wait_whole(20)
    assert torus.exchange(None, 20001, rank=7)['blocks_delivered'] == 90


def test_the_edges_of_a_graph_must_be_the_same(loopback, tmp_path):
    """Another graph of as many nodes and links is another network."""
    dims = networks.make(tmp_path, 'petersen')
    other = tmp_path / 'other.edges'
    edges = [(a, b) if (a, b) != (0, 1) else (0, 2) for a, b in networks.PETERSEN]
    other.write_text(''.join(f'{a} {b}\n' for a, b in edges))
    torus = loopback(dims)
    at_fault = torus.node(9)
    at_fault.kill()
    at_fault.daemon.command = [argument.replace('petersen.edges', 'other.edges')
                               for argument in at_fault.daemon.command]
    at_fault.start()
    for rank in 4, 6, 7:  # its neighbours
        def reasons(rank=rank):
            return [link['reason'] for link in torus.links(rank)['links'] if link['neighbour'] == 9]
        wait_for(lambda: any('wrong torus' in reason for reason in reasons()), what=lambda: reasons())


@pytest.mark.parametrize('text,says', [
    ('complete:99', '2 to 33 nodes'),
    ('complete:33 x complete:33', 'more than 32 ports'),
    ('graph:/nowhere', '/nowhere'),
    ('4 x', 'expected a factor'),
])
def test_torusctl_refuses_what_is_no_network(shared, text, says):
    result = shared('2').ctl(0, '--json', 'plan', '--dims', text)
    assert_refused(result, 'usage', 2)
    assert says in result.stderr


@pytest.mark.parametrize('name', NETWORKS)
def test_plans(shared, root, name):
    """torusctl finds the routes without a daemon; their load is near the bound."""
    dims = networks.make(root, name)
    torus = shared('2')
    for algorithm in 'tree', 'direct':
        assert torus.json(0, 'plan', '--dims', dims, '--algorithm', algorithm)['algorithm'] == algorithm
    if not Geometry(dims).plain:
        plan = torus.json(0, 'plan', '--dims', dims)
        assert plan['algorithm'] == 'stream'
        assert plan['busiest'] <= 1.05 * plan['bound'] + 1 / plan['segments']


@pytest.mark.mininet
@pytest.mark.parametrize('name', ['complete:4', '5 x complete:3', 'petersen', pytest.param('random', marks=pytest.mark.full)])
def test_cut_links_and_a_dead_node(shared, root, name):
    """Exchanges avoid a cut link, and complete although another one is cut meanwhile; a dead node is left out."""
    from torus_net import MininetTorus
    torus = shared(networks.make(root, name), MininetTorus, bw=50)
    nodes = torus.geometry.nodes
    links = [link for link in torus.geometry.links if torus.geometry.factors[link.dim].neighbours is not None]
    (rank, port), _ = links[0].ends
    torus.link_down(rank, port.name)
    wait_for(lambda: not torus.status(0)['whole'])
    result = torus.exchange(None, 20001, rank=1)
    assert result['without'] == f'link {rank}:{port.name}' and result['blocks_delivered'] == nodes * (nodes - 1)
    torus.link_up(rank, port.name)
    torus.wait_whole(20)
    (rank, port), _ = links[-1].ends
    with LongExchange(torus, rank=0, algorithm='auto', block_size=12_000_000 // (nodes // 4)) as exchange:
        torus.link_down(rank, port.name)
        status, _, said = exchange.end(60)
        assert status == 0, said
    torus.link_up(rank, port.name)
    torus.wait_whole(20)
    torus.node(nodes - 1).kill()
    result = torus.exchange(None, 20001, rank=0, options=('--on-failure', 'shrink'), timeout=60)
    assert result['missing'] == [nodes - 1]
    assert result['blocks_delivered'] == (nodes - 1) * (nodes - 2)
    torus.node(nodes - 1).start()
    torus.wait_whole(30)
