"""Sections of the pages of torusctl, torusd and torusd.ini, from the tables that the programs print."""

import re

from . import scdoc


def option(row):
    name, value = row['name'], row['value']
    term = scdoc.bold(name) if name.startswith('-') else scdoc.underlined(name)
    if value and name.startswith('-'):
        term += ' ' + scdoc.synopsis(value)
    return scdoc.definition(term, scdoc.escape(scdoc.one_line(row['help'])) + '.')


def options(rows):
    return '\n'.join(option(row) for row in rows)


def forms(usage):
    """The forms of a usage of several lines. A line that begins with "[" continues the form above it."""
    lines = []
    for line in usage.splitlines():
        if lines and line.strip().startswith('['):
            lines[-1] += ' ' + line.strip()
        else:
            lines.append(line.strip())
    return lines


def synopsis(program, usage):
    return '++\n'.join(f'{scdoc.bold(program)} {scdoc.synopsis(form)}' for form in forms(usage)) + '\n'


def exit_status(tables):
    return '\n'.join(scdoc.definition(scdoc.bold(str(row['code'])), scdoc.escape(scdoc.one_line(row['text'])) + '.')
                     for row in tables['exit_meanings'])


def lower_first(text):
    return text[0].lower() + text[1:]


def command(tables, row):
    """(summary, sections) of the page of a command."""
    description, _, examples = row['details'].partition('examples:\n')
    needs = 'This command needs *torusd*(8) on this machine.' if row['needs_daemon'] else \
        'This command does not need a daemon.'
    made = {
        'SYNOPSIS': synopsis(f'torusctl {row["name"]}', row['usage']),
        'DESCRIPTION': scdoc.prose(description) + '\n' + needs + '\n',
        'OPTIONS OF ALL COMMANDS': options(tables['options']),
        'EXIT STATUS': exit_status(tables),
        'SEE ALSO': see_also('torusctl(1)', *mentioned(row, tables['commands'])),
    }
    if row['options']:
        made['OPTIONS'] = options(row['options'])
    if examples:
        made['EXAMPLES'] = scdoc.prose(examples)
    return lower_first(row['summary']), made


def see_also(*pages):
    return ', '.join(re.sub(r'(.*)\((\d)\)', lambda m: f'{scdoc.bold(m[1])}({m[2]})', page)
                     for page in dict.fromkeys(pages)) + '\n'


def mentioned(row, commands):
    """The pages of other commands that the explanation of a command names, as in 'torusctl help plan'."""
    names = re.findall(r"'torusctl\s+(?:help\s+)?([a-z-]+)[^']*'", row['details'])
    known = {other['name'] for other in commands} - {row['name']}
    return [f'torusctl-{name}(1)' for name in names if name in known]


def overview(tables):
    """(summary, sections) of torusctl(1)."""
    rows = tables['commands']
    return lower_first(tables['summary']), {
        'SYNOPSIS': synopsis('torusctl', tables['usage']),
        'OPTIONS': options(tables['options']),
        'COMMANDS': '\n'.join(scdoc.definition(f'{scdoc.bold("torusctl-" + row["name"])}(1)',
                                               scdoc.escape(row['summary']) + '.') for row in rows),
        'EXIT STATUS': exit_status(tables),
        'EXAMPLES': scdoc.prose(tables['examples']),
        'SEE ALSO': see_also('torusd(8)', 'libtorus(3)'),
    }


def daemon(tables):
    """The sections of torusd(8)."""
    return {'OPTIONS': options([{**row, 'name': '--' + row['option']} for row in tables['options']])}


def routed(tables):
    """The sections of torus-routed(8)."""
    return {'OPTIONS': options([{**row, 'name': '--' + row['option']} for row in tables['routed']])}


def discover(tables):
    """The sections of torusd-discover(8)."""
    return {'OPTIONS': options([{**row, 'name': '--' + row['option']} for row in tables['discover']])}


def setup(tables):
    """The sections of torusd-setup(8)."""
    return {'OPTIONS': options([{**row, 'name': '--' + row['option']} for row in tables['setup']])}


def settings(tables):
    """The sections of torusd.ini(5)."""
    return {'SETTINGS': '\n'.join(
        scdoc.definition(f'{scdoc.bold(row["name"])} = {scdoc.synopsis(row["value"])}',
                         scdoc.escape(scdoc.one_line(row['help'])) + '.')
        for row in tables['options'] if row['name'])}
