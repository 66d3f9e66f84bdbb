"""A store for torch.distributed that needs nothing but the torus: init_method='torus://'."""

import atexit
import itertools
import json
import select
import threading
from datetime import timedelta
from urllib.parse import parse_qs, urlparse

import numpy
import torch.distributed as dist

import libtorus

SHORTEST, LONGEST = 0.001, 0.1  # seconds between rounds: after a request, and when there has been none for long


class State:
    """What all processes keep alike: keys and values. Requests are lists of texts and numbers; values are Latin-1."""

    def __init__(self):
        self.values = {}

    def set(self, key, value):
        self.values[key] = value

    def add(self, key, amount):
        self.values[key] = str(int(self.values.get(key, '0')) + amount)
        return int(self.values[key])

    def compare_set(self, key, expected, value):
        if self.values.get(key, '') == expected:
            self.values[key] = value
        return self.values.get(key, expected)

    def delete_key(self, key):
        return self.values.pop(key, None) is not None

    def read(self, keys):
        """Returns the values of these keys, or None if one is missing."""
        return [self.values[key] for key in keys] if all(key in self.values for key in keys) else None

    def num_keys(self):
        return len(self.values)


class Rounds(threading.Thread):
    """Carries out the requests of all processes everywhere, in the same order.

    In a round, each process says which requests it has. Rounds come by themselves, ever less often while nobody has a
    request."""

    def __init__(self, group):
        super().__init__(name='torus store', daemon=True)
        self.group, self.state = group, State()
        self.ready = select.poll()
        self.ready.register(group.fileno(), select.POLLIN)
        self.changed = threading.Condition()
        self.requests, self.answers = [], {}  # of this process: [number, name, arguments...], and answers by number
        self.numbers = itertools.count()
        self.ends, self.error = False, None
        self.start()

    def run(self):
        pause = SHORTEST
        try:
            while not self.ends:
                with self.changed:
                    self.changed.wait_for(lambda: self.requests or self.ends, pause)
                    mine, self.requests = self.requests, []
                pause = SHORTEST if self.round(mine) else min(2 * pause, LONGEST)
        except libtorus.TorusError as error:
            with self.changed:
                self.error = error
                self.changed.notify_all()
        self.group.close()

    def wait(self, call):
        while not call.done():
            if self.ends:
                raise libtorus.TorusError(libtorus.ErrorCode.CANCELLED, 'the store has been closed')
            self.ready.poll(100)
        return call.wait()

    def round(self, mine):
        """Returns whether any process had a request."""
        text = numpy.array(bytearray(json.dumps(mine).encode() if mine else b''), numpy.uint8)
        counts = self.wait(self.group.start_allgather(numpy.uint64(text.size)))
        if not counts.any():
            return False
        texts = self.wait(self.group.start_allgatherv(text, counts))
        with self.changed:
            for rank, one in enumerate(texts):
                for number, name, *arguments in json.loads(one.tobytes()) if one.size else []:
                    answer = getattr(self.state, name)(*arguments)
                    if rank == self.group.rank:
                        self.answers[number] = answer
            self.changed.notify_all()
        return True

    def request(self, seconds, name, *arguments):
        """Returns the answer, as of a moment after the call."""
        with self.changed:
            number = next(self.numbers)
            self.requests.append([number, name, *arguments])
            self.changed.notify_all()
            self.await_true(lambda: number in self.answers, seconds)
            return self.answers.pop(number)

    def await_true(self, condition, seconds):
        if not self.changed.wait_for(lambda: condition() or self.error or self.ends, seconds) or not condition():
            raise RuntimeError(f'torus: the store: {self.error}' if self.error else
                               'torus: the store has been closed' if self.ends else
                               f'torus: the store has not answered within {seconds:.3f} s')

    def read(self, keys, seconds):
        """Returns the values of the keys, once there are all."""
        while (values := self.request(seconds, 'read', keys)) is None:
            with self.changed:
                self.await_true(lambda: self.state.read(keys) is not None, seconds)
        return values

    def end(self):
        with self.changed:
            self.ends = True
            self.changed.notify_all()
        self.join()


class Store(dist.Store):
    """Some names are those of C++, which calls these functions."""

    def __init__(self, rounds):
        super().__init__()
        self.rounds = rounds

    def _ask(self, name, *arguments):
        return self.rounds.request(self.timeout.total_seconds(), name, *arguments)

    def set(self, key, value):
        self._ask('set', key, text_of(value))

    def get(self, key):
        return self.rounds.read([key], self.timeout.total_seconds())[0].encode('latin-1')

    def add(self, key, amount):
        return self._ask('add', key, amount)

    def compare_set(self, key, expected, value):
        return self._ask('compare_set', key, text_of(expected), text_of(value)).encode('latin-1')

    def deleteKey(self, key):
        return self._ask('delete_key', key)

    def check(self, keys):
        return self._ask('read', list(keys)) is not None

    def getNumKeys(self):
        return self._ask('num_keys')

    def wait(self, keys, timeout=None):
        self.rounds.read(list(keys), (timeout or self.timeout).total_seconds())


def text_of(value):
    return value if isinstance(value, str) else bytes(value).decode('latin-1')


opened = []  # the store in use: torch keeps only the part of it that is in C++


def close():
    while opened:
        opened.pop().rounds.end()


def rendezvous(url, timeout=timedelta(minutes=30), **_):
    """torus://NAME?on_failure=shrink. Ranks are numbered in the order of their nodes."""
    parts = urlparse(url)
    query = {key: values[0] for key, values in parse_qs(parts.query).items()}
    rank, size = (int(query.pop(key, -1)) for key in ('rank', 'world_size'))
    on_failure = query.pop('on_failure', 'fail')
    if query or parts.path not in ('', '/'):
        raise ValueError(f'torus: {url} is not understood: expected torus://NAME?on_failure=fail|shrink|wait')
    close()
    group_name = parts.netloc or 'torch'
    group = libtorus.Group(group_name, timeout=timeout.total_seconds(), on_failure=on_failure)
    if rank not in (-1, group.rank) or size not in (-1, group.size):
        group.close()
        raise ValueError(f'torus: this process is rank {group.rank} of {group.size}, not {rank} of {size}: leave rank and '
                         'world_size out')
    # A group with a list of members takes less memory of the daemons.
    with group:
        listed = libtorus.Group(f'{group_name}-store', members=group.nodes, timeout=timeout.total_seconds())
    listed.set_timeout(None)
    opened.append(Store(Rounds(listed)))
    yield opened[0], listed.rank, listed.size
    raise RuntimeError('torus: there is no second rendezvous for a URL')


atexit.register(close)
dist.register_rendezvous_handler('torus', rendezvous)
