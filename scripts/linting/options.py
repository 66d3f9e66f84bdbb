"""Options: each program says in its help what each of its options does, documents name only options that exist, and
each program and command is named in a document."""

import ast
import re

from . import sources

CODE = ('client/', 'daemon/', 'topo/', 'scripts/', 'tests/')
COMMANDS, COMMANDS_DOCUMENT = 'client/cli/commands/', 'client/doc/commands.md'
PROGRAMS = (r"(?:^|[$>'(]|sudo |\bat RANK )\s*"
            r'(?:torusctl|torusd|torusd-discover|torusd-setup|torus-routed|(?:topo/)?torus\.py|(?:scripts/)?vm-up|scripts/[\w-]+)(?= )')
# Rows of the tables of all programs, and of the settings of torusd: the name of an option, and its help if it is empty.
TABLES = (r'\{[\s\\]*"--([a-z-]+)",\s*(?:NULL|"[^"]*"),\s*\w+\((?:[^()]|\([^()]*\))*\),\s*((?:NULL|"")\s*\})?',
          r'\{"([a-z-]+)",\s*(?:NULL|"\w+"),\s*(?:NULL|"[^"]*"),\s*\w+,\s*(?:NO_)?PLACE\b(?:\([^()]*\))?,\s*(NULL|"")?')


def in_c(name, text):
    """(option, whether it is explained)."""
    tables = TABLES if name.startswith('daemon/') else TABLES[:1]
    for option, empty in [row for table in tables for row in re.findall(table, text)]:
        yield option, not empty


def in_python(text):
    for call in ast.walk(ast.parse(text)):
        if not isinstance(call, ast.Call) or getattr(call.func, 'attr', None) != 'add_argument':
            continue
        explained = any(word.arg == 'help' and not (isinstance(word.value, ast.Constant) and not word.value.value)
                        and getattr(word.value, 'attr', None) != 'SUPPRESS' for word in call.keywords)
        for argument in call.args:
            option = argument.value if isinstance(argument, ast.Constant) else ast.unparse(argument)
            for found in re.findall(r'^(?:f\')?--([a-z-]+|\{.*?\}[a-z-]*)', str(option)):
                yield found, explained


def in_shell(text, passed_on):
    """Options of `case`; explained in a here-document, by echo, or by the program that they are passed to."""
    told = ' '.join(part for groups in re.findall(r"<<-?'?(\w+)'?\n(.*?)\n\1\n|echo '(.*?)'", text, re.S)
                    for part in groups)
    for pattern in re.findall(r'^\s*((?:-[\w-]+(?:=?\*)?(?: \| )?)+)\)', text, re.M):
        for option, star in re.findall(r'--([a-z-]+)(\*?)(?![\w*=-])', pattern):
            shown = rf'--{option}[A-Z]' if star else rf'--{option}\b(?!-)'
            yield option + star, option in passed_on or re.search(shown, told) is not None


def of_programs(root):
    """(file, option, whether it is explained), of all programs."""
    shell, explained = [], set()
    for name in sources.files(root, ''):
        if not name.startswith(CODE) or name.endswith(('.md', '.png', '.svg', '.in')):
            continue
        if name.endswith(('.c', '.h')):
            found = in_c(name, (root / name).read_text())
        else:
            text = (root / name).read_bytes()[:1 << 20].decode(errors='replace')
            if text.startswith('#!/bin/bash'):
                shell.append((name, text))
                continue
            if not name.endswith('.py') and not text.startswith('#!/usr/bin/python3'):
                continue
            found = in_python(text)
        for option, good in found:
            explained |= {option} if good else set()
            yield name, option, good
    for name, text in shell:
        for option, good in in_shell(text, explained):
            yield name, option, good


def named(text):
    """(number of the line, option) of each option of this project that a document names in code."""
    block = False
    for i, line in enumerate(text.split('\n'), 1):
        block ^= line.startswith('```')
        code = [line] if block or line.startswith('    ') else re.findall(r'`([^`]+)`', line)
        for part in code:
            begin = re.search(PROGRAMS, part)
            if begin or re.match(r'--\w', part) and not block:
                words = re.split(r'\s#|\s\||\)', part[begin.end() if begin else 0:])[0]
                for option in re.findall(r'(?<![\w-])--([a-z][a-z-]*)', words):
                    yield i, option


def unknown(known, documents):
    """(where, text) of each option that only a document knows. `{...}` and `*` in an option stand for any letters."""
    loose = [re.sub(r'\{.*?\}|\*', '[a-z-]+', option) for option in known if re.search('[{*]', option)]
    wild = re.compile('|'.join(loose) or '(?!)')
    for name, text in documents.items():
        for line, option in named(text):
            if option not in known and not wild.fullmatch(option):
                yield f'{name}:{line} --{option}', 'no program has this option'


def unnamed(root, documents):
    """(where, text) of each program and command of torusctl that no document names."""
    for name in sources.files(root, ''):
        is_program = re.match(r'scripts/[\w-]+$', name) and (root / name).read_bytes()[:2] == b'#!'
        if is_program and not any(name in text for text in documents.values()):
            yield name, 'no document names this program'
        if name.startswith(COMMANDS) and name.endswith('.c'):
            command = re.search(r'^    \.name = "([a-z-]+)"', (root / name).read_text(), re.M)
            if command and not re.search(rf'^\| `{command[1]}\b(?!-)', documents.get(COMMANDS_DOCUMENT, ''), re.M):
                yield name, f'{COMMANDS_DOCUMENT} has no row for {command[1]}'


def parsers(root):
    """(where, text) of each program in C with an option parser of its own."""
    for name in sources.files(root, ''):
        if name.endswith(('.c', '.h')) and '#include <getopt.h>' in (root / name).read_text():
            yield name, 'options are read by daemon/lib/command_line: use its tables'


def check(root, _build):
    yield from parsers(root)
    documents = {name: (root / name).read_text() for name in sources.files(root, '.md')}
    found = list(of_programs(root))
    for name, option, explained in found:
        if not explained:
            yield f'{name} --{option}', 'the help does not say what this option does'
    yield from unknown({option for _, option, _ in found}, documents)
    yield from unnamed(root, documents)
