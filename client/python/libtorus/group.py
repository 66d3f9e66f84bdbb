"""Groups: programs on all nodes of a torus."""

from __future__ import annotations

import ctypes
import math
import numbers
import os
import select
from typing import Any, Iterable, Optional, Sequence, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .arrays import (IN_PLACE, IN_PLACE_ADDRESS, MOST_BYTES, InPlace, address_of, check_output, check_overlap, counted,
                     input_array, integer, is_in_place, offsets, output_array, reduction_of, sizes_array, type_name)
from .calls import Call
from .errors import ErrorCode, TorusError
from .handles import Handle, Memory, new_group
from .library import CALL, Error, Options, library, raise_error

Array = NDArray[Any]
Input = Union[ArrayLike, InPlace]
Name = Union[str, bytes]
Integer = Union[int, np.integer[Any]]
Counts = Union[Sequence[Integer], NDArray[np.integer[Any]]]

LONGEST = 2 ** 32 / 1000  # timeouts are below this many seconds: the library counts milliseconds in 32 bits


def text_bytes(text: Union[Name, os.PathLike[str], None], what: str) -> Optional[bytes]:
    if text is None:
        return None
    text = os.fsencode(text)
    if b'\0' in text:  # C would cut the text here
        raise ValueError(f'a {what} cannot contain a null character')
    return text


def milliseconds(seconds: Optional[float]) -> int:
    if seconds is None:
        return 0
    if isinstance(seconds, bool) or not isinstance(seconds, numbers.Real):
        raise TypeError(f'a timeout must be a number of seconds or None, not {seconds!r:.40} '
                        f'({type(seconds).__name__})')
    if not 0 < seconds < LONGEST:
        raise ValueError(f'a timeout of {seconds} seconds is not possible: it must be None, or more than 0 '
                         f'and less than {LONGEST}')
    return max(1, round(seconds * 1000))


class Group:
    """A group of programs, one on each node of a torus, that call collective operations.

    The constructor opens the group, and waits until a program on every node has opened it.

    name       name of the group, the same on all nodes (default: "default")
    socket     path of the daemon's socket; %h stands for the host's name (default: $TORUS_SOCKET)
    timeout    seconds for opening the group, and for every call (default: no limit)
    checked    whether blocks are sent with digests; the same on all nodes
    on_failure what to do if nodes are down when the group is opened; the same on all nodes:
               'fail'    opening fails (the default)
               'shrink'  the group leaves out these nodes; members are numbered from 0 without gaps, and
                         `nodes` lists the nodes of the members
               'wait'    opening waits for these nodes within the timeout, and also for the daemon of
                         this node

    memory_timeout
               seconds for which opening waits for memory of daemons that other groups have reserved; the same on all
               nodes (default: as long as `timeout`)

    members    the nodes that are members, as ranks in any order; the same on all of them, not with 'shrink' (default:
               all nodes). Members are numbered from 0 in the order of their nodes, which `nodes` lists. Other nodes
               need no program. The groups that a node is in have different names.

    A `with` statement closes the group at its end. If opening takes longer than a second, the nodes that it waits
    for are written to standard error if that is a terminal ($TORUS_PROGRESS=1: always, 0: never).
    """

    def __init__(self, name: Optional[Name] = None, *, socket: Union[Name, os.PathLike[str], None] = None,
                 timeout: Optional[float] = None, checked: bool = True, on_failure: str = 'fail',
                 members: Optional[Iterable[Integer]] = None, memory_timeout: Optional[float] = None) -> None:
        if on_failure not in ('fail', 'shrink', 'wait'):
            raise ValueError(f"on_failure is 'fail', 'shrink' or 'wait', not {on_failure!r:.40}")
        options = Options(struct_size=ctypes.sizeof(Options), unchecked=not checked,
                          name=text_bytes(name, 'name'), socket=text_bytes(socket, 'socket'),
                          timeout_ms=milliseconds(timeout), shrink=on_failure == 'shrink',
                          wait=on_failure == 'wait', memory_timeout_ms=milliseconds(memory_timeout))
        if members is not None:
            ranks = [integer(rank, 'a member') for rank in members]
            if not ranks or not all(0 <= rank < 2 ** 32 for rank in ranks):
                raise ValueError(f'members are ranks of nodes, at least one, not {ranks!r:.40}')
            options.members = (ctypes.c_uint32 * len(ranks))(*ranks)
            options.member_count = len(ranks)
        self._begin(new_group(library.torus_group_open, options))

    def _begin(self, handle: Handle) -> None:
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

    def close(self) -> None:
        """Closes the group or the part. If a call is under way, the group fails; otherwise closing does not disturb
        other members. Arrays from array() stay valid. At the daemon, the group stays open as long as such an array
        exists or a part is open."""
        if self._calls:
            self._handle.give_up_calls()
        for call in list(self._calls):
            call._give_up()
        self._handle = None

    def __enter__(self) -> Group:
        self._pointer()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ', closed' if self._handle is None else ''
        return f'<libtorus.Group: member {self._rank} of {self._size} ({self._dims}){state}>'

    @property
    def rank(self) -> int:
        """The number of this member."""
        return self._rank

    @property
    def size(self) -> int:
        """The number of members."""
        return self._size

    @property
    def dims(self) -> str:
        """The dimensions of the torus, or of the part, as text: "4x8". A dimension followed by m does not wrap."""
        return self._dims

    @property
    def nodes(self) -> tuple[int, ...]:
        """The node of each member, as its rank in the whole torus."""
        return self._nodes

    def part(self, *dimensions: Integer) -> Group:
        """Returns the group of the members that differ from this member only in the given dimensions: on a 4x8
        torus, part(1) is the row of 8 members that this member is in. All members make this call. The calls of the
        part are independent of the calls of the whole group."""
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

    def shrink(self) -> Group:
        """Returns a new group of the remaining members after this group has failed because nodes are down. All
        remaining members make this call. `nodes` of the new group lists their nodes. The caller still closes this
        group."""
        self._pointer()
        failed = self._handle  # keeps the handle open during the call, also after Ctrl-C

        def shrink(pointer, error):
            return library.torus_group_shrink(failed.pointer, pointer, error)

        shrunk = Group.__new__(Group)
        shrunk._begin(new_group(shrink))
        return shrunk

    def set_timeout(self, seconds: Optional[float]) -> None:
        """Sets the timeout of calls made from now on; None: no limit. A call that has not ended in time fails the
        group."""
        library.torus_group_set_timeout(self._pointer(), milliseconds(seconds))

    def fileno(self) -> int:
        """Returns a descriptor for event loops. It is readable when Call.done() may have become true for a call."""
        return library.torus_group_fd(self._pointer())

    def array(self, shape: Union[Integer, Sequence[Integer]], dtype: DTypeLike = np.float64) -> Array:
        """Returns an array of zeros in memory that this process shares with the daemon."""
        dtype = np.dtype(dtype)
        if dtype.hasobject:
            raise TypeError('arrays of Python objects cannot be sent')
        if not np.iterable(shape):
            shape = shape,
        shape = tuple(integer(size, 'a size of the shape') for size in shape)
        count = math.prod(shape)
        if count <= 0:
            return np.zeros(shape, dtype)  # raises ValueError for negative sizes
        if count * dtype.itemsize > MOST_BYTES:
            raise ValueError(f'an array of {count} elements of {dtype} is too large: at most {MOST_BYTES} '
                             'bytes are possible')
        self._pointer()
        memory = Memory(self._handle, count * dtype.itemsize)
        buffer = (ctypes.c_char * (count * dtype.itemsize)).from_address(memory.address)
        buffer.memory = memory  # keeps the memory alive as long as an array uses this buffer
        return np.frombuffer(buffer, dtype).reshape(shape)

    # --- operations ---

    def alltoall(self, send: Input, out: Optional[Array] = None) -> Array:
        """Sends send[j] to member j for every j, where it becomes out[i] if this is member i. The first dimension of
        both arrays is the number of members."""
        return self.start_alltoall(send, out).wait()

    def start_alltoall(self, send: Input, out: Optional[Array] = None) -> Call[Array]:
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
                           result=lambda: out, kept=(kept, out), dtype=out.dtype, shape=out.shape)

    def alltoallv(self, blocks: Sequence[ArrayLike], counts: Optional[Counts] = None) -> list[Array]:
        """Sends blocks[j], an array with any number of elements, to member j for every j. Returns the list of
        one-dimensional arrays received from the members. All blocks of all members have the same type.

        counts: the number of elements that each member sends to this one. Without it, an additional call exchanges
        the counts first."""
        if counts is None:
            blocks = self._blocks(blocks)
            counts = self.alltoall(np.array([block.size for block in blocks], np.uint64))
        return self.start_alltoallv(blocks, counts).wait()

    def start_alltoallv(self, blocks: Sequence[ArrayLike], counts: Counts) -> Call[list[Array]]:
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
                           lists[3], result=lambda: np.split(out, ends), kept=(send, out, lists), dtype=dtype)

    def allgather(self, send: Input, out: Optional[Array] = None) -> Array:
        """Sends this member's array to all members: the array of member i becomes out[i]. In place: out[rank] is the
        input."""
        return self.start_allgather(send, out).wait()

    def start_allgather(self, send: Input, out: Optional[Array] = None) -> Call[Array]:
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
                           result=lambda: out, kept=(kept, out), dtype=out.dtype, shape=out.shape[1:])

    def allgatherv(self, send: ArrayLike, counts: Optional[Counts] = None) -> list[Array]:
        """As allgather(), for arrays with different numbers of elements. Returns the list of one-dimensional arrays
        of all members.

        counts: the number of elements of each member. Without it, an additional call exchanges the counts first."""
        send = input_array(send)
        if counts is None:
            counts = self.allgather(np.uint64(send.size))
        return self.start_allgatherv(send, counts).wait()

    def start_allgatherv(self, send: ArrayLike, counts: Counts) -> Call[list[Array]]:
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
                           kept=(send, out, lists), dtype=send.dtype)

    def gather(self, send: Input, root: Integer = 0, out: Optional[Array] = None) -> Optional[Array]:
        """As allgather(), but only member `root` gets the arrays; the other members get None. In place, at the root:
        out[rank] is the input."""
        return self.start_gather(send, root, out).wait()

    def start_gather(self, send: Input, root: Integer = 0, out: Optional[Array] = None) -> Call[Optional[Array]]:
        root = self._checked_root(root)
        if self._rank == root and is_in_place(send, out):
            check_output(out)
            self._check_first(out)
            address, kept, block = IN_PLACE_ADDRESS, None, out[root]
        else:
            block = kept = input_array(send)
            address = address_of(kept)
            if self._rank == root:
                out = output_array(out, (self._size, *kept.shape), kept.dtype)
                check_overlap(kept, out)
        if self._rank != root:
            out = None
        return self._start('gather', address, None if out is None else address_of(out), block.nbytes, root,
                           result=lambda: out, kept=(kept, out), dtype=block.dtype, shape=block.shape)

    def gatherv(self, send: ArrayLike, root: Integer = 0, counts: Optional[Counts] = None) -> Optional[list[Array]]:
        """As gather(), for arrays with different numbers of elements. At the root, returns the list of one-dimensional
        arrays of all members.

        counts: the number of elements of each member, used at the root only. If the root has none, no member may have
        any: an additional call gathers the counts first."""
        send = input_array(send)
        if counts is None:
            counts = self.gather(np.uint64(send.size), root)
        return self.start_gatherv(send, root, counts).wait()

    def start_gatherv(self, send: ArrayLike, root: Integer = 0,
                      counts: Optional[Counts] = None) -> Call[Optional[list[Array]]]:
        root, send = self._checked_root(root), input_array(send)
        if self._rank != root:
            return self._start('gatherv', address_of(send), send.nbytes, None, None, None, root,
                               result=lambda: None, kept=send, dtype=send.dtype)
        if counts is None:
            raise ValueError('the root of a gather needs the numbers of elements of all members')
        counts = self._counts(counts)
        if counts[root] != send.size:
            raise ValueError(f'the array has {counted(send.size, "element")}, but counts[{root}] is {counts[root]}')
        sizes = [count * send.itemsize for count in counts]
        out = np.empty(sum(counts), send.dtype)
        lists = [sizes_array(sizes), sizes_array(offsets(sizes))]
        return self._start('gatherv', address_of(send), send.nbytes, address_of(out), *lists, root,
                           result=lambda: np.split(out, offsets(counts)[1:]), kept=(send, out, lists), dtype=send.dtype)

    def scatter(self, send: Optional[Input] = None, root: Integer = 0, out: Optional[Array] = None) -> Array:
        """Sends send[i] of member `root` to every member i, and returns the array that this member has received. Only
        the root gives `send`, whose first dimension is the number of members; the others must give `out`, which tells
        type and shape. In place, at the root: out[i] is sent to member i, and the result is out[rank]."""
        return self.start_scatter(send, root, out).wait()

    def start_scatter(self, send: Optional[Input] = None, root: Integer = 0,
                      out: Optional[Array] = None) -> Call[Array]:
        root = self._checked_root(root)
        if self._rank != root:
            if out is None:
                raise ValueError('only the root of a scatter can do without out')
            check_output(out)
            address, kept, block = None, None, out
        elif is_in_place(send, out):
            check_output(out)
            self._check_first(out)
            address, kept, block = IN_PLACE_ADDRESS, None, out[root]
        else:
            if send is None:
                raise ValueError('the root of a scatter needs an array with the blocks of all members')
            kept = input_array(send)
            self._check_first(kept)
            block = out = output_array(out, kept.shape[1:], kept.dtype)
            check_overlap(kept, out)
            address = address_of(kept)
        return self._start('scatter', address, address_of(out), block.nbytes, root, result=lambda: block,
                           kept=(kept, out), dtype=block.dtype, shape=block.shape)

    def scatterv(self, blocks: Optional[Sequence[ArrayLike]] = None, root: Integer = 0,
                 out: Optional[Array] = None) -> Array:
        """Sends blocks[i] of member `root`, an array with any number of elements, to every member i, and returns `out`.
        Only the root gives `blocks`. `out` has as many elements of the same type as this member receives; the root can
        do without, and then gets a new one-dimensional array."""
        return self.start_scatterv(blocks, root, out).wait()

    def start_scatterv(self, blocks: Optional[Sequence[ArrayLike]] = None, root: Integer = 0,
                       out: Optional[Array] = None) -> Call[Array]:
        root = self._checked_root(root)
        if self._rank != root:
            if out is None:
                raise ValueError('only the root of a scatter can do without out')
            check_output(out)
            return self._start('scatterv', None, None, None, address_of(out), out.nbytes, root,
                               result=lambda: out, kept=out, dtype=out.dtype)
        if blocks is None:
            raise ValueError('the root of a scatter needs the blocks of all members')
        blocks = self._blocks(blocks)
        out = output_array(out, blocks[root].shape if out is not None else (blocks[root].size,), blocks[root].dtype)
        send = np.concatenate([block.reshape(-1) for block in blocks])
        sizes = [block.nbytes for block in blocks]
        lists = [sizes_array(sizes), sizes_array(offsets(sizes))]
        return self._start('scatterv', address_of(send), *lists, address_of(out), out.nbytes, root,
                           result=lambda: out, kept=(send, out, lists), dtype=send.dtype)

    def broadcast(self, array: ArrayLike, root: Integer = 0) -> Any:
        """Copies the array of member `root` into the arrays of all other members, which have the same type and shape.
        Returns the array. For a number or a list, which cannot be filled, the result is a number or a new array."""
        return self.start_broadcast(array, root).wait()

    def start_broadcast(self, array: ArrayLike, root: Integer = 0) -> Call[Any]:
        root = self._checked_root(root)
        fills = isinstance(array, np.ndarray)
        if fills and self._rank != root and not array.flags.writeable:
            raise ValueError('the array must be writable')
        buffer = input_array(array) if fills else input_array(np.array(array))

        def result():
            if not fills:
                return buffer if buffer.shape else buffer[()]
            if buffer is not array and self._rank != root:
                array[...] = buffer
            return array

        return self._start('broadcast', address_of(buffer), buffer.nbytes, root, result=result,
                           kept=(array, buffer), dtype=buffer.dtype, shape=buffer.shape)

    def barrier(self) -> None:
        """Returns when all members have made this call."""
        self.start_barrier().wait()

    def start_barrier(self) -> Call[None]:
        return self._start('barrier', result=lambda: None, kept=None)

    def allreduce(self, send: Input, op: str = 'sum', out: Optional[Array] = None) -> Any:
        """Combines the arrays of all members element by element: by sum, product, min, max, and, or, xor, or avg, the
        sum divided by the number of members. The result has the same bits on all members. `send` may also be a
        number. Complex numbers have sum, product and avg only; and, or, xor are for integers and bool, and avg is not
        for these."""
        return self.start_allreduce(send, op, out).wait()

    def start_allreduce(self, send: Input, op: str = 'sum', out: Optional[Array] = None) -> Call[Any]:
        if is_in_place(send, out):
            check_output(out)
            address, kept = IN_PLACE_ADDRESS, None
        else:
            kept = input_array(send)
            out = output_array(out, kept.shape, kept.dtype)
            check_overlap(kept, out)
            address = address_of(kept)
        return self._start('allreduce', address, address_of(out), out.size, *reduction_of(out.dtype, op),
                           result=lambda: out if out.shape else out[()], kept=(kept, out), dtype=out.dtype,
                           shape=out.shape)

    def reduce(self, send: Input, op: str = 'sum', root: Integer = 0, out: Optional[Array] = None) -> Any:
        """As allreduce(), but only member `root` gets the result; the other members get None. In place: the other
        members' `out` is only read, as their input."""
        return self.start_reduce(send, op, root, out).wait()

    def start_reduce(self, send: Input, op: str = 'sum', root: Integer = 0, out: Optional[Array] = None) -> Call[Any]:
        root = self._checked_root(root)
        in_place = is_in_place(send, out)
        if in_place:
            check_output(out)
        kept = out if in_place else input_array(send)
        reduction = *reduction_of(kept.dtype, op), root
        if self._rank != root:
            return self._start('reduce', address_of(kept), None, kept.size, *reduction,
                               result=lambda: None, kept=kept, dtype=kept.dtype, shape=kept.shape)
        if not in_place:
            out = output_array(out, kept.shape, kept.dtype)
            check_overlap(kept, out)
        address = IN_PLACE_ADDRESS if in_place else address_of(kept)
        return self._start('reduce', address, address_of(out), out.size, *reduction,
                           result=lambda: out if out.shape else out[()], kept=(kept, out), dtype=out.dtype,
                           shape=out.shape)

    def reduce_scatter(self, send: ArrayLike, op: str = 'sum', counts: Optional[Counts] = None,
                       out: Optional[Array] = None) -> Array:
        """Combines the arrays as allreduce() does, and divides the result among the members: member i receives
        counts[i] rows (along the first dimension). Without counts, the rows are divided as by
        numpy.array_split()."""
        return self.start_reduce_scatter(send, op, counts, out).wait()

    def start_reduce_scatter(self, send: ArrayLike, op: str = 'sum', counts: Optional[Counts] = None,
                             out: Optional[Array] = None) -> Call[Array]:
        send = input_array(send)
        if send.ndim == 0:
            raise ValueError('a number cannot be divided among the members')
        if counts is None:
            each, more = divmod(send.shape[0], self._size)
            counts = [each + (member < more) for member in range(self._size)]
        counts = self._counts(counts)
        if sum(counts) != send.shape[0]:
            raise ValueError(f'the counts add up to {counted(sum(counts), "row")}, but the array has '
                             f'{send.shape[0]}')
        row = int(np.prod(send.shape[1:], dtype=np.int64))
        out = output_array(out, (counts[self._rank], *send.shape[1:]), send.dtype)
        check_overlap(send, out)
        elements = sizes_array([count * row for count in counts])
        return self._start('reduce_scatter', address_of(send), address_of(out), elements,
                           *reduction_of(send.dtype, op), result=lambda: out,
                           kept=(send, out, elements), dtype=send.dtype, shape=send.shape)

    # --- messages ---

    def send(self, array: ArrayLike, to: Integer, tag: Integer = 0) -> None:
        """Sends the array to member `to`, which receives it with recv() and the same tag. Waits until the receiver has
        all of it. Messages between two members with the same tag arrive in their order."""
        self.start_send(array, to, tag).wait()

    def start_send(self, array: ArrayLike, to: Integer, tag: Integer = 0) -> Call[None]:
        array = input_array(array)
        return self._start('send', address_of(array), array.nbytes, self._checked_root(to), self._checked_tag(tag),
                           result=lambda: None, kept=array)

    def recv(self, out: Array, source: Integer, tag: Integer = 0) -> Array:
        """Receives the array that member `source` sends with this tag into `out`, which must have the same number of
        bytes, and returns `out`."""
        return self.start_recv(out, source, tag).wait()

    def start_recv(self, out: Array, source: Integer, tag: Integer = 0) -> Call[Array]:
        check_output(out)
        return self._start('receive', address_of(out), out.nbytes, self._checked_root(source), self._checked_tag(tag),
                           result=lambda: out, kept=out)

    def recv_any(self, out: Array, tag: Integer = 0) -> int:
        """Receives as recv(), but from any other member, and returns its number."""
        return self.start_recv_any(out, tag).wait()

    def start_recv_any(self, out: Array, tag: Integer = 0) -> Call[int]:
        check_output(out)
        source = ctypes.c_uint32()
        return self._start('receive_any', address_of(out), out.nbytes, self._checked_tag(tag), source,
                           result=lambda: source.value, kept=(out, source))

    # --- helpers ---

    def _pointer(self):
        if self._handle is None:
            raise TorusError('the group has been closed', ErrorCode.USAGE)
        return self._handle.pointer

    def _start(self, name, *arguments, result, kept, dtype=None, shape=None):
        """Starts a call. All members' calls must agree in the type and the shape of their data, as far as given."""
        pointer, error = CALL(), Error()
        if dtype is not None:
            sizes = None if shape is None else sizes_array(shape or (0,))
            library.torus_group_describe(self._pointer(), type_name(dtype), sizes, 0 if shape is None else len(shape))
        if getattr(library, f'torus_start_{name}')(self._pointer(), *arguments, pointer, error) != 0:
            raise_error(error)
        return Call(self, pointer, result, kept)

    def _checked_root(self, root):
        root = integer(root, 'root')
        if not 0 <= root < self._size:
            raise ValueError(f'there is no member {root}: the members are 0 to {self._size - 1}')
        return root

    def _checked_tag(self, tag):
        tag = integer(tag, 'tag')
        if not 0 <= tag < 2 ** 56:
            raise ValueError(f'{tag} is not a tag: tags are 0 to {2 ** 56 - 1}')
        return tag

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
