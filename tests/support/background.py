"""Commands that run while a test does something to them."""

import signal
import subprocess

from torus_net.patience import Patience, communicate

from .waiting import exchanges, wait_running


def heed_sigint():
    """Restores SIGINT: background jobs of a shell ignore it, and clients under test must not."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class Background:
    """A `process`. It is killed at the end of the `with` block."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


class Client(Background):
    """A torusctl."""

    def __init__(self, torus, *args, rank=0, cwd=None):
        self.torus, self.rank = torus, rank
        self.process = subprocess.Popen(
            [torus.torusctl, '--socket', torus.node(rank).socket, *map(str, args)], cwd=cwd,
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)

    def send_signal(self, signum):
        self.process.send_signal(signum)

    def end(self, patience=60):
        """Waits until it exits, at most for a Patience or that many seconds. Returns (exit status, standard output,
        standard error)."""
        out, err = communicate(self.process, patience if isinstance(patience, Patience) else Patience(patience))
        return self.process.returncode, out, err


class LongExchange(Client):
    """An exchange that is running (data is on the links) and would take a very long time."""

    def __init__(self, torus, *args, rank=0, algorithm='at2', block_size='100GiB'):
        before = {x['id'] for x in exchanges(torus, rank)}
        super().__init__(torus, 'exchange', '--algorithm', algorithm, '--block-size', block_size,
                         *args, rank=rank)
        try:
            self.id = wait_running(torus, rank, tx_bytes=2_000_000, besides=before)
        except BaseException:
            self.__exit__()
            raise


class stopped:
    """with stopped(node): stops the daemon with SIGSTOP, and continues it with SIGCONT."""

    def __init__(self, *nodes):
        self.nodes = nodes

    def __enter__(self):
        for node in self.nodes:
            node.send_signal(signal.SIGSTOP)

    def __exit__(self, *_):
        for node in self.nodes:
            node.send_signal(signal.SIGCONT)
