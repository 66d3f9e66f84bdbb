"""The programs that ctest runs, as tests of pytest: `pytest tests/CMakeLists.txt -k test_router`.

One run thus has all tests, in C and in Python, and one summary. Labels of ctest are marks of pytest.
"""

import json
import os
import re
import subprocess
import tempfile
from functools import cache

import pytest

from .builds import build_folder, first_build

# Without its server for debuggers, which closes descriptors in children, where test_trees counts them.
VALGRIND = ('valgrind', '-q', '--vgdb=no', '--error-exitcode=99', '--leak-check=full',
            '--show-leak-kinds=definite,possible')
# Sanitizers check arithmetic on arrays as well as valgrind does.
NOT_VALGRIND = re.compile(r'test_(cabling_random|passages|imported|arithmetic|cost|ip_routes|predict|tree)$')
OUTPUT = 20000  # characters of a failed program's output that are shown, at most


@cache
def programs_of(folder):
    """{name: what ctest knows about it} of a build folder."""
    told = subprocess.run(['ctest', '--test-dir', folder, '--show-only=json-v1'], capture_output=True, text=True,
                          check=True)
    return {test['name']: test for test in json.loads(told.stdout)['tests']}


def _properties(test):
    return {one['name']: one['value'] for one in test.get('properties', ())}


class Failed(Exception):
    """A program's exit status was not 0; the message has its output."""


class Program(pytest.Item):
    """A program. It computes, so it runs at a low priority beside other tests."""

    computes = True
    wrapper = arguments = ()

    def runtest(self):
        test = programs_of(str(build_folder()))[self.originalname]
        limit, program = test['command'][:2], test['command'][2:]  # torus_add_test() puts prlimit first
        with tempfile.TemporaryFile('w+', errors='replace') as output:
            done = subprocess.run([*limit, *self.wrapper, *program, *self.arguments], cwd=_properties(test).get('WORKING_DIRECTORY'),
                                  stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                  env={**os.environ, 'CMOCKA_TEST_ABORT': '0'}, preexec_fn=lambda: os.nice(10))
            if done.returncode != 0:
                output.seek(0)
                raise Failed(f'{" ".join(program)}\nexit status {done.returncode}\n{output.read()[-OUTPUT:]}')

    def repr_failure(self, excinfo):
        return str(excinfo.value) if isinstance(excinfo.value, Failed) else super().repr_failure(excinfo)

    def reportinfo(self):
        return self.path, 0, self.name


class UnderValgrind(Program):
    """It plays few seeds: the sanitizers have all of them."""

    wrapper, arguments = VALGRIND, ('0', '3')  # FIRST COUNT (cmocka.c)


class Programs(pytest.File):
    """tests/CMakeLists.txt: all programs that it adds to ctest."""

    def collect(self):
        try:
            programs = programs_of(str(first_build()))
        except (OSError, subprocess.CalledProcessError) as error:
            raise self.CollectError(f'ctest cannot list the programs of {first_build()}: {error}') from None
        for name, test in programs.items():
            yield self._made(Program, name, name, _properties(test).get('LABELS', ()))
        for name, test in programs.items():
            # Without sanitizers, a simulation plays twenty times as many seeds and cases (tests/sim/sim.h).
            if '/tests/sim/test_' in test['command'][2] and 'plain' not in _properties(test).get('LABELS', ()):
                yield self._made(Program, name, f'{name}[all seeds]', ('plain', 'full'))
        for name, test in programs.items():
            if '/tests/unit/' in test['command'][-1] and not NOT_VALGRIND.match(name):
                yield self._made(UnderValgrind, name, f'{name}[valgrind]', ('valgrind', 'plain', 'full'))

    def _made(self, kind, original, name, marks):
        item = kind.from_parent(self, name=name)
        item.originalname = original
        for mark in marks:
            item.add_marker(mark)
        return item
