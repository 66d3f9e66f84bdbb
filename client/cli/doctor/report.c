#include "client/cli/doctor/report.h"

#include <string.h>

#define NAMED 4u /* hosts that a line names */

/* The finding in the list that says the same, or NULL; borrowed. */
static json_t *find_same(json_t *list, const json_t *o)
{
    static const char *const keys[] = {"severity", "check", "what", "why", "mend"};
    json_t *other;
    size_t i;

    json_array_foreach(list, i, other)
    {
        size_t equal = 0;
        while (equal < sizeof keys / sizeof *keys &&
               json_equal(json_object_get(o, keys[equal]), json_object_get(other, keys[equal])))
            equal++;
        if (equal == sizeof keys / sizeof *keys)
            return other;
    }
    return NULL;
}

/* Text in a finding may be what another machine has said, so it need not be UTF-8 where it was cut. */
static json_t *text_value(const char *text)
{
    size_t length = strlen(text);
    json_t *value;

    while ((value = json_stringn(text, length)) == NULL && length > 0)
        length--;
    return value;
}

static int add_finding(json_t *list, const struct diagnosis *d, const struct finding *f)
{
    json_t *o = json_object(), *hosts = json_array(), *ranks = json_array(), *same;
    int r = 0;

    r |= json_object_set_new(o, "severity", json_string(severity_name(f->severity)));
    r |= json_object_set_new(o, "check", json_string(f->check));
    r |= json_object_set_new(o, "hosts", hosts);
    r |= json_object_set_new(o, "ranks", ranks);
    r |= json_object_set_new(o, "what", text_value(f->what));
    r |= json_object_set_new(o, "why", json_string(f->why));
    r |= json_object_set_new(o, "mend", text_value(f->mend));
    same = find_same(list, o);
    if (f->node != FINDING_NOBODY) {
        const json_t *to = same != NULL ? same : o;
        r |= json_array_append_new(json_object_get(to, "hosts"), text_value(diagnosis_host(d, f)));
        if (d->doctor.torus != NULL)
            r |= json_array_append_new(json_object_get(to, "ranks"), json_integer(f->node));
    }
    if (same != NULL)
        json_decref(o);
    else
        r |= json_array_append_new(list, o);
    return r;
}

json_t *doctor_report_value(const struct diagnosis *d, bool all)
{
    json_t *o = json_object(), *list = json_array(), *counts = json_object();
    int r = d->doctor.no_memory ? -1 : 0;

    for (int s = SEVERITY_ERROR; s >= SEVERITY_FINE; s--) {
        const size_t before = json_array_size(list);
        for (size_t i = 0; i < d->doctor.findings; i++)
            if (d->doctor.finding[i].severity == (enum severity)s && (all || s > SEVERITY_FINE))
                r |= add_finding(list, d, &d->doctor.finding[i]);
        if (all || s > SEVERITY_FINE)
            r |= json_object_set_new(counts, severity_name((enum severity)s),
                                     json_integer((json_int_t)(json_array_size(list) - before)));
    }
    r |= json_object_set_new(o, "worst", json_string(severity_name(doctor_worst(&d->doctor))));
    r |= json_object_set_new(o, "nodes", json_integer(d->doctor.nodes));
    r |= json_object_set_new(o, "daemon", d->no_daemon[0] == '\0' ? json_true() : json_false());
    r |= json_object_set_new(o, "counts", counts);
    r |= json_object_set_new(o, "findings", list);
    if (r == 0)
        return o;
    json_decref(o);
    return NULL;
}

static const char *text_of(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text != NULL ? text : "";
}

/* "alpha, beta and 3 others: " */
static void print_hosts(FILE *out, const json_t *hosts)
{
    const size_t count = json_array_size(hosts), named = count <= NAMED ? count : NAMED - 1;

    for (size_t i = 0; i < named; i++)
        (void)fprintf(out, "%s%s", i > 0 ? (i + 1 == count ? " and " : ", ") : "",
                      json_string_value(json_array_get(hosts, i)));
    if (count > named)
        (void)fprintf(out, " and %zu others", count - named);
    if (count > 0)
        (void)fputs(": ", out);
}

void doctor_report_print(FILE *out, const json_t *value)
{
    const json_t *list = json_object_get(value, "findings"),
                 *counts = json_object_get(value, "counts"), *f;
    size_t i;

    json_array_foreach(list, i, f)
    {
        (void)fprintf(out, "%-8s %s: ", text_of(f, "severity"), text_of(f, "check"));
        print_hosts(out, json_object_get(f, "hosts"));
        (void)fprintf(out, "%s\n", text_of(f, "what"));
        if (text_of(f, "why")[0] != '\0')
            (void)fprintf(out, "         why:  %s\n", text_of(f, "why"));
        if (text_of(f, "mend")[0] != '\0')
            (void)fprintf(out, "         mend: %s\n", text_of(f, "mend"));
    }
    const long long errors = (long long)json_integer_value(json_object_get(counts, "error"));
    const long long warnings = (long long)json_integer_value(json_object_get(counts, "warning"));
    const long long hints = (long long)json_integer_value(json_object_get(counts, "hint"));
    const long long nodes = (long long)json_integer_value(json_object_get(value, "nodes"));
    (void)fprintf(out, "%s%lld %s judged: %lld %s, %lld %s, %lld %s\n",
                  json_array_size(list) > 0 ? "\n" : "", nodes, nodes == 1 ? "machine" : "machines",
                  errors, errors == 1 ? "error" : "errors", warnings,
                  warnings == 1 ? "warning" : "warnings", hints, hints == 1 ? "hint" : "hints");
}

int doctor_report_status(const struct diagnosis *d)
{
    const enum severity worst = doctor_worst(&d->doctor);

    if (d->no_daemon[0] != '\0')
        return EXIT_NO_DAEMON;
    return worst == SEVERITY_ERROR ? 2 : worst == SEVERITY_WARNING ? 1 : 0;
}
