"""What a plan was made with is told: rates of links that torusd has, and the lower bounds with and without them."""

import json
import os
import subprocess

import pytest
from support.programs import run_each
from support.waiting import wait_for
from torus_net.process import find_program

DIMS, MBIT, BLOCK = '3x3', 100, 65536
SLOW = '4:-1=0.2'
OF_RATES = {'rates', 'full_bits_per_second', 'equal_bound_seconds', 'link_rates'}


def options(slow):
    return lambda rank: ['--link-mbit', f'-1={MBIT // 5}/{MBIT}'] if slow and rank == 4 else []


@pytest.fixture
def uneven(loopback, root):
    """Node 4 sends by port -1 at a fifth of the rate of all other channels."""
    torus = loopback(DIMS, bw=MBIT, extra=options(True), data_roots=(str(root),))
    wait_for(lambda: 'link_rates' in dry_run(torus), 30)
    return torus


def dry_run(torus, *more):
    return torus.json(0, 'exchange', '--block-size', BLOCK, '--dry-run', *more)


def bounds(*rate):
    """What `torusctl bounds` says of the same network, which needs no daemon."""
    done = subprocess.run([find_program('torusctl'), 'bounds', '--dims', DIMS, *rate, '--json'], stdout=subprocess.PIPE,
                          check=True)
    return json.loads(done.stdout)


def seconds(blocks, block_bytes=BLOCK, mbit=MBIT):
    return pytest.approx(blocks * block_bytes * 8 / (mbit * 1e6), rel=1e-6)


def check(result, blocks, equal):
    assert result['rates'] == SLOW and result['full_bits_per_second'] == MBIT * 1e6
    assert result['bound_seconds'] == seconds(blocks)
    assert result['equal_bound_seconds'] == seconds(equal)
    assert result['bound_seconds'] > result['equal_bound_seconds']


def test_exchange(uneven):
    rated, equal = bounds('--rate', SLOW)['rated'], bounds()['bounds']
    links = dry_run(uneven)['link_rates']
    check(links, rated['all_port'], equal['all_port'])
    result = uneven.json(0, 'exchange', '--block-size', BLOCK, '--explain', '--mode', 'streaming', '--algorithm', 'stream')
    check(result, rated['all_port'], equal['all_port'])
    assert result['link_rates'] == links and result['bound_of'] == 'all-port, at these rates'
    assert result['efficiency'] == pytest.approx(result['bound_seconds'] / result['seconds'])
    [found] = [one['seconds'] for one in result['candidates'] if one['algorithm'] == 'stream']
    assert result['algorithm'] == 'detour' and result['predicted_seconds'] == found
    # An algorithm of the papers takes all links for equal, and so does its bound.
    named = uneven.json(0, 'exchange', '--block-size', BLOCK, '--algorithm', 'direct')
    assert not OF_RATES & set(named) and named['bound_seconds'] == seconds(equal['all_port'])


def test_text(uneven):
    text = uneven.ctl(0, 'exchange', '--block-size', BLOCK, '--algorithm', 'stream', '--explain', check=True).stdout
    predicted, report = text.split('\n\nexchange')
    for part in predicted, report:
        lines = [' '.join(line.split()) for line in part.splitlines()]
        assert f'rates of links {SLOW}' in lines and f'fastest links {MBIT} Mbit/s' in lines
        assert any(line.startswith('if links were equal ') for line in lines)
        assert any(line.startswith('lower bound ') for line in lines)
    assert 'predicted' in report


def test_allgather_and_broadcast(uneven):
    rated = bounds('--rate', SLOW)['rated']
    equal = bounds()['broadcasts']
    result = uneven.json(0, 'allgather', '--block-size', BLOCK, '--algorithm', 'disjoint')
    check(result, rated['allgather'], 8 / 4)
    assert result['bound_of'] == 'all-to-all broadcast, all-port, at these rates'
    # The cut around node 4, which is the one that sends less, or around its neighbour, which receives less.
    [slow] = [link['neighbour'] for link in uneven.links(4)['links'] if link['port'] == '-1']
    for root in 4, 0:
        result = uneven.json(0, 'broadcast', '--block-size', BLOCK, '--root', root)
        check(result, 1 / 3.2, equal['in_parts'])
        assert result['bound_of'] == 'one block, at these rates'
    result = uneven.json(0, 'broadcast', '--block-size', BLOCK, '--root', slow)
    assert result['rates'] == SLOW and result['bound_seconds'] == result['equal_bound_seconds']


def test_bench(uneven):
    rated = bounds('--rate', SLOW)['rated']['all_port']
    results = uneven.json(0, 'bench', '--algorithms', 'auto,direct', '--sizes', BLOCK, '--repeat', 2, '--mode',
                          'streaming')['results']
    by_name = {one['algorithm']: one for one in results}
    check(by_name['auto'], rated, bounds()['bounds']['all_port'])
    assert not OF_RATES & set(by_name['direct'])
    text = uneven.ctl(0, 'bench', '--algorithms', 'auto', '--sizes', BLOCK, '--repeat', 2, check=True).stdout
    assert SLOW in text and 'if links were equal' in text


def source(base):
    """A file of 2 MiB that no other copy has moved."""
    path = base / 'source'
    path.mkdir(exist_ok=True)
    (path / 'data').write_bytes(os.urandom(2 << 20))
    return path


def test_copy(uneven, base):
    command = 'copy', source(base), '--to'
    result = uneven.json(4, *command, f'{base}/one-%r')
    assert result['bytes_sent'] == 2 << 20 and result['algorithm']
    assert result['rates'] == SLOW and result['full_bits_per_second'] == MBIT * 1e6
    assert result['bound_seconds'] == seconds(1 / 3.2, 2 << 20)
    assert result['equal_bound_seconds'] == seconds(1 / 4, 2 << 20)
    text = uneven.ctl(4, *command, f'{base}/two-%r', check=True).stdout
    assert f'\nrates of links: {SLOW} (fastest: {MBIT} Mbit/s); lower bound 52.4 ms, 41.9 ms if links were equal\n' in text
    # What not all nodes lack, or get, has another bound, which is not known.
    for more in ['--nodes', '1,2'], ['--nodes', '5']:
        some = uneven.json(4, *command, f'{base}/some{len(more[1])}-%r', *more)
        assert some['rates'] == SLOW and some['bound_seconds'] is None
    gathered = uneven.json(0, 'gather', f'{base}/one-%r', '--to', f'{base}/all/%r', '--missing-ok')
    assert gathered['rates'] == SLOW and 'bound_seconds' not in gathered


def perf(torus, arguments):
    first, *_ = run_each(torus, f'exec {torus.torusctl} perf {arguments}')
    return first.stdout


def test_programs(uneven):
    rated, equal = bounds('--rate', SLOW)['rated'], bounds()['bounds']
    for operation, at, at_equal in (('alltoall', rated['all_port'], equal['all_port']), ('allgather', 8 / 3.2, 8 / 4),
                                    ('broadcast --root 4', 1 / 3.2, 1 / 4), ('reduce --root 0', 1 / 3.2, 1 / 4)):
        [row] = json.loads(perf(uneven, f'{operation} --sizes {BLOCK} --repeat 2 --pause 0 --json'))['results']
        check(row, at, at_equal)
    [row] = json.loads(perf(uneven, f'alltoall --part 0 --sizes {BLOCK} --repeat 2 --pause 0 --json'))['results']
    assert row['rates'] == SLOW and row['bound_seconds'] is None
    text = perf(uneven, f'alltoall --sizes {BLOCK} --repeat 2 --pause 0')
    assert SLOW in text and 'if links were equal' in text


def test_equal_links(loopback, root, base):
    """Nothing new is said."""
    torus = loopback(DIMS, bw=MBIT, data_roots=(str(root),))
    assert not OF_RATES & set(dry_run(torus))
    for command in (('exchange', '--explain'), ('allgather',), ('broadcast', '--root', 1)):
        assert not OF_RATES & set(torus.json(0, *command, '--block-size', BLOCK)), command
        text = torus.ctl(0, *command, '--block-size', BLOCK, check=True).stdout
        assert 'rates' not in text and 'equal' not in text
    command = 'copy', source(base), '--to'
    assert not OF_RATES & set(torus.json(0, *command, f'{base}/one-%r'))
    assert 'rates' not in torus.ctl(0, *command, f'{base}/two-%r', check=True).stdout
    text = perf(torus, f'alltoall --sizes {BLOCK} --repeat 2 --pause 0')
    assert 'equal' not in text and 'rates' not in text
    assert 'equal' not in torus.ctl(0, 'bench', '--algorithms', 'auto', '--sizes', BLOCK, '--repeat', 2).stdout


@pytest.mark.parametrize('command', ['bounds', 'plan', 'predict --block-size 1', 'simulate'])
def test_files_of_rates(command, tmp_path):
    """An error names the option, the file and the line."""
    file = tmp_path / 'rates'
    for text, said in (None, 'No such file'), ('4:-1=0.5\n4:-1=2\n', "line 2: '4:-1=2'"):
        if text is not None:
            file.write_text(text)
        name, *more = command.split()
        done = subprocess.run([find_program('torusctl'), name, '--dims', DIMS, *more, '--rates', file],
                              stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode != 0 and f'--rates: {file}' in done.stderr and said in done.stderr
