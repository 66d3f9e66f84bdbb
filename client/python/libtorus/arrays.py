"""Arrays that are sent and received, and what can be done with them."""

import ctypes
import itertools
import operator

import numpy as np


class _InPlace:
    def __repr__(self):
        return 'libtorus.IN_PLACE'


IN_PLACE = _InPlace()
"""Passed as the input: it is what `out` contains."""

MOST_BYTES = 2 ** 63 - 1  # of an array: numpy counts them with a sign
_TYPES = {np.dtype(name): number for number, name in enumerate(
    ('int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64', 'float32', 'float64'),
    start=1)}
_OPERATORS = {name: number for number, name in enumerate(
    ('sum', 'product', 'min', 'max', 'and', 'or', 'xor'), start=1)}
IN_PLACE_ADDRESS = ctypes.c_void_p(-1).value


def integer(value, what):
    """The number as an int. TypeError for what is not one, though it may be equal to one, as 1.0 and True
    are: rounding it would hide a mistake."""
    if not isinstance(value, (bool, np.bool_)):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise TypeError(f'{what} must be an integer, not {value!r:.40} ({type(value).__name__})')


def input_array(value):
    """An array in the order of C, which may be a copy."""
    array = np.asarray(value)
    if array.dtype.hasobject:
        raise TypeError('arrays of Python objects cannot be sent')
    return np.require(array, requirements='C')


def output_array(out, shape, dtype, what='out'):
    """The array to fill: `out` if it fits, or a new one."""
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
        raise ValueError(f'{what} must be writable and in the order of C')


def is_in_place(send, out):
    if send is IN_PLACE and out is None:
        raise ValueError('IN_PLACE needs an array as out')
    return send is IN_PLACE or (out is not None and send is out)


def address_of(array):
    """None for an array without elements: then there is nothing to point to."""
    return array.ctypes.data if array.size > 0 else None


def check_overlap(send, out):
    if np.may_share_memory(send, out):
        raise ValueError('the input and out overlap; for the same array pass IN_PLACE')


def sizes_array(values):
    return (ctypes.c_size_t * len(values))(*values)


def reduction_of(dtype, op):
    if dtype not in _TYPES:
        raise TypeError(f'{dtype} cannot be reduced; these can: '
                        + ', '.join(str(known) for known in _TYPES))
    if op not in _OPERATORS:
        raise ValueError(f'"{op}" is not an operator; these are: {", ".join(_OPERATORS)}')
    if dtype.kind == 'f' and op in ('and', 'or', 'xor'):
        raise TypeError(f'"{op}" is for integers, not for {dtype}')
    return _TYPES[dtype], _OPERATORS[op]


def counted(count, one):
    """"1 member", "2 members"."""
    return f'{count} {one}' if count == 1 else f'{count} {one}s'


def offsets(sizes):
    """Where each begins if they follow each other."""
    return list(itertools.accumulate(sizes, initial=0))[:-1]
