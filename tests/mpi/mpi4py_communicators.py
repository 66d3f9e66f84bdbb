"""A broadcast on the world, then other operations on a duplicate, on rows, and on communicators that are freed."""

import sys

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, n = world.rank, world.size
assert MPI.Query_thread() == MPI.THREAD_MULTIPLE

settings = world.bcast({'turns': 60} if rank == 0 else None)
work = world.Dup()
row = work.Split(rank // 2, rank)
right = True
for turn in range(settings['turns']):
    total = np.empty(50)
    work.Allreduce(np.full(50, float(rank + turn)), total)
    right &= bool((total == n * (n - 1) / 2 + n * turn).all())
    ranks = np.empty(row.size, dtype=int)
    row.Allgather(np.array([rank]), ranks)
    right &= np.array_equal(ranks, np.arange(row.size) + rank // 2 * 2)
    if turn % 20 == 0:
        passing = work.Dup()
        right &= passing.allreduce(rank) == n * (n - 1) // 2
        passing.Free()
row.Free()
if work.allreduce(bool(right), op=MPI.LAND):
    sys.stdout.write(f'rank {rank}: right\n')  # in one write, so that lines of ranks do not mix
work.Free()
