"""SIGHUP: what changes while links and exchanges stay as they are, and what needs a restart."""

import grp
import json
import os
import signal
import stat

import pytest
from support.background import Client
from support.errors import assert_refused
from support.waiting import exchanges, wait_for, wait_logged

MIB = 1 << 20


class Settings:
    """The files of --config of the nodes, which only have what differs from the command lines."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, rank):
        return self.folder / f'{rank}.ini'

    def write(self, rank, /, **values):
        self.path(rank).write_text('[node]\n' + ''.join(f'{name} = {value}\n' for name, value in values.items()))

    def options(self, rank):
        if not self.path(rank).exists():
            self.write(rank)
        return ['--config', self.path(rank)]


@pytest.fixture
def settings(tmp_path):
    return Settings(tmp_path)


def log_after(torus, rank, signals=1):
    """Makes the daemon read its settings again, and returns what it then logs."""
    begin = len(torus.node(rank).log())
    for _ in range(signals):
        torus.node(rank).send_signal(signal.SIGHUP)

    def said():
        log = torus.node(rank).log()[begin:]
        return log if 'read again' in log and log.endswith('\n') and 'cluster key' in log + refusal(log) else ''
    return wait_for(said, 20)


def refusal(log):
    return 'cluster key' if 'were not read again' in log else ''


def connects(torus):
    return [[(one['connects'], one['up']) for one in torus.links(rank)['links']] for rank in range(len(torus.nodes))]


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_what_changes_while_an_exchange_runs(loopback, settings, tmp_path):
    (tmp_path / 'data').mkdir()
    group = grp.getgrgid(os.getegid()).gr_name
    torus = loopback('2x2', extra=settings.options, memory=None)
    before, socket = connects(torus), torus.node(0).socket
    with Client(torus, '--json', 'exchange', '--block-size', '64KiB', '--repeat', 100000, '--timeout', 3000) as client:
        wait_for(lambda: exchanges(torus, 0) and exchanges(torus, 0)[0]['state'] == 'running', 60)
        assert mode(socket) == mode(f'{socket}.programs') == 0o660
        for rank in range(4):
            settings.write(rank, log_level='debug', exchange_group=group, memory='200MiB', hop_limit=3,
                           data_roots=tmp_path / 'data', output_mode='0750')
            log = log_after(torus, rank)
            assert 'changed: exchange_group, data_roots, output_mode, memory, log_level\n' in log
            assert 'need a restart: hop_limit\n' in log
        assert client.process.poll() is None and exchanges(torus, 0)[0]['state'] == 'running'
        assert connects(torus) == before
        client.process.send_signal(signal.SIGINT)
        client.end(60)
    assert mode(socket) == mode(f'{socket}.programs') == 0o666
    status = torus.status(3)
    assert status['memory']['budget_bytes'] == 200 * MIB and str(tmp_path / 'data') in status['data_roots']
    for rank in range(4):
        (tmp_path / 'data' / f'from{rank}').mkdir()
        for to in range(4):
            (tmp_path / 'data' / f'from{rank}' / str(to)).write_text(f'{rank} to {to}')
    torus.ctl(0, 'exchange', '--from', tmp_path / 'data' / 'from%r', '--to', tmp_path / 'data' / 'to%r', check=True)
    assert (tmp_path / 'data' / 'to1' / '2').read_text() == '2 to 1' and mode(tmp_path / 'data' / 'to1') == 0o750
    settings.write(0, memory='100MiB')
    log = log_after(torus, 0)
    assert 'changed: exchange_group, data_roots, output_mode, log_level\n' in log and 'restart: memory\n' in log
    assert torus.status(0)['memory']['budget_bytes'] == 200 * MIB and mode(socket) == 0o660
    assert_refused(torus.ctl(0, '--json', 'exchange', '--from', tmp_path / 'data' / 'from%r', '--to',
                             tmp_path / 'data' / 'again%r'), 'refused')


def planned(torus, rank):
    return {link['port']: (link['planned_bps'], link['planned_from']) for link in torus.links(rank)['links']}


def test_rates_of_links_change_while_they_are_up(loopback, settings):
    torus = loopback('2m', extra=settings.options, memory=None)
    before = connects(torus)
    assert planned(torus, 0) == {'+0': (None, None)} and planned(torus, 1) == {'-0': (None, None)}
    settings.write(0, link_mbit=50)
    assert 'changed: link_mbit\n' in log_after(torus, 0)
    wait_for(lambda: planned(torus, 1) == {'-0': (50e6, 'neighbour')}, 20)
    assert planned(torus, 0) == {'+0': (50e6, 'nominal')} and torus.status(0)['link_mbit'] == 50
    settings.path(0).write_text('[node]\nlink_mbit = 50\n[ports]\n+0.link_mbit = 20/40\n')
    assert 'changed: +0.link_mbit\n' in log_after(torus, 0)
    wait_for(lambda: planned(torus, 1) == {'-0': (40e6, 'neighbour')}, 20)
    assert planned(torus, 0) == {'+0': (20e6, 'nominal')}
    torus.ctl(0, 'exchange', '--block-size', '256KiB', check=True)
    settings.write(0)
    assert 'changed: link_mbit, +0.link_mbit\n' in log_after(torus, 0)
    wait_for(lambda: planned(torus, 1) == {'-0': (None, None)}, 20)
    assert connects(torus) == before


def test_repetitions_use_the_rates_of_their_time(loopback, settings):
    """A link, and then all links, get other rates while repetitions run: none fails, and plans follow at all nodes."""
    ranks = range(4)
    for rank in ranks:
        settings.write(rank, link_mbit=8)
    torus = loopback('4', extra=settings.options, memory=None)

    def algorithms():
        return {x['algorithm'] for rank in ranks for x in exchanges(torus, rank) if x['state'] in ('running', 'paused')}
    with Client(torus, '--json', 'exchange', '--block-size', '16KiB', '--repeat', 200) as client:
        wait_for(lambda: algorithms() == {'stream'}, 60)
        settings.path(2).write_text('[node]\nlink_mbit = 8\n[ports]\n+0.link_mbit = 2/8\n')
        assert 'changed: +0.link_mbit\n' in log_after(torus, 2)
        wait_for(lambda: algorithms() == {'detour'}, 60)
        wait_logged(torus.node(0).log, 'continues on a new plan')
        for rank in ranks:
            settings.write(rank, link_mbit=16)
            assert 'link_mbit' in log_after(torus, rank)
        status, out, err = client.end(120)
    assert status == 0, err
    result = json.loads(out)
    assert result['repeat'] == 200 and len(result['seconds_each']) == 200 and result['replans'] >= 1


def test_an_exchange_keeps_the_data_roots_that_it_began_with(loopback, settings, tmp_path):
    data = tmp_path / 'data'
    data.mkdir()
    for rank in range(2):
        settings.write(rank, data_roots=data)
        (data / f'from{rank}').mkdir()
        for to in range(2):
            (data / f'from{rank}' / str(to)).write_bytes(os.urandom(16 * MIB))
    torus = loopback('2m', extra=settings.options, bw=100)
    paths = '--from', data / 'from%r', '--to', data / 'to%r'
    with Client(torus, '--json', 'exchange', *paths) as client:
        wait_for(lambda: exchanges(torus, 0) and exchanges(torus, 0)[0]['state'] == 'running', 60)
        for rank in range(2):
            settings.write(rank, log_level='debug')
            assert 'changed: data_roots, log_level\n' in log_after(torus, rank)
        assert client.process.poll() is None, 'the exchange was too fast for this test'
        code, out, err = client.end(120)
    assert code == 0, err
    assert (data / 'to1' / '0').read_bytes() == (data / 'from0' / '1').read_bytes()
    assert_refused(torus.ctl(0, '--json', 'exchange', '--from', data / 'from%r', '--to', data / 'new%r'), 'refused')
    # The folder is closed as soon as no exchange uses it: a file system there could be unmounted.
    wait_for(lambda: all(str(data) not in open_folders(node.pid) for node in torus.nodes), 20)


def open_folders(pid):
    found = []
    for fd in os.listdir(f'/proc/{pid}/fd'):
        try:
            found.append(os.readlink(f'/proc/{pid}/fd/{fd}'))
        except FileNotFoundError:
            pass
    return found


@pytest.mark.parametrize('broken, says', [
    ('[node]\nlog_level = debug\noutput_mode = 9\n', '0.ini:3: output_mode "9" is not a mode'),
    ('[node]\nlog_level = debug\ncolour = red\n', '0.ini:3: unknown setting "colour"'),
    ('[node]\nlog_level = debug\nread_group = no-such-group\n', 'there is no group "no-such-group"'),
    ('[node]\nlog_level = debug\nsecond_key_file = /etc/passwd\n', '/etc/passwd'),
    ('[node]\nlog_level = debug\ndata_roots = /no/such/folder\n', '/no/such/folder'),
    ('[ports]\n+5 = 127.0.0.1:1\n', 'port +5 has an address'),
    ('[ports]\n+0.link_mbit = 0\n', '0.ini:2: link_mbit "0" of port +0 is not a rate'),
    ('[node]\n[ports]\n+1.link_mbit = 9\n', '0.ini:3: port +1 has a rate, but node 0'),
    (None, '0.ini: No such file'),
])
def test_a_broken_file_changes_nothing(shared, tmp_path_factory, broken, says):
    settings = shared_settings(tmp_path_factory)
    torus = shared('2m', extra=settings.options)
    before = connects(torus)
    settings.write(0)
    log_after(torus, 0)
    if broken is None:
        settings.path(0).unlink()
    else:
        settings.path(0).write_text(broken)
    log = log_after(torus, 0)
    assert 'the settings were not read again, and stay as they are: ' in log and says in log, log
    settings.write(0)
    assert 'changed: nothing\n' in log_after(torus, 0), 'a setting of the broken file is in use'
    assert connects(torus) == before


MADE = []


def shared_settings(tmp_path_factory):
    if not MADE:
        MADE.append(Settings(tmp_path_factory.mktemp('settings')))
    return MADE[0]


def test_options_override_the_file_again(loopback, settings):
    torus = loopback('1', extra=lambda rank: ['--output-mode', '0711', *settings.options(rank)])
    settings.write(0, output_mode='0750', dims='2x2', rank=3, memory='100MiB')
    log = log_after(torus, 0)
    assert 'changed: memory\n' in log and 'restart' not in log
    settings.path(0).write_text('[ports]\n+0 = 127.0.0.1:1\n')
    assert 'port +0 has an address, but node 0 of torus 1 has no link' in log_after(torus, 0)


def test_many_signals(loopback, settings):
    """The last file counts, and a daemon that stops while it reads its settings ends well."""
    torus = loopback('2m', extra=settings.options)
    for level in 10 * ('debug', 'info'):
        settings.write(0, log_level=level)
        torus.node(0).send_signal(signal.SIGHUP)
    settings.write(0, log_level='debug', memory='300MiB')
    log_after(torus, 0, signals=5)
    wait_for(lambda: torus.status(0)['memory']['budget_bytes'] == 300 * MIB, 20)
    for _ in range(5):
        torus.node(1).send_signal(signal.SIGHUP)
    assert torus.node(1).terminate() == 0
    torus.node(1).start()
    torus.wait_whole()
