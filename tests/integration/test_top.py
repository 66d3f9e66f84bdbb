"""torusctl top: in a real terminal (tmux), and without one."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile

import pytest
from support.background import Client, LongExchange, stopped
from support.copies import Copying, Place
from support.trees import write_file
from support.waiting import wait_for

KEYS_LINE = 'q: quit'


class Screen:
    """torusctl top in a terminal of its own."""

    def __init__(self, torus, *args, rank=0, size=(80, 24), term='', environment='LC_ALL=C.UTF-8'):
        if shutil.which('tmux') is None:
            pytest.skip('needs tmux')
        self.folder = tempfile.TemporaryDirectory(prefix='top-')
        command = shlex.join([torus.torusctl, '--socket', str(torus.node(rank).socket), 'top', *map(str, args)])
        if term:
            environment += f' TERM={term}'
        # The screen is still there when the command has ended, with its exit status.
        self.tmux('new-session', '-d', '-x', size[0], '-y', size[1],
                  f'env {environment} {command}; echo "ended with $?"; read line')

    def tmux(self, *args):
        """The server has a socket of its own, so that no other one is touched."""
        return subprocess.run(['tmux', '-f', '/dev/null', '-S', f'{self.folder.name}/socket', *map(str, args)],
                              capture_output=True, text=True, check=True).stdout

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None and 'ended with' not in self.text():
                self.keys('C-c')  # the leak checker of a sanitizer may hang when its terminal disappears
                self.await_line('^ended with')
        finally:
            self.tmux('kill-server')
            self.folder.cleanup()

    def text(self, *args):
        return self.tmux('capture-pane', '-p', *args)

    def keys(self, *names):
        self.tmux('send-keys', *names)

    def await_line(self, pattern):
        """Waits until the screen shows this."""
        return wait_for(lambda: re.search(pattern, self.text(), re.M), 30, lambda: f'no {pattern} in:\n{self.text()}')

    def wait_lines(self, count):
        """Waits until the view fills that many lines. When its terminal shrinks, tmux first scrolls the old view."""
        def is_filled():
            lines = self.text().split('\n')
            return (len(lines) > count - 1 and lines[0].startswith('4x4 ') and
                    lines[count - 1].startswith('arrows: choose'))
        wait_for(is_filled, 30, self.text)


def test_keys(torus):
    with Screen(torus, '--interval', '0.3', rank=5) as screen:
        screen.await_line(r'^4x4  16 of 16 nodes  32 of 32 links up')
        screen.await_line(r'^node 5 \(1, 1\)')  # the asked one
        screen.keys('Right')
        screen.await_line(r'^node 6 \(1, 2\)')
        screen.keys('j', 'h', 'h')
        screen.await_line(r'^node 8 \(2, 0\)')
        screen.keys('Tab')
        screen.await_line(r'^link 8:\+0 .* to 12:-0')
        screen.keys('l', 'l')
        screen.await_line(r'^link 8:\+1 .* to 9:-1')
        screen.keys('Enter')
        screen.await_line(r'^round trip +\d.* (us|ms)')
        assert re.search(r'^interface +lo +lo$', screen.text(), re.M)
        screen.keys('?')
        screen.await_line('show this help')
        screen.keys('Escape')
        screen.await_line('^link 8')
        screen.keys('BTab', 'Enter')
        screen.await_line(r'^node 8 \(2, 0\)')
        screen.await_line(r'^torusd .* memory in use')
        screen.keys('q')  # leaves the details
        screen.await_line('^arrows: choose')
        screen.keys('q')
        screen.await_line('^ended with 0$')


def test_an_exchange_and_its_end(torus):
    with LongExchange(torus, rank=3) as client, Screen(torus, '--interval', '0.3') as screen:
        screen.await_line(rf'^exchange {re.escape(client.id)}  at2  running .* \d+ %  [\d.]+ \wiB/s  .* left')
        screen.await_line(r'^  0 \S*\d')  # a link with its load
        screen.keys('Tab', 'Tab', 'Enter')
        screen.await_line(r'delivered at all nodes')
        screen.await_line(r'^ +\d+ +.* running +.* of .*, \d+ of \d+ rounds')
        screen.keys('Enter')
        client.send_signal(signal.SIGINT)
        screen.await_line(rf'^exchange {re.escape(client.id)}  at2  failed')


def test_resize_and_pause(torus):
    with Screen(torus, '--interval', '0.2') as screen:
        screen.wait_lines(24)
        screen.tmux('resize-window', '-x', '60', '-y', '20')
        screen.wait_lines(20)
        screen.tmux('resize-window', '-x', '100', '-y', '40')
        screen.wait_lines(40)
        screen.await_line(r'\d+ s old  \d\d:\d\d:\d\d$')
        screen.await_line(r'^  0 .* all links together$')  # there is room beside the torus
        screen.await_line('^.* [0-9.]+ [GMk]?bit/s [|│]')
        screen.keys('Space')
        screen.await_line(r'paused, [1-9]\d* s old  \d\d:\d\d:\d\d$')  # and it becomes older
        screen.keys('Space')
        screen.await_line(r'\d\d:\d\d:\d\d$')


def test_nodes_that_die(loopback):
    """Another one, and the asked one: the view says so, and goes on when they are back."""
    torus = loopback('4x4')
    with Screen(torus, '--interval', '0.3') as screen:
        screen.await_line('16 of 16 nodes')
        torus.node(6).kill()
        screen.await_line(r'^\S+ \(node 6\) is down, or cannot be reached')
        screen.await_line('^4x4  15 of 16 nodes  28 of 32 links up')
        screen.await_line(r' 6!')
        torus.node(0).kill()
        screen.await_line('^trying again: no daemon at')
        torus.node(6).start()
        torus.node(0).start()
        screen.await_line('(answers again|has been restarted)')
        screen.await_line('^4x4  16 of 16 nodes  32 of 32 links up')
        with stopped(torus.node(0)):
            screen.await_line(r'^waiting for an answer for \d+ s')
            screen.keys('Right')  # keys work all the time
            screen.await_line(r'^node 1 \(0, 1\)')
        screen.await_line('^the daemon answers again')


def test_terminals(torus):
    with Screen(torus, term='dumb') as screen:
        screen.await_line("torusctl top --once")
        screen.await_line('^ended with 2$')
    with Screen(torus, term='vt100', environment='LC_ALL=C') as screen:  # no colours, no UTF-8
        screen.await_line(r'^  0 [.\-=#]')
        assert screen.text().isascii()
    with Screen(torus) as screen:
        screen.await_line(KEYS_LINE)
        pid = screen.tmux('list-panes', '-F', '#{pane_pid}').strip()
        child = subprocess.run(['pgrep', '-P', pid], capture_output=True, text=True, check=True).stdout.split()
        os.kill(int(child[0]), signal.SIGTERM)
        screen.await_line('^ended with 0$')


def test_without_a_terminal(torus):
    text = torus.ctl(2, 'top', '--interval', '0.3').stdout
    assert text.startswith('4x4  16 of 16 nodes  32 of 32 links up')
    assert 'nothing runs, and no faults are known' in text or 'exchange' in text
    assert '\033' not in text
    once = json.loads(torus.ctl(2, '--json', 'top', '--once', '--interval', '0.3').stdout)
    assert once['answered'] == once['node_count'] == 16 and once['links_up'] == once['link_count'] == 32
    assert once['asked'] == 2 and once['faults'] == []
    for node in once['nodes']:
        assert len(node['links']) == 4
        for link in node['links']:
            assert link['tx_bytes_per_second'] >= 0 and link['rx_bytes_per_second'] >= 0


def test_lines(loopback):
    """A line for each survey, also while the daemon is away; both ends of a link agree on its rate."""
    torus = loopback('2x3')
    with Client(torus, 'top', '--json', '--interval', '0.3') as lines, LongExchange(torus) as exchange:
        def line():
            return json.loads(lines.process.stdout.readline())

        def until(condition):
            return wait_for(lambda: (lambda one: one if condition(one) else None)(line()), 60)
        assert line()['nodes'][0]['links'][0]['tx_bytes_per_second'] is None
        busy = until(lambda one: any(x['id'] == exchange.id and (x['bytes_per_second'] or 0) > 0 and
                                     x['state_counts'] == {'running': 6} for x in one['exchanges']))
        run, = [x for x in busy['exchanges'] if x['id'] == exchange.id]
        assert 0 < run['part'] < 1 and run['left_seconds'] > 1
        ends = {(node['rank'], link['port']): link for node in busy['nodes'] for link in node['links']}
        assert sum(link['tx_bytes_per_second'] for link in ends.values()) > 1e6
        assert busy['full_bytes_per_second'] >= max(link['tx_bytes_per_second'] for link in ends.values())
        assert not busy['full_is_nominal']
        torus.node(0).kill()
        until(lambda one: 'error' in one and one['error']['code'] == 'no daemon')
        torus.node(0).start()
        back = until(lambda one: 'error' not in one and one['answered'] == 6)
        assert back['node_count'] == 6
        lines.process.stdout.close()  # nobody reads any more
        assert wait_for(lambda: lines.process.poll() is not None) is True


def test_a_copy(loopback, tmp_path):
    """A copy that waits for a node is shown by each view of all nodes, until it is over."""
    place = Place(tmp_path)
    torus = loopback('4', data_roots=(str(tmp_path),))
    place.source.mkdir()
    write_file(place.source / 'large', 1, 120 << 20)

    def copies():
        return json.loads(torus.ctl(3, 'top', '--json', '--once').stdout)['copies']
    with Copying(torus, place, '--on-failure', 'wait', at=2, arrived=20 << 20) as client:
        torus.node(2).kill()
        one = wait_for(lambda: next((c for c in copies() if c['waits_for']), None), 60)
        assert one['target'] == place.to and one['asker'] == 0 and one['waits_for'] == 'node 2', one
        assert [c['waits_for'] for c in torus.json(3, 'status', '--all')['copies']] == ['node 2']
        assert one['node_count'] == 3 and one['phase'] == 'calling' and one['part'] is None, one
        line = next(line for line in torus.ctl(1, 'top', '--once').stdout.splitlines() if line.startswith('copy '))
        assert re.match(rf'copy {one["id"]}  {re.escape(place.to[:40])}  calling  waits for node 2$', line), line
        torus.node(2).start()
        status, _, error = client.end(60)
        assert status == 0, error
    assert wait_for(lambda: copies() == [])


@pytest.mark.parametrize('args, part', [(['--interval', '0.01'], '0.2 to 3600'), (['--interval', 'x'], 'interval')])
def test_wrong_intervals(torus, args, part):
    result = torus.ctl(0, 'top', *args, check=False)
    assert result.returncode == 2 and part in result.stderr
