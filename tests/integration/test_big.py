"""Large files between daemons that are allowed little memory."""

import shutil
import time

import pytest
from support.expect import check_result
from support.memory import MemoryWatch
from support.trees import check_target, make_sources, wait_tidy

pytestmark = pytest.mark.full

MIB = 1 << 20
BUDGET, LIMIT = '16MiB', 30 * MIB


@pytest.fixture
def disk(tmp_path):
    """A folder with room for 1.5 GiB, emptied afterwards."""
    free = shutil.disk_usage(tmp_path).free
    if free < 3 << 30:
        pytest.skip(f'{free >> 20} MiB are free at {tmp_path}')
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.parametrize('dims,algorithm,size', [
    ('4x4', 'at2', 3 * MIB), *(pytest.param(*values, marks=pytest.mark.full) for values in (
        ('2x2', 'at2', 40 * MIB), ('1x4', 'ar', 20 * MIB)))])  # more bytes, by the same code
def test_files(loopback, disk, dims, algorithm, size, capsys):
    torus = loopback(dims, data_roots=(str(disk),), memory=BUDGET)
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
    wait_tidy(torus, disk)


@pytest.mark.slow
@pytest.mark.parametrize('dims,algorithm,size', [
    ('4x4', 'at2', '4MiB'), ('4x4', 'stream', '3MiB'),
    # within the same budget, by more nodes, and by the engine of at2
    *(pytest.param(*values, marks=pytest.mark.full) for values in (
        ('4x4', 'direct', '3MiB'), ('3x4x5', 'direct', '700KiB')))])
def test_patterns(loopback, dims, algorithm, size, capsys):
    torus = loopback(dims, memory=BUDGET)
    with MemoryWatch(torus) as watch:
        result = torus.exchange(algorithm, size)
    check_result(result, dims, algorithm, int(size[:-3]) * (MIB if size.endswith('MiB') else 1024))
    most = max(watch.most.values())
    with capsys.disabled():
        print(f'\n{dims} {algorithm}, pattern of {size}: {result["seconds"]:.1f} s, rounds '
              f'{result["rounds"]}, most memory of a daemon {most / MIB:.1f} MiB')
    assert most < LIMIT


@pytest.mark.slow
def test_memory_does_not_grow_with_the_blocks(loopback, capsys):
    """120 MiB and 1.4 GiB take the same memory, also when streaming."""
    most = {}
    for size in 512, 6144:
        torus = loopback('4x4', memory=BUDGET)
        with MemoryWatch(torus) as watch:
            result = torus.exchange('stream', f'{size}KiB')
        check_result(result, '4x4', 'stream', size * 1024)
        most[size] = max(watch.most.values())
        with capsys.disabled():
            print(f'\n4x4 stream, blocks of {size} KiB: {result["seconds"]:.1f} s, rounds '
                  f'{result["rounds"]}, most memory of a daemon {most[size] / MIB:.1f} MiB')
        torus.stop()
    assert most[6144] < LIMIT and most[6144] < 1.5 * most[512] + 8 * MIB, most


@pytest.mark.memory
@pytest.mark.parametrize('dims,algorithm', [('4x4', 'at2'), ('4x4', 'stream'), ('1x6', 'ar')])
def test_a_slow_node_is_felt_by_the_sources(loopback, dims, algorithm):
    """One daemon stops for a while: the memory of the others does not grow."""
    from support.background import LongExchange, stopped
    torus = loopback(dims, memory=BUDGET)
    with LongExchange(torus, algorithm=algorithm) as client, MemoryWatch(torus) as watch:
        for rank in 1, 3, 1:
            with stopped(torus.node(rank)):
                time.sleep(1.0)  # well below the time after which it counts as gone
        assert client.process.poll() is None, client.end()
    assert max(watch.most.values()) < LIMIT
