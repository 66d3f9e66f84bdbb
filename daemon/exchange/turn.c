/* When an exchange that was asked for at this node begins: in the order of asking, a few at a time,
 * when there is memory for it. If another node finds that it has none, the exchange is taken back
 * everywhere and begins anew later, under a new id, as long as its timeout allows. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/exchange/choose.h"
#include "daemon/exchange/internal.h"

#define OWN_AT_ONCE 4u  /* of this node's, without barriers */
#define ALL_AT_ONCE 64u /* of all nodes' */
#define WAITING_MOST 1024u
#define HANDLE_MASK 0x0fffffffu /* four bytes on the wire */

static unsigned count(const struct exchanges *all, bool own, bool waiting)
{
    uint32_t rank = router_rank(all->set.router);
    unsigned n = 0;

    for (const struct exchange *x = all->active; x != NULL; x = x->next)
        n += x->spec.operation != OPERATION_BARRIER && (!own || x->root == rank) &&
             (x->state == EXCHANGE_WAITING) == waiting;
    return n;
}

/* A new name, so that nothing of a former attempt is taken for this one's. */
static void new_name(struct exchanges *all, char id[EXCHANGE_ID_SIZE], uint32_t *handle)
{
    uint32_t nodes = router_torus(all->set.router)->nodes, rank = router_rank(all->set.router);
    uint32_t counter;

    do {
        counter = ++all->counter;
        *handle = (uint32_t)((uint64_t)counter * nodes + rank) & HANDLE_MASK;
    } while (exchange_find(all, *handle) != NULL);
    (void)snprintf(id, EXCHANGE_ID_SIZE, "%u-%08" PRIx32 "-%u", rank,
                   (uint32_t)router_boot(all->set.router), counter);
}

/* Its turn has come, if everything is at hand. Returns 1: it has begun or failed; 0: it cannot yet,
 * those behind it may; -1: it needs memory, and nobody may overtake it. */
static int try_begin(struct exchange *x)
{
    struct error e;
    int result = spec_chooses_late(&x->spec) ? 1 : choose_for(x, &e), opened = 0;

    if (result > 0)
        result = opened = opening_blocks(x, &e);
    if (result == 0 && x->own.source == NULL)
        return 0; /* schedules are being counted, or planned */
    if (result >= 0 && !x->own.source->sized) {
        if (opened == 0)
            return 0;
        result = opening_choose_rounds(x, &e);
        if (result == 0 && opening_engine(x, &e) < 0)
            result = -1;
    }
    if (result < 0 && e.code == ERROR_BUSY) {
        bool memory = x->own.round_bytes > 0; /* else a folder */
        x->failure = e;
        x->own.round_bytes = 0;
        opening_close(x, false);
        if (!memory) {
            retry_pause(x);
            return 0;
        }
        return -1; /* until some is given back */
    }
    if (result < 0) {
        exchange_fail(x, &e);
        return 1;
    }
    if (x->spec.timeout_ns == 0) {
        x->timeout_ns = prepare_default_timeout(x);
        x->deadline = router_now(router_of(x)) + x->timeout_ns;
    }
    x->failure.code = ERROR_NONE;
    exchange_enter(x, x->own.source->sized ? EXCHANGE_OPENING : EXCHANGE_PREPARING);
    prepare_begin(x);
    exchange_advance(x);
    return 1;
}

static struct exchange *first_after(const struct exchanges *all, uint64_t number)
{
    struct exchange *first = NULL;

    for (struct exchange *x = all->active; x != NULL; x = x->next)
        if (x->state == EXCHANGE_WAITING && x->turn.number > number && x->own.closing == 0 &&
            x->turn.retry_at == 0 && (first == NULL || x->turn.number < first->turn.number))
            first = x;
    return first;
}

void turns_advance(struct exchanges *all)
{
    uint64_t now = router_now(all->set.router), number = 0;
    struct exchange *x;
    bool blocked = false;
    struct error e;

    all->turns_due = false;
    for (x = all->active; x != NULL; x = x->next)
        if (now >= x->turn.retry_at)
            x->turn.retry_at = 0;
    while ((x = first_after(all, number)) != NULL) {
        bool barrier = x->spec.operation == OPERATION_BARRIER;
        number = x->turn.number;
        if (!barrier && (blocked || count(all, true, false) >= OWN_AT_ONCE ||
                         count(all, false, false) >= ALL_AT_ONCE)) {
            blocked = true;
            continue;
        }
        if (x->turn.pause > 0) {
            char id[EXCHANGE_ID_SIZE];
            uint32_t handle;
            new_name(all, id, &handle);
            if (exchange_rename(x, handle, id, x->root) != 0) {
                (void)error_set(&e, ERROR_MEMORY, "out of memory for an exchange");
                exchange_fail(x, &e);
                continue;
            }
        }
        if (try_begin(x) < 0)
            blocked = true;
    }
}

static int check_start(struct exchanges *all, const struct spec *spec, struct error *e)
{
    const struct torus *t = router_torus(all->set.router);
    const struct topology *topology = router_topology(all->set.router);
    const struct algorithm *algorithm;
    enum mode mode = spec->mode;
    char text[200];

    if (spec_check(spec, t, e) != 0)
        return -1;
    algorithm = choose_named(spec);
    if (algorithm != NULL && spec_check_algorithm(spec, t, algorithm, &mode, e) != 0)
        return -1;
    if (!topology_whole(topology) && topology_fault(topology, 0, text, sizeof text))
        return error_set(e, ERROR_LINK, "the torus is not whole: %s", text);
    if (count(all, true, true) >= WAITING_MOST)
        return error_set(e, ERROR_REFUSED, "%u exchanges wait for their turn at this node already",
                         WAITING_MOST);
    return 0;
}

/* The schedule that is named, if any, which the client has to have given to this node before. */
static int join_schedule(struct exchanges *all, const struct spec *spec, struct schedule **s,
                         struct error *e)
{
    *s = NULL;
    if (!spec_has_schedule(spec))
        return 0;
    *s = schedules_join(all->schedules, spec->schedule, e);
    if (*s == NULL)
        return -1;
    if (schedule_is_complete(*s))
        return 0;
    schedules_leave(all->schedules, *s);
    return error_set(e, ERROR_USAGE, "schedule %.8s has not been given to this node",
                     spec->schedule);
}

static struct exchange *add(struct exchanges *all, struct spec *spec, struct schedule *schedule,
                            const struct exchange_client *client)
{
    uint32_t rank = router_rank(all->set.router), handle;
    char id[EXCHANGE_ID_SIZE];
    struct exchange *x;

    new_name(all, id, &handle);
    x = exchange_add(all, handle, id, rank);
    if (x == NULL)
        return NULL;
    tree_node(router_torus(all->set.router), rank, rank, &x->tree);
    x->spec = *spec;
    x->schedule = schedule;
    x->state = spec->operation == OPERATION_BARRIER && rank != BARRIER_ROOT ? EXCHANGE_ENTERED
                                                                            : EXCHANGE_WAITING;
    x->turn.number = ++all->turns;
    x->timeout_ns = spec->timeout_ns > 0 ? spec->timeout_ns : LONGEST_WAIT;
    if (spec->operation == OPERATION_BARRIER && spec->timeout_ns == 0)
        x->timeout_ns = SPEC_LONGEST_TIMEOUT;
    x->deadline = x->began + x->timeout_ns;
    x->client_state = CLIENT_WAITING;
    x->client = *client;
    return x;
}

struct exchange *exchange_start(struct exchanges *all, const struct spec *wanted,
                                const struct exchange_client *client, struct error *e)
{
    struct schedule *schedule;
    struct exchange *x;
    struct spec spec;

    if (spec_copy(&spec, wanted, e) != 0)
        return NULL;
    if (check_start(all, &spec, e) != 0 || join_schedule(all, &spec, &schedule, e) != 0) {
        spec_free(&spec);
        return NULL;
    }
    if (spec.operation == OPERATION_BARRIER) {
        x = barrier_preparing(all, spec.barrier);
        if (x != NULL) {
            spec_free(&spec);
            if (barrier_enter(x, wanted->timeout_ns, client, e) != 0)
                return NULL;
            exchange_advance(x);
            return x;
        }
    }
    x = add(all, &spec, schedule, client);
    if (x == NULL) {
        if (schedule != NULL)
            schedules_leave(all->schedules, schedule);
        spec_free(&spec);
        (void)error_set(e, ERROR_MEMORY, "out of memory for an exchange");
        return NULL;
    }
    log_info("exchange %s: %s, %s%s, %s", x->id, operation_name(spec.operation),
             spec_has_schedule(&spec) ? "schedule " : spec.algorithm, spec.schedule,
             spec_has_folders(&spec) ? "folders" : "generated blocks");
    all->turns_due = true;
    turns_advance(all);
    return x;
}
