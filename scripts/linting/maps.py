"""Maps: each folder of daemon/ and client/ that holds C files stands on an architecture page, each folder in a table there
exists, and so does each file of the project that a comment or a document names."""

import os
import re
from fnmatch import fnmatch

from . import sources

PAGES = {'daemon/doc/architecture.md': ('daemon/lib/', 'daemon/torusd/', 'daemon/', ''),
         'client/doc/architecture.md': ('client/cli/', 'client/', '')}
# Where a path may begin, beside the folder of the file that names it and the folders above that.
BASES = ('', 'daemon/lib/', 'daemon/torusd/', 'client/cli/', 'daemon/', 'client/', 'client/include/')
SUFFIX = r'\.(?:c|h|py|md|proto(?:\.in)?)'
BEFORE, AFTER = r'(?<![\w./<:@~$}*-])', r'(?![\w/-])'
PATH = re.compile(rf'{BEFORE}((?:\.\./)*[\w.*-]+(?:/[\w.*-]+)+{SUFFIX}){AFTER}')
NAME = re.compile(rf'{BEFORE}([\w*][\w.*-]*{SUFFIX}){AFTER}')
PLACEHOLDER = re.compile(r'(?<![a-z])[A-Z]+(?![a-z])')  # NAME.c, test_X.py
# Headers of the system and of libraries, and what is made in the build.
ELSEWHERE = re.compile(r'^(linux|sys|net|netinet|arpa|asm)/[\w/-]*\.h$|\.pb-c\.[ch]$|^(peer|control|copy|spec)\.proto$')


def folders_named(page, text, exists):
    """(number of the line, name, folder or None) of each folder in backquotes on a page; None: a table has a row for it, and
    there is none. A name begins in the folder that the heading above names, or in a base of the page."""
    within, in_table = '', False
    for i, line in enumerate(text.split('\n'), 1):
        found = []
        in_table = line.startswith('| folder') or in_table and line.startswith('|')
        row = line.split('|')[1] if in_table and not line.startswith('| folder') else ''
        for name in re.findall(r'`([\w.-]+(?:/[\w.-]+)*)/?`', line):
            bases = ([within + '/'] if within else []) + list(PAGES[page])
            folder = next((base + name for base in bases if exists(base + name)), None)
            found += [folder] if folder else []
            if folder or f'`{name}`' in row or f'`{name}/`' in row:
                yield i, name, folder
        if line.startswith('#'):
            within = found[0] if found else ''


def check_folders(root):
    files = sources.files(root, '.c', '.h')
    holding = {os.path.dirname(name) for name in files if name.startswith(('daemon/', 'client/'))}
    named = set()
    for page in PAGES:
        if (root / page).is_file():
            text = (root / page).read_text()
            for line, name, folder in folders_named(page, text, lambda name: (root / name).exists()):
                named.add(folder)
                if folder is None:
                    yield f'{page}:{line} {name}', 'there is no such folder'
    for folder in sorted(holding - named):
        yield folder, f'stands neither on {" nor on ".join(PAGES)}: say there what it holds'


def comments(name, text):
    """(number of the line, text) of what people read: comments, docstrings of Python, whole documents."""
    if name.endswith('.md'):
        yield from enumerate(text.split('\n'), 1)
        return
    comment = r'#[^\n]*|"""[\s\S]*?"""' if name.endswith('.py') else r'/\*[\s\S]*?\*/|//[^\n]*'
    string = r"'''[\s\S]*?'''|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\""
    for found in re.finditer(f'({comment})|{string}', text):
        if found[1]:
            yield from enumerate(found[1].split('\n'), text.count('\n', 0, found.start()) + 1)


def check_files(root):
    known = set(sources.files(root, ''))
    names = {os.path.basename(name) for name in known}

    def exists(by, path):
        folders = [os.path.dirname(by)]
        while folders[-1]:
            folders.append(os.path.dirname(folders[-1]))
        places = [os.path.normpath(os.path.join(base, path)) for base in (*folders, *BASES)]
        return any(place in known or '*' in place and any(fnmatch(file, place) for file in known) for place in places)

    for by in sources.files(root, '.c', '.h', '.py', '.js', '.md', '.proto', '.proto.in'):
        for line, text in comments(by, (root / by).read_text()):
            for path in PATH.findall(text):
                if not PLACEHOLDER.search(path) and not ELSEWHERE.search(path) and not exists(by, path):
                    yield f'{by}:{line} {path}', 'there is no such file'
            for name in NAME.findall(text):
                if not PLACEHOLDER.search(name) and not ELSEWHERE.search(name) and name not in names and \
                        not ('*' in name and any(fnmatch(other, name) for other in names)):
                    yield f'{by}:{line} {name}', 'there is no file of this name'


def check(root, _build):
    yield from check_folders(root)
    yield from check_files(root)
