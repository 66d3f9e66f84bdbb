"""sshd on hosts that have IP routes to each other."""

import getpass
import shutil
import subprocess
from pathlib import Path

import pytest
from torus_net.patience import Patience, wait

from .routed import with_routes
from .waiting import wait_for


class Ssh:
    """sshd on all hosts. `command` is a client that reaches them by name."""

    def __init__(self, torus, folder):
        self.servers = []
        for name in 'host', 'user':
            subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', folder / name], check=True)
        shutil.copy(folder / 'user.pub', folder / 'authorized')
        known = (folder / 'host.pub').read_text().split()[:2]
        (folder / 'known').write_text(f'* {" ".join(known)}\n')
        (folder / 'config').write_text(
            f'Host *\n User {getpass.getuser()}\n IdentityFile {folder}/user\n IdentitiesOnly yes\n'
            f' UserKnownHostsFile {folder}/known\n BatchMode yes\n LogLevel ERROR\n')
        self.command = folder / 'ssh'
        self.command.write_text(f'#!/bin/sh\nexec ssh -F {folder}/config "$@"\n')
        self.command.chmod(0o755)
        Path('/run/sshd').mkdir(exist_ok=True)
        for node, address in zip(torus.nodes, torus.ip_hosts.addresses):
            config = folder / f'sshd-{node.rank}'
            config.write_text(
                f'ListenAddress {address}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\n'
                'StrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile none\n')
            self.servers.append(subprocess.Popen(
                [*torus.ip_hosts.enter(node.rank), 'setpriv', '--pdeathsig', 'TERM', '/usr/sbin/sshd', '-D', '-e', '-f',
                 config], stderr=open(folder / f'sshd-{node.rank}.log', 'wb')))
        for rank in range(len(torus.nodes)):
            wait_for(lambda rank=rank: ':22 ' in torus.node(rank).run('ss', '-Hltn'))

    def stop(self):
        for server in self.servers:
            server.terminate()
        for server in self.servers:
            wait(server, Patience(10))


@pytest.fixture
def ssh(mininet, tmp_path):
    """(torus, Ssh)"""
    if not Path('/usr/sbin/sshd').exists() or shutil.which('ssh') is None:
        pytest.skip('openssh-server and openssh-client are not installed')
    torus = with_routes(mininet)
    servers = Ssh(torus, tmp_path)
    yield torus, servers
    servers.stop()
