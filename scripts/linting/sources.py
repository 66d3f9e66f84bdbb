"""The project's files: the files that git tracks. In a folder that is not a clone, all files outside builds."""

import os
import subprocess


def git(root, *args):
    """The output of a git command; '' if it fails, git is missing, or the root is not a clone."""
    if not (root / '.git').exists():
        return ''
    try:
        return subprocess.run(['git', *args], cwd=root, capture_output=True, text=True).stdout
    except OSError:
        return ''


def files(root, *suffixes):
    """The sorted names, relative to the root, of files with these suffixes."""
    names = git(root, 'ls-files', '-z').split('\0') if (root / '.git').exists() else walk(root)
    return sorted(name for name in names if name.endswith(suffixes) and (root / name).is_file())


def walk(root):
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(('.', 'build'))]
        yield from (os.path.relpath(os.path.join(folder, name), root) for name in names)
