"""Figures as PNG and SVG files. The only module here that needs matplotlib."""

import matplotlib.pyplot as plt
from support import axes

# Curves differ by colour (colour-blind safe) and by marker.
STYLES = [('#0072b2', 'o'), ('#d55e00', 's'), ('#009e73', '^'), ('#cc79a7', 'D'), ('#56b4e9', 'v'),
          ('#e69f00', 'P'), ('#000000', 'X')]
LEGEND_ROW = 0.27  # inches, below the panels


def draw(figure, folder):
    axes.save(make(figure), folder, figure.name, ('png', 'svg'), 144)


def make(figure):
    """The matplotlib figure."""
    columns = min(2, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    width = 5.2 * columns if columns > 1 else 7.5
    labels = list(dict.fromkeys(curve.label for panel in figure.panels for curve in panel.curves))
    in_row = min(4, max(1, len(labels)))
    legend = 0.15 + LEGEND_ROW * -(-len(labels) // in_row)
    height = 3.9 * rows + legend
    canvas, panels = plt.subplots(rows, columns, figsize=(width, height), squeeze=False)
    handles = {}
    for axis, panel in zip(panels.flat, figure.panels):
        _panel(axis, figure, panel, labels)
        handles |= {line.get_label(): line for line in axis.get_lines()}
    for axis in panels.flat[len(figure.panels):]:
        axis.set_visible(False)
    canvas.legend([handles[label] for label in labels], labels, loc='lower center', ncol=in_row,
                  frameon=False)
    canvas.tight_layout(rect=(0, legend / height, 1, 1))
    return canvas


def _panel(axis, figure, panel, labels):
    marked = [curve for curve in panel.curves if not curve.bound]
    for curve in panel.curves:
        colour, marker = STYLES[labels.index(curve.label) % len(STYLES)]
        style = {'color': colour, 'marker': marker, 'markersize': 5, 'linewidth': 1.4,
                 'linestyle': '--' if curve.dashed else '-'}
        if curve.bound:
            style = {'color': '#999999', 'linewidth': 3, 'zorder': 1}
        else:  # in turn, so that no marker hides another one
            style['markevery'] = marked.index(curve), len(marked)
        axis.plot(curve.x, curve.y, label=curve.label, **style)
    axis.set_title(panel.title, fontsize=11)
    axis.set_xlabel(figure.x_label)
    axis.set_ylabel(figure.y_label)
    if figure.log_x:
        axes.logarithmic(axis, 'x', base=2)
    if figure.log_y:
        axes.logarithmic(axis, 'y')
    axis.grid(True, which='major', linewidth=0.5, alpha=0.5)
