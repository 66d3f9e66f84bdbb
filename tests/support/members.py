"""Programs that are members of groups, and execute a test's commands (member.c)."""

import os
import re
import select
import signal
import subprocess
from pathlib import Path

from torus_net.patience import Patience

from .waiting import wait_for


class Member:
    def __init__(self, node):
        self.node = node
        program = Path(node.torus.torusctl).parent / 'tests' / 'support' / 'member'
        self.process = node.start_program(f'exec {program} {node.socket}', stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE)
        self.read = b''

    def tell(self, line):
        """Sends a command without waiting for the answer."""
        self.process.stdin.write(line.encode() + b'\n')
        self.process.stdin.flush()

    def has_answered(self, seconds=0.0):
        while b'\n' not in self.read:
            if not select.select([self.process.stdout], [], [], seconds)[0]:
                return False
            data = os.read(self.process.stdout.fileno(), 65536)
            assert data, f'the program of node {self.node.rank} has ended: {self.read!r}'
            self.read += data
        return True

    def answer(self, seconds=30):
        patience = Patience(seconds)
        while not self.has_answered(patience.pause):
            assert not patience.over, f'no answer from node {self.node.rank}'
        line, _, self.read = self.read.partition(b'\n')
        return line.decode()

    def do(self, line, seconds=30):
        self.tell(line)
        return self.answer(seconds)

    def is_in_call(self):
        """Whether it sleeps in libtorus until a call has ended."""
        try:
            return 'futex' in Path(f'/proc/{self.process.pid}/wchan').read_text()
        except OSError:
            return False

    def send_signal(self, signum):
        self.process.send_signal(signum)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Members:
    """with Members(torus) as members: starts a member on every node."""

    def __init__(self, torus):
        self.torus = torus
        self.all = []

    def __enter__(self):
        try:
            for node in self.torus.nodes:
                self.all.append(Member(node))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for member in self.all:
            member.end()

    def __getitem__(self, rank):
        return self.all[rank]

    def __iter__(self):
        return iter(self.all)

    def replace(self, rank):
        """Replaces a program by a new one."""
        self.all[rank].end()
        self.all[rank] = Member(self.torus.node(rank))

    def but(self, *ranks):
        return [member for rank, member in enumerate(self.all) if rank not in ranks]

    def tell(self, line):
        for member in self.all:
            member.tell(line)

    def answers(self, seconds=30):
        return [member.answer(seconds) for member in self.all]

    def do(self, line, seconds=30):
        """All members execute a command, and succeed."""
        self.tell(line)
        assert self.answers(seconds) == ['ok'] * len(self.all)


def calls_done(torus, rank, name):
    return next((group['calls_done'] for group in torus.status(rank)['groups']
                 if group['name'] == name), 0)


def around(torus, name, ranks=None):
    """The nodes and links that the group leaves out or avoids, as each node (or each of these) reports."""
    return {group['avoids'] for rank in (range(len(torus.nodes)) if ranks is None else ranks)
            for group in torus.status(rank)['groups'] if group['name'] == name}


def wait_calls(torus, rank, name, more=20):
    """Waits until the group has completed that many more calls."""
    first = calls_done(torus, rank, name)
    wait_for(lambda: calls_done(torus, rank, name) >= first + more, 30,
             f'no calls of group {name} at node {rank}')


def same_error(members, seconds=30):
    """The error with which these members end their call; it must be the same text for all."""
    answers = {member.node.rank: member.answer(seconds) for member in members}
    assert len(set(answers.values())) == 1, answers
    answer = next(iter(answers.values()))
    assert re.match(r'[a-z_ ]+: \S', answer) and not answer.startswith('wrong'), answer
    return answer


class paused:
    """with paused(member): stops the program with SIGSTOP, and continues it with SIGCONT."""

    def __init__(self, *members):
        self.members = members

    def __enter__(self):
        for member in self.members:
            member.send_signal(signal.SIGSTOP)

    def __exit__(self, *_):
        for member in self.members:
            member.send_signal(signal.SIGCONT)
