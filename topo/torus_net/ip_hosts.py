"""--ip-routes: the nodes of a Mininet torus as separate hosts that reach each other by IP.

The scripts of `torusctl ip-routes` give each host an address of its own and shortest-path routes over the
cables. Launchers of MPI expect more: so each host has a process (its keeper) that holds a UTS namespace
with the host's name and a mount namespace with its own /etc/hosts, /sys and /dev/shm. The agent, a program
that takes the place of ssh, runs commands on the hosts.
"""

import os
import subprocess
from pathlib import Path

from . import interrupts
from .addresses import link_address
from .patience import Patience, wait
from .process import CHECKOUT, TorusError

DEVICE = 'torus0'  # as in client/cli/ip_routes/route_script.c
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
read -r pid <"{folder}/$host.pid" || exit 255
exec nsenter --net=/proc/"$pid"/ns/net --uts=/proc/"$pid"/ns/uts --mount=/proc/"$pid"/ns/mnt \\
    --wd=/proc/"$pid"/cwd sh -c "$*"
'''


def wait_ms(ranks):
    """How many ms an empty poll of MPI waits if there are fewer processors than ranks."""
    return 1 if ranks <= 32 else 10


class IpHosts:
    """The hosts of a running MininetTorus, until stop() or the end of this program.

    without     cables that are not used, as --without of `torusctl ip-routes`
    congestion  congestion control of TCP over the routes (default: the machine's)
    """

    def __init__(self, torus, without=None, congestion=None):
        self.torus = torus
        self.folder = torus.run.path / 'hosts'
        self.names = [node.host.name for node in torus.nodes]
        self.addresses = []
        self.keepers = []
        try:
            self.folder.mkdir()
            (self.folder / 'state').mkdir()
            self._write_scripts(without, congestion)
            self._start_keepers()
            self._run_scripts('up')
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
        return _enter(self.keepers[rank].pid)

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

    def undo(self):
        """Removes the addresses and routes. TorusError if a host refuses."""
        self._run_scripts('down')

    def stop(self):
        """Ends the keepers; the addresses and routes end with the network."""
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

    def _write_scripts(self, without, congestion):
        geometry = self.torus.geometry
        lines = []
        for node, name in zip(self.torus.nodes, self.names):
            lines += [f'[{name}]', f'rank = {node.rank}']
            for port in geometry.ports(node.rank):
                address = link_address(geometry.link(node.rank, port), port)
                lines.append(f'{port.name} = {node.interface(port.name)} {address}')
        (self.folder / 'hosts.ini').write_text('\n'.join(lines) + '\n')
        command = ['ip-routes', '--dims', str(geometry), '--hosts', self.folder / 'hosts.ini',
                   '--to', self.folder, '--state', self.folder / 'state']
        command += ['--without', without] if without else []
        command += ['--congestion', congestion] if congestion else []
        done = self.torus.ctl(0, *command)
        if done.returncode:
            raise TorusError(f'torusctl ip-routes: {done.stderr.strip()}')
        names = (self.folder / 'hosts').read_text()
        self.addresses = [line.split()[0] for line in names.splitlines()]
        (self.folder / 'hosts').write_text('127.0.0.1 localhost\n' + names)

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

    def _run_scripts(self, action):
        """Runs the scripts on all hosts at once."""
        with interrupts.held():
            running = [subprocess.Popen(
                [*self.enter(rank), 'sh', str(self.folder / f'{name}.sh'), action], text=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                start_new_session=True) for rank, name in enumerate(self.names)]
            said = [(process.communicate()[0], process.returncode) for process in running]
        for text, code in said:
            if code or text:
                raise TorusError(text.strip() or f'exit status {code} of a script of routes')

    def _write_agent(self):
        agent = self.folder / 'agent'
        agent.write_text(AGENT.format(folder=self.folder))
        os.chmod(agent, 0o755)
        return agent

    def _write_host_files(self):
        """Each library's own way to say that a host runs one rank."""
        (self.folder / 'mpich').write_text(''.join(f'{name}:1\n' for name in self.names))
        (self.folder / 'openmpi').write_text(''.join(f'{name} slots=1\n' for name in self.names))

    def _link(self, name, target):
        (self.torus.run.path / name).symlink_to(target)


def _enter(pid):
    namespaces = f'/proc/{pid}/ns'
    return ['nsenter', f'--net={namespaces}/net', f'--uts={namespaces}/uts',
            f'--mount={namespaces}/mnt', f'--wd=/proc/{pid}/cwd']
