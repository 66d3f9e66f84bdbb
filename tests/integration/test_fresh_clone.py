"""Commands that README and the documents name, each in a fresh clone: it builds what it needs. scripts/bare runs README's
two commands on a bare machine.

Packages are not installed: the machine must have those of the group test, and of the group vm or package, else the
commands that need them are skipped; so are those that need Mininet, without root. All share one clone and its object files,
so they are of one part of scripts/test."""

import os
import re
import shutil
import subprocess

import pytest
from torus_net import CHECKOUT, patience

pytestmark = pytest.mark.full  # the tests of each command run the same with programs that are built

MININET = [CHECKOUT / 'topo' / 'torus.py', '--check-mininet']
VM = [CHECKOUT / 'topo' / 'vms.py', '--check']
DEBHELPER = ['dh', '--help']
PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
# Command, what it prints, and a command that succeeds where it can run.
COMMANDS = [
    ('quickstart --loopback --dims 2x2 --no-install', r'every byte of all 12 blocks', None),
    ('reproduce --paper products --no-plots --no-install', r'index\.html', None),
    ('distributed-sort --dims 2x2 --lines 1000 --no-install', r'equal to LC_ALL=C sort +yes', None),
    ('faults 2x2 --loopback --rounds 1 --kinds kill-program --no-install', r'kill-program: 1 round, 0 failed', None),
    ('swarm --first 4711 --seeds 1', r'^1 seeds from 4711 on, .* 0 violations', None),
    ('lint format lengths links options subjects words', r'no findings', None),
    ('format --check', r'', None),
    ('bench --quick --no-plots --no-install', r'results in', MININET),
    ('mpi-bench --quick --operations alltoall --sizes 64 --no-plots --no-install', r'results in', MININET),
    ('routing-bench 4 --systems torus-routed --cuts 1 --silent 0 --rest 0 --iperf-runs 0 --no-mpi '
     '--no-install', r'"system": "torus-routed"', MININET),
    ('chaos 2x2 --rounds 1 --seed 5 --no-install', r'1 round, 0 failed', MININET),
    ('chaos --vm 2x2 --rounds 1 --seed 5 --no-install', r'1 round, 0 failed', VM),
    ('vm-up 1x2 --run "torusctl exchange --block-size 1KiB" --no-install', r'verified +every byte', VM),
    ('package --no-install', r'^torusd_.*\.deb$', DEBHELPER)]


@pytest.fixture(scope='module')
def clone(tmp_path_factory):
    folder = tmp_path_factory.mktemp('fresh') / 'torusd'
    subprocess.run(['git', 'clone', '--quiet', '--no-local', CHECKOUT, folder], check=True)
    yield folder
    shutil.rmtree(folder.parent)


@pytest.fixture
def fresh(clone):
    """The clone without what an earlier test has configured and linked. The object files remain, since compiling takes
    minutes."""
    for build in clone.glob('build*'):
        for path in build.rglob('*'):
            linked = path.is_file() and (os.access(path, os.X_OK) or re.search(r'\.(a|so)(\.|$)', path.name))
            if linked or path.is_symlink() or path.name == 'CMakeCache.txt':
                path.unlink()
    return clone


@pytest.mark.parametrize('command, printed, possible', COMMANDS)
def test_command(fresh, command, printed, possible):
    if possible and (not shutil.which(possible[0]) or subprocess.run(possible, capture_output=True).returncode):
        pytest.skip(f'{possible[0]} is missing, or cannot be used here')
    environment = {name: value for name, value in os.environ.items() if not name.startswith('TORUS_')}
    done = patience.run(['bash', '-c', f'scripts/{command}'], 1800, cwd=fresh, env={**environment, 'PATH': PATH})
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(printed, done.stdout + done.stderr, re.M), done.stdout + done.stderr
