"""torch.distributed on a torus of torusd daemons.

Importing this module registers the backend "torus":

    import torch.distributed as dist
    import torch_torus

    dist.init_process_group('torus', init_method='torus://')

Ranks are numbered in the order of their nodes. Several may be on one node.
"""

import atexit
import secrets
import sys
from datetime import timedelta

import torch  # loads the libraries that _backend needs
import torch.distributed as dist
from torch.distributed import distributed_c10d

from . import _backend
from . import store as _store  # registers torus://

__all__ = ['node', 'nodes']


def _place():
    """Returns the node that this process is on, the number of nodes, and the dimensions of the torus."""
    rank, dims = _backend.place()
    count = 1
    for factor in dims.split('x'):
        if not factor.removesuffix('m').isdigit():
            raise RuntimeError(f'torus: the backend does not know how many nodes "{dims}" has')
        count *= int(factor.removesuffix('m'))
    return rank, count, dims


def node():
    """Returns the rank of the node that this process is on, as its daemon says."""
    return _place()[0]


def nodes():
    """Returns the number of nodes of the torus."""
    return _place()[1]


def _judge(places):
    """Returns what is wrong with the places ("node count dims") of the ranks, or ''."""
    for rank, place in enumerate(places):
        if not place[:1].isdigit():
            return f'rank {rank}: {place}'
    on, _, dims = zip(*(place.split(' ', 2) for place in places))
    if len(set(dims)) > 1:
        return f'the ranks are on different toruses: {", ".join(sorted(set(dims)))}'
    for rank, at in enumerate(sorted(map(int, on))):
        if int(on[rank]) != at:
            return (f'rank {rank} is on node {on[rank]}: ranks must have the order of the nodes. Pass '
                    "init_method='torus://', or with one rank on each node rank=torch_torus.node() and "
                    'world_size=torch_torus.nodes()')
    return ''


_nodes = []  # of the ranks of the default group


def _open(store, rank, size, timeout):
    """Opens a group of all ranks that use this store. They all get the same error if one is not where it must be."""
    try:
        place = ' '.join(map(str, _place()))
    except RuntimeError as error:
        place = str(error)
    store.set(f'torus/{rank}', place)
    if rank == 0:
        places = [store.get(f'torus/{other}').decode() for other in range(size)]
        problem = _judge(places)
        store.set('torus', f'no {problem}' if problem else
                  ' '.join([f'yes torch-{secrets.token_hex(8)}', *(place.split()[0] for place in places)]))
    answer, _, text = store.get('torus').decode().partition(' ')
    if answer != 'yes':
        raise RuntimeError(text if text.startswith('torus: ') else f'torus: {text}')
    name, *nodes = text.split()
    nodes = list(map(int, nodes))
    return _backend.open(store, name, nodes, len(set(nodes)) == _place()[1], rank, timeout), nodes


def _create(options, _):
    timeout = timedelta(seconds=options.timeout) if not isinstance(options.timeout, timedelta) else options.timeout
    world = distributed_c10d.GroupMember.WORLD
    if world is not None and dist.get_backend(world) == 'torus':
        nodes = [_nodes[rank] for rank in options.global_ranks_in_group]
        return _backend.of_nodes(world, options.store, nodes, options.group_rank, options.group_id, timeout)
    group, nodes = _open(options.store, options.group_rank, options.group_size, timeout)
    if world is None:
        _nodes[:] = nodes
    return group


@atexit.register
def _end():
    """Other ranks may still need this one: the first of their node, and the one that keeps the store. After an error that
    nobody has caught it ends at once, so that their calls fail."""
    waits = not hasattr(sys, 'last_type')
    _backend.end_all(waits)
    if waits:
        _store.close()


dist.Backend.register_backend('torus', _create, extended_api=True)
