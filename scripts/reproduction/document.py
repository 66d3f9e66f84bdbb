"""What a reproduction consists of: papers, and in each tables and figures.

A table holds the paper's value of each quantity against the one found here. A row in which the two
are known to differ says why: a difference without a reason is an error of this project.
"""

from dataclasses import dataclass, field


@dataclass
class Row:
    labels: tuple
    paper: tuple = ()
    here: tuple = ()
    why: str = ''  # they may differ

    @property
    def equal(self):
        return self.paper == self.here


@dataclass
class Table:
    """`labels` head the columns that say what a row is about; each of `quantities` has two columns,
    the paper's value and the one found here. Without quantities it is a plain table."""
    name: str
    title: str
    labels: tuple
    quantities: tuple = ()
    note: str = ''
    rows: list = field(default_factory=list)

    def add(self, *labels, paper=(), here=(), why=''):
        row = Row(tuple(labels), tuple(paper), tuple(here), why)
        assert len(row.labels) == len(self.labels), self.name
        assert len(row.paper) == len(row.here) == len(self.quantities), self.name
        self.rows.append(row)

    @property
    def differing(self):
        return [row for row in self.rows if not row.equal]

    @property
    def heads(self):
        heads = list(self.labels)
        for quantity in self.quantities:
            heads += [f'{quantity}: paper', 'here']
        return heads + (['agree'] if self.quantities else [])

    def cells(self, row):
        cells = list(row.labels)
        for pair in zip(row.paper, row.here):
            cells += pair
        if self.quantities:
            cells.append('yes' if row.equal else f'no: {row.why}')
        return [show(cell) for cell in cells]


@dataclass
class Curve:
    label: str
    x: list
    y: list
    dashed: bool = False  # by a formula only
    bound: bool = False  # what no curve can be below


@dataclass
class Panel:
    title: str
    curves: list


@dataclass
class Figure:
    name: str
    title: str
    x_label: str
    y_label: str
    panels: list
    note: str = ''
    log_x: bool = True
    log_y: bool = True

    @property
    def tables(self):
        """The values of the curves, a plain table for each panel."""
        tables = []
        for panel in self.panels:
            table = Table(self.name, f'{self.title}; {panel.title}: {self.y_label}',
                          (self.x_label, *(curve.label for curve in panel.curves)))
            for x, *values in zip(panel.curves[0].x, *(curve.y for curve in panel.curves)):
                table.add(x, *values)
            tables.append(table)
        return tables


@dataclass
class Paper:
    name: str  # of its files
    title: str
    citation: str
    parts: list = field(default_factory=list)  # tables and figures, in order
    remarks: list = field(default_factory=list)  # where it and the enumeration differ, and why

    @property
    def tables(self):
        return [part for part in self.parts if isinstance(part, Table)]

    @property
    def figures(self):
        return [part for part in self.parts if isinstance(part, Figure)]

    @property
    def unexplained(self):
        return [(table, row) for table in self.tables for row in table.differing if not row.why]


def show(value):
    """A cell as text: whole numbers in full, others with four digits."""
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f'{value:.4g}' if abs(value) < 1000 else f'{value:.0f}'
    return str(value)


def is_number(text):
    return text.replace('.', '', 1).replace('e', '', 1).replace('+', '').replace('-', '').isdigit()
