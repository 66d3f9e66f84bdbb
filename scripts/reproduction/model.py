"""What the papers' figures have in common: times by the cost model, over the block size."""

from math import ceil, inf

from .document import DEDUCTION, Curve, Failed, Panel, Table

# Measured on the Intel Paragon, microseconds: Liu et al., All-Port Tori, section 5.
PARAGON = {'ts': 75, 'tw': 0.011, 'rho': 0.014}
SIZES = [1 << power for power in range(15)]
SQUARES = [16, 32, 64, 128]


def counted(torusctl, dims, algorithm, by):
    """(startups, transmission) by the origin that the row names."""
    counts, _ = torusctl.predict(dims, algorithm)
    if counts['from'] != by:
        raise Failed(f'torusctl predict has {algorithm} on {dims} by {counts["from"]}, not by {by}')
    return counts['startups'], counts['transmission']


def time_panels(torusctl, figure, algorithms, rho):
    """The figure with a panel for each square torus, a curve for each (label, algorithm):
    milliseconds over the bytes of a block."""
    for n in SQUARES:
        panel = Panel(f'{n}×{n} torus', [])
        figure.panels.append(panel)
        for label, algorithm in algorithms:
            with figure.curve(panel, label):
                _, times = torusctl.predict(f'{n}x{n}', algorithm, *parameters(rho),
                                            '--block-size', ','.join(map(str, SIZES)))
                panel.curves.append(Curve(label, [row['block_size'] for row in times],
                                          [row['time_us'] / 1000 for row in times],
                                          dashed=times[0]['from'] == 'formula'))
    return figure


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


def faster_table(torusctl, name, title, ours, compared, rho, known, why):
    """From which block size on `ours` is faster; the papers say always. `compared` has a label for
    each algorithm; `known` what is found instead, and `why`, by (torus, algorithm)."""
    table = Table(name, title, ('torus', 'compared with'), ('faster from (bytes)',),
                  'The smallest block with which the paper\'s algorithm takes less time: its counts '
                  'are enumerated, those of the others come from their formulas, the parameters are '
                  'the paper\'s.')
    for n in SQUARES:
        for algorithm, label in compared.items():
            differs = known.get((f'{n}x{n}', algorithm))
            with table.row(f'{n}x{n}', label, paper=('any',), by=DEDUCTION,
                           known=differs and (differs,), why=differs and why or '') as row:
                counts, _ = torusctl.predict(f'{n}x{n}', ours)
                other, _ = torusctl.predict(f'{n}x{n}', algorithm)
                size = faster_from(counts, other, rho)
                row.here = ('any' if size <= 1 else 'never' if size == inf else str(ceil(size)),)
    return table
