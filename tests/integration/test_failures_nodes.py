"""What goes wrong is answered with a clear error, and everything still runs afterwards."""

import json
import os
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys

import pytest
from support.background import Client, LongExchange, stopped
from support.expect import check_result, torusctl
from support.trees import check_target, listing, make_sources, random_sizes, wait_tidy
from support.waiting import state_of, wait_for, wait_state
from support.wire import connect, frame, frames, send
from torus_net import find_program
from torus_net.patience import Patience, communicate, run, wait

REQUEST = frame({1: {}})  # for the status


@pytest.fixture
def torus(shared):
    return shared('4x4')


# For daemons whose links are not given up while a neighbour is stopped, however long that takes here.
PATIENT = '--silence-ms=300000',


def still_works(torus, rank=0, algorithm='at2', size=30000):
    """The torus is whole, or becomes it, and the next exchange is as it should be."""
    torus.wait_whole(30)
    result = torus.exchange(algorithm, size, rank=rank)
    check_result(result, str(torus.geometry), algorithm, size)
    for node in torus.nodes:
        wait_for(lambda: torus.status(node.rank)['memory']['reserved_bytes'] == 0, 10)


def others(torus, *ranks):
    return [node.rank for node in torus.nodes if node.rank not in ranks]


# --- wrong usage and refusals ---

@pytest.mark.parametrize('args,code,said', [
    (['--algorithm', 'magic', '--block-size', '1'], 2, 'magic'),
    (['--algorithm', 'ar', '--block-size', '1'], 1, 'ar takes a ring'),
    (['--block-size', '-1'], 2, '--block-size'),
    (['--block-size', '10parsecs'], 2, '--block-size'),
    (['--block-size', '99999999999GiB'], 2, '--block-size'),
    (['--block-size', '1', '--timeout', 'soon'], 2, '--timeout'),
    (['--block-size', '1', '--from', 'a', '--to', 'b'], 2, '--block-size'),
    (['--from', 'a'], 2, '--to'),
    (['--to', 'a'], 2, '--from'),
    (['--missing-ok', '--block-size', '1'], 2, '--missing-ok'),
    (['--block-size', '1', '--on-failure', 'explode'], 2, 'neither fail, shrink nor wait'),
    (['--on-failure', 'explode'], 2, 'neither fail, shrink nor wait'),
    (['--block-size', '1', '--on-failure', 'shrink', '--algorithm', 'at2'], 2, 'omit --algorithm'),
    (['--block-size', '1', '--on-failure', 'shrink', '--schedule', 'x'], 2, 'omit --schedule'),
    (['--from', 'a-%q', '--to', 'b-%q'], 2, '%'),
    (['--nonsense'], 2, '--nonsense'),
    (['surplus', '--block-size', '1'], 2, 'surplus'),
    ([], 2, '--block-size'),
])
def test_wrong_requests(torus, args, code, said):
    result = torus.ctl(0, 'exchange', *args)
    assert (result.returncode, result.stdout) == (code, ''), result.stderr
    assert said in result.stderr and result.stderr.startswith('torusctl: ')
    still_works(torus)


def test_an_unknown_algorithm_names_the_known_ones(torus):
    said = torus.ctl(0, 'exchange', '--algorithm', 'at3', '--block-size', 1).stderr
    assert all(name in said for name in ('ar', 'at2', 'direct'))


@pytest.mark.parametrize('dims,algorithm,said', [
    ('2x3x2', 'at2', 'at2 takes two dimensions'), ('4x4', 'ar', 'ar takes a ring'),
    ('2x2', 'ar', 'ar takes a ring'), ('3mx4', 'at2', 'at2 takes')])
def test_sizes_that_an_algorithm_does_not_take(shared, dims, algorithm, said):
    torus = shared(dims)
    result = torus.ctl(1, 'exchange', '--algorithm', algorithm, '--block-size', 1)
    assert result.returncode == 1 and said in result.stderr and dims in result.stderr
    torus.exchange('direct', 1000, rank=1)
    planned = torusctl('plan', '--dims', dims, '--algorithm', algorithm)
    assert planned.returncode == 2 and said in planned.stderr


def test_no_daemon(tmp_path):
    for path in tmp_path / 'nothing', tmp_path:
        result = torusctl('--socket', path, 'status')
        assert result.returncode == 3 and str(path) in result.stderr and result.stdout == ''
    stale = tmp_path / 'stale'
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(stale))
    result = torusctl('--socket', stale, 'exchange', '--block-size', 1)
    assert result.returncode == 3 and str(stale) in result.stderr


@pytest.mark.slow
def test_more_exchanges_than_memory(shared):
    """What does not fit waits for its turn, here or at another node, and what runs is not disturbed.
    Who has waited too long is told what for, with figures."""
    torus = shared('4x4', memory='8MiB')
    args = ['exchange', '--algorithm', 'at2', '--block-size', '4MiB']
    running = []
    try:
        for rank in 0, 0, 5:  # a quarter of the memory each, and no more of one user
            running.append(Client(torus, *args[:-1], '100GiB', rank=rank))
        for rank in 0, 5:
            wait_for(lambda: [x['state'] for x in torus.status(rank)['exchanges']].count('running')
                     == 3, 20)
        for rank in 0, 9:
            late = torus.ctl(rank, *args, '--timeout', '0.5')
            assert late.returncode == 1, late.stderr
            assert re.search(r'its turn has not come within 0.5 s: node \d+ is busy: the exchange '
                             r'needs memory there: user \d+ has \d+ of \d+ bytes of the memory budget for '
                             r'exchanges, wants \d+ more, and may have \d+', late.stderr)
        with Client(torus, '--json', *args, rank=9) as waiting:
            wait_for(lambda: any(x['state'] == 'waiting' for x in torus.status(9)['exchanges']))
            assert all(client.process.poll() is None for client in running)
            running[2].process.kill()
            code, out, err = waiting.end(60)
            assert code == 0, err
        check_result(json.loads(out), '4x4', 'at2', 4 << 20)
        assert [client.process.poll() for client in running] == [None, None, -9]
    finally:
        for client in running:
            client.__exit__()
    still_works(torus)


def test_more_exchanges_than_a_node_runs_at_once(shared):
    """They wait in the order of asking, and all succeed."""
    torus = shared('4x4')
    running = []
    try:
        for _ in range(4):  # for all of which one user's share of the memory is enough
            running.append(LongExchange(torus, '--repeat', '1000000', block_size='64KiB'))
        late = torus.ctl(0, 'exchange', '--block-size', 1, '--timeout', '0.5')
        assert late.returncode == 1, late.stderr
        assert 'its turn has not come within 0.5 s: others are under way' in late.stderr
        running.append(Client(torus, '--json', 'exchange', '--algorithm', 'at2', '--block-size', 1))
        wait_for(lambda: any(x['state'] == 'waiting' for x in torus.status()['exchanges']))
        check_result(torus.exchange('at2', 1000, rank=1), '4x4', 'at2', 1000)
        running[0].process.kill()
        code, out, err = running[4].end(20)
        assert code == 0, err
        check_result(json.loads(out), '4x4', 'at2', 1)
    finally:
        for client in running:
            client.__exit__()
    still_works(torus)


def test_one_node_has_little_memory(loopback):
    torus = loopback('4x4', extra=lambda rank: ['--memory', '1MiB'] if rank == 5 else [])
    result = torus.ctl(0, 'exchange', '--algorithm', 'at2', '--block-size', '64MiB')
    assert result.returncode == 1 and 'node 5 refuses' in result.stderr, result.stderr
    assert 'memory' in result.stderr
    still_works(torus)
    check_result(torus.exchange('at2', 1000000, rank=5), '4x4', 'at2', 1000000)


# --- daemons that cannot start ---

def daemon(*args, seconds=30):
    """Runs a torusd that must end by itself."""
    return run([find_program('torusd'), *map(str, args)], seconds)


def test_a_listening_address_that_is_taken(torus, tmp_path):
    argv = torus.node(5).daemon.argv[1:]
    own = ['--control', tmp_path / 'sock', '--state-dir', tmp_path / 'state']
    result = daemon(*argv, *own)
    assert result.returncode == 1
    taken = [torus.node(5).addresses[name] for name in ('-0', '-1')]
    assert any(address in result.stderr for address in taken), result.stderr
    assert re.search(r'port -[01]', result.stderr) and 'in use' in result.stderr
    assert listing(tmp_path) in ([], ['state']), 'a socket is left behind'
    still_works(torus)


def test_a_control_socket_that_is_taken(torus, tmp_path):
    result = daemon('--dims', '1x1', '--rank', 0, '--control', torus.node(3).socket, '--state-dir',
                    tmp_path / 'state')
    assert result.returncode == 1
    assert torus.node(3).socket in result.stderr and 'another daemon' in result.stderr
    assert torus.status(3)['pid'] == torus.node(3).pid
    still_works(torus, rank=3)


def test_a_control_path_that_is_no_socket(tmp_path):
    (tmp_path / 'file').write_text('precious')
    result = daemon('--dims', '1x1', '--rank', 0, '--control', tmp_path / 'file', '--state-dir',
                    tmp_path / 'state')
    assert result.returncode == 1 and 'not a socket' in result.stderr
    assert (tmp_path / 'file').read_text() == 'precious'


class Lonely:
    """A daemon without neighbours, which has opened both sockets."""

    def __init__(self, folder, *more, prefix=(), control='sock', state='state', ready=True):
        self.control, self.log = folder / control, folder / f'{state}.log'
        with open(self.log, 'w') as log:
            self.process = subprocess.Popen(
                [*prefix, find_program('torusd'), '--control', self.control, '--state-dir', folder / state,
                 *map(str, more or ('--dims', '1x1', '--rank', 0))], stderr=log)
        if ready:
            self.wait_ready()

    def wait_ready(self):
        wait_for(lambda: self.serves() or self.process.poll() is not None, 30)
        assert self.serves(), self.log.read_text()

    def serves(self):
        return self.ctl('status').returncode == 0

    def ctl(self, *args):
        return run([find_program('torusctl'), '--socket', self.control, *map(str, args)])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        assert wait(self.process, Patience(30)) == 0, self.log.read_text()


def test_a_control_socket_of_a_stopped_daemon(tmp_path):
    """So many clients wait there that nobody else can connect: another daemon does not wait with them."""
    waiting = []
    with Lonely(tmp_path) as first:
        first.process.send_signal(signal.SIGSTOP)
        try:
            while len(waiting) < 10000:
                s = socket.socket(socket.AF_UNIX)
                waiting.append(s)
                s.setblocking(False)
                s.connect(str(first.control))
        except BlockingIOError:
            pass
        result = daemon('--dims', '1x1', '--rank', 0, '--control', first.control, '--state-dir', tmp_path / 'other')
        assert result.returncode == 1 and 'another daemon serves' in result.stderr, result.stderr
        for s in waiting:
            s.close()
        first.process.send_signal(signal.SIGCONT)
        wait_for(first.serves, 30)


def test_a_control_path_of_another_kind_of_socket(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(str(tmp_path / 'sock'))
        result = daemon('--dims', '1x1', '--rank', 0, '--control', tmp_path / 'sock', '--state-dir',
                        tmp_path / 'state')
        assert result.returncode == 1 and 'cannot be found out' in result.stderr, result.stderr
        assert (tmp_path / 'sock').is_socket()


def test_the_sockets_of_a_successor_stay(tmp_path):
    """A daemon that ends removes its own sockets, not those that another one has made in their places."""
    names = 'sock', 'sock.programs'
    with Lonely(tmp_path) as first:
        for name in names:
            (tmp_path / name).unlink()
        with Lonely(tmp_path, state='other') as second:
            first.process.terminate()
            assert wait(first.process, Patience(30)) == 0
            assert all((tmp_path / name).is_socket() for name in names)
            assert second.serves()
    assert not any((tmp_path / name).exists() for name in names)


def test_a_hangup_during_the_start(tmp_path):
    """It stays there until its keys can be read again, which they are."""
    made = subprocess.run([find_program('torusctl'), 'key', 'generate', tmp_path / 'key'], capture_output=True)
    assert made.returncode == 0, made.stderr
    os.mkfifo(tmp_path / 'settings')
    started = Lonely(tmp_path, '--config', tmp_path / 'settings', ready=False)
    with started:
        with open(tmp_path / 'settings', 'w') as settings:  # when the daemon reads it
            started.process.send_signal(signal.SIGHUP)
            settings.write(f'[node]\ndims = 1x1\nrank = 0\nkey_file = {tmp_path}/key\n')
        started.wait_ready()
        wait_for(lambda: started.log.read_text().count('cluster key ') == 2, 30, started.log.read_text)


def test_files_that_may_not_be_so_large(tmp_path):
    """A limit of files' sizes is an error like a full disk; SIGXFSZ does not end the daemon."""
    (tmp_path / 'out').mkdir()
    (tmp_path / 'out' / '0').write_bytes(bytes(100000))
    with Lonely(tmp_path, '--dims', '1x1', '--rank', 0, '--data-root', tmp_path,
                prefix=['prlimit', '--fsize=50000', '--']) as limited:
        result = limited.ctl('exchange', '--from', tmp_path / 'out', '--to', tmp_path / 'in')
        assert result.returncode == 1 and 'File too large' in result.stderr, result.stderr
        (tmp_path / 'out' / '0').write_bytes(bytes(10000))
        result = limited.ctl('exchange', '--from', tmp_path / 'out', '--to', tmp_path / 'in')
        assert result.returncode == 0, result.stderr


@pytest.mark.memory  # sanitizers need descriptors of their own
def test_descriptors_do_not_suffice_to_start(tmp_path):
    """Whatever is missing first: it says so. With fewer libuv ends the process."""
    for limit in range(8, 13):
        result = run(['prlimit', f'--nofile={limit}', find_program('torusd'), '--dims', '1x1', '--rank', '0',
                      '--control', tmp_path / 'sock', '--state-dir', tmp_path / 'state'], 30)
        assert result.returncode == 1
        assert re.search('cannot start: .*(oo many open files|EMFILE)', result.stderr), (limit, result.stderr)


@pytest.mark.memory  # sanitizers need far more address space
def test_no_threads(tmp_path):
    """Said at the start, and not when the first folder is opened. Each thread's stack would be too large."""
    result = run(['prlimit', f'--stack={1 << 33}', f'--as={1 << 32}', find_program('torusd'), '--dims', '1x1',
                  '--rank', '0', '--control', tmp_path / 'sock', '--state-dir', tmp_path / 'state'], 30)
    assert result.returncode == 1 and 'no threads for its disks can be started' in result.stderr


@pytest.mark.parametrize('args,said', [
    ([], 'dims'), (['--dims', '0x4', '--rank', 0], '0x4'), (['--dims', '4x4'], 'rank'),
    (['--dims', '4x4', '--rank', 16], '16'), (['--dims', '4x4', '--rank', 0], 'port'),
    (['--dims', '1x1', '--rank', 0, '--memory', 'much'], 'memory'),
    (['--dims', '1x1', '--rank', 0, '--memory', '4KiB'], '1MiB'),
    (['--dims', '1x1', '--rank', 0, '--data-root', '/nonexistent'], '/nonexistent'),
    (['--dims', '1x1', '--rank', 0, '--config', '/nonexistent'], '/nonexistent'),
    (['--dims', '1x1', '--rank', 0, '--colour', 'red'], '--colour')])
def test_wrong_settings(tmp_path, args, said):
    result = daemon(*args, *([] if args == [] else ['--control', tmp_path / 'sock']))
    assert result.returncode == 2, result.stderr
    assert said in result.stderr and result.stdout == ''


def test_an_option_names_one_data_root(tmp_path):
    """Whatever its name: a colon in it does not open the folder before the colon."""
    for name in ('a', 'a:b', 'a/out', 'a:b/out'):
        (tmp_path / name).mkdir()
    for name in ('a', 'a:b'):
        (tmp_path / name / 'out' / '0').write_text(name)
    with Lonely(tmp_path, '--dims', '1x1', '--rank', 0, '--data-root', f'{tmp_path}/a:b') as one:
        assert json.loads(one.ctl('--json', 'status').stdout)['data_roots'] == [f'{tmp_path}/a:b']
        result = one.ctl('exchange', '--from', tmp_path / 'a:b/out', '--to', tmp_path / 'a:b/in')
        assert result.returncode == 0, result.stderr
        result = one.ctl('exchange', '--from', tmp_path / 'a/out', '--to', tmp_path / 'a/in')
        assert result.returncode == 1 and 'not below' in result.stderr, result.stderr
    result = daemon('--dims', '1x1', '--rank', 0, '--control', tmp_path / 'sock', '--data-root', '')
    assert result.returncode == 2 and 'data root' in result.stderr


def test_the_list_of_data_roots_says_what_it_cannot_name(tmp_path):
    (tmp_path / 'a:b').mkdir()
    (tmp_path / 'ini').write_text(f'[node]\ndims = 1x1\nrank = 0\ndata_roots = {tmp_path}/a:b\n')
    result = daemon('--config', tmp_path / 'ini')
    assert result.returncode == 2 and 'ini:4: ' in result.stderr and '--data-root' in result.stderr


def test_one_data_root_of_a_launcher_is_no_list(loopback, tmp_path):
    torus = loopback('1x1', data_roots=str(tmp_path))
    assert torus.json(0, 'status')['data_roots'] == [str(tmp_path)]


def test_a_daemon_ends_by_sigterm_and_the_socket_goes(loopback):
    torus = loopback('2x2')
    path = torus.node(2).socket
    assert os.path.exists(path)
    assert torus.node(2).terminate() == 0
    assert not os.path.exists(path)
    torus.node(2).start()
    still_works(torus)
    torus.node(2).send_signal(signal.SIGINT)
    assert torus.node(2).daemon.wait(20) == 0
    torus.node(2).start()
    still_works(torus)


def test_daemons_without_standard_files(loopback):
    """Started with them closed, as by a script that detaches it badly: sockets do not take their places."""
    torus = loopback('2x2')
    for node in torus.nodes[1:]:
        node.terminate()
        node.daemon.command = ['sh', '-c', 'exec "$@" <&- >&- 2>&-', 'sh', *node.daemon.command]
        node.start()
    still_works(torus)
    torus.node(3).kill()
    torus.wait_broken(20, ranks=(1, 2))  # which is logged
    torus.node(3).start()
    still_works(torus)


# --- the wrong neighbour ---

class Impostor:
    """A torusd in the place of a node of a torus, with other settings."""

    def __init__(self, torus, rank, folder, changes=(), addresses=None):
        self.node = node = torus.node(rank)
        assert node.alive
        node.terminate()
        addresses = addresses or node.addresses
        ports = [f'--port={name}={address}' for name, address in addresses.items()]
        self.log = folder / 'impostor.log'
        self.socket = str(folder / 'sock')
        with open(self.log, 'w') as log:
            self.process = subprocess.Popen(
                [torus.torusd, '--dims', str(torus.geometry), '--rank', str(rank), *ports,
                 '--control', self.socket, '--state-dir', str(folder / 'state'),
                 *map(str, changes)], stderr=log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        wait(self.process, Patience(20))


IMPOSTORS = {
    'another rank': (lambda a: (['--rank', 5], a), 'node 5 port'),
    'another torus': (lambda a: (['--dims', '2x5'], a), 'is in a torus 2x5'),
    'crossed cables': (lambda a: ([], {'+0': a['+1'], '+1': a['+0'], '-0': a['-1'], '-1': a['-0']}),
                       'node 4 port'),
}


@pytest.mark.parametrize('how', IMPOSTORS)
def test_a_neighbour_that_is_somebody_else(loopback, tmp_path, how):
    torus = loopback('3x3')
    change, said = IMPOSTORS[how]
    args, addresses = change(dict(torus.node(4).addresses))
    neighbours = {7: '-0', 1: '+0', 5: '-1', 3: '+1'}
    with Impostor(torus, 4, tmp_path, args, addresses) as impostor:
        for rank, port in neighbours.items():
            def reason(rank=rank, port=port):
                return next(link for link in torus.links(rank)['links'] if link['port'] == port)
            # Between its tries a link may be waiting for the next one: the reason stays.
            wait_for(lambda: said in reason()['reason'], 20, lambda: f'node {rank}: {reason()}\n'
                                                                     f'{impostor.log.read_text()}')
            assert reason()['up'] is False and reason()['neighbour'] == 4
            assert said in torus.node(rank).log()
        # The impostor is told as well, and names it.
        wait_for(lambda: 'refused by' in impostor.log.read_text()
                 or 'wrong cabling' in impostor.log.read_text()
                 or 'in a torus' in impostor.log.read_text(), 20)
        status = torus.status(0)
        assert status['whole'] is False
        assert any('node 4 is down' in text for text in status['faults'])
        failed = torus.ctl(0, 'exchange', '--block-size', 1)
        assert failed.returncode == 1 and 'not whole' in failed.stderr and 'node 4' in failed.stderr
        lines = torus.node(7).log().splitlines()
        assert len(lines) < 100, 'a refusal is not to be logged at every try'
    torus.node(4).start()
    still_works(torus, rank=4)


# --- a cable is missing ---

def unused_port():
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]


def test_around_a_link_that_is_down(loopback, tmp_path):
    """While the torus is connected exchanges run on what is left of it, and say so."""
    torus = loopback('4x4')
    addresses = dict(torus.node(5).addresses, **{'+1': f'127.0.0.1:{unused_port()}'})
    fault = 'link 5:+1 to node 6 is down'
    key = ['--key-file', torus.key_file()]
    with Impostor(torus, 5, tmp_path, key, addresses):
        for rank in others(torus, 5):
            wait_for(lambda rank=rank: torus.status(rank)['faults'] == [fault], 30)
        for options in ([], ['--repeat', '3'], ['--mode', 'stepped']):
            result = torus.exchange('auto', 20000, rank=6, options=options)
            assert result['without'] == 'link 5:+1' and result['algorithm'] == 'detour', result
            assert result['blocks_delivered'] == 16 * 15 and result['verified'] == 'every byte', result
        text = torus.ctl(0, 'exchange', '--block-size', 1000).stdout
        assert re.search('^without +link 5:[+]1$', text, re.M), text
        refused = torus.ctl(0, 'exchange', '--block-size', 1000, '--algorithm', 'at2')
        assert refused.returncode == 1 and fault in refused.stderr
        assert 'algorithm auto, go around' in refused.stderr
        assert fault in torus.ctl(0, 'allgather', '--block-size', 1000).stderr
    torus.node(5).start()
    still_works(torus, rank=5)


def cut_meanwhile(torus, **options):
    """An exchange in the middle of which the cable is cut: the result."""
    torus.cable.cut_after(300_000)
    result = torus.exchange(**options)
    assert torus.cable.is_cut
    assert result['reroutes'] >= 1 and result['without'] == 'link 4:+1', result
    assert result['algorithm'] == 'detour' and result['blocks_delivered'] == 9 * 8, result
    return result


@pytest.mark.parametrize('root', [0, 4, 5], ids=['far', 'dials', 'listens'])
def test_a_link_goes_down_while_files_are_exchanged(cabled, tmp_path, root):
    """The exchange begins anew around it by itself; what has arrived of files does not come again."""
    torus = cabled('3x3', data_roots=(str(tmp_path),))
    sizes = dict.fromkeys(random_sizes(9, 0), 300_000)
    source, target = make_sources(tmp_path, sizes), f'{tmp_path}/in-%r'
    result = cut_meanwhile(torus, source=source, target=target, rank=root)
    assert result['verified'] == 'digests'
    assert result['kept_bytes'] > 0
    check_target(target, sizes)
    wait_tidy(torus, tmp_path)
    listed = {x['id']: x['state'] for x in torus.status(root)['exchanges']}
    assert listed == {result['id']: 'committed'}  # the attempt before is nobody's business
    assert 'begins anew: link 4:+1 to node 5 is down' in torus.node(root).log()
    torus.cable.mend()
    still_works(torus, rank=root, algorithm='direct')


def test_a_link_goes_down_in_a_session(cabled):
    """All repetitions are those of the routes that the result names."""
    torus = cabled('3x3')
    result = cut_meanwhile(torus, block_size=100_000, rank=8, options=['--repeat', '4'])
    assert result['verified'] == 'every byte' and result['repeat'] == 4, result
    torus.cable.mend()
    torus.wait_whole(30)
    torus.cable.cut_after(300_000)
    shown = torus.ctl(8, 'exchange', '--block-size', 300_000).stdout
    assert re.search('^without +link 4:[+]1$', shown, re.M), shown
    assert re.search('^reroutes +[1-9]$', shown, re.M), shown


def test_a_link_goes_down_before_a_barrier_is_complete(cabled):
    torus = cabled('3x3')
    clients = [Client(torus, 'barrier', rank=rank) for rank in range(8)]
    try:
        wait_for(lambda: all(torus.status(rank)['exchanges'] for rank in range(8)))
        torus.cable.cut_after(0)
        for rank in range(9):
            wait_for(lambda rank=rank: torus.status(rank)['whole'] is False, 30)
        assert all(client.process.poll() is None for client in clients)
        assert torus.ctl(8, 'barrier').returncode == 0
        for client in clients:
            code, _, err = client.end()
            assert code == 0, err
    finally:
        for client in clients:
            client.__exit__()


# --- daemons that go in the middle ---

def assert_named(torus, exchange, dead, ranks):
    """All of them know that the exchange has failed, and which node is to blame."""
    reasons = wait_state(torus, exchange, ['failed'], ranks, 20)
    for rank in ranks:
        assert f'node {dead} is down' in reasons[rank], (rank, reasons[rank])
        assert re.search(rf'exchange {exchange}.*node {dead} is down', torus.node(rank).log())


# direct: by the engine of at2
@pytest.mark.parametrize('algorithm', ['at2', pytest.param('direct', marks=[pytest.mark.slow, pytest.mark.full])])
@pytest.mark.parametrize('dead', [5, 1, 15], ids=['far', 'neighbour', 'corner'])
def test_a_daemon_is_killed(shared, dead, algorithm):
    torus = shared('4x4')
    with LongExchange(torus, algorithm=algorithm) as client:
        torus.node(dead).kill()
        code, out, err = client.end(30)
        assert code == 1 and out == '' and f'node {dead} is down' in err, err
        assert_named(torus, client.id, dead, others(torus, dead))
        wait_for(lambda: torus.status()['whole'] is False, 10)
        assert any(f'node {dead} is down' in text for text in torus.status()['faults'])
    refused = torus.ctl(0, 'exchange', '--algorithm', algorithm, '--block-size', 1)
    assert refused.returncode == 1 and f'node {dead} is down' in refused.stderr
    torus.node(dead).start()
    still_works(torus, rank=dead, algorithm=algorithm)


@pytest.mark.slow
@pytest.mark.parametrize('dims,algorithm,dead', [
    ('1x2', 'ar', 1), ('4x4', 'stream', 5),
    # test_sim_faults and the swarm kill nodes on tori of all shapes
    *(pytest.param(*values, marks=pytest.mark.full) for values in (
        ('1x6', 'ar', 2), ('2x2', 'at2', 3), ('3x4x5', 'direct', 31)))])
def test_a_daemon_is_killed_on_other_tori(shared, dims, algorithm, dead):
    torus = shared(dims)
    with LongExchange(torus, algorithm=algorithm) as client:
        torus.node(dead).kill()
        code, _, err = client.end(30)
        assert code == 1 and f'node {dead} is down' in err, err
        assert_named(torus, client.id, dead, others(torus, dead))
    torus.node(dead).start()
    still_works(torus, algorithm=algorithm)


def test_a_daemon_is_killed_that_nothing_goes_around(torus):
    """A node whose links are all down is not gone around, whatever the algorithm."""
    with LongExchange(torus, rank=3, algorithm='auto') as client:
        torus.node(9).kill()
        code, out, err = client.end(30)
        assert code == 1 and out == '' and 'node 9 is down' in err, err
        # Where its links are seen to go one after the other, the exchange may have begun anew between them.
        attempt = re.findall(r'exchange (\S+) failed: node 9 is down', torus.node(3).log())[-1]
        if attempt == client.id:
            assert_named(torus, attempt, 9, others(torus, 9))
        for rank in others(torus, 9):
            wait_for(lambda rank=rank: {state_of(torus, id, rank)[0] for id in (attempt, client.id)}
                     <= {'failed', None}, 20)
    torus.node(9).start()
    still_works(torus)


def test_two_daemons_are_killed(torus):
    """Even if they cut a node off from all others."""
    with LongExchange(torus, rank=6) as client:
        for rank in 0, 10:
            torus.node(rank).kill()
        code, _, err = client.end(30)
        assert code == 1 and re.search('node (0|10) is down', err), err
        wait_state(torus, client.id, ['failed'], others(torus, 0, 10))
    for rank in 0, 10:
        torus.node(rank).start()
    still_works(torus, rank=10)


def test_a_daemon_that_ends_in_the_middle(torus):
    """SIGTERM: it ends at once and well, whatever is under way."""
    with LongExchange(torus, rank=3) as client:
        assert torus.node(9).terminate(20) == 0
        code, _, err = client.end(30)
        assert code == 1 and 'node 9 is down' in err, err
        assert_named(torus, client.id, 9, others(torus, 9))
    torus.node(9).start()
    still_works(torus)


@pytest.mark.parametrize('algorithm', [pytest.param('at2', marks=pytest.mark.slow), 'stream'])
def test_a_daemon_ends_beside_one_that_does_not_read(loopback, algorithm):
    """Also while much waits to be written to it: more than the kernel buffers on a loopback."""
    torus = loopback('4x4', memory='1GiB', extra=PATIENT)
    for _ in range(10):  # what node 1 sends at that moment may be for others
        torus.wait_whole(30)
        with LongExchange(torus, algorithm=algorithm), stopped(torus.node(5)):
            ended = piles_up(torus.node(1), 4)
            if ended:
                assert torus.node(1).terminate(20) == 0
                break
    assert ended
    torus.node(1).start()
    still_works(torus, rank=1)


def piles_up(node, seconds):
    patience = Patience(seconds)
    while not patience.over:
        if max(unread(node), default=0) > 30_000:
            return True
    return False


def unread(node):
    """The bytes in each of the daemon's connections to neighbours that nobody has taken yet."""
    said = run(['ss', '-tnH']).stdout
    sockets = [line.split()[2:5] for line in said.splitlines()]  # bytes, its own address, the other one's
    return [int(size) for size, *ends in sockets for name, address in node.addresses.items()
            if ends[name[0] == '+'] == address]  # a port + dials that address, a port - has it


@pytest.mark.parametrize('busy,algorithm', [(0, 'at2'), *(
    pytest.param(*values, marks=pytest.mark.slow) for values in ((6, 'at2'), (0, 'stream')))])
def test_a_silent_daemon(torus, busy, algorithm):
    """Its connections stay open, but nothing comes: the heartbeats tell, and do not tell later
    where the links have been busy for long."""
    with LongExchange(torus, algorithm=algorithm) as client:
        wait_for(lambda: torus.status()['exchanges'][0]['age_seconds'] >= busy)
        with stopped(torus.node(5)):
            code, _, err = client.end(10)
            assert code == 1 and 'node 5 is down' in err, err
            assert_named(torus, client.id, 5, others(torus, 5))
            assert 'silent' in torus.node(1).log()
        torus.wait_whole(30)
        # It had no part in the verdict, and learns of it or comes to its own.
        wait_for(lambda: state_of(torus, client.id, 5)[0] in ('failed', None), 30)
    still_works(torus, rank=5, algorithm=algorithm)


@pytest.mark.parametrize('folders', [False, True], ids=['pattern', 'folders'])
def test_the_asked_daemon_is_killed(loopback, tmp_path, folders):
    torus = loopback('4x4', data_roots=(str(tmp_path),))
    if folders:
        sizes = dict.fromkeys(random_sizes(16, 0), 2_000_000)
        args = ['--from', make_sources(tmp_path, sizes), '--to', f'{tmp_path}/in-%r']
    else:
        args = ['--block-size', '100GiB']
    with Client(torus, 'exchange', '--algorithm', 'at2', *args, rank=6) as client:
        exchange = wait_for(lambda: next((x['id'] for x in torus.status(0)['exchanges']
                                          if x['state'] == 'running'), None))
        torus.node(6).kill()
        code, out, err = client.end(30)
        assert out == '' and 'daemon' in err, (code, err)
        if folders:
            assert code == 4 and 'whether the exchange was committed is not known' in err, err
        else:
            assert code in (1, 3), (code, err)
    for rank, reason in wait_state(torus, exchange, ['failed'], others(torus, 6), 20).items():
        assert re.search('node 6.* down', reason), (rank, reason)
    torus.node(6).start()
    torus.wait_whole(30)
    wait_tidy(torus, tmp_path)
    assert not [path for path in listing(tmp_path) if path.startswith('in')]
    still_works(torus, rank=6)
    if folders:
        torus.exchange('at2', source=args[1], target=args[3], rank=6)
        check_target(args[3], sizes)


@pytest.mark.parametrize('algorithm', [pytest.param('at2', marks=pytest.mark.slow), 'stream'])
def test_a_daemon_is_killed_while_files_are_written(loopback, tmp_path, algorithm):
    torus = loopback('4x4', data_roots=(str(tmp_path),))
    sizes = dict.fromkeys(random_sizes(16, 0), 2_000_000)
    source, target = make_sources(tmp_path, sizes), f'{tmp_path}/sub/in-%r'
    arguments = 'exchange', '--algorithm', algorithm, '--from', source, '--to', target
    with Client(torus, *arguments) as client:
        wait_for(lambda: any('.torusd-' in path and path.endswith('/9')
                             for path in listing(tmp_path)))
        torus.node(9).kill()
        code, _, err = client.end(30)
        assert code == 1 and 'node 9 is down' in err, err
    torus.node(9).start()
    wait_tidy(torus, tmp_path)
    assert not [path for path in listing(tmp_path) if '/in-' in path]
    still_works(torus)
    torus.exchange(algorithm, source=source, target=target)
    check_target(target, sizes)


# --- exchanges that leave out nodes that are down ---

SHRINK = ('--on-failure', 'shrink')


def check_shrunk(torus, result, dead):
    left = len(torus.nodes) - len(dead)
    assert result.get('missing', []) == sorted(dead), result
    assert result['algorithm'] == 'detour' and 'without' not in result, result
    assert result['blocks_delivered'] == left * (left - 1), result
    assert [node['rank'] for node in result['per_node']] == others(torus, *dead)


@pytest.mark.slow
def test_without_nodes_that_are_down(torus):
    """The others complete; side by side and killed at once as well. Those that return take part again."""
    for dead in [9], [5, 6], [0, 10]:
        for rank in dead:
            torus.node(rank).kill()
        result = torus.exchange('auto', 20000, rank=3, options=SHRINK)
        check_shrunk(torus, result, dead)
        assert result['verified'] == 'every byte'
        result = torus.exchange('auto', 1000, rank=15, options=[*SHRINK, '--repeat', '3'])
        check_shrunk(torus, result, dead)
        shown = torus.ctl(3, 'exchange', '--block-size', 1000, *SHRINK).stdout
        assert re.search(f'^missing nodes +{", ".join(map(str, dead))}$', shown, re.M), shown
        for options in (), ('--on-failure', 'fail'):
            refused = torus.ctl(3, 'exchange', '--block-size', 1000, *options)
            assert refused.returncode == 1 and refused.stdout == '' and (
                'is down' in refused.stderr or 'in parts' in refused.stderr), refused.stderr
        for rank in dead:
            torus.node(rank).start()
        torus.wait_whole(30)
        assert 'missing' not in torus.exchange('auto', 20000, rank=3, options=SHRINK)
        still_works(torus, rank=dead[0])


def test_a_daemon_is_killed_and_left_out(shared):
    torus = shared('3x3')
    with LongExchange(torus, '--json', *SHRINK, rank=3, algorithm='auto',
                      block_size='16MiB') as client:
        torus.node(8).kill()
        code, out, err = client.end(120)
        assert code == 0, err
        result = json.loads(out)
        check_shrunk(torus, result, [8])
        assert result['reroutes'] >= 1
    torus.node(8).start()
    still_works(torus, rank=8)


def test_files_without_a_node(loopback, tmp_path):
    """It is killed while they are written; nothing of or for it appears, and it keeps nothing."""
    torus = loopback('3x3', data_roots=(str(tmp_path),))
    sizes = dict.fromkeys(random_sizes(9, 0), 2_000_000)
    source, target = make_sources(tmp_path, sizes), f'{tmp_path}/sub/in-%r'
    with Client(torus, '--json', 'exchange', '--from', source, '--to', target, *SHRINK) as client:
        wait_for(lambda: any('.torusd-' in path and path.endswith('/4')
                             for path in listing(tmp_path)))
        torus.node(4).kill()
        code, out, err = client.end(60)
        assert code == 0, err
    check_shrunk(torus, json.loads(out), [4])
    left = {pair: size for pair, size in sizes.items() if 4 not in pair}
    check_target(target, left)
    torus.node(4).start()
    torus.wait_whole(30)
    wait_tidy(torus, tmp_path)
    check_target(target, left)
    assert not os.path.exists(target.replace('%r', '4'))
    result = torus.exchange('auto', source=source, target=f'{tmp_path}/again-%r', options=SHRINK)
    assert 'missing' not in result
    check_target(f'{tmp_path}/again-%r', sizes)


def test_what_is_left_is_in_parts(shared):
    torus = shared('5m')
    torus.node(3).kill()
    for rank in 0, 4:
        wait_for(lambda rank=rank: torus.status(rank)['whole'] is False, 10)
        refused = torus.ctl(rank, 'exchange', '--block-size', 1, *SHRINK)
        assert refused.returncode == 1 and 'the torus is in parts' in refused.stderr, refused.stderr
    torus.node(3).start()
    torus.wait_whole(30)
    assert 'missing' not in torus.exchange('auto', 1, options=SHRINK)


def test_daemons_come_and_go(loopback):
    """All restarted one by one, and all at once: the torus heals by itself."""
    torus = loopback('3x3')
    for node in torus.nodes:
        node.restart(signal.SIGKILL if node.rank % 2 else signal.SIGTERM)
    still_works(torus)
    for node in torus.nodes:
        node.kill()
    for node in torus.nodes:
        node.start()
    still_works(torus, rank=8)


# --- clients that go ---

@pytest.mark.parametrize('how', ['SIGKILL', 'SIGINT', 'SIGTERM'])
def test_the_client_goes(torus, how):
    with LongExchange(torus, rank=7) as client:
        client.send_signal(getattr(signal, how))
        code, out, err = client.end(20)
        assert out == ''
        if how == 'SIGINT':
            assert code in (1, 130) and 'ancel' in err, (code, err)
        else:
            assert code != 0
        for rank, reason in wait_state(torus, client.id, ['failed'], range(16), 10).items():
            assert 'cancelled' in reason, (rank, reason)
    assert torus.status()['whole'] is True
    still_works(torus, rank=7)


def test_a_client_that_does_not_read(torus):
    """No more of its requests are read than it reads replies; others are answered, and so is it
    when it reads at last."""
    node, sent, replies, data = torus.node(2), 0, 0, b''
    before = node.memory()['RssAnon']
    with connect(node.socket) as s:
        s.setblocking(False)
        # Until there has been no room for a second: 50 MB of requests would be answered with GBs.
        while select.select([], [s], [], 1)[1]:
            sent += s.send(REQUEST * 1000)
            assert sent < 50_000_000, 'all its requests are read'
        assert node.memory()['RssAnon'] - before < 8 << 20
        still_works(torus, rank=2)
        s.be_patient(20)
        while replies < sent // len(REQUEST):
            piece = s.recv(1 << 20)
            assert piece
            data += piece
            while len(data) >= 8 and len(data) >= 8 + struct.unpack('>I', data[:4])[0]:
                data = data[8 + struct.unpack('>I', data[:4])[0]:]
                replies += 1
    still_works(torus, rank=2)


def test_more_clients_than_a_daemon_takes(torus):
    """Those beyond are told so, but still the state; the others, the links and who comes later are as before."""
    clients = []
    try:
        while len(clients) < 1000:
            s = connect(torus.node(3).socket)
            clients.append(s)
            send(s, REQUEST)
            said = s.recv(65536)
            if b'connections to the control socket' in said:
                break
            assert frames(said)[0][0] >> 3 == 2  # the status
        assert 64 < len(clients) < 1000
        wait_for(lambda: torus.ctl(3, 'status').returncode == 0, 20)
        refused = torus.ctl(3, 'exchange', '--block-size', '1')
        assert refused.returncode != 0 and 'connections to the control socket' in refused.stderr, refused.stderr
        assert torus.status(4)['whole'] is True
    finally:
        for s in clients:
            s.close()
    wait_for(lambda: torus.ctl(3, 'status').returncode == 0, 10)
    still_works(torus, rank=3)


def test_no_descriptors_left(loopback):
    """Links that go down come up again, those that are dialled and those that are accepted; who asks
    the daemon is told why it does not answer."""
    torus = loopback('3x3')
    node = torus.node(4)
    highest = max(map(int, os.listdir(f'/proc/{node.pid}/fd')))
    resource.prlimit(node.pid, resource.RLIMIT_NOFILE, (highest + 6, highest + 6))
    clients = []
    try:
        while True:
            s = connect(node.socket)
            clients.append(s)
            send(s, REQUEST)
            said = s.recv(65536)
            if b'no file descriptors left' in said:
                break
            assert frames(said)[0][0] >> 3 == 2 and len(clients) < 100
        for rank in 1, 7:  # node 4 is dialled by node 1 and dials node 7
            torus.node(rank).restart()
            wait_for(lambda: torus.status(0)['whole'] and torus.status(rank)['whole'], 20,
                     lambda: node.log())
            check_result(torus.exchange('at2', 30000, rank=rank), '3x3', 'at2', 30000)
        torus.node(7).terminate()
        wait_for(lambda: '+0' in node.log() and torus.status(0)['whole'] is False, 20)
        assert node.alive
        torus.node(7).start()
        wait_for(lambda: torus.status(0)['whole'] is True, 20, lambda: node.log())
    finally:
        for s in clients:
            s.close()
    still_works(torus, rank=4)


# --- time ---

def test_a_timeout(torus):
    with stopped(torus.node(10)):
        result = torus.ctl(0, 'exchange', '--algorithm', 'at2', '--block-size', '1MiB',
                           '--timeout', 2)
    assert result.returncode == 1 and result.stdout == ''
    assert 'not finished within 2.0 s' in result.stderr, result.stderr
    still_works(torus)


def test_a_timeout_of_a_running_exchange(torus):
    with Client(torus, '--json', 'exchange', '--algorithm', 'at2', '--block-size', '100GiB',
                '--timeout', '1.5') as client:
        code, out, err = client.end(20)
    assert code == 1 and 'not finished within 1.5 s' in err and 'round' in err, err
    error = json.loads(out)['error']
    assert error['code'] == 'timeout'
    still_works(torus)


@pytest.mark.slow
def test_progress_on_a_terminal(torus):
    """A bar while it runs, and none left over in the output afterwards."""
    import pty
    main, terminal = pty.openpty()
    process = subprocess.Popen([torus.torusctl, '--socket', torus.node(0).socket, 'exchange',
                                '--algorithm', 'at2', '--block-size', '32MiB'], stderr=terminal,
                               stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    os.close(terminal)
    out, _ = communicate(process, Patience(120))
    shown = b''
    try:
        while piece := os.read(main, 65536):
            shown += piece
    except OSError:
        pass
    os.close(main)
    assert process.returncode == 0 and 'verified' in out
    assert b'%' in shown and b'\r' in shown
    assert sys.getsizeof(shown) < 100000
