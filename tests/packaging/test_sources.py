"""What the packages are made from: versions and symbols agree with the programs and with the library."""

import re
import subprocess
import sys

from roots import CHECKOUT
from torus_net import find_program

PACKAGING = CHECKOUT / 'scripts' / 'packaging'
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
    """Each entry of the change log has the form that dpkg reads."""
    done = subprocess.run(['dpkg-parsechangelog', '--all', '-l', PACKAGING / 'CHANGELOG'], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, '') and f'Version: {NEWEST}\n' in done.stdout


def test_symbols():
    """The package libtorus1 lists the functions that the library exports."""
    exported = re.findall(r'^    (torus_\w+);', (CHECKOUT / 'client' / 'libtorus' / 'libtorus.map').read_text(), re.M)
    listed = re.findall(r'^ (torus_\w+)@LIBTORUS_1 ', (PACKAGING / 'debian' / 'libtorus1.symbols').read_text(), re.M)
    assert listed == exported and len(listed) > 50


def test_package_rejects_wrong_options():
    for options, said in ((['--version', '7.7.7'], 'no entry for version 7.7.7'), (['--arch', 'pdp11'], 'pdp11'),
                          (['--arch'], '--arch requires a value')):
        done = subprocess.run([CHECKOUT / 'scripts' / 'package', '--no-install', *options], capture_output=True, text=True)
        assert done.returncode == 2 and said in done.stderr, done
