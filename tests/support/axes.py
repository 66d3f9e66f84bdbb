"""Axes of plots. Needs matplotlib."""

import matplotlib
from matplotlib.ticker import FuncFormatter

matplotlib.use('Agg')


def plain(value, _position=None):
    """1024 as 1 Ki, 0.001 as it is: numbers that are read without counting zeros."""
    for unit, size in (('Mi', 1 << 20), ('Ki', 1 << 10)):
        if value >= size and value % size == 0:
            return f'{value / size:g} {unit}'
    return f'{value:g}' if 1e-4 <= value < 1e7 else f'{value:.0e}'


def logarithmic(axis, which, base=10):
    """Makes an axis ("x" or "y") logarithmic, labelled with plain numbers."""
    getattr(axis, f'set_{which}scale')('log', base=base)
    getattr(axis, f'{which}axis').set_major_formatter(FuncFormatter(plain))


def save(canvas, folder, name, kinds, dpi):
    """Writes a figure into files that are the same for the same figure, and closes it."""
    from matplotlib import pyplot
    for kind in kinds:
        canvas.savefig(folder / f'{name}.{kind}', dpi=dpi,
                       metadata={'Date': None} if kind == 'svg' else None)
    pyplot.close(canvas)
