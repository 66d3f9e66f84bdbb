"""A program for test_torch: what its arguments name, on every node of a torus. The first argument is an init_method. With
the variables of torusrun, several ranks may be on a node.

Tensors are computed from the rank alone, so each rank knows what every rank sends, and computes the results itself.
"""

import os
import re
import socket
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch_torus.store

SEVERAL = 'LOCAL_RANK' in os.environ  # ranks on a node
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
            dist.reduce_scatter_tensor(mine, flat[rank], op)
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
            given = [change(made(k, (6,), dtype)) for k in range(size)] if rank == 2 else None
            mine = change(torch.zeros(6, dtype=dtype))
            dist.scatter(mine, given, 2)
            same(mine, made(rank, (6,), dtype))
            given = [change(made(rank, (rank + k,), dtype, k)) for k in range(size)]
            got = [change(torch.zeros(rank + k, dtype=dtype)) for k in range(size)]
            dist.all_to_all(got, given)
            for r in range(size):
                same(got[r], made(r, (r + rank,), dtype, rank))


def other_forms(rank, size):
    got = torch.zeros(4 * size)
    dist.all_gather_into_tensor(got, made(rank, (4,), torch.float32))
    same(got, torch.cat([made(r, (4,), torch.float32) for r in range(size)]))
    dist.all_gather_into_tensor(got, got[4 * rank:4 * rank + 4])  # in place
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
    for ranks in [0, 1], [1, 3], [0, 3], [1, 2], [0, 1, 3], [2]:
        group = dist.new_group(ranks)
        if rank in ranks:
            mine = torch.tensor([2 ** rank])
            dist.all_reduce(mine, group=group)
            assert mine.item() == sum(2 ** r for r in ranks)
            got = [torch.zeros(1) for _ in ranks]
            dist.all_gather(got, torch.tensor([float(rank)]), group=group)
            assert [int(one) for one in got] == ranks
            dist.destroy_process_group(group)
            del group  # its memory at the daemons


def messages(rank, size):
    after, before = (rank + 1) % size, (rank - 1) % size
    for dtype in [*FLOATS, *INTEGERS, *COMPLEX, torch.bool]:
        for shape in SIZES:
            got = made(rank, shape, dtype)
            sent = dist.isend(made(rank, shape, dtype, 5), after)
            assert dist.recv(got, before) == before
            same(got, made(before, shape, dtype, 5))
            sent.wait()
    # Other tags, and other groups of all ranks, do not mix; tensors with gaps.
    everyone, others = dist.new_group(), dist.new_group([0, 2])
    sent = [dist.isend(apart(made(rank, (5,), torch.int32, seed)), after, group, tag)
            for seed, (group, tag) in enumerate([(None, 0), (None, 7), (everyone, 7), (everyone, 2 ** 31 - 1)])]
    for seed, group, tag in (3, everyone, 2 ** 31 - 1), (2, everyone, 7), (1, None, 7), (0, None, 0):
        got = apart(torch.zeros(5, dtype=torch.int32))
        dist.recv(got, before, group, tag)
        same(got, made(before, (5,), torch.int32, seed))
    for work in sent:
        work.wait()
    # Rank 0 receives from all others. Then ranks of a group, whose numbers in the group differ.
    if rank == 0:
        got = [torch.zeros(3) for _ in range(1, size)]
        if SEVERAL:
            refused('recv needs the rank', lambda: dist.recv(got[0]))
        senders = [dist.recv(one, r + 1 if SEVERAL else None) for r, one in enumerate(got)]
        assert sorted(senders) == list(range(1, size)), senders
        for sender, one in zip(senders, got):
            same(one, made(sender, (3,), torch.float32))
        assert dist.recv(got[0], None, others, 4) == 2
        dist.send(got[0], 2, others, 5)
    else:
        dist.send(made(rank, (3,), torch.float32), 0)
    if rank == 2:
        dist.send(made(9, (3,), torch.float32), 0, others, 4)
        dist.recv(got := torch.zeros(3), 0, others, 5)
        same(got, made(9, (3,), torch.float32))
    dist.barrier()  # rank 0 might receive one of the following messages from a fast rank instead of the first one of another
    # More than are under way at a time; calls of the group go on while a message waits.
    many = [torch.full((100,), float(i)) for i in range(80)]
    got = [torch.zeros(100) for _ in many]
    late = dist.irecv(waits := torch.zeros(1), before, tag=99)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, one, after) for one in many] +
                                   [dist.P2POp(dist.irecv, one, before) for one in got])
    for _ in range(100):
        dist.all_reduce(mine := torch.ones(1))
        assert mine.item() == size
    for work in works:
        work.wait()
    for one, other in zip(got, many):
        same(one, other)
    dist.barrier()
    assert not late.is_completed()
    dist.barrier()
    dist.send(torch.ones(1), after, tag=99)
    late.get_future().wait()
    same(waits, torch.ones(1))
    if rank in (0, 2):
        dist.destroy_process_group(others)  # its memory at the daemons


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
    refused('cannot send itself', lambda: dist.send(one, rank))
    refused('is negative', lambda: dist.send(one, (rank + 1) % size, tag=-1))
    dist.barrier()


def network():
    torch.manual_seed(8)
    return torch.nn.Sequential(torch.nn.Linear(20, 50), torch.nn.Tanh(), torch.nn.Linear(50, 1))


def data(rank, size):
    """The inputs and results that a rank trains with."""
    generator = torch.Generator().manual_seed(7)
    return [torch.randn(16, width, generator=generator).chunk(size)[rank] for width in (20, 1)]


def loss_of(model, inputs, results):
    model.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), results)
    loss.backward()
    return loss.detach()


def mean(tensor, group):
    dist.all_reduce(tensor, group=group)
    return tensor / dist.get_world_size()


def replicated(rank, size, group):
    """The losses of DistributedDataParallel."""
    model = torch.nn.parallel.DistributedDataParallel(network(), process_group=group, bucket_cap_mb=0.001)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(10):
        losses.append(mean(loss_of(model, *data(rank, size)), group))
        optimizer.step()
    return losses


def sharded(rank, size, group):
    """The losses when each rank keeps a share of the parameters, as FSDP does."""
    model = network()
    flat = torch.nn.utils.parameters_to_vector(model.parameters()).detach()
    count = flat.numel()
    flat = torch.nn.functional.pad(flat, (0, -count % size))
    mine, losses = flat.chunk(size)[rank].clone(), []
    for _ in range(10):
        if group is None:
            dist.all_gather_into_tensor(flat, mine)
        else:
            dist.all_gather(list(flat.chunk(size)), mine, group=group)
        torch.nn.utils.vector_to_parameters(flat[:count], model.parameters())
        losses.append(mean(loss_of(model, *data(rank, size)), group))
        gradients = torch.nn.utils.parameters_to_vector([parameter.grad for parameter in model.parameters()])
        gradients = torch.nn.functional.pad(gradients, (0, -count % size))
        if group is None:
            share = torch.empty_like(mine)
            dist.reduce_scatter_tensor(share, gradients, dist.ReduceOp.AVG)
        else:  # Gloo has no reduce_scatter
            share = mean(gradients, group).chunk(size)[rank]
        mine -= 0.1 * share
    return losses


def training(rank, size):
    """The losses are those of Gloo, but for rounding."""
    torch.set_num_threads(1)
    gloo = dist.new_group(backend='gloo')
    for train in replicated, sharded:
        ours, others = (torch.stack(train(rank, size, group)) for group in (None, gloo))
        assert torch.allclose(ours, others, rtol=1e-5) and ours[-1] < ours[0] / 2, (train, ours, others)


def stored(rank, size):
    """The store of torus:// does what torch's other stores do."""
    store = dist.PrefixStore('test', dist.distributed_c10d._get_default_store())
    if rank == 1:
        store.set('key', 'value')
        store.set('bytes', b'\xff\0\n')
    assert store.get('key') == b'value'
    assert store.get('bytes') == b'\xff\0\n'
    store.wait(['key', 'bytes'])
    store.add('sum', rank + 1)
    dist.barrier()
    assert store.add('sum', 0) == size * (size + 1) // 2
    results = [None] * size
    dist.all_gather_object(results, store.compare_set('first', '', str(rank)))
    assert len(set(results)) == 1 and store.get('first') == results[0], results
    ours = torch_torus.store.opened[0]  # torch has no check() in Python
    assert ours.check(['default_pg/test/key']) and not ours.check(['default_pg/test/key', 'missing'])
    refused('has not answered', lambda: store.wait(['missing'], timedelta(seconds=0.2)))
    refused('add: ', lambda: store.add('key', 1))
    dist.barrier()
    if rank == 0:
        assert store.delete_key('key') and not store.delete_key('key')
    dist.barrier()
    assert not ours.check(['default_pg/test/key']) and store.num_keys() > 3
    dist.barrier()


def monitored(rank, size):
    group = dist.group.WORLD
    group.monitored_barrier(timedelta(seconds=60))
    if rank == 0:
        refused('Rank 1 failed to pass', lambda: group.monitored_barrier(timedelta(seconds=0.1)))
        dist.all_reduce(torch.ones(1))  # the group is as it was
    elif rank == 1:
        dist.all_reduce(torch.ones(1))
    else:
        refused('errors while waiting', lambda: group.monitored_barrier(timedelta(seconds=60)))
        dist.all_reduce(torch.ones(1))


def unsent(rank, size):
    """A message that nobody sends fails the group on all ranks, and the error names both ranks."""
    group = dist.new_group(timeout=timedelta(seconds=2))
    refused('member 1: the message of 4 bytes from member 3',
            lambda: dist.recv(torch.ones(1), 3, group) if rank == 1 else dist.recv(torch.ones(1), 1))


def dying(rank, size, victim=1):
    """The victim waits for its end, and the others for it."""
    print('ready', flush=True)
    if rank == victim:
        time.sleep(1000)
    before = time.monotonic()
    refused('torus: ', lambda: dist.all_reduce(torch.ones(1)))
    refused('torus: ', lambda: dist.all_reduce(torch.ones(1)))
    print(time.monotonic() - before)


def first_dying(rank, size):
    dying(rank, size, 0)


def raising(rank, size, victim=0):
    """An error that nobody catches ends the victim while a call is under way, and others wait for it."""
    group = dist.new_group([victim, size - 1])
    if rank == victim:
        dist.barrier()  # all have left new_group
        dist.all_reduce(torch.ones(1), group=group, async_op=True)
        raise ArithmeticError('on purpose')

    def wait():
        dist.barrier()
        if victim == 0:  # it keeps the store
            dist.distributed_c10d._get_default_store().wait(['never'])
        dist.all_reduce(torch.ones(1))

    refused('torus: ', wait)


def guest_raising(rank, size):
    raising(rank, size, 1)


def strangers(rank, size):
    """Connections that are not those of ranks disturb neither the store nor the opening of a group."""
    others = []
    for said in b'', b'\n', b'[1, "end"]\n', b'[1, "set", 1]\n', b'[1, "wait", 1]\n':
        others.append(socket.socket(socket.AF_UNIX))
        others[-1].connect(torch_torus.store.door('torch'))
        others[-1].sendall(said)
    if rank == 1:
        while not (listening := re.findall(r' 00010000 0005 .* @(\w{5})$', Path('/proc/net/unix').read_text(), re.M)):
            time.sleep(0.01)
        for name in listening:
            for said in b'', b'x', bytes([1, 0, 0, 0]) + b'another group'.ljust(64, b'\0'):
                others.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                others[-1].connect(f'\0{name}')
                if said:
                    others[-1].send(said)
    group = dist.new_group([0, 1])
    if rank < 2:
        dist.all_reduce(mine := torch.ones(1), group=group)
        assert mine.item() == 2
        dist.destroy_process_group(group)
    dist.barrier()


def disagreeing(rank, size):
    """The group fails on all ranks. On the node of ranks 0 and 1 the error names them."""
    one, text = torch.ones(1), 'but rank 1 calls broadcast' if rank < 2 else 'torus: '
    refused(text, lambda: dist.broadcast(one, 0) if rank == 1 else dist.all_reduce(one))
    refused(text, lambda: dist.all_reduce(one))


def leaving(rank, size):
    """Rank 0 ends its groups at once, and the others of its node go on."""
    group = dist.new_group([1, size - 1])
    if rank > 0:
        mine = torch.ones(1)
        if rank in (1, size - 1):
            dist.all_reduce(mine, group=group)
            assert mine.item() == 2
        refused('torus: ', lambda: dist.all_reduce(mine))


def filling(rank, size):
    """The default group, and that of the store, leave no memory for another one. torch's timeout is 30 minutes. A rank that
    is no member would wait in new_group until the members have opened the group."""
    if rank == size - 1:
        return
    try:
        dist.new_group(range(size - 1))
    except RuntimeError as error:
        assert re.search(r'no memory for it within 10\.0 s: .*node \d is busy: .* has \d+ of \d+ bytes .* raise memory in torusd\.ini',
                         str(error)), error
    else:
        raise AssertionError('there was memory')


def main():
    url, *what = sys.argv[1:]
    rank, size = int(os.environ.get('RANK', torch_torus.node())), int(os.environ.get('WORLD_SIZE', torch_torus.nodes()))
    own = {} if url.startswith('torus:') else {'rank': rank, 'world_size': size}  # torus:// knows them
    dist.init_process_group('torus', init_method=url, **own)
    assert (dist.get_backend(), dist.get_rank(), dist.get_world_size()) == ('torus', rank, size)
    for name in what:
        globals()[name](rank, size)
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
