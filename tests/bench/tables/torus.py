"""The results as tables: plain text for the terminal, Markdown for RESULTS.md."""

import re
from dataclasses import dataclass, field

from .. import goals
from ..arithmetic import digits, format_size, median, milliseconds
from ..systems import (LIBTORUS, MPICH, OPENMPI, ORDINARY, OURS, PATIENT, PRELOADED, REGISTERED,
                      SPINNING)

NONE = '-'
BUSY = 2  # load before a measurement that its readers have to know of
PROGRAMS = 'Programs'
PRELOADS, FOREIGN = 'MPI programs', 'MPI programs of others'
MODEL = "The papers' model against the links"


@dataclass
class Table:
    title: str
    heads: list
    rows: list = field(default_factory=list)
    note: str = ''

    def text(self):
        lines = [self.heads] + self.rows
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.heads))]
        yield self.title
        for line in lines:
            cells = [cell.ljust(width) if i == 0 else cell.rjust(width)
                     for i, (cell, width) in enumerate(zip(line, widths))]
            yield '  '.join(cells).rstrip()
        if self.note:
            yield self.note

    def markdown(self):
        yield f'**{self.title}**'
        yield ''
        yield '| ' + ' | '.join(self.heads) + ' |'
        yield '|---' + '|---:' * (len(self.heads) - 1) + '|'
        for row in self.rows:
            yield '| ' + ' | '.join(row) + ' |'
        if self.note:
            yield ''
            yield self.note


# --- one torus ---

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
    """The fastest of a family at a size, or that of one algorithm; None if there is none."""
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
    """Ours, the best of each MPI library, and the bound."""
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
                 f'The links carried {torus["goodput_mbit"]:.2f} Mbit/s of payload in each direction, '
                 'all at once; the bound is for that rate.'
                 + (' Last column: best of MPI divided by best of torusd.' if libraries
                    else ''))


def algorithms(torus, family, variant=PATIENT):
    """Every algorithm of a family: milliseconds."""
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
    """How busy the processors are, and what an exchange costs them."""
    sizes = sizes_of(torus)
    table = Table(f'{torus["dims"]}: share of the processors that is busy, and their milliseconds '
                  'for one exchange', ['best of'] + [format_size(size) for size in sizes])
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
        table.rows.append(['stolen from all'] + [f'{median(each):.0%}' if each else NONE
                                                 for each in stolen])
    table.note = ('For whole calls, including generating and verifying the contents. Stolen: by other '
                  'virtual machines on the same processors.')
    return table


def compared(torus, key, title):
    """What was said beforehand (cell[key]) over what was measured; None if nothing was said."""
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
    return compared(torus, 'predicted', 'time that torusctl predicted over measured time')


def simulations(torus):
    return compared(torus, 'simulated', "the simulator's virtual time over measured time")


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


# --- the other parts ---

def unlimited_tables(result):
    table = Table(f'{result["dims"]} with unlimited links: payload times hops per CPU-second',
                  ['what', 'hops', 'block', 'ms', 'Gbit/s', 'busy', 'GB x hops / CPU s',
                   'GB / CPU s'])
    for row in result['exchanges']:
        table.rows.append([f'torusd {row["algorithm"]}', f'{row["hops"]:.2f}',
                           format_size(row['size']), milliseconds(row['median']),
                           digits(row['bits_per_second'] / 1e9), f'{row["busy"]:.0%}',
                           digits(row['hop_bytes_per_cpu_second'] / 1e9),
                           digits(row['bytes_per_cpu_second'] / 1e9)])
    for row in result['forwarding']:
        table.rows.append([f'IP forwarding, {row["streams"]} iperf3 streams', str(row['hops']),
                           NONE, NONE, digits(row['bytes'] * 8e-9 / row['seconds']),
                           f'{row["busy"]:.0%}',
                           digits(row['hop_bytes_per_cpu_second'] / 1e9),
                           digits(row['bytes_per_cpu_second'] / 1e9)])
    table.note = ('All CPU time counts, whatever used it. torusd generates, verifies and relays data in '
                  'user space; IP forwarding stays in the kernel, and iperf3 does not verify data.')
    yield table


def growth_tables(result):
    table = Table('A torus starts, exchanges verified blocks of 1 KiB, and stops',
                  ['torus', 'nodes', 'network', 'algorithm', 'up s', 'exchange ms',
                   'whole call ms', 'down s', 'MiB a daemon', 'most', 'messages a node',
                   'CPU ms a node', 'of it torusd'])
    for row in result['tori']:
        network = row['network'] + (f', {row["mbit"]:g} Mbit/s' if row['mbit'] else '')
        memory = row['memory']
        table.rows.append([
            row['dims'], str(row['nodes']), network, row.get('chosen', NONE),
            f'{row["up_seconds"]:.1f}',
            milliseconds(row['exchange_seconds']), milliseconds(row['call_seconds']),
            f'{row["down_seconds"]:.1f}', f'{memory["mean"] / 2 ** 20:.2f}',
            f'{memory["most"] / 2 ** 20:.2f}', digits(row.get('messages', 0)),
            milliseconds(row['cpu_seconds']), milliseconds(row['process_seconds'])])
    table.note = ('Memory: RssAnon + RssShmem after the exchange. CPU: of one exchange, with its '
                  'call. Start-up is bound by the processors: every process, link and namespace '
                  'costs the same wherever it stands in the torus.')
    yield table
    if result.get('model'):
        yield from model_tables(result['model'])


def model_tables(model):
    rows = {(row['dims'], row['algorithm'], row['size']): row for row in model['rows']}
    tori = list(dict.fromkeys(row['dims'] for row in model['rows']))
    names = list(dict.fromkeys(row['algorithm'] for row in model['rows']))
    given = ', '.join(f'{name} {value}' for name, value in model['parameters'].items())
    for size in model['sizes']:
        table = Table(f'Predicted for blocks of {format_size(size)}: milliseconds (of it startups)',
                      ['algorithm'] + tori)
        for name in names:
            cells = [rows.get((dims, name, size)) for dims in tori]
            table.rows.append([name] + [
                NONE if cell is None else f'{milliseconds(cell["seconds"])} '
                f'({cell["start_seconds"] / cell["seconds"]:.0%})' for cell in cells])
        if size == model['sizes'][-1]:
            table.note = (f'`torusctl predict` with {given} (microseconds a startup and a byte). '
                          'The blocks on the busiest channel grow with nodes times the longest '
                          'side, so each doubling of both sides costs eight times as much; '
                          'startups only double, or quadruple where each destination is one.')
        yield table


def fit_tables(result):
    yield from transit_tables(result)
    for torus in result['tori']:
        yield from model_fit_tables(torus)


def transit_tables(result):
    table = Table('A message over one link at 20 Mbit/s, after a pause: milliseconds to its '
                  'acknowledgement by the receiving program, medians (90 %)',
                  ['bytes', 'its bits alone'] + [row['links'] for row in result['transit']])
    for i, size in enumerate(result['transit'][0]['sizes'] if result['transit'] else ()):
        table.rows.append([str(size), milliseconds(result['transit'][0]['wire_seconds'][i])] + [
            f'{milliseconds(row["seconds"][i])} ({milliseconds(row["late_seconds"][i])})'
            for row in result['transit']])
    table.note = ('Its bits alone: of the packets and of the answer, at the rate of the link. Bucket: '
                  "Mininet's limit (HTB with 15 KiB of burst). One packet: a bucket of 1514 bytes, "
                  '`--burst 1514` (TBF, which cuts longer segments). Cable: `--cable`.')
    yield table
    table = Table(f'{result["capacity_dims"]}, all links busy both ways: Mbit/s of payload in each '
                  'direction (processors busy; load of the machine before)',
                  ['links'] + [f'{rate:g} Mbit/s' for rate in result['rates']])
    for name in dict.fromkeys(row['links'] for row in result['capacity']):
        rows = {row['mbit']: row for row in result['capacity'] if row['links'] == name}
        table.rows.append([name] + [
            NONE if rate not in rows else f'{rows[rate]["goodput"]:.2f} ({rows[rate]["busy"]:.0%}; '
            f'{rows[rate]["load"]:.1f})' for rate in result['rates']])
    table.note = ('What TCP can carry at most is 95.6 % of the rate, less acknowledgements in the '
                  'other direction.')
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
    table = Table(f'{name}: ts and tw with their 95 % intervals',
                  ['algorithm', 'startups', 'blocks', 'hops', 'ts, ms', '1 / tw, Mbit/s', 'R^2',
                   'median residual', 'worst'])
    for fit in torus['fits']:
        tw = fit['tw_seconds'], *reversed(fit['tw_interval'])
        table.rows.append([
            fit['algorithm'], *(f'{fit[key]:g}' if key in fit else NONE
                                for key in ('startups', 'critical_path', 'hops')),
            interval(fit['ts_seconds'], *fit['ts_interval'], signed_milliseconds),
            interval(*tw, lambda tw: f'{8e-6 / tw:.2f}' if tw > 0 else NONE), f'{fit["r2"]:.4f}',
            f'{fit["residual_median"]:.1%}', f'{fit["residual_worst"]:.1%}'])
    table.note = (f'Load of the machine: {torus["load"]:.1f} before, {torus["load_after"]:.1f} after. '
                  'Blocks: on the critical path. Hops: of the longest legs, summed over the steps.')
    yield table
    sizes = list(dict.fromkeys(point['block_bytes'] for point in torus['points']))
    table = Table(f'{name}: measured milliseconds (and residual: measured less model, in measured)',
                  ['algorithm'] + [format_size(size) for size in sizes])
    for algorithm in dict.fromkeys(point['algorithm'] for point in torus['points']):
        points = {p['block_bytes']: p for p in torus['points'] if p['algorithm'] == algorithm}
        table.rows.append([algorithm] + [
            NONE if size not in points else f'{milliseconds(points[size]["seconds"])} '
            f'({points[size]["residual"]:+.1%})' for size in sizes])
    table.note = '\n'.join(f'- {text}.' for text in torus['remarks'])
    yield table


def files_tables(result):
    for row in result['folders']:
        cells = [c for c in result['cells'] if c['file_system'] == row['file_system']]
        table = Table(f'Files on {row["file_system"]}: milliseconds, medians',
                      ['torus', 'files', 'size', 'generated', 'files', 'ratio', 'algorithm',
                       'whole call', 'of generated', 'cp', 'CPU s/GB', 'of generated', 'of cp'])
        for c in cells:
            rate = 'no limit' if c['mbit'] is None else f'{c["mbit"]:g} Mbit/s'
            gigabytes = c['bytes'] / 1e9
            table.rows.append([
                f'{c["dims"]} {rate}', f'{c["files"]} {c["set"]}' + ('' if c['cached'] else ', cold'),
                format_size(c['size']), milliseconds(c['generated_seconds']),
                milliseconds(c['files_seconds']),
                f'{c["files_seconds"] / c["generated_seconds"]:.3f}', c['chosen'],
                milliseconds(c['files_call']), milliseconds(c['generated_call']),
                milliseconds(c['cp_seconds']),
                *(digits(c[f'{what}_cpu'] / gigabytes) for what in ('files', 'generated', 'cp'))])
        table.note = ('The first two times are from the start to the last block in its place; the whole '
                      'call has the preparation, the syncing and the commit, too. Skewed: one file is '
                      '1024 times as large as the others. Cold: dropped from the page cache. cp: one '
                      'process, from the cache, without syncing.')
        yield table


def schedules_tables(result):
    ways = {'flow 1': 'flow, streamed', 'flow 4': 'flow in 4, streamed', 'steps 1': 'flow, in steps',
            'steps 4': 'flow in 4, in steps'}
    for dims, mbit in dict.fromkeys((c['dims'], c['mbit']) for c in result['cells']):
        cells = [c for c in result['cells'] if c['dims'] == dims]
        table = Table(f'A solver\'s schedules on {dims} at {mbit:g} Mbit/s: milliseconds, medians',
                      ['block', 'bound', 'stream', *ways.values(), 'flow / stream', 'in 4 / stream'])
        for c in cells:
            seconds = c['seconds']
            table.rows.append([
                format_size(c['size']), milliseconds(c['bound']), milliseconds(seconds['stream']),
                *(milliseconds(seconds[way]) for way in ways),
                *(f'{seconds[way] / seconds["stream"]:.3f}' for way in ('flow 1', 'flow 4'))])
        table.note = ('Multi-commodity flow by linear and integer programming '
                      f'(`tests/bench/flow.py`), with {cells[0]["load"]:g} blocks on the busiest '
                      'channel; whole blocks, or each in four segments. The bound is at the nominal '
                      'rate.')
        yield table


def cuts_tables(result):
    if result['damaged']:
        table = Table('Exchanges on what is left: milliseconds, medians',
                      ['torus', 'without', 'block', 'goodput', 'load', 'least', 'time', 'of its load',
                       'of the least'])
        for c in result['damaged']:
            table.rows.append([
                f'{c["dims"]} at {c["mbit"]:g}', c['without'], format_size(c['size']),
                f'{c["goodput_mbit"]:.2f}', digits(c['load'], 4), digits(c['least'], 4),
                milliseconds(c['seconds']), f'{c["seconds"] / c["load_seconds"]:.3f}',
                f'{c["seconds"] / c["least_seconds"]:.3f}'])
        table.note = ('Load: blocks on the busiest channel by the plan; least: by any routes '
                      '(`tests/bench/flow.py`; of more than 36 nodes a lower bound); both multiplied by what a '
                      'block takes at the goodput, Mbit/s each way with all links busy.')
        yield table
    if result['faults']:
        table = Table('Faults at a random moment of an exchange: milliseconds',
                      ['torus', 'fault', 'rounds', 'as they should', 'after it, median', 'longest',
                       'within what is allowed'])
        for c in result['faults']:
            seconds = [one['seconds'] for one in c['rounds']]
            timed = [one for one in c['rounds'] if 'allowed' in one]
            within = sum(one['seconds'] <= one['allowed'] for one in timed)
            table.rows.append([f'{c["dims"]} at {c["mbit"]:g}', c['fault'], str(len(seconds)),
                               str(sum(one['good'] for one in c['rounds'])),
                               milliseconds(median(seconds)), milliseconds(max(seconds)),
                               f'{within} of {len(timed)}' if timed else NONE])
        table.note = ('Generated blocks of 256 KiB; from the fault until the client has its answer. Links: the '
                      'exchange completes, verified, within 300 ms and 1.25 times what the bytes that had not '
                      'arrived need at the least load that is left. A node: all others say within 2 s that it '
                      'is down; with --on-failure shrink they complete the exchange.')
        yield table
    if result.get('calls'):
        table = Table('Calls of programs while a cable is pulled: milliseconds',
                      ['torus', 'call', 'size', 'rounds', 'as they should', 'a call before, median',
                       'the longest of a round, median', 'longest of all'])
        for c in result['calls']:
            longest = [max(one['seconds']) for one in c['rounds'] if one['good']] or [0]
            table.rows.append([f'{c["dims"]} at {c["mbit"]:g}', c['operation'], format_size(c['size']),
                               str(len(c['rounds'])), str(sum(one['good'] for one in c['rounds'])),
                               milliseconds(c['before']), milliseconds(median(longest)),
                               milliseconds(max(longest))])
        table.note = ('A program on every node makes calls one after the other, each after a barrier, and checks '
                      'every byte; a cable is pulled at a random moment of that. As they should: all calls of '
                      'all programs are completed, with the right data.')
        yield table


# --- calls of programs ---

# head, family, kind of memory
CALLERS = (('torusd', OURS, None), ('libtorus', LIBTORUS, REGISTERED),
           ('libtorus, ordinary memory', LIBTORUS, ORDINARY), ('MPICH', MPICH, None),
           ('Open MPI', OPENMPI, None))


def _call_cell(call, family, memory, key):
    system = goals.best(call, family, memory, key)
    if system is None:
        failed = any('failed' in one for one in call['systems']
                     if one['family'] == family and memory in (None, one['memory']))
        return 'failed' if failed else NONE
    name = f' {system["algorithm"]}' if system['algorithm'] != 'default' else ''
    return milliseconds(system[key]) + name


def _ratio_of(over, under, key):
    return digits(over[key] / under[key]) if over and under else NONE


def _calls_table(torus, name, what, key):
    """Latencies or periods of all calls on a torus; None if there are none."""
    calls = [call for call in torus['calls'] if any(one[key] is not None for one in call['systems'])
             or (key == 'median' and call['systems'])]
    callers = [(head, family, memory) for head, family, memory in CALLERS
               if any(one['family'] == family and memory in (None, one['memory'])
                      for call in calls for one in call['systems'])]
    table = Table(f'{name}: {what}, milliseconds', ['call', 'size', 'bound']
                  + [head for head, _, _ in callers]
                  + ['libtorus / bound', 'libtorus / torusd', 'MPI / libtorus'])
    for call in calls:
        programs = goals.best(call, LIBTORUS, REGISTERED, key)
        bound = {key: call['bound']} if call['bound'] else None
        table.rows.append([
            call['operation'], format_size(call['size']) if call['operation'] != 'barrier' else NONE,
            milliseconds(call['bound']) if call['bound'] else NONE,
            *(_call_cell(call, family, memory, key) for _, family, memory in callers),
            _ratio_of(programs, bound, key), _ratio_of(programs, goals.best(call, OURS, key=key), key),
            _ratio_of(goals.best_mpi(call, key), programs, key)])
    return table if table.rows else None


def preloads_tables(result):
    """Of each torus what calls of MPI programs take, with and without the preload."""
    for index, torus in enumerate(result['tori']):
        table = Table(f'{name_of(torus)}: latency with and without the preload, milliseconds',
                      ['call', 'size', 'bound', 'torusd', 'MPICH', 'preload', 'times', 'Open MPI', 'preload',
                       'times'],
                      note=f'The bound is at {torus["goodput_mbit"]:.2f} Mbit/s of payload, measured on all '
                           'links at once.' + (PRELOADS_NOTE if index + 1 == len(result['tori']) else ''))
        for call in torus['calls']:
            row = [call['operation'], format_size(call['size']) if call['size'] else NONE,
                   milliseconds(call['bound']) if call['bound'] else NONE,
                   _call_cell(call, OURS, None, 'median')]
            for family in MPICH, OPENMPI:
                without, preloaded = (goals.best(call, name, key='median')
                                      for name in (family, PRELOADED[family]))
                row += [_call_cell(call, family, None, 'median'),
                        _call_cell(call, PRELOADED[family], None, 'median'),
                        _ratio_of(without, preloaded, 'median')]
            table.rows.append(row)
        yield table


def foreign_tables(result):
    """Programs of others, and what the preload says about them."""
    table = Table('Times with and without the preload, and bytes on the links',
                  ['program', 'torus', 'without, s', 'preload, s', 'times', 'mpiexec, without', 'preload',
                   'MB, without', 'MB, preload', 'by torusd', 'checked'])
    said = Table('Calls that torusd took, and that it left to the MPI library and why, as rank 0 says '
                 '(TORUS_MPI=stats)', ['program', 'torus', 'taken', 'left'])
    for row in result['programs']:
        without, preloaded = row['without'], row['with']
        failed = without['failed'] or preloaded['failed']
        results = ', '.join(text if len(text) < 30 else 'same output'
                            for text in preloaded['results'] if text)
        table.rows.append([
            f'{row["program"]}: {row["what"]}', row['torus'],
            *(digits(side['seconds']) if side['seconds'] else 'failed' for side in (without, preloaded)),
            NONE if failed else digits(without['seconds'] / preloaded['seconds']),
            *(f'{side["whole"]:.1f}' if side['whole'] else 'failed' for side in (without, preloaded)),
            *(f'{side["link_bytes"] / 1e6:.1f}' if side['link_bytes'] else NONE
              for side in (without, preloaded)),
            f'{preloaded["torus_bytes"] / preloaded["link_bytes"]:.0%}' if preloaded['link_bytes'] else NONE,
            'failed' if failed else '**differs**' if not row['alike'] else results or 'by itself'])
        if preloaded['said']:
            taken, _, left = preloaded['said'].partition('; fallen back: ')
            said.rows.append([row['program'], row['torus'], _counted(taken), _counted(left)])
    table.note = FOREIGN_NOTE
    return [each for each in (table, said) if each.rows]


def _counted(said):
    """The calls in a line of the preload, by the reason if they have one: "Alltoall 12, Bcast 3"."""
    reasons = {}
    for name, calls, reason in re.findall(r'MPIX?_(\w+) (\d+) calls?[^;(]*(?:\((.*?)\))?(?=;|$)', said):
        reasons.setdefault(reason, []).append(f'{name} {calls}')
    return '; '.join(', '.join(calls) + (f' ({reason})' if reason else '')
                     for reason, calls in reasons.items()) or 'nothing'


FOREIGN_NOTE = """\
Unmodified, as Debian has built them, or for MPICH its compilers; one rank a host; medians of runs in turn.
*s*: what the program times itself (a transform of FFTW, the loop of LAMMPS, the run of pw.x), else from
mpiexec's start to its end. *MB*: on all links, each hop counted; *by torusd*: the bytes that torusd wrote to
its connections, of these (headers of TCP and IP, and acknowledgements, are left to the rest). *checked*: the
program's own checks passed, and what it printed was the same in all runs with and without the preload. The
other bytes are point-to-point: PTRANS, HPL and the measurements of bandwidth of HPC Challenge, exchanges that
FFTW's planner tries beside MPI_Alltoall, the halos of LAMMPS; and calls that torusd left to the MPI library.
Debian has these programs with Open MPI only; those with MPICH are of this project, and communicate as they do
(tests/mpi/programs)."""


PRELOADS_NOTE = """

The same program (tests/bench/collective.c) with and without the library that gives MPI programs the torus'
operations, by both MPI libraries, in turn in one network; beside them the daemons' own. *times*: how much
longer the call takes without the preload, by the library's best algorithm. How calls are timed stands under
"Programs"."""


def groups_tables(result):
    judged = Table('Goals', ['torus', 'call', 'size', 'what', 'wanted', 'reached', 'met'])
    several = []
    for torus in result['tori']:
        name = (name_of(torus) if torus['mbit'] is not None else
                f'{torus["dims"]} without a limit')
        latency = _calls_table(torus, name, 'latency', 'median')
        period = _calls_table(torus, name, 'back to back', 'period')
        if latency is not None and torus['mbit'] is not None:
            latency.note = (f'The bound is at {torus["goodput_mbit"]:.2f} Mbit/s of payload, measured on '
                            'all links at once.')
        several += [table for table in (latency, period) if table is not None]
        for goal in goals.goals_of(torus):
            judged.rows.append([
                name, goal.operation, format_size(goal.size) if goal.size else NONE, goal.what,
                goal.wanted, goal.reached, 'yes' if goal.met else '**no**'])
    judged.note = CALLS_NOTE.strip()
    return ([judged] if judged.rows else []) + several


CALLS_NOTE = """\
Latency: of one call, the longest of all ranks, each from its own start after a barrier and, below 16
KiB, a pause of 20 ms in which the limiters of the links refill; of torusd, `exchange`, `allgather` and
`broadcast --repeat` without a pause. (A rank that starts late may find a broadcast there already.) Back
to back: the time from one call to the next with nothing between them, in groups of 8 calls; of torusd,
what is sustained with everything between included. Medians; data are verified outside of the time (back
to back: those of the last call). libtorus: registered memory unless said otherwise. Of each MPI library,
the best of its default algorithm and of the one that was the fastest in a trial; without those that were
much slower at a smaller size. The vectors of allreduce are doubles, their operation is the sum;
broadcasts are from rank 0. Sizes are of a block (alltoall, allgather), of the data, or of the vector.

Short calls cost processor time, which many nodes share here: in a barrier of the 16 programs of 4x4, 30
messages and 32 processes make some 90 wake-ups (traced on 2 processors, which were busy throughout). Each took
about 20 us of processor time with calls back to back, and 35 us on average, up to 150, after a pause, when
caches are cold. A daemon makes one epoll_wait, one read and one writev for a message, and wakes its program
by one futex call.
"""


def failures(results):
    lines = [f'{torus["dims"]}: {text}' for torus in results['tori'] for text in torus['failures']]
    lines += results.get('failures', [])
    for part in ('fit', 'unlimited', 'growth', 'files', 'schedules', 'cuts', 'groups', 'preloads',
                 'foreign'):
        lines += [f'{part}: {text}' for text in (results.get(part) or {}).get('failures', ())]
    return lines


def all_tables(results):
    """(heading, tables) of each part."""
    for torus in results['tori']:
        yield name_of(torus), list(torus_tables(torus))
    if results.get('fit'):
        yield MODEL, list(fit_tables(results['fit']))
    if results.get('unlimited'):
        yield 'Unlimited links', list(unlimited_tables(results['unlimited']))
    if results.get('growth'):
        yield 'Growth', list(growth_tables(results['growth']))
    if results.get('files'):
        yield 'Files', list(files_tables(results['files']))
    if results.get('schedules'):
        yield 'Schedules of a solver', list(schedules_tables(results['schedules']))
    if results.get('cuts'):
        yield 'Links that go down', list(cuts_tables(results['cuts']))
    if results.get('groups'):
        yield PROGRAMS, groups_tables(results['groups'])
    if results.get('preloads'):
        yield PRELOADS, list(preloads_tables(results['preloads']))
    if results.get('foreign'):
        yield FOREIGN, list(foreign_tables(results['foreign']))


def as_text(results):
    lines = []
    for heading, tables in all_tables(results):
        lines += ['', heading, '=' * len(heading)]
        for table in tables:
            lines += ['', *table.text()]
    bad = failures(results)
    if bad:
        lines += ['', 'What failed', '===========', *bad]
    return '\n'.join(lines) + '\n'


METHOD = """\
Measured by `scripts/bench`, each torus in one Mininet network, in which all systems take turns at each
size. A time is a median over exchanges; the time of an exchange is the longest of all nodes or ranks,
each measured from its own start, after a barrier, to its last block. Every byte is verified, outside
of the measured time. When the turn passes to another system, uncounted exchanges come first until they
become no faster, because the queues of the links may still be full from the previous system. Address
space randomization is off for all programs: separate machines would not share branch predictors, but
the nodes here do.

- **torusd**: the programs of this checkout. `auto` chooses the algorithm itself; which one is best is
  only known afterwards.
- **MPICH, Open MPI**: `MPI_Alltoall`, one rank a host, TCP; IP forwarding over static
  dimension-ordered shortest paths, with opposite nodes split by parity; each library's default
  algorithm and all others that can be selected. An empty poll waits for up to {wait} (a preloaded
  library), because ranks that spin would keep each other from running. Congestion control of these
  connections: {congestion}. Tail-loss probes are off; the counters of the links show that the traffic
  crossed them.
- **bound**: the number of blocks that the busiest channel must carry, at the payload rate of the links
  in the same network while all of them carry traffic in both directions. A link passes about 15 KB
  before its limit takes effect, so blocks of up to a few KiB can be faster than the bound; not so
  where the links are like cables (`topo/torus.py --cable`): there a packet arrives when its last bit
  has left at the rate of the link.
"""


def _waits(tori):
    """How long empty polls waited: "1 ms", or "1 ms (4x4), 10 ms (8x8)"."""
    waits = {}
    for torus in tori:
        if 'wait_ms' in torus:
            waits.setdefault(torus['wait_ms'], []).append(torus['dims'])
    if len(waits) <= 1:
        return ''.join(f'{wait} ms' for wait in waits) or 'a few milliseconds'
    return ', '.join(f'{wait} ms ({", ".join(dims)})' for wait, dims in waits.items())


def as_markdown(results, plots=()):
    machine, options = results['machine'], results['options']
    lines = ['# Measurements', '',
             f'{results["when"]}, on {machine["processors"]} processors ({machine["processor"]}), '
             f'{machine["memory_gib"]} GiB of memory, {machine["system"]}, Linux '
             f'{machine["kernel"]} (default congestion control '
             f'{machine["default_congestion_control"]}), MPICH {machine["mpich"]}, Open MPI '
             f'{machine["openmpi"]}, iperf3 {machine["iperf3"]}, Mininet {machine["mininet"]}; '
             f'torusd {results["commit"]}; {results["seconds"] / 60:.0f} minutes.', '',
             METHOD.format(wait=_waits(results['tori']),
                           congestion=options['congestion'] or 'the default').strip()]
    def show(heading):
        for plot in plots:
            if plot['heading'] == heading:
                yield from ('', f'![{plot["caption"]}]({plot["file"]})')

    lines += show('')
    for heading, tables in all_tables(results):
        lines += ['', f'## {heading}', *show(heading)]
        for table in tables:
            lines += ['', *table.markdown()]
    bad = failures(results)
    if bad:
        lines += ['', '## What failed', '', *(f'- {text}' for text in bad)]
    return '\n'.join(lines) + '\n'


def with_sections(page, results, plots=()):
    """A page as as_markdown() makes it, in which the parts of these results (not tori) have replaced
    those with the same headings, or come at its end. Each says when it was measured."""
    lines = page.rstrip('\n').split('\n')
    for heading, tables in all_tables({**results, 'tori': []}):
        machine = results['machine']
        section = [f'## {heading}', '',
                   f'{results["when"]}, on {machine["processors"]} processors, MPICH '
                   f'{machine["mpich"]}, Open MPI {machine["openmpi"]}; torusd {results["commit"]}.'
                   + (f' The machine was busy with other work: a load of {results["load_before"]:.0f} when the '
                      'measurement began.' if results.get('load_before', 0) > BUSY else '')]
        for plot in plots:
            if plot['heading'] == heading:
                section += ['', f'![{plot["caption"]}]({plot["file"]})']
        for table in tables:
            section += ['', *table.markdown()]
        bad = failures({**results, 'tori': []})
        if bad:
            section += ['', 'What failed:', '', *(f'- {text}' for text in bad)]
        begin = lines.index(f'## {heading}') if f'## {heading}' in lines else len(lines)
        if begin == len(lines):
            section.insert(0, '')
        end = next((at for at in range(begin + 1, len(lines)) if lines[at].startswith('## ')),
                   len(lines))
        if end < len(lines):
            section.append('')
        lines[begin:end] = section
    return '\n'.join(lines) + '\n'
