"""Words that the glossary (daemon/doc/glossary.md) replaces by others, and turns of phrase that make readers stop, in
code, texts, comments and documents."""

import re

from . import sources

# Tests may name what they try in any words; the glossary and these files list the words themselves.
FOLDERS = ('daemon/', 'client/', 'proto/', 'topo/', 'scripts/', 'README.md')
LISTS = ('daemon/doc/glossary.md', 'scripts/linting/words.py')
SUFFIXES = ('.c', '.h', '.py', '.proto', '.md', '.in', '.txt')

WORDS = {r'objections?': 'nack',
         r'(shortest|longest|cheapest) ways?': 'path',
         r'anew': 'again; for attempts: retry; for groups: restart',
         r'(take|takes|took|taken) back': 'withdraw; of memory: release',
         r'(go|goes|went|going) around': 'avoid',
         r'its turn (has|comes|is)': 'start queue, is started',
         r'cargo': 'frame buffer',
         r'standing': 'restartable; group restart',
         r'befall(s|en)?|befell': 'happens to',
         r'to be had': 'there is; available',
         r'(has|have) to have been': 'must have been',
         r'(in )?rising order': 'ascending order',
         r'the \w+ of before': 'the previous one',
         r'so many (bytes|threads|units|nodes)': 'that many',
         r'what (has|have|had) become of': 'the state, or the outcome, of',
         r'(here|there|where)(by|from|of|in|upon)': 'the noun'}

# Case matters here: a sentence that begins so hides its subject.
BEGINNINGS = {r'Who (is|are|has|have|does|was|were|gets|sends|waits)\b(?![^.;]*\?)': 'a noun: a client that ...',
              r'What (has|have|was|were) not\b(?![^.;]*\?)': 'a noun: an algorithm that was not ...',
              r'Of (all else|those|them|which)\b': 'the subject first'}

PATTERNS = ([(re.compile(rf'\b({word})\b', re.IGNORECASE), instead) for word, instead in WORDS.items()] +
            [(re.compile(rf'\b{words}'), instead) for words, instead in BEGINNINGS.items()])


def check(root, _build):
    for name in sources.files(root, *SUFFIXES):
        if not name.startswith(FOLDERS) or name in LISTS:
            continue
        for i, line in enumerate((root / name).read_text().splitlines(), 1):
            for pattern, instead in PATTERNS:
                found = pattern.search(line)
                if found:
                    yield f'{name}:{i}', f'"{found[0]}" makes readers stop: write {instead}'
