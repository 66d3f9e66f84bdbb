"""Disks that hang: no link closes, every daemon keeps answering, and all disk operations are done in the end."""

import re
import threading
from pathlib import Path

import pytest
from support.background import Client
from support.errors import error_code
from support.trees import check_target, make_sources, random_sizes, wait_tidy
from support.waiting import wait_for
from torus_net.patience import SLOWNESS
from torus_net.process import find_program

pytestmark = pytest.mark.full

SILENCE_MS = 5000  # ROUTER_STALL
# The library reports whether a call has blocked the loop, however briefly it hangs. The long time is longer than a
# neighbour may be silent.
HANGS_MS = [int(1000 * SLOWNESS), pytest.param(int(1.6 * SILENCE_MS * SLOWNESS), marks=pytest.mark.full)]
LIBRARY = Path(find_program('torusd')).parent / 'tests' / 'support' / 'libslow_disk.so'


class Watch:
    """In this block, all daemons are asked for their status again and again."""

    def __init__(self, torus):
        self.torus = torus
        self.over = threading.Event()
        self.problems = []
        self.threads = [threading.Thread(target=self._watch, args=(rank,))
                        for rank in range(torus.geometry.nodes)]

    def _watch(self, rank):
        while not self.over.wait(0.2):
            try:
                result = self.torus.ctl(rank, '--json', 'status', timeout=SILENCE_MS / 1000)
                if result.returncode != 0:
                    self.problems.append(f'node {rank}: {result.stderr}')
            except Exception as e:  # it is shown in the thread that waits
                self.problems.append(f'node {rank} does not answer: {e}')

    def __enter__(self):
        self.before = [len(node.log()) for node in self.torus.nodes]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def check(self):
        assert not self.problems, self.problems
        for node, before in zip(self.torus.nodes, self.before):
            links = [line for line in node.log()[before:].splitlines()
                     if re.search(r' port [+-]\d', line)]
            assert not links, links


@pytest.mark.slow
@pytest.mark.skipif(not LIBRARY.exists(), reason=f'{LIBRARY} has not been built')
@pytest.mark.parametrize('hang_ms', HANGS_MS, ids=['short', 'long'])
def test_disks_that_hang(loopback, tmp_path, hang_ms):
    """The state folder of node 1, the target of node 2, and the source of node 3 hang; then the removal of the files
    that node 2 has written."""
    control = tmp_path / 'hangs'
    words = ('/1.state', '/.in-2.torusd', '/out-3')
    torus = loopback('2x2', data_roots=(str(tmp_path),), wrap=[
        'env', f'LD_PRELOAD={LIBRARY}', 'ASAN_OPTIONS=verify_asan_link_order=0',
        f'SLOW_DISK={control}', f'SLOW_DISK_IN={":".join(words)}', f'SLOW_DISK_MS={hang_ms}'])
    sizes = random_sizes(4, 'slow', 300000)
    source = make_sources(tmp_path, sizes)
    run = ['exchange', '--algorithm', 'at2', '--timeout', 3000, '--from', source, '--to',
           f'{tmp_path}/in-%r']

    control.touch()
    with Watch(torus) as watch:
        with Client(torus, *run, rank=0) as client:
            code, _, err = client.end(300)
    watch.check()
    assert code == 0, err
    check_target(f'{tmp_path}/in-%r', sizes)
    wait_tidy(torus, tmp_path, 60)
    hung = [line.split(' ', 2) for line in control.read_text().splitlines()]
    assert not [line for line in hung if line[0] != 'job'], 'a call has held up the loop'
    seen = {(word, call) for _, call, path in hung for word in words if word in path}
    state, target, files = words
    assert seen >= {(state, call) for call in ('open', 'write', 'fsync', 'rename', 'unlink')}
    assert seen >= {(target, call) for call in ('mkdir', 'open', 'write', 'writeback', 'fsync', 'stat',
                                                'rename')}
    assert seen >= {(files, call) for call in ('open', 'stat', 'read')}

    # The exchange is refused, and names the missing file. Node 2 must remove its leftovers in the meantime.
    missing = tmp_path / 'out-1' / '0'
    content = missing.read_bytes()
    missing.unlink()
    for rank in range(4):
        (tmp_path / f'in-{rank}').rename(tmp_path / f'first-{rank}')
    with Watch(torus) as watch:
        with Client(torus, '--json', *run, rank=2) as client:
            code, out, err = client.end(300)
        assert (code, error_code(out)) == (1, 'refused') and str(missing) in err, err
        missing.write_bytes(content)
        with Client(torus, *run, rank=2) as client:  # at once
            code, _, err = client.end(300)
    watch.check()
    assert code == 0, err
    check_target(f'{tmp_path}/in-%r', sizes)
    wait_tidy(torus, tmp_path, 60)
    hung = [line.split(' ', 2) for line in control.read_text().splitlines()]
    assert [line for line in hung if line[:2] == ['job', 'unlink'] and target in line[2]], hung
    assert not [line for line in hung if line[0] != 'job'], 'a call has held up the loop'


@pytest.mark.slow
@pytest.mark.skipif(not LIBRARY.exists(), reason=f'{LIBRARY} has not been built')
@pytest.mark.parametrize('hang_ms', HANGS_MS, ids=['short', 'long'])
def test_a_log_that_hangs(loopback, tmp_path, hang_ms):
    """The lines of the log are late; nothing else is."""
    control = tmp_path / 'hangs'
    torus = loopback('2x2', wrap=[
        'env', f'LD_PRELOAD={LIBRARY}', 'ASAN_OPTIONS=verify_asan_link_order=0',
        f'SLOW_DISK={control}', 'SLOW_DISK_IN=/1.log', f'SLOW_DISK_MS={hang_ms}'])
    control.touch()
    with Watch(torus) as watch:
        ids = [torus.exchange('at2', 1000, rank=1)['id'] for _ in range(3)]
        wait_for(lambda: all(id in torus.node(1).log() for id in ids), 60)
    watch.check()
    (who, call, _), = [line.split(' ', 2) for line in control.read_text().splitlines()]
    assert (who, call) == ('job', 'log')
