"""README's first copy on four hosts made by hand, with systemd, and with cables only."""

import shutil
from contextlib import ExitStack

import pytest
from booted import Host, obstacle
from roots import FOLDER, Root, bare_root
from support.first_copy import BUNDLE, CABLES, NAMES, make_first_copy

pytestmark = [pytest.mark.full,  # builds the packages
              pytest.mark.skipif(bool(obstacle()), reason=str(obstacle()))]


@pytest.fixture
def ring(bundle):
    """The first host has the folder for machines without a network."""
    base = bare_root(FOLDER / 'root-booted', 'systemd-sysv', 'dbus', 'iproute2', 'ca-certificates')
    with ExitStack() as stack:
        hosts = {}
        for name in NAMES:
            root = stack.enter_context(Root(base, FOLDER))
            if name == NAMES[0]:
                shutil.copytree(bundle, root.folder / 'upper' / 'root' / bundle.name)
            hosts[name] = Host(root, name, ['eth0', 'eth1'])
            stack.callback(hosts[name].halt)
        for (a, interface), (b, others_interface) in CABLES:
            hosts[a].cable(interface, hosts[b], others_interface)
        for host in hosts.values():
            host.wait_up()
        yield hosts


def check_purge(host):
    """While everything runs, and nothing but its data is in the data root."""
    host.run(f'rm -r /srv/torusd/model {BUNDLE}')
    host.run('dpkg --purge torusd-discover torusd torusd-doc libtorus1', timeout=180)
    own = '/etc/systemd/system/torusd-discover.service.d*'  # the drop-in of these hosts
    assert host.run(f"find / /run -xdev -name '*torus*' -not -path '{own}'") == ''
    assert host.try_run('grep torus /etc/passwd /etc/group /etc/hosts') == (1, '')
    assert host.run("systemctl list-units --all --no-legend 'torus*'") == ''
    assert 'proto 84' not in host.run('ip route show table all') and 'torus0' not in host.run('ip link')


def test_the_first_copy(ring):
    """And then a purge, which leaves nothing of torusd on that host."""
    make_first_copy(ring)
    check_purge(ring[NAMES[-1]])
