"""torusctl copy, gather, scatter and exchange --trees: names of copies, reports, exit statuses. What trees look like at
the other end is compared in tests/integration/test_copy*.py with random trees."""

import json
import os
import re
import signal

import pytest
from support.background import Client
from support.errors import assert_refused
from support.waiting import wait_for


@pytest.fixture
def torus(shared, root):
    return shared('2x2', data_roots=(str(root),))


def make(folder, **files):
    """Files with these contents; a name with __ is one below another folder."""
    for name, content in files.items():
        path = folder / name.replace('__', '/')
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


def contents(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob('*')) if path.is_file()}


def run(torus, *args, rank=0, status=0):
    result = torus.ctl(rank, *args)
    assert result.returncode == status, (result.stdout, result.stderr)
    return result.stdout


def test_a_copy_and_a_second_one(torus, base):
    source = make(base / 'model', config='small', sub__weights='x' * 100_000)
    args = 'copy', source, '--to', f'{base}/at/%r'
    first = run(torus, *args)
    assert re.fullmatch(r'copied to 3 nodes: 2 files, 2 folders \(97\.7 KiB\)\n'
                        r'added 4, changed 0, removed 0, unchanged 0 at each node\n'
                        r'moved 97\.7 KiB of 97\.7 KiB in .* to compare\n'
                        r'carried by [a-z0-9-]+, (stepped|streaming)\n', first)
    assert sorted(os.listdir(base / 'at')) == ['1', '2', '3']
    for rank in '123':
        assert contents(base / 'at' / rank) == contents(source)

    assert run(torus, *args, '--dry-run') == 'nothing to do at 3 nodes: everything is there already\n'
    (source / 'config').write_text('larger')
    (base / 'at' / '2' / 'extra').write_text('')
    assert run(torus, *args, '--dry-run', '--delete') == (
        'would add nothing, change 1 to 2 entries at 3 nodes, and remove 1 entry at 1 node; 6 B would move to each of '
        'these nodes; nothing was changed\n'
        f'node 2 ({os.uname().nodename}) would remove:\n  extra\n')
    assert contents(base / 'at' / '1')['config'] == 'small'
    second = run(torus, *args, '--delete')
    assert '\nadded 0, changed 1 to 2, removed 0 to 1, unchanged 2 to 3 (--per-node shows each node)\nmoved 6 B of 97.7 KiB in ' in second
    for rank in '123':
        assert contents(base / 'at' / rank) == contents(source)


def test_verify_is_like_diff(torus, base):
    source = make(base / 'model', a='one', b='two')
    args = 'copy', source, '--to', f'{base}/at/%r', '--nodes', '0,2-3'
    run(torus, *args)
    assert sorted(os.listdir(base / 'at')) == ['2', '3']
    assert run(torus, *args, '--verify') == 'equal at all 2 nodes: 2 files, 1 folder (6 B)\n'
    before = (base / 'at/3/b').stat()
    (base / 'at/3/b').write_text('TWO')  # of the same size and time: only the contents tell
    os.utime(base / 'at/3/b', ns=(before.st_atime_ns, before.st_mtime_ns))
    lines = run(torus, *args, '--verify', status=1).splitlines()
    assert re.fullmatch(r'node 2 \(.*\): equal', lines[0])
    assert re.fullmatch(r'node 3 \(.*\): differs: 1 different; first: .*/at/3/b', lines[1])
    assert contents(base / 'at' / '3')['b'] == 'TWO'
    result = torus.json(0, *map(str, args), '--dry-run')
    assert [node['changed'] for node in result['per_node']] == [0, 0]
    run(torus, *args, '--checksum')
    assert contents(base / 'at' / '3')['b'] == 'two'


def test_names_of_copies(torus, base):
    make(base, a__x='1', a__y__z='2', b='3')
    run(torus, 'copy', base / 'a', base / 'b', '--to', f'{base}/several/%r', '--exclude', 'z')
    assert contents(base / 'several' / '1') == {'a/x': '1', 'b': '3'}
    run(torus, 'copy', base / 'b', '--to', f'{base}/one/%r/')
    assert contents(base / 'one') == {'1/b': '3', '2/b': '3', '3/b': '3'}
    run(torus, 'copy', base / 'b', '--to', f'{base}/file%%/%r')
    assert contents(base / 'file%') == {'1': '3', '2': '3', '3': '3'}
    (base / '50%').write_text('4')
    run(torus, 'copy', base / '50%', '--to', f'{base}/percent/%r')
    assert contents(base / 'percent') == {'1': '4', '2': '4', '3': '4'}


def test_gather_and_scatter(torus, base):
    for rank in range(4):
        make(base / 'out' / f'{rank}', name=f'of {rank}')
    run(torus, 'gather', f'{base}/out/%r', '--to', f'{base}/all/%r', rank=2)
    assert contents(base / 'all') == {f'{rank}/name': f'of {rank}' for rank in (0, 1, 3)}
    result = torus.json(1, 'scatter', f'{base}/out/%r', '--to', f'{base}/got/%r')
    assert contents(base / 'got') == {f'{rank}/name': f'of {rank}' for rank in (0, 2, 3)}
    assert [node['rank'] for node in result['per_node']] == [0, 2, 3]
    assert (result['operation'], result['node'], result['failures'], result['attempts']) == ('scatter', 1, 0, 1)
    assert result['bytes_all'] == result['bytes_sent'] == 12


def test_exchange_of_trees(torus, base):
    for s in range(4):
        for d in range(4):
            if (s + d) % 3 == 1:
                make(base / 'out' / f'{s}', **{f'{d}': f'{s} to {d}'})
            elif (s + d) % 3 == 2:
                make(base / 'out' / f'{s}' / f'{d}', x__y=f'{s} to {d}')
    args = 'exchange', '--from', f'{base}/out/%r', '--to', f'{base}/in/%r', '--trees'
    result = torus.ctl(0, *args, '--dry-run')
    assert result.returncode == 1 and len(result.stderr.splitlines()) == 6  # pairs without a source
    run(torus, *args, '--missing-ok')
    for d in range(4):
        expected = {f'{s}' if (s + d) % 3 == 1 else f'{s}/x/y': f'{s} to {d}' for s in range(4) if (s + d) % 3}
        assert contents(base / 'in' / f'{d}') == expected


def test_trees_are_carried_by_a_named_algorithm(torus, base):
    for s in range(4):
        for d in range(4):
            make(base / 'out' / f'{s}' / f'{d}', x=f'{s} to {d}' * 5000)
    for number, (algorithm, mode, *options) in enumerate([
            ('direct', 'stepped'), ('pair', 'streaming', '--mode', 'streaming'), ('cccube', 'stepped', '--q', '2')]):
        args = ('exchange', '--from', f'{base}/out/%r', '--to', f'{base}/in{number}/%r', '--trees',
                '--algorithm', algorithm, *options)
        said = torus.json(2, *args)
        assert (said['algorithm'], said['mode']) == (algorithm + ('-q2' if '--q' in options else ''), mode)
        assert said['bytes_sent'] == said['bytes_all'] > 0
        for d in range(4):
            expected = {f'{s}/x': f'{s} to {d}' * 5000 for s in range(4)}
            assert contents(base / f'in{number}' / f'{d}') == expected
        again = torus.json(2, *args)
        assert again['bytes_sent'] == 0 and again['algorithm'] is None


def test_options_that_do_not_go_with_trees(torus, base):
    make(base / 'out', x='1')
    for reason, *options in [
            ('files have their own sizes', '--block-size', '1K'), ('files are exchanged once', '--repeat', '2'),
            ('trees move in many exchanges', '--schedule', 'any'), ('known only when the trees', '--explain'),
            ('needs --algorithm', '--mode', 'stepped'), ('requires --algorithm cccube', '--q', '2'),
            ('all-port', '--algorithm', 'at2-1port'), ('chosen by the size', '--algorithm', 'cccube-best'),
            ('needs algorithm auto', '--algorithm', 'direct', '--on-failure', 'shrink')]:
        result = torus.ctl(0, '--json', 'exchange', '--from', f'{base}/out', '--to', f'{base}/in', '--trees', *options)
        assert_refused(result, 'usage', 2)
        assert reason in result.stderr, result.stderr


def test_an_exchange_of_files_names_the_option_for_folders(torus, base):
    for s in range(4):
        for d in range(4):
            make(base / 'out' / f'{s}' / f'{d}', x='1')
    result = torus.ctl(0, '--json', 'exchange', '--from', f'{base}/out/%r', '--to', f'{base}/in/%r')
    assert_refused(result, 'refused')
    assert '--trees' in result.stderr
    result = torus.ctl(0, '--json', 'broadcast', '--root', '1', '--from', f'{base}/out/%r', '--to', f'{base}/in/%r')
    assert_refused(result, 'refused')
    assert "'torusctl copy'" in result.stderr


def test_failures(torus, base):
    result = torus.ctl(0, '--json', 'copy', base / 'none', '--to', f'{base}/at/%r')
    assert result.returncode == 1 and 'none' in result.stderr
    make(base, a='1', blocked='2')
    result = torus.ctl(0, 'copy', base / 'a', '--to', f'{base}/blocked/%r')
    assert result.returncode == 1
    assert [line.split(' (')[0] for line in result.stderr.splitlines()] == [f'torusctl: node {i}' for i in (1, 2, 3)]
    assert result.stdout.startswith('copied to 0 of 3 nodes\n')
    assert torus.ctl(0, 'copy', base / 'a', '--to', f'{base}/x', '--nodes', '4').returncode == 2


@pytest.fixture
def large(base):
    """A file that takes a moment to copy."""
    with open(base / 'large', 'wb') as file:
        for _ in range(8):
            file.write(os.urandom(1 << 24))
    return base / 'large'


def moves(torus):
    return any(copy['phase'] == 'moving' for copy in torus.json(0, 'status')['copies'])


def test_an_interrupted_copy_says_what_stays(torus, base, large):
    """A large copy is interrupted when it moves data, and then made."""
    args = 'copy', large, '--to', f'{base}/at/%r'
    with Client(torus, *args, rank=0) as client:
        wait_for(lambda: moves(torus))
        client.process.send_signal(signal.SIGINT)
        code, _, errors = client.end(60)
    assert code == 1
    assert errors.endswith('cancelled; what has arrived stays at the nodes for the next copy to the same target, for a '
                           'day\n')
    wait_for(lambda: not torus.json(3, 'status')['copies'])
    run(torus, *args)
    assert (base / 'at' / '3').read_bytes() == large.read_bytes()


@pytest.mark.full
@pytest.mark.parametrize('signum', [signal.SIGTERM, signal.SIGKILL])
def test_the_daemon_that_was_asked_is_restarted(torus, base, large, signum):
    """torusctl asks again; a copy may be repeated whatever has become final."""
    with Client(torus, '--json', 'copy', large, '--to', f'{base}/at/%r', '--on-failure', 'wait', rank=0) as client:
        wait_for(lambda: moves(torus))
        torus.node(0).kill(signum)
        assert client.process.poll() is None
        torus.node(0).start()
        code, out, errors = client.end(120)
    assert code == 0, errors
    assert json.loads(out)['failures'] == 0
    assert (base / 'at' / '3').read_bytes() == large.read_bytes()
    torus.wait_whole(30)
