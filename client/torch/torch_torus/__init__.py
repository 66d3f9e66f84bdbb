"""torch.distributed on a torus of torusd daemons.

Importing this module registers the backend "torus":

    import torch.distributed as dist
    import torch_torus

    dist.init_process_group('torus', init_method='file:///shared/start', rank=torch_torus.node(),
                            world_size=torch_torus.nodes())

There is one rank on each node, and its number is that of the node.
"""

import secrets
from datetime import timedelta

import torch  # loads the libraries that _backend needs
import torch.distributed as dist
from torch.distributed import distributed_c10d

from . import _backend

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
    on, counts, dims = zip(*(place.split(' ', 2) for place in places))
    if len(set(dims)) > 1:
        return f'the ranks are on different toruses: {", ".join(sorted(set(dims)))}'
    for rank, at in enumerate(on):
        if on.index(at) != rank:
            return (f'ranks {on.index(at)} and {rank} are both on node {at}: '
                    'start one rank on each node (several are not supported yet)')
    if int(counts[0]) != len(places):
        return f'the torus {dims[0]} has {counts[0]} nodes, but world_size is {len(places)}: start one rank on each node'
    for rank, at in enumerate(on):
        if int(at) != rank:
            return (f'rank {rank} is on node {at}: ranks must be those of the nodes. Pass rank=torch_torus.node() and '
                    'world_size=torch_torus.nodes() to init_process_group()')
    return ''


def _open(store, rank, size, timeout):
    """Opens the group of all nodes. All ranks get the same error if one of them is not where it must be."""
    try:
        place = ' '.join(map(str, _place()))
    except RuntimeError as error:
        place = str(error)
    store.set(f'torus/{rank}', place)
    if rank == 0:
        problem = _judge([store.get(f'torus/{other}').decode() for other in range(size)])
        store.set('torus', f'no {problem}' if problem else f'yes torch-{secrets.token_hex(8)}')
    answer, _, text = store.get('torus').decode().partition(' ')
    if answer != 'yes':
        raise RuntimeError(text if text.startswith('torus: ') else f'torus: {text}')
    return _backend.open(text, rank, size, timeout)


def _create(options, _):
    timeout = timedelta(seconds=options.timeout) if not isinstance(options.timeout, timedelta) else options.timeout
    world = distributed_c10d.GroupMember.WORLD
    ranks = list(options.global_ranks_in_group)
    if world is None or (dist.get_backend(world) != 'torus' and len(ranks) == dist.get_world_size()):
        return _open(options.store, options.group_rank, options.group_size, timeout)
    return _backend.of_nodes(world, ranks, options.group_rank, options.group_id, timeout)


dist.Backend.register_backend('torus', _create, extended_api=True)
