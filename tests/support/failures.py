"""What tests of failures ask of a torus."""

import json
import re

from .expect import check_result
from .waiting import wait_for


def still_works(torus, rank=0, algorithm='at2', size=30000):
    """The torus is whole, or becomes it, and the next exchange is as it should be."""
    torus.wait_whole(30)
    result = torus.exchange(algorithm, size, rank=rank)
    check_result(result, str(torus.geometry), algorithm, size)
    for node in torus.nodes:
        wait_for(lambda: torus.status(node.rank)['memory']['reserved_bytes'] == 0, 10)


def error_code(out):
    """The code of the error (proto/error.h) that a torusctl --json has printed."""
    return json.loads(out)['error']['code']


def assert_refused(result, code, status=1):
    """A torusctl --json has failed with this code, and printed nothing else."""
    assert (result.returncode, error_code(result.stdout)) == (status, code), (result.stdout, result.stderr)


def assert_blames(ended, *nodes):
    """A torusctl --json has failed because of links, and its error names one of these nodes. ended: exit status,
    standard output, standard error."""
    status, out, err = ended
    assert (status, error_code(out)) == (1, 'link'), (out, err)
    assert re.search(rf'\bnode ({"|".join(map(str, nodes))})\b', err), err


def others(torus, *ranks):
    return [node.rank for node in torus.nodes if node.rank not in ranks]
