"""The page of scripts/routing-bench. The results of several runs are kept beside it as JSON, so that one of them can be
measured again."""

import json

from ..arithmetic import digits, median
from .table import NONE, Table

FILE, PAGE = 'ip-routes.json', 'ip-routes.md'
ORDER = ('torus-routed', 'frr', 'bird', 'babeld')
NAMES = {'frr': 'FRR', 'bird': 'BIRD'}


def _key(result):
    return [result['dims'], result['mbit'] or 0, ORDER.index(result['system'])]


def put(folder, result):
    """Adds a result, in place of the previous one of this system on this torus, and writes the page."""
    path = folder / FILE
    results = json.loads(path.read_text()) if path.exists() else []
    results = sorted([one for one in results if _key(one) != _key(result)] + [result], key=_key)
    path.write_text('[\n' + ',\n'.join(json.dumps(one) for one in results) + '\n]\n')
    (folder / PAGE).write_text(page(results))


def _figures(values, least=0):
    """Median, the largest, and how many."""
    if not values:
        return NONE
    return f'{digits(median(values))} ({digits(max(values))}, n={len(values)})'


def _idle(result):
    own = 1000 * median(result['idle'])
    if result['system'] != 'torus-routed':
        return digits(own, 2)
    return f'{digits(own, 2)}; {digits(1000 * median(result["idle_with_torusd"]), 2)} with torusd'


def _outages(name, results):
    table = Table(f'{name}: outages in ms, median (longest, number)',
                  ['system', 'after a cut', 'after a silent cut', 'pings lost at return', 'loops seen',
                   'idle, ms of processor a second and host', 'lines of configuration a host'])
    for one in results:
        lost = f'{digits(median(one["lost"]))} ({max(one["lost"])})' if one['lost'] else NONE
        table.rows.append([NAMES.get(one['system'], one['system']), _figures(one['cuts_ms']),
                           _figures(one['silent_ms']), lost, str(one['loops']), _idle(one), str(one['lines'])])
    return table


def _load(name, results):
    calls = list(dict.fromkeys(call for one in results for call in one['mpi']))
    table = Table(f'{name}: all opposite pairs at once (iperf3, Mbit/s in all, median of the runs); MPI_Alltoall over '
                  'the routes (ms, median)', ['system', 'iperf3', *calls])
    for one in results:
        cells = [digits(median(one['mpi'][call])) if one['mpi'].get(call) else NONE for call in calls]
        rate = digits(median(one['iperf_mbit']), 4) if one['iperf_mbit'] else NONE
        table.rows.append([NAMES.get(one['system'], one['system']), rate, *cells])
    return table


def _about(results):
    machine = results[0]['machine']
    yield (f'On {machine["processors"]} processors ({machine["processor"]}), which all hosts share, '
           f'{machine["system"]}, Linux {machine["kernel"]}, Mininet {machine["mininet"]}, MPICH {machine["mpich"]}, '
           f'Open MPI {machine["openmpi"]}, iperf3 {machine["iperf3"]}, FRR {machine.get("frr")}, '
           f'BIRD {machine.get("bird2")}, babeld {machine.get("babeld")}; congestion control of TCP: '
           f'{results[0]["congestion"]}. [How torusd is measured](../README.md#ip-routes) says what the columns are.')


def page(results):
    lines = ['# IP routes that heal', '', *_about(results)]
    for dims, mbit in dict.fromkeys((one['dims'], one['mbit']) for one in results):
        own = [one for one in results if (one['dims'], one['mbit']) == (dims, mbit)]
        rate = f'{mbit:g} Mbit/s' if mbit else 'unlimited links'
        name = f'{dims}, {rate}, two processors' if own[0]['machine']['processors'] == 2 else f'{dims}, {rate}'
        lines += ['', f'## {dims}, {rate}']
        for table in _outages(name, own), _load(name, own):
            lines += ['', *table.markdown()]
        lines += ['', 'Measured: ' + '; '.join(
            f'{NAMES.get(one["system"], one["system"])} {one["when"]}, commit {one["commit"]}, load {one["load"]:.1f}'
            for one in own) + '.']
        lines += [f'- {NAMES.get(one["system"], one["system"])} failed: {text}' for one in own
                  for text in one['failures']]
    return '\n'.join(lines) + '\n'
