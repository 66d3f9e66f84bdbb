"""Drawings of the slides on all-to-all personalized exchange: networks, basic permutations, the Latin square and
the switch settings. The slides do not number their drawings."""

from .. import banyan as paper
from ..document import Failed
from .sketch import (BLUE, FILL, FILLS, GREEN, INK, ORANGE, Arrow, Box, Drawing, Line, Node,
                     Sketch, Text)

M, N = 3, 8
FACTORS = (BLUE, ORANGE, GREEN)  # of φ1, φ2, φ3


def interconnection(torusctl):
    del torusctl
    marks, rows = [Box(2, -0.6, 3.2, 5.2, 'multistage\ninterconnection\nnetwork', FILLS[1])], (0, 1.2, 4)
    for y, name in zip(rows, ('$P_0$', '$P_1$', '$P_{n-1}$')):
        for x in (0.3, 6.9):
            marks.append(Node(x, y, name, FILLS[0], radius=0.42))
        marks += [Arrow((0.72, y), (2, y), INK, gap=0.02), Arrow((5.2, y), (6.48, y), INK, gap=0.02)]
    marks += [Text(x, 2.6, '⋮', 14) for x in (0.3, 6.9)]
    marks += [Text(0.3, -1.0, 'inputs'), Text(6.9, -1.0, 'outputs')]
    return Drawing('banyan-min', 'n processors and an n×n multistage interconnection network (MIN)',
                   [Sketch('', marks)], 'The processors are drawn twice: as inputs and as outputs.')


# ---- The 8×8 banyan network ----------------------------------------------------------------------

def network(crossed=None, wide=3.0):
    """The switches and lines of the network. If `crossed` is given, the lines through the switches are drawn as
    well. Lines are numbered from the top."""
    marks = []
    for stage in range(M):
        x = stage * wide
        for switch in range(N // 2):
            marks.append(Box(x, 2 * switch - 0.35, 1.2, 1.7, '', FILLS[1]))
            for line in (2 * switch, 2 * switch + 1):
                if crossed is not None:
                    end = line ^ 1 if crossed[stage] else line
                    marks.append(Line([(x, line), (x + 1.2, end)], ORANGE if crossed[stage] else BLUE, 1.4,
                                      below=False))
        for line in range(N):
            if stage + 1 < M:
                other = paper.interstage(stage, line)
                marks.append(Line([(x + 1.2, line), (x + 1.45, line), (x + wide - 0.25, other),
                                   (x + wide, other)], INK, 0.9))
    last = (M - 1) * wide + 1.2
    for line in range(N):
        marks += [Line([(-0.4, line), (0, line)], INK, 0.9), Line([(last, line), (last + 0.4, line)], INK, 0.9)]
    return marks


def banyan_network(torusctl):
    del torusctl
    marks = network(wide=3.6)
    last = 2 * 3.6 + 1.2
    for line in range(N):
        marks += [Text(-0.7, line, str(line)), Text(last + 0.7, line, str(line))]
    marks += [Text(stage * 3.6 + 0.6, -0.8, f'stage {stage}\n$\\sigma_{stage}$') for stage in range(M)]
    marks += [Text(stage * 3.6 + 2.4, -0.8, f'$\\tau_{stage}$') for stage in range(M - 1)]
    marks += [Text(-0.7, -0.8, 'inputs'), Text(last + 0.7, -0.8, 'outputs')]
    for stage in range(M):
        marks += [Text(stage * 3.6 + 0.6, 2 * switch + 0.5, str(switch), 8) for switch in range(N // 2)]
    return Drawing('banyan-network', 'An 8×8 banyan network',
                   [Sketch('', marks, '$\\tau_i$ swaps bit 0 for bit $i+1$ of a line\'s number')],
                   'An n×n network has log n stages of 2×2 switches.', scale=0.55)


# ---- Permutations and the Latin square -----------------------------------------------------------

def basic_permutations(torusctl):
    del torusctl
    marks = []
    for k in range(1, M + 1):
        y = 2.3 * (k - 1)
        marks.append(Text(-1.2, y, f'$\\phi_{k}$:', 12))
        for number in range(N):
            image = paper.phi(k, number)
            if number < image:
                height = {1: 0.55, 2: 0.5, 4: 0.36}[image - number]
                marks.append(Arrow((number, y), (image, y), FACTORS[k - 1], bend=-height / (image - number) ** 0.4,
                                   gap=0.34, both=True))
        marks += [Node(number, y, str(number), FILLS[0], radius=0.26) for number in range(N)]
    return Drawing('banyan-basic', 'Basic permutations for an 8×8 mapping', [Sketch('', marks)],
                   'Each arc is a mapping between two numbers: φ_i flips bit i − 1.', scale=0.62)


def latin_square(torusctl):
    """Draws the example of the second construction."""
    del torusctl
    start = [int(number) for number in paper.PRINTED[0].split()]
    square, codes = paper.by_iteration(M, start), paper.by_iteration(M, [0])
    factors = paper.basic_list(M)
    gray = [Node(0, 1.1 * i, f'{code[0]:03b}', FILLS[5], radius=0.36) for i, code in enumerate(codes)]
    cells = []
    for i, k in enumerate(factors):
        y = 1.1 * i
        gray += [Arrow((0, y), (0, y + 1.1), FACTORS[k - 1], gap=0.37, width=2),
                 Text(0.4, y + 0.55, f'$\\phi_{k}$', 10, FACTORS[k - 1])]
        cells += [Arrow((-0.75, y + 0.2), (-0.75, y + 0.9), FACTORS[k - 1], gap=0, width=2),
                  Text(-1.2, y + 0.55, f'$\\phi_{k}$', 10, FACTORS[k - 1])]
    cells += [Box(x - 0.5, 1.1 * i - 0.4, 1, 0.8, str(number), FILLS[1] if number % 2 else FILLS[0])
              for i, row in enumerate(square) for x, number in enumerate(row)]
    return Drawing('banyan-latin', 'The second construction of a Latin square: an example',
                   [Sketch('(a) 3-bit Gray code', gray, 'applied to number 0'),
                    Sketch('(b) 8×8 Latin square', cells, 'each row is the one above under $\\phi_i$')],
                   'Made by the algorithm LatinSquare from the first row of the printed example.', scale=0.5,
                   legend=[*((colour, f'$\\phi_{k}$') for k, colour in enumerate(FACTORS, 1)),
                           (FILL + FILLS[1], 'odd numbers')])


# ---- Switch settings -----------------------------------------------------------------------------

def switch_settings(torusctl):
    rows = torusctl.simulate('--banyan', N, '--rows')['rows']
    square, sketches = paper.by_iteration(M, paper.tau(M)), []
    for i, (row, wanted) in enumerate(zip(rows, square, strict=True)):
        crossed = [sign == 'x' for sign in row['settings']]
        if paper.permutation(M, crossed) != row['outputs'] or row['outputs'] != wanted:
            raise Failed(f'row {i}: torusctl simulate sends to {row["outputs"]}, not to {wanted}')
        marks = network(crossed, 2.6)
        marks += [Text(-0.75, line, str(line), 7) for line in range(N)]
        marks += [Text(2 * 2.6 + 1.95, output, str(source), 7) for source, output in enumerate(wanted)]
        names = ', '.join('$\\phi_1$' if cross else '$I$' for cross in crossed)
        sketches.append(Sketch(f'row {i}: {names}', marks, f'outputs {paper.numbers(wanted)}', margin=0.3))
    return Drawing('banyan-all-settings',
                   'All possible switch settings of an 8×8 banyan network, and its Latin square', sketches,
                   'Settings of torusctl simulate: all switches of a stage are crossed (φ1) or straight (I). '
                   'Left: the inputs. Right: the input whose message leaves there. The outputs of the inputs 0 1 2 … are a row '
                   'of the Latin square.', columns=4, scale=0.34,
                   legend=[(BLUE, 'straight: $I$'), (ORANGE, 'crossed: $\\phi_1$')])


MAKERS = (interconnection, banyan_network, basic_permutations, latin_square, switch_settings)
