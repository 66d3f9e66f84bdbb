"""Whether Mininet can be used here. This is a module of its own because Mininet may not be installed."""

import os
import shutil
import subprocess


def mininet_obstacle():
    """Why Mininet cannot be used here, as text, or None if it can."""
    if os.geteuid() != 0:
        return 'Mininet needs root (sudo)'
    try:
        from . import mininet_api  # noqa: F401 (to see whether it can be imported)
    except ImportError as e:
        return str(e)
    for program in 'mnexec', 'ifconfig', 'ip', 'tc':
        if not shutil.which(program):
            return f'{program} is missing'
    # Containers may not be allowed to create namespaces, and kernels may lack these links.
    trial = ('ip link add name veth0 type veth peer name veth1 && ip link set veth0 up && '
             'tc qdisc add dev veth0 root handle 5:0 htb default 1')
    result = subprocess.run(['mnexec', '-n', 'sh', '-c', trial], capture_output=True, text=True)
    if result.returncode:
        return f'cannot create rate-limited links in a network namespace: {result.stderr.strip()}'
    return None
