/* Messages between a program and its daemon, and errors of their connection. */
#pragma once

#include "client/libtorus/link/link.h"
#include "client/libtorus/link/waiting.h"

#define LINK_ANSWER_MS 10000 /* how much longer than its timeout the opening of a group may take */

/* Sets *e to an error of the daemon: a code of enum error_code, and a text. Returns -1. */
int link_fail_as(struct torus_error *e, uint32_t code, const char *text);

/* Copies link->error, the reason why the link cannot be used any more, to *e, unless `e` is NULL. Returns -1. */
int link_return_error(struct program_link *link, struct torus_error *e);

/* Sets link->error: the daemon has closed the connection. Then as link_return_error(). */
int link_lost(struct program_link *link, struct torus_error *e);

/* Returns whether this process has opened the link. A forked child must not use it: it would send messages in the
 * name of its parent. */
bool link_is_ours(const struct program_link *link);

/* Sets link->error if this process is a forked child. */
void link_refuse_children(struct program_link *link);

/* Sends a message without a text. Returns 0, or -1 if it could not be sent. */
int link_send(struct program_link *link, enum program_kind kind, uint32_t number, uint64_t size);

/* Waits for the next message, which must have `count` descriptors, except kinds that have none. `flags` are those of
 * recvmsg(). Returns 0 with *m and the descriptors in `fds`, which the caller closes, or -1 with *e. After -1, also
 * because of a PROGRAM_ERROR, the link cannot be used any more. */
int link_receive(struct program_link *link, struct program_message *m, int *fds, unsigned count,
                 int flags, struct torus_error *e);

/* Waits at most `ms` milliseconds for a message; 0: without limit. Unless `w` is NULL, prints meanwhile which nodes
 * the program waits for. Returns 0, or -1 with *e. */
int link_await(struct program_link *link, uint64_t ms, struct waiting *w, struct torus_error *e);

/* Checks that the connection can still be used. Returns 0, or -1 with *e. */
int link_check(struct program_link *link, struct torus_error *e);
