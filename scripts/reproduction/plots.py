"""Figures as PNG and SVG files, by matplotlib. The only module that needs it."""

import matplotlib
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter

matplotlib.use('Agg')

# Told apart by colour (safe for colour-blind eyes) and by marker.
STYLES = [('#0072b2', 'o'), ('#d55e00', 's'), ('#009e73', '^'), ('#cc79a7', 'D'), ('#56b4e9', 'v'),
          ('#e69f00', 'P')]
LEGEND = 0.4  # inches, below the panels


def draw(figure, folder):
    columns = min(2, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    width = 5.2 * columns if columns > 1 else 7.5
    height = 3.9 * rows + LEGEND
    canvas, axes = plt.subplots(rows, columns, figsize=(width, height), squeeze=False)
    for axis, panel in zip(axes.flat, figure.panels):
        _panel(axis, figure, panel)
    for axis in axes.flat[len(figure.panels):]:
        axis.set_visible(False)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc='lower center', ncol=min(4, len(labels)), frameon=False)
    canvas.tight_layout(rect=(0, LEGEND / height, 1, 1))
    for kind in ('png', 'svg'):
        canvas.savefig(folder / f'{figure.name}.{kind}', dpi=144,
                       metadata={'Date': None} if kind == 'svg' else None)
    plt.close(canvas)


def _panel(axis, figure, panel):
    for (colour, marker), curve in zip(STYLES, panel.curves):
        style = {'color': colour, 'marker': marker, 'markersize': 4, 'linewidth': 1.4,
                 'linestyle': '--' if curve.dashed else '-'}
        if curve.bound:
            style = {'color': '#999999', 'linewidth': 3, 'zorder': 1}
        axis.plot(curve.x, curve.y, label=curve.label, **style)
    axis.set_title(panel.title, fontsize=11)
    axis.set_xlabel(figure.x_label)
    axis.set_ylabel(figure.y_label)
    if figure.log_x:
        axis.set_xscale('log', base=2)
        axis.xaxis.set_major_formatter(FuncFormatter(_plain))
    if figure.log_y:
        axis.set_yscale('log')
        axis.yaxis.set_major_formatter(FuncFormatter(_plain))
    axis.grid(True, which='major', linewidth=0.5, alpha=0.5)


def _plain(value, _position):
    """1024 as 1 Ki, 0.001 as it is: numbers that people read without counting zeros."""
    for unit, size in (('Mi', 1 << 20), ('Ki', 1 << 10)):
        if value >= size and value % size == 0:
            return f'{value / size:g} {unit}'
    return f'{value:g}' if 1e-4 <= value < 1e7 else f'{value:.0e}'
