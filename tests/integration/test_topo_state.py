"""The launcher keeps the daemons' state on storage as durable as their data roots."""

import os
import tempfile
from pathlib import Path

import pytest
from support.trees import check_target, make_sources
from torus_net.storage import is_volatile, volatile_devices

pytestmark = pytest.mark.plain

MOUNTS = """\
22 27 0:20 / /sys rw,nosuid shared:7 - sysfs sysfs rw
27 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
29 27 0:25 / /dev/shm rw,nosuid,nodev shared:4 - tmpfs tmpfs rw,inode64
31 27 0:300 / /mnt/a\\040b rw - ramfs none rw
33 27 0:41 / /mnt/tmpfs rw master:9 propagate_from:2 - overlay overlay rw,lowerdir=/tmpfs
"""


def test_file_systems_in_memory_are_volatile():
    assert volatile_devices(MOUNTS) == {os.makedev(0, 25), os.makedev(0, 300)}


@pytest.fixture
def in_memory(tmp_path, monkeypatch):
    """Temporary folders are made below this folder, which is on a file system in memory."""
    if not os.access('/dev/shm', os.W_OK) or not is_volatile('/dev/shm'):
        pytest.skip('/dev/shm is not in memory here')
    with tempfile.TemporaryDirectory(dir='/dev/shm') as folder:
        monkeypatch.setattr(tempfile, 'tempdir', folder)
        yield Path(folder)


def test_durable_data_roots_have_durable_state(loopback, in_memory, tmp_path):
    if is_volatile(tmp_path):
        pytest.skip('the test\'s own folder is in memory')
    torus = loopback('1x2', data_roots=[in_memory, tmp_path])
    assert in_memory in torus.run.path.parents and torus.node(0).socket.startswith(str(in_memory))
    for node in torus.nodes:
        assert tmp_path in torus.run.state(node.rank).parents
        assert f'--state-dir\0{torus.run.state(node.rank)}\0' in Path(
            f'/proc/{node.pid}/cmdline').read_text()
    sizes = {(s, d): 1000 for s in (0, 1) for d in (0, 1)}
    torus.exchange('ar', source=make_sources(tmp_path, sizes), target=f'{tmp_path}/in-%r')
    check_target(f'{tmp_path}/in-%r', sizes)
    torus.stop()
    assert {entry.name for entry in tmp_path.iterdir()} == {'out-0', 'out-1', 'in-0', 'in-1'}
    assert list(in_memory.iterdir()) == []


def test_volatile_data_roots_need_no_more(loopback, in_memory):
    torus = loopback('1x2', data_roots=[in_memory])
    assert torus.run.path in torus.run.state(0).parents
    torus.stop()
    assert list(in_memory.iterdir()) == []
