"""Collective operations of a torus on numpy arrays: libtorus (torus/group.h) for Python.

The same program runs on every node of the torus, and makes the same calls there:

    import libtorus
    import numpy as np

    with libtorus.Group() as group:
        blocks = np.full((group.size, 1000), group.rank, dtype=np.float64)
        received = group.alltoall(blocks)       # received[i]: the block from member i
        total = group.allreduce(received.sum())  # the same on all members

Arrays
- Arrays that are passed in may be of any shape; those without the order of C are copied first. An
  operation returns a new array, or `out`, which must be an array in the order of C with the shape and
  type of the result.
- Arrays from Group.array() lie in memory that the daemon shares: their contents are not copied between
  processes.
- In place: pass the same array as input and as `out`, or IN_PLACE as input.

Numbers
- Members, dimensions, counts and sizes are integers of Python or numpy. Other numbers, 1.0 as well, and
  bools raise TypeError; integers that are not possible raise ValueError. Timeouts may be any number
  but a bool.

Without waiting
- Each operation X also has start_X(), which returns a Call at once. Its wait() returns what X returns;
  done() tells whether it has ended. Until then leave the arrays alone. Several calls may be under way;
  they are carried out in the order in which they were started.

Errors
- TorusError is raised for what the library and the daemon report, with the code (ErrorCode).
  ValueError and TypeError are raised for arrays that do not fit; the group is not affected then.
- Ctrl-C interrupts waiting, for other members when a group is opened, too. A call stays under way then:
  close the group.

Threads: one group, with its parts, is used by one thread at a time.

The library is $TORUS_LIBRARY, else the one beside this file (in a checkout: of build/), else
libtorus.so.1 as the system finds it.
"""

import ctypes
import enum
import itertools
import math
import numbers
import operator
import os
import select
import threading
from pathlib import Path

import numpy as np

__all__ = ['Call', 'ErrorCode', 'Group', 'IN_PLACE', 'TorusError']


class _InPlace:
    def __repr__(self):
        return 'libtorus.IN_PLACE'


IN_PLACE = _InPlace()
"""Passed as the input: it is what `out` contains."""


# ---- Errors ----------------------------------------------------------------------------------------

class ErrorCode(enum.IntEnum):
    """enum torus_error_code. A code that is missing here is passed as a number."""

    USAGE = 1
    REFUSED = 2
    LINK = 3
    PROTOCOL = 4
    IO = 5
    MEMORY = 6
    TIMEOUT = 7
    CANCELLED = 8
    DAMAGED = 9
    IN_DOUBT = 10
    BUSY = 11
    NO_DAEMON = 100
    LOST = 101


class TorusError(Exception):
    """What libtorus reports. `code`: an ErrorCode."""

    def __init__(self, text, code):
        super().__init__(text)
        try:
            self.code = ErrorCode(code)
        except ValueError:
            self.code = code


# ---- The library -----------------------------------------------------------------------------------

class _Error(ctypes.Structure):
    _fields_ = [('code', ctypes.c_int), ('text', ctypes.c_char * 480),
                ('exchange', ctypes.c_char * 64)]


class _Options(ctypes.Structure):
    _fields_ = [('struct_size', ctypes.c_size_t), ('socket', ctypes.c_char_p),
                ('name', ctypes.c_char_p), ('timeout_ms', ctypes.c_uint32),
                ('unchecked', ctypes.c_bool), ('shrink', ctypes.c_bool), ('wait', ctypes.c_bool)]


_GROUP = _CALL = _ARRAY = ctypes.c_void_p
_SIZE, _U32, _INT = ctypes.c_size_t, ctypes.c_uint32, ctypes.c_int
_SIZES = ctypes.POINTER(ctypes.c_size_t)

# The parameters of torus_start_X() between the group and the call.
_STARTS = {
    'alltoall': [_ARRAY, _ARRAY, _SIZE],
    'alltoallv': [_ARRAY, _SIZES, _SIZES, _ARRAY, _SIZES, _SIZES],
    'allgather': [_ARRAY, _ARRAY, _SIZE],
    'allgatherv': [_ARRAY, _ARRAY, _SIZES, _SIZES],
    'broadcast': [_ARRAY, _SIZE, _U32],
    'barrier': [],
    'allreduce': [_ARRAY, _ARRAY, _SIZE, _INT, _INT],
    'reduce': [_ARRAY, _ARRAY, _SIZE, _INT, _INT, _U32],
    'reduce_scatter': [_ARRAY, _ARRAY, _SIZES, _INT, _INT],
}
_OTHERS = {
    'torus_group_open': (_INT, [ctypes.POINTER(_Options), ctypes.POINTER(_GROUP),
                                ctypes.POINTER(_Error)]),
    'torus_group_shrink': (_INT, [_GROUP, ctypes.POINTER(_GROUP), ctypes.POINTER(_Error)]),
    'torus_group_close': (None, [_GROUP]),
    'torus_group_part': (_INT, [_GROUP, _U32, ctypes.POINTER(_GROUP), ctypes.POINTER(_Error)]),
    'torus_group_rank': (_U32, [_GROUP]),
    'torus_group_size': (_U32, [_GROUP]),
    'torus_group_node': (_U32, [_GROUP, _U32]),
    'torus_group_dims': (ctypes.c_char_p, [_GROUP]),
    'torus_group_set_timeout': (None, [_GROUP, _U32]),
    'torus_group_fd': (_INT, [_GROUP]),
    'torus_memory_new': (ctypes.c_void_p, [_GROUP, _SIZE, ctypes.POINTER(_Error)]),
    'torus_memory_free': (None, [_GROUP, ctypes.c_void_p]),
    'torus_call_test': (_INT, [_CALL, ctypes.POINTER(_Error)]),
}
_MOST_BYTES = 2 ** 63 - 1  # of an array: numpy counts them with a sign
_LONGEST = 2 ** 32 / 1000  # seconds of a timeout: torus.h has milliseconds
_NAME = 'libtorus.so.1'


def _candidates():
    if os.environ.get('TORUS_LIBRARY'):
        return [os.environ['TORUS_LIBRARY']]
    here = Path(__file__).resolve().parent
    checkout, prefix = here.parents[1], here.parents[2]
    beside = [checkout / 'build' / 'client' / _NAME, *prefix.glob(f'lib*/{_NAME}'),
              *prefix.glob(f'lib*/*/{_NAME}')]
    return [str(path) for path in beside if path.exists()] + [_NAME]


def _load():
    library = ctypes.CDLL(_candidates()[0])
    for name, (result, parameters) in _OTHERS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    for name, parameters in _STARTS.items():
        function = getattr(library, f'torus_start_{name}')
        function.restype = _INT
        function.argtypes = [_GROUP, *parameters, ctypes.POINTER(_CALL), ctypes.POINTER(_Error)]
    return library


_library = _load()


def _raise(error):
    raise TorusError(error.text.decode(errors='replace'), error.code)


def _new_group(function, *arguments, parent=None):
    """The handle of a group that the function stores. It waits for other members in a thread, since a
    signal cannot interrupt it: after Ctrl-C nobody takes the handle, and the group is closed."""
    pointer, error, done = _GROUP(), _Error(), []

    def wait():
        if function(*arguments, pointer, error) == 0:
            done.append(_Handle(pointer, parent))

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    thread.join()
    if not done:
        _raise(error)
    return done.pop()


class _Handle:
    """A group of the library, closed when nothing refers to it any more: its Group, its parts, arrays in
    its memory, or calls under way."""

    def __init__(self, pointer, parent=None):
        self.pointer, self.parent = pointer, parent
        self.calls_given_up = False  # which may use memory until the group is closed

    def give_up_calls(self):
        self.calls_given_up = True
        if self.parent is not None:
            self.parent.give_up_calls()

    def __del__(self, close=_library.torus_group_close):
        pointer, self.pointer = self.pointer, None
        close(pointer)


class _Memory:
    """Memory of a group, freed when no array uses it any more, or with the group."""

    def __init__(self, handle, size):
        error = _Error()
        self.handle = handle
        self.address = _library.torus_memory_new(handle.pointer, size, error)
        if not self.address:
            _raise(error)

    def __del__(self, free=_library.torus_memory_free):
        if self.address and self.handle.pointer and not self.handle.calls_given_up:
            free(self.handle.pointer, self.address)


# ---- Arrays ----------------------------------------------------------------------------------------

_TYPES = {np.dtype(name): number for number, name in enumerate(
    ('int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64', 'float32', 'float64'),
    start=1)}
_OPERATORS = {name: number for number, name in enumerate(
    ('sum', 'product', 'min', 'max', 'and', 'or', 'xor'), start=1)}
_IN_PLACE_ADDRESS = ctypes.c_void_p(-1).value


def _integer(value, what):
    """The number as an int. TypeError for what is not one, though it may be equal to one, as 1.0 and True
    are: rounding it would hide a mistake."""
    if not isinstance(value, (bool, np.bool_)):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise TypeError(f'{what} must be an integer, not {value!r:.40} ({type(value).__name__})')


def _input(value):
    """An array in the order of C, which may be a copy."""
    array = np.asarray(value)
    if array.dtype.hasobject:
        raise TypeError('arrays of Python objects cannot be sent')
    return np.require(array, requirements='C')


def _output(out, shape, dtype, what='out'):
    """The array to fill: `out` if it fits, or a new one."""
    if out is None:
        return np.empty(shape, dtype)
    _check_output(out, what)
    if out.shape != tuple(shape) or out.dtype != dtype:
        raise ValueError(f'{what} has shape {out.shape} and type {out.dtype}, but the result has '
                         f'{tuple(shape)} and {dtype}')
    return out


def _check_output(out, what='out'):
    if not isinstance(out, np.ndarray):
        raise TypeError(f'{what} is a {type(out).__name__}, not a numpy array')
    if out.dtype.hasobject:
        raise TypeError('arrays of Python objects cannot be sent')
    if not out.flags.c_contiguous or not out.flags.writeable:
        raise ValueError(f'{what} must be writable and in the order of C')


def _is_in_place(send, out):
    if send is IN_PLACE and out is None:
        raise ValueError('IN_PLACE needs an array as out')
    return send is IN_PLACE or (out is not None and send is out)


def _address(array):
    """None for an array without elements: then there is nothing to point to."""
    return array.ctypes.data if array.size > 0 else None


def _check_overlap(send, out):
    if np.may_share_memory(send, out):
        raise ValueError('the input and out overlap; for the same array pass IN_PLACE')


def _sizes(values):
    return (ctypes.c_size_t * len(values))(*values)


def _reduction(dtype, op):
    if dtype not in _TYPES:
        raise TypeError(f'{dtype} cannot be reduced; these can: '
                        + ', '.join(str(known) for known in _TYPES))
    if op not in _OPERATORS:
        raise ValueError(f'"{op}" is not an operator; these are: {", ".join(_OPERATORS)}')
    if dtype.kind == 'f' and op in ('and', 'or', 'xor'):
        raise TypeError(f'"{op}" is for integers, not for {dtype}')
    return _TYPES[dtype], _OPERATORS[op]


# ---- Calls -----------------------------------------------------------------------------------------

class Call:
    """An operation under way, from Group.start_X()."""

    def __init__(self, group, pointer, result, kept):
        self._group, self._pointer, self._result = group, pointer, result
        self._kept = kept  # what the library still uses
        self._error = None
        group._calls.add(self)

    def done(self):
        """Whether it has ended, without waiting. Also true if it has failed: wait() says how."""
        if self._pointer is None:
            return True
        error = _Error()
        ended = _library.torus_call_test(self._pointer, error)
        if ended == 0:
            return False
        if ended < 0:
            self._error = error
        self._forget()
        return True

    def wait(self):
        """Waits until it has ended, and returns its result. TorusError if it has failed."""
        while not self.done():
            self._group._poll.poll()
        if self._error is not None:
            _raise(self._error)
        return self._result()

    def _forget(self):
        self._pointer = self._kept = None
        self._group._calls.discard(self)

    def _give_up(self):
        self._error = _Error(ErrorCode.CANCELLED, b'the group has been closed')
        self._forget()


# ---- Groups ----------------------------------------------------------------------------------------

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
        options = _Options(struct_size=ctypes.sizeof(_Options), unchecked=not checked,
                           name=_bytes(name, 'name'), socket=_bytes(socket, 'socket'),
                           timeout_ms=_milliseconds(timeout), shrink=on_failure == 'shrink',
                           wait=on_failure == 'wait')
        self._begin(_new_group(_library.torus_group_open, options))

    def _begin(self, handle):
        self._handle = handle
        self._calls = set()
        self._poll = select.poll()
        descriptor = _library.torus_group_fd(handle.pointer)
        if descriptor >= 0:
            self._poll.register(descriptor, select.POLLIN)
        self._rank = _library.torus_group_rank(handle.pointer)
        self._size = _library.torus_group_size(handle.pointer)
        self._dims = _library.torus_group_dims(handle.pointer).decode()
        self._nodes = tuple(_library.torus_group_node(handle.pointer, member)
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
            dimension = _integer(dimension, 'a dimension')
            if not 0 <= dimension < 32:
                raise ValueError(f'{dimension} is not a dimension')
            mask |= 1 << dimension
        part = Group.__new__(Group)
        part._begin(_new_group(_library.torus_group_part, self._pointer(), mask,
                               parent=self._handle))
        return part

    def shrink(self):
        """The group of the members that are left when this one has failed because nodes are down. All
        of them make this call. Returns a Group; its `nodes` says which they are. This one is still to be
        closed."""
        self._pointer()
        failed = self._handle  # not to be closed meanwhile, also after Ctrl-C

        def shrink(pointer, error):
            return _library.torus_group_shrink(failed.pointer, pointer, error)

        shrunk = Group.__new__(Group)
        shrunk._begin(_new_group(shrink))
        return shrunk

    def set_timeout(self, seconds):
        """For calls made from now on; None: none. A call that has not ended by then fails the group."""
        _library.torus_group_set_timeout(self._pointer(), _milliseconds(seconds))

    def fileno(self):
        """A descriptor for event loops: readable when Call.done() may have become true of a call."""
        return _library.torus_group_fd(self._pointer())

    def array(self, shape, dtype=np.float64):
        """An array of zeros in memory that the daemon shares."""
        dtype = np.dtype(dtype)
        if dtype.hasobject:
            raise TypeError('arrays of Python objects cannot be sent')
        if not np.iterable(shape):
            shape = shape,
        shape = tuple(_integer(size, 'a size of the shape') for size in shape)
        count = math.prod(shape)
        if count <= 0:
            return np.zeros(shape, dtype)  # which refuses negative dimensions
        if count * dtype.itemsize > _MOST_BYTES:
            raise ValueError(f'an array of {count} elements of {dtype} is too large: at most {_MOST_BYTES} '
                             'bytes are possible')
        self._pointer()
        memory = _Memory(self._handle, count * dtype.itemsize)
        buffer = (ctypes.c_char * (count * dtype.itemsize)).from_address(memory.address)
        buffer.memory = memory  # as long as there are arrays with this buffer
        return np.frombuffer(buffer, dtype).reshape(shape)

    # --- operations ---

    def alltoall(self, send, out=None):
        """Every member's send[j] becomes out[i] of member j, if i is its rank. The first dimension of
        both is the number of members."""
        return self.start_alltoall(send, out).wait()

    def start_alltoall(self, send, out=None):
        if _is_in_place(send, out):
            _check_output(out)
            self._check_first(out)
            address, kept = _IN_PLACE_ADDRESS, None
        else:
            kept = _input(send)
            self._check_first(kept)
            out = _output(out, kept.shape, kept.dtype)
            _check_overlap(kept, out)
            address = _address(kept)
        return self._start('alltoall', address, _address(out), out.nbytes // self._size,
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
        send_at, receive_at = _offsets(send_bytes), _offsets(receive_bytes)
        lists = [_sizes(values) for values in (send_bytes, send_at, receive_bytes, receive_at)]
        ends = [at // dtype.itemsize for at in receive_at[1:]]
        return self._start('alltoallv', _address(send), lists[0], lists[1], _address(out), lists[2],
                           lists[3], result=lambda: np.split(out, ends), kept=(send, out, lists))

    def allgather(self, send, out=None):
        """Every member's array becomes out[i] of all members, if i is its rank. In place: out[rank] is
        the input."""
        return self.start_allgather(send, out).wait()

    def start_allgather(self, send, out=None):
        if send is IN_PLACE:
            _is_in_place(send, out)
            _check_output(out)
            self._check_first(out)
            address, kept = _IN_PLACE_ADDRESS, None
        else:
            kept = _input(send)
            out = _output(out, (self._size, *kept.shape), kept.dtype)
            _check_overlap(kept, out)
            address = _address(kept)
        return self._start('allgather', address, _address(out), out.nbytes // self._size,
                           result=lambda: out, kept=(kept, out))

    def allgatherv(self, send, counts=None):
        """The same for arrays with different numbers of elements. Returns a list of arrays, of one
        dimension each. counts: the number of elements of each member; without it, members tell each
        other first, which is one more call."""
        send = _input(send)
        if counts is None:
            counts = self.allgather(np.uint64(send.size))
        return self.start_allgatherv(send, counts).wait()

    def start_allgatherv(self, send, counts):
        send = _input(send)
        counts = self._counts(counts)
        if counts[self._rank] != send.size:
            raise ValueError(f'the array has {_counted(send.size, "element")}, but counts[{self._rank}] is '
                             f'{counts[self._rank]}')
        sizes = [count * send.itemsize for count in counts]
        out = np.empty(sum(counts), send.dtype)
        lists = [_sizes(sizes), _sizes(_offsets(sizes))]
        return self._start('allgatherv', _address(send), _address(out), *lists,
                           result=lambda: np.split(out, _offsets(counts)[1:]),
                           kept=(send, out, lists))

    def broadcast(self, array, root=0):
        """The array of member `root` is copied to all others' arrays, of the same size. Returns it."""
        return self.start_broadcast(array, root).wait()

    def start_broadcast(self, array, root=0):
        _check_output(array, 'the array')
        root = self._checked_root(root)
        return self._start('broadcast', _address(array), array.nbytes, root, result=lambda: array,
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
        if _is_in_place(send, out):
            _check_output(out)
            address, kept = _IN_PLACE_ADDRESS, None
        else:
            kept = _input(send)
            out = _output(out, kept.shape, kept.dtype)
            _check_overlap(kept, out)
            address = _address(kept)
        return self._start('allreduce', address, _address(out), out.size, *_reduction(out.dtype, op),
                           result=lambda: out if out.shape else out[()], kept=(kept, out))

    def reduce(self, send, op='sum', root=0, out=None):
        """The same, but only member `root` gets the result; the others get None. In place: of the others'
        `out` only the contents are used, as their input."""
        return self.start_reduce(send, op, root, out).wait()

    def start_reduce(self, send, op='sum', root=0, out=None):
        root = self._checked_root(root)
        in_place = _is_in_place(send, out)
        if in_place:
            _check_output(out)
        kept = out if in_place else _input(send)
        reduction = *_reduction(kept.dtype, op), root
        if self._rank != root:
            return self._start('reduce', _address(kept), None, kept.size, *reduction,
                               result=lambda: None, kept=kept)
        if not in_place:
            out = _output(out, kept.shape, kept.dtype)
            _check_overlap(kept, out)
        address = _IN_PLACE_ADDRESS if in_place else _address(kept)
        return self._start('reduce', address, _address(out), out.size, *reduction,
                           result=lambda: out if out.shape else out[()], kept=(kept, out))

    def reduce_scatter(self, send, op='sum', counts=None, out=None):
        """The members' arrays are combined as by allreduce(), and each member receives a part of the
        result: counts[i] rows (along the first dimension) go to member i. Without counts they are
        divided as by numpy.array_split()."""
        return self.start_reduce_scatter(send, op, counts, out).wait()

    def start_reduce_scatter(self, send, op='sum', counts=None, out=None):
        send = _input(send)
        if send.ndim == 0:
            raise ValueError('a number cannot be divided among the members')
        if counts is None:
            each, more = divmod(send.shape[0], self._size)
            counts = [each + (member < more) for member in range(self._size)]
        counts = self._counts(counts)
        if sum(counts) != send.shape[0]:
            raise ValueError(f'counts are {_counted(sum(counts), "row")} in all, but the array has '
                             f'{send.shape[0]}')
        row = int(np.prod(send.shape[1:], dtype=np.int64))
        out = _output(out, (counts[self._rank], *send.shape[1:]), send.dtype)
        _check_overlap(send, out)
        elements = _sizes([count * row for count in counts])
        return self._start('reduce_scatter', _address(send), _address(out), elements,
                           *_reduction(send.dtype, op), result=lambda: out,
                           kept=(send, out, elements))

    # --- for these ---

    def _pointer(self):
        if self._handle is None:
            raise TorusError('the group has been closed', ErrorCode.USAGE)
        return self._handle.pointer

    def _start(self, name, *arguments, result, kept):
        pointer, error = _CALL(), _Error()
        if getattr(_library, f'torus_start_{name}')(self._pointer(), *arguments, pointer, error) != 0:
            _raise(error)
        return Call(self, pointer, result, kept)

    def _checked_root(self, root):
        root = _integer(root, 'root')
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
            raise ValueError(f'{_counted(len(values), what)} for {_counted(self._size, "member")}')
        return values

    def _counts(self, counts):
        counts = [_integer(count, 'a count') for count in self._one_each(counts, 'count')]
        if min(counts) < 0:
            raise ValueError(f'{min(counts)} is not a number of elements')
        if sum(counts) > _MOST_BYTES:
            raise ValueError(f'{sum(counts)} elements are too many: at most {_MOST_BYTES} are possible')
        return counts

    def _blocks(self, blocks):
        blocks = self._one_each((_input(block) for block in blocks), 'block')
        if len({block.dtype for block in blocks}) > 1:
            raise TypeError('the blocks have different types')
        if blocks[0].dtype.itemsize == 0:
            raise ValueError(f'elements of type {blocks[0].dtype} have no bytes')
        return blocks


def _counted(count, one):
    """"1 member", "2 members"."""
    return f'{count} {one}' if count == 1 else f'{count} {one}s'


def _offsets(sizes):
    """Where each begins if they follow each other."""
    return list(itertools.accumulate(sizes, initial=0))[:-1]


def _bytes(text, what):
    if text is None:
        return None
    text = os.fsencode(text)
    if b'\0' in text:  # where C ends it
        raise ValueError(f'a {what} cannot contain a null character')
    return text


def _milliseconds(seconds):
    if seconds is None:
        return 0
    if isinstance(seconds, bool) or not isinstance(seconds, numbers.Real):
        raise TypeError(f'a timeout must be a number of seconds or None, not {seconds!r:.40} '
                        f'({type(seconds).__name__})')
    if not 0 < seconds < _LONGEST:
        raise ValueError(f'a timeout of {seconds} seconds is not possible: it is None, or more than 0 and '
                         f'less than {_LONGEST}')
    return max(1, round(seconds * 1000))
