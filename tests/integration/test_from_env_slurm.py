"""The job of the document about Slurm, in a Slurm cluster of its own on three hosts of Mininet."""

import os
import random
import re
import shutil
from pathlib import Path

import pytest
from support.launcher import bench  # noqa: F401
from torus_net import CHECKOUT, find_program
from torus_net.patience import run

pytestmark = [pytest.mark.mininet, pytest.mark.full]

PROGRAMS = ('slurmctld', 'slurmd', 'sbatch', 'munged', 'mungekey')
SLURM = '''ClusterName=torus
SlurmctldHost=n0
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/ctld
SlurmdSpoolDir={folder}/%n
SlurmdPidFile={folder}/%n.pid
SlurmctldPidFile={folder}/ctld.pid
SlurmdLogFile={folder}/%n.log
SlurmctldLogFile={folder}/ctld.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
ReturnToService=2
MpiDefault=none
FirstJobId={first}
NodeName=n[0-2] CPUs={processors} State=UNKNOWN
PartitionName=p Nodes=n[0-2] Default=YES State=UP OverSubscribe=EXCLUSIVE
'''

# $1: the folder. slurmd needs a hierarchy of control groups, which the mount namespaces of the hosts lack.
SCRIPT = '''set -u
hosts=$(dirname "$TORUS_AGENT")
{ printf '[cluster]\\ndims = 3\\nport = 7533\\n'; cat "$hosts/hosts.ini"; } >"$1/cluster.ini"
export SLURM_CONF=$1/slurm.conf
unset LD_PRELOAD
munged --force --socket="$1/munge/socket" --key-file="$1/munge/key" --pid-file="$1/munge/pid" \\
    --log-file="$1/munge/log" --seed-file="$1/munge/seed"
"$TORUS_AGENT" n0 slurmctld
for host in n0 n1 n2; do
    "$TORUS_AGENT" $host "mount -t tmpfs tmpfs /sys/fs/cgroup; mkdir /sys/fs/cgroup/freezer
        mount -t cgroup -o freezer none /sys/fs/cgroup/freezer; slurmd"
done
for try in $(seq 300); do
    [ "$("$TORUS_AGENT" n0 sinfo -h -o %T)" != idle ] || break
    sleep 0.1
done
"$TORUS_AGENT" n0 "cd '$1' && timeout 90 sbatch --wait --output '$1/out' '$1/job'"
echo "ended with $?"
for pid in "$1"/*.pid "$1/munge/pid"; do
    kill "$(cat "$pid")"
done
'''


def test_the_job_of_the_document(bench, tmp_path):
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        pytest.skip(f'{missing[0]} is missing')
    if not Path('/sys/fs/cgroup/freezer').is_dir():
        pytest.skip('this test needs the freezer of control groups, version 1')
    document = (CHECKOUT / 'daemon/doc/launchers/slurm.md').read_text()
    job = re.search(r'^```sh\n(.*?)^```$', document, re.M | re.S)[1]
    assert 'torusd --from-env &' in job
    (tmp_path / 'job').write_text(job.replace('--from-env', f'--from-env --cluster {tmp_path}/cluster.ini'))
    (tmp_path / 'script').write_text(SCRIPT)
    (tmp_path / 'slurm.conf').write_text(SLURM.format(folder=tmp_path, processors=os.cpu_count(),
                                                          first=random.randint(10 ** 6, 10 ** 7)))
    (tmp_path / 'cgroup.conf').write_text('CgroupPlugin=cgroup/v1\n')
    for name in ('munge', 'ctld', 'n0', 'n1', 'n2'):
        (tmp_path / name).mkdir(mode=0o700)
    assert run(['mungekey', '--create', f'--keyfile={tmp_path}/munge/key']).returncode == 0
    programs = Path(find_program('torusd')).parent
    done = bench.run('3', '--ip-routes', '--quiet', '--run', f'sh {tmp_path}/script {tmp_path}',
                     PATH=f'{programs}:/usr/sbin:{os.environ["PATH"]}')
    out = (tmp_path / 'out').read_text() if (tmp_path / 'out').exists() else ''
    assert 'ended with 0' in done.stdout, (done.stdout, done.stderr, out)
    assert re.search(r'^operation +allgather$', out, re.M), out
    assert out.count('torusd stops: it received SIGTERM') == 3, out
