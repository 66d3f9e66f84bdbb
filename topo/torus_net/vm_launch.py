"""The command line of scripts/vm-up: a torus of virtual machines."""

import shlex
import sys
import time

from . import interrupts
from .geometry import Geometry, UsageError
from .launch import launch, run_commands
from .limit import make_limit
from .options import (EACH_EPILOG, check_action, check_options, daemon_options, launcher_parser,
                      whole_number)
from .process import TorusError
from .prompt import LoopbackPrompt
from .qemu import LEAST_RAM_MIB, RAM_MIB, vm_obstacle
from .rate import parse_rates
from .virtual import MOST_RAM_MIB, VirtualTorus, check_machines
from .words import counted

EPILOG = """\
The machines boot Debian's cloud kernel, whose package is downloaded once (not installed), with an
initramfs that contains this project's programs. Both are kept in a cache folder ($TORUS_VM_CACHE or
~/.cache/torusd/vm); the initramfs is rebuilt when a program has changed.

Each network card is connected to that of a neighbour; there is no other network. Exchanges of files
use folders below /srv in the machines. At the prompt, "vm RANK COMMAND" runs a command in a machine,
"kill RANK" is a power failure and "restart RANK" boots it again; "help" lists more.

The command of --run, and commands at the prompt, find torusctl in their PATH and these variables:
  TORUS_SOCKET   control socket of node 0, which torusctl uses by default
  TORUS_RUN_DIR  folder of the run: R.sock is node R's control socket; R.shell runs the shell
                 command in the first line of each connection; R.pid holds the process id of qemu
  TORUS_LOG_DIR  folder with the logs: R.log of torusd (and qemu), R.console.log of kernel and init
  TORUS_NODES    number of nodes
  TORUS_DIMS     dimensions, e.g. 4x4

""" + EACH_EPILOG + """
In virtual machines, the programs run in /srv of their machine, with torusctl and the programs of --program in
their PATH. They have the variables TORUS_SOCKET, TORUS_RANK, TORUS_NODES and TORUS_DIMS only. Their errors
arrive together with their output.

Exit status: that of the command, or of the first program that failed, or 0 without these; 1 if the
torus did not come up; 2 for invalid usage; 128 + the signal number after a signal. If a run fails,
its logs are kept and their folder is printed.
"""


def make_parser():
    parser = launcher_parser(
        'vm-up', usage='scripts/vm-up DIMS [option...]', epilog=EPILOG,
        description='Brings up a torus of torusd daemons, each in a small virtual machine (qemu) with '
                    'its own kernel, clock and file system, and takes it down at the end. Installs '
                    'missing Debian packages and builds in build/ unless --bin is given.',
        bw=', enforced by tc in the machines', memory='default 32MiB', bin='')
    parser.add_argument('--ram', metavar='MIB', type=whole_number(0, MOST_RAM_MIB), default=RAM_MIB,
                        help=f'memory of each machine in MiB, at least {LEAST_RAM_MIB} (default '
                             f'{RAM_MIB})')
    parser.add_argument('--accel', choices=('auto', 'tcg', 'kvm'), default='auto',
                        help='tcg works everywhere; auto (the default) uses kvm only after a '
                             'test boot succeeds')
    parser.add_argument('--clock-step', metavar='SECONDS', type=whole_number(-10 ** 7, 10 ** 7),
                        help="set the clock of each machine ahead of the previous one's")
    parser.add_argument('--program', metavar='FILE', action='append', default=[],
                        help='put this program, with its shared libraries, into /bin of every machine '
                             '(repeatable)')
    parser.add_argument('--cache', metavar='DIR', help='folder for the kernel and the image')
    parser.add_argument('--no-install', action='store_true', help='do not install packages')
    parser.add_argument('--check', action=check_action('vm-up', vm_obstacle), nargs=0,
                        help='only report, by the exit status, whether virtual machines can be '
                             'started')
    return parser


def parse_arguments(argv):
    parser = make_parser()
    return check_options(parser, parser.parse_args(argv))


class VirtualPrompt(LoopbackPrompt):
    """A prompt with a command to look into the machines."""

    def do_vm(self, line):
        """vm RANK COMMAND ...: run a shell command in a machine, e.g. `vm 5 ls -l /srv`"""
        rank, _, command = line.partition(' ')
        node = self._node(rank)
        if node:
            try:
                connection = node.begin(command)
                sys.stdout.write(node.finish(connection, command, check=False)[1]
                                 .decode(errors='replace'))
            except TorusError as e:
                print(e, file=sys.stderr)

    def do_console(self, line):
        """console RANK: print the console output of a machine"""
        node = self._node(line)
        if node:
            print(node.console(), end='')

    def do_kill(self, line):
        """kill RANK: cut the power of a machine"""
        super().do_kill(line)

    def do_restart(self, line):
        """restart RANK: switch a machine off if it is on, and boot it"""
        super().do_restart(line)


def check_torus(options):
    """The geometry, if the options describe a torus. Needs nothing built or installed."""
    geometry = Geometry(options.dims)
    check_machines(geometry, options.ram)
    make_limit(rate_of_all(options, geometry), options.burst)
    return geometry


def rate_of_all(options, geometry):
    """The rate of all links, or None. UsageError if the options give single links rates of their own."""
    mbit, rates = parse_rates(options.bw, geometry)
    if rates:
        raise UsageError('--bw: links of virtual machines have one rate; torus.py gives single links others')
    return mbit


def make_torus(options, say):
    """The torus that the options describe, not yet started."""
    geometry = check_torus(options)
    rtc = None
    if options.clock_step is not None:
        now = time.time()
        def rtc(rank):
            return now + rank * options.clock_step
    return VirtualTorus(geometry, bw=rate_of_all(options, geometry), burst=options.burst, bin=options.bin,
                        memory=options.memory, ram=options.ram, accelerator=options.accel, rtc=rtc,
                        programs=options.program, cache=options.cache, keep_logs=options.keep_logs,
                        extra=daemon_options(options),
                        log_level=options.log_level, timeout=options.timeout, say=say,
                        progress=None if options.quiet or not sys.stderr.isatty() else Progress())


class Progress:
    """A line on the terminal that changes in place."""

    def __init__(self):
        self.begin = None
        self.said = None

    def __call__(self, up, of):
        if self.begin is None:
            self.begin = time.monotonic()
        now = up, int(time.monotonic() - self.begin)
        if now != self.said:
            self.said = now
            end = '\n' if up == of else ''
            print(f'\rvm-up: {up} of {of} up, {now[1]} s ', end=end, file=sys.stderr, flush=True)


def main(argv=None):
    return launch('vm-up', parse_arguments(argv), check_torus, make_torus, serve)


def serve(torus, options, say, complain):
    torus.start()
    used = torus.memory_used()
    say(f'{torus.geometry} in virtual machines: {torus.geometry.nodes} up after '
        f'{torus.boot_seconds:.1f} s, {counted(len(torus.geometry.links), "link")} up after '
        f'{torus.join_seconds:.1f} s, {used["pss"] >> 20} MiB of memory in total (PSS; RSS '
        f'{used["rss"] >> 20} MiB)')
    if options.run_each is not None or options.run is not None:
        return run_commands(torus, options, complain)
    if options.wait:
        say(f'{shlex.quote(torus.torusctl)} --socket {torus.run.socket(0)} connects to node 0; logs in '
            f'{torus.run.logs}; Ctrl-C stops')
        interrupts.wait()
    if sys.stdin.isatty():
        say(f'"exchange" runs an exchange, "help" lists more; from elsewhere: '
            f'{shlex.quote(torus.torusctl)} --socket {torus.run.socket(0)} ...')
    with interrupts.at_prompt():
        VirtualPrompt(torus).cmdloop()
    return 0
