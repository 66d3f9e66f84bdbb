"""Each rule of scripts/lint finds what breaks it."""

import subprocess

import pytest
from torus_net import CHECKOUT


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
            target = tmp_path / 'build' / 'CMakeFiles' / 'x.dir' / (name + '.o')
            target.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(['cc', '-c', '-o', target, tmp_path / name], check=True)
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
    lint = planted({'daemon/a.c': 'int a(void)\n{\n' + '\n' * 60 + '    return 0;\n}\n' + '\n' * 500})
    result = lint('lengths')
    assert result.returncode == 1
    assert 'function of 64 lines' in result.stdout and '564 lines, at most 500' in result.stdout


@pytest.mark.parametrize('subject', ['no area', 'a: ' + 'b' * 70])
def test_subjects(planted, subject):
    assert planted({}, subject)('subjects').returncode == 1
