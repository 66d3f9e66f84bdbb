"""Includes of headers of a folder above. A folder is above the folders that it calls or includes."""

import collections
import os
import re

from . import calls, sources

PROGRAMS = ('daemon/torusd/', 'daemon/torusd-discover/', 'daemon/torusd-setup/', 'daemon/torus-routed/')
FORBIDDEN = {'daemon/': ('client/', 'tests/'), 'daemon/lib/': PROGRAMS,
             **{folder: tuple(set(PROGRAMS) - {folder}) for folder in PROGRAMS}, 'proto/': ('daemon/', 'client/', 'tests/'), 'client/': ('tests/', *PROGRAMS)}


def includes_of(root):
    """(includer, line, included) for each include of one of the project's own headers."""
    for name in sources.files(root, '.c', '.h'):
        if not name.startswith(calls.FOLDERS):
            continue
        for i, line in enumerate((root / name).read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if match:
                beside = os.path.join(os.path.dirname(name), match[1])
                yield name, i, next((path for path in (beside, match[1]) if (root / path).exists()), match[1])


def check(root, build):
    lines = list(includes_of(root))
    for name, i, included in lines:
        for folder, others in FORBIDDEN.items():
            if name.startswith(folder) and included.startswith(others):
                yield f'{name}:{i}', (f'{folder} does not include {included}: move what both need to proto/, '
                                      'or below both')
    if not calls.is_built(build):
        yield str(build), calls.UNBUILT
        return
    called = calls.between_folders(calls.calls_of(root, build))
    edges = collections.defaultdict(set, {folder: set(below) for folder, below in called.items()})
    for name, _, included in lines:
        if os.path.dirname(name) != os.path.dirname(included):
            edges[os.path.dirname(name)].add(os.path.dirname(included))
    reach = {folder: calls.reachable(edges, folder) for folder in list(edges)}
    for name, i, included in lines:
        here, there = os.path.dirname(name), os.path.dirname(included)
        if here != there and here in reach.get(there, ()) and there not in called.get(here, ()):
            yield f'{name}:{i}', (f'includes {included}, but {there}/ calls or includes {here}/: move what both '
                                  'need below both')
