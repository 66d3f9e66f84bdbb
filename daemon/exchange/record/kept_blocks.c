/* What has arrived in an attempt that is withdrawn because a link went down is kept, and the next
 * attempt moves only the rest. When a node has opened its blocks it says what has arrived there; that
 * goes up the tree and down to all (`arrived`, before the root's `layout`), so both ends of every block
 * know what is missing. A node that has nothing any more, restarted perhaps, says nothing, and gets
 * all.
 *
 * Generated blocks: the contents are those of the first attempt's id.
 *
 * Files: a node keeps its unfinished output (sink_ops.park()), and what its source files were found to be
 * (source_ops.mark()): one that was changed since then is an error. With what has arrived it says how large they
 * are; of a node that does not say so its block comes whole, as it may have another one now. Of pieces only
 * those count whose digests have been compared. The output stays for KEPT_TIME at the most, and goes
 * before that when the exchange is heard to have failed, or its root goes down. */
#include "daemon/exchange/record/kept_blocks.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "daemon/base/log.h"
#include "daemon/engine/arrived.h"
#include "daemon/engine/missing_blocks.h"
#include "daemon/exchange/record/avoided.h"
#include "daemon/exchange/record/id.h"
#include "daemon/exchange/record/predicates.h"

#define KEPT_MOST 64u
#define KEPT_SPANS_MOST (64u * 1024u) /* of all that are kept */
/* Files; the next attempt is usually prepared within a second, if it does not wait for nodes that are down. */
#define KEPT_TIME (10 * SECONDS)
/* What others say has arrived of this node's blocks is kept: spans of all blocks of an exchange, of which each
 * has its part. */
#define TOLD_SPANS_MOST (16u * 1024u)
#define TOLD_SPANS_LEAST 16u /* of a block, in a large torus */

struct kept {
    struct kept *next;
    struct exchange_id id; /* of the first attempt */
    uint64_t went;
    struct arrived here;
    /* Files: */
    uint64_t until; /* else ROUTER_NEVER */
    uint64_t *marks;
    struct parked *parked; /* NULL: it has failed, and nothing is here */
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

static void on_parked_closed(void *context)
{
    free(context);
}

static void close_parked(struct parked *p)
{
    *p->at = NULL;
    p->at = NULL;
    if (p->sink->ops->close(p->sink, false))
        free(p);
}

/* All comes once more. */
static void on_parked_failed(void *context, const struct error *e)
{
    struct parked *p = context;

    if (p->at == NULL)
        return;
    log_warning("the blocks kept for a retry are lost: %s", e->text);
    arrived_free(p->here);
    close_parked(p);
}

/* Returns whether it is `*at` now, with all that is `here`; else the sink is the caller's as before. */
static bool park(struct sink *sink, struct parked **at, struct arrived *here)
{
    struct parked *p = calloc(1, sizeof *p);
    const struct block_events events = {p, ignore_wake, on_parked_failed, on_parked_closed};

    if (p == NULL || sink->ops->park == NULL || !sink->ops->park(sink, &events)) {
        free(p);
        return false;
    }
    *p = (struct parked){sink, at, here};
    *at = p;
    return true;
}

static void move_parked(struct parked **from, struct parked **to, struct arrived *here)
{
    *to = *from;
    *from = NULL;
    if (*to != NULL) {
        (*to)->at = to;
        (*to)->here = here;
    }
}

/* --- between two attempts --- */

static void drop(struct exchanges *all, struct kept *k)
{
    LL_DELETE(all->kept, k);
    if (k->parked != NULL)
        close_parked(k->parked);
    arrived_free(&k->here);
    free(k->marks);
    free(k);
}

void kept_blocks_free(struct exchanges *all)
{
    while (all->kept != NULL)
        drop(all, all->kept);
}

/* The youngest come first. */
static void forget_old(struct exchanges *all)
{
    unsigned count = 0;
    uint64_t spans = 0;
    struct kept *k, *next;

    LL_FOREACH_SAFE(all->kept, k, next)
    {
        spans += k->here.count;
        if (++count > KEPT_MOST || spans > KEPT_SPANS_MOST)
            drop(all, k);
    }
}

uint64_t kept_blocks_deadline(const struct exchanges *all)
{
    uint64_t at = ROUTER_NEVER;

    for (const struct kept *k = all->kept; k != NULL; k = k->next)
        at = k->until < at ? k->until : at;
    return at;
}

/* A root that is down does not retry. */
void kept_blocks_tick(struct exchanges *all, uint64_t now)
{
    struct kept *k, *next;

    LL_FOREACH_SAFE(all->kept, k, next)
    {
        bool files = k->until != ROUTER_NEVER;
        if (files &&
            (now >= k->until || topology_node_down(router_topology(all->set.router), k->id.root)))
            drop(all, k);
    }
}

static struct kept *find_kept(const struct exchanges *all, const struct exchange_id *id)
{
    struct kept *k = all->kept;

    while (k != NULL && !exchange_id_equal(&k->id, id))
        k = k->next;
    return k;
}

void kept_blocks_drop(struct attempt *x)
{
    struct kept *k = find_kept(x->all, attempt_first_id(x));
    struct block_events events = x->all->block_events;

    if (k == NULL)
        return;
    if (k->parked != NULL) { /* its client is told when nothing of it is left */
        struct parked *p = k->parked;
        events.context = x;
        if (p->sink->ops->park(p->sink, &events)) {
            k->parked = NULL;
            if (!p->sink->ops->close(p->sink, false))
                x->own.closing++;
            free(p);
        }
    }
    drop(x->all, k);
}

/* This node's output, and what it sends. */
static void keep_files(struct attempt *x, struct resumed *r, struct kept *k)
{
    k->until = router_now(router_of(x)) + KEPT_TIME;
    if (attempt_waits_for_nodes(x) && x->began + x->timeout_ns > k->until)
        k->until = x->began + x->timeout_ns;
    k->marks = r->marks;
    r->marks = NULL;
    move_parked(&r->parked, &k->parked, &k->here);
    if (x->own.sink == NULL)
        return;
    if (r->wrapped)
        x->own.sink = remainder_whole(x->own.sink);
    if (park(x->own.sink, &k->parked, &k->here))
        x->own.sink = NULL;
    else
        arrived_free(&k->here);
}

void kept_blocks_keep(struct attempt *x)
{
    struct resumed *r = x->own.resumed;
    bool files = spec_has_folders(&x->spec);
    struct kept *k = NULL;

    x->own.resumed = NULL;
    if (r == NULL)
        return;
    x->own.kept_bytes = r->all_bytes;
    if (files ? r->marks != NULL && attempt_may_be_followed(x)
              : r->here.count > 0 && x->state != EXCHANGE_COMMITTED)
        k = calloc(1, sizeof *k); /* without memory all comes once more */
    if (k != NULL) {
        k->id = *attempt_first_id(x);
        k->went = r->went;
        k->until = ROUTER_NEVER;
        k->here = r->here;
        r->here = (struct arrived){0};
        if (files)
            keep_files(x, r, k);
        LL_PREPEND(x->all->kept, k);
        forget_old(x->all);
    }
    if (r->parked != NULL)
        close_parked(r->parked);
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

/* What the engine has moved is of what was missing. */
static void note(void *context, uint32_t origin, uint64_t begin, uint64_t end)
{
    struct noting *n = context;
    uint64_t at;

    if (avoided_is_gone(n->x, origin))
        return;
    while (begin < end) {
        uint64_t bytes =
            arrived_missing(&n->x->own.resumed->here, origin, kept_blocks_bytes(n->x), begin, &at);
        if (bytes > end - begin)
            bytes = end - begin;
        if (bytes == 0 || arrived_add(&n->more, origin, at, at + bytes) != 0)
            return;
        begin += bytes;
    }
}

/* What this node's blocks were found to be; of those that are not looked at now perhaps before. */
static void note_marks(struct attempt *x)
{
    const struct source *source = x->own.source;
    struct resumed *r = x->own.resumed;

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
    const struct engine *engine = x->own.engine;

    if (!attempt_may_resume(x) || engine->ops->arrived == NULL || engine->rounds == 0 ||
        x->state == EXCHANGE_COMMITTED)
        return;
    if (x->own.resumed == NULL && (x->own.resumed = calloc(1, sizeof *x->own.resumed)) == NULL)
        return;
    engine->ops->arrived(engine, note, &n);
    struct resumed *r = x->own.resumed;
    r->went = x->rounds.first_went;
    for (uint32_t i = 0; i < n.more.count; i++) {
        const struct span *s = &n.more.span[i];
        if (arrived_add(&r->here, s->node, s->begin, s->end) != 0)
            break;
    }
    arrived_settle(&r->here);
    arrived_trim(&r->here, kept_blocks_spans_most(x));
    arrived_free(&n.more);
    note_marks(x);
}

void kept_blocks_take(struct exchanges *all, const struct exchange_id *first, struct resumed *r)
{
    struct kept *k = find_kept(all, first);

    if (k == NULL)
        return;
    r->here = k->here;
    r->went = k->went;
    r->marks = k->marks;
    move_parked(&k->parked, &r->parked, &r->here);
    k->here = (struct arrived){0};
    k->marks = NULL;
    drop(all, k);
}
