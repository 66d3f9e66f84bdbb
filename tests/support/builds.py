"""In which build a test runs: each test runs once, with sanitizers if that finds something.

Without options, that is the build in $TORUS_BIN, or build/. scripts/test gives both: `--plain build --sanitized
build-sanitizer`.
"""

import os
import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
PLAIN = 'plain', 'slow', 'memory', 'mininet'  # marks of tests that run without sanitizers

# The sanitizer keeps freed memory for a while to detect its use. By default that is 256 MiB per process, whose new
# pages would cost more than all checks.
SANITIZERS = {
    'ASAN_OPTIONS': 'detect_leaks=1:strict_string_checks=1:quarantine_size_mb=4:malloc_context_size=12',
    'UBSAN_OPTIONS': 'print_stacktrace=1:halt_on_error=1',
}
# To find uses of the locals of a function that has returned, they are put on the heap, which takes a quarter of the
# time of the simulator and of daemons. Only those of their tests that are marked `full` do that.
RETURNED_FRAMES = ':detect_stack_use_after_return=1'
# The search for leaks takes a quarter of the time of a short command. Tests start torusctl some ten thousand times, most
# often with few commands, so only those that are marked `full` search its memory; unit/test_cli_*.c always do.
# The sanitizer replaces %b by the name of the program.
NO_LEAKS = f':include_if_exists={CHECKOUT}/tests/support/sanitizer/%b'
_sanitized = None


def build_folder():
    """The build of the test that runs now."""
    return Path(os.environ.get('TORUS_BIN') or CHECKOUT / 'build')


def first_build():
    """A build that has all programs of ctest."""
    return _sanitized or build_folder()


def pytest_addoption(parser):
    parser.addoption('--plain', metavar='BUILD', help='the build for tests that run without sanitizers')
    parser.addoption('--sanitized', metavar='BUILD', help='the build for all other tests')


def pytest_configure(config):
    global _sanitized
    plain, _sanitized = config.getoption('--plain'), config.getoption('--sanitized')
    if (plain is None) != (_sanitized is None):
        raise pytest.UsageError('--plain and --sanitized go together')
    if plain:
        os.environ['TORUS_BIN'] = str(Path(plain).resolve())  # modules look for their programs when they are imported


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        plain = any(item.get_closest_marker(mark) for mark in PLAIN)
        item.build = config.getoption('--plain' if plain else '--sanitized')


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """Everything that a test starts, and its fixtures, is of its build. Tests poll a torus with torusctl status and
    links, and check with an exchange that it works. They use the plain torusctl for that: an instrumented one takes
    ten times as long to start, and all other commands and exchanges use it anyway."""
    if item.build:
        os.environ['TORUS_BIN'] = str(Path(item.build).resolve())
        os.environ['TORUS_WATCH_BIN'] = str(Path(item.config.getoption('--plain')).resolve())
        os.environ.update(SANITIZERS)
        full = item.get_closest_marker('full')
        if not full:
            os.environ['ASAN_OPTIONS'] += NO_LEAKS
        if full or (getattr(item, 'computes', False) and not re.match('test_sim|swarm', item.name)):
            os.environ['ASAN_OPTIONS'] += RETURNED_FRAMES
    yield
