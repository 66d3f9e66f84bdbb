"""Errors that torusctl --json prints. The codes are those of proto/error.h; libtorus has more."""

import json
import re


def error_code(out):
    """The code (proto/error.h) of the error that a torusctl --json has printed."""
    return json.loads(out)['error']['code']


def assert_refused(result, code, status=1):
    """Checks that a torusctl --json failed with this code, and printed nothing else."""
    assert (result.returncode, error_code(result.stdout)) == (status, code), (result.stdout, result.stderr)


def names(text, *nodes):
    """Whether a text names one of these nodes, or a link of it."""
    return re.search(rf'\b(node|link) ({"|".join(map(str, nodes))})\b', text) is not None


def assert_blames(ended, *nodes):
    """Checks that a torusctl --json failed because of links, and that its error names one of these nodes, or a link of
    it. `ended`: exit status, standard output, standard error."""
    status, out, err = ended
    assert (status, error_code(out)) == (1, 'link'), (out, err)
    assert names(err, *nodes), err
