/* The calls of a part, in their order.
 *
 * A call starts here when the program has made it and all calls before it are complete here, except perhaps the
 * one right before it. So when call k, to which every member contributes, is complete, all members have
 * completed call k - 2, and a member can be at most two such calls ahead. Other calls prove less: the sender of
 * a broadcast does not learn that it has arrived, and of a reduce only the root learns anything. A member can
 * be GROUP_UNPROVEN_MOST of these calls ahead, with no more bytes than an eager call may have. Before one more,
 * the group inserts a barrier of its own, for which no program waits.
 *
 * A small call needs no permission: its engine sends at once, from a copy, and frames that arrive early are
 * kept (early_frames.h). A reduce is complete at a member that is not its root when this member's data has been
 * sent, and it is over at all members when it is complete at the root. A large call starts when a wave has told
 * that all members have called. Waves keep its rounds together, and the last wave tells that all members have
 * all data.
 *
 * The wave before the data also tells the level of memory that all members have for the rounds. They open the data's engine
 * before that wave, for level 0. If the level is another one, they open it again, and one more wave tells that all have.
 *
 * When a link goes down, all calls that are not over at all members are made again, on other routes. Members
 * where such a call is complete take part with what they have kept (restart.h). A large call that is complete
 * at one member is over at all members. The data that a small call sends is kept until a later call tells that
 * the small call is over. If it is a reduction whose result all members get, the result is kept instead. */
#pragma once

#include "daemon/torusd/group/call.h"

/* Continues all calls of a part as far as possible now; fails the session on an error. */
void calls_advance(struct part *p);
/* Frees the calls that are kept. */
void calls_forget(struct part *p);
/* Completes a call whose program has its result now, or already had it. `everywhere`: all members have the
 * result. Returns 0, or -1 with *e: the caller fails the session. */
int call_complete(struct call *c, bool everywhere, struct error *e);
/* Keeps a complete call, or frees it if it is over at all members. Returns 0, or -1 with *e. */
int call_retire(struct call *c, struct error *e);
/* Applies call_retire() to all complete calls of a part. Returns 0, or -1 with *e. */
int calls_retire(struct part *p, struct error *e);
/* Whether a call that is not in the part's list is over at all members. */
bool calls_were_over_everywhere(const struct part *p, uint64_t number);

/* The engines of a call: one for its data and one for its waves.
 *
 * A wave calculates the maximum of one number over all members, on one tree, and all members hear the result.
 * Round 0 says that all members have called, and how large the largest block is. For a large call it also says
 * that all are ready for its data; an uneven exchange has another wave for that. Each later wave of a large
 * call says that all members have finished one more round. */

/* Opens the engines that can be opened now. Returns 1 if all are there; 0 while schedules are planned, or until
 * the first wave has been heard; or -1 with *e. */
int call_engines_open(struct call *c, struct error *e);

/* Returns how many waves a large call has before its data, as long as its level is 0. */
uint64_t call_waves_before_data(const struct call *c);
/* Opens the engine of a large call's data again if all waves before its data have been heard, and some member has not the
 * memory for level 0. Returns 0, or -1 with *e. */
int call_engines_level(struct call *c, struct error *e);

/* Returns how many rounds of data all members have finished, as far as a large call's waves tell. */
uint64_t call_rounds_finished_by_all(const struct call *c);
