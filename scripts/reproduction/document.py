"""The parts of a reproduction: papers with tables and figures.

A table holds, for each quantity, the paper's value and the value found here. A row whose values are known
to differ says which value is found, and why. Any other difference, or a value that cannot be found, is an
error of this project or of its algorithms.
"""

from contextlib import contextmanager
from dataclasses import dataclass, field

# Origins of the values found here.
ENUMERATION = 'enumeration'  # from every route, message or node
FORMULA = 'formula'  # from torusctl's own copy of the paper's formula
DEDUCTION = 'deduction'  # from the paper's formulas, to check a statement about them
ORIGINS = (ENUMERATION, FORMULA, DEDUCTION)


class Failed(Exception):
    """A value cannot be found: torusctl has failed, or contradicts itself."""


# Exceptions that a wrong answer of torusctl can cause.
FAILURES = (Failed, ArithmeticError, LookupError, TypeError, ValueError)


def told(failure):
    """An exception as the text of a row."""
    if isinstance(failure, Failed):
        return str(failure)
    return f'an answer of torusctl makes no sense ({type(failure).__name__}: {failure})'


@dataclass
class Row:
    labels: tuple
    paper: tuple = ()
    here: tuple = ()
    by: str = ENUMERATION
    known: tuple | None = None  # the value of `here` if it is known to differ; None: any value
    why: str = ''  # they differ
    failure: str = ''  # why there is nothing in `here`

    @property
    def equal(self):
        return not self.failure and self.paper == self.here

    @property
    def explained(self):
        if self.failure:
            return False
        return self.equal or self.why != '' and self.known in (None, self.here)

    @property
    def verdict(self):
        if self.failure:
            return f'failed: {self.failure}'
        if self.equal:
            return {ENUMERATION: 'yes', FORMULA: 'same formula', DEDUCTION: 'yes (deduced)'}[self.by]
        if self.explained:
            return f'no: {self.why}'
        expected = '' if self.known is None else f' (known: {", ".join(map(show, self.known))})'
        return f'no, and not explained{expected}'


@dataclass
class Table:
    """`labels` head the columns that say what a row is about; each of `quantities` has two columns,
    the paper's value, or one deduced from the paper, and the one found here. Without quantities it is a plain
    table."""
    name: str
    title: str
    labels: tuple
    quantities: tuple = ()
    note: str = ''
    rows: list = field(default_factory=list)
    source: str = 'paper'  # heads the paper's values: 'paper' or 'deduced'

    @contextmanager
    def row(self, *labels, paper=(), known=None, why='', by=ENUMERATION):
        """A row whose values are found in the block of the `with` statement, which sets `here`.
        An error in the block is written into the row."""
        row = Row(tuple(labels), tuple(paper), by=by, why=why,
                  known=None if known is None else tuple(known))
        assert len(row.labels) == len(self.labels), self.name
        assert len(row.paper) == len(self.quantities), self.name
        assert row.known is None or len(row.known) == len(self.quantities), self.name
        assert by in ORIGINS, self.name
        self.rows.append(row)
        try:
            yield row
            row.here = tuple(row.here)
            if len(row.here) != len(self.quantities):
                raise Failed(f'{len(row.here)} values instead of {len(self.quantities)}')
        except FAILURES as failure:
            row.here = ('-',) * len(self.quantities)
            row.failure = told(failure)

    def add(self, *labels, paper=(), here=(), **more):
        """A row whose values are known already."""
        with self.row(*labels, paper=paper, **more) as row:
            row.here = here

    @property
    def differing(self):
        return [row for row in self.rows if not row.equal]

    @property
    def heads(self):
        heads = list(self.labels)
        for quantity in self.quantities:
            heads += [f'{quantity}: {self.source}', 'here']
        return heads + (['agree'] if self.quantities else [])

    def cells(self, row):
        cells = list(row.labels)
        for pair in zip(row.paper, row.here):
            cells += pair
        if self.quantities:
            cells.append(row.verdict)
        return [show(cell) for cell in cells]


@dataclass
class Curve:
    label: str
    x: list
    y: list
    dashed: bool = False  # by a formula only
    bound: bool = False  # a lower bound of all curves


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
    missing: list = field(default_factory=list)  # "curve: why it could not be drawn"
    paper: str = ''  # printed above the title

    @contextmanager
    def curve(self, panel, label):
        """For a block that adds this curve to the panel. An error in the block is noted in the figure."""
        try:
            yield
        except FAILURES as failure:
            self.missing.append(f'{panel.title}, {label}: {told(failure)}')

    @property
    def tables(self):
        """The values of the curves, a plain table for each panel."""
        tables = []
        for panel in filter(lambda panel: panel.curves, self.panels):
            table = Table(self.name, f'{self.title}; {panel.title}: {self.y_label}',
                          (self.x_label, *(curve.label for curve in panel.curves)))
            for x, *values in zip(panel.curves[0].x, *(curve.y for curve in panel.curves)):
                table.add(x, *values)
            tables.append(table)
        return tables


@dataclass
class Remarks:
    """Where a paper and the enumeration differ, and why."""
    texts: list = field(default_factory=list)
    missing: list = field(default_factory=list)  # "remark: why it could not be made"


@dataclass
class Paper:
    name: str  # of its files
    title: str
    citation: str
    parts: list = field(default_factory=list)  # tables and figures, in order
    remarks: 'Remarks' = field(default_factory=lambda: Remarks())

    @property
    def tables(self):
        return [part for part in self.parts if isinstance(part, Table)]

    @property
    def figures(self):
        """Curves and drawings."""
        return [part for part in self.parts if not isinstance(part, Table)]

    @property
    def compared(self):
        """All rows with a value of the paper."""
        return [row for table in self.tables if table.quantities for row in table.rows]

    @property
    def unexplained(self):
        """A line for each difference without a reason, and for each value that was not found."""
        rows = [f'{table.title}: {" ".join(table.cells(row))}'
                for table in self.tables for row in table.rows if not row.explained]
        return rows + self.remarks.missing + [f'{figure.title}: {missing}' for figure in self.figures
                                              for missing in figure.missing]


def remarks(torusctl, makers):
    """The Remarks of these texts. A text that depends on counts is made by a function of torusctl, which returns
    the text."""
    made = Remarks()
    for maker in makers:
        try:
            made.texts.append(maker if isinstance(maker, str) else maker(torusctl))
        except FAILURES as failure:
            made.missing.append(f'remark on {maker.__name__.replace("_", " ")}: {told(failure)}')
    return made


def parts(torusctl, makers):
    """The parts that these functions make from torusctl's answers. A part that cannot be made becomes a table
    that says why."""
    made = []
    for make in makers:
        try:
            made.append(make(torusctl))
        except FAILURES as failure:
            name = make.__name__.replace('_', '-')
            table = Table(name, f'Not made: {name}', (), ('made',))
            with table.row(paper=(True,)):
                raise failure
            made.append(table)
    return made


def show(value):
    """A cell as text: whole numbers in full, other numbers with four digits."""
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
