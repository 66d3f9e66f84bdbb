"""Copies of a tree from node 0 to all other nodes: torusctl copy, and what people use without it, in turn.

A row is a tree (one file, an environment of small files, a cache with links), a first copy or one after 1 % of the
tree has changed, from the page cache or from the disk. All nodes share this machine's file systems: copies from the
page cache are in memory, so that links or processors are the limit; the others are on a disk, and end when everything
is on that disk.
"""

import os
import tempfile
import time
from dataclasses import dataclass

from support.compare_trees import differences
from torus_net import TorusError

from . import arithmetic, copy_peers, copy_trees, machine, network, programs

TORI = '4@200,4x4@50,4'   # without a rate: links without a limit
SIZES = {True: (64 << 20, 256 << 20), False: (1 << 30,)}  # of the one file, by whether there is a limit
LINKS = 4                 # with a limit: if a copy must cross more links than this, trees are smaller in proportion
FILES = 55_000
CACHE_FILES = 40
TURNS = 3
CELL_SECONDS = 12.0       # a way that has taken this long at a row does not get another turn
FIRST, AGAIN = 'first copy', 'after 1 % has changed'


@dataclass
class Row:
    kind: str
    size: int
    files: int
    change: str
    cold: bool


def complete(options):
    """Fills in the defaults that depend on other options."""
    options.copy_sizes, options.copy_turns = options.sizes, min(TURNS, options.repeats)
    options.copy_cell_seconds = options.cell_seconds or CELL_SECONDS
    if options.quick:
        options.copy = options.copy and [('3', 50.0)]
        options.copy_sizes = options.sizes or [1 << 20]
        options.copy_files, options.copy_turns = min(options.copy_files, 300), 1


def rows_of(options, dims_links, limited):
    """The rows of one torus."""
    shrink = max(1, dims_links // LINKS) if limited else 1
    sizes = options.copy_sizes or [size // shrink for size in SIZES[limited]]
    files = options.copy_files // shrink
    for size in sizes:
        yield Row('file', size, 0, FIRST, False)
    yield Row('file', sizes[0], 0, FIRST, True)
    yield Row('file', sizes[0], 0, AGAIN, False)
    for change, cold in (FIRST, False), (FIRST, True), (AGAIN, False):
        yield Row('environment', 0, files, change, cold)
    for change in FIRST, AGAIN:
        yield Row('cache', sizes[0], CACHE_FILES, change, False)


def run(options, say, save):
    result = {'tori': [], 'failures': []}
    ways = [way for way in copy_peers.all_ways() if not options.copy_with or any(
        name in way.name for name in options.copy_with)]
    ways = copy_peers.installed(ways, lambda text: say(f'copy: {text}'))
    for dims, mbit in options.copy:
        at = dims if mbit is None else f'{dims} at {mbit:g} Mbit/s'
        with network.attempt('copy', at, result['failures'], say):
            programs.require('rsync')  # for copy_trees.reset()
            with network.Network(dims, mbit, bin=options.bin, memory=options.memory, congestion=options.congestion,
                                 data_roots=options.files_in) as net:
                torus = Copies(net, dims, mbit, ways, options, lambda text: say(f'copy {at}: {text}'))
                result['tori'].append(torus.result)
                torus.run(lambda: save(result))
                result['failures'] += [f'{at}: {text}' for text in torus.failures]
            result['failures'] += [f'{at}: {problem}' for problem in net.problems]
    return result


class Copies:
    def __init__(self, net, dims, mbit, ways, options, say):
        self.net, self.torus, self.mbit = net, net.torus, mbit
        self.ways, self.options, self.say = ways, options, say
        self.failures = []
        self.result = {'dims': dims, 'mbit': mbit, 'goodput_mbit': None, 'multicast': None, 'rows': []}

    def run(self, save):
        options = self.options
        if self.mbit is not None:
            self.result['goodput_mbit'] = self.net.goodput(options.out / 'programs', options.goodput_seconds)['mean']
        self.net.prepare_hosts()
        for row in rows_of(options, len(self.net.geometry.links), self.mbit is not None):
            where = options.files_in[-1 if row.cold else 0]
            with tempfile.TemporaryDirectory(prefix='torus-copy-', dir=where) as base:
                bed = copy_peers.Bed(self.torus, base, self.net.folder)
                try:
                    self._row(bed, row)
                finally:
                    bed.stop()
            save()

    def _row(self, bed, row):
        if self.result['multicast'] is None and any(isinstance(way, copy_peers.Udpcast) for way in self.ways):
            self.result['multicast'] = copy_peers.multicast_crosses(bed)
        made = copy_trees.make(row.kind, bed.base / 'source', size=row.size, files=row.files)
        least = made.bytes if row.change == FIRST else made.changed
        said = {'kind': row.kind, 'size': made.bytes, 'entries': made.entries, 'change': row.change, 'cold': row.cold,
                'least': least, 'bound': self._bound(least), 'ways': []}
        self.result['rows'].append(said)
        for rank in bed.others:
            bed.own(rank).mkdir()
        cells = {way.name: {'name': way.name, 'loses': way.loses, 'seconds': [], 'processor': [], 'machine': []}
                 for way in self.ways if row.kind in way.kinds}
        said['ways'] = list(cells.values())
        for _ in range(self.options.copy_turns):
            for way in self.ways:
                cell = cells.get(way.name)
                if cell and 'failed' not in cell and sum(cell['seconds']) < self.options.copy_cell_seconds:
                    self._turn(bed, row, made, way, cell)
        for cell in cells.values():
            for key in 'seconds', 'processor', 'machine':
                cell[f'median_{key}'] = arithmetic.median(cell[key]) if cell[key] else None

    def _bound(self, size):
        """Seconds until the least connected node has taken in that many bytes by all of its links."""
        if self.mbit is None:
            return None
        geometry = self.net.geometry
        fewest = min(len(list(geometry.ports(rank))) for rank in range(geometry.nodes))
        return size * 8e-6 / (fewest * self.result['goodput_mbit'])

    def _turn(self, bed, row, made, way, cell):
        for rank in bed.others:
            copy_trees.reset(made, None if row.change == FIRST else copy_trees.OLD, bed.target(rank))
        source = made.path(copy_trees.OLD if row.change == FIRST else copy_trees.NEW)
        name = f'{row.kind} {arithmetic.format_size(row.size)}' if row.size else f'{row.kind} of {made.entries} entries'
        name += f', {row.change}{", cold" if row.cold else ""}: {way.name}'
        try:
            spent = self._measured(bed, row, way, source)
            self._check(bed, source, way)
        except (copy_peers.Failed, TorusError, AssertionError) as e:
            cell['failed'] = str(e)
            self.failures.append(f'{name}: {" ".join(str(e).split())}')
            self.say(self.failures[-1])
            return
        finally:
            bed.stop()
        for key, value in spent.items():
            cell[key].append(value)
        self.say(f'{name}: {spent["seconds"]:.2f} s' + (
            f' ({spent["seconds"] / self._bound(self.result["rows"][-1]["least"]):.2f} times the bound)'
            if self.mbit else '') + f', {spent["processor"]:.2f} s of processor time')

    def _measured(self, bed, row, way, source):
        """The seconds of one copy, and the processor time of its programs and of the whole machine."""
        children = machine.children_seconds()
        way.prepare(bed)
        if row.cold:
            copy_trees.drop_caches()
        else:
            os.sync()
        daemons = machine.daemon_seconds(self.torus)
        whole, begin = machine.Times(), time.monotonic()
        way.run(bed, source)
        if row.cold:
            os.sync()
        seconds = time.monotonic() - begin
        usage = machine.Usage(whole, machine.Times())
        daemons = machine.daemon_seconds(self.torus) - daemons
        bed.stop()
        own = machine.children_seconds() - children
        return {'seconds': seconds, 'processor': own + daemons, 'machine': usage.busy}

    def _check(self, bed, source, way):
        """Every node must have the tree, except for what the way cannot carry."""
        only = {'contents', 'kinds'} if way.loses == '' else {'contents'}
        for rank in bed.others:
            found = differences(source, bed.target(rank), only=only, links=way.loses == '')
            if found:
                raise copy_peers.Failed(f'node {rank} differs: {found[0]}')
