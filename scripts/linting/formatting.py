"""C sources that scripts/format would change."""

import re
import subprocess


def check(root, _build):
    try:
        done = subprocess.run([root / 'scripts' / 'format', '--check'], capture_output=True, text=True)
    except OSError as error:
        yield 'scripts/format', error.strerror
        return
    names = sorted(set(re.findall(r'^(\S+?):\d+:\d+: error:', done.stderr, re.M)))
    for name in names:
        yield name, 'is not formatted: run scripts/format'
    if done.returncode != 0 and not names:
        yield 'scripts/format', done.stderr.strip() or f'exit status {done.returncode}'
