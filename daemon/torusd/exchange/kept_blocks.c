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
    p->of->kept_sink = NULL;
    p->of = NULL;
    if (p->sink->ops->close(p->sink, false))
        free(p);
}

/* The sink has failed, so everything must be sent again. */
static void on_kept_sink_failed(void *context, const struct error *e)
{
    struct kept_sink *p = context;

    if (p->of == NULL)
        return;
    log_warning("the blocks kept for a retry are lost: %s", e->text);
    arrived_free(&p->of->here);
    close_kept_sink(p);
}

/* Keeps the sink of the attempt. Returns false on failure: it still belongs to the caller. */
static bool keep_sink(struct sink *sink, struct resumed *r)
{
    struct kept_sink *p = calloc(1, sizeof *p);
    const struct block_events events = {p, ignore_wake, on_kept_sink_failed, on_kept_sink_closed};

    if (p == NULL || sink->ops->keep_output == NULL || !sink->ops->keep_output(sink, &events)) {
        free(p);
        return false;
    }
    *p = (struct kept_sink){sink, r};
    r->kept_sink = p;
    return true;
}

/* --- between two attempts --- */

/* Frees what belongs to one attempt only. */
static void end_attempt(struct resumed *r)
{
    arrived_free(&r->there);
    free(r->incoming);
    free(r->heard);
    free(r->size);
    free(r->elsewhere);
    free(r->pairs);
    r->incoming = r->size = r->elsewhere = NULL;
    r->heard = NULL;
    r->pairs = NULL;
    r->bytes = r->all_bytes = 0;
    r->told = r->wrapped = false;
}

static void resumed_free(struct resumed *r)
{
    end_attempt(r);
    if (r->kept_sink != NULL)
        close_kept_sink(r->kept_sink);
    arrived_free(&r->here);
    free(r->marks);
    free(r);
}

static void drop_kept(struct exchanges *exchanges, struct resumed *k)
{
    LL_DELETE(exchanges->kept, k);
    resumed_free(k);
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
    struct resumed *k, *next;

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

    for (const struct resumed *k = exchanges->kept; k != NULL; k = k->next)
        at = k->until < at ? k->until : at;
    return at;
}

/* Drops what is kept for a root that is down, because that root does not retry. */
void kept_blocks_tick(struct exchanges *exchanges, uint64_t now)
{
    struct resumed *k, *next;

    LL_FOREACH_SAFE(exchanges->kept, k, next)
    {
        bool files = k->until != ROUTER_NEVER;
        if (files && (now >= k->until ||
                      topology_node_down(router_topology(exchanges->set.router), k->id.root)))
            drop_kept(exchanges, k);
    }
}

static struct resumed *find_kept(const struct exchanges *exchanges, const struct exchange_id *id)
{
    struct resumed *k = exchanges->kept;

    while (k != NULL && !exchange_id_equal(&k->id, id))
        k = k->next;
    return k;
}

void kept_blocks_drop(struct attempt *x)
{
    struct resumed *k = find_kept(x->exchanges, attempt_first_id(x));
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

/* Keeps this node's unfinished output. The files that it sends have marks. */
static void keep_files(struct attempt *x, struct resumed *r)
{
    r->until = router_now(router_of(x)) + KEPT_TIME;
    if (attempt_waits_for_nodes(x) && x->began + x->timeout_ns > r->until)
        r->until = x->began + x->timeout_ns;
    if (x->local.sink == NULL)
        return;
    if (r->wrapped)
        x->local.sink = remainder_whole(x->local.sink);
    if (keep_sink(x->local.sink, r))
        x->local.sink = NULL;
    else
        arrived_free(&r->here);
}

void kept_blocks_keep(struct attempt *x)
{
    struct resumed *r = x->local.resumed;
    bool files = spec_has_folders(&x->spec);

    x->local.resumed = NULL;
    if (r == NULL)
        return;
    x->local.kept_bytes = r->all_bytes;
    if (!(files ? r->marks != NULL && attempt_may_be_followed(x)
                : r->here.spans > 0 && x->state != EXCHANGE_COMMITTED)) {
        resumed_free(r);
        return;
    }
    r->id = *attempt_first_id(x);
    r->until = ROUTER_NEVER;
    if (files)
        keep_files(x, r);
    end_attempt(r);
    LL_PREPEND(x->exchanges->kept, r);
    forget_old(x->exchanges);
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

/* --- the next attempt --- */

#define PAIRS_OF_MOST 1024u /* nodes; the table then has 16 MiB */

int resumed_blocks_begin(struct attempt *x, struct error *e)
{
    uint32_t nodes = torus_of(x)->nodes;
    struct resumed *r;

    if (exchange_id_is_none(&x->resumes) || x->local.resumed != NULL || !kind_of(x)->has_blocks)
        return 0;
    r = find_kept(x->exchanges, &x->resumes);
    if (r != NULL)
        LL_DELETE(x->exchanges->kept, r);
    else if ((r = calloc(1, sizeof *r)) == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    r->heard = calloc(nodes, sizeof *r->heard);
    r->elsewhere = calloc(nodes, sizeof *r->elsewhere);
    r->incoming = calloc(nodes, sizeof *r->incoming);
    r->size = malloc(nodes * sizeof *r->size);
    if (r->heard == NULL || r->elsewhere == NULL || r->incoming == NULL || r->size == NULL) {
        resumed_free(r);
        return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    }
    x->local.resumed = r;
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
