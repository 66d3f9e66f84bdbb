"""The planted faults (tests/planted/) must fit to the sources and name tests that exist; scripts/planted applies them."""

import ast
import re
import subprocess
from collections import Counter

import pytest
from support.planted import AREAS, patches
from support.programs_of_ctest import Programs
from torus_net import CHECKOUT

pytestmark = pytest.mark.plain

PATCHES = patches()
OF_EACH_AREA = 10  # at least
FULL_MOST = 5


def test_ten_of_each_area():
    counts = Counter(patch.area for patch in PATCHES)
    assert counts.keys() == set(AREAS) and min(counts.values()) >= OF_EACH_AREA, counts
    assert sum(patch.level == 'full' for patch in PATCHES) <= FULL_MOST


def test_the_script_lists_them():
    def planted(*arguments):
        return subprocess.run([CHECKOUT / 'scripts' / 'planted', *arguments], capture_output=True, text=True)
    assert [line.split()[2] for line in planted('--list').stdout.splitlines()] == [patch.name for patch in PATCHES]
    unknown = planted('no-such-patch')
    assert unknown.returncode == 2 and 'unknown patch no-such-patch' in unknown.stderr


@pytest.mark.parametrize('patch', PATCHES, ids=lambda patch: patch.name)
def test_a_patch_applies(patch):
    def fits(*options):
        return subprocess.run(['git', 'apply', '--check', *options, patch.path], cwd=CHECKOUT, capture_output=True,
                              text=True)
    # scripts/planted runs this test while a patch is applied
    assert fits().returncode == 0 or fits('--reverse').returncode == 0, fits().stderr


def _functions(path):
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


@pytest.fixture(scope='module')
def programs(request):
    """The names of the programs of ctest."""
    return {item.name for item in Programs.from_parent(request.session, path=CHECKOUT / 'tests/CMakeLists.txt').collect()}


@pytest.mark.parametrize('patch', PATCHES, ids=lambda patch: patch.name)
def test_its_tests_exist(patch, programs):
    for test in patch.found_by:
        file, _, name = test.partition('::')
        if file == 'tests/CMakeLists.txt':
            assert name in programs, test
        else:
            assert (CHECKOUT / file).is_file() and (not name or re.match(r'\w+', name)[0] in _functions(CHECKOUT / file)), test
