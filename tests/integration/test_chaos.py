"""Rounds of chaos in Mininet; scripts/chaos plays any number of them."""

import pytest
from support.chaos import one_round, slow_disk
from torus_net.process import find_program

ROUNDS = 10


@pytest.mark.parametrize('first', [1, 11, 21])
def test_chaos(mininet, tmp_path, first):
    control = tmp_path / 'hangs'
    build = find_program('torusd').rpartition('/')[0]
    torus = mininet('3x3', bw=50, data_roots=(str(tmp_path),), wrap=slow_disk(build, control))
    for seed in range(first, first + ROUNDS):
        one_round(torus, seed, tmp_path / str(seed), control)
