"""mpiexec of both MPI libraries on the hosts that the launcher makes with --ip-routes, without torusd's preload."""

import shutil
import subprocess

import pytest
from support.launcher import bench  # noqa: F401
from torus_net import CHECKOUT
from torus_net.patience import stretched

pytestmark = [pytest.mark.mininet, pytest.mark.full]

SOURCE = CHECKOUT / 'tests' / 'support' / 'mpi_hosts.c'
LIBRARIES = {'mpich': 'mpiexec.mpich', 'openmpi': 'mpiexec.openmpi'}


@pytest.fixture(scope='module')
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp('mpi')
    for library in LIBRARIES:
        for program in f'mpicc.{library}', f'mpiexec.{library}':
            if shutil.which(program) is None:
                pytest.skip(f'{program} is missing')
        subprocess.run([f'mpicc.{library}', SOURCE, '-o', folder / library], check=True)
    return folder


@pytest.mark.parametrize('dims,ranks', [('3x3', 9), ('2', 6)])
def test_ranks_on_all_hosts(bench, programs, dims, ranks):
    """MPICH ends by itself (client/mpi/library/mpich_finalize.c), which it hardly ever would with 9 ranks. With more
    ranks than hosts, each host has several ranks."""
    hosts = 9 if dims == '3x3' else 2
    for library, mpiexec in LIBRARIES.items():
        done = bench.run(dims, '--bw', '50', '--ip-routes', '--quiet', '--run',
                         f'timeout {stretched(60)} {mpiexec} -n {ranks} {programs}/{library}')
        lines = done.stdout.splitlines()
        # mpiexec has the lines of each host from another connection, so that of rank 0 may not be the last one.
        assert done.returncode == 0 and lines.count('finalized') == 1, (library, done.stdout, done.stderr)
        said = [line.split() for line in sorted(lines) if line != 'finalized']
        assert [line[1:4] for line in said] == [[str(rank), 'of', str(ranks)] for rank in range(ranks)]
        assert sorted({line[5] for line in said}) == [f'n{rank}:' for rank in range(hosts)]
        assert all(line[6:] == ['0', 'wrong'] for line in said)
