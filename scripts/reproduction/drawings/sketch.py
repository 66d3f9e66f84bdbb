"""The parts of a drawing. The unit of length is the distance between neighbouring nodes. x grows to the right, y
downwards."""

from dataclasses import dataclass, field

INK, GREY, PALE = '#222222', '#8a8a8a', '#e6e6e6'
BLUE, ORANGE, GREEN, PURPLE = '#0072b2', '#d55e00', '#009e73', '#b0478b'
SKY, AMBER = '#56b4e9', '#e69f00'
FILL = 'fill:'  # prefix of a colour in a legend: a filled square instead of a line
# Colours of nodes and boxes, light enough for black text.
FILLS = ('#ffffff', '#cfe6f5', '#fde3cf', '#cdeee2', '#f3d9e8', '#fdf0c4')


@dataclass
class Node:
    x: float
    y: float
    label: str = ''
    fill: str = FILLS[0]
    radius: float = 0.3
    square: bool = False
    size: float = 8  # of the label, in points
    edge: str = INK


@dataclass
class Arrow:
    """An arrow from one point to another. `gap` stays free at both ends, for the nodes."""
    start: tuple
    end: tuple
    colour: str = INK
    bend: float = 0.0  # offset of the middle from the straight line, as a share of the length; > 0: to the left
    width: float = 1.3  # points
    gap: float = 0.3
    both: bool = False  # a head at each end
    dashed: bool = False
    label: str = ''
    head: bool = True
    window: tuple = ()  # (left, upper, right, lower): the arrow is cut off at this rectangle


@dataclass
class Line:
    points: list
    colour: str = GREY
    width: float = 1.0
    dashed: bool = False
    fill: str = ''  # of the polygon, '': none
    below: bool = True  # below nodes and arrows


@dataclass
class Text:
    x: float
    y: float
    text: str
    size: float = 9
    colour: str = INK
    align: str = 'center'  # left, center or right of x
    bold: bool = False


@dataclass
class Box:
    """A rectangle; (x, y) is its upper left corner."""
    x: float
    y: float
    width: float
    height: float
    label: str = ''
    fill: str = ''
    size: float = 9
    dashed: bool = False
    colour: str = INK


@dataclass
class Sketch:
    """A panel."""
    title: str
    marks: list
    caption: str = ''  # lines below it
    margin: float = 0.5


@dataclass
class Heat:
    """A panel of coloured cells. Rows belong to named groups."""
    title: str
    rows: list  # of numbers
    groups: list  # (first row, name)
    x_label: str = 'step'
    y_label: str = 'channels'


@dataclass
class Drawing:
    name: str  # of its files
    title: str  # begins with the figure's number in the paper, if it has one
    sketches: list
    note: str = ''
    columns: int = 2
    scale: float = 0.5  # inches of a unit
    legend: list = field(default_factory=list)  # (colour of a line, or FILL + colour of a node; text)
    unit: str = ''  # of the colours of heat maps
    paper: str = ''  # printed above the title
    missing: list = field(default_factory=list)

    @property
    def tables(self):
        """Drawings have no values for the text files."""
        return []


def sets(blocks, name='M'):
    """Messages in the notation of the papers, as a formula for Matplotlib. Each source lists its destinations."""
    by_source = {}
    for source, destination in sorted(blocks):
        by_source.setdefault(source, []).append(destination)
    return ', '.join(f'${name}^{{{source}}}_{{{",".join(map(str, destinations))}}}$'
                     for source, destinations in by_source.items())
