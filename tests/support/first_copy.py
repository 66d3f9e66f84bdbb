"""README's first copy: four machines with cables only, from a Debian without these packages to a copied model, by the
commands that the documents name. The machines are virtual (tests/vm) or made by hand (tests/packaging)."""

import random
import re

from support.waiting import wait_for
from torus_net import CHECKOUT

NAMES = ('alpha', 'beta', 'gamma', 'delta')
# A ring in the order of the names: eth0 leads to the machine before, eth1 to the next one.
CABLES = [((name, 'eth1'), (NAMES[(i + 1) % len(NAMES)], 'eth0')) for i, name in enumerate(NAMES)]
BUNDLE = 'torusd-amd64'
README = (CHECKOUT / 'README.md').read_text().partition('\n## The first copy\n')[2].partition('\n## ')[0]
INSTALLING = (CHECKOUT / 'daemon' / 'doc' / 'installing.md').read_text()
MOST_COMMANDS = 6  # beside one on each machine, which installs the packages


def commands(text, start):
    return re.findall(rf'^    ({start}.*?)(?: +#.*)?$', text, re.M)


PACKAGE, = commands(INSTALLING, 'scripts/package --bundle')
OFFER, = commands(INSTALLING, f'build/packages/{BUNDLE}/install')
GET, = commands(INSTALLING, 'ip link set eth0 up; until')
COMMANDS = [command for command in commands(README, '') if not command.startswith(('scripts/', 'apt-get'))]


def install_all(machines):
    """One command on the console of each machine; each but the first gets the folder from the machine before. Returns how
    many commands these were."""
    for name in NAMES:
        command = OFFER.removeprefix('build/packages/') if name == NAMES[0] else GET
        machines[name].run('systemd-run', '--quiet', '--unit=console', '--working-directory=/root',
                           '--property=StandardOutput=file:/root/said', '--property=StandardError=file:/root/said',
                           'bash', '-c', command)
    for name in NAMES:
        wait_for(lambda name=name: f'offering {BUNDLE}' in machines[name].run('cat /root/said'), 600, pause=2,
                 what=lambda name=name: f'{name}: ' + machines[name].run('cat /root/said; systemctl status console || true'))
    for name in NAMES:  # Ctrl-C
        machines[name].run('systemctl kill --signal=INT console; while systemctl -q is-active console; do sleep 0.1; done')
        assert 'fe80::7413' not in machines[name].run('ip -6 address')
        assert machines[name].run('systemctl is-active torusd-discover').strip() == 'active'
    return len(NAMES)


def enter(machine, command, *answers):
    """Enters a command on a terminal, and answers its questions."""
    typed = ''.join(f'{answer}\\n' for answer in answers)
    return machine.run(f"printf '{typed}' | script -qec '{command}' /dev/null", timeout=900)


def make_first_copy(machines, settings=''):
    """From machines with systemd, of which the first one has the folder in root's home, to the copied model. settings: a
    line for the cluster file that these machines require."""
    alpha = machines[NAMES[0]]
    assert install_all(machines) == len(NAMES)
    assert len([PACKAGE, *COMMANDS]) <= MOST_COMMANDS
    assert [command.split()[:2] for command in COMMANDS] == [
        ['torusctl', 'discover'], ['torusctl', 'init'], ['cp', '-r'], ['torusctl', 'copy']]
    discover, init, put, copy = COMMANDS
    # A host that just started on a busy machine may not be heard yet.
    wait_for(lambda: alpha.try_run(f'rm -f cluster.ini; {discover} >said 2>&1', timeout=180)[0] == 0, 300, pause=1,
             what=lambda: alpha.run('cat said'))
    assert re.findall(r'^\[(\w+)\]', alpha.run('cat cluster.ini'), re.M)[1:] and 'dims = 4' in alpha.run('cat cluster.ini')
    if settings:
        alpha.run(f"sed -i '/^dims/a {settings}' cluster.ini")
    print(enter(alpha, init, 'y', 'y'))
    model = random.Random(5).randbytes(60_000)
    alpha.run('mkdir model && cat >model/weights', stdin=model)
    alpha.run(put)
    wait_for(lambda: alpha.try_run(f'{copy} >said 2>&1', timeout=180)[0] == 0, 300, pause=2,
             what=lambda: alpha.try_run('cat said; torusctl status; torusctl links')[1])
    sums = {machines[name].run('sha256sum </srv/torusd/model/weights') for name in NAMES}
    assert len(sums) == 1, sums
