"""Rounds of chaos in Mininet; scripts/chaos plays any number of them."""

import pytest
from support.chaos import one_round
from support.chaos_mininet import MininetChaos
from torus_net.process import find_program

pytestmark = pytest.mark.full

ROUNDS = 10


# more rounds of the same, as scripts/chaos plays
@pytest.mark.parametrize('first', [31, *(pytest.param(first, marks=pytest.mark.full) for first in (51, 71))])
def test_chaos(mininet, tmp_path, first):
    ground = MininetChaos(find_program('torusd').rpartition('/')[0], tmp_path)
    ground.torus = mininet('3x3', bw=50, data_roots=(str(tmp_path),), wrap=ground.wrap)
    for seed in range(first, first + ROUNDS):
        one_round(ground, seed)
