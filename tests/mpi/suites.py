#!/usr/bin/python3
"""Runs the tests of others for MPI on the nodes of a torus, with the preload: MPICH's tests of collective operations and
communicators (test/mpi/coll and comm), and those of mpi4py. A test that does not pass runs without the preload, too.
Prints what became of each test. Exit status 1: a test ended otherwise than without the preload, or than suites.txt says.

    topo/torus.py 2x2 --loopback --run 'tests/mpi/suites.py --mpich DIR --library openmpi --ranks 2'

The sources are not part of this project: DIR is a checkout of them, of MPICH 4.0.2 or mpi4py 3.1.4.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace

CHECKOUT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(CHECKOUT / 'topo'), str(CHECKOUT / 'tests')]

from support import mpi  # noqa: E402

LIST = Path(__file__).with_suffix('.txt')
# How calls go: all of them by MPI; by the torus, if it can serve them; by whichever is faster.
WAYS = {'without': {'mode': None}, 'torus': {'mode': 'stats'}, 'faster': {'mode': 'on', 'chooses': True}}
WAYS_WITH = ['torus', 'faster']
LIMIT = 120  # seconds


def as_on_machines(torus):
    """Ranks of Open MPI talk by TCP, as on different machines, so that those that wait can sleep."""
    return {'OMPI_MCA_pml': 'ob1', 'OMPI_MCA_btl': 'tcp,self', 'LD_PRELOAD': str(mpi.build_folder(torus) / mpi.PATIENCE)}

# ---- MPICH's tests --------------------------------------------------------------------------------

# What configure finds out about this system.
CONFIGURED = """
#define HAVE_LONG_DOUBLE 1
#define HAVE_LONG_LONG 1
#define HAVE_LONG_LONG_INT 1
#define HAVE_FLOAT__COMPLEX 1
#define HAVE_DOUBLE__COMPLEX 1
#define HAVE_LONG_DOUBLE__COMPLEX 1
#define HAVE__BOOL 1
#define HAVE_STDARG_H 1
#define HAVE_STDINT_H 1
#define HAVE_STRING_H 1
#define HAVE_SYS_TIME_H 1
#define HAVE_UNISTD_H 1
#define HAVE_MPI_INIT_THREAD 1
#define HAVE_MPI_IO 1
#define HAVE_MPI_WIN_CREATE 1
#define THREAD_PACKAGE_NONE 0
#define THREAD_PACKAGE_POSIX 1
#define THREAD_PACKAGE_SOLARIS 2
#define THREAD_PACKAGE_WIN 3
#define THREAD_PACKAGE_ARGOBOTS 4
#define THREAD_PACKAGE_NAME THREAD_PACKAGE_NONE
"""


# Without these, the header of Open MPI refuses what MPI 3 has removed, and what its library still has.
REMOVED = ['-DOMPI_OMIT_MPI1_COMPAT_DECLS=0', '-DOMPI_REMOVED_USE_STATIC_ASSERT=0', '-D__mpi_interface_removed__(a,b)=']


class Mpich:
    """MPICH's tests."""

    def __init__(self, sources, library, built):
        self.sources, self.built = Path(sources) / 'test' / 'mpi', built / f'mpich-tests-{library}'
        self.compiler = f'mpicc.{library}'
        if not (self.sources / 'coll' / 'testlist.in').exists():
            sys.exit(f'{self.sources}/coll/testlist.in does not exist: {sources} is no checkout of MPICH 4.0.2')

    def tests(self):
        """Each test once, in the order of the lists. How many ranks the lists give them does not matter here."""
        found = {}
        for folder in 'coll', 'comm':
            for line in (self.sources / folder / 'testlist.in').read_text().splitlines():
                name, *words = line.partition('#')[0].split() or ['@']
                arguments = [word[4:] for word in words if word.startswith('arg=')]
                if not name.startswith('@'):  # needs 20 GiB of memory
                    found[' '.join([f'{folder}/{name}', *arguments])] = None
        return list(found)

    def command(self, test):
        name, *arguments = test.split(' ')
        return [self.built / name, *arguments]

    def build(self, tests):
        """Returns {program: why it cannot be built}."""
        self.built.mkdir(parents=True, exist_ok=True)
        (self.built / 'dtpools').mkdir(exist_ok=True)
        for header, text in {'mpitestconf.h': CONFIGURED, 'mtest_mpix.h': '', 'dtpoolsconf.h': '#define HAVE_STRDUP 1\n'}.items():
            (self.built / header).write_text(text)
        pools = sorted((self.sources / 'dtpools' / 'src').glob('*.c'))
        shared = [*pools, *(self.sources / 'util' / name for name in ('mtest.c', 'mtest_common.c', 'mtest_single.c', 'dtypes.c'))]
        failed = {}
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(self._object, shared))
            for text in filter(None, (why for _, why in objects)):
                sys.exit(text)
            programs = sorted({test.split(' ')[0] for test in tests})
            for program, why in zip(programs, pool.map(lambda name: self._program(name, [path for path, _ in objects]), programs)):
                if why:
                    failed[program] = why
        return failed

    def _compile(self, target, *arguments):
        if target.exists():
            return None
        target.parent.mkdir(exist_ok=True)
        include = (self.built, self.built / 'dtpools', self.sources / 'include', self.sources / 'dtpools' / 'include')
        done = subprocess.run([self.compiler, '-w', '-O1', '-g', *REMOVED, *(f'-I{folder}' for folder in include),
                               '-o', f'{target}.new', *map(str, arguments)], capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr
        os.rename(f'{target}.new', target)
        return None

    def _object(self, source):
        target = self.built / 'objects' / f'{source.stem}.o'
        return target, self._compile(target, '-c', source)

    def _program(self, name, objects):
        folder, program = name.split('/')
        source, defined = self.sources / folder / f'{program}.c', []
        if not source.exists() and program.startswith('nb'):  # the same test with nonblocking calls
            source, defined = self.sources / folder / f'{program[2:]}.c', ['-DUSE_MTEST_NBC']
        if not source.exists():
            return f'{source} does not exist'
        return self._compile(self.built / name, *defined, source, *objects, '-lm')

    def outcome(self, result):
        if result.returncode == 0 and result.stdout.split() == ['No', 'Errors']:
            return 'passes'
        return 'finds errors' if re.search(r'Found \d+ errors', result.stdout) else 'ends early'

# ---- mpi4py's tests -------------------------------------------------------------------------------


class Mpi4py:
    """The tests of mpi4py, a file of them at a time."""

    def __init__(self, sources, library):
        self.folder = Path(sources) / 'test'
        self.python = ['/usr/bin/python3', str(self.folder / 'runtests.py'), '--no-builddir', '-q']
        if not (self.folder / 'runtests.py').exists():
            sys.exit(f'{self.folder}/runtests.py does not exist: {sources} is no checkout of mpi4py 3.1.4')
        if library != self._library():
            sys.exit(f'/usr/bin/python3 has no mpi4py for {library}: install python3-mpi4py, or set PYTHONPATH')

    @staticmethod
    def _library():
        """Which MPI library mpi4py is linked with: "mpich", "openmpi" or ""."""
        find = 'import importlib.util; print(importlib.util.find_spec("mpi4py.MPI").origin)'
        path = subprocess.run(['/usr/bin/python3', '-c', find], capture_output=True, text=True, check=False).stdout.strip()
        linked = subprocess.run(['ldd', path], capture_output=True, text=True, check=False).stdout
        return 'mpich' if 'libmpich.so' in linked else 'openmpi' if 'libmpi.so' in linked else ''

    def tests(self):
        return sorted(path.stem for path in self.folder.glob('test_*.py'))

    def build(self, tests):
        return {}

    def command(self, test):
        return [*self.python, '-i', f'{test}$']

    def outcome(self, result):
        """What the ranks say at the end. All say the same, unless a test fails on some ranks only."""
        said = Counter(re.findall(r'^(?:OK|FAILED|NO TESTS RAN)\b.*', result.stderr, re.M))
        ran = {int(count) for count in re.findall(r'^Ran (\d+) tests?', result.stderr, re.M)}
        text = ', '.join(f'{count} ranks {what}' for what, count in sorted(said.items()))
        if result.returncode == 0 and set(said) and all(what.startswith('OK') for what in said) and len(ran) == 1:
            return f'passes ({ran.pop()} tests)'
        return f'fails ({text})' if text else 'ends early'

# ---- Both -----------------------------------------------------------------------------------------


def expected(library, ranks):
    """{test: outcome} of suites.txt for tests that do not pass."""
    tests, outcome = {}, None
    for line in LIST.read_text().splitlines():
        if line.startswith('  '):
            if outcome:
                tests[line.strip()] = outcome
        elif line and not line.startswith('#'):
            where, outcome = line.split(': ')[:2]
            its, _, counts = where.partition(', ranks ')
            if its not in ('both', library) or (counts and str(ranks) not in counts.split()):
                outcome = None
    return tests


def torus_of_environment():
    """As the tests of this project know a torus, for mpi.Run."""
    folder = Path(os.environ['TORUS_RUN_DIR'])
    nodes = [SimpleNamespace(socket=str(folder / f'{rank}.sock')) for rank in range(int(os.environ['TORUS_NODES']))]
    return SimpleNamespace(nodes=nodes, node=lambda rank: nodes[rank], watcher=shutil.which('torusctl'))


class Comparison:
    """Tests of a suite on a torus, with so many ranks on each node."""

    def __init__(self, torus, suite, library, ranks_a_node=1, ways=WAYS_WITH, jobs=2, log=None):
        self.torus, self.suite, self.library, self.ways, self.jobs, self.log = torus, suite, library, ways, jobs, log
        self.nodes = [node for node in range(len(torus.nodes)) for _ in range(ranks_a_node)]

    def attempt(self, test, way):
        """Returns (what became of the test, calls of each rank that the torus has served)."""
        more = as_on_machines(self.torus) if self.library == 'openmpi' else {}
        more['TORUS_MPI_TIMEOUT'] = '300'  # on a busy machine the program would otherwise go on without the torus
        with mpi.Run(self.torus, self.library, self.suite.command(test), nodes=self.nodes, **WAYS[way], **more) as running:
            try:
                result = running.end(LIMIT)
            except subprocess.TimeoutExpired:
                return 'does not end', 0
        outcome = self.suite.outcome(result)
        if not outcome.startswith('passes') and self.log:
            name = re.sub(r'[/ ]', '-', test)
            (self.log / f'{name}.{self.library}.{len(self.nodes)}.{way}').write_text(result.stdout + result.stderr)
        return outcome, sum(mpi.taken(result)[0].values()) if 'torus: all' in result.stderr else 0

    def run(self, tests):
        """Yields (test, {way: outcome}, calls of each rank that the torus has served)."""
        obstacles = self.suite.build(tests)

        def compare(test):
            why = obstacles.get(test.split(' ')[0])
            if why:
                if self.log:
                    (self.log / f'{test.split(" ")[0].replace("/", "-")}.{self.library}.build').write_text(why)
                return test, dict.fromkeys(self.ways, 'cannot be built'), 0
            outcomes, served = {}, 0
            for way in self.ways:
                outcomes[way], count = self.attempt(test, way)
                served += count
            # What passes with the preload need not run without it.
            if len(set(outcomes.values())) > 1 or not outcomes[way].startswith('passes'):
                outcomes['without'], _ = self.attempt(test, 'without')
            return test, outcomes, served

        with ThreadPoolExecutor(self.jobs) as pool:
            yield from pool.map(compare, tests)

    def print(self, tests):
        """Runs the tests, and prints what becomes of them. Returns how many end otherwise than without the preload or
        than suites.txt says."""
        listed, wrong = expected(self.library, len(self.nodes)), 0
        for test, outcomes, served in self.run(tests):
            first, *others = set(outcomes.values())
            text, mark = first, ''
            if others:
                text, mark = ', '.join(f'{way}: {outcome}' for way, outcome in outcomes.items()), 'DIFFERENT  '
            elif first.partition(' (')[0] != listed.get(test, 'passes'):
                mark = 'NOT AS LISTED  '
            wrong += bool(mark)
            print(f'{mark}{test}  {text}; {float(served):g} calls by the torus', flush=True)
        return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument('--mpich', metavar='DIR', help="MPICH's tests; DIR has the sources of MPICH 4.0.2")
    which.add_argument('--mpi4py', metavar='DIR', help="mpi4py's tests; DIR has the sources of mpi4py 3.1.4")
    parser.add_argument('--library', choices=['mpich', 'openmpi'], default='openmpi', help='(openmpi)')
    parser.add_argument('--ranks', type=int, default=1, metavar='N', help='ranks on each node (1)')
    parser.add_argument('--ways', type=lambda text: text.split(','), default=WAYS_WITH, metavar='WAY,...',
                        help='torus: calls go by the torus if it can serve them; faster: by the faster way (torus,faster)')
    parser.add_argument('--jobs', type=int, default=2, metavar='N', help='tests at the same time (2)')
    parser.add_argument('--built', type=Path, default=CHECKOUT / 'build' / 'suites', metavar='DIR',
                        help="for MPICH's programs, which are compiled once (build/suites)")
    parser.add_argument('--log', type=Path, metavar='DIR', help='for the output of tests that do not pass')
    parser.add_argument('tests', nargs='*', metavar='TEST', help='only tests with these names; a * stands for anything')
    options = parser.parse_args()
    if 'TORUS_RUN_DIR' not in os.environ:
        parser.error("there is no torus: start this with topo/torus.py --run")
    suite = (Mpich(options.mpich, options.library, options.built) if options.mpich
             else Mpi4py(options.mpi4py, options.library))
    tests = [test for test in suite.tests() if not options.tests or any(fnmatchcase(test, name) for name in options.tests)]
    if not tests:
        parser.error('no test has such a name')
    if options.log:
        options.log.mkdir(parents=True, exist_ok=True)
    wrong = Comparison(torus_of_environment(), suite, options.library, options.ranks, options.ways, options.jobs,
                       options.log).print(tests)
    print(f'{len(tests)} tests with {options.library}: {wrong} not as without the preload or not as listed')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
