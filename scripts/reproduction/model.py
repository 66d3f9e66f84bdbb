"""What the papers' figures have in common: times by the cost model, over the block size."""

from math import ceil, inf

from .document import Curve, Panel, Table

# Measured on the Intel Paragon, microseconds: Liu et al., All-Port Tori, section 5.
PARAGON = {'ts': 75, 'tw': 0.011, 'rho': 0.014}
SIZES = [1 << power for power in range(15)]
SQUARES = [16, 32, 64, 128]


def time_panels(torusctl, algorithms, rho):
    """A panel for each square torus, a curve for each (label, algorithm): milliseconds over the
    bytes of a block."""
    panels = []
    for n in SQUARES:
        curves = []
        for label, algorithm in algorithms:
            _, times = torusctl.predict(f'{n}x{n}', algorithm, *parameters(rho),
                                        '--block-size', ','.join(map(str, SIZES)))
            curves.append(Curve(label, [row['block_size'] for row in times],
                                [row['time_us'] / 1000 for row in times],
                                dashed=times[0]['from'] == 'formula'))
        panels.append(Panel(f'{n}×{n} torus', curves))
    return panels


def parameters(rho=PARAGON['rho']):
    return ['--ts', PARAGON['ts'], '--tw', PARAGON['tw'], '--rho', rho]


def faster_from(ours, other, rho):
    """The bytes of a block from which on `ours` takes less time; both as predict's counts."""
    startups = (ours['startups'] - other['startups']) * PARAGON['ts']
    per_byte = ((other['transmission'] - ours['transmission']) * PARAGON['tw']
                + (other['rearranged'] - ours['rearranged']) * rho)
    if per_byte <= 0:
        return inf
    return max(0, startups / per_byte)


def faster_table(torusctl, name, title, ours, compared, rho, reasons):
    """From which block size on `ours` is faster; the papers say always. `compared` and `reasons` are
    by algorithm: the label, and why it is not always so."""
    table = Table(name, title, ('torus', 'compared with'), ('faster from (bytes)',),
                  'The smallest block with which the paper\'s algorithm takes less time, by the '
                  'formulas and the parameters of its own comparison.')
    for n in SQUARES:
        counts, _ = torusctl.predict(f'{n}x{n}', ours)
        for algorithm, label in compared.items():
            other, _ = torusctl.predict(f'{n}x{n}', algorithm)
            size = faster_from(counts, other, rho)
            here = 'any' if size <= 1 else 'never' if size == inf else str(ceil(size))
            table.add(f'{n}x{n}', label, paper=('any',), here=(here,),
                      why=reasons.get(algorithm, ''))
    return table
