"""All results as one page: plain text for the terminal, Markdown for RESULTS.md."""

from .calls import FOREIGN, PRELOADS, PROGRAMS, foreign_tables, groups_tables, preloads_tables
from .exchanges import cuts_tables, files_tables, growth_tables, schedules_tables, unlimited_tables
from .model import MODEL, fit_tables
from .torus import name_of, torus_tables

BUSY = 2  # load before a measurement that its readers have to know of


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
