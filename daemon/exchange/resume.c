/* What has arrived of an exchange that is taken back because a link went down is kept, and the next
 * attempt moves only the rest. When a node has opened its blocks it says what has arrived there; that
 * goes up the tree and down to all (`arrived`, before the root's `layout`), so both ends of every block
 * know what is missing. A node that has nothing any more, restarted perhaps, says nothing, and gets
 * all. Generated blocks only: the contents are those of the first attempt's id. */
#include <stdlib.h>
#include <string.h>

#include "daemon/exchange/internal.h"
#include "daemon/exchange/remainder.h"

#define KEPT_MOST 64u
#define KEPT_SPANS_MOST (64u * 1024u) /* of all that are kept */
#define SPAN_BYTES 5u                 /* in a message, about */
#define WORTH 8u                      /* times as many bytes to be moved as to be said */
/* What others say has arrived of this node's blocks is kept: spans of all blocks of an exchange, of which each
 * has its part, and of all exchanges. */
#define TOLD_SPANS_MOST (16u * 1024u)
#define TOLD_SPANS_LEAST 16u /* of a block, in a large torus */
#define TOLD_SPANS_OF_ALL (256u * 1024u)

struct kept {
    struct kept *next;
    char id[EXCHANGE_ID_SIZE]; /* of the first attempt */
    uint64_t went;
    struct arrived here;
};

const char *resume_name(const struct exchange *x)
{
    return x->resumes[0] != '\0' ? x->resumes : x->id;
}

static bool may_resume(const struct exchange *x)
{
    return x->goes_around && x->spec.operation == OPERATION_EXCHANGE &&
           !spec_has_folders(&x->spec) && x->spec.repeat == 1;
}

void resume_next(struct exchange *x)
{
    const struct torus *t = torus_of(x);
    double said, moved;

    if (x->state != EXCHANGE_RUNNING || x->mode != MODE_STREAMING || !may_resume(x) ||
        x->resumes[0] != '\0')
        return;
    said = (double)t->nodes * t->nodes * x->algorithm->segments * SPAN_BYTES;
    moved = torus_bound_all_port(t) * (double)x->spec.block_bytes;
    if (said * WORTH <= moved)
        memcpy(x->resumes, x->id, sizeof x->resumes);
}

/* Of one block; more are not told, and come again. */
static uint32_t most_spans(const struct exchange *x)
{
    uint32_t most = TOLD_SPANS_MOST / torus_of(x)->nodes;

    return most > TOLD_SPANS_LEAST ? most : TOLD_SPANS_LEAST;
}

/* --- between two attempts --- */

static void drop(struct exchanges *all, struct kept *k)
{
    LL_DELETE(all->kept, k);
    arrived_free(&k->here);
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

void resume_keep(struct exchange *x)
{
    struct resumed *r = x->own.resumed;
    struct kept *k = NULL;

    x->own.resumed = NULL;
    if (r == NULL)
        return;
    x->own.kept_bytes = r->all_bytes;
    if (r->here.count > 0 && x->state != EXCHANGE_COMMITTED)
        k = calloc(1, sizeof *k); /* without memory all comes once more */
    if (k != NULL) {
        memcpy(k->id, resume_name(x), sizeof k->id);
        k->went = r->went;
        k->here = r->here;
        r->here = (struct arrived){0};
        LL_PREPEND(x->all->kept, k);
        forget_old(x->all);
    }
    arrived_free(&r->here);
    arrived_free(&r->there);
    free(r->incoming);
    free(r->heard);
    free(r);
}

struct noting {
    const struct exchange *x;
    struct arrived more;
};

/* What the engine has moved is of what was missing. */
static void note(void *context, uint32_t origin, uint64_t begin, uint64_t end)
{
    struct noting *n = context;
    uint64_t at;

    if (around_is_gone(n->x, origin))
        return;
    while (begin < end) {
        uint64_t bytes =
            arrived_missing(&n->x->own.resumed->here, origin, n->x->spec.block_bytes, begin, &at);
        if (bytes > end - begin)
            bytes = end - begin;
        if (bytes == 0 || arrived_add(&n->more, origin, at, at + bytes) != 0)
            return;
        begin += bytes;
    }
}

void resume_note(struct exchange *x)
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
}

/* --- in the next one --- */

int resume_begin(struct exchange *x, struct error *e)
{
    struct resumed *r;
    struct kept *k;

    if (x->resumes[0] == '\0' || x->own.resumed != NULL || spec_is_entered(&x->spec))
        return 0;
    r = calloc(1, sizeof *r);
    if (r != NULL)
        r->heard = calloc(torus_of(x)->nodes, sizeof *r->heard);
    if (r == NULL || r->heard == NULL) {
        free(r);
        return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    }
    x->own.resumed = r;
    LL_FOREACH(x->all->kept, k)
    {
        if (strcmp(k->id, x->resumes) != 0)
            continue;
        r->here = k->here;
        r->went = k->went;
        k->here = (struct arrived){0};
        drop(x->all, k);
        break;
    }
    for (uint32_t i = 0; i < r->here.count; i++)
        if (r->here.span[i].node != rank_of(x) && !around_is_gone(x, r->here.span[i].node))
            r->bytes += r->here.span[i].end - r->here.span[i].begin;
    return 0;
}

int resume_wrap(struct exchange *x, struct error *e)
{
    struct resumed *r = x->own.resumed;

    if (r == NULL)
        return 0;
    x->own.source = remainder_source(x->own.source, &r->there, x->spec.block_bytes);
    x->own.sink = remainder_sink(x->own.sink, &r->here, x->spec.block_bytes);
    if (x->own.source != NULL && x->own.sink != NULL)
        return 0;
    return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
}

void resume_sizes(struct exchange *x)
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

int resume_lay_out(struct exchange *x, struct error *e)
{
    struct resumed *r = x->own.resumed;
    uint32_t nodes = torus_of(x)->nodes;

    if (r == NULL)
        return 0;
    arrived_settle(&r->there);
    if (r->incoming == NULL)
        r->incoming = calloc(nodes, sizeof *r->incoming);
    if (r->incoming == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    for (uint32_t origin = 0; origin < nodes; origin++)
        r->incoming[origin] = x->spec.block_bytes - arrived_bytes(&r->here, origin);
    return 0;
}

/* --- messages --- */

/* What has arrived of this node's block at another one, or at itself. Returns 0, or -1 with *e. */
static int take(struct exchange *x, uint32_t node, const struct span *span, struct error *e)
{
    struct resumed *r = x->own.resumed;

    if (span->node != node && !around_is_gone(x, span->node))
        r->all_bytes += span->end - span->begin;
    if (span->node != rank_of(x) || arrived_add(&r->there, node, span->begin, span->end) == 0)
        return 0;
    return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
}

int resume_tell(struct exchange *x, struct error *e)
{
    const struct arrived *here = x->own.resumed != NULL ? &x->own.resumed->here : NULL;
    Peer__Arrived message = PEER__ARRIVED__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    if (here == NULL || here->count == 0)
        return 0;
    message.spans = calloc(here->count, 3 * sizeof *message.spans);
    if (message.spans == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    for (uint32_t i = 0; i < here->count; i++) {
        message.spans[message.n_spans++] = here->span[i].node;
        message.spans[message.n_spans++] = here->span[i].begin;
        message.spans[message.n_spans++] = here->span[i].end - here->span[i].begin;
    }
    message.exchange = x->handle;
    message.node = rank_of(x);
    head.kind_case = PEER__HEAD__KIND_ARRIVED;
    head.arrived = &message;
    int result = 0;
    for (uint32_t i = 0; exchange_is_root(x) && i < here->count && result == 0; i++)
        result = take(x, rank_of(x), &here->span[i], e);
    if (exchange_is_root(x))
        wave_to_children(x, &head);
    else
        wave_to_parent(x, &head);
    free(message.spans);
    return result;
}

/* Whether they are spans of blocks of this exchange, in order. */
static int check(const struct exchange *x, const Peer__Arrived *message, struct error *e)
{
    uint32_t nodes = torus_of(x)->nodes, most = most_spans(x), of_node = 0;
    uint64_t node = 0, place = 0; /* behind the span before */

    if (message->node >= nodes || message->n_spans == 0 || message->n_spans % 3 != 0)
        return error_set(e, ERROR_PROTOCOL, "exchange %s: arrived at node %u, in %zu numbers",
                         x->id, message->node, message->n_spans);
    for (size_t i = 0; i < message->n_spans; i += 3) {
        const uint64_t *s = &message->spans[i];
        if (i > 0 && s[0] > node)
            place = of_node = 0;
        if (++of_node > most)
            return error_set(e, ERROR_PROTOCOL,
                             "exchange %s: arrived at node %u: more than %u spans of a block",
                             x->id, message->node, most);
        if (s[0] >= nodes || (i > 0 && s[0] < node) || s[1] < place ||
            s[1] >= x->spec.block_bytes || s[2] == 0 || s[2] > x->spec.block_bytes - s[1])
            return error_set(
                e, ERROR_PROTOCOL,
                "exchange %s: arrived at node %u: %llu bytes at %llu of the block from "
                "node %llu, which cannot be",
                x->id, message->node, (unsigned long long)s[2], (unsigned long long)s[1],
                (unsigned long long)s[0]);
        node = s[0];
        place = s[1] + s[2];
    }
    return 0;
}

/* Each node's message comes once up the tree, from the branch that the node is in, and once down. */
static bool is_first(struct exchange *x, unsigned port, uint32_t node)
{
    bool up = wave_is_child(x, port);
    uint8_t side = up ? 1 : 2, *heard = &x->own.resumed->heard[node];

    if ((*heard & side) != 0 || around_is_gone(x, node) ||
        (up && around_branch(x, node) != (int)port))
        return false;
    *heard |= side;
    return true;
}

/* Whether there is room for so many more. Returns 0, or -1 with *e. */
static int check_room(const struct exchanges *all, size_t spans, struct error *e)
{
    for (const struct exchange *x = all->active; x != NULL; x = x->next)
        spans += x->own.resumed != NULL ? x->own.resumed->there.count : 0;
    if (spans <= TOLD_SPANS_OF_ALL)
        return 0;
    return error_set(e, ERROR_BUSY,
                     "node %u is busy: it has no room for what has arrived of more exchanges",
                     router_rank(all->set.router));
}

/* What concerns this node's blocks. Returns 0, or -1 with *e. */
static int take_all(struct exchange *x, const Peer__Arrived *message, struct error *e)
{
    if (check_room(x->all, message->n_spans / 3, e) != 0)
        return -1;
    for (size_t i = 0; i < message->n_spans; i += 3) {
        const uint64_t *s = &message->spans[i];
        const struct span span = {(uint32_t)s[0], s[1], s[1] + s[2]};
        if (take(x, message->node, &span, e) != 0)
            return -1;
    }
    return 0;
}

int arrived_heard(struct exchange *x, unsigned port, const Peer__Head *head, struct error *e)
{
    const Peer__Arrived *message = head->arrived;
    bool up = wave_is_child(x, port), root = exchange_is_root(x);
    struct error why;

    if (x->resumes[0] == '\0' || spec_is_entered(&x->spec) || (up && x->state != EXCHANGE_OPENING))
        return error_set(e, ERROR_PROTOCOL, "exchange %s: unexpected message \"arrived\"", x->id);
    if (check(x, message, e) != 0)
        return -1;
    if (resume_begin(x, &why) != 0) {
        exchange_fail(x, &why);
        return 0;
    }
    if (!is_first(x, port, message->node))
        return error_set(e, ERROR_PROTOCOL,
                         "exchange %s: \"arrived\" of node %u, which is not due from here", x->id,
                         message->node);
    if (up && !root) {
        wave_to_parent(x, head);
    } else if (take_all(x, message, &why) != 0) {
        exchange_fail(x, &why);
    } else {
        wave_to_children(x, head);
    }
    return 0;
}
