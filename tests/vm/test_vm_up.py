"""The launcher: its messages if something is missing, its cleaning up, and the image that it boots."""

import json
import os
import re
import shutil
import signal
import stat
from pathlib import Path

import pytest
from support.launcher import LauncherBench, launcher_bench
from support.waiting import wait_for
from torus_net import CHECKOUT, find_program, qemu
from torus_net.guest_image import Image, default_cache, make_image
from torus_net.process import TorusError
from torus_net.qemu import choose_accelerator, kernel_runs

LAUNCHER = str(CHECKOUT / 'topo' / 'vms.py')
needs_machines = pytest.mark.skipif(bool(qemu.vm_obstacle()), reason=str(qemu.vm_obstacle()))


class Bench(LauncherBench):
    """Starts launchers of virtual machines."""

    def up(self, *arguments, **extra):
        bin_dir = os.path.dirname(find_program('torusd'))
        return self.start(LAUNCHER, *arguments, TORUS_BIN=bin_dir,
                          TORUS_VM_CACHE=str(default_cache()), **extra)

    def run_up(self, *arguments, **extra):
        return self.end(self.up(*arguments, **extra))

    def programs(self, *names, **scripts):
        """A folder for PATH with these programs of this machine, and with scripts."""
        folder = self.folder / 'path'
        folder.mkdir()
        for name in names:
            (folder / name).symlink_to(shutil.which(name))
        for name, text in scripts.items():
            path = folder / name.replace('_', '-')
            path.write_text(f'#!/bin/sh\n{text}\n')
            path.chmod(0o755)
        return str(folder)

@pytest.fixture
def bench():
    yield from launcher_bench(Bench)


# --- missing requirements ---

def test_no_qemu(bench):
    result = bench.run_up('2x2', '--run', 'true', PATH=bench.programs())
    assert result.returncode == 2
    assert 'qemu-system-x86_64 is missing (Debian: apt-get install qemu-system-x86)' in result.stderr
    assert 'Traceback' not in result.stderr


@needs_machines
def test_no_busybox(bench):
    result = bench.run_up('2x2', '--run', 'true', PATH=bench.programs('qemu-system-x86_64'))
    assert result.returncode == 2
    assert 'busybox is missing (Debian: apt-get install busybox-static)' in result.stderr


@needs_machines
@pytest.mark.parametrize('apt_cache,apt_get,said', [
    ('echo "E: No packages found" >&2; exit 100', 'exit 0', 'No packages found'),
    ('exit 0', 'exit 0', 'apt does not know the package linux-image-cloud-amd64'),
    ('echo "  Depends: linux-image-1-cloud-amd64"', 'echo "E: Failed to fetch" >&2; exit 100',
     'Failed to fetch'),
    ('echo "  Depends: linux-image-1-cloud-amd64"', 'exit 0', 'left no file'),
])
def test_no_kernel_package(bench, apt_cache, apt_get, said):
    path = bench.programs('qemu-system-x86_64', 'busybox', apt_cache=apt_cache, apt_get=apt_get)
    cache = bench.folder / 'cache'
    result = bench.run_up('2x2', '--cache', str(cache), '--run', 'true', PATH=path)
    assert result.returncode == 1
    assert 'cannot download the kernel package' in result.stderr and said in result.stderr
    assert 'apt-get update' in result.stderr and 'Traceback' not in result.stderr
    assert os.listdir(cache) == ['lock']
    assert sorted(bench.files()) == ['cache', 'path']


@needs_machines
def test_too_little_memory(bench):
    result = bench.run_up('4x4', '--ram', '1000000', '--run', 'true')
    assert result.returncode == 1
    assert re.search(r'16 virtual machines of 1000000 MiB may need 1600\d\d\d\d MiB of memory .*, but only '
                     r'\d+ MiB are available; choose a smaller torus or less --ram', result.stderr)
    bench.assert_nothing_left()


@needs_machines
@pytest.mark.parametrize('arguments,said', [
    (['nonsense'], 'is not a torus'), (['2x2', '--bw', 'fast'], 'rate'), (['2x2', '--bw', '0'], 'rate'),
    (['2x2', '--ram', '8'], 'minimum'), (['32x32'], 'at most'), ([], 'DIMS'),
    (['2x2', '--bin', '/nonexistent'], '/nonexistent'), (['2x2', '--accel', 'hope'], 'kvm'),
    (['2x2', '--run', 'true', '--wait'], 'not allowed')])
def test_wrong_usage(bench, arguments, said):
    result = bench.run_up(*arguments)
    assert (result.returncode, result.stdout) == (2, '') and said in result.stderr
    bench.assert_nothing_left()


# --- a life ---

@needs_machines
def test_a_life(bench):
    """Limits, logs, the machine's shell, results, exit status; nothing is left behind."""
    logs = bench.folder / 'logs'
    ask = ('import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); '
           's.sendall(b"/sbin/tc -s class show dev plus1\\n"); s.shutdown(socket.SHUT_WR); '
           'print(s.makefile().read(), file=sys.stderr)')
    script = ('torusctl --json exchange --algorithm ar --block-size 200000 && '
              f"/usr/bin/python3 -c '{ask}' $TORUS_RUN_DIR/1.shell && "
              'torusctl --socket $TORUS_RUN_DIR/1.sock --json status >&2 && exit 7')
    result = bench.run_up('1x2', '--bw', '2', '--memory', '8MiB', '--keep-logs', str(logs), '--run',
                          script)
    assert result.returncode == 7, result.stderr
    exchange = json.loads(result.stdout)
    assert exchange['verified'] == 'every byte'
    # 200000 bytes to one neighbour over two cables of 2 Mbit/s: they went through the limit.
    assert exchange['bound_seconds'] == pytest.approx(0.4, rel=0.01)
    assert exchange['seconds'] > 0.3
    through = re.search(r'class htb 5:1 root .*rate 2Mbit .*\s+Sent (\d+) bytes', result.stderr)
    assert int(through[1]) > 100000, result.stderr
    assert '"link_mbit":2' in result.stderr.replace(' ', '')
    said = re.search(r'1x2 in virtual machines: 2 up after [\d.]+ s, 2 links up after [\d.]+ s, '
                     r'(\d+) MiB of memory', result.stderr)
    assert 50 < int(said[1]) < 1000
    assert sorted(os.listdir(logs)) == ['0.console.log', '0.log', '1.console.log', '1.log']
    assert 'exchange' in (logs / '0.log').read_text()
    assert 'link to node 0 is up' in (logs / '1.log').read_text()
    shutil.rmtree(logs)
    bench.assert_nothing_left()


@needs_machines
@pytest.mark.parametrize('signum', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize('processes', [2, 3, 6, 9])
def test_a_signal_while_they_boot(bench, signum, processes):
    launcher = bench.up('2x2', '--run', 'sleep 1000')
    wait_for(lambda: len(bench.processes()) >= processes)
    os.kill(launcher.pid, signum)
    result = bench.end(launcher)
    assert result.returncode == 128 + signum, result.stderr
    assert 'Traceback' not in result.stderr
    bench.assert_nothing_left()


@needs_machines
@pytest.mark.parametrize('signum', [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_while_they_run(bench, signum):
    launcher = bench.up('1x1', '--wait')
    for line in launcher.stderr:
        if 'Ctrl-C stops' in line:
            break
    assert len(bench.processes()) == 3  # launcher, qemu, bridge
    os.kill(launcher.pid, signum)
    result = bench.end(launcher)
    if signum == signal.SIGKILL:  # its files stay, but no process runs
        wait_for(lambda: not bench.processes(), 10, 'a process was left')
    else:
        assert result.returncode == 128 + signum, result.stderr
        bench.assert_nothing_left()


@needs_machines
def test_a_daemon_that_dies_early_is_noticed_at_once(bench):
    folder = bench.folder / 'bin'
    folder.mkdir()
    (folder / 'torusd').write_text('#!/bin/sh\necho "the reason" >&2\nexit 3\n')
    (folder / 'torusd').chmod(0o755)
    (folder / 'torusctl').symlink_to(find_program('torusctl'))
    result = bench.run_up('1x2', '--bin', str(folder), '--run', 'echo no')
    assert (result.returncode, result.stdout) == (1, '')
    assert 'the reason' in result.stderr and 'torusd exited with status 3' in result.stderr
    kept = re.search(r'logs: (\S+)', result.stderr)[1]
    assert Path(kept).is_relative_to(bench.folder)
    shutil.rmtree(kept)
    shutil.rmtree(folder)
    bench.assert_nothing_left()


@needs_machines
def test_the_prompt(bench):
    commands = 'vm 0 uname -r; cat /proc/uptime\nvm 0 exit 3\nnodes\nvm 7 true\nconsole 0\nexit\n'
    launcher = bench.start(LAUNCHER, '1x1', stdin=-1, TORUS_BIN=os.path.dirname(
        find_program('torusd')), TORUS_VM_CACHE=str(default_cache()))
    result = bench.end(launcher, commands)
    assert result.returncode == 0, result.stderr
    assert '-cloud-amd64' in result.stdout and re.search(r'pid \d+', result.stdout)
    assert '"7" is not a node' in result.stderr
    bench.assert_nothing_left()


# --- the image ---

@pytest.fixture
def cache(tmp_path):
    """A cache for the test, with the kernel of the default cache."""
    image = make_image([find_program('torusd')], default_cache(), print)
    (tmp_path / image.kernel.parent.name).symlink_to(image.kernel.parent)
    return tmp_path


@needs_machines
def test_a_changed_program_gets_a_new_image(cache):
    said = []
    program = cache / 'torusd'
    shutil.copy(find_program('torusd'), program)
    first = make_image([program], cache, said.append)
    assert any('building the image' in line for line in said)
    content, said[:] = first.initramfs.read_bytes(), []
    again = make_image([program], cache, said.append)
    assert again.initramfs == first.initramfs and said == []
    program.write_bytes(program.read_bytes().replace(b'usage: torusd', b'Usage: TORUSD'))
    changed = make_image([program], cache, said.append)
    assert changed.initramfs != first.initramfs and 'building the image' in said[0]
    assert b'Usage: TORUSD' in changed.initramfs.read_bytes() and content == first.initramfs.read_bytes()
    assert stat.S_IMODE(os.stat(program).st_mode) & 0o100  # or nothing in it would run


@needs_machines
def test_an_old_image_is_removed(cache):
    old = cache / 'initramfs-0123'
    old.write_bytes(b'old')
    os.utime(old, (1, 1))
    make_image([find_program('torusd')], cache, print)
    assert not old.exists()


@needs_machines
def test_a_broken_program_is_refused(cache):
    (cache / 'torusd').write_bytes(Path(find_program('torusd')).read_bytes().replace(
        b'libuv.so.1\0', b'libuv.so.x\0'))
    (cache / 'torusd').chmod(0o755)
    with pytest.raises(TorusError, match='libuv.so.x => not found'):
        make_image([cache / 'torusd'], cache, print)


@needs_machines
def test_kvm_is_tried_with_a_kernel_and_remembered(cache, monkeypatch):
    image = make_image([find_program('torusd')], cache, print)
    assert kernel_runs('tcg', image, seconds=60)
    (cache / 'nothing').write_bytes(b'\0' * 4096)
    assert not kernel_runs('tcg', Image(image.kernel, cache / 'nothing', 'x'), seconds=60)
    tried = []

    def run(accelerator, image, works):
        tried.append(accelerator)
        return works

    monkeypatch.setattr(qemu.os, 'access', lambda path, mode: True)
    for works, chosen in ((False, 'tcg'), (True, 'kvm')):
        (cache / 'kvm.json').unlink(missing_ok=True)
        monkeypatch.setattr(qemu, 'kernel_runs', lambda a, i, works=works: run(a, i, works))
        assert [choose_accelerator('auto', image, cache, print) for _ in range(3)] == [chosen] * 3
    assert tried == ['kvm', 'kvm']
    assert choose_accelerator('tcg', image, cache, print) == 'tcg'
