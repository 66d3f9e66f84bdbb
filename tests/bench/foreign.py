"""MPI programs with and without the preload, unmodified, in turn on one torus; their results are checked each
time. The programs are Debian's packages (built with Open MPI). Debian has none for MPICH, so programs of this
project that communicate in the same ways take their place. The share of the links' bytes that torusd carried
follows from the counters of torusd and of the interfaces."""

import re
import shutil
import subprocess
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from torus_net import CHECKOUT, TorusError, interrupts

from . import arithmetic, mpi, network, preloads, programs, systems

TORI = '2x2@500,4x4@500'
ROUNDS = 3
TIMEOUT = 300
MPICH, OPENMPI = mpi.LIBRARIES


@dataclass
class Verdict:
    good: bool
    result: str = ''      # results that must be equal with and without the preload; '': the program checks itself
    seconds: float = None  # the time that the program measures itself; None: the time of mpiexec


# --- the programs ---

class Program:
    name = what = package = ''
    library = OPENMPI

    @property
    def key(self):
        """The name in file names."""
        return type(self).__name__

    def obstacle(self):
        """Why the program cannot run here, or None."""
        for program in *self.executables, f'mpiexec.{self.library.key}':
            if not shutil.which(program):
                return f'{program} is missing ({self.package})'
        return None

    def prepare(self, folder, ranks):
        """Writes the program's input. Returns its command."""
        raise NotImplementedError

    def check(self, folder, output):
        raise NotImplementedError


class Hpcc(Program):
    name, what, package = 'HPC Challenge', 'PTRANS, HPL, MPIFFT, ... (N = 200)', 'hpcc'
    executables = ('hpcc',)

    def prepare(self, folder, ranks):
        text = Path('/usr/share/doc/hpcc/examples/_hpccinf.txt').read_text().splitlines()
        rows = max(p for p in range(1, ranks + 1) if ranks % p == 0 and p * p <= ranks)
        for line, value in (5, 200), (10, rows), (11, ranks // rows):
            text[line] = re.sub(r'^\S+', str(value), text[line])
        (folder / 'hpccinf.txt').write_text('\n'.join(text) + '\n')
        return ['hpcc']

    def check(self, folder, output):
        text = (folder / 'hpccoutf.txt').read_text()
        said = dict(re.findall(r'^(\w+)=(\S+)$', text, re.M))
        residuals = re.findall(r'^ *(\d+) tests completed and failed residual checks', text, re.M)
        transposed = re.findall(r'^(?:WALL|CPU) .* (PASSED|FAILED) ', text, re.M)
        error = float(said.get('MPIFFT_maxErr', 'inf'))
        return Verdict(said.get('Success') == '1' and set(residuals) == {'0'} and error < 1e-10
                       and set(transposed) == {'PASSED'} and 'FAILED' not in text)


SILICON = """\
 &control
   calculation='scf', prefix='si', pseudo_dir='.', outdir='./tmp'
 /
 &system
   ibrav=2, celldm(1)=10.2, nat=2, ntyp=1, ecutwfc=24.0
 /
 &electrons
   conv_thr=1.0d-9
 /
ATOMIC_SPECIES
 Si 28.086 Si.UPF
ATOMIC_POSITIONS alat
 Si 0.00 0.00 0.00
 Si 0.25 0.25 0.25
K_POINTS automatic
 4 4 4 1 1 1
"""
PSEUDOPOTENTIAL = """\
 &input
   title='Si', zed=14., rel=0, config='[Ne] 3s2 3p2 3d-1', iswitch=3, dft='LDA'
 /
 &inputp
   lloc=2, pseudotype=1, file_pseudopw='Si.UPF', tm=.true.
 /
3
3S 1 0 2.00 0.00 2.00 2.00
3P 2 1 2.00 0.00 2.00 2.00
3D 3 2 0.00 0.10 2.00 2.00
"""


class Espresso(Program):
    name, what = 'Quantum ESPRESSO', 'pw.x: silicon, self-consistent'
    package, executables = 'quantum-espresso', ('ld1.x', 'pw.x')

    def prepare(self, folder, ranks):
        subprocess.run(['ld1.x'], input=PSEUDOPOTENTIAL, text=True, cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
        (folder / 'si.in').write_text(SILICON)
        return ['pw.x', '-in', 'si.in']

    def check(self, folder, output):
        energy = re.search(r'^! +total energy += +(\S+) Ry', output, re.M)
        wall = re.search(r'PWSCF +: .*CPU +(?:(\d+)m)? *([\d.]+)s WALL', output)
        good = bool(energy and wall) and 'convergence has been achieved' in output
        return Verdict(good, f'{energy[1]} Ry' if energy else '',
                       int(wall[1] or 0) * 60 + float(wall[2]) if wall else None)


CHARGES = """\
units lj
atom_style charge
lattice fcc 0.8442
region box block 0 6 0 6 0 6
create_box 2 box
create_atoms 1 box basis 2 2 basis 4 2
mass * 1.0
set type 1 charge 1.0
set type 2 charge -1.0
velocity all create 1.0 87287
pair_style lj/cut/coul/long 2.5
pair_coeff * * 1.0 1.0
kspace_style pppm 1.0e-3
kspace_modify collective yes
fix 1 all nve
thermo 10
thermo_style custom step temp epair ecoul elong etotal press
run 20
"""


class Lammps(Program):
    name, what = 'LAMMPS', '864 charges, PPPM, kspace_modify collective yes'
    package, executables = 'lammps', ('lmp',)

    def prepare(self, folder, ranks):
        (folder / 'charges.in').write_text(CHARGES)
        return ['lmp', '-in', 'charges.in']

    def check(self, folder, output):
        rows = re.findall(r'^ +(?:0|10|20) .*[\d.]+.*$', output, re.M)
        loop = re.search(r'Loop time of (\S+) on', output)
        return Verdict(len(rows) == 3 and loop is not None, rows[-1].strip() if rows else '',
                       float(loop[1]) if loop else None)


class Fftw(Program):
    """tests/bench/fftw_mpi.c, a program that only calls FFTW."""

    name, what = 'FFTW', '48 x 48 x 48, MEASURE and DESTROY_INPUT, a transform'
    package = 'libfftw3-mpi-dev'

    def obstacle(self):
        folder = CHECKOUT / 'build' / 'bench' / 'programs'
        try:
            self.program = programs.with_fftw(folder)
        except programs.Unavailable as e:
            return str(e)
        return None

    def prepare(self, folder, ranks):
        return [str(self.program), '48', '5']

    def check(self, folder, output):
        said = re.search(r'^seconds (\S+) error (\S+)$', output, re.M)
        return Verdict(said is not None and float(said[2]) < 1e-12, '', float(said[1]) if said else None)


class Mpi4py(Program):
    """The tests of collective operations in the sources of mpi4py. Debian's package does not have them."""

    name, what, package = 'mpi4py', 'its tests of collective operations', 'python3-mpi4py'

    def __init__(self, sources):
        self.tests = sources and Path(sources) / 'test'

    def obstacle(self):
        if not self.tests:
            return 'its tests are not in Debian\'s package: name a folder with its sources (--mpi4py DIR)'
        if not (self.tests / 'runtests.py').exists():
            return f'{self.tests}/runtests.py does not exist'
        done = subprocess.run(['/usr/bin/python3', '-c', 'import mpi4py'], capture_output=True, check=False)
        return None if done.returncode == 0 else f'{self.package} is missing'

    def prepare(self, folder, ranks):
        return ['/usr/bin/python3', str(self.tests / 'runtests.py'), '--no-builddir', '-i', r'test_cco_(buf|obj|vec)']

    def check(self, folder, output):
        ran = [int(count) for count in re.findall(r'^Ran (\d+) tests', output, re.M)]
        return Verdict(bool(ran) and min(ran) > 0 and len(re.findall(r'^OK', output, re.M)) == len(ran),
                       f'{min(ran)} tests' if ran else '')


class Pattern(Program):
    """A program of tests/mpi/programs, with MPICH."""

    library = MPICH

    def __init__(self, source, what):
        self.source, self.what = source, what
        self.name = f'{Path(source).stem}, {self.library.family}'

    @property
    def key(self):
        return f'{Path(self.source).stem}-{self.library.key}'

    def obstacle(self):
        try:
            self.program = programs.with_pattern(CHECKOUT / 'build' / 'bench' / 'programs',
                                                 self.library.key, self.source)
        except programs.Unavailable as e:
            return str(e)
        return None

    def prepare(self, folder, ranks):
        return [str(self.program)]

    def check(self, folder, output):
        said = re.search(r'^\w+: right, (.+), +(\S+) s$', output, re.M)
        return Verdict(said is not None, said[1] if said else '', float(said[2]) if said else None)


PATTERNS = {'transpose': ('transpose.c', 'a matrix plus its transpose, as PTRANS; C'),
            'fourier': ('fourier.cpp', '16 x 16 x 16, pencils on a grid of ranks; C++'),
            'particles': ('particles.f90', 'charges on a mesh, as PPPM; Fortran, mpi'),
            'scf': ('scf.f90', 'a self-consistent field; Fortran, mpi_f08')}
NAMES = {'hpcc': Hpcc, 'espresso': Espresso, 'fftw': Fftw, 'mpi4py': Mpi4py, 'lammps': Lammps,
         **dict.fromkeys(PATTERNS, Pattern)}


def wanted_programs(options):
    for name in options.foreign_programs or NAMES:
        arguments = PATTERNS.get(name, (options.mpi4py,) if name == 'mpi4py' else ())
        yield NAMES[name](*arguments)


# --- running them ---

@dataclass
class Side:
    """Runs of a program, with or without the preload."""

    seconds: list = field(default_factory=list)
    whole: list = field(default_factory=list)   # seconds from mpiexec's start to its end
    results: set = field(default_factory=set)
    link_bytes: list = field(default_factory=list)
    torus_bytes: list = field(default_factory=list)
    said: str = ''                              # by the preload
    failed: str = ''

    def as_object(self):
        def middle(values):
            return arithmetic.median(values) if values else None
        return {'seconds': middle(self.seconds), 'whole': middle(self.whole), 'results': sorted(self.results),
                'link_bytes': middle(self.link_bytes), 'torus_bytes': middle(self.torus_bytes),
                'runs': len(self.whole), 'said': self.said, 'failed': self.failed}


def why_it_failed(output):
    """The reason of a failure: the preload's message if the torus failed, otherwise the end of the output."""
    said = re.search(r'the torus failed: .*', output)
    return said[0] if said else ' | '.join(output.strip().splitlines()[-6:])[-600:]


COUNTED = 'with statistics and'  # a way of running a program, besides 'with' and 'without'


class ForeignRun:
    def __init__(self, dims, mbit, options, result, say):
        self.dims, self.mbit, self.options, self.result = dims, mbit, options, result
        self.name = f'{dims} at {mbit:g} Mbit/s'
        self.say = lambda text: say(f'programs {self.name}: {text}')

    def run(self, save):
        options = self.options
        with network.Network(self.dims, self.mbit, bin=options.bin, memory=options.memory,
                             congestion=options.congestion) as net:
            self.net = net
            net.prepare_hosts()
            for program in wanted_programs(options):
                obstacle = program.obstacle()
                if obstacle:
                    self.failure(f'{program.name} cannot be run: {obstacle}')
                    continue
                self.result['programs'].append(self._program(program))
                save()
        for problem in net.problems:
            self.failure(problem)

    def failure(self, text):
        self.say(text)
        self.result['failures'].append(f'{self.name}: {text}')

    def _program(self, program):
        sides = {'without': Side(), 'with': Side()}
        for turn in range(self.options.foreign_rounds):
            for way in sorted(sides, reverse=turn % 2 == 0):
                if not sides[way].failed:
                    self._attempt(program, way, sides[way], turn)
        if not sides['with'].failed:
            self._attempt(program, COUNTED, sides['with'], 0)
        alike = sides['without'].results == sides['with'].results
        if not alike and not any(side.failed for side in sides.values()):
            self.failure(f'{program.name}: {sides["without"].results} without, {sides["with"].results} with the '
                         'preload')
        return {'torus': self.name, 'program': program.name, 'what': program.what, 'alike': alike,
                **{way: side.as_object() for way, side in sides.items()}}

    def _attempt(self, program, way, side, turn):
        """Runs a program once. With statistics, which take time in each call, the run is not timed."""
        folder = self.net.folder / f'{program.key}-{way}-{turn}'.replace(' ', '-')
        folder.mkdir()
        (folder / 'output').touch()
        try:
            command = program.prepare(folder, self.net.geometry.nodes)
            before = self._bytes()
            seconds, output = self._mpiexec(program.library, command, folder, way)
            after = self._bytes()
            verdict = program.check(folder, output)
        except (OSError, subprocess.SubprocessError, systems.Failed, programs.Unavailable) as e:
            side.failed = str(e)
        else:
            if not verdict.good:
                side.failed = 'its checks failed: ' + ' | '.join(output.splitlines()[-5:])[-500:]
        if side.failed:
            kept = self.options.out / f'{program.key}-{way}.output'
            shutil.copy(folder / 'output', kept)
            self.failure(f'{program.name} {way} the preload: {side.failed} (its whole output: {kept})')
            return
        side.results.add(verdict.result)
        said = re.findall(r'^torus: all \d+ ranks together: (served: .*)$', output, re.M)
        if said:
            side.said = said[-1]
        if way != COUNTED:
            self._note(program, way, side, seconds, verdict, before, after)
        shutil.rmtree(folder, ignore_errors=True)

    def _note(self, program, way, side, seconds, verdict, before, after):
        side.whole.append(seconds)
        side.seconds.append(seconds if verdict.seconds is None else verdict.seconds)
        side.link_bytes.append(after[0] - before[0])
        side.torus_bytes.append(after[1] - before[1])
        self.say(f'{program.name} {way} the preload: {seconds:.2f} s for mpiexec, '
                 f'{side.link_bytes[-1] / 1e6:.1f} MB on the links, {side.torus_bytes[-1] / 1e6:.1f} MB by torusd')

    def _mpiexec(self, library, command, folder, way):
        torus, ranks = self.net.torus, self.net.geometry.nodes
        environment = {**torus.environment(), 'TMPDIR': str(self.net.folder), 'OMP_NUM_THREADS': '1'}
        own = []
        if way != 'without':
            preloads.preload_of(library, self.options.bin)
            # MPICH's processes cannot see their launcher in this /proc, so this names the job that they belong to.
            settings = {'TORUS_MPI_JOB': str(uuid.uuid4()), **({'TORUS_MPI': 'stats'} if way == COUNTED else {})}
            done = subprocess.run([*torus.enter(), torus.torusctl, 'mpi-env', library.key], env=environment,
                                  capture_output=True, text=True, check=False)
            if done.returncode:
                raise systems.Failed(done.stderr.strip())
            own = done.stdout.split() + library.setting(settings)
        argv = ['setpriv', '--pdeathsig', 'KILL', *torus.enter(), 'unshare', '--pid', '--fork',
                '--kill-child=KILL', 'sh', '-c', 'cd "$0" && "$@"; exit $?', str(folder),
                f'mpiexec.{library.key}', '-n', str(ranks), *own, *command]
        begin = time.monotonic()
        with interrupts.held(), open(folder / 'output', 'w+') as output:
            process = subprocess.Popen(argv, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=output, start_new_session=True)
        try:
            process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            raise systems.Failed(f'not finished within {TIMEOUT} s') from None
        finally:
            process.kill()
            process.wait()
        text = (folder / 'output').read_text(errors='replace')
        if process.returncode:
            raise systems.Failed(f'exit status {process.returncode}: ' + why_it_failed(text))
        return time.monotonic() - begin, text

    def _bytes(self):
        """Bytes sent on all links, and the bytes among them that torusd sent."""
        torus = self.net.torus
        return self.net.sent_bytes(), sum(link['tx_bytes'] for rank in range(self.net.geometry.nodes)
                                          for link in torus.links(rank)['links'])


def run(options, say, save):
    result = {'programs': [], 'failures': []}
    for dims, mbit in options.foreign:
        torus = ForeignRun(dims, mbit, options, result, say)
        try:
            torus.run(lambda: save(result))
        except (TorusError, programs.Unavailable, OSError) as e:
            torus.failure(str(e))
    return result
