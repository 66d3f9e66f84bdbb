"""client/torch, the backend of torch.distributed, on the nodes of a loopback torus."""

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


def test_a_group_without_memory_fails_soon(shared):
    run_each(shared('2x2', memory='32MiB'), program('torus:// filling'), 300)


def test_training_has_the_losses_of_gloo(shared, tmp_path):
    run_each(shared('2x2'), program(f'file://{tmp_path}/store training'), 300)


def await_step(process, other, ranks=4):
    """Reads the output of a training program until it has made a step, and stops the other."""
    assert process.stdout.readline().endswith(f'{ranks} ranks\n')
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


def check_error(results, victim):
    assert 'ArithmeticError: on purpose' in results[victim].stderr, results[victim].stderr
    for rank, result in enumerate(results):
        assert rank == victim or result.returncode == 0, f'rank {rank}: {result.stderr}'


def test_a_program_that_ends_by_an_error_waits_for_nobody(shared):
    check_error(run_each(shared('2x2'), program('torus:// raising'), check=False), 0)


def start_several(torus, command, places=(0, 0, 1, 1)):
    """Starts a rank at each of these places, with the variables of torusrun."""
    return [start_each(torus, f'export RANK={rank} WORLD_SIZE={len(places)} LOCAL_RANK={rank - places.index(node)} '
                              f'LOCAL_WORLD_SIZE={places.count(node)}; {command}', [node])[0]
            for rank, node in enumerate(places)]


def finish_well(processes, seconds=60):
    for rank, result in enumerate(finish_each(processes, seconds)):
        assert result.returncode == 0, f'rank {rank}: {result.stderr}{result.stdout}'


def test_every_operation_with_several_ranks_a_node(shared):
    """Groups are of ranks on one node, on several nodes, and of two on one node and one on another."""
    finish_well(start_several(shared('1x2'), program('torus:// reductions moves other_forms asynchronous groups messages '
                                                     'monitored stored')), 300)


def test_training_with_several_ranks_a_node_goes_on_without_a_node(loopback):
    """The first rank of all dies, too: another one keeps the store from then on."""
    torus = loopback('1x3')
    processes = start_several(torus, training('400 shrink'), (0, 0, 1, 1, 2, 2))
    try:
        await_step(processes[0], processes[2], 6)
        for process in processes[:2]:
            process.kill()
        torus.nodes[0].kill()
        processes[2].send_signal(signal.SIGCONT)
    finally:
        results = finish_each(processes, 300)
    check_end(results[2:], 4)


def test_nodes_with_different_numbers_of_ranks(shared, tmp_path):
    finish_well(start_several(shared('1x2'), program(f'file://{tmp_path}/store reductions moves other_forms'), (0, 0, 1)), 300)


def test_ranks_of_a_node_that_call_different_operations(shared):
    """Rank 1 is on the node of rank 0; the other node learns that the group has failed."""
    finish_well(start_several(shared('1x2'), program('torus:// disagreeing')))


def test_the_first_rank_of_a_node_leaves_before_the_others(shared):
    finish_well(start_several(shared('1x2'), program('torus:// leaving')))


def test_strangers_at_the_sockets_of_a_node(shared):
    finish_well(start_several(shared('1x2'), program('torus:// strangers')))


@pytest.mark.parametrize('what, victim', [('raising', 0), ('guest_raising', 1)])
def test_a_rank_ends_by_an_error_beside_others(shared, what, victim):
    check_error(finish_each(start_several(shared('1x2'), program(f'torus:// {what}'))), victim)


@pytest.mark.parametrize('what, victim', [('dying', 1), ('first_dying', 0)])
def test_a_rank_dies_beside_others(shared, what, victim):
    processes = start_several(shared('1x2'), program(f'torus:// {what}'))
    try:
        assert [process.stdout.readline() for process in processes] == ['ready\n'] * 4
        processes[victim].send_signal(signal.SIGKILL)
    finally:
        results = finish_each(processes, 60)
    for rank in set(range(4)) - {victim}:
        assert results[rank].returncode == 0, results[rank].stderr


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
