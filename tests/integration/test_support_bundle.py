"""torusctl support-bundle: everything that is known, and no key."""

import base64
import io
import json
import os
import stat
import subprocess
import tarfile
from pathlib import Path

from torus_net.process import find_program


def test_the_archive(loopback, tmp_path):
    torus = loopback('3x3')
    path = tmp_path / 'all.tar.gz'
    done = torus.ctl(4, '--json', 'support-bundle', path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said['file'] == str(path) and said['bytes'] == path.stat().st_size
    with tarfile.open(path) as archive:
        files = {name.partition('/')[2]: archive.extractfile(name).read()
                 for name in archive.getnames() if archive.getmember(name).isfile()}
    assert set(files) == {part['name'] for part in said['parts']}
    assert {f'nodes/{rank}.txt' for rank in range(9)} | {'doctor.json', 'doctor.txt', 'status.json', 'links.json',
                                                         'README.txt', 'here/versions.txt'} <= set(files)
    assert json.loads(files['status.json'])['answered'] == 9
    assert json.loads(files['doctor.json'])['node_count'] == 9
    for rank in range(9):
        facts = dict(line.split(' ', 1) for line in files[f'nodes/{rank}.txt'].decode().splitlines())
        assert facts['setting.rank'] == str(rank)
    assert all(name in files['README.txt'].decode() for name in files if name != 'README.txt')
    check_no_key(Path(facts['setting.key_file']), files)


def check_no_key(key_file, files):
    """Neither the text of the key nor its bytes, in any usual form."""
    text = key_file.read_text().split()[-1]
    raw = bytes.fromhex(text)
    assert len(raw) == 32
    forms = [text.encode(), raw, raw.hex().encode(), raw.hex().upper().encode(), base64.b64encode(raw)]
    for name, content in files.items():
        for form in forms:
            assert form not in content and form[:16] not in content, name


def test_without_a_daemon(tmp_path):
    path = tmp_path / 'here.tar.gz'
    done = subprocess.run([find_program('torusctl'), '--socket', tmp_path / 'none.sock', 'support-bundle', path],
                          capture_output=True, text=True)
    assert done.returncode == 0 and 'here/facts.txt' in done.stdout
    done = subprocess.run([find_program('torusctl'), '--socket', tmp_path / 'none.sock', 'support-bundle',
                           tmp_path / 'no' / 'folder'], capture_output=True, text=True)
    assert done.returncode == 1 and str(tmp_path / 'no' / 'folder') in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ['here.tar.gz']


def test_the_logs_of_all_services(tmp_path):
    journal = tmp_path / 'bin/journalctl'
    journal.parent.mkdir()
    journal.write_text('#!/bin/sh\necho "log: $*"\n')
    journal.chmod(0o755)
    path = tmp_path / 'here.tar.gz'
    subprocess.run([find_program('torusctl'), '--socket', tmp_path / 'none.sock', 'support-bundle', path], check=True,
                   env={**os.environ, 'PATH': f'{journal.parent}:{os.environ["PATH"]}'}, stdout=subprocess.DEVNULL)
    with tarfile.open(path) as archive:
        for unit in 'torusd', 'torus-routed', 'torusd-discover', 'torusd-setup':
            name = next(name for name in archive.getnames() if name.endswith(f'/here/{unit}.log'))
            assert archive.extractfile(name).read().startswith(f'log: -u {unit}.service '.encode())


def test_what_is_not_a_file_stays_what_it_is(tmp_path):
    """A link is followed; a pipe, a device and standard output are written to."""
    def make(path, **options):
        return subprocess.run([find_program('torusctl'), '--socket', tmp_path / 'none.sock', 'support-bundle', path],
                              capture_output=True, **options)
    real, link, pipe = tmp_path / 'real.tgz', tmp_path / 'link.tgz', tmp_path / 'pipe'
    real.touch()
    link.symlink_to(real.name)
    assert make(link).returncode == 0
    assert link.is_symlink() and tarfile.is_tarfile(real) and real.stat().st_mode & 0o777 == 0o600
    os.mkfifo(pipe)
    with subprocess.Popen(['cat', pipe], stdout=subprocess.PIPE) as reader:
        assert make(pipe).returncode == 0
        assert tarfile.open(fileobj=io.BytesIO(reader.stdout.read())).getnames()
    assert pipe.is_fifo()
    done = make('-', cwd=tmp_path)
    assert done.returncode == 0 and tarfile.open(fileobj=io.BytesIO(done.stdout)).getnames()
    done = make('/dev/full' if os.geteuid() else full_device(tmp_path))
    assert done.returncode == 1 and b'No space left on device' in done.stderr
    assert {each.name for each in tmp_path.iterdir()} <= {'real.tgz', 'link.tgz', 'pipe', 'full'}


def full_device(folder):
    """One of our own: root could replace that of the machine."""
    path = folder / 'full'
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 7))
    return path
