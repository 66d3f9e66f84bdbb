"""Circles of calls between files and between folders, read from object files with nm."""

import collections
import functools
import os
import re
import subprocess

FOLDERS = ('daemon/', 'client/', 'proto/')
PRELOADS = 'client/mpi/'  # defines functions of other libraries (read, MPI_Send), and nothing links it
UNBUILT = 'no object files: build first, or name the folder with --build'


def is_built(build):
    return any(build.rglob('*.c.o'))


def source_of(build, name):
    match = re.match(r'(.*?)CMakeFiles/[^/]+\.dir/(.*)\.o$', os.path.relpath(name, build))
    return os.path.normpath(match[1] + match[2]) if match else None


def nearest(caller, definers):
    """The file that defines the function: if several do, because different programs may define functions of one name, the one that shares most folders with the caller."""
    return max(sorted(definers), key=lambda name: len(os.path.commonprefix([caller.split('/'), name.split('/')])))


@functools.cache
def calls_of(root, build):
    """{caller: {callee: {symbol}}}: which source files call which others."""
    defined, used = collections.defaultdict(set), collections.defaultdict(set)
    sources = {}
    for name in build.rglob('*.c.o'):
        source = source_of(build, name)
        if source and source.startswith(FOLDERS) and '.pb-c' not in source and (root / source).exists():
            sources[str(name)] = source
    names = subprocess.run(['nm', '--print-file-name', *sorted(sources)], capture_output=True, text=True, check=True)
    for line in names.stdout.splitlines():
        name, _, symbols = line.rpartition(':')
        kind, symbol = symbols.split()[-2:]
        source = sources[name]
        if kind == 'U':
            used[source].add(symbol)
        elif kind in 'TDBRVWC':
            defined[symbol].add(source)
    edges = collections.defaultdict(lambda: collections.defaultdict(set))
    for caller, symbols in used.items():
        for symbol in symbols & defined.keys():
            definers = [name for name in defined[symbol] if caller.startswith(PRELOADS) or
                        not name.startswith(PRELOADS)]
            callee = nearest(caller, definers) if definers else caller
            if callee != caller:
                edges[caller][callee].add(symbol)
    return edges


def reachable(edges, start):
    found, todo = set(), [start]
    while todo:
        for name in edges.get(todo.pop(), ()):
            if name not in found:
                found.add(name)
                todo.append(name)
    return found


def circles(edges):
    """Sets of names in which each name reaches all others."""
    reach = {name: reachable(edges, name) for name in edges}
    return sorted({frozenset(other for other in reach[name] if name in reach.get(other, ()))
                   for name in edges if name in reach[name]}, key=sorted)


def describe(circle, edges):
    return '; '.join(f'{a} -> {b}: {", ".join(sorted(edges[a][b])[:5])}'
                     for a in sorted(circle) for b in sorted(edges[a]) if b in circle)


def between_folders(files):
    """{caller: {callee: {symbol}}}: which folders call which others."""
    folders = collections.defaultdict(lambda: collections.defaultdict(set))
    for caller, callees in files.items():
        for callee, symbols in callees.items():
            if os.path.dirname(caller) != os.path.dirname(callee):
                folders[os.path.dirname(caller)][os.path.dirname(callee)] |= symbols
    return folders


def check(root, build):
    if not is_built(build):
        yield str(build), UNBUILT
        return
    files = calls_of(root, build)
    for kind, edges in (('files', files), ('folders', between_folders(files))):
        for circle in circles(edges):
            yield min(circle), (f'{kind} call each other in a circle ({describe(circle, edges)}): '
                                'move what both need below both')
