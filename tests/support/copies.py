"""Copies of trees in tests: where their trees are, and what must hold after them."""

import json
import os
from pathlib import Path

import pytest

from .background import Client
from .compare_trees import differences, entries
from .waiting import run_when_possible, wait_for


class Place:
    """The source of copies, and a folder for each node, below one folder."""

    def __init__(self, base, name='tree'):
        self.base, self.name = Path(base), name
        self.source = self.base / 'source'
        self.to = f'{self.base}/at/%r/{name}'

    def target(self, rank):
        return self.base / 'at' / str(rank) / self.name

    def differing(self, ranks, reference=None, **options):
        """What differs at these nodes from the source (or a reference), as texts."""
        return [f'node {rank}: {text}' for rank in ranks
                for text in differences(reference or self.source, self.target(rank), **options)]

    def check(self, ranks, reference=None, **options):
        found = self.differing(ranks, reference, **options)
        assert not found, '\n'.join(found[:10])

    def check_nothing_there(self, ranks):
        for rank in ranks:
            assert not os.path.lexists(self.target(rank)), self.target(rank)

    def check_all_or_nothing(self, ranks, reference=None):
        """Returns the nodes that have everything; the others must have nothing."""
        there = [rank for rank in ranks if os.path.lexists(self.target(rank))]
        self.check(there, reference)
        return there

    def arrived(self, rank):
        """Bytes on the disk below the folder of a node, in place or not."""
        folder = self.base / 'at' / str(rank)
        total, left = 0, [folder]
        while left:
            try:
                for entry in os.scandir(left.pop()):
                    said = entry.stat(follow_symlinks=False)
                    total += said.st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
            except FileNotFoundError:
                continue  # moved meanwhile
        return total

    def leftovers(self, ranks):
        """What the folders of nodes have beside the targets."""
        return [f'{rank}/{name}' for rank in ranks if (self.base / 'at' / str(rank)).is_dir()
                for name in os.listdir(self.base / 'at' / str(rank)) if name != self.name]


@pytest.fixture
def place(base):
    """For tests that share a torus."""
    return Place(base)


def unmount(folder):
    run_when_possible(['umount', folder])


def others(torus, rank=0):
    return [other for other in range(torus.geometry.nodes) if other != rank]


def copy(torus, place, *options, source=None, to=None, rank=0, timeout=240):
    """Copies the source to the targets; every node must report success. Returns the report."""
    said = torus.json(rank, 'copy', source or place.source, '--to', to or place.to, *options, timeout=timeout)
    assert said['failures'] == 0 and all(node['error'] is None for node in said['per_node']), said
    return said


def copied(torus, place, *options):
    """The report of a copy, after which all other nodes have everything."""
    said = copy(torus, place, *options)
    place.check(others(torus))
    return said


def try_copy(torus, place, *options, source=None, to=None, rank=0, timeout=240):
    """(exit status, report or {'error': ...}, standard error) of a copy that may fail."""
    done = torus.ctl(rank, '--json', 'copy', source or place.source, '--to', to or place.to, *options, timeout=timeout)
    return done.returncode, json.loads(done.stdout), done.stderr


def refused(torus, place, *options, **more):
    """A copy that must fail, as a whole or at all nodes for one reason. Returns (code, text) of the error."""
    status, said, error = try_copy(torus, place, *options, **more)
    assert status == 1 and error, said
    if 'error' in said:
        return said['error']['code'], said['error']['text']
    reasons = set(failing(said).values())
    assert len(reasons) == 1 and len(failing(said)) == len(said['per_node']), said
    return reasons.pop()


def failing(said):
    """{rank: (code, text)} of the nodes that a report says have failed."""
    return {node['rank']: (node['error']['code'], node['error']['text'])
            for node in said['per_node'] if node['error'] is not None}


def count(path):
    """The entries of a tree that a copy carries: the source itself is one of them."""
    return len(entries(path))


class Copying(Client):
    """A copy in the background, of which that many bytes have arrived at a node."""

    def __init__(self, torus, place, *options, at=1, arrived=4 << 20, rank=0):
        self.place = place
        before = place.arrived(at)
        super().__init__(torus, '--json', 'copy', place.source, '--to', place.to, *options, rank=rank)
        try:
            wait_for(lambda: self.process.poll() is not None or place.arrived(at) >= before + arrived, 60,
                     'the copy has not begun to write')
        except BaseException:
            self.__exit__()
            raise
