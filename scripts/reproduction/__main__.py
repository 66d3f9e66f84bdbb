"""Called by scripts/reproduce."""

import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path

from torus_net import counted

from . import all_port, banyan, broadcast, cccube, drawings, items, model, one_port, page, products, statements, text
from .document import ORIGINS, parts
from .torusctl import Torusctl

PAPERS = {'all-port': all_port, 'broadcast': broadcast, 'banyan': banyan, 'cccube': cccube,
          'one-port': one_port, 'products': products}


def main():
    parser = argparse.ArgumentParser(prog='reproduce')
    parser.add_argument('--torusctl', type=Path, required=True, help='the program whose routes are followed')
    parser.add_argument('--out', type=Path, required=True, help='folder to write to')
    parser.add_argument('--paper', choices=PAPERS, action='append', help='only this paper (repeatable)')
    parser.add_argument('--no-plots', action='store_true', help='write tables only')
    options = parser.parse_args()
    begin = time.monotonic()
    torusctl = Torusctl(options.torusctl)
    papers = [made(name, torusctl, not options.no_plots) for name in dict.fromkeys(options.paper or PAPERS)]
    write(papers, options.out, not options.no_plots)
    for paper in papers:
        print(f'{paper.title}: {summary(paper)}')
        for line in paper.unexplained:
            print(f'  {line}', file=sys.stderr)
    print(f'{time.monotonic() - begin:.1f} s; see {options.out / "index.html"}')
    lost = items.lost(papers) if len(papers) == len(PAPERS) and not options.no_plots else []
    for line in lost:
        print(f'list of items: {line}', file=sys.stderr)
    return 1 if lost or any(paper.unexplained for paper in papers) else 0


def made(name, torusctl, with_plots):
    """The paper of this name, with all of its parts, or without the drawings, which take most of the time."""
    paper = PAPERS[name].paper(torusctl)
    paper.parts += parts(torusctl, statements.MAKERS.get(name, ()))
    return drawings.add(paper, torusctl) if with_plots else paper


def summary(paper):
    rows = paper.compared
    counts = [f'{sum(row.by == origin for row in rows)} by {origin}' for origin in ORIGINS]
    known = sum(row.explained and not row.equal for row in rows)
    return (f'{counted(len(rows), "row")} compared ({", ".join(counts)}): '
            f'{counted(known, "differs", "differ")} for a known reason, '
            f'{counted(len(paper.unexplained), "is", "are")} wrong or missing; '
            f'{counted(len(paper.figures), "figure")}')


def write(papers, folder, with_plots):
    folder.mkdir(parents=True, exist_ok=True)
    for paper in papers:
        text.write(paper, folder / f'{paper.name}.txt')
    (folder / 'results.json').write_text(
        json.dumps([drawings.without_marks(dataclasses.asdict(paper)) for paper in papers], indent=1) + '\n')
    (folder / 'items.txt').write_text('\n'.join(items.lines()), encoding='utf-8')
    if with_plots:
        from . import plots  # imported here because the tables do not need matplotlib
        for paper in papers:
            for figure in paper.figures:
                plots.draw(figure, folder)
    page.write(papers, folder, model.PARAGON, with_plots)


sys.exit(main())
