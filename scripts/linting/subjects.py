"""Commit subjects since the last tag; the last few if there is no tag, none outside a clone."""

import re

from .sources import git

LONGEST, LAST = 72, 20


def oldest_of_shallow(root):
    """The commits where a shallow clone ends. It does not show whether one of these is a merge."""
    name = git(root, 'rev-parse', '--git-path', 'shallow').strip()
    return set((root / name).read_text().split()) if name and (root / name).is_file() else set()


def check(root, _build):
    tag = git(root, 'describe', '--tags', '--abbrev=0').strip()
    commits = [f'{tag}..HEAD'] if tag else [f'-{LAST}']
    unknown = oldest_of_shallow(root)
    for line in git(root, 'log', '--no-merges', '--format=%H %h %s', *commits).splitlines():
        full, commit, subject = line.split(' ', 2)
        if full in unknown:
            continue
        if len(subject) > LONGEST:
            yield commit, f'subject of {len(subject)} characters, at most {LONGEST}: move the why to the body'
        if not re.match(r'[\w/, -]+: \S', subject):
            yield commit, f'"{subject}" has no area: write "area: what it does"'
