"""The exceptions from rules, with reasons, in exceptions.txt."""

import re

FILE = 'scripts/linting/exceptions.txt'


def read(root):
    """{(rule, where): number of the line}"""
    found = {}
    lines = (root / FILE).read_text().splitlines() if (root / FILE).exists() else []
    for i, line in enumerate(lines, 1):
        if line.strip() and not line.startswith('#'):
            rule, where, reason = ([part.strip() for part in line.split('|')] + ['', ''])[:3]
            found[rule, where] = i, reason
    return found


def apply(root, rules, findings):
    """The findings (where, rule, text) that are not exceptions, and one for each exception without reason or use."""
    known, used = read(root), set()
    for where, rule, text in findings:
        key = rule, re.sub(r':\d+', '', where)
        if key in known:
            used.add(key)
        else:
            yield where, rule, text
    for (rule, where), (line, reason) in known.items():
        if not reason:
            yield f'{FILE}:{line}', 'exceptions', 'has no reason'
        if rule in rules and (rule, where) not in used:
            yield f'{FILE}:{line}', 'exceptions', f'{where} does not break rule {rule}: remove the line'
