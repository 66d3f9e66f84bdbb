"""Files and functions that are too long to be read at once."""

import subprocess

FILE_LINES, FUNCTION_LINES = 500, 60


def functions(lines):
    """(number of the first line, count of lines) of each function of a C file in the project's format."""
    start = None
    for i, line in enumerate(lines):
        if line == '{':
            start = i
            while start > 0 and lines[start - 1].strip() and not lines[start - 1].startswith(
                    ('}', '/*', ' *', '#', '//')):
                start -= 1
        elif line == '}' and start is not None:
            yield start + 1, i - start + 1
            start = None


def check(root, _build):
    names = subprocess.run(['git', 'ls-files', '*.c', '*.h', '*.py'], cwd=root, capture_output=True, text=True,
                           check=True).stdout.splitlines()
    for name in names:
        if not (root / name).exists():
            continue
        lines = (root / name).read_text().splitlines()
        if len(lines) > FILE_LINES:
            yield f'{name}:1', f'{len(lines)} lines, at most {FILE_LINES}: divide it by what it is about'
        for line, count in functions(lines) if name.endswith('.c') else ():
            if count > FUNCTION_LINES:
                yield f'{name}:{line}', f'function of {count} lines, at most {FUNCTION_LINES}: divide it'
