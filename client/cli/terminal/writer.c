#include "client/cli/terminal/writer.h"

#include <string.h>

#define GAP 2 /* columns between columns */

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

static void record_line(FILE *out, const char *label, size_t width, const char *text)
{
    (void)fputs(label, out);
    spaces(out, width - format_columns(label) + GAP);
    (void)fputs(text, out);
    (void)fputc('\n', out);
}

static void record_lines(FILE *out, const char *label, size_t width, const json_t *list)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
        record_line(out, i == 0 ? label : "", width, json_string_value(item));
}

static void record(FILE *out, const json_t *object, const struct field *fields)
{
    char text[FORMAT_SIZE];
    size_t width = 0;

    for (const struct field *f = fields; f->label != NULL; f++) {
        size_t columns = format_columns(f->label);
        if (format_field(text, object, f->key, f->format) > 0 && columns > width)
            width = columns;
    }
    for (const struct field *f = fields; f->label != NULL; f++) {
        const json_t *value = json_object_get(object, f->key);
        if (f->format == FORMAT_LINES && json_is_array(value))
            record_lines(out, f->label, width, value);
        else if (json_is_string(value) && json_string_length(value) > 0)
            record_line(out, f->label, width,
                        json_string_value(value)); /* not cut to FORMAT_SIZE */
        else if (format_field(text, object, f->key, f->format) > 0)
            record_line(out, f->label, width, text);
    }
}

static void records(FILE *out, const json_t *value, const struct field *fields)
{
    size_t i;
    json_t *object;

    if (json_is_object(value))
        record(out, value, fields);
    json_array_foreach(value, i, object)
    {
        if (i > 0)
            (void)fputc('\n', out);
        record(out, object, fields);
    }
}

/* ---- Tables ---------------------------------------------------------------------------------- */

struct table {
    FILE *out;
    const struct field *fields;
    size_t width[MOST_FIELDS];
    bool right[MOST_FIELDS]; /* aligned to the right: numbers */
    bool any[MOST_FIELDS];   /* has entries; other columns are omitted */
};

static void measure(struct table *t, const json_t *row)
{
    char text[FORMAT_SIZE];
    for (size_t i = 0; i < MOST_FIELDS && t->fields[i].label != NULL; i++) {
        size_t n = format_field(text, row, t->fields[i].key, t->fields[i].format);
        if (n > t->width[i])
            t->width[i] = n;
        t->any[i] = t->any[i] || n > 0;
        t->right[i] = t->right[i] || json_is_number(json_object_get(row, t->fields[i].key));
    }
}

/* Prints a line of the table; the labels if `row` is NULL. */
static void line(const struct table *t, const json_t *row)
{
    size_t owed = 0; /* spaces to print before the next text; so no line ends in spaces */

    for (size_t i = 0; i < MOST_FIELDS && t->fields[i].label != NULL; i++) {
        char text[FORMAT_SIZE];
        size_t n, pad;
        if (!t->any[i])
            continue;
        if (row != NULL) {
            n = format_field(text, row, t->fields[i].key, t->fields[i].format);
        } else {
            (void)snprintf(text, sizeof text, "%s", t->fields[i].label);
            n = format_columns(text);
        }
        pad = t->width[i] - n;
        if (n > 0) {
            spaces(t->out, owed + (t->right[i] ? pad : 0));
            (void)fputs(text, t->out);
            owed = 0;
        }
        owed += GAP + (n == 0 ? t->width[i] : t->right[i] ? 0 : pad);
    }
    (void)fputc('\n', t->out);
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

static void table(FILE *out, const struct section *s, const json_t *list)
{
    struct table t = {.out = out, .fields = s->fields};

    for (size_t i = 0; i < MOST_FIELDS && t.fields[i].label != NULL; i++)
        t.width[i] = format_columns(t.fields[i].label);
    for_rows(&t, s, list, false);
    line(&t, NULL);
    for_rows(&t, s, list, true);
}

/* ---- Views ----------------------------------------------------------------------------------- */

void writer_text(FILE *out, const json_t *value, const struct view *view)
{
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
            (void)fprintf(out, "%s\n", s->title);
        if (s->layout == LAYOUT_RECORD)
            records(out, part, s->fields);
        else
            table(out, s, part);
    }
}
