"""A paper's tables, and the values of its figures' curves, as plain text."""

from textwrap import fill

from .document import is_number


def write(paper, path):
    path.write_text('\n'.join(_paper(paper)) + '\n', encoding='utf-8')


def _paper(paper):
    yield paper.title
    yield '=' * len(paper.title)
    yield fill(paper.citation, 100)
    for remark in paper.remarks.texts + [f'Missing: {text}' for text in paper.remarks.missing]:
        yield ''
        yield fill(remark, 100, initial_indent='- ', subsequent_indent='  ')
    for figure in paper.figures:
        for missing in figure.missing:
            yield ''
            yield fill(f'Missing in {figure.title}: {missing}', 100)
    curves = [table for figure in paper.figures for table in figure.tables]
    for table in paper.tables + curves:
        yield ''
        yield ''
        yield table.title
        yield '-' * len(table.title)
        if table.note:
            yield fill(table.note, 100)
        yield ''
        yield from _table(table)


def _table(table):
    lines = [table.heads] + [table.cells(row) for row in table.rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.heads))]
    rights = [all(is_number(line[i]) for line in lines[1:]) or _is_value(table, i)
              for i in range(len(table.heads))]
    for line in lines:
        cells = [cell.rjust(width) if right else cell.ljust(width)
                 for cell, width, right in zip(line, widths, rights)]
        yield '  '.join(cells).rstrip()


def _is_value(table, column):
    return len(table.labels) <= column < len(table.heads) - 1
