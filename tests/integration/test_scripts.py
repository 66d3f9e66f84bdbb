"""Scripts of this project."""

import subprocess

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


def test_a_distributed_sort():
    done = run([CHECKOUT / 'scripts' / 'distributed-sort', '--lines', '20000', '--no-install'], 120)
    assert done.returncode == 0 and 'equal to LC_ALL=C sort' in done.stdout, done.stdout + done.stderr
    assert without_values(done.stdout) == without_values(block('', '500000 lines')), done.stdout
