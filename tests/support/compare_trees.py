"""Compares two trees of files, by means of its own: what a copy must keep.

Aspects: kinds (and names), modes, times (to the nanosecond), owners, attributes (extended), texts (of symbolic links),
groups (which names are hard links to one file), holes, contents."""

import os
import stat

ALL = frozenset(('kinds', 'modes', 'times', 'owners', 'attributes', 'texts', 'groups', 'holes', 'contents'))
LEAST_HOLE = 128 << 10  # smaller holes may become data
BLOCK = 1 << 20
KINDS = {stat.S_IFREG: 'file', stat.S_IFDIR: 'folder', stat.S_IFLNK: 'link'}


def differences(a, b, only=ALL, links=True, ignore=lambda path: False):
    """What differs between tree a and its copy b, as texts: none if they are equal in the aspects `only`. links=False
    leaves symbolic links, and folders that are only in one of them, out. ignore(path) leaves out a path (bytes,
    relative) and all below it."""
    return list(_differences(os.fsencode(a), os.fsencode(b), set(only), links, ignore))


def same(a, b, **options):
    found = differences(a, b, **options)
    assert not found, f'{a} and {b} differ: ' + '; '.join(found[:10])


def entries(root, ignore=lambda path: False):
    """{relative path: os.lstat()} of everything in a tree; b'' is the root itself. Sockets, FIFOs and devices too."""
    root = os.fsencode(root)
    found, left = {}, [b'']
    while left:
        path = left.pop()
        if path and ignore(path):
            continue
        said = os.lstat(os.path.join(root, path) if path else root)
        found[path] = said
        if stat.S_ISDIR(said.st_mode):
            left += [os.path.join(path, name) for name in os.listdir(os.path.join(root, path) if path else root)]
    return found


def snapshot(root):
    """Everything about a tree except contents, to find out later whether anything was touched."""
    return {path: (said.st_mode, said.st_ino, said.st_size, said.st_mtime_ns, said.st_ctime_ns, said.st_uid, said.st_gid)
            for path, said in entries(root).items()}


def copied(said):
    """Whether a copy carries entries of this kind."""
    return stat.S_IFMT(said.st_mode) in KINDS


def _differences(a, b, only, links, ignore):
    here = {path: said for path, said in entries(a, ignore).items() if copied(said)}
    there = entries(b, ignore)
    if not links:
        here, there = ({path: said for path, said in side.items() if stat.S_ISREG(said.st_mode)}
                       for side in (here, there))
    for path in sorted(here.keys() - there.keys()):
        yield f'{path!r} is missing'
    for path in sorted(there.keys() - here.keys()):
        yield f'{path!r} should not be there'
    both = sorted(here.keys() & there.keys())
    for path in both:
        for text in _entry(_join(a, path), _join(b, path), here[path], there[path], only):
            yield f'{path!r}: {text}'
    if 'groups' in only:
        yield from _groups(both, here, there)


def _join(root, path):
    return os.path.join(root, path) if path else root


def _entry(a, b, here, there, only):
    kinds = [stat.S_IFMT(said.st_mode) for said in (here, there)]
    if kinds[0] != kinds[1]:
        yield f'a {KINDS.get(kinds[0], kinds[0])} became a {KINDS.get(kinds[1], kinds[1])}'
        return
    if 'modes' in only and here.st_mode != there.st_mode and not stat.S_ISLNK(here.st_mode):
        yield f'mode {here.st_mode:o} became {there.st_mode:o}'
    if 'times' in only and here.st_mtime_ns != there.st_mtime_ns:
        yield f'time {here.st_mtime_ns} became {there.st_mtime_ns}'
    if 'owners' in only and (here.st_uid, here.st_gid) != (there.st_uid, there.st_gid):
        yield f'owner {here.st_uid}:{here.st_gid} became {there.st_uid}:{there.st_gid}'
    if 'attributes' in only and _attributes(a) != _attributes(b):
        yield f'attributes {_attributes(a)} became {_attributes(b)}'
    if stat.S_ISLNK(here.st_mode):
        if 'texts' in only and os.readlink(a) != os.readlink(b):
            yield f'link to {os.readlink(a)!r} became one to {os.readlink(b)!r}'
    elif stat.S_ISREG(here.st_mode):
        yield from _file(a, b, here, there, only)


def _attributes(path):
    return {name: os.getxattr(path, name, follow_symlinks=False)
            for name in os.listxattr(path, follow_symlinks=False)}


def _file(a, b, here, there, only):
    if here.st_size != there.st_size:
        yield f'size {here.st_size} became {there.st_size}'
        return
    with open(a, 'rb') as one, open(b, 'rb') as other:
        size = here.st_size
        parts = data_of(one, size), data_of(other, size)
        if 'contents' in only:
            at = _first_difference(one, other, _union(*parts))
            if at is not None:
                yield f'contents differ at byte {at}'
        if 'holes' in only:
            for begin, end in _holes(parts[0], size):
                if end - begin >= LEAST_HOLE and any(low < end and high > begin for low, high in
                                                     _inside(parts[1], begin, end)):
                    yield f'the hole from {begin} to {end} was filled'
                    break


def data_of(file, size):
    """[(begin, end)] of the parts of an open file that are not holes."""
    found, at = [], 0
    while at < size:
        try:
            begin = os.lseek(file.fileno(), at, os.SEEK_DATA)
        except OSError:  # ENXIO: no data behind
            break
        at = min(os.lseek(file.fileno(), begin, os.SEEK_HOLE), size)
        found.append((begin, at))
    return found


def _holes(parts, size):
    at = 0
    for begin, end in [*parts, (size, size)]:
        if begin > at:
            yield at, begin
        at = end


def _inside(parts, begin, end):
    """The inner parts of holes: a hole without the block of the file system at each of its ends."""
    return [(low, high) for low, high in parts if max(low, begin + 65536) < min(high, end - 65536)]


def _union(a, b):
    joined = []
    for begin, end in sorted(a + b):
        if joined and begin <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([begin, end])
    return joined


def _first_difference(one, other, parts):
    for begin, end in parts:
        while begin < end:
            length = min(BLOCK, end - begin)
            left, right = (os.pread(file.fileno(), length, begin) for file in (one, other))
            if left != right:
                return begin + next((i for i, (x, y) in enumerate(zip(left, right)) if x != y), min(len(left), len(right)))
            begin += length
    return None


def _groups(paths, here, there):
    """Names of one file here must be names of one file there, and the other way round."""
    for side, others in (here, there), (there, here):
        first = {}
        for path in paths:
            said = side[path]
            if not stat.S_ISREG(said.st_mode) or not stat.S_ISREG(others[path].st_mode):
                continue
            leader = first.setdefault((said.st_dev, said.st_ino), path)
            if others[leader].st_ino != others[path].st_ino:
                yield f'{leader!r} and {path!r}: hard links differ'
