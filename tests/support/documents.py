"""The documents of the project, and what they show."""

import re

from torus_net import CHECKOUT

FOLDERS = 'client', 'daemon', 'proto', 'tests', 'topo'
DOCUMENTS = {path: path.read_text() for path in
             sorted([*CHECKOUT.glob('*.md'), *(path for folder in FOLDERS for path in (CHECKOUT / folder).rglob('*.md'))])}
MANUAL = {path: path.read_text() for path in sorted(CHECKOUT.glob('*/doc/man/*.scd.in'))}


def blocks(text, language):
    return [body for name, body in re.findall(r'^```(\w*)\n(.*?)^```$', text, re.M | re.S) if name == language]


def block(language, part):
    """The only block in this language, in all documents, that contains this text."""
    found, = [body for text in DOCUMENTS.values() for body in blocks(text, language) if part in body]
    return found


def rows(header):
    """The first columns of the rows of a table in tests/README.md, as lists of what stands in backticks."""
    table = DOCUMENTS[CHECKOUT / 'tests' / 'README.md'].partition(f'{header}\n|---|---|\n')[2].partition('\n\n')[0]
    return [re.findall(r'`([^`]+)`', row.split(' | ')[0]) for row in table.splitlines()]


def without_values(text):
    """The first columns of lines of output, without numbers."""
    return [re.sub(r'\d[\d.]*', 'N', re.split('  +', line.strip())[0]) for line in text.splitlines()]
