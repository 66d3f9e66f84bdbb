#include "daemon/torusd/program/connection/telling.h"

#include <string.h>

#include "daemon/torusd/program/connection/send.h"

#define TELL_MS 500

static bool is_told(const struct program *p)
{
    return p->state == PROGRAM_OPENING && p->tells && p->group != NULL;
}

static void tell_program(struct program *p)
{
    struct program_message m = {
        .magic = PROGRAM_MAGIC, .version = PROGRAM_VERSION, .kind = PROGRAM_WAITING};

    m.number = group_missing(p->group, m.text, sizeof p->told.list);
    if (p->told.said && m.number == p->told.count && strcmp(m.text, p->told.list) == 0)
        return;
    if (program_send(p, &m, NULL, 0) != 0)
        return;
    p->told.said = true;
    p->told.count = m.number;
    memcpy(p->told.list, m.text, sizeof p->told.list);
}

static void on_telling(uv_timer_t *timer)
{
    struct programs *programs = timer->data;
    bool any = false;

    for (struct program *p = programs->first; p != NULL; p = p->next) {
        if (is_told(p))
            tell_program(p);
        any |= is_told(p);
    }
    if (!any)
        (void)uv_timer_stop(timer);
}

void programs_tell(struct programs *programs)
{
    if (!uv_is_active((uv_handle_t *)&programs->telling))
        (void)uv_timer_start(&programs->telling, on_telling, TELL_MS, TELL_MS);
}
