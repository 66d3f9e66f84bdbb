"""The rate of a link, in `links`, in reports of exchanges, and in plans."""

import contextlib
import os
import subprocess

import pytest
from support.waiting import wait_for, wait_logged

pytestmark = pytest.mark.mininet

MBIT = 20


def rates(torus):
    return [link['rate_bps'] for node in torus.nodes for link in torus.links(node.rank)['links']]


def test_a_rate_is_that_of_the_link(mininet):
    """A program sends less than the link carries, or a burst that leaves faster: neither is the rate of the link."""
    # The mark mininet takes plain daemons: sanitizers may make them the limit instead of the link, which then has no rate.
    torus = mininet('2x2', bw=MBIT)
    assert set(rates(torus)) == {None}
    for _ in range(5):
        torus.exchange('direct', 2000)
    assert set(rates(torus)) == {None}

    def known():
        """Those of all ports and links; at first, a daemon that got no processor may have kept a link waiting."""
        result = torus.exchange('stream', 2 << 20, options=['--per-node'])
        reported = [port['rate_bps'] for node in result['per_node'] for port in node['ports'].values()]
        assert len(reported) == 16
        return None not in reported + rates(torus) and reported + rates(torus)

    assert max(wait_for(known, 60)) < 1.25e6 * MBIT  # a queue takes some 80 KB at once


def plan_of(torus, rank, port):
    [link] = [one for one in torus.links(rank)['links'] if one['port'] == port]
    return link['planned_from'], link['planned_bps'] / 1e6, link['nominal_bps'] / 1e6


def loaded(torus):
    """An exchange that keeps all links busy for a moment; its time in seconds."""
    return torus.json(0, 'exchange', '--algorithm', 'auto', '--block-size', '256KiB')['seconds']


def test_a_link_that_becomes_slow_and_well_again(mininet):
    """Nobody says that the link is slow: that is observed, plans follow, and later the link is used again."""
    torus = mininet('3x3', bw=MBIT)
    assert plan_of(torus, 4, '-1') == ('nominal', MBIT, MBIT)
    torus.set_rate(4, '-1', MBIT / 10)
    times = []

    def is_slow():
        times.append(loaded(torus))
        return plan_of(torus, 4, '-1')[0] == 'observed'
    wait_for(is_slow, 120)
    source, mbit, nominal = plan_of(torus, 4, '-1')
    assert nominal == MBIT and mbit < MBIT / 4
    wait_logged(torus.node(4).log, 'carries')
    times.append(loaded(torus))
    assert times[-1] < times[0] / 2, times
    torus.set_rate(4, '-1', MBIT)
    wait_for(lambda: plan_of(torus, 4, '-1') == ('nominal', MBIT, MBIT), 60)


def test_slow_rates_are_what_links_carry(mininet):
    """A link passes packets of the kernel as a whole; of 64 KiB, these take as long as two measurements at 1 Mbit/s."""
    torus = mininet('3x3', bw=10)
    slow = ((0, '+0'), (3, '-0'), (4, '+1'), (5, '-1'))
    for rank, port in slow:
        torus.set_rate(rank, port, 1)

    def rates():
        loaded(torus)
        return [plan_of(torus, rank, port) for rank, port in slow]
    wait_for(lambda: {one[0] for one in rates()} == {'observed'}, 120)
    wait_for(lambda: all(0.8 < one[1] < 1.25 for one in rates()), 30, rates)
    for _ in range(5):
        said = rates()
        assert all(0.8 < one[1] < 1.25 for one in said), said


def test_the_other_direction_of_a_slow_link_is_not_slow(mininet):
    """Its acknowledgements wait behind what the slow direction cannot carry, and so do its bytes."""
    torus = mininet('3x3', bw=MBIT)
    torus.set_rate(4, '-1', MBIT / 10)
    for _ in range(6):
        torus.json(0, 'exchange', '--algorithm', 'auto', '--block-size', '1MiB', timeout=120)
    wait_logged(torus.node(4).log, 'carries')
    slow = {node.rank for node in torus.nodes if 'carries' in node.log()}
    assert slow == {4}, [torus.node(rank).log() for rank in slow]


@contextlib.contextmanager
def busy_processors():
    """Four programs for each processor that only count."""
    count = 4 * len(os.sched_getaffinity(0))
    programs = [subprocess.Popen(['sh', '-c', 'while :; do :; done']) for _ in range(count)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def test_a_busy_processor_makes_no_link_slow(mininet):
    """Daemons that wait for a processor send less than their links carry: that is not the rate of any link."""
    torus = mininet('3x3', bw=MBIT)
    loaded(torus)
    with busy_processors():
        for _ in range(8):
            loaded(torus)
    said = [link['planned_from'] for node in torus.nodes for link in torus.links(node.rank)['links']]
    assert said == ['nominal'] * 36, [node.log() for node in torus.nodes if 'carries' in node.log()]
