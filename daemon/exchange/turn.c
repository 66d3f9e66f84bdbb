/* When an exchange that was asked for at this node begins: in the order of asking, a few at a time,
 * when there is memory for it. If another node finds that it has none, or if a link goes down, the
 * exchange is taken back everywhere and begins anew later, under a new id (retry.c). */
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/exchange/choose.h"
#include "daemon/exchange/internal.h"

/* Of this node's, without barriers: four of one user (base/shares.h), and at least four users have one. Other
 * nodes have places for twice as many of one root (prepare.c). */
#define OWN_AT_ONCE 8u
#define ALL_AT_ONCE 64u  /* of all nodes' */
#define ASKED_MOST 1024u /* waiting or under way, asked for here */
#define USERS_HELD 16u   /* that wait for memory, in one look at all */
#define DECISIONS_MOST 256u

void turns_set_capacities(struct shares *shares)
{
    shares_set_capacity(shares, SHARE_TURNS, OWN_AT_ONCE);
    shares_set_capacity(shares, SHARE_EXCHANGES, ASKED_MOST);
}

static void give_place(struct exchange *x)
{
    if (x->turn.placed)
        shares_give(x->all->set.shares, SHARE_TURNS, x->user, 1);
    x->turn.placed = false;
}

void turn_leave(struct exchange *x)
{
    x->all->turns_due |= x->turn.placed;
    give_place(x);
    if (x->turn.asked && exchange_has_ended(x->state))
        shares_give(x->all->set.shares, SHARE_EXCHANGES, x->user, 1);
    x->turn.asked = x->turn.asked && !exchange_has_ended(x->state);
}

static int refuse_faulty(const struct exchanges *all, struct error *e)
{
    const struct topology *topology = router_topology(all->set.router);
    bool links = topology_first_down(topology) == TORUS_NO_NODE;
    char text[200] = "";

    (void)topology_fault(topology, 0, text, sizeof text);
    return error_set(
        e, ERROR_LINK, "the torus is not whole: %s%s", text,
        links ? "; only barriers, groups, and exchanges with algorithm auto, go around that" : "");
}

/* It goes around the links that are down now. Returns 0, or -1 with *e. */
static int find_way(struct exchange *x, struct error *e)
{
    const struct left_out out = around_left_out(x);
    struct damage damage;

    if (around_view(x->all, out, &damage, e) != 0)
        return -1;
    if (damage_is_none(&damage) || (around_check(x->all, out, &damage, e) == 0 && x->goes_around))
        return around_set(x, &damage, e);
    if (!x->goes_around)
        (void)refuse_faulty(x->all, e);
    damage_free(&damage);
    return -1;
}

/* Of a node that cannot be reached it may not have been heard yet that one of its links is up again: for a moment it
 * is not left out. */
static bool awaits_news(struct exchange *x)
{
    uint64_t settled = x->all->changed_at + SETTLE_TIME;

    if (!x->spec.shrink || standing_is_one(x) || around_nodes(x) == torus_of(x)->nodes ||
        router_now(router_of(x)) >= settled)
        return false;
    x->turn.retry_at = settled;
    return true;
}

/* Nothing of a former attempt shall be taken for this one's. Until it begins, all know it by that one's name.
 * Returns 0, or -1 with *e. */
static int rename_anew(struct exchange *x, struct error *e)
{
    char id[EXCHANGE_ID_SIZE];
    uint32_t handle;

    if (!x->turn.anew)
        return 0;
    exchange_new_name(x->all, id, &handle);
    if (exchange_rename(x, handle, id, x->root) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    x->turn.anew = false;
    return 0;
}

/* Its turn has come, if everything is at hand. Returns 1: it has begun or failed; 0: it cannot yet,
 * those behind it may; -1: it needs memory, and nobody may overtake it. */
static int try_begin(struct exchange *x)
{
    struct error e;
    int result, opened = 0;

    barrier_lead(x); /* not only the topology tells who is the first that is left */
    if (x->state != EXCHANGE_WAITING)
        return 0;
    result = find_way(x, &e);

    if (result < 0 && e.code == ERROR_LINK && waiting_or_around(x)) {
        failure_topology(x); /* for how long it waits for the links */
        return exchange_has_ended(x->state) ? 1 : 0;
    }
    if (result == 0 && awaits_news(x))
        return 0;
    if (result == 0)
        result = spec_chooses_late(&x->spec) && x->around == NULL ? 1 : choose_for(x, &e);
    if (result > 0 && rename_anew(x, &e) != 0)
        result = -1;
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
    if (result < 0 && e.code == ERROR_LINK && standing_is_one(x) &&
        router_now(router_of(x)) < x->turn.since + absent_naming_time(x->all)) {
        x->own.round_bytes =
            0; /* perhaps a node goes down, of which not all links have been heard of yet */
        opening_close(x, false);
        retry_pause(x);
        return 0;
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

/* It waits for links that are down, or for the verdict on them (failure.c). */
static bool awaits_links(const struct exchange *x)
{
    return x->fault.at != ROUTER_NEVER && waiting_or_around(x);
}

static bool may_begin(const struct exchange *x)
{
    return x->state == EXCHANGE_WAITING && x->own.closing == 0 && x->turn.retry_at == 0 &&
           !awaits_links(x);
}

/* It has begun, or waits for a schedule. */
static bool keeps_place(const struct exchange *x)
{
    return !exchange_has_ended(x->state) && (x->state != EXCHANGE_WAITING || may_begin(x));
}

/* The first that may begin, from this one on; they are in the order of asking. */
static struct exchange *next_turn(struct exchange *x)
{
    while (x != NULL && !may_begin(x))
        x = x->next;
    return x;
}

/* How many more there may be, whoever asks: one of its own, whatever other nodes have under way. */
static unsigned places_left(const struct exchanges *all)
{
    unsigned of_all = 0;

    for (const struct exchange *x = all->active; x != NULL; x = x->next)
        of_all += !spec_is_entered(&x->spec) && x->state != EXCHANGE_WAITING;
    if (of_all < ALL_AT_ONCE)
        return ALL_AT_ONCE - of_all;
    return shares_total(all->set.shares, SHARE_TURNS) == 0;
}

/* Users whose first exchange that waits needs memory: their others do not overtake it, those of others may. */
struct held {
    uint32_t user[USERS_HELD];
    unsigned count;
};

static bool is_held(const struct held *held, uint32_t user)
{
    for (unsigned i = 0; i < held->count; i++)
        if (held->user[i] == user)
            return true;
    return held->count == USERS_HELD;
}

/* Returns whether it has a place now. */
static bool take_place(struct exchange *x, const struct held *held)
{
    struct error e;

    if (is_held(held, x->user))
        return false;
    x->turn.placed =
        x->turn.placed || shares_take(x->all->set.shares, SHARE_TURNS, x->user, 1, &e) == 0;
    return x->turn.placed;
}

/* Once through the list, as a thousand may wait; from its beginning again when one of them ends here, which
 * may end others. Those that wait for schedules have places, too: not all are asked each time. */
void turns_advance(struct exchanges *all)
{
    uint64_t now = router_now(all->set.router);
    unsigned places = places_left(all);
    struct held held = {.count = 0};
    struct exchange *x;

    all->turns_due = false;
    for (x = all->active; x != NULL; x = x->next)
        if (now >= x->turn.retry_at)
            x->turn.retry_at = 0;
    x = next_turn(all->active);
    while (x != NULL) {
        bool barrier = spec_is_entered(&x->spec);
        if (barrier || (places > 0 && take_place(x, &held))) {
            int begun = try_begin(x);
            if (!barrier && begun < 0)
                held.user[held.count++] = x->user;
            if (!barrier && (begun < 0 || !keeps_place(x)))
                give_place(x);
            places -= x->turn.placed;
        }
        x = next_turn(exchange_has_ended(x->state) ? all->active : x->next);
    }
    for (x = all->active; x != NULL; x = x->next)
        if (x->state == EXCHANGE_WAITING)
            give_place(x);
}

/* Why what is asked for cannot be done while links are down. */
static int check_links(const struct exchanges *all, const struct spec *spec, struct error *e)
{
    if (spec->wait || topology_whole(router_topology(all->set.router)))
        return 0;
    if (!around_may(spec))
        return refuse_faulty(all, e);
    return around_check_now(all, (struct left_out){.down = spec->shrink}, e);
}

/* Each is on record until all nodes have confirmed it. */
static int check_decisions(const struct exchanges *all, const struct spec *spec, struct error *e)
{
    unsigned n = decisions_count(all);
    struct error first;

    if (!spec_has_folders(spec) || n < DECISIONS_MOST)
        return 0;
    unconfirmed_describe(all->decisions, all, &first);
    return error_set(
        e, ERROR_REFUSED,
        "%u exchanges that began here are not confirmed by all nodes yet, the last one: %s", n,
        first.text);
}

static int check_start(struct exchanges *all, const struct spec *spec, struct error *e)
{
    const struct torus *t = router_torus(all->set.router);
    const struct algorithm *algorithm;
    enum mode mode = spec->mode;

    if (spec_check(spec, t, e) != 0)
        return -1;
    if (spec->shrink && !around_may(spec))
        return error_set(e, ERROR_USAGE,
                         "only exchanges with algorithm auto can leave out nodes that are down, "
                         "not with %s",
                         spec->algorithm);
    algorithm = choose_named(spec);
    if (algorithm != NULL && spec_check_algorithm(spec, t, algorithm, &mode, e) != 0)
        return -1;
    if (check_links(all, spec, e) != 0 || check_decisions(all, spec, e) != 0)
        return -1;
    return 0;
}

/* The schedule that is named, if any, which the client has to have given to this node before. */
static int join_schedule(struct exchanges *all, const struct spec *spec, uint32_t user,
                         struct schedule **s, struct error *e)
{
    *s = NULL;
    if (!spec_has_schedule(spec))
        return 0;
    *s = schedules_join(all->schedules, spec->schedule, user, e);
    if (*s == NULL)
        return -1;
    if (schedule_is_complete(*s))
        return 0;
    schedules_leave(all->schedules, *s);
    return error_set(e, ERROR_USAGE, "schedule %.8s has not been given to this node",
                     spec->schedule);
}

static struct exchange *add(struct exchanges *all, struct spec *spec, struct schedule *schedule,
                            const struct exchange_client *client, struct error *e)
{
    uint32_t rank = router_rank(all->set.router), handle;
    char id[EXCHANGE_ID_SIZE];
    struct exchange *x;

    exchange_new_name(all, id, &handle); /* its tree is found when its turn has come */
    if (!spec_is_entered(spec) &&
        shares_take(all->set.shares, SHARE_EXCHANGES, client->user, 1, e) != 0)
        return NULL;
    x = exchange_add(all, handle, id, rank);
    if (x == NULL) {
        if (!spec_is_entered(spec))
            shares_give(all->set.shares, SHARE_EXCHANGES, client->user, 1);
        (void)error_set(e, ERROR_MEMORY, "out of memory for an exchange");
        return NULL;
    }
    tree_node(router_torus(all->set.router), rank, rank, &x->tree);
    x->spec = *spec;
    x->goes_around = around_may(spec);
    x->schedule = schedule;
    x->user = client->user;
    x->turn.asked = !spec_is_entered(spec);
    x->state = spec_is_entered(spec) && barrier_root(all, spec) != rank ? EXCHANGE_ENTERED
                                                                        : EXCHANGE_WAITING;
    x->turn.since = x->began;
    x->timeout_ns = spec->timeout_ns > 0 ? spec->timeout_ns : LONGEST_WAIT;
    if (spec_is_entered(spec) && spec->timeout_ns == 0)
        x->timeout_ns = SPEC_LONGEST_TIMEOUT;
    x->deadline = x->began + x->timeout_ns;
    x->entered = (struct entered){.deadline = x->deadline, .timeout_ns = x->timeout_ns};
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
    if (check_start(all, &spec, e) != 0 ||
        join_schedule(all, &spec, client->user, &schedule, e) != 0) {
        spec_free(&spec);
        return NULL;
    }
    if (spec_is_entered(&spec)) {
        x = barrier_preparing(all, &spec);
        if (x != NULL) {
            spec_free(&spec);
            if (barrier_enter(x, wanted, client, e) != 0)
                return NULL;
            if (!barrier_differs(x, wanted, &x->spec))
                exchange_advance(x);
            return x;
        }
    }
    x = add(all, &spec, schedule, client, e);
    if (x == NULL) {
        if (schedule != NULL)
            schedules_leave(all->schedules, schedule);
        spec_free(&spec);
        return NULL;
    }
    log_info("exchange %s: %s, %s%s, %s", x->id, operation_name(spec.operation),
             spec_has_schedule(&spec) ? "schedule " : spec.algorithm, spec.schedule,
             spec_has_folders(&spec) ? "folders" : "generated blocks");
    all->turns_due = true;
    turns_advance(all);
    return x;
}
