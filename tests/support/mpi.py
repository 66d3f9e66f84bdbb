"""MPI programs on the nodes of a loopback torus, with and without the preload of their library."""

import os
import re
import shutil
import subprocess
import tempfile
import weakref
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from torus_net import CHECKOUT
from torus_net.patience import Patience, communicate

LAUNCHERS = {
    # MPICH's ranks act as if on different machines, because with shared memory MPICH 4.0.2 without the preload
    # crashes in an in-place MPI_Reduce with some roots. PATIENCE makes their polls over TCP wait in the kernel:
    # otherwise more ranks than processors would keep each other from running.
    'mpich': ['mpiexec.mpich', '-genv', 'MPIR_CVAR_NOLOCAL', '1', '-genv', 'UCX_TLS', 'tcp,self'],
    # Open MPI 4.1.4 without the preload adds short integers with saturation (its AVX component), and delivers
    # wrong blocks if the types of sender and receiver differ (its tuned component).
    'openmpi': ['mpiexec.openmpi', '--allow-run-as-root', '--oversubscribe', '--bind-to', 'none',
                '--mca', 'mpi_yield_when_idle', '1', '--mca', 'op', '^avx', '--mca', 'coll', '^tuned'],
}
PATIENCE = Path('topo', 'libtorus-mpi-hosts.so')
ON_NODE = CHECKOUT / 'tests' / 'mpi' / 'on_node.sh'


def build_folder(torus):
    """The build with preloads and programs. Not an instrumented build, which programs could not load."""
    return Path(torus.watcher).parent


def preload(torus, library):
    return build_folder(torus) / 'client' / f'libtorus-{library}.so'


def program(torus, library, name):
    return build_folder(torus) / 'tests' / 'mpi' / library / name


def skip_without(torus, library):
    for path in preload(torus, library), program(torus, library, 'scenarios'):
        if not path.exists():
            pytest.skip(f'{path} has not been built')
    if shutil.which(LAUNCHERS[library][0]) is None:
        pytest.skip(f'there is no {LAUNCHERS[library][0]}')


@pytest.fixture(params=['mpich', 'openmpi'])
def library(request):
    return request.param


@pytest.fixture
def torus(shared, library):
    """The torus that tests of the preload of a library share."""
    torus = shared('2x2')
    skip_without(torus, library)
    return torus


class Run:
    """mpiexec in the background. `nodes` has the node of each rank. Ranks in `without` have no preload; ranks in
    `losing` also preload tests/mpi/lost_setup.c, ranks in `lying` tests/mpi/false_clock.c, ranks in `counting`
    tests/mpi/attribute_count.c. All calls that the torus can serve go by the torus, unless `chooses`."""

    def __init__(self, torus, library, command, nodes=None, without=(), losing=(), lying=(), counting=(),
                 mode='stats', chooses=False, preloaded=None, **environment):
        nodes = range(len(torus.nodes)) if nodes is None else nodes
        def preloads(rank):
            if library == 'mpich':
                yield build_folder(torus) / PATIENCE
            if mode and rank not in without:
                yield preload(torus, preloaded or library)
            if rank in losing:
                yield build_folder(torus) / 'tests' / 'mpi' / 'liblost_setup.so'
            if rank in lying:
                yield build_folder(torus) / 'tests' / 'mpi' / 'libfalse_clock.so'
            if rank in counting:
                yield build_folder(torus) / 'tests' / 'mpi' / 'libattribute_count.so'

        lines = [f'{torus.node(node).socket if node is not None else "/nowhere"} '
                 f'{":".join(map(str, preloads(rank)))}'
                 for rank, node in enumerate(nodes)]
        # Each launcher has its own session folder: Open MPI fails if two launchers create the same one at once.
        sessions = tempfile.mkdtemp(prefix='ompi-')
        weakref.finalize(self, shutil.rmtree, sessions, ignore_errors=True)
        # The launcher ends with this process, and ends its ranks even when it is killed.
        self.process = subprocess.Popen(
            ['setpriv', '--pdeathsig', 'TERM', *LAUNCHERS[library], '-n', str(len(lines)), ON_NODE,
             *map(str, command)],
            env={**os.environ, 'MPI_TEST_RANKS': '\n'.join(lines), 'TORUS_MPI': (mode or 'off') + ('' if chooses else ',torus'),
                 'OMPI_MCA_orte_tmpdir_base': sessions, **environment},
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                communicate(self.process, Patience(20))
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.communicate()

    def end(self, seconds=60):
        out, err = communicate(self.process, Patience(seconds))
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, out, err)


def run(torus, library, command, seconds=60, check=True, **options):
    with Run(torus, library, command, **options) as running:
        result = running.end(seconds)
    if check:
        assert result.returncode == 0, f'exit status {result.returncode}\n{result.stderr}{result.stdout}'
    return result


def run_all(torus, runs, seconds=60):
    """Runs several programs at the same time: each of `runs` has a library, a command and options. Returns the
    results in their order."""
    running = []
    try:
        for library, command, options in runs:
            running.append(Run(torus, library, command, **options))
        results = [each.end(seconds) for each in running]
    finally:
        for each in running:
            each.__exit__()
    for result in results:
        assert result.returncode == 0, f'exit status {result.returncode}\n{result.stderr}{result.stdout}'
    return results


def pid_of(torus, rank):
    """The process id of the program that has a group open at a node."""
    group, = torus.status(rank)['groups']
    return group['pid']


def each(sum, ranks):
    """The share of each rank in a sum over all ranks."""
    share = Fraction(int(sum), int(ranks))
    return share if share.denominator > 1 else int(share)


def statistics(result):
    """The number of ranks, and what the preload's last line says about all of them together."""
    (ranks, line), = re.findall(r'^torus: all (\d+) ranks together: served: (.*)$', result.stderr, re.MULTILINE)
    return int(ranks), line


def taken(result):
    """{operation: calls} that the torus has carried out, and {operation: calls} that were left to MPI: the calls of
    each rank, on an average."""
    ranks, line = statistics(result)
    counts = []
    for part in line.split('left to MPI:'):
        counts.append({})
        for name, calls in re.findall(r'MPIX?_(\w+) (\d+) call', part):
            counts[-1][name] = counts[-1].get(name, 0) + int(calls)
    return [{name: each(calls, ranks) for name, calls in part.items()} for part in counts]


def unserved(result):
    """{operation: (calls, starts, bytes, why)} of operations that torusd does not serve, of each rank on an average."""
    ranks, line = statistics(result)
    return {name: (each(calls, ranks), each(starts or 0, ranks), each(size or 0, ranks), why)
            for name, calls, starts, size, why in re.findall(
                r'MPIX?_(\w+) (\d+) calls?(?:, (\d+) starts?)?(?:, (\d+) bytes)? \((not served by torusd[^)]*)\)',
                line.partition('; left to MPI: ')[2])}


def collectives_of(library):
    """The names of all functions for collective communication in a shared library or preload, such as "MPI_Ibcast"
    and "PMPI_Ibcast"."""
    symbols = subprocess.run(['nm', '--dynamic', '--defined-only', '--format=just-symbols', library],
                             check=True, capture_output=True, text=True).stdout.split()
    return {symbol for symbol in symbols if re.fullmatch(
        r'P?MPIX?_I?(neighbor_)?(barrier|bcast|(all)?gatherv?|scatterv?|alltoall[vw]?|(all)?reduce|'
        r'reduce_scatter(_block)?|(ex)?scan)(_init)?(_c)?', symbol, re.IGNORECASE) and symbol[-1].islower()}


# ---- Results of tests/mpi/collectives.c -----------------------------------------------------------

def records(path):
    """(operation, kind, bytes) of each record."""
    data, at = path.read_bytes(), 0
    while at < len(data):
        end = data.index(b'\n', at)
        what, _, rest = data[at:end].decode().partition(': ')
        kind, size = rest.split()
        at = end + 1 + int(size)
        yield what, kind, data[end + 1:at]


def compare(one, other):
    """The differences between two files of a rank."""
    ours, theirs = list(records(one)), list(records(other))
    assert len(ours) == len(theirs) > 0
    for (what, kind, mine), (same, _, its) in zip(ours, theirs):
        assert what == same
        if mine == its:
            continue
        assert kind != 'exact', f'{one}: {what}: {first_difference(mine, its)}'
        number = {'float': np.float32, 'double': np.float64}[kind]
        a, b = np.frombuffer(mine, number), np.frombuffer(its, number)
        # The rounding errors of sums and products of at most 64 numbers below 4, in different orders.
        assert np.allclose(a, b, rtol=200 * np.finfo(number).eps, atol=256 * np.finfo(number).eps), \
            f'{one}: {what}'


def first_difference(a, b):
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return f'{len(a)} and {len(b)} bytes, byte {at}: {a[at:at + 16].hex()} and {b[at:at + 16].hex()}'
