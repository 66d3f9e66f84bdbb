/* In an attempt that resumes an earlier one, each node tells all other nodes what has arrived there: `arrived`
 * goes up the tree to the root, and from there down to all nodes. */
#include "daemon/torusd/exchange/phases/progress_messages.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/engine/arrived.h"
#include "daemon/torusd/exchange/abort/fail.h"
#include "daemon/torusd/exchange/record/avoided.h"
#include "daemon/torusd/exchange/record/kept_blocks.h"
#include "daemon/torusd/exchange/record/resumed_blocks.h"
#include "daemon/torusd/exchange/record/tree_messages.h"
#include "proto/text.h"

/* Most spans that are kept here, of all exchanges' blocks. */
#define TOLD_SPANS_OF_ALL (256u * 1024u)

/* Checks that there is room for this many more spans. Returns 0, or -1 with *e. */
static int check_room(const struct exchanges *exchanges, size_t spans, struct error *e)
{
    for (const struct attempt *x = exchanges->active; x != NULL; x = x->next)
        spans += x->local.resumed != NULL ? x->local.resumed->there.count : 0;
    if (spans <= TOLD_SPANS_OF_ALL)
        return 0;
    return error_set(
        e, ERROR_BUSY,
        "node %u is busy: it has no room to record what has arrived of one more exchange",
        router_rank(exchanges->set.router));
}

/* Notes what has arrived of this node's block at another node, or at this node. Returns 0, or -1 with *e. */
static int take_arrived(struct attempt *x, const struct peer_arrived *message, struct error *e)
{
    struct resumed *r = x->local.resumed;
    uint32_t nodes = torus_of(x)->nodes;

    if (check_room(x->exchanges, message->n_spans / 3, e) != 0)
        return -1;
    if (message->n_sizes > 0)
        r->size[message->node] = message->sizes[rank_of(x)];
    for (uint32_t d = 0; r->pairs != NULL && message->n_sizes > 0 && d < nodes; d++)
        r->pairs[(size_t)message->node * nodes + d].whole = message->sizes[d];
    for (size_t i = 0; i < message->n_spans; i += 3) {
        const uint64_t *s = &message->spans[i];
        uint32_t origin = (uint32_t)s[0];
        if (origin != message->node && !avoided_is_left_out(x, origin))
            r->elsewhere[origin] += s[2];
        if (r->pairs != NULL)
            r->pairs[(size_t)origin * nodes + message->node].arrived += s[2];
        if (origin == rank_of(x) && arrived_add(&r->there, message->node, s[1], s[1] + s[2]) != 0)
            return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    }
    return 0;
}

static int fill_arrived(struct attempt *x, struct peer_arrived *message, struct error *e)
{
    const struct arrived *here = &x->local.resumed->here;
    struct source *source = x->local.source;
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

int progress_tell(struct attempt *x, struct error *e)
{
    struct resumed *r = x->local.resumed;
    struct peer_message message = {.kind = PEER_ARRIVED};
    struct peer_arrived *arrived = &message.arrived;

    if (r == NULL || r->told || (r->here.count == 0 && r->marks == NULL))
        return 0;
    r->told = true; /* set now, because the root may call again after it has chosen an algorithm */
    int result = fill_arrived(x, arrived, e);
    if (result == 0 && attempt_is_root(x))
        result = take_arrived(x, arrived, e);
    if (result == 0 && attempt_is_root(x))
        tree_messages_to_children(x, &message);
    else if (result == 0)
        tree_messages_to_parent(x, &message);
    free((uint64_t *)(uintptr_t)arrived->spans); /* allocated by fill_arrived() */
    free((uint64_t *)(uintptr_t)arrived->sizes);
    return result;
}

/* Checks that the spans belong to blocks of this exchange, and are in order. Returns 0, or -1 with *e. */
static int check_arrived(const struct attempt *x, const struct peer_arrived *message,
                         struct error *e)
{
    uint32_t nodes = torus_of(x)->nodes, spans = kept_blocks_spans_most(x), of_node = 0;
    bool files = spec_has_folders(&x->spec);
    uint64_t most = kept_blocks_bytes(x);
    uint64_t node = 0, place = 0; /* end of the span before */

    if (message->node >= nodes || message->n_spans % 3 != 0 ||
        message->n_sizes != (files ? nodes : 0) || (message->n_spans == 0 && !files))
        return error_set(e, ERROR_PROTOCOL,
                         "exchange %s: invalid \"arrived\" of node %u: spans of %zu %s, and %zu %s",
                         x->id.text, message->node, message->n_spans,
                         text_plural(message->n_spans, "number", "numbers"), message->n_sizes,
                         text_plural(message->n_sizes, "size", "sizes"));
    for (size_t i = 0; i < message->n_sizes; i++)
        if (message->sizes[i] == ENGINE_NOT_TOLD)
            return error_set(e, ERROR_PROTOCOL,
                             "exchange %s: \"arrived\" of node %u has a block of unlimited size",
                             x->id.text, message->node);
    for (size_t i = 0; i < message->n_spans; i += 3) {
        const uint64_t *s = &message->spans[i];
        if (i > 0 && s[0] > node)
            place = of_node = 0;
        if (++of_node > spans)
            return error_set(
                e, ERROR_PROTOCOL,
                "exchange %s: \"arrived\" of node %u has more than %u spans of one block",
                x->id.text, message->node, spans);
        if (s[0] >= nodes || (i > 0 && s[0] < node) || s[1] < place || s[1] >= most || s[2] == 0 ||
            s[2] > most - s[1])
            return error_set(e, ERROR_PROTOCOL,
                             "exchange %s: \"arrived\" of node %u has an invalid span: %llu %s at "
                             "offset %llu of the block from node %llu",
                             x->id.text, message->node, (unsigned long long)s[2],
                             text_plural(s[2], "byte", "bytes"), (unsigned long long)s[1],
                             (unsigned long long)s[0]);
        node = s[0];
        place = s[1] + s[2];
    }
    return 0;
}

/* Whether the message arrives from this side for the first time. Each node's message goes up the tree once,
 * from the branch that the node is in, and down once. */
static bool is_first(struct attempt *x, unsigned port, uint32_t node)
{
    bool up = tree_messages_is_child(x, port);
    uint8_t side = up ? 1 : 2, *heard = &x->local.resumed->heard[node];

    if ((*heard & side) != 0 || avoided_is_left_out(x, node) ||
        (up && avoided_branch(x, node) != (int)port))
        return false;
    *heard |= side;
    return true;
}

int arrived_heard(struct attempt *x, unsigned port, const struct peer_arrived *message,
                  struct error *e)
{
    const struct peer_message onward = {.kind = PEER_ARRIVED, .arrived = *message};
    bool up = tree_messages_is_child(x, port), root = attempt_is_root(x);
    struct error why;

    if (exchange_id_is_none(&x->resumes) || !kind_of(x)->has_blocks ||
        (up && x->state != EXCHANGE_OPENING))
        return error_set(e, ERROR_PROTOCOL, "exchange %s: unexpected message \"arrived\"",
                         x->id.text);
    if (check_arrived(x, message, e) != 0)
        return -1;
    if (resumed_blocks_begin(x, &why) != 0) {
        attempt_fail(x, &why);
        return 0;
    }
    if (!is_first(x, port, message->node))
        return error_set(
            e, ERROR_PROTOCOL,
            "exchange %s: \"arrived\" of node %u for a second time, or from the wrong neighbour",
            x->id.text, message->node);
    if (up && !root) {
        tree_messages_to_parent(x, &onward);
    } else if (take_arrived(x, message, &why) != 0) {
        attempt_fail(x, &why);
    } else {
        tree_messages_to_children(x, &onward);
    }
    return 0;
}
