/* How an exchange begins on all nodes: the root says what is wanted, every node checks it against
 * its torus, memory and folders, and is ready or objects. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/exchange/internal.h"
#include "daemon/schedule/algorithms/families.h"
#include "daemon/schedule/algorithms/registry.h"
#include "proto/text.h"

/* Prepared here, without barriers: by one root, which has four under way itself (turn.c), and others that end;
 * and by all. A root that has none may always have one, so that none keeps the others out. */
#define PREPARED_OF_A_ROOT 16u
#define PREPARED_AT_ONCE 256u
#define DOUBTS_ABOUT_A_ROOT 64u     /* each keeps an output */
#define BARRIERS_AT_ONCE 4096u      /* they hold next to nothing */
#define PEER_PATIENCE (5 * SECONDS) /* others wait that much longer than the root */

uint64_t prepare_default_timeout(const struct attempt *x)
{
    double bound = 300, blocks = torus_bound_all_port(torus_of(x));

    if (kind_of(x)->is_entered)
        return SPEC_LONGEST_TIMEOUT;
    if (x->around != NULL && x->around->detour != NULL)
        blocks = (double)detour_busiest(x->around->detour) / x->algorithm->segments;
    if (x->all->set.link_mbit > 0)
        bound = blocks * (double)x->own.largest_block * 8 / (x->all->set.link_mbit * 1e6);
    bound *= x->spec.repeat;
    if (20 * bound >= (double)(SPEC_LONGEST_TIMEOUT / SECONDS))
        return SPEC_LONGEST_TIMEOUT; /* more does not fit into an integer, perhaps */
    return 60 * SECONDS + (uint64_t)(20 * bound * 1e9);
}

/* --- this node's part, and the wave --- */

static void send_prepare(struct attempt *x)
{
    struct peer_message message = {.kind = PEER_PREPARE};
    struct peer_prepare *prepare = &message.prepare;
    struct error e;
    Torus__Spec spec;
    char dims[TORUS_TEXT_SIZE];

    if (around_pack(x, prepare) != 0) {
        (void)error_set(&e, ERROR_MEMORY, "out of memory for an exchange");
        attempt_fail(x, &e);
        return;
    }
    spec_pack(&x->spec, &spec);
    if (x->algorithm != NULL) {
        if (!around_has_routes(x)) /* whose algorithm has no name that others know */
            spec.algorithm = (char *)(uintptr_t)x->algorithm->name;
        if (spec_has_schedule(&x->spec))
            spec.algorithm = (char *)(uintptr_t) ""; /* the schedule has its own */
        spec.mode = (char *)(uintptr_t)mode_name(x->mode);
    }
    if (attempt_is_root(x)) /* what its turn has left of it */
        spec.timeout_ms = (x->deadline - router_now(router_of(x))) / MILLISECONDS;
    prepare->exchange = x->handle;
    prepare->id = x->id;
    prepare->root = x->root;
    prepare->dims = torus_format(torus_of(x), dims);
    prepare->spec = &spec;
    prepare->round_bytes = x->own.round_bytes;
    prepare->window = x->own.window;
    prepare->around = x->goes_around;
    prepare->resumes = x->resumes;
    prepare->user = x->user;
    wave_to_children(x, &message);
    around_pack_free(prepare);
}

void prepare_begin(struct attempt *x)
{
    wave_begin(x);
    send_prepare(x);
}

static void send_sized(struct attempt *x)
{
    struct peer_message message = {
        .kind = PEER_SIZED,
        .sized = {.exchange = x->handle, .largest_block = x->own.largest_block}};
    uint64_t *total = &message.sized.total_bytes;

    if (__builtin_add_overflow(x->own.bytes_here, x->own.bytes_below, total))
        *total = UINT64_MAX;
    wave_to_parent(x, &message);
}

static void send_layout(struct attempt *x)
{
    const struct peer_message message = {.kind = PEER_LAYOUT,
                                         .layout = {.exchange = x->handle,
                                                    .round_bytes = x->own.round_bytes,
                                                    .window = x->own.window,
                                                    .timeout_ms = x->timeout_ns / MILLISECONDS,
                                                    .algorithm = x->algorithm->name,
                                                    .mode = mode_name(x->mode)}};

    wave_to_children(x, &message);
}

static void send_ready(struct attempt *x)
{
    const struct peer_message message = {.kind = PEER_READY, .ready = {x->handle}};

    if (x->job != NULL)
        x->job->ready = true;
    wave_to_parent(x, &message);
}

/* What no root says: whoever has told it is named, too. */
static void refuse(const struct exchanges *all, unsigned port, struct error *e)
{
    struct router *r = all->set.router;

    if (e->code == ERROR_PROTOCOL || e->code == ERROR_USAGE)
        (void)error_wrap(e, "node %u refuses what node %u has told it", router_rank(r),
                         torus_neighbour(router_torus(r), router_rank(r), port));
    else
        (void)error_wrap(e, "node %u refuses", router_rank(r));
}

static void object(struct attempt *x, struct error *e)
{
    if (!attempt_is_root(x) && e->code != ERROR_BUSY)
        refuse(x->all, (unsigned)x->tree.parent, e);
    attempt_fail(x, e);
}

/* All have opened their blocks: the root knows their sizes. Returns whether it has gone on. */
static bool all_opened(struct attempt *x)
{
    struct error e;

    if (resume_tell(x, &e) != 0) {
        object(x, &e);
        return false;
    }
    if (!attempt_is_root(x)) {
        attempt_enter(x, EXCHANGE_OPENED);
        send_sized(x);
        return true;
    }
    int result = resume_largest(x, &e) == 0 ? choose_for(x, &e) : -1;
    if (result > 0)
        result = opening_blocks(x, &e); /* the plan, if it has just been chosen */
    if (result > 0 && opening_choose_rounds(x, &e) != 0)
        result = -1;
    if (result < 0)
        object(x, &e);
    if (result == 0)
        x->owed |= OWN_PART; /* schedules are counted or planned first */
    if (result <= 0)
        return false;
    if (x->spec.timeout_ns == 0) {
        x->timeout_ns = prepare_default_timeout(x);
        x->deadline = router_now(router_of(x)) + x->timeout_ns;
    }
    attempt_enter(x, EXCHANGE_PREPARING);
    wave_begin(x);
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

/* Of what is entered, the root may prepare any number: it holds memory for a group only where somebody has
 * entered it. */
static bool is_awaited_here(const struct attempt *x)
{
    return !kind_of(x)->is_entered || attempt_is_awaited(x) || attempt_is_open_group(x);
}

/* This node's part, as far as it goes now. Returns 0, or -1 having failed. */
static int advance_own(struct attempt *x)
{
    struct error e;
    int result = spec_has_schedule(&x->spec) || around_has_routes(x) ? choose_for(x, &e) : 1;

    if (result > 0)
        result = opening_blocks(x, &e);
    if (result > 0 && !is_awaited_here(x))
        return 0;
    if (result > 0 && x->state == EXCHANGE_PREPARING)
        result = opening_engine(x, &e);
    if (result < 0) {
        if (e.code == ERROR_LINK && attempt_is_open_group(x))
            e.code = ERROR_REFUSED; /* to begin anew would not help */
        object(x, &e);
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
        if (x->fault.at != ROUTER_NEVER && retry_goes_around(x)) {
            x->owed |= OWN_PART; /* it begins anew */
            return;
        }
        if (x->state == EXCHANGE_PREPARING)
            all_ready(x);
        else if (!all_opened(x))
            return;
    }
}

/* --- the root's prepare --- */

/* Whether it is one that a root sends, to this node and over this link. */
static int check_prepare(struct exchanges *all, unsigned port, const struct peer_prepare *prepare,
                         const struct damage *damage, struct error *e)
{
    const struct torus *t = router_torus(all->set.router);
    char dims[TORUS_TEXT_SIZE], id[EXCHANGE_ID_SIZE];
    struct attempt *x = attempt_find(all, prepare->exchange);
    int parent;

    text_printable(id, sizeof id, prepare->id);
    if (prepare->root >= t->nodes || strcmp(prepare->dims, torus_format(t, dims)) != 0)
        return error_set(e, ERROR_PROTOCOL, "prepare of exchange %s for root %u of another torus",
                         id, prepare->root);
    if (!exchange_is_id_of(prepare->id, prepare->root))
        return error_set(e, ERROR_PROTOCOL,
                         "prepare of exchange \"%s\", which is not an exchange id of node %u", id,
                         prepare->root);
    if (around_parent(damage, prepare->root, router_rank(all->set.router), &parent, e) != 0)
        return -1;
    if (parent != (int)port)
        return error_set(e, ERROR_PROTOCOL, "prepare of exchange %s from the wrong side", id);
    if (prepare->n_missing > 0 && !prepare->spec->shrink)
        return error_set(e, ERROR_PROTOCOL, "prepare of exchange %s leaves out nodes that it needs",
                         id);
    const struct job_kind *kind = kind_of_operation((enum operation)prepare->spec->operation);
    if (kind->is_entered && !prepare->spec->shrink && prepare->root != BARRIER_ROOT)
        return error_set(e, ERROR_PROTOCOL,
                         "prepare of exchange %s, a barrier or group that only node %u begins", id,
                         BARRIER_ROOT);
    if (prepare->spec->shrink && kind->first_left_leads)
        for (uint32_t rank = 0; rank < prepare->root; rank++)
            if (!damage->gone[rank])
                return error_set(e, ERROR_PROTOCOL,
                                 "prepare of exchange %s, a group that node %u and not node %u "
                                 "begins",
                                 id, rank, prepare->root);
    if (x == NULL || state_of(x)->ended || strcmp(x->id, id) != 0)
        return 0;
    return error_set(e, ERROR_PROTOCOL, "exchange %s prepared twice", id);
}

/* Handles come round again, and a root that has been restarted does not know the old ones. Returns
 * 0, or -1 with *e if the exchange that had this one is not over. */
static int free_handle(struct exchanges *all, uint32_t handle, struct error *e)
{
    struct attempt *x = attempt_find(all, handle);

    if (x == NULL)
        return 0;
    if (!state_of(x)->ended || x->own.closing > 0 || x->job != NULL)
        return error_set(e, ERROR_BUSY, "node %u is busy: exchange %s has the same handle",
                         router_rank(all->set.router), x->id);
    attempt_forget(x);
    return 0;
}

static unsigned count_barriers(const struct exchanges *all)
{
    unsigned n = 0;

    for (const struct attempt *x = all->active; x != NULL; x = x->next)
        n += !kind_of(x)->takes_place;
    return n;
}

/* Other exchanges that hold something here, those of this root too, or of any (TORUS_NO_NODE). */
static unsigned count_others(const struct exchanges *all, uint32_t root)
{
    unsigned n = 0;

    for (const struct attempt *x = all->active; x != NULL; x = x->next)
        n += kind_of(x)->takes_place && (root == TORUS_NO_NODE || x->root == root);
    for (const struct attempt *x = all->ended; x != NULL; x = x->next)
        n += x->own.closing > 0 && (root == TORUS_NO_NODE || x->root == root);
    return n;
}

/* Whether there is a place for one more. Returns 0, or -1 with *e. */
static int check_place(const struct exchanges *all, const struct job_kind *kind, uint32_t root,
                       struct error *e)
{
    uint32_t here = router_rank(all->set.router);
    unsigned all_others, of_root;

    if (!kind->takes_place) {
        unsigned barriers = count_barriers(all);
        if (barriers < BARRIERS_AT_ONCE)
            return 0;
        return error_set(e, ERROR_BUSY,
                         "node %u is busy: %u barriers and groups are under way there", here,
                         barriers);
    }
    if (planner_is_busy(all->planner))
        return error_set(e, ERROR_BUSY, "node %u is busy: it is planning for other exchanges",
                         here);
    all_others = count_others(all, TORUS_NO_NODE);
    of_root = count_others(all, root);
    if (of_root == 0 || (of_root < PREPARED_OF_A_ROOT && all_others < PREPARED_AT_ONCE))
        return 0;
    return error_set(e, ERROR_BUSY,
                     "node %u is busy: %u exchanges are under way there, %u of them of node %u",
                     here, all_others, of_root, root);
}

/* A root that never says what has become of its exchanges leaves doubts. Returns 0, or -1 with *e. */
static int check_doubts(const struct exchanges *all, const struct spec *spec, uint32_t root,
                        struct error *e)
{
    unsigned n = spec_has_folders(spec) ? doubts_about(all, root) : 0;

    if (n < DOUBTS_ABOUT_A_ROOT)
        return 0;
    return error_set(e, ERROR_BUSY,
                     "node %u is busy: it keeps the outputs of %u exchanges of node %u, whose "
                     "outcome it does not "
                     "know or cannot carry out",
                     router_rank(all->set.router), n, root);
}

/* A group that has been open. */
static bool goes_on(const struct peer_prepare *prepare)
{
    return prepare->resumes[0] != '\0' &&
           kind_of_operation((enum operation)prepare->spec->operation)->has_session;
}

/* Whether this node can take part at all. */
static int check_spec_here(struct exchanges *all, const struct spec *spec,
                           const struct peer_prepare *prepare, const struct damage *damage,
                           struct error *e)
{
    const bool resumes = goes_on(prepare);
    const struct left_out out = {.down = spec->shrink && !resumes,
                                 .nodes = resumes ? damage->gone : NULL};
    const struct torus *t = router_torus(all->set.router);
    bool whole = damage_is_none(damage);
    const struct algorithm *a;
    enum mode mode = spec->mode;

    if (spec_check(spec, t, e) != 0)
        return -1;
    if (around_agrees(all, out, damage, e) != 0)
        return -1;
    a = algorithm_find(spec->algorithm);
    if (!whole && !around_may(spec))
        return error_set(e, ERROR_USAGE, "links are down, and it cannot go around them");
    if (!spec_chooses_late(spec) &&
        ((a == NULL && !spec_has_schedule(spec) && whole) || mode == MODE_OF_ALGORITHM))
        return error_set(e, ERROR_USAGE, "algorithm or mode is missing");
    if (a != NULL && spec_check_algorithm(spec, t, a, &mode, e) != 0)
        return -1;
    if (check_doubts(all, spec, prepare->root, e) != 0)
        return -1;
    return check_place(all, kind_of_spec(spec), prepare->root, e);
}

/* Its failure may have been faster; or somebody has invented that: then it begins anew. */
static int check_news(const struct exchanges *all, const struct peer_prepare *prepare,
                      struct error *e)
{
    if (!verdict_is_remembered(all, prepare->id))
        return 0;
    return error_set(e, ERROR_BUSY, "node %u has heard that this attempt is over",
                     router_rank(all->set.router));
}

/* Only the blocks of folders, and what is left of blocks, have sizes that have to be gathered first. */
static int check_round(const struct spec *spec, const struct peer_prepare *prepare, struct error *e)
{
    bool group = kind_of_spec(spec)->has_session;
    bool resumes = prepare->resumes[0] != '\0' && !group;

    if (prepare->resumes[0] != '\0' &&
        (!prepare->around || !exchange_is_id_of(prepare->resumes, prepare->root) ||
         (!group && (spec->operation != OPERATION_EXCHANGE || spec->repeat != 1))))
        return error_set(e, ERROR_PROTOCOL, "it cannot go on where another one was");
    if (prepare->round_bytes > 0 && (resumes || spec_chooses_late(spec)))
        return error_set(e, ERROR_PROTOCOL, "the round size is said too early");
    if (prepare->round_bytes == 0 && !resumes && !spec_has_folders(spec))
        return error_set(e, ERROR_PROTOCOL, "the round size is missing");
    return 0;
}

/* Its group or barrier may be prepared as this here. Returns 0, or -1 with *e. */
static int check_entered(struct exchanges *all, const struct spec *spec,
                         const struct peer_prepare *prepare, struct error *e)
{
    if (!goes_on(prepare))
        return barrier_check_id(all, spec, prepare->id, e);
    const struct job *j = standing_find(all, prepare->resumes, prepare->id, e);
    if (j != NULL && strcmp(j->spec.barrier, spec->barrier) != 0)
        return error_set(e, ERROR_PROTOCOL, "it is group \"%s\", not \"%s\"", j->spec.barrier,
                         spec->barrier);
    return j != NULL ? 0 : -1;
}

/* The job of this node that it is for; NULL: nobody has entered it here, or it is not entered. */
static struct job *job_of(struct exchanges *all, const struct peer_prepare *prepare,
                          const struct spec *spec)
{
    struct job *j;
    struct error e;

    if (!kind_of_spec(spec)->is_entered)
        return NULL;
    if (!goes_on(prepare))
        return barrier_prepared(all, spec, prepare->root);
    j = standing_find(all, prepare->resumes, prepare->id, &e);
    (void)error_set(&e, ERROR_BUSY, "it has begun anew");
    if (j != NULL && job_is_under_way(j))
        attempt_withdraw(j->attempt, &e);
    return j;
}

/* Takes *spec and the use of the schedule over on success. */
static struct attempt *take_on(struct exchanges *all, const struct peer_prepare *prepare,
                               struct spec *spec, struct schedule *schedule)
{
    struct name name = {.handle = prepare->exchange};
    struct job *j = job_of(all, prepare, spec);
    struct attempt *x;
    struct error e;

    (void)snprintf(name.id, sizeof name.id, "%s", prepare->id);
    x = attempt_new(all, &name, prepare->root);
    if (x == NULL) {
        (void)error_set(&e, ERROR_MEMORY, "out of memory for an exchange");
        if (j != NULL)
            job_fail(j, &e); /* as on the other nodes */
        return NULL;
    }
    x->user = j != NULL ? j->user : prepare->user;
    x->spec = *spec;
    x->schedule = schedule;
    x->algorithm = algorithm_find(spec->algorithm);
    x->mode = spec->mode;
    x->own.round_bytes = prepare->round_bytes;
    x->own.window = prepare->window;
    x->goes_around = prepare->around;
    (void)snprintf(x->resumes, sizeof x->resumes, "%s", prepare->resumes);
    x->tree.parent = 0; /* until its tree is known: it is not its root */
    x->job = j;
    return x;
}

/* A user of the schedule that is named, if any. */
static int join_schedule(struct exchanges *all, const struct spec *spec, uint32_t user,
                         struct schedule **s, struct error *e)
{
    if (!spec_has_schedule(spec))
        return 0;
    *s = schedules_join(all->schedules, spec->schedule, user, e);
    return *s != NULL ? 0 : -1;
}

int prepare_heard(struct exchanges *all, unsigned port, const struct peer_prepare *prepare,
                  struct error *e)
{
    struct attempt *x = attempt_find(all, prepare->exchange);
    struct schedule *schedule = NULL;
    struct damage damage;
    struct error why, given_up = {.code = ERROR_NONE};
    struct spec spec;

    if (around_unpack(router_torus(all->set.router), prepare, &damage, e) != 0)
        return -1;
    if (check_prepare(all, port, prepare, &damage, e) != 0) {
        damage_free(&damage);
        return -1;
    }
    if (x != NULL && strcmp(x->id, prepare->id) == 0) { /* its failure was faster */
        damage_free(&damage);
        return 0;
    }
    int result = spec_unpack(&spec, prepare->spec, &why);
    if (result == 0 &&
        (check_news(all, prepare, &why) != 0 ||
         check_spec_here(all, &spec, prepare, &damage, &why) != 0 ||
         check_round(&spec, prepare, &why) != 0 || check_entered(all, &spec, prepare, &why) != 0 ||
         free_handle(all, prepare->exchange, &why) != 0 ||
         join_schedule(all, &spec, prepare->user, &schedule, &why) != 0)) {
        spec_free(&spec);
        result = -1;
    }
    x = result == 0 ? take_on(all, prepare, &spec, schedule) : NULL;
    if (x == NULL) {
        if (schedule != NULL)
            schedules_leave(all->schedules, schedule);
        if (result == 0) {
            spec_free(&spec);
            (void)error_set(&why, ERROR_MEMORY, "out of memory for an exchange");
        }
        if (why.code != ERROR_BUSY && !(goes_on(prepare) && why.code == ERROR_REFUSED))
            refuse(all, port, &why);
        damage_free(&damage);
        objection_send(all, (int)port, prepare->exchange, prepare->id, prepare->root, &why, false);
        return 0;
    }
    struct job *j = x->job;
    int found = around_set(x, &damage, &why);
    x->tree.parent = (int)port; /* also without memory for the rest */
    if (j != NULL) {
        given_up = j->failure; /* of a group that has been open */
        x->timeout_ns = j->timeout_ns;
        x->deadline = j->deadline;
    }
    uint64_t timeout_ns = x->spec.timeout_ns;
    uint64_t deadline = router_now(router_of(x)) + timeout_ns + PEER_PATIENCE;
    if (deadline < x->deadline) { /* who has entered a barrier here may want to wait less long */
        x->timeout_ns = timeout_ns;
        x->deadline = deadline;
    }
    attempt_enter(x, x->own.round_bytes == 0 ? EXCHANGE_OPENING : EXCHANGE_PREPARING);
    if (j != NULL)
        job_take(j, x);
    /* Straight on to the children: the whole torus checks at the same time. */
    prepare_begin(x);
    if (schedule != NULL)
        schedule_fetch(all->schedules, schedule, port);
    if (given_up.code != ERROR_NONE) {
        attempt_fail(x, &given_up);
        return 0;
    }
    if (attempt_is_awaited(x) && barrier_differs(x, &j->spec, &x->spec))
        return 0;
    if (found != 0 || failure_own_link_down(x, &why))
        object(x, &why);
    else
        prepare_advance(x);
    return 0;
}

int sized_heard(struct attempt *x, unsigned port, const struct peer_sized *sized, struct error *e)
{
    if (wave_child_part(x, port, e) != 0)
        return -1;
    if (sized->largest_block > x->own.largest_block)
        x->own.largest_block = sized->largest_block;
    if (__builtin_add_overflow(x->own.bytes_below, sized->total_bytes, &x->own.bytes_below))
        x->own.bytes_below = UINT64_MAX;
    return 0;
}

/* What the root has chosen, where that was left open. Returns 0, or -1 with *e. */
static int take_choice(struct attempt *x, const struct peer_layout *layout, struct error *e)
{
    const struct algorithm *a = NULL;
    enum mode mode;
    struct error why;

    if (x->algorithm != NULL)
        return 0;
    if (family_check(layout->algorithm, torus_of(x), &why) == 0)
        a = algorithm_find(layout->algorithm);
    if (a == NULL || mode_parse(layout->mode, &mode) != 0 || mode == MODE_OF_ALGORITHM ||
        spec_check_algorithm(&x->spec, torus_of(x), a, &mode, &why) != 0)
        return error_set(e, ERROR_PROTOCOL,
                         "exchange %s: layout with an algorithm or mode that cannot be", x->id);
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
    x->own.round_bytes = layout->round_bytes;
    x->own.window = layout->window;
    if (layout->timeout_ms <= SPEC_LONGEST_TIMEOUT / MILLISECONDS) {
        x->timeout_ns = layout->timeout_ms * MILLISECONDS;
        x->deadline = router_now(router_of(x)) + x->timeout_ns + PEER_PATIENCE;
    }
    attempt_enter(x, EXCHANGE_PREPARING);
    wave_begin(x);
    send_layout(x);
    return 0;
}

int ready_heard(struct attempt *x, unsigned port, const struct peer_ready *message, struct error *e)
{
    (void)message;
    if (wave_child_part(x, port, e) != 0)
        return -1;
    return 0;
}
