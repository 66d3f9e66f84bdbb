"""Checks of trace files, and the first sentence of their report."""

import json
from collections import defaultdict

from .waiting import wait_for

NODE_TRACK = 0
STATES = 9
SLACK = 0.002  # microseconds: numbers in the file are rounded


def read(path):
    return json.loads(path.read_text())


def wait_aligned(torus, folder):
    """Waits until the heartbeats of a new torus have compared all clocks."""
    path = folder / 'first.json'

    def are_aligned():
        for asker in 0, torus.geometry.nodes // 2:  # each needs its own cables to be compared in its own direction
            torus.json(asker, 'exchange', '--block-size', 1, '--trace', path)
            if not all(node['aligned'] for node in read(path)['torusd']['nodes']):
                return False
        return True
    wait_for(are_aligned)
    path.unlink()


def _check_event(event, nodes):
    kind = event['ph']
    assert kind in ('X', 'C', 'M', 'i', 'b', 'e'), event
    assert isinstance(event['name'], str) and event['name'], event
    assert isinstance(event['pid'], int) and 0 <= event['pid'] < nodes, event
    assert isinstance(event['tid'], int) and isinstance(event['ts'], (int, float)), event
    if kind == 'X':
        assert event['dur'] >= 0, event
    if kind == 'C':
        assert event['args'] and all(isinstance(value, (int, float)) for value in event['args'].values()), event
    if kind == 'M':
        assert event['name'] in ('process_name', 'thread_name', 'process_sort_index') and event['args'], event
    if kind == 'i':
        assert event['s'] in ('t', 'p', 'g'), event
    if kind in 'be':
        assert event['cat'] and isinstance(event['id'], str), event


def _check_nesting(slices):
    """Slices of a track lie beside or in each other."""
    slices.sort(key=lambda event: (event['ts'], -event['dur']))
    open_until = []
    for event in slices:
        while open_until and open_until[-1] <= event['ts'] + SLACK:
            open_until.pop()
        end = event['ts'] + event['dur']
        assert not open_until or end <= open_until[-1] + SLACK, event
        open_until.append(end)


def check_structure(trace, traced):
    """The file is what Chrome's viewer and Perfetto read: see the "Trace Event Format" of Chrome. `traced` nodes
    have a process each."""
    nodes = len(trace['torusd']['nodes'])
    tracks, names, calls, counters = defaultdict(list), set(), defaultdict(list), set()
    for event in trace['traceEvents']:
        _check_event(event, nodes)
        place = event['pid'], event['tid']
        if event['ph'] == 'M':
            names.add((event['name'], *place))
        if event['ph'] == 'X':
            tracks[place].append(event)
        if event['ph'] in 'be':
            calls[event['pid'], event['id']].append(event)
        if event['ph'] == 'C':
            counters.add(event['pid'])
    assert {pid for name, pid, _ in names if name == 'process_name'} == set(traced)
    assert counters == set(traced)
    for place, slices in tracks.items():
        assert ('thread_name', *place) in names, place
        _check_nesting(slices)
    for begin, end in calls.values():
        assert (begin['ph'], end['ph']) == ('b', 'e') and begin['ts'] <= end['ts']
        assert begin['name'] == end['name']


def check_data(trace, traced):
    """What 'torusctl report' reads."""
    own = trace['torusd']
    assert own['version'] == 1 and own['seconds'] > 0 and len(own['states']) == STATES
    for node in own['nodes']:
        assert ('used' in node) == (node['rank'] in traced)
        if 'used' not in node:
            continue
        intervals = len(node['used'])
        places = intervals * node['ports']
        assert 0 < intervals <= 512 and node['interval'] >= 0.001
        assert len(node['state']) == places * STATES and set(map(type, node['state'])) == {int}
        assert all(0 <= share <= 255 for share in node['state'])
        for i in range(places):
            assert sum(node['state'][i * STATES:(i + 1) * STATES]) <= 255 + STATES
        for name in 'sent', 'received', 'queue', 'unacked', 'resent':
            assert len(node[name]) == places, name
        # Its clock has been compared, over links on which a heartbeat took far less than that.
        assert node['aligned'] and 0 <= node['clock_error'] < 0.5
        times = [event[0] for event in node['events']]
        assert times == sorted(times)


def sent(trace, rank):
    """The bytes that a node has sent."""
    return sum(trace['torusd']['nodes'][rank]['sent'])


def findings(torus, path):
    """[(kind, node, sentence)] of all that the report says."""
    return [(found['kind'], found['node'], found['text']) for found in torus.json(0, 'report', path)['findings']]


def first_finding(torus, path, besides=('processor',)):
    """(kind, node, sentence) of what stands on top of the report, besides findings of these kinds: on a busy machine, the
    daemons do wait for a processor, and the report says so first."""
    answer = torus.json(0, 'report', path)
    first = next(found for found in answer['findings'] if found['kind'] not in besides)
    assert answer['findings'] == sorted(answer['findings'], key=lambda f: -f['seconds'])
    text = torus.ctl(0, 'report', path, check=True).stdout
    assert first['text'] in ' '.join(text.split()), text
    return first['kind'], first['node'], first['text']
