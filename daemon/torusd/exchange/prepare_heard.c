/* Checks a root's prepare: whether it is valid, and whether this node can take part. */
#include "daemon/torusd/exchange/prepare.h"

#include <string.h>

#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/damage.h"
#include "daemon/torusd/exchange/abort.h"
#include "daemon/torusd/exchange/decisions.h"
#include "daemon/torusd/exchange/entry.h"
#include "daemon/torusd/exchange/fault_watch.h"
#include "daemon/torusd/exchange/job.h"
#include "daemon/torusd/exchange/membership.h"
#include "daemon/torusd/exchange/plan_rates.h"
#include "daemon/torusd/exchange/tracing.h"
#include "daemon/torusd/planning/schedule_store.h"
#include "proto/text.h"

/* The ids in a prepare: of its attempt, and of the first attempt of the same job. NO_ID stands for a text that
 * is not an id; `resumes` is also NO_ID in the first attempt. */
struct prepare_ids {
    struct exchange_id id, resumes;
};

/* Most attempts that are prepared here, barriers not counted: of one root, which has up to eight under way
 * (start.c) and others that are ending; and of all roots. A root that has none may always have one, so
 * that other roots cannot keep it out. */
#define PREPARED_OF_A_ROOT 16u
#define PREPARED_AT_ONCE 256u
#define DOUBTS_ABOUT_A_ROOT 64u /* each doubt keeps an output */
#define BARRIERS_AT_ONCE 4096u  /* barriers use very little memory */

/* Checks that a root can have sent this prepare to this node over this link. Returns 0 with *ids, or -1 with *e. */
static int prepare_check(struct exchanges *exchanges, unsigned port,
                         const struct peer_prepare *prepare, const struct damage *damage,
                         struct prepare_ids *ids, struct error *e)
{
    const struct torus *t = router_torus(exchanges->set.router);
    char dims[TORUS_TEXT_SIZE];
    const char *id = prepare->id;
    struct attempt *x = attempt_find(exchanges, prepare->exchange);
    int parent;

    if (prepare->root >= t->nodes || strcmp(prepare->dims, torus_format(t, dims)) != 0)
        return error_set(e, ERROR_PROTOCOL,
                         "prepare of exchange %s by root %u is for another torus", id,
                         prepare->root);
    if (exchange_id_parse(&ids->id, id) != 0 || ids->id.root != prepare->root)
        return error_set(e, ERROR_PROTOCOL,
                         "prepare of exchange \"%s\", which is not an exchange id of node %u", id,
                         prepare->root);
    (void)exchange_id_parse(&ids->resumes, prepare->resumes);
    if (avoided_parent(damage, prepare->root, router_rank(exchanges->set.router), &parent, e) != 0)
        return -1;
    if (parent != (int)port)
        return error_set(e, ERROR_PROTOCOL,
                         "prepare of exchange %s from a neighbour that is not the parent", id);
    const bool some = prepare->spec->members[0] != '\0';
    if (prepare->n_missing > 0 && !prepare->spec->shrink && !some)
        return error_set(
            e, ERROR_PROTOCOL,
            "prepare of exchange %s leaves out nodes, but the exchange does not shrink", id);
    const struct job_kind *kind =
        kind_of_operation((enum schedule_operation)prepare->spec->operation);
    const uint32_t leader = spec_first_member(prepare->spec->members);
    if (kind->is_entered && !prepare->spec->shrink && prepare->root != leader)
        return error_set(
            e, ERROR_PROTOCOL,
            "prepare of exchange %s is refused: only node %u may begin this barrier or group", id,
            leader);
    if (prepare->spec->shrink && kind->first_remaining_leads)
        for (uint32_t rank = 0; rank < prepare->root; rank++)
            if (!damage->gone[rank])
                return error_set(
                    e, ERROR_PROTOCOL,
                    "prepare of exchange %s, a group that node %u must begin, not node %u", id,
                    rank, prepare->root);
    if (x == NULL || state_of(x)->ended || !exchange_id_equal(&x->id, &ids->id))
        return 0;
    return error_set(e, ERROR_PROTOCOL, "exchange %s was prepared twice", id);
}

static unsigned count_barriers(const struct exchanges *exchanges)
{
    unsigned n = 0;

    for (const struct attempt *x = exchanges->active; x != NULL; x = x->next)
        n += !kind_of(x)->takes_slot;
    return n;
}

/* Counts the attempts that hold resources here, of this root or of any root (TORUS_NO_NODE). */
static unsigned count_others(const struct exchanges *exchanges, uint32_t root)
{
    unsigned n = 0;

    for (const struct attempt *x = exchanges->active; x != NULL; x = x->next)
        n += kind_of(x)->takes_slot && (root == TORUS_NO_NODE || x->root == root);
    for (const struct attempt *x = exchanges->ended; x != NULL; x = x->next)
        n += x->local.closing > 0 && (root == TORUS_NO_NODE || x->root == root);
    return n;
}

/* Checks that there is a place for one more attempt. Returns 0, or -1 with *e. */
static int check_place(const struct exchanges *exchanges, const struct job_kind *kind,
                       uint32_t root, struct error *e)
{
    uint32_t here = router_rank(exchanges->set.router);
    unsigned all_others, of_root;

    if (!kind->takes_slot) {
        unsigned barriers = count_barriers(exchanges);
        if (barriers < BARRIERS_AT_ONCE)
            return 0;
        return error_set(e, ERROR_BUSY,
                         "node %u is busy: %u barriers and groups are under way there", here,
                         barriers);
    }
    if (planner_is_busy(exchanges->planner))
        return error_set(e, ERROR_BUSY, "node %u is busy: it is planning for other exchanges",
                         here);
    all_others = count_others(exchanges, TORUS_NO_NODE);
    of_root = count_others(exchanges, root);
    if (of_root == 0 || (of_root < PREPARED_OF_A_ROOT && all_others < PREPARED_AT_ONCE))
        return 0;
    return error_set(e, ERROR_BUSY,
                     "node %u is busy: %u exchanges are under way there, %u of them of node %u",
                     here, all_others, of_root, root);
}

/* Checks that this node does not keep too many outputs in doubt for this root, which could otherwise fill the
 * disk by never telling outcomes. Returns 0, or -1 with *e. */
static int check_doubts(const struct exchanges *exchanges, const struct spec *spec, uint32_t root,
                        struct error *e)
{
    unsigned n = spec_has_folders(spec) ? in_doubt_about(exchanges, root) : 0;

    if (n < DOUBTS_ABOUT_A_ROOT)
        return 0;
    return error_set(e, ERROR_BUSY,
                     "node %u is busy: it keeps the outputs of %u exchanges of node %u, whose "
                     "outcome it does not "
                     "know or cannot carry out",
                     router_rank(exchanges->set.router), n, root);
}

/* Whether the prepare restarts a group that has been open. */
static bool prepare_is_restart(const struct peer_prepare *prepare)
{
    return prepare->resumes[0] != '\0' &&
           kind_of_operation((enum schedule_operation)prepare->spec->operation)->has_session;
}

/* Checks that this node can take part in what the spec describes. Returns 0, or -1 with *e. */
static int check_spec_here(struct exchanges *exchanges, const struct spec *spec,
                           const struct peer_prepare *prepare, const struct damage *damage,
                           struct error *e)
{
    const bool resumes = prepare_is_restart(prepare);
    struct left_out out = membership_left_out_of(spec);
    const struct torus *t = router_torus(exchanges->set.router);
    bool whole = damage_is_none(damage);
    const struct algorithm *a;
    enum mode mode = spec->mode;

    if (resumes && !spec_has_members(spec))
        out = (struct left_out){.nodes = damage->gone};
    if (spec_check(spec, t, e) != 0)
        return -1;
    if (membership_agrees(exchanges, out, damage, e) != 0)
        return -1;
    a = algorithm_find(spec->algorithm);
    if (!whole && !spec_avoids_links(spec) && !spec_uses_rates(spec))
        return error_set(e, ERROR_USAGE, "links are down, and its algorithm cannot avoid them");
    if (!spec_chooses_late(spec) &&
        ((a == NULL && !spec_has_schedule(spec) && whole && !spec_finds_routes(spec, t, whole)) ||
         mode == MODE_OF_ALGORITHM))
        return error_set(e, ERROR_USAGE, "the prepare names no algorithm or no mode");
    if (a != NULL && !spec_finds_routes(spec, t, whole) &&
        spec_check_algorithm(spec, t, a, &mode, e) != 0)
        return -1;
    if (check_doubts(exchanges, spec, prepare->root, e) != 0)
        return -1;
    return check_place(exchanges, kind_of_spec(spec), prepare->root, e);
}

/* Checks that no abort on this id has arrived. The abort may have overtaken the prepare, or somebody may
 * have invented it; in both cases the root retries. */
static int check_news(const struct exchanges *exchanges, const struct exchange_id *id,
                      struct error *e)
{
    if (!abort_is_remembered(exchanges, id))
        return 0;
    return error_set(e, ERROR_BUSY, "node %u has heard that this attempt is over",
                     router_rank(exchanges->set.router));
}

/* Checks the round size: the prepare has none exactly if sizes must be gathered first, of files or of the parts
 * of blocks that are missing. Returns 0, or -1 with *e. */
static int check_round(const struct spec *spec, const struct peer_prepare *prepare,
                       const struct prepare_ids *ids, struct error *e)
{
    bool group = kind_of_spec(spec)->has_session;
    bool resumes = prepare->resumes[0] != '\0' && !group;

    if (prepare->resumes[0] != '\0' &&
        ((!prepare->avoids_links && !spec_uses_rates(spec)) || exchange_id_is_none(&ids->resumes) ||
         ids->resumes.root != prepare->root ||
         (!group && (spec->operation != OPERATION_EXCHANGE || spec->repeat != 1))))
        return error_set(e, ERROR_PROTOCOL,
                         "this kind of exchange cannot resume an earlier attempt");
    if (prepare->round_bytes > 0 && (resumes || spec_chooses_late(spec)))
        return error_set(e, ERROR_PROTOCOL,
                         "the round size is given although the sizes of blocks are not known yet");
    if (prepare->round_bytes == 0 && !resumes && !spec_has_folders(spec))
        return error_set(e, ERROR_PROTOCOL, "the round size is missing");
    return 0;
}

/* Checks that the group or barrier may be prepared under this id here. Returns 0, or -1 with *e. */
static int check_entered(struct exchanges *exchanges, const struct spec *spec,
                         const struct peer_prepare *prepare, const struct prepare_ids *ids,
                         struct error *e)
{
    if (!prepare_is_restart(prepare))
        return entry_check_members(exchanges, spec, prepare->root, e) == 0
                   ? entry_check_id(exchanges, spec, &ids->id, e)
                   : -1;
    if (!spec_is_member(spec, router_rank(exchanges->set.router)))
        return 0; /* this node keeps nothing of the earlier attempts */
    const struct job *j = group_restart_find(exchanges, &ids->resumes, &ids->id, e);
    if (j != NULL && strcmp(j->spec.barrier, spec->barrier) != 0)
        return error_set(e, ERROR_PROTOCOL, "the attempt to resume is of group \"%s\", not \"%s\"",
                         j->spec.barrier, spec->barrier);
    return j != NULL ? 0 : -1;
}

/* Checks that this node can take part. Returns 0, or -1 with *e. */
static int prepare_check_here(struct exchanges *exchanges, const struct peer_prepare *prepare,
                              const struct prepare_ids *ids, const struct spec *spec,
                              const struct damage *damage, struct error *e)
{
    if (check_news(exchanges, &ids->id, e) != 0 ||
        check_spec_here(exchanges, spec, prepare, damage, e) != 0 ||
        check_round(spec, prepare, ids, e) != 0)
        return -1;
    return check_entered(exchanges, spec, prepare, ids, e);
}

/* --- the attempt, which this node passes on to its children; or its nack --- */

/* Frees a handle for a new attempt. Handles are used again after a while, and a restarted root does not know
 * the old ones. Returns 0, or -1 with *e if the attempt with this handle is still under way. */
static int free_handle(struct exchanges *exchanges, uint32_t handle, struct error *e)
{
    struct attempt *x = attempt_find(exchanges, handle);

    if (x == NULL)
        return 0;
    if (!state_of(x)->ended || x->local.closing > 0 || x->job != NULL)
        return error_set(e, ERROR_BUSY, "node %u is busy: exchange %s has the same handle",
                         router_rank(exchanges->set.router), x->id.text);
    attempt_forget(x);
    return 0;
}

/* Returns this node's job that the prepare is for; NULL if nobody has entered it here, or for an exchange. */
static struct job *job_of(struct exchanges *exchanges, const struct peer_prepare *prepare,
                          const struct prepare_ids *ids, const struct spec *spec)
{
    struct job *j;
    struct error e;

    if (!kind_of_spec(spec)->is_entered)
        return NULL;
    if (!prepare_is_restart(prepare))
        return entry_prepared(exchanges, spec, prepare->root);
    if (!spec_is_member(spec, router_rank(exchanges->set.router))) {
        group_restart_passive(exchanges, &ids->resumes);
        return NULL;
    }
    j = group_restart_find(exchanges, &ids->resumes, &ids->id, &e);
    (void)error_set(&e, ERROR_BUSY, "the group has been restarted");
    if (j != NULL && job_is_under_way(j))
        retry_withdrawn(j->attempt, &e);
    return j;
}

/* Makes the attempt. Takes *spec and the use of the schedule over, also on failure. Returns NULL with *e. */
static struct attempt *take_on(struct exchanges *exchanges, const struct peer_prepare *prepare,
                               const struct prepare_ids *ids, struct spec *spec,
                               struct schedule *schedule, struct error *e)
{
    const struct attempt_name name = {.id = ids->id, .handle = prepare->exchange};
    struct job *j = job_of(exchanges, prepare, ids, spec);
    struct attempt *x;

    x = attempt_new(exchanges, &name, prepare->root);
    if (x == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for an exchange");
        if (schedule != NULL)
            schedules_leave(exchanges->schedules, schedule);
        spec_free(spec);
        if (j != NULL)
            job_fail(j, e); /* the attempt fails on the other nodes, too */
        return NULL;
    }
    x->user = j != NULL ? j->user : prepare->user;
    x->spec = *spec;
    x->schedule = schedule;
    x->algorithm = spec_finds_routes(spec, torus_of(x), prepare->n_rates == 0)
                       ? NULL
                       : algorithm_find(spec->algorithm);
    x->mode = spec->mode;
    x->local.round_bytes = prepare->round_bytes;
    x->local.window = prepare->window;
    x->avoids_links = prepare->avoids_links;
    x->from_begin = prepare->from_begin;
    x->resumes = ids->resumes;
    x->tree.parent = 0; /* a placeholder until the tree is known: only the root has no parent */
    x->job = j;
    tracing_begin(x);
    return x;
}

/* Starts to use the schedule that the spec names, if any. */
static int join_schedule(struct exchanges *exchanges, const struct spec *spec, uint32_t user,
                         struct schedule **s, struct error *e)
{
    if (!spec_has_schedule(spec))
        return 0;
    *s = schedules_join(exchanges->schedules, spec->schedule, user, e);
    return *s != NULL ? 0 : -1;
}

/* Decides whether this node takes part. Returns 0 with *spec and a use of *schedule (NULL: the spec names
 * none), or -1 with *e and nothing to give back. */
static int accept_prepare(struct exchanges *exchanges, const struct peer_prepare *prepare,
                          const struct prepare_ids *ids, const struct damage *damage,
                          struct spec *spec, struct schedule **schedule, struct error *e)
{
    *schedule = NULL;
    if (spec_unpack(spec, prepare->spec, e) != 0)
        return -1;
    if (prepare_check_here(exchanges, prepare, ids, spec, damage, e) == 0 &&
        free_handle(exchanges, prepare->exchange, e) == 0 &&
        join_schedule(exchanges, spec, prepare->user, schedule, e) == 0)
        return 0;
    spec_free(spec);
    return -1;
}

/* Limits the attempt's time to the root's timeout, or to that of the client that has entered here if it is
 * shorter. */
static void limit_time(struct attempt *x)
{
    uint64_t timeout_ns = x->spec.timeout_ns;
    uint64_t deadline = router_now(router_of(x)) + timeout_ns + PEER_PATIENCE;

    if (x->job != NULL) {
        x->timeout_ns = x->job->timeout_ns;
        x->deadline = x->job->deadline;
    }
    if (deadline < x->deadline) {
        x->timeout_ns = timeout_ns;
        x->deadline = deadline;
    }
}

/* Starts the attempt at this node. Takes *damage over. */
static void begin_attempt(struct attempt *x, unsigned port, struct damage *damage)
{
    struct schedule *schedule = x->schedule;
    struct job *j = x->job;
    struct error why, given_up = {.code = ERROR_NONE};
    int found = avoided_set(x, damage, &why);

    x->tree.parent = (int)port; /* needed even without memory for the rest */
    if (j != NULL)
        given_up = j->failure; /* this node had already given up an open group */
    limit_time(x);
    attempt_enter(x, x->local.round_bytes == 0 ? EXCHANGE_OPENING : EXCHANGE_PREPARING);
    if (j != NULL)
        job_set_attempt(j, x);
    /* Pass the prepare on before checking, so that all nodes check at the same time. */
    prepare_begin(x);
    if (schedule != NULL)
        schedule_fetch(x->exchanges->schedules, schedule, port);
    if (given_up.code != ERROR_NONE) {
        attempt_fail(x, &given_up);
        return;
    }
    if (attempt_is_awaited(x) && entry_differs(x, &j->spec, &x->spec))
        return;
    if (found != 0 || fault_watch_own_link_down(x, &why))
        prepare_object(x, &why);
    else
        prepare_advance(x);
}

int prepare_heard(struct exchanges *exchanges, unsigned port, const struct peer_prepare *prepare,
                  struct error *e)
{
    struct attempt *x = attempt_find(exchanges, prepare->exchange);
    struct prepare_ids ids;
    struct schedule *schedule;
    struct damage damage;
    struct error why;
    struct spec spec;

    if (prepare_links_unpack(router_torus(exchanges->set.router), prepare, &damage, e) != 0)
        return -1;
    if (prepare_check(exchanges, port, prepare, &damage, &ids, e) != 0) {
        damage_free(&damage);
        return -1;
    }
    /* The abort arrived before the prepare that it refers to. */
    if (x != NULL && exchange_id_equal(&x->id, &ids.id)) {
        damage_free(&damage);
        return 0;
    }
    x = accept_prepare(exchanges, prepare, &ids, &damage, &spec, &schedule, &why) == 0
            ? take_on(exchanges, prepare, &ids, &spec, schedule, &why)
            : NULL;
    if (x != NULL) {
        plan_rates_set_full(exchanges, &damage);
        begin_attempt(x, port, &damage);
        return 0;
    }
    damage_free(&damage);
    if (why.code != ERROR_BUSY && !(prepare_is_restart(prepare) && why.code == ERROR_REFUSED))
        prepare_wrap_refusal(exchanges, port, &why);
    (void)error_blame_node_by_default(&why, router_rank(exchanges->set.router));
    nack_send(exchanges, (int)port, prepare->exchange, &ids.id, prepare->root, &why, false);
    return 0;
}
