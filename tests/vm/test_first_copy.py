"""README's first copy: four machines with cables only, from a Debian without these packages to a copied model, by the
commands that the documents name."""

import os
import random
import re
import subprocess
import tempfile
from pathlib import Path

import pytest
from bare.image import make_bare_image
from support.waiting import wait_for
from test_bare_machines import Cluster, pytestmark  # noqa: F401
from torus_net import CHECKOUT
from torus_net.guest_image import default_cache

NAMES = ('alpha', 'beta', 'gamma', 'delta')
README = (CHECKOUT / 'README.md').read_text().partition('\n## The first copy\n')[2].partition('\n## ')[0]
INSTALLING = (CHECKOUT / 'daemon' / 'doc' / 'installing.md').read_text()


def commands(text, start):
    return re.findall(rf'^    ({start}.*?)(?: +#.*)?$', text, re.M)


PACKAGE, = commands(INSTALLING, 'scripts/package --bundle')
OFFER, = commands(INSTALLING, 'build/packages/torusd-amd64/install')
GET, = commands(INSTALLING, 'ip link set eth0 up; until')
COMMANDS = [command for command in commands(README, '') if not command.startswith(('scripts/', 'apt-get'))]


@pytest.fixture(scope='module')
def bundle():
    """The folder for machines without a network, in $TORUS_PACKAGES, or made now."""
    if os.environ.get('TORUS_PACKAGES'):
        return Path(os.environ['TORUS_PACKAGES']) / 'torusd-amd64'
    subprocess.run([CHECKOUT / PACKAGE.split()[0], *PACKAGE.split()[1:]], check=True, stdout=subprocess.DEVNULL)
    return CHECKOUT / 'build' / 'packages' / 'torusd-amd64'


@pytest.fixture
def ring(bundle):
    """A ring in the order of the names: eth0 leads to the machine before, eth1 to the next one."""
    image = make_bare_image([], default_cache(), print, [bundle])
    cables = [((name, 'eth1'), (NAMES[(i + 1) % len(NAMES)], 'eth0')) for i, name in enumerate(NAMES)]
    with tempfile.TemporaryDirectory(prefix='torus-first-') as folder:
        built = Cluster(NAMES, 2, folder, cables, image)
        try:
            yield built
        finally:
            built.close()


def install_all(ring):
    """One command on the console of each machine; each but the first gets the folder from the machine before. Returns how
    many commands these were."""
    for name in NAMES:
        command = OFFER.removeprefix('build/packages/') if name == NAMES[0] else GET
        ring[name].run('systemd-run', '--quiet', '--unit=console', '--working-directory=/root',
                       '--property=StandardOutput=file:/root/said', '--property=StandardError=file:/root/said',
                       'bash', '-c', command)
    for name in NAMES:
        wait_for(lambda name=name: 'offering torusd-amd64' in ring[name].run('cat /root/said'), 600, pause=2,
                 what=lambda name=name: f'{name}: ' + ring[name].run('cat /root/said; systemctl status console || true'))
    for name in NAMES:  # Ctrl-C
        ring[name].run('systemctl kill --signal=INT console; while systemctl -q is-active console; do sleep 0.1; done')
        assert 'fe80::7413' not in ring[name].run('ip -6 address')
        assert ring[name].run('systemctl is-active torusd-discover').strip() == 'active'
    return len(NAMES)


def enter(machine, command, *answers):
    """Enters a command on a terminal, and answers its questions."""
    typed = ''.join(f'{answer}\\n' for answer in answers)
    return machine.run(f"printf '{typed}' | script -qec '{command}' /dev/null", timeout=900)


def test_the_first_copy(ring):
    alpha = ring['alpha']
    for name in NAMES[1:]:
        ring[name].run('rm -r torusd-amd64')
    assert install_all(ring) == len(ring.machines)
    assert len([PACKAGE, *COMMANDS]) <= 6
    assert [command.split()[:2] for command in COMMANDS] == [
        ['torusctl', 'discover'], ['torusctl', 'init'], ['cp', '-r'], ['torusctl', 'copy']]
    discover, init, put, copy = COMMANDS
    # One that has just started on a busy machine may not have been heard yet.
    wait_for(lambda: alpha.try_run(f'rm -f cluster.ini; {discover} >said 2>&1', timeout=180)[0] == 0, 300, pause=1,
             what=lambda: alpha.run('cat said'))
    assert re.findall(r'^\[(\w+)\]', alpha.run('cat cluster.ini'), re.M)[1:] and 'dims = 4' in alpha.run('cat cluster.ini')
    alpha.run("sed -i '/^dims/a silence_ms = 5000' cluster.ini")  # machines that share processors
    print(enter(alpha, init, 'y', 'y'))
    model = random.Random(5).randbytes(60_000)
    alpha.run('mkdir model && cat >model/weights', stdin=model)
    alpha.run(put)
    wait_for(lambda: alpha.try_run(f'{copy} >said 2>&1', timeout=180)[0] == 0, 300, pause=2,
             what=lambda: alpha.try_run('cat said; torusctl status; torusctl links')[1])
    sums = {ring[name].run('sha256sum </srv/torusd/model/weights') for name in NAMES}
    assert len(sums) == 1, sums
