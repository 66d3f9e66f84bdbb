"""What the algorithms of client/rivals send, written from their papers: nodes that hold blocks, and rounds in which they
send. Independent of the routes in client/rivals and of torusctl.

Each function yields, for every step, {(from, to): set of (source, destination, segment)}; of an allgather (source,
segment). The names of nodes are ranks, the last dimension is the fastest."""

import itertools
import math
from collections import defaultdict


def places(sizes):
    return list(itertools.product(*map(range, sizes)))


def rank(sizes, place):
    number = 0
    for size, coordinate in zip(sizes, place):
        number = number * size + coordinate % size
    return number


def all_blocks(sizes, segments=1):
    nodes = math.prod(sizes)
    return {node: {(node, other, segment) for other in range(nodes) for segment in range(segments) if other != node}
            for node in range(nodes)}


def deliver(held, messages):
    for (here, there), blocks in messages.items():
        assert blocks <= held[here]
        held[here] -= blocks
    for (here, there), blocks in messages.items():
        held[there] |= blocks


def arrived(held):
    return all(destination == node for node, blocks in held.items() for _, destination, _ in blocks)


def bruck(nodes, radix):
    """Section 3: phase 1 rotates the blocks of a node, phase 2 sends slots whose digit is z, phase 3 rotates back."""
    slots = [[(node, (node + slot) % nodes, 0) for slot in range(nodes)] for node in range(nodes)]
    weight = 1
    while weight < nodes:
        for z in range(1, radix):
            chosen = [slot for slot in range(nodes) if slot // weight % radix == z]
            if not chosen:
                continue
            before = [list(one) for one in slots]
            for node in range(nodes):
                for slot in chosen:
                    slots[(node + z * weight) % nodes][slot] = before[node][slot]
            yield {(node, (node + z * weight) % nodes): {before[node][slot] for slot in chosen}
                   for node in range(nodes)}
        weight *= radix
    assert all(slots[node][slot] == ((node - slot) % nodes, node, 0) for node in range(nodes) for slot in range(nodes))


def traeff(sizes):
    """An all-to-all in every dimension, in rounds: round j sends to the coordinate that is j higher."""
    held, at = all_blocks(sizes), places(sizes)
    for dimension, size in enumerate(sizes):
        start = {node: set(blocks) for node, blocks in held.items()}
        for j in range(1, size):
            messages = {}
            for node, place in enumerate(at):
                peer = list(place)
                peer[dimension] = (place[dimension] + j) % size
                messages[node, rank(sizes, peer)] = {
                    block for block in start[node] if at[block[1]][dimension] == peer[dimension]}
            deliver(held, messages)
            yield messages
    assert arrived(held)


def suh_shin(sizes):
    """Phases 1 and 2 within groups of nodes with equal coordinates modulo 4, 3 within 4 x 4, 4 within 2 x 2."""
    held, at = all_blocks(sizes), places(sizes)

    def step(chosen):
        """`chosen` returns, of a place, the peer's place and a test of a destination's place."""
        messages = {}
        for node, place in enumerate(at):
            peer, goes = chosen(place)
            blocks = {block for block in held[node] if goes(at[block[1]])}
            if blocks:
                messages[node, rank(sizes, peer)] = blocks
        deliver(held, messages)
        return messages

    ways = {1: ((1, 4), (0, 4), (1, -4), (0, -4)), 2: ((0, 4), (1, 4), (0, -4), (1, -4))}  # by (x + y) mod 4

    def far(phase, place):
        dimension, move = ways[phase][sum(place) % 4]
        peer = list(place)
        peer[dimension] += move
        return peer, lambda there: there[dimension] // 4 != place[dimension] // 4

    def near(dimension, hops, place):
        peer = list(place)
        peer[dimension] ^= hops  # the other half of the 2 * hops nodes
        return peer, lambda there: (there[dimension] ^ place[dimension]) & hops

    for phase in (1, 2):
        for _ in range(max(sizes) // 4 - 1):
            yield step(lambda place, phase=phase: far(phase, place))
    for turn in (1, 0):
        yield step(lambda place, turn=turn: near((sum(place) + turn) % 2, 2, place))
    for dimension in (1, 0):
        yield step(lambda place, dimension=dimension: near(dimension, 1, place))
    assert arrived(held)


def halfring(sizes):
    """Chunk i of a block goes along dimension i + phase, in two halves, hop by hop, the shorter way."""
    used = [dimension for dimension, size in enumerate(sizes) if size > 1]
    held, at = all_blocks(sizes, 2 * len(used)), places(sizes)
    for phase in range(len(used)):
        for _ in range(max(sizes) // 2):
            messages = defaultdict(set)
            for node, place in enumerate(at):
                for block in held[node]:
                    chunk, half = divmod(block[2], 2)
                    dimension = used[(chunk + phase) % len(used)]
                    size = sizes[dimension]
                    up = (at[block[1]][dimension] - place[dimension]) % size
                    if up == 0:
                        continue
                    peer = list(place)
                    peer[dimension] += 1 if up < size - up or (up == size - up and half == 0) else -1
                    messages[node, rank(sizes, peer), dimension, peer[dimension] > place[dimension]].add(block)
            deliver(held, merge(messages))
            yield dict(messages)
    assert arrived(held)


def merge(messages):
    """Two links of a ring of 2 lead to the same node."""
    merged = defaultdict(set)
    for (here, there, *_), blocks in messages.items():
        merged[here, there] |= blocks
    return merged


def swing(sizes):
    """Section 3.1: in step s of the reduce-scatter r sends to its peer the block of the peer and all that the peer sends
    on later (the paper's get_rs_idxs). The allgather goes back: r gets from the peer what it has sent to it."""
    used = [dimension for dimension, size in enumerate(sizes) if size > 1]
    at, steps = places(sizes), sum(sizes[d].bit_length() - 1 for d in used)

    def order(first):
        turn, done, result = used[first:] + used[:first], defaultdict(int), []
        for dimension in itertools.cycle(turn):
            if len(result) == steps:
                return result
            if 2 ** done[dimension] < sizes[dimension]:
                result.append((dimension, done[dimension]))
                done[dimension] += 1

    def peer(node, dimension, s, mirrored):
        distance = sum((-2) ** i for i in range(s + 1))
        place = list(at[node])
        place[dimension] += distance if (place[dimension] + mirrored) % 2 == 0 else -distance
        return rank(sizes, place)

    def later(node, rounds, mirrored):
        """The blocks that a node sends in these rounds of the reduce-scatter."""
        blocks = set()
        for i, (dimension, s) in enumerate(rounds):
            other = peer(node, dimension, s, mirrored)
            blocks |= {other} | later(other, rounds[i + 1:], mirrored)
        return blocks

    for step in reversed(range(steps)):
        messages = defaultdict(set)
        for segment in range(2 * len(used)):
            mirrored, first = divmod(segment, len(used))
            rounds = order(first)
            for node in range(len(at)):
                other = peer(node, *rounds[step], mirrored)
                messages[node, other, segment] |= {
                    (block, segment) for block in {node} | later(node, rounds[step + 1:], mirrored)}
        yield dict(messages)


def bine(nodes):
    """The authors' code: block b leaves node 0 in the step of the highest bit of nu(b); even nodes move that to the right,
    odd ones mirror it. nu is the Gray code of the negabinary number, its bits reversed."""
    steps = nodes.bit_length() - 1

    def negabinary(value):
        digits = []
        while value:
            value, digit = -(value // 2), value % 2
            digits.append(digit)
        return digits

    def step_of(block):
        for value in ((block, block - nodes) if block % 2 else (-block, nodes - block)):
            digits = negabinary(value)
            if len(digits) <= steps:
                digits += [0] * (steps - len(digits) + 1)
                gray = [digits[i] ^ digits[i + 1] for i in range(steps)]
                return steps - 1 - min(i for i in range(steps) if gray[i])
        raise AssertionError(block)

    for step in range(steps):
        distance = sum((-2) ** i for i in range(steps - step))
        received = [block for block in range(1, nodes) if step_of(block) == step]
        yield {((node + distance if node % 2 == 0 else node - distance) % nodes, node):
               {((node + block if node % 2 == 0 else node - block) % nodes, 0) for block in received}
               for node in range(nodes)}
