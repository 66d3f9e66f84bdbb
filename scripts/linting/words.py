"""Words that the glossary (daemon/doc/glossary.md) replaces by others, in code, texts, comments and documents."""

import re

from . import sources

# Tests may name what they try in any words; the glossary and these files list the words themselves.
FOLDERS = ('daemon/', 'client/', 'proto/', 'topo/', 'scripts/', 'README.md')
LISTS = ('daemon/doc/glossary.md', 'scripts/linting/words.py')
SUFFIXES = ('.c', '.h', '.py', '.proto', '.md', '.in')

WORDS = {r'anew': 'again; for attempts: retry; for groups: restart',
         r'(take|takes|took|taken) back': 'withdraw; of memory: release',
         r'(go|goes|went|going) around': 'avoid',
         r'its turn (has|comes|is)': 'start queue, is started'}
PATTERNS = [(re.compile(rf'\b{word}\b', re.IGNORECASE), instead) for word, instead in WORDS.items()]


def check(root, _build):
    for name in sources.files(root, *SUFFIXES):
        if not name.startswith(FOLDERS) or name in LISTS:
            continue
        for i, line in enumerate((root / name).read_text().splitlines(), 1):
            for pattern, instead in PATTERNS:
                found = pattern.search(line)
                if found:
                    yield f'{name}:{i}', f'"{found[0]}": the glossary has other words for it ({instead})'
