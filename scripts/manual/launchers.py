"""Sections of the pages of torus.py and vm-up, from their parsers of options."""

import argparse

from . import scdoc


def value(action):
    if action.choices:
        return scdoc.synopsis('|'.join(action.choices))
    return scdoc.underlined(action.metavar or action.dest)


def option(action, formatter):
    term = ', '.join(scdoc.bold(name) for name in action.option_strings)
    if not action.option_strings:
        term = value(action)
    elif action.nargs != 0:
        term += ' ' + value(action)
    return scdoc.definition(term, scdoc.escape(scdoc.one_line(formatter._expand_help(action))) + '.')


def launcher(parser, path):
    """(summary, sections) of the page."""
    formatter = parser._get_formatter()
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    description, _, status = parser.epilog.partition('\nExit status: ')
    names = [scdoc.underlined(action.metavar) for action in actions if not action.option_strings]
    return 'bring up a torus of torusd daemons on one machine', {
        'SYNOPSIS': ' '.join([scdoc.bold(path), *names, '[option...]']) + '\n',
        'DESCRIPTION': scdoc.prose(parser.description) + '\n' + scdoc.prose(description),
        'OPTIONS': '\n'.join(option(action, formatter) for action in actions),
        'EXIT STATUS': scdoc.prose(status[0].upper() + status[1:]),
    }
