"""torusctl copy: trees of all shapes arrive at all nodes, with everything that belongs to them."""

import os
import socket
import subprocess

import pytest
from support import random_trees
from support.compare_trees import same
from support.copies import copied, copy, count, failing, others, place, refused, try_copy, unmount  # noqa: F401
from support.trees import write_file
from support.users import needs_root


@pytest.fixture
def torus(shared, root):
    return shared('4', data_roots=(str(root),))


def small_tree(path):
    """Something of each kind."""
    (path / 'folder' / 'empty').mkdir(parents=True)
    (path / 'file').write_text('a file')
    (path / 'folder' / 'large').write_bytes(os.urandom(300_000))
    (path / 'folder' / 'nothing').touch()
    os.link(path / 'file', path / 'folder' / 'same')
    (path / 'link').symlink_to('folder/large')
    (path / 'dangling').symlink_to('/nowhere')
    os.setxattr(path / 'file', 'user.colour', b'blue')
    os.chmod(path / 'folder', 0o751)
    os.utime(path / 'folder' / 'empty', ns=(5, 1_234_567_891_234_567_891))


@pytest.mark.parametrize('dims,rank', [('4', 0), ('3x2', 4), ('2', 1), pytest.param('4x4', 5, marks=pytest.mark.slow)])
def test_a_tree_arrives(shared, root, place, dims, rank):
    torus = shared(dims, data_roots=(str(root),))
    small_tree(place.source)
    said = copy(torus, place, rank=rank)
    ranks = others(torus, rank)
    place.check(ranks)
    place.check_nothing_there([rank])
    assert place.leftovers(ranks) == []
    assert [node['rank'] for node in said['per_node']] == ranks and said['node'] == rank
    size = 300_006
    for node in said['per_node']:
        assert (node['files'], node['folders'], node['links']) == (3, 3, 2) or node['files'] == 4, node
        assert node['added'] == count(place.source) and (node['changed'], node['removed'], node['unchanged']) == (0, 0, 0)
        assert node['bytes'] == node['bytes_missing'] == size
    assert said['bytes_all'] == said['bytes_sent'] == size and said['left_out'] == 0
    assert said['attempts'] == 1 and said['absent'] == []


def test_single_files(torus, place):
    """A file gets the name of the target, or keeps its own in a folder."""
    for number, size in enumerate((0, 1, 70_000, 5_000_001)):
        source = place.base / f'file-{number}'
        write_file(source, size, size)
        copy(torus, place, source=source, to=f'{place.base}/at/%r/as-{number}')
        copy(torus, place, source=source, to=f'{place.base}/at/%r/in/')
        for rank in others(torus):
            same(source, f'{place.base}/at/{rank}/as-{number}')
            same(source, f'{place.base}/at/{rank}/in/file-{number}')


def test_several_sources(torus, place):
    """Each keeps its name. A source may be a link to what is copied; below it, links are copied as links."""
    small_tree(place.base / 'one')
    small_tree(place.base / 'two')
    (place.base / 'three').symlink_to('one')
    torus.json(0, 'copy', *(place.base / name for name in ('two', 'one', 'three')), '--to', place.to)
    for rank in others(torus):
        assert sorted(os.listdir(place.target(rank))) == ['one', 'three', 'two']
        for name in 'one', 'two', 'three':
            same(os.path.realpath(place.base / name), place.target(rank) / name)


def test_an_empty_folder(torus, place):
    place.source.mkdir()
    said = copied(torus, place)
    assert said['bytes_sent'] == said['bytes_all'] == 0


def test_sparse_files_keep_their_holes(torus, place):
    place.source.mkdir()
    with open(place.source / 'sparse', 'wb') as file:
        file.truncate(1 << 30)
        for at in 0, 100 << 20, (1 << 30) - 70_000:
            file.seek(at)
            file.write(os.urandom(70_000))
    with open(place.source / 'hole', 'wb') as file:
        file.truncate(700 << 20)
    said = copied(torus, place)
    assert said['bytes_sent'] < 1 << 20
    assert all(place.arrived(rank) < 2 << 20 for rank in others(torus))


def test_names_with_signs_of_the_command(torus, place):
    """Sources are taken as they are; in targets %% is a per cent sign."""
    source = place.base / '50%r %%'
    small_tree(source)
    copy(torus, place, source=source, to=f'{place.base}/at/%r/100%%')
    for rank in others(torus):
        same(source, f'{place.base}/at/{rank}/100%')


def test_relative_paths(torus, place):
    small_tree(place.source)
    done = subprocess.run([torus.torusctl, '--socket', torus.node(2).socket, 'copy', './source', '--to', 'at/%r/tree'],
                          cwd=place.base, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    place.check(others(torus, 2))


def test_a_subset_of_nodes(torus, place):
    small_tree(place.source)
    said = copy(torus, place, '--nodes', '1,3')
    assert [node['rank'] for node in said['per_node']] == [1, 3]
    place.check([1, 3])
    place.check_nothing_there([0, 2])


def test_what_cannot_be_copied_is_counted(torus, place):
    small_tree(place.source)
    os.mkfifo(place.source / 'folder' / 'pipe')
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(place.source / 'socket'))
        said = copy(torus, place)
    assert said['left_out'] == 2 and said['first_left_out'].rpartition('/')[2] in ('pipe', 'socket')
    place.check(others(torus))
    (place.base / 'only').mkdir()
    os.mkfifo(place.base / 'only' / 'pipe')
    status, said, _ = try_copy(torus, place, source=place.base / 'only' / 'pipe', to=f'{place.base}/at/%r/pipe')
    assert status != 0 or said['left_out'] == 1


def test_sources_that_are_not_there(torus, place):
    place.source.mkdir()
    _, text = refused(torus, place, source=place.base / 'missing')
    assert 'missing' in text
    _, text = refused(torus, place, source='/etc/hostname')
    assert 'data_roots' in text and '/etc/hostname' in text
    place.check_nothing_there(others(torus))


def test_a_path_that_is_too_long(torus, place):
    """The error ends with its reason, however long the path is."""
    place.source.mkdir()
    here = os.open(place.source, os.O_RDONLY)
    for _ in range(60):
        os.mkdir('p' * 100, dir_fd=here)
        below = os.open('p' * 100, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    _, text = refused(torus, place)
    assert not text.rstrip().endswith('p') and 'long' in text, text
    place.check_nothing_there(others(torus))
    subprocess.run(['rm', '-rf', place.source], check=True)


def test_a_target_that_nodes_share(torus, place):
    """Without %r, on one disk for all: one of them writes, and the others say why not."""
    small_tree(place.source)
    status, said, _ = try_copy(torus, place, to=place.base / 'shared')
    assert status == 1 and len(failing(said)) in (1, 2), said
    assert {code for code, _ in failing(said).values()} == {'busy'}
    assert all('the nodes share this file system' in text for _, text in failing(said).values()), said
    same(place.source, place.base / 'shared')


def test_targets_outside_of_the_data_roots(torus, place, tmp_path_factory):
    small_tree(place.source)
    outside = tmp_path_factory.mktemp('outside')
    status, said, error = try_copy(torus, place, to=f'{outside}/%r')
    assert status != 0 and str(outside) in error, said
    assert os.listdir(outside) == []
    (place.base / 'door').symlink_to(outside)
    status, said, _ = try_copy(torus, place, to=f'{place.base}/door/%r')
    assert status != 0, said
    assert os.listdir(outside) == []


def test_gather_scatter_exchange(torus, place):
    nodes = range(torus.geometry.nodes)
    for rank in nodes:
        for other in nodes:
            random_trees.make(f'{place.base}/from/{rank}/{other}', f'{rank} {other}', entries=8, sparse=1 << 20)
    said = torus.json(2, 'gather', f'{place.base}/from/%r', '--to', f'{place.base}/gathered/%r')
    assert {node['from'] for node in said['per_node']} >= {0, 1, 3} and said['failures'] == 0
    for rank in 0, 1, 3:
        same(f'{place.base}/from/{rank}', f'{place.base}/gathered/{rank}')
    said = torus.json(1, 'scatter', f'{place.base}/from/1/%r', '--to', f'{place.base}/scattered/%r')
    assert said['failures'] == 0
    for rank in 0, 2, 3:
        same(f'{place.base}/from/1/{rank}', f'{place.base}/scattered/{rank}')
    # Here all nodes share one disk, so each needs folders of its own.
    said = torus.json(3, 'exchange', '--from', f'{place.base}/from/%r', '--to', f'{place.base}/exchanged/%r', '--trees')
    assert said['failures'] == 0
    for source in nodes:
        for rank in nodes:
            if source != rank:
                same(f'{place.base}/from/{source}/{rank}', f'{place.base}/exchanged/{rank}/{source}')


# --- targets that are there already ---

def test_a_target_of_another_kind(torus, place):
    """A folder takes the place of a file, and a file that of a folder only with --delete."""
    small_tree(place.source)
    for rank in others(torus):
        place.target(rank).parent.mkdir(parents=True)
        place.target(rank).write_text('a file')
    status, said, _ = try_copy(torus, place)
    if status == 0:
        place.check(others(torus))
    else:
        assert all(place.target(rank).read_text() == 'a file' for rank in others(torus)), said
    inner = place.base / 'inner'
    inner.mkdir()
    (inner / 'folder').write_text('now a file')
    for rank in others(torus):
        (place.base / 'at' / str(rank) / 'inner' / 'folder').mkdir(parents=True)
        (place.base / 'at' / str(rank) / 'inner' / 'folder' / 'mine').touch()
    copy(torus, place, '--delete', source=inner, to=f'{place.base}/at/%r/inner')
    for rank in others(torus):
        same(inner, f'{place.base}/at/{rank}/inner')


def test_links_in_a_target_are_not_followed(torus, place):
    small_tree(place.source)
    precious = place.base / 'precious'
    precious.mkdir()
    (precious / 'large').write_text('mine')
    for rank in others(torus):
        place.target(rank).mkdir(parents=True)
        (place.target(rank) / 'folder').symlink_to(precious)
        (place.target(rank) / 'file').symlink_to(precious / 'large')
    copied(torus, place)
    assert (precious / 'large').read_text() == 'mine' and os.listdir(precious) == ['large']


def test_a_target_that_is_a_link(torus, place):
    """The link is replaced, or refused, but what it leads to stays as it is."""
    small_tree(place.source)
    precious = place.base / 'precious'
    precious.mkdir()
    (precious / 'mine').touch()
    for rank in others(torus):
        place.target(rank).parent.mkdir(parents=True)
        place.target(rank).symlink_to(precious)
    status, said, _ = try_copy(torus, place)
    assert os.listdir(precious) == ['mine']
    if status == 0:
        place.check(others(torus))
    else:
        assert all(place.target(rank).is_symlink() for rank in others(torus)), said


@needs_root
def test_a_target_that_is_a_mount_point(torus, place):
    small_tree(place.source)
    for rank in others(torus):
        place.target(rank).mkdir(parents=True)
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=8m', 'copies', place.target(1)], check=True)
    try:
        status, said, _ = try_copy(torus, place)
        if status == 0:
            place.check([1])
        else:
            assert os.listdir(place.target(1)) == [] and said['per_node'][0]['error'], said
        place.check([2, 3])
    finally:
        unmount(place.target(1))


def test_the_same_target_from_two_nodes_at_once(torus, place):
    """Both copies end well one after another, or one of them is refused; what is there then is one of the trees."""
    from concurrent.futures import ThreadPoolExecutor
    sources = []
    for rank in 0, 1:
        sources.append(place.base / f'source-{rank}')
        random_trees.make(sources[-1], f'rival {rank}', entries=30, sparse=0)
    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(lambda rank: try_copy(torus, place, '--delete', '--nodes', '2,3', source=sources[rank],
                                                    rank=rank), (0, 1)))
    assert all('internal' not in str(said) for _, said, _ in ended)
    for rank in 2, 3:
        if os.path.lexists(place.target(rank)):
            assert not all(place.differing([rank], reference=source) for source in sources), ended
    copy(torus, place, '--delete', source=sources[0])
    place.check([1, 2, 3], reference=sources[0])
