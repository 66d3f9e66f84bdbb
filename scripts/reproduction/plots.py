"""Figures as PNG and SVG files. The only module here that needs matplotlib."""

from itertools import combinations

import matplotlib.pyplot as plt
from matplotlib.colors import to_rgb
from support import axes

from .drawings import render
from .drawings.sketch import Drawing

# Curves differ by colour (colour-blind safe) and by marker.
STYLES = [('#0072b2', 'o'), ('#d55e00', 's'), ('#009e73', '^'), ('#cc79a7', 'D'), ('#56b4e9', 'v'),
          ('#e69f00', 'P'), ('#000000', 'X')]
LEGEND_ROW, HEADING = 0.27, 0.6  # inches
SAME = 0.02  # values whose relative difference is at most this look the same
COVERED = 3  # a curve that shares this many values with a later one is drawn wide


def draw(figure, folder):
    axes.save(make(figure), folder, figure.name, ('png', 'pdf', 'svg'), 144)


def make(figure):
    """The matplotlib figure."""
    if isinstance(figure, Drawing):
        return render.make(figure)
    columns = min(2, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    width = 5.2 * columns if columns > 1 else 7.5
    labels = list(dict.fromkeys(curve.label for panel in figure.panels for curve in panel.curves))
    in_row = min(4, max(1, len(labels)))
    legend = 0.35 + LEGEND_ROW * -(-len(labels) // in_row)
    height = 3.9 * rows + legend + HEADING
    canvas, panels = plt.subplots(rows, columns, figsize=(width, height), squeeze=False)
    wide, handles = _below(figure), {}
    for axis, panel in zip(panels.flat, figure.panels):
        _panel(axis, figure, panel, labels, wide)
        handles |= {line.get_label(): line for line in axis.get_lines()}
    for axis in panels.flat[len(figure.panels):]:
        axis.set_visible(False)
    canvas.legend([handles[label] for label in labels], labels, loc='lower center', ncol=in_row,
                  frameon=False, bbox_to_anchor=(0.5, 0.2 / height))
    canvas.text(0.5, 1 - 0.2 / height, figure.paper, ha='center', va='center', fontsize=9)
    canvas.text(0.5, 1 - 0.44 / height, figure.title, ha='center', va='center', fontsize=12,
                fontweight='bold')
    canvas.text(0.5, 0.13 / height, _signs(figure), ha='center', va='center', fontsize=9)
    canvas.tight_layout(rect=(0, legend / height, 1, 1 - HEADING / height))
    return canvas


def _signs(figure):
    """Explains solid and dashed lines."""
    curves = [curve for panel in figure.panels for curve in panel.curves if not curve.bound]
    dashed = {curve.dashed for curve in curves}
    return {(False, True): 'solid: from enumeration; dashed: by formula', (True,): 'by formula',
            (False,): 'from enumeration'}.get(tuple(sorted(dashed)), '')


def _meet(a, b):
    """The number of values of two curves that look the same."""
    return sum(abs(u - v) <= SAME * abs(v) for u, v in zip(a.y, b.y))


def _below(figure):
    """The labels of curves that a later curve covers, at least in part, in some panel."""
    return {a.label for panel in figure.panels for a, b in combinations(panel.curves, 2)
            if not a.bound and not b.bound and _meet(a, b) >= COVERED}


def _panel(axis, figure, panel, labels, wide):
    marked = [curve for curve in panel.curves if not curve.bound]
    for curve in panel.curves:
        colour, marker = STYLES[labels.index(curve.label) % len(STYLES)]
        style = {'color': colour, 'marker': marker, 'markersize': 5, 'linewidth': 1.4,
                 'linestyle': '--' if curve.dashed else '-'}
        if curve.label in wide:  # so that it is visible on both sides of the later curve
            style |= {'linewidth': 4.5, 'solid_capstyle': 'butt', 'dash_capstyle': 'butt',
                      'color': (*to_rgb(colour), 0.45), 'markerfacecolor': colour,
                      'markeredgecolor': colour}
        if curve.bound:
            style = {'color': '#999999', 'linewidth': 3, 'zorder': 1}
        else:  # in turn, so that no marker hides another one
            style['markevery'] = marked.index(curve), len(marked)
        axis.plot(curve.x, curve.y, label=curve.label, **style)
    same = [f'{a.label} = {b.label}' for a, b in combinations(marked, 2) if _meet(a, b) == len(a.y)]
    axis.text(0.5, 0.97, '\n'.join(same), transform=axis.transAxes, ha='center', va='top', fontsize=8)
    axis.set_title(panel.title, fontsize=11)
    axis.set_xlabel(figure.x_label)
    axis.set_ylabel(figure.y_label)
    if figure.log_x:
        axes.logarithmic(axis, 'x', base=2)
    if figure.log_y:
        axes.logarithmic(axis, 'y')
    axis.grid(True, which='major', linewidth=0.5, alpha=0.5)
