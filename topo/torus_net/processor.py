"""--cpu and --cores: each host of a Mininet torus has its own share of this machine's processors.

The share is a quota of the kernel's CFS scheduler, by cgroup v1 or v2 (cgroup.py). It counts what the host's
processes use, in the kernel as well. It does not count packets that the kernel forwards, or receives in interrupts:
that time counts for whichever process runs at that moment, or for none.
"""

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from . import cgroup, interrupts
from .geometry import UsageError
from .patience import Patience, wait
from .process import TorusError

SHARE_LEAST = 0.01
STALE_GRACE = 2.0  # seconds that processes of a launcher that was killed have to end
CONTROLLER = ('--cpu needs the cpu controller of cgroups (v1 or v2) with quotas, which {}. In a container, start '
              'it with access to the groups of the host (docker run --privileged --cgroupns=host)')
MOUNT = ('is not mounted here. Mount it (mount -t cgroup2 none /sys/fs/cgroup, or on cgroup v1 '
         'mount -t cgroup -o cpu none /sys/fs/cgroup/cpu)')


def parse_share(text):
    """The share of one processor that `text` gives; UsageError if a host cannot have it."""
    try:
        share = float(text)
    except ValueError:
        share = 0
    if not SHARE_LEAST <= share <= 1:  # nan is not
        raise UsageError(f'"{text}" is not a share of a processor, from {SHARE_LEAST:g} to 1')
    return share


def find_groups(mountinfo, own):
    """(version, the group in which to make others), from the texts of /proc/self/mountinfo and /proc/self/cgroup.
    In v1 it is this process's own, so that limits on it also hold for the hosts; v2 does not allow groups in one that
    has processes, so that it is the root. UsageError if there is none."""
    second = None
    for line in mountinfo.splitlines():
        before, _, after = line.partition(' - ')
        root, mount = before.split()[3:5]
        kind, _, options = after.split()[:3]
        if kind == 'cgroup' and 'cpu' in options.split(','):
            return '1', _own_group(Path(mount), root, own)
        if kind == 'cgroup2' and 'cpu' in (Path(mount) / 'cgroup.controllers').read_text().split():
            second = Path(mount)
    if second is None:
        raise UsageError(CONTROLLER.format(MOUNT))
    return '2', second


def _own_group(mount, root, own):
    for line in own.splitlines():
        _, controllers, path = line.split(':', 2)
        if 'cpu' in controllers.split(','):
            group = mount / os.path.relpath(path, root)
            return group if '..' not in group.parts and group.is_dir() else mount
    return mount


class Shares:
    """The groups of the hosts of one torus, until close() or the end of this program. Each host may use `cores` times
    `share` of a processor, and each of its threads `share`."""

    def __init__(self, share, cores, hosts):
        self.name, parent = find_groups(Path('/proc/self/mountinfo').read_text(),
                                        Path('/proc/self/cgroup').read_text())
        self.version = cgroup.VERSIONS[self.name]
        self.quota, self.period = cgroup.quota_and_period(share)
        self.folder = self.keeper = None
        try:
            _remove_stale(self.version, parent)
            with interrupts.held():
                self.folder = Path(tempfile.mkdtemp(prefix=f'torus-{os.getpid()}-{_start_time(os.getpid())}-',
                                                    dir=parent))
                self.keeper = subprocess.Popen(
                    [sys.executable, '-ISB', cgroup.__file__, self.name, str(self.folder), str(self.quota),
                     str(self.period), str(cores)], stdin=subprocess.PIPE, start_new_session=True)
            self.version.enable(parent)
            self.version.enable(self.folder)
            for rank in range(hosts):
                self._make_host(rank, cores)
        except OSError as e:
            self.close()
            raise UsageError(_explain(e, parent, share * cores)) from e

    def _make_host(self, rank, cores):
        group = self._group(rank)
        group.mkdir()
        if not (group / self.version.missing).exists():
            raise OSError(errno.ENOTSUP, '')
        self.version.set_quota(group, self.quota * cores, self.period)
        if cores > 1:
            self.version.enable(group)

    def _group(self, rank):
        return self.folder / f'n{rank}'

    def processes(self, rank):
        """The file to which a process of a host writes its id."""
        return self._group(rank) / 'cgroup.procs'

    def enter(self, rank):
        """A command prefix that runs a command with the share of a host."""
        return ['sh', '-c', 'echo $$ >"$0" && exec "$@"', str(self.processes(rank))]

    def add(self, rank, pid):
        """Gives a process that runs already the share of a host."""
        cgroup.write(self.processes(rank), pid)

    def lift(self):
        """Ends the limits, so that processes end quickly."""
        cgroup.lift(self.version, self.folder)

    def close(self):
        """Removes the groups. Processes in them that do not end are killed."""
        if self.keeper is None:
            return
        self.keeper.stdin.close()
        try:
            wait(self.keeper, Patience(3 * cgroup.GRACE))
        except subprocess.TimeoutExpired:
            raise TorusError(f'the groups in {self.folder} cannot be removed: processes in them do not end') from None
        self.keeper = None


def _explain(e, parent, wanted):
    """What to do about an error of the kernel, as text."""
    if e.errno == errno.EINVAL:
        return (f'--cpu and --cores give each host {wanted:g} of a processor, but the group {parent}, in which this '
                'program runs, may not use as much: start it in another one')
    if e.errno == errno.EBUSY:
        return CONTROLLER.format(f'{parent} cannot share out, because processes run in it')
    if e.errno == errno.ENOTSUP:
        return CONTROLLER.format('this kernel lacks (CONFIG_CFS_BANDWIDTH)')
    return CONTROLLER.format(f'cannot be used in {parent} ({e.strerror})')


def _start_time(pid):
    """When a process has started, as text; None if there is no such process."""
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[19]
    except OSError:
        return None


def _remove_stale(version, parent):
    """Removes the groups of launchers that were killed together with their keepers."""
    for folder in parent.glob('torus-*-*-*'):
        _, pid, start, _ = folder.name.split('-', 3)
        if _start_time(pid) != start:
            cgroup.remove_all(version, folder, STALE_GRACE)
