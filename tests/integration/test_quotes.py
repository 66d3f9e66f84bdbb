"""What documents quote of outputs is what programs print now, without values: blocks with the outputs of programs, and
messages with the texts in the sources. Sessions are compared by test_documents.py. tests/README.md lists what is not
compared."""

import functools
import json
import re
import subprocess

import pytest
from support.background import Client, LongExchange
from support.documents import DOCUMENTS, MANUAL, block, blocks, rows, without_values
from support.terminal import run_in_terminal
from support.waiting import wait_for
from torus_net import CHECKOUT, find_program


pytestmark = pytest.mark.plain

QUOTING = {path: text for path, text in (DOCUMENTS | MANUAL).items()
           if path == CHECKOUT / 'README.md' or 'doc' in path.relative_to(CHECKOUT).parts}
# Blocks whose outputs are compared: below, and by test_scripts.py.
COMPARED = '  nodes ', '4x8  32 of 32 nodes', '500000 lines', '2: 2 of 4: member 1', 'barrier '
# Tables whose first column is messages, however short.
TABLES = '| what you see | what it means, and what to do |', '| line | means |'
# Where a message has the values of the case: names, addresses, numbers, "..." and what the documents write in capitals.
VALUES = (r"\.\.\.|\b(?!MTU\b|UDP\b)[A-Z][A-Z_]*\b|\[x\]|\b\d+-[0-9a-f]+-\d+\b|[-+]?\b\d[\d.,x]*\b( bytes?\b)?|\beth\d\b|\bbr\d\b|\([\d,]+\)|"
          r"\b(?:alpha|beta|gamma|delta)\b")


def test_the_report_of_quickstart(shared):
    result = shared('4x4', extra=('--link-mbit', '500')).exchange('stream', 1 << 16)
    printed = subprocess.run(['/usr/bin/python3', CHECKOUT / 'topo' / 'torus_net' / 'report.py'], text=True,
                             input=json.dumps(result), stdout=subprocess.PIPE, check=True).stdout
    assert without_values(printed) == without_values(block('', COMPARED[0]))


def test_the_report_of_a_barrier(shared):
    torus = shared('2x2')
    barrier = 'barrier', '--name', 'before-measuring'
    with Client(torus, *barrier, rank=1) as one, Client(torus, *barrier, rank=2) as two, Client(
            torus, *barrier, rank=3) as three:
        printed = torus.ctl(0, *barrier, check=True).stdout
        assert one.end()[0] == two.end()[0] == three.end()[0] == 0
    assert without_values(printed) == without_values(block('', COMPARED[4])), printed


def drawing(text):
    """The lines of torusctl top: how many parts each row of the torus has, and the other ones without values."""
    # Where there is room, what runs has a bar.
    lines = [re.sub(r'0-[0-9a-f]+-\d+', 'ID', re.sub(r'\[[= ]*\]', '', line)) for line in text.splitlines() if line.strip()]
    found = [len(line.split()) if line.startswith(' ') else re.sub(r'\d[\d.]*', 'N', line) for line in lines]
    found = [re.sub(r'N [KMG]iB/s', 'RATE', re.sub('(N min )?N s left', 'TIME', str(line))) for line in found]
    return [re.sub(' +', ' ', line) for line in found]


def test_the_drawing_of_top(shared):
    """This includes what --once prints; the rates of the last surveys, below, are those of test_top_drawing."""
    quoted = drawing(block('text', COMPARED[1]).partition('\nall links together\n')[0])
    torus = shared('4x8', extra=('--link-mbit', '50'))
    with LongExchange(torus, algorithm='stream', block_size='16MiB'):
        def printed():
            return run_in_terminal([torus.torusctl, '--socket', torus.node(0).socket, 'top', '--once'])[1]
        wait_for(lambda: drawing(printed()) == quoted, 30, printed)


# --- messages ---

def texts_of(path):
    """What a source can print: the literals of C, without conversions; helps and other languages as they are."""
    text = path.read_text()
    if path.suffix == '.txt':
        return ' '.join(text.split())
    if path.suffix not in ('.c', '.h'):
        text = re.sub(r"""(["'])\s*\n\s*f?\1""", '', text)
        return re.sub(r'\{[^{}\n]*\}', '\0', text)
    text = re.sub(r"/\*.*?\*/|'(\\.|[^\\])'", '', text, flags=re.S)
    text = re.sub(r'%"\s*PRI\w+\s*', '%d"', text)
    literals = re.findall(r'(?:"(?:[^"\\\n]|\\.)*"\s*(?:[A-Z_]+\s*(?="))?)+', text)
    found = ''.join('\n' + ''.join(re.findall(r'"((?:[^"\\]|\\.)*)"', literal)) for literal in literals) + '\n'
    found = re.sub(r'%[-+ #0]*[\d*]*(\.[\d*]+)?(hh|h|ll|l|z|j|t)?[a-zA-Z]', '\0', found)
    return found.replace('\\n', ' ').replace('\\"', '"')


@functools.cache
def texts():
    """All texts of all programs."""
    found = [path for folder in ('client', 'daemon', 'proto', 'topo', 'scripts')
             for path in sorted((CHECKOUT / folder).rglob('*'))
             if path.suffix in ('.c', '.h', '.py', '.sh') or (path.parent.name == 'scripts' and path.is_file())
             or path.parent.name == 'help']
    assert len(found) > 500
    return '\n'.join(texts_of(path) for path in found)


def is_printed(words):
    """Whether these words stand in one text, or in two of which one is put into the other."""
    if ' '.join(words) in texts():
        return True
    for at in range(1, len(words)):
        first, then = ' '.join(words[:at]), ' '.join(words[at:])
        if f'{first} \0' in texts() and f'\n{then}' in texts():
            return True
        if first.endswith(':') and f'{first[:-1]}\n' in texts() and f'\n{then}' in texts():  # error_wrap()
            return True
        if f'{first}\n' in texts() and (f'\0 {then}' in texts() or f'\0{then}' in texts()):
            return True
    return False


def stale(message):
    """The parts of a message that no program prints."""
    parts = [part.strip(' .,;:?()\'"') for part in re.sub(VALUES, '\n', message).split('\n')]
    return [part for part in parts if re.search('[a-z]', part) and not is_printed(part.split())]


def messages():
    """(document, message) of everything that can be one: what has three words, or stands in a table of messages."""
    for path, text in QUOTING.items():
        text = re.sub(r'^```.*?^```$|^    [^\n]*$', '', text, flags=re.M | re.S)
        for header in TABLES:
            for table in text.split(header)[1:]:
                for row in table.strip().split('\n\n')[0].splitlines():
                    yield from ((path, ' '.join(span.split())) for span in re.findall('`([^`]+)`', row.split(' | ')[0]))
        spans = re.findall('"([^"\n]+)"' if path in MANUAL else '`([^`]+)`', text)
        yield from ((path, ' '.join(span.split())) for span in spans if len(span.split()) > 2)


@functools.cache
def excused():
    """The beginnings of the texts that tests/README.md lists as no output, or as not compared, with the reasons."""
    found = [start for row in rows('| not compared | because |') for start in row]
    assert found
    return tuple(found)


@functools.cache
def helps():
    """{command of torusctl, or torusd: its help}"""
    def ask(*names):
        return subprocess.run([find_program('torusctl'), 'help', *names], check=True, text=True, stdout=subprocess.PIPE).stdout
    found = {name: ask(name) for name in re.findall(r'^  ([a-z][a-z-]*)  ', ask(), re.M)}
    assert len(found) > 20
    torusd = subprocess.run([find_program('torusd'), '--help'], check=True, text=True, stdout=subprocess.PIPE).stdout
    return found | {'torusd': torusd}


def command_of(message):
    """The command of torusctl or torusd that this text quotes, or None. A text that does not name torusctl must have options or an alternative."""
    found = re.match(r'(torusctl )?(?:--json )?([a-z-]+)(?: |$)', message)
    is_command = found and (found[1] or re.search(r'--[a-z]|\\\|', message)) and found[2] in helps()
    return found[2] if is_command else None


def test_commands_have_these_options():
    entered = {one: command for _, one in messages() if (command := command_of(one))}
    assert len(entered) > 40
    wrong = {one: option for one, command in entered.items() for option in re.findall(r'(?<!\S)\[?(--[a-z-]+)', one)
             if not re.search(rf'{option}\b(?!-)', helps()[command] + '--json')}
    assert wrong == {}


def test_messages_are_those_of_the_programs():
    quoted = [(path, one) for path, one in messages() if not one.startswith(excused()) and not command_of(one)]
    assert len(quoted) > 60
    assert {(path.name, one): found for path, one in quoted if (found := stale(one))} == {}


def test_a_message_that_no_program_prints_is_found():
    assert not stale('port +1 to node 6: no carrier on eth1')
    assert stale('port +1 to node 6: lost the carrier on eth1') and stale('node 9 is down: none of its cables is up')


def test_nothing_else_is_quoted():
    """Every block without a language is compared, run, or excused; all excuses are needed."""
    bodies = [body for text in QUOTING.values() for language in ('', 'text') for body in blocks(text, language)
              if not re.search(r'^\$ |^\[node\]$', body, re.M)]
    left = [body for body in bodies if not body.startswith(COMPARED)]
    assert len(bodies) - len(left) == len(COMPARED)
    assert [body for body in left if not body.startswith(excused())] == []
    everything = [*left, *(one for _, one in messages() if stale(one))]
    assert [start for start in excused() if not any(one.startswith(start) for one in everything)] == []
