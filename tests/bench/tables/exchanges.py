"""Tables of other exchanges: on unlimited links, on growing tori, of files, by schedules, and with faults."""

from ..arithmetic import digits, format_size, median, milliseconds
from .table import NONE, Table


def unlimited_tables(result):
    table = Table(f'{result["dims"]} with unlimited links: payload bytes times hops per second of CPU time',
                  ['what', 'hops', 'block', 'time, ms', 'Gbit/s', 'CPUs busy', 'GB x hops / CPU s',
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
    table.note = ('CPU time is that of the whole machine, including the kernel. torusd generates, verifies and '
                  'relays data in user space; IP forwarding stays in the kernel, and iperf3 does not verify data.')
    yield table


def growth_tables(result):
    table = Table('A torus starts, exchanges verified blocks of 1 KiB, and stops',
                  ['torus', 'nodes', 'network', 'algorithm', 'start, s', 'exchange, ms',
                   'whole call, ms', 'stop, s', 'memory of a daemon, mean, MiB', 'largest, MiB', 'messages of a node',
                   'CPU time of a node, ms', 'torusd alone, ms'])
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
    table.note = ('Memory: RssAnon + RssShmem after the exchange. CPU time: of one exchange, including its '
                  'call. The processors limit the start: each process, link and namespace costs the same, '
                  'whatever the size of the torus.')
    yield table
    if result.get('model'):
        yield from model_tables(result['model'])


def model_tables(model):
    rows = {(row['dims'], row['algorithm'], row['size']): row for row in model['rows']}
    tori = list(dict.fromkeys(row['dims'] for row in model['rows']))
    names = list(dict.fromkeys(row['algorithm'] for row in model['rows']))
    given = ', '.join(f'{name} {value}' for name, value in model['parameters'].items())
    for size in model['sizes']:
        table = Table(f'Predicted times for blocks of {format_size(size)}, in ms (share of startups)',
                      ['algorithm'] + tori)
        for name in names:
            cells = [rows.get((dims, name, size)) for dims in tori]
            table.rows.append([name] + [
                NONE if cell is None else f'{milliseconds(cell["seconds"])} '
                f'({cell["start_seconds"] / cell["seconds"]:.0%})' for cell in cells])
        if size == model['sizes'][-1]:
            table.note = (f'`torusctl predict` with {given} (ts: microseconds per startup; tw: per byte). '
                          'The blocks on the busiest channel grow with the number of nodes times the longest '
                          'side, so doubling both sides costs eight times as much. The number of startups '
                          'doubles, or quadruples for algorithms with a startup for each destination.')
        yield table


def files_tables(result):
    for row in result['folders']:
        cells = [c for c in result['cells'] if c['file_system'] == row['file_system']]
        table = Table(f'Files on {row["file_system"]}: median times in ms',
                      ['torus', 'files', 'size', 'exchange of generated blocks', 'exchange of files',
                       'files / generated', 'algorithm', 'whole call, files', 'whole call, generated', 'cp',
                       'CPU s/GB, files', 'CPU s/GB, generated', 'CPU s/GB, cp'])
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
        table.note = ('Exchange: from the start until the last block is in place. Whole call: also the '
                      'preparation, the syncing and the commit. Skewed: one file is 1024 times as large as '
                      'the others. Cold: the files were dropped from the page cache before. cp: one process, '
                      'from the page cache, without syncing.')
        yield table


def schedules_tables(result):
    ways = {'flow 1': 'flow, streamed', 'flow 4': 'flow in 4 segments, streamed', 'steps 1': 'flow, in steps',
            'steps 4': 'flow in 4 segments, in steps'}
    for dims, mbit in dict.fromkeys((c['dims'], c['mbit']) for c in result['cells']):
        cells = [c for c in result['cells'] if c['dims'] == dims]
        table = Table(f'A solver\'s schedules on {dims} at {mbit:g} Mbit/s: median times in ms',
                      ['block', 'bound', 'stream', *ways.values(), 'flow / stream', 'flow in 4 segments / stream'])
        for c in cells:
            seconds = c['seconds']
            table.rows.append([
                format_size(c['size']), milliseconds(c['bound']), milliseconds(seconds['stream']),
                *(milliseconds(seconds[way]) for way in ways),
                *(f'{seconds[way] / seconds["stream"]:.3f}' for way in ('flow 1', 'flow 4'))])
        table.note = ('Flow: a multi-commodity flow found by linear and integer programming '
                      f'(`tests/bench/flow.py`), with {cells[0]["load"]:g} blocks on the busiest '
                      'channel, of whole blocks or of blocks in four segments. The bound is for the nominal '
                      'rate of the links.')
        yield table
        others = [way for way in cells[0]['seconds'] if way not in ways]
        yield _times_of(f'Exchanges by rivals on {dims} at {mbit:g} Mbit/s: median times in ms', others, cells)
        gathers = [c for c in result.get('gathers', ()) if c['dims'] == dims]
        if gathers:
            yield _times_of(f'Allgathers by rivals on {dims} at {mbit:g} Mbit/s: median times in ms',
                            list(gathers[0]['seconds']), gathers)


def _times_of(head, ways, cells):
    table = Table(head, ['block', *ways])
    for c in cells:
        table.rows.append([format_size(c['size']), *(milliseconds(c['seconds'][way]) for way in ways)])
    table.note = 'The algorithms that take this torus: of torusctl, and of `client/rivals` (`client/doc/algorithms.md`).'
    return table


def cuts_tables(result):
    if result['damaged']:
        table = Table('Exchanges on damaged tori: median times',
                      ['torus and rate, Mbit/s', 'without', 'block', 'goodput, Mbit/s', 'load, blocks',
                       'least load, blocks', 'time, ms', 'time / time of the load', 'time / time of the least load'])
        for c in result['damaged']:
            table.rows.append([
                f'{c["dims"]} at {c["mbit"]:g}', c['without'], format_size(c['size']),
                f'{c["goodput_mbit"]:.2f}', digits(c['load'], 4), digits(c['least'], 4),
                milliseconds(c['seconds']), f'{c["seconds"] / c["load_seconds"]:.3f}',
                f'{c["seconds"] / c["least_seconds"]:.3f}'])
        table.note = ('Goodput: payload in each direction while all links are busy. Load: blocks on the busiest '
                      'channel by the plan. Least load: by any routes (`tests/bench/flow.py`; for more than 36 nodes '
                      'a lower bound). Time of a load: what the busiest channel needs for it at the goodput.')
        yield table
    if result['faults']:
        table = Table('Faults at a random moment of an exchange: times from the fault to the end, in ms',
                      ['torus and rate, Mbit/s', 'fault', 'rounds', 'rounds passed', 'median', 'longest',
                       'rounds in the allowed time'])
        for c in result['faults']:
            seconds = [one['seconds'] for one in c['rounds']]
            timed = [one for one in c['rounds'] if 'allowed' in one]
            within = sum(one['seconds'] <= one['allowed'] for one in timed)
            table.rows.append([f'{c["dims"]} at {c["mbit"]:g}', c['fault'], str(len(seconds)),
                               str(sum(one['good'] for one in c['rounds'])),
                               milliseconds(median(seconds)), milliseconds(max(seconds)),
                               f'{within} of {len(timed)}' if timed else NONE])
        table.note = ('Generated blocks of 256 KiB. The end is when the client has its answer. A fault of links: the '
                      'exchange must complete, verified. Allowed are 300 ms plus 1.25 times the time that the bytes '
                      'that had not arrived need at the least load of the remaining links. A node that dies: all other '
                      'nodes must report within 2 s that it is down; with --on-failure shrink they must complete the '
                      'exchange.')
        yield table
    if result.get('calls'):
        table = Table('Calls of programs while a cable is pulled: times in ms',
                      ['torus and rate, Mbit/s', 'call', 'size', 'rounds', 'rounds passed', 'median call before',
                       'longest call of a round, median', 'longest call of all rounds'])
        for c in result['calls']:
            longest = [max(one['seconds']) for one in c['rounds'] if one['good']] or [0]
            table.rows.append([f'{c["dims"]} at {c["mbit"]:g}', c['operation'], format_size(c['size']),
                               str(len(c['rounds'])), str(sum(one['good'] for one in c['rounds'])),
                               milliseconds(c['before']), milliseconds(median(longest)),
                               milliseconds(max(longest))])
        table.note = ('A program on every node makes calls one after another, each after a barrier, and checks '
                      'every byte. A cable is pulled at a random moment. A round passes if all calls of all '
                      'programs complete with the right data.')
        yield table
