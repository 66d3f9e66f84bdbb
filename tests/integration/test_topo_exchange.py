"""Exchanges over the launchers' networks, checked against the counters of the cables."""

import math
import re

import pytest
from support.background import stopped
from torus_net import Geometry, TorusError, report

KIB = 1024
# dims, Mbit/s of every link, bytes of a block
EMULATED = [('4x4', 50, 64 * KIB), ('5x3', 50, 64 * KIB), ('2x2', 50, 256 * KIB),
            ('1x6', 50, 64 * KIB), ('4x8', 50, 16 * KIB)]


def algorithms(torus):
    """The exchange algorithms that support this torus."""
    found = torus.json(0, 'algorithms', '--dims', torus.geometry)['algorithms']
    return [row['algorithm'] for row in found if row['accepts'] and row['operation'] == 'exchange']


def check_counts(torus, result, verified='every byte'):
    """Checks that the counts of an exchange are those of the plan."""
    plan = torus.json(0, 'plan', '--dims', torus.geometry, '--algorithm', result['algorithm'])
    assert result['verified'] == verified
    if result['mode'] == 'stepped':  # when streaming, the counts depend on timing
        assert result['startups'] == plan['startups']
        assert result['transmission'] == math.ceil(plan['transmission'])
    else:
        assert result['startups'] is None
        if verified == 'every byte':
            assert result['channel_blocks'] >= plan['bound'] * (1 - 1e-9)
    assert result['blocks_delivered'] == torus.geometry.nodes * (torus.geometry.nodes - 1)


def test_a_small_exchange(loopback):
    """Small enough for valgrind."""
    torus = loopback('2x2')
    for algorithm in algorithms(torus):
        check_counts(torus, torus.exchange(algorithm, '10000'))


def test_a_small_exchange_of_files(loopback, tmp_path):
    torus = loopback('1x3', data_roots=[tmp_path])
    exchange_files(torus, tmp_path, 'ar', 5000)


def test_a_daemon_is_restarted_on_its_ports(loopback):
    torus = loopback('2x3')
    for rank in 0, 4:
        torus.node(rank).kill()
        torus.wait_broken(ranks=[(rank + 1) % 6])
        torus.node(rank).restart()
        torus.wait_whole()
    check_counts(torus, torus.exchange('at2', '10000'))


def test_a_torus_that_does_not_become_whole_names_its_faults(loopback):
    torus = loopback('1x3')
    with stopped(torus.node(1)):
        torus.wait_broken(ranks=[0])
        for seconds in 1, 5, 25:  # as many as one reply can list
            with pytest.raises(TorusError, match='node 0 was not ready in time') as raised:
                torus.wait_whole(seconds, ranks=[0])
            if 'it does not answer' not in str(raised.value):
                break
        assert re.search('in time: (node 1 is|link .*) down', str(raised.value))
    torus.wait_whole()


def exchange_files(torus, folder, algorithm, size):
    nodes = range(torus.geometry.nodes)
    name = f'{algorithm}-{size}'
    for source in nodes:
        out = folder / name / 'from' / str(source)
        out.mkdir(parents=True)
        for destination in nodes:
            text = f'{source} {destination} {algorithm} '.encode()
            (out / str(destination)).write_bytes((text * (size // len(text) + 1))[:size])
    result = torus.exchange(algorithm, source=f'{folder}/{name}/from/%r',
                            target=f'{folder}/{name}/to/%r')
    check_counts(torus, result, 'digests')
    for destination in nodes:
        for source in nodes:
            sent = (folder / name / 'from' / str(source) / str(destination)).read_bytes()
            came = (folder / name / 'to' / str(destination) / str(source)).read_bytes()
            assert came == sent, (source, destination)


def counters(torus):
    return [node.counters() for node in torus.nodes]


def check_cables(torus, before, after, result):
    """Each cable carried the bytes that the exchange counted, and little else."""
    def grown(rank, port, direction):
        return after[rank][port][f'{direction}_bytes'] - before[rank][port][f'{direction}_bytes']

    for node in result['per_node']:
        rank = node['rank']
        ports = {port.name for port in torus.geometry.ports(rank)}
        assert set(after[rank]) == ports | {'lo'}
        assert grown(rank, 'lo', 'tx') == 0
        for port in torus.geometry.ports(rank):
            count = node['ports'][port.name]
            sent = grown(rank, port.name, 'tx')
            # Frames, headers and acknowledgements of TCP, heartbeats, a few repeated packets.
            most = 1.2 * count['tx_bytes'] + 0.1 * count['rx_bytes'] + 64 * KIB
            assert count['tx_bytes'] <= sent <= most, (rank, port.name)


# test_mininet checks the counters of other shapes, too
@pytest.mark.parametrize('dims, rate, block', [
    pytest.param(*values, marks=[pytest.mark.full] * (values[0] != '2x2')) for values in EMULATED])
def test_exchanges_in_mininet(mininet, dims, rate, block, tmp_path):
    torus = mininet(dims, bw=rate, data_roots=[tmp_path])
    for algorithm in algorithms(torus):
        before = counters(torus)
        result = torus.exchange(algorithm, block)
        check_counts(torus, result)
        check_cables(torus, before, counters(torus), result)
        exchange_files(torus, tmp_path, algorithm, 10000)


def test_the_link_rate_reaches_the_daemons(mininet):
    assert mininet('1x2', bw=12.5).status(1)['link_mbit'] == 12.5


def test_a_link_that_goes_down_and_comes_back(mininet):
    torus = mininet('3x3', bw=100)
    torus.link_down(4, '+1')
    torus.wait_broken(60, ranks=range(9))
    torus.link_up(4, '+1')
    torus.wait_whole(60)
    check_counts(torus, torus.exchange('at2', '10000'))


def test_a_link_that_falls_silent_and_comes_back(mininet):
    torus = mininet('2x3', bw=100)
    torus.link_mute(1, '-0')
    torus.wait_broken(60, ranks=range(6))
    torus.link_unmute(1, '-0')
    torus.wait_whole(60)
    check_counts(torus, torus.exchange('at2', '10000'))


def test_a_rate_that_mininet_would_ignore(mininet):
    """Checks each class of link."""
    from mininet.link import Intf
    from torus_net.emulated import check_interface_rate

    class Anything(Intf):
        def config(self, **_params):
            pass

    with pytest.raises(TorusError, match='1001'):
        check_interface_rate(Anything('n0-plus0', bw=1001))
    assert check_interface_rate(Anything('n0-plus0', bw=1000)) == 1000


def test_no_ipv6_and_no_questions_asked(mininet):
    """An idle cable carries only messages between daemons."""
    torus = mininet('1x2')
    node = torus.node(0)
    assert 'inet6' not in node.run('ip', 'addr')
    neighbours = node.run('ip', 'neigh').splitlines()
    assert len(neighbours) == len(Geometry('1x2').ports(0))
    assert all('PERMANENT' in line for line in neighbours)


def test_report_of_a_mesh(shared):
    """The report that quickstart prints."""
    result = shared('2x3m').exchange('auto', 16)
    assert dict(report.rows(result))['nodes'] == '6 (2x3m)'
