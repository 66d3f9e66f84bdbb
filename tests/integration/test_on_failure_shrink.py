"""torusctl exchange --on-failure shrink: nodes that are down are left out."""

import json
import os
import re

import pytest
from support.background import Client, LongExchange
from support.errors import assert_refused
from support.failures import others, still_works
from support.trees import check_target, listing, make_sources, random_sizes, wait_tidy
from support.waiting import wait_for


SHRINK = ('--on-failure', 'shrink')


def check_shrunk(torus, result, dead):
    left = len(torus.nodes) - len(dead)
    assert result.get('missing', []) == sorted(dead), result
    assert result['algorithm'] == 'detour' and 'without' not in result, result
    assert result['blocks_delivered'] == left * (left - 1), result
    assert [node['rank'] for node in result['per_node']] == others(torus, *dead)


@pytest.mark.slow
def test_without_nodes_that_are_down(torus):
    """Nodes are killed, also neighbours and at the same time: the others complete. Nodes that return take part
    again."""
    for dead in [9], [5, 6], [0, 10]:
        for rank in dead:
            torus.node(rank).kill()
        result = torus.exchange('auto', 20000, rank=3, options=SHRINK)
        check_shrunk(torus, result, dead)
        assert result['verified'] == 'every byte'
        result = torus.exchange('auto', 1000, rank=15, options=[*SHRINK, '--repeat', '3'])
        check_shrunk(torus, result, dead)
        shown = torus.ctl(3, 'exchange', '--block-size', 1000, *SHRINK).stdout
        assert re.search(f'^missing nodes +{", ".join(map(str, dead))}$', shown, re.M), shown
        for options in (), ('--on-failure', 'fail'):
            assert_refused(torus.ctl(3, '--json', 'exchange', '--block-size', 1000, *options), 'link')
        for rank in dead:
            torus.node(rank).start()
        torus.wait_whole(30)
        assert 'missing' not in torus.exchange('auto', 20000, rank=3, options=SHRINK)
        still_works(torus, rank=dead[0])


def test_a_daemon_is_killed_and_left_out(shared):
    torus = shared('3x3')
    with LongExchange(torus, '--json', *SHRINK, rank=3, algorithm='auto',
                      block_size='16MiB') as client:
        torus.node(8).kill()
        code, out, err = client.end(120)
        assert code == 0, err
        result = json.loads(out)
        check_shrunk(torus, result, [8])
        assert result['reroutes'] >= 1
    torus.node(8).start()
    still_works(torus, rank=8)


@pytest.mark.full
def test_files_without_a_node(loopback, tmp_path):
    """A node is killed while outputs are written: outputs have no files of it or for it, and it keeps nothing."""
    torus = loopback('3x3', data_roots=(str(tmp_path),))
    sizes = dict.fromkeys(random_sizes(9, 0), 2_000_000)
    source, target = make_sources(tmp_path, sizes), f'{tmp_path}/sub/in-%r'
    with Client(torus, '--json', 'exchange', '--from', source, '--to', target, *SHRINK) as client:
        wait_for(lambda: any('.torusd-' in path and path.endswith('/4')
                             for path in listing(tmp_path)))
        torus.node(4).kill()
        code, out, err = client.end(60)
        assert code == 0, err
    check_shrunk(torus, json.loads(out), [4])
    left = {pair: size for pair, size in sizes.items() if 4 not in pair}
    check_target(target, left)
    torus.node(4).start()
    torus.wait_whole(30)
    wait_tidy(torus, tmp_path)
    check_target(target, left)
    assert not os.path.exists(target.replace('%r', '4'))
    result = torus.exchange('auto', source=source, target=f'{tmp_path}/again-%r', options=SHRINK)
    assert 'missing' not in result
    check_target(f'{tmp_path}/again-%r', sizes)
