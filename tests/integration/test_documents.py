"""Runs what documents tell their readers to enter: programs, commands without a daemon, options of other commands,
packages to install, and the setup of a machine. Texts are found by their contents, not by titles."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from support.programs import python, run_each
from torus_net import CHECKOUT, find_program

FOLDERS = 'client', 'daemon', 'proto', 'tests', 'topo'
DOCUMENTS = {path: path.read_text() for path in
             sorted([*CHECKOUT.glob('*.md'), *(path for folder in FOLDERS for path in (CHECKOUT / folder).rglob('*.md'))])}


def blocks(text, language):
    return [body for name, body in re.findall(r'^```(\w*)\n(.*?)^```$', text, re.M | re.S) if name == language]


def block(language, part):
    """The only block in this language, in all documents, that contains this text."""
    found, = [body for text in DOCUMENTS.values() for body in blocks(text, language) if part in body]
    return found


def commands(text):
    """The commands in a text, without comments."""
    return [line.partition(' #')[0].strip() for line in re.findall(r'^    (\S.*)$', text, re.M)]


def command(start):
    """The only command in all documents that begins with this text."""
    found, = [line for text in DOCUMENTS.values() for line in commands(text) if line.startswith(start)]
    return found


def check(results):
    """The programs print the output in the document."""
    wanted = sorted(line.partition(': ')[2] for line in block('', 'member 1 sent').splitlines())
    assert sorted(result.stdout.rstrip('\n') for result in results) == wanted


def test_in_c(shared, tmp_path):
    torus = shared('2x2')
    build = Path(torus.torusctl).parent
    if not (build / 'cmake_install.cmake').exists():
        pytest.skip(f'{build} is not a build folder')
    subprocess.run(['cmake', '--install', build, '--prefix', tmp_path / 'usr'], check=True,
                   stdout=subprocess.DEVNULL)
    (tmp_path / 'hello.c').write_text(block('c', 'int main'))
    pkgconfig, = (tmp_path / 'usr').glob('lib/**/pkgconfig')
    subprocess.run(['/bin/sh', '-ec', command('cc ') + ' -Wall -Wextra -Werror'], cwd=tmp_path, check=True,
                   env={'PATH': '/usr/bin:/bin', 'PKG_CONFIG_PATH': str(pkgconfig)})
    check(run_each(torus, f'LD_LIBRARY_PATH={pkgconfig.parent} exec {tmp_path}/hello'))


def test_in_python(shared, tmp_path):
    pytest.importorskip('numpy')
    (tmp_path / 'hello.py').write_text(block('python', 'libtorus.Group()'))
    check(run_each(shared('2x2'), python(tmp_path / 'hello.py')))


@pytest.fixture
def torusctl(tmp_path):
    """Runs a line with torusctl in a shell, in a folder with the files that the documents' commands read, without a
    daemon."""
    (tmp_path / 'hosts.ini').write_text(block('ini', '[alpha]'))
    env = {'PATH': f'{Path(find_program("torusctl")).parent}:/usr/bin:/bin', 'TORUS_SOCKET': str(tmp_path / 'none')}
    return lambda line: subprocess.run(['/bin/sh', '-c', line], cwd=tmp_path, env=env, capture_output=True, text=True)


def test_commands_without_a_daemon(torusctl, tmp_path):
    """The commands do what the document says; a schedule of this project stands for a schedule of others."""
    seen = set()
    for text in DOCUMENTS.values():
        for line in commands(text):
            found = re.match(r'torusctl (algorithms|bounds|ip-routes|plan|predict|simulate)\b', line)
            if not found:
                continue
            if 'theirs.xml' in line:
                shutil.copy(tmp_path / 'at2.xml', tmp_path / 'theirs.xml')
            result = torusctl(line)
            assert result.returncode == 0, (line, result.stderr)
            seen.add(found[1])
    assert {'ip-routes', 'plan'} <= seen


def test_options_of_commands_for_a_daemon(torusctl, tmp_path):
    """Without a daemon, wrong options would be reported first (exit status 2)."""
    schedule = [line for text in DOCUMENTS.values() for line in commands(text) if line.endswith('> mine')]
    assert torusctl(schedule[0]).returncode == 0
    lines = {line for text in DOCUMENTS.values() for line in commands(text) if re.match(
        r'torusctl (allgather|barrier|bench|broadcast|calibrate|exchange|links|perf|status)\b', line)}
    assert len(lines) > 10
    results = {line: torusctl(line) for line in lines}
    assert not {line: result.stderr for line, result in results.items() if result.returncode != 3}


def test_the_packages_of_the_preloads():
    """The install commands name only packages that are also in the project's list."""
    install = [line for text in DOCUMENTS.values() for line in commands(text) if line.startswith('apt-get install')]
    listed = (CHECKOUT / 'scripts' / 'packages.txt').read_text().split()
    result = subprocess.run(['/bin/bash', '-ec', 'apt-get() { shift; echo "$@"; }\n' + '\n'.join(install)],
                            cwd=CHECKOUT, capture_output=True, text=True, check=True)
    packages = result.stdout.split()
    assert {'cmake', 'libuv1-dev', 'libmpich-dev', 'libopenmpi-dev'} <= set(packages) <= set(listed)


# The commands of the document change only copies of these folders; then the daemon starts for a moment.
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
    """The commands of the document with the configuration: user, folder, key, its owner; the daemon, as that user."""
    if os.geteuid() != 0 or subprocess.run(['unshare', '--mount', 'true'], capture_output=True).returncode != 0:
        pytest.skip('needs root, and a mount namespace')
    build = Path(find_program('torusd')).parent
    if not (build / 'cmake_install.cmake').exists():
        pytest.skip(f'{build} is not a build folder')
    configuration = block('ini', '[node]')
    section, = [text for text in DOCUMENTS.values() if configuration in text]
    wanted = 'useradd|install|chown|torusctl key generate|setpriv'
    entered = [line for line in commands(section) if re.match(wanted, line)]
    assert [line.split()[0] for line in entered] == ['useradd', 'install', 'torusctl', 'chown', 'install', 'setpriv']
    entered[-1] = f'''{entered[-1]} 2>{scratch}/log & daemon=$!
        for try in $(seq 300); do torusctl status >{scratch}/status 2>&1 && break; sleep 0.1; done
        kill $daemon; wait $daemon'''
    (scratch / 'commands').write_text('\n'.join(entered))
    (scratch / 'torusd.ini').write_text(configuration)
    result = subprocess.run(['unshare', '--mount', '--net', '/bin/sh', '-ec', INSTALLING, scratch, build],
                            capture_output=True, text=True)
    assert result.returncode == 0, (result.stderr, (scratch / 'log').read_text() if (scratch / 'log').exists() else '')
    status = (scratch / 'status').read_text()
    assert re.search(r'^node +1$', status, re.M) and re.search(r'^data roots +/srv/exchange$', status, re.M), status
