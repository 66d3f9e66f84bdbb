"""Fixtures of the integration tests: tori of real daemons, which must not fail and must exit with 0.

The programs come from $TORUS_BIN, else PATH, else build/; $TORUS_WRAP (as in "valgrind -q") is put
before every daemon. Run with: /usr/bin/python3 -m pytest tests/integration
"""

import os
import re
import shutil

import pytest

# The files that take longest, mostly by waiting. They start first, so that a parallel run by file (scripts/test)
# does not wait for one of them at its end.
LONG = ('test_fresh_clone', 'test_routed_rates', 'test_routed', 'test_rates', 'test_routed_mtu', 'test_cluster_changes', 'test_commit', 'test_overload', 'test_attacks_neighbour',
        'test_attacks_strangers', 'test_failures_nodes', 'test_failures_requests', 'test_daemon_start', 'test_slow_disk', 'test_mpi_preload', 'test_exchange',
        'test_group_failures', 'test_mininet', 'test_chaos', 'test_bench_runs', 'test_picture', 'test_allgather',
        'test_topo_launch', 'test_folders', 'test_programs', 'test_copy_faults', 'test_copy_load', 'test_copy_random', 'test_groups', 'test_big', 'test_topo_exchange')
# Their tests share tori in Mininet, one of each shape.
SHARING = ('test_mininet', 'test_mininet_collectives')

from support.background import heed_sigint
from support.browser import OBSTACLE as BROWSER_OBSTACLE
from support.hosts import Hosts, obstacle as hosts_obstacle
from support.reports import LIVE, add_logs
from support.wire import says_whole
from torus_net import LoopbackTorus, TorusError, mininet_obstacle
from torus_net.process import tail


def pytest_configure(config):
    heed_sigint()
    obstacle = '--no-mininet' if config.getoption('--no-mininet') else mininet_obstacle()
    config.mininet_obstacle = obstacle
    config.hosts_obstacle = hosts_obstacle()


# Fixtures that start daemons, or make hosts that are set up.
TORI = {'loopback', 'shared', 'cabled', 'mininet', 'hosts', 'bench'}


def thin_out(items):
    """The default level runs two of the sets of parameters of a test that starts daemons: the others run the same code of the test and the daemons, on other tori or with other algorithms and sizes."""
    cases = {}
    for item in items:
        if hasattr(item, 'callspec') and TORI & set(item.fixturenames) and not item.get_closest_marker('full'):
            cases.setdefault((item.path, item.originalname), []).append(item)
    for several in cases.values():
        for item in several[1:-1]:
            item.add_marker('full')


def pytest_collection_modifyitems(config, items):
    thin_out(items)
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))
    for item in items:
        if 'mininet' in getattr(item, 'fixturenames', ()):
            item.add_marker('mininet')
        if item.get_closest_marker('mininet'):
            item.quiet = True
            item.unit = _torus_of(item)
        if item.get_closest_marker('mininet') and config.mininet_obstacle:
            item.add_marker(pytest.mark.skip(reason=config.mininet_obstacle))
        if item.get_closest_marker('browser'):
            item.add_marker('full')
            if BROWSER_OBSTACLE:
                item.add_marker(pytest.mark.skip(reason=BROWSER_OBSTACLE))
        item.whole = 'computed' in getattr(item, 'fixturenames', ())
        item.early = item.path.stem == 'test_fresh_clone'  # compiles everything, which takes minutes
        # Ranks of MPI programs wait by computing.
        if item.path.stem.startswith('test_mpi'):
            item.computes, item.unit = True, item.path.stem
        if item.get_closest_marker('hosts') and config.hosts_obstacle:
            item.add_marker(pytest.mark.skip(reason=config.hosts_obstacle))


def _torus_of(item):
    """Tests that share a torus in Mininet stay together; each other test is for itself."""
    dims = re.search(r'\[.*?(\d+x\d+)', item.name)
    return (item.path.stem, dims[1]) if item.path.stem in SHARING and dims else item.nodeid


@pytest.fixture
def tmp_path(tmp_path, request):
    """What a test has written stays only if it fails: all together is more than some disks have room for."""
    failed = request.session.testsfailed
    yield tmp_path
    if request.session.testsfailed == failed:
        shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed:
        item.has_failed = True
        add_logs(report, lambda torus: torus.run is not None and
                 getattr(torus, 'used_by', item.nodeid) == item.nodeid)


def _stop(torus, failed=False):
    """Stops a torus. Returns the problems, with the last lines of the logs: daemons that died, or exited with a
    status other than 0."""
    if torus.run is None:
        return []
    problems = list(torus.stop(failed=failed))
    if torus.kept_logs:
        print(f'logs: {torus.kept_logs}')
    for node in torus.nodes:
        if any(f'node {node.rank} ' in problem for problem in problems):
            problems.append(f'--- end of {node.log_path} ---\n' + tail(node.log(), 40))
    return problems


def _factory(request, kind):
    """A function that starts a torus; all are stopped after the test."""
    made = []

    def make(dims, **options):
        torus = kind(dims, **options)
        made.append(torus)
        LIVE.append(torus)
        return torus.start()

    yield make
    problems = []
    for torus in reversed(made):
        problems += _stop(torus, failed=getattr(request.node, 'has_failed', False))
        LIVE.remove(torus)
    assert not problems, '\n'.join(problems)


@pytest.fixture(scope='module')
def shared(request):
    """shared('4x4', bw=50): a LoopbackTorus that the tests of a module share. It is replaced after a test that leaves
    it broken."""
    made, problems = {}, []

    def stop(torus):
        problems.extend(_stop(torus))
        LIVE.remove(torus)

    def get(dims, kind=LoopbackTorus, **options):
        key = kind, dims, tuple(sorted(options.items()))
        torus = made.get(key)
        test = os.environ['PYTEST_CURRENT_TEST'].rpartition(' ')[0]
        if torus is not None:
            torus.used_by = test
            try:
                if not all(says_whole(node.socket) for node in torus.nodes):
                    torus.wait_whole(20)
                return torus
            except TorusError:
                del made[key]
                stop(torus)
        torus = kind(dims, **options)
        torus.used_by = test
        LIVE.append(torus)
        try:
            made[key] = torus.start()  # otherwise the next test tries that again
        except BaseException:
            LIVE.remove(torus)
            raise
        return torus

    yield get
    for torus in made.values():
        stop(torus)
    assert not problems, '\n'.join(problems)


@pytest.fixture
def torus(shared):
    """The torus of most tests about failures and attacks."""
    return shared('4x4')


@pytest.fixture(scope='module')
def root(tmp_path_factory):
    """The data root of shared tori."""
    return tmp_path_factory.mktemp('data')


@pytest.fixture
def base(root):
    """A folder of the test's own, below the data root of shared tori."""
    folder = root / f'{len(os.listdir(root))}'
    folder.mkdir()
    return folder


@pytest.fixture
def loopback(request):
    """loopback('4x4', memory='64MiB'): a started LoopbackTorus."""
    yield from _factory(request, LoopbackTorus)


@pytest.fixture
def cabled(request):
    """cabled('3x3', end=4, port='+1'): a started CabledTorus."""
    from support.cable import CabledTorus
    yield from _factory(request, CabledTorus)


@pytest.fixture
def mininet(request):
    """mininet('4x4', bw=50): a started MininetTorus."""
    from torus_net import MininetTorus
    yield from _factory(request, MininetTorus)


@pytest.fixture
def hosts(request):
    """hosts('3', 3): hosts made of namespaces, on which the test starts daemons."""
    made = []

    def make(dims, count):
        made.append(Hosts(dims, count))
        return made[-1]

    yield make
    problems = [problem for one in made for problem in one.close()]
    assert not problems, '\n'.join(problems)
