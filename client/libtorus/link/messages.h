/* Messages between a program and its daemon, and when the connection is of no more use. */
#ifndef TORUSD_CLIENT_LINK_MESSAGES_H
#define TORUSD_CLIENT_LINK_MESSAGES_H

#include "client/libtorus/link/link.h"
#include "client/libtorus/link/waiting.h"

#define LINK_ANSWER_MS 10000 /* that a daemon may take for what it does at once */

/* Sets *e to what the daemon says: a code of enum error_code, and a text. Returns -1. */
int link_fail_as(struct torus_error *e, uint32_t code, const char *text);

/* The connection is of no more use, for the reason that the caller has put into link->error. Copies that to *e,
 * unless `e` is NULL, and returns -1. */
int link_give_up(struct program_link *link, struct torus_error *e);

/* The same, because the daemon has gone away. */
int link_lost(struct program_link *link, struct torus_error *e);

/* Whether this process has opened the link. A child that it has forked must not use it. */
bool link_is_ours(const struct program_link *link);

/* Sets link->error if this process is such a child. */
void link_refuse_children(struct program_link *link);

/* Sends a message without a text. Returns 0, or -1 if that is not possible. */
int link_send(struct program_link *link, enum program_kind kind, uint32_t number, uint64_t size);

/* Waits for the next message, which must come with `count` descriptors, unless its kind has none. `flags` are those of
 * recvmsg(). The caller closes the descriptors. An ERROR ends the connection. Returns 0, or -1 with *e. */
int link_receive(struct program_link *link, struct program_message *m, int *fds, unsigned count,
                 int flags, struct torus_error *e);

/* Waits until there is a message, for so many milliseconds at most; 0: for ever. Meanwhile it says on standard error
 * what is waited for, unless `w` is NULL. Returns 0, or -1 with *e. */
int link_await(struct program_link *link, uint64_t ms, struct waiting *w, struct torus_error *e);

/* Whether the connection is still good: 0, or -1 with *e. */
int link_check(struct program_link *link, struct torus_error *e);

#endif
