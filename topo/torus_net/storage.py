"""Which folders outlive a power failure."""

import os

VOLATILE = {'tmpfs', 'ramfs'}


def volatile_devices(mountinfo):
    """The device numbers of the file systems in memory, from the text of /proc/self/mountinfo."""
    found = set()
    for line in mountinfo.splitlines():
        mount, _, rest = line.partition(' - ')  # id, parent, major:minor, ... - type, source, options
        if rest.split(' ')[0] in VOLATILE:
            major, _, minor = mount.split(' ')[2].partition(':')
            found.add(os.makedev(int(major), int(minor)))
    return found


def is_volatile(folder):
    """Whether a power failure loses what is in an existing folder."""
    with open('/proc/self/mountinfo', errors='surrogateescape') as mountinfo:
        return os.stat(folder).st_dev in volatile_devices(mountinfo.read())
