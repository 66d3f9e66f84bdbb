"""Planted faults: the patches in tests/planted/, which scripts/planted applies. Before its diff, a patch says what is
wrong, and has these fields:

    area: one of AREAS
    level: default, or full if only tests of scripts/test --full find it
    found-by: a test that finds it, as pytest names it; may be repeated, the cheapest test first
"""

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / 'planted'
AREAS = 'engine-router', 'exchange-groups', 'files-copies', 'programs-setup'
LEVELS = 'default', 'full'


class Malformed(Exception):
    """A patch lacks a field, or has a wrong one."""


@dataclass(frozen=True)
class Patch:
    path: Path
    what: str
    area: str
    level: str
    found_by: tuple

    @property
    def name(self):
        return self.path.stem


def _read(path):
    head = path.read_text().partition('\n--- ')[0]
    fields = {}
    for name, value in re.findall(r'^([a-z-]+): (.+)$', head, re.M):
        fields.setdefault(name, []).append(value)
    what = head.partition('\n\n')[0].replace('\n', ' ')
    if sorted(fields) != ['area', 'found-by', 'level'] or len(fields['area']) != 1 or len(fields['level']) != 1:
        raise Malformed(f'{path}: expected one area, one level, and found-by, found {fields}')
    if fields['area'][0] not in AREAS or fields['level'][0] not in LEVELS:
        raise Malformed(f'{path}: an area is one of {", ".join(AREAS)}, a level one of {", ".join(LEVELS)}')
    if not what.endswith('.') or ': ' in what.partition(' ')[0]:
        raise Malformed(f'{path}: its first lines must be a sentence that says what is wrong')
    return Patch(path, what, fields['area'][0], fields['level'][0], tuple(fields['found-by']))


def patches():
    """All patches, by area and name."""
    found = [_read(path) for path in FOLDER.glob('*.patch')]
    return sorted(found, key=lambda patch: (AREAS.index(patch.area), patch.name))
