"""The control groups of --cpu: their quotas, a group for each thread, and their removal.

Each torus has a folder of groups, in which each host has a group. With several cores, each thread of a host has a
group of its own in that of the host, because a thread cannot use more than one core. A new thread starts in the
group of the thread that made it, and shares its quota until the keeper has moved it.

The keeper is this file as a program: it moves threads, and removes the groups when its standard input ends, which
also happens when the launcher is killed. It needs nothing but Python's own modules, so that it starts quickly.
"""

import math
import os
import select
import signal
import sys
import time
from pathlib import Path

QUOTA_LEAST = 1000   # microseconds; the kernel takes no less
PERIOD = 10000       # microseconds; a longer one would stop a host for longer at a time
PAUSE = 0.1          # seconds between two looks for new threads
GRACE = 15.0         # seconds that processes of hosts have to end, once the launcher has ended


def quota_and_period(share):
    """In microseconds."""
    period = max(PERIOD, math.ceil(QUOTA_LEAST / share))
    return round(share * period), period


class Version1:
    """The controller `cpu` of cgroup v1."""

    threads = 'tasks'
    missing = 'cpu.cfs_quota_us'

    @staticmethod
    def enable(_group):
        """Lets the groups in this one have quotas."""

    @staticmethod
    def make_threaded(_group):
        """Lets a group have threads of a process whose other threads are elsewhere."""

    @staticmethod
    def set_quota(group, quota, period):
        write(group / 'cpu.cfs_period_us', period)
        write(group / 'cpu.cfs_quota_us', quota)

    @staticmethod
    def lift_quota(group):
        write(group / 'cpu.cfs_quota_us', -1)


class Version2:
    """The controller `cpu` of cgroup v2."""

    threads = 'cgroup.threads'
    missing = 'cpu.max'

    @staticmethod
    def enable(group):
        if 'cpu' not in (group / 'cgroup.subtree_control').read_text().split():
            write(group / 'cgroup.subtree_control', '+cpu')

    @staticmethod
    def make_threaded(group):
        write(group / 'cgroup.type', 'threaded')

    @staticmethod
    def set_quota(group, quota, period):
        write(group / 'cpu.max', f'{quota} {period}')

    @staticmethod
    def lift_quota(group):
        write(group / 'cpu.max', 'max')


VERSIONS = {'1': Version1, '2': Version2}


def write(path, value):
    """In one system call, on a file that exists: the kernel makes them with the group."""
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, str(value).encode())
    finally:
        os.close(file)


def groups_in(folder):
    """The groups in a group, which may be removed meanwhile."""
    try:
        return [Path(entry.path) for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def threads_of(version, group):
    try:
        return (group / version.threads).read_text().split()
    except OSError:
        return []


def spread_threads(version, host, quota, period):
    """Gives each thread of a host a group of its own, and removes groups without threads."""
    for group in (host, *groups_in(host)):
        threads = threads_of(version, group)
        if not threads and group != host:
            _remove(group)
        for thread in threads:
            if thread != group.name:
                _move_thread(version, thread, host / thread, quota, period)


def _move_thread(version, thread, group, quota, period):
    try:
        if not group.is_dir():
            group.mkdir()
            version.make_threaded(group)
            version.set_quota(group, quota, period)
        write(group / version.threads, thread)
    except OSError:
        _remove(group)  # the thread has ended


def _remove(group):
    try:
        group.rmdir()
    except OSError:
        pass  # it has threads again, or is gone


def lift(version, folder):
    """Ends the limits of all groups, so that processes end quickly."""
    for host in groups_in(folder):
        for group in (host, *groups_in(host)):
            try:
                version.lift_quota(group)
            except OSError:
                pass  # it is gone


def remove_all(version, folder, grace):
    """Removes the groups of a torus when their processes have ended. Kills those that have not after `grace`
    seconds."""
    begin = time.monotonic()
    lift(version, folder)
    while folder.is_dir() and time.monotonic() - begin < 2 * grace:
        groups = [group for host in groups_in(folder) for group in (*groups_in(host), host)]
        for group in (*groups, folder):
            _remove(group)
        if time.monotonic() - begin > grace:
            for thread in {thread for group in groups for thread in threads_of(version, group)}:
                try:
                    os.kill(int(thread), signal.SIGKILL)
                except OSError:
                    pass  # it has just ended
        time.sleep(0.02)


def keep(version, folder, quota, period, cores):
    """Returns when standard input has ended and the groups are removed."""
    while not select.select([0], [], [], PAUSE if cores > 1 else None)[0]:
        for host in groups_in(folder):
            spread_threads(version, host, quota, period)
    remove_all(version, folder, GRACE)


if __name__ == '__main__':
    keep(VERSIONS[sys.argv[1]], Path(sys.argv[2]), *map(int, sys.argv[3:6]))
