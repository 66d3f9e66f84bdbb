"""torusctl copy beside other work: several copies at once, little memory, many small files, time limits."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from support import random_trees
from support.background import LongExchange
from support.compare_trees import same
from support.copies import Copying, Place, copied, copy, others, try_copy
from support.trees import write_file
from torus_net.patience import stretched

MIB = 1 << 20


@pytest.fixture
def place(tmp_path):
    (tmp_path / 'data').mkdir()
    return Place(tmp_path / 'data')


@pytest.mark.full
def test_several_copies_at_once(loopback, place):
    """From different nodes, to different targets; each of them arrives, or is refused because there are too many."""
    torus = loopback('3x2', data_roots=(str(place.base),))
    places = []
    for number in range(6):
        (place.base / str(number)).mkdir()
        places.append(Place(place.base / str(number)))
        random_trees.make(places[-1].source, f'at once {number}', sparse=1 << 24)
        write_file(places[-1].source / 'large', number, 8 * MIB)
    with ThreadPoolExecutor(6) as pool:
        ended = list(pool.map(lambda number: try_copy(torus, places[number], rank=number), range(6)))
    done = [number for number, (status, _, _) in enumerate(ended) if status == 0]
    for number, (status, said, _) in enumerate(ended):
        if status == 0:
            places[number].check(others(torus, number))
        else:
            assert 'error' in said and said['error']['code'] == 'busy', said
            places[number].check_nothing_there(others(torus, number))
    assert done
    for number in set(range(6)) - set(done):
        copy(torus, places[number], rank=number)
        places[number].check(others(torus, number))


def test_little_memory(loopback, place):
    torus = loopback('4', data_roots=(str(place.base),), memory='16MiB')
    random_trees.make(place.source, 'little memory')
    write_file(place.source / 'large', 1, 40 * MIB)
    copied(torus, place)
    assert all(node.memory()['RssAnon'] < 200 * MIB for node in torus.nodes)


def test_beside_an_exchange(loopback, place):
    torus = loopback('4', data_roots=(str(place.base),))
    random_trees.make(place.source, 'beside')
    write_file(place.source / 'large', 1, 20 * MIB)
    with LongExchange(torus, rank=3, algorithm='direct'):
        copied(torus, place)


@pytest.mark.full
def test_many_small_files(loopback, place):
    """In one folder, and in many folders."""
    torus = loopback('4', data_roots=(str(place.base),))
    (place.source / 'flat').mkdir(parents=True)
    for number in range(3000):
        (place.source / 'flat' / f'{number}').write_bytes(b'%d' % number * (number % 50))
    for number in range(600):
        folder = place.source / 'deep' / f'{number % 7}' / f'{number % 31}' / f'{number}'
        folder.mkdir(parents=True)
        (folder / 'file').write_text(f'{number}')
    copied(torus, place)
    for number in range(0, 3000, 7):
        os.unlink(place.source / 'flat' / f'{number}')
    said = copied(torus, place, '--delete')
    assert all(node['removed'] == 429 for node in said['per_node']) and said['bytes_sent'] == 0


@pytest.mark.full
def test_a_time_limit(loopback, place):
    """A copy that waits for a node that stays down ends in time, and what has arrived is used later."""
    torus = loopback('4', data_roots=(str(place.base),))
    place.source.mkdir()
    write_file(place.source / 'large', 1, 120 * MIB)
    limit = stretched(4)
    with Copying(torus, place, '--on-failure', 'wait', '--timeout', limit, at=2, arrived=20 * MIB) as client:
        torus.node(2).kill()
        status, out, error = client.end(limit + 30)
    assert status != 0 and json.loads(out)['error']['code'] == 'timeout', (out, error)
    place.check_nothing_there([2])
    torus.node(2).start()
    torus.wait_whole()
    copied(torus, place)


def test_a_node_that_is_down_from_the_start(loopback, place):
    torus = loopback('4', data_roots=(str(place.base),))
    random_trees.make(place.source, 'down')
    torus.node(1).kill()
    torus.wait_broken(ranks=(0, 2, 3))
    status, said, error = try_copy(torus, place)
    assert status != 0 and 'node 1' in error, said
    place.check_nothing_there([1, 2, 3])
    status, said, error = try_copy(torus, place, '--on-failure', 'shrink')
    assert status == 0 and said['absent'] == [1], error
    place.check([2, 3])
    status, said, error = try_copy(torus, place, '--nodes', '2,3', '--checksum')
    assert status == 0 or 'node 1' in error, said
    torus.node(1).start()
    torus.wait_whole()
    said = copied(torus, place)
    assert [node['added'] > 0 for node in said['per_node']] == [True, False, False]


def test_restarted_nodes(loopback, place):
    """All daemons restart between two copies."""
    torus = loopback('4', data_roots=(str(place.base),))
    random_trees.make(place.source, 'restart')
    copy(torus, place)
    for node in torus.nodes:
        node.restart()
    torus.wait_whole()
    assert copy(torus, place)['bytes_sent'] == 0
    random_trees.change(place.source, 'restart')
    copied(torus, place, '--delete', '--checksum')


def test_a_copy_of_a_copy(loopback, place):
    """What a node has received is a source like any other."""
    torus = loopback('4', data_roots=(str(place.base),))
    random_trees.make(place.source, 'again')
    copy(torus, place, '--nodes', '1')
    said = torus.json(1, 'copy', place.target(1), '--to', f'{place.base}/second/%r', '--nodes', '0,2,3')
    assert said['failures'] == 0
    for rank in 0, 2, 3:
        same(place.source, f'{place.base}/second/{rank}')
