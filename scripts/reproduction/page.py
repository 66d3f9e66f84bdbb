"""The index page: one HTML file with everything in it."""

from base64 import b64encode
from html import escape

from .document import Table, is_number

STYLE = """
:root { color-scheme: light dark; --rule: #8886; --soft: #8882; --bad: #b35c00; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { margin-top: 3rem; border-bottom: 2px solid var(--rule); }
h3 { margin-top: 2rem; font-size: 1.05rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .7rem; text-align: left; vertical-align: top; }
thead th { border-bottom: 1px solid var(--rule); }
th.pair { text-align: center; border-left: 1px solid var(--rule); }
td.number, th.number { text-align: right; }
tbody tr:nth-child(even) { background: var(--soft); }
tr.differs td { color: var(--bad); }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; background: white; }
figcaption, .note, .citation { font-size: .9rem; opacity: .85; }
"""


def write(papers, folder, parameters, with_plots):
    """Writes index.html into the folder, where the figures' files are if there are plots."""
    body = [_intro(papers, parameters)]
    for paper in papers:
        body.append(f'<h2 id="{paper.name}">{escape(paper.title)}</h2>'
                    f'<p class="citation">{escape(paper.citation)}</p>')
        if paper.remarks:
            items = ''.join(f'<li>{escape(remark)}</li>' for remark in paper.remarks)
            body.append(f'<p>Where the paper and what is counted here differ:</p><ul>{items}</ul>')
        for part in paper.parts:
            body.append(_table(part) if isinstance(part, Table)
                        else _figure(part, folder if with_plots else None))
    (folder / 'index.html').write_text(
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>The papers, reproduced</title><style>{STYLE}</style></head><body>\n'
        + '\n'.join(body) + '\n</body></html>\n', encoding='utf-8')


def _intro(papers, parameters):
    rows = ''
    for paper in papers:
        compared = sum(len(table.rows) for table in paper.tables if table.quantities)
        differing = sum(len(table.differing) for table in paper.tables)
        rows += (f'<tr><td><a href="#{paper.name}">{escape(paper.title)}</a></td>'
                 f'<td class="number">{compared}</td><td class="number">{compared - differing}</td>'
                 f'<td class="number">{differing}</td>'
                 f'<td><a href="{paper.name}.txt">{paper.name}.txt</a></td></tr>')
    values = ', '.join(f'{name} = {value} &micro;s' for name, value in parameters.items())
    return f"""<h1>The papers' tables and figures, reproduced</h1>
<p>Everything here comes from <code>torusctl plan</code>, <code>predict</code> and
<code>bounds</code>, which walk the routes of the schedules that the daemons run. <em>Paper</em> is
what the paper prints, or what its formula gives; <em>here</em> is what was found:
by <em>enumeration</em> of every route, or, for algorithms that only papers compare with, by the
library's own copy of the <em>formula</em>. One block is what one node has for one other. Times are
by the cost model, with the parameters measured on the Intel Paragon: {values}.</p>
<div class="scroll"><table><thead><tr><th>paper</th><th>rows compared</th><th>agree</th>
<th>differ</th><th>as text</th></tr></thead><tbody>{rows}</tbody></table></div>"""


def _table(table):
    head = ''.join(f'<th rowspan="2">{escape(label)}</th>' for label in table.labels)
    second = ''
    if table.quantities:
        head += ''.join(f'<th class="pair" colspan="2">{escape(q)}</th>' for q in table.quantities)
        head += '<th rowspan="2">agree</th>'
        second = '<th class="number">paper</th><th class="number">here</th>' * len(table.quantities)
    body = ''
    for row in table.rows:
        cells = ''.join(f'<td{" class=number" if is_number(cell) else ""}>{escape(cell)}</td>'
                        for cell in table.cells(row))
        body += f'<tr{"" if row.equal else " class=differs"}>{cells}</tr>'
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ''
    return (f'<h3>{escape(table.title)}</h3>{note}<div class="scroll"><table><thead><tr>{head}</tr>'
            f'<tr>{second}</tr></thead><tbody>{body}</tbody></table></div>')


def _figure(figure, folder):
    note = f'<p class="note">{escape(figure.note)}</p>' if figure.note else ''
    if folder is None:
        picture = '<p class="note">(not drawn: made without plots)</p>'
    else:
        files = [folder / f'{figure.name}.{kind}' for kind in ('svg', 'png')]
        links = ', '.join(f'<a href="{file.name}">{file.suffix[1:].upper()}</a>' for file in files)
        data = b64encode(files[0].read_bytes()).decode()
        picture = (f'<figure><img alt="{escape(figure.title)}" '
                   f'src="data:image/svg+xml;base64,{data}">'
                   f'<figcaption>As a file: {links}</figcaption></figure>')
    return f'<h3>{escape(figure.title)}</h3>{note}{picture}'
