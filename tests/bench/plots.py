"""Plots of time over block size, one line per system. The only module here that needs matplotlib."""

import re

import matplotlib.pyplot as plt
from support import axes

from . import arithmetic, goals, systems
from .systems import MPICH, OPENMPI, OURS, PATIENT, SPINNING
from .tables.calls import PRELOADS
from .tables.model import MODEL, name_of_fit
from .tables.table import NONE
from .tables.torus import best_cell, cells_of, name_of, sizes_of

COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#56b4e9', '#e69f00', '#000000', '#8c564b',
           '#7f7f7f', '#bcbd22', '#17becf', '#9467bd', '#2ca02c', '#d62728']
MARKERS = 'os^DvP*Xd<>phH'
LEGEND = 0.21  # inches per line


def draw(results, folder, overview_only=False):
    """Writes the plots into the folder. Returns for each plot its file, its caption, and the heading of its
    part ('': all tori). The plot of all tori comes first."""
    tori = [torus for torus in results['tori'] if torus['cells']]
    kinds = ('png',) if overview_only else ('png', 'svg')
    made = []
    if tori:
        made.append(_panels(folder, 'times', kinds, [(torus, _best_curves(torus)) for torus in tori],
                            'Complete exchange: time over block size'))
    if results.get('fit') and results['fit']['tori']:
        made.append(_model(folder, kinds, results['fit']['tori']))
    for torus in (results.get('preloads') or {'tori': ()})['tori']:
        if any(call['size'] for call in torus['calls']):
            made.append(_preloads(folder, kinds, torus))
    for torus in () if overview_only else tori:
        made.append(_panels(folder, f'times-{torus["dims"]}' + ('-cables' if torus.get('cable') else ''),
                            kinds, [(torus, _all_curves(torus))],
                            f'Every system on {name_of(torus)}'))
    return made


def _best_curves(torus):
    for family, variant in ((OURS, PATIENT), (MPICH, PATIENT), (OPENMPI, PATIENT),
                            (MPICH, SPINNING), (OPENMPI, SPINNING)):
        cells = [best_cell(torus, family, size, variant) for size in sizes_of(torus)]
        label = f'{family}, best algorithm'
        yield (f'{family}, spinning' if variant else label), [cell for cell in cells if cell]


def _all_curves(torus):
    names = dict.fromkeys((cell['family'], cell['algorithm'], cell['variant'])
                          for cell in torus['cells'])
    for family, algorithm, variant in names:
        label = algorithm if family == OURS else f'{family} {algorithm}'
        yield label + (f' ({variant})' if variant else ''), [
            cell for cell in cells_of(torus, family, variant)
            if cell['algorithm'] == algorithm and cell['median']]


def _panels(folder, name, kinds, panels, caption):
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    width = 5.4 * columns if columns > 1 else 8
    canvas, drawn = plt.subplots(rows, columns, figsize=(width, 4.2 * rows + 1), squeeze=False)
    labels = {}
    for axis, (torus, curves) in zip(drawn.flat, panels):
        _panel(axis, torus, curves, labels)
    for axis in drawn.flat[len(panels):]:
        axis.set_visible(False)
    per_line = 3 if columns > 1 else 4
    lines = -(-len(labels) // per_line)
    canvas.set_figheight(4.2 * rows + LEGEND * (lines + 1))
    canvas.legend(labels.values(), labels.keys(), loc='lower center', ncol=per_line, frameon=False,
                  fontsize=9)
    canvas.tight_layout(rect=(0, LEGEND * (lines + 0.7) / canvas.get_figheight(), 1, 1))
    axes.save(canvas, folder, name, kinds, 120)
    return {'file': f'{name}.png', 'caption': caption, 'heading': ''}


def _panel(axis, torus, curves, labels):
    sizes = sizes_of(torus)
    bound = [torus['bound_blocks'] * size * 8e-3 / torus['goodput_mbit'] for size in sizes]
    labels['bound'], = axis.plot(sizes, bound, color='#aaaaaa', linewidth=4, zorder=1)
    lowest = []
    for index, (label, cells) in enumerate(curves):
        if not cells:
            continue
        dashed = cells[0]['family'] != OURS
        line, = axis.plot([cell['size'] for cell in cells],
                          [cell['median'] * 1000 for cell in cells], linewidth=1.4, markersize=4,
                          color=COLOURS[index % len(COLOURS)], marker=MARKERS[index % len(MARKERS)],
                          linestyle='--' if dashed else '-')
        labels.setdefault(label, line)
        lowest += [cell['median'] * 1000 for cell in cells]
    axis.set_title(name_of(torus), fontsize=11)
    axis.set_xlabel('block (bytes)')
    axis.set_ylabel('time (ms)')
    axes.logarithmic(axis, 'x', base=4)
    axes.logarithmic(axis, 'y')
    if lowest:
        axis.set_ylim(bottom=min(lowest) / 3)
    axis.grid(True, which='major', linewidth=0.5, alpha=0.5)

# --- the model beside measured times ---

def _model(folder, kinds, tori):
    canvas, drawn = plt.subplots(2, len(tori), figsize=(4.6 * len(tori) + 0.6, 7.4), squeeze=False,
                                 sharex='col', height_ratios=(3, 2))
    names = list(dict.fromkeys(point['algorithm'] for torus in tori for point in torus['points']))
    lines = {}
    for (times, residuals), torus in zip(drawn.T, tori):
        times.set_title(name_of_fit(torus).replace(', ', '\n'), fontsize=11)
        for limit, shade in ((15, '#f0f0f0'), (5, '#dcdcdc')):
            residuals.axhspan(-limit, limit, color=shade, zorder=0)
        for index, name in enumerate(names):
            points = [point for point in torus['points'] if point['algorithm'] == name]
            if not points:
                continue
            look = {'color': COLOURS[index % len(COLOURS)], 'markersize': 4.5,
                    'marker': MARKERS[index % len(MARKERS)]}
            sizes = [point['block_bytes'] for point in points]
            times.plot(sizes, [point['model_seconds'] * 1000 for point in points], linewidth=1,
                       color=look['color'])
            lines[name], = times.plot(sizes, [point['seconds'] * 1000 for point in points],
                                      linestyle='none', **look)
            residuals.plot(sizes, [100 * point['residual'] for point in points], linewidth=0.7,
                           **look)
        axes.logarithmic(times, 'y')
        axes.logarithmic(residuals, 'x', base=4)
        residuals.set_xticks(sorted({point['block_bytes'] for point in torus['points']}))
        residuals.minorticks_off()
        residuals.set_xlabel('block (bytes)')
        for axis in times, residuals:
            axis.grid(True, linewidth=0.5, alpha=0.5)
    drawn[0][0].set_ylabel('time (ms): measured (marks), model (lines)')
    drawn[1][0].set_ylabel('residual (% of the measured time)')
    per_line = 6 if len(tori) > 1 else 4
    count = -(-len(lines) // per_line)
    canvas.legend(lines.values(), lines.keys(), loc='lower center', ncol=per_line, frameon=False,
                  fontsize=9)
    canvas.tight_layout(rect=(0, LEGEND * (count + 0.5) / canvas.get_figheight(), 1, 1))
    axes.save(canvas, folder, 'model', kinds, 120)
    return {'file': 'model.png', 'heading': MODEL,
            'caption': "The papers' model beside measured times, and residuals (grey: 5 % and 15 %)"}


# --- MPI programs with and without the preload ---

CALLERS = {systems.OURS: ('#0072b2', 'o', '-'),
           MPICH: ('#d55e00', 's', '--'), systems.PRELOADED[MPICH]: ('#d55e00', 's', '-'),
           OPENMPI: ('#009e73', '^', '--'), systems.PRELOADED[OPENMPI]: ('#009e73', '^', '-')}


def _preloads(folder, kinds, torus):
    operations = list(dict.fromkeys(call['operation'] for call in torus['calls'] if call['size']))
    columns = min(2, len(operations))
    rows = -(-len(operations) // columns)
    canvas, drawn = plt.subplots(rows, columns, figsize=(5.4 * columns, 3.6 * rows + 0.6), squeeze=False)
    lines = {}
    for axis, operation in zip(drawn.flat, operations):
        calls = [call for call in torus['calls'] if call['operation'] == operation]
        lines['bound'], = axis.plot([call['size'] for call in calls],
                                    [call['bound'] * 1000 for call in calls], color='#aaaaaa', linewidth=4)
        for family, (colour, marker, style) in CALLERS.items():
            points = [(call['size'], found['median'] * 1000) for call in calls
                      if (found := goals.best(call, family)) is not None]
            if points:
                lines[family], = axis.plot(*zip(*points), color=colour, marker=marker, linestyle=style,
                                           linewidth=1.4, markersize=4)
        axis.set_title(operation, fontsize=11)
        axis.set_xlabel('size (bytes)')
        axis.set_ylabel('time (ms)')
        axes.logarithmic(axis, 'x', base=4)
        axes.logarithmic(axis, 'y')
        axis.grid(True, which='major', linewidth=0.5, alpha=0.5)
    for axis in drawn.flat[len(operations):]:
        axis.set_visible(False)
    canvas.legend(lines.values(), lines.keys(), loc='lower center', ncol=3, frameon=False, fontsize=9)
    canvas.tight_layout(rect=(0, 2.7 * LEGEND / canvas.get_figheight(), 1, 1))
    name = f'mpi-{torus["dims"]}'
    axes.save(canvas, folder, name, kinds, 120)
    return {'file': f'{name}.png', 'heading': PRELOADS,
            'caption': f'Calls of MPI programs on {name_of(torus)}, with and without the preload'}


# --- for the README ---

OVERVIEW = {'torusd auto': ('torusd', '#0072b2', 'o', '-'),
            'MPICH best': ("MPICH, best algorithm", '#d55e00', 's', '--'),
            'Open MPI best': ("Open MPI, best algorithm", '#009e73', '^', '--')}


def overview(markdown, folder):
    """Draws overview.png from the first summary table in the page of a torus: torusd's auto, the best algorithm
    of each MPI library, and the bound. Returns the file's path."""
    title, columns = _first_table(markdown)
    sizes = [arithmetic.parse_size(text) for text in columns['block']]
    canvas, axis = plt.subplots(figsize=(7, 3.9))
    axis.plot(sizes, list(map(_leading_number, columns['bound'])), color='#b0b0b0', linewidth=5,
              zorder=1, label='lower bound for the rate of the links')
    for head, (label, colour, marker, style) in OVERVIEW.items():
        points = [(size, _leading_number(text)) for size, text in zip(sizes, columns[head])
                  if text != NONE]
        axis.plot(*zip(*points), label=label, color=colour, marker=marker, linestyle=style,
                  markersize=5, linewidth=1.8)
    axes.logarithmic(axis, 'x', base=4)
    axes.logarithmic(axis, 'y')
    axis.set_xticks(sizes)
    axis.minorticks_off()
    axis.set_ylim(bottom=0.1)
    axis.set_title(f'Complete exchange, {title}', fontsize=11)
    axis.set_xlabel('block for each destination (bytes)')
    axis.set_ylabel('time (ms)')
    axis.grid(True, linewidth=0.5, alpha=0.5)
    axis.legend(frameon=False, fontsize=9)
    canvas.tight_layout()
    axes.save(canvas, folder, 'overview', ('png',), 130)
    return folder / 'overview.png'


def _first_table(markdown):
    """The title ("4x4 at 50 Mbit/s") and columns ({head: texts}) of the first summary table."""
    found = re.search(r'^\*\*(\S+ at \S+ Mbit/s): milliseconds \(multiple of the bound\)\*\*\n\n'
                      r'((?:\|.*\n)+)', markdown, re.MULTILINE)
    if found is None:
        raise ValueError('the page has no summary table')
    rows = [[cell.strip() for cell in line.strip('|').split('|')] for line in found[2].splitlines()]
    return found[1], dict(zip(rows[0], zip(*rows[2:])))


def _leading_number(text):
    """The milliseconds of a cell such as "19.8 (0.90) a3"."""
    return float(text.split()[0])
