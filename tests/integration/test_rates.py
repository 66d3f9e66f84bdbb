"""The rate of a link, in `links` and in reports of exchanges."""

import pytest

pytestmark = pytest.mark.mininet

MBIT = 20


def rates(torus):
    return [link['rate_bps'] for node in torus.nodes for link in torus.links(node.rank)['links']]


def test_a_rate_is_that_of_the_link(mininet):
    """What a program sends is less than the link carries, or a burst that leaves faster: neither is a rate of the link."""
    torus = mininet('2x2', bw=MBIT)
    assert set(rates(torus)) == {None}
    for _ in range(5):
        torus.exchange('direct', 2000)
    assert set(rates(torus)) == {None}
    result = torus.exchange('stream', 2 << 20, options=['--per-node'])
    reported = [port['rate_bps'] for node in result['per_node'] for port in node['ports'].values()]
    assert len(reported) == 16
    for rate in reported + rates(torus):
        assert rate is not None and rate < 1.25e6 * MBIT  # a queue takes some 80 KB at once
