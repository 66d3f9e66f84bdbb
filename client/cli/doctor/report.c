#include "client/cli/doctor/report.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/terminal/json.h"

/* The finding in the list that has the same cause, or NULL; borrowed. Findings of something wrong have the same cause
 * if `why` is the same; findings that are fine or were not seen, if the text is the same. */
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

/* What a check says about a node is the worst that it has found. Something that was not seen outweighs what was
 * fine. */
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

/* "checks": for each check, the number of hosts where it found something, found nothing, or could not look. */
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

    for (uint32_t node = 0; node < d->nodes; node++) {
        state += doctor_has_state(d, node);
        facts += doctor_has_facts(d, node);
    }
    return json_pack("{s:i, s:i}", "state", state, "facts", facts);
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
    return json_checked(o, r);
}

int doctor_report_status(const struct diagnosis *d)
{
    const enum severity worst = doctor_worst(&d->doctor);

    if (d->no_daemon[0] != '\0')
        return EXIT_NO_DAEMON;
    return worst == SEVERITY_ERROR ? 2 : worst == SEVERITY_WARNING ? 1 : 0;
}
