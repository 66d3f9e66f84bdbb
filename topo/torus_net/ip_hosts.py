"""--ip-routes: the nodes of a Mininet torus as separate hosts that reach each other by IP.

torus-routed gives each host an address of its own, and keeps routes to all others over the links that are up.
Launchers of MPI expect more: so each host has a process (its keeper) that holds a UTS namespace
with the host's name and a mount namespace with its own /etc/hosts, /sys and /dev/shm. The agent, a program
that takes the place of ssh, runs commands on the hosts.
"""

import ipaddress
import json
import os
import signal
import subprocess
import time
from pathlib import Path

from . import interrupts
from .patience import Patience, wait
from .process import CHECKOUT, TorusError, find_program, tail

DEVICE = 'torus0'  # the default of torus-routed
FIRST_ADDRESS = ipaddress.ip_address('10.128.0.1')
READY_SECONDS = 20.0
PRELOAD = 'libtorus-mpi-hosts.so'

# $1 hosts file, $2 host name. `cat` ends with the IpHosts.
KEEPER = '''set -e
hostname "$2"
mount --bind "$1" /etc/hosts
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /dev/shm
echo ready
exec cat
'''

AGENT = '''#!/bin/sh
# Takes the place of ssh: AGENT [-OPTION...] HOST COMMAND...
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1
shift
{join}read -r pid <"{folder}/$host.pid" || exit 255
exec nsenter --net=/proc/"$pid"/ns/net --uts=/proc/"$pid"/ns/uts --mount=/proc/"$pid"/ns/mnt \\
    --wd=/proc/"$pid"/cwd sh -c "$*"
'''

# For the agent: gives it the share of a processor of its host. The hosts see no cgroups.
JOIN = '''nsenter --mount=/proc/{launcher}/ns/mnt sh -c 'echo "$0" >"$1"' $$ "{folder}/$host.processes" || exit 255
'''


def wait_ms(ranks):
    """How many ms an empty poll of MPI waits if there are fewer processors than ranks."""
    return 1 if ranks <= 32 else 10


class IpHosts:
    """The hosts of a running MininetTorus, until stop() or the end of this program.

    without     links that are not used, as --without of torus-routed
    congestion  congestion control of TCP over the routes (default: the machine's)
    prefix6     hosts also have IPv6 addresses in this network, as fd12:3456:789a::; the interfaces need fe80::a at the
                ends that dial, and fe80::b at the others
    """

    def __init__(self, torus, without=None, congestion=None, prefix6=None):
        self.torus = torus
        self.folder = torus.run.path / 'hosts'
        self.names = [node.host.name for node in torus.nodes]
        self.addresses = [str(FIRST_ADDRESS + rank) for rank in range(len(self.names))]
        self.keepers = []
        self.routed = []
        try:
            self.folder.mkdir()
            self._write_names(prefix6)
            self._start_keepers()
            self._start_routed(without, congestion)
            self._await_routes()
        except BaseException:
            self.stop()
            raise
        self.agent = self._write_agent()
        self._write_host_files()
        for node, name in zip(torus.nodes, self.names):
            for suffix in '', '.programs':
                self._link(f'{name}.sock{suffix}', f'{node.socket}{suffix}')

    def enter(self, rank):
        """A command prefix that runs a command on this host."""
        shares = self.torus.shares
        return [*(shares.enter(rank) if shares else ()), *_enter(self.keepers[rank].pid)]

    def environment(self):
        """Variables for mpiexec of MPICH and of Open MPI on one of the hosts, besides Torus.environment()."""
        ranks, run = len(self.names), self.torus.run.path
        busy = ranks > len(os.sched_getaffinity(0))  # fewer processors than ranks
        mpich = {'HYDRA_LAUNCHER': 'rsh', 'HYDRA_LAUNCHER_EXEC': self.agent,
                 'HYDRA_HOST_FILE': self.folder / 'mpich', 'HYDRA_IFACE': DEVICE,
                 'UCX_NET_DEVICES': DEVICE, 'UCX_TLS': 'tcp,self'}
        openmpi = {'plm': 'rsh', 'plm_rsh_agent': self.agent, 'plm_rsh_no_tree_spawn': 1,
                   'orte_default_hostfile': self.folder / 'openmpi', 'oob_tcp_if_include': DEVICE,
                   'btl_tcp_if_include': DEVICE, 'pml': 'ob1', 'btl': 'tcp,vader,self',
                   'mpi_yield_when_idle': int(busy),
                   'rmaps_base_oversubscribe': 1, 'hwloc_base_binding_policy': 'none'}
        values = {**self._preload(), 'PATIENT_POLL_MS': wait_ms(ranks) if busy else 0,
                  'TORUS_SOCKET': run / '%h.sock', 'TORUS_AGENT': self.agent,
                  'TORUS_SSH': self.agent, 'TORUS_HOSTS': self.folder / 'names',
                  'TORUS_ROUTES': self.routes_socket(0),
                  'OMPI_ALLOW_RUN_AS_ROOT': 1, 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': 1, **mpich,
                  **{f'OMPI_MCA_{name}': value for name, value in openmpi.items()}}
        return {name: str(value) for name, value in values.items()}

    def _preload(self):
        """The library that MPI needs here (see topo/CMakeLists.txt), in addition to other preloads."""
        builds = [build / 'topo' for build in (Path(self.torus.torusctl).parent, CHECKOUT / 'build')]
        for library in [folder / PRELOAD for folder in (*builds, CHECKOUT)]:  # last: where it is installed
            if library.exists():
                others = [os.environ['LD_PRELOAD']] if os.environ.get('LD_PRELOAD') else []
                return {'LD_PRELOAD': ':'.join([str(library), *others])}
        self.torus.say(f'{PRELOAD} has not been built: MPI programs may be slow, and hang at their end')
        return {}

    def routes_socket(self, rank):
        """Where `torusctl routes --from` asks the torus-routed of this host."""
        return self._state(rank) / 'routes.sock'

    def routes(self, rank):
        """What `torusctl routes` reports on this host; None if torus-routed does not answer."""
        done = self.torus.ctl(rank, '--json', 'routes', '--from', self.routes_socket(rank))
        return json.loads(done.stdout) if done.returncode == 0 else None

    def start_routed(self, rank):
        """Starts torus-routed on this host, once more if it has been killed."""
        with interrupts.held(), open(self._log(rank), 'ab') as log:
            process = subprocess.Popen(self.commands[rank], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       start_new_session=True)
        self.routed[rank:rank + 1] = [process]

    def undo(self):
        """Ends torus-routed on all hosts: it removes the addresses and routes. TorusError if one fails."""
        codes = self._end_routed()
        for rank, code in enumerate(codes):
            if code:
                raise TorusError(f'torus-routed of {self.names[rank]} ended with status {code}: '
                                 f'{tail(self._log(rank).read_text())}')

    def keep_routes(self):
        """Ends torus-routed on all hosts without its knowledge: addresses and routes stay as they are."""
        with interrupts.held():
            for process in self.routed:
                process.kill()
                process.wait()
            self.routed = []

    def stop(self):
        """Ends the keepers, and the routes."""
        self._end_routed()
        with interrupts.held():
            for keeper in self.keepers:
                keeper.stdin.close()
            for keeper in self.keepers:
                try:
                    wait(keeper, Patience(5))
                except subprocess.TimeoutExpired:
                    keeper.kill()
                    keeper.wait()
                keeper.stdout.close()
                keeper.stderr.close()
            self.keepers = []

    def _state(self, rank):
        return self.folder / f'{self.names[rank]}.routes'

    def _log(self, rank):
        return self.torus.run.logs / f'{rank}.routes.log'

    def _write_names(self, prefix6):
        lines = [f'{address} {name}\n' for address, name in zip(self.addresses, self.names)]
        both = [f'{address}{f",{ipaddress.ip_address(prefix6) + rank + 1}" if prefix6 else ""} {self.names[rank]}\n'
                for rank, address in enumerate(self.addresses)]
        (self.folder / 'addresses').write_text(''.join(both))
        (self.folder / 'hosts').write_text('127.0.0.1 localhost\n' + ''.join(lines))

    def _start_routed(self, without, congestion):
        more = ['--without', without] if without else []
        more += ['--congestion', congestion] if congestion else []
        program = find_program('torus-routed', Path(self.torus.torusd).parent)
        self.commands = [
            [*node.host.enter(), 'setpriv', '--pdeathsig', 'TERM', program, '--socket', str(node.socket),
             '--addresses', str(self.folder / 'addresses'), '--state', str(self._state(rank)), *more]
            for rank, node in enumerate(self.torus.nodes)]
        for rank in range(len(self.names)):
            self.start_routed(rank)

    def _await_routes(self):
        """Waits until all hosts have their routes."""
        patience = Patience(READY_SECONDS)
        for rank, name in enumerate(self.names):
            while True:
                report = self.routes(rank)
                if report and report.get('settled') and all(
                        route['in_kernel'] and route['state'] in ('routed', 'unreachable')
                        for route in report['routes']):
                    break
                log = self._log(rank).read_text()
                if ' no routes: ' in log or self.routed[rank].poll() is not None or patience.over:
                    raise TorusError(f'torus-routed of {name} has no routes: {tail(log)}')
                time.sleep(0.05)

    def _end_routed(self):
        """Returns the exit statuses."""
        with interrupts.held():
            for process in self.routed:
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
            codes = []
            for process in self.routed:
                try:
                    codes.append(wait(process, Patience(10)))
                except subprocess.TimeoutExpired:
                    process.kill()
                    codes.append(process.wait())
            self.routed = []
        return codes

    def _start_keepers(self):
        for node, name in zip(self.torus.nodes, self.names):
            command = ['setpriv', '--pdeathsig', 'KILL', *node.host.enter(), 'unshare', '--uts',
                       '--mount', '--propagation', 'private', 'sh', '-c', KEEPER, 'keeper',
                       str(self.folder / 'hosts'), name]
            with interrupts.held():
                self.keepers.append(subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, text=True, start_new_session=True))
        for name, keeper in zip(self.names, self.keepers):
            if keeper.stdout.readline() != 'ready\n':
                raise TorusError(f'cannot prepare {name}: {keeper.stderr.read().strip()}')
            (self.folder / f'{name}.pid').write_text(f'{keeper.pid}\n')
        if self.torus.shares:
            for rank, name in enumerate(self.names):
                (self.folder / f'{name}.processes').symlink_to(self.torus.shares.processes(rank))

    def _write_agent(self):
        agent = self.folder / 'agent'
        join = JOIN.format(launcher=os.getpid(), folder=self.folder) if self.torus.shares else ''
        agent.write_text(AGENT.format(folder=self.folder, join=join))
        os.chmod(agent, 0o755)
        return agent

    def _write_host_files(self):
        """The names, and each library's own way to say that a host runs one rank."""
        (self.folder / 'names').write_text(''.join(f'{name}\n' for name in self.names))
        (self.folder / 'mpich').write_text(''.join(f'{name}:1\n' for name in self.names))
        (self.folder / 'openmpi').write_text(''.join(f'{name} slots=1\n' for name in self.names))

    def _link(self, name, target):
        (self.torus.run.path / name).symlink_to(target)


def _enter(pid):
    namespaces = f'/proc/{pid}/ns'
    return ['nsenter', f'--net={namespaces}/net', f'--uts={namespaces}/uts',
            f'--mount={namespaces}/mnt', f'--wd=/proc/{pid}/cwd']
