"""A table, as plain text for the terminal or as Markdown for a page."""

from dataclasses import dataclass, field

NONE = '-'


@dataclass
class Table:
    title: str
    heads: list
    rows: list = field(default_factory=list)
    note: str = ''

    def text(self):
        lines = [self.heads] + self.rows
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.heads))]
        yield self.title
        for line in lines:
            cells = [cell.ljust(width) if i == 0 else cell.rjust(width)
                     for i, (cell, width) in enumerate(zip(line, widths))]
            yield '  '.join(cells).rstrip()
        if self.note:
            yield self.note

    def markdown(self):
        yield f'**{self.title}**'
        yield ''
        yield '| ' + ' | '.join(self.heads) + ' |'
        yield '|---' + '|---:' * (len(self.heads) - 1) + '|'
        for row in self.rows:
            yield '| ' + ' | '.join(row) + ' |'
        if self.note:
            yield ''
            yield self.note
