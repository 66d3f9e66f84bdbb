"""Tables and texts of torusctl on a terminal: no line is wider than the terminal, and no word is lost."""

import collections
import json
import re
import socket
import subprocess
import tempfile
import threading

import pytest
from support.background import Client, LongExchange
from support.terminal import run_in_terminal
from support.waiting import wait_for
from torus_net import find_program

pytestmark = pytest.mark.plain

# Without a daemon; what they print is the same each time.
OFFLINE = ('algorithms', 'algorithms --dims 4x8', 'algorithms --dims 4x4m', 'bounds --dims 4x4', 'bounds --dims 3x4x5',
           'plan --dims 4x4 --algorithm at2', 'plan --dims 4x4 --without 3:+0,7', 'predict --dims 4x8',
           'simulate --dims 4x4', 'simulate --banyan 8', 'sweep --dims 4x4..16x16 --algorithms at2,a2', 'help', 'help exchange')
ONLINE = ('status', 'status --all', 'links', 'links --all', 'exchange --block-size 4KiB',
          'exchange --block-size 4KiB --repeat 3', 'broadcast --block-size 4KiB --root 0', 'allgather --block-size 1KiB',
          'bench --sizes 1KiB --repeat 1', 'top --once')
# help is for 80 columns, whatever the terminal has.
WIDTHS = 80, 100, 200


def too_wide(text, columns):
    """The lines that are wider than the terminal, unless they are one word."""
    return [line for line in text.splitlines() if len(line) > columns and len(line.split()) > 1]


@pytest.mark.parametrize('command', OFFLINE)
def test_commands_without_a_daemon(command):
    words = [find_program('torusctl'), *command.split()]
    whole = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    for columns in WIDTHS:
        status, printed = run_in_terminal(words, columns)
        assert status == 0 and too_wide(printed, columns) == [], printed
        assert collections.Counter(printed.split()) == collections.Counter(whole.split()), printed


def check_alone(words, statuses=(0,)):
    """A command that needs no daemon: on terminals of all widths it prints what it prints into a pipe, if that is text."""
    whole = subprocess.run(list(map(str, words)), check=False, stdout=subprocess.PIPE, text=True).stdout
    for columns in WIDTHS:
        status, printed = run_in_terminal(words, columns)
        assert status in statuses and printed and too_wide(printed, columns) == [], printed
        # A continued line has no other words.
        assert collections.Counter(printed.split()) == collections.Counter(whole.split()), printed
    return run_in_terminal(words)[1]


def machines(sides=3, name='machine-in-the-second-rack-{}'):
    """What torusctl discover has found, on square tori."""
    def name_of(row, column):
        return name.format(row % sides * sides + column % sides)
    return {'hosts': [{'name': name_of(row, column), 'interfaces': [
        {'name': here, 'heard': [{'host': name_of(row + down, column + across), 'interface': there}]}
        for here, down, across, there in (('enp1s0f0', 1, 0, 'enp1s0f1'), ('enp1s0f1', -1, 0, 'enp1s0f0'),
                                          ('enp2s0f0', 0, 1, 'enp2s0f1'), ('enp2s0f1', 0, -1, 'enp2s0f0'))]}
        for row in range(sides) for column in range(sides)]}


@pytest.mark.parametrize('sides, name', [(3, 'n{}'), (3, 'machine-of-the-2nd-rack-{}'), (3, 'machine-in-the-second-rack-{}'),
                                         (8, 'host{}')])
def test_discover(tmp_path, sides, name):
    found, path = machines(sides, name), tmp_path / 'hosts.json'
    words = [find_program('torusctl'), 'discover', '--from', path]
    path.write_text(json.dumps(found))
    printed = check_alone(words)
    assert '\n\n\n' not in printed and all(host['name'] in printed.split('the cables make')[1] for host in found['hosts'])
    # Crossed cables are named, and rows of a table have no empty lines.
    (one, *_), (_, *_), (_, *_), (_, *_), (other, *_), *_ = (host['interfaces'] for host in found['hosts'])
    one['heard'], other['heard'] = other['heard'], one['heard']
    path.write_text(json.dumps(found))
    printed = check_alone(words, (1,))
    assert '\n\n\n' not in printed and re.search(r'(?m)^1\. ', printed), printed
    # A cluster file that names another host.
    found = machines(sides, name)
    path.write_text(json.dumps(found))
    output = tmp_path / 'cluster.ini'
    assert subprocess.run([*words, '--output', output], check=False, stdout=subprocess.DEVNULL).returncode == 0
    output.write_text(re.sub(rf'(?m)^\[{name.format(3)}\]$', '[the-machine-that-was-here-before]', output.read_text()))
    printed = run_in_terminal([*words, '--cluster', output])[1]
    assert 'the-machine-that-was-here-before' in printed and too_wide(printed, 80) == [], printed


def test_ip_routes():
    with tempfile.TemporaryDirectory(prefix='ip-') as folder:  # its path has room beside the labels
        hosts = f'{folder}/hosts.ini'
        with open(hosts, 'w') as file:
            for rank in range(9):
                print(f'[machine-in-the-second-rack-{rank}]', f'rank = {rank}', '+0 = enp1s0f0', '-0 = enp1s0f1',
                      '+1 = enp2s0f0', '-1 = enp2s0f1', sep='\n', file=file)
        for without in [], ['--without', '3:+0,7']:
            check_alone([find_program('torusctl'), 'ip-routes', '--dims', '3x3', '--hosts', hosts, *without, '--to',
                         f'{folder}/{len(without)}'])


def test_routes(tmp_path):
    """torusctl routes asks a stand-in for torus-routed, which gives the widest answers."""
    routes = [{'host': f'machine-in-the-second-rack-{rank}', 'address': f'10.77.0.{rank + 1}', 'address6': f'fd00:77::{rank + 1}',
               'state': state, 'hops': 2, 'seconds': 7254.5, 'ways': [
                   {'interface': 'enp1s0f0', 'host': 'machine-in-the-second-rack-1', 'used': True},
                   {'interface': 'enp2s0f0', 'host': 'machine-in-the-second-rack-2', 'used': rank % 2 == 0}],
               'why': 'the kernel takes the route of table 220 for this host, by the rule of priority 100'}
              for rank, state in enumerate(('routed', 'diverted', 'unreachable', 'missing'))]
    report = {'torus': '3x3', 'host': 'machine-in-the-second-rack-8', 'address': '10.77.0.9', 'address6': 'fd00:77::9',
              'daemon': False, 'down': 'enp2s0f1', 'problem': 'the kernel does not forward packets: sysctl -w '
              'net.ipv4.ip_forward=1, and net.ipv6.conf.all.forwarding=1', 'routes': routes}
    path = tmp_path / 'routed.sock'
    with socket.create_server(str(path), family=socket.AF_UNIX) as server:
        def answer():
            for _ in range(2 + len(WIDTHS)):
                with server.accept()[0] as client:
                    client.sendall(json.dumps(report).encode())
        answering = threading.Thread(target=answer)
        answering.start()
        printed = check_alone([find_program('torusctl'), 'routes', '--from', path])
        answering.join()
    assert 'spare: enp2s0f0' in ' '.join(printed.split()) and 'diverted' in printed


def test_a_report(shared, tmp_path):
    torus, trace = shared('4x4', extra=('--link-mbit', '100')), tmp_path / 'run.json'
    torus.ctl(0, 'exchange', '--block-size', '64KiB', '--algorithm', 'tree', '--trace', trace, check=True)
    printed = check_alone([torus.torusctl, 'report', trace])
    assert 'tree' in printed


def test_perf(shared):
    torus = shared('2x2')
    for operation in 'alltoall', 'allreduce':
        words = 'perf', operation, '--sizes', '64,1MiB', '--repeat', '3'
        with Client(torus, *words, rank=1) as one, Client(torus, *words, rank=2) as two, Client(
                torus, *words, rank=3) as three:
            check(torus, ' '.join(words))
            assert one.end()[0] == two.end()[0] == three.end()[0] == 0


def test_calibrate(loopback):
    torus = loopback('2x2')
    for command in 'calibrate', 'calibrate --per-link', 'calibrate --show':
        check(torus, command)


def check(torus, command, statuses=(0,)):
    status, printed = run_in_terminal([torus.torusctl, '--socket', torus.node(0).socket, *command.split()])
    assert status in statuses and printed and too_wide(printed, 80) == [], printed
    return printed


def test_commands_that_ask_a_daemon(shared):
    for command in ONLINE:
        check(shared('4x4', extra=('--link-mbit', '100')), command)


def test_a_barrier(shared):
    torus = shared('2x2')
    with Client(torus, 'barrier', rank=1) as one, Client(torus, 'barrier', rank=2) as two, Client(
            torus, 'barrier', rank=3) as three:
        check(torus, 'barrier')
        assert one.end()[0] == two.end()[0] == three.end()[0] == 0


def test_doctor(loopback):
    torus = loopback('3x3')
    torus.node(1).kill()
    wait_for(lambda: not torus.status()['whole'])
    plain = wait_for(lambda: (found := torus.ctl(0, 'doctor', check=False).stdout).startswith('error') and found)
    assert too_wide(plain, 80)
    printed = check(torus, 'doctor --all', (2,))
    # Texts begin below each other: behind the severity, and behind what the text is.
    findings, counts = printed.split('\n\n')
    lines = findings.splitlines()
    begin = re.compile(r'(?:error   |warning |hint    |fine    |not seen) \S| {9}(?:(?:mend|also): |why:  )?\S| {15}\S')
    assert counts and [line for line in lines if not begin.match(line)] == [], printed
    assert any(line.startswith(' ' * 15) for line in lines)


def test_what_is_wrong_is_wrapped_too(loopback):
    torus = loopback('3x3')
    torus.node(1).kill()
    wait_for(lambda: not torus.status()['whole'] and 'node 1 is down' in str(torus.status()))
    assert 'node 1 is down: none of its links is up' in check(torus, 'status')
    for command in 'links', 'links --all', 'status --all':
        check(torus, command)
    assert re.search(r'^node 1\b.*\bdown\b', check(torus, 'top --once'), re.M)


def test_top_while_something_runs(shared):
    torus = shared('4x8', extra=('--link-mbit', '50'))
    with LongExchange(torus, algorithm='stream', block_size='16MiB'):
        printed = wait_for(lambda: ' left' in (text := check(torus, 'top --once')) and text, 30)
    title, *_, run = re.split(r'\n(?=\S)', printed.strip())
    assert re.search(r'  0 s old  \d\d:\d\d:\d\d$', title), printed
    assert re.fullmatch(r'exchange \S+  stream  running.* \d+ %.*/s.* left', ' '.join(run.split('\n'))), printed


def test_a_table_that_fits_has_one_line_a_row(shared):
    torus = shared('4x4', extra=('--link-mbit', '100'))
    links = [torus.torusctl, '--socket', torus.node(0).socket, 'links']
    lines = run_in_terminal(links, 200)[1].splitlines()
    assert lines[0].split()[0] == 'port' and [line.split()[0] for line in lines[1:5]] == ['+0', '-0', '+1', '-1']
    lines = run_in_terminal(links, 80)[1].splitlines()
    assert lines[0].startswith('port') and lines[1].startswith('    ')
    assert [line.split()[0] for line in lines[1:] if line[:1].strip()][:4] == ['+0', '-0', '+1', '-1']
