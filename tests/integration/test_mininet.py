"""Exchanges in Mininet: every node has a network namespace, every link a rate. The interfaces' counters show where
bytes really went."""

import re
import signal

import pytest
from support.background import LongExchange
from support.errors import assert_blames
from support.expect import all_cases, check_result
from support.trees import check_target, make_sources, random_sizes, wait_tidy
from support.waiting import wait_for, wait_state

pytestmark = pytest.mark.mininet

SHAPES = {'4x4': 50, '5x3': 50, '2x2': 50, '1x6': 50, '4x8': 20}
# as 4x4 and 5x3 do it, by fewer and by more nodes
REPEATED = ('2x2', '4x8')
cases = pytest.mark.parametrize('dims,algorithm', [
    pytest.param(dims, algorithm, marks=[pytest.mark.full] * (dims in REPEATED)) for dims, algorithm in all_cases(SHAPES)])


@pytest.fixture
def torus_of(shared, root):
    def get(dims):
        from torus_net import MininetTorus
        return shared(dims, MininetTorus, bw=SHAPES[dims], data_roots=(str(root),))
    return get


def counters(torus):
    return {node.rank: node.counters() for node in torus.nodes}


def check_counters(torus, before, after, result):
    """Each interface carried the bytes reported for its port, and little else."""
    geometry = torus.geometry
    for node in result['per_node']:
        rank = node['rank']
        ports = {port.name for port in geometry.ports(rank)}
        assert set(after[rank]) == ports | {'lo'}, 'an interface that is not a port'
        assert after[rank]['lo']['tx_bytes'] == before[rank]['lo']['tx_bytes']
        for name, said in node['ports'].items():
            for way, other in ('tx', 'rx'), ('rx', 'tx'):
                grown = after[rank][name][f'{way}_bytes'] - before[rank][name][f'{way}_bytes']
                payload, against = said[f'{way}_bytes'], said[f'{other}_bytes']
                most = 1.06 * payload + 0.06 * against + 100_000  # headers, ACKs, words
                assert payload <= grown <= most, (rank, name, way, payload, grown)


@pytest.mark.parametrize('dims', [pytest.param(dims, marks=[pytest.mark.full] * (dims in REPEATED)) for dims in SHAPES])
def test_hosts_reach_their_neighbours_and_nobody_else(torus_of, dims):
    torus = torus_of(dims)
    for node in torus.nodes:
        ports = torus.geometry.ports(node.rank)
        with open(f'/proc/{node.host.pid}/net/dev') as lines:
            interfaces = {line.split(':')[0].strip() for line in lines if ':' in line}
        assert interfaces == {'lo'} | {node.interface(port.name) for port in ports}
        assert node.run('cat', '/proc/sys/net/ipv4/ip_forward').strip() == '0'
        assert node.run('cat', '/proc/sys/net/ipv4/tcp_slow_start_after_idle').strip() == '0'
        routes = node.run('ip', '-4', 'route', 'show').splitlines()
        assert len(routes) == len(ports)
        for route in routes:
            assert re.match(r'10\.[\d.]+/31 dev n\d+-(plus|minus)\d+ ', route), route
            assert ' via ' not in route
        for port in ports:
            limit = node.run('tc', 'class', 'show', 'dev', node.interface(port.name))
            assert f'rate {SHAPES[dims]}Mbit' in limit
        # Everything that the daemon holds is a connection to the other end of a cable.
        peers = re.findall(r' (10\.[\d.]+):\d+ +(10\.[\d.]+):\d+',
                           node.run('ss', '-Htn', 'state', 'established'))
        assert len(peers) == len(ports)
        for here, there in peers:
            assert here.rsplit('.', 1)[0] == there.rsplit('.', 1)[0]
            assert int(here.rsplit('.', 1)[1]) ^ 1 == int(there.rsplit('.', 1)[1])


@cases
def test_pattern(torus_of, dims, algorithm):
    torus = torus_of(dims)
    size = 100_000 if dims != '4x8' else 30_000
    before = counters(torus)
    result = torus.exchange(algorithm, size, rank=torus.geometry.nodes - 1)
    after = counters(torus)
    check_result(result, dims, algorithm, size, bw=SHAPES[dims])
    check_counters(torus, before, after, result)
    check_result(torus.exchange(algorithm, 0), dims, algorithm, 0, bw=SHAPES[dims])


@cases
def test_folders(torus_of, tmp_path, root, dims, algorithm):
    torus = torus_of(dims)
    base = root / f'{dims}-{algorithm}'
    sizes = random_sizes(torus.geometry.nodes, f'{dims} {algorithm}', 40000)
    source, target = make_sources(base, sizes), f'{base}/in-%r'
    before = counters(torus)
    result = torus.exchange(algorithm, source=source, target=target)
    after = counters(torus)
    check_result(result, dims, algorithm, sizes=sizes, bw=SHAPES[dims])
    check_counters(torus, before, after, result)
    check_target(target, sizes)
    wait_tidy(torus, base)


@pytest.mark.parametrize('cut', ['down', 'mute'])
@pytest.mark.parametrize('dims,algorithm,rank,port', [('4x4', 'at2', 5, '+1'),
                                                      ('1x6', 'ar', 2, '-1')])
def test_a_link_that_fails(torus_of, dims, algorithm, rank, port, cut):
    """A cable is pulled, or loses all packets while the carrier stays: all nodes name the link, and everything works
    when it is back."""
    torus = torus_of(dims)
    geometry = torus.geometry
    link = geometry.link(rank, geometry.port(rank, port))
    name = f'link {link.plus}:+{link.dim} to node {link.minus} is down'
    everybody = range(geometry.nodes)
    down, up = {'down': (torus.link_down, torus.link_up),
                'mute': (torus.link_mute, torus.link_unmute)}[cut]
    with LongExchange(torus, algorithm=algorithm) as client:
        down(rank, port)
        try:
            code, out, err = client.end(30)
            assert code == 1 and out == '' and name in err, err
            for reason in wait_state(torus, client.id, ['failed'], everybody, 20).values():
                assert name in reason
            for r in everybody:
                wait_for(lambda: name in ' '.join(torus.status(r)['faults']), 20)
            refused = torus.ctl(0, 'exchange', '--block-size', 1, '--algorithm', algorithm)
            assert refused.returncode == 1 and name in refused.stderr
            around = torus.json(0, 'exchange', '--block-size', 20000)
            assert around['algorithm'] == 'detour' and around['verified'] == 'every byte'
            assert around['without'] == name.partition(' to ')[0]
            said = next(x for x in torus.links(rank)['links'] if x['port'] == port)
            assert said['up'] is False and said['reason']
        finally:
            up(rank, port)
    torus.wait_whole(40)
    result = torus.exchange(algorithm, 20000)
    check_result(result, dims, algorithm, 20000, bw=SHAPES[dims])


@pytest.mark.full
def test_a_link_that_flaps(mininet):
    """The link fails for less than the silence: TCP repeats the packets, and nothing is lost."""
    torus = mininet('4x4', bw=50, extra=('--silence-ms=20000',))
    from support.background import Client
    with Client(torus, '--json', 'exchange', '--algorithm', 'at2', '--block-size', '3MiB') as client:
        wait_for(lambda: any(x['state'] == 'running' for x in torus.status()['exchanges']))
        for _ in range(3):
            torus.link_mute(9, '-0')
            before = torus.node(9).counters()['-0']['rx_bytes']
            wait_for(lambda: torus.node(9).counters()['-0']['rx_bytes'] >= before, 5)
            torus.link_unmute(9, '-0')
        code, out, err = client.end(90)
        assert code == 0, err


def test_much_is_paced_and_little_is_not(torus_of):
    """While much is sent, TCP sends no faster than the link carries payload; after a pause, it sends at any rate."""
    torus = torus_of('4x4')
    segment, headers = 1500 - 20 - 20 - 12, 14 + 20 + 20 + 12  # Ethernet, IPv4, TCP with timestamps
    payload = str(int(50e6 / 8 * segment / (segment + headers)) * 8)

    def limits():  # of the connections to neighbours, in bit/s
        said = [re.search(r' pacing_rate \d+bps(?:/(\d+)bps)?', line)
                for node in torus.nodes
                for line in node.run('ss', '-Htin', 'state', 'established', 'src', '10.0.0.0/8')
                .splitlines() if 'pacing_rate' in line]
        assert len(said) == 64
        return {limit[1] for limit in said}

    with LongExchange(torus, algorithm='stream') as client:
        wait_for(lambda: limits() == {payload}, 20, lambda: f'limits of {limits()} bit/s')
        client.send_signal(signal.SIGINT)
        client.end(30)
    wait_for(lambda: limits() == {None}, 20, lambda: f'limits of {limits()} bit/s')


def test_a_node_is_killed(torus_of, tmp_path):
    torus = torus_of('4x4')
    with LongExchange(torus, '--json') as client:
        torus.node(10).kill()
        assert_blames(client.end(30), 10)
        for reason in wait_state(torus, client.id, ['failed'], set(range(16)) - {10}, 20).values():
            assert 'node 10 is down' in reason
    torus.node(10).start()
    torus.wait_whole(40)
    wait_tidy(torus, tmp_path)
    check_result(torus.exchange('at2', 20000, rank=10), '4x4', 'at2', 20000, bw=50)
