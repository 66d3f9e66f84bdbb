"""Called by scripts/bench."""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'topo'))

from torus_net import (CHECKOUT, MININET_MAX_MBIT, Geometry, TorusError, UsageError,  # noqa: E402
                       find_program, interrupts, mininet_obstacle, parse_mbit)

from . import (  # noqa: E402
    against,
    arithmetic,
    copying,
    cuts,
    files,
    fit,
    foreign,
    groups,
    machine,
    preloads,
    schedules,
    uneven,
)
from .tables import page  # noqa: E402

TORI = '4x4@50,4x8@20,5x7@20,8x8@10'
CABLE_TORI = '4x4@10,8x8@2.5'  # about half of what two processors can carry packet by packet
CABLE_SIZES = '1,4,16,64,256,1KiB,4KiB,16KiB'
SIZES = '1,4,16,64,256,1KiB,4KiB,16KiB,64KiB,256KiB,1MiB'

COMMAND = os.environ.get('BENCH_COMMAND', 'scripts/bench')
# Options that other scripts pass on, and their names there.
ELSEWHERE = {'scripts/mpi-bench': {'--preloads': '--torus', '--foreign': '--programs-on'}}

EPILOG = """\
If none of --tori, --cables, --fit, --growth, --unlimited, --files, --schedules, --cuts and --groups is given,
all of them are measured (--copy, --uneven, --preloads and --foreign only on request).
Results: results.json, written after each size; results.txt; times.png and .svg.

examples:
  scripts/bench                                        # everything
  scripts/bench --quick                                # a 2x2 torus, torusd only, seconds
  scripts/bench --torus 4x4@50 --sizes 1,1KiB,64KiB --algorithms at2,direct
  scripts/bench --torus 8x8@10 --sizes 1,64,1KiB --spinning
  scripts/bench --cables 4x4@10 --algorithms auto,pair # small blocks: links without a burst
  scripts/bench --fit                                  # the papers' model, fitted to times
  scripts/bench --fit 4x4@2.5 --algorithms a3          # links that are slower than the processors
  scripts/bench --growth --no-tori                     # how cost grows
  scripts/bench --files                                # files, generated data, and cp
  scripts/bench --schedules                            # a solver's schedules, and stream
  scripts/bench --cuts 4x4@50                          # links that go down, nodes that die
  scripts/bench --groups                               # programs' calls: libtorus and MPI
  scripts/bench --groups --repeats 6 --cell-seconds 0.4 --into tests/bench/results
  scripts/bench --groups 4x4@50 --operations allreduce --sizes 8,1MiB
  scripts/bench --copy 4@200 --sizes 64MiB             # copies of trees, and rsync, scp, BitTorrent
  scripts/bench --uneven direction,ring                # some links are slower than the others
  scripts/bench --against ../before/build              # is this build slower than that one?
  scripts/bench --against ../before/build --unlimited  # and does a byte cost more?
  scripts/bench --overview tests/bench/results/4x4-at-50-mbit.md   # the plot in the README
  scripts/bench --render build/bench/results.json --into tests/bench/results
"""

PARTS = ('fit', 'unlimited', 'growth', 'files', 'schedules', 'cuts', 'groups', 'preloads', 'foreign', 'copy', 'uneven')
SAVED_OFTEN = PARTS[PARTS.index('cuts'):]  # their results are saved after each step


def asked(options, *names):
    return any(getattr(options, name) for name in names)


def comma(kind):
    def parse(text):
        try:
            return [kind(part) for part in text.split(',') if part.strip()]
        except (ValueError, UsageError) as e:
            raise argparse.ArgumentTypeError(str(e)) from e
    return parse


def torus_at_rate(text):
    dims, at, rate = text.strip().partition('@')
    if not at:
        raise ValueError(f'"{text}" is not a torus with a rate, such as 4x4@50')
    geometry = Geometry(dims)
    if geometry.nodes < 2:
        raise ValueError(f'{dims} has only one node')
    return str(geometry), parse_mbit(rate, MININET_MAX_MBIT)


def torus_at_any_rate(text):
    """Without a rate: links without a limit."""
    return torus_at_rate(text) if '@' in text else (torus_at_rate(f'{text.strip()}@1')[0], None)


def operation(text):
    if text.strip() not in groups.SIZES:
        raise ValueError(f'"{text}" is not one of {", ".join(groups.SIZES)}')
    return text.strip()


def foreign_program(text):
    if text.strip() not in foreign.NAMES:
        raise ValueError(f'"{text}" is not one of {", ".join(foreign.NAMES)}')
    return text.strip()


def uneven_case(text):
    if text.strip() not in uneven.CASES:
        raise ValueError(f'"{text}" is not one of {", ".join(uneven.CASES)}')
    return text.strip()


class Parser(argparse.ArgumentParser):
    """A parser whose messages name the script that the user called."""

    def error(self, message):
        if COMMAND in ELSEWHERE:
            for ours, theirs in ELSEWHERE[COMMAND].items():
                message = message.replace(f'{ours}:', f'{theirs}:')
            self.exit(2, f'{os.path.basename(COMMAND)}: {message} (try --help)\n')
        super().error(message)


def parse_arguments(argv=None):
    parser = Parser(
        prog=COMMAND, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
        description='Measures complete exchanges in Mininet: all algorithms of torusd, '
                    'MPI_Alltoall of MPICH and Open MPI, and the capacity of the links. Also measures '
                    'calls of programs, and compares two builds of torusd. Requires root.')
    what = parser.add_argument_group('what to measure')
    what.add_argument('--torus', '--tori', dest='tori', metavar='DIMS@MBIT,...',
                      type=comma(torus_at_rate), help=f'tori with rate-limited links (default {TORI})')
    what.add_argument('--cables', metavar='DIMS@MBIT,...', type=comma(torus_at_rate),
                      help='tori whose links carry one packet after another, as cables do, '
                           'without the burst of a rate limiter (default of a full run: '
                           f'{CABLE_TORI}, with blocks of {CABLE_SIZES})')
    what.add_argument('--fit', metavar='DIMS@MBIT,...', type=comma(torus_at_rate), nargs='?',
                      const=comma(torus_at_rate)(fit.TORI),
                      help="fit the papers' cost model to measured times (torusctl bench --fit) on "
                           'these tori with links like cables, and on the first also with a burst '
                           f'(default {fit.TORI}); also time single messages over each kind of link, and '
                           'measure the capacity of all links together')
    what.add_argument('--no-tori', action='store_true', help='measure no tori with rate-limited links')
    what.add_argument('--sizes', metavar='SIZE,...', type=comma(arithmetic.parse_size),
                      help=f'sizes of blocks (default {SIZES})')
    what.add_argument('--algorithms', metavar='NAME,...', type=comma(str.strip),
                      help='algorithms of torusd (default: all that support the torus)')
    what.add_argument('--no-mpi', dest='mpi', action='store_false', help='measure torusd only')
    what.add_argument('--spinning', action='store_true',
                      help='also measure unmodified MPI, which polls in a busy loop')
    what.add_argument('--unlimited', action='store_true',
                      help='unlimited links: bytes per CPU-second, compared with IP forwarding')
    what.add_argument('--growth', action='store_true',
                      help='start-up time, memory, messages and CPU time from 4x4 to 16x16, and '
                           'predictions for larger tori')
    what.add_argument('--files', action='store_true',
                      help='exchanges of files, of generated data, and cp of the same bytes, in turn')
    what.add_argument('--files-in', metavar='DIR,...', type=comma(str),
                      help='folders for the files, on the file systems to compare '
                           '(default: /dev/shm, and the folder for temporary files)')
    what.add_argument('--copy', metavar='DIMS@MBIT,...', type=comma(torus_at_any_rate), nargs='?',
                      const=comma(torus_at_any_rate)(copying.TORI),
                      help='copies of trees by torusctl copy, rsync, scp, tar, udpcast and BitTorrent, in turn (default '
                           f'{copying.TORI}; without a rate: unlimited links); --sizes: of one file')
    what.add_argument('--copy-files', metavar='N', type=int, default=copying.FILES,
                      help=f'with --copy: files of a tree of small files ({copying.FILES})')
    what.add_argument('--copy-with', metavar='NAME,...', type=comma(str.strip),
                      help='with --copy: only the ways whose names contain one of these')
    what.add_argument('--schedules', action='store_true',
                      help="a solver's schedules (by multi-commodity flow) and stream, in turn")
    what.add_argument('--cuts', metavar='DIMS@MBIT,...', type=comma(torus_at_rate), nargs='?',
                      const=comma(torus_at_rate)(cuts.TORI),
                      help='exchanges on damaged tori, compared with their least load, and exchanges during '
                           f'which links go down or a node dies (default {cuts.TORI})')
    what.add_argument('--uneven', metavar='NAME,...', type=comma(uneven_case), nargs='?', const=list(uneven.CASES),
                      help='links of different rates: exchanges, copies and broadcasts, both MPI libraries over static '
                           'routes, and an exchange during which a link becomes slow (default: all of '
                           f'{", ".join(uneven.CASES)})')
    what.add_argument('--groups', metavar='DIMS@MBIT,...', type=comma(torus_at_any_rate), nargs='?',
                      const=comma(torus_at_any_rate)(groups.TORI),
                      help='calls of programs on every node: alltoall, allgather, allreduce, broadcast '
                           "and barrier by libtorus, by both MPI libraries, and by torusctl's "
                           f'--repeat, in turn (default {groups.TORI}; without a rate: unlimited links)')
    what.add_argument('--preloads', metavar='DIMS@MBIT,...', type=comma(torus_at_rate), nargs='?',
                      const=comma(torus_at_rate)(preloads.TORI),
                      help="calls of one MPI program with and without torusd's preload, for both MPI libraries, "
                           f'in turn (default {preloads.TORI})')
    what.add_argument('--foreign', metavar='DIMS@MBIT,...', type=comma(torus_at_rate), nargs='?',
                      const=comma(torus_at_rate)(foreign.TORI),
                      help='MPI programs of others from Debian with Open MPI, and programs of this project with '
                           f'MPICH, with and without the preload (default {foreign.TORI})')
    what.add_argument('--programs', metavar='NAME,...', type=comma(foreign_program),
                      help=f'with --foreign: run only these of {", ".join(foreign.NAMES)}')
    what.add_argument('--mpi4py', metavar='DIR',
                      help='with --foreign: run the tests of mpi4py; DIR has the sources of the installed version')
    what.add_argument('--operations', metavar='NAME,...', type=comma(operation),
                      help=f'with --groups and --preloads: measure only these of {", ".join(groups.SIZES)}')
    what.add_argument('--quick', action='store_true',
                      help='a short run to check that everything works: 2x2, few sizes, no MPI')
    what.add_argument('--against', metavar='DIR', type=Path,
                      help='compare torusd of another build (the folder with its torusd and '
                           'torusctl): both builds in turn in one network; by default '
                           f'{against.TORI}, blocks of {against.SIZES}, auto')
    how = parser.add_argument_group('how')
    how.add_argument('--repeats', metavar='N', type=int, default=15, help='at most N repeats of each measurement (15)')
    how.add_argument('--rounds', metavar='N', type=int,
                     help=f'with --cuts: rounds of each fault ({cuts.ROUNDS}); with --groups and --preloads: turns of each '
                          f'system ({groups.ROUNDS})')
    how.add_argument('--cell-seconds', metavar='S', type=float,
                     help='seconds for one system at one size; slow systems repeat less (3; with '
                          f'--groups {groups.CELL_SECONDS:g}, with --against '
                          f'{against.CELL_SECONDS:g})')
    how.add_argument('--longest', metavar='S', type=float,
                     help='skip sizes whose lower bound is longer than S seconds (70; with --groups '
                          f'{groups.LONGEST:g})')
    how.add_argument('--goodput-seconds', metavar='S', type=float, default=3.0,
                     help='seconds for measuring the throughput of the links (3)')
    how.add_argument('--congestion', metavar='NAME', default='cubic',
                     help="congestion control of MPI's and iperf3's connections (cubic); '' for "
                          "the machine's default")
    how.add_argument('--wait-ms', metavar='MS', type=int,
                     help='how many ms an empty poll of MPI may wait (1; 10 for more than 32 ranks)')
    how.add_argument('--memory', metavar='SIZE', help="memory of each daemon (torusd's --memory)")
    how.add_argument('--bin', metavar='DIR', help='folder with torusd and torusctl')
    where = parser.add_argument_group('results')
    where.add_argument('--out', metavar='DIR', type=Path, default=CHECKOUT / 'build' / 'bench',
                       help='folder for the results (build/bench)')
    where.add_argument('--json', action='store_true',
                       help='with --against: print the results as JSON, not as tables')
    where.add_argument('--results', metavar='DIR', type=Path,
                       help='also write a page of Markdown for each part, with plots, into this folder')
    where.add_argument('--into', metavar='DIR', type=Path,
                       help='also replace the pages of the measured parts in this folder; the '
                            'notes at the end of a page stay, and so does times.png')
    where.add_argument('--no-plots', dest='plots', action='store_false', help='no matplotlib')
    where.add_argument('--render', metavar='JSON', type=Path,
                       help='do not measure: make tables and plots from this results.json')
    where.add_argument('--overview', metavar='FILE', type=Path,
                       help='do not measure: draw overview.png, the plot in the README, from the first '
                            'table in this page of a torus, into the same folder')
    options = parser.parse_args(argv)
    if options.repeats < 1 or (options.rounds is not None and options.rounds < 1) or (options.cell_seconds or 1) <= 0:
        parser.error('--repeats, --rounds and --cell-seconds must be positive')
    if options.against and (asked(options, 'cables', 'no_tori', 'quick', 'render', 'results', 'into',
                                  *(part for part in PARTS if part != 'unlimited')) or
                            (options.unlimited and options.tori)):
        parser.error('--against takes --torus or --unlimited, --sizes, --algorithms, --memory, '
                     '--cell-seconds, --bin, --out and --json')
    for folder in options.files_in or []:
        if not Path(folder).is_dir():
            parser.error(f'--files-in: {folder} is not a folder')
    if options.json and not options.against:
        parser.error('--json needs --against')
    if options.into and not options.into.is_dir():
        parser.error(f'--into: {options.into} is not a folder')
    if options.results and options.results.exists() and not options.results.is_dir():
        parser.error(f'--results: {options.results} is not a folder')
    return complete_against(options) if options.against else complete(options)


def complete_against(options):
    options.out = options.out.resolve()
    options.against = options.against.resolve()
    sizes, algorithms = against.SIZES, against.ALGORITHMS
    if options.unlimited:
        options.tori = [(against.UNLIMITED_DIMS, None)]
        sizes, algorithms = against.UNLIMITED_SIZES, against.UNLIMITED_ALGORITHMS
    options.tori = options.tori or comma(torus_at_rate)(against.TORI)
    options.sizes = sorted(set(options.sizes or comma(arithmetic.parse_size)(sizes)))
    options.algorithms = options.algorithms or algorithms
    options.cell_seconds = options.cell_seconds or against.CELL_SECONDS
    return options


def complete(options):
    """Fills in the defaults that depend on other options."""
    everything = not asked(options, 'tori', 'cables', 'quick', *PARTS)
    copying.complete(options)
    uneven.complete(options)
    options.out = options.out.resolve()
    options.groups_cell_seconds = options.cell_seconds or groups.CELL_SECONDS
    options.groups_rounds = options.rounds or groups.ROUNDS
    options.groups_longest = options.longest or groups.LONGEST
    options.groups_operations = options.operations or list(groups.SIZES)
    options.groups_sizes = options.sizes
    options.foreign_programs, options.foreign_rounds = options.programs, foreign.ROUNDS
    options.groups_calibrated = not options.quick
    options.cell_seconds = options.cell_seconds or 3.0
    options.longest = options.longest or 70.0
    options.growth_tori = ['4x4', '8x8', '12x12', '16x16']
    options.growth_mbit = 10.0
    options.files_in = options.files_in or ['/dev/shm', tempfile.gettempdir()]
    options.files_tori, options.files_turns = files.TORI, files.TURNS
    options.files_sizes = files.SIZES
    options.schedules_tori, options.schedules_turns = schedules.TORI, schedules.TURNS
    options.schedules_sizes = schedules.SIZES
    options.cuts_sizes, options.cuts_turns, options.cuts_calls = cuts.SIZES, cuts.TURNS, cuts.CALLS
    options.cuts_rounds = options.rounds or cuts.ROUNDS
    options.fit_sizes, options.fit_repeats = fit.SIZES, fit.REPEATS
    options.fit_rates, options.fit_messages = fit.RATES, fit.TRANSIT_SIZES
    options.unlimited_dims, options.unlimited_seconds = '4x4', 1.5
    options.unlimited_sizes = [65536, 1 << 20]
    options.spinning_up_to = 16384
    if options.quick:
        options.tori = options.tori or [('2x2', 50.0)]
        options.sizes = options.sizes or [1, 1024, 65536]
        options.repeats = min(options.repeats, 3)
        options.cell_seconds = min(options.cell_seconds, 0.5)
        options.goodput_seconds = min(options.goodput_seconds, 0.5)
        options.growth_tori = ['2x2', '4x4']
        options.unlimited_dims, options.unlimited_seconds = '2x2', 1.0
        options.files_tori, options.files_turns = [('2x2', 50.0)], 1
        options.files_sizes = [100, 16384]
        options.schedules_tori, options.schedules_turns = [('2x2', 50.0)], 1
        options.schedules_sizes = [1024]
        options.cuts = options.cuts and [('3x3', 50.0)]
        options.cuts_sizes, options.cuts_turns, options.cuts_rounds = [65536], 1, 1
        options.cuts_calls = [('alltoall', 65536)]
        options.fit, options.fit_repeats = options.fit and [('2x2', 50.0)], 3
        options.fit_sizes, options.fit_rates = '256,1KiB,4KiB', [20.0]
        options.fit_messages = [64, 1400]
        options.groups = options.groups and [('2x2', 50.0)]
        options.preloads = options.preloads and [('2x2', 50.0)]
        options.foreign, options.foreign_rounds = options.foreign and [('2x2', 500.0)], 1
        options.groups_cell_seconds = min(options.groups_cell_seconds, 0.2)
        options.mpi = False
    if everything:
        options.growth = options.unlimited = options.files = options.schedules = True
        options.fit = comma(torus_at_rate)(fit.TORI)
        options.cuts = comma(torus_at_rate)(cuts.TORI)
        options.groups = comma(torus_at_any_rate)(groups.TORI)
        options.cables = comma(torus_at_rate)(CABLE_TORI)
    if options.no_tori:
        options.tori = []
    elif options.tori is None:
        options.tori = comma(torus_at_rate)(TORI) if everything else []
    options.cables = options.cables or []
    options.cable_sizes = sorted(set(options.sizes or comma(arithmetic.parse_size)(CABLE_SIZES)))
    options.sizes = sorted(set(options.sizes or comma(arithmetic.parse_size)(SIZES)))
    return options


def write_whole(path, results):
    """Writes results as JSON. Replaces the file as a whole, so that a reader never finds half of it."""
    write_text(path, json.dumps(results, indent=1) + '\n')


def write_text(path, text):
    partial = path.with_suffix('.partial')
    partial.write_text(text)
    os.replace(partial, path)


class Bench:
    def __init__(self, options, say):
        self.options = options
        self.say = say
        self.begin = time.monotonic()
        kept = {name: value for name, value in vars(options).items()
                if isinstance(value, (int, float, str, list, bool, type(None)))}
        self.results = {'when': time.strftime('%Y-%m-%d %H:%M %Z'), 'commit': machine.commit(),
                        'machine': machine.describe(), 'load_before': machine.load(),
                        'options': kept, 'tori': [], **dict.fromkeys(PARTS), 'failures': [], 'complete': False}

    def save(self, **parts):
        self.results.update(parts)
        self.results['seconds'] = time.monotonic() - self.begin
        write_whole(self.options.out / 'results.json', self.results)

    def measure(self):
        options = self.options
        options.out.mkdir(parents=True, exist_ok=True)
        programs = options.out / 'programs'
        if self.results['load_before'] > 0.5:
            self.say(f'the machine is busy (load {self.results["load_before"]:.1f}): '
                     'times may be too long')
        from . import growth, run, unlimited  # they need Mininet
        for (dims, mbit), cable in [(torus, False) for torus in options.tori] + [
                (torus, True) for torus in options.cables]:
            torus = run.TorusRun(dims, mbit, cable, options, programs, self.say)
            self.results['tori'].append(torus.result)
            try:
                torus.run(self.save)
            except (TorusError, OSError) as e:
                torus.result['failures'].append(str(e))
                self.say(f'{dims}: {e}')
            self.save()
        modules = dict(zip(PARTS, (fit, unlimited, growth, files, schedules, cuts, groups, preloads, foreign, copying, uneven),
                           strict=True))
        for name, module in modules.items():
            if getattr(options, name):
                saving = (lambda so_far, name=name: self.save(**{name: so_far}),) if name in SAVED_OFTEN else ()
                try:
                    self.results[name] = module.run(options, self.say, *saving)
                except (TorusError, OSError) as e:
                    self.results['failures'].append(f'{name}: {e}')
                    self.say(self.results['failures'][-1])
                self.save()
        self.results['complete'] = True
        self.save()


def present(results, options, say):
    """Writes tables and plots."""
    options.out.mkdir(parents=True, exist_ok=True)
    text = page.as_text(results)
    (options.out / 'results.txt').write_text(text)
    print(text, flush=True)
    plots = None
    if options.plots:
        try:
            from . import plots
            plots.draw(results, options.out)
        except ImportError as e:
            say(f'no plots: {e}')
    if options.results:
        options.results.mkdir(parents=True, exist_ok=True)
        drawn = plots.draw(results, options.results, overview_only=True) if plots else ()
        for name, text in page.as_pages(results, drawn):
            write_text(options.results / name, text)
    if options.into:
        # times.png shows all tori: a plot of some of them must not replace it.
        drawn = plots.draw({**results, 'tori': []}, options.into, overview_only=True) if plots else ()
        for name, text in page.as_pages(results, drawn):
            path = options.into / name
            write_text(path, page.with_notes(text, path.read_text() if path.exists() else ''))
    say('results in ' + ' and '.join(str(where) for where in (options.out, options.results, options.into)
                                     if where))


def compare(options, say):
    """Compares two builds, and prints the result. Returns the exit status."""
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / 'against.json'
    for folder in options.against, options.bin:
        for name in 'torusd', 'torusctl':
            find_program(name, folder)
    results = against.run(options, say, lambda results: write_whole(path, results))
    print(json.dumps(results, indent=1) if options.json else against.as_text(results), flush=True)
    say(f'results in {path}')
    return 1 if any(torus['failures'] for torus in results['tori']) else 0


def compare_until_done(options, say):
    try:
        return compare(options, say)
    except UsageError as e:
        print(f'{os.path.basename(COMMAND)}: {e}', file=sys.stderr)
        return 2
    except (KeyboardInterrupt, interrupts.Terminated) as e:
        say(f'interrupted: the network is taken down; results so far in {options.out}')
        return 128 + getattr(e, 'signum', 2)
    finally:
        interrupts.stop_raising()


def main():
    options = parse_arguments()
    begin = time.monotonic()

    def say(text):
        print(f'{time.monotonic() - begin:7.1f} s  {text}', file=sys.stderr, flush=True)

    if options.overview:
        from . import plots
        print(plots.overview(options.overview.read_text(), options.overview.parent))
        return 0
    if options.render:
        present(json.loads(options.render.read_text()), options, say)
        return 0
    obstacle = mininet_obstacle()
    if obstacle and asked(options, 'against', 'tori', 'cables', *PARTS):
        print(f'{os.path.basename(COMMAND)}: {obstacle}', file=sys.stderr)
        return 2
    interrupts.install()
    if options.against:
        return compare_until_done(options, say)
    bench = Bench(options, say)
    status = 0
    try:
        bench.measure()
        if page.failures(bench.results):
            status = 1
    except UsageError as e:
        print(f'{os.path.basename(COMMAND)}: {e}', file=sys.stderr)
        return 2
    except (KeyboardInterrupt, interrupts.Terminated) as e:
        status = 128 + getattr(e, 'signum', 2)
        say('interrupted: everything has been taken down; results so far follow')
        bench.save()
    finally:
        interrupts.stop_raising()
    present(bench.results, options, say)
    return status


if __name__ == '__main__':
    sys.exit(main())
