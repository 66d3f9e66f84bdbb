"""torusctl copy as people use it: files that grow, disks with coarse times, targets that are data roots, limits of what a
copy removes, links."""

import contextlib
import os
import shutil
import struct
import subprocess
import threading

import pytest
from support.copies import copy, failing, place, try_copy, unmount  # noqa: F401
from support.users import needs_root


@pytest.fixture
def torus(shared, root):
    return shared('3', data_roots=(str(root),))


@contextlib.contextmanager
def growing(path):
    """Appends a line to a file all the time."""
    stop = threading.Event()

    def grow():
        with open(path, 'ab', buffering=0) as file:
            while not stop.wait(timeout=0.002):
                file.write(b'a line\n')

    thread = threading.Thread(target=grow)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_files_that_grow(torus, place):
    """Their first bytes are copied, and everything else that is in the tree."""
    place.source.mkdir()
    (place.source / 'app.log').write_bytes(os.urandom(20_000_000))
    (place.source / 'other').write_text('at rest')
    with growing(place.source / 'app.log'):
        for _ in range(5):
            copy(torus, place)
            whole = (place.source / 'app.log').read_bytes()
            for rank in (1, 2):
                part = (place.target(rank) / 'app.log').read_bytes()
                assert len(part) >= 20_000_000 and whole.startswith(part)
                assert (place.target(rank) / 'other').read_text() == 'at rest'
    done = torus.ctl(0, 'copy', place.source, '--to', place.to, '--verify')
    assert done.returncode == 1 and done.stdout.count('differs: 1 has grown since; first: ') == 2, done.stdout
    copy(torus, place)
    place.check([1, 2])
    for size in (10, 100_000, 5_000_000):  # small files, too; and those that have not just grown
        (place.source / 'app.log').write_bytes(os.urandom(size))
        copy(torus, place)
        with open(place.source / 'app.log', 'ab') as file:
            file.write(b'a line\n')
        place.target(2).joinpath('app.log').write_bytes(os.urandom(size))
        done = torus.ctl(0, 'copy', place.source, '--to', place.to, '--verify')
        lines = done.stdout.splitlines()
        assert 'differs: 1 has grown since' in lines[0] and 'differs: 1 different' in lines[1], done.stdout


def test_files_that_change_otherwise(torus, place):
    place.source.mkdir()
    (place.source / 'kept').write_text('kept')
    (place.source / 'database').write_bytes(os.urandom(30_000_000))
    stop = threading.Event()

    def write():
        with open(place.source / 'database', 'r+b', buffering=0) as file:
            while not stop.is_set():
                file.seek(0)
                file.write(os.urandom(8))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        status, said, error = try_copy(torus, place)
        assert status == 1 and set(failing(said)) == {1, 2} and '--changing skip' in error
        status, said, error = try_copy(torus, place, '--changing', 'skip')
        assert status == 1 and said['failures'] == 0 and said['skipped'] == 1, said
        assert said['first_skipped'].endswith('/database')
        text = torus.ctl(0, 'copy', place.source, '--to', place.to, '--changing', 'skip').stdout
        assert 'changed meanwhile, and left as it is at the target: 1 file, such as ' in text
    finally:
        stop.set()
        thread.join()
    for rank in (1, 2):
        assert os.listdir(place.target(rank)) == ['kept']
    done = copy(torus, place, '--changing', 'skip')
    assert done['skipped'] == 0 and done['first_skipped'] == ''
    place.check([1, 2])
    status, _, error = try_copy(torus, place, '--changing', 'skip', '--as-it-comes')
    assert status == 2 and '--as-it-comes' in error


@contextlib.contextmanager
def mounted(command, folder):
    """Mounts a file system with this command; skips the test where that is impossible."""
    if subprocess.run([*command, folder], stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip(f'this machine does not mount: {command[0]}')
    try:
        yield
    finally:
        unmount(folder)


def image(base, size, *make):
    """The command that mounts a file of that many bytes, in which the command `make` has made a file system."""
    path = base / 'image'
    with open(path, 'wb') as file:
        file.truncate(size)
    subprocess.run([*make, path], check=True, stderr=subprocess.DEVNULL)
    return 'mount', '-o', 'loop', path


def coarse_disk(base, folder):
    """A file system with times to the second."""
    folder.mkdir(parents=True, exist_ok=True)
    return mounted(image(base, 30_000_000, 'mkfs.ext4', '-q', '-I', '128'), folder)


def xfs(base, folder):
    return mounted(image(base, 320_000_000, 'mkfs.xfs', '-q'), folder)


def bindfs(base, folder):
    """FUSE: no files without a name, and removed files that are open stay in their folder."""
    (base / 'behind').mkdir()
    return mounted(('bindfs', base / 'behind'), folder)


@needs_root
def test_a_target_with_coarse_times(torus, place):
    (place.source / 'folder').mkdir(parents=True)
    for name in ('one', 'folder/two'):
        (place.source / name).write_text(name)
    (place.source / 'link').symlink_to('one')
    with coarse_disk(place.base, place.base / 'at' / '1'):
        copy(torus, place)
        for node in copy(torus, place)['per_node']:
            assert (node['added'], node['changed'], node['unchanged']) == (0, 0, 5), node
        done = torus.ctl(0, 'copy', place.source, '--to', place.to, '--verify')
        assert done.returncode == 0 and done.stdout.startswith('equal at all 2 nodes'), done.stdout
        # a change within the second of the last one is seen
        for text in ('1st', '2nd', '3rd'):
            (place.source / 'one').write_text(text)
            copy(torus, place)
            assert (place.target(1) / 'one').read_text() == text


# version 2: the owner reads and writes, user 1234 reads, the group reads, at most reading, others read
NO_ID = 2**32 - 1
PERMISSIONS = struct.pack('<I' + 5 * 'HHI', 2, 1, 6, NO_ID, 2, 4, 1234, 4, 4, NO_ID, 16, 4, NO_ID, 32, 4, NO_ID)


@needs_root
@pytest.mark.full
@pytest.mark.parametrize('file_system, program', [(xfs, 'mkfs.xfs'), (bindfs, 'bindfs')])
def test_a_target_on_another_file_system(torus, place, file_system, program):
    if shutil.which(program) is None:
        pytest.skip(f'{program} is not installed')
    (place.source / 'folder').mkdir(parents=True)
    (place.source / 'link').symlink_to('file')
    (place.source / 'file').write_bytes(os.urandom(300_000))
    os.link(place.source / 'file', place.source / 'same')
    os.setxattr(place.source / 'file', 'user.key', b'value')
    os.setxattr(place.source / 'file', 'system.posix_acl_access', PERMISSIONS)
    os.utime(place.source / 'folder', ns=(10**18, 10**18))
    folder = place.base / 'at' / '1'
    folder.mkdir(parents=True)
    with file_system(place.base, folder):
        for unchanged in 0, 5:
            for node in copy(torus, place)['per_node']:
                assert (node['changed'], node['unchanged']) == (0, unchanged), node
            assert os.listdir(folder) == [place.target(1).name]
        done = torus.ctl(0, 'copy', place.source, '--to', place.to, '--verify')
        assert done.returncode == 0 and done.stdout.startswith('equal at all 2 nodes'), done.stdout


@needs_root
def test_a_source_with_coarse_times(torus, place):
    with coarse_disk(place.base, place.source):
        for text in ('1st', '2nd', '3rd'):
            (place.source / 'file').write_text(text)
            copy(torus, place, '--exclude', 'lost+found')
            assert (place.target(1) / 'file').read_text() == text


def test_a_point_is_a_folder(torus, place, monkeypatch):
    """As for cp and rsync."""
    place.source.mkdir()
    (place.source / 'file').write_text('text')
    target = place.base / 'here'
    target.mkdir()
    (target / 'beside').write_text('stays')
    monkeypatch.chdir(target)
    for to in ('.', './', '../here/.'):
        copy(torus, place, '--nodes', '1', to=to)
        assert sorted(os.listdir(target)) == ['beside', 'source']
        assert (target / 'source' / 'file').read_text() == 'text'


def test_a_data_root_and_delete(torus, place, root):
    place.source.mkdir()
    (root / 'beside').mkdir()
    status, said, error = try_copy(torus, place, '--delete', '--nodes', '1', to=root)
    assert status == 1 and failing(said)[1][0] == 'refused' and '--delete-root' in error
    assert (root / 'beside').is_dir() and place.source.is_dir()
    copy(torus, place, '--delete', '--nodes', '1', to=f'{root}/')  # in it
    assert (root / 'beside').is_dir() and (root / 'source').is_dir()


def test_nodes_that_share_a_file_system_keep_the_source(torus, place):
    """All nodes have the same disk here: a copy that would remove the source, or copy it into itself, is refused."""
    (place.source / 'model').mkdir(parents=True)
    (place.source / 'model' / 'weights').write_text('weights')
    status, said, error = try_copy(torus, place, '--delete', '--nodes', '1', source=place.source / 'model', to=place.source)
    assert status == 1 and failing(said)[1][0] == 'refused' and 'share a file system' in error, error
    assert (place.source / 'model' / 'weights').read_text() == 'weights'
    status, said, error = try_copy(torus, place, '--nodes', '1', to=place.source / 'model' / 'copy')
    assert status == 1 and failing(said)[1][0] == 'refused' and 'is in the source' in error, error
    assert os.listdir(place.source / 'model') == ['weights']
    for options in ((), ('--delete',)):  # onto itself: nothing to do
        said = copy(torus, place, '--nodes', '1', *options, to=place.source)
        assert said['per_node'][0]['unchanged'] == 3, said
        said = copy(torus, place, '--nodes', '1', *options, source=place.source / 'model', to=f'{place.source}/')
        assert said['per_node'][0]['unchanged'] == 2, said


def test_a_limit_of_what_is_removed(torus, place):
    place.source.mkdir()
    (place.source / 'file').write_text('text')
    copy(torus, place)
    for name in ('a', 'b', 'c'):
        (place.target(1) / name).write_text(name)
    status, said, error = try_copy(torus, place, '--delete', '--max-delete', '2')
    assert status == 1 and list(failing(said)) == [1] and 'would remove 3 entries' in error
    assert (place.target(1) / 'a').exists()
    copy(torus, place, '--delete', '--max-delete', '3')
    place.check([1, 2])
    status, _, error = try_copy(torus, place, '--max-delete', '2')
    assert status == 2 and '--delete' in error


def test_patterns_with_other_meanings(torus, place):
    """Such patterns would be names of files, which nobody means."""
    place.source.mkdir()
    for name in ('!keep', '!', 'x', '- x'):
        (place.source / name).write_text(name)
    for pattern, said in (('!', r"'[\!]'"), ('!keep', "--include 'keep'"), ('- x', "--exclude 'x'"), ('+ x', "--include 'x'")):
        status, _, error = try_copy(torus, place, '--exclude', pattern)
        assert status == 2 and said in error, (pattern, error)
    patterns = place.base / 'patterns'
    patterns.write_text('*.o\n!\n')
    status, _, error = try_copy(torus, place, '--exclude-from', patterns)
    assert status == 2 and 'line 2' in error
    copy(torus, place, '--exclude', r'[\!]', '--exclude', r'[\!]keep', '--exclude', '[-] x')
    assert os.listdir(place.target(1)) == ['x']


def test_a_dry_run_lists_what_would_go(torus, place):
    place.source.mkdir()
    (place.source / 'file').write_text('text')
    copy(torus, place)
    (place.target(1) / 'more').mkdir()
    (place.target(1) / 'more' / 'old\nfile').write_text('old')
    said = copy(torus, place, '--delete', '--dry-run')
    lists = [node['would_remove'] for node in said['per_node']]
    assert lists == [['more/old\\x0afile', 'more'], []], said
    text = torus.ctl(0, 'copy', place.source, '--to', place.to, '--delete', '--dry-run').stdout
    assert 'would remove:\n  more/old\\x0afile\n  more\n' in text, text
    for number in range(20_000):
        (place.target(1) / 'more' / f'a file with a rather long name, number {number}').touch()
    done = torus.ctl(0, 'copy', place.source, '--to', place.to, '--delete', '--dry-run')
    listed = done.stdout.splitlines()
    assert listed[-1].startswith('  and ') and listed[-1].endswith(' more'), listed[-1]
    assert len(listed) - 3 + int(listed[-1].split()[1]) == 20_002


def test_links_that_lead_out_of_the_copy(torus, place):
    """As in a snapshot of a model whose files are in a folder beside it."""
    (place.base / 'blobs').mkdir()
    (place.base / 'blobs' / 'abc').write_bytes(os.urandom(50_000))
    (place.base / 'blobs' / 'parts').mkdir()
    (place.base / 'blobs' / 'parts' / 'one').write_text('one')
    place.source.mkdir()
    (place.source / 'weights').symlink_to('../blobs/abc')
    (place.source / 'parts').symlink_to(place.base / 'blobs' / 'parts')
    (place.source / 'inside').symlink_to('weights')
    said = copy(torus, place)
    assert said['links_out'] == 2 and said['first_link_out'].startswith(f'{place.source}/'), said
    place.check([1, 2])
    text = torus.ctl(0, 'copy', place.source, '--to', place.to).stdout
    assert '2 symbolic links lead out of the copy, such as ' in text and '--copy-links' in text
    said = copy(torus, place, '--copy-links')
    assert said['links_out'] == 0
    for rank in (1, 2):
        for name in ('weights', 'inside'):
            path = place.target(rank) / name
            assert not path.is_symlink() and path.read_bytes() == (place.base / 'blobs' / 'abc').read_bytes()
        assert not (place.target(rank) / 'parts').is_symlink()
        assert (place.target(rank) / 'parts' / 'one').read_text() == 'one'
    done = torus.ctl(0, 'copy', place.source, '--to', place.to, '--copy-links', '--verify')
    assert done.returncode == 0, done.stdout + done.stderr
    for link, said in (('nowhere', 'leads to nothing'), ('/etc', 'not below the configured data_roots'),
                       ('.', 'a link to a folder that it is in')):
        (place.source / 'bad').symlink_to(link)
        status, _, error = try_copy(torus, place, '--copy-links')
        assert status == 1 and '/source/bad' in error and said in error, error
        copy(torus, place, '--copy-links', '--exclude', 'bad')
        (place.source / 'bad').unlink()


def test_a_source_that_is_a_link(torus, place):
    """A source that is a link is followed; links below it are kept."""
    (place.base / 'real').mkdir()
    (place.base / 'real' / 'file').write_text('text')
    (place.base / 'real' / 'link').symlink_to('file')
    place.source.symlink_to('real')
    copy(torus, place)
    place.check([1, 2], reference=place.base / 'real')
