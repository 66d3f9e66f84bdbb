"""scripts/routing-bench: its errors, and a short measurement."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from torus_net import CHECKOUT, find_program

SCRIPT = CHECKOUT / 'scripts' / 'routing-bench'


def run(*arguments):
    environment = {**os.environ, 'TORUS_BIN': str(Path(find_program('torusd')).parent)}
    return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, env=environment)


def test_an_unknown_system():
    done = run('--systems', 'torus-routed,rip', '--repeats', '0')
    assert done.returncode == 2 and '"rip" is none of torus-routed, frr, bird, babeld' in done.stderr


@pytest.mark.mininet
@pytest.mark.full  # test_routed.py cuts links, too
def test_a_cut():
    done = run('4', '--systems', 'torus-routed', '--repeats', '1', '--rest', '1')
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found['system'] == 'torus-routed' and found['dims'] == '4' and found['outage_ms'] > 10
    assert found['lost_at_return'] == 0 and found['loops'] == 0
