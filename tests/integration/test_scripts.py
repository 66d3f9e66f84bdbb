"""Messages of the scripts before they begin."""

import subprocess

import pytest
from torus_net import CHECKOUT

pytestmark = pytest.mark.plain


@pytest.mark.parametrize('name', ['my checkout', 'a:b'])
def test_a_path_that_ld_preload_does_not_take(tmp_path, name):
    (tmp_path / name).symlink_to(CHECKOUT)
    result = subprocess.run([tmp_path / name / 'scripts' / 'test', '--quick', '--no-install', '--no-unit',
                             '--no-loopback'], capture_output=True, text=True)
    assert result.returncode == 1 and f'move this folder, {tmp_path / name},' in result.stderr, result.stderr
