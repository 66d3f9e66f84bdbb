"""Checks of a torus after failures."""

from .expect import check_result
from .waiting import wait_for


def still_works(torus, rank=0, algorithm='at2', size=30000):
    """Waits until the torus is whole, and checks the next exchange."""
    torus.wait_whole(30)
    result = torus.exchange(algorithm, size, rank=rank)
    check_result(result, str(torus.geometry), algorithm, size)
    for node in torus.nodes:
        wait_for(lambda: torus.status(node.rank)['memory']['reserved_bytes'] == 0, 10)


def others(torus, *ranks):
    return [node.rank for node in torus.nodes if node.rank not in ranks]
