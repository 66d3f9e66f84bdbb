"""De Sensi, Pasqualoni, Piarulli, Bonato, Ba, Turisini, Domke, Hoefler: Bine Trees: Enhancing Collective Operations by
Optimizing Communication Locality (SC 2025): the allgather by distance halving, as in the authors' published code
(github.com/HLC-Lab/bine-trees, the allgather block by block), which is the second half of their allreduce for long vectors.

In step i of log2 n, a node swaps all that it has with the node that is 1 - 2 + 4 .. (log2 n - i terms) higher, an odd node
with the one that is as much lower. On a ring (ours), the message goes along the ring."""

import functools

operation = 'allgather'


def refuses(network):
    fits = len(network.sizes) == 1 and network.wraps[0] and network.nodes & (network.nodes - 1) == 0
    return None if fits else 'rings whose size is a power of two'


def period(network):
    return [2]


@functools.lru_cache(maxsize=8)
def tree(nodes, source):
    routes, steps = {source: []}, nodes.bit_length() - 1
    for step in range(steps):
        distance = sum((-2) ** term for term in range(steps - step))
        for node, legs in list(routes.items()):
            move = distance if node % 2 == 0 else -distance
            routes[(node + move) % nodes] = [*legs, (step, 0, 1 if move > 0 else -1, abs(move))]
    return routes


def route(network, source, destination, segment):
    return tree(network.nodes, source)[destination]
