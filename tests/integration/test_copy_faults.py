"""torusctl copy: whatever fails, each node has everything or nothing, and the next copy continues."""

import json
import os
import shutil
import signal
import subprocess
from contextlib import contextmanager

import pytest
from support.background import Client
from support.compare_trees import entries, same, snapshot
from support.copies import Copying, Place, copied, copy, failing, others, refused, try_copy, unmount
from support.trees import write_file
from support.users import DAEMON, as_user, needs_root, ring
from support.waiting import wait_for

MIB = 1 << 20


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / 'data')


@pytest.fixture
def torus(loopback, place):
    place.base.mkdir()
    return loopback('4', data_roots=(str(place.base),))


def large_tree(path, files=40, size=3 * MIB):
    path.mkdir()
    for number in range(files):
        write_file(path / f'file-{number:03}', f'large {number}', size)
    return files * size


def test_a_node_dies(torus, place):
    """What has arrived at the other nodes need not move again."""
    total = large_tree(place.source)
    with Copying(torus, place, at=2, arrived=total // 4) as client:
        torus.node(2).kill()
        status, out, error = client.end(120)
    assert status != 0, out
    there = place.check_all_or_nothing(others(torus))
    assert 2 not in there
    torus.node(2).start()
    torus.wait_whole()
    said = copied(torus, place)
    missing = {node['rank']: node['bytes_missing'] for node in said['per_node']}
    assert all(missing[rank] <= total - total // 8 for rank in (1, 3)), (missing, total)
    assert place.leftovers(others(torus)) == []


def test_a_node_dies_and_the_others_continue(torus, place):
    total = large_tree(place.source)
    with Copying(torus, place, '--on-failure', 'shrink', at=2, arrived=total // 4) as client:
        torus.node(2).kill()
        status, out, error = client.end(120)
    said = json.loads(out)
    assert status == 0, error
    assert said['absent'] == [2] and said['attempts'] > 1
    place.check([1, 3])
    place.check_nothing_there([2])
    torus.node(2).start()
    torus.wait_whole()
    copied(torus, place)


@pytest.mark.full
def test_a_node_dies_and_is_waited_for(torus, place):
    total = large_tree(place.source)
    with Copying(torus, place, '--on-failure', 'wait', at=2, arrived=total // 4) as client:
        torus.node(2).kill()
        torus.wait_broken(ranks=others(torus, 2))
        torus.node(2).start()
        status, out, error = client.end(120)
    assert status == 0, error
    assert json.loads(out)['absent'] == []
    place.check(others(torus))


@pytest.mark.full
def test_the_reading_node_dies(torus, place):
    total = large_tree(place.source)
    with Copying(torus, place, at=2, arrived=total // 4) as client:
        torus.node(0).kill()
        assert client.end(120)[0] != 0
    place.check_all_or_nothing(others(torus))
    torus.node(0).start()
    torus.wait_whole()
    said = copied(torus, place)
    assert said['bytes_sent'] < total


@pytest.mark.parametrize('signum', [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.full)], ids=['cancelled', 'client killed'])
def test_the_client_ends(torus, place, signum):
    total = large_tree(place.source)
    with Copying(torus, place, at=1, arrived=total // 4) as client:
        client.send_signal(signum)
        status, out, error = client.end(60)
    assert status != 0
    wait_until_over(torus)
    there = place.check_all_or_nothing(others(torus))
    said = copied(torus, place)
    assert said['bytes_sent'] <= total - total // 8 or there
    assert place.leftovers(others(torus)) == []


@pytest.mark.full
def test_ctrl_c_comes_too_late(torus, place):
    """Once a node puts its files in place, the command waits for the end, and reports it."""
    place.source.mkdir()
    place.target(1).mkdir(parents=True)
    for number in range(6000):
        (place.source / f'{number}').symlink_to('new')
        (place.target(1) / f'{number}').symlink_to('old')
    complete = place.target(1).parent / f'.{place.name}.torus-copy' / 'complete'
    with Client(torus, 'copy', place.source, '--to', place.to, '--delete') as client:
        wait_for(lambda: complete.exists() or client.process.poll() is not None, 60, 'it is not put in place')
        client.send_signal(signal.SIGINT)
        status, out, error = client.end(60)
    assert status == 0, (out, error)
    place.check(others(torus))


def copies(torus, rank):
    return torus.status(rank).get('copies', [])


def wait_until_over(torus):
    """Until then, nodes refuse another copy to the same target."""
    wait_for(lambda: all(not copies(torus, rank) for rank in range(4)), 30, 'a copy is still there')


def test_the_source_changes_meanwhile(torus, place):
    total = large_tree(place.source)
    with Copying(torus, place, at=1, arrived=total // 8) as client:
        with open(place.source / 'file-039', 'r+b') as file:
            file.write(b'other')
        status, out, error = client.end(120)
    assert status != 0 and 'file-039' in error, (out, error)
    place.check_nothing_there(others(torus))
    wait_until_over(torus)
    copied(torus, place)


@pytest.mark.full
@pytest.mark.parametrize('how', ['removed', 'added'])
def test_files_come_and_go_meanwhile(torus, place, how):
    total = large_tree(place.source)
    with Copying(torus, place, at=1, arrived=total // 8) as client:
        if how == 'removed':
            (place.source / 'file-039').unlink()
        else:
            (place.source / 'new').touch()
        status, out, error = client.end(120)
    assert status != 0 and str(place.source) in error, (out, error)
    place.check_nothing_there(others(torus))


@contextmanager
def small_disk(folder, megabytes):
    folder.mkdir(parents=True)
    subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={megabytes}m', 'copies', folder], check=True)
    try:
        yield folder
    finally:
        unmount(folder)


@needs_root
def test_the_disk_of_one_node_is_full(torus, place):
    total = large_tree(place.source, files=10)
    with small_disk(place.base / 'at' / '2', 20):
        status, said, error = try_copy(torus, place)
        assert status == 1 and list(failing(said)) == [2], said
        assert failing(said)[2][0] == 'refused' and str(place.base / 'at' / '2') in error
        place.check([1, 3])
        place.check_nothing_there([2])
        assert said['bytes_sent'] == total
        again = try_copy(torus, place)[1]
        assert list(failing(again)) == [2]


@needs_root
def test_a_disk_fills_up_in_the_middle(torus, place):
    """There is room when the copy begins."""
    large_tree(place.source, files=10)
    with small_disk(place.base / 'at' / '2', 80) as disk:
        with Copying(torus, place, at=2, arrived=4 * MIB) as client:
            subprocess.run(['dd', 'if=/dev/zero', f'of={disk}/ballast', 'bs=1M'], stderr=subprocess.DEVNULL)
            status, out, error = client.end(120)
        said = json.loads(out)
        place.check([1, 3])
        if status != 0:
            assert list(failing(said)) == [2], said
            place.check_nothing_there([2])
            (disk / 'ballast').unlink()
            copy(torus, place)
        place.check([2])


@needs_root
@pytest.mark.parametrize('make', [lambda path: path.write_text('x'), lambda path: path.symlink_to('x'),
                                  lambda path: path.mkdir()], ids=['files', 'links', 'folders'])
def test_no_room_for_many_names(torus, place, make):
    """The file system has bytes, but no more inodes."""
    place.source.mkdir()
    for number in range(300):
        make(place.source / str(number))
    folder = place.base / 'at' / '2'
    folder.mkdir(parents=True)
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=8m,nr_inodes=100', 'copies', folder], check=True)
    try:
        status, said, _ = try_copy(torus, place)
        assert status == 1 and list(failing(said)) == [2], said
        assert failing(said)[2][0] == 'refused' and 'has room for' in failing(said)[2][1], said
        place.check([1, 3])
        place.check_nothing_there([2])
    finally:
        unmount(folder)


@pytest.mark.full
def test_a_target_is_swapped_for_a_link_meanwhile(torus, place):
    """Nothing is written where the link leads."""
    total = large_tree(place.source)
    precious = place.base / 'precious'
    precious.mkdir()
    copy(torus, place, source=place.source / 'file-000', to=f'{place.base}/at/%r/tree/in/file-000')
    with Copying(torus, place, at=1, arrived=total // 4) as client:
        for rank in others(torus):
            os.rename(place.target(rank) / 'in', place.target(rank) / 'away')
            (place.target(rank) / 'in').symlink_to(precious)
        client.end(120)
    assert os.listdir(precious) == []
    torus.json(0, 'status')


@needs_root
def test_a_daemon_without_rights():
    """Files that it may not read are an error that names the file; owners that it may not set are counted."""
    with ring() as running:
        source = running.folder / 'data0' / 'tree'
        source.mkdir()
        (source / 'open').write_text('everybody')
        (source / 'secret').write_text('root')
        os.chmod(source / 'secret', 0o600)
        done = running.ctl('--json', 'copy', source, '--to', running.folder / 'data1' / 'tree')
        assert done.returncode != 0 and 'secret' in done.stderr, done.stderr
        assert not (running.folder / 'data1' / 'tree').exists()
        done = running.ctl('--json', 'copy', source, '--to', running.folder / 'data1' / 'tree', '--exclude', 'secret')
        assert done.returncode == 0, done.stderr
        node, = json.loads(done.stdout)['per_node']
        assert node['not_owned'] == 2 and (running.folder / 'data1' / 'tree' / 'open').stat().st_uid == DAEMON
        same(source, running.folder / 'data1' / 'tree', only={'kinds', 'modes', 'times', 'contents'},
             ignore=lambda path: path == b'secret')
        (running.folder / 'data1' / 'shut').mkdir(mode=0o700)
        done = running.ctl('--json', 'copy', source / 'open', '--to', running.folder / 'data1' / 'shut' / 'open')
        assert done.returncode != 0 and 'shut' in done.stderr, done.stdout
        done = running.ctl('--json', 'copy', source / 'open', '--to', running.folder / 'data1' / 'stranger',
                           prefix=as_user(DAEMON))
        assert done.returncode == 0, done.stderr


@needs_root
def test_attributes_that_only_root_may_set():
    """The daemon owns the files, but their modes forbid to write them, and so to set attributes."""
    with ring() as running:
        source, target = running.folder / 'data0' / 'tree', running.folder / 'data1' / 'tree'
        (source / 'folder').mkdir(parents=True)
        paths = [source / 'folder', *(source / str(size) for size in (0, 10, 300_000))]
        for path in paths[1:]:
            path.write_bytes(bytes(int(path.name)))
        for value in b'first', b'second':
            for path in paths:
                os.setxattr(path, 'user.name', value)
                os.chmod(path, 0o555)
            done = running.ctl('--json', 'copy', source, '--to', target)
            assert done.returncode == 0, done.stderr
            same(source, target, only={'kinds', 'modes', 'times', 'contents', 'attributes'})


def test_a_cable_is_cut(cabled, place):
    """Another way leads around it: the copy succeeds in one attempt."""
    place.base.mkdir()
    torus = cabled('4', data_roots=(str(place.base),), end=1, port='+0')
    total = large_tree(place.source)
    with Copying(torus, place, at=2, arrived=total // 8) as client:
        torus.cable.cut_after(100_000)
        status, out, error = client.end(120)
    assert status == 0, error
    assert json.loads(out)['failures'] == 0
    place.check(others(torus))


@pytest.mark.mininet
def test_links_go_down(mininet, place):
    place.base.mkdir()
    torus = mininet('3x3', bw=100, data_roots=(str(place.base),))
    total = large_tree(place.source, files=8)
    with Copying(torus, place, at=4, arrived=total // 8) as client:
        torus.link_down(4, '+0')
        wait_for(lambda: place.arrived(4) > total // 4 or client.process.poll() is not None, 60)
        torus.link_down(0, '-1')
        torus.link_up(4, '+0')
        status, out, error = client.end(120)
    assert status == 0, error
    place.check(others(torus))
    torus.link_up(0, '-1')
    torus.wait_whole()


@pytest.mark.mininet
def test_a_killed_node_continues_where_it_was(mininet, place):
    """The node is killed in the middle of a copy of some seconds; what moved in one second may have to move again."""
    place.base.mkdir()
    torus = mininet('4', bw=40, data_roots=(str(place.base),))
    total = large_tree(place.source, files=8)
    with Copying(torus, place, at=2, arrived=total * 3 // 4) as client:
        torus.node(2).kill()
        assert client.end(120)[0] != 0
    place.check_all_or_nothing(others(torus))
    torus.node(2).start()
    torus.wait_whole()
    said = copied(torus, place)
    assert all(node['bytes_missing'] <= total * 3 // 4 for node in said['per_node']), said
    assert place.leftovers(others(torus)) == []


@pytest.mark.mininet
def test_a_node_is_cut_off(mininet, place):
    """With all its links down, it has nothing, or everything; the next copy continues there."""
    place.base.mkdir()
    torus = mininet('4', bw=100, data_roots=(str(place.base),))
    total = large_tree(place.source, files=8)
    with Copying(torus, place, at=2, arrived=total // 4) as client:
        torus.link_down(2, '+0')
        torus.link_down(2, '-0')
        status, out, error = client.end(120)
    assert status != 0 or 2 not in failing(json.loads(out)), out
    place.check_all_or_nothing(others(torus))
    torus.link_up(2, '+0')
    torus.link_up(2, '-0')
    torus.wait_whole()
    said = copied(torus, place)
    assert said['bytes_sent'] < total


@pytest.mark.full
def test_a_killed_daemon_completes_when_it_starts(torus, place):
    """A node that is killed while it puts a tree in place has the old or the new one afterwards, and after the next
    start and copy the new one."""
    place.source.mkdir()
    for number in range(6000):
        (place.source / f'{number:04}').write_text(f'{number}')
    copy(torus, place)
    old = place.base / 'old'
    subprocess.run(['cp', '-a', place.source, old], check=True)
    for number in range(6000):
        (place.source / f'{number:04}').write_text(f'new {number}')
    before = snapshot(place.target(3))

    def placing():
        now = snapshot(place.target(3))
        return now != before or client.process.poll() is not None
    with Copying(torus, place, at=3, arrived=0) as client:
        wait_for(placing, 60)
        torus.node(3).kill()
        client.end(120)
    torus.node(3).start()
    torus.wait_whole()
    wait_for(lambda: not place.differing([3]) or not place.differing([3], reference=old), 20,
             lambda: f'half: {place.differing([3])[:3]}')
    copied(torus, place)
    assert place.leftovers(others(torus)) == []


def test_nothing_is_left_of_a_copy_that_had_not_begun(torus, place):
    place.source.mkdir()
    (place.source / 'file').write_text('x')
    for rank in others(torus):
        place.target(rank).parent.mkdir(parents=True)
    before = set(entries(place.base))
    assert 'missing' in refused(torus, place, source=place.base / 'missing')[1]
    assert 'source/file' in refused(torus, place, '--nodes', '2', to=f'{place.base}/source/file/%r')[1]
    assert set(entries(place.base)) == before
    shutil.rmtree(place.source)
