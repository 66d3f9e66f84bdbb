"""A program for test_torch: what its arguments name, on every node of a torus. The first argument is a file for the store.

Tensors are computed from the rank alone, so each rank knows what every rank sends, and computes the results itself.
"""

import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch_torus

SIZES = [(), (0,), (1,), (7, 5), (3000,)]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
COMPLEX = [torch.complex64, torch.complex128]
OPERATORS = {'SUM': lambda all: all.sum(0), 'PRODUCT': lambda all: all.prod(0),
             'MIN': lambda all: all.amin(0), 'MAX': lambda all: all.amax(0)}
BITWISE = {'BAND': lambda a, b: a & b, 'BOR': lambda a, b: a | b, 'BXOR': lambda a, b: a ^ b}


def made(rank, shape, dtype, seed=0):
    """Small whole numbers, whose sums and products every type holds exactly."""
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    values = torch.randint(0, 4, shape, generator=generator)
    if dtype.is_complex:
        return torch.complex(values.double(), values.double() - 1).to(dtype)
    return values.bool() if dtype == torch.bool else values.to(dtype)


def apart(tensor):
    """The same elements with gaps between them."""
    wide = torch.zeros((*tensor.shape, 2), dtype=tensor.dtype)
    wide[..., 0] = tensor
    return wide[..., 0]


def expected(operator, tensors):
    """What a reduction of the tensors is."""
    dtype = tensors[0].dtype
    if operator in BITWISE:
        result = tensors[0]
        for tensor in tensors[1:]:
            result = BITWISE[operator](result, tensor)
        return result
    wide = torch.complex128 if dtype.is_complex else torch.float64 if dtype.is_floating_point else torch.int64
    stack = torch.stack(tensors).to(wide)
    if operator == 'AVG':
        total = stack.sum(0)
        return (total / len(tensors) if wide != torch.int64 else total.div(len(tensors), rounding_mode='trunc')).to(dtype)
    return OPERATORS[operator](stack).to(dtype)


def operators_of(dtype):
    names = ['SUM']
    if not dtype.is_complex:
        names += ['PRODUCT', 'MIN', 'MAX']
    if dtype == torch.bool or dtype in INTEGERS:
        names += list(BITWISE)
    return names if dtype == torch.bool else [*names, 'AVG']


def same(got, wanted):
    assert got.dtype == wanted.dtype and torch.equal(got, wanted), f'{got} is not {wanted}'


def reductions(rank, size):
    for dtype in [*FLOATS, *INTEGERS, *COMPLEX, torch.bool]:
        for operator in operators_of(dtype):
            op = getattr(dist.ReduceOp, operator)
            for shape in SIZES:
                all_ranks = [made(r, shape, dtype) for r in range(size)]
                wanted = expected(operator, all_ranks)
                mine = all_ranks[rank].clone()
                dist.all_reduce(mine, op)
                same(mine, wanted)
            mine = apart(made(rank, (7, 5), dtype))
            dist.all_reduce(mine, op)
            same(mine, expected(operator, [made(r, (7, 5), dtype) for r in range(size)]))
            mine = made(rank, (9,), dtype)
            dist.reduce(mine, size - 1, op)
            if rank == size - 1:
                same(mine, expected(operator, [made(r, (9,), dtype) for r in range(size)]))
            lists = [[made(r, (k + 1,), dtype, k) for k in range(size)] for r in range(size)]
            mine = torch.empty(rank + 1, dtype=dtype)
            dist.reduce_scatter(mine, lists[rank], op)
            same(mine, expected(operator, [lists[r][rank] for r in range(size)]))
            flat = [made(r, (6 * size,), dtype) for r in range(size)]
            mine = torch.empty(6, dtype=dtype)
            dist._reduce_scatter_base(mine, flat[rank], op)
            same(mine, expected(operator, flat)[6 * rank:6 * rank + 6])
            pair = [[made(r, (3,), dtype), made(r, (2, 2), dtype, 1)] for r in range(size)]
            mine = [tensor.clone() for tensor in pair[rank]]
            dist.all_reduce_coalesced(mine, op)
            for k in range(2):
                same(mine[k], expected(operator, [pair[r][k] for r in range(size)]))


def moves(rank, size):
    for dtype in [*FLOATS, *INTEGERS, *COMPLEX, torch.bool]:
        for change in (torch.clone, apart):
            for shape in SIZES:
                mine = change(made(rank, shape, dtype))
                dist.broadcast(mine, size - 1)
                same(mine, made(size - 1, shape, dtype))
                got = [change(torch.zeros(shape, dtype=dtype)) for _ in range(size)]
                dist.all_gather(got, change(made(rank, shape, dtype)))
                for r in range(size):
                    same(got[r], made(r, shape, dtype))
            got = [change(torch.zeros(6, dtype=dtype)) for _ in range(size)] if rank == 1 else None
            dist.gather(change(made(rank, (6,), dtype)), got, 1)
            for r in range(size if got else 0):
                same(got[r], made(r, (6,), dtype))
            given = [change(made(k, (k,), dtype)) for k in range(size)] if rank == 2 else None
            mine = change(torch.zeros(rank, dtype=dtype))
            dist.scatter(mine, given, 2)
            same(mine, made(rank, (rank,), dtype))
            given = [change(made(rank, (rank + k,), dtype, k)) for k in range(size)]
            got = [change(torch.zeros(rank + k, dtype=dtype)) for k in range(size)]
            dist.all_to_all(got, given)
            for r in range(size):
                same(got[r], made(r, (r + rank,), dtype, rank))


def other_forms(rank, size):
    got = torch.zeros(4 * size)
    dist._all_gather_base(got, made(rank, (4,), torch.float32))
    same(got, torch.cat([made(r, (4,), torch.float32) for r in range(size)]))
    dist._all_gather_base(got, got[4 * rank:4 * rank + 4])  # in place
    same(got, torch.cat([made(r, (4,), torch.float32) for r in range(size)]))
    uneven = [torch.zeros(r) for r in range(size)]
    dist.all_gather(uneven, made(rank, (rank,), torch.float32))
    for r in range(size):
        same(uneven[r], made(r, (r,), torch.float32))
    lists = [[torch.zeros(3), torch.zeros(2, 2)] for _ in range(size)]
    dist.all_gather_coalesced(lists, [made(rank, (3,), torch.float32), made(rank, (2, 2), torch.float32, 1)])
    for r in range(size):
        same(lists[r][0], made(r, (3,), torch.float32))
        same(lists[r][1], made(r, (2, 2), torch.float32, 1))
    given, got = made(rank, (2 * size, 3), torch.float32), torch.zeros(2 * size, 3)
    dist.all_to_all_single(got, given)
    same(got, torch.cat([made(r, (2 * size, 3), torch.float32)[2 * rank:2 * rank + 2] for r in range(size)]))
    given = made(rank, (size * (size - 1) // 2, 3), torch.float32)
    got, first = torch.zeros(size * rank, 3), rank * (rank - 1) // 2
    dist.all_to_all_single(got, given, [rank] * size, list(range(size)))
    same(got, torch.cat([made(r, (size * (size - 1) // 2, 3), torch.float32)[first:first + rank] for r in range(size)]))
    objects = [None] * size
    dist.all_gather_object(objects, {'rank': rank})
    assert objects == [{'rank': r} for r in range(size)]
    dist.barrier()


def asynchronous(rank, size):
    tensors = [made(rank, (100,), torch.float32, k) for k in range(100)]  # more than libtorus starts at once
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    doubled = works[0].get_future().then(lambda future: future.value()[0] * 2)
    for k, work in reversed(list(enumerate(works))):
        assert work.wait() and work.is_completed() and work.is_success()
        same(tensors[k], expected('SUM', [made(r, (100,), torch.float32, k) for r in range(size)]))
    same(doubled.wait(), tensors[0] * 2)


def groups(rank, size):
    everyone = dist.new_group()
    mine = torch.ones(1)
    dist.all_reduce(mine, group=everyone)
    assert mine.item() == size
    for ranks in [0, 1], [2, 3], [0, 2], [1, 3]:
        group = dist.new_group(ranks)
        if rank in ranks:
            mine = torch.tensor([2 ** rank])
            dist.all_reduce(mine, group=group)
            assert mine.item() == sum(2 ** r for r in ranks)
            got = [torch.zeros(1) for _ in ranks]
            dist.all_gather(got, torch.tensor([float(rank)]), group=group)
            assert [int(one) for one in got] == ranks
    group = dist.new_group([0, 3])
    if rank in (0, 3):
        refused('there is no group of the ranks', lambda: dist.all_reduce(torch.ones(1), group=group))


def refused(text, function):
    try:
        function()
    except RuntimeError as error:
        assert text in str(error), error
    else:
        raise AssertionError(f'no error: {text}')


def misuse(rank, size):
    one = torch.ones(1)
    refused('no minimum', lambda: dist.reduce(made(0, (1,), torch.complex64), 0, dist.ReduceOp.MAX))
    refused('no bitwise', lambda: dist.all_reduce(one, dist.ReduceOp.BAND))
    refused('no average', lambda: dist.all_reduce(one.bool(), dist.ReduceOp.AVG))
    refused('sparse', lambda: dist.all_reduce(one.to_sparse()))
    refused('different dtypes', lambda: dist.all_reduce_coalesced([one, one.int()]))
    refused('different sizes', lambda: dist.all_gather([torch.zeros(2) for _ in range(size)], one))
    refused('send and recv', lambda: dist.send(one, (rank + 1) % size))
    refused('send and recv', lambda: dist.recv(one))
    dist.barrier()


def training(rank, size):
    """Losses of a model on all ranks are those of one process with all data, but for rounding."""
    torch.manual_seed(7)
    torch.set_num_threads(1)

    def model():
        torch.manual_seed(8)
        return torch.nn.Sequential(torch.nn.Linear(20, 50), torch.nn.Tanh(), torch.nn.Linear(50, 1))

    data, target = torch.randn(16, 20), torch.randn(16, 1)
    alone, together = model(), torch.nn.parallel.DistributedDataParallel(model(), bucket_cap_mb=0.001)
    steps = [torch.optim.SGD(one.parameters(), lr=0.1, momentum=0.9) for one in (alone, together)]
    share = slice(rank * 16 // size, (rank + 1) * 16 // size)
    for _ in range(10):
        losses = []
        for one, step, part in (alone, steps[0], slice(None)), (together, steps[1], share):
            step.zero_grad()
            loss = torch.nn.functional.mse_loss(one(data[part]), target[part])
            loss.backward()
            step.step()
            losses.append(loss.detach())
        dist.all_reduce(losses[1], dist.ReduceOp.AVG)
        assert torch.allclose(*losses, rtol=1e-5), losses


def late(rank, size):
    """A call that a rank does not make ends with an error that names its node."""
    group = dist.new_group(timeout=timedelta(seconds=2))
    if rank > 0:
        refused('node 0', lambda: dist.all_reduce(torch.ones(1), group=group))
    else:
        sys.stdin.readline()


def dying(rank, size):
    """Rank 1 waits for its end, and the others for it."""
    print('ready', flush=True)
    if rank == 1:
        time.sleep(1000)
    before = time.monotonic()
    refused('torus: ', lambda: dist.all_reduce(torch.ones(1)))
    refused('torus: ', lambda: dist.all_reduce(torch.ones(1)))
    print(time.monotonic() - before)


def main():
    store, *what = sys.argv[1:]
    rank, size = torch_torus.node(), torch_torus.nodes()
    dist.init_process_group('torus', init_method=f'file://{store}', rank=rank, world_size=size)
    assert (dist.get_backend(), dist.get_rank(), dist.get_world_size()) == ('torus', rank, size)
    for name in what:
        globals()[name](rank, size)
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
