"""The command lines of a program, as the writers for the shells need them."""

import re
from dataclasses import dataclass

from . import values


@dataclass(frozen=True)
class Word:
    """An option, or a positional argument (its name has no hyphens). placeholder: None for a flag."""
    name: str
    placeholder: str
    help: str
    value: values.Value

    @property
    def repeated(self):
        """Whether it may be given several times."""
        return (self.placeholder or self.name).endswith('...')


@dataclass(frozen=True)
class Command:
    """name: '' for the options of all commands, or for a program without commands."""
    name: str
    summary: str
    words: tuple

    @property
    def options(self):
        return [word for word in self.words if word.name.startswith('-')]

    @property
    def arguments(self):
        return [word for word in self.words if not word.name.startswith('-')]


@dataclass(frozen=True)
class Program:
    name: str
    common: Command
    commands: tuple


def summary(text):
    """The help of an option in a few words: without lines, and without what follows the first part."""
    text = ' '.join(text.split())
    return re.split(r'(?<=[^.])[;:(]| \(', text)[0].rstrip(' ,;:')


def _word(command, row, tables):
    name, placeholder = row['name'], row['value']
    return Word(name, placeholder, summary(row['help']), values.value_of(command, name, placeholder, tables))


def torusctl(tables):
    common = Command('', '', tuple(_word('', row, tables) for row in tables['options']))
    return Program('torusctl', common, tuple(
        Command(row['name'], row['summary'], tuple(_word(row['name'], option, tables) for option in row['options']))
        for row in tables['commands']))


def torusd(tables):
    rows = [{**row, 'name': '--' + row['option']} for row in tables['options']]
    return Program('torusd', Command('', '', tuple(_word('torusd', row, tables) for row in rows)), ())


def torusrun(tables):
    """The command run by its other name."""
    found = torusctl(tables)
    run, = (command for command in found.commands if command.name == 'run')
    return Program('torusrun', Command('', '', run.words + found.common.words), ())
