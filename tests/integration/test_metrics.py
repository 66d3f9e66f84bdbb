"""torusd --metrics: what monitoring reads of real daemons."""

import os
import re
import signal
import subprocess

import pytest
from support.background import LongExchange
from support.copies import Place
from support.openmetrics import Metrics, get, parse
from support.users import free_port
from support.waiting import wait_for, wait_logged
from support.watcher import Watcher
from torus_net import CHECKOUT, find_program
from torus_net.patience import Patience, run, wait

DOCUMENT = CHECKOUT / 'daemon' / 'doc' / 'monitoring.md'
ON = ('--metrics', '127.0.0.1:0')
LINKS = 2 * 16


@pytest.fixture(scope='module')
def root(tmp_path_factory):
    return tmp_path_factory.mktemp('root')


@pytest.fixture
def torus(shared, root):
    return shared('4x4', extra=ON, data_roots=root)


def address(torus, rank=0):
    return torus.status(rank)['metrics']


def test_every_node_serves_openmetrics(torus):
    for node in torus.nodes:
        status, headers, text = get(address(torus, node.rank), Accept='application/openmetrics-text;version=1.0.0')
        assert status == 200 and headers['Connection'] == 'close'
        assert headers['Content-Type'] == 'application/openmetrics-text; version=1.0.0; charset=utf-8'
        families = parse(text)
        assert families['torus_nodes'].samples == {('torus_nodes',): 16}
        info = dict(next(iter(families['torus_node'].samples))[1:])
        assert info['rank'] == str(node.rank) and info['torus'] == '4x4'
        assert info['coordinates'] == ','.join(map(str, node.coordinates))
        up = families['torus_link_up'].samples
        assert len(up) == 4 and set(up.values()) == {1}


def test_the_log_and_status_name_the_address(torus):
    one = address(torus, 3)
    assert re.fullmatch(r'127\.0\.0\.1:\d+', one)
    wait_logged(torus.node(3).log, f'metrics at http://{one}/metrics')
    assert one in torus.ctl(3, 'status').stdout


def test_the_older_format_has_the_same_metrics(torus):
    status, headers, text = get(address(torus), Accept='text/plain;version=0.0.4')
    assert status == 200 and headers['Content-Type'] == 'text/plain; version=0.0.4; charset=utf-8'
    assert '# EOF' not in text and '# UNIT' not in text
    older = set(re.findall(r'^# TYPE (\w+) (?:gauge|counter|histogram)$', text, re.M))
    suffix = {'counter': '_total', 'info': '_info'}
    assert older == {family.name + suffix.get(family.kind, '') for family in Metrics(torus).families.values()}


def test_promtool_accepts_the_metrics(torus):
    try:
        result = run(['promtool', 'check', 'metrics'], input=get(address(torus), Accept='text/plain')[2])
    except FileNotFoundError:
        pytest.skip('promtool is not installed (Debian: prometheus)')
    assert result.returncode == 0 and not result.stdout + result.stderr, result.stdout + result.stderr


def rows(text):
    """{metric: (labels, type)} of the table in the document."""
    return {name: (set(re.findall(r'`(\w+)`', labels)), kind) for name, labels, kind in
            re.findall(r'^\| `(\w+)` \| ([^|]*)\| (gauge|counter|info|histogram) \| \S', text, re.M)}


# Links of one machine have no rate: it is neither configured here, nor negotiated by a card.
UNKNOWN_HERE = {f'torus_link_{rate}_bytes_per_second' for rate in ('nominal', 'negotiated', 'observed', 'planned')}


def test_the_document_lists_every_metric(torus):
    documented = rows(DOCUMENT.read_text())
    found = {}
    # The clocks of neighbours are known after some heartbeats, and the room on data roots when the disk has answered.
    wait_for(lambda: {'torus_link_clock_ahead_seconds', 'torus_data_root_free_bytes'} <= {
        key[0] for key in Metrics(torus).samples})
    watcher = Watcher(torus, 0)
    watcher.hear()
    watcher.tell_routes()
    wait_for(lambda: Metrics(torus).value('torus_routed_up') == 1)
    for family in Metrics(torus).families.values():
        suffix = {'counter': '_total', 'info': '_info'}.get(family.kind, '')
        labels = {label for key in family.samples for label, _ in key[1:]}
        if family.name in UNKNOWN_HERE:
            labels = {'port', 'neighbour'}
        else:
            assert family.samples, f'{family.name} has no sample'
        found[family.name + suffix] = labels, family.kind
    watcher.socket.close()
    assert documented == found


def test_what_torus_routed_tells(torus):
    """torus-routed itself needs hosts of its own: see test_routed.py."""
    wait_for(lambda: Metrics(torus).value('torus_routed_up') == 0)
    wait_for(lambda: Metrics(torus, 1).value('torus_link_neighbour_forwards', neighbour='0') == 0)
    watcher = Watcher(torus, 0)
    watcher.hear()
    watcher.tell_routes()
    wait_for(lambda: Metrics(torus).value('torus_routed_up') == 1)
    seen = Metrics(torus)
    found = {dict(key[1:])['state']: value for key, value in seen.samples.items() if key[0] == 'torus_routes'}
    assert found == {'routed': 9, 'changes': 1, 'waits': 0, 'direct': 2, 'blocked': 0, 'unreachable': 3,
                     'diverted': 0, 'missing': 0}
    assert seen.value('torus_routed_forwards') == 1 and seen.value('torus_routed_problem') == 0
    assert seen.value('torus_route_ways_lost_total') == 7 and seen.value('torus_route_ways_gained_total') == 12
    age = seen.value('torus_routes_unchanged_seconds')
    assert age >= 5
    wait_for(lambda: Metrics(torus).value('torus_routes_unchanged_seconds') > age)
    wait_for(lambda: Metrics(torus, 1).value('torus_link_neighbour_forwards', neighbour='0') == 1)
    watcher.tell_routes(forwards=False, counts={1: bytes(40), 5: 1})  # by a later release, with more states
    wait_for(lambda: Metrics(torus).value('torus_routed_problem') == 1)
    assert Metrics(torus).value('torus_routed_forwards') == 0
    wait_for(lambda: Metrics(torus, 1).value('torus_link_neighbour_forwards', neighbour='0') == 0)
    watcher.tell_routes(counts=None)  # by an earlier release
    wait_for(lambda: 'torus_routes' not in {key[0] for key in Metrics(torus).samples})
    assert Metrics(torus).value('torus_routed_up') == 1
    watcher.socket.close()
    wait_for(lambda: Metrics(torus).value('torus_routed_up') == 0)


def test_room_on_data_roots(loopback, tmp_path):
    """Data roots that are named while the daemon runs have metrics, too."""
    first, second, config = tmp_path / 'first', tmp_path / 'second', tmp_path / 'node.ini'
    for folder in first, second:
        folder.mkdir()
    config.write_text(f'[node]\ndata_roots = {first}\n')
    torus = loopback('2', extra=(*ON, '--config', config))
    wait_for(lambda: Metrics(torus).samples.get(('torus_data_root_answers', ('path', str(first)))) == 1)
    seen, there = Metrics(torus), os.statvfs(first)
    assert seen.value('torus_data_root_size_bytes') == there.f_blocks * there.f_frsize
    assert 0 <= seen.value('torus_data_root_free_bytes') <= there.f_blocks * there.f_frsize
    config.write_text(f'[node]\ndata_roots = {second}\n')
    torus.node(0).send_signal(signal.SIGHUP)
    wait_for(lambda: [key for key in Metrics(torus).samples if key[0] == 'torus_data_root_free_bytes'] == [
        ('torus_data_root_free_bytes', ('path', str(second)))])


def test_exchanges_are_counted(torus):
    before = [Metrics(torus, rank) for rank in (0, 5)]
    torus.ctl(0, 'exchange', '--algorithm', 'at2', '--block-size', '10KiB', '--repeat', '3', check=True)
    for rank, old in zip((0, 5), before):
        new = Metrics(torus, rank)

        def added(name, **labels):
            return new.value(name, **labels) - old.value(name, **labels)
        ended = added('torus_exchange_attempts_total', operation='exchange')
        assert ended == 1 == (added('torus_exchange_attempts_total', operation='exchange', outcome='committed') +
                              added('torus_exchange_attempts_total', operation='exchange', outcome='finished'))
        assert added('torus_exchange_delivered_bytes_total') == 3 * 15 * 10240
        assert added('torus_exchange_duration_seconds_count') == 1
        assert 0 < added('torus_exchange_duration_seconds_sum') < 60
        assert added('torus_link_sent_bytes_total') > 3 * 15 * 10240


def test_what_is_under_way_is_read_while_it_runs(torus):
    failed = Metrics(torus, 5).value('torus_exchange_attempts_total', operation='exchange', outcome='failed')
    with LongExchange(torus, rank=3):
        seen = Metrics(torus, 5)
        assert seen.value('torus_exchanges', state='under_way') == 1
        assert seen.value('torus_memory_reserved_bytes') > 0
        for name in 'torus_exchange_delivered_bytes_total', 'torus_link_received_bytes_total':
            last = seen.value(name)
            for _ in range(3):
                last = wait_for(lambda name=name, last=last:
                                (now := Metrics(torus, 5).value(name)) > last and now)
        numbers = [Metrics(torus, 5).value('torus_exchange_delivered_bytes_total') for _ in range(5)]
        assert numbers == sorted(numbers)
    wait_for(lambda: Metrics(torus, 5).value('torus_exchanges', state='under_way') == 0)
    new = Metrics(torus, 5)
    assert new.value('torus_exchange_attempts_total', operation='exchange', outcome='failed') == failed + 1
    assert new.value('torus_exchange_delivered_bytes_total') >= numbers[-1]


def test_copies_and_their_groups_are_counted(loopback, tmp_path):
    place = Place(tmp_path)
    place.source.mkdir()
    (place.source / 'one').write_bytes(bytes(range(256)) * 4096)
    torus = loopback('2', extra=ON, data_roots=[tmp_path])
    for rank in range(2):
        place.target(rank).parent.mkdir(parents=True)
    torus.ctl(0, 'copy', place.source, '--to', place.to, check=True)
    for rank in range(2):
        # The client is told before the nodes have closed their trees.
        wait_for(lambda rank=rank: Metrics(torus, rank).value('torus_copies') == 0)
        seen = Metrics(torus, rank)
        assert seen.value('torus_copy_attempts_total', outcome='ended') == 1
        assert seen.value('torus_copy_attempts_total', outcome='failed') == 0
        assert seen.value('torus_copy_moved_bytes_total') >= 1 << 20
        assert seen.value('torus_group_calls_total') == seen.value('torus_group_calls_done_total') > 0
        assert seen.value('torus_groups') == 0
    moved = [Metrics(torus, rank).value('torus_group_received_bytes_total') for rank in range(2)]
    assert max(moved) >= 1 << 20


def test_a_node_that_goes_down_is_seen(torus):
    """Counters of a link go on when it comes up again."""
    before = Metrics(torus, 6)
    assert get(address(torus, 6), '/healthz')[::2] == (200, 'whole\n')
    torus.node(5).kill()
    try:
        wait_for(lambda: Metrics(torus, 6).value('torus_nodes_down') == 1)
        seen = Metrics(torus, 6)
        assert seen.value('torus_whole') == 0 and seen.value('torus_links_down') == 4
        assert seen.value('torus_link_up', neighbour='5') == 0 and seen.value('torus_link_up') == 3
        status, _, text = get(address(torus, 6), '/healthz')
        assert status == 503 and text.splitlines() == ['node 5 is down: none of its links is up']
        lost = seen.value('torus_link_sent_bytes_total', neighbour='5')
        assert lost >= before.value('torus_link_sent_bytes_total', neighbour='5')
    finally:
        torus.node(5).start()
    torus.wait_whole()
    after = Metrics(torus, 6)
    assert after.value('torus_link_connects_total', neighbour='5') == 1 + before.value('torus_link_connects_total',
                                                                                      neighbour='5')
    assert after.value('torus_link_sent_bytes_total', neighbour='5') > lost
    assert after.value('torus_topology_changes_total') > before.value('torus_topology_changes_total')
    wait_for(lambda: get(address(torus, 6), '/healthz')[0] == 200)


def torusd(*options):
    return run([find_program('torusd'), '--dims', '1x1', '--rank', '0', *map(str, options)], seconds=30)


@pytest.mark.parametrize('value', ['localhost:9101', '9101', '127.0.0.1', '[::1]:x', '10.0.0.1:65536'])
def test_invalid_addresses_are_refused(value):
    result = torusd('--metrics', value, '--check')
    assert result.returncode == 2 and 'metrics' in result.stderr and 'ADDRESS:PORT' in result.stderr


def test_an_address_that_cannot_be_used(torus, tmp_path):
    places = '--control', tmp_path / 's', '--state-dir', tmp_path / 'state'
    used = address(torus)
    result = torusd('--metrics', used, *places)
    assert result.returncode == 1
    assert f'metrics {used}: another program listens there: choose another port' in result.stderr
    result = torusd('--metrics', '[fe80::1%none0]:9101', *places)
    assert result.returncode == 1 and 'there is no interface none0' in result.stderr


def test_ipv6_and_an_address_that_comes_later(tmp_path):
    """203.0.113.9 is nobody's address."""
    for number, metrics in enumerate(('[::1]:0', f'203.0.113.9:{free_port()}')):
        log = tmp_path / f'{number}.log'
        with open(log, 'w') as stderr:
            daemon = subprocess.Popen([find_program('torusd'), '--dims', '1x1', '--rank', '0', '--metrics', metrics,
                                       '--control', tmp_path / f's{number}', '--state-dir', tmp_path / f't{number}'],
                                      stderr=stderr)
        try:
            found = wait_for(lambda log=log: re.search(r'metrics at http://(\S+)/metrics', log.read_text()) or
                             'cannot start' in log.read_text())
            assert found is not True, log.read_text()
            if number == 0:
                assert re.fullmatch(r'\[::1\]:\d+', found[1])
                assert parse(get(found[1])[2])['torus_whole'].samples['torus_whole',] == 1
            else:
                assert found[1] == metrics
        finally:
            daemon.terminate()
            assert wait(daemon, Patience(30)) == 0
    assert 'bug' not in log.read_text()


def test_it_is_off_by_default(loopback):
    torus = loopback('2')
    assert torus.status()['metrics'] is None
    assert 'metrics at' not in torus.node(0).log()
