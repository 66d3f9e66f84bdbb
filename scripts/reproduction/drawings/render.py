"""Draws a sketch.Drawing with Matplotlib."""

from math import hypot

import matplotlib.pyplot as plt
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Circle, Polygon, Rectangle
from matplotlib.ticker import MaxNLocator

from .sketch import FILL, GREY, INK, Arrow, Box, Heat, Line, Node, Text

TITLE, LEGEND, BETWEEN, SIDE = 0.68, 0.34, 0.25, 0.2  # inches
PANEL_TITLE, CAPTION_LINE = 0.34, 0.21
LETTER, TITLE_LETTER = 0.077, 0.107  # inches, approximate widths of a letter in the title of a panel and of a drawing
HEAT_WIDTH, HEAT_HEIGHT = 3.6, 3.4
HEAT_LEFT, HEAT_BOTTOM, BAR = 0.95, 0.55, 0.9
HEAD, HALF_HEAD = 0.085, 0.04  # inches: length and half of the width of an arrow's head
COLOURS = LinearSegmentedColormap.from_list(
    'load', ['#eef5c0', '#9fd8b8', '#41b6c4', '#2273b3', '#1c2f7d', '#0a123f'])


def make(drawing):
    """The Matplotlib figure of a Drawing."""
    cells = [_size(drawing, sketch) for sketch in drawing.sketches]
    columns = min(drawing.columns, len(cells))
    rows = [cells[first:first + columns] for first in range(0, len(cells), columns)]
    widths = [max(row[i][0] for row in rows if i < len(row)) for i in range(columns)]
    heights = [max(cell[1] for cell in row) for row in rows]
    heats = [sketch for sketch in drawing.sketches if isinstance(sketch, Heat)]
    legend = LEGEND if drawing.legend else 0
    width = max(sum(widths) + BETWEEN * (columns - 1) + 2 * SIDE + (BAR if heats else 0),
                TITLE_LETTER * len(drawing.title) + 2 * SIDE, LETTER * len(drawing.paper) + 2 * SIDE,
                _legend_width(drawing))
    height = TITLE + sum(heights) + BETWEEN * (len(rows) - 1) + legend + SIDE
    canvas = plt.figure(figsize=(width, height))
    canvas.text(0.5, 1 - 0.22 / height, drawing.paper, ha='center', va='center', fontsize=9,
                color=INK)
    canvas.text(0.5, 1 - 0.46 / height, drawing.title, ha='center', va='center', fontsize=12,
                fontweight='bold', color=INK)
    most = max((max(map(max, heat.rows)) for heat in heats), default=0)
    left = (width - sum(widths) - BETWEEN * (columns - 1) - (BAR if heats else 0)) / 2
    top = height - TITLE
    for number, (row, row_height) in enumerate(zip(rows, heights)):
        at = left
        for index, column_width in enumerate(widths[:len(row)]):
            sketch = drawing.sketches[number * columns + index]
            place = _Place(canvas, at, top, column_width)
            if isinstance(sketch, Heat):
                shown = _heat(place, sketch, most)
            else:
                _panel(place, drawing, sketch)
            at += column_width + BETWEEN
        top -= row_height + BETWEEN
    if heats:
        _bar(canvas, shown, drawing.unit)
    if drawing.legend:
        _legend(canvas, drawing.legend)
    return canvas


# ---- Measures ------------------------------------------------------------------------------------

class _Place:
    """The place of a panel on the canvas, in inches from the lower left corner of the canvas."""

    def __init__(self, canvas, left, top, width):
        self.canvas, self.left, self.top, self.width = canvas, left, top, width

    def text(self, down, text, **style):
        """Puts a centred text this many inches below the top of the panel."""
        width, height = self.canvas.get_size_inches()
        self.canvas.text((self.left + self.width / 2) / width, (self.top - down) / height, text,
                         ha='center', va='center', color=INK, **style)

    def axes(self, left, down, width, height):
        whole = self.canvas.get_size_inches()
        return self.canvas.add_axes(((self.left + left) / whole[0],
                                     (self.top - down - height) / whole[1],
                                     width / whole[0], height / whole[1]))


def _points(mark, scale):
    if isinstance(mark, Node):
        r = mark.radius
        return [(mark.x - r, mark.y - r), (mark.x + r, mark.y + r)]
    if isinstance(mark, Arrow):
        return _inside(_curve(mark), mark.window) if mark.window else _curve(mark)
    if isinstance(mark, Line):
        return mark.points
    if isinstance(mark, Box):
        return [(mark.x, mark.y), (mark.x + mark.width, mark.y + mark.height)]
    wide = max(map(_letters, mark.text.split('\n'))) * LETTER * mark.size / 10 / scale
    left = mark.x - wide * {'left': 0, 'center': 0.5, 'right': 1}[mark.align]
    return [(left, mark.y), (left + wide, mark.y)]


def _bounds(sketch, scale):
    points = [point for mark in sketch.marks for point in _points(mark, scale)]
    xs, ys = zip(*points)
    m = sketch.margin
    return min(xs) - m, min(ys) - m, max(xs) + m, max(ys) + m


def _size(drawing, sketch):
    """Width and height of a panel in inches, with title and caption."""
    if isinstance(sketch, Heat):
        return HEAT_LEFT + HEAT_WIDTH, PANEL_TITLE + HEAT_HEIGHT + HEAT_BOTTOM
    left, upper, right, lower = _bounds(sketch, drawing.scale)
    lines = sketch.caption.split('\n') if sketch.caption else []
    title = max((LETTER * _letters(line) for line in [sketch.title, *lines]), default=0)
    return (max((right - left) * drawing.scale, title),
            (lower - upper) * drawing.scale + (PANEL_TITLE if sketch.title else 0)
            + CAPTION_LINE * len(lines))


def _letters(text):
    """The approximate width of a text in letters. The markup of formulas has no width."""
    if '$' not in text:
        return len(text)
    return 0.85 * len(text.translate(str.maketrans('', '', '${}^_\\')))


# ---- Panels --------------------------------------------------------------------------------------

def _panel(place, drawing, sketch):
    left, upper, right, lower = _bounds(sketch, drawing.scale)
    width, height = (right - left) * drawing.scale, (lower - upper) * drawing.scale
    down = PANEL_TITLE if sketch.title else 0
    if sketch.title:
        place.text(PANEL_TITLE / 2, sketch.title, fontsize=10)
    axis = place.axes((place.width - width) / 2, down, width, height)
    axis.set_xlim(left, right)
    axis.set_ylim(lower, upper)
    axis.axis('off')
    for mark in sketch.marks:
        DRAW[type(mark)](axis, mark, drawing.scale)
    for index, line in enumerate(sketch.caption.split('\n') if sketch.caption else []):
        place.text(down + height + CAPTION_LINE * (index + 0.5), line, fontsize=9)


def _node(axis, node, _):
    r = node.radius
    shape = (Rectangle((node.x - r, node.y - r), 2 * r, 2 * r) if node.square
             else Circle((node.x, node.y), r))
    shape.set(facecolor=node.fill, edgecolor=node.edge, linewidth=1, zorder=4)
    axis.add_patch(shape)
    if node.label:
        axis.text(node.x, node.y, node.label, ha='center', va='center_baseline', fontsize=node.size,
                  color=INK, zorder=5)


def _curve(arrow):
    """Points on a parabola from the start to the end of an arrow."""
    (x, y), (u, v) = arrow.start, arrow.end
    if not arrow.bend:
        return [(x + (u - x) * i / 40, y + (v - y) * i / 40) for i in range(41)]
    across = (v - y) * arrow.bend, (x - u) * arrow.bend  # to the left: y grows downwards
    return [(x + (u - x) * t + 4 * t * (1 - t) * across[0],
             y + (v - y) * t + 4 * t * (1 - t) * across[1]) for t in (i / 40 for i in range(41))]


def _outside(points, gap):
    """The points whose distance from both ends is at least the gap."""
    ends = points[0], points[-1]
    kept = [(x, y) for x, y in points
            if all(hypot(x - u, y - v) >= gap - 1e-9 for u, v in ends)]
    return kept if len(kept) > 1 else [points[0], points[-1]]


def _inside(points, window):
    left, upper, right, lower = window
    return [(x, y) for x, y in points if left <= x <= right and upper <= y <= lower]


def _arrow(axis, arrow, scale):
    points = _outside(_curve(arrow), arrow.gap)
    if arrow.window:
        points = _inside(points, arrow.window)
    ways = [points]
    if arrow.both:
        ways.append(points[::-1])
    length, half = HEAD / scale, HALF_HEAD / scale
    line = list(points)
    for index, way in enumerate(ways if arrow.head else []):
        (u, v), way = way[-1], way[:-1]
        while len(way) > 1 and hypot(u - way[-1][0], v - way[-1][1]) < length:
            way = way[:-1]
        far = hypot(u - way[-1][0], v - way[-1][1]) or 1
        dx, dy = (u - way[-1][0]) / far, (v - way[-1][1]) / far
        base = u - dx * length, v - dy * length
        axis.add_patch(Polygon([(u, v), (base[0] - dy * half, base[1] + dx * half),
                                (base[0] + dy * half, base[1] - dx * half)],
                               facecolor=arrow.colour, edgecolor='none', zorder=3))
        line = way + [base] if index == 0 else line
    if arrow.both and arrow.head:
        line = _outside(_curve(arrow), arrow.gap + length * 0.9)
    axis.plot(*zip(*line), color=arrow.colour, linewidth=arrow.width, zorder=2,
              linestyle=(0, (3, 2)) if arrow.dashed else '-', solid_capstyle='butt')
    if arrow.label:
        axis.text(*points[len(points) // 2], arrow.label, ha='center', va='center', fontsize=8,
                  color=arrow.colour, zorder=6,
                  bbox={'facecolor': 'white', 'edgecolor': 'none', 'pad': 0.8})


def _line(axis, line, _):
    style = {'linewidth': line.width, 'linestyle': (0, (4, 3)) if line.dashed else '-',
             'zorder': 1 if line.below else 3}
    if line.fill:
        axis.add_patch(Polygon(line.points, facecolor=line.fill, edgecolor=line.colour, **style))
    else:
        axis.plot(*zip(*line.points), color=line.colour, **style)


def _text(axis, text, _):
    axis.text(text.x, text.y, text.text, ha=text.align, va='center', fontsize=text.size,
              color=text.colour, fontweight='bold' if text.bold else 'normal', zorder=6)


def _box(axis, box, _):
    axis.add_patch(Rectangle((box.x, box.y), box.width, box.height, zorder=1.5, linewidth=1,
                             facecolor=box.fill or 'none', edgecolor=box.colour,
                             linestyle=(0, (4, 3)) if box.dashed else '-'))
    if box.label:
        axis.text(box.x + box.width / 2, box.y + box.height / 2, box.label, ha='center',
                  va='center_baseline' if '\n' not in box.label else 'center', fontsize=box.size,
                  color=INK, zorder=5)


DRAW = {Node: _node, Arrow: _arrow, Line: _line, Text: _text, Box: _box}


# ---- Heat maps -----------------------------------------------------------------------------------

def _heat(place, heat, most):
    axis = place.axes(HEAT_LEFT, PANEL_TITLE, HEAT_WIDTH, HEAT_HEIGHT)
    axis.set_title(heat.title, fontsize=10, color=INK)
    steps = len(heat.rows[0])
    cells = [[value if value > 0 else float('nan') for value in row] for row in heat.rows]
    shown = axis.imshow(cells, aspect='auto', cmap=COLOURS, vmin=0, vmax=most,
                        interpolation='nearest',
                        extent=(0.5, steps + 0.5, len(heat.rows) - 0.5, -0.5))
    axis.set_facecolor('white')
    axis.set_xlabel(heat.x_label)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=9, min_n_ticks=1, steps=[1, 2, 5, 10]))
    ends = [first for first, _ in heat.groups[1:]] + [len(heat.rows)]
    axis.set_yticks([(first + end - 1) / 2 for (first, _), end in zip(heat.groups, ends)],
                    [name for _, name in heat.groups], fontsize=9)
    axis.tick_params(axis='y', length=0)
    for first, _ in heat.groups[1:]:
        axis.axhline(first - 0.5, color=INK, linewidth=1)
    return shown


def _bar(canvas, shown, unit):
    width, height = canvas.get_size_inches()
    axis = canvas.add_axes((1 - (BAR - 0.15) / width, 0.22, 0.15 / width, 0.56))
    bar = canvas.colorbar(shown, cax=axis)
    bar.locator = MaxNLocator(integer=True, nbins=6)
    bar.update_ticks()
    bar.set_label(unit)


# ---- Legend --------------------------------------------------------------------------------------

def _legend_width(drawing):
    return sum(0.55 + LETTER * len(text) for _, text in drawing.legend) + 2 * SIDE


def _legend(canvas, entries):
    canvas.legend([_sample(colour) for colour, _ in entries], [text for _, text in entries],
                  loc='lower center', ncol=len(entries), frameon=False, fontsize=9,
                  handlelength=1.4, columnspacing=1.4, bbox_to_anchor=(0.5, 0))


def _sample(colour):
    if not colour.startswith(FILL):
        return plt.Line2D([], [], color=colour, linewidth=2.5)
    return plt.Line2D([], [], linewidth=0, marker='s', markersize=10, markeredgecolor=GREY,
                      markerfacecolor=colour.removeprefix(FILL))
