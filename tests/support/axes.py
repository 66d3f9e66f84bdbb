"""Axes of plots. Needs matplotlib."""

from math import ceil, floor, log

import matplotlib
from matplotlib.ticker import FuncFormatter, Locator, MaxNLocator, NullFormatter

matplotlib.use('Agg')
matplotlib.rcParams['svg.hashsalt'] = 'torusd'  # the same names in SVG files in every run


def plain(value, _position=None):
    """A number that can be read without counting zeros: 1024 is "1 Ki", 0.001 stays."""
    for unit, size in (('Mi', 1 << 20), ('Ki', 1 << 10)):
        if value >= size and value % size == 0:
            return f'{value / size:g} {unit}'
    return f'{value:g}' if 1e-4 <= value < 1e7 else f'{value:.0e}'


class PowerLocator(Locator):
    """Labels powers of the base: all, or every second, third ... if there are many. If there are few, also 2 and
    5 times powers of ten (with base 4, powers of two), or else round numbers."""

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
        parts = (1, 2, 5) if self.base == 10 else [2 ** i for i in range(self.base.bit_length() - 1)]
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


def save(canvas, folder, name, kinds, dpi):
    """Writes a figure into files, and closes it. Equal figures give equal files."""
    from matplotlib import pyplot
    for kind in kinds:
        canvas.savefig(folder / f'{name}.{kind}', dpi=dpi,
                       metadata={'Date': None} if kind == 'svg' else None)
    pyplot.close(canvas)
