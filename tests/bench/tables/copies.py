"""Tables of copies of trees, by torusctl copy and by other means."""

from ..arithmetic import digits, format_size
from .table import NONE, Table

COPIES = 'Copies of trees'
OURS = 'torusctl copy'


def copy_tables(result):
    for torus in result['tori']:
        at = torus['dims'] + (' with unlimited links' if torus['mbit'] is None else f' at {torus["mbit"]:g} Mbit/s')
        if torus['rows']:
            yield _times(torus, at)
            yield _compared(torus, at)
            yield _processors(torus, at)


def _ways(torus):
    return list(dict.fromkeys(way['name'] for row in torus['rows'] for way in row['ways']))


def _found(row, name):
    return next((way for way in row['ways'] if way['name'] == name), None)


def name_of_row(row):
    what = {'file': f'a file of {format_size(row["size"])}',
            'environment': f'{row["entries"]} entries of an environment, {row["size"] / 1e6:.0f} MB',
            'cache': f'{row["entries"]} entries of a cache with links, {row["size"] / 1e6:.0f} MB'}[row['kind']]
    return f'{what}, {row["change"]}' + (', cold' if row['cold'] else '')


def _times(torus, at):
    limited = torus['mbit'] is not None
    table = Table(f'{at}: seconds until all nodes have everything' + (' (multiple of the bound)' if limited else ''),
                  ['what'] + ['bound'] * limited + _ways(torus))
    for row in torus['rows']:
        cells = [digits(row['bound'])] if limited else []
        for name in _ways(torus):
            cells.append(_time(row, _found(row, name)))
        table.rows.append([name_of_row(row), *cells])
    table.note = _note(torus)
    return table


def _time(row, way):
    if way is None:
        return NONE
    if 'failed' in way:
        return 'failed'
    if not way.get('median_seconds'):
        return NONE  # the run was interrupted before
    text = digits(way['median_seconds'])
    return text + (f' ({way["median_seconds"] / row["bound"]:.2f})' if row['bound'] else '')


def _note(torus):
    losing = dict.fromkeys((way['name'], way['loses']) for row in torus['rows'] for way in row['ways'] if way['loses'])
    text = ('Medians of at most 3 copies from node 0. Cold: the source is read from a disk, and the time ends when all '
            'copies are on it; otherwise all is in memory.')
    if torus['mbit'] is not None:
        text += (f' Bound: the bytes that differ, divided by what the least connected node takes in by all of its links '
                 f'at {torus["goodput_mbit"]:.2f} Mbit/s of payload each.')
    if torus['multicast'] is False:
        text += (' udpcast: its multicast reaches no node over the routed addresses, so it sends to one receiver at a '
                 'time.')
    return text + ''.join(f' {name} {loses}.' for name, loses in losing)


def _compared(torus, at):
    """How many times as long the others take."""
    names = [name for name in _ways(torus) if name != OURS]
    table = Table(f'{at}: time divided by that of torusctl copy', ['what', *names])
    for row in torus['rows']:
        own = _found(row, OURS)
        cells = []
        for name in names:
            way = _found(row, name)
            known = all(one and one.get('median_seconds') and 'failed' not in one for one in (own, way))
            cells.append(digits(way['median_seconds'] / own['median_seconds']) if known else NONE)
        table.rows.append([name_of_row(row), *cells])
    return table


def _processors(torus, at):
    table = Table(f'{at}: seconds of processor time of a copy', ['what', *_ways(torus)])
    for row in torus['rows']:
        cells = []
        for name in _ways(torus):
            way = _found(row, name)
            cells.append(digits(way['median_processor']) if way and way.get('median_processor') else NONE)
        table.rows.append([name_of_row(row), *cells])
    table.note = ('This is the time of the programs on all nodes, with the calls that they make to the kernel. Forwarding '
                  'of packets by the kernel is not counted.')
    return table
