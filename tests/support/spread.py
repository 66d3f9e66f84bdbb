"""A pytest plugin: with `--workers N`, N processes run the tests.

The tests are collected once. Then the processes are forked, so each of them has all tests, and asks this process for
the next unit of work: the tests of a file that share a fixture of the file, or else one test.

A machine with few processors is busy with two kinds of tests: those that mostly wait, and programs that compute, and
sometimes wait for the disk. The latter run at a low priority, two more at a time than there are processors. Tests that measure links run at the
end, when nothing else does. An item says what it is: `item.computes`, `item.quiet`, `item.unit` (tests with the same
one stay together), `item.whole` (so do all of the unit, however many they are: what they share takes long to make).

With `--most SECONDS`, no test begins after that time. The units then run in an order of the day, those of `item.early`
first, so that other tests are left out on other days, and the end of the output says how many were. If no test has begun
at all, the run fails.
"""

import os
import random
import resource
import signal
import time
import traceback
from multiprocessing import Pipe
from multiprocessing.connection import wait

import pytest

PROCESSORS = len(os.sched_getaffinity(0))
MOST_IN_UNIT = 20  # tests: no worker is busy with a long file when the others have no more work


class Kept:
    """Stands for the next test when that is not yet known: fixtures of the session stay."""

    def __init__(self, session):
        self.session = session

    def listchain(self):
        return [self.session]


class Unit:
    def __init__(self, indices, first):
        self.indices = indices
        self.computes, self.quiet, self.early = (getattr(first, name, False) for name in ('computes', 'quiet', 'early'))


def _key(item, index):
    """Tests with the same key stay together."""
    own = getattr(item, 'unit', None)
    if own is not None:
        return own
    definitions = getattr(item, '_fixtureinfo', None)
    for definition in definitions.name2fixturedefs.values() if definitions else ():
        if definition[-1].scope in ('module', 'class') and definition[-1].argname in item.fixturenames:
            return str(item.path), os.environ.get('TORUS_BIN'), getattr(item, 'build', None)
    return index


def units(items):
    """Units in the order of their first tests."""
    made = {}
    for index, item in enumerate(items):
        made.setdefault(_key(item, index), []).append(index)
    result = []
    for indices in made.values():
        first = items[indices[0]]
        most = len(indices) if getattr(first, 'whole', False) else MOST_IN_UNIT
        for begin in range(0, len(indices), most):
            result.append(Unit(indices[begin:begin + most], first))
    return result


class _Sender:
    """In a worker: sends reports to the parent."""

    def __init__(self, config, pipe):
        self.config, self.pipe = config, pipe

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report):
        self.pipe.send(('report', self.config.hook.pytest_report_to_serializable(config=self.config, report=report)))


def _is_over(end):
    return end is not None and time.monotonic() >= end


def _processor_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _work(session, pipe, number, end):
    """A worker: runs units until there are no more, or it is that time."""
    config, items = session.config, session.items
    capture = config.pluginmanager.getplugin('capturemanager')
    capture.stop_global_capturing()  # the files that capture output are the parent's
    capture.start_global_capturing()
    config.pluginmanager.unregister(name='terminalreporter')
    config.pluginmanager.register(_Sender(config, pipe))
    factory = config._tmp_path_factory
    factory._basetemp = factory.getbasetemp() / f'worker-{number}'
    factory._basetemp.mkdir()
    kept = Kept(session)
    while True:
        pipe.send(('ready',))
        indices = pipe.recv()
        if indices is None:
            break
        for index, following in zip(indices, [*indices[1:], None]):
            if _is_over(end):
                break  # Nothing follows, so what the tests of this unit share may stay.
            before = _processor_seconds()
            pipe.send(('begin', index))
            config.hook.pytest_runtest_protocol(item=items[index],
                                                nextitem=kept if following is None else items[following])
            pipe.send(('end', index, _processor_seconds() - before))


def _interrupt_once(_signum, _frame):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _child(session, pipe, number, end):
    status = 0
    try:
        # Ctrl-C reaches all processes, and then the parent tells it to the workers: the second one must not interrupt
        # the cleaning up, and must not leave this function.
        signal.signal(signal.SIGINT, _interrupt_once)
        try:
            _work(session, pipe, number, end)
        finally:
            session._setupstate.teardown_exact(None)
    except KeyboardInterrupt:
        status = 1
    except BaseException:
        status = 1
        pipe.send(('broken', traceback.format_exc()))
    os._exit(status)


class Worker:
    def __init__(self, session, number, end):
        self.number, self.unit, self.index = number, None, None
        self.pipe, others = Pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self.pipe.close()
            _child(session, others, number, end)
        others.close()


class Spread:
    """In the parent: hands out units, and passes on the reports."""

    def __init__(self, config, count, most):
        self.config, self.count = config, count
        self.end = None if most is None else time.monotonic() + most
        self.begun = self.left_out = 0  # tests
        self.processor = {}  # processor seconds of each test, by nodeid

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            raise session.Interrupted(f'{session.testsfailed} errors during collection')
        if session.config.option.collectonly:
            return True
        self.session, self.left = session, units(session.items)
        if self.end is not None:
            random.Random(time.strftime('%Y%m%d')).shuffle(self.left)
            self.left.sort(key=lambda unit: not unit.early)
        self.forked, self.workers, self.idle = 0, {}, []
        session.config._tmp_path_factory.getbasetemp()
        try:
            for _ in range(min(self.count, len(self.left))):
                self._fork()
            while self.workers:
                for pipe in wait(list(self.workers)):
                    self._hear(self.workers[pipe])
                if session.shouldfail or session.shouldstop:
                    self.left = []
                self._hand_out()
        except KeyboardInterrupt:
            self._end()
            raise
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        if self.left_out and not self.begun:
            session.shouldfail = 'the time was over before a test could begin'
            raise session.Failed(session.shouldfail)
        return True

    def _fork(self):
        worker = Worker(self.session, self.forked, self.end)
        self.forked += 1
        self.workers[worker.pipe] = worker

    def _end(self):
        """After Ctrl-C, which the workers have heard, too: waits until they have stopped what they started."""
        for worker in self.workers.values():
            try:
                os.kill(worker.pid, signal.SIGINT)
            except ProcessLookupError:
                pass
        for worker in self.workers.values():
            os.waitpid(worker.pid, 0)

    def _hear(self, worker):
        try:
            kind, *told = worker.pipe.recv()
        except (EOFError, ConnectionResetError):
            self._gone(worker)
            return
        hook = self.config.hook
        if kind == 'ready':
            self.left_out += len(worker.unit.indices) if worker.unit else 0
            worker.unit = None
            self.idle.append(worker)
        elif kind == 'begin':
            worker.index, = told
            self.begun += 1
        elif kind == 'end':
            index, seconds = told
            self.processor[self.session.items[index].nodeid] = seconds
            worker.unit.indices.remove(index)
            worker.index = None
        elif kind == 'report':
            hook.pytest_runtest_logreport(
                report=hook.pytest_report_from_serializable(config=self.config, data=told[0]))
        elif kind == 'broken':
            self._fail(f'worker {worker.number}', told[0])

    def _gone(self, worker):
        """A worker has ended. If it died during a test, that test has failed, and another worker takes its place."""
        del self.workers[worker.pipe]
        if worker in self.idle:
            self.idle.remove(worker)
        status = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        if worker.unit is None:
            return
        rest = worker.unit
        if worker.index is not None:
            rest.indices.remove(worker.index)
            self._fail(self.session.items[worker.index].nodeid, f'the process of the test ended with status {status}')
        if rest.indices:
            self.left.insert(0, rest)
        if not self.session.shouldfail and not self.session.shouldstop:
            self._fork()

    def pytest_terminal_summary(self, terminalreporter):
        if self.left_out:
            terminalreporter.write_line(f'NOT RUN, because the time was over: {self.left_out} tests')

    def _fail(self, nodeid, text):
        self.config.hook.pytest_runtest_logreport(
            report=pytest.TestReport(nodeid, (nodeid, None, nodeid), {}, 'failed', text, 'call'))

    def _hand_out(self):
        if _is_over(self.end):
            self.left_out += sum(len(unit.indices) for unit in self.left)
            self.left = []
        while self.idle:
            running = [worker.unit for worker in self.workers.values() if worker.unit]
            unit = self._next(running)
            if unit is None and (self.left or not running):
                if self.left:
                    return
                for worker in self.idle:
                    worker.pipe.send(None)
                self.idle = []
                return
            if unit is None:
                return
            worker = self.idle.pop(0)
            worker.unit = unit
            worker.pipe.send(list(unit.indices))

    def _next(self, running):
        """The next unit that may run beside those that are running, or None."""
        loud = [unit for unit in self.left if not unit.quiet]
        if loud:
            computing = sum(unit.computes for unit in running)
            fits = [unit for unit in loud if not unit.computes or computing < PROCESSORS + 2]
            first = [unit for unit in fits if unit.computes] or fits
            chosen = first[0] if first else None
        elif any(not unit.quiet for unit in running):
            chosen = None
        else:
            chosen = self.left[0] if self.left and len(running) < PROCESSORS + 4 else None
        if chosen is not None:
            self.left.remove(chosen)
        return chosen


def pytest_addoption(parser):
    parser.addoption('--workers', type=int, default=1, metavar='N', help='run the tests in N processes')
    parser.addoption('--most', type=float, metavar='SECONDS',
                     help='begin no test after so many seconds (two workers or more)')


def pytest_configure(config):
    count = config.getoption('--workers')
    if count > 1:
        config.pluginmanager.register(Spread(config, count, config.getoption('--most')), 'spread')
