"""survivor.py SEED: `group_program survive SEED` in Python, with the package libtorus. Calls operations of the group
"rounds" on random arrays and checks the results, until one of the programs receives SIGTERM. When a link or a node
goes down, goes on in the group that shrink() makes."""

import itertools
import random
import signal
import sys

import libtorus
import numpy as np

terminated = []


class Failed(Exception):
    pass


def block(source, destination, count, number):
    return np.arange(count) * 7 + source * 31 + destination * 17 + number


def check(what, a, b):
    if not np.array_equal(a, b):
        raise Failed(f'wrong: {what}')


def work(group, seed):
    chance, rank, nodes = random.Random(seed), group.rank, range(group.size)
    for number in itertools.count():
        if number % 8 == 7 and group.allreduce(len(terminated), 'max') > 0:
            return
        count, what = chance.choice((1, 100, 20000)), chance.randrange(5)
        root = chance.randrange(group.size)
        if what == 0:
            got = group.alltoall(np.array([block(rank, i, count, number) for i in nodes]))
            check('alltoall', got, [block(i, rank, count, number) for i in nodes])
        elif what == 1:
            got = group.allgather(block(rank, 0, count, number))
            check('allgather', got, [block(i, 0, count, number) for i in nodes])
        elif what == 2:
            array = block(root if rank == root else -1, 0, count, number)
            check('broadcast', group.broadcast(array, root), block(root, 0, count, number))
        elif what == 3:
            got = group.allreduce(block(rank, 0, count, number))
            check('allreduce', got, sum(block(i, 0, count, number) for i in nodes))
        else:
            group.barrier()


def main(seed):
    signal.signal(signal.SIGTERM, lambda *_: terminated.append(True))
    try:
        group = libtorus.Group('rounds')
        while True:
            print('open', flush=True)
            try:
                work(group, seed)
                group.close()
                return
            except libtorus.TorusError as e:
                if e.code != libtorus.ErrorCode.LINK:
                    raise
            shrunk = group.shrink()
            group.close()
            group = shrunk
            print('shrunk', *group.nodes, flush=True)
    except libtorus.TorusError as e:
        raise Failed(f'{libtorus.ErrorCode(e.code).name.lower()}: {e}') from None


if __name__ == '__main__':
    try:
        main(int(sys.argv[1]))
    except Failed as e:
        print(e, flush=True)
        sys.exit(1)
