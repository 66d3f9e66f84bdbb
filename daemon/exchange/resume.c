/* What has arrived of an exchange that is taken back because a link went down is kept, and the next
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
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/engine/missing_blocks.h"
#include "daemon/exchange/internal.h"
#include "proto/text.h"

#define KEPT_MOST 64u
#define KEPT_SPANS_MOST (64u * 1024u) /* of all that are kept */
#define KEPT_TIME                                                                                  \
    (10 * SECONDS)          /* files; the next attempt is usually prepared within a second, \
                                  * if it does not wait for nodes that are down */
#define SPAN_BYTES 5u       /* in a message, about */
#define WORTH 8u            /* times as many bytes to be moved as to be said */
#define PAIRS_OF_MOST 1024u /* nodes; 16 MiB */
#define NOT_TOLD ENGINE_NOT_TOLD
/* What others say has arrived of this node's blocks is kept: spans of all blocks of an exchange, of which each
 * has its part, and of all exchanges. */
#define TOLD_SPANS_MOST (16u * 1024u)
#define TOLD_SPANS_LEAST 16u /* of a block, in a large torus */
#define TOLD_SPANS_OF_ALL (256u * 1024u)

/* A sink between two attempts: the context of its events. */
struct parked {
    struct sink *sink;
    struct parked **at;   /* who has it, */
    struct arrived *here; /* and what is lost with it */
};

struct kept {
    struct kept *next;
    char id[EXCHANGE_ID_SIZE]; /* of the first attempt */
    uint64_t went;
    struct arrived here;
    /* Files: */
    uint64_t until; /* else ROUTER_NEVER */
    uint64_t *marks;
    struct parked *parked; /* NULL: it has failed, and nothing is here */
};

static bool may_resume(const struct attempt *x)
{
    return x->goes_around && x->spec.operation == OPERATION_EXCHANGE && x->spec.repeat == 1;
}

/* Every node of which files have been moved keeps its output, so it has to be told. */
void resume_next(struct attempt *x)
{
    const struct torus *t = torus_of(x);
    double said, moved;

    if (!state_of(x)->moves || x->mode != MODE_STREAMING || !may_resume(x) ||
        x->job->resumes[0] != '\0')
        return;
    said = (double)t->nodes * t->nodes * x->algorithm->segments * SPAN_BYTES;
    moved = torus_bound_all_port(t) * (double)x->spec.block_bytes;
    if (spec_has_folders(&x->spec) || said * WORTH <= moved)
        memcpy(x->job->resumes, x->id, sizeof x->job->resumes);
}

/* Of one block; more are not told, and come again. */
static uint32_t most_spans(const struct attempt *x)
{
    uint32_t most = TOLD_SPANS_MOST / torus_of(x)->nodes;

    return most > TOLD_SPANS_LEAST ? most : TOLD_SPANS_LEAST;
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
    log_warning("what had arrived of an exchange that begins anew is lost: %s", e->text);
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

void resume_free(struct exchanges *all)
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

uint64_t resume_deadline(const struct exchanges *all)
{
    uint64_t at = ROUTER_NEVER;

    for (const struct kept *k = all->kept; k != NULL; k = k->next)
        at = k->until < at ? k->until : at;
    return at;
}

/* Nobody begins anew what a node has asked for that is down. */
void resume_tick(struct exchanges *all, uint64_t now)
{
    struct kept *k, *next;

    LL_FOREACH_SAFE(all->kept, k, next)
    {
        bool files = k->until != ROUTER_NEVER;
        if (files && (now >= k->until || topology_node_down(router_topology(all->set.router),
                                                            exchange_root_of(k->id))))
            drop(all, k);
    }
}

static struct kept *find_kept(const struct exchanges *all, const char *id)
{
    struct kept *k = all->kept;

    while (k != NULL && strcmp(k->id, id) != 0)
        k = k->next;
    return k;
}

void resume_drop(struct attempt *x)
{
    struct kept *k = find_kept(x->all, resume_name(x));
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
    if (waiting_may(x) && x->began + x->timeout_ns > k->until)
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

void resume_keep(struct attempt *x)
{
    struct resumed *r = x->own.resumed;
    bool files = spec_has_folders(&x->spec);
    struct kept *k = NULL;

    x->own.resumed = NULL;
    if (r == NULL)
        return;
    x->own.kept_bytes = r->all_bytes;
    if (files ? r->marks != NULL && resume_may_follow(x)
              : r->here.count > 0 && x->state != EXCHANGE_COMMITTED)
        k = calloc(1, sizeof *k); /* without memory all comes once more */
    if (k != NULL) {
        memcpy(k->id, resume_name(x), sizeof k->id);
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

/* Bytes of a block; of files what has arrived is told exactly. */
static uint64_t block_bytes(const struct attempt *x)
{
    return spec_has_folders(&x->spec) ? UINT64_MAX : x->spec.block_bytes;
}

/* What the engine has moved is of what was missing. */
static void note(void *context, uint32_t origin, uint64_t begin, uint64_t end)
{
    struct noting *n = context;
    uint64_t at;

    if (around_is_gone(n->x, origin))
        return;
    while (begin < end) {
        uint64_t bytes =
            arrived_missing(&n->x->own.resumed->here, origin, block_bytes(n->x), begin, &at);
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

void resume_note(struct attempt *x)
{
    struct noting n = {.x = x};
    const struct engine *engine = x->own.engine;

    if (!may_resume(x) || engine->ops->arrived == NULL || engine->rounds == 0 ||
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
    arrived_trim(&r->here, most_spans(x));
    arrived_free(&n.more);
    note_marks(x);
}

/* --- in the next one --- */

int resume_begin(struct attempt *x, struct error *e)
{
    uint32_t nodes = torus_of(x)->nodes;
    struct resumed *r;
    struct kept *k;

    if (x->resumes[0] == '\0' || x->own.resumed != NULL || !kind_of(x)->has_blocks)
        return 0;
    r = calloc(1, sizeof *r);
    if (r != NULL)
        r->heard = calloc(torus_of(x)->nodes, sizeof *r->heard);
    if (r == NULL || r->heard == NULL) {
        free(r);
        return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    }
    x->own.resumed = r;
    k = find_kept(x->all, x->resumes);
    if (k != NULL) {
        r->here = k->here;
        r->went = k->went;
        r->marks = k->marks;
        move_parked(&k->parked, &r->parked, &r->here);
        k->here = (struct arrived){0};
        k->marks = NULL;
        drop(x->all, k);
    }
    r->elsewhere = calloc(nodes, sizeof *r->elsewhere);
    r->incoming = calloc(nodes, sizeof *r->incoming);
    r->size = malloc(nodes * sizeof *r->size);
    if (r->elsewhere == NULL || r->incoming == NULL || r->size == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    for (uint32_t origin = 0; origin < nodes; origin++)
        r->size[origin] = spec_has_folders(&x->spec) ? NOT_TOLD : x->spec.block_bytes;
    if (spec_has_folders(&x->spec) && attempt_is_root(x) && nodes <= PAIRS_OF_MOST)
        r->pairs = calloc((size_t)nodes * nodes, sizeof *r->pairs); /* without it, see below */
    return 0;
}

void resume_ask(const struct attempt *x, struct folder_request *request)
{
    const struct resumed *r = x->own.resumed;

    if (r == NULL)
        return;
    request->marks = r->marks;
    request->parked = r->parked != NULL ? r->parked->sink : NULL;
}

int resume_wrap(struct attempt *x, struct error *e)
{
    struct resumed *r = x->own.resumed;
    struct sink *sink;

    if (r == NULL)
        return 0;
    free(r->parked); /* it is open again */
    r->parked = NULL;
    sink = remainder_sink(x->own.sink, &r->here, block_bytes(x));
    if (sink == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    x->own.sink = sink;
    x->own.source->sized = r->wrapped = true;
    for (uint32_t node = 0; spec_has_folders(&x->spec) && node < torus_of(x)->nodes; node++)
        if (around_is_gone(x, node))
            arrived_drop(&r->here, node); /* its file is removed */
    return 0;
}

void resume_sizes(struct attempt *x)
{
    const struct arrived *here = &x->own.resumed->here;

    x->own.bytes_here = 0;
    for (uint32_t origin = 0; origin < torus_of(x)->nodes; origin++) {
        uint64_t missing = x->spec.block_bytes - arrived_bytes(here, origin);
        if (around_is_gone(x, origin))
            continue;
        if (missing > x->own.largest_block)
            x->own.largest_block = missing;
        if (origin != rank_of(x) &&
            __builtin_add_overflow(x->own.bytes_here, missing, &x->own.bytes_here))
            x->own.bytes_here = UINT64_MAX;
    }
}

static int too_much(uint32_t at, uint32_t origin, struct error *e)
{
    return error_set(e, ERROR_DAMAGED, "more has arrived at node %u than node %u has for it", at,
                     origin);
}

int resume_largest(struct attempt *x, struct error *e)
{
    const struct resumed *r = x->own.resumed;
    uint32_t nodes = torus_of(x)->nodes;
    uint64_t largest = 0, bytes = 0;

    if (x->own.largest_block > x->own.whole_block)
        x->own.whole_block = x->own.largest_block;
    if (r == NULL || r->pairs == NULL)
        return 0; /* more rounds than are needed, perhaps */
    for (uint32_t from = 0; from < nodes; from++) {
        if (around_is_gone(x, from))
            continue;
        if (r->size[from] == NOT_TOLD)
            return 0; /* the largest block may be one of its */
        for (uint32_t to = 0; to < nodes; to++) {
            const struct resumed_pair *p = &r->pairs[(size_t)from * nodes + to];
            if (around_is_gone(x, to))
                continue;
            if (p->arrived > p->whole)
                return too_much(to, from, e);
            if (p->whole - p->arrived > largest)
                largest = p->whole - p->arrived;
            if (from != to && __builtin_add_overflow(bytes, p->whole - p->arrived, &bytes))
                bytes = UINT64_MAX;
        }
    }
    x->own.largest_block = largest;
    x->own.bytes_here = bytes;
    x->own.bytes_below = 0;
    return 0;
}

/* What comes from each node, and goes to it. Files of a node that does not say what it has are others than before,
 * perhaps. */
int resume_lay_out(struct attempt *x, struct error *e)
{
    struct resumed *r = x->own.resumed;
    struct source *source = x->own.source;
    struct sink *sink = x->own.sink;
    uint32_t nodes = torus_of(x)->nodes, rank = rank_of(x);

    if (r == NULL)
        return 0;
    arrived_settle(&r->there);
    r->bytes = r->all_bytes = 0;
    for (uint32_t node = 0; node < nodes; node++) {
        bool told = r->size[node] != NOT_TOLD;
        if (!told)
            arrived_drop(&r->here, node);
        if (told && arrived_end(&r->here, node) > r->size[node])
            return too_much(rank, node, e);
        if (spec_has_folders(&x->spec))
            sink->ops->limit(sink, node, told ? r->size[node] : 0);
        r->incoming[node] = told ? r->size[node] - arrived_bytes(&r->here, node) : NOT_TOLD;
        if (told && arrived_end(&r->there, node) > source->ops->size(source, node) &&
            r->size[rank] != NOT_TOLD)
            return too_much(node, rank, e);
        if (!told || around_is_gone(x, node))
            continue;
        r->all_bytes += r->elsewhere[node];
        if (node != rank)
            r->bytes += arrived_bytes(&r->here, node);
    }
    if (r->size[rank] != NOT_TOLD) {
        source->skips = &r->there;
        source->even = x->mode == MODE_STREAMING;
    }
    return 0;
}

/* --- messages --- */

/* Whether there is room for so many more. Returns 0, or -1 with *e. */
static int check_room(const struct exchanges *all, size_t spans, struct error *e)
{
    for (const struct attempt *x = all->active; x != NULL; x = x->next)
        spans += x->own.resumed != NULL ? x->own.resumed->there.count : 0;
    if (spans <= TOLD_SPANS_OF_ALL)
        return 0;
    return error_set(e, ERROR_BUSY,
                     "node %u is busy: it has no room for what has arrived of more exchanges",
                     router_rank(all->set.router));
}

/* What has arrived of this node's block at another one, or at itself. Returns 0, or -1 with *e. */
static int take(struct attempt *x, const struct peer_arrived *message, struct error *e)
{
    struct resumed *r = x->own.resumed;
    uint32_t nodes = torus_of(x)->nodes;

    if (check_room(x->all, message->n_spans / 3, e) != 0)
        return -1;
    if (message->n_sizes > 0)
        r->size[message->node] = message->sizes[rank_of(x)];
    for (uint32_t d = 0; r->pairs != NULL && message->n_sizes > 0 && d < nodes; d++)
        r->pairs[(size_t)message->node * nodes + d].whole = message->sizes[d];
    for (size_t i = 0; i < message->n_spans; i += 3) {
        const uint64_t *s = &message->spans[i];
        uint32_t origin = (uint32_t)s[0];
        if (origin != message->node && !around_is_gone(x, origin))
            r->elsewhere[origin] += s[2];
        if (r->pairs != NULL)
            r->pairs[(size_t)origin * nodes + message->node].arrived += s[2];
        if (origin == rank_of(x) && arrived_add(&r->there, message->node, s[1], s[1] + s[2]) != 0)
            return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    }
    return 0;
}

static int fill(struct attempt *x, struct peer_arrived *message, struct error *e)
{
    const struct arrived *here = &x->own.resumed->here;
    struct source *source = x->own.source;
    uint32_t nodes = torus_of(x)->nodes;
    bool files = spec_has_folders(&x->spec);

    uint64_t *spans = calloc(here->count + 1, 3 * sizeof *spans);
    uint64_t *sizes = files ? calloc(nodes, sizeof *sizes) : NULL;
    message->spans = spans;
    message->sizes = sizes;
    if (spans == NULL || (files && sizes == NULL))
        return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    for (uint32_t i = 0; i < here->count; i++) {
        spans[message->n_spans++] = here->span[i].node;
        spans[message->n_spans++] = here->span[i].begin;
        spans[message->n_spans++] = here->span[i].end - here->span[i].begin;
    }
    for (uint32_t d = 0; files && d < nodes; d++)
        sizes[message->n_sizes++] = source->ops->size(source, d);
    message->exchange = x->handle;
    message->node = rank_of(x);
    return 0;
}

int resume_tell(struct attempt *x, struct error *e)
{
    struct resumed *r = x->own.resumed;
    struct peer_message message = {.kind = PEER_ARRIVED};
    struct peer_arrived *arrived = &message.arrived;

    if (r == NULL || r->said || (r->here.count == 0 && r->marks == NULL))
        return 0;
    r->said = true; /* the root may still have to choose an algorithm after that */
    int result = fill(x, arrived, e);
    if (result == 0 && attempt_is_root(x))
        result = take(x, arrived, e);
    if (result == 0 && attempt_is_root(x))
        wave_to_children(x, &message);
    else if (result == 0)
        wave_to_parent(x, &message);
    free((uint64_t *)(uintptr_t)arrived->spans); /* our own */
    free((uint64_t *)(uintptr_t)arrived->sizes);
    return result;
}

/* Whether they are spans of blocks of this exchange, in order. */
static int check(const struct attempt *x, const struct peer_arrived *message, struct error *e)
{
    uint32_t nodes = torus_of(x)->nodes, spans = most_spans(x), of_node = 0;
    bool files = spec_has_folders(&x->spec);
    uint64_t most = block_bytes(x);
    uint64_t node = 0, place = 0; /* behind the span before */

    if (message->node >= nodes || message->n_spans % 3 != 0 ||
        message->n_sizes != (files ? nodes : 0) || (message->n_spans == 0 && !files))
        return error_set(
            e, ERROR_PROTOCOL, "exchange %s: arrived at node %u, in %zu %s, with %zu %s", x->id,
            message->node, message->n_spans, text_plural(message->n_spans, "number", "numbers"),
            message->n_sizes, text_plural(message->n_sizes, "size", "sizes"));
    for (size_t i = 0; i < message->n_sizes; i++)
        if (message->sizes[i] == NOT_TOLD)
            return error_set(e, ERROR_PROTOCOL, "exchange %s: a block without end of node %u",
                             x->id, message->node);
    for (size_t i = 0; i < message->n_spans; i += 3) {
        const uint64_t *s = &message->spans[i];
        if (i > 0 && s[0] > node)
            place = of_node = 0;
        if (++of_node > spans)
            return error_set(e, ERROR_PROTOCOL,
                             "exchange %s: arrived at node %u: more than %u spans of a block",
                             x->id, message->node, spans);
        if (s[0] >= nodes || (i > 0 && s[0] < node) || s[1] < place || s[1] >= most || s[2] == 0 ||
            s[2] > most - s[1])
            return error_set(e, ERROR_PROTOCOL,
                             "exchange %s: arrived at node %u: %llu %s at %llu of the block from "
                             "node %llu, which "
                             "cannot be",
                             x->id, message->node, (unsigned long long)s[2],
                             text_plural(s[2], "byte", "bytes"), (unsigned long long)s[1],
                             (unsigned long long)s[0]);
        node = s[0];
        place = s[1] + s[2];
    }
    return 0;
}

/* Each node's message comes once up the tree, from the branch that the node is in, and once down. */
static bool is_first(struct attempt *x, unsigned port, uint32_t node)
{
    bool up = wave_is_child(x, port);
    uint8_t side = up ? 1 : 2, *heard = &x->own.resumed->heard[node];

    if ((*heard & side) != 0 || around_is_gone(x, node) ||
        (up && around_branch(x, node) != (int)port))
        return false;
    *heard |= side;
    return true;
}

int arrived_heard(struct attempt *x, unsigned port, const struct peer_arrived *message,
                  struct error *e)
{
    const struct peer_message onward = {.kind = PEER_ARRIVED, .arrived = *message};
    bool up = wave_is_child(x, port), root = attempt_is_root(x);
    struct error why;

    if (x->resumes[0] == '\0' || !kind_of(x)->has_blocks || (up && x->state != EXCHANGE_OPENING))
        return error_set(e, ERROR_PROTOCOL, "exchange %s: unexpected message \"arrived\"", x->id);
    if (check(x, message, e) != 0)
        return -1;
    if (resume_begin(x, &why) != 0) {
        attempt_fail(x, &why);
        return 0;
    }
    if (!is_first(x, port, message->node))
        return error_set(e, ERROR_PROTOCOL,
                         "exchange %s: \"arrived\" of node %u, which is not due from here", x->id,
                         message->node);
    if (up && !root) {
        wave_to_parent(x, &onward);
    } else if (take(x, message, &why) != 0) {
        attempt_fail(x, &why);
    } else {
        wave_to_children(x, &onward);
    }
    return 0;
}
