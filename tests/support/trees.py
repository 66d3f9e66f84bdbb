"""Creates folders for exchanges, and compares received files. Big files need little memory and time: they
repeat a page made from a seed, with a counter at the start of each copy."""

import os
import random
import struct
from pathlib import Path

from .waiting import wait_for

PAGE = 64 * 1024


def _pages(seed, size):
    page = bytearray(random.Random(seed).randbytes(PAGE))
    for number, begin in enumerate(range(0, size, PAGE)):
        struct.pack_into('>Q', page, 0, number)
        yield bytes(page) if size - begin >= PAGE else bytes(page[:size - begin])


def content_of(seed, size):
    return b''.join(_pages(seed, size))


def write_file(path, seed, size):
    with open(path, 'wb') as f:
        for page in _pages(seed, size):
            f.write(page)


def same_file(path, seed, size):
    if os.path.getsize(path) != size:
        return False
    with open(path, 'rb') as f:
        return all(f.read(len(page)) == page for page in _pages(seed, size)) and f.read(1) == b''


def seed_of(tag, source, destination):
    return f'{tag}/{source}/{destination}'


def random_sizes(nodes, seed, most=300000):
    """Sizes of all files by (source, destination): empty, tiny, odd and large ones."""
    rng = random.Random(seed)
    choices = (0, 1, 4096, 65536, None, None)

    def one():
        size = rng.choice(choices)
        return rng.randrange(most) if size is None else min(size, most)
    return {(s, d): one() for s in range(nodes) for d in range(nodes)}


def make_sources(base, sizes, tag=''):
    """Creates base/out-S/D for each pair. Returns the argument for --from."""
    base = Path(base)
    for (source, destination), size in sizes.items():
        folder = base / f'out-{source}'
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / str(destination), seed_of(tag, source, destination), size)
    return f'{base}/out-%r'


def check_target(target, sizes, tag='', nodes=None):
    """Checks that the target (with %r) of each node contains the file of each source, byte for byte. nodes: the
    nodes that took part, in ascending order (default: all)."""
    nodes = sorted({s for s, _ in sizes}) if nodes is None else nodes
    for destination in nodes:
        folder = str(target).replace('%r', str(destination))
        assert sorted(os.listdir(folder), key=int) == [str(s) for s in nodes], folder
        for source in nodes:
            path, size = f'{folder}/{source}', sizes[source, destination]
            assert same_file(path, seed_of(tag, source, destination), size), path


def listing(base):
    """Everything below a folder, as relative paths."""
    return sorted(os.path.relpath(os.path.join(folder, name), base)
                  for folder, folders, files in os.walk(base) for name in folders + files)


def leftovers(torus, base):
    """Temporary folders below `base`, and records of exchanges in the state folders."""
    found = [path for path in listing(base) if '.torusd-' in path]
    for node in torus.nodes:
        state = torus.run.state(node.rank)
        found += [f'{node.rank}: {name}' for name in os.listdir(state)
                  if name.startswith(('exchange-', '.next'))]
    return found


def wait_tidy(torus, base, seconds=20):
    """Waits until no leftovers remain: daemons remove them after the client has heard of a failure."""
    wait_for(lambda: not leftovers(torus, base), seconds, lambda: f'left: {leftovers(torus, base)}')
