"""Machines that have only cables: the folder that scripts/package --bundle makes installs them, one after another."""

import re
import shutil

import pytest
from roots import CHECKOUT

pytestmark = pytest.mark.full  # builds the packages

INSTALLING = (CHECKOUT / 'daemon' / 'doc' / 'installing.md').read_text()
GET, = re.findall(r'^    (ip link set eth0 up; until .*);', INSTALLING, re.M)
# Three machines in a row, each with a network of its own. The first one has the folder.
ROW = '''
unshare --net sleep 1000 & beta=$!
unshare --net sleep 1000 & gamma=$!
until [ "$(readlink /proc/self/ns/net)" != "$(readlink /proc/$beta/ns/net)" ] &&
    [ "$(readlink /proc/self/ns/net)" != "$(readlink /proc/$gamma/ns/net)" ]; do sleep 0.01; done
ip link add eth0 type veth peer name eth0 netns $beta
nsenter -t $beta --net ip link add eth1 type veth peer name eth0 netns $gamma
torusd-amd64/install --offer >/tmp/alpha 2>&1 & alpha=$!
mkdir /tmp/beta /tmp/gamma
(cd /tmp/beta && nsenter -t $beta --net bash -c '%(get)s' 2>/dev/null && ls torusd-amd64)
nsenter -t $beta --net /tmp/beta/torusd-amd64/install --offer eth1 >/tmp/beta/said 2>&1 & offering=$!
(cd /tmp/gamma && nsenter -t $gamma --net bash -c '%(get)s' 2>/dev/null && diff -r torusd-amd64 ../beta/torusd-amd64)
kill $alpha $offering
wait $alpha $offering
nsenter -t $beta --net ip -6 address show scope link
kill $beta $gamma
'''

# A second signal reaches the installer, and what it runs, while it removes its address.
TWICE = r'''
ip link add eth0 type veth peer name other
mkdir /tmp/bin
printf '#!/bin/sh\ncase $* in *"address del"*) kill $PPID $$ ;; esac\nexec %s "$@"\n' "$(command -v ip)" >/tmp/bin/ip
chmod +x /tmp/bin/ip
PATH=/tmp/bin:$PATH torusd-amd64/install --offer eth0 2>/tmp/said & installer=$!
until grep -q offering /tmp/said; do kill -0 $installer; sleep 0.01; done
ip -6 address show dev eth0
kill $installer
wait $installer || true
echo ended
ip -6 address show dev eth0
'''


def put(bundle, root):
    (root.folder / 'upper' / 'root').mkdir(mode=0o700, exist_ok=True)
    shutil.copytree(bundle, root.folder / 'upper' / 'root' / 'torusd-amd64')


def test_installs_without_a_network(bundle, bare):
    put(bundle, bare)
    said = bare.run('unshare', '--net', 'sh', '-euc', 'cd && torusd-amd64/install && torusd-amd64/install 2>&1')
    assert 'everything is installed' in said
    installed = bare.run('dpkg-query', '-W', '-f', '${Package} ${db:Status-Status}\\n')
    assert {'torusd installed', 'libtorus1 installed', 'torusd-discover installed',
            'torusd-doc installed'} <= set(installed.splitlines())
    assert bare.run('torusctl', '--version') and bare.run('torusd', '--version')


def test_waits_for_dpkg(bundle, bare):
    """While another program has the lock, as just after the boot."""
    put(bundle, bare)
    said = bare.shell('''cd
        perl -e 'use Fcntl; my $lock = pack("s s x4 q q i x4", F_WRLCK, 0, 0, 0, 0);
            open(L, ">", "/var/lib/dpkg/lock-frontend") && fcntl(L, F_SETLK, $lock) && open(R, ">", "/tmp/ready") or die;
            sleep 1000' & holder=$!
        until [ -e /tmp/ready ]; do kill -0 $holder; sleep 0.01; done
        torusd-amd64/install >/tmp/said 2>&1 & installer=$!
        until grep -q "Waiting for cache lock" /tmp/said; do kill -0 $installer; sleep 0.05; done
        kill $holder
        wait $installer
        dpkg-query -W -f '${db:Status-Status}' torusd''')
    assert said == 'installed'


def test_goes_from_neighbour_to_neighbour(bundle, bare):
    put(bundle, bare)
    said = bare.run('unshare', '--net', 'bash', '-euc', 'cd; ip link set lo up\n' + ROW % {'get': GET})
    assert 'install\n' in said and 'fe80::7413' not in said, said
    assert 'offering torusd-amd64 at eth0;' in (bare.folder / 'tmp' / 'alpha').read_text()


def test_a_second_signal_leaves_no_address(bundle, bare):
    put(bundle, bare)
    before, after = bare.run('unshare', '--net', 'bash', '-euc', 'cd; ' + TWICE).split('ended\n')
    assert 'fe80::7413' in before and 'fe80::7413' not in after
