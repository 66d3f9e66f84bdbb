"""Files and functions that are too long to read at once."""

import re

from . import sources

FILE_LINES, FUNCTION_LINES = 800, 60


def functions(lines):
    """(number of the first line, count of lines, name) of each function of a C file in the project's format."""
    start = None
    for i, line in enumerate(lines):
        if line == '{':
            start = i
            while start > 0 and lines[start - 1].strip() and not lines[start - 1].startswith(
                    ('}', '/*', ' *', '#', '//')):
                start -= 1
        elif line == '}' and start is not None:
            name = re.search(r'(\w+)\(', ' '.join(lines[start:i]))
            yield start + 1, i - start + 1, name[1] if name else '?'
            start = None


def check(root, _build):
    for name in sources.files(root, '.c', '.h', '.py'):
        lines = (root / name).read_text().splitlines()
        if len(lines) > FILE_LINES:
            yield name, f'{len(lines)} lines, at most {FILE_LINES}: divide it by what it is about'
        for line, count, function in functions(lines) if name.endswith('.c') else ():
            if count > FUNCTION_LINES:
                yield f'{name}:{line} {function}()', f'function of {count} lines, at most {FUNCTION_LINES}: divide it'
