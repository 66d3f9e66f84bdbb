"""Sections of libtorus(3), from the comments and declarations of its headers."""

import re

from . import scdoc
from .page import PageError

HEADERS = {'error.h': 'ERRORS AND VERSION', 'client.h': 'CLIENTS', 'exchange.h': 'OPERATIONS ON THE WHOLE TORUS',
           'copy.h': 'COPIES OF FILES', 'prediction.h': 'PREDICTIONS AND COSTS', 'status.h': 'STATUS AND LINKS',
           'survey.h': 'SURVEYS', 'group.h': 'GROUPS'}
MAIN = 'torus.h'
EXPORT = 'TORUS_EXPORT '


def comment_text(comment):
    """The text of a comment without its marks and indentation."""
    lines = comment.removesuffix('*/').rstrip().splitlines()
    return '\n'.join(line[3:].rstrip() for line in lines)


def body(text):
    """The text of a header without its guard, the lines for C++, and includes."""
    text = re.sub(r'^#ifdef __cplusplus\n.*?^#endif\n', '', text, flags=re.M | re.S)
    text = re.sub(r'^#if defined\(__GNUC__\)\n.*?^#endif\n', '', text, flags=re.M | re.S)
    return re.sub(r'^#(ifndef|endif|include|define TORUS_\w+_H\b).*\n', '', text, flags=re.M)


def chunks(text):
    """(kind, lines) of the header in order: 'comment', 'declaration', or 'blank'."""
    lines, i = text.splitlines(), 0
    while i < len(lines):
        start = i
        if not lines[i].strip():
            kind = 'blank'
        elif lines[i].startswith('/*'):
            kind = 'comment'
            while not lines[i].rstrip().endswith('*/'):
                i += 1
        else:
            kind = 'declaration'
            while not ends(lines[start:i + 1]):
                i += 1
        i += 1
        yield kind, lines[start:i]


def ends(lines):
    """Whether the lines are a complete declaration."""
    code = re.sub(r'/\*.*?(\*/|\Z)', '', '\n'.join(lines), flags=re.S).strip()
    if code.startswith('#define'):
        return not code.endswith('\\')
    return code.count('{') == code.count('}') and code.count('(') == code.count(')') and code.endswith((';', '}'))


def shown(lines):
    """A declaration as the page shows it."""
    if lines[0].startswith('static inline'):
        signature = '\n'.join(lines).partition('\n{')[0]
        return (signature.removeprefix('static inline ') + ';').splitlines()
    if not lines[0].startswith(EXPORT):
        return lines
    indent = ' ' * len(EXPORT)
    return [lines[0].removeprefix(EXPORT), *(line.removeprefix(indent) for line in lines[1:])]


def groups(text):
    """(comment, declarations, heading) in order. A comment explains the declarations below it up to an empty line."""
    comment, declarations = '', []
    for kind, lines in chunks(text):
        heading = re.match(r'/\* -+ (.*?) -+ \*/', lines[0]) if kind == 'comment' else None
        if kind == 'declaration':
            declarations.extend(shown(lines))
            continue
        if kind == 'comment' and declarations and not heading:
            yield comment, declarations, None
            comment, declarations = comment_text('\n'.join(lines)), []
            continue
        if (comment or declarations):
            yield comment, declarations, None
            comment, declarations = '', []
        if heading:
            yield '', [], heading[1]
        elif kind == 'comment':
            comment = comment_text('\n'.join(lines))
    if comment or declarations:
        yield comment, declarations, None


def section(text):
    parts = []
    for comment, declarations, heading in groups(body(text)):
        if heading:
            parts.append(f'## {heading}\n')
        if declarations:
            parts.append(scdoc.literal(declarations))
        if comment:
            parts.append(scdoc.prose(comment))
    return '\n'.join(parts)


def library(folder):
    """(summary, sections) of libtorus(3)."""
    unknown = sorted({path.name for path in folder.glob('*.h')} - {MAIN, *HEADERS})
    if unknown:
        raise PageError(f'libtorus.3: has no section for {folder / unknown[0]}: add it to HEADERS in {__file__}')
    main = (folder / MAIN).read_text()
    return 'use a torus of directly cabled machines from a program', {
        'SYNOPSIS': '\n'.join(scdoc.bold(f'#include <torus/{name}>') + ('++' if name == MAIN else '')
                              for name in (MAIN, 'group.h')) + '\n',
        'DESCRIPTION': scdoc.prose(comment_text(re.match(r'/\*.*?\*/', main, re.S)[0])),
        **{heading: section((folder / name).read_text()) for name, heading in HEADERS.items()},
    }


def functions(folder):
    """The names of the functions that the headers declare, each once."""
    found = []
    for name in HEADERS:
        for _, declarations, _ in groups(body((folder / name).read_text())):
            code = re.sub(r'/\*.*?\*/', '', '\n'.join(declarations), flags=re.S)
            found += re.findall(r'^(?:\w[\w ]*[ *])?(torus_\w+)\((?!\*)', code, re.M)
    return list(dict.fromkeys(found))
