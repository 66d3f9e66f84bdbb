"""Plants something that breaks a rule of scripts/lint, for each rule, and checks that lint reports it."""

import shutil
import subprocess

import pytest
from torus_net import CHECKOUT

pytestmark = pytest.mark.plain


@pytest.fixture
def planted(tmp_path):
    def git(*args):
        subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=a@b', *args], cwd=tmp_path, check=True)

    def plant(files, subject='a: b'):
        git('init', '-q')
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        git('add', '.')
        git('commit', '-q', '--allow-empty', '-m', subject)
        for name in files:
            if not name.endswith('.c'):
                continue
            target = tmp_path / 'build' / 'CMakeFiles' / 'x.dir' / (name + '.o')
            target.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(['cc', '-c', '-I', tmp_path, '-o', target, tmp_path / name], check=True)
        return lambda rule: subprocess.run([CHECKOUT / 'scripts' / 'lint', '--root', tmp_path, rule],
                                           capture_output=True, text=True)
    return plant


LOW = {'daemon/low/a.c': 'int low(void) { return 0; }\n',
       'daemon/high/b.c': 'int low(void);\nint high(void) { return low(); }\n'}


def test_calls(planted):
    result = planted(LOW)('calls')
    assert result.returncode == 0, result.stdout


def test_calls_upward(planted):
    result = planted(LOW | {'daemon/low/a.c': 'int high(void);\nint low(void) { return high(); }\n'})('calls')
    assert result.returncode == 1
    assert 'files call each other' in result.stdout and 'folders call each other' in result.stdout


def test_lengths(planted):
    lint = planted({'daemon/a.c': 'int a(void)\n{\n' + '\n' * 60 + '    return 0;\n}\n' + '\n' * 800})
    result = lint('lengths')
    assert result.returncode == 1
    assert 'function of 64 lines' in result.stdout and '864 lines, at most 800' in result.stdout


@pytest.mark.parametrize('subject', ['no area', 'a: ' + 'b' * 70])
def test_subjects(planted, subject):
    assert planted({}, subject)('subjects').returncode == 1


DOCUMENTS = {'README.md': '# A title\n[one](doc/one.md#two-words-and-code), [here](#a-title), [a folder](doc)\n'
                          '[elsewhere](https://example.org/x.md#y), `[code](none.md)`\n```\n[a block](none.md)\n```\n',
             'doc/one.md': '# One\n\n## Two words, and `code`\n\n## One\n[up](../README.md), [the second](#one-1)\n'}


def test_links(planted):
    result = planted(DOCUMENTS)('links')
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize('link, finding', [
    ('none.md', 'none.md: there is no doc/none.md'),
    ('one.md#none', 'one.md#none: doc/one.md has no heading of that name'),
    ('#in-a-block', '#in-a-block: doc/two.md has no heading of that name'),
    ('../../other/README.md', '../../other/README.md leads out of the project'),
    ('/README.md', '/README.md leads out of the project')])
def test_links_that_lead_nowhere(planted, link, finding):
    result = planted(DOCUMENTS | {'doc/two.md': f'```\n# In a block\n```\n\n[text]({link})\n'})('links')
    assert result.returncode == 1 and f'doc/two.md:5: links: {finding}' in result.stdout, result.stdout


PAGE = 'daemon/doc/architecture.md'
MAPPED = {PAGE: '## Folders\n\n| folder | what it holds |\n|---|---|\n| `base` | slabs, see `base/a.c` and `low.h` |\n'
                '| `torusd` | the daemon |\n\n### `daemon/torusd`\n\n`engine/` cuts blocks: `NAME.c`, `test_*.py`.\n',
          'daemon/lib/base/a.c': '/* See engine/cut.h, base/b.h, <sys/socket.h> and https://example.org/x/none.c. */\n',
          'daemon/lib/base/b.h': '/* NAME/none.c, test_X.py; control.pb-c.h. */\n#define NONE "none/none.c"\n',
          'daemon/torusd/main.c': 'int low; // low.h\n', 'daemon/torusd/low.h': '\n',
          'daemon/torusd/engine/cut.h': '/* Files of ../low.h and engine/cut.h. */\n',
          'tests/a/test_a.py': '"""See test_a.py and a/test_*.py."""\nname = "none.c"  # daemon/lib/base/a.c\n'}


def test_maps(planted):
    result = planted(MAPPED)('maps')
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize('name, text, finding', [
    ('daemon/lib/new/a.c', 'int new;\n', 'daemon/lib/new: maps: stands neither on daemon/doc/architecture.md nor on'),
    ('client/cli/base/a.c', 'int a;\n', 'client/cli/base: maps: stands neither on'),
    ('client/doc/architecture.md', '| folder of `client/` | |\n|---|---|\n| `gone` | |\n',
     'client/doc/architecture.md:3 gone: maps: there is no such folder'),
    ('daemon/lib/base/a.c', '\n/* See\n * low/none.c. */\n', 'daemon/lib/base/a.c:3 low/none.c: maps: there is no such'),
    ('daemon/lib/base/a.c', '// none.h\n', 'daemon/lib/base/a.c:1 none.h: maps: there is no file of this name'),
    ('tests/b.py', 'x = 1  # tests/none/c.py\n', 'tests/b.py:1 tests/none/c.py: maps: there is no such file'),
    ('tests/b.py', '"""A text.\n\nSee `none_*.py`."""\n', 'tests/b.py:3 none_*.py: maps: there is no file of this name'),
    ('README.md', 'See `none.md`.\n', 'README.md:1 none.md: maps: there is no file of this name'),
    ('proto/a.proto', '// As in base/none.h.\n', 'proto/a.proto:1 base/none.h: maps: there is no such file')])
def test_maps_that_lead_nowhere(planted, name, text, finding):
    result = planted(MAPPED | {name: text})('maps')
    assert result.returncode == 1 and finding in result.stdout, result.stdout
    assert len(result.stdout.splitlines()) == 1, result.stdout


def test_a_heading_that_stands_twice(planted):
    result = planted({'one.md': '# One\n\n### Two\n## Two\n\ntext\n\n## Two\n\n```\n# In\n# In\n```\n'})('links')
    assert result.returncode == 1 and 'one.md:4: links: the heading "Two" stands twice' in result.stdout, result.stdout
    assert result.stdout.count('stands twice') == 1


@pytest.mark.parametrize('name, line', [
    ('daemon/a.h', '/* It begins anew. */'), ('client/a.h', '/* An attempt that was taken back. */'),
    ('README.md', 'Exchanges go around links.'), ('topo/a.py', "print('its turn has come')"),
    ('daemon/d.h', '/* The cargo of a link. */'), ('client/c.h', '/* A standing group. */'),
    ('proto/a.proto', '// What befalls a group.'), ('client/a.md', 'No memory is to be had.'),
    ('daemon/a.md', 'It has to have been sent.'), ('scripts/a.py', '# what has become of it'),
    ('topo/a.in', 'The node thereby stops.'), ('daemon/b.h', '/* Who is refused is told. */'),
    ('client/b.h', '/* What has not been measured is slow. */'), ('README.md', '(Of all else there are two.)'),
    ('daemon/c.h', '/* Of those there are two. */')])
def test_words(planted, name, line):
    result = planted({name: f'\n{line}\n'})('words')
    assert result.returncode == 1 and f'{name}:2: words: ' in result.stdout, result.stdout
    result = planted({name: '\nIt is retried.\n', 'tests/a.py': f'# {line}\n'})('words')
    assert result.returncode == 0, result.stdout


def test_words_that_are_right(planted):
    text = '## Who is told?\n\nA client who is outstanding. What has not changed? Here in the torus, where by rank R.\n'
    result = planted({'README.md': text})('words')
    assert result.returncode == 0, result.stdout


ROW = '    {"--dims", "DIMS", offsetof(struct way_arguments, dims), %s},\n    {0},\n'
SETTING = '    {"rank", "rank", "N", NULL, PLACE(set_rank, AT_START, VALUE, rank),\n     %s},\n'
SCRIPT = "#!/bin/bash\ncase $1 in\n--bin | --out) shift ;;\n--no-*) ;;\nesac\ncat <<END\n  --bin DIR\n%s\nEND\n"
EXPLAINED = {'client/cli/commands/way.c': 'const struct { char *name; } command_way = {\n    .name = "way",\n};\n',
             'client/cli/way.h': ROW % '"the torus"', 'daemon/torusd/settings.h': SETTING % '"the rank"',
             'topo/torus.py': "p.add_argument('-q', '--quiet', help='say nothing')\n",
             'scripts/go': SCRIPT % '  --out DIR\n  --no-PART',
             'client/doc/commands.md': '| `way --dims DIMS` |\n'
                                       '`scripts/go --bin x --no-lint`, `--quiet`, `cc --other`\n\n'
                                       "    torus.py 'torusctl way --dims 4' # --other\n"}


def test_options(planted):
    result = planted(EXPLAINED)('options')
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize('name, text, finding', [
    ('client/cli/way.h', ROW % 'NULL', 'way.h --dims: options: the help does not say'),
    ('client/cli/way.h', ROW % '""', 'way.h --dims: options: the help does not say'),
    ('daemon/torusd/settings.h', SETTING % 'NULL', 'settings.h --rank: options: the help does not say'),
    ('daemon/torusd/main.c', '#include <getopt.h>\n', 'main.c: options: options are read by daemon/lib/command_line'),
    ('topo/torus.py', "p.add_argument('-q', '--quiet')\n", 'torus.py --quiet: options: the help does not say'),
    ('scripts/go', SCRIPT % '  --out-file X --no-PART', 'scripts/go --out: options: the help does not say'),
    ('client/doc/commands.md', '`scripts/go`', 'commands.md has no row for way'),
    ('client/doc/commands.md', '| `way`\n`scripts/go --way`', 'commands.md:2 --way: options: no program has this'),
    ('client/doc/commands.md', '| `way`', 'scripts/go: options: no document names this program')])
def test_options_that_are_not_documented(planted, name, text, finding):
    result = planted(EXPLAINED | {name: text})('options')
    assert result.returncode == 1 and finding in result.stdout, result.stdout


HEADERS = {'daemon/low/a.h': 'enum low { LOW };\n', 'daemon/high/b.h': 'enum high { HIGH };\n'}


def test_includes(planted):
    result = planted(LOW | HEADERS | {'daemon/high/b.c': '#include "daemon/low/a.h"\n' + LOW['daemon/high/b.c']})('includes')
    assert result.returncode == 0, result.stdout


def test_includes_upward(planted):
    lint = planted(LOW | HEADERS | {'daemon/low/a.c': '#include "daemon/high/b.h"\n' + LOW['daemon/low/a.c']})
    result = lint('includes')
    assert result.returncode == 1 and 'daemon/low/a.c:1: includes: includes daemon/high/b.h' in result.stdout


@pytest.mark.parametrize('rule', ['calls', 'includes'])
def test_without_a_build(planted, rule):
    result = planted({'daemon/a.h': 'int a;\n'})(rule)
    assert result.returncode == 1 and f'build: {rule}: no object files: build first' in result.stdout, result
    assert result.stderr == ''


@pytest.mark.parametrize('folder', ['daemon', 'proto'])
def test_includes_of_the_client(planted, folder):
    result = planted({'client/a.h': '\n', f'{folder}/a.c': '#include "client/a.h"\nint a;\n'})('includes')
    assert result.returncode == 1 and f'{folder}/ does not include client/a.h' in result.stdout


def test_format(planted, tmp_path):
    lint = planted({'daemon/a.c': 'int a( void );\n', 'daemon/b.c': 'int b;\n'})
    (tmp_path / 'scripts').mkdir()
    for name in 'format', 'lib.sh':
        shutil.copy(CHECKOUT / 'scripts' / name, tmp_path / 'scripts')
    result = lint('format')
    assert result.returncode == 1 and result.stdout.startswith('daemon/a.c: format: ') and 'b.c' not in result.stdout


def test_exceptions(planted):
    long = {'daemon/a.c': 'int a(void)\n{\n' + '\n' * 60 + '    return 0;\n}\n'}
    needed = 'lengths | daemon/a.c a() | a table\n'
    assert planted(long | {'scripts/linting/exceptions.txt': needed})('lengths').returncode == 0
    result = planted(long | {'scripts/linting/exceptions.txt': needed + 'lengths | daemon/a.c | no\n'})('lengths')
    assert result.returncode == 1 and 'daemon/a.c does not break rule lengths' in result.stdout
    result = planted(long | {'scripts/linting/exceptions.txt': 'lengths | daemon/a.c a()\n'})('lengths')
    assert result.returncode == 1 and 'has no reason' in result.stdout


def test_without_a_clone(planted, tmp_path):
    lint = planted(LOW, 'no area')
    shutil.rmtree(tmp_path / '.git')
    for rule in 'calls', 'includes', 'lengths', 'links', 'options', 'subjects', 'words':
        result = lint(rule)
        assert result.returncode == 0 and result.stderr == '', result


def test_a_shallow_clone(planted, tmp_path):
    planted({}, 'no area, as a merge that a shallow clone does not know as one')
    planted({}, 'no area')
    clone = tmp_path / 'clone'
    subprocess.run(['git', 'clone', '-q', '--depth', '2', f'file://{tmp_path}', clone], check=True)
    result = subprocess.run([CHECKOUT / 'scripts' / 'lint', '--root', clone, 'subjects'], capture_output=True, text=True)
    assert result.returncode == 1 and len(result.stdout.splitlines()) == 1, result
    subprocess.run(['git', 'clone', '-q', '--depth', '1', f'file://{tmp_path}', tmp_path / 'one'], check=True)
    result = subprocess.run([CHECKOUT / 'scripts' / 'lint', '--root', tmp_path / 'one', 'subjects'],
                            capture_output=True, text=True)
    assert result.returncode == 0, result
