"""Runs torch's own tests of torch.distributed with the backend torus, as unittest does: the arguments are names of tests.

    topo/torus.py 2x2 --loopback --run 'PYTHONPATH=build/client/torch:tests/torch /usr/bin/python3 tests/torch/suite.py -v'

They are part of Debian's python3-torch. Each starts four ranks, here all of them as children of one process.
"""

import os
import unittest

os.environ.setdefault('BACKEND', 'torus')
os.environ.setdefault('WORLD_SIZE', '4')

import torch
import torch_torus  # noqa: F401: registers the backend
from torch.testing._internal import common_distributed
from torch.testing._internal.distributed import distributed_test
from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend

common_distributed.DistTestCases.backend_feature['ddp'].add('torus')


class TestTorus(TestDistBackend, DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        # Children by fork() need not load torch again.
        self._start_processes(torch.multiprocessing.get_context('fork').Process)

    @classmethod
    def _run(cls, rank, *arguments):
        os.environ['TORUS_SOCKET'] = f'{os.environ["TORUS_RUN_DIR"]}/{rank}.sock'
        super()._run(rank, *arguments)


if __name__ == '__main__':
    unittest.main()
