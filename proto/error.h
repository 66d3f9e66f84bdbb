/* One error value for the whole project: a code that decides what to do (and the exit code of the
 * client), and a sentence for the person who has to do something about it. */
#ifndef TORUSD_PROTO_ERROR_H
#define TORUSD_PROTO_ERROR_H

#include <stdint.h>

enum error_code {
    ERROR_NONE = 0,
    ERROR_USAGE,     /* the caller asked for something that makes no sense here */
    ERROR_REFUSED,   /* it makes sense, but not on this node, torus or folder */
    ERROR_LINK,      /* a link or a node is down */
    ERROR_PROTOCOL,  /* a peer or client sent what it must not send */
    ERROR_IO,        /* the operating system said no */
    ERROR_MEMORY,    /* no room within the configured budget */
    ERROR_TIMEOUT,   /* a deadline has passed */
    ERROR_CANCELLED, /* the client went away or asked to stop */
    ERROR_DAMAGED,   /* data arrived that is not what was sent */
    ERROR_IN_DOUBT, /* committed, but not confirmed by all nodes; or whether it was is not known here */
    ERROR_BUSY,     /* not now: no room or no turn; may be tried again */
};

/* Whom or what an error is about, for programs: the text says so for people. */
enum culprit_kind {
    CULPRIT_NONE, /* nobody is named */
    CULPRIT_NODE,
    CULPRIT_LINK,    /* at `port` of `node` */
    CULPRIT_PROGRAM, /* that runs at `node` */
};

struct culprit {
    enum culprit_kind kind;
    uint32_t node; /* rank; 0 with CULPRIT_NONE */
    uint32_t port; /* with CULPRIT_LINK, else 0 */
};

struct error {
    enum error_code code;
    char text[320];
    struct culprit culprit; /* its text names the same */
};

/* A short name for a code ("refused", "link", ...); never NULL. */
const char *error_name(enum error_code code);

/* Fills *e (which may be NULL), without a culprit, and returns -1, so that `return error_set(...)` reads well.
 * Text that does not fit is cut. */
int error_set(struct error *e, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the text that *e already has; the code and the culprit stay. Returns -1. */
int error_wrap(struct error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* These say whom the text of *e (which may be NULL) names. All return -1. */
int error_blame_node(struct error *e, uint32_t node);
int error_blame_link(struct error *e, uint32_t node, uint32_t port);
int error_blame_program(struct error *e, uint32_t node);
/* Only if the error has no culprit yet. */
int error_blame_node_by_default(struct error *e, uint32_t node);
/* Puts "node 3: " before the text, and blames that node unless the text names a culprit already. Returns -1. */
int error_wrap_node(struct error *e, uint32_t node);

#endif
