/* The schedules from files that this node knows, by their digests. Clients give them, or the node fetches
 * them, part by part, from the neighbour that names the schedule in an exchange:
 *
 *     GATHERING --all parts--> CHECKING --digest and schedule are right--> KNOWN
 *         |                       +------------------------------------> FAILED
 *         +--------------------------------------------------------------^
 *
 * A schedule that nobody uses is dropped when something else needs its room; an unfinished or failed one is
 * dropped at once. */
#pragma once

#include "daemon/lib/base/shares.h"
#include "daemon/lib/base/work.h"
#include "daemon/lib/schedule/file/imported.h"
#include "daemon/torusd/router/router.h"

#define SCHEDULES_MOST 64u
#define SCHEDULES_BYTES_MOST (UINT64_C(64) << 20) /* memory for all schedules */
/* How long an asked neighbour may send nothing; it may have to fetch the next part itself. */
#define SCHEDULES_SILENCE_MOST (30 * SECONDS)

struct schedules;
struct schedule;

struct schedules_setup {
    struct router *router;
    struct workers workers;
    struct shares *shares; /* counts the schedules in use */
    /* Called when a schedule has become KNOWN or FAILED. */
    void (*wake)(void *context);
    /* Called before the algorithm of a schedule is freed. */
    void (*forget)(void *context, const struct algorithm *a);
    void *context;
};

/* Makes an empty store, which the caller gives to schedules_free(). Returns NULL if there is no
 * memory. */
struct schedules *schedules_new(const struct schedules_setup *setup);
/* Frees the store. No schedule of it may be in use. */
void schedules_free(struct schedules *all);

/* Whether the text is 64 hexadecimal digits. */
bool schedules_is_digest(const char *text);

/* Adds a use of a schedule, known or not, which the caller gives to schedules_leave(). While a schedule is in
 * use, it counts in the share of its first user (uid). Returns NULL with *e: no memory, or no room
 * (ERROR_BUSY). */
struct schedule *schedules_join(struct schedules *all, const char *digest, uint32_t user,
                                struct error *e);
/* Ends a use of schedules_join(). */
void schedules_leave(struct schedules *all, struct schedule *s);

/* Whether all of the schedule's text is here. */
bool schedule_is_complete(const struct schedule *s);
/* Returns 1 with *a, valid as long as the schedule is used; 0 if it is not there yet (wake
 * follows); -1 with *e if it has FAILED. */
int schedule_ready(const struct schedule *s, const struct algorithm **a, struct error *e);

/* Asks the neighbour at the port, which has the schedule, for the missing parts, unless another neighbour has
 * been asked. */
void schedule_fetch(struct schedules *all, struct schedule *s, unsigned port);
/* To be called when the link at the port has gone down: parts that were asked for there will not arrive. The
 * next neighbour that names such a schedule is asked instead. */
void schedules_link_lost(struct schedules *all, unsigned port);
/* Returns when the schedule fails if the asked neighbour sends nothing before; ROUTER_NEVER if no neighbour
 * is asked. schedule_tick() must be called then. */
uint64_t schedule_deadline(const struct schedule *s);
/* Fails the schedule if its deadline has passed. */
void schedule_tick(struct schedules *all, struct schedule *s, uint64_t now);

/* Adds a part from a client. Ignores a part that is here already, or that begins behind the bytes that are
 * here. Sets *have to the bytes that are here afterwards. Returns 0, or -1 with *e: it cannot be a part of
 * this schedule, or there is no room. */
int schedule_give(struct schedules *all, struct schedule *s, uint32_t total, uint32_t offset,
                  const uint8_t *part, size_t length, uint32_t *have, struct error *e);

/* Handle messages of neighbours. Return 0, or -1 with *e if a neighbour must not send such a
 * message. */
int schedules_query_heard(struct schedules *all, unsigned port,
                          const struct peer_schedule_query *query, struct error *e);
int schedules_part_heard(struct schedules *all, unsigned port,
                         const struct peer_schedule_part *part, struct error *e);

/* Bytes of memory that all schedules take. */
uint64_t schedules_bytes(const struct schedules *all);
