"""The program of the README's section "Your own program", as it is described there."""

import re
import subprocess
from pathlib import Path

import pytest
from support.programs import python, run_each
from torus_net import CHECKOUT


@pytest.fixture(scope='module')
def section():
    text = (CHECKOUT / 'README.md').read_text()
    return re.search(r'^## Your own program\n(.*?)^## ', text, re.M | re.S)[1]


def block(section, language):
    blocks = dict(reversed(re.findall(r'^```(\w*)\n(.*?)^```$', section, re.M | re.S)))
    return blocks[language]


def check(section, results):
    """They print what the section shows."""
    wanted = sorted(line.partition(': ')[2] for line in block(section, '').splitlines())
    assert sorted(result.stdout.rstrip('\n') for result in results) == wanted


def test_in_c(shared, section, tmp_path):
    torus = shared('2x2')
    build = Path(torus.torusctl).parent
    if not (build / 'cmake_install.cmake').exists():
        pytest.skip(f'{build} is not a build folder')
    subprocess.run(['cmake', '--install', build, '--prefix', tmp_path / 'usr'], check=True,
                   stdout=subprocess.DEVNULL)
    (tmp_path / 'hello.c').write_text(block(section, 'c'))
    pkgconfig, = (tmp_path / 'usr').glob('lib/**/pkgconfig')
    line = re.search(r'^    (cc .*)$', section, re.M)[1]
    subprocess.run(['/bin/sh', '-ec', line + ' -Wall -Wextra -Werror'], cwd=tmp_path, check=True,
                   env={'PATH': '/usr/bin:/bin', 'PKG_CONFIG_PATH': str(pkgconfig)})
    check(section, run_each(torus, f'LD_LIBRARY_PATH={pkgconfig.parent} exec {tmp_path}/hello'))


def test_in_python(shared, section, tmp_path):
    pytest.importorskip('numpy')
    (tmp_path / 'hello.py').write_text(block(section, 'python'))
    check(section, run_each(shared('2x2'), python(tmp_path / 'hello.py')))
