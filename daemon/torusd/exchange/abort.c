/* How an attempt fails on all nodes with the same text. Only the root decides. A node that cannot continue
 * sends the root a nack along the links of the tree. The root's abort goes down the tree behind its
 * prepare, so every node that hears the abort knows the attempt.
 *
 * If links are down, the tree may be cut, so the abort is flooded as well. It may then reach nodes before the
 * prepare, or without it. These nodes pass it on for as many hops as there are nodes, and remember its id in
 * order to pass it on only once. When their memory for ids is full, they do not pass on more aborts, so that
 * a node that invents aborts cannot make the others flood the torus. A prepare that arrives after its abort
 * is answered as busy: if the abort was invented for a future id, the root retries under another one. Ids are
 * remembered for a short time only. If a prepare arrives after that, its attempt ends because of the fault,
 * which this node also knows.
 *
 * A node that was cut off ends its attempts by itself, with the error that it knows. When a link to it comes
 * up, it hears the aborts that it may have missed, and from then on reports the same error as the other
 * nodes. */
#include "daemon/torusd/exchange/abort.h"

#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/exchange/exchange.h"
#include "daemon/torusd/exchange/job.h"
#include "daemon/torusd/exchange/tree_messages.h"
#include "proto/text.h"

#define REMEMBERED_TIME (2 * ABORT_TIME) /* longer than a prepare can be on its way */

/* Returns the hash to remember. `last`: the abort fails the job; it is passed on even after the abort that
 * withdrew the attempt. */
static uint64_t abort_hash(const struct exchange_id *id, bool last)
{
    return (exchange_id_hash(id) << 1 | last) << 1 | 1; /* 0 marks a free entry */
}

static bool abort_is_known(const struct exchanges *exchanges, uint64_t wanted)
{
    uint64_t now = router_now(exchanges->set.router);

    for (unsigned i = 0; i < ABORTS_REMEMBERED; i++)
        if (exchanges->abort[i] == wanted && now < exchanges->abort_at[i] + REMEMBERED_TIME)
            return true;
    return false;
}

bool abort_is_remembered(const struct exchanges *exchanges, const struct exchange_id *id)
{
    return abort_is_known(exchanges, abort_hash(id, false)) ||
           abort_is_known(exchanges, abort_hash(id, true));
}

/* Remembers an abort in place of the oldest one. Returns false if the oldest one may still be on its way. */
static bool remember_abort(struct exchanges *exchanges, uint64_t abort)
{
    unsigned i = exchanges->next_abort;
    uint64_t now = router_now(exchanges->set.router);

    if (exchanges->abort[i] != 0 && now < exchanges->abort_at[i] + ABORT_TIME)
        return false;
    exchanges->abort[i] = abort;
    exchanges->abort_at[i] = now;
    exchanges->next_abort = (i + 1) % ABORTS_REMEMBERED;
    return true;
}

bool abort_is_cut(const struct attempt *x)
{
    return x->fault.at != ROUTER_NEVER || x->fault.lost != 0;
}

/* Makes an abort on an attempt; the message borrows the texts. `before_go`: the root had sent no `go`. */
static struct peer_message make_abort(uint32_t handle, const struct exchange_id *id,
                                      const struct error *e, uint32_t left, bool before_go)
{
    return (struct peer_message){.kind = PEER_ABORT,
                                 .abort = {.exchange = handle,
                                           .id = id->text,
                                           .code = e->code,
                                           .reason = e->text,
                                           .left = left,
                                           .before_go = before_go}};
}

void abort_pass_on(struct attempt *x, const struct error *e, uint32_t left, int except)
{
    const struct peer_message message = make_abort(x->handle, &x->id, e, left, x->before_go);

    if (left > 0)
        router_flood(router_of(x), except, &message);
    else
        tree_messages_to_children(x, &message);
}

void abort_send(struct attempt *x, const struct error *e)
{
    x->abort_heard = true;
    x->before_go = x->rounds.first_go_at == 0 && exchange_id_is_none(&x->resumes);
    abort_pass_on(x, e, abort_is_cut(x) ? torus_of(x)->nodes : 0, -1);
}

/* Root: floods an abort on an attempt that was withdrawn before, because no other attempt will follow. */
static void abort_flood(struct attempt *x, const struct error *e)
{
    x->abort_heard = true;
    abort_pass_on(x, e, torus_of(x)->nodes, -1);
}

/* Root: floods an abort on the last attempt that all nodes know of, unless that attempt is under way. An open
 * group is named by its first id, which all members know. */
static void abort_send_former(const struct job *j, const struct error *e)
{
    struct router *router = j->exchanges->set.router;
    bool open = job_has_been_open(j);
    const struct exchange_id *former = open ? &j->resumes : &j->former.id;
    if (exchange_id_is_none(former) ||
        (exchange_id_equal(former, &j->name.id) && job_is_under_way(j)))
        return;
    const struct peer_message message =
        make_abort(j->former.handle, former, e, router_torus(router)->nodes, false);
    router_flood(router, -1, &message);
}

void abort_answer(struct exchanges *exchanges, unsigned port, uint32_t handle,
                  const struct exchange_id *id, const struct error *e)
{
    const struct peer_message message =
        make_abort(handle, id, e, router_torus(exchanges->set.router)->nodes, false);

    router_send(exchanges->set.router, port, &message);
}

void aborts_repeat(struct exchanges *exchanges, unsigned port)
{
    for (const struct attempt *x = exchanges->ended; x != NULL; x = x->next) {
        if (x->state != EXCHANGE_FAILED || !x->abort_heard || x->failure.code == ERROR_BUSY)
            continue;
        /* The hops start again, because the node at the other end may have restarted. */
        const struct peer_message message =
            make_abort(x->handle, kind_of(x)->has_session ? attempt_first_id(x) : &x->id,
                       &x->failure, torus_of(x)->nodes, x->before_go);
        router_send(exchanges->set.router, port, &message);
    }
}

int nack_port(const struct attempt *x)
{
    bool cut = x->tree.parent >= 0 && (x->fault.lost & 1u << x->tree.parent) != 0;

    return cut ? tree_messages_port(x->exchanges, x->root) : x->tree.parent;
}

void nack_send(struct exchanges *exchanges, int port, uint32_t handle, const struct exchange_id *id,
               uint32_t root, const struct error *e, bool retry_may_help)
{
    const struct peer_message message = {.kind = PEER_NACK,
                                         .nack = {.exchange = handle,
                                                  .id = id->text,
                                                  .root = root,
                                                  .code = e->code,
                                                  .reason = e->text,
                                                  .retry_may_help = retry_may_help,
                                                  .culprit = e->culprit}};

    if (port >= 0)
        router_send(exchanges->set.router, (unsigned)port, &message);
}

void abort_pass_unknown(struct exchanges *exchanges, unsigned port, const struct exchange_id *id,
                        const struct peer_abort *message)
{
    uint32_t most = router_torus(exchanges->set.router)->nodes;
    struct peer_message onward = {.kind = PEER_ABORT, .abort = *message};
    char reason[sizeof((struct error *)0)->text];
    uint64_t abort = abort_hash(id, message->code != ERROR_BUSY);

    if (message->left == 0 || abort_is_known(exchanges, abort) || !remember_abort(exchanges, abort))
        return;
    onward.abort.reason = text_printable(reason, sizeof reason, message->reason);
    onward.abort.left = message->left - 1 < most ? message->left - 1 : most;
    router_flood(exchanges->set.router, (int)port, &onward);
}

/* --- retries ---
 *
 * The root withdraws an attempt on all nodes, and its job starts another one under a new id, in these cases: a
 * node had no memory for it (the job retries later, until its timeout); a link went down that the attempt can
 * avoid; the attempt waits for nodes that are down, until they are back (attempt_waits_for_nodes()); or data
 * was damaged on its way, a few times at most. The next attempt sends all blocks again, except those that were
 * kept (kept_blocks.c). */

#define PAUSE_FIRST (10 * MILLISECONDS)
#define PAUSE_MOST (1 * SECONDS)
/* Limits the retries that a node can cause by always reporting that its links are down. */
#define REROUTES_MOST 1000u
#define DAMAGES_MOST 3u /* more damage than this has a lasting cause */
/* Estimated bytes of a message for each span that has arrived. */
#define SPAN_BYTES 5u
/* Keeping blocks pays if it saves this many times more bytes than telling them takes. */
#define WORTH 8u
/* For a group, which may be open for weeks, older retries do not count. */
#define COUNTED_TIME (60 * SECONDS)

void retry_pause(struct job *j)
{
    struct router *router = j->exchanges->set.router;
    uint64_t chance;

    j->pause = j->pause == 0 ? PAUSE_FIRST : 2 * j->pause;
    if (j->pause > PAUSE_MOST)
        j->pause = PAUSE_MOST;
    router_random(router, &chance, sizeof chance);
    j->retry_at = router_now(router) + j->pause / 2 + chance % j->pause;
}

/* While a node has no memory, the root hears so again after PAUSE_MOST and the time that a prepare takes. After this time it
 * is another shortage. */
#define SHORTAGE_GAP (5 * SECONDS)

bool retry_lacks_memory_too_long(struct job *j)
{
    const uint64_t now = router_now(j->exchanges->set.router);

    if (j->spec.memory_wait_ns == 0 || job_has_been_open(j))
        return false;
    if (j->lacked_at == 0 || now >= j->lacked_at + SHORTAGE_GAP)
        j->lacks_since = now;
    j->lacked_at = now;
    return now - j->lacks_since >= j->spec.memory_wait_ns;
}

bool retry_may_withdraw(const struct attempt *x)
{
    return attempt_is_root(x) && state_of(x)->prepares;
}

bool retry_after_link_loss(const struct attempt *x)
{
    if (!attempt_survives_link_loss(x) || !attempt_is_root(x) || x->job->reroutes == REROUTES_MOST)
        return false;
    return retry_may_withdraw(x) || (kind_of(x)->retries_running && state_of(x)->runs);
}

/* Returns how many retries after damage count. */
static uint32_t damages_that_count(const struct attempt *x)
{
    bool long_ago = router_now(router_of(x)) >= x->job->damaged_at + COUNTED_TIME;

    return kind_of(x)->has_session && long_ago ? 0 : x->job->damages;
}

bool retry_after_damage(const struct attempt *x)
{
    return attempt_is_root(x) && kind_of(x)->retries_running &&
           damages_that_count(x) < DAMAGES_MOST && state_of(x)->runs &&
           (attempt_survives_link_loss(x) || !abort_is_cut(x));
}

/* If the spec waits for nodes, or other rates of links call for another plan, repetitions that all nodes have completed are
 * not repeated. Otherwise those of this attempt are: it is over because of a fault, and their times would be compared with
 * those that avoid it. */
static void keep_repetitions(const struct attempt *x, bool replanned)
{
    struct repetitions *r = &x->job->repetitions;
    uint32_t done = r->count - r->kept;

    if ((x->spec.wait || replanned) && done > 0) {
        /* The last check found damage, so at least the last repetition is made again. */
        if (done == x->spec.repeat)
            done--;
        if (r->first_go_at == 0)
            r->first_go_at = x->rounds.first_go_at;
        r->kept += done;
    }
    r->count = r->kept;
}

static void withdraw_attempt(struct attempt *x, const struct error *busy, bool replanned)
{
    struct job *j = x->job;

    if (state_of(x)->runs) {
        j->former = (struct attempt_name){.id = x->id, .handle = x->handle};
    }
    abort_send(x, busy);
    x->failure = j->failure = *busy;
    j->withdrawn_at = router_now(router_of(x));
    retry_pause(j);
    if (x->spec.timeout_ns == 0 ||
        attempt_is_open_group(x)) { /* the timeout of a group was for opening it */
        j->timeout_ns = LONGEST_WAIT;
        j->deadline = j->waiting_since + j->timeout_ns;
    }
    keep_repetitions(x, replanned);
    attempt_end(x, EXCHANGE_WITHDRAWN);
}

void retry_withdrawn(struct attempt *x, const struct error *why)
{
    if (x->job != NULL && attempt_is_open_group(x) && state_of(x)->awaits_abort &&
        !error_is_temporary(&x->failure))
        x->job->failure = x->failure;
    x->failure = *why;
    attempt_end(x, EXCHANGE_WITHDRAWN);
}

void retry_later(struct attempt *x, const struct error *busy)
{
    log_debug("exchange %s: attempt withdrawn, waiting to retry: %s", x->id.text, busy->text);
    withdraw_attempt(x, busy, false);
}

/* Whether telling what has arrived costs less than it saves. */
static bool next_is_worth_resuming(const struct attempt *x)
{
    const struct torus *t = torus_of(x);
    const double said = (double)t->nodes * t->nodes * x->algorithm->segments * SPAN_BYTES;
    const double moved = torus_bound_all_port(t) * (double)x->spec.block_bytes;

    return spec_has_folders(&x->spec) || said * WORTH <= moved;
}

/* Lets the next attempt resume this one if that saves more bytes than telling costs. Files are always resumed:
 * every node from which files have been moved keeps its output, and must be told. */
static void resume_next(struct attempt *x)
{
    if (state_of(x)->moves && attempt_may_resume(x) && exchange_id_is_none(&x->job->resumes) &&
        next_is_worth_resuming(x))
        x->job->resumes = x->id;
}

bool retry_may_continue(const struct attempt *x)
{
    return state_of(x)->moves && kind_of(x)->retries_running && attempt_may_resume(x) &&
           (!exchange_id_is_none(&x->job->resumes) || next_is_worth_resuming(x));
}

static void retry_now(struct attempt *x, const struct error *why, bool replanned)
{
    struct error busy = *why;

    busy.code = ERROR_BUSY;
    resume_next(x);
    x->job->waiting_since = router_now(router_of(x));
    x->job->pause = 0; /* no node was busy since the last pause, so start with the shortest one */
    withdraw_attempt(x, &busy, replanned);
}

void retry_without_links(struct attempt *x, const struct error *fault)
{
    log_info("exchange %s: attempt withdrawn, retrying: %s", x->id.text, fault->text);
    if (kind_of(x)->has_session && state_of(x)->runs &&
        router_now(router_of(x)) >= x->rounds.first_go_at + COUNTED_TIME)
        x->job->reroutes = 0;
    x->job->reroutes++;
    retry_now(x, fault, false);
}

void retry_links_restored(struct attempt *x)
{
    struct error e;

    (void)error_set(&e, ERROR_LINK, "links that the group avoided are up again");
    retry_without_links(x, &e);
}

void retry_rates_changed(struct attempt *x)
{
    struct error e;

    log_info("exchange %s: the rates of links have changed: it continues on a new plan",
             x->id.text);
    (void)error_set(&e, ERROR_BUSY, "the rates of links have changed");
    x->job->replans++;
    retry_now(x, &e, true);
}

void retry_damaged(struct attempt *x, const struct error *damage)
{
    log_warning("exchange %s: attempt withdrawn, retrying: %s", x->id.text, damage->text);
    x->job->damages = damages_that_count(x) + 1;
    x->job->damaged_at = router_now(router_of(x));
    if (x->job->damages == 1 || damage->culprit.kind != CULPRIT_NONE)
        x->job->damage = *damage;
    retry_now(x, damage, false);
}

uint64_t retry_deadline(const struct job *j)
{
    return j->retry_at != 0 && j->retry_at < j->deadline ? j->retry_at : j->deadline;
}

/* --- failing ---
 *
 * How an attempt fails: the root decides for all nodes; any other node tells the root and waits for its abort
 * (abort_send()). abort_messages.c handles what a node hears from others. */

/* Adds the number of the failed repetition to the root's error, so that all nodes name the same one. */
static void name_repetition(struct attempt *x)
{
    uint32_t kept = x->job->repetitions.kept, repeat = kept + x->spec.repeat;

    if (repeat > 1 && state_of(x)->moves)
        (void)error_wrap(&x->failure, "repetition %u of %u", kept + x->rounds.repetition + 1,
                         repeat);
}

/* Adds the nodes that have not entered the barrier or group, as far as the root knows, to the error of a
 * timeout. */
static void name_missing(const struct job *j, struct error *e)
{
    char list[128];
    uint32_t nodes;

    if (e->code != ERROR_TIMEOUT)
        return;
    nodes = exchange_missing(j, list, sizeof list);
    if (nodes == 1)
        (void)error_wrap(e, "node %s has not entered the %s", list,
                         schedule_operation_name(j->spec.operation));
    else if (nodes > 1)
        (void)error_wrap(e, "not all of nodes %s have entered the %s", list,
                         schedule_operation_name(j->spec.operation));
}

static bool may_fail(const struct attempt *x)
{
    return !state_of(x)->over && !state_of(x)->decided;
}

/* Whether an error is reported although this node already waits for the root's abort. The first error may be
 * a lost link that the next attempt avoids. The new one concerns this node's program, which the root does not
 * know about. If the root has withdrawn this attempt, this node objects to the next one. */
static bool error_outweighs(const struct attempt *x, const struct error *e)
{
    return state_of(x)->awaits_abort && kind_of(x)->is_entered && error_is_temporary(&x->failure) &&
           !error_is_temporary(e);
}

/* Adds that data was damaged before. A small rest that is sent again may arrive damaged without telling which bytes are. */
static void name_damages(const struct job *j, struct error *e)
{
    if (e->code != ERROR_DAMAGED || j->damages == 0)
        return;
    if (e->culprit.kind == CULPRIT_NONE && j->damage.culprit.kind != CULPRIT_NONE) {
        (void)error_wrap(e, "damaged again after a retry (before: %s)", j->damage.text);
        e->culprit = j->damage.culprit;
    } else {
        (void)error_wrap(e, "damaged again after a retry");
    }
}

/* Root: fails the attempt on all nodes. */
static void fail_everywhere(struct attempt *x, const struct error *e)
{
    struct job *j = x->job;

    x->failure = *e;
    name_damages(j, &x->failure);
    name_repetition(x);
    name_missing(j, &x->failure);
    abort_send(x, &x->failure);
    abort_send_former(j, &x->failure);
    attempt_end(x, EXCHANGE_FAILED);
}

/* Root: a node has no memory for the group. Waits for that, or fails the group on all nodes with an error that does not
 * call for another attempt. */
static void await_memory(struct attempt *x, const struct error *busy)
{
    struct error e = *busy;

    if (!retry_lacks_memory_too_long(x->job)) {
        retry_later(x, busy);
        return;
    }
    e.code = ERROR_MEMORY;
    (void)error_wrap(&e, "no memory for it within %.1f s",
                     (double)x->job->spec.memory_wait_ns / 1e9);
    fail_everywhere(x, &e);
}

static void fail_attempt(struct attempt *x, const struct error *e, bool retry_may_help)
{
    if (!may_fail(x) && !error_outweighs(x, e))
        return;
    if (e->code == ERROR_BUSY && retry_may_withdraw(x)) {
        await_memory(x, e);
        return;
    }
    if (retry_may_help && retry_after_damage(x)) {
        retry_damaged(x, e);
        return;
    }
    if (attempt_is_root(x)) {
        fail_everywhere(x, e);
        return;
    }
    x->failure = *e;
    if (e->culprit.kind == CULPRIT_NONE) /* the text does not name a node either */
        (void)error_wrap_node(&x->failure, rank_of(x));
    if (e->code == ERROR_BUSY)
        log_debug("exchange %s: %s", x->id.text, x->failure.text);
    else
        log_warning("exchange %s: %s", x->id.text, x->failure.text);
    x->damaged = retry_may_help;
    nack_send(x->exchanges, nack_port(x), x->handle, &x->id, x->root, &x->failure, retry_may_help);
    x->deadline = router_now(router_of(x)) + ABORT_TIME;
    if (!state_of(x)->awaits_abort)
        attempt_enter(x, EXCHANGE_FAILING);
}

/* Fails a job that waits for its next attempt. Nodes that expect that attempt are told why there is none. */
static void fail_waiting(struct job *j, const struct error *e)
{
    struct attempt *last = j->last;
    struct error why = *e;

    if (job_awaits_restart(j)) { /* the root decides; this node objects to the next attempt */
        if (j->failure.code == ERROR_NONE)
            j->failure = *e;
        return;
    }
    name_damages(j, &why);
    name_missing(j, &why);
    if (last != NULL && attempt_is_root(last)) {
        if (j->reroutes + j->damages > 0 && j->fault.at != ROUTER_NEVER)
            abort_flood(last, &why);
        if (job_has_been_open(j))
            /* Nodes that were cut off hear the abort when their links are up again. */
            last->abort_heard = true;
    }
    abort_send_former(j, &why);
    job_end_failed(j, &why);
}

void job_fail(struct job *j, const struct error *e)
{
    if (job_is_under_way(j))
        attempt_fail(j->attempt, e);
    else if (!job_has_ended(j))
        fail_waiting(j, e);
}

void attempt_fail(struct attempt *x, const struct error *e)
{
    fail_attempt(x, e, false);
}

void attempt_damaged(struct attempt *x, const struct error *e)
{
    fail_attempt(x, e, true);
}

/* --- restarts of groups ---
 *
 * An open group is restarted when links go down. The root withdraws the attempt on all nodes, as it does with
 * an exchange, and prepares another one under a new id that names the first attempt
 * (Prepare.resumes). fault_watch.c notices the link, retry_without_links() withdraws the attempt,
 * start.c starts the next one, and group/restart/ continues the calls. The functions here find the group
 * that a prepare or abort is about. Between two attempts a node's job is ENTERED. If the root gives up, its
 * abort names the first id, because nodes may know different later ones. The session keeps what the programs
 * have called (session.h).
 *
 * A group that has shrunk keeps its members: it stays without the nodes that it has left out, even when they
 * are up again, and without their links (membership_left_out()). Its root stays the same, even if another node
 * would be the first of a new group.
 *
 * A node that cannot continue, for example because its program has died, takes part in the next attempt and
 * objects to it, so that the nack has an id that all nodes know. A node that has lost the group, or cannot
 * continue without these links, refuses the prepare with ERROR_REFUSED: another attempt would not help, as it
 * might after ERROR_LINK. */

const struct attempt *group_restart_find_failed(const struct exchanges *exchanges,
                                                const struct exchange_id *first)
{
    const struct attempt *x = exchanges->ended;

    while (x != NULL &&
           (!attempt_is_open_group(x) || !attempt_is_root(x) || x->state != EXCHANGE_FAILED ||
            !exchange_id_equal(attempt_first_id(x), first)))
        x = x->next;
    return x;
}

/* Returns the id of the job's first attempt, if its group has been open. */
static const struct exchange_id *first_id(const struct job *j)
{
    return !exchange_id_is_none(&j->resumes) ? &j->resumes : attempt_first_id(j->attempt);
}

/* Returns this node's job of the open group with this first id, unless it has ended here, or NULL. */
static struct job *find_job(struct exchanges *exchanges, const struct exchange_id *first)
{
    struct job *j = exchanges->jobs;

    while (j != NULL && (job_has_ended(j) || j->state == JOB_WAITING || !job_has_been_open(j) ||
                         (j->attempt != NULL && attempt_is_root(j->attempt)) ||
                         !exchange_id_equal(first_id(j), first)))
        j = j->next;
    return j;
}

/* Returns an ended attempt of the group, preferably one that failed and so says why there is no other attempt. */
static const struct attempt *find_ended(const struct exchanges *exchanges,
                                        const struct exchange_id *first)
{
    const struct attempt *withdrawn = NULL;

    for (const struct attempt *x = exchanges->ended; x != NULL; x = x->next) {
        if (!kind_of(x)->has_session || !exchange_id_equal(attempt_first_id(x), first))
            continue;
        if (x->state != EXCHANGE_WITHDRAWN)
            return x;
        withdrawn = x;
    }
    return withdrawn;
}

/* Sets *e to the reason why this node does not have the group. */
static void say_why(const struct exchanges *exchanges, const struct exchange_id *first,
                    struct error *e)
{
    uint32_t rank = router_rank(exchanges->set.router);
    const struct attempt *x = find_ended(exchanges, first);

    if (x == NULL)
        (void)error_set(e, ERROR_REFUSED,
                        "node %u does not have the group: it went down, or had not yet heard that "
                        "the group is open",
                        rank);
    else if (x->failure.code == ERROR_NONE || x->failure.code == ERROR_BUSY)
        (void)error_set(e, ERROR_REFUSED, "node %u reports that all programs have left the group",
                        rank);
    else
        *e = x->failure;
    if (e->code == ERROR_LINK)
        e->code = ERROR_REFUSED;
}

/* Returns the job of a group that all nodes had entered, as far as the root knew, when a link went down before
 * `go` arrived here. That job waits for its next attempt, or will when the root's abort has arrived. */
static struct job *find_early(struct exchanges *exchanges, const struct exchange_id *first)
{
    struct job *j = exchanges->jobs;

    for (; j != NULL; j = j->next) {
        const struct attempt *x = job_last_attempt(j);
        if (!kind_of_spec(&j->spec)->has_session || job_has_been_open(j) || x == NULL ||
            j->client_state != CLIENT_WAITING || !exchange_id_equal(&x->id, first))
            continue;
        if (j->state == JOB_ENTERED ||
            (job_is_under_way(j) && !attempt_is_root(x) && state_of(x)->before_go))
            return j;
    }
    return NULL;
}

/* Returns an attempt at the group that this node only passes on data for, or NULL. */
static struct attempt *find_passive(struct exchanges *exchanges, const struct exchange_id *first)
{
    struct attempt *x = exchanges->active;

    while (x != NULL && (!attempt_is_passive(x) || x->job != NULL ||
                         !exchange_id_equal(attempt_first_id(x), first)))
        x = x->next;
    return x;
}

void group_restart_passive(struct exchanges *exchanges, const struct exchange_id *first)
{
    struct attempt *x;
    struct error e;

    (void)error_set(&e, ERROR_BUSY, "the group has been restarted");
    while ((x = find_passive(exchanges, first)) != NULL)
        retry_withdrawn(x, &e);
}

void group_restart_failed(struct exchanges *exchanges, const struct exchange_id *first,
                          const struct error *why)
{
    struct job *j = find_job(exchanges, first);
    struct attempt *passive = find_passive(exchanges, first);

    if (passive != NULL) {
        passive->failure = *why;
        passive->abort_heard = true;
        attempt_end(passive, EXCHANGE_FAILED);
    }
    if (j == NULL)
        j = find_early(exchanges, first);
    if (j == NULL)
        return;
    if (job_is_under_way(j)) {
        j->attempt->failure = *why;
        j->attempt->abort_heard = true;
        attempt_end(j->attempt, EXCHANGE_FAILED);
    } else {
        j->last->abort_heard = true;
        job_end_by_abort(j, why);
    }
}

struct job *group_restart_find(struct exchanges *exchanges, const struct exchange_id *first,
                               const struct exchange_id *id, struct error *e)
{
    struct job *j = find_job(exchanges, first);

    if (j == NULL)
        j = find_early(exchanges, first);
    if (j == NULL) {
        say_why(exchanges, first, e);
        return NULL;
    }
    const struct attempt *x = job_last_attempt(j);
    if (!exchange_id_is_before(id, &x->id))
        return j;
    (void)error_set(e, ERROR_BUSY, "the group has been restarted as %s", x->id.text);
    return NULL;
}
