"""From bare machines to a running torus: Debian with systemd and the packages, cabled at random; discovery, one init, and
life after that, with commands on one machine only."""

import json
import os
import random
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from bare.image import make_bare_image
from bare.machine import BareMachine
from bare.panel import Panel
from torus_net import CHECKOUT
from support.waiting import wait_for
from torus_net import vm_obstacle
from torus_net.guest_image import default_cache

NAMES = ('alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta', 'eta', 'theta', 'iota')
CLUSTER = '/root/cluster.ini'
NODE_PACKAGES = ('libtorus1', 'torusd', 'torusd-discover', 'torusd-doc')
PACKAGES = (*NODE_PACKAGES, 'torus-mpi')
NEXT_VERSION = '99'
CHANGES = (CHECKOUT / 'daemon' / 'doc' / 'changes.md').read_text()

MPI_PROGRAM = r'''#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int rank, size, out[64], in[64], wrong = 0;
    char name[65];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < size; i++)
        out[i] = 100 * rank + i;
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        wrong += in[i] != 100 * i + rank;
    gethostname(name, sizeof name);
    printf("%s is %s\n", name, wrong == 0 ? "right" : "wrong");
    MPI_Finalize();
    return 0;
}
'''

pytestmark = [pytest.mark.skipif(bool(vm_obstacle()), reason=str(vm_obstacle())),
              pytest.mark.skipif(os.geteuid() != 0, reason='building a disk image needs root')]


def built_packages():
    """The packages in $TORUS_PACKAGES, or built now."""
    folder = os.environ.get('TORUS_PACKAGES')
    if not folder:
        folder = CHECKOUT / 'build/packages'
        subprocess.run([CHECKOUT / 'scripts/package', '--output', folder], check=True, stdout=subprocess.DEVNULL)
    return [path for path in Path(folder).glob('*.deb')
            if path.name.split('_')[0] in PACKAGES and not path.name.endswith('_arm64.deb')]


def next_release(packages, folder):
    """Makes the packages of a node with the next version, from these, in build/packages below the folder. Returns build."""
    (folder / 'build/packages').mkdir(parents=True)
    for package in packages:
        name, _, architecture = package.stem.split('_')
        if name not in NODE_PACKAGES:
            continue
        run = folder / name
        subprocess.run(['dpkg-deb', '--raw-extract', package, run], check=True)
        control = run / 'DEBIAN' / 'control'
        control.write_text(re.sub('^Version: .*', f'Version: {NEXT_VERSION}', control.read_text(), flags=re.M))
        subprocess.run(['dpkg-deb', '--root-owner-group', '--build', run,
                        folder / 'build/packages' / f'{name}_{NEXT_VERSION}_{architecture}.deb'], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, 'SOURCE_DATE_EPOCH': '0'})
    return folder / 'build'


class Cluster:
    """Machines and their cables."""

    def __init__(self, names, interfaces, folder, cables, image):
        self.panel = Panel()
        self.machines = {name: BareMachine(name, interfaces, image, self.panel, folder) for name in names}
        for a, b in cables:
            self.panel.plug(a, b)
        for machine in self.machines.values():
            machine.start()
        for machine in self.machines.values():
            machine.wait_up()

    def __getitem__(self, name):
        return self.machines[name]

    def replug(self, *cables):
        """Pulls cables and plugs them in elsewhere, as people do: the carrier goes and comes."""
        ends = {end for cable in cables for end in cable}
        ends |= {other for end in ends if (other := self.panel.other_end(end))}
        for name, interface in ends:
            self[name].carrier(interface, False)
        for name, interface in ends:
            wait_for(lambda: self[name].try_run(f'grep -q 0 /sys/class/net/{interface}/carrier')[0] == 0, 30, pause=0.1)
        for a, b in cables:
            self.panel.plug(a, b)
        for end in ends:
            if self.panel.other_end(end):
                self[end[0]].carrier(end[1], True)

    def close(self):
        for machine in self.machines.values():
            machine.power_off()
        self.panel.close()


def random_torus(names, rows, columns, seed):
    """The cables of a torus, with hosts and interfaces at random places."""
    chance = random.Random(seed)
    names = list(names)
    chance.shuffle(names)
    free = {name: chance.sample(['eth0', 'eth1', 'eth2', 'eth3'][:4 if rows > 1 else 2],
                                4 if rows > 1 else 2) for name in names}
    cables = []
    for row in range(rows):
        for column in range(columns):
            here = names[row * columns + column]
            for there in ([names[row * columns + (column + 1) % columns]]
                          + [names[(row + 1) % rows * columns + column]] * (rows > 1)):
                cables.append(((here, free[here].pop()), (there, free[there].pop())))
    return cables


@pytest.fixture(scope='module', params=[
    pytest.param(('1x3', 3, 2), id='ring-of-3'), pytest.param(('3x3', 9, 4), id='3x3')])
def cluster(request):
    dims, count, interfaces = request.param
    rows, columns = map(int, dims.split('x'))
    seed = int(os.environ.get('TORUS_SEED') or random.randrange(10**6))
    print(f'TORUS_SEED={seed}')
    with tempfile.TemporaryDirectory(prefix='torus-bare-') as folder:
        packages = built_packages()
        image = make_bare_image(packages, default_cache(), print, [next_release(packages, Path(folder) / 'next')])
        built = Cluster(NAMES[:count], interfaces, folder, random_torus(NAMES[:count], rows, columns, seed), image)
        built.dims = '3' if rows == 1 else dims
        try:
            yield built
        finally:
            built.close()


def whole(machine):
    status, text = machine.try_run('torusctl --json status', timeout=60)
    return status == 0 and json.loads(text)['whole']


def wait_whole(cluster, seconds=120):
    for machine in cluster.machines.values():
        wait_for(lambda machine=machine: whole(machine), seconds, pause=0.5, what=lambda machine=machine: machine.try_run(
            'torusctl status; torusctl links; journalctl -b -n 40 --no-pager -u torusd -u torus-links')[1])


def check_pings(cluster):
    for machine in cluster.machines.values():
        for other in cluster.machines:
            machine.run(f'ping -q -c 1 -W 10 {other}', timeout=30)


def check_exchange(cluster):
    result = cluster['alpha'].json('exchange', '--block-size', '16KiB', timeout=120)
    assert result['verified'] == 'every byte' and result['node_count'] == len(cluster.machines)


def test_discover_and_init(cluster):
    """Two commands on one machine, and everything works; no machine was configured before."""
    alpha = cluster['alpha']

    def find_all():  # one that has just booted on a busy machine may not have been heard yet
        status, text = alpha.try_run(f'rm -f {CLUSTER}; torusctl --json discover --output {CLUSTER} 2>/dev/null', timeout=180)
        found = json.loads(text) if status == 0 else {'hosts': []}
        return found if {host['name'] for host in found['hosts']} == set(cluster.machines) else None
    found = wait_for(find_all, 120, pause=1)
    assert re.search(rf'^dims = {cluster.dims}$', alpha.run(f'cat {CLUSTER}'), re.M), found
    # Machines that share processors may be stopped for a second.
    alpha.run(f"sed -i '/^dims/a silence_ms = 5000' {CLUSTER}")
    done = alpha.json(f'init {CLUSTER} --links --yes --trust-cables', timeout=600)
    assert {host['result'] for host in done['hosts']} == {'changed'}, done
    wait_whole(cluster)
    check_exchange(cluster)
    check_pings(cluster)


def test_init_again_changes_nothing(cluster):
    done = cluster['alpha'].json('init', CLUSTER, '--links', '--yes', timeout=600)
    assert {host['result'] for host in done['hosts']} == {'up to date'}


def test_a_data_root_that_torusd_cannot_write(cluster):
    """torusd-setup runs as root in a sandbox, and checks the data roots as the user of torusd."""
    alpha, beta = cluster['alpha'], cluster['beta']
    alpha.run(f"sed '/^dims/a data_roots = /srv/torusd:/srv/more' {CLUSTER} >/root/more.ini")
    for machine in cluster.machines.values():
        machine.run('mkdir /srv/more && chown torusd: /srv/more')
    dry = 'torusctl init /root/more.ini --links --dry-run'
    alpha.run(dry, timeout=600)
    for command, said in ('chown root: /srv/more', 'data root /srv/more: the user torusd cannot write there'), (
            'rmdir /srv/more', 'data root /srv/more does not exist'):
        beta.run(command)
        status, text = alpha.try_run(dry, timeout=600)
        assert status == 1 and f'beta: {said}' in text, text


def test_an_mpi_program(cluster, tmp_path):
    """A program that knows nothing of torusd: its MPI_Alltoall goes through the preload of torus-mpi."""
    if not shutil.which('mpicc.mpich'):
        pytest.skip('mpicc.mpich is missing (Debian: libmpich-dev)')
    (tmp_path / 'program.c').write_text(MPI_PROGRAM)
    subprocess.run(['mpicc.mpich', '-O1', '-s', '-o', tmp_path / 'program', tmp_path / 'program.c'], check=True)
    for machine in cluster.machines.values():
        machine.run('cat >/root/program && chmod +x /root/program', stdin=(tmp_path / 'program').read_bytes())
    count = len(cluster.machines)
    said = cluster['alpha'].run(
        f'TORUS_MPI=stats,torus mpiexec.mpich $(torusctl mpi-env mpich) -hosts {",".join(cluster.machines)} -n {count} '
        '/root/program', timeout=300)
    assert sorted(re.findall(r'^(\w+) is right$', said, re.M)) == sorted(cluster.machines), said
    assert re.search(rf'MPI_Alltoall +{count} calls(?!.*not served)', said), said


def test_two_crossed_cables_are_named(cluster):
    """The ends of two cables change places: discovery says what to do, with the names of both hosts."""
    panel, chance = cluster.panel, random.Random(7)
    ends = [(name, interface) for name in cluster.machines for interface in cluster[name].interfaces]
    a = chance.choice(ends)
    b = chance.choice([end for end in ends if end[0] != a[0] and end[0] != panel.other_end(a)[0]])
    to_a, to_b = panel.other_end(a), panel.other_end(b)
    try:
        cluster.replug((a, to_b), (b, to_a))

        def moves():
            status, text = cluster['alpha'].try_run(f'torusctl --json discover --cluster {CLUSTER} 2>/dev/null', timeout=180)
            said = ' '.join(json.loads(text)['moves']) if status == 1 else ''
            return said if re.search('swap|move|missing', said) else ''
        said = wait_for(moves, 60, pause=1, what=lambda: cluster['alpha'].try_run(f'torusctl discover --cluster {CLUSTER}')[1])
        print(said)
        words = set(re.findall(r'\w+', said))
        assert {a[0], b[0]} <= words or {to_a[0], to_b[0]} <= words, said
        # The doctor asks the daemons only, and knows the machines that it does not reach by their ranks.

        def cables():
            found = [one for one in doctor(cluster['alpha'])['findings'] if (one['check'], one['severity']) == ('cables', 'error')]
            return [one for finding in found for one in finding['each'] if re.search('swap the cables|move ', one['mend'])]
        assert all(' leads to ' in one['what'] for one in wait_for(cables, 60, pause=1, what=lambda: doctor(cluster['alpha'])))
    finally:
        cluster.replug((a, to_a), (b, to_b))
    wait_whole(cluster)


def test_power_cut(cluster):
    """All machines lose power at once, and the torus comes back by itself."""
    for machine in cluster.machines.values():
        machine.run('sync')
        machine.power_off()
    for machine in cluster.machines.values():
        machine.start()
    for machine in cluster.machines.values():
        machine.wait_up()
    wait_whole(cluster)
    check_exchange(cluster)
    check_pings(cluster)


def test_one_machine_boots_while_others_talk(cluster):
    """The helper on all other machines routes around it, and to it again; not a program there notices."""
    alpha, beta, gamma = (cluster[name] for name in NAMES[:3])
    pings = alpha.run('ping -i 0.5 gamma </dev/null >/root/pings 2>&1 & echo $!').strip()
    beta.run('sync')
    beta.power_off()
    wait_for(lambda: not whole(alpha), 60, pause=0.5)
    for machine in cluster.machines.values():
        if machine.alive:
            for other in set(cluster.machines) - {'beta'}:
                wait_for(lambda: machine.try_run(f'ping -q -c 1 -W 2 {other}')[0] == 0, 30, pause=0.1)
    assert gamma.try_run('ping -q -c 1 -W 2 beta')[0] != 0
    beta.start()
    beta.wait_up()
    wait_whole(cluster)
    check_pings(cluster)
    assert 'proto 84' in beta.run('ip route')
    alpha.run(f'kill -INT {pings}')
    said = wait_for(lambda: re.search(r'(\d+) packets transmitted, (\d+) received', alpha.run('cat /root/pings')), 30)
    sent, received = map(int, said.groups())
    print(f'alpha to gamma: {sent - received} of {sent} lost')
    assert sent > 20 and received > sent // 2


def test_replug(cluster):
    a = ('beta', 'eth0')
    other = cluster.panel.other_end(a)
    for name, interface in (a, other):
        cluster[name].carrier(interface, False)
    wait_for(lambda: not whole(cluster['alpha']), 60, pause=0.5)
    for name, interface in (a, other):
        cluster[name].carrier(interface, True)
    wait_whole(cluster)
    check_pings(cluster)


def test_new_key(cluster):
    """The key changes on all machines by one command on one of them, and no link is lost."""
    alpha = cluster['alpha']
    before = {name: [link['up_seconds'] for link in machine.json('links')['links']]
              for name, machine in cluster.machines.items()}
    old = alpha.json('key id /etc/torusd/cluster.key')
    alpha.json(f'init {CLUSTER} --links --new-key --yes', timeout=900)
    assert alpha.json('key id /etc/torusd/cluster.key') != old
    assert len({machine.run('sha256sum </etc/torusd/cluster.key') for machine in cluster.machines.values()}) == 1
    for name, machine in cluster.machines.items():
        links = machine.json('links')['links']
        assert all(link['up_seconds'] > uptime for link, uptime in zip(links, before[name])), name
    wait_whole(cluster)


def test_upgrade_one_by_one(cluster):
    """By the commands of daemon/doc/changes.md, to packages of a version that is called newer."""
    install, status, look = re.findall(r'^    (.*)$', CHANGES.partition('**Upgrade**')[2], re.M)
    assert (status, look) == ('torusctl status', 'torusctl init cluster.ini --links --dry-run')
    alpha = cluster['alpha']
    for name, machine in cluster.machines.items():
        before = machine.run('cat /etc/torusd/* | sha256sum; torusd-discover --id')
        daemon = machine.run('systemctl show --property=MainPID torusd')
        machine.run(f"bash -c '{install} </dev/null'", timeout=300)
        installed = machine.run('dpkg-query', '-W', '-f', '${Package} ${Version} ', *NODE_PACKAGES)
        assert installed.split()[1::2] == [NEXT_VERSION] * len(NODE_PACKAGES), installed
        assert machine.run('systemctl show --property=MainPID torusd') != daemon
        wait_whole(cluster)
        assert re.search('^whole +yes$', machine.run(status), re.M)
        assert machine.run('cat /etc/torusd/* | sha256sum; torusd-discover --id') == before, name
        check_exchange(cluster)
    said = wait_for(lambda: (done := alpha.try_run(look, timeout=600))[0] == 0 and done[1], 120, pause=1,
                    what=lambda: alpha.try_run(look, timeout=600)[1])
    assert len(re.findall('up to date', said)) == len(cluster.machines), said


def doctor(machine):
    status, text = machine.try_run('torusctl --json doctor', timeout=180)
    assert status in (0, 1, 2), text
    return json.loads(text)


def test_doctor_sees_what_it_judges(cluster):
    """In the sandbox of the installed unit. Only root may read the rules of the firewall, and virtual cards have no speed."""
    value = doctor(cluster['alpha'])
    count = len(cluster.machines)
    assert not [finding for finding in value['findings'] if finding['severity'] == 'error'], value
    assert value['answered'] == {'state': count, 'facts': count}
    checks = {check['check']: check for check in value['checks']}
    assert {name for name, check in checks.items() if check['not_seen']} <= {'firewall', 'speed', 'large frames'}, value
    for name in 'clocks', 'memory', 'load', 'system', 'rp_filter', 'limits', 'losses', 'interface errors', 'ip routes', 'forwarding':
        assert checks[name]['fine'] + checks[name]['wrong'] == count, (name, value)


def test_doctor_says_what_a_sandbox_hides(cluster):
    """One machine has a unit as in earlier releases."""
    alpha, beta = cluster['alpha'], cluster['beta']
    folder = '/etc/systemd/system/torusd.service.d'
    beta.run(f"mkdir -p {folder} && printf '[Service]\nProcSubset=pid\nProtectClock=yes\n' >{folder}/hide.conf && "
             'systemctl daemon-reload && systemctl restart torusd')
    try:
        wait_whole(cluster)

        def hidden():
            value = doctor(alpha)
            return {one['check']: one for one in value['findings'] if one['severity'] == 'not seen'
                    and ('ProcSubset' in one['what'] or 'ProtectClock' in one['what'])} or None
        found = wait_for(hidden, 60, pause=1, what=lambda: doctor(alpha))
        assert found.keys() == {'clocks', 'memory', 'load', 'system', 'rp_filter', 'forwarding'}, found
        assert all(one['hosts'] == ['beta'] and 'unit of this release' in one['mend'] for one in found.values()), found
    finally:
        beta.run(f'rm -r {folder} && systemctl daemon-reload && systemctl restart torusd')
    wait_whole(cluster)


def test_purge_leaves_nothing(cluster):
    machine = cluster['beta']
    machine.run('dpkg --purge torusd-discover torusd', timeout=180)
    assert machine.try_run('grep torusd /etc/hosts /etc/passwd')[0] == 1
    assert not machine.run('ls -d /etc/torusd /var/lib/torusd /etc/systemd/system/torusd* 2>/dev/null || true').strip()
    assert 'proto 84' not in machine.run('ip route') and 'torus0' not in machine.run('ip link')
