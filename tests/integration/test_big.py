"""Large files between daemons that are allowed little memory."""

import shutil
import time

import pytest
from support.expect import check_result
from support.memory import MemoryWatch
from support.trees import check_target, leftovers, make_sources

MIB = 1 << 20
LIMIT = 128 * MIB


@pytest.fixture
def disk(tmp_path):
    """A folder with room for 6 GiB, emptied afterwards."""
    free = shutil.disk_usage(tmp_path).free
    if free < 8 << 30:
        pytest.skip(f'{free >> 20} MiB are free at {tmp_path}')
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.parametrize('dims,algorithm,size', [
    ('4x4', 'at2', 8 * MIB), ('2x2', 'at2', 160 * MIB), ('1x4', 'ar', 64 * MIB)])
def test_files(loopback, disk, dims, algorithm, size, capsys):
    torus = loopback(dims, data_roots=(str(disk),))
    nodes = torus.geometry.nodes
    sizes = {(s, d): size for s in range(nodes) for d in range(nodes)}
    source, target = make_sources(disk, sizes), f'{disk}/in-%r'
    before = [node.memory()['RssAnon'] for node in torus.nodes]
    with MemoryWatch(torus) as watch:
        began = time.monotonic()
        result = torus.exchange(algorithm, source=source, target=target)
        took = time.monotonic() - began
    check_result(result, dims, algorithm, sizes=sizes)
    assert watch.samples > 10
    most = max(watch.most.values())
    with capsys.disabled():
        print(f'\n{dims} {algorithm}, {nodes} x {nodes} files of {size // MIB} MiB: {took:.1f} s, '
              f'rounds {result["rounds"]}, most memory of a daemon {most / MIB:.1f} MiB '
              f'(before: {max(before) / MIB:.1f})')
    assert most < LIMIT, {rank: n / MIB for rank, n in watch.most.items()}
    check_target(target, sizes)
    assert leftovers(torus, disk) == []


@pytest.mark.slow
@pytest.mark.parametrize('dims,algorithm,size', [
    ('4x4', 'at2', '12MiB'), ('4x4', 'direct', '9MiB'), ('3x4x5', 'direct', '1MiB'),
    ('4x4', 'stream', '9MiB')])
def test_patterns(loopback, dims, algorithm, size, capsys):
    torus = loopback(dims)
    with MemoryWatch(torus) as watch:
        result = torus.exchange(algorithm, size)
    check_result(result, dims, algorithm, int(size[:-3]) * MIB)
    most = max(watch.most.values())
    with capsys.disabled():
        print(f'\n{dims} {algorithm}, pattern of {size}: {result["seconds"]:.1f} s, rounds '
              f'{result["rounds"]}, most memory of a daemon {most / MIB:.1f} MiB')
    assert most < LIMIT


@pytest.mark.slow
def test_memory_does_not_grow_with_the_blocks(loopback, capsys):
    """Without steps, too: 240 MiB and 3.75 GiB take the same."""
    most = {}
    for size in 1, 16:
        torus = loopback('4x4')
        with MemoryWatch(torus) as watch:
            result = torus.exchange('stream', f'{size}MiB')
        check_result(result, '4x4', 'stream', size * MIB)
        most[size] = max(watch.most.values())
        with capsys.disabled():
            print(f'\n4x4 stream, blocks of {size} MiB: {result["seconds"]:.1f} s, rounds '
                  f'{result["rounds"]}, most memory of a daemon {most[size] / MIB:.1f} MiB')
        torus.stop()
    assert most[16] < LIMIT and most[16] < 1.5 * most[1] + 8 * MIB, most


@pytest.mark.parametrize('dims,algorithm', [('4x4', 'at2'), ('4x4', 'stream'), ('1x6', 'ar')])
def test_a_slow_node_is_felt_by_the_sources(loopback, dims, algorithm):
    """One daemon stops for a while: nobody fills up meanwhile."""
    from support.background import LongExchange, stopped
    torus = loopback(dims)
    with LongExchange(torus, algorithm=algorithm) as client, MemoryWatch(torus) as watch:
        for rank in 1, 3, 1:
            with stopped(torus.node(rank)):
                time.sleep(1.0)  # well below the time after which it counts as gone
        assert client.process.poll() is None, client.end()
    assert max(watch.most.values()) < LIMIT
