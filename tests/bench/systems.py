"""What is measured. A system is one algorithm of torusd or of an MPI library; the family says whose.

    seconds = system.warm_up(size, timeout)
    sample = system.measure(size, warmup, repeats, timeout)
"""

import json
import os
import selectors
import shlex
import socket
import subprocess
import time

from torus_net import TorusError, interrupts, same_layout
from torus_net.emulated import host_name
from torus_net.ip_hosts import wait_ms  # noqa: F401 (for those who measure)

from . import machine, network

OURS, LIBTORUS, MPICH, OPENMPI = 'torusd', 'libtorus', 'MPICH', 'Open MPI'
PRELOADED = {MPICH: f'{MPICH}, preload', OPENMPI: f'{OPENMPI}, preload'}  # with our operations
REGISTERED, ORDINARY = 'registered', 'ordinary'  # memory of a program that uses libtorus


class Failed(Exception):
    """A measurement failed; the message says why."""


class Sample:
    """The times of one call's repeats, and the CPU-seconds of the system's own processes."""

    def __init__(self, seconds, process_seconds=None, detail=None):
        self.seconds = seconds
        self.process_seconds = process_seconds
        self.detail = detail or {}


class System:
    repeats_cheaply = True  # many repeats in one call take little more than their own time

    def __init__(self, connections, family, algorithm, variant=''):
        self.connections = connections  # the same object for all systems that share them
        self.family = family
        self.algorithm = algorithm
        self.variant = variant  # how an MPI library waits

    @property
    def name(self):
        return f'{self.family} {self.algorithm}' + (f' ({self.variant})' if self.variant else '')


# --- ours ---

class Ours(System):
    def __init__(self, torus, algorithm, repeats_itself):
        super().__init__(torus, OURS, algorithm)
        self.torus = torus
        self.repeats_itself = self.repeats_cheaply = repeats_itself

    def measure(self, size, warmup, repeats, timeout):
        before = self._process_seconds()
        try:
            if self.repeats_itself:
                seconds, detail = self._session(size, warmup + repeats, timeout)
            else:
                seconds, detail = self._calls(size, warmup + repeats, timeout)
        except subprocess.TimeoutExpired:
            raise Failed(f'not finished within {timeout:.0f} s') from None
        except TorusError as e:
            raise Failed(str(e)) from e
        if len(seconds) != warmup + repeats:
            raise Failed(f'{len(seconds)} times were reported instead of {warmup + repeats}')
        return Sample(seconds[warmup:], self._process_seconds() - before, detail)

    def warm_up(self, size, timeout):
        try:
            return self.torus.exchange('stream', size, timeout=timeout)['seconds']
        except (TorusError, subprocess.TimeoutExpired) as e:
            raise Failed(f'warming up: {e}') from e

    def _process_seconds(self):
        return sum(machine.process_seconds(node.pid) for node in self.torus.nodes)

    def _exchange(self, size, timeout, *options):
        name = None if self.algorithm == 'default' else self.algorithm
        result = self.torus.exchange(name, size, timeout=timeout,
                                     options=['--timeout', int(timeout) + 1, *options])
        if result['verified'] in (False, 'nothing'):  # older builds say true or false
            raise Failed('blocks arrived damaged')
        return result

    def _session(self, size, count, timeout):
        result = self._exchange(size, timeout, '--repeat', count)
        return result.get('seconds_each', [result['seconds']]), messages(result)

    def _calls(self, size, count, timeout):
        seconds = []
        for _ in range(count):
            result = self._exchange(size, timeout)
            seconds.append(result['seconds'])
        return seconds, messages(result)


def messages(result):
    """What a node sent, on average, as the daemons count it."""
    ports = [port for node in result.get('per_node', ()) for port in node['ports'].values()]
    if not ports:
        return {}
    return {'chosen': result['algorithm'],
            'messages': sum(port['combined_messages'] for port in ports) / result['nodes'],
            'tx_bytes': sum(port['tx_bytes'] for port in ports) / result['nodes']}


def our_systems(torus, wanted, complain):
    """All algorithms that support this torus, or those of `wanted` that do."""
    rows = torus.json(0, 'algorithms', '--dims', str(torus.geometry))['algorithms']
    taken = [row['algorithm'] for row in rows
             if row['operation'] == 'exchange' and row['accepts']]
    if _takes_auto(torus):
        rows.append({'algorithm': 'auto'})
        taken.append('auto')
    if wanted is not None:
        known = {row['algorithm'] for row in rows} | {'default'}
        for name in wanted:
            if name not in known:
                complain(f'torusctl does not know the algorithm "{name}"')
        taken = [name for name in wanted if name in taken or name == 'default']
    repeats_itself = '--repeat' in torus.ctl(0, 'exchange', '--help').stdout
    return [Ours(torus, name, repeats_itself) for name in dict.fromkeys(taken)]


def _takes_auto(torus):
    try:
        torus.exchange('auto', 1)
    except TorusError:
        return False
    return True


def explainer(torus):
    """A function (algorithm, size) that returns the seconds that torusctl predicts, or None."""
    if '--explain' not in torus.ctl(0, 'exchange', '--help').stdout:
        return lambda algorithm, size: None

    def predicted(algorithm, size):
        try:
            said = torus.json(0, 'exchange', '--explain', '--dry-run', '--block-size', size)
        except TorusError:
            return None
        found = [row for row in said['candidates'] if algorithm in ('auto', row['algorithm'])]
        return found[0]['seconds'] if found else None
    return predicted


SIMULATED = ('stream', 'at2', 'dim-s2', 'pair-s4')  # if they support the torus
SIMULATED_FROM, SIMULATED_TO = 4096, 262144
BURST = 15 << 10  # bytes that Mininet's links pass at once


def not_simulated(_algorithm, _size):
    return None


def simulator(program, dims, mbit):
    """A function (algorithm, size) that returns the simulated seconds, on links with the limiter of
    this rate and with infinitely fast processors, or None if it is not simulated."""
    def simulated(algorithm, size):
        if (algorithm not in SIMULATED or not SIMULATED_FROM <= size <= SIMULATED_TO
                or not program.exists()):
            return None
        command = [program, dims, algorithm, str(size), str(mbit * 1e6 / 8), '20', str(BURST)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        return json.loads(done.stdout)['seconds'] if done.returncode == 0 else None
    return simulated


# --- programs on all nodes ---

class Job:
    """collective.c with a library, which runs on all nodes and makes measurements on request."""

    def __init__(self, net, program, folder):
        self.net = net
        self.program = program
        self.folder = folder
        self.connections = {}
        self.pids = []

    # What a kind of job has to do: start the program everywhere with this argument; raise Failed if it has
    # ended; check what a rank says about itself; end what is left of it.
    def launch(self, control):
        raise NotImplementedError

    def must_run(self):
        raise NotImplementedError

    def check(self, hello):
        pass

    def kill(self):
        raise NotImplementedError

    def start(self, timeout):
        nodes = self.net.geometry.nodes
        self.folder.mkdir(exist_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path = self.folder / 'control'
        try:
            path.unlink(missing_ok=True)
            listener.bind(str(path))
            listener.listen(nodes)
            with interrupts.held(), open(self.folder / 'output', 'wb') as output:
                self.launch(path, output)
            self._gather(listener, nodes, time.monotonic() + timeout)
        except BaseException:
            self.stop()
            raise
        finally:
            listener.close()

    def _gather(self, listener, nodes, deadline):
        """Waits until every rank has identified itself."""
        listener.settimeout(0.2)
        while len(self.connections) < nodes:
            self.must_run()
            if time.monotonic() > deadline:
                raise Failed(f'{len(self.connections)} of {nodes} ranks came up in time'
                             + self.said())
            try:
                connection = listener.accept()[0]
            except TimeoutError:
                continue
            connection.settimeout(10)
            lines = connection.makefile('r')
            hello = json.loads(lines.readline())
            if hello['ranks'] != nodes:
                raise Failed(f'rank {hello["rank"]} is one of {hello["ranks"]}, not of {nodes}')
            self.check(hello)
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            self.pids.append(int.from_bytes(credentials[:4], 'little'))
            self.connections[hello['rank']] = connection, lines

    def said(self):
        """The end of the output, to be appended to a message."""
        try:
            text = (self.folder / 'output').read_text(errors='replace').strip()
        except OSError:
            return ''
        return ': ' + ' | '.join(text.splitlines()[-4:])[-600:] if text else ''

    def run(self, operation, size, warmup, repeats, timeout, *, pause=0.0, batch=0, memory=ORDINARY,
            selection=()):
        """Makes a measurement; collective.c explains it. The selection is a variable and its value.
        Failed if there is no reply in time."""
        self.must_run()
        order = ('run', operation, size, warmup, repeats, round(pause * 1e6), batch, memory, *selection)
        try:
            for connection, _ in self.connections.values():
                connection.sendall((' '.join(map(str, order)) + '\n').encode())
            answer = self._answer(timeout)
        except OSError as e:
            raise Failed(f'{e}' + self.said()) from e
        if answer['wrong_blocks']:
            raise Failed(f'{answer["wrong_blocks"]} blocks were wrong')
        return answer['seconds']

    def _answer(self, timeout):
        connection, lines = self.connections[0]
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(connection, selectors.EVENT_READ)
            while not selector.select(0.5):
                self.must_run()
                if time.monotonic() > deadline:
                    raise Failed(f'not finished within {timeout:.0f} s' + self.said())
        line = lines.readline()
        if not line:
            raise Failed('it exited during the measurement' + self.said())
        return json.loads(line)

    def process_seconds(self):
        return sum(map(machine.process_seconds, self.pids))

    def stop(self):
        with interrupts.held():
            for connection, lines in self.connections.values():
                lines.close()
                connection.close()
            self.connections = {}
            self.kill()
            self.pids = []


class GroupJob(Job):
    """The program with libtorus, started on every node."""

    def __init__(self, net, program, folder):
        super().__init__(net, program, folder)
        self.processes = []

    def launch(self, control, output):
        command = f'exec {shlex.quote(str(self.program))} --control {shlex.quote(str(control))}'
        for node in self.net.torus.nodes:
            self.processes.append(node.start_program(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True))

    def must_run(self):
        for rank, process in enumerate(self.processes):
            if process.poll() is not None:
                raise Failed(f'on node {rank} it exited with status {process.returncode}' + self.said())
        if not self.processes:
            raise Failed('it has been stopped' + self.said())

    def kill(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        self.processes = []


# --- MPI ---

class Library:
    """How an MPI library is started and told which algorithm to use."""

    def __init__(self, family, key, compiler, variables, algorithms):
        self.family = family
        self.key = key
        self.compiler = compiler
        self.variables = variables    # operation: name of the variable that selects its algorithm
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
                    # Needed to select an algorithm later; until then the fixed rules apply.
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
PATIENT, SPINNING = '', 'spinning'


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


class Starter:
    """Keeps a job running for the systems of one library. Restarts it after failures, twice."""

    STARTS = 3

    def __init__(self, make_job, start_timeout):
        self.make_job = make_job
        self.start_timeout = start_timeout
        self.job = None
        self.starts = 0
        self.start_seconds = None
        self.reason = None

    def running(self):
        if self.job is None:
            if self.starts >= self.STARTS:
                raise Failed(f'given up after: {self.reason}')
            self.starts += 1
            job = self.make_job()
            begin = time.monotonic()
            try:
                job.start(self.start_timeout)
            except Failed as e:
                self.reason = str(e)
                raise
            self.start_seconds = time.monotonic() - begin
            self.job = job
        return self.job

    def failed(self, reason):
        self.reason = str(reason)
        self.stop()

    def stop(self):
        if self.job is not None:
            self.job.stop()
            self.job = None


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
