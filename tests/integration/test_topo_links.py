"""Limits of links: --bw, --burst and --cable."""

import json
import re
from pathlib import Path

import pytest
from support.launcher import bench  # noqa: F401
from support.waiting import wait_for
from torus_net import CHECKOUT, UsageError
from torus_net.cable import CREDIT_MOST, STAND_IN, credit_bytes
from torus_net.limit import Bucket, Cable, Limit, make_limit, parse_bytes, parse_burst

pytestmark = pytest.mark.plain

SLOW = 1.0  # Mbit/s: a byte takes 8 us
LINKS = {'bucket': {'burst': 1514}, 'cable': {'cable': True}}


# --- the options ---

@pytest.mark.parametrize('text,size', [('1514', 1514), ('2KiB', 2048), ('15k', 15360), ('2KB', 2000),
                                       ('1 MiB', 1 << 20), (1514, 1514), ('1GiB', 1 << 30)])
def test_bursts(text, size):
    assert parse_bytes(text) == parse_burst(text) == size


@pytest.mark.parametrize('text', ['', '-1', '1.5k', 'fast', '0', '1513', '2GiB', '1 TiB'])
def test_bursts_that_no_link_has(text):
    with pytest.raises(UsageError):
        parse_burst(text)


def test_limits():
    assert make_limit(None) is None
    assert make_limit('20') == Limit(20.0)
    assert make_limit(20, '2KiB') == Bucket(20.0, 2048)
    assert make_limit(20, cable=True) == Cable(20.0)
    for wrong in (None, '2KiB', False), (None, None, True), (20, '2KiB', True), (20, '100', False):
        with pytest.raises(UsageError):
            make_limit(*wrong)


@pytest.mark.mininet
@pytest.mark.parametrize('options,says', [({}, 65536), ({'burst': '2KiB'}, 2048), ({'cable': True}, 0)])
def test_daemons_know_what_passes_at_once(mininet, options, says):
    torus = mininet('1x2m', bw=100, **options)
    words = Path(f'/proc/{torus.node(1).pid}/cmdline').read_text().split('\0')
    assert words[words.index('--link-burst') + 1] == str(says)


def test_the_credit_of_a_cable_fits_into_a_stand_in():
    """The credit is what the link carries in two milliseconds, limited by how much the kernel can lengthen a packet."""
    assert credit_bytes(20) == 5000 and credit_bytes(0.001) == 0
    assert credit_bytes(1000) == CREDIT_MOST and CREDIT_MOST + STAND_IN + 1514 < 16000


@pytest.mark.parametrize('options,says', [
    (['--burst', '2KiB'], '--burst needs the rate'), (['--cable'], '--cable needs the rate'),
    (['--bw', '20', '--burst', '100'], 'too small'),
    (['--bw', '20', '--burst', 'much'], 'not a size'),
    (['--bw', '20', '--burst', '2KiB', '--cable'], 'exclude each other'),
    (['--bw', '20', '--cable', '--loopback'], 'loopback links are not limited'),
    (['--bw', '20', '--burst', '2KiB', '--loopback'], 'loopback links are not limited'),
    (['--bw', '20', '--bw', '1:-1=8', '--loopback'], 'loopback links are not limited'),
    (['--bw', '1:-1=8'], 'give the rate of all others'),
    (['--bw', '20', '--bw', '10'], 'has been given already'),
    (['--bw', '20', '--bw', '4:-1=8'], 'not a port of a node of 2x2'),
    (['--bw', '20', '--bw', '1:+2=8'], 'has no port "+2"'),
    (['--bw', '20', '--bw', '1:-1=0'], 'too low')])
def test_wrong_options(bench, options, says):
    result = bench.run('2x2', *options, '--run', 'true')
    assert (result.returncode, result.stdout) == (2, '')
    assert says in result.stderr
    bench.assert_nothing_left()


def test_virtual_machines_take_a_burst():
    """Checks the guest's commands; the tests in tests/vm start machines."""
    text = (CHECKOUT / 'topo' / 'guest' / 'init').read_text()
    assert 'torus.burst=*) burst=' in text and 'tbf rate "${rate}mbit" burst "$burst"' in text


# --- the links ---

def seconds(torus, size):
    return torus.exchange('direct', size, options=['--mode', 'stepped'])['seconds']


@pytest.mark.mininet
@pytest.mark.parametrize('kind', LINKS)
def test_what_passes_at_once(mininet, kind):
    """A message never takes less time than its bytes need at the rate of the link, however slow this machine is: on a
    cable all bytes; with a burst the bytes beyond it. This holds after a pause, too, and with both directions busy."""
    torus = mininet('1x2m', bw=SLOW, **LINKS[kind])
    at_once = 1514 if kind == 'bucket' else 0
    credit = credit_bytes(SLOW) if kind == 'cable' else 0
    for size in 600, 1400, 20000, 600:
        least = (size - at_once - credit) * 8e-6 / SLOW
        assert seconds(torus, size) >= least, size


@pytest.mark.mininet
@pytest.mark.parametrize('kind', ['default', *LINKS])
def test_a_direction_with_a_rate_of_its_own(mininet, kind):
    """Only what node 1 sends is slow; then, while the torus runs, only what node 0 sends."""
    slow, size = 4, 200000
    torus = mininet('1x2m', bw=100, rates={(1, '-1'): slow}, **LINKS.get(kind, {}))
    least = (size - 65536 - 15360) * 8e-6 / slow  # without what passes at once

    def took(root):
        return torus.json(root, 'broadcast', '--root', root, '--block-size', size)['seconds']

    assert took(1) >= least
    wait_for(lambda: took(0) < least)  # on a busy machine not at once
    torus.set_rate(1, '-1', 100)
    torus.set_rate(0, '+1', slow)
    assert (torus.rate(0, '+1'), torus.rate(1, '-1')) == (slow, 100)
    assert took(0) >= least
    wait_for(lambda: took(1) < least)


@pytest.mark.mininet
def test_rates_at_the_prompt(bench):
    result = bench.run('1x2m', '--bw', '20', '--bw', '1:-1=8',
                       text='rate 1:-1\nrate 0:+1\nrate 1:-1 2\nrate 1:-1\nrate 0:+1 fast\nrate 1\nrate\n'
                            'n1 tc class show dev n1-minus1\n')
    assert result.returncode == 0, result.stderr
    assert re.findall(r'\S+ Mbit/s', result.stdout) == ['8 Mbit/s', '20 Mbit/s', '2 Mbit/s', '2 Mbit/s']
    assert '"fast" is not a rate' in result.stderr and '"1" is not a port' in result.stderr
    assert 'usage: rate RANK:PORT' in result.stderr and 'rate 2Mbit' in result.stderr
    bench.assert_nothing_left()


@pytest.mark.mininet
def test_stand_ins_stay_in_their_link(mininet):
    """Stand-ins neither arrive nor count, and every packet has one."""
    torus = mininet('1x2m', bw=SLOW, cable=True)
    node, (port,) = torus.node(0), [port.name for port in torus.geometry.ports(0)]
    torus.exchange('direct', 20000)

    def dropped():
        said = node.run('ip', '-s', '-j', 'link', 'show', 'dev', node.interface(port))
        return json.loads(said)[0]['stats64']['tx']['dropped']

    before, lost = node.counters()[port], dropped()
    torus.exchange('direct', 20000)
    after, lost = node.counters()[port], dropped() - lost
    sent = after['tx_packets'] - before['tx_packets']
    assert sent >= 14 and after['tx_bytes'] - before['tx_bytes'] < 2 * 20000
    assert abs(lost - sent) <= 8  # heartbeats between the two counters


@pytest.mark.mininet
def test_packets_are_not_cut_too_late(mininet):
    """A TCP segment longer than a packet would pass in one piece."""
    torus = mininet('1x2m', bw=20, cable=True)
    node = torus.node(1)
    said = node.run('ip', '-d', 'link', 'show', 'dev', node.interface('-1'))
    assert re.search(r'\bgso_max_segs 1\b', said)
    assert 'cable' in node.run('tc', 'filter', 'show', 'dev', node.interface('-1'), 'egress')


@pytest.mark.mininet
def test_a_cable_that_is_pulled_and_plugged_in_again(mininet):
    torus = mininet('1x3', bw=100, cable=True)
    torus.link_down(1, '+1')
    torus.wait_broken(60, ranks=range(3))
    torus.link_up(1, '+1')
    torus.wait_whole(60)
    assert torus.exchange('ar', '10000')['verified'] == 'every byte'


@pytest.mark.mininet
@pytest.mark.parametrize('kind', LINKS)
def test_every_algorithm_on_them(mininet, kind):
    torus = mininet('2x3', bw=100, **LINKS[kind])
    for row in torus.json(0, 'algorithms', '--dims', '2x3')['algorithms']:
        if row['accepts'] and row['operation'] == 'exchange':
            assert torus.exchange(row['algorithm'], 5000)['verified'] == 'every byte'


@pytest.mark.mininet
def test_mn_with_cables(bench):
    process = bench.start('mn', '--custom', str(CHECKOUT / 'topo' / 'torus.py'), '--topo',
                          'torus,1,2,bw=20,cable=1', stdin=-1)
    result = bench.end(process, 'torusctl --json status\nn0 tc filter show dev n0-plus1 egress\n')
    assert process.returncode == 0, result.stderr
    assert re.search(r'"whole":\s*true', result.stdout) and 'cable' in result.stderr + result.stdout
    bench.assert_nothing_left()
