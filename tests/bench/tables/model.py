"""Tables that compare the papers' model with measurements of the links."""

from ..arithmetic import format_size, milliseconds
from .table import NONE, Table

MODEL = "The papers' model against the links"


def fit_tables(result):
    yield from transit_tables(result)
    for torus in result['tori']:
        yield from model_fit_tables(torus)


def transit_tables(result):
    table = Table('A message over one link at 20 Mbit/s, after a pause: ms until the answer of the receiving '
                  'program, median (90th percentile)',
                  ['bytes', 'bits alone'] + [row['links'] for row in result['transit']])
    for i, size in enumerate(result['transit'][0]['sizes'] if result['transit'] else ()):
        table.rows.append([str(size), milliseconds(result['transit'][0]['wire_seconds'][i])] + [
            f'{milliseconds(row["seconds"][i])} ({milliseconds(row["late_seconds"][i])})'
            for row in result['transit']])
    table.note = ('Bits alone: the time that the packets of the message and of the answer take at the rate of the '
                  "link. Bucket: Mininet's limit (HTB with a burst of 15 KiB). One packet: a bucket of 1514 bytes, "
                  '`--burst 1514` (TBF, which cuts longer segments into packets). Cable: `--cable`.')
    yield table
    table = Table(f'{result["capacity_dims"]}, all links busy in both directions: Mbit/s of payload in each '
                  'direction (share of processors that is busy; load average before)',
                  ['links'] + [f'{rate:g} Mbit/s' for rate in result['rates']])
    for name in dict.fromkeys(row['links'] for row in result['capacity']):
        rows = {row['mbit']: row for row in result['capacity'] if row['links'] == name}
        table.rows.append([name] + [
            NONE if rate not in rows else f'{rows[rate]["goodput"]:.2f} ({rows[rate]["busy"]:.0%}; '
            f'{rows[rate]["load"]:.1f})' for rate in result['rates']])
    table.note = ('TCP can carry at most 95.6 % of the rate as payload, less the acknowledgements of the other '
                  'direction.')
    yield table


def interval(value, low, high, form):
    return f'{form(value)} ({form(low)} to {form(high)})'


def signed_milliseconds(seconds):
    return ('-' if seconds < 0 else '') + milliseconds(abs(seconds))


def name_of_fit(torus):
    kind = 'links like cables' if torus['cable'] else 'links with a burst'
    return f'{torus["dims"]} at {torus["mbit"]:g} Mbit/s, {kind}'


def model_fit_tables(torus):
    name = name_of_fit(torus)
    table = Table(f'{name}: fitted ts and tw with 95 % intervals',
                  ['algorithm', 'startups', 'blocks', 'hops', 'ts, ms', '1 / tw, Mbit/s', 'R^2',
                   'median residual', 'worst residual'])
    for fit in torus['fits']:
        tw = fit['tw_seconds'], *reversed(fit['tw_interval'])
        table.rows.append([
            fit['algorithm'], *(f'{fit[key]:g}' if key in fit else NONE
                                for key in ('startups', 'critical_path', 'hops')),
            interval(fit['ts_seconds'], *fit['ts_interval'], signed_milliseconds),
            interval(*tw, lambda tw: f'{8e-6 / tw:.2f}' if tw > 0 else NONE), f'{fit["r2"]:.4f}',
            f'{fit["residual_median"]:.1%}', f'{fit["residual_worst"]:.1%}'])
    table.note = (f'Load average of the machine: {torus["load"]:.1f} before, {torus["load_after"]:.1f} after. '
                  'Blocks: on the critical path. Hops: the longest leg of each step, summed over the steps.')
    yield table
    sizes = list(dict.fromkeys(point['block_bytes'] for point in torus['points']))
    table = Table(f'{name}: measured time in ms (residual: measured minus model, as a share of measured)',
                  ['algorithm'] + [format_size(size) for size in sizes])
    for algorithm in dict.fromkeys(point['algorithm'] for point in torus['points']):
        points = {p['block_bytes']: p for p in torus['points'] if p['algorithm'] == algorithm}
        table.rows.append([algorithm] + [
            NONE if size not in points else f'{milliseconds(points[size]["seconds"])} '
            f'({points[size]["residual"]:+.1%})' for size in sizes])
    table.note = '\n'.join(f'- {text}.' for text in torus['remarks'])
    yield table
