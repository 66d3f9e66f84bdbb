"""The systems of MPI libraries."""

import functools
import os
import subprocess
import time

from torus_net import TorusError, same_layout
from torus_net.emulated import host_name
from torus_net.ip_hosts import wait_ms

from . import network, programs
from .jobs import Job
from .systems import MPICH, OPENMPI, PATIENT, Failed, Sample, System


class Library:
    """How an MPI library is started and told which algorithm to use."""

    def __init__(self, family, key, compiler, variables, algorithms):
        self.family = family
        self.key = key
        self.compiler = compiler
        self.variables = variables    # operation: the variable that selects its algorithm
        self.algorithms = algorithms  # operation: name of an algorithm: value of the variable

    def selection(self, operation, algorithm):
        return self.variables[operation], self.algorithms[operation][algorithm]

    def command(self, agent, hosts, environment, program):
        raise NotImplementedError

    def setting(self, environment):
        """Options of mpiexec with which ranks get these variables."""
        raise NotImplementedError


class Mpich(Library):
    def __init__(self):
        names = {'alltoall': 'ALLTOALL', 'allgather': 'ALLGATHER', 'allreduce': 'ALLREDUCE',
                 'broadcast': 'BCAST', 'barrier': 'BARRIER'}
        super().__init__(
            MPICH, 'mpich', 'mpicc.mpich',
            {operation: f'MPIR_CVAR_{name}_INTRA_ALGORITHM' for operation, name in names.items()},
            {'alltoall': {'default': 0, 'brucks': 1, 'pairwise': 3, 'scattered': 5},
             'allgather': {'default': 0, 'brucks': 1, 'recursive_doubling': 3, 'ring': 4},
             'allreduce': {'default': 0, 'recursive_doubling': 3, 'reduce_scatter_allgather': 4},
             'broadcast': {'default': 0, 'binomial': 1, 'scatter_recursive_doubling_allgather': 4,
                           'scatter_ring_allgather': 5},
             'barrier': {'default': 0}})

    def command(self, agent, hosts, environment, program):
        # No shared memory, although the hosts are one machine.
        environment = {'UCX_TLS': 'tcp,self', 'UCX_NET_DEVICES': network.DEVICE,
                       'MPIR_CVAR_NOLOCAL': '1', **environment}
        command = ['mpiexec.mpich', '-launcher', 'rsh', '-launcher-exec', str(agent),
                   '-iface', network.DEVICE, '-hosts', ','.join(hosts), '-n', str(len(hosts)),
                   '-ppn', '1', '-bind-to', 'none']
        return command + self.setting(environment) + program

    def setting(self, environment):
        return [word for name, value in environment.items() for word in ('-genv', name, value)]


class OpenMpi(Library):
    def __init__(self):
        names = {'alltoall': 'alltoall', 'allgather': 'allgather', 'allreduce': 'allreduce',
                 'broadcast': 'bcast', 'barrier': 'barrier'}
        super().__init__(
            OPENMPI, 'openmpi', 'mpicc.openmpi',
            {operation: f'coll_tuned_{name}_algorithm' for operation, name in names.items()},
            {'alltoall': {'default': 0, 'linear': 1, 'pairwise': 2, 'modified_bruck': 3,
                          'linear_sync': 4},
             'allgather': {'default': 0, 'linear': 1, 'bruck': 2, 'recursive_doubling': 3, 'ring': 4,
                           'neighbor': 5},
             'allreduce': {'default': 0, 'recursive_doubling': 3, 'ring': 4, 'segmented_ring': 5,
                           'rabenseifner': 6},
             'broadcast': {'default': 0, 'pipeline': 3, 'split_binary_tree': 4, 'binomial': 6,
                           'scatter_allgather': 8, 'scatter_allgather_ring': 9},
             'barrier': {'default': 0, 'recursive_doubling': 3, 'bruck': 4, 'tree': 6}})

    def command(self, agent, hosts, environment, program):
        settings = {'plm': 'rsh', 'plm_rsh_agent': str(agent), 'plm_rsh_no_tree_spawn': '1',
                    'oob_tcp_if_include': network.DEVICE, 'btl_tcp_if_include': network.DEVICE,
                    'pml': 'ob1', 'btl': 'tcp,self',  # no shared memory
                    # Allows selecting an algorithm later; until then the fixed rules apply.
                    'coll_tuned_use_dynamic_rules': '1',
                    'mpi_yield_when_idle': '1' if environment else '0',
                    'hwloc_base_binding_policy': 'none'}
        command = ['mpiexec.openmpi', '-np', str(len(hosts)), '--map-by', 'node',
                   '-H', ','.join(f'{host}:1' for host in hosts)]
        for name, value in settings.items():
            command += ['--mca', name, value]
        return command + self.setting(environment) + program

    def setting(self, environment):
        return [word for name, value in environment.items() for word in ('-x', f'{name}={value}')]


LIBRARIES = (Mpich(), OpenMpi())


class MpiJob(Job):
    """The program with an MPI library, started by its launcher. It has its own PID namespace, so that
    everything that the launcher starts ends with it."""

    def __init__(self, net, library, program, agent, environment, folder):
        super().__init__(net, program, folder)
        self.library = library
        self.agent = agent
        self.environment = environment
        self.process = None

    def launch(self, control, output):
        hosts = [host_name(rank) for rank in range(self.net.geometry.nodes)]
        command = self.library.command(self.agent, hosts, self.environment,
                                       [str(self.program), '--control', str(control)])
        enter = ['setpriv', '--pdeathsig', 'KILL', *same_layout(),
                 *self.net.torus.ip_hosts.enter(0), 'unshare', '--pid', '--fork', '--kill-child=KILL',
                 'sh', '-c', 'cd / && "$@"; exit $?', 'mpi']
        environment = {**os.environ, 'TMPDIR': str(self.folder), 'SHELL': '/bin/sh',
                       'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}
        self.process = subprocess.Popen(enter + command, stdin=subprocess.DEVNULL, stdout=output,
                                        stderr=output, env=environment, start_new_session=True)

    def must_run(self):
        if self.process is None or self.process.poll() is not None:
            code = None if self.process is None else self.process.returncode
            raise Failed(f'it exited with status {code}' + self.said())

    def check(self, hello):
        if hello['host'] != host_name(hello['rank']):
            raise Failed(f'rank {hello["rank"]} is on {hello["host"]}')

    def kill(self):
        if self.process is not None:
            self.process.kill()  # this kills everything in its PID namespace
            self.process.wait()
            self.process = None
            self._wait_for_ranks()

    def _wait_for_ranks(self):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if not any(os.path.exists(f'/proc/{pid}/ns/net') for pid in self.pids):
                return
            time.sleep(0.01)


def makers(net, folder, options, result, failure, variants=(PATIENT,)):
    """(library, variant, make_job) for each library that can be built, once the hosts of `net` are prepared. `folder` is for
    programs. Writes into `result` how long a patient library waits."""
    result['wait_ms'] = wait = options.wait_ms or wait_ms(net.geometry.nodes)
    try:
        agent = net.prepare_hosts()
        patient = {'LD_PRELOAD': str(programs.patient_poll(folder)), 'PATIENT_POLL_MS': str(wait)}
    except (TorusError, programs.Unavailable) as e:
        failure(f'MPI cannot be measured: {e}')
        return
    for library in LIBRARIES:
        try:
            program = programs.with_mpi(folder, library.key, library.compiler)
        except programs.Unavailable as e:
            failure(f'{library.family} cannot be measured: {e}')
            continue
        for variant in variants:
            place = net.folder / (library.key + (f'-{variant}' if variant else ''))
            environment = patient if variant == PATIENT else {}
            yield library, variant, functools.partial(MpiJob, net, library, program, agent, environment, place)


class Mpi(System):
    def __init__(self, starter, library, algorithm, variant):
        super().__init__(starter, library.family, algorithm, variant)
        self.starter = starter
        self.library = library

    def measure(self, size, warmup, repeats, timeout):
        job = self.starter.running()
        before = job.process_seconds()
        try:
            seconds = job.run('alltoall', size, warmup, repeats, timeout,
                              selection=self.library.selection('alltoall', self.algorithm))
        except Failed as e:
            self.starter.failed(e)
            raise
        return Sample(seconds, job.process_seconds() - before)

    def warm_up(self, size, timeout):
        try:
            return self.starter.running().run('alltoall', size, 0, 1, timeout)[0]
        except Failed as e:
            self.starter.failed(e)
            raise Failed(f'warming up: {e}') from e
