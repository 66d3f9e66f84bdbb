"""Writes the man pages into a folder. Each page joins the sections of a file of prose, NAME.SECTION.scd.in, with
sections made from tables of options, parsers of options and headers."""

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(CHECKOUT / 'scripts'), str(CHECKOUT / 'topo')]
sys.dont_write_bytecode = True

from manual import headers, launchers, programs  # noqa: E402
from manual.page import PageError, page, sections  # noqa: E402
from torus_net import launch, vm_launch  # noqa: E402

HEADERS = CHECKOUT / 'client' / 'include' / 'torus'
PROSE = [CHECKOUT / 'client' / 'doc' / 'man', CHECKOUT / 'daemon' / 'doc' / 'man', CHECKOUT / 'topo' / 'doc' / 'man']


def all_pages(torusctl, torusd):
    """{(name, number): (summary, sections)}."""
    pages = {(f'torusctl-{row["name"]}', 1): programs.command(torusctl, row) for row in torusctl['commands']}
    return pages | {
        ('torusctl', 1): programs.overview(torusctl),
        ('torusd', 8): ('daemon of a node of a torus of directly cabled machines', programs.daemon(torusd)),
        ('torus-routed', 8): ('IP routes between the hosts of a torus', programs.routed(torusd)),
        ('torusd-discover', 8): ('finds the hosts and cables of a torus', programs.discover(torusd)),
        ('torusd-setup', 8): ('applies setups that reach a host over its cables', programs.setup(torusd)),
        ('torusd.ini', 5): ('settings of torusd', programs.settings(torusd)),
        ('torus.py', 1): launchers.launcher(launch.make_parser(), 'topo/torus.py'),
        ('torus-emulator', 1): launchers.launcher(launch.make_parser(), 'torus-emulator'),
        ('vm-up', 1): launchers.launcher(vm_launch.make_parser(), 'scripts/vm-up'),
        ('libtorus', 3): headers.library(HEADERS),
    }


def read_prose(folders):
    """{(name, number): {heading: text}}."""
    found = {}
    for path in sorted(path for folder in folders for path in folder.glob('*.scd.in')):
        name, number = path.name.removesuffix('.scd.in').rsplit('.', 1)
        found[name, int(number)] = sections(path.read_text(), path.name)
    return found


def render(scdoc, text, name):
    """The page in man's format, by scdoc. Names of functions and options do not break at the ends of lines, and
    options have plain hyphens, which can be pasted into a shell."""
    done = subprocess.run([scdoc], input=text, capture_output=True, text=True)
    if done.returncode != 0 or done.stderr:
        raise PageError(f'{name}: scdoc says: {done.stderr.strip()}')
    result = re.sub(r'^(\.TH .*\n)', r'\1.nh\n', done.stdout, count=1, flags=re.M)
    return re.sub(r'^[^.\n].*', lambda line: re.sub(r"(\\h'[^']*')|-", lambda part: part[1] or r'\-', line[0]), result,
                  flags=re.M)


def write(out, scdoc, version, made, written):
    for name, number in sorted(made.keys() ^ written.keys()):
        raise PageError(f'{name}.{number}.scd.in: ' + ('no such file; every page has one' if (name, number) in made
                                                       else 'there is no such page'))
    shutil.rmtree(out, ignore_errors=True)
    for (name, number), (summary, own) in made.items():
        text = page(name, number, version, summary, own, written[name, number])
        folder = out / f'man{number}'
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f'{name}.{number}').write_text(render(scdoc, text, f'{name}.{number}'))
    (out / 'man1' / 'torusrun.1').write_text('.so man1/torusctl-run.1\n')
    for function in headers.functions(HEADERS):
        (out / 'man3' / f'{function}.3').write_text('.so man3/libtorus.3\n')


def tables(program, emulator):
    return json.loads(subprocess.run([*emulator, program], stdout=subprocess.PIPE, check=True).stdout)


def main():
    parser = argparse.ArgumentParser(prog='manual', description=__doc__)
    parser.add_argument('--torusctl-tables', required=True, help='a torusctl that prints its tables')
    parser.add_argument('--torusd-tables', required=True, help='a torusd that prints its tables')
    parser.add_argument('--emulator', action='append', default=[], help='runs these programs (default: none)')
    parser.add_argument('--scdoc', default='scdoc', help='the program')
    parser.add_argument('--version', required=True, help='version of this project')
    parser.add_argument('--prose', type=Path, action='append',
                        help='a folder with prose (default: the folders of the project)')
    parser.add_argument('out', type=Path, metavar='FOLDER', help='folder for man1, man3, man5 and man8')
    options = parser.parse_args()
    try:
        write(options.out, options.scdoc, options.version,
              all_pages(tables(options.torusctl_tables, options.emulator),
                        tables(options.torusd_tables, options.emulator)),
              read_prose(options.prose or PROSE))
    except PageError as error:
        sys.exit(f'manual: {error}')


main()
