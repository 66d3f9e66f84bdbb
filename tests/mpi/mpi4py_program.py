"""Collective operations of mpi4py with buffers and with objects."""

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, n = world.rank, world.size

out = 1000 * rank + np.arange(n)
received = np.empty_like(out)
world.Alltoall(out, received)
right = np.array_equal(received, 1000 * np.arange(n) + rank)

ranks = np.empty(n, dtype=int)
world.Allgather(np.array([rank]), ranks)
right &= np.array_equal(ranks, np.arange(n))

total = np.full(1000, float(rank))
world.Allreduce(MPI.IN_PLACE, total, op=MPI.SUM)
right &= bool((total == n * (n - 1) / 2).all())

least = np.empty(1000)
world.Reduce(np.full(1000, float(rank + 1)), least if rank == 1 else None, op=MPI.MIN, root=1)
right &= rank != 1 or bool((least == 1).all())

part = np.empty(10)
world.Reduce_scatter_block(np.repeat(np.arange(n, dtype=float), 10), part, op=MPI.SUM)
right &= bool((part == n * rank).all())

table = np.arange(100000) if rank == 2 else np.empty(100000, dtype=int)
world.Bcast(table, root=2)
right &= np.array_equal(table, np.arange(100000))

right &= world.allgather({'rank': rank}) == [{'rank': i} for i in range(n)]
right &= world.bcast('text' * 1000 if rank == 0 else None) == 'text' * 1000
right &= world.alltoall([(rank, i) for i in range(n)]) == [(i, rank) for i in range(n)]

row = world.Split(rank // 2, rank)
right &= row.allreduce(rank) == 4 * (rank // 2) + 1
counts = np.empty(row.size, dtype=int)
row.Allgather(np.array([rank]), counts)
right &= np.array_equal(counts, np.arange(row.size) + rank // 2 * 2)
row.Free()

world.Gather(np.array([rank]), ranks if rank == 0 else None)
world.Gatherv(np.array([rank]), ranks if rank == 0 else None)
mine = np.empty(1, dtype=int)
world.Scatter(ranks if rank == 0 else None, mine)
right &= bool(mine[0] == rank)

# Operations that torusd does not serve.
total = np.empty(1, dtype=int)
for _ in range(3):
    world.Iallreduce(np.array([rank]), total).Wait()
    right &= bool(total[0] == n * (n - 1) // 2)
world.Ibarrier().Wait()
world.Scan(np.array([rank]), total)
right &= bool(total[0] == rank * (rank + 1) // 2)
ring = world.Create_cart([n], [True])
for _ in range(2):  # the first call on the ring is left to MPI
    counts[:] = 0
    ring.Neighbor_alltoall(np.array([rank, rank]), counts)
    right &= list(counts) == [(rank - 1) % n, (rank + 1) % n]
ring.Free()

world.Barrier()
if world.reduce(bool(right), op=MPI.LAND) and rank == 0:
    print('right')
