"""The results as tables: plain text for the terminal, Markdown for RESULTS.md."""

from dataclasses import dataclass, field

from .arithmetic import digits, format_size, median, milliseconds
from .systems import MPICH, OPENMPI, OURS, PATIENT, SPINNING

NONE = '-'
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


def failures(results):
    lines = [f'{torus["dims"]}: {text}' for torus in results['tori'] for text in torus['failures']]
    lines += results.get('failures', [])
    for part in ('fit', 'unlimited', 'growth', 'files', 'schedules'):
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
