"""Figures as PNG and SVG files. The only module here that needs matplotlib."""

import matplotlib.pyplot as plt
from support import axes

# Told apart by colour (safe for colour-blind eyes) and by marker.
STYLES = [('#0072b2', 'o'), ('#d55e00', 's'), ('#009e73', '^'), ('#cc79a7', 'D'), ('#56b4e9', 'v'),
          ('#e69f00', 'P')]
LEGEND = 0.4  # inches, below the panels


def draw(figure, folder):
    columns = min(2, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    width = 5.2 * columns if columns > 1 else 7.5
    height = 3.9 * rows + LEGEND
    canvas, panels = plt.subplots(rows, columns, figsize=(width, height), squeeze=False)
    for axis, panel in zip(panels.flat, figure.panels):
        _panel(axis, figure, panel)
    for axis in panels.flat[len(figure.panels):]:
        axis.set_visible(False)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc='lower center', ncol=min(4, len(labels)), frameon=False)
    canvas.tight_layout(rect=(0, LEGEND / height, 1, 1))
    axes.save(canvas, folder, figure.name, ('png', 'svg'), 144)


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
        axes.logarithmic(axis, 'x', base=2)
    if figure.log_y:
        axes.logarithmic(axis, 'y')
    axis.grid(True, which='major', linewidth=0.5, alpha=0.5)

