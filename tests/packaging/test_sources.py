"""What the packages are made from: versions and symbols agree with the programs and with the library."""

import os
import pty
import re
import subprocess
import sys

import pytest

from roots import CHECKOUT
from torus_net import find_program

PACKAGING = CHECKOUT / 'scripts' / 'packaging'
LINE = 80
NEWEST = re.match(r'torusd \((.*?)\) ', (PACKAGING / 'CHANGELOG').read_text())[1]


def versions(program):
    return subprocess.run([find_program(program), '--version'], capture_output=True, text=True, check=True).stdout


def test_version():
    """It is that of the first entry of the change log."""
    for program in 'torusd', 'torusctl':
        assert versions(program).splitlines()[0] == f'{program} {NEWEST}'


def test_version_of_the_python_package():
    sys.path.insert(0, str(CHECKOUT / 'client' / 'python' / 'libtorus'))
    try:
        from version import __version__
    finally:
        del sys.path[0]
    assert __version__ == NEWEST


def test_protocols():
    """The first entry of the change log names the versions of the protocols, which decide who works with whom."""
    entry = (PACKAGING / 'CHANGELOG').read_text().partition('\n -- ')[0]
    protocols = versions('torusd').splitlines()[1].removeprefix('protocols: ')
    assert f'Protocols: {protocols}.' in ' '.join(entry.split())


def test_entries():
    """Each entry of the change log has the form that dpkg reads, and lines that lintian does not find too long."""
    done = subprocess.run(['dpkg-parsechangelog', '--all', '-l', PACKAGING / 'CHANGELOG'], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, '') and f'Version: {NEWEST}\n' in done.stdout
    assert not [line for line in (PACKAGING / 'CHANGELOG').read_text().splitlines() if len(line) > LINE]


def test_symbols():
    """The package libtorus1 lists the functions that the library exports."""
    exported = re.findall(r'^    (torus_\w+);', (CHECKOUT / 'client' / 'libtorus' / 'libtorus.map').read_text(), re.M)
    listed = re.findall(r'^ (torus_\w+)@LIBTORUS_1 ', (PACKAGING / 'debian' / 'libtorus1.symbols').read_text(), re.M)
    assert listed == exported and len(listed) > 50


def test_package_rejects_wrong_options():
    for options, said in ((['--frob'], 'unknown option --frob'), (['--arch', 'pdp11'], 'pdp11'),
                          (['--arch'], '--arch requires a value'),
                          (['--bundle', '--arch', 'ppc64el'], 'for the architecture of this machine')):
        done = subprocess.run([CHECKOUT / 'scripts' / 'package', '--no-install', *options], capture_output=True, text=True)
        assert done.returncode == 2 and said in done.stderr, done


@pytest.fixture
def fake_apt(tmp_path):
    """(environment, script of bash) in which apt-get finds dpkg's lock held at its first two calls; then it says what it
    finds in a file."""
    (tmp_path / 'apt-get').write_text(f'''#!/bin/sh
echo "$*" >>{tmp_path}/calls
[ "$(wc -l <{tmp_path}/calls)" -gt 2 ] || {{
    echo 'E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4711 (unattended-upgr)'
    exit 100
}}
cat {tmp_path}/says
[ ! -s {tmp_path}/says ]
''')
    (tmp_path / 'sudo').write_text('#!/bin/sh\nexec "$@"\n')
    (tmp_path / 'sleep').write_text('#!/bin/sh\n')
    for name in 'apt-get', 'sudo', 'sleep':
        (tmp_path / name).chmod(0o755)
    return {**os.environ, 'PATH': f'{tmp_path}:{os.environ["PATH"]}'}, (
        f'. {CHECKOUT}/scripts/lib.sh; run_apt {tmp_path}/log installing install -y it')


@pytest.mark.parametrize('says', ['', 'E: Unable to locate package it'])
def test_waits_for_the_lock_of_dpkg(fake_apt, tmp_path, says):
    environment, script = fake_apt
    (tmp_path / 'says').write_text(says)
    done = subprocess.run(['bash', '-c', script], capture_output=True, text=True, env=environment)
    assert (done.returncode != 0) == bool(says)
    assert done.stderr == '== waiting until process 4711 (unattended-upgr) no longer uses apt or dpkg\n'
    assert (tmp_path / 'calls').read_text() == 'install -y it\n' * 3


def test_shows_progress_on_a_terminal(tmp_path):
    """The newest line of the output, while the command runs; nothing of it remains."""
    command = f'echo first; echo "[17/40] newest"; until [ -e {tmp_path}/seen ]; do sleep 0.01; done; exit 7'
    script = f'. {CHECKOUT}/scripts/lib.sh; with_progress packages {tmp_path}/log sh -c "$1" || exit'
    leader, follower = pty.openpty()
    with subprocess.Popen(['bash', '-c', script, 'bash', command], stdin=follower, stdout=follower, stderr=follower,
                          start_new_session=True) as process:
        os.close(follower)
        said = b''
        try:
            while part := os.read(leader, 65536):
                said += part
                if re.search(rb'packages: \d+ s  \[17/40\] newest', said):
                    (tmp_path / 'seen').touch()
        except OSError:  # the terminal has been closed
            pass
        os.close(leader)
    assert process.returncode == 7 and said.endswith(b'\r\x1b[K'), said
    assert (tmp_path / 'log').read_text() == 'first\n[17/40] newest\n'
