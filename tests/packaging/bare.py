"""Runs commands in a fresh clone on a bare Debian machine: a root file system. scripts/bare starts this."""

import shutil
import signal
import subprocess
import sys
import time

from roots import CHECKOUT, FOLDER, Root, bare_root

PACKAGES = ('git', 'ca-certificates')
# What Debian's installer makes for the first user of a machine. The packages include sudo.
USER = '''
useradd --create-home --shell /bin/bash builder
echo 'builder ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/builder
'''
# What a shell has after a login, whatever the caller of scripts/bare has.
LIMITS = 'ulimit -Sn 1024 && umask 022'
# Logs that a failed command leaves in the clone, besides its output.
LOGS = ('build*/build.log', 'build*/Testing/Temporary/LastTest.log')


class Machine:
    """A root file system, with the clone in somebody's home."""

    def __init__(self, root, kind):
        self.root, self.kind = root, kind
        self.user, home = ('root', 'root') if kind == 'root' else ('builder', 'home/builder')
        self.clone = root.folder / 'upper' / home / 'torusd'

    def make_clone(self, revision):
        if self.kind == 'user':
            self.root.shell(USER)
        source = self.root.folder / 'tmp' / 'torusd.git'
        subprocess.run(['git', 'clone', '--quiet', '--bare', '--no-local', CHECKOUT, source], check=True)
        self.root.run('chown', '-R', self.user, '/tmp/torusd.git')
        self.log_in(f'git clone --quiet /tmp/torusd.git torusd && git -C torusd checkout --quiet {revision}', check=True)
        shutil.rmtree(source)

    def log_in(self, command, **options):
        """Runs a command of a shell as a user who has just logged in. What it prints is shown."""
        return self.root.start('runuser', '--login', self.user, '--command', command, stdin=subprocess.DEVNULL, **options)

    def try_command(self, command):
        """Runs a command in the clone. Returns whether it has succeeded."""
        print(f'== in a fresh clone of {self.user}: {command}', flush=True)
        begin = time.monotonic()
        status = self.log_in(f'{LIMITS} && cd torusd && {command}').returncode
        print(f'== {self.user}: {command}: {time.monotonic() - begin:.0f} s, exit status {status}', flush=True)
        return status == 0

    def keep_logs(self):
        folder = FOLDER / f'bare-{self.kind}-logs'
        shutil.rmtree(folder, ignore_errors=True)
        for path in (path for pattern in LOGS for path in self.clone.glob(pattern)):
            kept = folder / path.relative_to(self.clone)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, kept)
            print(f'== kept: {kept}', flush=True)


def run(kind, revision, commands):
    """Runs the commands until one fails. Returns whether all have succeeded."""
    base = bare_root(FOLDER / f'bare-{kind}', *PACKAGES, *(['sudo'] if kind == 'user' else []))
    with Root(base, FOLDER) as root:
        machine = Machine(root, kind)
        machine.make_clone(revision)
        succeeded = all(machine.try_command(command) for command in commands)
        if not succeeded:
            machine.keep_logs()
    return succeeded


def main(kinds, revision, *commands):
    signal.signal(signal.SIGTERM, lambda signum, _frame: sys.exit(128 + signum))
    try:
        return 0 if all([run(kind, revision, commands) for kind in kinds.split()]) else 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
