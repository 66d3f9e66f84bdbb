#include "client/cli/doctor/doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *severity_name(enum severity severity)
{
    static const char *const names[SEVERITIES] = {"fine", "not seen", "hint", "warning", "error"};

    return names[severity];
}

struct finding *doctor_find(struct doctor *d, enum severity severity, const char *check,
                            uint32_t node, const char *what, ...)
{
    static struct finding left_out;
    struct finding *f = &left_out;
    va_list arguments;

    if (d->findings == d->room) {
        const size_t room = d->room > 0 ? 2 * d->room : 64;
        struct finding *more = realloc(d->finding, room * sizeof *more);
        if (more != NULL) {
            d->finding = more;
            d->room = room;
        }
    }
    if (d->findings < d->room)
        f = &d->finding[d->findings++];
    else
        d->no_memory = true;
    f->severity = severity;
    f->check = check;
    f->node = node;
    f->peer = FINDING_NOBODY;
    f->why = "";
    f->mend[0] = '\0';
    va_start(arguments, what);
    (void)vsnprintf(f->what, sizeof f->what, what, arguments);
    va_end(arguments);
    return f;
}

static void say_unseen(struct doctor *d, const char *check, uint32_t node, const char *why)
{
    const size_t first = d->findings > 8 ? d->findings - 8 : 0;

    for (size_t i = first; i < d->findings; i++)
        if (d->finding[i].severity == SEVERITY_UNSEEN && d->finding[i].node == node &&
            strcmp(d->finding[i].check, check) == 0 && strcmp(d->finding[i].what, why) == 0)
            return;
    struct finding *f = doctor_find(d, SEVERITY_UNSEEN, check, node, "%.470s", why);
    if (strstr(why, "ProcSubset") != NULL || strstr(why, "ProtectClock") != NULL)
        finding_mend(f, "install the unit of this release; systemctl cat torusd shows which lines "
                        "systemctl edit has added");
}

void doctor_unseen(struct doctor *d, const char *check, uint32_t node, const char *fact)
{
    const struct doctor_node *n = &d->node[node];
    char name[128], why[FACT_SIZE], text[480];

    if (n->missing[0] != '\0' && (fact == NULL || !doctor_has_facts(d, node))) {
        (void)snprintf(text, sizeof text, "the node %.400s", n->missing);
        say_unseen(d, check, node, text);
        return;
    }
    if (!doctor_has_facts(d, node)) {
        (void)snprintf(text, sizeof text,
                       "the node has told nothing about its machine within %.1f s",
                       (double)d->facts_ms / 1000);
        say_unseen(d, check, node, text);
        return;
    }
    if (fact == NULL) {
        say_unseen(d, check, node, "there is no daemon that could tell it");
        return;
    }
    (void)snprintf(name, sizeof name, "unseen.%s", fact);
    say_unseen(d, check, node,
               fact_text(n->facts, name, why)
                   ? why
                   : "its torusd does not tell it: it may run another release");
}

bool doctor_number(struct doctor *d, const char *check, uint32_t node, const char *fact,
                   uint64_t *number)
{
    if (fact_number(d->node[node].facts, fact, number))
        return true;
    doctor_unseen(d, check, node, fact);
    return false;
}

void doctor_fine(struct doctor *d, size_t before, const char *check, const char *fine)
{
    bool *said = calloc(d->nodes, sizeof *said);

    if (said == NULL) {
        d->no_memory = true;
        return;
    }
    for (size_t i = before; i < d->findings; i++) {
        const struct finding *f = &d->finding[i];
        if (strcmp(f->check, check) != 0)
            continue;
        /* A finding without a node is about all nodes. */
        for (uint32_t node = 0; node < d->nodes; node++)
            said[node] |= f->node == FINDING_NOBODY;
        if (f->node < d->nodes)
            said[f->node] = true;
        if (f->peer < d->nodes)
            said[f->peer] = true;
    }
    for (uint32_t node = 0; node < d->nodes; node++)
        if (!said[node])
            (void)doctor_find(d, SEVERITY_FINE, check, node, "%s", fine);
    free(said);
}

const char *doctor_span(uint64_t ms, char text[DOCTOR_SPAN_SIZE])
{
    const unsigned long long seconds = (ms + 999) / 1000, minutes = seconds / 60;

    if (minutes >= 54 && minutes <= 66)
        (void)snprintf(text, DOCTOR_SPAN_SIZE, "hour");
    else if (seconds >= 120)
        (void)snprintf(text, DOCTOR_SPAN_SIZE, "%llu min", minutes);
    else
        (void)snprintf(text, DOCTOR_SPAN_SIZE, "%llu s", seconds);
    return text;
}

void finding_mend(struct finding *f, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(f->mend, sizeof f->mend, format, arguments);
    va_end(arguments);
}

bool doctor_has_state(const struct doctor *d, uint32_t node)
{
    return node < d->nodes && d->node[node].status != NULL && d->node[node].links != NULL;
}

bool doctor_has_facts(const struct doctor *d, uint32_t node)
{
    return node < d->nodes && d->node[node].facts[0] != '\0';
}

const struct torus_link *doctor_link(const struct doctor *d, uint32_t node, unsigned port)
{
    if (!doctor_has_state(d, node))
        return NULL;
    for (size_t i = 0; i < d->node[node].links->count; i++)
        if (d->node[node].links->link[i]->port == port)
            return d->node[node].links->link[i];
    return NULL;
}

const struct torus_link_fault *doctor_fault(const struct doctor *d, uint32_t node, unsigned port)
{
    const struct torus_status *s = doctor_has_state(d, node) ? d->node[node].status : NULL;

    for (size_t i = 0; s != NULL && i < s->link_fault_count; i++)
        if (s->link_faults[i]->node == node && s->link_faults[i]->port == port)
            return s->link_faults[i];
    return NULL;
}

enum severity doctor_worst(const struct doctor *d)
{
    enum severity worst = SEVERITY_FINE;

    for (size_t i = 0; i < d->findings; i++)
        if (d->finding[i].severity > worst)
            worst = d->finding[i].severity;
    return worst;
}

void doctor_free(struct doctor *d)
{
    free(d->finding);
    d->finding = NULL;
    d->findings = d->room = 0;
}

/* --- facts (daemon/lib/host/facts.h); another machine has sent them: values may be anything --- */

bool fact_text(const char *facts, const char *name, char value[FACT_SIZE])
{
    const size_t length = strlen(name);

    value[0] = '\0';
    for (const char *line = facts, *end; *line != '\0'; line = *end != '\0' ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        if (strncmp(line, name, length) != 0 || line[length] != ' ')
            continue;
        const size_t size = (size_t)(end - line) - length - 1;
        const size_t kept = size < FACT_SIZE ? size : FACT_SIZE - 1;
        memcpy(value, line + length + 1, kept);
        value[kept] = '\0';
        return true;
    }
    return false;
}

bool fact_is(const char *facts, const char *name, const char *value)
{
    char found[FACT_SIZE];

    return fact_text(facts, name, found) && strcmp(found, value) == 0;
}

bool fact_number(const char *facts, const char *name, uint64_t *number)
{
    char text[FACT_SIZE], *end;

    *number = 0;
    if (!fact_text(facts, name, text) || text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0')
        return false;
    *number = value;
    return true;
}

const char *fact_name(const char *format, ...)
{
    static char names[4][96];
    static unsigned next;
    char *name = names[next++ % 4];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(name, sizeof names[0], format, arguments);
    va_end(arguments);
    return name;
}
