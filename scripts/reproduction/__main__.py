"""Called by scripts/reproduce."""

import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path

from . import all_port, broadcast, model, one_port, page, products, text
from .torusctl import Failed, Torusctl

PAPERS = (all_port, one_port, broadcast, products)


def main():
    parser = argparse.ArgumentParser(prog='reproduce')
    parser.add_argument('--torusctl', type=Path, required=True)
    parser.add_argument('--out', type=Path, required=True)
    parser.add_argument('--no-plots', action='store_true')
    options = parser.parse_args()
    begin = time.monotonic()
    torusctl = Torusctl(options.torusctl)
    papers = [module.paper(torusctl) for module in PAPERS]
    write(papers, options.out, not options.no_plots)
    unexplained = 0
    for paper in papers:
        rows = sum(len(table.rows) for table in paper.tables if table.quantities)
        differing = sum(len(table.differing) for table in paper.tables)
        print(f'{paper.title}: {rows} rows compared, {differing} differ, '
              f'{len(paper.figures)} figures')
        for table, row in paper.unexplained:
            print(f'  not explained: {table.title}: {" ".join(table.cells(row))}', file=sys.stderr)
        unexplained += len(paper.unexplained)
    print(f'{time.monotonic() - begin:.1f} s; see {options.out / "index.html"}')
    return 1 if unexplained else 0


def write(papers, folder, with_plots):
    folder.mkdir(parents=True, exist_ok=True)
    for paper in papers:
        text.write(paper, folder / f'{paper.name}.txt')
    (folder / 'results.json').write_text(
        json.dumps([dataclasses.asdict(paper) for paper in papers], indent=1) + '\n')
    if with_plots:
        from . import plots  # needs matplotlib, which the tables do not
        for paper in papers:
            for figure in paper.figures:
                plots.draw(figure, folder)
    page.write(papers, folder, model.PARAGON, with_plots)


try:
    sys.exit(main())
except Failed as failure:
    sys.exit(f'reproduce: {failure}')
