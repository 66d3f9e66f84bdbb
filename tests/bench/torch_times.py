"""Times of operations of torch.distributed over the torus and over Gloo, in turn: medians in ms at rank 0.

    topo/torus.py 1x4 --bw 200 --ip-routes --run-each 'OMP_NUM_THREADS=1 PYTHONPATH=build/client/torch:client/python \\
        /usr/bin/python3 tests/bench/torch_times.py 9 1 16 64'

The arguments are the number of turns (3 from 4 MiB on), and sizes in KiB: of the tensor, or of all parts of an all_gather.
A time ends when a barrier of the same backend has ended, so that all ranks are done.
"""

import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch_torus  # noqa: F401

torch.set_num_threads(1)
dist.init_process_group('torus', init_method='torus://')
gloo = dist.new_group(backend='gloo')
rank, size = dist.get_rank(), dist.get_world_size()


def all_reduce(count, group):
    tensor = torch.ones(count)
    return lambda: dist.all_reduce(tensor, group=group)


def all_gather(count, group):
    mine, all_ranks = torch.ones(count // size), list(torch.empty(count // size * size).chunk(size))
    return lambda: dist.all_gather(all_ranks, mine, group=group)


def broadcast(count, group):
    tensor = torch.ones(count)
    return lambda: dist.broadcast(tensor, 0, group=group)


def timed(call, group):
    dist.barrier(group=group)
    begin = time.perf_counter()
    call()
    dist.barrier(group=group)
    return 1000 * (time.perf_counter() - begin)


for make in all_reduce, all_gather, broadcast:
    for kib in map(int, sys.argv[2:]):
        calls = [(make(256 * kib, group), group) for group in (None, gloo)]
        times = [[], []]
        for turn in range(int(sys.argv[1]) if kib < 4096 else 3):
            for found, (call, group) in zip(times, calls):
                found.append(timed(call, group))
        if rank == 0:
            ours, others = map(statistics.median, times)
            print(f'{make.__name__} {kib} KiB: torus {ours:.2f} gloo {others:.2f} ms, {others / ours:.2f}', flush=True)
dist.barrier()
