"""Programs that run on all nodes and make measurements on request."""

import json
import selectors
import shlex
import socket
import subprocess
import time

from torus_net import interrupts

from . import machine
from .systems import ORDINARY, Failed


class Job:
    """collective.c with a library, which runs on all nodes and makes measurements on request."""

    def __init__(self, net, program, folder):
        self.net = net
        self.program = program
        self.folder = folder
        self.connections = {}
        self.pids = []

    # The methods of each kind of job: start the program on all nodes with the path `control`; raise Failed if
    # the program has ended; check how a rank identifies itself; end all processes of the job.
    def launch(self, control):
        raise NotImplementedError

    def must_run(self):
        raise NotImplementedError

    def check(self, hello):
        pass

    def kill(self):
        raise NotImplementedError

    def start(self, timeout):
        nodes = self.net.geometry.nodes
        self.folder.mkdir(exist_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path = self.folder / 'control'
        try:
            path.unlink(missing_ok=True)
            listener.bind(str(path))
            listener.listen(nodes)
            with interrupts.held(), open(self.folder / 'output', 'wb') as output:
                self.launch(path, output)
            self._gather(listener, nodes, time.monotonic() + timeout)
        except BaseException:
            self.stop()
            raise
        finally:
            listener.close()

    def _gather(self, listener, nodes, deadline):
        """Waits until every rank has identified itself."""
        listener.settimeout(0.2)
        while len(self.connections) < nodes:
            self.must_run()
            if time.monotonic() > deadline:
                raise Failed(f'{len(self.connections)} of {nodes} ranks came up in time'
                             + self.said())
            try:
                connection = listener.accept()[0]
            except TimeoutError:
                continue
            connection.settimeout(10)
            lines = connection.makefile('r')
            hello = json.loads(lines.readline())
            if hello['ranks'] != nodes:
                raise Failed(f'rank {hello["rank"]} is one of {hello["ranks"]}, not of {nodes}')
            self.check(hello)
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            self.pids.append(int.from_bytes(credentials[:4], 'little'))
            self.connections[hello['rank']] = connection, lines

    def said(self):
        """The end of the program's output, as the end of an error message."""
        try:
            text = (self.folder / 'output').read_text(errors='replace').strip()
        except OSError:
            return ''
        return ': ' + ' | '.join(text.splitlines()[-4:])[-600:] if text else ''

    def run(self, operation, size, warmup, repeats, timeout, *, pause=0.0, batch=0, memory=ORDINARY,
            selection=()):
        """Makes a measurement, see collective.c. `selection` is a variable and its value. Raises Failed if there is
        no reply in time."""
        self.must_run()
        order = ('run', operation, size, warmup, repeats, round(pause * 1e6), batch, memory, *selection)
        try:
            for connection, _ in self.connections.values():
                connection.sendall((' '.join(map(str, order)) + '\n').encode())
            answer = self._answer(timeout)
        except OSError as e:
            raise Failed(f'{e}' + self.said()) from e
        if answer['wrong_blocks']:
            raise Failed(f'{answer["wrong_blocks"]} blocks were wrong')
        return answer['seconds']

    def _answer(self, timeout):
        connection, lines = self.connections[0]
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(connection, selectors.EVENT_READ)
            while not selector.select(0.5):
                self.must_run()
                if time.monotonic() > deadline:
                    raise Failed(f'not finished within {timeout:.0f} s' + self.said())
        line = lines.readline()
        if not line:
            raise Failed('it exited during the measurement' + self.said())
        return json.loads(line)

    def process_seconds(self):
        return sum(map(machine.process_seconds, self.pids))

    def stop(self):
        with interrupts.held():
            for connection, lines in self.connections.values():
                lines.close()
                connection.close()
            self.connections = {}
            self.kill()
            self.pids = []


class GroupJob(Job):
    """The program with libtorus, started on every node."""

    def __init__(self, net, program, folder):
        super().__init__(net, program, folder)
        self.processes = []

    def launch(self, control, output):
        command = f'exec {shlex.quote(str(self.program))} --control {shlex.quote(str(control))}'
        for node in self.net.torus.nodes:
            self.processes.append(node.start_program(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True))

    def must_run(self):
        for rank, process in enumerate(self.processes):
            if process.poll() is not None:
                raise Failed(f'on node {rank} it exited with status {process.returncode}' + self.said())
        if not self.processes:
            raise Failed('it has been stopped' + self.said())

    def kill(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        self.processes = []


class Starter:
    """Keeps a job running for the systems of one library. Restarts it after a failure, at most twice."""

    STARTS = 3
    TIMEOUT = 120.0

    def __init__(self, make_job):
        self.make_job = make_job
        self.job = None
        self.starts = 0
        self.start_seconds = None
        self.reason = None

    def running(self):
        if self.job is None:
            if self.starts >= self.STARTS:
                raise Failed(f'given up after: {self.reason}')
            self.starts += 1
            job = self.make_job()
            begin = time.monotonic()
            try:
                job.start(self.TIMEOUT)
            except Failed as e:
                self.reason = str(e)
                raise
            self.start_seconds = time.monotonic() - begin
            self.job = job
        return self.job

    def failed(self, reason):
        self.reason = str(reason)
        self.stop()

    def stop(self):
        if self.job is not None:
            self.job.stop()
            self.job = None


def started(make_job, name, starters, say, failure):
    """A Starter whose job has come up, or None. Adds it to those that are to be stopped."""
    starter = Starter(make_job)
    starters.append(starter)
    try:
        starter.running()
    except Failed as e:
        failure(f'{name} did not start: {e}')
        return None
    say(f'{name} came up in {starter.start_seconds:.1f} s')
    return starter
