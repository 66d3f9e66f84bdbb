"""Tests of client/python/libtorus, which run on every node. The arguments name the tests, in order."""

import gc
import os
import re
import select
import signal
import sys
import threading

import numpy as np
from libtorus import IN_PLACE, ErrorCode, Group, TorusError

TYPES = ('int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64', 'float32', 'float64', 'float16',
         'complex64', 'complex128', 'bool')


def equal(a, b):
    assert a.shape == b.shape and a.dtype == b.dtype and (a == b).all(), (a, b)


def raises(kind, function, *arguments, text='', **named):
    try:
        function(*arguments, **named)
    except kind as e:
        assert text in str(e), e
        return e
    raise AssertionError(f'{function} has not raised {kind}')


def block(source, destination, shape=(3, 2)):
    return (np.arange(np.prod(shape)) + 1000 * source + 100000 * destination).reshape(shape)


def place():
    with Group() as g:
        assert str(g.rank) == os.environ['TORUS_RANK'] and str(g.size) == os.environ['TORUS_NODES']
        assert g.dims == os.environ['TORUS_DIMS'] and g.nodes == tuple(range(g.size))
        assert f'member {g.rank} of {g.size} ({g.dims})' in repr(g)
    e = raises(TorusError, g.barrier, text='closed')
    assert e.code == ErrorCode.USAGE and 'closed' in repr(g)
    with Group('another', timeout=60, checked=False) as g:
        g.set_timeout(None)
        g.set_timeout(30)
        g.barrier()


def shrinking():
    with Group() as g:
        raises(TorusError, g.part(0).shrink, text='shrink the whole group')
        values = registered(g)([1.5, g.rank])
        with g.shrink() as whole:  # the group has not failed, so all are members
            assert whole.nodes == tuple(range(g.size)) and whole.rank == g.rank
            assert whole.dims == g.dims and whole.allreduce(1) == g.size
            whole.part(0).barrier()
            e = raises(TorusError, g.barrier, text='left')
            assert e.code == ErrorCode.CANCELLED
        equal(values, np.array([1.5, g.rank]))
    with Group('late') as g, Group('done') as done:
        g.barrier()
        if g.rank < g.size - 1:
            g.set_timeout(3)
            e = raises(TorusError, g.shrink, text='entered the group')
            assert e.code == ErrorCode.TIMEOUT and str(g.size - 1) in str(e)
        done.barrier()


def call_all(g, count):
    """Makes `count` rounds of calls in a group, and checks them."""
    last = g.size - 1
    for i in range(count):
        equal(g.alltoall(np.array([block(g.rank, j) + i for j in range(g.size)])),
              np.array([block(j, g.rank) + i for j in range(g.size)]))
        equal(g.allgather(np.array([g.nodes[g.rank], i])), np.array([[node, i] for node in g.nodes]))
        equal(g.allreduce(np.full(1 + 5000 * (i % 2), g.rank)), np.full(1 + 5000 * (i % 2), sum(range(g.size))))
        equal(g.broadcast(np.array([i, 7 * g.rank]), root=last), np.array([i, 7 * last]))
        g.barrier()


def members():
    """Several groups of some of at least six nodes, from a thread each."""
    here, nodes = int(os.environ['TORUS_RANK']), int(os.environ['TORUS_NODES'])
    lists = {'ends': [nodes - 1, 0], 'even': list(range(0, nodes, 2)), 'some': [0, 1, nodes - 1], 'alone': [here],
             'all': None, 'listed': list(range(nodes))}
    groups, failed = {}, []

    def run(name, ranks):
        try:
            with Group(name, members=ranks, timeout=60) as g:
                groups[name] = g.nodes, g.rank
                call_all(g, 8)
        except BaseException as e:
            failed.append(f'{name}: {e!r}')

    mine = {name + (str(here) if name == 'alone' else ''): ranks for name, ranks in lists.items()
            if ranks is None or here in ranks}
    threads = [threading.Thread(target=run, args=one) for one in mine.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
    for name, ranks in mine.items():
        wanted = tuple(sorted(ranks if ranks is not None else range(nodes)))
        assert groups[name] == (wanted, wanted.index(here)), (name, groups[name])
    other = (here + 1) % nodes
    for ranks, text in (([other], 'is not one of the members'), ([here, here], 'is twice in the list'),
                        ([here, nodes], 'is not in this torus')):
        assert raises(TorusError, Group, members=ranks, text=text).code == ErrorCode.USAGE
    raises(ValueError, Group, members=[], text='at least one')
    raises(TypeError, Group, members=['0'])
    assert raises(TorusError, Group, members=[here], on_failure='shrink', text='exclude').code == ErrorCode.USAGE
    with Group('here%d' % here, members=[here]) as g:
        assert raises(TorusError, g.part, 0, text='has no parts').code == ErrorCode.REFUSED
        assert raises(TorusError, g.shrink, text='cannot be shrunk').code == ErrorCode.USAGE
        assert g.size == 1 and g.allreduce(3) == 3


def alltoall():
    with Group() as g:
        for wrap in (np.array, registered(g)):
            out = wrap([block(g.rank, j) for j in range(g.size)])
            wanted = np.array([block(i, g.rank) for i in range(g.size)])
            equal(g.alltoall(out), wanted)
            into = wrap(np.zeros_like(wanted))
            assert g.alltoall(out, out=into) is into
            equal(into, wanted)
            equal(g.alltoall(IN_PLACE, out=out.copy()), wanted)
            assert g.alltoall(out, out=out) is out
            equal(out, wanted)
        equal(g.alltoall(np.arange(g.size * 4.0).reshape(4, g.size).T),  # not C-contiguous
              np.tile(np.arange(4.0) * g.size + g.rank, (g.size, 1)))
        equal(g.alltoall(range(g.size)), np.full(g.size, g.rank))
        assert g.alltoall(np.empty((g.size, 0))).shape == (g.size, 0)


def registered(g):
    def wrap(values):
        values = np.asarray(values)
        array = g.array(values.shape, values.dtype)
        assert not array.any() and array.ctypes.data % 4096 == 0
        array[...] = values
        return array
    return wrap


def alltoallv():
    with Group() as g:
        def sent(i, j):
            return np.full((i + 2 * j) % 4, 10 * i + j, dtype=np.uint16)
        blocks = [sent(g.rank, j) for j in range(g.size)]
        counts = [sent(i, g.rank).size for i in range(g.size)]
        for received in g.alltoallv(blocks), g.alltoallv(blocks, counts):
            for i in range(g.size):
                equal(received[i], sent(i, g.rank))


def allgather():
    with Group() as g:
        wanted = np.array([block(i, 0) for i in range(g.size)])
        equal(g.allgather(block(g.rank, 0)), wanted)
        full = g.array(wanted.shape, wanted.dtype)
        full[g.rank] = block(g.rank, 0)
        assert g.allgather(IN_PLACE, out=full) is full
        equal(full, wanted)
        equal(g.allgather(np.float32(g.rank)), np.arange(g.size, dtype=np.float32))
        for received in g.allgatherv(np.full(g.rank, g.rank)), g.allgatherv(np.full(g.rank, g.rank),
                                                                            range(g.size)):
            for i in range(g.size):
                equal(received[i], np.full(i, i))


def gather():
    with Group() as g:
        for root in range(g.size):
            wanted = np.array([block(i, root) for i in range(g.size)])
            for wrap in (np.array, registered(g)):
                mine = wrap(block(g.rank, root))
                out = wrap(np.zeros_like(wanted))
                result = g.gather(mine, root, out=out if g.rank == root else None)
                assert result is (out if g.rank == root else None)
                if g.rank != root:
                    continue
                equal(out, wanted)
            result = g.gather(block(g.rank, root), root)
            assert g.rank == root or result is None
            if g.rank == root:
                equal(result, wanted)
                full = np.zeros_like(wanted)
                full[root] = block(root, root)
                assert g.gather(IN_PLACE, root, out=full) is full
                equal(full, wanted)
            else:
                g.gather(block(g.rank, root), root)
        numbers = g.gather(g.rank + 0.5, g.size - 1)
        assert g.rank < g.size - 1 or (numbers == np.arange(g.size) + 0.5).all()
        large = g.gather(np.full(30000, g.rank), 0)
        assert g.rank > 0 or (large == np.arange(g.size)[:, None]).all()


def scatter():
    with Group() as g:
        for root in range(g.size):
            blocks = np.array([block(root, i) for i in range(g.size)])
            for wrap in (np.array, registered(g)):
                out = wrap(np.zeros_like(blocks[0]))
                assert g.scatter(wrap(blocks) if g.rank == root else None, root, out=out) is out
                equal(out, blocks[g.rank])
            if g.rank == root:
                equal(g.scatter(blocks, root), blocks[root])
                equal(g.scatter(IN_PLACE, root, out=blocks), blocks[root])
                equal(blocks, np.array([block(root, i) for i in range(g.size)]))
            else:
                for _ in range(2):
                    g.scatter(root=root, out=out)
                    equal(out, blocks[g.rank])
            uneven = [np.full(i, root + i) for i in range(g.size)]
            lists = g.gatherv(uneven[g.rank], root)
            assert (lists is None) == (g.rank != root)
            for i in range(g.size if g.rank == root else 0):
                equal(lists[i], uneven[i])
            counts = list(range(g.size)) if g.rank == root else None
            lists = g.start_gatherv(uneven[g.rank], root, counts).wait()
            assert (lists is None) == (g.rank != root)
            if g.rank == root:
                equal(np.concatenate(lists), np.concatenate(uneven))
                equal(g.scatterv(uneven, root), uneven[root])
            else:
                equal(g.scatterv(root=root, out=np.zeros_like(uneven[g.rank])), uneven[g.rank])
        large = np.zeros(30000, int)
        g.scatter(np.full((g.size, 30000), np.arange(g.size)[:, None]) if g.rank == 0 else None, out=large)
        assert (large == g.rank).all()


def messages():
    with Group() as g:
        after, before = (g.rank + 1) % g.size, (g.rank - 1) % g.size
        nothing = g.start_send(np.zeros(0), after)
        equal(g.recv(np.zeros(0), before), np.zeros(0))
        nothing.wait()
        for size in (1, 30000):
            for wrap in (np.array, registered(g)):
                out, other = wrap(np.zeros(size)), wrap(np.zeros(size, int))
                second = g.start_send(wrap(np.full(size, g.rank)), after, tag=2)
                first = g.start_send(wrap(np.full(size, g.rank + 0.5)), after)
                assert g.recv(out, before) is out
                equal(out, np.full(size, before + 0.5))
                equal(g.start_recv(other, before, tag=2).wait(), np.full(size, before))
                first.wait(), second.wait()
        if g.rank == 0:
            g.send(np.arange(5), g.size - 1)
        elif g.rank == g.size - 1:
            equal(g.recv(np.zeros(5, int), 0), np.arange(5))
        if g.rank == 0:
            given = np.zeros((g.size - 1, 3))
            senders = [g.recv_any(given[i]) for i in range(g.size - 1)]
            assert sorted(senders) == list(range(1, g.size))
            equal(given, np.repeat(np.array(senders, float), 3).reshape(-1, 3))
        else:
            g.send(np.full(3, float(g.rank)), 0)
        row = g.part(1)
        if row.rank == 1:
            assert row.start_recv_any(np.zeros(2, int), 2 ** 55).wait() == 0
        elif row.rank == 0:
            row.send(np.zeros(2, int), 1, 2 ** 55)
        if row.rank == 0:
            row.send(np.array([g.rank]), 1)
        elif row.rank == 1:
            equal(row.recv(np.zeros(1, int), 0), np.array([g.nodes[row.nodes[0]]]))
        raises(ValueError, g.send, np.zeros(1), g.size, text='there is no member')
        raises(ValueError, g.send, np.zeros(1), after, 2 ** 56, text='not a tag')
        raises(TorusError, g.send, np.zeros(1), g.rank, text='cannot send itself')
        raises(TypeError, g.recv, [0], after, text='list')


def broadcast():
    with Group() as g:
        for root in range(g.size):
            array = np.full(5, g.rank, dtype='>i4')  # of any type
            assert g.broadcast(array, root) is array
            equal(array, np.full(5, root, dtype='>i4'))
            whole = np.full((4, 6), g.rank)
            every_second = whole[::2, ::3]
            assert g.broadcast(every_second, root) is every_second
            wanted = np.full((4, 6), g.rank)
            wanted[::2, ::3] = root
            equal(whole, wanted)
            turned = np.full((3, 2), g.rank).T
            equal(g.broadcast(turned, root), np.full((2, 3), root))
            equal(turned, np.full((2, 3), root))
            told = [g.rank, g.rank + 1]
            equal(g.broadcast(told, root), np.array([root, root + 1]))
            assert told == [g.rank, g.rank + 1]  # a list is not filled
            number = g.broadcast(g.rank + 0.5, root)
            assert number == root + 0.5 and isinstance(number, np.float64)
            equal(g.broadcast(np.array(g.rank), root), np.array(root))
            own = np.arange(4)
            own.flags.writeable = g.rank != root  # the root's array is only read
            equal(g.broadcast(own, root), np.arange(4))


def reductions():
    ways = {'sum': np.add, 'product': np.multiply, 'min': np.minimum, 'max': np.maximum,
            'and': np.bitwise_and, 'or': np.bitwise_or, 'xor': np.bitwise_xor, 'avg': np.add}
    with Group() as g:
        for dtype in map(np.dtype, TYPES):
            for op, way in ways.items():
                if dtype.kind in {'and': 'fc', 'or': 'fc', 'xor': 'fc', 'min': 'c', 'max': 'c', 'avg': 'iub'}.get(op, ''):
                    raises(TypeError, g.allreduce, np.zeros(3, dtype), op,
                           text=f'operator {op} is not defined for elements of type {dtype}')
                    continue
                def vector(i):
                    numbers = (np.arange(7 * g.size) * (i + 3)) % 11
                    if dtype == np.float16 and op == 'product':
                        numbers %= 3  # small enough
                    if dtype.kind == 'b':
                        return numbers % 3 == 0
                    return (numbers + 1).astype(dtype) * (dtype.type(1 + 1j) if dtype.kind == 'c' else dtype.type(1))
                wanted = way.reduce([vector(i) for i in range(g.size)], dtype=dtype)
                if op == 'avg':
                    wanted = wanted / dtype.type(g.size)
                equal(g.allreduce(vector(g.rank), op), wanted)
                both = vector(g.rank)
                assert g.allreduce(both, op, out=both) is both
                equal(both, wanted)
                equal(g.reduce_scatter(vector(g.rank), op), np.array_split(wanted, g.size)[g.rank])
                root = len(op) % g.size
                only = g.reduce(vector(g.rank), op, root)
                assert only is None if g.rank != root else np.array_equal(only, wanted)
                both = vector(g.rank)
                assert g.reduce(IN_PLACE, op, root, out=both) is (both if g.rank == root else None)
                equal(both, wanted if g.rank == root else vector(g.rank))
        total = g.reduce(1.5, root=g.size - 1)
        assert total is None if g.rank < g.size - 1 else total == 1.5 * g.size
        total = g.allreduce(1.5)
        assert total == 1.5 * g.size and isinstance(total, np.float64)
        rows = np.full((g.size + 1, 4), g.rank)
        equal(g.reduce_scatter(rows), np.full((2 if g.rank == 0 else 1, 4), sum(range(g.size))))
        counts = [0] * (g.size - 1) + [g.size + 1]
        assert g.reduce_scatter(rows, counts=counts).shape == (counts[g.rank], 4)
        raises(TypeError, g.allreduce, np.zeros(3, 'M8[s]'), text='cannot be reduced')
        raises(TypeError, g.allreduce, np.zeros(3, '>f8'), text='>f8 cannot be reduced')
        raises(ValueError, g.allreduce, np.zeros(3), 'plus', text='"plus" is not an operator')
        g.barrier()


def parts():
    with Group() as g:
        row, column = g.part(1), g.part(0)
        sizes = [int(size) for size in g.dims.split('x')]
        assert (column.size, row.size) == tuple(sizes)
        assert row.nodes == tuple(g.rank // sizes[1] * sizes[1] + j for j in range(sizes[1]))
        assert column.nodes == tuple(g.rank % sizes[1] + i * sizes[1] for i in range(sizes[0]))
        equal(row.allgather(g.rank), np.array(row.nodes))
        assert column.allreduce(g.rank) == sum(column.nodes)
        assert g.allreduce(1) == g.size
        raises(ValueError, g.part, -1)
        row.close()
        assert column.allreduce(1) == sizes[0]
        raises(TorusError, row.barrier)


def without_waiting():
    with Group() as g:
        calls = [g.start_allreduce(np.full(4, k + g.rank)) for k in range(5)]
        calls.append(g.start_barrier())
        calls.append(g.start_alltoall(np.full((g.size, 9), g.rank)))
        equal(calls[6].wait(), np.tile(np.arange(g.size)[:, None], 9))
        assert calls[5].wait() is None and calls[5].done()
        for k in reversed(range(5)):
            equal(calls[k].wait(), np.full(4, k * g.size + sum(range(g.size))))
            equal(calls[k].wait(), calls[k].wait())  # any number of times
        call = g.start_broadcast(np.full(3, g.rank))
        poll = select.poll()
        poll.register(g, select.POLLIN)
        while not call.done():
            poll.poll()
        equal(call.wait(), np.zeros(3, int))
        # The call itself keeps the arrays alive until it has ended.
        call = g.start_alltoall(registered(g)(np.full((g.size, 100), g.rank)))
        gc.collect()
        equal(call.wait()[:, 0], np.arange(g.size))


def memory():
    with Group() as g:
        array = g.array((4, 5), np.int16)
        array[...] = g.rank
        assert g.array(0).size == 0 and g.array((3, 0)).shape == (3, 0)
        raises(TypeError, g.array, 3, object)
        view = array[1:3, ::2]
    del array
    gc.collect()
    equal(view, np.full((2, 3), g.rank, np.int16))  # lives longer than the group
    raises(TorusError, g.array, 3, text='closed')
    del view
    with Group() as g:  # the same name again
        g.barrier()


def misuse():
    with Group() as g:
        size = g.size
        raises(ValueError, g.alltoall, np.zeros(size + 1), text='the number of members')
        raises(ValueError, g.alltoall, 3)
        raises(ValueError, g.alltoall, np.zeros(size), np.zeros(size + 1), text='shape')
        raises(ValueError, g.alltoall, np.zeros(size), np.zeros(size, int), text='int64')
        raises(TypeError, g.alltoall, np.zeros(size), [0] * size, text='list')
        raises(ValueError, g.alltoall, IN_PLACE, text='IN_PLACE')
        raises(ValueError, g.allreduce, np.zeros(3), out=np.zeros(6)[::2], text='C-contiguous')
        read_only = np.zeros(3)
        read_only.flags.writeable = False
        raises(ValueError, g.broadcast, read_only, (g.rank + 1) % size, text='writable')
        both = np.zeros(4)
        raises(ValueError, g.allreduce, both[:3], out=both[1:], text='overlap')
        raises(TypeError, g.allgather, np.array([None]), text='Python objects')
        raises(ValueError, g.broadcast, np.zeros(1), size, text='there is no member')
        raises(ValueError, g.broadcast, np.zeros(1), -1)
        raises(ValueError, g.reduce, np.zeros(1), 'sum', size, text='there is no member')
        raises(ValueError, g.gather, np.zeros(1), size, text='there is no member')
        raises((TypeError, ValueError), g.gather, IN_PLACE)
        raises(ValueError, g.scatter, np.zeros((size, 1)), size, np.zeros(1), text='there is no member')
        raises(ValueError, g.scatter, text='needs an array' if g.rank == 0 else 'only the root')
        raises(ValueError, g.scatterv, text='needs the blocks' if g.rank == 0 else 'only the root')
        raises(ValueError, g.reduce, np.zeros(1), 'plus', text='"plus" is not an operator')
        raises(ValueError, g.reduce, IN_PLACE, text='IN_PLACE')
        if g.rank == 0:
            raises(ValueError, g.reduce, np.zeros(2), out=np.zeros(3), text='shape')
        raises(ValueError, g.alltoallv, [np.zeros(1)] * (size + 1), text='members')
        raises(ValueError, g.alltoallv, [np.zeros(2, 'V0')] * size, text='no bytes')
        raises(ValueError, g.start_alltoallv, [np.zeros(2, 'V0')] * size, [2] * size, text='no bytes')
        raises(ValueError, g.allgatherv, np.zeros(1), [2] * size, text='counts')
        raises(ValueError, g.reduce_scatter, np.zeros(3), counts=[1] * (size + 3))
        raises(ValueError, g.reduce_scatter, 3.0)
        negative = [size + 1, -1] + [0] * (size - 2)
        for call in g.allgatherv, g.reduce_scatter:
            raises(ValueError, call, np.zeros(size), counts=negative, text='-1 is not a number')
        raises(ValueError, g.alltoallv, [np.zeros(1)] * size, negative, text='-1 is not a number')
        raises(ValueError, g.array, -3, text='negative')
        raises(ValueError, g.array, (2 ** 32 + 1, 2 ** 32), text='is too large: at most 9223372036854775807 bytes')
        raises(ValueError, g.allgatherv, np.zeros(1), [2 ** 64] * size, text='elements are too many: at most')
        raises(ValueError, g.set_timeout, 0)
        raises(ValueError, g.set_timeout, -1)
        raises(ValueError, g.set_timeout, float('nan'), text='less than 4294967.296')
        raises(ValueError, g.set_timeout, 2 ** 40, text='less than 4294967.296')
        integers(g)
        assert g.allreduce(1) == size  # none of the refused calls has sent anything
    raises(ValueError, Group, timeout=0)
    raises(ValueError, Group, 'one\0another', text='null')
    e = raises(TorusError, Group, socket='/nonexistent/socket')
    assert e.code == ErrorCode.NO_DAEMON, e.code
    e = raises(TorusError, Group, '')
    assert e.code == ErrorCode.USAGE, e.code


def integers(g):
    """Arguments of other types than integers are refused; the group is not affected."""
    one, size = np.zeros(1), g.size
    for wrong in 1.0, np.float64(0), np.float32(1), True, np.True_, '0', None, 0j, [0], np.zeros(2, int):
        kind = type(wrong).__name__
        raises(TypeError, g.broadcast, one, wrong, text='root must be an integer, not ')
        raises(TypeError, g.broadcast, one, root=wrong, text=f'({kind})')
        raises(TypeError, g.start_broadcast, one, wrong, text='root must be an integer')
        raises(TypeError, g.part, wrong, text='a dimension must be an integer')
        raises(TypeError, g.part, 0, wrong, text=f'({kind})')
        for call in g.allgatherv, g.start_allgatherv, g.reduce_scatter, g.start_reduce_scatter:
            raises(TypeError, call, np.zeros(size), counts=[wrong] * size, text='a count must be an integer')
        for call in g.alltoallv, g.start_alltoallv:
            raises(TypeError, call, [one] * size, [wrong] * size, text='a count must be an integer')
        raises(TypeError, g.array, (3, wrong), text='a size of the shape must be an integer')
        if not np.iterable(wrong):
            raises(TypeError, g.array, wrong, text='a size of the shape must be an integer')
    raises(TypeError, g.allgatherv, one, np.ones(size), text='not 1.0 (float64)')
    for wrong in True, '1', 1j, [1], np.True_:
        raises(TypeError, g.set_timeout, wrong, text='a timeout must be a number of seconds or None')
        raises(TypeError, Group, timeout=wrong, text='a timeout must be a number')
    for right in 0, np.int8(0), np.uint64(0), np.array(0):
        assert g.broadcast(one, right) is one and g.array((right, 2)).shape == (0, 2)
    g.part(np.int8(0)).close()
    for right in 1, np.int32(1):
        equal(g.allgatherv(one, [right] * size)[0], one)
        assert g.array(right).shape == g.array([right]).shape == (1,)
    for seconds in 1000, 1000.5, np.float32(1000), np.int64(1000), None:
        g.set_timeout(seconds)
    g.barrier()


def mismatch():
    """One member calls another operation: all members get an error that says so."""
    g = Group()
    e = raises(TorusError, g.barrier if g.rank == 0 else g.allgather, *([] if g.rank == 0 else [1]))
    again = raises(TorusError, g.barrier)
    assert str(again) == str(e) and again.code == e.code
    g.close()
    raises(TorusError, g.__enter__, text='closed')


def other_data():
    """One member's data has another type, or another shape: all members get an error that says so and names it."""
    with Group() as g:
        size = g.size
    ints, floats = np.arange(size), np.arange(float(size))
    calls = {'alltoall': lambda g, a: g.alltoall(a), 'allgather': lambda g, a: g.allgather(a),
             'broadcast': lambda g, a: g.broadcast(a, 1), 'allreduce': lambda g, a: g.allreduce(a),
             'alltoallv': lambda g, a: g.start_alltoallv([a] * size, [size] * size).wait(),
             'reduce_scatter': lambda g, a: g.reduce_scatter(a)}
    pairs = [(ints, floats, 'float64'), (ints, ints.astype('>i8'), 'another type'),
             (ints.reshape(size, 1), ints, 'different shapes')]
    for name, call in calls.items():
        for usual, other, text in pairs:
            if name == 'alltoallv' and 'shapes' in text or '>' in other.dtype.str and 'reduce' in name:
                continue
            with Group() as g:
                try:  # the root of a broadcast has perhaps sent its data before
                    call(g, other.copy() if g.rank == 1 else usual.copy())
                    assert name == 'broadcast' and g.rank == 1
                except TorusError as e:
                    assert e.code == ErrorCode.USAGE
                e = raises(TorusError, g.barrier)
                assert e.code == ErrorCode.USAGE and name in str(e) and text in str(e), str(e)
                assert re.search(r'members? (\d and )?1\b', str(e)), str(e)


def other_data_passes():
    """As long as not all daemons compare types, members with other data are not noticed."""
    with Group() as g:
        received = g.allgather(np.arange(6) if g.rank == 0 else np.arange(6.0))
        assert received.shape == (g.size, 6) and g.allreduce(1) == g.size


def interrupted_opening():
    """Runs on one node of several."""
    raises(KeyboardInterrupt, Group)


def interrupted_waiting():
    """Members above 0 make a call that member 0 does not make."""
    with Group() as g:
        if g.rank == 0:
            signal.pause()
        raises(KeyboardInterrupt, g.barrier)
    raises(TorusError, g.barrier, text='closed')


if __name__ == '__main__':
    for name in sys.argv[1:]:
        print(name, file=sys.stderr, flush=True)
        globals()[name]()
