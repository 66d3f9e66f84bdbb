/* How an attempt starts on all nodes: each node opens its blocks, tells their sizes, reserves memory, and is
 * ready or objects. prepare_heard.c handles the root's prepare. */
#include "daemon/torusd/exchange/phases/prepare.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/algorithms/families.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/torusd/exchange/abort/fail.h"
#include "daemon/torusd/exchange/abort/retry.h"
#include "daemon/torusd/exchange/phases/choose_routes.h"
#include "daemon/torusd/exchange/phases/prepare_links.h"
#include "daemon/torusd/exchange/phases/progress_messages.h"
#include "daemon/torusd/exchange/phases/rounds.h"
#include "daemon/torusd/exchange/record/attempt_state.h"
#include "daemon/torusd/exchange/record/avoided.h"
#include "daemon/torusd/exchange/record/local_resources.h"
#include "daemon/torusd/exchange/record/predicates.h"
#include "daemon/torusd/exchange/record/resumed_blocks.h"
#include "daemon/torusd/exchange/record/times.h"
#include "daemon/torusd/exchange/record/tree_messages.h"
#include "proto/elapsed.h"
#include "proto/text.h"

uint64_t prepare_default_timeout(const struct attempt *x)
{
    double bound = 300, blocks = torus_bound_all_port(torus_of(x));

    if (kind_of(x)->is_entered)
        return SPEC_LONGEST_TIMEOUT;
    if (x->avoided != NULL && x->avoided->detour != NULL)
        blocks = (double)detour_busiest(x->avoided->detour) / x->algorithm->segments;
    if (x->exchanges->set.link_mbit > 0)
        bound = blocks * (double)x->local.largest_block * 8 / (x->exchanges->set.link_mbit * 1e6);
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

static void send_sized(struct attempt *x)
{
    struct peer_message message = {
        .kind = PEER_SIZED,
        .sized = {.exchange = x->handle, .largest_block = x->local.largest_block}};
    uint64_t *total = &message.sized.total_bytes;

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
        send_sized(x);
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
        x->owed |= OWN_PART; /* schedules must be counted or planned first */
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
    return !kind_of(x)->is_entered || attempt_is_awaited(x) || attempt_is_open_group(x);
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
        x->owed &= ~OWN_PART;
    return 0;
}

void prepare_advance(struct attempt *x)
{
    while (state_of(x)->prepares) {
        if ((x->owed & OWN_PART) != 0 && advance_own(x) != 0)
            return;
        if (x->owed != 0)
            return;
        if (x->fault.at != ROUTER_NEVER && retry_after_link_loss(x)) {
            x->owed |= OWN_PART; /* the root retries */
            return;
        }
        if (x->state == EXCHANGE_PREPARING)
            all_ready(x);
        else if (!all_opened(x))
            return;
    }
}

int sized_heard(struct attempt *x, unsigned port, const struct peer_sized *sized, struct error *e)
{
    if (tree_messages_child_part(x, port, e) != 0)
        return -1;
    if (sized->largest_block > x->local.largest_block)
        x->local.largest_block = sized->largest_block;
    if (__builtin_add_overflow(x->local.bytes_below, sized->total_bytes, &x->local.bytes_below))
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
