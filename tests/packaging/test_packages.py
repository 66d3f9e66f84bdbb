"""The packages, installed in a clean system: what they contain works, and nothing remains of them after a purge."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest
from roots import CHECKOUT
from test_sources import NEWEST

sys.path.insert(0, str(CHECKOUT / 'scripts'))
from linting.links import links  # noqa: E402

pytestmark = pytest.mark.full  # no other test installs packages

FOR_ALL = {'python3-libtorus', 'torusd-discover', 'torusd-doc'}  # architectures
NAMES = {'torusd', 'libtorus1', 'libtorus-dev', 'torus-mpi', 'torus-emulator'} | FOR_ALL
OLD = '0.1.0'  # the version from which an upgrade is tested
ALGORITHM = 'torusctl plan --dims 4x4 --algorithm stream'
# Starts the daemon with a configuration as its unit does, and runs a command when it answers.
AT_DAEMON = '''
install -d -o torusd -g torusd /run/torusd
setpriv --reuid torusd --regid torusd --init-groups torusd --config %s 2>/tmp/log &
until torusctl status >/dev/null 2>&1; do kill -0 $! 2>/dev/null || { cat /tmp/log >&2; exit 1; }; sleep 0.05; done
%s
'''


def test_all_are_built(packages, arm_packages):
    assert packages.keys() == NAMES
    assert arm_packages.keys() == NAMES - FOR_ALL


@pytest.mark.parametrize('built', ['packages', 'arm_packages'])
def test_lintian(request, built):
    changes, = request.getfixturevalue(built)['torusd'].parent.glob('*.changes')
    done = subprocess.run(['lintian', '-EvIL', '+pedantic', '--allow-root', '--fail-on', 'error,warning', changes],
                          capture_output=True, text=True)
    found = [line for line in done.stdout.splitlines() if re.match('[EW]: ', line)]
    assert (done.returncode, found) == (0, []), done.stdout + done.stderr


def test_purge_leaves_nothing(packages, root):
    before, users = root.files(), root.text('/etc/passwd') + root.text('/etc/group')
    root.install(*packages.values())
    assert len(root.files()) > len(before) + 100
    root.shell('''
        printf '[cluster]\\ndims = 2\\ndata_roots = /srv\\n[*]\\n+0 = eth1\\n-0 = eth2\\n[alpha]\\n[beta]\\n' >/tmp/cluster.ini
        torusctl init /tmp/cluster.ini --here --host alpha --root / --yes
        grep -q beta /etc/hosts
        systemctl enable torus-links torusd@ring
        touch /var/lib/torusd/state
        mkdir -p /var/lib/torusd-setup
        touch /var/lib/torusd-setup/state''')
    root.run('dpkg', '--remove', *NAMES)
    assert {'/etc/torusd/cluster.key', '/etc/torusd/torusd.ini', '/var/lib/torusd/state'} <= root.files().keys()
    root.run('dpkg', '--purge', *sorted(NAMES))
    after = root.files()
    assert {path: after.get(path) for path in before.keys() ^ after.keys()} == {}
    assert {path: (before[path], after[path]) for path in before if before[path] != after[path]} == {}
    assert root.text('/etc/passwd') + root.text('/etc/group') == users


def test_purge_leaves_data(packages, root):
    root.install(packages['libtorus1'], packages['torusd'])
    root.shell('echo result >/srv/torusd/result; mkdir -p /data; chown torusd: /data')
    root.shell('echo "data_roots = /srv/torusd:/data ; two" >/etc/torusd/torusd.ini')
    root.run('dpkg', '--purge', 'torusd', 'libtorus1')
    assert root.text('/srv/torusd/result') == 'result\n'
    assert root.run('stat', '-c', '%U:%G', '/srv/torusd', '/data') == 'torusd:torusd\n' * 2


def test_documents(packages, root):
    """Their links lead to installed files, unless they are about the sources; torusd-doc has no other files."""
    root.install(packages['torusd-doc'])
    files = root.files()
    top = Path('/usr/share/doc/torusd')
    documents = [path for path in files if path.startswith(f'{top}/') and path.endswith('.md')]
    assert {str(top / 'README.md'), str(top / 'client/doc/copying.md')} <= set(documents)
    missing = set()
    for path in documents:
        for _, target in links(root.text(path)):
            name = unquote(target).partition('#')[0]
            if name and not re.match('[a-z]+:', name):
                file = os.path.normpath(Path(path).parent / name)
                if file not in files:
                    missing.add(os.path.relpath(file, top))
    assert not [name for name in missing if not (CHECKOUT / name).exists()], missing
    assert not [name for name in missing if re.match(r'(client|daemon)/doc/|README|tests/bench/RES', name)], missing


def test_folders(packages, root):
    root.install(packages['libtorus1'], packages['torusd'])
    files = root.files()
    assert files['/etc/torusd'] == 'd root root 755 '
    assert files['/var/lib/torusd'] == 'd torusd torusd 750 '
    assert files['/srv/torusd'] == 'd torusd torusd 755 '
    assert re.search(r'^torusd:x:\d+:\d+:torusd,*:/var/lib/torusd:/usr/sbin/nologin$', root.text('/etc/passwd'), re.M)


@pytest.fixture
def old_packages(packages, tmp_path):
    """The same packages with the number of an older version, also in programs and names: a second build would take
    minutes."""
    assert len(OLD) == len(NEWEST), 'in programs, a number can take the place of one of the same length only'
    old = {}
    for name, deb in packages.items():
        folder, old[name] = tmp_path / name, tmp_path / f'{name}.deb'
        subprocess.run(['dpkg-deb', '--raw-extract', deb, folder], check=True)
        for path in folder.rglob(f'*{NEWEST}*'):
            path.rename(path.with_name(path.name.replace(NEWEST, OLD)))
        for path in folder.rglob('*'):
            if path.is_file() and not path.is_symlink() and NEWEST.encode() in (content := path.read_bytes()):
                path.write_bytes(content.replace(NEWEST.encode(), OLD.encode()))
        subprocess.run(['dpkg-deb', '--build', '-Znone', folder, old[name]], check=True, stdout=subprocess.DEVNULL)
    return old


def test_upgrade(packages, old_packages, root):
    """Configuration and state stay."""
    root.install(*old_packages.values())
    assert root.run('torusd', '--version').startswith(f'torusd {OLD}\n')
    root.shell('echo "; mine" >/etc/torusd/torusd.ini; echo record >/var/lib/torusd/record')
    root.install(*packages.values())
    assert root.run('torusd', '--version').startswith(f'torusd {NEWEST}\n')
    assert root.run('python3', '-c', 'import libtorus; print(libtorus.__version__)') == f'{NEWEST}\n'
    assert root.text('/etc/torusd/torusd.ini') + root.text('/var/lib/torusd/record') == '; mine\nrecord\n'
    installed = root.run('dpkg-query', '-W', '-f', '${Package} ${Version} ${db:Status-Status}\\n', *NAMES)
    assert sorted(installed.splitlines()) == sorted(f'{name} {NEWEST} installed' for name in NAMES)


def test_units(packages, root):
    """systemd accepts all units. The package torusd enables only torusd.service, which does not start without a configuration; discovery has a package of its own."""
    def enabled():
        return set(root.shell('find /etc/systemd/system -name "torus*" -printf "%f\\n"').split())

    root.install(packages['libtorus1'], packages['torusd'])
    assert enabled() == {'torusd.service'}
    root.install(packages['torusd-discover'])
    assert enabled() == {'torusd.service', 'torusd-discover.service', 'torusd-setup.service'}
    units = root.shell('cd /lib/systemd/system && ls torus*').split()
    assert set(units) == {path.name for path in (CHECKOUT / 'scripts' / 'packaging' / 'systemd').iterdir()
                          if path.suffix in ('.service', '.socket', '.target')}
    root.run('systemd-analyze', 'verify', '--man=no', *(f'/lib/systemd/system/{name}' for name in units))
    assert 'ConditionPathExists=/etc/torusd/torusd.ini\n' in root.text('/lib/systemd/system/torusd.service')


def test_daemon_with_the_example(packages, root):
    """The example of a configuration is one, for the user and in the folders of the package."""
    root.install(packages['libtorus1'], packages['torusd'])
    root.shell('torusctl key generate /etc/torusd/cluster.key && chown torusd: /etc/torusd/cluster.key')
    said = root.shell(AT_DAEMON % ('/usr/share/doc/torusd/examples/torusd.ini', 'torusctl --json status'))
    assert f'"version":"{NEWEST}"' in said.replace(' ', '') and '"rank":1' in said.replace(' ', '')


def test_emulator(packages, root):
    root.install(packages['libtorus1'], packages['torusd'], packages['torus-emulator'])
    said = root.shell("torus-emulator 2x2 --loopback --quiet --run 'torusctl exchange --block-size 4KiB'")
    assert 'every byte' in said
    preload = root.run('python3', '-c', 'import sys; sys.path.insert(0, "/usr/lib/torus-emulator/topo")\n'
                       'from torus_net import ip_hosts; print(ip_hosts.CHECKOUT / ip_hosts.PRELOAD)')
    assert preload.strip() in root.files()


def test_mpi(packages, root):
    """torusctl finds the libraries to preload, which load."""
    root.install(packages['libtorus1'], packages['torusd'], packages['torus-mpi'])
    for library in 'mpich', 'openmpi':
        path = re.search(r'LD_PRELOAD[= ](\S+)', root.run('torusctl', 'mpi-env', library))[1]
        assert path in root.files()
        assert root.shell(f'LD_PRELOAD={path} true 2>&1') == ''


def test_development(packages, root):
    """An example of libtorus-dev compiles with what pkg-config says, and there is a manual of a function."""
    root.install(packages['libtorus1'], packages['libtorus-dev'])
    root.shell('gcc -Wall -Werror -o /tmp/program /usr/share/doc/libtorus-dev/examples/transpose.c '
               '$(pkg-config --cflags --libs libtorus) -lm')
    assert root.run('pkg-config', '--modversion', 'libtorus') == f'{NEWEST}\n'
    assert 'libtorus.so.1' in root.run('ldd', '/tmp/program')
    assert '/usr/share/man/man3/torus_alltoall.3.gz' in root.files()


def test_python(packages, root):
    """The package has its version, says that it has type hints, and finds its library."""
    root.install(packages['libtorus1'], packages['python3-libtorus'])
    said = root.run('python3', '-c', 'import importlib.metadata as m, libtorus; '
                    'print(m.version("libtorus"), libtorus.library.library._name)')
    assert said == f'{NEWEST} libtorus.so.1\n'
    assert '/usr/lib/python3/dist-packages/libtorus/py.typed' in root.files()


def test_torch(packages, torch_package, tmp_path):
    """The package requires the torch and the Python that it was built with, and torch takes the backend."""
    needs = subprocess.run(['dpkg-deb', '-f', torch_package, 'Depends'], capture_output=True, text=True, check=True).stdout
    assert {'libtorch1.13', 'libtorus1', 'python3-libtorus', 'python3-torch', 'python3'} <= set(re.findall(r'[^ ,|]+', needs))
    assert 'python3 (<< 3.' in needs
    for deb in torch_package, packages['libtorus1'], packages['python3-libtorus']:
        subprocess.run(['dpkg-deb', '-x', deb, tmp_path], check=True)
    library, = tmp_path.glob('usr/lib/*/libtorus.so.1')
    done = subprocess.run(['/usr/bin/python3', '-c', 'import torch.distributed as d, torch_torus as t; print(t.__file__, d.Backend.TORUS)'],
                          env={'PYTHONPATH': f'{tmp_path}/usr/lib/python3/dist-packages', 'LD_LIBRARY_PATH': str(library.parent)},
                          capture_output=True, text=True)
    assert done.stdout == f'{tmp_path}/usr/lib/python3/dist-packages/torch_torus/__init__.py TORUS\n', done.stderr


# Every rank adds up what all ranks have.
TRAINING = """
import sys
import torch
import torch.distributed as dist
import libtorus
import torch_torus

dist.init_process_group('torus', init_method='torus://')
rank, size = dist.get_rank(), dist.get_world_size()
vector = torch.arange(100000, dtype=torch.float32) % 100 + rank
dist.all_reduce(vector)
assert torch.equal(vector, size * (torch.arange(100000, dtype=torch.float32) % 100) + size * (size - 1) // 2), vector
group = dist.new_group([0, 3])
if rank in (0, 3):
    one = torch.ones(1)
    dist.all_reduce(one, group=group)
    assert one.item() == 2
print('rank', rank, 'of', size, torch_torus.__file__, libtorus.__file__, libtorus.library.library._name, flush=True)
dist.destroy_process_group()
"""


def test_torch_on_an_emulated_torus(torch_root):
    """Installed with apt, which finds that nothing else is required, the packages are enough for a program that trains."""
    root, debs = torch_root
    root.install_with_apt(*debs)
    (root.folder / 'tmp' / 'training.py').write_text(TRAINING)
    said = root.shell('OMP_NUM_THREADS=1 torus-emulator 2x2 --loopback --quiet --run-each "python3 /tmp/training.py"')
    installed = '/usr/lib/python3/dist-packages'
    for rank in range(4):
        assert (f'rank {rank} of 4 {installed}/torch_torus/__init__.py {installed}/libtorus/__init__.py libtorus.so.1'
                in said), said


def test_manual_and_completions(packages, root):
    root.install(packages['libtorus1'], packages['torusd'])
    files = root.files()
    for name in ('man/man1/torusctl.1.gz', 'man/man1/torusctl-exchange.1.gz', 'man/man5/torusd.ini.5.gz',
                 'man/man8/torusd.8.gz', 'bash-completion/completions/torusctl', 'bash-completion/completions/torusd',
                 'zsh/vendor-completions/_torusctl', 'zsh/vendor-completions/_torusd'):
        assert f'/usr/share/{name}' in files


@pytest.fixture
def arm_programs(arm_root, tmp_path):
    """A folder with torusd and torusctl for arm64, which run in an emulator."""
    for path in 'usr/sbin/torusd', 'usr/bin/torusctl':
        assert re.search(r'AArch64', subprocess.run(['readelf', '-h', arm_root / path], capture_output=True, text=True,
                                                    check=True).stdout)
        program = tmp_path / path.rpartition('/')[2]
        program.write_text(f'#!/bin/sh\nexec {shutil.which("qemu-aarch64-static")} -L {arm_root} {arm_root}/{path} "$@"\n')
        program.chmod(0o755)
    return tmp_path


def test_arm_binaries(arm_root):
    """All of them are for arm64."""
    machines = {path: subprocess.run(['readelf', '-h', path], capture_output=True, text=True).stdout
                for path in [*arm_root.glob('usr/lib/*/libtorus.so.1'), *arm_root.glob('usr/lib/*/torus/*.so')]}
    assert len(machines) == 3 and all('AArch64' in text for text in machines.values()), machines


def test_arm_programs(arm_programs):
    def said(*command):
        return subprocess.run([arm_programs / command[0], *command[1:]], capture_output=True, text=True, check=True).stdout

    assert said('torusd', '--version').startswith(f'torusd {NEWEST}\n')
    assert re.search(r'^efficiency +100.0 %$', said(*ALGORITHM.split()), re.M)


def test_arm_exchange(arm_programs):
    done = subprocess.run([CHECKOUT / 'topo' / 'torus.py', '2', '--loopback', '--bin', arm_programs, '--quiet', '--run',
                           'torusctl exchange --block-size 64KiB'], capture_output=True, text=True)
    assert done.returncode == 0 and 'every byte' in done.stdout, done.stdout + done.stderr
