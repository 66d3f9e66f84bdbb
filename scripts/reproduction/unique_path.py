"""ATAPE on omega and baseline networks, of which Yang and Wang say that their approach can be applied to them."""

from .document import Failed, Table

# A network is a function line -> line before stage 0, and for each stage but the last one after it.


def omega(m):
    """A perfect shuffle before each stage: the upper half of the lines and the lower half, alternately."""
    n = 1 << m
    shuffle = [2 * line if line < n // 2 else 2 * line - n + 1 for line in range(n)]
    return shuffle, [shuffle] * (m - 1)


def baseline(m):
    """After the first stage, the upper outputs of the switches lead to a baseline network of half the size, the
    lower ones to another."""
    links = []
    for stage in range(m - 1):
        half = (1 << m) >> (stage + 1)
        links.append([line // (2 * half) * 2 * half + line % 2 * half + line % (2 * half) // 2
                      for line in range(1 << m)])
    return list(range(1 << m)), links


NETWORKS = {'omega': omega, 'baseline': baseline}


def settled(m, wires, settings, source):
    """The line of a message behind each stage, if the switches of a stage are all straight (=) or all crossed (x)."""
    (line, links), way = (wires[0][source], wires[1]), []
    for stage in range(m):
        line ^= settings[stage] == 'x'
        way.append(line)
        line = links[stage][line] if stage + 1 < m else line
    return way


def others(torusctl):
    table = Table('banyan-others', 'ATAPE on other unique-path networks', ('network', 'n', 'stages'),
                  ('steps', 'conflicts', 'delivered'),
                  'Paper: "the proposed approach can be similarly applied to other unique-path, '
                  'self-routing multistage networks"; counts as on the banyan network. Here: every '
                  'message of every row that torusctl simulate prints, followed through the links of '
                  'the network with the settings that it prints for the row; its own counts must be '
                  'the same.')
    for name, wire in NETWORKS.items():
        for m in range(1, 7):
            n = 1 << m
            with table.row(name, n, m, paper=(n + m - 1, 0, n * n)) as row:
                run = torusctl.simulate(f'--{name}', n, '--rows')
                row.here = followed(m, wire(m), run['rows'])
                said = run['steps'], run['conflicts'], run['delivered']
                if said != row.here:
                    raise Failed(f'torusctl simulate says {said}, not {row.here}')
    return table


def followed(m, wires, rows):
    """(steps, conflicts, messages that have come to their outputs)"""
    taken, clashes, done, last = set(), 0, set(), 0
    for i, row in enumerate(rows):
        last = i + m
        for source, output in enumerate(row['outputs']):
            way = settled(m, wires, row['settings'], source)
            for stage, line in enumerate(way):
                clashes += (i + stage, stage, line) in taken
                taken.add((i + stage, stage, line))
            done |= {(source, output)} if way[-1] == output else set()
    return last, clashes, len(done)
