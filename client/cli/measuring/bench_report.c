#include "client/cli/measuring/bench_report.h"

#include <stdio.h>
#include <string.h>

#include "client/cli/terminal/json.h"

/* ---- The table ------------------------------------------------------------------------------- */

static double seconds_of(const json_t *result)
{
    return json_number_value(json_object_get(result, "seconds"));
}

/* Returns the result with the shortest time for a size, or NULL if all have failed. */
static json_t *best_of(const struct sweep *s, uint64_t size)
{
    json_t *result, *best = NULL;
    size_t i;

    json_array_foreach(s->results, i, result)
    {
        if (json_integer_value(json_object_get(result, "block_bytes")) == (json_int_t)size &&
            json_object_get(result, "error") == NULL &&
            (best == NULL || seconds_of(result) < seconds_of(best)))
            best = result;
    }
    return best;
}

/* Returns the times for a size by the names of algorithms, with a star after the shortest. NULL if no exchange of
 * this size was run. */
static json_t *row_of(const struct sweep *s, uint64_t size)
{
    const json_t *best = best_of(s, size);
    json_t *row = NULL, *result;
    size_t k;

    json_array_foreach(s->results, k, result)
    {
        char cell[FORMAT_SIZE] = "failed";
        if (json_integer_value(json_object_get(result, "block_bytes")) != (json_int_t)size)
            continue;
        if (row == NULL)
            row = json_object();
        if (json_object_get(result, "error") == NULL)
            format_seconds(cell, seconds_of(result));
        if (result == best)
            strncat(cell, " *", sizeof cell - strlen(cell) - 1);
        (void)json_object_set_new(row, json_string_value(json_object_get(result, "algorithm")),
                                  json_string(cell));
    }
    return row;
}

static json_t *table_of(const struct sweep *s)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < s->sizes; i++) {
        json_t *row = row_of(s, s->size[i]);
        if (row == NULL)
            continue;
        (void)json_object_set_new(row, "block", json_count(s->size[i]));
        if (s->link_mbit > 0)
            (void)json_object_set_new(row, "bound",
                                      json_real(torus_bound_all_port(&s->torus) *
                                                (double)s->size[i] * 8 / (s->link_mbit * 1e6)));
        (void)json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *failures_of(const struct sweep *s)
{
    json_t *rows = json_array(), *result;
    size_t i;

    json_array_foreach(s->results, i, result)
    {
        json_t *error = json_object_get(result, "error"), *row;
        if (error == NULL)
            continue;
        row = json_copy(result);
        (void)json_object_set(row, "reason", json_object_get(error, "text"));
        (void)json_array_append_new(rows, row);
    }
    return rows;
}

int bench_print_text(const struct cli *cli, const struct sweep *s)
{
    static const struct field head_fields[] = {
        {"torus", "dims", FORMAT_TORUS},
        {"nodes", "node_count", FORMAT_PLAIN},
        {"exchanges each", "repeat", FORMAT_PLAIN},
        {"times", "times", FORMAT_PLAIN},
        {0},
    };
    static const struct field failure_fields[] = {
        {"failed", "algorithm", FORMAT_PLAIN},
        {"block", "block_bytes", FORMAT_BYTES},
        {"reason", "reason", FORMAT_PLAIN},
        {0},
    };
    struct field fields[MOST_FIELDS] = {{"block", "block", FORMAT_BYTES}};
    const struct section sections[] = {
        {.layout = LAYOUT_RECORD, .fields = head_fields},
        {.layout = LAYOUT_TABLE, .key = "table", .fields = fields},
        {.layout = LAYOUT_TABLE, .key = "failures", .fields = failure_fields},
    };
    size_t columns = 1;
    json_t *o = json_object();

    for (size_t k = 0; k < s->algorithms; k++)
        fields[columns++] = (struct field){s->algorithm[k], s->algorithm[k], FORMAT_PLAIN};
    if (s->link_mbit > 0)
        fields[columns++] = (struct field){"bound", "bound", FORMAT_SECONDS};
    (void)json_set_torus(o, &s->torus);
    (void)json_object_set_new(o, "node_count", json_integer(s->torus.nodes));
    (void)json_object_set_new(o, "repeat", json_integer(s->repeat));
    (void)json_object_set_new(o, "times", json_string("medians; * marks the shortest"));
    (void)json_object_set_new(o, "table", table_of(s));
    (void)json_object_set_new(o, "failures", failures_of(s));
    return cli_print(cli, o, &(struct view){sections, 3});
}

/* ---- CSV and JSON ---------------------------------------------------------------------------- */

static void print_quoted(const char *text)
{
    (void)putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"')
            (void)putchar('"');
        (void)putchar(*text);
    }
    (void)putchar('"');
}

int bench_print_csv(const struct sweep *s)
{
    static const char *const columns[] = {"block_bytes",    "algorithm",         "mode",
                                          "seconds",        "seconds_min",       "seconds_max",
                                          "seconds_spread", "sustained_seconds", "bound_seconds",
                                          "efficiency"};
    json_t *result;
    size_t i;

    for (i = 0; i < sizeof columns / sizeof columns[0]; i++)
        (void)printf("%s,", columns[i]);
    (void)printf("repeat,error\n");
    json_array_foreach(s->results, i, result)
    {
        const json_t *error = json_object_get(result, "error");
        for (size_t k = 0; k < sizeof columns / sizeof columns[0]; k++) {
            const json_t *value = json_object_get(result, columns[k]);
            if (json_is_string(value))
                (void)printf("%s", json_string_value(value));
            else if (json_is_integer(value))
                (void)printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
            else if (json_is_real(value))
                (void)printf("%.9g", json_real_value(value));
            (void)putchar(',');
        }
        (void)printf("%u,", s->repeat);
        if (error != NULL)
            print_quoted(json_string_value(json_object_get(error, "text")));
        (void)putchar('\n');
    }
    return EXIT_DONE;
}

int bench_print_json(const struct cli *cli, const struct sweep *s)
{
    json_t *o = json_object();
    int r = json_set_torus(o, &s->torus);

    for (size_t i = 0; i < s->sizes; i++) {
        json_t *best = best_of(s, s->size[i]);
        if (best != NULL)
            r |= json_object_set_new(best, "best", json_true());
    }
    r |= json_object_set_new(o, "node_count", json_integer(s->torus.nodes));
    r |= json_object_set_new(o, "link_mbit",
                             s->link_mbit > 0 ? json_number(s->link_mbit) : json_null());
    r |= json_object_set_new(o, "repeat", json_integer(s->repeat));
    r |= json_object_set_new(o, "complete", json_boolean(!s->stopped));
    r |= json_object_set(o, "results", s->results);
    if (r != 0) {
        json_decref(o);
        o = NULL;
    }
    return cli_print(cli, o, NULL);
}
