"""Fixtures of the tests of the Debian packages.

The tests marked full build the packages with scripts/package, and install them in root file systems below
build/packaging, made from the mirror that apt uses. Run with: /usr/bin/python3 -m pytest tests/packaging
(as `scripts/test packages` does)
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / 'tests' / 'packaging'))

from roots import FOLDER, MOUNTS, Root, alone, bare_root, base_root, foreign_root, obstacle, required_root  # noqa: E402

TORCH = all(map(os.path.exists, ('/usr/lib/python3/dist-packages/torch', '/usr/include/torch', '/usr/include/pybind11')))


def pytest_configure(config):
    config.obstacle = obstacle()


def pytest_collection_modifyitems(config, items):
    for item in items:
        own = item.path.is_relative_to(CHECKOUT / 'tests' / 'packaging')  # this hook gets the items of all folders
        if own and item.get_closest_marker('full') and config.obstacle:
            item.add_marker(pytest.mark.skip(reason=config.obstacle))
        if own and 'arm_root' in item.fixturenames:
            item.unit = 'arm_root'  # unpacked by one process


def sources_digest():
    listed = subprocess.run(['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'], cwd=CHECKOUT,
                            capture_output=True, check=True).stdout
    digest = hashlib.sha256()
    for name in sorted(filter(None, listed.split(b'\0'))):
        path = CHECKOUT / os.fsdecode(name)
        if path.is_file() and not path.is_relative_to(CHECKOUT / 'tests'):  # no package contains tests
            digest.update(name + b'\0' + path.read_bytes())
    return digest.hexdigest()


def build(folder, *options):
    """The folder with the packages of the checkout, built if the sources have changed."""
    output, digest = FOLDER / folder, sources_digest()
    stamp = output / 'sources'
    with alone(output):
        if not stamp.exists() or stamp.read_text() != digest:
            shutil.rmtree(output, ignore_errors=True)
            output.mkdir()
            done = subprocess.run([CHECKOUT / 'scripts' / 'package', '--no-install', '--output', output, *options],
                                  capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            stamp.write_text(digest)
    return output


def debs(folder):
    """{name: path} of the packages in a folder, without those with symbols for debuggers."""
    return {path.name.partition('_')[0]: path for path in folder.glob('*.deb') if '-dbgsym_' not in path.name}


@pytest.fixture(scope='session')
def built():
    return debs(build('new', '--bundle', *(['--torch'] if TORCH else [])))


@pytest.fixture(scope='session')
def packages(built):
    """Without the package for torch: it requires 300 MB."""
    return {name: deb for name, deb in built.items() if name != 'python3-torch-torus'}


@pytest.fixture(scope='session')
def torch_package(built):
    if not TORCH:
        pytest.skip('python3-torch, libtorch-dev or pybind11-dev is not installed')
    return built['python3-torch-torus']


@pytest.fixture(scope='session')
def bundle(packages):
    """The folder for machines that have only cables."""
    found, = packages['torusd'].parent.glob('torusd-*/install')
    return found.parent


@pytest.fixture(scope='session')
def arm_packages():
    return debs(build('arm64', '--arch', 'arm64'))


@pytest.fixture
def root(packages, tmp_path_factory):
    """A clean system, in which all that the packages depend on is installed, and nothing of them."""
    base = base_root(FOLDER / 'root-test', packages.values())
    with Root(base, FOLDER) as made:
        yield made


@pytest.fixture
def torch_root(packages, torch_package):
    """A clean system with what Debian has of the requirements of a program for torch and of an emulated torus."""
    debs = [torch_package, *(packages[name] for name in ('libtorus1', 'torusd', 'python3-libtorus', 'torus-emulator'))]
    with Root(required_root(FOLDER / 'root-torch', debs, MOUNTS), FOLDER) as made:
        yield made, debs


@pytest.fixture
def bare():
    """A system of Debian's minimal packages, with systemd, and ip to set its cable up."""
    with Root(bare_root(FOLDER / 'root-bare', 'systemd', 'iproute2', 'ca-certificates'), FOLDER) as made:
        yield made


@pytest.fixture(scope='session')
def arm_root(arm_packages):
    """A folder with the packages for arm64, and the libraries that they need, unpacked."""
    return foreign_root(FOLDER / 'root-test-arm64', 'arm64', arm_packages)
