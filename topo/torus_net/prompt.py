"""The launcher's prompt: one set of commands, for Mininet's own prompt and for a plain one."""

import cmd
import shlex
import subprocess
import sys

from . import interrupts
from .geometry import UsageError
from .process import TorusError
from .rate import parse_channel


class TorusCommands:
    """Commands about the torus `self.torus`, for a class derived from cmd.Cmd."""

    torus = None

    def do_exchange(self, line):
        """exchange --algorithm at2 --block-size 64KiB ...: run torusctl exchange at node 0"""
        self._torusctl(0, ['exchange'], line)

    def do_copy(self, line):
        """copy SOURCE --to TARGET ...: run torusctl copy at node 0"""
        self._torusctl(0, ['copy'], line)

    def do_torusctl(self, line):
        """torusctl status ...: run any torusctl command at node 0"""
        self._torusctl(0, [], line)

    def do_at(self, line):
        """at RANK COMMAND ...: run a torusctl command at another node, e.g. `at 5 links`"""
        rank, _, rest = line.partition(' ')
        with_node = self._node(rank)
        if with_node:
            self._torusctl(with_node.rank, [], rest)

    def do_nodes(self, _line):
        """nodes: list the nodes with their coordinates, processes and ports"""
        if not self.torus:
            return
        for node in self.torus.nodes:
            ports = '  '.join(
                f'{port.name} node {self.torus.geometry.neighbour(node.rank, port)} '
                f'({node.addresses[port.name]})' for port in self.torus.geometry.ports(node.rank))
            state = f'pid {node.pid}' if node.alive else 'not running'
            print(f'{node.rank:4d} {",".join(map(str, node.coordinates)):8s} {state:12s} {ports}')

    def do_log(self, line):
        """log RANK: print the log of a node's daemon"""
        node = self._node(line)
        if node:
            print(node.log(), end='')

    def do_kill(self, line):
        """kill RANK: kill a node's daemon (SIGKILL)"""
        node = self._node(line)
        if node and node.alive:
            node.kill()

    def do_restart(self, line):
        """restart RANK: stop a node's daemon if it is running, and start it again"""
        node = self._node(line)
        if node:
            try:
                node.restart()
            except (OSError, TorusError) as e:
                print(e, file=sys.stderr)

    def do_rate(self, line):
        """rate RANK:PORT [MBIT]: show or change the rate of what a node sends by a port, e.g. `rate 6:-1 2`"""
        words = line.split()
        if not hasattr(self.torus, 'set_rate'):
            print('links have rates in Mininet only', file=sys.stderr)
        elif len(words) not in (1, 2):
            print('usage: rate RANK:PORT [MBIT]', file=sys.stderr)
        else:
            try:
                rank, port = parse_channel(words[0], self.torus.geometry)
                if len(words) == 2:
                    self.torus.set_rate(rank, port, words[1])
                mbit = self.torus.rate(rank, port)
                print('no limit' if mbit is None else f'{mbit:g} Mbit/s')
            except (TorusError, UsageError) as e:
                print(e, file=sys.stderr)

    def _node(self, text):
        try:
            return self.torus.node(range(len(self.torus.nodes))[int(text.strip().lstrip('n'))])
        except (AttributeError, ValueError, IndexError):
            print(f'"{text}" is not a node', file=sys.stderr)
            return None

    def _torusctl(self, rank, words, line):
        if not self.torus:
            print('this network is not a torus', file=sys.stderr)
            return
        try:
            words = words + shlex.split(line)
        except ValueError as e:
            print(e, file=sys.stderr)
            return
        environment = {**self.torus.environment(), 'TORUS_SOCKET': self.torus.node(rank).socket}
        _foreground([self.torus.torusctl, *words], env=environment)


def _foreground(argv, **options):
    """Runs a command on this terminal. Ctrl-C reaches the command, which decides what to do."""
    sys.stdout.flush()
    process = None
    try:
        with interrupts.held():
            process = subprocess.Popen(argv, **options)
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue
    except BaseException:
        if process is not None:
            process.kill()
            process.wait()
        raise


class LoopbackPrompt(TorusCommands, cmd.Cmd):
    """A plain prompt, for networks without one of their own."""

    prompt = 'torus> '

    def __init__(self, torus):
        super().__init__()
        self.torus = torus
        if not sys.stdin.isatty():
            self.prompt = ''

    def do_sh(self, line):
        """sh COMMAND ...: run a shell command; torusctl in it connects to node 0"""
        _foreground(['/bin/sh', '-c', line], env=self.torus.environment())

    def do_exit(self, _line):
        """exit: take the torus down and leave (also quit, and Ctrl-D)"""
        return True

    do_quit = do_exit

    def do_EOF(self, _line):
        """end of input: leave"""
        if self.prompt:
            print()
        return True

    def emptyline(self):
        pass


def make_mininet_prompt():
    """Mininet's prompt with the commands above. A function because Mininet may not be installed."""
    from .mininet_api import CLI

    class TorusCLI(TorusCommands, CLI):
        def __init__(self, mininet, **options):
            self.torus = getattr(mininet.topo, 'torus', None)
            if self.torus and self.torus.adopted:
                try:
                    self.torus.wait_whole(self.torus.timeout)
                except (TorusError, UsageError) as e:
                    print(f'torus: {e}', file=sys.stderr)
            super().__init__(mininet, **options)

        @classmethod
        def initReadline(cls):
            """Without Mininet's history file in the home folder."""
            try:
                import readline  # noqa: F401 (importing it is what makes input() use it)
            except ImportError:
                pass

        def run(self):
            """Ctrl-C at the prompt exits; while a command runs, it only interrupts the command."""
            if self.torus is None or self.torus.adopted:
                super().run()  # in mn, which after Ctrl-C would remove other users' networks
            else:
                self.cmdloop()

        def onecmd(self, line):
            try:
                return super().onecmd(line)
            except KeyboardInterrupt:
                if self.torus is None or self.torus.adopted:
                    raise
                print('\nInterrupt')
                for node in self.mn.values():
                    while node.waiting:
                        node.sendInt()
                        node.waitOutput()
                return False

    return TorusCLI


def interact(torus):
    """Reads commands until the end of input."""
    with interrupts.at_prompt():
        if torus.kind == 'loopback':
            LoopbackPrompt(torus).cmdloop()
        else:
            make_mininet_prompt()(torus.net)
