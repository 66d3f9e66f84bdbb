"""Tables of links of different rates."""

from ..arithmetic import digits, format_size, median, milliseconds
from ..systems import OURS
from .table import NONE, Table

UNEVEN = 'Links of different rates'


def _name(row):
    at = f'{row["dims"]} at {row["mbit"]:g}'
    return f'{at}, {row["slow"]} at {row["part"]:g}' if row['slow'] else at


def _ratio(seconds, bound):
    return f'{seconds / bound:.3f}' if seconds else NONE


def _system(row, family):
    """The median of the system of this family, and its algorithm."""
    for name, cell in row['systems'].items():
        if name.startswith(family) and 'median' in cell:
            return cell['median'], name[len(family):].strip()
    return None, ''


def uneven_tables(result):
    rows = [row for row in result['networks'] if _system(row, OURS)[0]]
    if rows:
        yield _compared(rows)
        yield _goals(rows)
    if result['slowed']:
        yield _slowed(result['slowed'])


def _compared(rows):
    table = Table('Exchanges: times as multiples of the bound for equal links',
                  ['network, Mbit/s', 'optimum', 'routes for equal links', 'torusd', 'MPICH', 'Open MPI',
                   'MPICH / torusd', 'Open MPI / torusd'])
    for row in rows:
        uniform, ours = row['uniform_seconds'], _system(row, OURS)[0]
        libraries = [_system(row, family) for family in ('MPICH', 'Open MPI')]
        table.rows.append([
            _name(row), f'{row["least"] / row["uniform"]:.3f}', digits(row['shortest'] / row['uniform']),
            f'{ours / uniform:.3f}',
            *(f'{seconds / uniform:.2f} {algorithm}' if seconds else NONE for seconds, algorithm in libraries),
            *(f'{seconds / ours:.2f}' if seconds else NONE for seconds, _ in libraries)])
    table.note = ('Optimum: the linear program of `tests/bench/flow.py`, with loads divided by rates. Routes for equal '
                  'links: the busiest channel of `torusctl plan --algorithm stream --rate` (of shortest paths, in a graph). '
                  'Times are medians of turns, at the goodput of equal links. MPI: the fastest algorithm of each library, '
                  'over static routes.')
    return table


def _goals(rows):
    table = Table('Times over their bounds',
                  ['network, Mbit/s', 'goodput, Mbit/s', 'load of the machine', 'block', 'exchange, ms', 'over optimum',
                   'rates observed', 'known after, s', 'mistaken', 'copy', 'over cut', 'broadcast', 'over cut'])
    for row in rows:
        ours, observed = _system(row, OURS)[0], row.get('observed')
        spread = []
        for what in 'copy', 'broadcast':
            cell = row.get(what, {})
            spread += [format_size(cell['size']), _ratio(cell.get('median'), cell['bound'])] if cell else [NONE, NONE]
        table.rows.append([
            _name(row), f'{row["goodput_mbit"]:.2f}', f'{row["load"]:.0f}', format_size(row['block']), milliseconds(ours),
            _ratio(ours, row['bound']), _ratio(observed and observed['median'], row['bound']),
            *((f'{observed["known_after"]:.0f}', str(observed['mistaken'])) if observed else (NONE, NONE)), *spread])
    table.note = ('Goodput: payload in each direction while all links are equal and busy. Exchange: `stream` back to back, '
                  'with barriers; the nodes are told the rates of their ports, or observe them (rates observed). Mistaken: '
                  'directions at full rate that some node took for slow at any time. Copy: the whole command; a '
                  'broadcast: back to back. The least cut parts node 0 from another node.')
    return table


def _slowed(rows):
    table = Table('A link becomes slow during an exchange',
                  ['network, Mbit/s', 'load of the machine', 'block', 'rounds', 'on equal links, s', 'slow after, s', 'whole, s',
                   'optimum of what was left, s', 'over optimum', 'new plans'])
    for row in rows:
        turns = row['turns']
        if turns:
            middle = {key: median([turn[key] for turn in turns]) for key in turns[0] if key != 'planned'}
            table.rows.append([
                _name(row), f'{row["load"]:.0f}', format_size(row['block']), str(row['rounds']), f'{row["whole"]:.1f}',
                f'{middle["after"]:.1f}', f'{middle["seconds"]:.1f}', f'{middle["optimum"]:.1f}', f'{middle["ratio"]:.3f}',
                ', '.join(str(turn['new_plans']) for turn in turns)])
    table.note = ('Nobody tells the nodes: they observe it, and the exchange continues on a new plan. Every byte is '
                  'verified. Medians of turns.')
    return table
