"""Maps: each folder of daemon/ and client/ that holds C files stands on an architecture page, and each file of the project
that a comment or a document names exists."""

import os
import re
from fnmatch import fnmatch

from . import sources

PAGES = ('daemon/doc/architecture.md', 'client/doc/architecture.md')
# A path begins in one of these, or in the folder of the file that names it.
BASES = ('', 'daemon/lib/', 'daemon/torusd/', 'client/cli/', 'daemon/', 'client/', 'client/include/')
SUFFIX = r'\.(?:c|h|py|md|proto)'
PART = r'[\w.*-]+'
PATH = re.compile(rf'(?<![\w./<:@~$}}-])((?:\.\./)*{PART}(?:/{PART})+{SUFFIX})(?![\w/-])')
BARE = re.compile(rf'(?<![\w./<:@~$}}*-])([\w*][\w.*-]*{SUFFIX})(?![\w/-])')
PLACEHOLDER = re.compile(r'(?<![a-z])[A-Z]{1,}(?![a-z])')  # NAME.c, test_X.py
# Files of systems and libraries that comments and documents name.
SYSTEM = re.compile(r'(^|/)(linux|sys|net|netinet|arpa|asm|openssl|uv|jansson|mpi)[\w/-]*\.h$|\.pb-c\.[ch]$')


def folders_named(text, exists):
    """The folders in backquotes on a page: below the one that the heading names, or else below a base."""
    within = ''
    for line in text.split('\n'):
        found = []
        for name in re.findall(r'`([\w.-]+(?:/[\w.-]+)*)/?`', line):
            bases = ([within + '/'] if within else []) + list(BASES)
            found += [base + name for base in bases if exists(base + name)][:1]
        if line.startswith('#'):
            within = found[0] if found else ''
        yield from found


def check_folders(root):
    files = sources.files(root, '.c', '.h')
    holding = {os.path.dirname(name) for name in files if name.startswith(('daemon/', 'client/'))}
    named = set()
    for page in PAGES:
        if (root / page).is_file():
            named |= set(folders_named((root / page).read_text(), lambda name: (root / name).is_dir()))
    for folder in sorted(holding - named):
        yield folder, f'stands on neither {" nor ".join(PAGES)}: say there what it holds'


def comments(name, text):
    """(number of the line, text) of what people read: comments of C, comments and docstrings of Python, whole documents."""
    if name.endswith('.md'):
        yield from enumerate(text.split('\n'), 1)
        return
    pattern = r'#[^\n]*|"""[\s\S]*?"""' if name.endswith('.py') else r'/\*[\s\S]*?\*/|(?<!:)//[^\n]*'
    strings = r"'''[\s\S]*?'''|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\""
    for found in re.finditer(f'({pattern})|{strings}', text):
        if found[1]:
            first = text.count('\n', 0, found.start()) + 1
            yield from enumerate(found[1].split('\n'), first)


def check_files(root):
    tracked = set(sources.files(root, ''))
    bare = {os.path.basename(name) for name in tracked}

    def is_there(name, path):
        folders = [os.path.dirname(name)]
        while folders[-1]:
            folders.append(os.path.dirname(folders[-1]))
        places = [os.path.normpath(os.path.join(base, path)) for base in (*folders, *BASES)]
        if '*' in path:
            return any(fnmatch(file, place) for place in places for file in tracked)
        return any(place in tracked for place in places)

    for name in sources.files(root, '.c', '.h', '.py', '.md', '.proto'):
        for line, text in comments(name, (root / name).read_text()):
            for path in PATH.findall(text):
                if not PLACEHOLDER.search(path) and not SYSTEM.search(path) and not is_there(name, path):
                    yield f'{name}:{line} {path}', 'there is no such file'
            for file in BARE.findall(text):
                if not PLACEHOLDER.search(file) and not SYSTEM.search(file) and \
                        not any(fnmatch(other, file) for other in bare):
                    yield f'{name}:{line} {file}', 'there is no file of that name'


def check(root, _build):
    yield from check_folders(root)
    yield from check_files(root)
