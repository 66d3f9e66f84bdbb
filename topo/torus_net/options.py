"""The options that the launchers share."""

import argparse
import re

from .limit import FRAME

LONGEST = 10 ** 6    # the longest time limit in seconds, more than eleven days


EACH_EPILOG = """\
The command of --run-each runs on every node, with %r replaced by the node's rank. It has the variables above,
except that TORUS_SOCKET is the control socket of its own node; TORUS_RANK is the node's rank. Each line that a
program writes, errors too, begins with the rank ("3: done"). The program of node 0 reads standard input,
unless --run is given as well; the others have no input. If a program fails, the launcher ends programs that
still run 3 seconds later. If --run is given as well, the launcher waits for that command and all programs.
"""


def launcher_parser(prog, *, description, epilog, usage=None, bw, memory, bin):
    """A parser with the options of every launcher. bw, memory, bin: texts for the help of these options."""
    parser = argparse.ArgumentParser(prog=prog, usage=usage, description=description, epilog=epilog,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('dims', metavar='DIMS', help='dimensions, e.g. 4x8, 1x6 or 3x4x5; a size '
                                                     'followed by m does not wrap (mesh)')
    parser.add_argument('--bw', metavar='MBIT', action='append',
                        help=f'rate of each link in each direction in Mbit/s{bw} (default: no limit)')
    parser.add_argument('--burst', metavar='SIZE', help='bytes that a link passes at once after a '
                                                        f'pause, at least {FRAME} (default: 15KiB '
                                                        'and one segment of up to 64KiB)')
    parser.add_argument('--run-each', metavar='COMMAND',
                        help='run this shell command on every node instead of the prompt, as mpiexec '
                             'does, with its output behind the rank; then take everything down. '
                             'Works beside --run')
    what = parser.add_mutually_exclusive_group()
    what.add_argument('--run', metavar='COMMAND', help='run this shell command instead of the '
                                                       'prompt, then take everything down')
    what.add_argument('--wait', action='store_true', help='wait for Ctrl-C or SIGTERM instead of the '
                                                          'prompt')
    parser.add_argument('--memory', metavar='SIZE', help='memory of each daemon for blocks in transit '
                                                         f'({memory})')
    parser.add_argument('--bin', metavar='DIR', help=f'folder with torusd and torusctl{bin}')
    parser.add_argument('--keep-logs', metavar='DIR', help='write the logs to DIR and keep them')
    parser.add_argument('--encrypt', action='store_true', help='encrypt all links')
    for name, what in (('heartbeat', 'between two heartbeats of a link'),
                       ('silence', 'of silence after which a link is down')):
        parser.add_argument(f'--{name}-ms', metavar='TIME', help=f'milliseconds {what}')
    parser.add_argument('--log-level', metavar='LEVEL', help='log level of the daemons')
    parser.add_argument('--timeout', metavar='SECONDS', type=seconds,
                        help='time limit for the torus to become whole (default: depends on its '
                             'size). Time in which its processes wait for a processor does not count')
    parser.add_argument('--check-options', action='store_true', help=argparse.SUPPRESS)  # start nothing
    parser.add_argument('-q', '--quiet', action='store_true', help='print errors only')
    return parser


def seconds(text):
    """A time limit, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value <= LONGEST:  # nan is not
        raise argparse.ArgumentTypeError(f'"{text}" is not a number of seconds above 0, at most {LONGEST}')
    return value


def whole_number(least, most):
    """A type for argparse."""
    def parse(text):
        if re.fullmatch(r'-?[0-9]{1,18}', text) and least <= int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f'"{text[:40]}" is not a whole number from {least} to {most}')
    return parse


def daemon_options(options):
    """More options for each torusd."""
    extra = [f'--{name}-ms={value}' for name, value in (('heartbeat', options.heartbeat_ms),
                                                        ('silence', options.silence_ms)) if value]
    return (*extra, '--encrypt=yes') if options.encrypt else tuple(extra)


def check_options(parser, options):
    """Ends the program if options contradict each other. Returns them."""
    if options.wait and options.run_each is not None:
        parser.error('argument --wait: not allowed with argument --run-each')
    return options


def check_action(name, obstacle):
    """The action of an option that ends the program. The exit status says whether obstacle() returns None."""
    class Check(argparse.Action):
        def __call__(self, parser, *_):
            reason = obstacle()
            parser.exit(1 if reason else 0, f'{name}: {reason}\n' if reason else None)
    return Check
