#include "daemon/torusd/planning/schedule_store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "proto/sha256.h"
#include "proto/text.h"

#define DIGEST_DIGITS (SHA256_TEXT_SIZE - 1)
#define NOBODY UINT32_MAX

enum state { GATHERING, CHECKING, KNOWN, FAILED };

struct schedule {
    struct schedule *next; /* in the order of their last use, the latest first */
    char digest[SHA256_TEXT_SIZE];
    enum state state;
    unsigned users;
    uint32_t owner; /* uid of the first user, while it is used */
    char *text;     /* total bytes, of which `have` are there */
    uint32_t total, have;
    uint32_t port;                    /* GATHERING: the neighbour that was asked, or NOBODY */
    uint64_t heard_at;                /* when that neighbour last sent a part */
    uint32_t wanted[TORUS_MAX_PORTS]; /* offset + 1 of the part that a neighbour waits for */
    struct check *check;              /* CHECKING */
    struct imported *imported;        /* KNOWN */
    struct error error;               /* FAILED */
};

/* Checks off the loop whether a schedule has its digest, and is one for this torus. */
struct check {
    struct work work;
    struct schedules *all; /* NULL: the store has been freed */
    struct schedule
        *schedule; /* NULL: nobody waits for the result, and the job's end frees `text` */
    struct torus torus;
    char digest[SHA256_TEXT_SIZE];
    char *text;
    uint32_t total;
    struct imported *imported;
    struct error error;
    struct check *next;
};

struct schedules {
    struct schedules_setup set;
    struct schedule *list;
    unsigned count;
    struct check *checks; /* under way */
};

bool schedules_is_digest(const char *text)
{
    return strlen(text) == DIGEST_DIGITS && strspn(text, "0123456789abcdef") == DIGEST_DIGITS;
}

static uint64_t schedules_now(const struct schedules *all)
{
    return router_now(all->set.router);
}

static uint64_t schedule_memory(const struct schedule *s)
{
    return s->total + (s->imported != NULL ? imported_bytes(s->imported) : s->total);
}

uint64_t schedules_bytes(const struct schedules *all)
{
    uint64_t bytes = 0;

    for (const struct schedule *s = all->list; s != NULL; s = s->next)
        bytes += schedule_memory(s);
    return bytes;
}

/* --- what neighbours wait for --- */

static void send_part(struct schedules *all, unsigned port, const char *digest,
                      const struct schedule *s, uint32_t offset)
{
    struct peer_message message = {.kind = PEER_SCHEDULE_PART, .schedule_part = {.digest = digest}};
    struct peer_schedule_part *part = &message.schedule_part;

    if (s != NULL) {
        uint32_t left = s->have - offset;
        part->total = s->total;
        part->offset = offset;
        part->part.data = (uint8_t *)s->text + offset;
        part->part.len = left < FRAME_SCHEDULE_PART ? left : FRAME_SCHEDULE_PART;
    }
    router_send(all->set.router, port, &message);
}

/* Answers the neighbours that wait for a part that is here; all of them if the schedule has failed. */
static void answer_waiting(struct schedules *all, struct schedule *s)
{
    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++) {
        uint32_t offset = s->wanted[port] - 1;
        if (s->wanted[port] == 0 || (s->state != FAILED && offset >= s->have))
            continue;
        s->wanted[port] = 0;
        send_part(all, port, s->digest, s->state != FAILED ? s : NULL, offset);
    }
}

static void ask_neighbour(struct schedules *all, struct schedule *s)
{
    const struct peer_message query = {.kind = PEER_SCHEDULE_QUERY,
                                       .schedule_query = {s->digest, s->have}};

    router_send(all->set.router, s->port, &query);
}

/* --- the list --- */

/* Whether the schedule could not be fetched, which says nothing about its contents. Its waiting users get the
 * error, and the next use fetches it from the start. */
static bool has_not_come(const struct schedule *s)
{
    return s->state == FAILED && (s->error.code == ERROR_BUSY || s->error.code == ERROR_TIMEOUT ||
                                  s->error.code == ERROR_MEMORY);
}

static struct schedule *find_schedule(struct schedules *all, const char *digest)
{
    struct schedule *s = all->list;

    while (s != NULL && (has_not_come(s) || strcmp(s->digest, digest) != 0))
        s = s->next;
    return s;
}

static void forget_schedule(struct schedules *all, struct schedule *s)
{
    LL_DELETE(all->list, s);
    all->count--;
    s->state = FAILED;
    answer_waiting(all, s);
    if (s->check != NULL)
        s->check->schedule = NULL; /* frees the text */
    else
        free(s->text);
    if (s->imported != NULL) {
        all->set.forget(all->set.context, imported_algorithm(s->imported));
        imported_free(s->imported);
    }
    free(s);
}

/* The schedule that has been unused for longest. */
static struct schedule *oldest_unused(const struct schedules *all)
{
    struct schedule *unused = NULL;

    for (struct schedule *s = all->list; s != NULL; s = s->next)
        if (s->users == 0)
            unused = s;
    return unused;
}

/* Makes room for one more schedule, or for that many more bytes. */
static int make_room(struct schedules *all, unsigned more, uint64_t bytes, struct error *e)
{
    struct schedule *s;

    while (all->count + more > SCHEDULES_MOST ||
           schedules_bytes(all) + bytes > SCHEDULES_BYTES_MOST) {
        if ((s = oldest_unused(all)) == NULL)
            return error_set(e, ERROR_BUSY,
                             "node %" PRIu32
                             " is busy: all its room for schedules is in use. Try again later",
                             router_rank(all->set.router));
        forget_schedule(all, s);
    }
    return 0;
}

struct schedule *schedules_join(struct schedules *all, const char *digest, uint32_t user,
                                struct error *e)
{
    struct schedule *s = find_schedule(all, digest);
    bool first = s == NULL || s->users == 0;

    if (first && shares_take(all->set.shares, SHARE_SCHEDULES, user, 1, e) != 0)
        return NULL;
    if (s == NULL) {
        if (make_room(all, 1, 0, e) == 0 && (s = calloc(1, sizeof *s)) == NULL)
            (void)error_set(e, ERROR_MEMORY, "out of memory for a schedule");
        if (s == NULL) {
            shares_give(all->set.shares, SHARE_SCHEDULES, user, 1);
            return NULL;
        }
        memcpy(s->digest, digest, sizeof s->digest);
        s->port = NOBODY;
        all->count++;
    } else {
        LL_DELETE(all->list, s);
    }
    LL_PREPEND(all->list, s);
    s->owner = first ? user : s->owner;
    s->users++;
    return s;
}

void schedules_leave(struct schedules *all, struct schedule *s)
{
    if (--s->users > 0)
        return;
    shares_give(all->set.shares, SHARE_SCHEDULES, s->owner, 1);
    if (s->state != KNOWN)
        forget_schedule(all, s);
}

/* --- the check --- */

static void on_check(struct work *work)
{
    struct check *c = (struct check *)work;
    char digest[SHA256_TEXT_SIZE];

    sha256_text(c->text, c->total, digest);
    if (strcmp(digest, c->digest) != 0)
        (void)error_set(&c->error, ERROR_DAMAGED, "schedule %.8s is damaged: its digest is %.8s",
                        c->digest, digest);
    else if (imported_read(&c->imported, c->text, c->total, &c->torus, NULL, &c->error) == 0)
        c->error.code = ERROR_NONE;
    else
        (void)error_wrap(&c->error, "schedule %.8s", c->digest);
}

static void fail_schedule(struct schedules *all, struct schedule *s, const struct error *e)
{
    s->state = FAILED;
    s->error = *e;
    answer_waiting(all, s);
}

static void on_checked(struct work *work)
{
    struct check *c = (struct check *)work;
    struct schedules *all = c->all;
    struct schedule *s = c->schedule;

    if (all != NULL)
        LL_DELETE(all->checks, c);
    if (s == NULL) {
        imported_free(c->imported);
        free(c->text);
        free(c);
        return;
    }
    s->check = NULL;
    s->imported = c->imported;
    s->state = KNOWN;
    if (c->error.code != ERROR_NONE)
        fail_schedule(all, s, &c->error);
    free(c);
    all->set.wake(all->set.context);
}

static int begin_check(struct schedules *all, struct schedule *s, struct error *e)
{
    struct check *c = calloc(1, sizeof *c);

    if (c == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a schedule");
    c->work = (struct work){.run = on_check, .done = on_checked};
    c->all = all;
    c->schedule = s;
    c->torus = *router_torus(all->set.router);
    memcpy(c->digest, s->digest, sizeof c->digest);
    c->text = s->text;
    c->total = s->total;
    if (workers_submit(&all->set.workers, &c->work) != 0) {
        free(c);
        return error_set(e, ERROR_MEMORY, "out of memory for a schedule");
    }
    LL_PREPEND(all->checks, c);
    s->check = c;
    s->state = CHECKING;
    return 0;
}

/* --- parts --- */

/* Returns 1 if there is more text than before; 0 if the part was here already, or begins behind
 * what is here; -1 with *e, whose code is ERROR_PROTOCOL if it cannot be a part of this
 * schedule. */
static int add_part(struct schedules *all, struct schedule *s, uint32_t total, uint32_t offset,
                    const uint8_t *part, size_t length, struct error *e)
{
    if (s->state != GATHERING)
        return 0;
    if (total == 0 || total > IMPORTED_BYTES_MOST || (s->total != 0 && total != s->total) ||
        length > FRAME_SCHEDULE_PART || offset > total || length > total - offset)
        return error_set(e, ERROR_PROTOCOL,
                         "a part of schedule %.8s does not fit: %zu %s at %" PRIu32 " of %" PRIu32
                         ", but %" PRIu32 " of %" PRIu32 " %s here",
                         s->digest, length, text_plural(length, "byte", "bytes"), offset, total,
                         s->have, s->total, text_plural(s->have, "is", "are"));
    /* A part that begins behind `have` was asked for before the schedule was dropped; the schedule is being
     * fetched again. */
    if (offset > s->have || offset + length <= s->have)
        return 0;
    if (s->text == NULL) {
        if (make_room(all, 0, 2 * (uint64_t)total, e) != 0)
            return -1;
        s->text = malloc(total);
        if (s->text == NULL)
            return error_set(e, ERROR_MEMORY, "out of memory for a schedule");
        s->total = total;
    }
    memcpy(s->text + offset, part, length);
    s->have = offset + (uint32_t)length;
    s->heard_at = schedules_now(all);
    if (s->have == s->total && begin_check(all, s, e) != 0) {
        s->have = offset; /* the part may be sent again */
        return -1;
    }
    answer_waiting(all, s);
    return 1;
}

bool schedule_is_complete(const struct schedule *s)
{
    return s->state != GATHERING;
}

int schedule_ready(const struct schedule *s, const struct algorithm **a, struct error *e)
{
    if (s->state == FAILED) {
        *e = s->error;
        return -1;
    }
    if (s->state != KNOWN)
        return 0;
    *a = imported_algorithm(s->imported);
    return 1;
}

void schedule_fetch(struct schedules *all, struct schedule *s, unsigned port)
{
    if (s->state != GATHERING || s->port != NOBODY)
        return;
    s->port = port;
    s->heard_at = schedules_now(all);
    ask_neighbour(all, s);
}

void schedules_link_lost(struct schedules *all, unsigned port)
{
    for (struct schedule *s = all->list; s != NULL; s = s->next) {
        s->wanted[port] = 0;
        if (s->port == port)
            s->port = NOBODY;
    }
}

uint64_t schedule_deadline(const struct schedule *s)
{
    return s->state == GATHERING && s->port != NOBODY ? s->heard_at + SCHEDULES_SILENCE_MOST
                                                      : ROUTER_NEVER;
}

static uint32_t asked_node(const struct schedules *all, const struct schedule *s)
{
    return torus_neighbour(router_torus(all->set.router), router_rank(all->set.router), s->port);
}

void schedule_tick(struct schedules *all, struct schedule *s, uint64_t at)
{
    struct error e;

    if (at < schedule_deadline(s))
        return;
    (void)error_set(&e, ERROR_TIMEOUT,
                    "node %" PRIu32 " has sent %" PRIu32 " of %" PRIu32
                    " %s of schedule %.8s, but nothing in the last %d s",
                    asked_node(all, s), s->have, s->total, text_plural(s->total, "byte", "bytes"),
                    s->digest, (int)(SCHEDULES_SILENCE_MOST / SECONDS));
    fail_schedule(all, s, &e);
}

int schedule_give(struct schedules *all, struct schedule *s, uint32_t total, uint32_t offset,
                  const uint8_t *part, size_t length, uint32_t *have, struct error *e)
{
    if (length > 0 && add_part(all, s, total, offset, part, length, e) < 0)
        return -1;
    *have = s->state == GATHERING ? s->have : total;
    return 0;
}

int schedules_query_heard(struct schedules *all, unsigned port,
                          const struct peer_schedule_query *query, struct error *e)
{
    struct schedule *s;

    if (!schedules_is_digest(query->digest))
        return error_set(e, ERROR_PROTOCOL, "a query for a schedule has no digest");
    if (router_is_full(all->set.router, port))
        return 0; /* the neighbour does not read its answers, which are many times as long as queries */
    s = find_schedule(all, query->digest);
    if (s == NULL || s->state == FAILED) {
        send_part(all, port, query->digest, NULL, 0);
        return 0;
    }
    if (s->total != 0 && query->offset >= s->total)
        return error_set(e, ERROR_PROTOCOL,
                         "a query for schedule %.8s asks for byte %" PRIu32 " of %" PRIu32 " %s",
                         s->digest, query->offset, s->total,
                         text_plural(s->total, "byte", "bytes"));
    if (query->offset == UINT32_MAX)
        return error_set(e, ERROR_PROTOCOL,
                         "a query for schedule %.8s asks for bytes behind its end", s->digest);
    s->wanted[port] = query->offset + 1;
    answer_waiting(all, s);
    return 0;
}

int schedules_part_heard(struct schedules *all, unsigned port,
                         const struct peer_schedule_part *part, struct error *e)
{
    struct schedule *s;
    struct error why;

    if (!schedules_is_digest(part->digest))
        return error_set(e, ERROR_PROTOCOL, "a part of a schedule has no digest");
    s = find_schedule(all, part->digest);
    if (s == NULL || s->state != GATHERING || s->port != port)
        return 0; /* the part is no longer needed */
    if (part->total == 0) {
        (void)error_set(&why, ERROR_BUSY, "node %" PRIu32 " does not have schedule %.8s any more",
                        asked_node(all, s), s->digest);
        fail_schedule(all, s, &why);
    } else {
        int added =
            add_part(all, s, part->total, part->offset, part->part.data, part->part.len, &why);
        if (added < 0 && why.code == ERROR_PROTOCOL) {
            *e = why;
            return -1;
        }
        if (added < 0)
            fail_schedule(all, s, &why);
        else if (added > 0 && s->state == GATHERING)
            ask_neighbour(all, s);
    }
    if (s->state == FAILED)
        all->set.wake(all->set.context);
    return 0;
}

/* --- all of them --- */

struct schedules *schedules_new(const struct schedules_setup *setup)
{
    struct schedules *all = calloc(1, sizeof *all);

    if (all == NULL)
        return NULL;
    all->set = *setup;
    shares_set_capacity(setup->shares, SHARE_SCHEDULES, SCHEDULES_MOST);
    return all;
}

void schedules_free(struct schedules *all)
{
    if (all == NULL)
        return;
    for (struct check *c = all->checks; c != NULL; c = c->next)
        c->all = NULL;
    while (all->list != NULL) {
        memset(all->list->wanted, 0, sizeof all->list->wanted); /* forget_schedule() must not answer
                                                                 * neighbours */
        forget_schedule(all, all->list);
    }
    free(all);
}
