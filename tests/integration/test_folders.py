"""Exchanges of folders: every byte arrives, and only the result is visible."""

import json
import os
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.errors import assert_refused, error_code
from support.expect import check_result
from support.trees import check_target, listing, make_sources, random_sizes, wait_tidy
from support.waiting import wait_for
from torus_net import CommandFailed
from torus_net.patience import Patience, communicate

SHAPES = [('4x4', 'at2'), ('5x3', 'at2'), ('4x4', 'direct'), ('2x2', 'at2'), ('1x6', 'ar'),
          ('1x1', 'at2'), ('1x2', 'ar'), ('3x2x2', 'direct'), ('4x4', 'stream'), ('3x2x2', 'stream')]
SANITIZED = (('5x3', 'at2'), ('1x1', 'at2'), ('4x4', 'stream'))


@pytest.fixture
def torus(shared, root):
    return shared('4x4', data_roots=(str(root),))


def failure(torus, *args, rank=0, code='refused', status=1):
    """Runs an exchange that must fail. Returns its standard error (and, as JSON, its output)."""
    result = torus.ctl(rank, '--json', 'exchange', *args)
    assert_refused(result, code, status)
    assert result.stderr.startswith('torusctl: ')
    assert json.loads(result.stdout)['error']['text'] in result.stderr
    return result.stderr


@pytest.mark.parametrize('dims,algorithm', [
    pytest.param(*shape, marks=[pytest.mark.slow] * (shape not in SANITIZED)) for shape in SHAPES])
def test_files_of_all_sizes(shared, root, base, dims, algorithm):
    torus = shared(dims, data_roots=(str(root),))
    sizes = random_sizes(torus.geometry.nodes, f'{dims} {algorithm}')
    source, before = make_sources(base, sizes), listing(base)
    result = torus.exchange(algorithm, source=source, target=f'{base}/in/%r',
                            rank=torus.geometry.nodes - 1)
    check_result(result, dims, algorithm, sizes=sizes)
    check_target(f'{base}/in/%r', sizes)
    assert [path for path in listing(base) if not path.startswith('in')] == before
    wait_tidy(torus, base)


def test_nothing_but_empty_files(torus, base):
    sizes = dict.fromkeys(random_sizes(16, 0), 0)
    result = torus.exchange('at2', source=make_sources(base, sizes), target=f'{base}/in-%r')
    check_result(result, '4x4', 'at2', sizes=sizes)
    check_target(f'{base}/in-%r', sizes)


def test_one_file_is_much_larger(torus, base):
    """The last rounds carry only bytes of the large file."""
    sizes = dict.fromkeys(random_sizes(16, 0), 10)
    sizes[3, 12] = 9_000_001
    sizes[7, 7] = 5_000_000
    result = torus.exchange('at2', source=make_sources(base, sizes), target=f'{base}/in-%r')
    assert result['rounds'] > 1
    check_result(result, '4x4', 'at2', sizes=sizes)
    check_target(f'{base}/in-%r', sizes)


def test_the_algorithm_is_chosen_by_the_sizes(torus, base):
    """For equal files, the algorithm for generated blocks; if one file is much larger than the rest, an algorithm that
    does not carry it from step to step."""
    nodes = torus.geometry.nodes
    pairs = [(s, d) for s in range(nodes) for d in range(nodes)]
    for size in 100, 300000:
        source = make_sources(base / f'each-{size}', dict.fromkeys(pairs, size))
        result = torus.exchange(source=source, target=f'{base}/in-{size}-%r')
        same = torus.json(0, 'exchange', '--block-size', size, '--explain')['candidates'][0]
        assert (result['algorithm'], result['mode']) == (same['algorithm'], same['mode'])
    few = torus.json(0, 'exchange', '--block-size', 100, '--explain')['candidates'][0]
    sizes = dict.fromkeys(pairs, 100) | {(0, 10): 30_000_000}
    result = torus.exchange(source=make_sources(base / 'skewed', sizes), target=f'{base}/skewed-%r')
    assert few['mode'] == 'stepped' and result['mode'] == 'streaming'
    assert result['algorithm'] == 'stream'
    check_target(f'{base}/skewed-%r', sizes)


@pytest.mark.parametrize('algorithm', ['direct', 'stream'])
def test_little_memory(shared, root, base, algorithm):
    torus = shared('4x4', data_roots=(str(root),), memory='2MiB')
    sizes = random_sizes(16, 'little')
    result = torus.exchange(algorithm, source=make_sources(base, sizes), target=f'{base}/in-%r')
    assert result['rounds'] > 1
    check_result(result, '4x4', algorithm, sizes=sizes)
    check_target(f'{base}/in-%r', sizes)


def test_missing_files(torus, base):
    sizes = random_sizes(16, 'missing')
    source = make_sources(base, sizes)
    for pair in (2, 9), (2, 2), (15, 0):
        os.unlink(f'{base}/out-{pair[0]}/{pair[1]}')
        sizes[pair] = 0
    said = failure(torus, '--from', source, '--to', f'{base}/in-%r')
    assert '--missing-ok' in said
    assert f'{base}/out-2/' in said or f'{base}/out-15/' in said
    wait_tidy(torus, base)
    assert not [path for path in listing(base) if path.startswith(('in', '.in'))]
    result = torus.exchange('at2', source=source, target=f'{base}/in-%r', missing_ok=True)
    check_result(result, '4x4', 'at2', sizes=sizes)
    check_target(f'{base}/in-%r', sizes)


def test_relative_paths(torus, base):
    sizes = random_sizes(16, 'relative', 3000)
    make_sources(base, sizes)
    result = subprocess.run([torus.torusctl, '--socket', torus.node(6).socket, 'exchange', '--from',
                             'out-%r', '--to', './sub/in-%r'], cwd=base, capture_output=True,
                            text=True)
    assert result.returncode == 0, result.stderr
    check_target(f'{base}/sub/in-%r', sizes)


def test_a_directory_with_a_per_cent_sign(torus, base):
    sizes = random_sizes(16, 'percent', 3000)
    (base / '50% r').mkdir()
    make_sources(base / '50% r', sizes)
    result = subprocess.run([torus.torusctl, '--socket', torus.node(0).socket, 'exchange', '--from',
                             'out-%r', '--to', 'a%%b-%r'], cwd=base / '50% r', capture_output=True,
                            text=True)
    assert result.returncode == 0, result.stderr
    check_target(str(base / '50% r') + '/a%b-%r', sizes)


def test_an_empty_target_may_exist(torus, base):
    sizes = random_sizes(16, 'empty', 3000)
    source = make_sources(base, sizes)
    for rank in range(0, 16, 3):
        (base / f'in-{rank}').mkdir()
    torus.exchange('at2', source=source, target=f'{base}/in-%r')
    check_target(f'{base}/in-%r', sizes)


def test_a_target_that_is_not_empty_stays_as_it_is(torus, base):
    sizes = random_sizes(16, 'full', 3000)
    source = make_sources(base, sizes)
    (base / 'in-11').mkdir()
    (base / 'in-11' / 'precious').write_text('mine')
    before = listing(base)
    said = failure(torus, '--from', source, '--to', f'{base}/in-%r')
    assert f'{base}/in-11 ' in said and 'node 11' in said
    wait_tidy(torus, base)
    assert listing(base) == before
    (base / 'in-11' / 'precious').unlink()
    torus.exchange('at2', source=source, target=f'{base}/in-%r')
    check_target(f'{base}/in-%r', sizes)


def test_a_result_is_not_overwritten(torus, base):
    sizes = random_sizes(16, 'again', 3000)
    source = make_sources(base, sizes)
    torus.exchange('at2', source=source, target=f'{base}/in-%r')
    failure(torus, '--from', source, '--to', f'{base}/in-%r')
    check_target(f'{base}/in-%r', sizes)
    wait_tidy(torus, base)


def test_several_at_once(torus, base):
    """Exchanges from different nodes, into different targets."""
    jobs = [(0, 'at2'), (5, 'direct'), (15, 'at2')]
    sizes = {rank: random_sizes(16, f'at once {rank}', 200000) for rank, _ in jobs}

    def run(job):
        rank, algorithm = job
        return torus.exchange(algorithm, rank=rank, target=f'{base}/{rank}/in-%r',
                              source=f'{base}/{rank}/out-%r')

    for rank, _ in jobs:
        make_sources(base / str(rank), sizes[rank], tag=rank)
    with ThreadPoolExecutor(len(jobs)) as pool:
        for (rank, algorithm), result in zip(jobs, pool.map(run, jobs)):
            check_result(result, '4x4', algorithm, sizes=sizes[rank])
            check_target(f'{base}/{rank}/in-%r', sizes[rank], tag=rank)
    wait_tidy(torus, base)


@pytest.mark.parametrize('ranks', [(0, 0), (0, 9)], ids=['same node', 'different nodes'])
def test_the_same_target_at_once(torus, base, ranks):
    """Never two winners. If two requests arrive at different nodes, each may find that the other is already writing."""
    sizes = random_sizes(16, 'rivals', 20000)
    source = make_sources(base, sizes)
    for attempt in range(5):
        start = threading.Barrier(2)

        def run(rank, target=f'{base}/in-{attempt}-%r'):
            start.wait()
            return torus.ctl(rank, '--json', 'exchange', '--from', source, '--to', target)

        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(run, ranks))
        winners = [result for result in results if result.returncode == 0]
        for result in results:
            if result.returncode != 0:
                assert_refused(result, 'refused')
        assert len(winners) <= 1
        if ranks[0] == ranks[1]:
            assert len(winners) == 1, [result.stderr for result in results]
        if winners:
            check_target(f'{base}/in-{attempt}-%r', sizes)
        wait_tidy(torus, base)
        if not winners:
            assert not [path for path in listing(base) if path.startswith(f'in-{attempt}')]


def test_a_target_without_the_rank_is_refused_on_a_shared_file_system(torus, base):
    sizes = random_sizes(16, 'no rank', 3000)
    source = make_sources(base, sizes)
    before = listing(base)
    said = failure(torus, '--from', source, '--to', f'{base}/in')
    assert '%r' in said
    wait_tidy(torus, base)
    assert listing(base) == before


def test_unwritable_targets(torus, base):
    """A parent that is a file, or a folder that does not even let root write."""
    sizes = random_sizes(16, 'unwritable', 3000)
    source = make_sources(base, sizes)
    (base / 'file').write_text('a file')
    before = listing(base)
    for target, code in (f'{base}/file/in-%r', 'io'), (f'{base}/file', 'refused'):
        assert f'{base}/file' in failure(torus, '--from', source, '--to', target, code=code)
    wait_tidy(torus, base)
    assert listing(base) == before
    torus.exchange('at2', source=source, target=f'{base}/in-%r')
    check_target(f'{base}/in-%r', sizes)


def test_a_source_that_is_no_folder_or_file(torus, base):
    sizes = random_sizes(16, 'odd sources', 3000)
    source = make_sources(base, sizes)
    said = failure(torus, '--from', f'{base}/nowhere-%r', '--to', f'{base}/in-%r', code='io')
    assert f'{base}/nowhere-' in said
    os.unlink(f'{base}/out-4/7')
    os.mkdir(f'{base}/out-4/7')
    said = failure(torus, '--from', source, '--to', f'{base}/in-%r')
    assert f'{base}/out-4/7 ' in said
    os.rmdir(f'{base}/out-4/7')
    os.mkfifo(f'{base}/out-4/7')  # opening it must not block the daemon
    said = failure(torus, '--from', source, '--to', f'{base}/in-%r')
    assert f'{base}/out-4/7 ' in said
    wait_tidy(torus, base)


@pytest.mark.parametrize('how', ['plain', 'up', 'link', 'link in the middle', 'root itself'])
def test_targets_outside_the_data_roots(torus, root, base, tmp_path, how):
    sizes = random_sizes(16, 'outside', 3000)
    source = make_sources(base, sizes)
    outside = tmp_path / 'outside'
    outside.mkdir()
    (base / 'link').symlink_to(outside)
    (outside / 'deep').mkdir()
    target = {'plain': f'{outside}/in-%r', 'up': f'{base}/../../{outside.name}/in-%r',
              'link': f'{base}/link/in-%r', 'link in the middle': f'{base}/link/deep/new/in-%r',
              'root itself': str(root)}[how]
    wrong = {'code': 'usage', 'status': 2} if how == 'up' else {}  # it makes no sense anywhere
    failure(torus, '--from', source, '--to', target, **wrong)
    wait_tidy(torus, base)
    assert listing(outside) == ['deep']


@pytest.mark.parametrize('how', ['plain', 'up', 'link', 'link to a file'])
def test_sources_outside_the_data_roots(torus, base, tmp_path, how):
    sizes = random_sizes(16, 'outside', 3000)
    inside = make_sources(base, sizes)
    outside = tmp_path / 'secret'
    make_sources(outside, sizes)
    (base / 'link').symlink_to(outside)
    source = {'plain': f'{outside}/out-%r', 'link': f'{base}/link/out-%r', 'link to a file': inside,
              'up': f'{base}/../../../{outside.parent.name}/{outside.name}/out-%r'}[how]
    if how == 'link to a file':
        os.unlink(f'{base}/out-4/7')
        os.symlink(f'{outside}/out-4/7', f'{base}/out-4/7')
    code = 'io' if how == 'up' else 'refused'  # there is nothing of that name
    failure(torus, '--from', source, '--to', f'{base}/in-%r', code=code)
    wait_tidy(torus, base)
    assert not [path for path in listing(base) if path.startswith('in')]


def test_links_inside_the_data_roots_are_followed_for_reading(torus, base):
    sizes = random_sizes(16, 'links', 3000)
    make_sources(base / 'real', sizes)
    (base / 'absolute').symlink_to(base / 'real')
    (base / 'relative').symlink_to('real')
    for link in 'absolute', 'relative':
        torus.exchange('at2', source=f'{base}/{link}/out-%r', target=f'{base}/{link}-in-%r')
        check_target(f'{base}/{link}-in-%r', sizes)
        failure(torus, '--from', f'{base}/{link}/out-%r', '--to', f'{base}/{link}/in-%r')
    assert not [path for path in listing(base / 'real') if not path.startswith('out')]


def test_no_data_roots(loopback, tmp_path):
    torus = loopback('2x2')
    source = make_sources(tmp_path, random_sizes(4, 'none', 100))
    failure(torus, '--from', source, '--to', f'{tmp_path}/in-%r')
    torus.exchange('at2', 1000)


def is_open(node, path):
    """Whether the daemon has opened this file."""
    for fd in os.listdir(f'/proc/{node.pid}/fd'):
        try:
            if os.readlink(f'/proc/{node.pid}/fd/{fd}') == path:
                return True
        except FileNotFoundError:
            pass
    return False


def test_a_file_changed_during_the_exchange(torus, base):
    """No node gets a mixture of the old and the new file."""
    sizes = dict.fromkeys(random_sizes(16, 0), 200000)
    sizes.update({(s, d): 8_000_000 for s in (1, 2) for d in (8, 9)})
    source = make_sources(base, sizes)
    frozen = torus.node(10)
    frozen.send_signal(signal.SIGSTOP)  # the exchange cannot get far
    try:
        client = subprocess.Popen([torus.torusctl, '--socket', torus.node(0).socket, '--json', 'exchange',
                                   '--from', source, '--to', f'{base}/in-%r'], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for(lambda: is_open(torus.node(2), f'{base}/out-2/8'), 10)
        with open(f'{base}/out-2/8', 'r+b') as f:
            f.seek(7_999_000)
            f.write(b'changed')
    finally:
        frozen.send_signal(signal.SIGCONT)
    out, err = communicate(client, Patience(60))
    assert (client.returncode, error_code(out)) == (1, 'damaged'), err
    assert f'{base}/out-2/8 ' in err, err
    wait_tidy(torus, base)
    assert not [path for path in listing(base) if path.startswith('in')]
    torus.exchange('at2', source=source, target=f'{base}/in-%r')


def test_a_file_cut_short_during_the_exchange(torus, base):
    sizes = dict.fromkeys(random_sizes(16, 0), 100000)
    sizes[2, 8] = 8_000_000
    source = make_sources(base, sizes)
    frozen = torus.node(8)  # the receiver, so that the file is not read to its end before
    frozen.send_signal(signal.SIGSTOP)
    try:
        client = subprocess.Popen([torus.torusctl, '--socket', torus.node(0).socket, '--json', 'exchange',
                                   '--from', source, '--to', f'{base}/in-%r'], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for(lambda: is_open(torus.node(2), f'{base}/out-2/8'), 10)
        os.truncate(f'{base}/out-2/8', 1000)
    finally:
        frozen.send_signal(signal.SIGCONT)
    out, err = communicate(client, Patience(60))
    assert client.returncode == 1 and error_code(out) in ('io', 'damaged'), err  # shorter; changed
    assert f'{base}/out-2/8' in err, err
    wait_tidy(torus, base)
    assert not [path for path in listing(base) if path.startswith('in')]


def test_progress_is_not_shown_where_there_is_no_terminal(torus, base):
    sizes = random_sizes(16, 'quiet', 3000)
    result = torus.ctl(0, 'exchange', '--from', make_sources(base, sizes), '--to', f'{base}/in-%r',
                       check=True)
    assert result.stderr == '' and '\r' not in result.stdout


def test_a_failed_call_from_python(torus):
    with pytest.raises(CommandFailed) as caught:
        torus.exchange('at2', source='/nonexistent/%r', target='/nonexistent/in')
    assert caught.value.returncode == 1


def test_files_that_no_node_takes_are_counted(torus, base):
    """Files of higher ranks and other names, and folders, are counted; hidden files and those made by mkfs are not."""
    sizes = random_sizes(16, 'unused', 3000)
    source = make_sources(base, sizes)
    for path in 'out-0/16', 'out-0/007', 'out-0/part-00000', 'out-9/99999999999999999999':
        (base / path).write_bytes(b'1')
    for path in 'out-9/more', 'out-9/lost+found', 'out-9/.cache':
        (base / path).mkdir()
    (base / 'out-1/.hidden').write_bytes(b'1')
    result = torus.ctl(5, 'exchange', '--from', source, '--to', f'{base}/in-%r')
    assert result.returncode == 0 and 'missing files' not in result.stdout
    assert [line.split()[2] for line in result.stdout.splitlines() if line.startswith('unused files')] == ['5']
    assert 'warning: 5 source files were not sent' in result.stderr, result.stderr
    assert '0 to 15' in result.stderr and 'node 0: 3, node 9: 2' in result.stderr, result.stderr
    check_target(f'{base}/in-%r', sizes)


def test_nothing_is_named_after_a_node(torus, base):
    """With --missing-ok this is a success that moves no files, and says so."""
    for rank in range(16):
        (base / f'out-{rank}').mkdir()
        (base / f'out-{rank}' / f'part-{rank:05}').write_bytes(b'1')
    told = ['--json', 'exchange', '--from', f'{base}/out-%r', '--to', f'{base}/in-%r', '--missing-ok']
    result = torus.ctl(3, *told)
    shown = json.loads(result.stdout)
    assert (shown['missing_files'], shown['unused_files'], shown['bytes_delivered']) == (256, 16, 0)
    assert all((node['missing_files'], node['unused_files']) == (16, 1) for node in shown['per_node'])
    assert result.returncode == 0 and 'warning: 16 source files' in result.stderr


@pytest.mark.parametrize('operation,missing', [('allgather', 2), ('broadcast', 0)])
def test_files_of_one_block_a_node_are_counted(torus, base, operation, missing):
    """One folder with a file for each node serves all nodes. In a broadcast, only the sender's file matters."""
    (base / 'out').mkdir()
    for name in set(range(18)) - {3, 8}:
        (base / 'out' / str(name)).write_bytes(b'1')
    sender = ('--root', 5) if operation == 'broadcast' else ()
    result = torus.ctl(0, '--json', operation, *sender, '--from', f'{base}/out', '--to', f'{base}/in-%r',
                       '--missing-ok')
    assert result.returncode == 0, result.stderr
    shown = json.loads(result.stdout)
    assert shown.get('missing_files', 0) == missing
    assert shown['unused_files'] == 2 * (1 if operation == 'broadcast' else 16)
