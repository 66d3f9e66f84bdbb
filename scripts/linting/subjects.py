"""Commit subjects since the last tag, or the last few if there is no tag."""

import re
import subprocess

LONGEST, LAST = 72, 20


def git(root, *args):
    return subprocess.run(['git', *args], cwd=root, capture_output=True, text=True).stdout


def check(root, _build):
    tag = git(root, 'describe', '--tags', '--abbrev=0').strip()
    commits = [f'{tag}..HEAD'] if tag else [f'-{LAST}']
    for line in git(root, 'log', '--no-merges', '--format=%h %s', *commits).splitlines():
        commit, _, subject = line.partition(' ')
        if len(subject) > LONGEST:
            yield commit, f'subject of {len(subject)} characters, at most {LONGEST}: move the why to the body'
        if not re.match(r'[\w/, -]+: \S', subject):
            yield commit, f'"{subject}" has no area: write "area: what it does"'
