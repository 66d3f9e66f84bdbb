"""Writes the completions of torusctl and torusd for bash and zsh into a folder."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / 'scripts'))
sys.dont_write_bytecode = True

from completion import bash, model, zsh  # noqa: E402


def tables(program, emulator):
    return json.loads(subprocess.run([*emulator, program], stdout=subprocess.PIPE, check=True).stdout)


def main():
    parser = argparse.ArgumentParser(prog='completion', description=__doc__)
    parser.add_argument('--torusctl-tables', required=True, help='a torusctl that prints its tables')
    parser.add_argument('--torusd-tables', required=True, help='a torusd that prints its tables')
    parser.add_argument('--emulator', action='append', default=[], help='runs these programs (default: none)')
    parser.add_argument('out', type=Path, metavar='FOLDER', help='folder for bash and zsh')
    options = parser.parse_args()
    torusctl = tables(options.torusctl_tables, options.emulator)
    programs = (model.torusctl(torusctl), model.torusrun(torusctl),
                model.torusd(tables(options.torusd_tables, options.emulator)))
    for shell, writer, prefix in ('bash', bash, ''), ('zsh', zsh, '_'):
        folder = options.out / shell
        folder.mkdir(parents=True, exist_ok=True)
        for program in programs:
            (folder / f'{prefix}{program.name}').write_text(writer.write(program))


main()
