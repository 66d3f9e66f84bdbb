"""Checks and conversions of the arrays that are sent and received."""

import ctypes
import itertools
import operator

import numpy as np


class InPlace:
    """The type of IN_PLACE."""

    def __repr__(self) -> str:
        return 'libtorus.IN_PLACE'


IN_PLACE = InPlace()
"""Pass this as the input to take the input from `out`."""

MOST_BYTES = 2 ** 63 - 1  # in an array: numpy counts bytes in a signed integer
# The tables of proto/group_call.h. numpy has no bfloat16, but other packages give it a type of that name.
_TYPES = {name: number for number, name in enumerate(
    ('int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64', 'float32', 'float64', 'float16',
     'complex64', 'complex128', 'bool', 'bfloat16'), start=1)}
_ALL, _ORDERED, _WITH_BITS, _DIVIDED = 'iufcb', 'iufb', 'iub', 'fc'  # letters of np.dtype.kind
_OPERATORS = {name: (number, kinds) for number, (name, kinds) in enumerate(
    (('sum', _ALL), ('product', _ALL), ('min', _ORDERED), ('max', _ORDERED), ('and', _WITH_BITS), ('or', _WITH_BITS),
     ('xor', _WITH_BITS), ('avg', _DIVIDED)), start=1)}
IN_PLACE_ADDRESS = ctypes.c_void_p(-1).value


def integer(value, what):
    """Returns the value as an int. Raises TypeError for floats and bools, even 1.0 and True, because they are
    probably a mistake of the caller."""
    if not isinstance(value, (bool, np.bool_)):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise TypeError(f'{what} must be an integer, not {value!r:.40} ({type(value).__name__})')


def input_array(value):
    """Returns the value as a C-contiguous array, which may be a copy."""
    array = np.asarray(value)
    if array.dtype.hasobject:
        raise TypeError('arrays of Python objects cannot be sent')
    return np.require(array, requirements='C')


def output_array(out, shape, dtype, what='out'):
    """Returns the array to fill: `out`, which must fit, or a new array if `out` is None."""
    if out is None:
        return np.empty(shape, dtype)
    check_output(out, what)
    if out.shape != tuple(shape) or out.dtype != dtype:
        raise ValueError(f'{what} has shape {out.shape} and type {out.dtype}, but the result has '
                         f'{tuple(shape)} and {dtype}')
    return out


def check_output(out, what='out'):
    if not isinstance(out, np.ndarray):
        raise TypeError(f'{what} is a {type(out).__name__}, not a numpy array')
    if out.dtype.hasobject:
        raise TypeError('arrays of Python objects cannot be sent')
    if not out.flags.c_contiguous or not out.flags.writeable:
        raise ValueError(f'{what} must be writable and C-contiguous')


def is_in_place(send, out):
    if send is IN_PLACE and out is None:
        raise ValueError('IN_PLACE needs an array as out')
    return send is IN_PLACE or (out is not None and send is out)


def address_of(array):
    """Returns the address of the data, or None if the array has no elements."""
    return array.ctypes.data if array.size > 0 else None


def check_overlap(send, out):
    if np.may_share_memory(send, out):
        raise ValueError('the input and out overlap: to use the same array, pass IN_PLACE as input')


def sizes_array(values):
    return (ctypes.c_size_t * len(values))(*values)


def type_name(dtype):
    """Returns a name of the type that is the same on all members, for torus_group_describe()."""
    if _is_reducible(dtype):
        return dtype.name.encode()
    return str(np.lib.format.dtype_to_descr(dtype)).encode()


def _is_reducible(dtype):
    return dtype.name in _TYPES and dtype.isnative


def reduction_of(dtype, op):
    if not _is_reducible(dtype):
        raise TypeError(f'arrays of type {dtype} cannot be reduced; these types can: '
                        + ', '.join(_TYPES))
    if op not in _OPERATORS:
        raise ValueError(f'"{op}" is not an operator; the operators are: {", ".join(_OPERATORS)}')
    number, kinds = _OPERATORS[op]
    if ('f' if dtype.name == 'bfloat16' else dtype.kind) not in kinds:
        raise TypeError(f'operator {op} is not defined for elements of type {dtype}')
    return _TYPES[dtype.name], number


def counted(count, one):
    """Returns a count with its noun: "1 member", "2 members"."""
    return f'{count} {one}' if count == 1 else f'{count} {one}s'


def offsets(sizes):
    """Returns the offsets of blocks of these sizes, packed without gaps."""
    return list(itertools.accumulate(sizes, initial=0))[:-1]
