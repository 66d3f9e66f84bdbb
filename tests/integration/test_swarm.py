"""Worlds of the simulation that nobody has played before: see tests/sim/swarm."""

import json
from pathlib import Path

import pytest
from torus_net.patience import run
from torus_net.process import find_program

pytestmark = [pytest.mark.plain, pytest.mark.swarm]
WORLDS = 20


def test_seeds_of_the_day(record_property):
    """A violation is a fault that this day has found, and not of the change that is tested: it is reported at the end
    of the run, and does not fail it."""
    swarm = Path(find_program('torusd')).parent / 'tests' / 'sim' / 'swarm' / 'swarm'
    done = run([swarm, '--today', '--seeds', str(WORLDS), '--jobs', '1', '--json'], 600)
    assert done.returncode in (0, 1), done.stderr
    said = json.loads(done.stdout)
    found = f'\n{done.stderr.strip()}' if said['violated'] else ''
    record_property('report', f'seeds of the day, from {said["first"]} on: {said["seeds"]} worlds, '
                    f'{said["violated"]} violations{found}')
