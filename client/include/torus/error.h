/* Errors of libtorus, and its version. Part of torus/torus.h. */
#ifndef TORUS_ERROR_H
#define TORUS_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TORUS_EXPORT __attribute__((visibility("default")))
#else
#define TORUS_EXPORT
#endif

/* Returns the version of the library, such as "0.1.0". Static. */
TORUS_EXPORT const char *torus_version(void);

enum torus_error_code {
    TORUS_ERROR_NONE = 0,
    TORUS_ERROR_USAGE,    /* the request is invalid (unknown algorithm, relative path...) */
    TORUS_ERROR_REFUSED,  /* the request is valid, but not possible on this torus, node or folder */
    TORUS_ERROR_LINK,     /* a link or a node is down */
    TORUS_ERROR_PROTOCOL, /* the daemon sent something invalid, or has another version */
    TORUS_ERROR_IO,       /* a system call failed, here or on a node */
    TORUS_ERROR_MEMORY,   /* out of memory here, or over the daemon's memory budget */
    TORUS_ERROR_TIMEOUT,  /* a deadline has passed */
    TORUS_ERROR_CANCELLED, /* torus_client_cancel(), or a callback that asked for it */
    TORUS_ERROR_DAMAGED,   /* data arrived that differs from what was sent */
    /* An exchange is committed, but not all nodes have confirmed it, or it is not known here whether it is committed:
     * see torus_client_exchange(). Or a group may be open on other nodes: see torus_group_open(). */
    TORUS_ERROR_IN_DOUBT,
    TORUS_ERROR_BUSY,            /* no memory or no place for the request now; try again later */
    TORUS_ERROR_NO_DAEMON = 100, /* no daemon listens on that socket */
    TORUS_ERROR_LOST, /* the daemon has closed the connection; there was nothing to commit */
};

struct torus_error {
    enum torus_error_code code;
    char text[480];    /* one sentence, without a full stop or line end */
    char exchange[64]; /* id of the exchange that failed; "" if it had none yet */
};

/* Returns a short name for a code: "refused", "in doubt", "no daemon"... Static, never NULL. */
TORUS_EXPORT const char *torus_error_name(enum torus_error_code code);

#ifdef __cplusplus
}
#endif

#endif
