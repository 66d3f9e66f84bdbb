"""What all tests share: the parts of scripts/test, builds, and workers. Run with: /usr/bin/python3 -m pytest tests"""

import signal
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent
sys.path[:0] = [str(TESTS.parent / 'topo'), str(TESTS)]

pytest_plugins = ['support.builds', 'support.spread', 'support.parts', 'support.shared_failures', 'support.since']


def pytest_addoption(parser):
    parser.addoption('--no-mininet', action='store_true', help='skip what needs Mininet and root')
    parser.addoption('--kill-seeds', metavar='FIRST:COUNT', default='0:3',
                     help='the steps at which test_init_killed.py kills, for each change (default: 0:3)')
    parser.addoption('--mpi-collectives', type=int, metavar='N',
                     help='so many random operations in each test of the MPI preloads, and more '
                     'tests, instead of what takes seconds')
    for suite, version in (('mpich', '4.0.2'), ('mpi4py', '3.1.4')):
        parser.addoption(f'--{suite}', metavar='DIR', help=f'run the tests in the sources of {suite} {version}, which DIR has, '
                         'with the preloads')


def pytest_configure():
    """Programs inherit that signals are ignored, as they are under nohup and in the background of scripts, and would not
    be ended by them. They do not inherit what Python handles."""
    for signum, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, lambda *_: None)):
        if signal.getsignal(signum) is signal.SIG_IGN:
            signal.signal(signum, handler)


def pytest_collect_file(file_path, parent):
    from support.programs_of_ctest import Programs
    if file_path == TESTS / 'CMakeLists.txt':
        return Programs.from_parent(parent, path=file_path)
    return None
