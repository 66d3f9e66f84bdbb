/* The calls of a part, in their order.
 *
 * A call starts here when the program has made it and all before it are complete here, but perhaps for
 * the one right before it. So when one to which every member contributes is complete, all members have
 * completed the one before the last and all before that: frames of at most two such calls can come
 * before their call has been made. Of a broadcast nobody hears whether it has arrived, and of a reduce only
 * its root: of such calls GROUP_UNPROVEN_MOST can come too early, with no more bytes than an eager call may
 * have. Before one more a barrier of the group's own is put in, which no program waits for.
 *
 * A small call needs no leave: its engine sends at once, from a copy, and what comes too early is
 * kept (early_frames.h). A reduce is complete at a member that is not its root when what it has to send is on
 * its way, and it is over everywhere when it is complete at the root. A large call begins when a wave has
 * told that all have called, goes on in rounds that waves keep together, and is complete when the last wave
 * has told that all have all.
 *
 * When a link goes down all calls that are not over everywhere are made again, on other routes: also by
 * members where they are complete, from what they have kept (agreement.h). A large call that is complete
 * somewhere is over everywhere. What a small one sends, or its result if it is a reduction that all get,
 * is kept until a later call tells that it is over. */
#ifndef TORUSD_GROUP_CALLS_CALLS_H
#define TORUSD_GROUP_CALLS_CALLS_H

#include "daemon/group/record/call.h"

/* Goes on with all calls of a part as far as possible; fails the session if it must. */
void calls_advance(struct part *p);
/* What is kept is freed. */
void calls_forget(struct part *p);
/* Its program has its result, or has had it before; `everywhere`: all members have it. Returns 0, or -1 with *e:
 * the session fails. */
int call_complete(struct call *c, bool everywhere, struct error *e);
/* A call that is complete is kept, unless it is over everywhere. Returns 0, or -1 with *e. */
int call_retire(struct call *c, struct error *e);
/* All that are complete. The same. */
int calls_retire(struct part *p, struct error *e);
/* Of a call that is not in the part's list any more, or not yet: whether it is over everywhere. */
bool calls_were_over_everywhere(const struct part *p, uint64_t number);

#endif
