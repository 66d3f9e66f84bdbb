"""Tables of one torus: all systems, all sizes."""

from ..arithmetic import digits, format_size, median, milliseconds
from ..systems import MPICH, OPENMPI, OURS, PATIENT, SPINNING
from .table import NONE, Table


def name_of(torus):
    return (f'{torus["dims"]} at {torus["mbit"]:g} Mbit/s'
            + (', links like cables' if torus.get('cable') else ''))


def sizes_of(torus):
    return sorted({cell['size'] for cell in torus['cells']})


def cells_of(torus, family, variant=PATIENT, size=None):
    return [cell for cell in torus['cells']
            if cell['family'] == family and cell['variant'] == variant
            and (size is None or cell['size'] == size)]


def best_cell(torus, family, size, variant=PATIENT, algorithm=None):
    """The cell of a family's fastest algorithm at a size, or of one algorithm; None if there is none."""
    cells = [cell for cell in cells_of(torus, family, variant, size)
             if cell['median'] is not None and algorithm in (None, cell['algorithm'])]
    return min(cells, key=lambda cell: cell['median'], default=None)


def best_mpi(torus, size):
    cells = [best_cell(torus, family, size) for family in (MPICH, OPENMPI)]
    return min((cell for cell in cells if cell), key=lambda cell: cell['median'], default=None)


def time_and_multiple(cell, name=False):
    if cell is None:
        return NONE
    text = milliseconds(cell['median'])
    if cell['bound']:
        multiple = cell['median'] / cell['bound']
        text += f' ({multiple:.2f})' if multiple < 20 else ''
    return text + (f' {cell["algorithm"]}' if name else '')


def summary(torus):
    """torusd, the default and best algorithm of each MPI library, and the bound."""
    has_auto = any(cell['algorithm'] == 'auto' for cell in cells_of(torus, OURS))
    libraries = [family for family in (MPICH, OPENMPI) if cells_of(torus, family)]
    heads = ['block', 'bound'] + ['torusd auto'] * has_auto + ['torusd best']
    for family in libraries:
        heads += [f'{family} default', f'{family} best']
    heads += ['MPI / torusd'] * bool(libraries)
    rows = []
    for size in sizes_of(torus):
        cell = best_cell(torus, OURS, size)
        bound = torus['bound_blocks'] * size * 8e-6 / torus['goodput_mbit']
        row = [format_size(size), milliseconds(bound)]
        if has_auto:
            row.append(time_and_multiple(best_cell(torus, OURS, size, algorithm='auto')))
        row.append(time_and_multiple(cell, True))
        for family in libraries:
            row.append(time_and_multiple(best_cell(torus, family, size, algorithm='default')))
            row.append(time_and_multiple(best_cell(torus, family, size), True))
        if libraries:
            mpi = best_mpi(torus, size)
            row.append(digits(mpi['median'] / cell['median']) if mpi and cell else NONE)
        if any(text != NONE for text in row[2:]):
            rows.append(row)
    title = f'{name_of(torus)}: milliseconds (multiple of the bound)'
    return Table(title, heads, rows,
                 f'The links carried {torus["goodput_mbit"]:.2f} Mbit/s of payload in each direction while all '
                 'were busy; the bound is for that rate.'
                 + (' Last column: the best time of MPI divided by the best time of torusd.' if libraries
                    else ''))


def algorithms(torus, family, variant=PATIENT):
    """The time of every algorithm of a family."""
    sizes = sizes_of(torus)
    names = list(dict.fromkeys(cell['algorithm'] for cell in cells_of(torus, family, variant)))
    what = f'{family} {variant}'.strip()
    table = Table(f'{torus["dims"]}, {what}: milliseconds by algorithm',
                  ['algorithm'] + [format_size(size) for size in sizes])
    for name in names:
        row = [name]
        for size in sizes:
            found = [cell for cell in cells_of(torus, family, variant, size)
                     if cell['algorithm'] == name]
            cell = found[0] if found else {'median': None}
            row.append('failed' if 'failed' in cell else NONE if cell['median'] is None else
                       milliseconds(cell['median']))
        table.rows.append(row)
    return table


def processors(torus):
    """The share of busy processors, and the processor time of an exchange."""
    sizes = sizes_of(torus)
    table = Table(f'{torus["dims"]}: share of the processors that is busy, and processor time of one exchange '
                  'in ms', ['best algorithm of'] + [format_size(size) for size in sizes])
    columns = [(OURS, PATIENT), (MPICH, PATIENT), (OPENMPI, PATIENT), (MPICH, SPINNING),
               (OPENMPI, SPINNING)]
    for family, variant in columns:
        if not cells_of(torus, family, variant):
            continue
        row = [f'{family} {variant}'.strip()]
        for size in sizes:
            cell = best_cell(torus, family, size, variant)
            row.append(NONE if cell is None or cell['busy'] is None else
                       f'{cell["busy"]:.0%} {milliseconds(cell["cpu_seconds"])}')
        table.rows.append(row)
    stolen = [[cell['stolen'] for cell in torus['cells']
               if cell['size'] == size and cell.get('stolen') is not None] for size in sizes]
    if any(map(any, stolen)):
        table.rows.append(['stolen (all systems)'] + [f'{median(each):.0%}' if each else NONE
                                                      for each in stolen])
    table.note = ('For whole calls, including generating and verifying the contents. Stolen: the share of '
                  'processor time that other virtual machines took from this one.')
    return table


def compared(torus, key, title):
    """A table of expected times (cell[key]) divided by measured times; None if nothing was expected."""
    cells = [cell for cell in cells_of(torus, OURS)
             if cell.get(key) is not None and cell['median']]
    if not cells:
        return None
    sizes = sorted({cell['size'] for cell in cells})
    table = Table(f'{torus["dims"]}: {title}',
                  ['algorithm'] + [format_size(size) for size in sizes])
    for name in dict.fromkeys(cell['algorithm'] for cell in cells):
        by_size = {cell['size']: cell for cell in cells if cell['algorithm'] == name}
        table.rows.append([name] + [
            digits(by_size[size][key] / by_size[size]['median'], 2) if size in by_size
            else NONE for size in sizes])
    return table


def predictions(torus):
    return compared(torus, 'predicted', 'predicted time of torusctl divided by measured time')


def simulations(torus):
    return compared(torus, 'simulated', "the simulator's virtual time divided by measured time")


def torus_tables(torus):
    if not torus['cells']:
        return
    yield summary(torus)
    yield algorithms(torus, OURS)
    for family in (MPICH, OPENMPI):
        for variant in (PATIENT, SPINNING):
            if cells_of(torus, family, variant):
                yield algorithms(torus, family, variant)
    yield processors(torus)
    for table in (predictions(torus), simulations(torus)):
        if table:
            yield table
