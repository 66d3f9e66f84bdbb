"""Completions for zsh, by its function _arguments."""

import re

from . import values

ACTIONS = {values.FILES: '_files', values.FOLDERS: '_files -/', values.GROUPS: '_groups', None: ' '}


def _quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def _escaped(text):
    """A description within a specification."""
    return re.sub(r'([\[\]:\\])', r'\\\1', text)


def _action(value):
    if value.kind == values.WORDS:
        return f'({" ".join(value.words)})'
    if value.kind == values.LIST:
        return f'_values -s , algorithm {" ".join(value.words)}'
    return ACTIONS[value.kind]


def _specification(word):
    star = '*' if word.repeated else ''
    if not word.name.startswith('-'):
        return _quoted(f'{star}:{_escaped(word.name)}:{_action(word.value)}')
    if not word.placeholder:
        return _quoted(f'{word.name}[{_escaped(word.help)}]')
    return _quoted(f'{star}{word.name}=[{_escaped(word.help)}]:{_escaped(word.placeholder)}:{_action(word.value)}')


def _lines(words, indent):
    return ' \\\n'.join(indent + _specification(word) for word in words)


def write(program):
    """The text of the completion of a model.Program."""
    head = f'#compdef {program.name}\n# Made by the build from the options of {program.name}.\n\n'
    if not program.commands:
        return head + '_arguments \\\n' + _lines(program.common.words, '    ') + '\n'
    commands = '\n'.join('    ' + _quoted(f'{command.name}:{_escaped(command.summary)}')
                         for command in program.commands)
    cases = '\n'.join(f'    {command.name})\n        _arguments "$common[@]"'
                      + (' \\\n' + _lines(command.words, '            ') if command.words else '') + ' ;;'
                      for command in program.commands)
    common = '\n'.join('    ' + _specification(word) for word in program.common.words)
    return head + f'''local curcontext=$curcontext state line
local -a commands common
commands=(
{commands}
)
common=(
{common}
)
_arguments -C "$common[@]" '1: :->command' '*:: :->words'
case $state in
command) _describe command commands ;;
words)
    case $words[1] in
{cases}
    esac ;;
esac
'''
