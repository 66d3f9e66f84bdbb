/* Blocks of an attempt that resumes an earlier one: what has arrived is not sent again. */
#include "daemon/torusd/exchange/resumed_blocks.h"

#include <stdlib.h>

#include "daemon/torusd/engine/missing_blocks.h"
#include "daemon/torusd/exchange/job.h"
#include "daemon/torusd/exchange/kept_blocks.h"
#include "daemon/torusd/exchange/membership.h"

#define PAIRS_OF_MOST 1024u /* nodes; the table then has 16 MiB */

int resumed_blocks_begin(struct attempt *x, struct error *e)
{
    uint32_t nodes = torus_of(x)->nodes;
    struct resumed *r;

    if (exchange_id_is_none(&x->resumes) || x->local.resumed != NULL || !kind_of(x)->has_blocks)
        return 0;
    r = calloc(1, sizeof *r);
    if (r != NULL)
        r->heard = calloc(torus_of(x)->nodes, sizeof *r->heard);
    if (r == NULL || r->heard == NULL) {
        free(r);
        return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    }
    x->local.resumed = r;
    kept_blocks_take(x->exchanges, &x->resumes, r);
    r->elsewhere = calloc(nodes, sizeof *r->elsewhere);
    r->incoming = calloc(nodes, sizeof *r->incoming);
    r->size = malloc(nodes * sizeof *r->size);
    if (r->elsewhere == NULL || r->incoming == NULL || r->size == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    for (uint32_t origin = 0; origin < nodes; origin++)
        r->size[origin] = spec_has_folders(&x->spec) ? ENGINE_NOT_TOLD : x->spec.block_bytes;
    if (spec_has_folders(&x->spec) && attempt_is_root(x) && nodes <= PAIRS_OF_MOST)
        /* may fail: resumed_blocks_largest() then uses more rounds */
        r->pairs = calloc((size_t)nodes * nodes, sizeof *r->pairs);
    return 0;
}

void resumed_blocks_ask(const struct attempt *x, struct folder_request *request)
{
    const struct resumed *r = x->local.resumed;

    if (r == NULL)
        return;
    request->marks = r->marks;
    request->kept_sink = r->kept_sink != NULL ? r->kept_sink->sink : NULL;
}

int resumed_blocks_wrap(struct attempt *x, struct error *e)
{
    struct resumed *r = x->local.resumed;
    struct sink *sink;

    if (r == NULL)
        return 0;
    free(r->kept_sink); /* the sink is open again */
    r->kept_sink = NULL;
    sink = remainder_sink(x->local.sink, &r->here, kept_blocks_bytes(x));
    if (sink == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    x->local.sink = sink;
    x->local.source->irregular = r->wrapped = true;
    for (uint32_t node = 0; spec_has_folders(&x->spec) && node < torus_of(x)->nodes; node++)
        if (avoided_is_left_out(x, node))
            arrived_drop(&r->here, node); /* the node's file has been removed */
    return 0;
}

void resumed_blocks_opened(struct attempt *x)
{
    struct resumed *r = x->local.resumed;
    struct sink *sink = x->local.sink;

    if (r == NULL || r->told || sink->ops->lost == NULL)
        return;
    for (uint32_t node = 0; node < torus_of(x)->nodes; node++)
        if (sink->ops->lost(sink, node))
            arrived_drop(&r->here, node);
}

void resumed_blocks_sizes(struct attempt *x)
{
    const struct arrived *here = &x->local.resumed->here;

    x->local.bytes_here = 0;
    for (uint32_t origin = 0; origin < torus_of(x)->nodes; origin++) {
        uint64_t missing = x->spec.block_bytes - arrived_of(here, origin)->bytes;
        if (avoided_is_left_out(x, origin))
            continue;
        if (missing > x->local.largest_block)
            x->local.largest_block = missing;
        if (origin != rank_of(x) &&
            __builtin_add_overflow(x->local.bytes_here, missing, &x->local.bytes_here))
            x->local.bytes_here = UINT64_MAX;
    }
}

static int too_much(uint32_t at, uint32_t origin, struct error *e)
{
    return error_set(e, ERROR_DAMAGED, "node %u has received more than node %u has for it", at,
                     origin);
}

int resumed_blocks_largest(struct attempt *x, struct error *e)
{
    const struct resumed *r = x->local.resumed;
    uint32_t nodes = torus_of(x)->nodes;
    uint64_t largest = 0, bytes = 0;

    if (x->local.largest_block > x->local.whole_block)
        x->local.whole_block = x->local.largest_block;
    if (r == NULL || r->pairs == NULL)
        return 0; /* may use more rounds than needed */
    for (uint32_t from = 0; from < nodes; from++) {
        if (avoided_is_left_out(x, from))
            continue;
        if (r->size[from] == ENGINE_NOT_TOLD)
            return 0; /* the largest block may belong to this node */
        for (uint32_t to = 0; to < nodes; to++) {
            const struct resumed_pair *p = &r->pairs[(size_t)from * nodes + to];
            if (avoided_is_left_out(x, to))
                continue;
            if (p->arrived > p->whole)
                return too_much(to, from, e);
            if (p->whole - p->arrived > largest)
                largest = p->whole - p->arrived;
            if (from != to && __builtin_add_overflow(bytes, p->whole - p->arrived, &bytes))
                bytes = UINT64_MAX;
        }
    }
    x->local.largest_block = largest;
    x->local.bytes_here = bytes;
    x->local.bytes_below = 0;
    return 0;
}

/* Calculates what each node sends to and receives from this node. Files of a node that has not told what it has
 * may have changed. */
int resumed_blocks_lay_out(struct attempt *x, struct error *e)
{
    struct resumed *r = x->local.resumed;
    struct source *source = x->local.source;
    struct sink *sink = x->local.sink;
    uint32_t nodes = torus_of(x)->nodes, rank = rank_of(x);

    if (r == NULL)
        return 0;
    r->bytes = r->all_bytes = 0;
    for (uint32_t node = 0; node < nodes; node++) {
        bool told = r->size[node] != ENGINE_NOT_TOLD;
        if (!told)
            arrived_drop(&r->here, node);
        if (told && arrived_end(&r->here, node) > r->size[node])
            return too_much(rank, node, e);
        if (spec_has_folders(&x->spec))
            sink->ops->limit(sink, node, told ? r->size[node] : 0);
        r->incoming[node] =
            told ? r->size[node] - arrived_of(&r->here, node)->bytes : ENGINE_NOT_TOLD;
        if (told && arrived_end(&r->there, node) > source->ops->size(source, node) &&
            r->size[rank] != ENGINE_NOT_TOLD)
            return too_much(node, rank, e);
        if (!told || avoided_is_left_out(x, node))
            continue;
        r->all_bytes += r->elsewhere[node];
        if (node != rank)
            r->bytes += arrived_of(&r->here, node)->bytes;
    }
    if (r->size[rank] != ENGINE_NOT_TOLD) {
        source->skips = &r->there;
        source->even = x->mode == MODE_STREAMING;
    }
    return 0;
}
