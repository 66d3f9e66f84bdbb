#include "client/cli/doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *severity_name(enum severity severity)
{
    static const char *const names[SEVERITIES] = {"fine", "hint", "warning", "error"};

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
    f->why = "";
    f->mend[0] = '\0';
    va_start(arguments, what);
    (void)vsnprintf(f->what, sizeof f->what, what, arguments);
    va_end(arguments);
    return f;
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
