"""What the README tells its reader to enter: the program of "Your own program", and the commands of "Two commands"
and "A torus of real machines"."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest
from support.programs import python, run_each
from torus_net import CHECKOUT, find_program


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


def commands(text):
    """The lines that the text tells its reader to enter, without comments."""
    return [line.partition(' #')[0].strip() for line in re.findall(r'^    (\S.*)$', text, re.M)]


def test_the_packages_of_the_preloads():
    """The commands to install from name packages that the project's list has, too."""
    text = (CHECKOUT / 'README.md').read_text()
    install = [line for line in commands(text) if line.startswith('apt-get install')]
    listed = (CHECKOUT / 'scripts' / 'packages.txt').read_text().split()
    result = subprocess.run(['/bin/bash', '-ec', 'apt-get() { shift; echo "$@"; }\n' + '\n'.join(install)],
                            cwd=CHECKOUT, capture_output=True, text=True, check=True)
    packages = result.stdout.split()
    assert {'cmake', 'libuv1-dev', 'libmpich-dev', 'libopenmpi-dev'} <= set(packages) <= set(listed)


# Lets the commands of the README change nothing but copies of these folders, and starts the daemon for a moment.
INSTALLING = '''
for folder in /etc /srv /run /usr/local /var/lib; do
    mkdir -p $0$folder/upper $0$folder/work
    mount -t overlay -o lowerdir=$folder,upperdir=$0$folder/upper,workdir=$0$folder/work overlay $folder
done
cmake --install $1 --prefix /usr/local >/dev/null
export PATH=/usr/local/sbin:/usr/local/bin:$PATH
ldconfig
cp $0/torusd.ini /etc/torusd.ini
. $0/commands
'''


@pytest.fixture
def scratch():
    """A folder on a file system in memory, as overlays cannot be stacked everywhere."""
    with tempfile.TemporaryDirectory(dir='/dev/shm') as folder:
        yield Path(folder)


def test_a_machine_is_set_up(scratch):
    """Each command of the section, one after the other: user, folder, key, its owner; the daemon, as that user."""
    if os.geteuid() != 0 or subprocess.run(['unshare', '--mount', 'true'], capture_output=True).returncode != 0:
        pytest.skip('needs root, and a mount namespace')
    build = Path(find_program('torusd')).parent
    if not (build / 'cmake_install.cmake').exists():
        pytest.skip(f'{build} is not a build folder')
    text = (CHECKOUT / 'README.md').read_text()
    section = re.search(r'^## A torus of real machines\n(.*?)^### Files of several users', text, re.M | re.S)[1]
    wanted = 'useradd|install|chown|torusctl key generate|setpriv'
    entered = [line for line in commands(section) if re.match(wanted, line)]
    assert [line.split()[0] for line in entered] == ['useradd', 'install', 'torusctl', 'chown', 'install', 'setpriv']
    entered[-1] = f'''{entered[-1]} 2>{scratch}/log & daemon=$!
        for try in $(seq 300); do torusctl status >{scratch}/status 2>&1 && break; sleep 0.1; done
        kill $daemon; wait $daemon'''
    (scratch / 'commands').write_text('\n'.join(entered))
    configuration, = re.findall(r'^```ini\n(\[node\]\n.*?)^```$', section, re.M | re.S)
    (scratch / 'torusd.ini').write_text(configuration)
    result = subprocess.run(['unshare', '--mount', '--net', '/bin/sh', '-ec', INSTALLING, scratch, build],
                            capture_output=True, text=True)
    assert result.returncode == 0, (result.stderr, (scratch / 'log').read_text() if (scratch / 'log').exists() else '')
    status = (scratch / 'status').read_text()
    assert re.search(r'^node +1$', status, re.M) and re.search(r'^data roots +/srv/exchange$', status, re.M), status
