"""A store for torch.distributed that needs nothing but the torus: init_method='torus://'."""

import collections
import concurrent.futures
import contextlib
import hashlib
import itertools
import json
import os
import select
import socket
import struct
import threading
import time
from datetime import timedelta
from urllib.parse import parse_qs, urlparse

import numpy
import torch.distributed as dist

import libtorus

from ._backend import memory_seconds

# Tags of messages: requests to member 0, and its answers. What does not fit into HEAD bytes follows with the tag + 2.
REQUEST, ANSWER, REST = 0, 1, 2
HEAD = 512
MOST_CALLS = 40  # a group makes 64 at a time
NAMES = {'set', 'add', 'compare_set', 'delete_key', 'read', 'wait', 'num_keys'}  # of requests


class State:
    """Keys and values. Requests are lists of texts and numbers; values are Latin-1."""

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


class Link(threading.Thread):
    """The part of the store on a node, over a group. Member 0 keeps the state, and the others send it their requests."""

    def __init__(self, group):
        super().__init__(name='torus store', daemon=True)
        self.group, self.keeps = group, group.rank == 0
        self.state, self.waiting = State(), {}  # the keys that requests wait for, by (member, number)
        self.lock = threading.Lock()
        self.submitted, self.ends, self.error = collections.deque(), False, None  # under the lock
        self.wakes = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.ready = select.poll()
        for fd in self.wakes, group.fileno():
            self.ready.register(fd, select.POLLIN)
        self.numbers, self.has_ended = itertools.count(), False
        self.others = group.size - 1 if self.keeps else 0  # how many have not ended
        self.futures = {}  # of requests that have no answer yet, by their numbers
        self.to_start, self.under_way = collections.deque(), []  # (how to start it, what to do then); (call, what to do then)
        self.start()

    # --- other threads ---

    def request(self, seconds, name, *arguments):
        """Returns the answer. `wait` is answered once all keys are there."""
        future = concurrent.futures.Future()
        number = self.submit(future, name, *arguments)
        try:
            return future.result(seconds)
        except concurrent.futures.TimeoutError:
            self.submit(None, 'cancel', number)
            raise RuntimeError(f'torus: the store has not answered within {seconds:.3f} s') from None

    def submit(self, future, name, *arguments):
        with self.lock:
            if self.ends or self.error:
                raise RuntimeError(f'torus: the store: {self.error}' if self.error else 'torus: the store has been closed')
            number = next(self.numbers)
            self.submitted.append((number, future, name, arguments))
            os.eventfd_write(self.wakes, 1)
        return number

    def end(self):
        with self.lock:
            self.ends = True
            os.eventfd_write(self.wakes, 1)
        self.join()
        os.close(self.wakes)

    # --- the thread ---

    def run(self):
        try:
            if self.others:
                self.listen()
            while True:
                self.take_submitted()
                while self.to_start and len(self.under_way) < MOST_CALLS:
                    start, then = self.to_start.popleft()
                    self.under_way.append((start(), then))
                if self.finish_calls():
                    continue
                if self.is_over():
                    break
                self.ready.poll()
        except libtorus.TorusError as error:
            with self.lock:
                self.error = error
        self.group.close()
        with self.lock:
            unanswered = [*self.futures.values(), *(future for _, future, *_ in self.submitted if future)]
        for future in unanswered:
            future.set_exception(RuntimeError(f'torus: the store: {self.error or "it has been closed"}'))

    def is_over(self):
        """Calls that are under way when a member leaves fail the group, so a member waits for its answers, and member 0 until
        all others have ended."""
        return self.has_ended and not (self.futures or self.to_start or self.under_way or self.submitted or self.others)

    def take_submitted(self):
        try:
            os.eventfd_read(self.wakes)
        except BlockingIOError:
            pass
        with self.lock:
            submitted, self.submitted = self.submitted, collections.deque()
            ends = self.ends
        for number, future, name, arguments in submitted:
            if future:
                self.futures[number] = future
            if self.keeps:
                self.carry_out(0, [number, name, *arguments])
                continue
            self.send(0, REQUEST, [number, name, *arguments])
            if future and len(self.futures) == 1:
                self.await_answer()
        if ends and not self.has_ended:
            self.has_ended = True
            for request in [*([-1, 'cancel', number] for number in self.futures), [-1, 'end']]:
                if self.keeps:
                    self.carry_out(0, request)
                else:
                    self.send(0, REQUEST, request)

    def finish_calls(self):
        """Returns whether a call has ended."""
        ended = [one for one in self.under_way if one[0].done()]
        self.under_way = [one for one in self.under_way if one not in ended]
        for call, then in ended:
            then(call.wait())
        return bool(ended)

    def send(self, member, tag, content):
        text = json.dumps(content).encode()
        data = numpy.frombuffer(len(text).to_bytes(8, 'little') + text.ljust(HEAD - 8), numpy.uint8)
        for part, part_tag in (data[:HEAD], tag), (data[HEAD:], tag + REST):
            if part.size:
                self.to_start.append((lambda part=part, part_tag=part_tag: self.group.start_send(part, member, part_tag),
                                      lambda _: None))

    def receive_rest(self, member, tag, head, then):
        """Calls `then` with the content of a message that begins with `head`."""
        size = int.from_bytes(head[:8].tobytes(), 'little')
        text = head[8:size + 8].tobytes()
        if size <= HEAD - 8:
            then(json.loads(text))
            return
        rest = numpy.empty(size - len(text), numpy.uint8)
        self.under_way.append((self.group.start_recv(rest, member, tag + REST),
                               lambda _: then(json.loads(text + rest.tobytes()))))

    def listen(self):
        head = numpy.empty(HEAD, numpy.uint8)

        def take(member):
            self.receive_rest(member, REQUEST, head, lambda request: self.carry_out(member, request))
            if self.others:
                self.listen()

        self.under_way.append((self.group.start_recv_any(head, REQUEST), take))

    def carry_out(self, member, request):
        number, name, *arguments = request
        if name == 'end':
            self.others -= member != 0
        elif name == 'cancel':
            if self.waiting.pop((member, arguments[0]), None):
                self.answer(member, arguments[0], None, 'the request has been given up')
        else:
            try:
                value = getattr(self.state, 'read' if name == 'wait' else name)(*arguments)
            except (TypeError, ValueError) as error:  # such as add() to a value that is no number
                self.answer(member, number, None, f'{name}: {error}')
            else:
                if name == 'wait' and value is None:
                    self.waiting[member, number] = arguments[0]
                else:
                    self.answer(member, number, value)
        for (member, number), keys in list(self.waiting.items()):
            if (values := self.state.read(keys)) is not None:
                del self.waiting[member, number]
                self.answer(member, number, values)

    def answer(self, member, number, value, problem=None):
        if member == 0:
            self.take_answer([number, value, problem])
        else:
            self.send(member, ANSWER, [number, value, problem])

    def await_answer(self):
        head = numpy.empty(HEAD, numpy.uint8)

        def take(_):
            self.receive_rest(0, ANSWER, head, finish)

        def finish(answer):
            self.take_answer(answer)
            if self.futures:
                self.await_answer()

        self.under_way.append((self.group.start_recv(head, 0, ANSWER), take))

    def take_answer(self, answer):
        number, value, problem = answer
        future = self.futures.pop(number)
        if problem:
            future.set_exception(RuntimeError(f'torus: the store: {problem}'))
        else:
            future.set_result(value)


# --- several ranks on a node ---


def door(group_name):
    """The address at which the first rank of the node takes requests of the others there: a name that is not a file's."""
    name = hashlib.sha256(f'{os.environ.get("TORUS_SOCKET", "")} {group_name}'.encode()).hexdigest()
    return f'\0torus-{os.geteuid()}-{name[:32]}'.encode()


def is_own(connection):
    """Whether a process of this user is at the other end."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize('3i'))
    return struct.unpack('3i', credentials)[1] == os.geteuid()


def listen_at(address):
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise RuntimeError('torus: another program on this node uses the same URL: give each its own torus://NAME '
                           f'({error.strerror})') from None
    listener.listen(64)
    return listener


class Doorkeeper(threading.Thread):
    """Passes on the requests of other ranks of the node: a connection for each request."""

    def __init__(self, listener, link, first, size):
        super().__init__(name='torus ranks', daemon=True)
        self.listener, self.link, self.first, self.size = listener, link, first, size
        self.seen = set()
        self.start()

    def run(self):
        with self.listener:
            while True:
                try:
                    connection, _ = self.listener.accept()
                except OSError:
                    return
                threading.Thread(target=self.answer, args=[connection], daemon=True).start()

    def answer(self, connection):
        with contextlib.suppress(OSError, ValueError, TypeError), connection, connection.makefile('rwb') as file:
            seconds, name, *arguments = json.loads(file.readline() if is_own(connection) else b'')
            try:
                answer, problem = self.carry_out(seconds, name, *arguments), None
            except RuntimeError as error:
                answer, problem = None, str(error)
            file.write(json.dumps([answer, problem]).encode() + b'\n')

    def carry_out(self, seconds, name, *arguments):
        if name == 'enter':
            return self.enter(*arguments)
        if name not in NAMES:
            raise ValueError(name)
        return self.link.request(seconds, name, *arguments)

    def enter(self, local):
        """Returns rank and size of another rank, or None if it has been here: then it waits for the next group."""
        if local in self.seen:
            return None
        self.seen.add(local)
        return self.first + local, self.size

    def end(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.join()


class Visitor:
    """Has its requests passed on by the first rank of its node."""

    def __init__(self, address):
        self.address = address

    def request(self, seconds, name, *arguments):
        try:
            with socket.socket(socket.AF_UNIX) as connection, connection.makefile('rwb') as file:
                connection.connect(self.address)
                if not is_own(connection):
                    raise RuntimeError('torus: the address of the first rank of this node is taken by another user')
                file.write(json.dumps([seconds, name, *arguments]).encode() + b'\n')
                file.flush()
                line = file.readline()
        except OSError:
            line = b''
        if not line.endswith(b'\n'):
            raise RuntimeError('torus: the store has been closed: the first rank of this node has none')
        answer, problem = json.loads(line)
        if problem:
            raise RuntimeError(problem)
        return answer

    def enter(self, local, seconds):
        end = time.monotonic() + seconds
        while True:
            try:
                if answer := self.request(seconds, 'enter', local):
                    return answer
                problem = 'it has not called init_process_group again'
            except RuntimeError as error:  # the first rank has not come yet
                problem = str(error).removeprefix('torus: ')
            if time.monotonic() > end:
                raise RuntimeError('torus: the rank with LOCAL_RANK=0 on this node has not opened the store within '
                                   f'{seconds:.3f} s: {problem}')
            time.sleep(0.02)

    def end(self):
        pass


# --- for torch ---


class Store(dist.Store):
    """Some names are those of C++, which calls these functions."""

    def __init__(self, link, doorkeeper=None):
        super().__init__()
        self.link, self.doorkeeper = link, doorkeeper

    def end(self):
        if self.doorkeeper:
            self.doorkeeper.end()
        self.link.end()

    def _ask(self, name, *arguments):
        return self.link.request(self.timeout.total_seconds(), name, *arguments)

    def set(self, key, value):
        self._ask('set', key, text_of(value))

    def get(self, key):
        return self._ask('wait', [key])[0].encode('latin-1')

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
        self.link.request((timeout or self.timeout).total_seconds(), 'wait', list(keys))


def text_of(value):
    return value if isinstance(value, str) else bytes(value).decode('latin-1')


opened = []  # the store in use: torch keeps only the part of it that is in C++


def close():
    while opened:
        opened.pop().end()


def open_link(group_name, on_failure, local_size, seconds):
    """Returns what the first rank of a node needs: the link, its rank, and the number of ranks."""
    group = libtorus.Group(group_name, timeout=seconds, on_failure=on_failure, memory_timeout=memory_seconds)
    # A group with a list of members takes less memory of the daemons.
    with group:
        counts = group.allgather(numpy.uint64(local_size))
        listed = libtorus.Group(f'{group_name}-store', members=group.nodes, timeout=seconds,
                                memory_timeout=memory_seconds)
    listed.set_timeout(None)
    return Link(listed), int(counts[:listed.rank].sum()), int(counts.sum())


def open_first(group_name, on_failure, local_size, seconds):
    """Opens the store at the first rank of a node. Returns its rank, and the number of ranks."""
    listener = listen_at(door(group_name)) if local_size > 1 else None
    try:
        link, rank, size = open_link(group_name, on_failure, local_size, seconds)
    except BaseException:
        if listener:
            listener.close()
        raise
    opened.append(Store(link, Doorkeeper(listener, link, rank, size) if listener else None))
    return rank, size


def rendezvous(url, timeout=timedelta(minutes=30), **_):
    """torus://NAME?on_failure=shrink. Ranks are numbered in the order of their nodes, and on a node by LOCAL_RANK."""
    parts = urlparse(url)
    query = {key: values[0] for key, values in parse_qs(parts.query).items()}
    asked = tuple(int(query.pop(key, -1)) for key in ('rank', 'world_size'))
    on_failure = query.pop('on_failure', 'fail')
    if query or parts.path not in ('', '/'):
        raise ValueError(f'torus: {url} is not understood: expected torus://NAME?on_failure=fail|shrink|wait')
    local, local_size = (int(os.environ.get(name, default)) for name, default in (('LOCAL_RANK', 0), ('LOCAL_WORLD_SIZE', 1)))
    close()
    group_name = parts.netloc or 'torch'
    if local > 0:
        link = Visitor(door(group_name))
        rank, size = link.enter(local, timeout.total_seconds())
        opened.append(Store(link))
    else:
        rank, size = open_first(group_name, on_failure, local_size, timeout.total_seconds())
    if any(given not in (-1, found) for given, found in zip(asked, (rank, size))):
        close()
        raise ValueError(f'torus: this process is rank {rank} of {size}, not {asked[0]} of {asked[1]}: leave rank and '
                         'world_size out')
    yield opened[0], rank, size
    raise RuntimeError('torus: there is no second rendezvous for a URL')


dist.register_rendezvous_handler('torus', rendezvous)
