"""Words for counts."""


def plural(count, one, many=None):
    """The word for that many of them: plural(n, 'node'), plural(n, 'it is', 'they are')."""
    return one if count == 1 else many or f'{one}s'


def counted(count, one, many=None):
    """"1 node", "2 nodes"."""
    return f'{count} {plural(count, one, many)}'
