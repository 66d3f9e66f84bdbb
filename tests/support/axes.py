"""Axes of plots. Needs matplotlib."""

from itertools import combinations
from math import ceil, floor, log

import matplotlib
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, Locator, MaxNLocator, NullFormatter

matplotlib.use('Agg')
matplotlib.rcParams['svg.hashsalt'] = 'torusd'  # the same names in SVG files in every run
NO_DATE = {'svg': {'Date': None}, 'pdf': {'CreationDate': None}}


def plain(value, _position=None):
    """A number that can be read without counting zeros: 1024 is "1 Ki", 0.001 stays."""
    for unit, size in (('Mi', 1 << 20), ('Ki', 1 << 10)):
        if value >= size and value % size == 0:
            return f'{value / size:g} {unit}'
    if 1e4 <= value < 1e7 and value == int(value):
        return f'{value:,.0f}'.replace(',', ' ')
    return f'{value:g}' if 1e-4 <= value < 1e7 else f'{value:.0e}'


class PowerLocator(Locator):
    """Labels powers of the base: all, or every second, third ... if there are many. If there are few, also 2 and
    5 times powers of ten, or 1.5, 2, 3, 5 and 7 times (with base 4, powers of two), or else round numbers."""

    FEWEST, MOST = 3, 8

    def __init__(self, base):
        self.base = base

    def __call__(self):
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin, vmax):
        low, high = log(vmin, self.base), log(vmax, self.base)
        first, last = ceil(low - 1e-9), floor(high + 1e-9)
        if last - first + 1 >= self.FEWEST:
            stride = max(1, ceil((last - first + 1) / self.MOST))
            first = -(-first // stride) * stride  # so that 1 has a label
            return [self.base ** power for power in range(first, last + 1, stride)]
        powers_of_two = [2 ** i for i in range(self.base.bit_length() - 1)]
        for parts in ((1, 2, 5), (1, 1.5, 2, 3, 5, 7)) if self.base == 10 else (powers_of_two,):
            finer = [part * self.base ** power for power in range(floor(low), last + 1)
                     for part in parts]
            within = [tick for tick in finer if vmin <= tick <= vmax]
            if len(within) >= self.FEWEST:
                return within
        return MaxNLocator(nbins=6, min_n_ticks=4).tick_values(vmin, vmax)


def logarithmic(axis, which, base=10):
    """Makes an axis ("x" or "y") logarithmic, with at least three ticks labelled with plain
    numbers."""
    getattr(axis, f'set_{which}scale')('log', base=base)
    ticks = getattr(axis, f'{which}axis')
    ticks.set_major_locator(PowerLocator(base))
    ticks.set_major_formatter(FuncFormatter(plain))
    ticks.set_minor_formatter(NullFormatter())


def labelled(axis, which):
    """The values of an axis that have a visible label, after drawing."""
    low, high = sorted(getattr(axis, f'get_{which}lim')())
    return [tick.get_loc() for tick in getattr(axis, f'{which}axis').get_major_ticks()
            if low <= tick.get_loc() <= high and tick.label1.get_text()]


def _ticks_outside(canvas):
    """The ids of tick labels beyond the ends of an axis. Matplotlib does not draw them."""
    hidden = set()
    for axis in canvas.axes:
        for which in (axis.xaxis, axis.yaxis):
            low, high = sorted(which.get_view_interval())
            hidden |= {id(label) for tick in which.get_major_ticks() for label in (tick.label1, tick.label2)
                       if not low - 1e-9 <= tick.get_loc() <= high + 1e-9}
    return hidden


def _overlap(a, b):
    """Width and height in pixels of the overlap of two boxes."""
    return (min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0))


def unreadable(canvas):
    """Texts that overlap another text or are cut off at the edge of the picture."""
    canvas.canvas.draw()
    renderer, hidden = canvas.canvas.get_renderer(), _ticks_outside(canvas)
    seen = [(text.get_text(), text.get_window_extent(renderer)) for text in canvas.findobj(Text)
            if text.get_visible() and text.get_text().strip() and id(text) not in hidden]
    width, height = canvas.canvas.get_width_height()
    for text, box in seen:
        if box.x0 < 0 or box.x1 > width or box.y0 < 0 or box.y1 > height:
            yield text
    for (text, box), (other, its) in combinations(seen, 2):
        if min(_overlap(box, its)) > 1:
            yield text, other


def save(canvas, folder, name, kinds, dpi):
    """Writes a figure into files, and closes it. Equal figures give equal files."""
    from matplotlib import pyplot
    for kind in kinds:
        canvas.savefig(folder / f'{name}.{kind}', dpi=dpi, metadata=NO_DATE.get(kind))
    pyplot.close(canvas)
