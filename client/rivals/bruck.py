"""Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient Algorithms for All-to-All Communications in Multiport
Message-Passing Systems (IEEE TPDS 8(11), 1997), the index algorithm with radix r and one port. The rule
is the well-known one; the paper's section was not at hand.

A block for the node that is o higher is written in base r. In subphase (x, z), z from 1 to r - 1, all blocks whose digit x
is z move z * r^x nodes up, as one message. In the paper each pair of nodes has a link: that is complete:N. On a ring
(ours) the message goes along the ring, on the shorter side."""

radix = 2
ports = 'one-port'


def name(network):
    return f'bruck-r{radix}'


def refuses(network):
    return 'one ring, or one complete graph' if len(network.sizes) > 1 or not (
        network.wraps[0] or network.direction(0, 0, network.nodes - 1)) else None


def period(network):
    return [1]


def route(network, source, destination, segment):
    nodes, offset = network.nodes, (destination - source) % network.nodes
    legs, step, weight, here = [], 0, 1, source
    while weight < nodes:
        digit = offset // weight % radix
        for z in range(1, radix):
            if z * weight < nodes:
                if z == digit:
                    legs.append((step, *run(network, here, z * weight)))
                    here = (here + z * weight) % nodes
                step += 1
        weight *= radix
    return legs


def run(network, here, up):
    """Dimension, direction and hops to the node that is `up` higher."""
    nodes = network.nodes
    if not network.wraps[0]:
        return 0, network.direction(0, here, (here + up) % nodes), 1
    return (0, 1, up) if 2 * up <= nodes else (0, -1, nodes - up)
