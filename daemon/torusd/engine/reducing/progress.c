#include "daemon/torusd/engine/reducing/progress.h"

#include <stdio.h>

#include "daemon/torusd/engine/reducing/state.h"
#include "proto/text.h"

#define NONE UINT32_MAX

static void describe_waiting(const struct reducing *s, const struct reducing_round *r, char *text,
                             size_t size)
{
    const struct reduction_trees *trees = s->trees;
    char name[TORUS_PORT_NAME_SIZE];
    uint32_t up = 0, down = 0, first_up = NONE, first_down = NONE;

    for (uint32_t i = trees->edges; i-- > 0;) {
        if (r->branch[i].arrived < r->piece[trees->child[i].tree].chunks) {
            first_up = i;
            up++;
        }
    }
    for (uint32_t i = trees->count; s->options.everywhere && i-- > 0;) {
        if (!reducing_is_owner(&trees->tree[i]) && r->piece[i].returned < r->piece[i].chunks) {
            first_down = i;
            down++;
        }
    }
    if (first_up != NONE)
        (void)snprintf(text, size,
                       "waiting for %u %s, the first one for the block of node %u on port %s", up,
                       text_plural(up, "contribution", "contributions"),
                       trees->tree[trees->child[first_up].tree].owner,
                       engine_port_name(&s->base, trees->child[first_up].port, name));
    else if (first_down != NONE)
        (void)snprintf(text, size, "waiting for %u %s, the first one from node %u on port %s", down,
                       text_plural(down, "result", "results"), trees->tree[first_down].owner,
                       engine_port_name(&s->base, trees->tree[first_down].parent, name));
    else
        (void)snprintf(text, size, "still sending %llu %s", (unsigned long long)r->base.left,
                       text_plural(r->base.left, "chunk", "chunks"));
}

void reducing_describe(const struct engine *engine, char *text, size_t size)
{
    const struct reducing *s = (const struct reducing *)engine;
    const struct reducing_round *r = reducing_find_round(s, engine->rounds_finished);

    if (r != NULL && r->base.left > 0)
        describe_waiting(s, r, text, size);
    else
        (void)snprintf(text, size, "%s",
                       engine->set.sink->ops->pending(engine->set.sink) > 0
                           ? "writing received data"
                           : "all sent and received");
}
