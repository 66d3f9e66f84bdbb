"""torusctl status --all and links --all: every node, seen from any node; those that are missing are named."""

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.background import LongExchange
from support.users import free_port
from support.waiting import wait_for
from torus_net import find_program
from torus_net.patience import Patience, run, wait


def asked(torus, rank, *command):
    return json.loads(torus.ctl(rank, '--json', *command).stdout)


def test_status_shows_every_node(torus):
    answer = asked(torus, 5, 'status', '--all')
    assert answer['node_count'] == answer['answered'] == 16
    assert answer['link_ends'] == answer['link_ends_up'] == 64
    host = subprocess.run(['uname', '-n'], capture_output=True, text=True, check=True).stdout.strip()
    for rank, node in enumerate(answer['nodes']):
        assert node['rank'] == rank and node['coordinates'] == [rank // 4, rank % 4]
        assert node['host'] == host and node['outcome'] == 'answered'
        assert node['pid'] == torus.status(rank)['pid']
        assert node['links_up'] == node['links'] == 4
    text = torus.ctl(5, 'status', '--all').stdout
    assert f'{host} (node 15)' in text and '32 of 32' in text


def test_links_shows_both_ends(torus):
    answer = asked(torus, 9, 'links', '--all')
    ends = {(node['rank'], link['port']): link for node in answer['nodes'] for link in node['links']}
    assert len(ends) == 64
    for (rank, port), link in ends.items():
        assert link['up'] and link['rtt_us'] > 0
        opposite = ('-' if port[0] == '+' else '+') + port[1]
        assert ends[link['neighbour'], opposite]['neighbour'] == rank
    lines = torus.ctl(9, 'links', '--all').stdout.splitlines()
    assert len(lines) == 1 + 64


def test_an_exchange_is_shown_once_with_its_progress(torus):
    with LongExchange(torus, rank=3) as client:
        def found():
            one = [x for x in asked(torus, 12, 'status', '--all')['exchanges'] if x['id'] == client.id]
            return one if one and one[0]['state_counts'] == {'running': 16} and one[0]['done_bytes'] else None
        one = wait_for(found)
        assert len(one) == 1 and one[0]['coordinator'] == 3
        assert 0 < one[0]['done_bytes'] <= one[0]['total_bytes']


def test_an_exchange_that_has_ended_is_done(torus):
    result = torus.exchange('direct', 1000)
    wait_for(lambda: re.search(rf"^{result['id']} .* done at 16 nodes ", torus.ctl(0, 'status', '--all').stdout, re.M))


def test_missing_nodes_are_named(torus):
    for rank in 6, 7:
        torus.node(rank).kill()
    try:
        def missing():
            answer = asked(torus, 0, 'status', '--all')
            return answer if answer['answered'] == 14 and {6, 7} == {
                node['rank'] for node in answer['nodes'] if node['outcome'] == 'unreachable'} else None
        assert wait_for(missing)['nodes'][7]['host'] is None
        text = torus.ctl(0, 'links', '--all').stdout
        assert 'node 7' in text and 'is down, or cannot be reached' in text
    finally:
        for rank in 6, 7:
            torus.node(rank).start()


@pytest.mark.full
def test_many_clients_at_the_same_time(torus):
    """They share surveys, and all get an answer."""
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: asked(torus, 1, 'status', '--all'), range(20)))
    assert [answer['answered'] for answer in answers] == [16] * 20


def test_a_node_without_links(tmp_path):
    """Its survey ends in the tick in which it begins. It has taken no time, not centuries, and its clock is right."""
    socket = tmp_path / 'sock'
    with open(tmp_path / 'log', 'w') as log:
        daemon = subprocess.Popen([find_program('torusd'), '--control', socket, '--state-dir', tmp_path / 'state',
                                   '--dims', '2m', '--rank', '0', '--port', f'+0=127.0.0.1:{free_port()}'], stderr=log)
    def ask(*command):
        return json.loads(run([find_program('torusctl'), '--socket', socket, '--json', *command]).stdout or '{}')
    try:
        wait_for(lambda: ask('status').get('rank') == 0, 30)
        for _ in range(5):
            assert ask('status', '--all')['took_seconds'] < 3600
            assert ask('links', '--all')['took_seconds'] < 3600
        assert ('clocks', 'warning') not in {(one['check'], one['severity']) for one in ask('doctor')['findings']}
    finally:
        daemon.terminate()
        assert wait(daemon, Patience(30)) == 0
