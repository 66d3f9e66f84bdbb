"""Targets on real disks: a target that a rename cannot replace is refused before blocks move, folders keep their access
rights, and a new result replaces an old one on all nodes or on none."""

import contextlib
import os
import signal
import stat
import subprocess

import pytest
from support.background import Client
from support.errors import assert_refused
from support.trees import check_target, leftovers, listing, make_sources, random_sizes, wait_tidy
from support.waiting import run_when_possible, wait_for
from torus_net.patience import Patience

DIMS, NODES, ROOT, OTHER = '3', 3, 0, 1

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason='only root can mount, and give files away')


@pytest.fixture
def torus(loopback, tmp_path):
    return loopback(DIMS, data_roots=(str(tmp_path),))


@pytest.fixture
def sizes():
    return random_sizes(NODES, 'targets', 30000)


def exchange(torus, source, target, *options):
    result = torus.ctl(ROOT, 'exchange', '--from', source, '--to', target, *options)
    assert result.returncode == 0, (result.stdout, result.stderr)


def refused(torus, source, target, *options):
    """The standard error of an exchange into this target."""
    result = torus.ctl(ROOT, '--json', 'exchange', '--from', source, '--to', target, *options)
    assert_refused(result, 'refused')
    return result.stderr


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@contextlib.contextmanager
def done(*command, undo):
    if subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip(f'{command[0]} does not work here')
    try:
        yield
    finally:
        run_when_possible(undo)


@needs_root
@pytest.mark.parametrize('kind', ['disk', 'bind', 'immutable', 'append-only', 'append-only above'])
def test_a_target_that_cannot_be_replaced(torus, tmp_path, sizes, kind):
    """The error names node 1, which refuses the target, and no node has an output."""
    source = make_sources(tmp_path, sizes)
    target = tmp_path / 'to-1' / 'in'
    target.mkdir(parents=True)
    (tmp_path / 'other').mkdir()
    above = target.parent
    how = {'disk': done('mount', '-t', 'tmpfs', 'none', target, undo=['umount', target]),
           'bind': done('mount', '--bind', tmp_path / 'other', target, undo=['umount', target]),
           'immutable': done('chattr', '+i', target, undo=['chattr', '-i', target]),
           'append-only': done('chattr', '+a', target, undo=['chattr', '-a', target]),
           'append-only above': done('chattr', '+a', above, undo=['chattr', '-a', above])}[kind]
    before = listing(tmp_path)
    with how:
        said = refused(torus, source, f'{tmp_path}/to-%r/in')
        assert 'node 1' in said and str(target) in said
        wait_tidy(torus, tmp_path)
        assert listing(tmp_path) == before
    exchange(torus, source, f'{tmp_path}/to-%r/in')
    check_target(f'{tmp_path}/to-%r/in', sizes)


def test_results_are_private_unless_they_are_configured_otherwise(loopback, tmp_path, sizes):
    source = make_sources(tmp_path, sizes)
    exchange(loopback(DIMS, data_roots=(str(tmp_path),)), source, f'{tmp_path}/a/in-%r')
    open_torus = loopback(DIMS, data_roots=(str(tmp_path),), extra=('--output-mode', '2750'))
    exchange(open_torus, source, f'{tmp_path}/b/in-%r')
    for rank in range(NODES):
        assert mode_of(tmp_path / 'a') == mode_of(tmp_path / 'a' / f'in-{rank}') == 0o700
        assert mode_of(tmp_path / 'a' / f'in-{rank}' / '2') == 0o600
        assert mode_of(tmp_path / 'b') == mode_of(tmp_path / 'b' / f'in-{rank}') == 0o2750
        assert mode_of(tmp_path / 'b' / f'in-{rank}' / '2') == 0o640


@needs_root
def test_a_prepared_target_keeps_what_it_was(torus, tmp_path, sizes):
    source = make_sources(tmp_path, sizes)
    modes = [(0o700, 0o600), (0o2770, 0o660), (0o755, 0o644)]
    for rank, (mode, _) in enumerate(modes):
        folder = tmp_path / f'in-{rank}'
        folder.mkdir()
        os.chown(folder, 54321, 54322)
        folder.chmod(mode)
    exchange(torus, source, f'{tmp_path}/in-%r')
    check_target(f'{tmp_path}/in-%r', sizes)
    for rank, (mode, of_files) in enumerate(modes):
        for path, wanted in (tmp_path / f'in-{rank}', mode), (tmp_path / f'in-{rank}' / '0', of_files):
            found = path.stat()
            assert (found.st_uid, found.st_gid, mode_of(path)) == (54321, 54322, wanted)


def test_an_old_result_is_replaced(torus, tmp_path, sizes):
    source, target = make_sources(tmp_path, sizes), f'{tmp_path}/in-%r'
    exchange(torus, source, target, '--replace')
    assert '--replace' in refused(torus, source, target)
    again = random_sizes(NODES, 'again', 30000)
    make_sources(tmp_path, again, 'again')
    check_target(target, sizes)
    exchange(torus, source, target, '--replace')
    check_target(target, again, 'again')
    wait_tidy(torus, tmp_path)
    one = f'{tmp_path}/out-%r/0'
    for operation in ['allgather'], ['broadcast', '--root', '1']:
        result = torus.ctl(ROOT, *operation, '--from', one, '--to', target, '--replace')
        assert result.returncode == 0, result.stderr
        assert sorted(os.listdir(tmp_path / 'in-2')) == (['1'] if operation[0] == 'broadcast' else ['0', '1', '2'])


def test_what_is_no_result_is_not_replaced_anywhere(torus, tmp_path, sizes):
    source, target = make_sources(tmp_path, sizes), f'{tmp_path}/in-%r'
    exchange(torus, source, target)
    (tmp_path / 'in-2' / 'notes').write_text('mine')
    before = listing(tmp_path)
    said = refused(torus, source, target, '--replace')
    assert 'node 2' in said and 'in-2 ' in said and ' notes' in said
    wait_tidy(torus, tmp_path)
    assert listing(tmp_path) == before
    (tmp_path / 'in-2' / 'notes').unlink()
    check_target(target, sizes)


@pytest.mark.full
@pytest.mark.parametrize('dies', [(ROOT,), (OTHER,), range(NODES)], ids=['root', 'other', 'all'])
def test_a_replacement_is_all_or_nothing(torus, tmp_path, sizes, dies):
    """Nodes are killed when the root has decided: after their restart all have the new result, and nothing is left of
    the old one."""
    source, target = make_sources(tmp_path, sizes), f'{tmp_path}/in-%r'
    exchange(torus, source, target)
    again = random_sizes(NODES, 'again', 30000)
    make_sources(tmp_path, again, 'again')
    state, patience = torus.run.state(ROOT), Patience(30)
    with Client(torus, 'exchange', '--from', source, '--to', target, '--replace', rank=ROOT) as client:
        while not any(name.startswith('committed') for name in os.listdir(state)):
            if client.process.poll() is not None:
                break
            assert not patience.over, 'never decided'
        for rank in dies:
            torus.node(rank).send_signal(signal.SIGKILL)
        for rank in dies:
            torus.node(rank).daemon.wait(20)
        client.end(60)
    for rank in dies:
        torus.node(rank).start()
    torus.wait_whole(40)
    wait_for(lambda: not leftovers(torus, tmp_path), 40, lambda: leftovers(torus, tmp_path))
    check_target(target, again, 'again')
