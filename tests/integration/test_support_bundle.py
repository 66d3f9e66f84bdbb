"""torusctl support-bundle: everything that is known, and no key."""

import base64
import json
import subprocess
import tarfile
from pathlib import Path


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
    assert json.loads(files['doctor.json'])['nodes'] == 9
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
    from torus_net.process import find_program
    path = tmp_path / 'here.tar.gz'
    done = subprocess.run([find_program('torusctl'), '--socket', tmp_path / 'none.sock', 'support-bundle', path],
                          capture_output=True, text=True)
    assert done.returncode == 0 and 'here/facts.txt' in done.stdout
    done = subprocess.run([find_program('torusctl'), '--socket', tmp_path / 'none.sock', 'support-bundle',
                           tmp_path / 'no' / 'folder'], capture_output=True, text=True)
    assert done.returncode == 1 and str(tmp_path / 'no' / 'folder') in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ['here.tar.gz']
