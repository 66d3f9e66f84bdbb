"""Scripts of this project."""

import os
import subprocess
import sys

import pytest
from support.documents import block, without_values
from torus_net import CHECKOUT
from torus_net.patience import run

pytestmark = pytest.mark.plain


@pytest.mark.parametrize('name', ['my checkout', 'a:b'])
def test_a_path_that_ld_preload_does_not_take(tmp_path, name):
    (tmp_path / name).symlink_to(CHECKOUT)
    result = subprocess.run([tmp_path / name / 'scripts' / 'test', '--no-install', 'lint'],
                            capture_output=True, text=True)
    assert result.returncode == 3 and f'move this folder, {tmp_path / name},' in result.stderr, result.stderr


def test_a_run_that_failed_without_a_test_is_not_tried_again(tmp_path):
    """pytest without the names of tests would run all of them."""
    done = run([sys.executable, '-c', 'import testing.__main__ as it; from pathlib import Path; '
                'it.pytest = lambda *_: 0; print(it.retry([], [], Path(".")), it.retry(["one"], [], Path(".")))'], 60,
               cwd=tmp_path, env={**os.environ, 'PYTHONPATH': str(CHECKOUT / 'scripts')})
    assert done.stdout == '1 0\n', done.stdout + done.stderr


def test_a_distributed_sort():
    done = run([CHECKOUT / 'scripts' / 'distributed-sort', '--lines', '20000', '--no-install'], 120)
    assert done.returncode == 0 and 'equal to LC_ALL=C sort' in done.stdout, done.stdout + done.stderr
    assert without_values(done.stdout) == without_values(block('', '500000 lines')), done.stdout
