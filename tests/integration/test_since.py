"""Which tests `--since` runs after a change."""

import ast
import re
import sys
from types import SimpleNamespace

import pytest
from support.since import CHECKOUT, TEST, Reach, Since, changed_since, closure, git, known
from torus_net import patience

pytestmark = pytest.mark.plain


@pytest.fixture(scope='module')
def build():
    return known()[0]


@pytest.fixture(scope='module')
def sources():
    return known()[1]


@pytest.fixture(scope='module')
def rows():
    return known()[2]


@pytest.fixture
def reached(build, sources, rows):
    """reached('daemon/torusd/main.c'): the test files and programs that a change of the file can reach. Programs that are
    not built, which all changes reach, are left out."""
    def reached(*changed):
        reach = Reach(changed, build, sources, rows)
        others = build.reached(()) - build.reached(changed)
        return {test.removeprefix('tests/').removesuffix('.py') for test in filter(TEST.fullmatch, sources.files)
                if reach.file(test)}, {name for name in build.programs if reach.program(name)} - others
    return reached


# changed file: tests that it reaches, and others
CHANGES = {
    # the product
    'daemon/torusd/tree/patterns.c': ('integration/test_copy integration/test_copy_faults test_manifest test_config',
     'integration/test_routed integration/test_exchange vm/test_machines test_router'),
    'daemon/lib/cluster/route_planner.c': ('integration/test_routed integration/test_routed_trials test_routed_planner',
     'integration/test_copy integration/test_exchange test_plan'),
    'daemon/lib/cabling/moves.c': ('integration/test_cabling integration/test_discover test_cabling test_cli_program',
     'integration/test_commit test_config'),
    'daemon/lib/discovery/sync.c': ('integration/test_discover integration/test_init vm/test_bare_machines fuzz_discovery',
     'integration/test_commit test_plan'),
    'daemon/torusd/router/router.c': ('integration/test_commit integration/test_routed vm/test_machines test_sim_faults',
     'integration/test_picture integration/test_reproduce packaging/test_packages test_schedule_files'),
    'client/cli/commands/top.c': ('integration/test_top integration/test_documents test_cli_program',
     'integration/test_exchange test_router'),
    'client/cli/web/style.css': ('integration/test_pages integration/test_serve test_serve',
                                 'integration/test_commit test_plan'),
    'client/mpi/calls/intercept.c': ('integration/test_mpi_preload integration/test_ip_routes',
                                     'integration/test_copy'),
    'client/python/libtorus/group.py': ('integration/test_python integration/test_programs',
                                        'integration/test_picture'),
    'proto/peer-trust.md': ('integration/test_documents test_sim_lies_lies', 'integration/test_manual test_sim_faults'),
    # tests, and what they run
    'tests/fuzz/corpus/peer/new': ('fuzz_peer', 'fuzz_keyed integration/test_exchange'),
    'tests/unit/tree_fixture.c': ('test_manifest', 'test_trees integration/test_copy'),
    'tests/unit/CMakeLists.txt': ('test_plan test_client_exports packaging/test_packages', 'test_sim_faults'),
    'tests/support/long_legs.h': ('test_reducing test_contract_routes', 'test_plan integration/test_copy'),
    'tests/support/member.c': ('integration/test_groups', 'integration/test_copy'),
    'tests/support/survivor.py': ('integration/test_groups', 'integration/test_copy'),
    'tests/integration/conftest.py': ('integration/test_copy', 'vm/test_machines packaging/test_sources test_plan'),
    'scripts/lib.py': ('integration/test_inputs', 'test_plan'),
    'scripts/mpi-bench': ('integration/test_mpi_bench', 'integration/test_mpi_preload'),
    'scripts/reproduction/drawings/moves.py': ('integration/test_reproduce_figures', 'integration/test_picture'),
    'scripts/packaging/CHANGELOG': ('packaging/test_sources test_plan', 'integration/test_copy'),
    'scripts/packaging/systemd/torus-links.service': ('packaging/test_packages integration/test_service',
     'integration/test_copy'),
    'topo/vms.py': ('vm/test_vm_up integration/test_inputs', 'vm/test_bridge integration/test_copy')}


@pytest.mark.parametrize('changed', CHANGES)
def test_a_change_of(reached, changed):
    some, others = map(str.split, CHANGES[changed])
    files, programs = reached(changed)
    assert set(some) - files - programs == set()
    assert set(others) & (files | programs) == set()


@pytest.mark.parametrize('changed, tests', [
    ('README.md', 'test_documents test_lint test_quotes test_scripts packaging/test_packages packaging/test_first_copy_by_hand vm/test_first_copy'),
    ('tests/support/nfs_client.py', 'test_routed_services test_lint test_waiting'),
    ('tests/integration/test_wire.py', 'test_wire test_lint test_waiting'),
    ('tests/unit/test_slab.c', 'test_lint')])
def test_a_change_of_little(reached, changed, tests):
    assert reached(changed)[0] == {test if '/' in test else f'integration/{test}' for test in tests.split()}


@pytest.mark.parametrize('changed', ['tests/conftest.py', 'tests/pytest.ini', 'nobody/knows.this'])
def test_what_is_not_known(reached, build, sources, changed):
    files, programs = reached(changed)
    assert len(files) == len(list(filter(TEST.fullmatch, sources.files)))
    assert programs == set(build.programs)


def test_a_program_that_is_not_built(build, monkeypatch):
    """Nobody knows which headers it will include."""
    unit, = (file for file in build.made['tests/unit/test_slab.c'] if file.endswith('test_slab.c.o'))
    before = build.reached(())
    monkeypatch.setattr(build, 'not_built', build.not_built | {unit})
    assert build.reached(()) == before | {'test_base'}


def test_several_changes(reached):
    one, other = reached('daemon/torusd/tree/glob.c'), reached('README.md')
    assert reached('daemon/torusd/tree/glob.c', 'README.md') == (one[0] | other[0], one[1] | other[1])
    assert reached() == (set(), set())


def test_rows_name_what_exists(rows, sources):
    tests = list(filter(TEST.fullmatch, sources.files))
    for path, wanted in rows.rows.items():
        assert (CHECKOUT / path).exists() or any(path.startswith('*') or file.startswith(path.rstrip('*'))
                                                 for file in sources.files if '*' in path), path
        assert [one for one in wanted if not any(rows.fits(one, test, sources) for test in tests)] == [], path
    assert [folder for folder in rows.prose if not (CHECKOUT / folder).is_dir()] == []


def test_each_folder_and_command_of_the_product_has_a_row(rows):
    folders = [path for name in ('daemon', 'daemon/lib', 'daemon/torusd', 'client')
               for path in (CHECKOUT / name).iterdir() if path.is_dir()]
    commands = list((CHECKOUT / 'client/cli/commands').glob('*.c'))
    assert len(folders) > 25 and len(commands) > 20
    paths = [str(path.relative_to(CHECKOUT)) for path in folders + commands]
    assert [path for path in paths if not rows.of(path)[0]] == []
    without = {path.stem for path in commands if str(path.relative_to(CHECKOUT)) not in rows.rows}
    assert without == {'exchange', 'key', 'links', 'status'}  # all tests of daemons run these


def test_tests_without_daemons(rows, sources):
    """A test that runs without a daemon according to the rows uses nothing that starts a daemon."""
    starts = {'CabledTorus', 'Hosts', 'LauncherBench', 'LoopbackTorus', 'MininetTorus', 'VirtualTorus',
              'cabled', 'hosts', 'loopback', 'mininet', 'shared', 'torus'}
    tests = [test for test in filter(TEST.fullmatch, sources.files)
             if not rows.fits('daemons', test, sources) and not test.startswith('tests/packaging/')]
    assert len(tests) > 10
    for test in tests:
        names = {getattr(node, 'arg', None) or getattr(node, 'name', None)
                 for node in ast.walk(ast.parse((CHECKOUT / test).read_text()))
                 if isinstance(node, (ast.arg, ast.alias))}
        assert names & starts == set(), test


def test_what_torusctl_contains(rows, build, sources):
    """Tests without a daemon can notice it."""
    in_torusctl = {file for file in build.files if file.startswith('daemon/') and file.endswith('.c')
                   and build.path('torusctl') in closure([file], lambda one: build.made.get(one, set()))}
    assert 'daemon/lib/schedule/torus.c' in in_torusctl
    assert {file for file in in_torusctl if 'daemons' in rows.of(file)[1]} == set()


def test_changed_since(tmp_path, monkeypatch):
    def run(*arguments):
        git('-c', 'user.name=a', '-c', 'user.email=a@b', *arguments, checkout=tmp_path)

    # As in a hook of another repository, which must stay as it is.
    for name in 'GIT_DIR', 'GIT_WORK_TREE', 'GIT_INDEX_FILE':
        monkeypatch.setenv(name, str(tmp_path / 'elsewhere'))
    run('init', '-q')
    (tmp_path / '.gitignore').write_text('ignored\n')
    for name in 'same', 'edited', 'removed', 'moved', 'a name':
        (tmp_path / name).write_text(f'{name}\n')
    run('add', '.')
    run('commit', '-q', '-m', 'one')
    run('mv', 'moved', 'new place')
    run('commit', '-q', '-m', 'two')
    for name in 'edited', 'a name', 'untracked', 'ignored':
        (tmp_path / name).write_text('changed\n')
    (tmp_path / 'removed').unlink()
    now = {'edited', 'a name', 'untracked', 'removed'}
    assert changed_since('HEAD', tmp_path) == now
    assert changed_since('HEAD~1', tmp_path) == now | {'moved', 'new place'}
    for revision in 'nonsense', '-q', 'HEAD~2', 'HEAD:same', '':
        with pytest.raises(pytest.UsageError, match=f'--since {revision}: git knows no such commit'):
            changed_since(revision, tmp_path)


def test_what_is_left_out():
    def item(path, program=None):
        return SimpleNamespace(path=CHECKOUT / path, originalname=program)

    router = item('tests/CMakeLists.txt', 'test_router')
    wire, top = item('tests/integration/test_wire.py'), item('tests/integration/test_top.py')
    items, left_out = [router, wire, top], []
    since = Since({'client/cli/top/draw.c', 'tests/unit/test_router_ports.c'})
    since.pytest_collection_modifyitems(
        SimpleNamespace(hook=SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items))), items)
    assert items == [router, top] and left_out == [wire]
    assert since.pytest_report_collectionfinish() == 'since: a change of 2 files can reach 2 of 3 tests'
    session = SimpleNamespace()
    since.pytest_sessionfinish(session, pytest.ExitCode.TESTS_FAILED)
    assert not hasattr(session, 'exitstatus')
    since.pytest_sessionfinish(session, pytest.ExitCode.NO_TESTS_COLLECTED)
    assert session.exitstatus == 0


def run_pytest(*options):
    return patience.run([sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '--collect-only',
                         CHECKOUT / 'tests/integration/test_wire.py', *options], 120)


def test_a_run():
    done = run_pytest('--since', 'HEAD')
    assert re.search(r'since: a change of \d+ files can reach \d+ of \d+ tests', done.stdout), done
    assert done.returncode == 0
    done = run_pytest('--since', 'nonsense')
    assert done.returncode == 4 and '--since nonsense: git knows no such commit' in done.stderr, done
