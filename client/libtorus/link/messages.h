/* Messages between a program and its daemon, and the end of their connection. */
#ifndef TORUSD_CLIENT_LINK_MESSAGES_H
#define TORUSD_CLIENT_LINK_MESSAGES_H

#include "client/libtorus/link/link.h"
#include "client/libtorus/link/waiting.h"

#define LINK_ANSWER_MS 10000 /* how long a daemon may take for an immediate answer */

/* Sets *e from a daemon's message: a code of enum error_code, and a text. Returns -1. */
int link_fail_as(struct torus_error *e, uint32_t code, const char *text);

/* Ends the use of the connection, for the reason that the caller has put into link->error.
 * Copies the reason to *e, unless `e` is NULL. Returns -1. */
int link_give_up(struct program_link *link, struct torus_error *e);

/* Ends the use of the connection because the daemon has gone away. Otherwise as link_give_up(). */
int link_lost(struct program_link *link, struct torus_error *e);

/* Whether this process has opened the link: a forked child must not use it. */
bool link_is_ours(const struct program_link *link);

/* Sets link->error if this process is a forked child. */
void link_refuse_children(struct program_link *link);

/* Sends a message without a text. Returns 0, or -1 if it cannot be sent. */
int link_send(struct program_link *link, enum program_kind kind, uint32_t number, uint64_t size);

/* Waits for the next message, which must come with `count` descriptors unless its kind has none.
 * `flags` are those of recvmsg(). The caller closes the descriptors. An ERROR ends the
 * connection. Returns 0, or -1 with *e. */
int link_receive(struct program_link *link, struct program_message *m, int *fds, unsigned count,
                 int flags, struct torus_error *e);

/* Waits for a message, for at most `ms` milliseconds; 0: for ever. Meanwhile says on standard
 * error what is waited for, unless `w` is NULL. Returns 0, or -1 with *e. */
int link_await(struct program_link *link, uint64_t ms, struct waiting *w, struct torus_error *e);

/* Checks that the connection can still be used. Returns 0, or -1 with *e. */
int link_check(struct program_link *link, struct torus_error *e);

#endif
