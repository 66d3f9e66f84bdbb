#include "client/cli/animation/schedule_json.h"

#include <inttypes.h>
#include <stdlib.h>

#include "client/cli/animation/measured_steps.h"
#include "client/cli/animation/phase_name.h"
#include "client/cli/terminal/progress.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/lib/schedule/plan.h"

struct collecting {
    const struct torus *torus;
    const struct algorithm *algorithm;
    uint32_t source; /* whose blocks are shown; TORUS_NO_NODE: all */
    json_t *steps;   /* an array of messages for each step */
    uint64_t *blocks;
};

static int too_many(const struct torus *t, struct error *e)
{
    return error_set(
        e, ERROR_REFUSED,
        "the messages have more than %u blocks, too many for a page: show the blocks of one "
        "source with --source RANK%s",
        ANIMATION_MOST_BLOCKS, t->nodes > 64 ? ", or a smaller torus" : "");
}

static json_t *block_json(const struct collecting *c, const struct plan_block *b)
{
    json_int_t nodes = c->torus->nodes, at = (json_int_t)b->segment * nodes + b->source;

    return json_integer(c->algorithm->operation == OPERATION_EXCHANGE ? at * nodes + b->destination
                                                                      : at);
}

/* Adds a message, unless none of its blocks is shown. */
static int add_message(const struct collecting *c, const struct plan *p,
                       const struct plan_message *m, struct error *e)
{
    json_t *o = json_array(), *step;
    uint32_t shown = 0;
    int r = json_array_append_new(o, json_integer(p->rank)) |
            json_array_append_new(o, json_integer(m->port)) |
            json_array_append_new(o, json_integer(m->hops));

    for (uint32_t i = 0; i < m->blocks; i++) {
        const struct plan_block *b = &p->block[m->first + i];
        if (c->source != TORUS_NO_NODE && b->source != c->source)
            continue;
        r |= json_array_append_new(o, block_json(c, b));
        shown++;
    }
    *c->blocks += shown;
    while (r == 0 && json_array_size(c->steps) <= m->step)
        r |= json_array_append_new(c->steps, json_array());
    step = json_array_get(c->steps, m->step);
    if (shown > 0)
        r |= json_array_append(step, o);
    json_decref(o);
    if (*c->blocks > ANIMATION_MOST_BLOCKS)
        return too_many(c->torus, e);
    return r == 0 ? 0 : error_set(e, ERROR_MEMORY, "out of memory for the page");
}

static int add_node(const struct collecting *c, uint32_t node, struct error *e)
{
    struct plan plan;
    int r = 0;

    if (plan_build(&plan, c->torus, c->algorithm, node, e) != 0)
        return -1;
    for (uint32_t i = 0; r == 0 && i < plan.sends; i++)
        r = add_message(c, &plan, &plan.send[i], e);
    plan_free(&plan);
    return r;
}

/* Returns the steps with their names and reasons. */
static json_t *name_steps(const struct collecting *c)
{
    json_t *named = json_array(), *messages;
    size_t step;
    int r = 0;

    json_array_foreach(c->steps, step, messages)
    {
        char name[PHASE_NAME_SIZE], reason[PHASE_REASON_SIZE];
        phase_name(c->algorithm, c->torus, (uint32_t)step, name);
        phase_reason(c->algorithm, c->torus, (uint32_t)step, reason);
        r |= json_array_append_new(
            named, json_pack("{s:s, s:s, s:O}", "name", name, "why", reason, "messages", messages));
    }
    if (r == 0)
        return named;
    json_decref(named);
    return NULL;
}

static json_t *describe(const struct torus *t, const struct animated *a, json_t *steps)
{
    const struct algorithm *g = a->algorithm;
    double segments = g->segments;

    json_t *o = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:i, s:b, s:b, s:i, s:f, s:f, s:i, s:o}", "name", g->name,
        "summary", g->summary != NULL ? g->summary : "", "paper",
        g->source != NULL ? g->source : "", "operation", operation_name(g->operation), "ports",
        algorithm_ports_name(g), "segments", (int)g->segments, "streaming", (int)g->streaming,
        "gather", (int)(g->operation != OPERATION_EXCHANGE), "startups", (int)a->report->startups,
        "transmission", (double)a->report->transmission / segments, "bound", algorithm_bound(g, t),
        "contended", (int)a->report->contended_steps, "steps", steps);

    if (o != NULL && a->measured != NULL) {
        json_t *list = json_array();
        for (uint32_t i = 0; i < a->measured->count; i++)
            (void)json_array_append_new(list, json_real(a->measured->seconds[i]));
        (void)json_object_set_new(o, "measured", list);
        (void)json_object_set_new(o, "run", json_string(a->measured->run));
    }
    return o;
}

json_t *schedule_json(const struct torus *t, const struct animated *a, uint32_t source,
                      uint64_t *blocks, struct error *e)
{
    struct collecting c = {t, a->algorithm, source, json_array(), blocks};
    const struct detour *detour = a->algorithm->detour;
    json_t *o = NULL, *steps;
    int r = 0;

    for (uint32_t node = 0; r == 0 && node < t->nodes; node++) {
        long_work_next("the messages of node %" PRIu32 " of %" PRIu32, node, t->nodes);
        if (detour == NULL || !detour_damage(detour)->gone[node])
            r = add_node(&c, node, e);
    }
    if (r == 0) {
        steps = name_steps(&c);
        o = steps != NULL ? describe(t, a, steps) : NULL;
        if (o == NULL)
            (void)error_set(e, ERROR_MEMORY, "out of memory for the page");
    }
    json_decref(c.steps);
    return o;
}
