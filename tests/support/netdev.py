"""Cables that pass nothing, but keep their carrier."""

import contextlib


@contextlib.contextmanager
def silence(torus, rank, port):
    """Neither end of the cable hears the other one meanwhile."""
    geometry = torus.geometry
    near = geometry.port(rank, port)
    ends = (torus.node(rank), near.name), (torus.node(geometry.neighbour(rank, near)), near.opposite.name)
    for node, name in ends:
        node.run('nft', f'add table netdev silent; add chain netdev silent here {{ type filter hook ingress device '
                 f'"{node.interface(name)}" priority 0; policy drop; }}')
    try:
        yield
    finally:
        for node, _ in ends:
            node.run('nft', 'delete table netdev silent')
