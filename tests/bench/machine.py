"""A description of the machine, and how busy its processors are."""

import os
import platform
import resource
import subprocess
import time
from pathlib import Path

TICK = 1 / os.sysconf('SC_CLK_TCK')


class Times:
    """CPU-seconds of the whole machine since it was started."""

    def __init__(self):
        with open('/proc/stat') as lines:
            ticks = list(map(int, lines.readline().split()[1:9]))
        self.when = time.monotonic()
        self.idle = (ticks[3] + ticks[4]) * TICK
        self.stolen = ticks[7] * TICK
        self.busy = (sum(ticks[:3]) + ticks[5] + ticks[6]) * TICK


class Usage:
    """The use of the processors between two moments."""

    def __init__(self, before, after):
        self.busy = after.busy - before.busy
        self.seconds = after.when - before.when
        idle = after.idle - before.idle
        self.stolen = after.stolen - before.stolen  # by other machines on the same processors
        self.available = self.busy + idle + self.stolen
        self.share = self.busy / self.available if self.available > 0 else 0.0


def process_seconds(pid):
    """CPU-seconds that all threads of a process have used, or 0 if it has exited."""
    try:
        total = 0
        for thread in os.listdir(f'/proc/{pid}/task'):
            with open(f'/proc/{pid}/task/{thread}/schedstat') as file:
                total += int(file.read().split()[0])
        return total * 1e-9
    except (FileNotFoundError, ProcessLookupError):
        pass
    try:
        with open(f'/proc/{pid}/stat') as file:
            fields = file.read().rpartition(')')[2].split()
        return (int(fields[11]) + int(fields[12])) * TICK
    except (FileNotFoundError, ProcessLookupError):
        return 0.0


def daemon_seconds(torus):
    """CPU-seconds that all daemons of a torus have used."""
    return sum(process_seconds(node.pid) for node in torus.nodes)


def children_seconds():
    """CPU-seconds of the programs that this process has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _first_line(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = [line for line in (done.stdout or done.stderr).splitlines() if line.strip()]
    return lines[0].strip() if lines and done.returncode == 0 else None


def _field(path, name):
    try:
        for line in Path(path).read_text().splitlines():
            key, colon, value = line.partition(':')
            if colon and key.strip() == name:
                return value.strip()
    except OSError:
        pass
    return None


def _package(name):
    return _first_line('dpkg-query', '-W', '-f', '${Version}', name)


def describe():
    """A description of the machine for the results."""
    memory = _field('/proc/meminfo', 'MemTotal')
    congestion = Path('/proc/sys/net/ipv4/tcp_congestion_control')
    return {
        'processor': _field('/proc/cpuinfo', 'model name') or platform.machine(),
        'processors': len(os.sched_getaffinity(0)),
        'memory_gib': round(int(memory.split()[0]) / 2 ** 20, 1) if memory else None,
        'kernel': '.'.join(platform.release().split('.')[:2]),
        'system': _field_of_release('PRETTY_NAME'),
        'default_congestion_control': congestion.read_text().strip(),
        'mpich': _package('mpich'), 'openmpi': _package('openmpi-bin'),
        'iperf3': _package('iperf3'), 'mininet': _package('mininet'),
        **{name: _package(name) for name in ('frr', 'bird2', 'babeld')},
    }


def _field_of_release(name):
    try:
        return platform.freedesktop_os_release().get(name)
    except OSError:
        return None


def commit():
    return _first_line('git', '-C', str(Path(__file__).parent), 'describe', '--always', '--dirty') or \
        'of an unknown version'


def available_memory():
    """Bytes."""
    said = _field('/proc/meminfo', 'MemAvailable')
    return int(said.split()[0]) * 1024 if said else 0


def load():
    return os.getloadavg()[0]
