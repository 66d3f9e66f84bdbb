"""What documents tell their readers to enter: the programs, the sessions, the commands that need no daemon, the
options of the others, the packages to install, and how a machine is set up. Texts are found by what they contain, not
by titles. tests/README.md lists the commands that are not run here."""

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from support.documents import DOCUMENTS, MANUAL, block, blocks, rows
from support.programs import python, run_each
from torus_net import CHECKOUT, find_program

pytestmark = pytest.mark.plain


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


def test_the_part_of_a_program_in_c(tmp_path):
    """The part is compiled inside a function, but not run (test_group_failures.py runs such programs)."""
    (tmp_path / 'part.c').write_text(f'''#include <err.h>
#include <torus/group.h>
void part(struct torus_group *group, double mine);
void part(struct torus_group *group, double mine)
{{
struct torus_group *left;
struct torus_error error;
double sum;
{block('c', 'torus_group_shrink(')}
}}
''')
    subprocess.run(['cc', '-fsyntax-only', '-Wall', '-Wextra', '-Werror', '-I', CHECKOUT / 'client' / 'include',
                    tmp_path / 'part.c'], check=True)


def bin_environment():
    """PATH and TORUS_BIN with the programs of this build."""
    folder = Path(find_program('torusctl')).parent
    return {**os.environ, 'PATH': f'{folder}:/usr/bin:/bin:/usr/sbin:/sbin', 'TORUS_BIN': str(folder)}


def test_a_torus_in_python():
    result = subprocess.run(['/usr/bin/python3', '-c', block('python', 'LoopbackTorus')], cwd=CHECKOUT,
                            env=bin_environment(), capture_output=True, text=True)
    assert result.returncode == 0 and float(result.stdout) > 0, result.stderr


def sessions():
    """The text of each session at a shell's prompt."""
    return [body for text in DOCUMENTS.values() for body in blocks(text, '') if re.search(r'^\$ ', body, re.M)]


def without_values(text):
    """Lines of output; numbers of exchanges, and the values of a report, may differ, but not the rows of a table."""
    lines = [re.sub(r'\d+-[0-9a-f]+-\d+', 'ID', line.rstrip()) for line in text.splitlines()]
    lines = [re.sub(r'^(moved .* in )\d.*', r'\1TIME', line) for line in lines]
    return [re.sub(r'^([a-z][a-z ]*?)  +\S(\S| (?! ))*$', r'\1', line) for line in lines]


@pytest.mark.parametrize('number', range(len(sessions())))
def test_a_session(number, tmp_path):
    """Commands at a shell's prompt, then at the launcher's, print what the document shows."""
    text = sessions()[number].replace('/tmp/demo', str(tmp_path)).replace('~/torusd/', f'{CHECKOUT}/')
    shell = re.findall(r'^[$>] (.*)', text, re.M)
    launcher = re.findall(r'^torus> (.*)', text, re.M)
    result = subprocess.run(['/bin/sh', '-ec', '\n'.join(shell)], input='\n'.join(launcher), cwd=tmp_path, text=True,
                            env=bin_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wanted = without_values('\n'.join(line for line in text.splitlines() if not re.match(r'(\$|>|torus>) ', line)))
    printed = without_values(result.stdout)
    if '...' in wanted:
        left_out = len(printed) - len(wanted) + 1
        at = wanted.index('...')
        wanted[at:at + 1] = printed[at:at + left_out]
    assert result.returncode == 0 and printed == wanted, result.stdout


def launchers():
    """(launcher, arguments) of each command that brings up a torus."""
    lines = [line for text in DOCUMENTS.values() for line in re.findall(r'^    (\S.*)$', text, re.M)]
    lines += [line for text in MANUAL.values() for body in blocks(text, '') for line in body.splitlines()]
    found = [shlex.split(re.sub(r'^sudo ', '', line), comments=True) for line in lines
             if re.match(r'(sudo )?(topo/torus\.py|scripts/vm-up) ', line)]
    assert len(found) > 20
    return [('torus.py' if words[0] == 'topo/torus.py' else 'vms.py', words[1:]) for words in found]


@pytest.mark.full
def test_options_of_launchers():
    for launcher, words in launchers():
        result = subprocess.run(['/usr/bin/python3', CHECKOUT / 'topo' / launcher, *words, '--check-options'],
                                capture_output=True, text=True)
        assert result.returncode == 0, (words, result.stderr)


def test_commands_that_launchers_run(torusctl):
    """Without a daemon, torusctl checks their options first."""
    lines = {word for _, words in launchers() for option, word in zip(words, words[1:])
             if option in ('--run', '--run-each') and word.startswith('torusctl ') and '|' not in word}
    assert len(lines) > 3
    results = {line: torusctl(line) for line in lines}
    assert not {line: result.stderr for line, result in results.items() if result.returncode != 3}


@pytest.mark.full
def test_launchers_on_loopback():
    """Those that run a command of this project, or an example."""
    build = Path(find_program('torusctl')).parent
    for launcher, words in launchers():
        if '--loopback' not in words or not {'--run', '--run-each'} & set(words) or 'hello' in words[-1]:
            continue
        if 'DIR' in words[-1].split():  # sources that are not part of this project
            continue
        if '| jq' in words[-1] and not shutil.which('jq'):
            continue
        words = [str(build / word.removeprefix('build/')) if word.startswith('build/') else word for word in words]
        result = subprocess.run(['/usr/bin/python3', CHECKOUT / 'topo' / launcher, *words], env=bin_environment(),
                                cwd=CHECKOUT, capture_output=True, text=True)
        assert result.returncode == 0 and result.stdout, (words, result.stderr)


def test_settings_of_torusd():
    """The commands of examples in documents and man pages exist, and so do the options in examples of torusd."""
    shown = subprocess.run([find_program('torusd'), '--help'], check=True, text=True, capture_output=True).stdout
    known = re.findall(r'^  (?:-\w, )?--([a-z-]+)', shown, re.M)
    assert len(known) > 10
    bodies = [body for text in (DOCUMENTS | MANUAL).values() for language in ('ini', '')
              for body in blocks(text, language)]
    nodes = [re.findall(r'^(\w+) = ', body.partition('[ports]')[0], re.M) for body in bodies if '[node]' in body]
    assert len(nodes) == 4
    assert {name.replace('_', '-') for names in nodes for name in names} - {'data-roots'} <= set(known)
    entered = [line for body in bodies for line in re.findall(r'^torusd .*', body, re.M)]
    assert entered and {option for line in entered for option in re.findall(r'--([a-z-]+)', line)} <= set(known)


def test_the_format_of_a_schedule(torusctl, tmp_path):
    """The lines that the document shows are read; they are not a whole schedule."""
    lines = re.findall(r'^    (\{".*\})$', '\n'.join(DOCUMENTS.values()), re.M)
    assert len(lines) == 2
    (tmp_path / 'sample').write_text('\n'.join(lines) + '\n')
    result = torusctl('torusctl plan --import sample')
    assert result.returncode == 1 and 'has no route' in result.stderr, result.stderr


# What the tests above run, or check.
RUN = (r'torusctl (--json )?[a-z-]+( |$)', 'build/tests/sim/simulate ', r'(sudo )?(topo/torus\.py|scripts/vm-up) ', 'apt-get install ',
       'cc hello.c ', 'sudo cmake --install ', r'\{"s', r'\.\.\.$', 'useradd |install |chown |setpriv |mkdir -p |for ')
RUN_BLOCKS = {'c': ('int main', 'torus_group_shrink('), 'python': ('libtorus.Group()', 'LoopbackTorus', 'def route('),
              'ini': ('[alpha]', '[node]', '[Service]')}


def excused():
    """The beginnings of commands and blocks that tests/README.md lists with the reason why they are not run."""
    found = [start for row in rows('| not run | because |') for start in row]
    assert len(found) > 10
    return found


def test_nothing_else_is_left_out():
    """Every command and every program of a document is run by a test, or tests/README.md says why it is not."""
    outside = {path: re.sub(r'^```.*?^```$', '', text, flags=re.M | re.S) for path, text in DOCUMENTS.items()}
    entered = [line for path, text in outside.items() if 'results' not in path.parts for line in commands(text)]
    begun = [*entered]
    for text in DOCUMENTS.values():
        for language, parts in RUN_BLOCKS.items():
            begun += [body.splitlines()[0] for body in blocks(text, language)
                      if not any(part in body for part in parts)]
        begun += [body.splitlines()[0] for body in blocks(text, '') if body.startswith('torus> ')]
    left = [line for line in begun if not re.match('|'.join(RUN), line)]
    assert [line for line in left if not line.startswith(tuple(excused()))] == []
    assert [start for start in excused() if not any(line.startswith(start) for line in left)] == []


@pytest.fixture
def torusctl(tmp_path):
    """Runs a line with torusctl in a shell, in a folder with the files that the documents' commands read, without a
    daemon."""
    (tmp_path / 'hosts.ini').write_text(block('ini', '[alpha]'))
    (tmp_path / 'mine.py').write_text(block('python', 'def route('))
    (tmp_path / 'client').symlink_to(CHECKOUT / 'client')
    (tmp_path / 'trees.xml').write_text('<Algo nchunkspernode="1">' + ''.join(
        f'<tree root="{a}" nchunks="1">' + ''.join(
            f'<send src="{a}" dst="{b}" path="{a},{b}"/>' for b in range(8) if b != a) + '</tree>' for a in range(8)) + '</Algo>')
    (tmp_path / '16KB.json').write_text(json.dumps({'7-Flows': [
        f'Chunk 0 from {a} traveled over {a}->{b} in epoch 0' for a in range(32) for b in range(32) if a != b]}))
    env = {'PATH': f'{Path(find_program("torusctl")).parent}:/usr/bin:/bin', 'TORUS_SOCKET': str(tmp_path / 'none')}
    return lambda line: subprocess.run(['/bin/sh', '-c', line], cwd=tmp_path, env=env, capture_output=True, text=True)


def test_commands_without_a_daemon(torusctl, tmp_path):
    """The commands do what the document says; a schedule of this project stands for a schedule of others."""
    seen = set()
    for text in DOCUMENTS.values():
        for line in commands(text):
            found = re.match(r'torusctl (algorithms|bounds|ip-routes|plan|predict|simulate|sweep)\b', line)
            if not found:
                continue
            if 'theirs.xml' in line:
                shutil.copy(tmp_path / 'at2.xml', tmp_path / 'theirs.xml')
            result = torusctl(line)
            assert result.returncode == 0, (line, result.stderr)
            seen.add(found[1])
    assert {'ip-routes', 'plan'} <= seen


@pytest.mark.full
def test_traces_of_the_simulator(torusctl, tmp_path):
    """The command that the document shows; the report reads its file."""
    simulate = 'build/tests/sim/simulate '
    line, = {line for text in DOCUMENTS.values() for line in commands(text) if line.startswith(simulate)}
    program = Path(find_program('torusctl')).parent / 'tests' / 'sim' / 'simulate'
    result = torusctl(line.replace(simulate.strip(), str(program)))
    assert result.returncode == 0 and json.loads(result.stdout)['dims'] == '8x8', result
    result = torusctl('torusctl --json report simulated.json')
    assert result.returncode == 0 and json.loads(result.stdout)['findings'], result


def test_options_of_commands_for_a_daemon(torusctl, tmp_path):
    """Without a daemon, wrong options would be reported first (exit status 2)."""
    schedule = [line for text in DOCUMENTS.values() for line in commands(text) if line.endswith('> mine')]
    assert torusctl(schedule[0]).returncode == 0
    lines = {line for text in DOCUMENTS.values() for line in commands(text) if re.match(
        r'torusctl (allgather|barrier|bench|broadcast|calibrate|copy|exchange|gather|links|perf|scatter|status)\b',
        line)}
    assert len(lines) > 10
    results = {line: torusctl(line) for line in lines}
    assert not {line: result.stderr for line, result in results.items() if result.returncode != 3}


def test_the_packages_of_the_preloads():
    """The install commands name only packages that are also in the project's list."""
    install = [line for text in DOCUMENTS.values() for line in commands(text) if line.startswith('apt-get install')]
    listed = (CHECKOUT / 'scripts' / 'packages.txt').read_text().split()
    result = subprocess.run(['/bin/bash', '-ec', 'apt-get() { shift; echo "$@"; }\n' + '\n'.join(install)],
                            cwd=CHECKOUT, capture_output=True, text=True, check=True)
    packages = [name for name in result.stdout.split() if not name.startswith('./build/packages/')]
    assert {'cmake', 'libuv1-dev', 'libmpich-dev', 'libopenmpi-dev'} <= set(packages) <= set(listed)


# The commands of the document change only copies of these folders; then the daemon starts for a moment.
INSTALLING = '''
for folder in /etc /srv /run /usr/local /var/lib; do
    mkdir -p $0$folder/upper $0$folder/work
    mount -t overlay -o lowerdir=$folder,upperdir=$0$folder/upper,workdir=$0$folder/work overlay $folder
done
rm -rf /var/lib/torusd
cmake --install $1 --prefix /usr/local >/dev/null
export PATH=/usr/local/sbin:/usr/local/bin:$PATH
ldconfig
cp $0/torusd.ini /etc/torusd.ini
. $0/commands
setpriv --reuid torusd --regid torusd --init-groups cat /srv/exchange/out/3 >$0/file
! command -v systemd-analyze >/dev/null || systemd-analyze verify $0/torusd.service >$0/unit 2>&1
'''


@pytest.fixture
def scratch():
    """A folder on a file system in memory, as overlays cannot be stacked everywhere."""
    with tempfile.TemporaryDirectory(dir='/dev/shm') as folder:
        yield Path(folder)


def test_a_machine_is_set_up(scratch):
    """The commands of the document with the configuration: user, folder, key, its owner; the daemon, as that user; its
    files. systemd knows all settings of the unit."""
    if os.geteuid() != 0 or subprocess.run(['unshare', '--mount', 'true'], capture_output=True).returncode != 0:
        pytest.skip('needs root, and a mount namespace')
    build = Path(find_program('torusd')).parent
    if not (build / 'cmake_install.cmake').exists():
        pytest.skip(f'{build} is not a build folder')
    configuration = block('ini', 'data_roots = ')
    section, = [text for text in DOCUMENTS.values() if configuration in text]
    wanted = 'useradd|install|chown|torusctl key generate|setpriv|mkdir|for'
    by_hand = section.partition('\n## Building\n')[2]  # tests/packaging installs packages
    entered = [line for line in commands(by_hand) if re.match(wanted, line)]
    assert [line.split()[0] for line in entered] == ['useradd', 'install', 'torusctl', 'chown', 'install', 'setpriv',
                                                     'mkdir', 'for']
    entered[5] = f'''{entered[5]} 2>{scratch}/log & daemon=$!
        for try in $(seq 300); do torusctl status >{scratch}/status 2>&1 && break; sleep 0.1; done
        kill $daemon; wait $daemon'''
    (scratch / 'commands').write_text('\n'.join(entered))
    (scratch / 'torusd.ini').write_text(configuration)
    (scratch / 'torusd.service').write_text(block('ini', '[Service]'))
    result = subprocess.run(['unshare', '--mount', '--net', '/bin/sh', '-ec', INSTALLING, scratch, build],
                            capture_output=True, text=True)
    assert result.returncode == 0, (result.stderr, (scratch / 'log').read_text() if (scratch / 'log').exists() else '')
    assert (scratch / 'file').read_text().startswith('from ')
    assert not (scratch / 'unit').exists() or (scratch / 'unit').read_text() == ''
    status = (scratch / 'status').read_text()
    assert re.search(r'^node +1$', status, re.M) and re.search(r'^data roots +/srv/exchange$', status, re.M), status
