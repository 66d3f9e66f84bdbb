"""The project's files: those that git knows, or in a folder that is no clone (an archive's), all but builds."""

import os
import subprocess


def git(root, *args):
    """What it prints; '' if it fails or is missing, or the root is in no clone."""
    if not (root / '.git').exists():
        return ''
    try:
        return subprocess.run(['git', *args], cwd=root, capture_output=True, text=True).stdout
    except OSError:
        return ''


def files(root, *suffixes):
    """Sorted names, relative to the root, of files that end so."""
    names = git(root, 'ls-files', '-z').split('\0') if (root / '.git').exists() else walk(root)
    return sorted(name for name in names if name.endswith(suffixes) and (root / name).is_file())


def walk(root):
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(('.', 'build'))]
        yield from (os.path.relpath(os.path.join(folder, name), root) for name in names)
