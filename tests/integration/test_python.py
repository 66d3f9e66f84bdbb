"""client/python/libtorus, with one program on every node of a loopback torus."""

import re
import signal
import subprocess

import pytest
from support.programs import finish_each, python, run_each, start_each
from support.waiting import wait_for
from torus_net import CHECKOUT

pytestmark = pytest.mark.plain

pytest.importorskip('numpy')
SCRIPT = CHECKOUT / 'tests' / 'support' / 'python_group.py'


# Starting Python with numpy costs more than most of these tests.
@pytest.mark.parametrize('what', ['place alltoall alltoallv allgather', 'gather scatter messages broadcast reductions parts',
                                  'without_waiting memory misuse', 'mismatch other_data', 'shrinking'])
def test_module(shared, what):
    run_each(shared('2x3'), python(f'{SCRIPT} {what}'))


def test_groups_of_some_nodes(shared):
    run_each(shared('2x3'), python(f'{SCRIPT} members'))


def test_a_single_member(shared):
    run_each(shared('1'), python(f'{SCRIPT} alltoall allgather broadcast reductions without_waiting memory'))


@pytest.mark.parametrize('what,ranks,calls', [('interrupted_opening', [1], 0),
                                              ('interrupted_waiting', None, 1)])
def test_ctrl_c_interrupts_waiting(shared, what, ranks, calls):
    torus = shared('1x2')
    processes = start_each(torus, python(f'{SCRIPT} {what}'), ranks)
    wait_for(lambda: [group['calls'] for group in torus.status(1)['groups']] == [calls])
    processes[-1].send_signal(signal.SIGINT)
    assert finish_each(processes[-1:])[0].returncode == 0
    for process in processes[:-1]:
        process.kill()
    finish_each(processes[:-1])
    wait_for(lambda: not torus.status(1)['groups'])


def test_types_are_compared_from_the_last_node_on(loopback):
    """A node of the release before turns it off on all nodes."""
    header = (CHECKOUT / 'proto' / 'frame.h').read_text()
    minor = int(re.search(r'#define DATA_KIND_MINOR ([0-9]+)u', header)[1])
    before, after = (f'--protocol-minor={number}' for number in (minor - 1, minor))
    torus = loopback('1x2', extra=[before])
    for node in torus.nodes:
        run_each(torus, python(f'{SCRIPT} other_data_passes'))
        node.terminate()
        node.daemon.command[node.daemon.command.index(before)] = after
        node.start()
        torus.wait_whole()
    wait_for(lambda: [torus.status(rank)['least_peer_minor'] for rank in range(2)] == [minor] * 2, 20)
    run_each(torus, python(f'{SCRIPT} other_data'))


def test_a_wrong_library_is_named():
    result = subprocess.run(['/bin/sh', '-c', python('-c "import libtorus"')], text=True,
                            env={'TORUS_LIBRARY': '/nonexistent/libtorus.so'}, capture_output=True)
    assert result.returncode == 1 and '/nonexistent/libtorus.so' in result.stderr
