"""Three hosts that torusctl init sets up, as folders with their files, and an ssh that runs commands below them."""

import os
import subprocess
from pathlib import Path

from torus_net.process import find_program

CLUSTER = '''[cluster]
dims = 3
link_mbit = 1000
data_roots = {data}

[*]
+0 = eth1
-0 = eth2

[alpha]
[beta]
ssh = admin@10.0.0.3
[gamma]
-0 = eth3
'''

# Runs the command for the host that ssh names, below the folder of that host.
SSH = '''#!/bin/sh
set -u
while [ "$1" != -- ]; do shift; done
shift
echo "$*" >>{folder}/calls
target=$1
shift
case $target in alpha) host=alpha ;; admin@10.0.0.3) host=beta; [ "$1 $2" = "sudo -n" ] && shift 2 ;; *) host=$target ;; esac
[ ! -e {folder}/fail-$host ] || {{ echo "no route to $host" >&2; exit 255; }}
shift
{torusctl} "$@" --root {folder}/$host
status=$?
for each in alpha beta gamma; do
    cat {folder}/$each/etc/torusd/*.key 2>/dev/null | tr '\\n' ' '
    echo "|"
done | tr -d '\\n' >>{folder}/keys
echo >>{folder}/keys
exit $status
'''


def torusctl(*arguments, **options):
    return subprocess.run([find_program('torusctl'), *map(str, arguments)], capture_output=True, text=True,
                          stdin=options.pop('stdin', subprocess.DEVNULL) if 'input' not in options else None,
                          env=options.pop('env', None) or with_torusd(), **options)


def with_torusd():
    """An environment in which torusctl finds torusd, as where both are installed."""
    return {**os.environ, 'PATH': f'{Path(find_program("torusd")).parent}:{os.environ["PATH"]}'}


class Bench:
    """A cluster file, and a folder with the files of each host."""

    def __init__(self, folder):
        self.folder = folder
        self.file = folder / 'cluster.ini'
        self.file.write_text(CLUSTER.format(data=folder))
        for host in ('alpha', 'beta', 'gamma'):
            (folder / host / 'etc').mkdir(parents=True)
            for path in self.data_root(host), folder / host / 'srv/more', folder / host / 'home/alice/data':
                path.mkdir(parents=True)
            (folder / host / 'etc/group').write_text('users:x:100:\ntorusd:x:101:\n')
            (folder / host / 'etc/hosts').write_text('127.0.0.1 localhost\n')
        self.ssh = folder / 'ssh'
        self.ssh.write_text(SSH.format(folder=folder, torusctl=find_program('torusctl')))
        self.ssh.chmod(0o755)

    def data_root(self, host):
        """In the image of the host."""
        return Path(f'{self.folder / host}{self.folder}')

    def here(self, host, *options):
        return torusctl('init', self.file, '--here', '--host', host, '--root', self.folder / host, '--key',
                        self.folder / 'key', *options)

    def all(self, *options):
        return torusctl('init', self.file, '--ssh', '--ssh-program', self.ssh, '--key', self.folder / 'key',
                        '--no-wait', *options)

    def read(self, host, name):
        return (self.folder / host / 'etc' / name).read_text()

    def files(self):
        return {path: path.read_bytes() for host in ('alpha', 'beta', 'gamma')
                for path in (self.folder / host).rglob('*') if path.is_file()}

    def key(self, name='key'):
        return (self.folder / name).read_text()
