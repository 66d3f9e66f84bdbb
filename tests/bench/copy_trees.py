"""Trees of files to copy: one file, something like a Python environment, something like a Hugging Face cache. Each has
a second state, in which 1 % of it has changed. The same arguments give the same trees."""

import hashlib
import os
import random
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

CHUNK = 1 << 20
CHANGED = 0.01
LATER = 60             # seconds by which the times of changed files are later
PATCH = 64 << 10       # a large file changes in patches of this size
MEDIAN, SPREAD = 1500, 1.5  # sizes of an environment's files
LARGE = 0.0001         # share of an environment's files that are libraries of 1 to 20 MB
NEW = 'new'            # the second state: base/new/tree beside base/old/tree
OLD = 'old'


@dataclass
class Made:
    """A tree in both states."""
    kind: str
    base: Path
    entries: int = 0   # files and links
    bytes: int = 0     # of all files
    changed: int = 0   # bytes that differ in the second state

    def path(self, state):
        return self.base / state / 'tree'


def make(kind, base, *, size=0, files=0, seed=0):
    """Makes one of KINDS below `base`: of `size` bytes, or of that many files."""
    made = Made(kind, Path(base))
    old = made.path(OLD)
    old.parent.mkdir(parents=True)
    KINDS[kind](old, size, files, random.Random(f'{kind} {seed}'))
    made.entries, made.bytes = count(old)
    new = made.path(NEW)
    new.parent.mkdir()
    _copy(old, new)
    made.changed = _change(new, random.Random(f'{kind} {seed} changed'))
    return made


def count(path):
    """(files and links, bytes of the files) of a tree."""
    entries = size = 0
    for file in _files(path, links=True):
        entries += 1
        size += 0 if file.is_symlink() else file.stat().st_size
    return entries, size


def _files(path, links=False):
    path = Path(path)
    found = sorted(path.rglob('*')) if path.is_dir() else [path]
    return [file for file in found if file.is_symlink() and links or file.is_file() and not file.is_symlink()]


def _copy(old, new):
    if old.is_dir():
        shutil.copytree(old, new, symlinks=True)
    else:
        shutil.copy2(old, new)


def _write(path, size, rng):
    """Contents that do not compress."""
    with open(path, 'wb') as file:
        while size > 0:
            size -= file.write(rng.randbytes(min(size, CHUNK)))


def _one_file(path, size, _files, rng):
    _write(path, size, rng)


def _environment(path, size, files, rng):
    """Packages with modules, each with a compiled one, few libraries, and a virtual environment's links."""
    (path / 'bin').mkdir(parents=True)
    for name in 'python', 'python3':
        (path / 'bin' / name).symlink_to('/usr/bin/python3')
    (path / 'lib64').symlink_to('lib')
    folders, left = [], files
    while left > 0:
        parent = rng.choice(folders) if folders and rng.random() < 0.6 else path / 'lib' / 'site-packages'
        folder = parent / f'package_{len(folders)}'
        (folder / '__pycache__').mkdir(parents=True)
        folders.append(folder)
        for number in range(min(left, rng.randrange(4, 40))):
            name = f'module_{number // 2}'
            if rng.random() < LARGE:
                _write(folder / f'lib{number}.so', rng.randrange(1 << 20, 20 << 20), rng)
            else:
                where = folder / f'{name}.py' if number % 2 == 0 else folder / '__pycache__' / f'{name}.pyc'
                _write(where, int(rng.lognormvariate(0, SPREAD) * MEDIAN) % (1 << 20), rng)
            left -= 1


def _cache(path, size, files, rng):
    """Blobs named by digests, and snapshots whose files are links to them, as huggingface_hub keeps them."""
    models = max(1, files // 20)
    for model in range(models):
        folder = path / f'models--team--model-{model}'
        for name in 'blobs', 'refs':
            (folder / name).mkdir(parents=True)
        revisions = [hashlib.sha1(f'{model} {n}'.encode()).hexdigest() for n in range(2)]
        (folder / 'refs' / 'main').write_text(revisions[-1])
        share = size // models // 4
        weights = [f'model-{n + 1:05}-of-00004.safetensors' for n in range(4)]
        for revision in revisions:
            snapshot = folder / 'snapshots' / revision
            snapshot.mkdir(parents=True)
            for name in [*weights, 'config.json', 'tokenizer.json', 'tokenizer_config.json', 'README.md']:
                own = '' if name in weights else revision  # both revisions have the same weights
                blob = folder / 'blobs' / hashlib.sha256(f'{model} {name} {own}'.encode()).hexdigest()
                if not blob.exists():
                    _write(blob, share if name in weights else rng.randrange(500, 200_000), rng)
                (snapshot / name).symlink_to(f'../../blobs/{blob.name}')


KINDS = {'file': _one_file, 'environment': _environment, 'cache': _cache}


def _change(path, rng):
    """Changes 1 % of the bytes of large files, or 1 % of many small files. Returns how many bytes have changed."""
    files = _files(path)
    if len(files) >= 1 / CHANGED:
        chosen = [file for file in rng.sample(files, len(files)) if file.stat().st_size < CHUNK]
        changed = 0
        for file in chosen[:max(1, int(len(files) * CHANGED))]:
            size, when = file.stat().st_size, file.stat().st_mtime + LATER
            _write(file, size, rng)
            os.utime(file, (when, when))
            changed += size
        return changed
    changed = 0
    for file in files:
        size, when = file.stat().st_size, file.stat().st_mtime + LATER
        with open(file, 'r+b') as out:
            for _ in range(max(1, int(size * CHANGED / PATCH))):
                length = min(PATCH, max(1, int(size * CHANGED)))
                out.seek(rng.randrange(max(1, size - length)))
                changed += out.write(rng.randbytes(length))
        os.utime(file, (when, when))
    return changed


def reset(made, state, target):
    """Brings a target into a state of the tree; None: removes it."""
    target = Path(target)
    if state is None:
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    source = made.path(state)
    slash = '/' if source.is_dir() else ''
    subprocess.run(['rsync', '-aW', '--delete', f'{source}{slash}', f'{target}{slash}'], check=True)


def drop_caches():
    """Writes everything to the disks, and drops the page cache, of the whole machine."""
    os.sync()
    Path('/proc/sys/vm/drop_caches').write_text('3')
