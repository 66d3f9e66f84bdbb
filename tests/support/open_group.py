"""open_group.py ON_FAILURE [AGAIN]: opens the group "opened" with this on_failure, prints the nodes of its members,
and makes some calls. With AGAIN, makes calls until the group fails, and opens it again."""

import itertools
import sys

import libtorus


def opened(on_failure):
    group = libtorus.Group('opened', on_failure=on_failure, timeout=600)
    group.set_timeout(None)
    assert group.size == len(group.nodes)
    print('open', *group.nodes, flush=True)
    return group


def call(group):
    assert group.allreduce(group.rank) == group.size * (group.size - 1) // 2
    assert list(group.allgather([group.nodes[group.rank]]).ravel()) == list(group.nodes)


def main(on_failure, again):
    with opened(on_failure) as group:
        try:
            for _ in itertools.count() if again else range(1):
                call(group)
        except libtorus.TorusError as e:
            if not again:
                raise
            print('failed', libtorus.ErrorCode(e.code).name.lower(), flush=True)
    if again:
        main(on_failure, False)
    else:
        print('done', flush=True)


try:
    main(sys.argv[1], len(sys.argv) > 2)
except libtorus.TorusError as e:
    print(f'{libtorus.ErrorCode(e.code).name.lower()}: {e}', flush=True)
    sys.exit(1)
