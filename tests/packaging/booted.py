"""Hosts made by hand: root file systems in namespaces of their own, with systemd as their first process. They use the
kernel, the clock and the devices of this machine; their networks, processes, names and control groups are their own."""

import base64
import os
import shlex
import signal
import subprocess
from pathlib import Path

from roots import ENVIRONMENT
from support.waiting import wait_for
from torus_net.patience import Patience, run, wait

# systemd needs a control group of its own, below which it makes others; somebody must remove these at the end. The
# first shell does, and has a place of its own for that, wherever this machine has its control groups.
GROUP = '''
mount -t cgroup2 cgroup2 "$2/groups"
group=$2/groups/torus-${2##*/}
mkdir "$group"
setpriv --pdeathsig KILL unshare --mount --pid --net --uts --ipc --fork --kill-child sh -ec "$4" sh "$@" "$group" || true
find "$group" -depth -type d -exec rmdir {} +
'''
# What a container has: settings of the kernel, beside those of the network, can only be read; only devices that every
# program may use.
BOOT = '''
echo 0 >"$5/cgroup.procs"
exec unshare --cgroup sh -ec '
root=$2/merged
hostname "$3"
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$root"
echo "$3" >"$root/etc/hostname"
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount --bind "$root/proc/sys/net" "$root/proc/sys/net"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
    : >"$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
cd "$root"
pivot_root . mnt
exec chroot . sh -c "umount -l /mnt; exec setpriv --bounding-set \\
    -sys_time,-sys_module,-sys_boot,-sys_rawio,-syslog,-audit_control,-audit_read \\
    env -i container=torus PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd"' sh "$@"
'''

# The owner of such a host has to name its cables: without names, torusd-discover takes network cards only.
CABLES_OF = '''[Service]
ExecStart=
ExecStart=/usr/sbin/torusd-discover --interfaces %s --setups /run/torusd-setup/setup.sock
'''


def obstacle():
    """Why this machine cannot have such hosts, or None."""
    known = {line.split()[-1] for line in Path('/proc/filesystems').read_text().splitlines()}
    missing = sorted({'cgroup2', 'overlay'} - known)
    return f'this kernel has no {missing[0]}, which hosts with systemd need' if missing else None


def _children(pid):
    """The numbers of the processes that this one has started; none if it has ended."""
    try:
        return Path(f'/proc/{pid}/task/{pid}/children').read_text().split()
    except OSError:
        return []


class Host:
    """A Root that boots, and then gets the cables that it expects. Each command enters it."""

    def __init__(self, root, name, cables):
        self.folder, self.name = root.folder, name
        (self.folder / 'groups').mkdir()
        drop_ins = self.folder / 'upper' / 'etc' / 'systemd' / 'system' / 'torusd-discover.service.d'
        drop_ins.mkdir(parents=True)
        (drop_ins / 'cables.conf').write_text(CABLES_OF % ','.join(cables))
        with open(self.folder / 'said', 'w') as said:
            self.holder = subprocess.Popen(
                ['setpriv', '--pdeathsig', 'KILL', 'unshare', '--mount', 'sh', '-ec', GROUP, 'sh', root.base, root.folder,
                 name, BOOT], stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        self.first = wait_for(self._find_first, what=self._said)

    def _find_first(self):
        """The number of the first process in the host, once it is systemd."""
        assert self.holder.poll() is None, self._said()
        found = [first for child in _children(self.holder.pid) for first in _children(child)]
        return next((first for first in found if Path(f'/proc/{first}/comm').read_text() == 'systemd\n'), None)

    def _said(self):
        return f'{self.name}: systemd did not start: ' + (self.folder / 'said').read_text()

    def wait_up(self):
        """Waits until systemd has started everything."""
        wait_for(lambda: self.try_run('systemctl is-system-running')[1].strip() in ('running', 'degraded'), 120, pause=0.1,
                 what=lambda: self.try_run('systemctl list-jobs; journalctl --no-pager | tail -n 30')[1])

    def halt(self):
        """All processes of the host end with the first one."""
        os.kill(int(self.first), signal.SIGKILL)
        wait(self.holder, Patience(60))

    def cable(self, interface, other, others_interface):
        """Makes a cable to another host. Its ends are down, as those of a machine without a network."""
        subprocess.run(['nsenter', '--target', self.first, '--net', 'ip', 'link', 'add', interface, 'type', 'veth',
                        'peer', 'name', others_interface, 'netns', other.first], check=True)

    def try_run(self, command, stdin=b'', timeout=60):
        """Runs a shell command in root's home. Returns its exit status and its output with errors as text."""
        if stdin:
            command = f'echo {base64.b64encode(stdin).decode()} | base64 -d | ({command})'
        done = run(['nsenter', '--target', self.first, '--all', 'sh', '-c', f'cd /root && exec 2>&1 && {command}'],
                   timeout, env=ENVIRONMENT, errors='replace')
        return done.returncode, done.stdout

    def run(self, *argv, stdin=b'', timeout=60):
        """Runs a command; a list of words, or one shell command. Returns its output as text."""
        command = argv[0] if len(argv) == 1 else shlex.join(map(str, argv))
        status, output = self.try_run(command, stdin, timeout)
        assert status == 0, f'{self.name}: {command}: exit status {status}: {output.strip()}'
        return output
