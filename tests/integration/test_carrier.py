"""Both ends notice by the carrier that a cable was pulled."""

import pytest
from support.expect import check_result
from support.waiting import wait_for, wait_logged

pytestmark = pytest.mark.mininet


@pytest.fixture
def torus(mininet):
    # So long that the carrier is always noticed first.
    return mininet('3x3', bw=100, extra=('--silence-ms=600000',))


def link(torus, rank, port):
    return next(x for x in torus.links(rank)['links'] if x['port'] == port)


def wait_reason(torus, rank, port, reason):
    wait_for(lambda: link(torus, rank, port)['reason'] == reason, 20,
             lambda: f'node {rank}: {link(torus, rank, port)}, not "{reason}"')
    assert link(torus, rank, port)['up'] is False


def wait_told(torus, down):
    """Waits until all nodes know that exactly these links are down."""
    for node in torus.nodes:
        wait_for(lambda: [fault.split(' to ')[0] for fault in torus.status(node.rank)['faults']] == down,
                 20, lambda: f'node {node.rank}: {torus.status(node.rank)["faults"]}')


def check_works(torus):
    torus.wait_whole(20)
    check_result(torus.exchange('at2', 20000), '3x3', 'at2', 20000, bw=100)


def test_a_cable_is_pulled(torus):
    for time in 1, 2:
        torus.link_down(4, '+1')
        wait_reason(torus, 4, '+1', 'no carrier on n4-plus1, which is set down')
        wait_reason(torus, 5, '-1', 'no carrier on n5-minus1')
        wait_told(torus, ['link 4:+1'])
        torus.link_up(4, '+1')
        check_works(torus)
        assert (link(torus, 4, '+1')['connects'], link(torus, 5, '-1')['connects']) == (time + 1, time + 1)
    wait_logged(torus.node(4).log, 'port +1 to node 5: no carrier on n4-plus1')
    wait_logged(torus.node(5).log, 'port -1 to node 4: no carrier on n5-minus1')


def test_a_node_starts_while_a_cable_is_pulled(torus):
    """Both ends notice, even if the dialling end has never had this link up."""
    torus.link_down(4, '+1')
    wait_told(torus, ['link 4:+1'])
    for rank in 4, 5:
        torus.node(rank).restart()
    torus.wait_broken(20, ranks=(4, 5))
    wait_reason(torus, 5, '-1', 'no carrier on n5-minus1')
    wait_told(torus, ['link 4:+1'])
    torus.link_up(4, '+1')
    check_works(torus)


def test_an_address_is_removed(torus):
    node = torus.node(4)
    interface = node.interface('+1')
    address = node.host.intfs[torus.geometry.port(4, '+1').number].IP()
    node.run('ip', 'addr', 'del', f'{address}/31', 'dev', interface)
    wait_reason(torus, 4, '+1', f'the address of this link has been removed from {interface}')
    wait_told(torus, ['link 4:+1'])
    node.run('ip', 'addr', 'add', f'{address}/31', 'dev', interface)
    check_works(torus)


def test_a_stranger_at_another_interface(torus):
    """Node 5 listens on all interfaces. A stranger that connects must not change which carrier it watches."""
    node, port = torus.node(5), 7500
    own = node.addresses['-1'].rpartition(':')[0]
    for changed, address in (node, f'-1=0.0.0.0:{port}'), (torus.node(4), f'+1={own}:{port}'):
        changed.terminate()
        changed.daemon.command = [*changed.daemon.command, f'--port={address}']
        changed.start()
    torus.wait_whole(20)
    node.run('python3', '-c',
             f'import socket; socket.create_connection(("127.0.0.1", {port})).sendall(bytes(8) + b"no frame")')
    wait_logged(node.log, 'a connection that is not from the neighbour was rejected')
    torus.link_down(4, '+1')
    wait_reason(torus, 5, '-1', 'no carrier on n5-minus1')
    torus.link_up(4, '+1')
    check_works(torus)


def test_a_cable_that_flaps(torus):
    """After three losses a link must be quiet before it is used again; the log says so once."""
    def is_fault():
        return any(fault.startswith('port +1: the link to node 5 flaps, and is not used')
                   for fault in torus.status(4)['faults'])

    def flap():
        """What the link says when it is held, which status shows, too; or when it is used again."""
        connects = link(torus, 4, '+1')['connects']
        torus.link_down(4, '+1')
        wait_for(lambda: not link(torus, 5, '-1')['up'], 20)
        torus.link_up(4, '+1')

        def settled():
            said = link(torus, 4, '+1')
            return said if said['connects'] > connects or (said['state'] == 'held' and is_fault()) else None
        return wait_for(settled, 20)

    for flaps in range(1, 11):  # on a busy machine three of them may take too long
        said = flap()
        if said['state'] == 'held':
            break
    assert said['state'] == 'held' and 0 <= said['held_seconds'] <= 2, said
    assert said['reason'].startswith('flaps: used again when it has been quiet for ')
    check_works(torus)
    for rank, port, there in (4, '+1', 5), (5, '-1', 4):
        says = f'port {port}: the link to node {there} flaps, and is not used until it has been quiet for 2 s'
        assert wait_logged(torus.node(rank).log, says).count(says) <= flaps - 2
        assert link(torus, rank, port)['held_seconds'] is None
