"""The index page: one HTML file with everything in it."""

from base64 import b64encode
from html import escape

from . import items
from .document import DEDUCTION, ENUMERATION, FORMULA, Table, is_number
from .torusctl import WALKED

STYLE = """
:root { color-scheme: light dark; --rule: #8886; --soft: #8882; --known: #b35c00;
  --wrong: #c00020; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { margin-top: 3rem; border-bottom: 2px solid var(--rule); }
h3 { margin-top: 2rem; font-size: 1.05rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .7rem; text-align: left; vertical-align: top; }
td { white-space: nowrap; }
td.wraps, td.verdict { white-space: normal; } td.verdict { min-width: 9rem; }
thead th { border-bottom: 1px solid var(--rule); }
th.pair { text-align: center; border-left: 1px solid var(--rule); }
td.number, th.number { text-align: right; }
tbody tr:nth-child(even) { background: var(--soft); }
tr.differs td { color: var(--known); }
tr.formula td { opacity: .7; }
tr.wrong td, .wrong { color: var(--wrong); font-weight: 600; opacity: 1; }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; background: white; }
figcaption, .note, .citation { font-size: .9rem; opacity: .85; }
"""


def write(papers, folder, parameters, with_plots):
    """Writes index.html into the folder, where the figures' files are if there are plots."""
    body = [_intro(papers, parameters)]
    for paper in papers:
        body.append(f'<h2 id="{paper.name}">{escape(paper.title)}</h2>'
                    f'<p class="citation">{escape(paper.citation)}</p>')
        items = ''.join(f'<li>{escape(remark)}</li>' for remark in paper.remarks.texts)
        items += ''.join(f'<li class="wrong">Missing: {escape(text)}</li>'
                         for text in paper.remarks.missing)
        if items:
            body.append(f'<p>Notes:</p><ul>{items}</ul>')
        for part in paper.parts:
            body.append(_table(part) if isinstance(part, Table)
                        else _figure(part, folder if with_plots else None))
    body.append(_items({part.name for paper in papers for part in paper.parts}))
    (folder / 'index.html').write_text(
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>The papers, reproduced</title><style>{STYLE}</style></head><body>\n'
        + '\n'.join(body) + '\n</body></html>\n', encoding='utf-8')


def _intro(papers, parameters):
    rows = ''
    for paper in papers:
        compared, wrong = paper.compared, len(paper.unexplained)
        counts = [len(compared), *(sum(row.by == origin for row in compared)
                                   for origin in (ENUMERATION, DEDUCTION, FORMULA)),
                  sum(row.equal for row in compared),
                  sum(row.explained and not row.equal for row in compared)]
        cells = ''.join(f'<td class="number">{count}</td>' for count in counts)
        rows += (f'<tr><td class="wraps"><a href="#{paper.name}">{escape(paper.title)}</a></td>{cells}'
                 f'<td class="number{" wrong" if wrong else ""}">{wrong}</td>'
                 f'<td><a href="{paper.name}.txt">{paper.name}.txt</a></td></tr>')
    values = ', '.join(f'{name} = {value} &micro;s' for name, value in parameters.items())
    return f"""<h1>The papers' tables and figures, reproduced</h1>
<p>Each table shows the value that the <em>paper</em> prints, or that its formula gives, beside the value found
<em>here</em>. There are three kinds of values found here:</p><ul>
<li><em>enumeration</em>: counted over all routes, messages or nodes, or the time of a simulated run. Most counts are those of
<code>torusctl plan</code>, which walks the routes that the daemons run. On tori of up to
{WALKED} nodes, an independent program follows these routes as well, and its counts must agree. The other
counts are from <code>torusctl simulate</code>, or computed from the paper's own rule, independently of
torusd.</li>
<li><em>deduction</em>: a statement of the paper, checked by the counts and formulas that it is about.</li>
<li><em>formula</em>: only the formula is known of some algorithms that papers merely compare with. Such a row
compares the formula with torusctl's copy, and shows only that both are the same.</li>
</ul><p>If a row is known to differ, it says why, and which value is found; any other difference counts
as not explained. A block is the data that one node has for one other node, or in a broadcast for all other
nodes. Times are by the cost model, with the parameters measured on the Intel Paragon: {values}.</p>
<div class="scroll"><table><thead><tr><th rowspan="2">paper</th><th rowspan="2">rows compared</th>
<th class="pair" colspan="3">of these by</th><th class="pair" colspan="3">paper and here</th>
<th rowspan="2">as text</th></tr><tr><th>enumeration</th><th>deduction</th><th>formula</th>
<th>agree</th><th>differ</th><th>not explained</th></tr></thead><tbody>{rows}</tbody></table></div>"""


def _items(made):
    """The list of items, with links to the parts that are on this page."""
    rows = ''
    for paper, listed in items.LIST.items():
        rows += f'<tr><th colspan="4">{escape(paper)}</th></tr>'
        for item in listed:
            links = ', '.join(f'<a href="#{name}">{name}</a>' if name in made else name
                              for name in item.where)
            rows += (f'<tr><td>{item.kind} {escape(item.number)}</td><td class="wraps">{escape(item.what)}'
                     f'</td><td class="wraps">{escape(items.verdict(item))}</td>'
                     f'<td class="wraps">{links}</td></tr>')
    return ('<h2 id="items">All figures, tables, theorems and algorithms of the papers</h2><p>Run: a table '
            'compares it, for the networks in brackets if there are any. Drawn: a plot or a drawing shows it. The '
            'slides do not number their drawings: the list counts them.</p><div class="scroll"><table>'
            '<thead><tr><th>item</th><th>what</th><th>how</th><th>where</th></tr></thead>'
            f'<tbody>{rows}</tbody></table></div>')


def _class(row):
    if not row.explained:
        return ' class=wrong'
    if not row.equal:
        return ' class=differs'
    return ' class=formula' if row.by == FORMULA else ''


def _table(table):
    head = ''.join(f'<th rowspan="2">{escape(label)}</th>' for label in table.labels)
    second = ''
    if table.quantities:
        head += ''.join(f'<th class="pair" colspan="2">{escape(q)}</th>' for q in table.quantities)
        head += '<th rowspan="2">agree</th>'
        second = _pairs(table)
    body = ''
    for row in table.rows:
        cells = table.cells(row)
        last = f'<td class="verdict">{escape(cells.pop())}</td>' if table.quantities else ''
        cells = ''.join(f'<td{" class=number" if is_number(cell) else ""}>{escape(cell)}</td>'
                        for cell in cells) + last
        body += f'<tr{_class(row)}>{cells}</tr>'
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ''
    return (f'<h3 id="{table.name}">{escape(table.title)}</h3>{note}<div class="scroll"><table><thead><tr>{head}</tr>'
            f'<tr>{second}</tr></thead><tbody>{body}</tbody></table></div>')


def _pairs(table):
    """The heads "paper" (or "deduced") and "here" of each quantity, aligned like the cells below."""
    heads, first = '', len(table.labels)
    for column in range(first, first + 2 * len(table.quantities)):
        numbers = all(is_number(table.cells(row)[column]) for row in table.rows)
        heads += (f'<th{" class=number" if numbers else ""}>'
                  f'{"here" if (column - first) % 2 else table.source}</th>')
    return heads


def _figure(figure, folder):
    note = f'<p class="note">{escape(figure.note)}</p>' if figure.note else ''
    note += ''.join(f'<p class="wrong">Missing: {escape(text)}</p>' for text in figure.missing)
    if folder is None:
        picture = '<p class="note">(not drawn: made without plots)</p>'
    else:
        files = [folder / f'{figure.name}.{kind}' for kind in ('svg', 'png', 'pdf')]
        links = ', '.join(f'<a href="{file.name}">{file.suffix[1:].upper()}</a>' for file in files)
        data = b64encode(files[0].read_bytes()).decode()
        picture = (f'<figure><img alt="{escape(figure.title)}" '
                   f'src="data:image/svg+xml;base64,{data}">'
                   f'<figcaption>As a file: {links}</figcaption></figure>')
    return f'<h3 id="{figure.name}">{escape(figure.title)}</h3>{note}{picture}'
