"""What tests of torus-routed share."""

from .waiting import wait_for

# Everything that torus-routed may change. The kernel needs some time to notice the carrier of a new cable, and to
# forget neighbours.
SHOW = ('{ ip -o link | sed "s/ qlen.*//"; ip -o addr; ip route show table all; ip -6 route show table all; ip rule; '
        'nft list ruleset; } | sed "s/NO-CARRIER,//; s/,LOWER_UP//; s/ linkdown//; s/ state [A-Z]* / /; "'
        '"s/counter packets [0-9]* bytes [0-9]*/counter/"; '
        'cd /proc/sys/net && grep -rs . ipv4 ipv6 | grep -v /route/ | sort')


def state_of(node):
    """The interfaces, addresses, routes, rules and settings of a host, as lines."""
    return node.run('sh', '-c', SHOW).splitlines()


def reachable(geometry, up, start):
    """The nodes that the links of the set `up` lead to from `start`."""
    found, todo = {start}, [start]
    while todo:
        at = todo.pop()
        for port in geometry.ports(at):
            there = geometry.neighbour(at, port)
            if geometry.link(at, port) in up and there not in found:
                found.add(there)
                todo.append(there)
    return found


def connected_pairs(geometry, up):
    """(from, to) of all nodes that the links of the set `up` connect."""
    return [(at, to) for at in range(geometry.nodes) for to in reachable(geometry, up, at) if to != at]


def settled(torus, rank=0, down=''):
    """The report of torus-routed on this host when it knows that these links are down, and has its routes."""
    def report():
        found = torus.ip_hosts.routes(rank)
        return found if found and found['daemon'] and found['settled'] and found['down'] == down else None
    return wait_for(report, what=lambda: str(torus.ip_hosts.routes(rank)))
