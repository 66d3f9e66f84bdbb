"""Links between documents: the file and the heading exist. Links to other sites are not checked. No heading stands twice
in a row, as one does after two changes of a document were put together."""

import os
import re
from urllib.parse import unquote

from . import sources


def without_code(text):
    """The text with empty lines in place of code blocks, and without code spans."""
    text = re.sub(r'^( *)```.*?^ *```', lambda block: '\n' * block[0].count('\n'), text, flags=re.M | re.S)
    return re.sub(r'`[^`\n]*`', '', text)


def anchors(text):
    """The anchors of a text's headings, as GitHub makes them."""
    found = {}
    text = re.sub(r'^( *)```.*?^ *```', '', text, flags=re.M | re.S)
    for heading in re.findall(r'^#{1,6} +(.+?)(?: +#+)? *$', text, re.M):
        heading = re.sub(r'\[([^]]*)\]\([^)]*\)', r'\1', heading).lower()
        name = re.sub(r'[^\w\- ]', '', heading).replace(' ', '-')
        found[name] = found.get(name, -1) + 1
    return {f'{name}-{i}' if i else name for name, last in found.items() for i in range(last + 1)}


def links(text):
    """(number of the line, target) of each link and picture."""
    for i, line in enumerate(without_code(text).split('\n'), 1):
        for target in re.findall(r'\]\(([^)\s]+)', line):
            yield i, target


def doubled(text):
    """(number of the line, heading) of each heading that repeats the one right before it."""
    before = None
    for i, line in enumerate(without_code(text).split('\n'), 1):
        heading = re.match(r'#{1,6} +(.+?)(?: +#+)? *$', line)
        if heading and heading[1] == before:
            yield i, before
        if line.strip():
            before = heading and heading[1]


def check(root, _build):
    for name in sources.files(root, '.md'):
        text = (root / name).read_text()
        for line, heading in doubled(text):
            yield f'{name}:{line}', f'the heading "{heading}" stands twice: remove one'
        for line, target in links(text):
            if re.match(r'[a-z]+:', target):
                continue
            path, _, anchor = unquote(target).partition('#')
            file = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            if path.startswith('/') or file.startswith('..'):
                yield f'{name}:{line}', f'{target} leads out of the project: write a relative path'
            elif not (root / file).exists():
                yield f'{name}:{line}', f'{target}: there is no {file}'
            elif anchor and file.endswith('.md') and anchor not in anchors((root / file).read_text()):
                yield f'{name}:{line}', f'{target}: {file} has no heading of that name'
