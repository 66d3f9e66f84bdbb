"""Daemons on separate kernels: exchanges, a power failure, and the traffic on the cables."""

import hashlib
import json
import random
import re
import signal
import subprocess
import time

import pytest
from conftest import HOUR
from support.background import Client, LongExchange
from support.programs import finish_each, run_each, start_each
from support.waiting import exchanges, wait_for, wait_state
from torus_net import Geometry, TorusError, UsageError, find_program
from torus_net.programs import run_programs
from torus_net.virtual import interface_name

SMALL = ('2x2', '3x2', '1x4')
ALL = (*SMALL, '4x4')
on = pytest.mark.parametrize


def all_port(dims):
    """The all-port algorithms for complete exchanges that support the size, as torusctl reports."""
    result = subprocess.run([find_program('torusctl'), '--json', 'algorithms', '--dims', dims],
                            capture_output=True, text=True, check=True)
    return [row['algorithm'] for row in json.loads(result.stdout)['algorithms']
            if row['operation'] == 'exchange' and row['port_model'] == 'all-port' and row['accepts']]


def cases():
    try:
        return [(dims, algorithm) for dims in ALL for algorithm in all_port(dims)]
    except (OSError, UsageError, subprocess.CalledProcessError):
        return [(dims, 'at2') for dims in ALL]  # the tests report missing programs


def check(result, torus, algorithm, bytes_delivered, verified='every byte'):
    nodes = torus.geometry.nodes
    assert result['verified'] == verified and result['algorithm'] == algorithm
    assert result['dims'] == list(torus.geometry.sizes) and result['node_count'] == nodes
    assert result['blocks_delivered'] == nodes * (nodes - 1)
    assert result['bytes_delivered'] == bytes_delivered
    ports = {node['rank']: node['ports'] for node in result['per_node']}
    for rank in range(nodes):
        assert ports[rank].keys() == {port.name for port in torus.geometry.ports(rank)}
        for port in torus.geometry.ports(rank):
            there = ports[torus.geometry.neighbour(rank, port)][port.opposite.name]
            assert ports[rank][port.name]['rx_bytes'] == there['tx_bytes']


@on('dims,algorithm', cases())
def test_generated_blocks(machines, algorithm):
    size, nodes = 20001, machines.geometry.nodes
    result = machines.exchange(algorithm, size, rank=nodes - 1, within=90)
    check(result, machines, algorithm, nodes * (nodes - 1) * size)


@on('dims', ALL)
def test_files(machines):
    """Each machine has its own files; the received files are fetched and compared."""
    nodes, rng = range(machines.geometry.nodes), random.Random(machines.geometry.nodes)
    sizes = (0, 1, 4096, None, None)
    files = {s: {str(d): rng.randbytes(rng.choice(sizes) or rng.randrange(20000)) for d in nodes}
             for s in nodes}
    tag = rng.getrandbits(64)
    source, target = f'/srv/{tag}/out-%r', f'/srv/{tag}/in-%r'
    for rank in nodes:
        machines.node(rank).put(source.replace('%r', str(rank)), files[rank])
    result = machines.exchange(source=source, target=target, rank=1, within=90)
    check(result, machines, result['algorithm'],
          sum(len(files[s][str(d)]) for s in nodes for d in nodes if s != d), 'digests')
    for rank in nodes:
        node, folder = machines.node(rank), target.replace('%r', str(rank))
        assert node.get(folder) == {str(s): files[s][str(rank)] for s in nodes}
        # also by the machine's own digest, in case the transfer out of the machine is at fault
        for line in node.run('sha256sum', *(f'{folder}/{s}' for s in nodes)).splitlines():
            digest, path = line.split()
            content = files[int(path.rpartition('/')[2])][str(rank)]
            assert digest == hashlib.sha256(content).hexdigest()
        node.run('rm', '-r', f'/srv/{tag}')


@on('dims', ['4x4'])
def test_the_clocks_differ_by_hours(machines):
    """All tests here run with different clocks. A machine that boots again has its different clock again."""
    for node in machines.nodes:
        now = time.time()
        ahead = int(node.run('date', '+%s')) - now
        assert abs(ahead - node.rank * HOUR) < 120, f'node {node.rank} is {ahead:.0f} s ahead'
    assert machines.status(15)['whole'] is True


@on('dims', ['4x4'])
def test_a_power_failure(machines):
    """The other nodes name the machine in their errors; it boots, joins again, and the next exchange succeeds."""
    off, others = machines.node(5), [rank for rank in range(16) if rank != 5]
    with LongExchange(machines, '--timeout', '600', algorithm='at2') as exchange:
        begin = time.monotonic()
        off.kill()
        status, _, said = exchange.end(60)
        took = time.monotonic() - begin
        assert status == 1 and re.search(r'\bnode 5\b', said), said
        assert took < 60, f'noticed after {took:.0f} s'
        reasons = wait_state(machines, exchange.id, ['failed'], others, 30)
        for rank, reason in reasons.items():
            assert re.search(r'\bnode 5\b', reason), f'node {rank}: {reason}'
    result = machines.ctl(5, 'status')
    assert result.returncode == 3, result.stderr  # no daemon at that socket
    machines.wait_broken(30, others)
    off.restart()
    machines.wait_whole(120)
    check(machines.exchange('at2', 5000, rank=5, within=90), machines, 'at2', 16 * 15 * 5000)


@on('dims', ['4x4'])
def test_a_capture_shows_neighbours_only(machines):
    node, geometry = machines.node(6), machines.geometry
    listening = node.begin('capture')
    received = b''
    while not received.endswith(b'listening\n'):
        part = listening.recv(100)
        assert part, received
        received += part
    machines.exchange('at2', 100000, within=90)
    with pytest.raises(TorusError, match='unreachable'):
        node.run('ping', '-c', '1', '-W', '1', own_address(machines, 0, '+0'))
    lines = node.finish(listening, 'capture')[1].decode().splitlines()
    assert lines.pop() == 'lost 0'
    wanted, seen = {}, {}
    for port in geometry.ports(6):
        there = geometry.neighbour(6, port)
        ends = (own_address(machines, 6, port.name), own_address(machines, there, port.opposite.name))
        wanted[interface_name(port)] = {(ends, 'out'), (ends[::-1], 'in')}
    for line in lines:
        interface, way, kind, source, destination, frames = line.split()
        assert kind in ('ip-6', 'arp'), line
        assert ((source, destination), way) in wanted[interface], line
        if kind == 'ip-6':
            seen.setdefault(interface, set()).add(((source, destination), way))
            assert int(frames) > 10, line
    assert seen == wanted


def own_address(torus, rank, port_name):
    return torus.interface_address(rank, torus.geometry.port(rank, port_name))


@on('dims', ['2x2'])
def test_neighbours_answer_and_nobody_else_is_there(machines):
    """A machine has routes to its neighbours only."""
    node = machines.node(0)
    for port in machines.geometry.ports(0):
        there = machines.geometry.neighbour(0, port)
        assert '0% packet loss' in node.run('ping', '-c', '1', '-W', '5', own_address(
            machines, there, port.opposite.name))
    assert 'default' not in node.run('ip', 'route')
    cards = node.run('ls', '/sys/class/net').split()
    assert sorted(cards) == sorted(['lo', *(interface_name(port)
                                            for port in machines.geometry.ports(0))])
    assert machines.geometry.neighbour(3, machines.geometry.port(3, '+0')) != 0
    with pytest.raises(TorusError, match='unreachable'):
        node.run('ping', '-c', '1', '-W', '1', own_address(machines, 3, '+0'))


@on('dims', ['2x2'])
@on('signum', [signal.SIGINT, signal.SIGKILL])
def test_a_client_that_goes_away_cancels_its_exchange(machines, signum):
    with LongExchange(machines, rank=2) as exchange:
        exchange.send_signal(signum)
        assert exchange.end(30)[0] == (1 if signum == signal.SIGINT else -signum)
        for reason in wait_state(machines, exchange.id, ['failed'], range(4)).values():
            assert reason
    check(machines.exchange('at2', 1000), machines, 'at2', 12000)


@on('dims', ['2x2'])
def test_many_clients_at_once(machines):
    """One serial port serves clients that make requests, clients that wait, and clients that do not read."""
    with LongExchange(machines, rank=0) as exchange:
        idle = [machines.node(0).begin('cat /dev/zero') for _ in range(10)]  # and nobody reads it
        clients = [Client(machines, '--json', command, rank=0)
                   for command in ('status', 'links') for _ in range(10)]
        for client in clients:
            with client:
                status, out, said = client.end(60)
                assert status == 0, said
                assert json.loads(out)
        for connection in idle:
            connection.close()
        wait_for(lambda: 'cat' not in machines.node(0).run('ps'), 30, 'a shell was left')
        assert [x['state'] for x in exchanges(machines) if x['id'] == exchange.id] == ['running']
        exchange.send_signal(signal.SIGINT)
        exchange.end(30)


@on('dims', ['2x2'])
def test_much_data_in_and_out(machines):
    content = random.Random(1).randbytes(3_000_000)
    machines.node(1).put('/srv/big', {'file': content})
    assert machines.node(1).get('/srv/big') == {'file': content}
    machines.node(1).run('rm', '-r', '/srv/big')


@on('dims', ['2x2'])
def test_programs(machines, capfd):
    """The examples, as --run-each runs them; each verifies its result."""
    assert run_programs(machines, 'transpose && sample_sort 20000 && halos && conjugate_gradients') == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ['transposed', 'sorted', '100', 'solved'], lines
    assert all(line.startswith('0: ') and 'on 4 nodes (2x2)' in line for line in lines)


@on('dims', ['2x2'])
def test_a_program_in_each_machine(machines, capfd):
    """A program's machine, its output with errors and an unfinished line, and its exit status."""
    each = 'echo $TORUS_RANK %r $TORUS_DIMS; echo wrong >&2; printf end; exit %r'
    said = []
    assert run_programs(machines, each, complain=said.append) in (1, 2, 3)
    assert re.match(r'node [123]: exit status [123]', said[0])
    lines = capfd.readouterr().out.splitlines()
    assert sorted(lines) == sorted(f'{rank}: {text}' for rank in range(4)
                                   for text in (f'{rank} {rank} 2x2', 'wrong', 'end'))


@on('dims', ['2x2'])
def test_perf(machines):
    """Programs time and verify operations."""
    for operation in 'alltoall', 'allreduce':
        first, *_ = run_each(machines, f'exec torusctl perf {operation} --sizes 8,100000 --repeat 3 '
                                       '--verify --json', 60)
        assert [row['wrong'] for row in json.loads(first.stdout)['results']] == [0, 0]


@on('dims', ['2x2'])
def test_a_program_dies_in_its_machine(machines):
    """All other programs get an error that names the node; the next program works."""
    processes = start_each(machines, 'exec torusctl perf alltoall --sizes 1000 --repeat 100000 --pause 0')
    wait_for(lambda: any(group['calls_done'] for group in machines.status(0)['groups']), 60)
    group, = machines.status(0)['groups']
    machines.node(0).run('kill', '-9', str(group['pid']))
    for result in finish_each(processes)[1:]:
        assert result.returncode == 1
        assert 'the program of node 0 has died' in result.stdout + result.stderr, result
    run_each(machines, 'exec transpose')


@on('dims', ['2x2'])
def test_a_failure_ends_programs_in_other_machines(machines, capfd):
    assert run_programs(machines, 'if [ %r = 0 ]; then exit 5; fi; exec sleep 4711') == 5
    for node in machines.nodes:
        wait_for(lambda: b'sleep 4711' not in node.run_bytes('ps'))


def test_dimensions_as_in_other_networks():
    """A dimension of 2 has two cables between the same two machines, one of 1 has none."""
    assert len(Geometry('2x2').links) == 8 and len(Geometry('1x4').links) == 4
