"""Runs torch's own tests of torch.distributed with the backend torus. Prints a line for each test: its name, and what became of it.

    topo/torus.py 2x2 --loopback --run 'PYTHONPATH=build/client/torch:tests/torch /usr/bin/python3 tests/torch/suite.py [TEST...]'

They are part of Debian's python3-torch. Each starts four ranks, here all of them as children of one process.
suite.txt lists the tests that must pass, and says why the others do not.
"""

import os
import re
import sys
import unittest

# Decorators ask for the backend when the file is imported: tests for Gloo are for this backend, too.
os.environ.update(BACKEND='gloo', INIT_METHOD='file://', WORLD_SIZE='4', OMP_NUM_THREADS='1', GLOO_SOCKET_IFNAME='lo')

import torch
import torch.distributed as dist
import torch_torus  # noqa: F401: registers the backend
from torch.nn.parallel import _replicated_tensor_ddp_utils
from torch.testing._internal import common_distributed

common_distributed.DistTestCases.backend_feature['gpu'] = set()  # there is none
common_distributed.TIMEOUT_DEFAULT = 100

from torch.testing._internal.distributed import distributed_test
from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend


class Name(str):
    """Bodies of tests ask for Gloo, too, where they mean a backend for the CPU."""

    def __eq__(self, other):
        return str(self) == other or other == 'gloo'

    __hash__ = str.__hash__


distributed_test.BACKEND = Name('torus')
distributed_test.DistTestCases.backend_feature['ddp'].add('torus')
# DistributedDataParallel with replicated tensors imports a file that Python 3.11 refuses.
_replicated_tensor_ddp_utils._set_ddp_with_replicated_tensor = lambda value: None
for backends in (distributed_test.PROFILING_SUPPORTED_BACKENDS, distributed_test.SEND_RECV_PROFILING_SUPPORTED_BACKENDS):
    backends.append('torus')


def monitored_barrier(group=dist.GroupMember.WORLD, timeout=distributed_test.timedelta(minutes=5), wait_all_ranks=False):
    """torch's function refuses all backends but Gloo."""
    if not isinstance(timeout, distributed_test.timedelta):
        timeout = distributed_test.timedelta(seconds=timeout)
    if group is not dist.GroupMember.NON_GROUP_MEMBER:
        (group or dist.GroupMember.WORLD).monitored_barrier(timeout, wait_all_ranks=wait_all_ranks)


class TestTorus(TestDistBackend, DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        # Children by fork() need not load torch again.
        self._start_processes(torch.multiprocessing.get_context('fork').Process)

    @classmethod
    def _run(cls, rank, name, file, pipe):
        os.environ['TORUS_SOCKET'] = f'{os.environ["TORUS_RUN_DIR"]}/{rank}.sock'
        distributed_test.INIT_METHOD = f'file://{file}.again'
        dist.monitored_barrier = monitored_barrier
        super()._run(rank, name, file, pipe)


# Tests for MPI that need nothing of it.
for name in dir(TestTorus):
    test = getattr(TestTorus, name)
    if getattr(test, '__unittest_skip_why__', '').startswith('Only MPI supports'):
        test.__unittest_skip__ = False


class Result(unittest.TestResult):
    def tell(self, test, outcome):
        print(f'{test._testMethodName}  {outcome}', flush=True)

    def addSuccess(self, test):
        self.tell(test, 'passes')

    def addSkip(self, test, reason):
        self.tell(test, f'skipped: {reason.splitlines()[0]}')

    def addError(self, test, error):
        said = [line for line in str(error[1]).splitlines() if re.match(r'\w*(Error|Exception):', line)]
        self.tell(test, f'fails: {said[-1] if said else error[1]}')
        print(error[1], file=sys.stderr)

    addFailure = addError


if __name__ == '__main__':
    names = sys.argv[1:] or unittest.defaultTestLoader.getTestCaseNames(TestTorus)
    unittest.TestSuite(map(TestTorus, names)).run(Result())
