/* When an attempt is withdrawn because a link went down, each node keeps what has arrived, and the next attempt
 * moves only the rest. When a node has opened its blocks, it tells what has arrived there. That message
 * (`arrived`) goes up the tree and down to all nodes before the root's `layout`, so both ends of every block
 * know what is missing. A node that has kept nothing, perhaps because it restarted, tells nothing, and receives
 * everything.
 *
 * Generated blocks have contents that depend on the first attempt's id.
 *
 * For files, a node keeps its unfinished output (sink_ops.keep_output()) and marks of its source files
 * (source_ops.mark()); a file that changed since then is an error. Together with what has arrived, the node
 * states the sizes of its files. A node that states no sizes sends its blocks from the start, because they may have
 * changed. Pieces count only if their digests have been compared. The output is kept for at most KEPT_TIME. It is
 * removed earlier when the exchange is known to have failed, or when its root goes down. */
#include "daemon/torusd/exchange/kept_blocks.h"

#include <stdlib.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/engine/missing_blocks.h"
#include "daemon/torusd/exchange/job.h"
#include "daemon/torusd/exchange/membership.h"

#define KEPT_MOST 64u
#define KEPT_SPANS_MOST (64u * 1024u) /* of everything that is kept */
/* For files. The next attempt is usually prepared within a second, unless it waits for nodes that are down. */
#define KEPT_TIME (10 * SECONDS)
/* Most spans of all blocks of an exchange that a node keeps from the other nodes' messages; each block may have
 * an equal part of them. */
#define TOLD_SPANS_MOST (16u * 1024u)
#define TOLD_SPANS_LEAST 16u /* for each block in a large torus */

struct kept {
    struct kept *next;
    struct exchange_id id; /* id of the first attempt */
    uint64_t go_at;
    struct arrived here;
    /* Only for files: */
    uint64_t until; /* when this is dropped; ROUTER_NEVER for generated blocks */
    uint64_t *marks;
    struct kept_sink *kept_sink; /* NULL: the sink has failed, and nothing is kept */
};

uint32_t kept_blocks_spans_most(const struct attempt *x)
{
    uint32_t most = TOLD_SPANS_MOST / torus_of(x)->nodes;

    return most > TOLD_SPANS_LEAST ? most : TOLD_SPANS_LEAST;
}

uint64_t kept_blocks_bytes(const struct attempt *x)
{
    return spec_has_folders(&x->spec) ? UINT64_MAX : x->spec.block_bytes;
}

/* --- a sink between two attempts --- */

static void ignore_wake(void *context)
{
    (void)context;
}

static void on_kept_sink_closed(void *context)
{
    free(context);
}

static void close_kept_sink(struct kept_sink *p)
{
    *p->at = NULL;
    p->at = NULL;
    if (p->sink->ops->close(p->sink, false))
        free(p);
}

/* The sink has failed, so everything must be sent again. */
static void on_kept_sink_failed(void *context, const struct error *e)
{
    struct kept_sink *p = context;

    if (p->at == NULL)
        return;
    log_warning("the blocks kept for a retry are lost: %s", e->text);
    arrived_free(p->here);
    close_kept_sink(p);
}

/* Keeps the sink in *at, together with the record `here` of what has arrived. Returns false on failure: the
 * sink still belongs to the caller. */
static bool keep_sink(struct sink *sink, struct kept_sink **at, struct arrived *here)
{
    struct kept_sink *p = calloc(1, sizeof *p);
    const struct block_events events = {p, ignore_wake, on_kept_sink_failed, on_kept_sink_closed};

    if (p == NULL || sink->ops->keep_output == NULL || !sink->ops->keep_output(sink, &events)) {
        free(p);
        return false;
    }
    *p = (struct kept_sink){sink, at, here};
    *at = p;
    return true;
}

static void move_kept_sink(struct kept_sink **from, struct kept_sink **to, struct arrived *here)
{
    *to = *from;
    *from = NULL;
    if (*to != NULL) {
        (*to)->at = to;
        (*to)->here = here;
    }
}

/* --- between two attempts --- */

static void drop_kept(struct exchanges *exchanges, struct kept *k)
{
    LL_DELETE(exchanges->kept, k);
    if (k->kept_sink != NULL)
        close_kept_sink(k->kept_sink);
    arrived_free(&k->here);
    free(k->marks);
    free(k);
}

void kept_blocks_free(struct exchanges *exchanges)
{
    while (exchanges->kept != NULL)
        drop_kept(exchanges, exchanges->kept);
}

/* Drops the oldest entries. The list starts with the youngest. */
static void forget_old(struct exchanges *exchanges)
{
    unsigned count = 0;
    uint64_t spans = 0;
    struct kept *k, *next;

    LL_FOREACH_SAFE(exchanges->kept, k, next)
    {
        spans += k->here.spans;
        if (++count > KEPT_MOST || spans > KEPT_SPANS_MOST)
            drop_kept(exchanges, k);
    }
}

uint64_t kept_blocks_deadline(const struct exchanges *exchanges)
{
    uint64_t at = ROUTER_NEVER;

    for (const struct kept *k = exchanges->kept; k != NULL; k = k->next)
        at = k->until < at ? k->until : at;
    return at;
}

/* Drops what is kept for a root that is down, because that root does not retry. */
void kept_blocks_tick(struct exchanges *exchanges, uint64_t now)
{
    struct kept *k, *next;

    LL_FOREACH_SAFE(exchanges->kept, k, next)
    {
        bool files = k->until != ROUTER_NEVER;
        if (files && (now >= k->until ||
                      topology_node_down(router_topology(exchanges->set.router), k->id.root)))
            drop_kept(exchanges, k);
    }
}

static struct kept *find_kept(const struct exchanges *exchanges, const struct exchange_id *id)
{
    struct kept *k = exchanges->kept;

    while (k != NULL && !exchange_id_equal(&k->id, id))
        k = k->next;
    return k;
}

void kept_blocks_drop(struct attempt *x)
{
    struct kept *k = find_kept(x->exchanges, attempt_first_id(x));
    struct block_events events = x->exchanges->block_events;

    if (k == NULL)
        return;
    if (k->kept_sink != NULL) { /* the client is told when the output has been removed */
        struct kept_sink *p = k->kept_sink;
        events.context = x;
        if (p->sink->ops->keep_output(p->sink, &events)) {
            k->kept_sink = NULL;
            if (!p->sink->ops->close(p->sink, false))
                x->local.closing++;
            free(p);
        }
    }
    drop_kept(x->exchanges, k);
}

/* Keeps this node's unfinished output, and the marks of the files that it sends. */
static void keep_files(struct attempt *x, struct resumed *r, struct kept *k)
{
    k->until = router_now(router_of(x)) + KEPT_TIME;
    if (attempt_waits_for_nodes(x) && x->began + x->timeout_ns > k->until)
        k->until = x->began + x->timeout_ns;
    k->marks = r->marks;
    r->marks = NULL;
    move_kept_sink(&r->kept_sink, &k->kept_sink, &k->here);
    if (x->local.sink == NULL)
        return;
    if (r->wrapped)
        x->local.sink = remainder_whole(x->local.sink);
    if (keep_sink(x->local.sink, &k->kept_sink, &k->here))
        x->local.sink = NULL;
    else
        arrived_free(&k->here);
}

void kept_blocks_keep(struct attempt *x)
{
    struct resumed *r = x->local.resumed;
    bool files = spec_has_folders(&x->spec);
    struct kept *k = NULL;

    x->local.resumed = NULL;
    if (r == NULL)
        return;
    x->local.kept_bytes = r->all_bytes;
    if (files ? r->marks != NULL && attempt_may_be_followed(x)
              : r->here.spans > 0 && x->state != EXCHANGE_COMMITTED)
        k = calloc(1, sizeof *k); /* without memory everything is sent again */
    if (k != NULL) {
        k->id = *attempt_first_id(x);
        k->go_at = r->go_at;
        k->until = ROUTER_NEVER;
        k->here = r->here;
        r->here = (struct arrived){0};
        if (files)
            keep_files(x, r, k);
        LL_PREPEND(x->exchanges->kept, k);
        forget_old(x->exchanges);
    }
    if (r->kept_sink != NULL)
        close_kept_sink(r->kept_sink);
    arrived_free(&r->here);
    arrived_free(&r->there);
    free(r->incoming);
    free(r->heard);
    free(r->size);
    free(r->elsewhere);
    free(r->marks);
    free(r->pairs);
    free(r);
}

struct noting {
    const struct attempt *x;
    struct arrived more;
};

/* Notes spans that the engine has moved. The engine numbers only what was missing, so they are converted. */
static void note_span(void *context, uint32_t origin, uint64_t begin, uint64_t end)
{
    struct noting *n = context;
    uint64_t at;

    if (avoided_is_left_out(n->x, origin))
        return;
    while (begin < end) {
        uint64_t bytes = intervals_missing(arrived_of(&n->x->local.resumed->here, origin),
                                           kept_blocks_bytes(n->x), begin, &at);
        if (bytes > end - begin)
            bytes = end - begin;
        if (bytes == 0 || arrived_add(&n->more, origin, at, at + bytes) != 0)
            return;
        begin += bytes;
    }
}

/* Notes the marks of this node's source files. Files that were not opened in this attempt keep their earlier
 * marks. */
static void note_marks(struct attempt *x)
{
    const struct source *source = x->local.source;
    struct resumed *r = x->local.resumed;

    if (!spec_has_folders(&x->spec) || source->ops->mark == NULL)
        return;
    if (r->marks == NULL)
        r->marks = calloc(torus_of(x)->nodes, sizeof *r->marks);
    for (uint32_t d = 0; r->marks != NULL && d < torus_of(x)->nodes; d++) {
        uint64_t mark = source->ops->mark(source, d);
        if (mark != 0)
            r->marks[d] = mark;
    }
}

void kept_blocks_note(struct attempt *x)
{
    struct noting n = {.x = x};
    const struct engine *engine = x->local.engine;

    if (!attempt_may_resume(x) || engine->ops->arrived == NULL || engine->rounds == 0 ||
        x->state == EXCHANGE_COMMITTED)
        return;
    if (x->local.resumed == NULL &&
        (x->local.resumed = calloc(1, sizeof *x->local.resumed)) == NULL)
        return;
    engine->ops->arrived(engine, note_span, &n);
    struct resumed *r = x->local.resumed;
    r->go_at = x->rounds.first_go_at;
    for (uint32_t node = 0; node < n.more.nodes; node++)
        for (size_t i = 0; i < n.more.block[node].count; i++) {
            const struct interval *s = &n.more.block[node].item[i];
            (void)arrived_add(&r->here, node, s->begin,
                              s->end); /* what is not noted is sent again */
        }
    arrived_trim(&r->here, kept_blocks_spans_most(x));
    arrived_free(&n.more);
    note_marks(x);
}

void kept_blocks_take(struct exchanges *exchanges, const struct exchange_id *first,
                      struct resumed *r)
{
    struct kept *k = find_kept(exchanges, first);

    if (k == NULL)
        return;
    r->here = k->here;
    r->go_at = k->go_at;
    r->marks = k->marks;
    move_kept_sink(&k->kept_sink, &r->kept_sink, &r->here);
    k->here = (struct arrived){0};
    k->marks = NULL;
    drop_kept(exchanges, k);
}
