"""A page: its sections from tables and from a file of prose, in the usual order."""

import re

from . import scdoc

ORDER = ['SYNOPSIS', 'DESCRIPTION', 'COMMANDS', 'OPTIONS', 'OPTIONS OF ALL COMMANDS', 'SETTINGS', '*', 'EXIT STATUS',
         'ENVIRONMENT', 'FILES', 'EXAMPLES', 'SEE ALSO']  # '*': all other sections


class PageError(Exception):
    """A page cannot be made; the message says why."""


def sections(text, name):
    """{heading: text} of a file of prose, in its order."""
    before, *rest = re.split(r'^# (.+)\n', text, flags=re.M)
    if before.strip():
        raise PageError(f'{name}: begins with text above its first section')
    return {heading: body.strip('\n') + '\n' for heading, body in zip(rest[::2], rest[1::2])}


def place(heading):
    return ORDER.index(heading if heading in ORDER else '*')


def references(bodies):
    """Merges lists of pages into one list without duplicates."""
    return ', '.join(dict.fromkeys(page.strip() for body in reversed(bodies) for page in body.split(','))) + '\n'


def page(name, number, version, summary, made, written):
    """The text of a page for scdoc. If prose and tables both have a section, the prose comes first, except in the
    synopsis."""
    both = {**made, **written}
    order = sorted(both, key=place)
    parts = [f'{name}({number}) "torusd {version}" "torusd"\n', f'# NAME\n\n{name} - {scdoc.escape(summary)}\n']
    for heading in order:
        texts = (made, written) if heading == 'SYNOPSIS' else (written, made)
        bodies = [text[heading] for text in texts if heading in text]
        body = references(bodies) if heading == 'SEE ALSO' else '\n'.join(bodies)
        parts.append(f'# {heading}\n\n{body}')
    return '\n'.join(parts)
