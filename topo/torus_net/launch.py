"""The launcher's command line: `topo/torus.py DIMS ...`."""

import signal
import subprocess
import sys
import time

from . import interrupts
from .descendants import adopt_orphans, descendants
from .geometry import Geometry, UsageError
from .loopback import LoopbackTorus
from .obstacle import mininet_obstacle
from .options import (EACH_EPILOG, check_action, check_options, daemon_options,
                      launcher_parser, whole_number)
from .patience import Patience, wait
from .process import TorusError, end_all
from .processor import parse_share
from .programs import run_programs
from .prompt import interact
from .limit import make_limit
from .rate import MININET_MAX_MBIT, parse_rates
from .words import counted

MOST_CORES = 64

EPILOG = """\
The command of --run, and commands at the prompt, find torusctl in their PATH and these variables:
  TORUS_SOCKET   control socket of node 0, which torusctl uses by default
  TORUS_RUN_DIR  folder of the run: R.sock is node R's control socket, R.pid holds its process id
  TORUS_LOG_DIR  folder with the logs: R.log
  TORUS_NODES    number of nodes
  TORUS_DIMS     dimensions, e.g. 4x8

With --ip-routes, the command runs on the host n0. There mpiexec, of MPICH or of Open MPI, runs programs on
all hosts, one rank each. $TORUS_AGENT replaces ssh: "$TORUS_AGENT n5 hostname". Each node has the address
and the name of a host, from 10.128.0.1 (n0) on, and its own /etc/hosts. In TORUS_SOCKET, %h stands for the
host's name. torus-routed keeps the routes, around links that are down; 'torusctl routes' shows those of n0
(TORUS_ROUTES is its socket).

""" + EACH_EPILOG + """
Exit status: that of the command, or of the first program that failed, or 0 without these; 1 if the
torus did not come up; 2 for invalid usage; 128 + the signal number after a signal. If a run fails,
its logs are kept and their folder is printed.
"""


def make_parser():
    parser = launcher_parser(
        'torus.py', epilog=EPILOG,
        description='Brings up a torus of torusd daemons: in Mininet (requires root), where each node '
                    'has a network namespace and each link a rate, or with --loopback as plain '
                    'processes on 127.0.0.1. A prompt then takes commands such as "exchange"; "help" lists '
                    'them.',
        bw=f', at most {MININET_MAX_MBIT}; --bw 6:-1=8 beside it is the rate of what node 6 sends by its '
           'port -1', memory='e.g. 64MiB',
        bin=' (default: $TORUS_BIN, PATH, build/)')
    parser.add_argument('--loopback', action='store_true',
                        help='use neither Mininet nor root; links have no limit')
    parser.add_argument('--cable', action='store_true',
                        help='links like cables: a packet arrives when its last bit has left at the '
                             'rate of the link, then the next one follows; nothing passes at once')
    parser.add_argument('--cpu', metavar='F',
                        help='give each host its own share of a processor, from 0.01 to 1 (needs cgroups). Packets '
                             'that the kernel forwards or receives in interrupts do not count')
    parser.add_argument('--cores', metavar='N', type=whole_number(1, MOST_CORES), default=1,
                        help='with --cpu: a host has N times that share, and each of its threads at most one')
    parser.add_argument('--ip-routes', action='store_true',
                        help='make all nodes reachable by IP over the links, as hosts n0, n1, ...: '
                             'for mpiexec, ssh and the like')
    parser.add_argument('--without', metavar='LINKS',
                        help='with --ip-routes: links that routes avoid, e.g. 5:+0,7 for the one at '
                             'port +0 of node 5 and all of node 7')
    parser.add_argument('--data-root', metavar='DIR', action='append', default=[],
                        help='the daemons may read and write files below DIR (repeatable)')
    parser.add_argument('--check-mininet', action=check_action('torus.py', mininet_obstacle), nargs=0,
                        help='only report, by the exit status, whether Mininet can be used')
    parser.add_argument('--wrap', metavar='COMMAND', help='command prefix for each torusd, e.g. '
                                                          '"valgrind -q"')
    return parser


def parse_arguments(argv):
    parser = make_parser()
    options = check_options(parser, parser.parse_args(argv))
    if options.ip_routes and options.loopback:
        parser.error('argument --ip-routes: not allowed with argument --loopback')
    if options.without and not options.ip_routes:
        parser.error('argument --without: only with --ip-routes')
    if options.cores != 1 and options.cpu is None:
        parser.error('argument --cores: only with --cpu')
    return options


def check_torus(options):
    """The geometry, if the options describe a torus. Needs nothing built or installed."""
    geometry = Geometry(options.dims)
    mbit, _ = parse_rates(options.bw, geometry, None if options.loopback else MININET_MAX_MBIT)
    make_limit(mbit, options.burst, options.cable)
    if options.cpu is not None:
        parse_share(options.cpu)
    return geometry


def make_torus(options, say):
    """The torus that the options describe, not yet started."""
    geometry = check_torus(options)
    mbit, rates = parse_rates(options.bw, geometry)
    kind, limit = LoopbackTorus, {}
    if not options.loopback:
        obstacle = mininet_obstacle()
        if obstacle:
            raise UsageError(f'{obstacle}; without Mininet: --loopback')
        from .emulated import MininetTorus as kind
        limit = {'burst': options.burst, 'cable': options.cable, 'rates': rates, 'cpu': options.cpu,
                 'cores': options.cores}
    elif options.burst is not None or options.cable or rates:
        raise UsageError('loopback links are not limited: --burst, --cable and rates of single links need Mininet')
    elif options.cpu is not None:
        raise UsageError('--cpu needs Mininet')
    elif mbit is not None:
        say(f'loopback links are not limited; {mbit:g} Mbit/s is only passed to the daemons')
    return kind(geometry, bw=mbit, bin=options.bin, memory=options.memory,
                data_roots=options.data_root, wrap=options.wrap, keep_logs=options.keep_logs,
                extra=daemon_options(options),
                log_level=options.log_level, timeout=options.timeout, say=say, **limit)


def main(argv=None):
    return launch('torus.py', parse_arguments(argv), check_torus, make_torus, serve)


def launch(name, options, check, make, run):
    """Makes a torus as the options say, runs it, and takes it down whatever happens. `name` is the
    program's name in messages. With --check-options it only checks them. Returns the exit status."""
    def complain(text):
        print(f'{name}: {text}', file=sys.stderr, flush=True)

    say = (lambda text: None) if options.quiet else complain
    interrupts.install()
    torus = None
    status, failed = 1, True
    try:
        try:
            check(options)
            if options.check_options:
                return 0
            torus = make(options, say)
            status = run(torus, options, say, complain)
            failed = status != 0
        finally:
            interrupts.stop_raising()
    except UsageError as e:
        complain(e)
        status = 2
    except (TorusError, OSError) as e:
        complain(e)
    except (KeyboardInterrupt, interrupts.Terminated) as e:
        status, failed = 128 + getattr(e, 'signum', signal.SIGINT), False
    finally:
        if torus is not None and torus.run is not None:
            for problem in torus.stop(failed):
                complain(problem)
            if torus.kept_logs:
                complain(f'logs: {torus.kept_logs}')
    return status


def serve(torus, options, say, complain):
    begin = time.monotonic()
    torus.start()
    say(f'{torus.geometry} in {torus.kind}: {counted(torus.geometry.nodes, "node")} and '
        f'{counted(len(torus.geometry.links), "link")} up after {time.monotonic() - begin:.1f} s')
    if options.ip_routes:
        torus.set_ip_routes(options.without)
    if options.run_each is not None or options.run is not None:
        return run_commands(torus, options, complain)
    if options.wait:
        say(f'torusctl --socket {torus.run.socket(0)} reaches node 0; logs in {torus.run.logs}; '
            'Ctrl-C stops')
        interrupts.wait()
    if sys.stdin.isatty():
        say(f'"exchange" runs an exchange, "help" lists more; from elsewhere: '
            f'torusctl --socket {torus.run.socket(0)} ...')
    interact(torus)
    return 0


def run_commands(torus, options, complain):
    """What --run-each and --run ask for. Returns the exit status."""
    if options.run_each is not None:
        return run_programs(torus, options.run_each, options.run, complain)
    return run_command(options.run, torus.environment(), torus.enter())


def run_command(command, environment, enter=()):
    """Runs a shell command behind the prefix `enter`. Returns its exit status when all that it started has ended."""
    adopt_orphans()
    before = descendants()
    process = None
    try:
        with interrupts.held():
            process = subprocess.Popen([*enter, '/bin/sh', '-c', command], env=environment)
        status = process.wait()
    except KeyboardInterrupt:
        # On a terminal, Ctrl-C reached the command too: let it exit by itself.
        if process is not None and sys.stdin.isatty():
            _wait_quietly(process, 3)
        raise
    finally:
        with interrupts.held():
            end_all(lambda: descendants() - before)
    return status if status >= 0 else 128 - status


def _wait_quietly(process, seconds):
    try:
        wait(process, Patience(seconds))
    except subprocess.TimeoutExpired:
        pass
