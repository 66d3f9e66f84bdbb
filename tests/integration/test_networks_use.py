"""Networks that are products of any factors, as users meet them: schedules from files, measurements, routes for IP,
configurations with errors, and wrong cables."""

import json
import re
import subprocess

import pytest
from support import networks
from support.networks import torus_of  # noqa: F401
from support.hosts import PORT
from support.launcher import bench  # noqa: F401
from support.programs import run_each
from support.waiting import wait_for
from torus_net import Geometry, UsageError, find_program
from torus_net.patience import run

ON = ['complete:4', 'petersen', '3 x complete:3']


# --- schedules from files ---

@pytest.mark.parametrize('name', ON)
@pytest.mark.parametrize('algorithm', ['direct', 'tree', 'stream'])
@pytest.mark.parametrize('period', [(), ('--period',)])
def test_a_schedule_from_a_file(torus_of, root, tmp_path, name, algorithm, period):
    torus, dims, file = torus_of(name), networks.make(root, name), tmp_path / 'schedule'
    plan = ('plan', '--dims', dims, '--algorithm', algorithm, '--export', 'torusd', *period)
    file.write_text(torus.ctl(0, *plan, check=True).stdout)
    nodes = torus.geometry.nodes
    result = torus.exchange(block_size=3000, rank=1, options=('--schedule', file))
    assert result['verified'] == 'every byte' and result['blocks_delivered'] == nodes * (nodes - 1)
    assert result['algorithm'].startswith(f'{algorithm}@')


def test_a_schedule_cannot_make_daemons_read_files(torus_of, tmp_path):
    """Only the daemon's own configuration may name a file of edges. A fifo would stop the daemon."""
    torus, secret, file = torus_of('complete:4'), tmp_path / 'secret', tmp_path / 'schedule'
    secret.write_text('0 hunter2\n')
    for path in secret, '/dev/zero', '/proc/self/environ':
        file.write_text(f'{{"schedule":1,"dims":"graph:{path}"}}\n')
        result = torus.ctl(0, 'exchange', '--block-size', 1, '--schedule', file)
        assert result.returncode != 0
        assert torus.status(0)['whole']
    log = '\n'.join(node.log() for node in torus.nodes)
    assert 'hunter2' not in log


# --- measurements ---

@pytest.mark.parametrize('name', ON[:2])
def test_status_and_links(torus_of, name):
    torus = torus_of(name)
    status = torus.status(1)
    nodes, plain_text = torus.geometry.nodes, torus.ctl(1, 'status', check=True).stdout
    assert status['dims'] == [nodes] and status['wrap'] == [False] and status['coordinates'] == [1]
    assert status['network'] in plain_text
    text = torus.ctl(1, 'links', check=True).stdout
    for port in torus.geometry.ports(1):
        assert port.name in text


@pytest.mark.parametrize('name', [ON[0], pytest.param(ON[1], marks=pytest.mark.full)])
def test_calibrate_and_bench(torus_of, name):
    torus = torus_of(name)
    measured = torus.json(0, 'calibrate')
    assert {(one['node'], one['port']) for one in measured['links']} == {
        (rank, port.name) for rank in range(torus.geometry.nodes) for port in torus.geometry.ports(rank)}
    wait_for(lambda: torus.status(torus.geometry.nodes - 1)['calibration'])
    rows = torus.json(0, 'bench', '--sizes', '1,2KiB', '--repeat', 2)
    assert {row['algorithm'] for row in rows['results']} >= {'stream', 'tree', 'direct'}


@pytest.mark.parametrize('operation', [('allgather',), ('broadcast', '--root', 1)])
def test_stream_is_for_exchanges(torus_of, operation):
    result = torus_of('complete:4').ctl(0, *operation, '--block-size', 100, '--algorithm', 'stream')
    assert result.returncode != 0
    assert f'stream is not an algorithm for operation {operation[0]}, but for exchange' in result.stderr


@pytest.mark.full
@pytest.mark.parametrize('name', ON)
def test_perf(torus_of, name):
    torus = torus_of(name)
    for operation in 'alltoall', 'alltoallv', 'allgather', 'gather', 'scatter', 'broadcast', 'allreduce', 'reduce', 'reduce-scatter':
        first, *_ = run_each(torus, f'exec {torus.torusctl} perf {operation} --sizes 8,20000 --repeat 2 --pause 0 '
                                    '--verify --json')
        assert [row['wrong'] for row in json.loads(first.stdout)['results']] == [0, 0]


# --- configurations ---

CONFIGURATION = '''[node]
dims = complete:3
rank = 1
[ports]
0:0 = 127.0.0.1:7411
0:2 = 127.0.0.1:7412
'''


@pytest.mark.parametrize('old,new,says', [
    ('0:2 = ', '0:1 = ', 'port 0:1 has an address, but node 1 of torus complete:3 has no link at this port'),
    ('0:2 = ', '0:3 = ', 'port 0:3 has an address'),
    ('0:2 = ', '0:02 = ', 'port 0:02 has an address'),
    ('0:2 = ', '1:2 = ', 'port 1:2 has an address'),
    ('0:2 = ', '+0 = ', 'port +0 has an address'),
    ('0:2 = ', '0:123456789012345 = ', '0:1234567'),
    ('0:2 = 127.0.0.1:7412\n', '', "port 0:2 needs an address to dial (the neighbour's)"),
    ('0:0 = 127.0.0.1:7411\n', '', "port 0:0 needs an address to listen on (this node's)"),
    ('complete:3', 'complete:34', '2 to 33 nodes'),
    ('complete:3', 'graph:/nowhere', '/nowhere'),
    ('complete:3', 'graph:10:0123456789abcdef', 'name the file of its edges'),
    ('rank = 1', 'rank = 3', 'torus complete:3 has ranks 0 to 2'),
])
def test_errors_in_configurations_are_named(tmp_path, old, new, says):
    (tmp_path / 'ini').write_text(CONFIGURATION.replace(old, new))
    done = run([find_program('torusd'), '--config', str(tmp_path / 'ini'), '--control', str(tmp_path / 'sock'),
                '--state-dir', str(tmp_path / 'state')], 30)
    assert done.returncode == 2 and says in done.stderr, done.stderr


def test_neighbours_on_different_networks_say_so(loopback, tmp_path):
    """Node 3 believes that it is in a star, which has some of the same ports."""
    torus = loopback('complete:4')
    wrong = torus.node(3)
    wrong.kill()
    wrong.daemon.command = ['star:4' if word == 'complete:4' else word for word in wrong.daemon.command
                            if not word.startswith(('--port=0:1=', '--port=0:2='))]
    wrong.start()
    wait_for(lambda: 'wrong torus: node 0 is in a torus complete:4, node 3 is in a torus star:4'
             in json.dumps(torus.links(0)), 20, lambda: json.dumps(torus.links(0)))


def test_the_path_of_a_file_of_edges_must_not_end_early(root, tmp_path, monkeypatch):
    (tmp_path / 'a b').mkdir()
    networks.write_edges(tmp_path / 'a b' / 'petersen.edges', networks.PETERSEN)
    monkeypatch.chdir(tmp_path / 'a b')
    with pytest.raises(UsageError, match='cannot contain a blank'):
        Geometry('graph:petersen.edges')


# --- routes for IP ---

@pytest.mark.full
@pytest.mark.parametrize('name,without', [('complete:4', None), ('petersen', '0:0:1,7'), ('star:4 x 3', '0:+1'),
                                          ('tree:2^2', None)])
def test_scripts_of_routes(root, tmp_path, name, without):
    """Every pair has a route, which ends, by ports that exist."""
    dims = networks.make(root, name)
    geometry, lines = Geometry(dims), []
    for rank in range(geometry.nodes):
        lines += [f'[h{rank}]', f'rank = {rank}'] + [f'{port.name} = eth{port.number}'
                                                     for port in geometry.ports(rank)]
    (tmp_path / 'hosts').write_text('\n'.join(lines) + '\n')
    command = [find_program('torusctl'), '--json', 'ip-routes', '--dims', dims, '--hosts', tmp_path / 'hosts', '--to',
               tmp_path / 'out', *(['--without', without] if without else [])]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    gone = [int(part) for part in (without or '').split(',') if part.isdigit()]
    assert json.loads(done.stdout)['unreachable'] == sum(geometry.nodes - 1 - i for i in range(len(gone)))
    next_of = {}
    for rank in range(geometry.nodes):
        by_number = {port.number: geometry.neighbour(rank, port) for port in geometry.ports(rank)}
        for to, number in re.findall(r'route add 10\.128\.0\.(\d+)/32 via \S+ dev eth(\d+)',
                                     (tmp_path / 'out' / f'h{rank}.sh').read_text()):
            next_of[rank, int(to) - 1] = by_number[int(number)]
    present = [rank for rank in range(geometry.nodes) if rank not in gone]
    for rank in present:
        for to in present:
            at, hops = rank, 0
            while at != to:
                at, hops = next_of[at, to], hops + 1
                assert hops < geometry.nodes


@pytest.mark.full
@pytest.mark.mininet
@pytest.mark.parametrize('name,options,received', [('complete:4', (), 12), ('3 x complete:3', ('--without', '0:1:2'), 72),
                                                   ('petersen', (), 90)])
def test_the_launcher_makes_hosts(bench, root, name, options, received):
    done = bench.run(networks.make(root, name), '--ip-routes', *options, '--quiet', text='pingall\n')
    assert f'0% dropped ({received}/{received} received)' in done.stdout + done.stderr
    bench.assert_nothing_left()


# --- wrong cables ---

def triangle(hosts, cables):
    """Three hosts of a complete:3, on whose interfaces a-to-b all have link-local addresses."""
    torus = hosts('complete:3', 3)
    for a, to_b, b, to_a in cables:
        torus.cable(a, f'to{to_b}', b, f'to{to_a}')
    for node in range(3):
        for other in {0, 1, 2} - {node}:
            torus[node].ip(f'address add fe80::{node + 1}{other + 1}/64 dev to{other} nodad')
        torus.configure(node, {f'0:{other}': (f'[fe80::{other + 1}{node + 1}%to{other}]:{PORT}' if node < other else
                                              f'[fe80::{node + 1}{other + 1}%to{other}]:{PORT}')
                               for other in sorted({0, 1, 2} - {node})})
    torus.start(0, 1, 2)
    return torus


@pytest.mark.hosts
def test_right_cables(hosts):
    torus = triangle(hosts, [(0, 1, 1, 0), (0, 2, 2, 0), (1, 2, 2, 1)])
    torus.wait_up()
    wait_for(lambda: torus.status(0)['whole'] and torus.status(0)['cables'] == [], what=lambda: torus.status(0))


@pytest.mark.hosts
def test_wrong_cables_are_named(hosts):
    """At node 1 the cables to nodes 0 and 2 are swapped: both ends of the one listen, both of the other dial."""
    torus = triangle(hosts, [(0, 1, 1, 2), (0, 2, 2, 0), (1, 0, 2, 1)])
    expected = {(0, '0:1'): ('same-side', 1, '0:2'), (1, '0:2'): ('same-side', 0, '0:1'),
                (1, '0:0'): ('same-side', 2, '0:1'), (2, '0:1'): ('same-side', 1, '0:0')}
    for asked in 0, 1, 2:
        wanted = {port: fault for port, fault in expected.items() if (port[0] == 1) == (asked == 1)}
        torus.wait_faults(asked, wanted)
    texts = {one['text'] for one in torus.status(0)['cables']}
    assert ('node 0 port 0:1 is cabled to node 1 port 0:2: one end of a cable must dial, and the other one listen; '
            'it expects node 1 port 0:0') in texts
