/* The schedules from files that this node knows, by their digests. Clients give them to it, or it
 * fetches them, part by part, from the neighbour that names one in an exchange:
 *
 *     GATHERING --all parts--> CHECKING --digest and schedule are right--> KNOWN
 *         |                       +------------------------------------> FAILED
 *         +--------------------------------------------------------------^
 *
 * What nobody uses is forgotten when something else needs its room; unfinished or failed, at once. */
#ifndef TORUSD_PLANNING_SCHEDULE_STORE_H
#define TORUSD_PLANNING_SCHEDULE_STORE_H

#include "daemon/base/shares.h"
#include "daemon/base/work.h"
#include "daemon/router/router.h"
#include "daemon/schedule/file/imported.h"

#define SCHEDULES_MOST 64u
#define SCHEDULES_BYTES_MOST (UINT64_C(64) << 20) /* of memory for all of them */
/* A neighbour that is asked for a part and has none itself yet may take that long to send more. */
#define SCHEDULES_PATIENCE (30 * SECONDS)

struct schedules;
struct schedule;

struct schedules_setup {
    struct router *router;
    struct workers workers;
    struct shares *shares; /* of those that are used */
    /* One has become KNOWN or FAILED. */
    void (*wake)(void *context);
    /* No more is asked for the algorithm of one. */
    void (*forget)(void *context, const struct algorithm *a);
    void *context;
};

/* Returns NULL if there is no memory. */
struct schedules *schedules_new(const struct schedules_setup *setup);
/* Nobody may use any. */
void schedules_free(struct schedules *all);

/* Whether it is 64 hexadecimal digits. */
bool schedules_is_digest(const char *text);

/* Somebody who uses it, known or not, and gives it to schedules_leave(). As long as anybody does, it takes a
 * place of the user (uid) who was the first. NULL with *e: no memory, or no room (ERROR_BUSY). */
struct schedule *schedules_join(struct schedules *all, const char *digest, uint32_t user,
                                struct error *e);
void schedules_leave(struct schedules *all, struct schedule *s);

/* Whether all of it is here. */
bool schedule_is_complete(const struct schedule *s);
/* Returns 1 with *a, valid as long as it is used; 0: not yet (wake follows); -1 with *e: it has
 * FAILED. */
int schedule_ready(const struct schedule *s, const struct algorithm **a, struct error *e);

/* The neighbour at the port has it: it is asked for what is missing, unless another one is. */
void schedule_fetch(struct schedules *all, struct schedule *s, unsigned port);
/* The link at the port has gone down: what was asked for there does not come, nor does anybody wait there.
 * Whoever names such a schedule next is asked. */
void schedules_lost(struct schedules *all, unsigned port);
/* When its neighbour has been silent for too long, unless it is heard before: ROUTER_NEVER if none is
 * asked. From then on schedule_ready() says that it has FAILED. */
uint64_t schedule_deadline(const struct schedule *s);
void schedule_tick(struct schedules *all, struct schedule *s, uint64_t now);

/* A client gives this part of it; one that is here, or that begins behind what is, is ignored. Sets *have to
 * how much is here after that. Returns 0, or -1 with *e: it cannot be a part of it, or there is no room. */
int schedule_give(struct schedules *all, struct schedule *s, uint32_t total, uint32_t offset,
                  const uint8_t *part, size_t length, uint32_t *have, struct error *e);

/* Messages of neighbours. Return 0, or -1 with *e: that neighbours send no such thing. */
int schedules_query_heard(struct schedules *all, unsigned port,
                          const struct peer_schedule_query *query, struct error *e);
int schedules_part_heard(struct schedules *all, unsigned port,
                         const struct peer_schedule_part *part, struct error *e);

/* Bytes of memory that all take. */
uint64_t schedules_bytes(const struct schedules *all);

#endif
