#include "daemon/torusd/exchange/local_resources.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/torusd/engine/generated_blocks.h"
#include "daemon/torusd/engine/stepped.h"
#include "daemon/torusd/engine/streaming.h"
#include "daemon/torusd/exchange/job.h"
#include "daemon/torusd/exchange/kept_blocks.h"
#include "daemon/torusd/exchange/link_costs.h"
#include "daemon/torusd/exchange/membership.h"
#include "daemon/torusd/exchange/plan_rates.h"
#include "proto/text.h"

#define MEMORY_SHARES 4u /* number of exchanges of any size that fit at once */
#define WHOLE_PAGES 4096u
#define STREAMING_WINDOW 4u
#define WINDOW_MOST 64u /* half of the rounds that the round number in data frames can tell apart */
#define ROUND_MOST (UINT64_C(1) << 30)
#define SHORT_ROUNDS 16u

/* --- the blocks --- */

static int open_folders(struct attempt *x, struct error *e)
{
    const struct storage *storage = x->exchanges->set.storage;
    struct block_events events = x->exchanges->block_events;
    struct folder_request request = {
        .id = x->id.text,
        .operation = x->spec.operation,
        .sender = x->spec.sender,
        .from = x->spec.from,
        .to = x->spec.to,
        .missing_ok = x->spec.missing_ok,
        .replace = x->spec.replace,
        .rank = rank_of(x),
        .nodes = torus_of(x)->nodes,
        .gone = x->avoided != NULL ? x->avoided->damage.gone : NULL,
    };

    if (resumed_blocks_begin(x, e) != 0)
        return -1;
    resumed_blocks_ask(x, &request);
    events.context = x;
    if (storage->open_folders(storage->context, &request, &events, &x->local.source, &x->local.sink,
                              e) != 0)
        return -1;
    return resumed_blocks_wrap(x, e);
}

static int open_pattern(struct attempt *x, struct error *e)
{
    uint64_t seed = exchange_id_hash(attempt_first_id(x));
    uint32_t rank = rank_of(x);

    if (resumed_blocks_begin(x, e) != 0)
        return -1;
    x->local.source = pattern_source(seed, rank, x->spec.block_bytes, router_pool(router_of(x)));
    x->local.sink = pattern_sink(seed, rank, x->spec.operation != OPERATION_EXCHANGE);
    if (x->local.source != NULL && x->local.sink != NULL)
        return resumed_blocks_wrap(x, e);
    if (x->local.source != NULL)
        (void)x->local.source->ops->close(x->local.source);
    if (x->local.sink != NULL)
        (void)x->local.sink->ops->close(x->local.sink, false);
    x->local.source = NULL;
    x->local.sink = NULL;
    return error_set(e, ERROR_MEMORY, "out of memory for generated blocks");
}

static void find_sizes(struct attempt *x)
{
    struct source *source = x->local.source;

    if (x->local.resumed != NULL && !spec_has_folders(&x->spec))
        resumed_blocks_sizes(x);
    if (x->local.resumed != NULL && (x->local.resumed->told || !spec_has_folders(&x->spec)))
        /* Wait until all nodes have told what has arrived; then the sizes of the missing parts are known. */
        return;
    x->local.bytes_here = 0;
    for (uint32_t d = 0; d < torus_of(x)->nodes; d++) {
        uint64_t size = source->ops->size(source, d);
        if (size > x->local.largest_block)
            x->local.largest_block = size;
        if (!source->irregular)
            break;
        if (d != rank_of(x) &&
            __builtin_add_overflow(x->local.bytes_here, size, &x->local.bytes_here))
            x->local.bytes_here = UINT64_MAX;
    }
}

int local_resources_open(struct attempt *x, struct error *e)
{
    struct local_part *local = &x->local;
    uint32_t sender = x->spec.operation == OPERATION_BROADCAST ? x->spec.sender : TORUS_NO_NODE;
    int result = 1;

    if (local->planned == NULL && !kind_of(x)->has_blocks) {
        local->planned = planner_get_empty(x->exchanges->planner);
        if (local->planned == NULL)
            return error_set(e, ERROR_MEMORY, "out of memory for a barrier");
    } else if (local->planned == NULL && x->algorithm != NULL) {
        result = planner_get(x->exchanges->planner, x->algorithm, x->mode, sender,
                             attempt_is_root(x), &local->planned, e);
        if (result <= 0)
            return result;
    }
    if (local->source == NULL &&
        (spec_has_folders(&x->spec) ? open_folders(x, e) : open_pattern(x, e)) != 0)
        return -1;
    if (local->sink->durable && x->doubt == NULL &&
        (x->doubt = calloc(1, sizeof *x->doubt)) == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    if (!local->source->ops->opened(local->source) || !local->sink->ops->opened(local->sink))
        return 0;
    resumed_blocks_opened(x);
    find_sizes(x);
    return 1;
}

/* --- memory --- */

/* Returns how many blocks the waiting segments belong to, at least. */
static uint32_t whole_blocks(const struct attempt *x, uint32_t pieces)
{
    uint32_t segments = x->algorithm->segments;

    return pieces / segments + (pieces % segments != 0);
}

/* Returns how many blocks may have parts in a node's memory at the same time in one round, if at most `pieces`
 * pieces are in transit there. */
static uint64_t blocks_in_memory(const struct attempt *x, uint32_t pieces)
{
    uint64_t blocks = 1u + (x->mode == MODE_STREAMING ? whole_blocks(x, pieces) : pieces);

    if (x->spec.operation != OPERATION_EXCHANGE)
        blocks++; /* this node's own block */
    if (x->local.sink->durable)
        blocks += torus_of(x)->nodes; /* blocks on their way to the disk */
    return blocks;
}

/* Returns the bytes that one exchange may take of the memory that exchanges share. Groups hold their memory
 * while they are open, on all nodes alike: an exchange that wants more than they leave would wait until they
 * end. Other users may also hold memory for long, so this user gets its share of the rest. */
static uint64_t part_of_budget(const struct attempt *x)
{
    const struct shares *shares = x->exchanges->set.shares;
    uint64_t limit = shares_limit(shares, SHARE_TRANSIT, x->user);
    uint64_t most =
        (x->exchanges->set.memory_budget - shares_total(shares, SHARE_GROUPS)) / MEMORY_SHARES;

    return most < limit ? most : limit;
}

double local_resources_busiest(const struct attempt *x)
{
    if (x->avoided != NULL && x->avoided->detour != NULL)
        return detour_busiest(x->avoided->detour) / x->algorithm->segments;
    return torus_bound_all_port(torus_of(x));
}

/* Whether an exchange that streams lasts so long that it may have to continue on a new plan. */
static bool may_be_replanned(const struct attempt *x)
{
    const double kbit = (double)x->exchanges->rates.fastest;

    return kbit > 0 && spec_uses_rates(&x->spec) && attempt_may_resume(x) &&
           x->mode == MODE_STREAMING &&
           local_resources_busiest(x) * (double)x->local.largest_block * 8e6 / kbit >=
               (double)PLAN_RATES_TIME_LEFT;
}

/* Whether rounds are short although memory holds longer ones: by them its root knows how much of an exchange is left when
 * rates of links change. Trees that share channels, because links have different rates, wait for each other in a round,
 * but not for those of other rounds. */
static bool has_short_rounds(const struct attempt *x)
{
    if (may_be_replanned(x))
        return true;
    return x->spec.operation == OPERATION_BROADCAST && x->algorithm->segments > 1 &&
           x->avoided != NULL && x->avoided->damage.rate != NULL;
}

/* Chooses the largest round that any node's share of memory holds, assuming that all nodes have as much memory
 * as this one. When streaming, several rounds must fit. */
int local_resources_choose_rounds(struct attempt *x, struct error *e)
{
    struct local_part *local = &x->local;
    uint64_t unit = (uint64_t)WHOLE_PAGES * x->algorithm->segments;
    uint64_t budget = x->exchanges->set.memory_budget;
    uint64_t blocks = blocks_in_memory(x, local->planned->most_transit);
    uint64_t most = part_of_budget(x) / blocks;
    uint64_t wanted = local->largest_block > 0 ? local->largest_block : 1;

    if (most < STREAMING_WINDOW) /* the attempt has to wait for memory */
        most = budget / MEMORY_SHARES / blocks;
    if (has_short_rounds(x) && most > wanted / SHORT_ROUNDS * STREAMING_WINDOW &&
        wanted / SHORT_ROUNDS > unit)
        most = wanted / SHORT_ROUNDS * STREAMING_WINDOW;
    local->window = 1;
    if (x->mode == MODE_STREAMING && wanted > most) {
        local->window = STREAMING_WINDOW;
        most /= STREAMING_WINDOW;
    }
    if (most == 0)
        return error_set(
            e, ERROR_MEMORY,
            "the memory budget of %" PRIu64
            " bytes does not hold one byte of each block in transit: raise memory in torusd.ini",
            budget);
    if (most > ROUND_MOST)
        most = ROUND_MOST;
    if (most > unit)
        most -= most % unit;
    local->round_bytes = wanted <= most ? wanted : most;
    return 0;
}

/* Returns the bytes that other attempts of the same root have reserved here and that do not run yet. */
static uint64_t reserved_by_root(const struct attempt *x)
{
    uint64_t bytes = 0;

    for (const struct attempt *other = x->exchanges->active; other != NULL; other = other->next)
        if (other->root == x->root && other->rounds.first_go_at == 0 &&
            !kind_of(other)->has_session)
            bytes += other->local.reserved;
    return bytes;
}

/* Checks that one share of memory stays free for others, because another node prepares this attempt and may
 * never start it. Returns 0, or -1 with *e. */
static int check_share(const struct attempt *x, uint64_t need, struct error *e)
{
    const struct exchanges *exchanges = x->exchanges;
    uint64_t budget = exchanges->set.memory_budget, most = budget - budget / MEMORY_SHARES;
    uint64_t reserved = reserved_by_root(x);

    if (attempt_is_root(x) || !kind_of(x)->has_blocks)
        return 0;
    if (need > most)
        return error_set(
            e, ERROR_MEMORY,
            "the %s needs %" PRIu64
            " bytes of memory on node %u, which gives exchanges of another node at most %" PRIu64
            " bytes of its budget of %" PRIu64,
            schedule_operation_name(x->spec.operation), need, rank_of(x), most, budget);
    if (reserved == 0 || need <= most - reserved)
        return 0;
    return error_set(
        e, ERROR_BUSY,
        "node %u is busy: the %s needs %" PRIu64
        " %s of memory there, and exchanges that node %u has prepared but not begun hold %" PRIu64
        " of %" PRIu64,
        rank_of(x), schedule_operation_name(x->spec.operation), need,
        text_plural(need, "byte", "bytes"), x->root, reserved, most);
}

static int reserve_memory(struct attempt *x, struct error *e)
{
    struct exchanges *exchanges = x->exchanges;
    const struct planned *planned = x->local.planned;
    uint32_t pieces =
        x->mode == MODE_STREAMING ? planned->passages.transit : planned->plan.peak_transit;
    uint64_t need = x->local.round_bytes * x->local.window * blocks_in_memory(x, pieces);

    if (x->local.reserved > 0) /* the group is restarted */
        return 0;
    if (kind_of(x)->memory != NULL)
        need = attempt_is_passive(x)        ? exchanges->set.sessions.passing_memory
               : spec_has_members(&x->spec) ? exchanges->set.sessions.some_memory
               : x->spec.grows              ? exchanges->set.sessions.first_memory
                                            : kind_of(x)->memory(exchanges);
    if (check_share(x, need, e) != 0)
        return -1;
    if (need > exchanges->set.memory_budget)
        return error_set(e, ERROR_MEMORY,
                         "the %s needs %" PRIu64 " bytes of memory on node %u, whose budget is "
                         "%" PRIu64,
                         schedule_operation_name(x->spec.operation), need, rank_of(x),
                         exchanges->set.memory_budget);
    if (shares_take(exchanges->set.shares, kind_of(x)->share, x->user, need, e) != 0)
        return error_wrap(e, "node %u is busy: the %s needs memory there", rank_of(x),
                          schedule_operation_name(x->spec.operation));
    x->local.reserved = need;
    return 0;
}

/* Returns the bytes that the open groups of a user have taken since they were opened. */
static uint64_t taken_later(const struct exchanges *exchanges, uint32_t user)
{
    const uint64_t first = exchanges->set.sessions.first_memory;
    uint64_t bytes = 0;

    for (const struct attempt *x = exchanges->active; x != NULL; x = x->next)
        if (x->user == user && x->spec.grows && x->local.reserved > first)
            bytes += x->local.reserved - first;
    return bytes;
}

/* session_memory.take. The groups of a user leave room for another one, as long as there is room for two. */
static bool take_memory(void *context, uint64_t bytes)
{
    struct attempt *x = context;
    struct shares *shares = x->exchanges->set.shares;
    const uint64_t taken = taken_later(x->exchanges, x->user);
    const uint64_t limit = shares_limit(shares, kind_of(x)->share, x->user) + taken;
    const uint64_t held = shares_of(shares, kind_of(x)->share, x->user);
    const uint64_t room = limit > held ? limit - held : 0;
    const uint64_t next = x->exchanges->set.sessions.first_memory;
    struct error e;

    if (taken + bytes > (room < 2 * next ? room : room - next) ||
        shares_take(shares, kind_of(x)->share, x->user, bytes, &e) != 0)
        return false;
    x->local.reserved += bytes;
    return true;
}

/* session_memory.give */
static void give_memory(void *context, uint64_t bytes)
{
    struct attempt *x = context;

    x->local.reserved -= bytes;
    shares_give(x->exchanges->set.shares, kind_of(x)->share, x->user, bytes);
    x->exchanges->start_due = true;
}

static int new_session(struct attempt *x, struct error *e)
{
    const struct sessions *sessions = &x->exchanges->set.sessions;
    struct session_setup setup = {
        .router = router_of(x),
        .handle = x->handle,
        .tree = x->tree,
        .damage = x->avoided != NULL ? &x->avoided->damage : NULL,
        .id = attempt_first_id(x)->text,
        .restarts = attempt_is_open_group(x),
        .from_begin = x->from_begin,
        .name = x->spec.barrier,
        .members = x->spec.members,
        .unchecked = x->spec.unchecked,
        .grows = x->spec.grows,
        .trace = x->trace,
        .planner = x->exchanges->planner,
        .events = x->exchanges->block_events,
        .memory = {take_memory, give_memory},
    };

    if (sessions->open == NULL)
        return error_set(e, ERROR_REFUSED, "this daemon has no groups");
    setup.events.context = x;
    x->local.engine = sessions->open(sessions->context, &setup, e);
    return x->local.engine != NULL ? 0 : -1;
}

static int new_engine(struct attempt *x, struct error *e)
{
    struct local_part *local = &x->local;
    uint32_t segments = x->algorithm->segments;
    bool even = x->spec.block_bytes % segments == 0 && local->round_bytes % segments == 0;
    const struct engine_setup setup = {
        .router = router_of(x),
        .handle = x->handle,
        .source = local->source,
        .sink = local->sink,
        .one_port = x->algorithm->port_model == PORT_MODEL_ONE,
        .gather = x->spec.operation != OPERATION_EXCHANGE,
        .idle = !exchange_sends(x, rank_of(x)),
        .segments = segments,
        .uniform = !local->source->irregular && (x->mode == MODE_STREAMING || even),
        .digests = spec_has_folders(&x->spec),
        .repairs = spec_has_folders(&x->spec),
        .block_bytes = x->spec.block_bytes,
        .round_bytes = (uint32_t)local->round_bytes,
        .relayed = exchanges_relayed_frames(x->exchanges),
        .window = local->window,
        .incoming = local->resumed != NULL ? local->resumed->incoming : NULL,
        .trace = x->trace,
    };

    if (kind_of(x)->has_session)
        return new_session(x, e);
    local->engine = x->mode == MODE_STREAMING ? streaming_new(&setup, &local->planned->passages, e)
                                              : stepped_new(&setup, &local->planned->plan, e);
    return local->engine != NULL ? 0 : -1;
}

int local_resources_make_engine(struct attempt *x, struct error *e)
{
    struct local_part *local = &x->local;
    uint32_t segments = x->algorithm->segments;

    if (local->engine != NULL)
        return local->sink->ops->opened(local->sink) ? 1 : 0;
    if (local->round_bytes == 0 || local->round_bytes > ROUND_MOST)
        return error_set(e, ERROR_PROTOCOL, "invalid round size of %" PRIu64 " %s per block",
                         local->round_bytes, text_plural(local->round_bytes, "byte", "bytes"));
    if (local->window == 0 || local->window > (x->mode == MODE_STREAMING ? WINDOW_MOST : 1))
        return error_set(e, ERROR_PROTOCOL, "invalid window of %u %s", local->window,
                         text_plural(local->window, "round", "rounds"));
    if (resumed_blocks_lay_out(x, e) != 0 || reserve_memory(x, e) != 0)
        return -1;
    if (local->source->ops->lay_out(local->source, local->round_bytes, segments, e) != 0 ||
        local->sink->ops->lay_out(local->sink, local->round_bytes, segments, e) != 0 ||
        new_engine(x, e) != 0) {
        local_resources_release_engine(x);
        return -1;
    }
    for (unsigned port = 0; port < torus_ports(torus_of(x)); port++)
        if ((x->fault.lost & 1u << port) != 0)
            engine_lose_port(local->engine, port);
    return local->sink->ops->opened(local->sink) ? 1 : 0;
}

void local_resources_count(const struct attempt *x)
{
    if (x->local.engine != NULL && !kind_of(x)->has_session)
        x->exchanges->totals.delivered_bytes += x->local.engine->counts.bytes_delivered;
}

void local_resources_release_engine(struct attempt *x)
{
    struct local_part *local = &x->local;

    if (local->engine != NULL) {
        local_resources_count(x);
        local->delivered_bytes = local->engine->counts.bytes_delivered;
        if (local->resumed != NULL)
            local->delivered_bytes += local->resumed->bytes;
        kept_blocks_note(x);
    }
    engine_free(local->engine);
    local->engine = NULL;
    if (x->job != NULL && attempt_is_open_group(x) &&
        (x->state == EXCHANGE_WITHDRAWN || !state_of(x)->ended))
        return; /* the session keeps its memory */
    if (local->reserved > 0)
        x->exchanges->start_due = true;
    shares_give(x->exchanges->set.shares, kind_of(x)->share, x->user, local->reserved);
    local->reserved = 0;
}

static void free_repairs(struct attempt *x)
{
    struct pending_repairs *m = x->local.repairs;

    if (m == NULL)
        return;
    piece_states_free(&m->states);
    free(m->query);
    free(m);
    x->local.repairs = NULL;
}

void local_resources_close(struct attempt *x, bool keep)
{
    struct local_part *local = &x->local;

    kept_blocks_keep(x);
    free_repairs(x);
    if (local->source != NULL && !local->source->ops->close(local->source))
        local->closing++;
    if (local->sink != NULL && !local->sink->ops->close(local->sink, keep))
        local->closing++;
    local->source = NULL;
    local->sink = NULL;
    if (local->planned != NULL)
        planner_put(x->exchanges->planner, local->planned);
    local->planned = NULL;
}
