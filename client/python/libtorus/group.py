"""Groups: programs on all nodes of a torus."""

import ctypes
import math
import numbers
import os
import select

import numpy as np

from .arrays import (IN_PLACE, IN_PLACE_ADDRESS, MOST_BYTES, address_of, check_output, check_overlap, counted,
                     input_array, integer, is_in_place, offsets, output_array, reduction_of, sizes_array)
from .calls import Call
from .errors import ErrorCode, TorusError
from .handles import Memory, new_group
from .library import CALL, Error, Options, library, raise_error

LONGEST = 2 ** 32 / 1000  # seconds of a timeout: torus.h has milliseconds


def text_bytes(text, what):
    if text is None:
        return None
    text = os.fsencode(text)
    if b'\0' in text:  # where C ends it
        raise ValueError(f'a {what} cannot contain a null character')
    return text


def milliseconds(seconds):
    if seconds is None:
        return 0
    if isinstance(seconds, bool) or not isinstance(seconds, numbers.Real):
        raise TypeError(f'a timeout must be a number of seconds or None, not {seconds!r:.40} '
                        f'({type(seconds).__name__})')
    if not 0 < seconds < LONGEST:
        raise ValueError(f'a timeout of {seconds} seconds is not possible: it is None, or more than 0 and '
                         f'less than {LONGEST}')
    return max(1, round(seconds * 1000))


class Group:
    """Programs on all nodes of a torus. Opening waits until one has opened the group on each of them.

    name       the same on all nodes (default: "default")
    socket     of the daemon, in which %h stands for the host's name (default: $TORUS_SOCKET)
    timeout    seconds for opening, and for every call (default: none)
    checked    blocks travel with digests; the same on all nodes
    on_failure what nodes that are down do to the group until it is open; the same on all nodes:
               'fail' it (the default); 'shrink': they are left out, members are numbered from 0 without
               gaps, and `nodes` says which they are; 'wait': they are waited for within the timeout, as is
               this node's own daemon

    It can be used in a `with` statement, at whose end it is closed. While opening takes longer than a second, it is
    said on standard error which nodes it waits for, if that is a terminal or $TORUS_PROGRESS is 1 (0: never).
    """

    def __init__(self, name=None, *, socket=None, timeout=None, checked=True, on_failure='fail'):
        if on_failure not in ('fail', 'shrink', 'wait'):
            raise ValueError(f"on_failure is 'fail', 'shrink' or 'wait', not {on_failure!r:.40}")
        options = Options(struct_size=ctypes.sizeof(Options), unchecked=not checked,
                          name=text_bytes(name, 'name'), socket=text_bytes(socket, 'socket'),
                          timeout_ms=milliseconds(timeout), shrink=on_failure == 'shrink',
                          wait=on_failure == 'wait')
        self._begin(new_group(library.torus_group_open, options))

    def _begin(self, handle):
        self._handle = handle
        self._calls = set()
        self._poll = select.poll()
        descriptor = library.torus_group_fd(handle.pointer)
        if descriptor >= 0:
            self._poll.register(descriptor, select.POLLIN)
        self._rank = library.torus_group_rank(handle.pointer)
        self._size = library.torus_group_size(handle.pointer)
        self._dims = library.torus_group_dims(handle.pointer).decode()
        self._nodes = tuple(library.torus_group_node(handle.pointer, member)
                            for member in range(self._size))

    def close(self):
        """Closes the group, or the part. If no call is under way, this disturbs no other member; else
        the group fails. Arrays from array() stay valid; the group stays open at the daemon as long as
        there are any, and as long as a part is not closed."""
        if self._calls:
            self._handle.give_up_calls()
        for call in list(self._calls):
            call._give_up()
        self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        state = ', closed' if self._handle is None else ''
        return f'<libtorus.Group: member {self._rank} of {self._size} ({self._dims}){state}>'

    @property
    def rank(self):
        """This member's number."""
        return self._rank

    @property
    def size(self):
        """The number of members."""
        return self._size

    @property
    def dims(self):
        """The torus, or the part of it: "4x8"; a size followed by m does not wrap."""
        return self._dims

    @property
    def nodes(self):
        """The rank in the whole torus of each member."""
        return self._nodes

    def part(self, *dimensions):
        """The group of the members that differ from this one in the given dimensions only: on a 4x8
        torus part(1) is this member's row of 8. All members make this call. Returns a Group, whose
        calls are independent of this one's."""
        mask = 0
        for dimension in dimensions:
            dimension = integer(dimension, 'a dimension')
            if not 0 <= dimension < 32:
                raise ValueError(f'{dimension} is not a dimension')
            mask |= 1 << dimension
        part = Group.__new__(Group)
        part._begin(new_group(library.torus_group_part, self._pointer(), mask,
                               parent=self._handle))
        return part

    def shrink(self):
        """The group of the members that are left when this one has failed because nodes are down. All
        of them make this call. Returns a Group; its `nodes` says which they are. This one is still to be
        closed."""
        self._pointer()
        failed = self._handle  # not to be closed meanwhile, also after Ctrl-C

        def shrink(pointer, error):
            return library.torus_group_shrink(failed.pointer, pointer, error)

        shrunk = Group.__new__(Group)
        shrunk._begin(new_group(shrink))
        return shrunk

    def set_timeout(self, seconds):
        """For calls made from now on; None: none. A call that has not ended by then fails the group."""
        library.torus_group_set_timeout(self._pointer(), milliseconds(seconds))

    def fileno(self):
        """A descriptor for event loops: readable when Call.done() may have become true of a call."""
        return library.torus_group_fd(self._pointer())

    def array(self, shape, dtype=np.float64):
        """An array of zeros in memory that the daemon shares."""
        dtype = np.dtype(dtype)
        if dtype.hasobject:
            raise TypeError('arrays of Python objects cannot be sent')
        if not np.iterable(shape):
            shape = shape,
        shape = tuple(integer(size, 'a size of the shape') for size in shape)
        count = math.prod(shape)
        if count <= 0:
            return np.zeros(shape, dtype)  # which refuses negative dimensions
        if count * dtype.itemsize > MOST_BYTES:
            raise ValueError(f'an array of {count} elements of {dtype} is too large: at most {MOST_BYTES} '
                             'bytes are possible')
        self._pointer()
        memory = Memory(self._handle, count * dtype.itemsize)
        buffer = (ctypes.c_char * (count * dtype.itemsize)).from_address(memory.address)
        buffer.memory = memory  # as long as there are arrays with this buffer
        return np.frombuffer(buffer, dtype).reshape(shape)

    # --- operations ---

    def alltoall(self, send, out=None):
        """Every member's send[j] becomes out[i] of member j, if i is its rank. The first dimension of
        both is the number of members."""
        return self.start_alltoall(send, out).wait()

    def start_alltoall(self, send, out=None):
        if is_in_place(send, out):
            check_output(out)
            self._check_first(out)
            address, kept = IN_PLACE_ADDRESS, None
        else:
            kept = input_array(send)
            self._check_first(kept)
            out = output_array(out, kept.shape, kept.dtype)
            check_overlap(kept, out)
            address = address_of(kept)
        return self._start('alltoall', address, address_of(out), out.nbytes // self._size,
                           result=lambda: out, kept=(kept, out))

    def alltoallv(self, blocks, counts=None):
        """Every member's blocks[j], an array with any number of elements, goes to member j. Returns the
        list of arrays received, of one dimension each. All blocks of all members have one type.

        counts: the number of elements that each member sends here. Without it, members tell each other
        first, which is one more call."""
        if counts is None:
            blocks = self._blocks(blocks)
            counts = self.alltoall(np.array([block.size for block in blocks], np.uint64))
        return self.start_alltoallv(blocks, counts).wait()

    def start_alltoallv(self, blocks, counts):
        blocks = self._blocks(blocks)
        dtype = blocks[0].dtype
        send = np.concatenate([block.reshape(-1) for block in blocks])
        send_bytes = [block.nbytes for block in blocks]
        receive_bytes = [count * dtype.itemsize for count in self._counts(counts)]
        out = np.empty(sum(receive_bytes) // dtype.itemsize, dtype)
        send_at, receive_at = offsets(send_bytes), offsets(receive_bytes)
        lists = [sizes_array(values) for values in (send_bytes, send_at, receive_bytes, receive_at)]
        ends = [at // dtype.itemsize for at in receive_at[1:]]
        return self._start('alltoallv', address_of(send), lists[0], lists[1], address_of(out), lists[2],
                           lists[3], result=lambda: np.split(out, ends), kept=(send, out, lists))

    def allgather(self, send, out=None):
        """Every member's array becomes out[i] of all members, if i is its rank. In place: out[rank] is
        the input."""
        return self.start_allgather(send, out).wait()

    def start_allgather(self, send, out=None):
        if send is IN_PLACE:
            is_in_place(send, out)
            check_output(out)
            self._check_first(out)
            address, kept = IN_PLACE_ADDRESS, None
        else:
            kept = input_array(send)
            out = output_array(out, (self._size, *kept.shape), kept.dtype)
            check_overlap(kept, out)
            address = address_of(kept)
        return self._start('allgather', address, address_of(out), out.nbytes // self._size,
                           result=lambda: out, kept=(kept, out))

    def allgatherv(self, send, counts=None):
        """The same for arrays with different numbers of elements. Returns a list of arrays, of one
        dimension each. counts: the number of elements of each member; without it, members tell each
        other first, which is one more call."""
        send = input_array(send)
        if counts is None:
            counts = self.allgather(np.uint64(send.size))
        return self.start_allgatherv(send, counts).wait()

    def start_allgatherv(self, send, counts):
        send = input_array(send)
        counts = self._counts(counts)
        if counts[self._rank] != send.size:
            raise ValueError(f'the array has {counted(send.size, "element")}, but counts[{self._rank}] is '
                             f'{counts[self._rank]}')
        sizes = [count * send.itemsize for count in counts]
        out = np.empty(sum(counts), send.dtype)
        lists = [sizes_array(sizes), sizes_array(offsets(sizes))]
        return self._start('allgatherv', address_of(send), address_of(out), *lists,
                           result=lambda: np.split(out, offsets(counts)[1:]),
                           kept=(send, out, lists))

    def broadcast(self, array, root=0):
        """The array of member `root` is copied to all others' arrays, of the same size. Returns it."""
        return self.start_broadcast(array, root).wait()

    def start_broadcast(self, array, root=0):
        check_output(array, 'the array')
        root = self._checked_root(root)
        return self._start('broadcast', address_of(array), array.nbytes, root, result=lambda: array,
                           kept=array)

    def barrier(self):
        """Returns when all members have called it."""
        self.start_barrier().wait()

    def start_barrier(self):
        return self._start('barrier', result=lambda: None, kept=None)

    def allreduce(self, send, op='sum', out=None):
        """Every element of the result is the sum (or the product, min, max, and, or, xor) of this
        element of all members' arrays, with the same bits on all members. Numbers are possible, too."""
        return self.start_allreduce(send, op, out).wait()

    def start_allreduce(self, send, op='sum', out=None):
        if is_in_place(send, out):
            check_output(out)
            address, kept = IN_PLACE_ADDRESS, None
        else:
            kept = input_array(send)
            out = output_array(out, kept.shape, kept.dtype)
            check_overlap(kept, out)
            address = address_of(kept)
        return self._start('allreduce', address, address_of(out), out.size, *reduction_of(out.dtype, op),
                           result=lambda: out if out.shape else out[()], kept=(kept, out))

    def reduce(self, send, op='sum', root=0, out=None):
        """The same, but only member `root` gets the result; the others get None. In place: of the others'
        `out` only the contents are used, as their input."""
        return self.start_reduce(send, op, root, out).wait()

    def start_reduce(self, send, op='sum', root=0, out=None):
        root = self._checked_root(root)
        in_place = is_in_place(send, out)
        if in_place:
            check_output(out)
        kept = out if in_place else input_array(send)
        reduction = *reduction_of(kept.dtype, op), root
        if self._rank != root:
            return self._start('reduce', address_of(kept), None, kept.size, *reduction,
                               result=lambda: None, kept=kept)
        if not in_place:
            out = output_array(out, kept.shape, kept.dtype)
            check_overlap(kept, out)
        address = IN_PLACE_ADDRESS if in_place else address_of(kept)
        return self._start('reduce', address, address_of(out), out.size, *reduction,
                           result=lambda: out if out.shape else out[()], kept=(kept, out))

    def reduce_scatter(self, send, op='sum', counts=None, out=None):
        """The members' arrays are combined as by allreduce(), and each member receives a part of the
        result: counts[i] rows (along the first dimension) go to member i. Without counts they are
        divided as by numpy.array_split()."""
        return self.start_reduce_scatter(send, op, counts, out).wait()

    def start_reduce_scatter(self, send, op='sum', counts=None, out=None):
        send = input_array(send)
        if send.ndim == 0:
            raise ValueError('a number cannot be divided among the members')
        if counts is None:
            each, more = divmod(send.shape[0], self._size)
            counts = [each + (member < more) for member in range(self._size)]
        counts = self._counts(counts)
        if sum(counts) != send.shape[0]:
            raise ValueError(f'counts are {counted(sum(counts), "row")} in all, but the array has '
                             f'{send.shape[0]}')
        row = int(np.prod(send.shape[1:], dtype=np.int64))
        out = output_array(out, (counts[self._rank], *send.shape[1:]), send.dtype)
        check_overlap(send, out)
        elements = sizes_array([count * row for count in counts])
        return self._start('reduce_scatter', address_of(send), address_of(out), elements,
                           *reduction_of(send.dtype, op), result=lambda: out,
                           kept=(send, out, elements))

    # --- for these ---

    def _pointer(self):
        if self._handle is None:
            raise TorusError('the group has been closed', ErrorCode.USAGE)
        return self._handle.pointer

    def _start(self, name, *arguments, result, kept):
        pointer, error = CALL(), Error()
        if getattr(library, f'torus_start_{name}')(self._pointer(), *arguments, pointer, error) != 0:
            raise_error(error)
        return Call(self, pointer, result, kept)

    def _checked_root(self, root):
        root = integer(root, 'root')
        if not 0 <= root < self._size:
            raise ValueError(f'{root} is not a member: these are 0 to {self._size - 1}')
        return root

    def _check_first(self, array):
        if array.ndim == 0 or array.shape[0] != self._size:
            raise ValueError(f'the array has shape {array.shape}, but its first dimension must be the '
                             f'number of members, {self._size}')

    def _one_each(self, values, what):
        values = list(values)
        if len(values) != self._size:
            raise ValueError(f'{counted(len(values), what)} for {counted(self._size, "member")}')
        return values

    def _counts(self, counts):
        counts = [integer(count, 'a count') for count in self._one_each(counts, 'count')]
        if min(counts) < 0:
            raise ValueError(f'{min(counts)} is not a number of elements')
        if sum(counts) > MOST_BYTES:
            raise ValueError(f'{sum(counts)} elements are too many: at most {MOST_BYTES} are possible')
        return counts

    def _blocks(self, blocks):
        blocks = self._one_each((input_array(block) for block in blocks), 'block')
        if len({block.dtype for block in blocks}) > 1:
            raise TypeError('the blocks have different types')
        if blocks[0].dtype.itemsize == 0:
            raise ValueError(f'elements of type {blocks[0].dtype} have no bytes')
        return blocks
