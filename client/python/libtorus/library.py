"""The functions of libtorus, loaded by ctypes."""

import ctypes
import os
from pathlib import Path

from .errors import TorusError


class Error(ctypes.Structure):
    _fields_ = [('code', ctypes.c_int), ('text', ctypes.c_char * 480),
                ('exchange', ctypes.c_char * 64)]


class Options(ctypes.Structure):
    _fields_ = [('struct_size', ctypes.c_size_t), ('socket', ctypes.c_char_p),
                ('name', ctypes.c_char_p), ('timeout_ms', ctypes.c_uint32),
                ('unchecked', ctypes.c_bool), ('shrink', ctypes.c_bool), ('wait', ctypes.c_bool),
                ('members', ctypes.POINTER(ctypes.c_uint32)), ('member_count', ctypes.c_uint32),
                ('memory_timeout_ms', ctypes.c_uint32)]


GROUP = CALL = _ARRAY = ctypes.c_void_p
_SIZE, _U32, _U64, _INT = ctypes.c_size_t, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int
_SIZES = ctypes.POINTER(ctypes.c_size_t)

# The parameters of torus_start_X() after the group and before the call.
_STARTS = {
    'alltoall': [_ARRAY, _ARRAY, _SIZE],
    'alltoallv': [_ARRAY, _SIZES, _SIZES, _ARRAY, _SIZES, _SIZES],
    'allgather': [_ARRAY, _ARRAY, _SIZE],
    'allgatherv': [_ARRAY, _ARRAY, _SIZES, _SIZES],
    'gather': [_ARRAY, _ARRAY, _SIZE, _U32],
    'gatherv': [_ARRAY, _SIZE, _ARRAY, _SIZES, _SIZES, _U32],
    'scatter': [_ARRAY, _ARRAY, _SIZE, _U32],
    'scatterv': [_ARRAY, _SIZES, _SIZES, _ARRAY, _SIZE, _U32],
    'send': [_ARRAY, _SIZE, _U32, _U64],
    'receive': [_ARRAY, _SIZE, _U32, _U64],
    'receive_any': [_ARRAY, _SIZE, _U64, ctypes.POINTER(_U32)],
    'broadcast': [_ARRAY, _SIZE, _U32],
    'barrier': [],
    'allreduce': [_ARRAY, _ARRAY, _SIZE, _INT, _INT],
    'reduce': [_ARRAY, _ARRAY, _SIZE, _INT, _INT, _U32],
    'reduce_scatter': [_ARRAY, _ARRAY, _SIZES, _INT, _INT],
}
_OTHERS = {
    'torus_group_open': (_INT, [ctypes.POINTER(Options), ctypes.POINTER(GROUP),
                                ctypes.POINTER(Error)]),
    'torus_group_shrink': (_INT, [GROUP, ctypes.POINTER(GROUP), ctypes.POINTER(Error)]),
    'torus_group_close': (None, [GROUP]),
    'torus_group_part': (_INT, [GROUP, _U32, ctypes.POINTER(GROUP), ctypes.POINTER(Error)]),
    'torus_group_rank': (_U32, [GROUP]),
    'torus_group_size': (_U32, [GROUP]),
    'torus_group_node': (_U32, [GROUP, _U32]),
    'torus_group_dims': (ctypes.c_char_p, [GROUP]),
    'torus_group_set_timeout': (None, [GROUP, _U32]),
    'torus_group_fd': (_INT, [GROUP]),
    'torus_group_describe': (None, [GROUP, ctypes.c_char_p, _SIZES, _U32]),
    'torus_memory_new': (ctypes.c_void_p, [GROUP, _SIZE, ctypes.POINTER(Error)]),
    'torus_memory_free': (None, [GROUP, ctypes.c_void_p]),
    'torus_call_test': (_INT, [CALL, ctypes.POINTER(Error)]),
}
_NAME = 'libtorus.so.1'


def _candidates():
    if os.environ.get('TORUS_LIBRARY'):
        return [os.environ['TORUS_LIBRARY']]
    here = Path(__file__).resolve().parents[1]
    if here.name != 'python':  # not a checkout, nor what `cmake --install` makes
        return [_NAME]
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
        function.argtypes = [GROUP, *parameters, ctypes.POINTER(CALL), ctypes.POINTER(Error)]
    return library


library = _load()


def raise_error(error):
    raise TorusError(error.text.decode(errors='replace'), error.code)
