#include "client/cli/doctor/report.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/command_line/wrap.h"
#include "proto/text.h"

#define NAMED 4u /* hosts that a line names */
#define SHOWN 4u /* of one kind, with their texts */

/* Columns where texts begin. */
#define FINDINGS 9
#define TEXTS 15

/* The finding in the list that has the same cause, or NULL; borrowed. A cause of what is wrong has one `why`. What is
 * fine, or was not seen, is the same if it says the same. */
static json_t *find_same(json_t *list, const json_t *o, bool wrong)
{
    static const char *const keys[] = {"severity", "check", "why", "what"};
    const char *why = json_string_value(json_object_get(o, "why"));
    const size_t compared = wrong && why != NULL && why[0] != '\0' ? 3 : 4;
    json_t *other;
    size_t i;

    json_array_foreach(list, i, other)
    {
        size_t equal = 0;
        while (equal < compared &&
               json_equal(json_object_get(o, keys[equal]), json_object_get(other, keys[equal])))
            equal++;
        if (equal == compared)
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

static bool has_text(const json_t *array, const char *text)
{
    const json_t *one;
    size_t i;

    json_array_foreach(array, i, one)
    {
        if (strcmp(json_string_value(one), text) == 0)
            return true;
    }
    return false;
}

/* Names a node, once. */
static int add_host(json_t *to, const struct diagnosis *d, uint32_t node)
{
    json_t *hosts = json_object_get(to, "hosts");
    json_t *name = node < d->doctor.nodes ? text_value(d->doctor.node[node].host) : NULL;
    int r = 0;

    if (name == NULL)
        return 0;
    if (has_text(hosts, json_string_value(name))) {
        json_decref(name);
        return 0;
    }
    r |= json_array_append_new(hosts, name);
    if (d->doctor.torus != NULL)
        r |= json_array_append_new(json_object_get(to, "ranks"), json_integer(node));
    return r;
}

static int add_finding(json_t *list, const struct diagnosis *d, const struct finding *f)
{
    const bool wrong = f->severity > SEVERITY_UNSEEN;
    json_t *o = json_object(), *each = json_object(), *same;
    int r = 0;

    r |= json_object_set_new(o, "severity", json_string(severity_name(f->severity)));
    r |= json_object_set_new(o, "check", json_string(f->check));
    r |= json_object_set_new(o, "hosts", json_array());
    r |= json_object_set_new(o, "ranks", json_array());
    r |= json_object_set_new(o, "what", text_value(f->what));
    r |= json_object_set_new(o, "why", json_string(f->why));
    r |= json_object_set_new(o, "mend", text_value(f->mend));
    r |= json_object_set_new(each, "host", text_value(diagnosis_host(d, f)));
    r |= json_object_set_new(each, "what", text_value(f->what));
    r |= json_object_set_new(each, "mend", text_value(f->mend));
    if (wrong)
        r |= json_object_set_new(o, "each", json_array());
    same = find_same(list, o, wrong);
    json_t *to = same != NULL ? same : o;
    r |= add_host(to, d, f->node) | add_host(to, d, f->peer);
    if (wrong)
        r |= json_array_append(json_object_get(to, "each"), each);
    json_decref(each);
    if (same != NULL)
        json_decref(o);
    else
        r |= json_array_append_new(list, o);
    return r;
}

/* --- of how many hosts what was seen --- */

struct sights {
    const char *check;
    uint32_t fine, unseen, wrong;
};

/* What a check says of a node is the worst that it has found. Something that was not seen outweighs what was fine. */
static int count_sights(const struct doctor *d, struct sights *s)
{
    int *worst = malloc((d->nodes + 1) * sizeof *worst);

    if (worst == NULL)
        return -1;
    for (uint32_t node = 0; node < d->nodes; node++)
        worst[node] = -1;
    for (size_t i = 0; i < d->findings; i++) {
        const struct finding *f = &d->finding[i];
        const uint32_t ends[] = {f->node, f->peer};
        if (strcmp(f->check, s->check) != 0)
            continue;
        for (size_t end = 0; end < 2; end++)
            if (ends[end] < d->nodes && worst[ends[end]] < (int)f->severity)
                worst[ends[end]] = (int)f->severity;
        /* A finding without a node is about all nodes. */
        for (uint32_t node = 0; node < d->nodes && f->node == FINDING_NOBODY; node++)
            if (worst[node] < (int)f->severity)
                worst[node] = (int)f->severity;
    }
    for (uint32_t node = 0; node < d->nodes; node++) {
        s->fine += worst[node] == SEVERITY_FINE;
        s->unseen += worst[node] == SEVERITY_UNSEEN;
        s->wrong += worst[node] > SEVERITY_UNSEEN;
    }
    free(worst);
    return 0;
}

static bool is_first(const struct doctor *d, size_t finding)
{
    for (size_t i = 0; i < finding; i++)
        if (strcmp(d->finding[i].check, d->finding[finding].check) == 0)
            return false;
    return true;
}

/* "checks": for each check, of how many hosts it found something, nothing, or could not see it. */
static json_t *checks_value(const struct doctor *d)
{
    json_t *list = json_array();

    for (size_t i = 0; i < d->findings; i++) {
        struct sights s = {.check = d->finding[i].check};
        if (!is_first(d, i))
            continue;
        json_t *o = json_object();
        int r = count_sights(d, &s);
        r |= json_object_set_new(o, "check", json_string(s.check));
        r |= json_object_set_new(o, "fine", json_integer(s.fine));
        r |= json_object_set_new(o, "not_seen", json_integer(s.unseen));
        r |= json_object_set_new(o, "wrong", json_integer(s.wrong));
        if ((r | json_array_append_new(list, o)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* "answered": how many nodes have told their state, and facts about their machines. */
static json_t *answered_value(const struct doctor *d)
{
    uint32_t state = 0, facts = 0;
    json_t *o = json_object();

    for (uint32_t node = 0; node < d->nodes; node++) {
        state += doctor_has_state(d, node);
        facts += doctor_has_facts(d, node);
    }
    if ((json_object_set_new(o, "state", json_integer(state)) |
         json_object_set_new(o, "facts", json_integer(facts))) == 0)
        return o;
    json_decref(o);
    return NULL;
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
    r |= json_object_set_new(o, "node_count", json_integer(d->doctor.nodes));
    r |= json_object_set_new(o, "answered", answered_value(&d->doctor));
    r |= json_object_set_new(o, "daemon", d->no_daemon[0] == '\0' ? json_true() : json_false());
    r |= json_object_set_new(o, "counts", counts);
    r |= json_object_set_new(o, "checks", checks_value(&d->doctor));
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
    (void)fputc('\0', p->line); /* what an earlier, longer text has left is behind it */
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

/* The others of a finding that has several of one kind: the first few, each with what mends it. */
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

int doctor_report_status(const struct diagnosis *d)
{
    const enum severity worst = doctor_worst(&d->doctor);

    if (d->no_daemon[0] != '\0')
        return EXIT_NO_DAEMON;
    return worst == SEVERITY_ERROR ? 2 : worst == SEVERITY_WARNING ? 1 : 0;
}
