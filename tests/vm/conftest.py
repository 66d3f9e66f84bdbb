"""Fixtures of the tests on virtual machines.

The programs come from $TORUS_BIN, else PATH, else build/. Run with:
/usr/bin/python3 -m pytest tests/vm (as `scripts/test vm` does)
"""

import os
import time
from pathlib import Path

import pytest

os.environ.setdefault('TORUS_SLOWNESS', '4')  # machines without kvm; torus_net.patience reads it

from support.background import heed_sigint  # noqa: E402
from support.reports import LIVE, add_logs  # noqa: E402
from torus_net import VirtualTorus, find_program, vm_obstacle  # noqa: E402

HOUR = 3600


def pytest_configure(config):
    heed_sigint()
    config.vm_obstacle = vm_obstacle()


def pytest_collection_modifyitems(config, items):
    """Skips tests that cannot run here, and groups tests by torus, so that each torus boots once."""
    for item in items:
        if 'machines' in getattr(item, 'fixturenames', ()) and config.vm_obstacle:
            item.add_marker(pytest.mark.skip(reason=config.vm_obstacle))
    order = []
    for item in items:
        if _dims(item) not in order:
            order.append(_dims(item))
    items.sort(key=lambda item: order.index(_dims(item)))


def _dims(item):
    callspec = getattr(item, 'callspec', None)
    return callspec.params.get('dims') if callspec else None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed and 'machines' in getattr(item, 'fixturenames', ()):
        add_logs(report, lines=15)


def _stop(torus):
    LIVE.remove(torus)
    problems = torus.stop()
    assert not problems, '\n'.join(problems)


def examples():
    """The programs of client/examples, for all machines."""
    return sorted((Path(find_program('torusctl')).parent / 'examples').glob('[!.]*'))


@pytest.fixture(scope='session')
def _machines():
    def get(dims):
        for torus in list(LIVE):
            if str(torus.geometry) == dims and all(node.alive for node in torus.nodes):
                torus.wait_whole(60)
                return torus
            _stop(torus)
        now = time.time()
        torus = VirtualTorus(dims, rtc=lambda rank: now + rank * HOUR, programs=examples())
        LIVE.append(torus)
        try:
            torus.start()
        except BaseException:
            LIVE.remove(torus)
            raise
        print(f'{dims}: up after {torus.boot_seconds:.1f} s, joined after {torus.join_seconds:.1f} s')
        return torus

    yield get
    for torus in list(LIVE):
        _stop(torus)


@pytest.fixture
def machines(_machines, dims):
    """A whole torus of virtual machines of the size `dims` (a parameter of the test). The clock of each
    machine is an hour ahead of the previous one's."""
    return _machines(dims)
