"""Daemons are killed after the decision, while they put their outputs in place: the client hears of it at once, not
after its timeout, and torusctl status shows it; when the daemons are back, all outputs are in place."""

import json
import os
from pathlib import Path

import pytest
from support.background import Client
from support.trees import check_target, leftovers, make_sources, random_sizes
from support.waiting import exchanges, wait_for
from torus_net.process import find_program

LIBRARY = Path(find_program('torusd')).parent / 'tests' / 'support' / 'libslow_disk.so'
DIMS, NODES, ROOT = '3x4', 12, 5
IN_DOUBT = 4  # exit status of torusctl

pytestmark = [pytest.mark.skipif(not LIBRARY.exists(), reason=f'{LIBRARY} has not been built'), pytest.mark.full]


class Decided:
    """A torus with an exchange that is decided, and nodes whose disks hang while they put their outputs in place."""

    def __init__(self, loopback, base, *victims):
        self.base, self.victims = base, victims
        self.control = base / 'hangs'
        self.control.write_text('#1 rename\n')
        words = ':'.join(f'/.in-{rank}.torusd' for rank in victims)
        self.torus = loopback(DIMS, data_roots=(str(base),), wrap=[
            'env', f'LD_PRELOAD={LIBRARY}', 'ASAN_OPTIONS=verify_asan_link_order=0',
            f'SLOW_DISK={self.control}', f'SLOW_DISK_IN={words}', 'SLOW_DISK_MS=3600000'])
        self.sizes = random_sizes(NODES, 'unconfirmed', 20000)
        self.target = f'{base}/in-%r'
        self.client = Client(self.torus, '--json', 'exchange', '--from', make_sources(base, self.sizes), '--to',
                             self.target, '--timeout', 3600, rank=ROOT)

    def __enter__(self):
        wait_for(self.hang, 60)
        return self

    def __exit__(self, *_):
        for rank in self.victims:
            self.torus.node(rank).kill()  # its disk would hang for an hour
        self.client.__exit__()

    def hang(self):
        return len(self.control.read_text().splitlines()) == 1 + len(self.victims)

    def folders(self):
        return [rank for rank in range(NODES) if os.path.isdir(self.target.replace('%r', str(rank)))]

    def wait_placed(self):
        """Waits until all nodes except the victims have put their outputs in place."""
        wait_for(lambda: self.folders() == [rank for rank in range(NODES) if rank not in self.victims])

    def answer(self):
        """The client's error, which it gets long before its timeout."""
        code, out, err = self.client.end(60)
        error = json.loads(out)['error']
        assert (code, error['code']) == (IN_DOUBT, 'in doubt') and error['text'] in err, (code, out, err)
        return error['text']

    def unconfirmed(self):
        return self.torus.status(ROOT)['unconfirmed']

    def restart_and_check(self, *ranks):
        """All nodes work again: all outputs are in place, and no record is left."""
        self.control.unlink()
        for rank in ranks:
            self.torus.node(rank).start()
        self.torus.wait_whole(40)
        wait_for(lambda: not leftovers(self.torus, self.base) and not self.unconfirmed(), 40,
                 lambda: f'{leftovers(self.torus, self.base)}, {self.unconfirmed()}')
        check_target(self.target, self.sizes)
        assert [(x['state'], x['reason']) for x in exchanges(self.torus, ROOT)] in ([('committed', '')], [])


@pytest.mark.parametrize('victims,said', [
    ([6], 'committed, but node 6 (1,2) went down before it confirmed that its output is in place; it finishes by '
          'itself when it is back'),
    ([1, 4], 'committed, but nodes 1 (0,1) and 4 (1,0) went down before they confirmed that their output is in '
             'place; they finish by themselves when they are back')], ids=['one', 'two'])
def test_nodes_die_before_they_confirm(loopback, tmp_path, victims, said):
    with Decided(loopback, tmp_path, *victims) as decided:
        decided.wait_placed()
        for rank in victims:
            decided.torus.node(rank).kill()
        assert decided.answer() == said
        assert len(decided.folders()) == NODES - len(victims)
        record, = decided.unconfirmed()
        activity, = exchanges(decided.torus, ROOT)
        assert record == {'id': activity['id'], 'nodes': victims, 'count': len(victims), 'reason': said}
        assert (activity['state'], activity['reason']) == ('committed', said)
        shown = decided.torus.ctl(ROOT, 'status').stdout
        assert said in shown, shown
        for rank in sorted({*range(NODES)} - {*victims}):
            wait_for(lambda rank=rank: decided.torus.status(rank)['memory']['reserved_bytes'] == 0)
        decided.restart_and_check(*victims)


def test_the_root_dies_before_another_node_confirms(loopback, tmp_path):
    """The client hears of that at once. After its restart, the root reminds the node that has not confirmed."""
    with Decided(loopback, tmp_path, 6) as decided:
        decided.wait_placed()
        decided.torus.node(ROOT).kill()
        assert 'it is not known here whether the exchange was committed' in decided.answer()
        decided.torus.node(ROOT).start()
        decided.torus.wait_whole(40)
        wait_for(lambda: [x['nodes'] for x in decided.unconfirmed()] == [[6]])
        assert 'node 6 (1,2) has not confirmed' in decided.unconfirmed()[0]['reason']
        decided.torus.node(6).kill()
        wait_for(lambda: 'node 6 (1,2) went down before it confirmed' in decided.unconfirmed()[0]['reason'])
        decided.restart_and_check(6)
