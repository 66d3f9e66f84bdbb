"""The broadcast pattern in time, on an n×n torus of odd size: independent of torusctl simulate.

All nodes do the same at the same time, so that one node stands for all: what it sends in a direction, it
receives from the other side at that moment. A message is named by the node's place relative to its source."""

from collections import defaultdict
from heapq import heappop, heappush

from . import pattern

DIRECTIONS = [(0, 1), (0, -1), (1, 0), (-1, 0)]


class Server:
    """A switch or a channel, with the buffer before it."""

    def __init__(self, takes, done):
        self.takes, self.done = takes, done
        self.buffer, self.busy = [], False


def delay(n, switching, sending, longest, at_input):
    """The time until the last message arrives, without the startup."""
    onward = defaultdict(list)
    for _, node, other in pattern.in_torus(n):
        onward[node].append(other)
    ahead = {}

    def way(node):
        if node not in ahead:
            ahead[node] = max((1 + way(other) for other in onward[node]), default=0)
        return ahead[node]

    def send_on(node):
        servers = channels if at_input else switches
        for other in onward[node]:
            servers[other[0] - node[0], other[1] - node[1]].buffer.append(other)

    def arrive(direction, node):
        if at_input:
            switches[direction].buffer.append(node)
        else:
            send_on(node)

    def switched(direction, node):
        if at_input:
            send_on(node)
        else:
            channels[direction].buffer.append(node)

    own = None  # the input buffer of the node's own message
    switches = {direction: Server(switching, switched) for direction in [*DIRECTIONS, own]}
    channels = {direction: Server(sending, arrive) for direction in DIRECTIONS}
    events, now, last, count = [], 0, 0, 0
    arrive(own, (0, 0))
    while True:
        for servers in (switches, channels):
            for direction, server in servers.items():
                if server.busy or not server.buffer:
                    continue
                node = max(server.buffer, key=way) if longest else server.buffer[0]
                server.buffer.remove(node)
                server.busy = True
                count += 1
                heappush(events, (now + server.takes, count, server, direction, node))
        if not events:
            return last
        now = events[0][0]
        while events and events[0][0] == now:
            _, _, server, direction, node = heappop(events)
            server.busy = False
            server.done(direction, node)
            if server is channels.get(direction):
                last = now
