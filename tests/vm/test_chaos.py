"""Rounds of chaos on virtual machines; scripts/chaos --vm plays any number of them."""

from types import SimpleNamespace

import pytest
from support.chaos import one_round
from support.chaos_machines import MachinesChaos
from torus_net import find_program, vm_obstacle

SEEDS = range(1, 6)


@pytest.mark.skipif(bool(vm_obstacle()), reason=str(vm_obstacle()))
def test_chaos():
    build = find_program('torusd').rpartition('/')[0]
    ground = MachinesChaos(build)
    with ground.make(SimpleNamespace(dims='2x2', bin=build, bw=None)) as torus:
        for seed in SEEDS:
            one_round(ground, seed)
        assert not torus.stop()
