#include "client/cli/terminal/writer.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "daemon/lib/command_line/wrap.h"

/* Writes three significant digits, without an exponent or trailing zeros, and the unit. */
static void significant(char *out, double value, const char *unit)
{
    int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    int n = snprintf(out, FORMAT_SIZE, "%.*f", decimals, value);

    if (decimals > 0 && n > 0) {
        while (out[n - 1] == '0')
            n--;
        if (out[n - 1] == '.')
            n--;
    }
    (void)snprintf(out + n, FORMAT_SIZE - (size_t)n, " %s", unit);
}

void format_bytes(char *out, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t i = 0;

    while (bytes >= 1023.5 && i + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1024;
        i++;
    }
    significant(out, bytes, units[i]);
}

void format_seconds(char *out, double seconds)
{
    if (seconds < 0.9995e-3) {
        significant(out, seconds * 1e6, "us");
    } else if (seconds < 0.9995) {
        significant(out, seconds * 1e3, "ms");
    } else if (seconds < 59.95) {
        significant(out, seconds, "s");
    } else {
        unsigned long long s = (unsigned long long)((seconds < 1e15 ? seconds : 1e15) + 0.5);
        if (s < 3600)
            (void)snprintf(out, FORMAT_SIZE, "%llu min %llu s", s / 60, s % 60);
        else if (s < 86400)
            (void)snprintf(out, FORMAT_SIZE, "%llu h %llu min", s / 3600, s % 3600 / 60);
        else
            (void)snprintf(out, FORMAT_SIZE, "%llu d %llu h", s / 86400, s % 86400 / 3600);
    }
}

void format_rate(char *out, double bits)
{
    static const char *const units[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
    size_t i = 0;

    while (bits >= 999.5 && i + 1 < sizeof units / sizeof units[0]) {
        bits /= 1000;
        i++;
    }
    significant(out, bits, units[i]);
}

static void append(char *out, const char *text)
{
    size_t used = strlen(out);
    (void)snprintf(out + used, FORMAT_SIZE - used, "%s", text);
}

static void plain(char *out, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        (void)snprintf(out, FORMAT_SIZE, "%s", json_string_value(value));
        break;
    case JSON_INTEGER:
        (void)snprintf(out, FORMAT_SIZE, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    case JSON_REAL:
        (void)snprintf(out, FORMAT_SIZE, "%.6g", json_real_value(value));
        break;
    case JSON_TRUE:
        (void)snprintf(out, FORMAT_SIZE, "yes");
        break;
    case JSON_FALSE:
        (void)snprintf(out, FORMAT_SIZE, "no");
        break;
    case JSON_NULL:
        (void)snprintf(out, FORMAT_SIZE, "-");
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        out[0] = '\0';
        break;
    }
}

static void joined(char *out, const json_t *list, const char *between)
{
    size_t i;
    json_t *item;

    out[0] = '\0';
    json_array_foreach(list, i, item)
    {
        char text[FORMAT_SIZE];
        plain(text, item);
        if (i > 0)
            append(out, between);
        append(out, text);
    }
}

static void torus(char *out, const json_t *object, const json_t *dims)
{
    const json_t *wrap = json_object_get(object, "wrap"),
                 *whole = json_object_get(object, "network");
    size_t i;
    json_t *size;

    out[0] = '\0';
    if (json_is_string(whole)) {
        append(out, json_string_value(whole));
        return;
    }
    json_array_foreach(dims, i, size)
    {
        char text[32];
        (void)snprintf(text, sizeof text, "%s%" JSON_INTEGER_FORMAT "%s", i > 0 ? "x" : "",
                       json_integer_value(size), json_is_false(json_array_get(wrap, i)) ? "m" : "");
        append(out, text);
    }
}

static void number(char *out, double value, enum format format)
{
    switch (format) {
    case FORMAT_BYTES:
        format_bytes(out, value);
        break;
    case FORMAT_SECONDS:
        format_seconds(out, value);
        break;
    case FORMAT_MICROS:
        format_seconds(out, value / 1e6);
        break;
    case FORMAT_RATE:
        format_rate(out, value);
        break;
    case FORMAT_MBIT:
        format_rate(out, value * 1e6);
        break;
    case FORMAT_PERCENT:
        (void)snprintf(out, FORMAT_SIZE, "%.1f %%", value * 100);
        break;
    case FORMAT_PLAIN:
    case FORMAT_TORUS:
    case FORMAT_LINES:
        break;
    }
}

size_t format_columns(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

size_t format_field(char *out, const json_t *object, const char *key, enum format format)
{
    const json_t *value = json_object_get(object, key);

    out[0] = '\0';
    if (value == NULL)
        return 0;
    if (json_is_array(value) && format == FORMAT_TORUS)
        torus(out, object, value);
    else if (json_is_array(value))
        joined(out, value, ", ");
    else if (json_is_number(value) && format != FORMAT_PLAIN)
        number(out, json_number_value(value), format);
    else
        plain(out, value);
    return format_columns(out);
}

/* Returns the value of a field in an object; borrowed. */
static const json_t *field_value(const json_t *object, const struct field *f)
{
    return json_object_get(object, f->key != NULL ? f->key : f->label);
}

/* As format_field(), for a field of a view. */
static size_t format_value(char *out, const json_t *object, const struct field *f)
{
    return format_field(out, object, f->key != NULL ? f->key : f->label, f->format);
}

#define GAP 2       /* columns between columns */
#define FOLDED 4    /* the indentation of further lines of a row that is too wide */
#define DIVIDED 24u /* columns: longer entries may be divided before a row gets another line */

void writer_json(FILE *out, const json_t *value)
{
    /* 15 digits preserve decimals that people write, and nanoseconds up to eleven days. */
    (void)json_dumpf(value, out, JSON_COMPACT | JSON_REAL_PRECISION(15));
    (void)fputc('\n', out);
}

static void spaces(FILE *out, size_t count)
{
    while (count-- > 0)
        (void)fputc(' ', out);
}

/* ---- Records --------------------------------------------------------------------------------- */

/* A form of labels and texts. */
struct form {
    FILE *out;
    size_t columns; /* of the terminal, or SIZE_MAX */
    size_t begin;   /* the column where texts begin */
};

static void record_line(const struct form *f, const char *label, const char *text)
{
    wrap_labelled(f->out, label, f->begin, text, f->columns);
}

static void record_lines(const struct form *f, const char *label, const json_t *list)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item) record_line(f, i == 0 ? label : "", json_string_value(item));
}

static void record(FILE *out, size_t columns, const json_t *object, const struct field *fields)
{
    struct form form = {.out = out, .columns = columns};
    char text[FORMAT_SIZE];

    for (const struct field *f = fields; f->label != NULL; f++) {
        const size_t begin = format_columns(f->label) + GAP;
        if (format_value(text, object, f) > 0 && begin > form.begin)
            form.begin = begin;
    }
    for (const struct field *f = fields; f->label != NULL; f++) {
        const json_t *value = field_value(object, f);
        if (f->format == FORMAT_LINES && json_is_array(value))
            record_lines(&form, f->label, value);
        else if (json_is_string(value) && json_string_length(value) > 0)
            record_line(&form, f->label, json_string_value(value)); /* not cut to FORMAT_SIZE */
        else if (format_value(text, object, f) > 0)
            record_line(&form, f->label, text);
    }
}

static void records(FILE *out, size_t columns, const json_t *value, const struct field *fields)
{
    size_t i;
    json_t *object;

    if (json_is_object(value))
        record(out, columns, value, fields);
    json_array_foreach(value, i, object)
    {
        if (i > 0)
            (void)fputc('\n', out);
        record(out, columns, object, fields);
    }
}

/* ---- Tables ---------------------------------------------------------------------------------- */

struct column {
    size_t width; /* of the label and the longest entry; then as it is printed */
    size_t entry; /* the longest entry */
    size_t least; /* the longest word; numbers are not divided */
    bool right;   /* aligned to the right: numbers */
    bool any;     /* has entries; other columns are omitted */
    bool folded;  /* the first one of a further line of each row */
};

struct table {
    FILE *out;
    size_t columns; /* of the terminal, or SIZE_MAX */
    const struct field *fields;
    size_t count;
    struct column column[MOST_FIELDS];
};

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Returns the text of a field. `buffer` has FORMAT_SIZE bytes, for those that are not strings. */
static const char *field_text(char *buffer, const json_t *row, const struct field *field)
{
    const json_t *value = field_value(row, field);

    if (json_is_string(value))
        return json_string_value(value); /* not cut to FORMAT_SIZE */
    (void)format_value(buffer, row, field);
    return buffer;
}

static void measure(struct table *t, const json_t *row)
{
    char buffer[FORMAT_SIZE];

    for (size_t i = 0; i < t->count; i++) {
        struct column *c = &t->column[i];
        const bool number = json_is_number(field_value(row, &t->fields[i]));
        const char *text = field_text(buffer, row, &t->fields[i]);
        const size_t columns = format_columns(text);
        c->entry = larger(c->entry, columns);
        c->width = larger(c->width, columns);
        c->least = larger(c->least, number ? columns : wrap_longest(text));
        c->any = c->any || columns > 0;
        c->right = c->right || number;
    }
}

/* Returns the widest column that can be narrower, or NULL. Labels are divided before entries are. */
static struct column *to_narrow(struct column *first, const struct column *end)
{
    struct column *label = NULL, *entry = NULL;

    for (struct column *c = first; c < end; c++) {
        if (!c->any || c->width <= c->least)
            continue;
        if (c->width > c->entry && (label == NULL || c->width > label->width))
            label = c;
        if (entry == NULL || c->width > entry->width)
            entry = c;
    }
    return label != NULL ? label : entry;
}

/* Makes columns narrower until they fit, or cannot be. */
static void narrow(struct column *first, const struct column *end, size_t room)
{
    size_t total = 0;
    struct column *c;

    for (c = first; c < end; c++)
        total += c->any ? c->width + (total > 0 ? GAP : 0) : 0;
    for (; total > room && (c = to_narrow(first, end)) != NULL; total--)
        c->width--;
}

/* Returns the width that a column must have in a line of a row: labels are divided, but short entries stay whole. */
static size_t wanted_width(const struct column *c)
{
    const size_t whole = c->entry < DIVIDED ? c->entry : DIVIDED;

    return whole > c->least ? whole : c->least;
}

/* Divides the columns among the lines of a row. */
static void fold(struct table *t)
{
    struct column *first = t->column, *const end = t->column + t->count;
    size_t used = 0, room = t->columns;

    for (struct column *c = first; c < end; c++) {
        if (!c->any)
            continue;
        if (used > 0 && used + GAP + wanted_width(c) > room) {
            narrow(first, c, room);
            c->folded = true;
            first = c;
            used = 0;
            room = t->columns - FOLDED;
        }
        used += wanted_width(c) + (used > 0 ? GAP : 0);
    }
    narrow(first, end, room);
}

/* Prints what fits of the columns [first, end) in one line, and moves text[] behind it. Returns whether more is left. */
static bool print_part(const struct table *t, size_t first, size_t end, const char **text)
{
    bool more = false, any = !t->column[first].folded; /* a further line may be omitted */
    size_t gap = t->column[first].folded ? FOLDED : 0; /* so no line ends in spaces */

    for (size_t i = first; i < end; i++) {
        const struct column *c = &t->column[i];
        struct wrap_part part;
        if (!c->any)
            continue;
        part = wrap_next(&text[i], c->width);
        more = more || *text[i] != '\0';
        if (part.columns > 0) {
            any = true;
            const size_t pad = part.columns < c->width ? c->width - part.columns : 0;
            spaces(t->out, gap + (c->right ? pad : 0));
            (void)fwrite(part.text, 1, part.length, t->out);
            gap = GAP + (c->right ? 0 : pad);
        } else {
            gap += GAP + c->width;
        }
    }
    if (any)
        (void)fputc('\n', t->out);
    return more;
}

/* Prints a row of the table; the labels if `row` is NULL. */
static void line(const struct table *t, const json_t *row)
{
    char buffer[MOST_FIELDS][FORMAT_SIZE];
    const char *text[MOST_FIELDS];

    for (size_t i = 0; i < t->count; i++)
        text[i] = row != NULL ? field_text(buffer[i], row, &t->fields[i]) : t->fields[i].label;
    for (size_t first = 0, end; first < t->count; first = end) {
        for (end = first + 1; end < t->count && !t->column[end].folded; end++)
            ;
        while (print_part(t, first, end, text))
            ;
    }
}

/* Measures or prints every line of the table. */
static void for_rows(struct table *t, const struct section *s, const json_t *list, bool print)
{
    size_t i;
    json_t *object;

    json_array_foreach(list, i, object)
    {
        const char *name;
        json_t *inner;
        if (s->each == NULL) {
            if (print)
                line(t, object);
            else
                measure(t, object);
            continue;
        }
        json_object_foreach(json_object_get(object, s->each), name, inner)
        {
            json_t *row = json_copy(object);
            (void)json_object_update(row, inner);
            (void)json_object_set_new(row, "name", json_string(name));
            if (print)
                line(t, row);
            else
                measure(t, row);
            json_decref(row);
        }
    }
}

static void table(FILE *out, size_t columns, const struct section *s, const json_t *list)
{
    struct table t = {.out = out, .columns = columns, .fields = s->fields};

    for (; t.count < MOST_FIELDS && t.fields[t.count].label != NULL; t.count++) {
        const char *label = t.fields[t.count].label;
        t.column[t.count].width = format_columns(label);
        t.column[t.count].least = wrap_longest(label);
    }
    for_rows(&t, s, list, false);
    fold(&t);
    line(&t, NULL);
    for_rows(&t, s, list, true);
}

/* ---- Views ----------------------------------------------------------------------------------- */

void writer_text(FILE *out, const json_t *value, const struct view *view)
{
    const size_t columns = wrap_columns(out);
    bool first = true;

    for (size_t i = 0; i < view->count; i++) {
        const struct section *s = &view->sections[i];
        const json_t *part = s->key != NULL ? json_object_get(value, s->key) : value;
        if (part == NULL || (json_is_array(part) && json_array_size(part) == 0))
            continue;
        if (!first)
            (void)fputc('\n', out);
        first = false;
        if (s->title != NULL)
            wrap_labelled(out, "", 0, s->title, columns);
        if (s->layout == LAYOUT_RECORD)
            records(out, columns, part, s->fields);
        else
            table(out, columns, s, part);
    }
}

static void print_quoted(FILE *out, const char *text)
{
    (void)fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            (void)fputc('"', out);
        (void)fputc(*text, out);
    }
    (void)fputc('"', out);
}

void writer_csv(FILE *out, const json_t *value)
{
    if (json_is_string(value) && strpbrk(json_string_value(value), ",\"\r\n") != NULL)
        print_quoted(out, json_string_value(value));
    else if (json_is_string(value))
        (void)fputs(json_string_value(value), out);
    else if (json_is_integer(value))
        (void)fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        (void)fprintf(out, "%.9g", json_real_value(value));
    else if (json_is_boolean(value))
        (void)fputs(json_is_true(value) ? "true" : "false", out);
}
