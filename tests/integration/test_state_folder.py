"""The state folder belongs to one daemon, and is as durable as the data roots."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from support.waiting import wait_for
from torus_net.patience import Patience, run, wait
from torus_net.process import find_program


def arguments(folder, *more):
    return [find_program('torusd'), '--dims', '1x1', '--rank', '0', '--control', f'{folder}/sock',
            *map(str, more)]


def refusal(folder, *more):
    """The output of a daemon that must not start."""
    result = run(arguments(folder, *more), 30)
    assert result.returncode == 1, result.stderr
    return result.stderr


def starts(folder, *more):
    process = subprocess.Popen(arguments(folder, *more), stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: os.path.exists(f'{folder}/sock') or process.poll() is not None)
        return process.poll() is None
    finally:
        process.terminate()
        wait(process, Patience(20))


@pytest.fixture
def in_memory(tmp_path):
    """A folder on a tmpfs; skips the test if its own folder is on one."""
    def kind(path):
        return subprocess.run(['stat', '-f', '-c', '%T', path], capture_output=True, text=True,
                              check=True).stdout.strip()
    if not os.path.isdir('/dev/shm') or kind('/dev/shm') != 'tmpfs' or kind(tmp_path) in ('tmpfs', 'ramfs'):
        pytest.skip('needs a folder in memory and one on a disk')
    with tempfile.TemporaryDirectory(dir='/dev/shm') as folder:
        yield Path(folder)


def test_it_is_one_daemons_own(loopback, tmp_path):
    torus = loopback('1x1')
    state = torus.run.state(0)
    said = refusal(tmp_path, '--state-dir', state)
    assert f'another daemon uses state folder {state}' in said and '--state-dir' in said
    torus.node(0).kill()
    assert starts(tmp_path, '--state-dir', state)
    torus.node(0).start()


def test_it_is_created_for_its_owner_alone(tmp_path):
    assert starts(tmp_path, '--state-dir', tmp_path / 'state')
    assert (tmp_path / 'state').stat().st_mode & 0o7777 == 0o700
    said = refusal(tmp_path, '--state-dir', tmp_path / 'no' / 'state')
    assert f'{tmp_path}/no/state cannot be created: No such file' in said
    (tmp_path / 'file').touch()
    assert f'{tmp_path}/file cannot be opened' in refusal(tmp_path, '--state-dir', tmp_path / 'file')


def test_in_memory_beside_a_data_root_on_a_disk(tmp_path, in_memory):
    disk, memory = ('--data-root', tmp_path), ('--data-root', in_memory)
    state = ('--state-dir', in_memory / 'state')
    for roots in (disk, (*memory, *disk)):
        said = refusal(tmp_path, *state, *roots)
        assert f'{in_memory}/state is in memory' in said and f'data root {tmp_path}' in said
        assert '--state-dir' in said
    assert starts(tmp_path, *state)  # nothing that a power failure could leave incomplete
    assert starts(tmp_path, *state, *memory)
    assert starts(tmp_path, '--state-dir', tmp_path / 'state', *disk, *memory)
