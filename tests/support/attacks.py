"""Data that tests of attacks send, and checks of a torus afterwards."""

import time

from .expect import check_result
from .waiting import wait_for
from .wire import peer

ID = '1-00000001-1'


def prepare(id=ID, root=1, dims='4x4', algorithm='at2', block_bytes=100, source='', target='', round_bytes=100,
            timeout_ms=1000):
    spec = {1: algorithm, 2: 'stepped', 6: block_bytes, 7: source, 8: target, 11: timeout_ms}
    return peer('prepare', {1: 77, 2: id, 3: root, 4: dims, 5: spec, 6: round_bytes, 7: 1})


def still_works_quietly(torus, rank=0):
    """Checks that the torus is whole again, an exchange is right, and no frames circulate between the nodes."""
    torus.wait_whole(30)
    check_result(torus.exchange('at2', 30000, rank=rank), '4x4', 'at2', 30000)
    wait_for(lambda: is_quiet(torus), 10, 'the links do not fall silent')


def is_quiet(torus):
    """Whether the links carry only heartbeats for a moment."""
    def sent():
        return sum(link['tx_bytes'] for node in torus.nodes[::3]
                   for link in torus.links(node.rank)['links'])
    begin, before = time.monotonic(), sent()
    return sent() - before < 1500 + 10000 * (time.monotonic() - begin)


def connects(torus, *ranks):
    """How often each link of these nodes has come up; of all nodes without `ranks`."""
    return [link['connects'] for rank in ranks or range(len(torus.nodes)) for link in torus.links(rank)['links']]


def log_from_now(torus, rank):
    """A function that returns what the node logs from now on. An attacker may notice the rejection before the
    node has logged it."""
    begin = len(torus.node(rank).log())
    return lambda: torus.node(rank).log()[begin:]
