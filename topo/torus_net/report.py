#!/usr/bin/python3
"""Reads the output of `torusctl --json exchange` from standard input and prints a short table.

The exit status is 0 if the exchange was verified.
"""

import json
import sys

try:
    from .words import counted
except ImportError:  # run as a program
    from words import counted

BYTES_MOST = 64 << 20  # the report of 4096 nodes has a few MiB


def duration(seconds):
    if seconds is None:
        return 'unknown'
    return f'{seconds:.3f} s' if seconds >= 1 else f'{seconds * 1e3:.2f} ms'


def size(count):
    for unit, factor in (('GiB', 2 ** 30), ('MiB', 2 ** 20), ('KiB', 2 ** 10)):
        if count >= factor:
            return f'{count / factor:.4g} {unit}'
    return counted(count, 'byte')


def span(values, form):
    low, high = min(values), max(values)
    return form(low) if low == high else f'{form(low)} to {form(high)}'


def rows(result):
    wrap = result.get('wrap', [True] * len(result['dims']))
    dims = 'x'.join(f'{n}' if wraps else f'{n}m' for n, wraps in zip(result['dims'], wrap))
    sent = [port['tx_bytes'] for node in result['per_node'] for port in node['ports'].values()]
    bound = result['bound_seconds']
    yield 'nodes', f'{result["node_count"]} ({dims})'
    yield 'algorithm', f'{result["algorithm"]}, {result["mode"]}'
    yield 'block', size(result['block_bytes'])
    if result['mode'] == 'stepped':  # nothing else has steps
        yield 'steps', f'{result["startups"]}' + (f' in each of {result["rounds"]} rounds'
                                                  if result['rounds'] > 1 else '')
    yield 'bytes sent per port', span(sent, size) if sent else 'no ports'
    yield 'time', duration(result['seconds'])
    if bound:
        yield 'bound', f'{duration(bound)} ({result["efficiency"]:.0%} of it reached)'
    else:
        yield 'bound', 'unknown (no link rate)'
    yield 'verified', (f'{result["verified"]} of all {result["blocks_delivered"]} blocks'
                       if result['verified'] != 'nothing' else 'NO')


def main():
    text = sys.stdin.buffer.read(BYTES_MOST + 1)
    if len(text) > BYTES_MOST:
        sys.exit(f'standard input is longer than the {BYTES_MOST >> 20} MiB that a result can have')
    try:
        result = json.loads(text)
        lines = list(rows(result))
    except (ValueError, RecursionError) as e:
        sys.exit(f'standard input is not a JSON object: {e}')
    except (LookupError, TypeError, AttributeError):
        sys.exit('standard input is JSON, but not what torusctl --json exchange prints')
    for name, value in lines:
        print(f'  {name:24s} {value}')
    return 0 if result['verified'] != 'nothing' else 1


if __name__ == '__main__':
    sys.exit(main())
