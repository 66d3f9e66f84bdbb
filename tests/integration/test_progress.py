"""Messages on standard error while a command waits or takes long."""

import json
import os
import re
import signal
import sys

import pytest
from support.background import Client
from support.programs import python
from support.terminal import SAID, Spoken
from support.waiting import wait_for

GROUP = 'import libtorus\nwith libtorus.Group("late") as group:\n    print(group.size)\n'


def ctl(torus, rank, *args):
    return [torus.torusctl, '--socket', torus.node(rank).socket, *args]


@pytest.mark.parametrize('terminal', [False, True])
def test_a_group_that_others_have_not_opened(shared, terminal):
    """At first all other nodes are missing, then fewer; with the last one, the group opens."""
    torus = shared('2x2')
    perf = 'perf', 'barrier', '--repeat', 3, '--name', f'late-{terminal}', '--json'
    with Spoken(ctl(torus, 0, *perf), terminal, {} if terminal else SAID) as first:
        first.wait_says(r'group "late-\w+": waiting for nodes 1, 2, 3 to open it, \d+ s so far')
        with Client(torus, *perf, rank=3) as third, Client(torus, *perf, rank=2) as second:
            first.wait_says('waiting for node(s)? 1(, 3)? to open it')
            with Client(torus, *perf, rank=1) as last:
                assert last.end()[0] == third.end()[0] == second.end()[0] == 0
        code, out, _ = first.end()
    assert code == 0 and json.loads(out)['operation'] == 'barrier'


def test_a_member_names_whom_it_knows_to_be_missing(shared):
    torus = shared('2x2')
    with Spoken(ctl(torus, 3, 'perf', 'barrier', '--timeout', 20, '--name', 'alone')) as alone:
        alone.wait_says('waiting for node 0 to open it')


def test_a_group_from_python(shared, tmp_path):
    torus = shared('2x2')
    (tmp_path / 'late.py').write_text(GROUP)
    library = os.path.join(os.path.dirname(torus.watcher), 'client', 'libtorus.so.1')
    env = {**SAID, 'TORUS_SOCKET': str(torus.node(0).socket),
           **({'TORUS_LIBRARY': library} if os.path.exists(library) else {})}
    with Spoken(['/bin/sh', '-c', python(tmp_path / 'late.py')], env=env) as program:
        program.wait_says('libtorus: group "late": waiting for nodes 1, 2, 3 to open it')


@pytest.mark.parametrize('terminal,setting', [(False, {}), (True, {'TORUS_PROGRESS': '0'})])
def test_nothing_is_said_unless_it_is_wanted(shared, terminal, setting):
    torus = shared('2x2')
    for command in ('perf', 'barrier', '--name', 'quiet'), ('barrier', '--name', 'quiet'):
        with Spoken(ctl(torus, 0, *command, '--timeout', 2), terminal, setting) as quiet:
            code, out, said = quiet.end()
        said = ' '.join(said.split())  # a terminal has several lines
        assert code == 1 and out == '' and 'waiting for' not in said and 'not finished within' in said


def test_a_barrier_that_others_have_not_entered(shared):
    torus = shared('2x2')
    with Spoken(ctl(torus, 0, 'barrier', '--json')) as first:
        first.wait_says('torusctl: waiting for nodes 1, 2, 3 ')
        with Client(torus, 'barrier', rank=1), Client(torus, 'barrier', rank=3):
            first.wait_says('torusctl: waiting for nodes? 2(, 3)? ')
            with Client(torus, 'barrier', rank=2) as last:
                assert last.end()[0] == 0
        code, out, said = first.end()
    assert code == 0 and json.loads(out)['operation'] == 'barrier'
    assert '\r' not in said and '\x1b' not in said


LONG = '--algorithm', 'at2', '--block-size', '100GiB'


@pytest.mark.slow
def test_a_long_exchange_on_a_terminal(shared):
    """Share, rate and remaining time; no line is wider than the window, even if the window shrinks; nothing is left
    over; no colours."""
    torus = shared('2x2')
    with Spoken(ctl(torus, 0, 'exchange', *LONG), terminal=True, env={'NO_COLOR': '1'}) as long:
        long.wait_says(r'running, \d+ of \d+ rounds .* \d+ %  [\d.]+ \w+ of 300 GiB  [\d.]+ \w+/s  0:\d\d, [\d:]+ left')
        long.resize(40)
        before = len(long.read())
        wait_for(lambda: long.read()[before:].count('\r') > 3, 30)
        narrow = long.read()[before:].split('\r')[2:-1]
        long.process.send_signal(signal.SIGINT)
        code, out, said = long.end()
    assert all(len(re.sub(r'\x1b\[\w', '', line)) < 40 for line in narrow), narrow
    assert not re.search(r'\x1b\[[\d;]*m', said)
    # Behind the last picture of the line, and wrapped at the width of the window.
    said = said.strip().replace('\r\n', '\n').rpartition('\r')[2]
    assert code != 0 and out == '' and said.startswith('\x1b[Jtorusctl: exchange ')
    assert all(len(line.removeprefix('\x1b[J')) <= 40 for line in said.split('\n')), said


@pytest.mark.slow
def test_a_long_exchange_without_a_terminal(shared):
    torus = shared('2x2')
    with Spoken(ctl(torus, 0, '--json', 'exchange', *LONG)) as long:
        long.wait_says(r'torusctl: running, \d+ of \d+ rounds .*of 300 GiB')
        long.process.send_signal(signal.SIGINT)
        code, out, said = long.end()
    assert code != 0 and json.loads(out)['error']['code'] == 'cancelled'
    assert '\r' not in said and '\x1b' not in said


@pytest.mark.full
@pytest.mark.slow
def test_progress_on_a_terminal(shared):
    """A bar while the exchange runs, and none in the output afterwards."""
    torus = shared('4x4')
    with Spoken(ctl(torus, 0, 'exchange', '--algorithm', 'at2', '--block-size', '32MiB'), terminal=True, env={}) as running:
        code, out, shown = running.end(120)
    assert code == 0 and 'verified' in out
    assert '%' in shown and '\r' in shown
    assert sys.getsizeof(shown) < 100000
