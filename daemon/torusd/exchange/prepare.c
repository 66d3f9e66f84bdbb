#include "daemon/torusd/exchange/prepare.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/algorithms/family.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/damage.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/torusd/exchange/abort.h"
#include "daemon/torusd/exchange/choose_routes.h"
#include "daemon/torusd/exchange/job.h"
#include "daemon/torusd/exchange/kept_blocks.h"
#include "daemon/torusd/exchange/local_resources.h"
#include "daemon/torusd/exchange/membership.h"
#include "daemon/torusd/exchange/plan_rates.h"
#include "daemon/torusd/exchange/rounds.h"
#include "daemon/torusd/exchange/tree_messages.h"
#include "proto/elapsed.h"
#include "proto/text.h"

/* --- the links and nodes that an attempt avoids, as lists in the prepare --- */

/* Frees the lists of prepare_links_pack(). */
static void prepare_links_free(struct peer_prepare *prepare)
{
    free((uint32_t *)(uintptr_t)prepare->without); /* allocated by prepare_links_pack() */
    free((uint32_t *)(uintptr_t)prepare->missing);
    free((uint32_t *)(uintptr_t)prepare->rates); /* by plan_rates_pack() */
}

/* Fills prepare->without, prepare->missing and prepare->rates; prepare_links_free() frees them. Returns 0, or -1 if there is no
 * memory, with nothing to free. */
static int prepare_links_pack(const struct attempt *x, struct peer_prepare *prepare)
{
    const struct torus *t = torus_of(x);
    uint32_t *without, *missing;

    if (x->avoided == NULL)
        return 0;
    const struct damage *d = &x->avoided->damage;
    prepare->without = without = calloc((size_t)t->nodes * torus_ports(t), sizeof *without);
    prepare->missing = missing = calloc(t->nodes, sizeof *missing);
    if (without == NULL || missing == NULL || plan_rates_pack(d, prepare) != 0) {
        prepare_links_free(prepare);
        return -1;
    }
    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        if (d->gone[rank])
            missing[prepare->n_missing++] = rank;
        for (unsigned port = 0; port < torus_ports(t); port++)
            if (torus_port_dials(t, rank, port) && avoided_joins_members(d, rank, port) &&
                (d->dead[rank] & 1u << port) != 0)
                without[prepare->n_without++] = rank * torus_ports(t) + port;
    }
    return 0;
}

static int unpack_missing(const struct peer_prepare *prepare, struct damage *d, struct error *e)
{
    for (size_t i = 0; i < prepare->n_missing; i++) {
        uint32_t rank = prepare->missing[i];
        if (rank >= d->torus.nodes || rank == prepare->root ||
            (i > 0 && rank <= prepare->missing[i - 1]))
            return error_set(e, ERROR_PROTOCOL,
                             "prepare leaves out node %u, which does not exist, is the root, or is "
                             "out of order in the list",
                             rank);
        damage_add_node(d, rank);
    }
    return 0;
}

static int unpack_links(const struct peer_prepare *prepare, struct damage *d, struct error *e)
{
    const struct torus *t = &d->torus;

    for (size_t i = 0; i < prepare->n_without; i++) {
        uint32_t rank = prepare->without[i] / torus_ports(t);
        unsigned port = prepare->without[i] % torus_ports(t);
        if (rank >= t->nodes || !torus_port_dials(t, rank, port) ||
            !avoided_joins_members(d, rank, port) ||
            (i > 0 && prepare->without[i] <= prepare->without[i - 1]))
            return error_set(e, ERROR_PROTOCOL,
                             "prepare avoids link %u, which does not exist, belongs to a node that "
                             "is left out, or is out of order in the list",
                             prepare->without[i]);
        damage_add_link(d, rank, port);
    }
    return 0;
}

int prepare_links_unpack(const struct torus *t, const struct peer_prepare *prepare,
                         struct damage *d, struct error *e)
{
    if (damage_init(d, t, e) != 0)
        return -1;
    if (unpack_missing(prepare, d, e) == 0 && unpack_links(prepare, d, e) == 0 &&
        plan_rates_unpack(prepare, d, e) == 0)
        return 0;
    damage_free(d);
    return -1;
}

/* --- progress ---
 *
 * In an attempt that resumes an earlier one, each node tells all other nodes what has arrived there: `arrived`
 * goes up the tree to the root, and from there down to all nodes. */

/* Most spans that are kept here, of all exchanges' blocks. */
#define TOLD_SPANS_OF_ALL (256u * 1024u)

/* Checks that there is room for this many more spans. Returns 0, or -1 with *e. */
static int check_room(const struct exchanges *exchanges, size_t spans, struct error *e)
{
    for (const struct attempt *x = exchanges->active; x != NULL; x = x->next)
        spans += x->local.resumed != NULL ? x->local.resumed->there.spans : 0;
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

    uint64_t *spans = calloc(here->spans + 1, 3 * sizeof *spans);
    uint64_t *sizes = files ? calloc(nodes, sizeof *sizes) : NULL;
    message->spans = spans;
    message->sizes = sizes;
    if (spans == NULL || (files && sizes == NULL))
        return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    for (uint32_t node = 0; node < here->nodes; node++)
        for (size_t i = 0; i < here->block[node].count; i++) {
            const struct interval *s = &here->block[node].item[i];
            spans[message->n_spans++] = node;
            spans[message->n_spans++] = s->begin;
            spans[message->n_spans++] = s->end - s->begin;
        }
    for (uint32_t d = 0; files && d < nodes; d++)
        sizes[message->n_sizes++] = source->ops->size(source, d);
    message->exchange = x->handle;
    message->node = rank_of(x);
    return 0;
}

/* Tells the other nodes what has arrived here, unless this node has already done so. Returns 0, or -1 with *e. */
static int progress_tell(struct attempt *x, struct error *e)
{
    struct resumed *r = x->local.resumed;
    struct peer_message message = {.kind = PEER_ARRIVED};
    struct peer_arrived *arrived = &message.arrived;

    if (r == NULL || r->told || (r->here.spans == 0 && r->marks == NULL))
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

/* --- preparing ---
 *
 * Each node opens its blocks, reports their sizes, reserves memory, and is ready or objects. */

uint64_t prepare_default_timeout(const struct attempt *x)
{
    double bound = 300;

    if (kind_of(x)->is_entered)
        return SPEC_LONGEST_TIMEOUT;
    if (x->exchanges->set.link_mbit > 0)
        bound = local_resources_busiest(x) * (double)x->local.largest_block * 8 /
                (x->exchanges->set.link_mbit * 1e6);
    bound *= x->spec.repeat;
    if (20 * bound >= (double)(SPEC_LONGEST_TIMEOUT / SECONDS))
        return SPEC_LONGEST_TIMEOUT; /* more may not fit into an integer */
    return 60 * SECONDS + (uint64_t)(20 * bound * 1e9);
}

static void send_prepare(struct attempt *x)
{
    struct peer_message message = {.kind = PEER_PREPARE};
    struct peer_prepare *prepare = &message.prepare;
    struct error e;
    Torus__Spec spec;
    char dims[TORUS_TEXT_SIZE];

    if (prepare_links_pack(x, prepare) != 0) {
        (void)error_set(&e, ERROR_MEMORY, "out of memory for an exchange");
        attempt_fail(x, &e);
        return;
    }
    spec_pack(&x->spec, &spec);
    if (x->algorithm != NULL) {
        /* Other nodes have no name for an algorithm with routes of this attempt; but they find those of
         * `stream`, and the trees that the root chooses by its costs. */
        if (!avoided_has_routes(x) || x->avoided->takes_found ||
            strcmp(x->algorithm->name, FOUND_DISJOINT_NAME) == 0)
            spec.algorithm = (char *)(uintptr_t)x->algorithm->name;
        if (spec_has_schedule(&x->spec))
            spec.algorithm = (char *)(uintptr_t) ""; /* the schedule has its own */
        spec.mode = (char *)(uintptr_t)mode_name(x->mode);
    }
    if (attempt_is_root(x)) /* the time that is left after waiting to be started */
        spec.timeout_ms = elapsed(router_now(router_of(x)), x->deadline) / MILLISECONDS;
    prepare->exchange = x->handle;
    prepare->id = x->id.text;
    prepare->root = x->root;
    prepare->dims = torus_format(torus_of(x), dims);
    prepare->spec = &spec;
    prepare->round_bytes = x->local.round_bytes;
    prepare->window = x->local.window;
    prepare->avoids_links = x->avoids_links;
    prepare->from_begin = x->from_begin;
    prepare->resumes = x->resumes.text;
    prepare->user = x->user;
    tree_messages_to_children(x, &message);
    prepare_links_free(prepare);
}

void prepare_begin(struct attempt *x)
{
    tree_messages_begin_wave(x);
    send_prepare(x);
}

static void send_sizes(struct attempt *x)
{
    struct peer_message message = {
        .kind = PEER_SIZES,
        .sizes = {.exchange = x->handle, .largest_block = x->local.largest_block}};
    uint64_t *total = &message.sizes.total_bytes;

    if (__builtin_add_overflow(x->local.bytes_here, x->local.bytes_below, total))
        *total = UINT64_MAX;
    tree_messages_to_parent(x, &message);
}

static void send_layout(struct attempt *x)
{
    const struct peer_message message = {
        .kind = PEER_LAYOUT,
        .layout = {.exchange = x->handle,
                   .round_bytes = x->local.round_bytes,
                   .window = x->local.window,
                   .timeout_ms = x->timeout_ns / MILLISECONDS,
                   .algorithm = x->algorithm != NULL ? x->algorithm->name : avoided_routes_name(x),
                   .mode = mode_name(x->mode)}};

    tree_messages_to_children(x, &message);
}

static void send_ready(struct attempt *x)
{
    size_t count;
    uint64_t *arrivals = barrier_times_below(x, &count);
    const struct peer_message message = {
        .kind = PEER_READY,
        .ready = {.exchange = x->handle, .n_arrivals = count, .arrivals = arrivals}};

    if (x->job != NULL)
        x->job->ready = true;
    tree_messages_to_parent(x, &message);
    free(arrivals);
}

void prepare_wrap_refusal(const struct exchanges *exchanges, unsigned port, struct error *e)
{
    struct router *r = exchanges->set.router;

    if (e->code == ERROR_PROTOCOL || e->code == ERROR_USAGE)
        (void)error_wrap(e, "node %u refuses a message from node %u", router_rank(r),
                         torus_neighbour(router_torus(r), router_rank(r), port));
    else
        (void)error_wrap(e, "node %u refuses", router_rank(r));
}

void prepare_object(struct attempt *x, struct error *e)
{
    if (!attempt_is_root(x) && e->code != ERROR_BUSY)
        prepare_wrap_refusal(x->exchanges, (unsigned)x->tree.parent, e);
    (void)error_blame_node_by_default(e, rank_of(x));
    attempt_fail(x, e);
}

/* Called when all nodes have opened their blocks, so that the root knows their sizes. Returns whether the
 * attempt has moved on. */
static bool all_opened(struct attempt *x)
{
    struct error e;

    if (progress_tell(x, &e) != 0) {
        prepare_object(x, &e);
        return false;
    }
    if (!attempt_is_root(x)) {
        attempt_enter(x, EXCHANGE_OPENED);
        send_sizes(x);
        return true;
    }
    int result = resumed_blocks_largest(x, &e) == 0 ? choose_for(x, &e) : -1;
    if (result > 0)
        result = local_resources_open(x, &e); /* makes the plan if it has just been chosen */
    if (result > 0 && local_resources_choose_rounds(x, &e) != 0)
        result = -1;
    if (result < 0)
        prepare_object(x, &e);
    if (result == 0)
        x->awaited |= OWN_PART; /* schedules must be counted or planned first */
    if (result <= 0)
        return false;
    if (x->spec.timeout_ns == 0) {
        x->timeout_ns = prepare_default_timeout(x);
        x->deadline = router_now(router_of(x)) + x->timeout_ns;
    }
    attempt_enter(x, EXCHANGE_PREPARING);
    tree_messages_begin_wave(x);
    send_layout(x);
    return true;
}

static void all_ready(struct attempt *x)
{
    if (attempt_is_root(x)) {
        rounds_begin(x);
        return;
    }
    attempt_enter(x, EXCHANGE_READY);
    send_ready(x);
}

/* Whether a client of this node has entered the group. The root may prepare any number of groups, so this node
 * reserves memory only for those that were entered here. */
static bool is_awaited_here(const struct attempt *x)
{
    return !kind_of(x)->is_entered || attempt_is_awaited(x) || attempt_is_open_group(x) ||
           attempt_is_passive(x);
}

/* Does this node's own part, as far as possible now. Returns 0, or -1 if the attempt has failed. */
static int advance_own(struct attempt *x)
{
    struct error e;
    int result = spec_has_schedule(&x->spec) || avoided_has_routes(x) ? choose_for(x, &e) : 1;

    if (result > 0)
        result = local_resources_open(x, &e);
    if (result > 0 && !is_awaited_here(x))
        return 0;
    if (result > 0 && x->state == EXCHANGE_PREPARING)
        result = local_resources_make_engine(x, &e);
    if (result < 0) {
        if (e.code == ERROR_LINK && attempt_is_open_group(x))
            e.code = ERROR_REFUSED; /* another attempt would not help */
        prepare_object(x, &e);
        return -1;
    }
    if (result > 0)
        x->awaited &= ~OWN_PART;
    return 0;
}

void prepare_advance(struct attempt *x)
{
    while (state_of(x)->prepares) {
        if ((x->awaited & OWN_PART) != 0 && advance_own(x) != 0)
            return;
        if (x->awaited != 0)
            return;
        if (x->fault.at != ROUTER_NEVER && retry_after_link_loss(x)) {
            x->awaited |= OWN_PART; /* the root retries */
            return;
        }
        if (x->state == EXCHANGE_PREPARING)
            all_ready(x);
        else if (!all_opened(x))
            return;
    }
}

int sizes_heard(struct attempt *x, unsigned port, const struct peer_sizes *sizes, struct error *e)
{
    if (tree_messages_child_part(x, port, e) != 0)
        return -1;
    if (sizes->largest_block > x->local.largest_block)
        x->local.largest_block = sizes->largest_block;
    if (__builtin_add_overflow(x->local.bytes_below, sizes->total_bytes, &x->local.bytes_below))
        x->local.bytes_below = UINT64_MAX;
    return 0;
}

/* Whether the root has chosen `stream` on a network where each node finds its routes. If so, they are found next. */
static bool takes_found_routes(struct attempt *x, const struct peer_layout *layout)
{
    enum mode mode;

    if (torus_is_plain(torus_of(x)) || x->avoided == NULL ||
        strcmp(layout->algorithm, FOUND_NAME) != 0 || mode_parse(layout->mode, &mode) != 0 ||
        mode == MODE_OF_ALGORITHM)
        return false;
    x->avoided->takes_found = true;
    x->spec.mode = x->mode = mode;
    return true;
}

/* Takes the root's choice of what the spec left open. Returns 0, or -1 with *e. */
static int take_choice(struct attempt *x, const struct peer_layout *layout, struct error *e)
{
    const struct algorithm *a = NULL;
    enum mode mode;
    struct error why;

    if (x->algorithm != NULL)
        return 0;
    if (takes_found_routes(x, layout))
        return 0;
    if (family_check(layout->algorithm, torus_of(x), &why) == 0)
        a = algorithm_find(layout->algorithm);
    if (a == NULL || mode_parse(layout->mode, &mode) != 0 || mode == MODE_OF_ALGORITHM ||
        spec_check_algorithm(&x->spec, torus_of(x), a, &mode, &why) != 0)
        return error_set(
            e, ERROR_PROTOCOL,
            "exchange %s: layout with an unknown algorithm or mode, or one that does not work here",
            x->id.text);
    x->algorithm = a;
    x->mode = mode;
    return 0;
}

int layout_heard(struct attempt *x, unsigned port, const struct peer_layout *layout,
                 struct error *e)
{
    (void)port;
    if (take_choice(x, layout, e) != 0)
        return -1;
    x->local.round_bytes = layout->round_bytes;
    x->local.window = layout->window;
    if (layout->timeout_ms <= SPEC_LONGEST_TIMEOUT / MILLISECONDS) {
        x->timeout_ns = layout->timeout_ms * MILLISECONDS;
        x->deadline = router_now(router_of(x)) + x->timeout_ns + PEER_PATIENCE;
    }
    attempt_enter(x, EXCHANGE_PREPARING);
    tree_messages_begin_wave(x);
    send_layout(x);
    return 0;
}

int ready_heard(struct attempt *x, unsigned port, const struct peer_ready *message, struct error *e)
{
    if (tree_messages_child_part(x, port, e) != 0)
        return -1;
    return barrier_times_add_child(x, port, message->arrivals, message->n_arrivals, e);
}
