"""torusctl copy: random trees, changed at random, with random faults: each node has what was copied, or what it had.

The seed is in the name of each test. The `full` run has 240 trees; a few dozen of them run by default."""

import os
import random
import signal
import subprocess

import pytest
from support import random_trees
from support.compare_trees import differences
from support.copies import Copying, Place, copy, others, try_copy
from support.waiting import wait_for

TREES = 240
QUICK = 24
FAULTY = 40   # of them, with faults
QUICK_FAULTY = 4
BALLAST = 24 << 20  # of a tree with faults, so that there is time for them


def seeds(count, quick):
    return [pytest.param(seed, marks=[] if seed < quick else [pytest.mark.full]) for seed in range(count)]


def equal_or_old(place, ranks, new, old):
    """Every node has the new tree or, if it is not None, the old one; otherwise nothing. Returns those with the new."""
    done = []
    for rank in ranks:
        target = place.target(rank)
        if not os.path.lexists(target):
            assert old is None, f'node {rank} has lost its tree'
        elif not (found := differences(new, target)):
            done.append(rank)
        else:
            assert old is not None and not differences(old, target), f'node {rank}: {found[:5]}'
    return done


def keep(source, path):
    """A second copy of a tree, to compare with."""
    subprocess.run(['cp', '-a', '--sparse=auto', source, path], check=True)
    return path


@pytest.mark.parametrize('seed', seeds(TREES, QUICK))
def test_random_trees(shared, root, seed):
    """A first copy, one of a changed tree, and one with other options."""
    rng = random.Random(f'options {seed}')
    torus = shared('4', data_roots=(str(root),))
    place = Place(root / f'tree-{seed}')
    place.base.mkdir()
    random_trees.make(place.source, seed, special=rng.random() < 0.2)
    rank = rng.randrange(4)
    ranks = others(torus, rank)
    options = [option for option in ('--as-it-comes', '--checksum') if rng.random() < 0.2]
    copy(torus, place, *options, rank=rank)
    place.check(ranks)
    for number in range(2):
        random_trees.change(place.source, f'{seed} {number}', changes=rng.randrange(1, 15))
        if rng.random() < 0.3:  # a node has changes of its own
            random_trees.change(place.target(rng.choice(ranks)), f'{seed} own {number}', changes=4)
        options = [option for option in ('--as-it-comes',) if rng.random() < 0.2]
        copy(torus, place, '--delete', '--checksum', *options, rank=rank)
        place.check(ranks)
        assert place.leftovers(ranks) == []
    subprocess.run(['rm', '-rf', place.base], check=True)


@pytest.mark.full
@pytest.mark.parametrize('seed', seeds(FAULTY, QUICK_FAULTY))
def test_random_trees_with_faults(loopback, tmp_path, seed):
    """While a first or a second copy runs, a daemon or the client is killed, or the source changes."""
    rng = random.Random(f'faults {seed}')
    place = Place(tmp_path / 'data')
    place.base.mkdir()
    torus = loopback('4', data_roots=(str(place.base),))
    random_trees.make(place.source, f'faulty {seed}')
    old = None
    if rng.random() < 0.5:
        copy(torus, place)
        old = keep(place.source, tmp_path / 'old')
        random_trees.change(place.source, f'faulty {seed}')
    os.chmod(place.source, 0o755)
    (place.source / 'ballast').write_bytes(rng.randbytes(BALLAST))
    new = keep(place.source, tmp_path / 'new')
    victim = rng.randrange(4)
    with Copying(torus, place, '--delete', '--checksum', at=1, arrived=int(rng.random() * BALLAST)) as client:
        kind = rng.choice(('node', 'node', 'client', 'source'))
        if kind == 'node':
            torus.node(victim).kill()
        elif kind == 'client':
            client.send_signal(rng.choice((signal.SIGINT, signal.SIGKILL)))
        else:
            (place.source / 'new-file').write_text('new')
        status, out, error = client.end(120)
    if kind == 'node':
        torus.node(victim).start()
        torus.wait_whole()
    wait_for(lambda: all(not torus.status(rank).get('copies') for rank in range(4)), 30, 'a copy does not end')
    # A daemon that was killed while it put its tree in place completes that after its start.
    wait_for(lambda: not list(place.base.glob(f'at/*/.{place.name}.torus-copy/complete')), 30, 'a copy is not completed')
    done = equal_or_old(place, others(torus), new, old)
    assert status != 0 or done == others(torus), (kind, out, error)
    random_trees.change(place.source, f'after {seed}', changes=3)
    status, said, error = try_copy(torus, place, '--delete', '--checksum')
    assert status == 0, error
    place.check(others(torus))
    assert place.leftovers(others(torus)) == []
