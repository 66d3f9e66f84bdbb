"""Text in scdoc's language (scdoc(5))."""

import re
import textwrap


def within_line(text):
    """Escapes text that does not begin a line."""
    return re.sub(r'([\\*_`])', r'\\\1', text).replace('++', r'\+\+')


def escape(text):
    """Escapes text that may begin a line."""
    return re.sub(r'^([#.;:|\]\[-])', r'\\\1', within_line(text))


def bold(text):
    return f'*{within_line(text)}*'


def underlined(text):
    return f'_{within_line(text)}_'


def literal(lines):
    """A literal block of lines."""
    return '```\n' + textwrap.dedent('\n'.join(lines)).strip('\n').replace('\\', r'\\') + '\n```\n'


def definition(term, paragraph):
    """A term, already in scdoc's language, with an indented paragraph below it."""
    return f'{term}\n\t{paragraph}\n'


def synopsis(usage):
    """The words of a usage line or a value: literal words are bold, placeholders underlined."""
    if re.fullmatch(r'[A-Z][\w,=]*', usage):
        return underlined(usage)

    def word(match):
        text = match[0]
        if text.isupper():
            return underlined(text)
        return text if text in ('option', 'options') else bold(text)
    return re.sub(r'--[a-z-]+|[A-Z][A-Z0-9]*|[a-z][a-z0-9-]*', word, usage)


def one_line(text):
    return ' '.join(text.split())


def rows_of(lines):
    """[(term, text)] if the lines are a table of two columns, else None."""
    indent = len(lines[0]) - len(lines[0].lstrip())
    found = re.match(r' *\S.*? {2,}(?=\S)', lines[0])
    if not found:
        return None
    column, rows = found.end(), []
    for line in lines:
        here = len(line) - len(line.lstrip())
        if here == column and rows:
            rows[-1][1].append(line.strip())
        elif here == indent and len(line) > column and line[column - 1] == ' ' and line[column] != ' ':
            rows.append((line[:column].strip(), [line[column:]]))
        else:
            return None
    return [(term, ' '.join(text)) for term, text in rows]


def indented(lines):
    """A table of two columns becomes definitions, everything else stays as it is."""
    rows = rows_of(lines)
    if rows is None:
        return literal(lines)
    return '\n'.join(definition(bold(term), escape(text)) for term, text in rows)


def begins_item(found):
    """Whether a line that begins with a dash may be an item here. In a paragraph, a line may begin with a dash, too."""
    kind, lines = found[-1] if found else ('', [])
    return kind != 'prose' or len(lines) == 1 or lines[-1].endswith(':')


def groups(text):
    """The text as groups (kind, lines) of successive lines of one kind: 'prose', 'indented' or 'item'."""
    found = []
    for line in text.splitlines():
        if not line.strip():
            found.append(('', []))
            continue
        kind = 'indented' if line.startswith('  ') else 'prose'
        if re.match(r' ?- ', line) and begins_item(found):
            kind = 'item'
        if kind == 'indented' and found and found[-1][0] == 'item' and not line.startswith('    '):
            kind = 'more'
        if kind == 'more':
            found[-1][1].append(line)
        elif kind != 'item' and found and found[-1][0] == kind:
            found[-1][1].append(line)
        else:
            found.append((kind, [line]))
    return found


def joined(found):
    """Joins indented groups that only empty lines divide, unless each of them is a table."""
    result = []
    for kind, lines in found:
        last = result[-2] if len(result) > 1 and not result[-1][0] else None
        if kind == 'indented' and last and last[0] == 'indented' and not (rows_of(lines) and rows_of(last[1])):
            result.pop()
            last[1].extend(['', *lines])
        else:
            result.append((kind, list(lines)))
    return [(kind, lines) for kind, lines in result if kind]


def prose(text):
    """Converts the plain text of help texts and comments: paragraphs, lists, tables, and indented lines."""
    result, before = '', None
    for kind, lines in joined(groups(text)):
        if kind == 'indented':
            part = indented(lines)
        elif kind == 'item':
            part = '- ' + escape(one_line(' '.join(lines).lstrip(' -'))) + '\n'
        else:
            part = escape(one_line(' '.join(lines))) + '\n'
        if result and (before, kind) != ('item', 'item'):
            result += '\n'
        result += part
        before = kind
    return result
