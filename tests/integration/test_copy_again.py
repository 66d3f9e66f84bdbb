"""torusctl copy: second copies move what is missing, and options choose what is copied, compared and removed."""

import os
import random
import shutil
import subprocess

import pytest
from support import random_trees
from support.compare_trees import ALL, differences, entries, snapshot
from support.copies import copied, copy, count, others, place, try_copy  # noqa: F401
from support.trees import write_file
from support.users import needs_root

MIB = 1 << 20


@pytest.fixture
def torus(shared, root):
    return shared('4', data_roots=(str(root),))


def test_a_second_copy_touches_nothing(torus, place):
    random_trees.make(place.source, 'twice')
    copy(torus, place)
    before = {rank: snapshot(place.target(rank)) for rank in others(torus)}
    said = copy(torus, place, '--delete')
    assert said['bytes_sent'] == 0
    for node in said['per_node']:
        assert (node['added'], node['changed'], node['removed'], node['bytes_missing']) == (0, 0, 0, 0), node
        assert node['unchanged'] == count(place.source)
    assert before == {rank: snapshot(place.target(rank)) for rank in others(torus)}


def test_metadata_change_without_data(torus, place):
    place.source.mkdir()
    for name in 'mode', 'time', 'attribute':
        write_file(place.source / name, name, MIB)
    copy(torus, place)
    os.chmod(place.source / 'mode', 0o4711)
    os.setxattr(place.source / 'attribute', 'user.x', b'1')
    said = copied(torus, place)
    assert said['bytes_sent'] == 0 and all(node['changed'] == 2 for node in said['per_node']), said
    os.removexattr(place.source / 'attribute', 'user.x')
    os.utime(place.source / 'time', ns=(1, 1_000_000_000_000_000_001))
    said = copied(torus, place)
    assert said['bytes_sent'] <= MIB and all(node['changed'] == 2 for node in said['per_node']), said


def test_one_per_cent_of_a_large_file(torus, place):
    place.source.mkdir()
    size = 48 * MIB
    write_file(place.source / 'large', 1, size)
    copy(torus, place)
    rng = random.Random(1)
    with open(place.source / 'large', 'r+b') as file:
        for _ in range(4):
            file.seek(rng.randrange(size - 200_000))
            file.write(rng.randbytes(size // 400))
    said = copied(torus, place)
    assert said['bytes_sent'] < size // 10, said
    assert all(node['bytes_missing'] < size // 10 for node in said['per_node'])


def test_an_insertion_at_the_front(torus, place):
    place.source.mkdir()
    content = random.Random(2).randbytes(24 * MIB)
    (place.source / 'large').write_bytes(content)
    copy(torus, place)
    (place.source / 'large').write_bytes(b'in front' + content)
    said = copied(torus, place)
    assert said['bytes_sent'] < 3 * MIB, said


def test_nodes_that_lack_different_things(torus, place):
    """Each node gets what it lacks, and what several lack travels once."""
    place.source.mkdir()
    for name in 'abcd':
        write_file(place.source / name, name, 2 * MIB)
    copy(torus, place)
    (place.target(1) / 'a').unlink()
    (place.target(2) / 'b').unlink()
    for rank in 1, 2, 3:
        (place.target(rank) / 'c').unlink()
    said = copied(torus, place)
    assert {node['rank']: node['bytes_missing'] for node in said['per_node']} == {1: 4 * MIB, 2: 4 * MIB, 3: 2 * MIB}
    assert said['bytes_sent'] == 6 * MIB, said


def test_delete(torus, place):
    random_trees.make(place.source, 'delete', sparse=0)
    copy(torus, place)
    for rank in others(torus):
        (place.target(rank) / 'extra' / 'deep').mkdir(parents=True)
        (place.target(rank) / 'extra' / 'deep' / 'file').touch()
        (place.target(rank) / 'extra-link').symlink_to('extra')
    said = copy(torus, place)
    assert all(node['removed'] == 0 for node in said['per_node'])
    assert all((place.target(rank) / 'extra' / 'deep' / 'file').exists() for rank in others(torus))
    said = copy(torus, place, '--delete')
    assert all(node['removed'] == 4 for node in said['per_node']), said
    place.check(others(torus))


PATTERNS = [('--exclude', '*.o'), ('--exclude', '/build'), ('--exclude', 'build/'), ('--exclude', 'src/*.c'),
            ('--include', 'keep.o', '--exclude', '*.o'), ('--exclude', '**/deep/**'), ('--exclude', 'a?c'),
            ('--exclude', '[ab]*'), ('--include', '*/', '--include', '*.c', '--exclude', '*'),
            ('--exclude', 'src/**/x'), ('--exclude', '/src/deep'), ('--exclude', '[!a-s]*'), ('--exclude', '*[.]c')]


def tree_of_names(path):
    for name in ('a.o', 'keep.o', 'abc', 'b', 'build/x', 'build/keep.o', 'src/a.c', 'src/b.o', 'src/build/y', 'src/deep/x',
                 'src/deep/er/x', 'src/deep/er/z.c', 'x', 'other/build', 'other/src/c.c', 'other/deep/k'):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(name)


@pytest.mark.skipif(shutil.which('rsync') is None, reason='rsync is not installed')
@pytest.mark.parametrize('patterns', PATTERNS, ids=' '.join)
def test_patterns_are_those_of_rsync(torus, place, patterns):
    """What is copied, and with --delete what is removed, is what rsync copies and removes."""
    tree_of_names(place.source)
    reference = place.base / 'reference'
    for rank, path in [(None, reference), *((rank, place.target(rank)) for rank in others(torus))]:
        (path / 'src').mkdir(parents=True)
        for name in 'gone.o', 'gone', 'abx', 'src/gone.c', 'src/gone':
            (path / name).write_text('extra')
    copy(torus, place, '--delete', *patterns)
    subprocess.run(['rsync', '-aHAX', '--delete', *patterns, f'{place.source}/', f'{reference}/'], check=True)
    place.check(others(torus), reference=reference, only={'kinds', 'contents'})


def test_exclude_from(torus, place):
    tree_of_names(place.source)
    (place.base / 'patterns').write_text('# a comment\n+ keep.o\n*.o\n\n; another\n/src/\n')
    copy(torus, place, '--exclude-from', place.base / 'patterns')
    for rank in others(torus):
        found = {os.fsdecode(path) for path in entries(place.target(rank))}
        assert 'keep.o' in found and 'build/keep.o' in found and 'other/src' in found
        assert not {'a.o', 'src', 'src/b.o'} & found


def test_a_dry_run_changes_nothing(torus, place):
    random_trees.make(place.source, 'dry', sparse=0)
    first = try_copy(torus, place, '--dry-run')
    assert first[0] == 0 and all(node['added'] == count(place.source) for node in first[1]['per_node']), first
    assert not (place.base / 'at').exists()
    copy(torus, place)
    random_trees.change(place.source, 'dry')
    before = snapshot(place.base)
    dry = copy(torus, place, '--dry-run', '--delete')
    assert snapshot(place.base) == before and dry['dry_run']
    said = copy(torus, place, '--delete')
    keys = 'added', 'changed', 'removed', 'unchanged', 'bytes', 'bytes_missing'
    assert [[node[key] for key in keys] for node in dry['per_node']] == [
        [node[key] for key in keys] for node in said['per_node']]
    place.check(others(torus))


def test_verify_finds_one_changed_byte(torus, place):
    place.source.mkdir()
    for name in 'a', 'b':
        write_file(place.source / name, name, 3 * MIB)
    copy(torus, place)
    status, said, _ = try_copy(torus, place, '--verify')
    assert status == 0 and said['equal'] and all(node['equal'] for node in said['per_node'])
    victim = place.target(2) / 'b'
    when = os.stat(victim).st_mtime_ns
    with open(victim, 'r+b') as file:
        file.seek(2 * MIB)
        byte = file.read(1)
        file.seek(2 * MIB)
        file.write(bytes([byte[0] ^ 1]))
    os.utime(victim, ns=(when, when))
    before = snapshot(place.base)
    status, said, _ = try_copy(torus, place, '--verify')
    assert status == 1 and not said['equal'] and said['bytes_sent'] == 0
    assert {node['rank']: node['equal'] for node in said['per_node']} == {1: True, 2: False, 3: True}
    assert 'b' in said['per_node'][1]['first'] and snapshot(place.base) == before
    assert copy(torus, place)['bytes_sent'] == 0  # size and time are equal
    assert place.differing([2], only={'contents'})
    said = copy(torus, place, '--checksum')
    assert 0 < said['bytes_sent'] <= 3 * MIB
    place.check(others(torus))


def test_verify_sees_everything_that_a_copy_keeps(torus, place):
    """Each change of one entry at one node is found."""
    place.source.mkdir()
    (place.source / 'file').write_text('text')
    (place.source / 'link').symlink_to('file')
    (place.source / 'folder').mkdir()
    copy(torus, place)
    changes = [lambda t: os.chmod(t / 'file', 0o711), lambda t: os.utime(t / 'folder', (1, 1)),
               lambda t: os.setxattr(t / 'file', 'user.a', b'1'), lambda t: (t / 'file').unlink(),
               lambda t: ((t / 'link').unlink(), (t / 'link').symlink_to('other')),
               lambda t: ((t / 'folder').rmdir(), (t / 'folder').touch())]
    for number, change in enumerate(changes):
        change(place.target(3))
        status, said, _ = try_copy(torus, place, '--verify')
        assert status == 1 and not said['equal'] and said['per_node'][2]['equal'] is False, number
        copied(torus, place)


@needs_root
def test_links_of_others_in_sticky_folders(torus, place):
    """Root may replace them."""
    (place.source / 'sticky').mkdir(parents=True)
    (place.source / 'sticky' / 'link').symlink_to('one')
    os.chown(place.source / 'sticky' / 'link', 1000, 1000, follow_symlinks=False)
    os.chown(place.source / 'sticky', 1001, 1001)
    os.chmod(place.source / 'sticky', 0o1777)
    copy(torus, place)
    (place.source / 'sticky' / 'link').unlink()
    (place.source / 'sticky' / 'link').symlink_to('two')
    copied(torus, place)


def test_a_hard_link_that_is_broken_up(torus, place):
    place.source.mkdir()
    write_file(place.source / 'one', 1, 100_000)
    os.link(place.source / 'one', place.source / 'two')
    copied(torus, place)
    content = (place.source / 'two').read_bytes()
    (place.source / 'two').unlink()
    (place.source / 'two').write_bytes(content)
    shutil.copystat(place.source / 'one', place.source / 'two')
    assert try_copy(torus, place, '--verify')[0] == 1
    copied(torus, place)
    assert try_copy(torus, place, '--verify')[0] == 0
    (place.source / 'two').unlink()
    os.link(place.source / 'one', place.source / 'two')
    copied(torus, place)


def test_as_it_comes(torus, place):
    random_trees.make(place.source, 'comes')
    copied(torus, place, '--as-it-comes')
    random_trees.change(place.source, 'comes')
    copied(torus, place, '--as-it-comes', '--delete')
    assert place.leftovers(others(torus)) == []


def test_the_comparison_sees_every_aspect(tmp_path):
    """The tests rely on it."""
    a, b = tmp_path / 'a', tmp_path / 'b'
    a.mkdir()
    (a / 'file').write_bytes(bytes(1 << 20))
    with open(a / 'sparse', 'wb') as file:
        file.truncate(1 << 22)
    os.link(a / 'file', a / 'same')
    (a / 'link').symlink_to('file')
    subprocess.run(['cp', '-a', a, b], check=True)
    assert differences(a, b) == []
    wrong = {'modes': lambda: os.chmod(b / 'file', 0o600), 'times': lambda: os.utime(b / 'file', ns=(1, 1)),
             'attributes': lambda: os.setxattr(b / 'file', 'user.x', b''),
             'texts': lambda: ((b / 'link').unlink(), (b / 'link').symlink_to('x')),
             'groups': lambda: ((b / 'same').unlink(), shutil.copy2(b / 'file', b / 'same')),
             'holes': lambda: (b / 'sparse').write_bytes(bytes(1 << 22)),
             'contents': lambda: os.pwrite(os.open(b / 'file', os.O_WRONLY), b'x', 99_999),
             'kinds': lambda: (b / 'link').unlink()}
    if os.geteuid() == 0:
        wrong['owners'] = lambda: os.chown(b / 'file', 1, 1)
        assert set(wrong) == ALL
    for aspect, change in wrong.items():
        change()
        assert differences(a, b, only={aspect}), aspect
        shutil.rmtree(b)
        subprocess.run(['cp', '-a', a, b], check=True)
        assert differences(a, b) == []
