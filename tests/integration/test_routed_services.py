"""What people use over the IP routes stays alive while a cable is pulled and returns: a session of ssh, a file on NFS,
and an MPI program that ssh has started."""

import ctypes.util
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench import mpi, programs
from support import nfs_client
from support.routed import converged, with_routes
from support.sshd import ssh  # noqa: F401
from support.waiting import wait_for
from torus_net.ip_hosts import wait_ms

CUT = 0, '+0'  # between n0 and n1, so the only shortest path between them


class Lines:
    """A program on a host, whose lines of output are awaited. `numbers` are those that it has printed."""

    def __init__(self, torus, rank, command):
        self.process = subprocess.Popen([*torus.ip_hosts.enter(rank), 'setpriv', '--pdeathsig', 'TERM', *command],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.numbers = []
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for line in self.process.stdout:
            self.numbers.append(int(line))

    def progress(self, count=20):
        """Waits for that many more lines."""
        goal = len(self.numbers) + count
        wait_for(lambda: len(self.numbers) >= goal or self.process.poll() is not None, 60)
        assert self.process.poll() is None, self.process.stderr.read()

    def stop(self):
        self.process.kill()
        self.process.communicate()


def through_a_cut(torus, progress):
    """Calls progress() before, during and after a cut, and after the return."""
    progress()
    torus.link_down(*CUT)
    progress()
    for rank in range(len(torus.nodes)):
        converged(torus, rank, 'link 0:+0')
    progress()
    torus.link_up(*CUT)
    progress()
    for rank in range(len(torus.nodes)):
        converged(torus, rank)
    progress()


# --- ssh ---

def test_a_session_of_ssh_stays_alive(ssh):  # noqa: F811
    torus, servers = ssh
    count = 'i=0; while echo $i && sleep 0.01; do i=$((i + 1)); done'
    session = Lines(torus, 0, [servers.command, 'n1', count])
    try:
        through_a_cut(torus, session.progress)
        assert session.numbers == list(range(len(session.numbers)))  # nothing is lost, nothing comes twice
    finally:
        session.stop()


# --- MPI ---

@pytest.mark.parametrize('library', mpi.LIBRARIES, ids=lambda library: library.key)
def test_an_mpi_program_stays_alive(ssh, tmp_path, library):  # noqa: F811
    """ssh starts it, and its ranks exchange blocks over TCP."""
    torus, servers = ssh
    try:
        program = programs.with_mpi(tmp_path, library.key, library.compiler)
        environment = {'LD_PRELOAD': str(programs.patient_poll(tmp_path)), 'PATIENT_POLL_MS': str(wait_ms(4))}
    except programs.Unavailable as e:
        pytest.skip(str(e))
    net = SimpleNamespace(torus=torus, geometry=torus.geometry)
    job = mpi.MpiJob(net, library, program, servers.command, environment, tmp_path / 'job')
    job.start(60)
    try:
        def calls():
            assert len(job.run('alltoall', 4096, 0, 20, 60, pause=0.01)) == 20  # all blocks are right
        long = threading.Thread(target=torus.link_down, args=CUT)  # in the middle of calls
        calls()
        long.start()
        calls()
        long.join()
        torus.link_up(*CUT)
        through_a_cut(torus, calls)
    finally:
        job.stop()


# --- NFS ---

GANESHA = '''NFS_Core_Param {{ Protocols = 4; Enable_NLM = false; Enable_RQUOTA = false; }}
NFSv4 {{ Graceless = true; RecoveryRoot = "{folder}/recovery"; }}
EXPORT {{
    Export_Id = 1;
    Path = {folder}/files;
    Pseudo = /files;
    Access_Type = RW;
    Squash = No_Root_Squash;
    SecType = sys;
    Protocols = 4;
    Transports = TCP;
    FSAL {{ Name = VFS; }}
}}
'''


def kernel_has_nfs():
    return any(line.split()[-1] == 'nfs4' for line in Path('/proc/filesystems').read_text().splitlines())


@pytest.fixture
def nfs(mininet, tmp_path):
    """A torus whose n1 exports /files by NFS."""
    if shutil.which('ganesha.nfsd') is None or not list(Path('/usr/lib').glob('*/ganesha/libfsalvfs.so*')):
        pytest.skip('nfs-ganesha and nfs-ganesha-vfs are not installed')
    torus = with_routes(mininet)
    for name in 'files', 'recovery':
        (tmp_path / name).mkdir()
    (tmp_path / 'config').write_text(GANESHA.format(folder=tmp_path))
    server = subprocess.Popen([*torus.ip_hosts.enter(1), 'setpriv', '--pdeathsig', 'TERM', 'ganesha.nfsd', '-F', '-f',
                               tmp_path / 'config', '-L', tmp_path / 'log', '-p', tmp_path / 'pid'])
    try:
        wait_for(lambda: ':2049 ' in torus.node(1).run('ss', '-Hltn'), what=lambda: (tmp_path / 'log').read_text())
        yield torus
    finally:
        server.kill()
        server.wait()


def test_a_file_on_nfs_stays_alive(nfs, tmp_path):
    """The client is in user space: not every kernel has one."""
    if ctypes.util.find_library('nfs') is None:
        pytest.skip('libnfs13 is not installed')
    client = Lines(nfs, 0, [sys.executable, nfs_client.__file__, nfs.ip_hosts.addresses[1], '/files'])
    try:
        through_a_cut(nfs, client.progress)
    finally:
        client.stop()
    blocks = (tmp_path / 'files' / 'data').read_bytes()
    last = len(client.numbers) - 1
    at = last % nfs_client.BLOCKS * nfs_client.BLOCK
    assert int.from_bytes(blocks[at:at + 8], 'big') >= last  # the client may have written one block more than it said


@pytest.mark.skipif(not kernel_has_nfs(), reason='this kernel has no NFS client')
def test_a_mounted_file_stays_alive(nfs, tmp_path):
    folder = tmp_path / 'mounted'
    folder.mkdir()
    write = ('i=0; while echo $i >$1/data && sync $1/data && [ "$(cat $1/data)" = $i ] && echo $i; do '
             'i=$((i + 1)); done')
    mount = f'mount -t nfs4 {nfs.ip_hosts.addresses[1]}:/files {folder}'
    session = Lines(nfs, 0, ['unshare', '--mount', 'sh', '-c', f'{mount} && {write}', 'sh', shlex.quote(str(folder))])
    try:
        through_a_cut(nfs, session.progress)
    finally:
        session.stop()
