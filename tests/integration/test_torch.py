"""client/torch, the backend of torch.distributed, with one process on every node of a loopback torus."""

import importlib.util
import signal
from pathlib import Path

import pytest
from support.programs import finish_each, run_each, start_each
from torus_net import CHECKOUT
from torus_net.process import find_program

MODULE = Path(find_program('torusd')).parent / 'client' / 'torch'
pytestmark = [pytest.mark.plain, pytest.mark.full,  # torch is installed for the full level only
              pytest.mark.skipif(importlib.util.find_spec('torch') is None, reason='python3-torch is not installed'),
              pytest.mark.skipif(not list((MODULE / 'torch_torus').glob('_backend.*.so')),
                                 reason='torch_torus was not built: libtorch-dev, pybind11-dev or g++ were missing')]


def program(arguments):
    return (f'OMP_NUM_THREADS=1 PYTHONPATH={MODULE} exec /usr/bin/python3 '
            f'{CHECKOUT}/tests/support/torch_program.py {arguments}')


# Starting Python with torch costs more than most of these tests.
def test_every_operation(shared, tmp_path):
    run_each(shared('2x2'), program(f'{tmp_path}/store reductions moves other_forms asynchronous groups misuse'), 300)


def test_training_has_the_losses_of_one_process(shared, tmp_path):
    run_each(shared('2x2'), program(f'{tmp_path}/store training'), 300)


def test_a_program_that_dies_ends_the_calls_of_the_others(shared, tmp_path):
    processes = start_each(shared('2x2'), program(f'{tmp_path}/store dying'))
    try:
        assert [process.stdout.readline() for process in processes] == ['ready\n'] * 4
        processes[1].send_signal(signal.SIGKILL)
    finally:
        results = finish_each(processes, 60)
    for rank in 0, 2, 3:
        assert results[rank].returncode == 0, results[rank].stderr


CHECK = """
import sys, torch_torus, torch.distributed as dist
store, rank, size, text = sys.argv[1:]
try:
    dist.init_process_group('torus', init_method='file://' + store, rank=int(rank), world_size=int(size))
except RuntimeError as error:
    sys.exit(text not in str(error) and str(error))
sys.exit('no error')
"""


@pytest.mark.parametrize('arguments,said', [('$((1-%r)) 2', 'pass rank=torch_torus.node()')])
def test_ranks_are_those_of_the_nodes(shared, tmp_path, arguments, said):
    (tmp_path / 'check.py').write_text(CHECK.replace('text not in str(error)', 'text not in str(error).lower()'))
    run_each(shared('1x2'), f'PYTHONPATH={MODULE} exec /usr/bin/python3 {tmp_path}/check.py {tmp_path}/store {arguments} '
                            f"'{said}'")


def test_one_rank_a_node(shared, tmp_path):
    torus = shared('1x2')
    (tmp_path / 'check.py').write_text(CHECK)
    processes = [start_each(torus, f'PYTHONPATH={MODULE} exec /usr/bin/python3 {tmp_path}/check.py {tmp_path}/store '
                                   f"{rank} 2 'ranks 0 and 1 are both on node 0'", [0])[0] for rank in range(2)]
    for result in finish_each(processes):
        assert result.returncode == 0, result.stderr
