"""One MPI program with and without torusd's preload, with both MPI libraries, in turn in one network, and the
same operations by the daemons alone.

groups.py says how calls are timed. The MPI libraries choose their algorithms. Each measurement begins with so many
calls that a new communicator with the preload has chosen between MPI and the torus (client/mpi/job/choice.h).
"""

import time
import uuid
from pathlib import Path

from torus_net import TorusError, find_program

from . import groups, mpi, programs, systems

CHOOSING = 139  # calls on a new communicator until it has chosen: one, at most 128 and 10 timed ones
BATCHES = -(-CHOOSING // groups.BATCH)
TORI = '4x4@50,4x8@20,8x8@10'


def preload_of(library, bin):
    """The library to preload, of the same build as torusd."""
    path = Path(find_program('torusd', bin)).parent / 'client' / f'libtorus-{library.key}.so'
    if not path.exists():
        raise programs.Unavailable(f'{path} has not been built')
    return path


class PreloadRun(groups.GroupRun):
    title = 'preloads'

    def _uncounted(self, bound):
        return CHOOSING if bound < self.options.groups_cell_seconds / 4 else 0

    def _members(self):
        usual = [one for one in self._mpi() if one.algorithm == 'default']
        for one in usual:
            one.batches = BATCHES
        return [groups.Daemons(self.net.torus), *usual, *self._preloaded()]

    def _preloaded(self):
        members = []
        for library in mpi.LIBRARIES:
            name = systems.PRELOADED[library.family]
            try:
                program = programs.with_mpi(self.folder, library.key, library.compiler)
                preload = preload_of(library, self.options.bin)
            except (TorusError, programs.Unavailable) as e:
                self.failure(f'{name} cannot be measured: {e}')
                continue

            def make_job(library=library, program=program, preload=preload):
                return mpi.MpiJob(self.net, library, program, self.net.torus.ip_hosts.agent,
                                  self._environment(preload), self.net.folder / f'{library.key}-preload')
            starter = self._start(name, make_job)
            if starter and self._uses_the_torus(starter, name, len(members) + 1):
                members.append(groups.Program(starter, name, library, uncounted=CHOOSING, batches=BATCHES))
        return members

    def _uses_the_torus(self, starter, name, groups):
        """Whether so many programs have a group. Otherwise plain MPI would be measured. The preload itself says so only
        with statistics (TORUS_MPI=verbose), which take time in each call."""
        deadline = time.monotonic() + 5
        while len(self.net.torus.status()['groups']) < groups:
            if time.monotonic() > deadline:
                self.failure(f'{name} does not use the torus{starter.job.said()}')
                return False
            time.sleep(0.05)
        return True

    def _environment(self, preload):
        # The processes cannot see their launcher in this /proc, so TORUS_MPI_JOB names the job that they belong to.
        return {'LD_PRELOAD': f'{preload}:{programs.patient_poll(self.folder)}',
                'TORUS_MPI_JOB': str(uuid.uuid4()),
                'PATIENT_POLL_MS': str(self.result['wait_ms']),
                'TORUS_SOCKET': self.net.torus.environment()['TORUS_SOCKET']}


def run(options, say, save):
    """Measures all tori. Saves the result after each call."""
    return groups.run(options, say, save, PreloadRun, options.preloads)
