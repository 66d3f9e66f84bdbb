"""Tables and texts of torusctl on a terminal: no line is wider than the terminal, and no word is lost."""

import collections
import re
import subprocess

import pytest
from support.background import Client, LongExchange
from support.terminal import run_in_terminal
from support.waiting import wait_for
from torus_net import find_program

pytestmark = pytest.mark.plain

# Without a daemon; what they print is the same each time.
OFFLINE = ('algorithms', 'algorithms --dims 4x8', 'algorithms --dims 4x4m', 'bounds --dims 4x4', 'bounds --dims 3x4x5',
           'plan --dims 4x4 --algorithm at2', 'plan --dims 4x4 --without 3:+0,7', 'predict --dims 4x8',
           'simulate --dims 4x4', 'simulate --banyan 8', 'help', 'help exchange')
ONLINE = ('status', 'status --all', 'links', 'links --all', 'exchange --block-size 4KiB',
          'exchange --block-size 4KiB --repeat 3', 'broadcast --block-size 4KiB --root 0', 'allgather --block-size 1KiB',
          'bench --sizes 1KiB --repeat 1', 'top --once')
# help is for 80 columns, whatever the terminal has.
WIDTHS = 80, 100, 200


def too_wide(text, columns):
    """The lines that are wider than the terminal, unless they are one word."""
    return [line for line in text.splitlines() if len(line) > columns and len(line.split()) > 1]


@pytest.mark.parametrize('command', OFFLINE)
def test_commands_without_a_daemon(command):
    words = [find_program('torusctl'), *command.split()]
    whole = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    for columns in WIDTHS:
        status, printed = run_in_terminal(words, columns)
        assert status == 0 and too_wide(printed, columns) == [], printed
        assert collections.Counter(printed.split()) == collections.Counter(whole.split()), printed


def check(torus, command, statuses=(0,)):
    status, printed = run_in_terminal([torus.torusctl, '--socket', torus.node(0).socket, *command.split()])
    assert status in statuses and printed and too_wide(printed, 80) == [], printed
    return printed


def test_commands_that_ask_a_daemon(shared):
    for command in ONLINE:
        check(shared('4x4', extra=('--link-mbit', '100')), command)


def test_a_barrier(shared):
    torus = shared('2x2')
    with Client(torus, 'barrier', rank=1) as one, Client(torus, 'barrier', rank=2) as two, Client(
            torus, 'barrier', rank=3) as three:
        check(torus, 'barrier')
        assert one.end()[0] == two.end()[0] == three.end()[0] == 0


def test_doctor(loopback):
    torus = loopback('3x3')
    torus.node(1).kill()
    wait_for(lambda: not torus.status()['whole'])
    plain = wait_for(lambda: (found := torus.ctl(0, 'doctor', check=False).stdout).startswith('error') and found)
    assert too_wide(plain, 80)
    printed = check(torus, 'doctor --all', (2,))
    # Texts begin below each other: behind the severity, and behind what the text is.
    findings, counts = printed.split('\n\n')
    lines = findings.splitlines()
    begin = re.compile(r'(?:error   |warning |hint    |fine    |not seen) \S| {9}(?:(?:mend|also): |why:  )?\S| {15}\S')
    assert counts and [line for line in lines if not begin.match(line)] == [], printed
    assert any(line.startswith(' ' * 15) for line in lines)


def test_what_is_wrong_is_wrapped_too(loopback):
    torus = loopback('3x3')
    torus.node(1).kill()
    wait_for(lambda: not torus.status()['whole'] and 'node 1 is down' in str(torus.status()))
    assert 'node 1 is down: none of its links is up' in check(torus, 'status')
    for command in 'links', 'links --all', 'status --all':
        check(torus, command)
    assert re.search(r'^node 1\b.*\bdown\b', check(torus, 'top --once'), re.M)


def test_top_while_something_runs(shared):
    torus = shared('4x8', extra=('--link-mbit', '50'))
    with LongExchange(torus, algorithm='stream', block_size='16MiB'):
        printed = wait_for(lambda: ' left' in (text := check(torus, 'top --once')) and text, 30)
    title, *_, run = re.split(r'\n(?=\S)', printed.strip())
    assert re.search(r'  0 s old  \d\d:\d\d:\d\d$', title), printed
    assert re.fullmatch(r'exchange \S+  stream  running.* \d+ %.*/s.* left', ' '.join(run.split('\n'))), printed


def test_a_table_that_fits_has_one_line_a_row(shared):
    torus = shared('4x4', extra=('--link-mbit', '100'))
    links = [torus.torusctl, '--socket', torus.node(0).socket, 'links']
    lines = run_in_terminal(links, 200)[1].splitlines()
    assert lines[0].split()[0] == 'port' and [line.split()[0] for line in lines[1:5]] == ['+0', '-0', '+1', '-1']
    lines = run_in_terminal(links, 80)[1].splitlines()
    assert lines[0].startswith('port') and lines[1].startswith('    ')
    assert [line.split()[0] for line in lines[2:10:2]] == ['+0', '-0', '+1', '-1']
