"""All results: as plain text for the terminal, and as a page of Markdown for each part."""

import re

from .calls import FOREIGN, PRELOADS, PROGRAMS, foreign_tables, groups_tables, preloads_tables
from .copies import COPIES, copy_tables
from .exchanges import cuts_tables, files_tables, growth_tables, schedules_tables, unlimited_tables
from .model import MODEL, fit_tables
from .torus import name_of, torus_tables
from .uneven import UNEVEN, uneven_tables

BUSY = 2  # the page reports a higher load average before the measurement
NOTES = '\n## Notes\n'  # section written by hand at the end of a page
PARTS = {'fit': (MODEL, fit_tables), 'unlimited': ('Unlimited links', unlimited_tables),
         'growth': ('Growth', growth_tables), 'files': ('Files', files_tables),
         'schedules': ('Schedules of a solver', schedules_tables),
         'cuts': ('Links that go down', cuts_tables), 'groups': (PROGRAMS, groups_tables),
         'preloads': (PRELOADS, preloads_tables), 'foreign': (FOREIGN, foreign_tables),
         'copy': (COPIES, copy_tables), 'uneven': (UNEVEN, uneven_tables)}


def failures(results):
    lines = [f'{torus["dims"]}: {text}' for torus in results['tori'] for text in torus['failures']]
    lines += results.get('failures', [])
    for part in PARTS:
        lines += [f'{part}: {text}' for text in (results.get(part) or {}).get('failures', ())]
    return lines


def _parts(results):
    """(heading, tables, failures, settings of this part alone) of each part."""
    for torus in results['tori']:
        yield name_of(torus), list(torus_tables(torus)), torus['failures'], _mpi_settings(torus, results['options'])
    for part, (heading, tables) in PARTS.items():
        if results.get(part):
            yield heading, list(tables(results[part])), results[part].get('failures', ()), ''


def all_tables(results):
    """(heading, tables) of each part."""
    for heading, tables, _, _ in _parts(results):
        yield heading, tables


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


def _mpi_settings(torus, options):
    wait = f'An empty poll of MPI waits for up to {torus["wait_ms"]} ms. ' if 'wait_ms' in torus else ''
    return (f'{wait}Congestion control of the connections of MPI and iperf3: '
            f'{options["congestion"] or "the default"}.')


def _measured(results):
    """When, where and of which commit."""
    machine = results['machine']
    load = results.get('load_before', 0)
    return (f'{results["when"]}, on {machine["processors"]} processors ({machine["processor"]}), '
            f'{machine["memory_gib"]} GiB of memory, {machine["system"]}, Linux {machine["kernel"]} '
            f'(default congestion control {machine["default_congestion_control"]}), MPICH {machine["mpich"]}, '
            f'Open MPI {machine["openmpi"]}, iperf3 {machine["iperf3"]}, Mininet {machine["mininet"]}; torusd '
            f'{results["commit"]}; {results["seconds"] / 60:.0f} minutes.'
            + (f' The machine was busy with other work: a load of {load:.0f} when the measurement began.'
               if load > BUSY else ''))


def file_name(heading):
    """The file name of a page: for "4x4 at 50 Mbit/s" it is 4x4-at-50-mbit.md."""
    return '-'.join(re.findall(r'[a-z0-9.]+', heading.lower().replace("'", '').replace('/s', ''))) + '.md'


def as_pages(results, plots=()):
    """(file name, text) of each part's page. A plot appears on the page with its heading."""
    for heading, tables, bad, more in _parts(results):
        lines = [f'# {heading}', '', _measured(results), *[more] * bool(more)]
        for plot in plots:
            if plot['heading'] == heading:
                lines += ['', f'![{plot["caption"]}]({plot["file"]})']
        for table in tables:
            lines += ['', *table.markdown()]
        if bad:
            lines += ['', 'What failed:', '', *(f'- {text}' for text in bad)]
        yield file_name(heading), '\n'.join(lines) + '\n'


def with_notes(new, old):
    """The text of a new page with the notes of the old one."""
    return new + old[old.index(NOTES):] if NOTES in old else new
