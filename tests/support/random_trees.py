"""Random trees of files, from a seed: names of any bytes, empty folders, deep paths, sparse files of up to 1 GiB, hard
links, symbolic links that lead anywhere or nowhere, extended attributes, all modes, owners and times. And random
changes of them."""

import contextlib
import os
import random
import shutil
import socket
import stat

SIZES = (0, 1, 2, 4095, 4096, 4097, 65535, 65536, 65537, 300_000)
LONG_NAME = 255
DEEP = 40               # folders on the deepest path
SPARSE = 1 << 30
TEXTS = (b'nothing', b'.', b'..', b'../..', b'/', b'/etc/passwd', b'a/b/c', b'\xff\xfe', b'x' * 3000)
NAMES = (b' ', b'-rf', b'--', b'*', b'?', b'[a]', b'~', b'a\nb', b'a\tb', b'"', b"'", b'\\', b'%r', b'%%', b'...', b'.hidden',
         b'\xff', b'\xc3\xa4', b'\xc3', b'caf\xe9', '\N{SNOWMAN}'.encode(), b'con', b'.torusd', b'core', b'a b', b'#x#')
ATTRIBUTES = (b'', b'x', b'\0\xff' * 100, b'v' * 1500)


class Trees:
    """Makes one random tree."""

    def __init__(self, root, seed, entries=60, sparse=SPARSE, special=False, attributes=True):
        self.rng = random.Random(f'tree {seed}')
        self.root = os.fsencode(root)
        self.sparse, self.special, self.attributes = sparse, special, attributes
        self.folders, self.files, self.others = [self.root], [], []
        self.root_owner = os.geteuid() == 0
        os.makedirs(self.root)
        for _ in range(self.rng.randrange(1, entries)):
            self._add()
        if self.rng.random() < 0.3:
            self._deep()
        self._finish()

    def _name(self):
        rng = self.rng
        kind = rng.random()
        if kind < 0.4:
            return rng.choice(NAMES)
        if kind < 0.45:
            return bytes(rng.choice(range(1, 256)) for _ in range(LONG_NAME)).replace(b'/', b'_')
        if kind < 0.6:
            return rng.randbytes(rng.randrange(1, 12)).replace(b'\0', b'0').replace(b'/', b'_')
        return b'name-%d' % rng.randrange(1000)

    def _new_path(self):
        while True:
            path = os.path.join(self.rng.choice(self.folders), self._name())
            name = os.path.basename(path)
            if name not in (b'', b'.', b'..') and len(path) < 3500 and not os.path.lexists(path):
                return path

    def _add(self):
        path, kind = self._new_path(), self.rng.random()
        if kind < 0.2:
            os.mkdir(path)
            self.folders.append(path)
        elif kind < 0.32:
            os.symlink(self.rng.choice(TEXTS), path)
            self.others.append(path)
        elif kind < 0.42 and self.files:
            try:
                os.link(self.rng.choice(self.files), path)
            except OSError:
                return
            self.files.append(path)
        elif kind < 0.45 and self.special:
            os.mkfifo(path) if self.rng.random() < 0.5 else self._socket(path)
        else:
            self._file(path)
            self.files.append(path)

    def _socket(self, path):
        """By a short path: those of sockets are limited."""
        here = os.open(os.path.dirname(path), os.O_RDONLY)
        try:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(b'/proc/self/fd/%d/%s' % (here, os.path.basename(path)[:60]))
        except OSError:
            os.mkfifo(path)
        finally:
            os.close(here)

    def _file(self, path):
        rng = self.rng
        if rng.random() < 0.1 and self.sparse:
            size = rng.randrange(1, self.sparse + 1)
            with open(path, 'wb') as file:
                file.truncate(size)
                for _ in range(rng.randrange(4)):
                    file.seek(rng.randrange(size))
                    file.write(rng.randbytes(rng.randrange(1, 200_000)))
                file.truncate(size)
        else:
            size = rng.choice(SIZES) if rng.random() < 0.5 else rng.randrange(20_000)
            with open(path, 'wb') as file:
                file.write(rng.randbytes(size) if rng.random() < 0.9 else bytes(size))

    def _deep(self):
        path = self.rng.choice(self.folders)
        for _ in range(DEEP):
            path = os.path.join(path, b'd' * self.rng.randrange(1, 30))
            if len(path) > 3000:
                break
            os.makedirs(path, exist_ok=True)
            if path not in self.folders:
                self.folders.append(path)
        path = os.path.join(path, b'bottom')
        self._file(path)
        self.files.append(path)

    def _finish(self):
        """Owners, attributes, modes and times; those of a folder after those of what it holds."""
        for path in sorted(sorted({*self.folders, *self.files, *self.others}), key=len, reverse=True):
            self.dress(path)

    def dress(self, path):
        rng = self.rng
        link = os.path.islink(path)
        if self.root_owner and rng.random() < 0.3:
            os.chown(path, rng.choice((0, 1, 1000, 65534, 100_000)), rng.choice((0, 5, 1000)), follow_symlinks=False)
        if not link and self.attributes and rng.random() < 0.2:
            for _ in range(rng.randrange(1, 4)):
                with contextlib.suppress(OSError):  # some file systems have room for few
                    os.setxattr(path, b'user.%d' % rng.randrange(5), rng.choice(ATTRIBUTES))
        if not link:
            os.chmod(path, self._mode(os.path.isdir(path)))
        if rng.random() < 0.8:
            when = rng.choice((0, 1, 999_999_999, 1_700_000_000_123_456_789, 2_500_000_000_000_000_001, -1_000_000_001,
                               rng.randrange(2 ** 61)))
            os.utime(path, ns=(when, when), follow_symlinks=False)

    def _mode(self, folder):
        odd = 0o7777 if self.root_owner else 0o777
        mode = self.rng.choice((0o644, 0o755, 0o600, self.rng.randrange(odd + 1)))
        if self.root_owner:
            return mode | (0o100 if folder and self.rng.random() < 0.5 else 0)
        return mode | (0o700 if folder else 0o400)


def make(root, seed, **options):
    """Makes a random tree in the new folder `root`."""
    return Trees(root, seed, **options)


def change(root, seed, changes=10):
    """Makes random changes of a tree: adds, removes, renames, rewrites, replaces entries, changes what they are like."""
    rng = random.Random(f'change {seed}')
    root = os.fsencode(root)
    helper = Trees.__new__(Trees)
    helper.rng, helper.root_owner, helper.attributes, helper.sparse = rng, os.geteuid() == 0, True, 1 << 24
    for number in range(changes):
        found = sorted(path for path in _all(root) if path != root)
        if not found:
            break
        path = rng.choice(found)
        rng.choice((_rewrite, _insert, _remove, _rename, _replace, _dress, _create))(helper, rng, path, number)


def _all(root):
    for folder, folders, files in os.walk(root):
        folders.sort()
        yield folder
        yield from (os.path.join(folder, name) for name in [*folders, *files])


def _regular(path):
    return stat.S_ISREG(os.lstat(path).st_mode)


@contextlib.contextmanager
def _opened(path):
    """Opens a file for reading and writing, even if its mode forbids that to everybody but root."""
    mode = stat.S_IMODE(os.stat(path).st_mode)
    os.chmod(path, mode | 0o600)
    try:
        with open(path, 'r+b') as file:
            yield file
    finally:
        os.chmod(path, mode)


def _rewrite(_helper, rng, path, _number):
    if _regular(path) and os.path.getsize(path):
        with _opened(path) as file:
            file.seek(rng.randrange(os.path.getsize(path)))
            file.write(rng.randbytes(rng.randrange(1, 5000)))


def _insert(_helper, rng, path, _number):
    if _regular(path) and os.path.getsize(path) < 1 << 22:
        with _opened(path) as file:
            whole = file.read()
            file.seek(0)
            file.write(rng.randbytes(100) + whole)


def _remove(_helper, _rng, path, _number):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def _rename(_helper, _rng, path, number):
    new = os.path.join(os.path.dirname(path), b'renamed-%d' % number)
    if not os.path.lexists(new):
        os.rename(path, new)


def _replace(helper, rng, path, number):
    """By something of another kind."""
    folder = os.path.isdir(path) and not os.path.islink(path)
    _remove(helper, rng, path, number)
    if folder:
        helper._file(path)
    elif rng.random() < 0.5:
        os.mkdir(path)
        helper._file(os.path.join(path, b'inside'))
    else:
        os.symlink(rng.choice(TEXTS), path)


def _dress(helper, _rng, path, _number):
    helper.dress(path)


def _create(helper, _rng, path, number):
    new = os.path.join(path, b'created-%d' % number)
    if os.path.isdir(path) and not os.path.islink(path) and not os.path.lexists(new):
        helper._file(new)
