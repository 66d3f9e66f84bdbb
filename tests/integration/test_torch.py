"""client/torch, the backend of torch.distributed, with one process on every node of a loopback torus."""

import importlib.util
import re
import signal
from pathlib import Path

import pytest
from support.programs import finish_each, run_each, start_each
from torus_net import CHECKOUT
from torus_net.process import find_program

MODULE = Path(find_program('torusd')).parent / 'client' / 'torch'
SUITE = CHECKOUT / 'tests' / 'torch'
PATHS = f'{MODULE}:{CHECKOUT}/client/python'
pytestmark = [pytest.mark.plain, pytest.mark.full,  # torch is installed for the full level only
              pytest.mark.skipif(importlib.util.find_spec('torch') is None, reason='python3-torch is not installed'),
              pytest.mark.skipif(not list((MODULE / 'torch_torus').glob('_backend.*.so')),
                                 reason='torch_torus was not built: libtorch-dev, pybind11-dev or g++ were missing')]


def program(arguments):
    return (f'OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo PYTHONPATH={PATHS} exec /usr/bin/python3 '
            f'{CHECKOUT}/tests/support/torch_program.py {arguments}')


# Starting Python with torch costs more than most of these tests.
def test_every_operation(shared):
    run_each(shared('2x2'), program('torus:// reductions moves other_forms asynchronous groups messages monitored stored misuse unsent'), 300)


def test_training_has_the_losses_of_gloo(shared, tmp_path):
    run_each(shared('2x2'), program(f'file://{tmp_path}/store training'), 300)


def await_step(process, other):
    """Reads the output of a training program until it has made a step, and stops the other."""
    assert process.stdout.readline().endswith('4 ranks\n')
    other.send_signal(signal.SIGSTOP)  # so that training does not end before the node is down


def check_end(results, ranks):
    """The programs have trained to the end, and have the same parameters."""
    ends = [result.stdout.splitlines()[-1] for result in results if result.returncode == 0]
    assert len(ends) == ranks and len(set(ends)) == 1, [result.stderr for result in results]
    assert ends[0].startswith(f'done with {ranks} ranks'), ends


def training(arguments):
    return f'OMP_NUM_THREADS=1 PYTHONPATH={PATHS} exec /usr/bin/python3 {CHECKOUT}/client/examples/train.py {arguments}'


def test_training_goes_on_without_a_node(loopback):
    torus = loopback('2x2')
    processes = start_each(torus, training('400 shrink'))
    try:
        await_step(processes[0], processes[1])
        processes[1].kill()
        torus.nodes[1].kill()
    finally:
        results = finish_each(processes, 300)
    check_end(results[:1] + results[2:], 3)
    assert ', 3 ranks' in results[0].stdout


def test_training_goes_on_when_a_node_is_back(loopback):
    """Node 0 goes down, so the new rank 0 has made no steps."""
    torus = loopback('2x2')
    processes = start_each(torus, training('400 wait'))
    try:
        await_step(processes[1], processes[0])
        processes[0].kill()
        torus.nodes[0].kill()
        torus.nodes[0].start()
        processes += start_each(torus, training('400 wait'), [0])
    finally:
        results = finish_each(processes, 300)
    check_end(results[1:], 4)
    first = int(re.match(r'step (\d+)', results[4].stdout)[1])
    assert first > 20, results[4].stdout  # not from the beginning


def test_a_program_that_dies_ends_the_calls_of_the_others(shared):
    processes = start_each(shared('2x2'), program('torus:// dying'))
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


def test_ranks_have_the_order_of_the_nodes(shared, tmp_path):
    (tmp_path / 'check.py').write_text(CHECK)
    run_each(shared('1x2'), f'PYTHONPATH={PATHS} exec /usr/bin/python3 {tmp_path}/check.py {tmp_path}/store $((1-%r)) 2 '
                            "'ranks must have the order of the nodes'")


def test_one_rank_a_node(shared, tmp_path):
    torus = shared('1x2')
    (tmp_path / 'check.py').write_text(CHECK)
    processes = [start_each(torus, f'PYTHONPATH={PATHS} exec /usr/bin/python3 {tmp_path}/check.py {tmp_path}/store '
                                   f"{rank} 2 'ranks 0 and 1 are both on node 0'", [0])[0] for rank in range(2)]
    for result in finish_each(processes):
        assert result.returncode == 0, result.stderr


def expected():
    """{test: outcome} of suite.txt."""
    tests, outcome = {}, None
    for line in (SUITE / 'suite.txt').read_text().splitlines():
        if line.startswith('  '):
            tests[line.strip()] = outcome
        elif not line.startswith('#'):
            outcome = line.partition(':')[0]
    return tests


def test_torchs_own_tests(shared):
    """Each passes, or is on the list with the reason."""
    torus = shared('2x2')
    processes = start_each(torus, f'TORUS_RUN_DIR={torus.run.path} PYTHONPATH={PATHS}:{SUITE} '
                                  f'exec /usr/bin/python3 {SUITE}/suite.py', [0])
    result, = finish_each(processes, 1100)
    found = dict(re.findall(r'^(test_\w+)  (\w+)', result.stdout, re.M))
    assert found == expected(), result.stderr
