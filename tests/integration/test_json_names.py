"""One name, one kind of quantity: in what torusctl --json prints, `nodes` is a list, and `node_count` a number."""

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.background import Client, LongExchange
from support.waiting import wait_for
from torus_net import Geometry, find_program

SIZE = '--block-size', '1KiB'
# The JSON of these commands is read without a daemon.
ALONE = {
    'algorithms': [(), ('--dims', '4x4')],
    'bounds': [('--dims', '4x4'), ('--dims', '4x4', '--rate', '6:-1=0.4'), ('--network', 'complete:3xcomplete:4')],
    'ip-routes': [('--dims', '2x3m', '--hosts', 'hosts.ini', '--without', '1:+1,4:+1')],
    'plan': [('--dims', '4x4'), ('--dims', '4x4', '--algorithm', 'at2'), ('--dims', '4x4', '--rate', '6:-1=0.4'),
             ('--dims', '4x4', '--rate', '6:-1=0.4', '--algorithm', 'stream')],
    'predict': [('--dims', '4x4', '--block-size', '1KiB'), ('--dims', '4x4', '--rate', '6:-1=0.4')],
    'simulate': [('--dims', '4x4', '--rate', '6:-1=0.4'), ('--network', 'complete:3xcomplete:4'), ('--dims', '4x4', '--algorithm', 'stream'),
                 ('--dims', '5x5', '--algorithm', 'yangwang'), ('--banyan', '8')],
    'report': [('run.json',)],
    'sweep': [('--dims', '4x4..8x8', '--algorithms', 'at2')],
}
# These ask a daemon.
ASKED = {
    'status': [(), ('--all',)],
    'links': [(), ('--all',)],
    'top': [('--once',)],
    'doctor': [(), ('--all',)],
    'exchange': [SIZE, (*SIZE, '--dry-run'), (*SIZE, '--trace', 'run.json')],
    'allgather': [SIZE],
    'broadcast': [('--root', '0', *SIZE)],
    'bench': [('--sizes', '1KiB', '--repeat', '1', '--algorithms', 'at2')],
    'calibrate': [('--show',)],
    'copy': [('source', '--to', '{folder}/copied/%r')],
    'gather': [('source', '--to', '{folder}/gathered/%r')],
    'scatter': [('{folder}/to-%r', '--to', '{folder}/scattered-%r')],
}
TOGETHER = 'barrier', 'perf'  # all nodes enter them
# The others, and why they are not called here.
NOT_HERE = {
    'discover': 'test_discover.py reads its nodes',
    'init': 'it prints hosts', 'key': 'it prints an id', 'routes': 'it prints routes of one host',
    'mpi-env': 'it prints words', 'serve': 'it prints an address', 'support-bundle': 'it prints a file',
    'run': 'it prints hosts and ranks', 'trace': 'it prints a file', 'help': 'it prints text',
}


def check(value, at):
    """Returns how many names of nodes, or of their number, are in it."""
    if isinstance(value, list):
        return sum(check(one, f'{at}[]') for one in value)
    if not isinstance(value, dict):
        return 0
    assert isinstance(value.get('nodes', []), list), f'{at}.nodes is {value["nodes"]!r}'
    assert type(value.get('node_count', 0)) is int, f'{at}.node_count is {value["node_count"]!r}'
    return ('nodes' in value) + ('node_count' in value) + sum(check(v, f'{at}.{k}') for k, v in value.items())


@pytest.fixture
def torus(loopback, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in 'source', *(f'to-{rank}' for rank in range(4)):
        (tmp_path / name).write_text(name)
    geometry = Geometry('2x3m')
    (tmp_path / 'hosts.ini').write_text(''.join(
        f'[host{rank}]\nrank = {rank}\n' + ''.join(f'{port.name} = e{port.number}\n' for port in geometry.ports(rank))
        for rank in range(geometry.nodes)))
    return loopback('2x2', data_roots=[tmp_path])


def test_every_command_is_known():
    said = subprocess.run([find_program('torusctl'), 'help'], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r'^  ([a-z-]+)', said.partition('\noptions of all commands:\n')[0], re.M)
    assert set(commands) == {*ALONE, *ASKED, *TOGETHER, *NOT_HERE}


def test_nodes_are_a_list_and_their_count_a_number(torus, tmp_path):
    named = {}

    def look(command, said):
        for line in said.splitlines():
            named[command] = named.get(command, 0) + check(json.loads(line), command)

    for command, calls in {**ASKED, **ALONE}.items():
        for call in calls:
            done = torus.ctl(0, '--json', command, *(word.format(folder=tmp_path) for word in call))
            assert done.returncode == 0 or command == 'doctor', (command, call, done.stderr)  # which may find something
            look(command, done.stdout)
    with ThreadPoolExecutor(4) as pool:
        for call in ('barrier',), ('perf', 'allreduce', '--sizes', '8', '--repeat', '2'):
            for done in pool.map(lambda rank: torus.ctl(rank, '--json', *call), range(4)):
                assert done.returncode == 0, done.stderr
                look(call[0], done.stdout)
    for command in 'exchange', 'predict', 'simulate', 'bounds', 'algorithms', 'ip-routes', 'bench', 'top', 'perf', \
            'barrier', 'doctor':
        assert named[command] > 0, f'{command} names no nodes: {named}'


def test_what_runs(torus):
    """The keys of an exchange in status and top, and those of a group that other nodes have not opened."""
    def seen(*command):
        return json.loads(torus.ctl(1, '--json', *command).stdout)

    with LongExchange(torus), Client(torus, 'perf', 'barrier', '--name', 'alone', rank=2):
        for command in ('status', '--all'), ('top', '--once'):
            said = wait_for(lambda: (one := seen(*command))['exchanges'] and one['groups'] and one)
            assert check(said, command[0]) > 0 and said['groups'][0]['node_count'] == 1, said
