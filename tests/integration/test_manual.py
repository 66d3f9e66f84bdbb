"""The man pages of the build: each program, command and function has one, with every option that --help prints, and
they render without warnings."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.helps import commands, printed
from torus_net import CHECKOUT, find_program

sys.path.append(str(CHECKOUT / 'scripts'))
from manual import scdoc  # noqa: E402

TORUSCTL = Path(find_program('torusctl'))
BUILD = TORUSCTL.parent
PAGES = BUILD / 'man'
TABLES = {'--torusctl-tables': BUILD / 'client' / 'torusctl_tables',
          '--torusd-tables': BUILD / 'daemon' / 'torusd_tables'}


@pytest.fixture(autouse=True)
def built(request):
    if not PAGES.is_dir() and not request.node.get_closest_marker('without_pages'):
        pytest.skip('this build has no man pages: scdoc is not installed')


def whole_pages():
    """The pages that are not another name of a page."""
    return [page for page in [*PAGES.glob('man[158]/*'), PAGES / 'man3' / 'libtorus.3'] if page.name != 'torusrun.1']


def source(name, number=1):
    """The lines of a page, without the marks of bold and underlined text."""
    text = (PAGES / f'man{number}' / f'{name}.{number}').read_text()
    return re.sub(r'\\f[BIR]', '', text).replace(r'\-', '-').replace(r'\&', '').replace('\\/', '').splitlines()


def options(help_text):
    found = re.findall(r'^  (?:-\w, )?(--[a-z-]+)', help_text, re.M)
    assert len(found) > 3, help_text
    return found


def check_options(help_text, lines, prefix=''):
    for option in options(help_text):
        assert any(re.match(rf'(-\w, )?{option}( |$)', line) for line in lines), f'{prefix}: no {option}'


def test_commands():
    """Each has a page with all of its options and arguments, and torusctl(1) names it."""
    overview = source('torusctl')
    assert len(commands()) > 10
    for command in commands():
        text, lines = printed(TORUSCTL, 'help', command), source(f'torusctl-{command}')
        check_options(text, lines, command)
        own = text.partition('\noptions:\n')[2].partition('\n\n')[0]
        for argument in re.findall(r'^  ([A-Z]+) ', own, re.M):
            assert argument in lines, f'{command}: no {argument}'
        assert f'torusctl-{command}(1)' in overview


def test_no_other_pages():
    known = {f'torusctl-{command}.1' for command in commands()} | {'torusctl.1', 'torus.py.1', 'vm-up.1',
                                                                         'torus-emulator.1', 'torusrun.1'}
    assert {path.name for path in (PAGES / 'man1').iterdir()} == known
    assert source('torusrun') == ['.so man1/torusctl-run.1']


def test_torusd():
    check_options(printed(find_program('torusd'), '--help'), source('torusd', 8))


def test_settings():
    """Each option is a setting, except these, and each setting that the page lists is known."""
    lines = source('torusd.ini', 5)
    listed = [line.partition(' = ')[0] for line in lines if re.match(r'[a-z_]+ = [A-Zy]', line)]
    wanted = {option[2:].replace('-', '_') for option in options(printed(find_program('torusd'), '--help'))}
    wanted -= {'from_env', 'cluster', 'name'}  # options only
    assert set(listed) == (wanted - {'config', 'port', 'check', 'help', 'version', 'data_root'} |
                           {'data_roots'})


@pytest.mark.parametrize('name, program', [('torus.py', 'torus.py'), ('vm-up', 'vms.py')])
def test_launchers(name, program):
    check_options(printed('/usr/bin/python3', CHECKOUT / 'topo' / program, '--help'), source(name))


def test_functions():
    """Each function is in libtorus(3), and is another name of that page."""
    exported = re.findall(r'^    (torus_\w+);', (CHECKOUT / 'client/libtorus/libtorus.map').read_text(), re.M)
    text = '\n'.join(source('libtorus', 3))
    assert len(exported) > 50
    for function in exported:
        assert re.search(rf'[ *]{function}\(', text), function
        assert source(function, 3) == ['.so man3/libtorus.3']


def test_rendered():
    if not shutil.which('man'):
        pytest.skip('man is not installed')
    for page in whole_pages():
        result = subprocess.run(['man', '--warnings', '-l', page], capture_output=True, text=True,
                                env={**os.environ, 'MANWIDTH': '100', 'LC_ALL': 'C.UTF-8'})
        assert (result.returncode, result.stderr) == (0, ''), page
        assert re.search(r'^NAME\n +\S+ - ', result.stdout, re.M), page


def test_references():
    """Pages of this project that a page names exist."""
    for page in whole_pages():
        text = '\n'.join(source(page.stem, page.suffix[1:]))
        for name, number in re.findall(r'\b((?:torus|libtorus|vm-up)[\w.-]*)\((\d)\)', text):
            assert (PAGES / f'man{number}' / f'{name}.{number}').exists(), f'{page.name}: {name}({number})'


def test_installed(tmp_path):
    if not (BUILD / 'cmake_install.cmake').exists():
        pytest.skip(f'{BUILD} is not a build folder')
    subprocess.run(['cmake', '--install', BUILD, '--prefix', tmp_path], check=True, stdout=subprocess.DEVNULL)
    installed = {path.relative_to(tmp_path / 'share' / 'man') for path in (tmp_path / 'share' / 'man').glob('*/*')}
    assert installed == {path.relative_to(PAGES) for path in PAGES.glob('*/*')}


@pytest.fixture
def generate(tmp_path):
    """Writes pages from a copy of the prose. Returns the messages."""
    if not all(program.exists() for program in TABLES.values()):
        pytest.skip(f'{BUILD} is not a build folder')
    prose = tmp_path / 'prose'
    prose.mkdir()
    for path in CHECKOUT.glob('*/doc/man/*.scd.in'):
        shutil.copy(path, prose)

    def run():
        tables = [word for option in TABLES.items() for word in option]
        return subprocess.run(['/usr/bin/python3', CHECKOUT / 'scripts' / 'manual' / '__main__.py', *tables,
                               '--version', '1', '--prose', prose, tmp_path / 'out'], capture_output=True, text=True)
    return prose, run


def test_a_command_without_a_page(generate):
    prose, run = generate
    assert run().returncode == 0
    (prose / 'torusctl-plan.1.scd.in').unlink()
    result = run()
    assert result.returncode == 1 and 'torusctl-plan.1.scd.in: no such file' in result.stderr


def test_a_page_without_a_command(generate):
    prose, run = generate
    (prose / 'torusctl-plans.1.scd.in').write_text('')
    result = run()
    assert result.returncode == 1 and 'torusctl-plans.1.scd.in: there is no such page' in result.stderr


def test_wrong_prose(generate):
    prose, run = generate
    (prose / 'torusctl-plan.1.scd.in').write_text('# DESCRIPTION\n\nsome *bold text\n')
    result = run()
    assert result.returncode == 1 and 'torusctl-plan.1: scdoc says: ' in result.stderr


@pytest.mark.without_pages
@pytest.mark.parametrize('text, expected', [
    ('two\nlines\n\nand *one* my_name', 'two lines\n\nand \\*one\\* my\\_name\n'),
    ('says:\n  one    text that\n         goes on\n  two b  more\n',
     'says:\n\n*one*\n\ttext that goes on\n\n*two b*\n\tmore\n'),
    ('says:\n\n  a = b\\n\n\n  [c]\n', 'says:\n\n```\na = b\\\\n\n\n[c]\n```\n'),
    ('- one\n  line\n- two', '- one line\n- two\n'),
    ('from + to + or\nfrom - to\n- or back', 'from + to + or from - to - or back\n'),
    ('#hash', '\\#hash\n'),
])
def test_prose(text, expected):
    assert scdoc.prose(text) == expected


@pytest.mark.without_pages
def test_synopsis():
    assert scdoc.synopsis('FILE | --q N|best [options]') == '_FILE_ | *--q* _N_|*best* [options]'
