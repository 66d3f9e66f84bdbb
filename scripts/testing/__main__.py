"""scripts/test: installs what is missing, builds, and runs the tests."""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHECKOUT = Path(os.path.abspath(__file__)).parents[2]  # as it was named: links are not followed
LIB = CHECKOUT / 'scripts' / 'lib.sh'
PLAIN, SANITIZED = CHECKOUT / 'build', CHECKOUT / 'build-sanitizer'

# What a part needs besides the groups build, run, test and full of scripts/packages.txt, with --full.
PARTS = {
    'lint': ('structure and formatting of the sources (scripts/lint), and tests of its rules', ()),
    'unit': ('programs in C: unit, contract, simulation and fuzz tests', ()),
    'swarm': ('random worlds of the simulation: a fixed list of seeds, then seeds of the day', ()),
    'papers': ('tests of scripts/reproduce', ()),
    'loopback': ('integration tests with daemons on 127.0.0.1 and in network namespaces', ('browser', 'torch')),
    'mininet': ('integration tests in Mininet; skipped without root', ()),
    'packages': ('what the Debian packages are made from; with --full they are built, installed and purged in root '
                 'file systems, for amd64 and arm64', ('package', 'cross', 'packages', 'torch')),
    'valgrind': ('unit tests under valgrind; with --full only', ()),
    'vm': ('integration tests on up to 16 virtual machines; with --full or if named; needs 3 GiB of memory', ('vm',)),
}
ON_DEMAND = 'valgrind', 'vm'

WORKERS = 4  # for each processor: most tests wait more than they compute
NO_TESTS = 5  # pytest's exit status when it has selected none
MOST_RETRIED = 4

DESCRIPTION = """\
Installs missing Debian packages, builds, and runs the tests. Each test runs once: with sanitizers (address,
undefined behaviour) if it runs C code, without them if it is about time, memory or programs in Python. The exit status
is 0 if all tests passed, 1 if one failed, 2 if the options are wrong, 3 if packages or the build failed."""


def options():
    parts = '\n'.join(f'  {name:11} {what}' for name, (what, _) in PARTS.items())
    parser = argparse.ArgumentParser(prog='test', description=DESCRIPTION, epilog=f'parts:\n{parts}',
                                     usage='scripts/test [option...] [part...]', allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('parts', nargs='*', metavar='part', help='run these parts only')
    parser.add_argument('--full', action='store_true',
                        help='also tests that find what others find with more nodes, bytes or seeds, or that take '
                        'long: before a release, and after a change of engines, sockets or memory')
    parser.add_argument('--rest', action='store_true', help='only what --full adds to the default')
    parser.add_argument('--since', metavar='REV', help='only tests that can notice what has changed since REV')
    parser.add_argument('--quick', action='store_true', help='unit and loopback only')
    parser.add_argument('--vm', action='store_true', help='also the part vm')
    for name in PARTS:
        parser.add_argument(f'--no-{name}', action='append_const', dest='without', const=name,
                            help=f'leave {name} out')
    parser.add_argument('--retry', action='store_true',
                        help=f'run up to {MOST_RETRIED} tests that fail again, alone; those that then pass three times '
                        'are listed as unsteady and do not fail the run')
    parser.add_argument('--strict', action='store_true', help='no --retry: this is the default')
    parser.add_argument('-x', '--first-failure', action='store_true', help='end at the first test that fails')
    parser.add_argument('--minutes', type=float, metavar='N',
                        help='begin no test later than N minutes from now, packages and building included; the tests '
                        'then run in another order each day, and the end says how many were left out; the run '
                        'fails if that is all of them')
    parser.add_argument('--times', metavar='FILE', help='write the seconds of each test, and which failed, to FILE (JSON)')
    parser.add_argument('--no-install', action='store_true', help='do not install packages')
    o = parser.parse_args()
    if o.minutes is not None and not 0 < o.minutes < 1e6:
        parser.error('--minutes must be a number above 0')
    o.end = None if o.minutes is None else time.monotonic() + 60 * o.minutes
    for name in o.parts:
        if name not in PARTS:
            parser.error(f'unknown part {name}: the parts are {", ".join(PARTS)}')
    if o.strict and o.retry:
        parser.error('--strict and --retry exclude each other')
    o.full = o.full or o.rest
    if o.since and subprocess.run(['git', 'rev-parse', '--verify', '--quiet', o.since + '^{commit}'], cwd=CHECKOUT,
                                  stdout=subprocess.DEVNULL).returncode != 0:
        parser.error(f'--since: there is no commit {o.since}')
    o.chosen = o.parts or (['unit', 'loopback'] if o.quick else
                           [name for name in PARTS if o.full or name not in ON_DEMAND])
    if o.vm and 'vm' not in o.chosen:
        o.chosen.append('vm')
    o.chosen = [name for name in PARTS if name in o.chosen and name not in (o.without or ())]
    if not o.chosen:
        parser.error('no part is left')
    if o.full:
        os.environ['TORUS_FULL'] = '1'  # fuzz targets run longer
    # Options of other programs must not change what the tests see.
    for name in 'TORUS_BIN', 'TORUS_WATCH_BIN', 'TORUS_WRAP', 'TORUS_SOCKET':
        os.environ.pop(name, None)
    return o


def say(text):
    print(f'== {text}', file=sys.stderr, flush=True)


def shell(script, **options):
    """A process that runs functions of scripts/lib.sh."""
    return subprocess.Popen(['bash', '-eu', '-o', 'pipefail', '-c', f'. {shlex.quote(str(LIB))}; {script}', 'test'],
                            cwd=CHECKOUT, **options)


def must(process):
    if process.wait() != 0:
        raise SystemExit(3)


PLAIN_OPTIONS = '-DCMAKE_BUILD_TYPE=RelWithDebInfo'
# Line tables are enough for the sanitizers' reports, and gold links the many programs in half the time.
SANITIZED_OPTIONS = ("-DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG='-g1 -O1' -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=gold "
                     '-DTORUS_SANITIZE=address,undefined')
PLAIN_BUILD = f'build {shlex.quote(str(PLAIN))} %s {PLAIN_OPTIONS}'
# All programs: --since reads there which files each of them is made from.
SANITIZED_BUILD = f'build {shlex.quote(str(SANITIZED))} all {SANITIZED_OPTIONS}'


def prepare(o):
    """Installs and builds. While packages for the tests are downloaded and unpacked, the compiler uses the
    processors; what needs these packages is built afterwards."""
    packages = {'test', *(['full'] if o.full else [])}
    if o.full or 'vm' in o.parts or o.vm:
        packages.update(group for name in o.chosen for group in PARTS[name][1])
    compiler = None
    if not o.no_install:
        must(shell('install_packages build run'))
        missing = subprocess.run(['bash', '-c', f'. {shlex.quote(str(LIB))}; missing_packages "$@"', 'test', *packages],
                                 capture_output=True, text=True, check=True).stdout.split()
        if missing:
            compiler = shell(SANITIZED_BUILD)
            must(shell(f'install_packages {" ".join(packages)}'))
            must(compiler)
    must(shell(SANITIZED_BUILD))
    must(shell(PLAIN_BUILD % ('all' if o.full else 'programs,plain_tests')))


def obstacle(part):
    """Why a part cannot run on this machine, or ''."""
    check = {'mininet': ['topo/torus.py', '--check-mininet'], 'vm': ['topo/vms.py', '--check']}.get(part)
    if check is None:
        return ''
    done = subprocess.run([sys.executable, *check], cwd=CHECKOUT, capture_output=True, text=True)
    return '' if done.returncode == 0 else (done.stdout + done.stderr).strip().partition(': ')[2]


def pytest(*arguments):
    """The exit status of pytest. Ctrl-C reaches pytest as well, which stops what its tests have started."""
    process = subprocess.Popen([sys.executable, '-m', 'pytest', '-q', *map(str, arguments)], cwd=CHECKOUT)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            pass


def run(o, parts, folder):
    """Runs parts. Returns pytest's exit status and the times of all tests."""
    times = folder / 'times.json'
    level = ' and full' if o.rest and parts != ['vm'] else '' if o.full else ' and not full'
    where = ['tests/vm'] if parts == ['vm'] else ['tests/CMakeLists.txt', 'tests/integration', 'tests/packaging']
    builds = ['--plain', PLAIN, '--sanitized', SANITIZED]
    status = pytest(*where, *builds, '-m', f'({" or ".join(parts)}){level}', '--times', times,
                    '--workers', 1 if parts == ['vm'] else WORKERS * len(os.sched_getaffinity(0)),
                    '--basetemp', folder / 'tests', '-o', f'cache_dir={folder}/cache',
                    *(['--since', o.since] if o.since else []), *(['-x'] if o.first_failure else []),
                    *(['--most', max(0, o.end - time.monotonic())] if o.end else []))
    if status == NO_TESTS and (o.rest or o.since):
        print(f'no test of {", ".join(parts)} is needed')
        status = 0
    tests = json.loads(times.read_text()) if times.exists() else []
    times.unlink(missing_ok=True)
    if status == 1 and o.retry:
        failed = [f'tests/{test["test"]}' for test in tests if test['failed']]
        status = retry(failed, [*builds, '-m', f'({" or ".join(parts)}){level}'], folder)
    return status, tests


def retry(failed, options, folder):
    """Runs failed tests alone, three times. Returns the status of the run, which may have failed without a test."""
    if not failed or len(failed) > MOST_RETRIED:
        return 1
    say(f'again, alone: {" ".join(failed)}')
    for _ in range(3):
        if pytest(*failed, *options, '--basetemp', folder / 'again', '-o', f'cache_dir={folder}/cache') != 0:
            return 1
    for test in failed:
        say(f'UNSTEADY: {test} failed, then passed three times alone')
    return 0


def main():
    o = options()
    # The preloads of MPI are built here, and tested.
    if any(character in ' \t\n:' for character in str(CHECKOUT)):
        print(f'test: LD_PRELOAD takes no path with a space or a colon: move this folder, {CHECKOUT}, and try again',
              file=sys.stderr)
        return 3
    begin = time.monotonic()
    # Otherwise each of the many Python processes compiles the modules that it imports.
    os.environ['PYTHONPYCACHEPREFIX'] = str(PLAIN / 'pycache')
    os.environ.pop('PYTHONDONTWRITEBYTECODE', None)
    prepare(o)
    prepared = time.monotonic() - begin
    skipped = {part: why for part in o.chosen if (why := obstacle(part))}
    status, tests = 0, []
    # what a test has left mounted must not hide the results
    with tempfile.TemporaryDirectory(prefix='torus-tests-', ignore_cleanup_errors=True) as folder:
        for parts in [part for part in o.chosen if part != 'vm'], [part for part in o.chosen if part == 'vm']:
            parts = [part for part in parts if part not in skipped]
            if parts and not (status and o.first_failure):
                say(' '.join(parts))
                code, more = run(o, parts, Path(folder))
                status = max(status, code)
                tests += more
    if o.times:
        Path(o.times).write_text(json.dumps(tests))
    for part, why in skipped.items():
        print(f'skipped  {part}: {why}')
    say(f'{"passed" if status == 0 else "FAILED"} after {time.monotonic() - begin:.0f} s, of which packages and '
        f'building took {prepared:.0f} s')
    return min(status, 1)


if __name__ == '__main__':
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
