"""How long a link may be silent, and longer limits of some neighbours."""

import json
import signal

import pytest
from support.attacks import connects
from support.background import LongExchange, stopped
from support.launcher import bench  # noqa: F401
from support.waiting import wait_for
from torus_net import find_program
from torus_net.patience import run


def wait_reason(torus, rank, port, start):
    def told():
        found = next(x for x in torus.links(rank)['links'] if x['port'] == port)
        return found['reason'].startswith(start) and not found['up']
    wait_for(told, 30, lambda: f'node {rank}: {torus.links(rank)["links"]}')


def test_settings_are_shown(loopback):
    torus = loopback('1x3', extra=lambda rank: ('--heartbeat-ms=100', '--silence-ms=700') if rank == 1 else ())
    assert [(said['heartbeat_seconds'], said['silence_seconds']) for said in map(torus.links, range(3))] == \
        [(0.25, 1), (0.1, 0.7), (0.25, 1)]
    text = torus.ctl(1, 'links').stdout
    assert '100 ms' in text and '700 ms' in text, text


@pytest.mark.parametrize('options,says', [
    (['--heartbeat-ms=fast'], 'heartbeat_ms "fast" is not a number of milliseconds from 10 to 5000'),
    (['--silence-ms=100'], 'silence_ms "100" is not a number of milliseconds from 300 to 600000'),
    (['--heartbeat-ms=600'], 'silence_ms is 1000, but must be at least twice heartbeat_ms, which is 600')])
def test_settings_that_do_not_fit(options, says):
    result = run([find_program('torusd'), '--dims=1x1', '--rank=0', *options], 20)
    assert (result.returncode, result.stdout) == (2, '') and says in result.stderr


def test_the_launcher_passes_them_on(bench):
    result = bench.run('1x2', '--loopback', '--quiet', '--heartbeat-ms', '500', '--silence-ms=2000',
                       '--run', 'torusctl --json links')
    assert result.returncode == 0, result.stderr
    said = json.loads(result.stdout)
    assert (said['heartbeat_seconds'], said['silence_seconds']) == (0.5, 2)


@pytest.mark.full
def test_a_daemon_that_does_not_run_for_a_while(loopback):
    """The daemon stops for longer than a link may be silent, idle or in the middle of an exchange. Its neighbours wait
    for five seconds, far longer than this takes on a busy machine, too."""
    torus = loopback('3x3', extra=['--heartbeat-ms=100', '--silence-ms=500'])
    before = connects(torus)

    def stop():
        begin = torus.status(0)['uptime_seconds']
        with stopped(torus.node(4)):
            wait_for(lambda: torus.status(0)['uptime_seconds'] > begin + 1, 20)
    stop()
    with LongExchange(torus, algorithm='stream') as client:
        stop()
        assert client.process.poll() is None
        client.send_signal(signal.SIGINT)
        client.end(30)
    assert connects(torus) == before


@pytest.mark.mininet
def test_a_link_that_is_silent(mininet):
    """Its carrier stays, but nothing passes."""
    torus = mininet('2x3', bw=100)
    torus.link_mute(1, '-0')
    wait_reason(torus, 1, '-0', 'silent for 1 s')
    torus.wait_broken(30, ranks=range(6))
    torus.link_unmute(1, '-0')
    torus.wait_whole(30)
