"""The link states of the whole torus over the control socket: all of them, and then each change."""

import signal

from support.waiting import wait_for
from support.watcher import WATCH, Watcher
from support.wire import Fixed64, connect, frame, packed, send


def test_all_states_and_then_changes(loopback):
    torus = loopback('4')
    everything = {rank: 3 for rank in range(4)}
    watchers = [Watcher(torus, rank) for rank in (0, 2)]
    for watcher, rank in zip(watchers, (0, 2)):
        watcher.hear_until(everything)
        first = watcher.messages[0]
        assert first[1] == [1] and first[2] == [b'4'] and first.get(3, [0]) == [rank]
        assert len(packed(first[5][0])) == 4
    torus.node(1).daemon.send_signal(signal.SIGKILL)
    torus.node(1).daemon.wait()
    for watcher in watchers:
        watcher.hear_until({0: 2, 1: 0, 2: 1, 3: 3})
        assert all(1 not in message for message in watcher.messages[1:])
    torus.node(1).start()
    for watcher in watchers:
        watcher.hear_until(everything)


def confirm(digest):
    return frame({10: {1: Fixed64(digest)}})


def test_confirmed_link_states_are_told_to_all_nodes(loopback):
    torus = loopback('4')
    everything = {rank: 3 for rank in range(4)}
    first, second, other = [Watcher(torus, rank) for rank in (0, 2, 2)]
    for watcher in first, second, other:
        watcher.hear_until(everything)
        assert watcher.messages[0][8] == [1] and not watcher.confirmed
    digest = 0xfedcba9876543210
    send(second.socket, confirm(digest))
    while first.confirmed != {2: digest}:
        first.hear()
    send(first.socket, confirm(77))
    while other.confirmed != {0: 77}:
        other.hear()
    send(second.socket, confirm(digest + 1))
    while first.confirmed != {2: digest + 1}:
        first.hear()
    second.socket.close()  # torus-routed has ended
    while first.confirmed != {2: 0}:
        first.hear()
    assert first.up == everything
    other.socket.close()  # it has confirmed nothing
    first.socket.close()
    late = Watcher(torus, 1)
    late.hear_until(everything)
    while any(late.confirmed.values()):
        late.hear()


def test_rates_are_told_with_the_links(loopback):
    """A host whose torus-routed does not know rates may not be on the way of others, or packets could go in a loop."""
    torus = loopback('4', bw=20)
    first, older = Watcher(torus, 0), Watcher(torus, 2)
    while first.rates != {rank: [20000, 20000] for rank in range(4)}:
        first.hear()
    for by_rates in True, False:
        older.tell_routes(by_rates=by_rates)
        while first.forwards[2] != by_rates:
            first.hear()


def test_no_rates_count_until_all_nodes_know_them(loopback):
    torus = loopback('4', bw=20, extra=lambda rank: (f'--protocol-minor={5 if rank == 1 else 6}',))
    first, older = Watcher(torus, 0), Watcher(torus, 2)
    first.hear_until({rank: 3 for rank in range(4)})
    older.tell_routes(by_rates=False)
    while not first.forwards[2]:
        first.hear()
    assert not any(map(any, first.rates.values()))
    torus.node(1).daemon.send_signal(signal.SIGTERM)
    torus.node(1).daemon.wait()
    while first.forwards[2] or first.rates[3] != [20000, 20000]:
        first.hear()


def test_only_watchers_confirm(loopback):
    torus = loopback('2')
    with connect(torus.node(0).socket, 30) as client:
        send(client, confirm(1))
        assert b'only a client that watches the links can confirm them' in client.recv(4096)


def test_watchers_are_bounded(loopback):
    torus = loopback('2')
    watchers = [Watcher(torus, 0) for _ in range(16)]
    for watcher in watchers:
        watcher.hear()
    with connect(torus.node(0).socket, 30) as one_more:
        send(one_more, WATCH)
        assert b'16 clients watch the links already' in one_more.recv(4096)
    watchers.pop().socket.close()

    def has_place():
        with connect(torus.node(0).socket, 30) as again:
            send(again, WATCH)
            return b'clients watch' not in again.recv(4096)
    wait_for(has_place)


def test_a_watcher_makes_no_other_request(loopback):
    torus = loopback('2')
    watcher = Watcher(torus, 0)
    watcher.hear()
    send(watcher.socket, frame({1: {}}))
    assert b'one request at a time' in watcher.socket.recv(4096)
