"""Shared by the papers' figures: times by the cost model over the block size."""

from math import ceil

from .document import DEDUCTION, Curve, Failed, Panel, Table

# Measured on the Intel Paragon, microseconds: Liu et al., All-Port Tori, section 5.
PARAGON = {'ts': 75, 'tw': 0.011, 'rho': 0.014}
SIZES = [1 << power for power in range(15)]
SQUARES = [16, 32, 64, 128]


def counted(torusctl, dims, algorithm, by):
    """(startups, transmission) from the origin that the row names."""
    counts, _ = torusctl.predict(dims, algorithm)
    if counts['from'] != by:
        raise Failed(f'torusctl predict takes {algorithm} on {dims} from {counts["from"]}, not from {by}')
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


# The direct exchange without contention that both papers on all-to-all personalized communication cite.
# torusctl predict enumerates it up to 32x32.
DIRECT = 'tseng-gupta'


def faster_at(ours, other, rho):
    """The block sizes, in words, with which `ours` takes less time. Both are counts of torusctl predict."""
    startups = (ours['startups'] - other['startups']) * PARAGON['ts']
    per_byte = ((other['transmission'] - ours['transmission']) * PARAGON['tw']
                + (other['rearranged'] - ours['rearranged']) * rho)
    if per_byte > 0:
        size = ceil(startups / per_byte)
        return 'any' if size <= 1 else f'from {size}'
    if startups >= 0:
        return 'never'
    return 'any' if per_byte == 0 else f'up to {ceil(startups / per_byte) - 1}'


def faster_table(torusctl, name, title, ours, compared, rho, known):
    """The block sizes with which `ours` is faster; the papers say all. `compared` has a label for each
    algorithm; `known`, by algorithm and torus, has what is found instead, and why."""
    table = Table(name, title, ('torus', 'compared with'), ('faster with blocks of (bytes)',),
                  'The block sizes with which the paper\'s algorithm takes less time: its counts are '
                  'enumerated, as are those of suh-shin; those of the others come from their formulas, '
                  'the parameters are the paper\'s. The direct exchange is not among those that the paper compares; it has as '
                  'many startups as blocks, and rearranges nothing. Up to 32×32 it is enumerated too.')
    for n in SQUARES:
        for algorithm, label in compared.items():
            sizes, why = known.get(algorithm, ({}, ''))
            differs = sizes.get(n)
            with table.row(f'{n}x{n}', label, paper=('any',), by=DEDUCTION,
                           known=differs and (differs,), why=differs and why or '') as row:
                counts, _ = torusctl.predict(f'{n}x{n}', ours)
                other, _ = torusctl.predict(f'{n}x{n}', algorithm)
                row.here = (faster_at(counts, other, rho),)
    return table
