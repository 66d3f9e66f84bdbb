"""A pytest plugin: with `--since REV`, only the tests run that can notice what has changed since that commit.

Programs of ctest: the build says which files each is made from, reads and starts. Tests in Python: those that import
or name a changed file, directly or not; for the product, reach.txt says which tests can notice a change. If nothing is
known about a changed file, all tests run.
"""

import ast
import os
import re
import subprocess
from collections import defaultdict
from fnmatch import fnmatch
from functools import cache
from pathlib import Path, PurePath

import pytest

from .builds import CHECKOUT, first_build
from .programs_of_ctest import programs_of

ROWS = Path(__file__).with_name('reach.txt')
FOLDERS = 'tests', 'topo', 'scripts', 'client/python'  # with programs in Python, and scripts that start them
# They name other files, but do not use them.
NAME_OTHERS = 'scripts/testing/__main__.py', 'tests/integration/test_since.py', 'tests/support/since.py'
TEST = re.compile(r'tests/\w+/test_\w+\.py')
IMPORTED_FROM = *FOLDERS, 'tests/integration', 'tests/packaging', 'tests/vm'


def git(*arguments, checkout=CHECKOUT):
    """The files that git lists. A hook of git, from which this may run, sets variables for another repository."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith('GIT_')}
    done = subprocess.run(['git', '-C', checkout, *arguments], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise pytest.UsageError(f'git {arguments[0]}: {done.stderr.strip()}')
    return [name for name in done.stdout.split('\0') if name]


def changed_since(revision, checkout=CHECKOUT):
    """The files that differ between a commit and the working tree; of a file that was renamed, both names."""
    try:
        commit, = git('rev-parse', '--verify', '--quiet', '--end-of-options', f'{revision}^{{commit}}',
                      checkout=checkout)
    except pytest.UsageError:
        raise pytest.UsageError(f'--since {revision}: git knows no such commit') from None
    return {*git('diff', '--name-only', '--no-renames', '--relative', '-z', commit.strip(), '--', checkout=checkout),
            *git('ls-files', '--others', '--exclude-standard', '-z', checkout=checkout)}


def below(path, folder):
    return path == folder or path.startswith(f'{folder}/')


def above(path):
    """The folders that contain a file or folder, up to '' for the checkout."""
    return ['' if str(folder) == '.' else str(folder) for folder in PurePath(path).parents]


def below_checkout(path):
    return os.path.relpath(path, CHECKOUT)


def closure(start, follow):
    """Everything that can be reached from some things."""
    found, left = set(start), list(start)
    while left:
        new = follow(left.pop()) - found
        found |= new
        left += new
    return found


class Build:
    """What the programs of a build are made from: paths are relative to the checkout, if they are in it."""

    def __init__(self, folder):
        self.folder = Path(folder).resolve()
        self.made = defaultdict(set)  # file: what is made from it
        self.told = defaultdict(set)  # file or folder: the tests of ctest whose commands name it
        self._read_rules((self.folder / 'build.ninja').read_text().replace('$\n', ''))
        self._read_headers(subprocess.run(['ninja', '-n', '-C', self.folder, '-t', 'deps'], check=True,
                                          capture_output=True, text=True).stdout)
        self.programs = programs_of(str(self.folder))
        for name, test in self.programs.items():
            for path in re.findall(r'/[^\s"\'=:;]+', ' '.join(test['command'])):
                self.told[self.path(path)].add(name)
        for header in [file for file in self.made if self._is_configured(file)]:
            for file in self.configured:
                if os.path.dirname(file) == os.path.dirname(self._inside(header)):
                    self.made[file].add(header)
        self.files = {file for file in self.made if not os.path.isabs(file) and self._inside(file) == file}

    def path(self, name):
        path = os.path.normpath(self.folder / name)
        return os.path.relpath(path, CHECKOUT) if below(path, str(CHECKOUT)) else path

    def _inside(self, path):
        """A path of the build, relative to the build folder."""
        build = self.path('.')
        return os.path.relpath(path, build) if below(path, build) else path

    def _is_configured(self, file):
        """CMake itself made this file, since no rule does."""
        return self._inside(file) != file and file not in self.outputs

    def _read_rules(self, text):
        self.outputs, self.configured, outputs = set(), set(), []
        for line in text.splitlines():
            if line.startswith('build '):
                line = line.removeprefix('build ').partition(' || ')[0].replace('${cmake_ninja_workdir}', '')
                outputs, inputs = ([self.path(re.sub(r'\$(.)', r'\1', word))
                                    for word in re.split(r'(?<!\$) +', part) if word not in ('', '|')]
                                   for part in re.split(r'(?<!\$):', line, 1))
                if outputs == [self.path('build.ninja')]:
                    self.configured = {file for file in inputs if not is_cmake(file)}
                else:
                    self.outputs.update(outputs)
                    self._note(outputs, inputs[1:])
            elif line.startswith('  DEFINES = '):  # a file that a program reads or starts
                self._note(outputs, map(self.path, re.findall(r'\\"(/[^"\\]+)\\"', line)))

    def _note(self, outputs, inputs):
        for file in inputs:
            self.made[file].update(outputs)

    def _read_headers(self, text):
        built, output = set(), ''
        for line in text.splitlines():
            if line.startswith('    '):
                self.made[self.path(line.strip())].add(output)
            else:
                output = self.path(line.partition(': ')[0])
                built.add(output)
        self.not_built = {file for file in self.outputs if file.endswith('.o')} - built

    def knows(self, file):
        return file in self.files or any(path in self.told for path in [file, *above(file)])

    def reached(self, changed):
        """The names of the programs that changed files can reach. A file that has gone has changed other files: those
        that included it, or CMakeLists.txt."""
        start = self.not_built | set(changed)
        for file in changed:
            if is_cmake(file):
                folder = above(file)[0]
                start |= {one for one in self.files | set(self.told) if not folder or below(one, folder)}
            elif file in self.configured and not self.made.get(file):  # it is in every program, such as the version
                start |= self.files
        found = closure(start, lambda file: self.made.get(file, set()))
        found |= {folder for file in changed for folder in above(file)}
        return {name for path in found for name in self.told.get(path, ())}


def is_cmake(file):
    return file.endswith(('CMakeLists.txt', '.cmake'))


def is_script(file):
    """Whether it is among the programs in Python and the scripts that start them."""
    return any(below(file, folder) for folder in FOLDERS) and not below(file, 'tests/fuzz')


class Sources:
    """Which files of the tests and scripts use which others: they import them, or name them."""

    def __init__(self):
        self.files = [name for name in git('ls-files', '--cached', '--others', '--exclude-standard', '-z')
                      if (CHECKOUT / name).is_file()]
        self.modules, self.named = defaultdict(set), defaultdict(set)
        for file in self.files:
            self.named[file].add(file)
            if not is_script(file):
                continue
            for root in IMPORTED_FROM:
                if file.endswith('.py') and below(file, root):
                    module = os.path.relpath(file, root)[:-3].replace('/', '.').removesuffix('.__init__')
                    self.modules[module].add(file)
            for path in [file, *([above(file)[0]] if file.endswith('__main__.py') else [])]:
                for begin in range(path.count('/') + 1):
                    tail = '/'.join(path.split('/')[begin:])
                    if '/' in tail or '.' in tail:
                        self.named[tail].add(file)

    @cache
    def _read(self, file):
        """(files that a file uses, its text) of a program in Python or a script."""
        text = (CHECKOUT / file).read_text(errors='replace') if is_script(file) else ''
        if file.endswith('.py') or re.match('#!.*python', text):
            imports, strings = _parsed(file, ast.parse(text))
        elif text.startswith('#!'):
            imports, strings = [f'{module}.__main__' for module in re.findall(r' -m (\w+)', text)], [text]
        else:
            return set(), ''
        if file in NAME_OTHERS:
            strings = []
        names = {name for string in strings for name in re.findall(r'(?:\$\w+/)?([\w.+-]+(?:/[\w.+-]+)*)', string)}
        used = [self.modules.get(name[:end], ()) for name in imports
                for end in [*(at.start() for at in re.finditer(r'\.', name)), len(name)]]
        used += [self.named.get(name, ()) for name in names]
        return {one for found in used for one in _nearest(file, found)}, '\n'.join(strings)

    def uses(self, file):
        return self._read(file)[0]

    @cache
    def all_used(self, test):
        """All files that a test file uses, without its conftest.py."""
        return closure([test], self.uses)

    @cache
    def says(self, test, without=()):
        """The texts in a test file and in what it uses, except in some folders."""
        return '\n'.join(self._read(file)[1] for file in sorted(self.all_used(test))
                         if not any(below(file, folder) for folder in without))

    @cache
    def fixtures(self, folder):
        """All files that conftest.py in a folder, and in those above it, uses."""
        return closure([file for one in [folder, *above(folder)] for file in [f'{one}/conftest.py']
                        if file in self.files], self.uses)


def _nearest(file, found):
    """The files with this name that are beside the file that uses the name, if any; otherwise all files with this name."""
    return [one for one in found if above(one)[0] == above(file)[0]] or found


def _parsed(file, tree):
    """(names of modules that may be imported, all texts except comments) of a program in Python."""
    comments = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    package = above(file)
    imports, strings = [], []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ''
            if node.level:
                folder = package[node.level - 1]
                root = max((root for root in IMPORTED_FROM if below(folder, root)), key=len, default='')
                inside = os.path.relpath(folder, root or '.').replace('/', '.').strip('.')
                base = '.'.join(filter(None, [inside, base]))
            imports += [base, *(f'{base}.{alias.name}' for alias in node.names)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)) and id(node) not in comments:
            strings.append(node.value if isinstance(node.value, str) else node.value.decode('latin1'))
            imports += re.findall(r'^ *(?:import|from) (\w+)', strings[-1], re.M)  # a program in Python
            imports += re.findall(r'^\w+(?:\.\w+)+$', strings[-1])  # in pytest_plugins
        elif isinstance(node, ast.keyword) and node.arg:
            strings.append(node.arg)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            strings.append(_joined(node))
    return imports, strings


def _joined(node):
    """'scripts/bench' of CHECKOUT / 'scripts' / 'bench'."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return f'{_joined(node.left)}/{_joined(node.right)}'.strip('/')
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ''


class Rows:
    """reach.txt: which tests in Python can notice a change of a file or folder of the product."""

    def __init__(self, text):
        self.rows = {}
        for line in text.splitlines():
            if line and not line.startswith('#'):
                path, *tests = line.split()
                self.rows[path] = [*self.rows.get(path, ()), *tests]
        self.without_daemon, self.prose = self.rows.pop('without-daemon', []), self.rows.pop('prose', [])

    def of(self, file):
        """(whether a row is for this file or a folder of it, what the rows say)."""
        path = next((one for one in [file, *above(file)] if one in self.rows), None)
        added = [test for pattern, tests in self.rows.items() if '*' in pattern and fnmatch(file, pattern)
                 for test in tests]
        return path is not None, self.rows.get(path, []) + added

    def fits(self, wanted, test, sources):
        """Whether what a row says is a test file."""
        name = PurePath(test).stem
        if wanted in ('all', 'daemons'):
            return not below(test, 'tests/packaging') and not (
                wanted == 'daemons' and any(fnmatch(name, pattern) for pattern in self.without_daemon))
        if '*' in wanted or wanted.startswith('test_'):
            return fnmatch(name, wanted) or fnmatch(test, f'tests/{wanted}')
        said = sources.says(test, tuple(self.prose))
        return re.search(rf'(?<!\w){re.escape(wanted)}(?!\w)', said) is not None


class Reach:
    """Which tests the changes of files can reach."""

    def __init__(self, changed, build, sources, rows):
        self.changed, self.build, self.sources, self.rows = set(changed), build, sources, rows
        self.programs = build.reached(changed) if build else set()
        used = set().union(*map(self._used, filter(TEST.fullmatch, sources.files)))
        self.wanted, self.unknown = set(), set()
        for file in changed:
            has_row, wanted = rows.of(file)
            self.wanted.update(wanted)
            if not has_row and not (is_script(file) and file in used) and not TEST.fullmatch(file):
                self.unknown.add(file)

    def _used(self, test):
        return self.sources.all_used(test) | self.sources.fixtures(above(test)[0])

    def file(self, test):
        """Whether the changes can reach a test file."""
        return bool(self.unknown or self.changed & self._used(test)) or any(
            self.rows.fits(wanted, test, self.sources) for wanted in self.wanted)

    def program(self, name):
        """Whether the changes can reach a program of ctest."""
        return (self.build is None or name not in self.build.programs or name in self.programs
                or bool(self.changed & self.sources.fixtures('tests'))
                or any(not self.build.knows(file) for file in self.unknown))


@cache
def known():
    """What is known about the build (None: nothing), of the files of the tests, and of the product."""
    try:
        build = Build(first_build())
    except (OSError, subprocess.CalledProcessError):
        build = None
    return build, Sources(), Rows(ROWS.read_text())


def pytest_addoption(parser):
    parser.addoption('--since', metavar='REV', help='only tests that can notice what has changed since this commit')


def pytest_configure(config):
    if config.getoption('--since') is not None:
        config.pluginmanager.register(Since(changed_since(config.getoption('--since'))), 'since')


class Since:
    def __init__(self, changed):
        self.changed, self.line = changed, None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        reach, verdicts = Reach(self.changed, *known()), {}
        kept, others = [], []
        for item in items:
            program = item.originalname if item.path.name == 'CMakeLists.txt' else None
            key = program or below_checkout(item.path)
            if key not in verdicts:
                verdicts[key] = reach.program(key) if program else reach.file(key)
            (kept if verdicts[key] else others).append(item)
        self.line = f'since: a change of {len(self.changed)} files can reach {len(kept)} of {len(items)} tests'
        config.hook.pytest_deselected(items=others)
        items[:] = kept

    def pytest_report_collectionfinish(self):
        return self.line

    def pytest_sessionfinish(self, session, exitstatus):
        """If no test can notice a change, none has failed."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK
