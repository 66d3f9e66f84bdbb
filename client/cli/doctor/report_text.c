/* Prints the value of a diagnosis for people. */
#include <stdlib.h>
#include <string.h>

#include "client/cli/doctor/report.h"
#include "daemon/lib/command_line/wrap.h"
#include "proto/text.h"

#define NAMED 4u /* hosts that a line names */
#define SHOWN 4u /* of one kind, with their texts */

/* Columns where texts begin. */
#define FINDINGS 9
#define TEXTS 15

static const char *text_of(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text != NULL ? text : "";
}

static bool is_unseen(const json_t *f)
{
    return strcmp(text_of(f, "severity"), severity_name(SEVERITY_UNSEEN)) == 0;
}

/* Where findings are printed, a line at a time. */
struct page {
    FILE *out;
    size_t columns; /* of the terminal, or SIZE_MAX */
    FILE *line;     /* what is put together, into `text` */
    char *text;
    size_t size;
};

/* Prints what was put together behind a label, and begins the next line. */
static void end_line(struct page *p, const char *label, size_t begin)
{
    (void)fputc('\0', p->line); /* an earlier, longer text may have left characters behind it */
    if (fflush(p->line) == 0)
        wrap_labelled(p->out, label, begin, p->text, p->columns);
    rewind(p->line);
}

/* "alpha, beta and 3 others: " */
static void add_hosts(struct page *p, const json_t *hosts)
{
    const size_t count = json_array_size(hosts), named = count <= NAMED ? count : NAMED - 1;

    for (size_t i = 0; i < named; i++)
        (void)fprintf(p->line, "%s%s", i > 0 ? (i + 1 == count ? " and " : ", ") : "",
                      json_string_value(json_array_get(hosts, i)));
    if (count > named)
        (void)fprintf(p->line, " and %zu others", count - named);
    if (count > 0)
        (void)fputs(": ", p->line);
}

static void print_mend(struct page *p, const char *mend)
{
    if (mend[0] != '\0')
        wrap_labelled(p->out, "         mend: ", TEXTS, mend, p->columns);
}

/* Prints the first few of the other cases that a finding has, each with what mends it. */
static void print_others(struct page *p, const json_t *f, const char **mend)
{
    const json_t *each = json_object_get(f, "each");
    const size_t count = json_array_size(each);

    for (size_t i = 1; i < count && i < SHOWN; i++) {
        const json_t *one = json_array_get(each, i);
        if (strcmp(text_of(one, "what"), text_of(f, "what")) == 0)
            continue;
        if (strcmp(text_of(one, "mend"), *mend) != 0)
            print_mend(p, *mend);
        *mend = text_of(one, "mend");
        (void)fprintf(p->line, "%s%s%s", text_of(one, "host"),
                      text_of(one, "host")[0] != '\0' ? ": " : "", text_of(one, "what"));
        end_line(p, "         also: ", TEXTS);
    }
    if (count > SHOWN) {
        (void)fprintf(p->line, "and %zu more of this kind (torusctl --json doctor)", count - SHOWN);
        end_line(p, "", FINDINGS);
    }
}

static void print_finding(struct page *p, const json_t *f)
{
    const char *mend = text_of(f, "mend");

    (void)fprintf(p->line, "%s: ", text_of(f, "check"));
    add_hosts(p, json_object_get(f, "hosts"));
    (void)fputs(text_of(f, "what"), p->line);
    end_line(p, text_of(f, "severity"), FINDINGS);
    print_others(p, f, &mend);
    print_mend(p, mend);
    if (text_of(f, "why")[0] != '\0')
        wrap_labelled(p->out, "         why:  ", TEXTS, text_of(f, "why"), p->columns);
}

static bool same_sight(const json_t *a, const json_t *b)
{
    return json_equal(json_object_get(a, "what"), json_object_get(b, "what")) &&
           json_equal(json_object_get(a, "hosts"), json_object_get(b, "hosts"));
}

/* What could not be seen: the checks that one cause hides on the same hosts are one line. */
static void print_unseen(struct page *p, const json_t *list, size_t at)
{
    const json_t *f = json_array_get(list, at), *other;
    size_t i, checks = 0;

    for (i = 0; i < at; i++)
        if (is_unseen(json_array_get(list, i)) && same_sight(json_array_get(list, i), f))
            return; /* printed with that one */
    json_array_foreach(list, i, other)
    {
        if (is_unseen(other) && same_sight(other, f))
            (void)fprintf(p->line, "%s%s", checks++ > 0 ? ", " : "", text_of(other, "check"));
    }
    (void)fputs(": ", p->line);
    add_hosts(p, json_object_get(f, "hosts"));
    (void)fputs(text_of(f, "what"), p->line);
    end_line(p, "not seen", FINDINGS);
    print_mend(p, text_of(f, "mend"));
}

static long long number_of(const json_t *o, const char *key)
{
    return (long long)json_integer_value(json_object_get(o, key));
}

/* "; 3 checks could not be seen on 2 hosts" */
static void print_count_of_unseen(FILE *out, const json_t *list)
{
    json_t *checks = json_object(), *hosts = json_object();
    const json_t *f, *host;
    size_t i, k;

    json_array_foreach(list, i, f)
    {
        if (!is_unseen(f))
            continue;
        (void)json_object_set_new(checks, text_of(f, "check"), json_null());
        json_array_foreach(json_object_get(f, "hosts"), k, host)
        {
            (void)json_object_set_new(hosts, json_string_value(host), json_null());
        }
    }
    if (json_object_size(checks) > 0)
        (void)fprintf(out, "; %zu %s could not be seen on %zu %s", json_object_size(checks),
                      text_plural(json_object_size(checks), "check", "checks"),
                      json_object_size(hosts),
                      text_plural(json_object_size(hosts), "host", "hosts"));
    json_decref(checks);
    json_decref(hosts);
}

static void print_count(FILE *out, const json_t *counts, const char *name)
{
    const long long count = number_of(counts, name);

    (void)fprintf(out, "%lld %s%s", count, name, count == 1 ? "" : "s");
}

/* "4 of 4 hosts answered: 1 error, 0 warnings, 2 hints" */
static void print_counts(struct page *p, const json_t *value)
{
    const json_t *counts = json_object_get(value, "counts");
    const long long nodes = number_of(value, "node_count");

    if (json_is_true(json_object_get(value, "daemon")))
        (void)fprintf(p->line, "%lld of %lld %s answered: ",
                      number_of(json_object_get(value, "answered"), "state"), nodes,
                      text_plural((uint64_t)nodes, "host", "hosts"));
    else
        (void)fputs("this host alone was judged: ", p->line);
    print_count(p->line, counts, "error");
    (void)fputs(", ", p->line);
    print_count(p->line, counts, "warning");
    (void)fputs(", ", p->line);
    print_count(p->line, counts, "hint");
    print_count_of_unseen(p->line, json_object_get(value, "findings"));
    end_line(p, "", 0);
}

int doctor_report_print(FILE *out, const json_t *value)
{
    const json_t *list = json_object_get(value, "findings"), *f;
    struct page p = {.out = out, .columns = wrap_columns(out)};
    size_t i;

    p.line = open_memstream(&p.text, &p.size);
    if (p.line == NULL)
        return -1;
    json_array_foreach(list, i, f)
    {
        if (is_unseen(f))
            print_unseen(&p, list, i);
        else
            print_finding(&p, f);
    }
    if (json_array_size(list) > 0)
        (void)fputc('\n', out);
    print_counts(&p, value);
    const int r = ferror(p.line) != 0 ? -1 : 0;
    (void)fclose(p.line);
    free(p.text);
    return r;
}
