/* How an exchange begins: the root decides how much goes in a round, and every node checks the
 * whole specification against its torus, memory and folders before it is ready. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/text.h"
#include "daemon/exchange/choose.h"
#include "daemon/exchange/internal.h"
#include "daemon/exchange/pattern.h"
#include "daemon/exchange/stepped.h"
#include "daemon/exchange/streaming.h"
#include "daemon/schedule/peak.h"

#define HANDLE_MASK 0x0fffffffu /* four bytes on the wire */
#define MEMORY_SHARES 4u        /* how many exchanges of any size fit in at once */
#define EXCHANGES_AT_ONCE 64u
#define LONGEST_TIMEOUT (UINT64_C(366) * 24 * 3600 * SECONDS)
#define WHOLE_PAGES 4096u
#define STREAMING_WINDOW 4u
#define WINDOW_MOST 64u             /* half of what a data frame tells apart */
#define PEER_PATIENCE (5 * SECONDS) /* others wait that much longer than the root */

static struct planned *planned_at(struct exchanges *all, const struct algorithm *a)
{
    size_t index = 0;

    while (algorithm_at(index) != a)
        index++;
    return &all->planned[index];
}

static struct planned *passages_for(struct exchanges *all, const struct algorithm *a,
                                    struct error *e)
{
    struct planned *p = planned_at(all, a);

    if (!p->passages_built && passages_build(&p->passages, router_torus(all->set.router), a,
                                             router_rank(all->set.router), e) != 0)
        return NULL;
    p->passages_built = true;
    return p;
}

static struct planned *plan_for(struct exchanges *all, const struct algorithm *a, struct error *e)
{
    struct planned *p = planned_at(all, a);

    if (!p->built && plan_build(&p->plan, router_torus(all->set.router), a,
                                router_rank(all->set.router), e) != 0)
        return NULL;
    p->built = true;
    return p;
}

static struct planned *planned_for(struct exchange *x, struct error *e)
{
    const struct router *router = x->all->set.router;

    if (x->mode == MODE_STREAMING)
        return passages_for(x->all, x->algorithm, e);
    x->own.peak_known = true;
    if (x->operation == OPERATION_BARRIER) {
        x->own.plan.rank = router_rank(router);
        return &x->own; /* no messages */
    }
    if (x->operation != OPERATION_BROADCAST)
        return plan_for(x->all, x->algorithm, e);
    if (plan_build_source(&x->own.plan, router_torus(router), x->algorithm, router_rank(router),
                          x->sender, e) != 0)
        return NULL;
    x->own.peak_transit = 1;
    return &x->own;
}

/* Blocks of which some of their segments wait. */
static uint32_t whole_blocks(const struct exchange *x, uint32_t pieces)
{
    uint32_t segments = x->algorithm->segments;

    return pieces / segments + (pieces % segments != 0);
}

/* How many blocks in transit, at the most, a node holds in one round: this one, or any. */
static uint32_t transit_here(const struct exchange *x, const struct planned *planned)
{
    return x->mode == MODE_STREAMING ? whole_blocks(x, planned->passages.transit)
                                     : planned->plan.peak_transit;
}

static int transit_anywhere(const struct exchange *x, struct planned *planned, uint32_t *most,
                            struct error *e)
{
    const struct torus *t = router_torus(x->all->set.router);

    if (x->mode == MODE_STREAMING) {
        if (!planned->transit_known &&
            passages_most_transit(t, x->algorithm, &planned->passages_transit, e) != 0)
            return -1;
        planned->transit_known = true;
        *most = whole_blocks(x, planned->passages_transit);
        return 0;
    }
    if (!planned->peak_known && plan_peak_transit(t, x->algorithm, &planned->peak_transit, e) != 0)
        return -1;
    planned->peak_known = true;
    *most = planned->peak_transit;
    return 0;
}

/* Blocks of which parts may lie in a node's memory at the same time, for a round. */
static uint64_t blocks_in_memory(const struct exchange *x, uint32_t transit)
{
    uint64_t blocks = (uint64_t)transit + 1;

    if (x->operation != OPERATION_EXCHANGE)
        blocks++; /* our own */
    if (x->to[0] != '\0')
        blocks += router_torus(x->all->set.router)->nodes; /* on their way to the disk */
    return blocks;
}

/* Root only: as much of every block in one round as any node's share of memory holds, if they all
 * have as much as this one; streaming, in each of several rounds. */
static int choose_rounds(struct exchange *x, struct planned *planned, struct error *e)
{
    bool streaming = x->mode == MODE_STREAMING;
    uint64_t unit = (uint64_t)WHOLE_PAGES * x->algorithm->segments;
    uint32_t transit;

    if (transit_anywhere(x, planned, &transit, e) != 0)
        return -1;
    uint64_t most = x->all->set.memory_budget / MEMORY_SHARES / blocks_in_memory(x, transit);
    uint64_t wanted = x->block_bytes > 0 ? x->block_bytes : 1;

    x->window = 1;
    if (streaming && (x->to[0] != '\0' || wanted > most)) {
        x->window = STREAMING_WINDOW;
        most /= STREAMING_WINDOW;
    }
    if (most == 0)
        return error_set(e, ERROR_MEMORY,
                         "the memory budget of %" PRIu64 " bytes does not hold one byte of each "
                         "block on its way",
                         x->all->set.memory_budget);
    if (most > UINT32_C(1) << 30)
        most = UINT32_C(1) << 30;
    if (most > unit)
        most -= most % unit;
    if (x->to[0] == '\0' && wanted <= most)
        most = wanted;
    x->segment_bytes = most;
    return 0;
}

static void source_or_sink_moved(void *context)
{
    struct exchange *x = context;

    if (exchange_over(x) || x->engine == NULL)
        return;
    engine_wake(x->engine);
    exchange_advance(x);
}

static void source_or_sink_failed(void *context, const struct error *e)
{
    struct error here = *e;
    struct exchange *x = context;

    (void)error_wrap(&here, "node %u", router_rank(x->all->set.router));
    failure_here(x, &here);
}

static uint64_t seed_of(const char *id)
{
    uint64_t seed = UINT64_C(14695981039346656037);

    for (const char *c = id; *c != '\0'; c++)
        seed = (seed ^ (uint8_t)*c) * UINT64_C(1099511628211);
    return seed;
}

static int open_blocks(struct exchange *x, struct error *e)
{
    struct exchanges *all = x->all;
    uint32_t rank = router_rank(all->set.router);
    uint32_t nodes = router_torus(all->set.router)->nodes;
    const struct block_events events = {x, source_or_sink_moved, source_or_sink_failed};

    if (x->to[0] != '\0') {
        const struct folder_request request = {
            .id = x->id,
            .operation = x->operation,
            .sender = x->sender,
            .from = x->from,
            .to = x->to,
            .missing_ok = x->missing_ok,
            .rank = rank,
            .nodes = nodes,
            .round_bytes = x->segment_bytes,
            .segments = x->algorithm->segments,
        };
        if (all->set.storage->open_folders(all->set.storage->context, &request, &events, &x->source,
                                           &x->sink, e) != 0)
            return -1;
        for (uint32_t d = 0; d < nodes; d++) {
            uint64_t size = x->source->ops->size(x->source, d);
            if (size > x->largest_block)
                x->largest_block = size;
        }
        return 0;
    }
    x->source = pattern_source(seed_of(x->id), rank, x->block_bytes, router_pool(all->set.router));
    x->sink = pattern_sink(seed_of(x->id), rank, x->operation != OPERATION_EXCHANGE);
    if (x->source == NULL || x->sink == NULL)
        return error_set(e, ERROR_MEMORY, "no memory for an exchange");
    x->largest_block = x->block_bytes;
    return 0;
}

/* Everything that this node must have before it can say that it is ready. */
static int prepare_here(struct exchange *x, const char *algorithm, struct error *e)
{
    struct exchanges *all = x->all;
    const struct torus *t = router_torus(all->set.router);
    struct planned *planned;

    if (x->operation >= OPERATIONS)
        return error_set(e, ERROR_USAGE, "operation %u is unknown", (unsigned)x->operation);
    if (exchange_is_root(x) && strcmp(algorithm, CHOOSE_AUTO) == 0) {
        x->algorithm =
            choose_algorithm(all, x->operation, x->block_bytes, x->to[0] != '\0', &x->mode, e);
        if (x->algorithm == NULL)
            return -1;
    } else {
        x->algorithm = algorithm_find(algorithm);
    }
    if (x->algorithm == NULL) {
        char names[ALGORITHM_NAMES_SIZE];
        return error_set(
            e, ERROR_USAGE, "no algorithm \"%.40s\" for operation %s; there are: %s, %s", algorithm,
            operation_name(x->operation), CHOOSE_AUTO, algorithm_names_for(x->operation, names));
    }
    if (x->algorithm->operation != operation_of_algorithms(x->operation))
        return error_set(e, ERROR_USAGE, "%s is no algorithm for operation %s, but for %s",
                         x->algorithm->name, operation_name(x->operation),
                         operation_name(x->algorithm->operation));
    if (x->operation == OPERATION_BROADCAST && x->sender >= t->nodes)
        return error_set(e, ERROR_USAGE, "there is no node %u among %u", x->sender, t->nodes);
    if (x->algorithm->accepts(t, e) != 0)
        return -1;
    if ((x->from[0] == '\0') != (x->to[0] == '\0'))
        return error_set(e, ERROR_USAGE, "a source folder needs a target folder, and the reverse");
    if (x->repeat > EXCHANGE_REPEAT_MOST)
        return error_set(e, ERROR_USAGE, "%u exchanges back to back: at most %u are possible",
                         x->repeat, EXCHANGE_REPEAT_MOST);
    if (x->repeat > 1 && (x->to[0] != '\0' || x->operation == OPERATION_BROADCAST ||
                          x->operation == OPERATION_BARRIER))
        return error_set(e, ERROR_USAGE,
                         "only an exchange or allgather of a generated pattern can be repeated");
    if (x->mode == MODE_OF_ALGORITHM)
        x->mode = x->algorithm->streaming && x->operation == OPERATION_EXCHANGE ? MODE_STREAMING
                                                                                : MODE_STEPPED;
    if (x->mode == MODE_STREAMING &&
        (x->operation != OPERATION_EXCHANGE || x->algorithm->port_model != PORT_MODEL_ALL))
        return error_set(e, ERROR_USAGE,
                         "mode streaming is for exchanges by all-port algorithms; %s is %s, for "
                         "operation %s: use --mode stepped",
                         x->algorithm->name, port_model_name(x->algorithm->port_model),
                         operation_name(x->operation));
    planned = planned_for(x, e);
    if (planned == NULL)
        return -1;
    if (exchange_is_root(x) && choose_rounds(x, planned, e) != 0)
        return -1;
    if (x->segment_bytes == 0 || x->segment_bytes > UINT32_C(1) << 30)
        return error_set(e, ERROR_PROTOCOL, "a round of %" PRIu64 " bytes a block",
                         x->segment_bytes);
    if (x->window == 0 || x->window > (x->mode == MODE_STREAMING ? WINDOW_MOST : 1))
        return error_set(e, ERROR_PROTOCOL, "%u rounds at the same time", x->window);
    uint64_t need = x->segment_bytes * x->window * blocks_in_memory(x, transit_here(x, planned));
    if (need > all->set.memory_budget - all->reserved)
        return error_set(e, ERROR_MEMORY,
                         "the exchange needs %" PRIu64 " bytes of memory here, %" PRIu64
                         " of %" PRIu64 " are free",
                         need, all->set.memory_budget - all->reserved, all->set.memory_budget);
    x->reserved = need;
    all->reserved += need;
    if (open_blocks(x, e) != 0)
        return -1;
    const struct engine_setup setup = {
        .router = all->set.router,
        .handle = x->handle,
        .source = x->source,
        .sink = x->sink,
        .one_port = x->algorithm->port_model == PORT_MODEL_ONE,
        .gather = x->operation != OPERATION_EXCHANGE,
        .idle = !exchange_sends(x, router_rank(all->set.router)),
        .segments = x->algorithm->segments,
        .uniform = x->to[0] == '\0' &&
                   (x->mode == MODE_STREAMING || (x->block_bytes % x->algorithm->segments == 0 &&
                                                  x->segment_bytes % x->algorithm->segments == 0)),
        .block_bytes = x->block_bytes,
        .round_bytes = (uint32_t)x->segment_bytes,
        .window = x->window,
    };
    x->engine = x->mode == MODE_STREAMING ? streaming_new(&setup, &planned->passages, e)
                                          : stepped_new(&setup, &planned->plan, e);
    return x->engine != NULL ? 0 : -1;
}

static void refuse(struct exchange *x, struct error *e)
{
    if (!exchange_is_root(x))
        (void)error_wrap(e, "node %u refuses", router_rank(x->all->set.router));
    failure_here(x, e);
}

static void send_prepare(struct exchange *x)
{
    Peer__Prepare prepare = PEER__PREPARE__INIT;
    Peer__Head head = PEER__HEAD__INIT;
    char dims[TORUS_TEXT_SIZE];

    prepare.handle = x->handle;
    prepare.id = x->id;
    prepare.root = x->root;
    prepare.dims = torus_format(router_torus(x->all->set.router), dims);
    prepare.algorithm = (char *)(uintptr_t)x->algorithm->name;
    prepare.mode = (char *)(uintptr_t)mode_name(x->mode);
    prepare.window = x->window;
    prepare.repeat = x->repeat;
    prepare.block_bytes = x->block_bytes;
    prepare.from = x->from;
    prepare.to = x->to;
    prepare.missing_ok = x->missing_ok;
    prepare.segment_bytes = x->segment_bytes;
    prepare.timeout_ms = x->timeout_ns / MILLISECONDS;
    prepare.operation = x->operation;
    prepare.sender = x->sender;
    prepare.barrier = x->barrier;
    head.kind_case = PEER__HEAD__KIND_PREPARE;
    head.prepare = &prepare;
    wave_to_children(x, &head);
}

int prepare_heard(struct exchanges *all, unsigned port, const Peer__Prepare *prepare,
                  struct error *e)
{
    const struct torus *t = router_torus(all->set.router);
    uint32_t rank = router_rank(all->set.router);
    char dims[TORUS_TEXT_SIZE], id[EXCHANGE_ID_SIZE];
    struct error why;
    struct exchange *x = exchange_find(all, prepare->handle);
    struct tree_node tree;

    text_printable(id, sizeof id, prepare->id);
    if (prepare->root >= t->nodes || strcmp(prepare->dims, torus_format(t, dims)) != 0)
        return error_set(e, ERROR_PROTOCOL, "prepare of exchange %s for root %u of another torus",
                         id, prepare->root);
    tree_node(t, prepare->root, rank, &tree);
    if (tree.parent != (int)port)
        return error_set(e, ERROR_PROTOCOL, "prepare of exchange %s from the wrong side", id);
    if (x != NULL && strcmp(x->id, id) == 0)
        return x->algorithm == NULL
                   ? 0 /* its failure was faster */
                   : error_set(e, ERROR_PROTOCOL, "exchange %s prepared twice", id);
    if (x != NULL && (!exchange_over(x) || (x->has_client && !x->client_told)))
        return error_set(e, ERROR_PROTOCOL, "exchange %s has the handle of exchange %s", id, x->id);
    if (x != NULL)
        exchange_forget(x); /* the handle comes round again */
    if (strlen(prepare->from) >= EXCHANGE_PATH_SIZE || strlen(prepare->to) >= EXCHANGE_PATH_SIZE ||
        strlen(prepare->barrier) >= BARRIER_NAME_SIZE ||
        prepare->timeout_ms > LONGEST_TIMEOUT / MILLISECONDS)
        return error_set(e, ERROR_PROTOCOL, "prepare of exchange %s that no root sends", id);
    x = prepare->operation == OPERATION_BARRIER ? barrier_prepared(all, prepare, id) : NULL;
    if (x == NULL)
        x = exchange_add(all, prepare->handle, id, prepare->root);
    if (x == NULL)
        return error_set(e, ERROR_MEMORY, "no memory for an exchange");
    x->tree = tree;
    x->operation = prepare->operation;
    x->sender = prepare->sender;
    text_printable(x->barrier, sizeof x->barrier, prepare->barrier);
    x->block_bytes = prepare->block_bytes;
    (void)snprintf(x->from, sizeof x->from, "%s", prepare->from);
    (void)snprintf(x->to, sizeof x->to, "%s", prepare->to);
    x->missing_ok = prepare->missing_ok;
    x->segment_bytes = prepare->segment_bytes;
    x->window = prepare->window;
    x->repeat = prepare->repeat > 0 ? prepare->repeat : 1;
    uint64_t timeout_ns = prepare->timeout_ms * MILLISECONDS;
    uint64_t deadline = router_now(all->set.router) + timeout_ns + PEER_PATIENCE;
    if (deadline < x->deadline) { /* who has entered a barrier here may want to wait less long */
        x->timeout_ns = timeout_ns;
        x->deadline = deadline;
    }
    wave_begin(x);
    x->algorithm = algorithm_find(prepare->algorithm);
    bool known_mode = mode_parse(prepare->mode, &x->mode) == 0 && x->mode != MODE_OF_ALGORITHM;
    /* Straight on to the children: the whole torus checks at the same time. */
    if (x->algorithm != NULL && known_mode)
        send_prepare(x);
    if (HASH_COUNT(all->active) > EXCHANGES_AT_ONCE) {
        (void)error_set(&why, ERROR_REFUSED, "%u exchanges are under way already",
                        EXCHANGES_AT_ONCE);
        refuse(x, &why);
    } else if (failure_own_link_down(x, &why)) {
        refuse(x, &why);
    } else if (!known_mode) {
        (void)error_set(&why, ERROR_REFUSED, "mode \"%.20s\" is unknown", prepare->mode);
        refuse(x, &why);
    } else if (prepare_here(x, prepare->algorithm, &why) != 0) {
        refuse(x, &why);
    } else {
        if (x->operation != OPERATION_BARRIER || x->has_client)
            x->waiting &= ~OWN_PART;
        exchange_advance(x);
    }
    return 0;
}

/* --- at the root --- */

static uint64_t default_timeout(const struct exchange *x)
{
    double bound = 0;

    if (x->operation == OPERATION_BARRIER)
        return LONGEST_TIMEOUT;
    if (x->all->set.link_mbit > 0)
        bound = torus_bound_all_port(router_torus(x->all->set.router)) * (double)x->largest_block *
                8 / (x->all->set.link_mbit * 1e6);
    else
        bound = 300;
    bound *= x->repeat;
    if (20 * bound >= (double)(LONGEST_TIMEOUT / SECONDS))
        return LONGEST_TIMEOUT; /* more does not fit into an integer, perhaps */
    return 60 * SECONDS + (uint64_t)(20 * bound * 1e9);
}

static int check_spec(struct exchanges *all, const struct exchange_spec *spec, struct error *e)
{
    const struct topology *topology = router_topology(all->set.router);
    char text[200];

    if (strlen(spec->from) >= EXCHANGE_PATH_SIZE || strlen(spec->to) >= EXCHANGE_PATH_SIZE)
        return error_set(e, ERROR_USAGE, "a path of more than %d bytes", EXCHANGE_PATH_SIZE - 1);
    if (spec->block_bytes > UINT64_C(1) << 46)
        return error_set(e, ERROR_USAGE, "blocks of more than 64 TiB");
    if (spec->barrier != NULL && strlen(spec->barrier) >= BARRIER_NAME_SIZE)
        return error_set(e, ERROR_USAGE, "a name of more than %d bytes", BARRIER_NAME_SIZE - 1);
    if (spec->operation == OPERATION_BARRIER && (spec->block_bytes > 0 || spec->to[0] != '\0'))
        return error_set(e, ERROR_USAGE, "a barrier has no blocks");
    if (!topology_whole(topology) && topology_fault(topology, 0, text, sizeof text))
        return error_set(e, ERROR_LINK, "the torus is not whole: %s", text);
    return 0;
}

struct exchange *exchange_start(struct exchanges *all, const struct exchange_spec *spec,
                                const struct exchange_client *client, struct error *e)
{
    const struct torus *t = router_torus(all->set.router);
    uint32_t rank = router_rank(all->set.router);
    uint32_t counter, handle;
    char id[EXCHANGE_ID_SIZE];
    struct exchange *x;

    if (check_spec(all, spec, e) != 0)
        return NULL;
    if (spec->operation == OPERATION_BARRIER) {
        char name[BARRIER_NAME_SIZE];
        text_printable(name, sizeof name, spec->barrier != NULL ? spec->barrier : "");
        x = barrier_preparing(all, name);
        if (x != NULL)
            return barrier_enter(x, spec->timeout_ns, client, e) == 0 ? x : NULL;
    }
    if (HASH_COUNT(all->active) >= EXCHANGES_AT_ONCE) {
        (void)error_set(e, ERROR_REFUSED, "%u exchanges are under way already",
                        HASH_COUNT(all->active));
        return NULL;
    }
    do {
        counter = ++all->counter;
        handle = (uint32_t)((uint64_t)counter * t->nodes + rank) & HANDLE_MASK;
    } while (exchange_find(all, handle) != NULL);
    (void)snprintf(id, sizeof id, "%u-%08" PRIx32 "-%u", rank,
                   (uint32_t)router_boot(all->set.router), counter);
    x = exchange_add(all, handle, id, rank);
    if (x == NULL) {
        (void)error_set(e, ERROR_MEMORY, "no memory for an exchange");
        return NULL;
    }
    tree_node(t, rank, rank, &x->tree);
    x->operation = spec->operation;
    x->mode = spec->mode;
    x->sender = spec->sender;
    text_printable(x->barrier, sizeof x->barrier, spec->barrier != NULL ? spec->barrier : "");
    x->block_bytes = spec->block_bytes;
    (void)snprintf(x->from, sizeof x->from, "%s", spec->from);
    (void)snprintf(x->to, sizeof x->to, "%s", spec->to);
    x->missing_ok = spec->missing_ok;
    x->repeat = spec->repeat > 0 ? spec->repeat : 1;
    wave_begin(x);
    x->entered = x->operation == OPERATION_BARRIER && rank != BARRIER_ROOT;
    if (x->entered)
        x->waiting = OWN_PART;
    if (prepare_here(x, spec->algorithm, e) != 0) {
        exchange_release(x, false);
        exchange_forget(x);
        return NULL;
    }
    x->timeout_ns = spec->timeout_ns > 0 ? spec->timeout_ns : default_timeout(x);
    if (x->timeout_ns > LONGEST_TIMEOUT)
        x->timeout_ns = LONGEST_TIMEOUT;
    x->deadline = x->began + x->timeout_ns;
    x->has_client = true;
    x->client = *client;
    log_info("exchange %s: %s, %s, %s", x->id, operation_name(x->operation), x->algorithm->name,
             x->to[0] != '\0' ? "folders" : "generated blocks");
    if (x->entered) {
        exchange_release(x, false); /* until it is prepared */
        return x;
    }
    send_prepare(x);
    x->waiting &= ~OWN_PART;
    exchange_advance(x);
    return x;
}
