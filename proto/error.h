/* The error value of the whole project: a code that decides what to do (and the exit code of the
 * client), and a sentence for the person who has to act on it. */
#pragma once

#include <stdint.h>

enum error_code {
    ERROR_NONE = 0,
    ERROR_USAGE,     /* the request is invalid */
    ERROR_REFUSED,   /* the request is valid, but not possible on this node, torus or folder */
    ERROR_LINK,      /* a link or a node is down */
    ERROR_PROTOCOL,  /* a peer or client sent what it must not send */
    ERROR_IO,        /* a system call has failed */
    ERROR_MEMORY,    /* no room within the configured budget */
    ERROR_TIMEOUT,   /* a deadline has passed */
    ERROR_CANCELLED, /* the client went away or asked to stop */
    ERROR_DAMAGED,   /* data arrived that differs from what was sent */
    ERROR_IN_DOUBT,  /* committed, but not confirmed by all nodes; or the outcome is not known
                     * here */
    ERROR_BUSY,      /* not now: no memory, or not started yet; may be tried again */
};

/* What an error is about, for programs; the text says the same for people. */
enum culprit_kind {
    CULPRIT_NONE, /* nobody is named */
    CULPRIT_NODE,
    CULPRIT_LINK,    /* at `port` of `node` */
    CULPRIT_PROGRAM, /* the program that runs at `node` */
};

struct culprit {
    enum culprit_kind kind;
    uint32_t node; /* rank; 0 with CULPRIT_NONE */
    uint32_t port; /* with CULPRIT_LINK, else 0 */
};

/* The text of an exchange that its client has cancelled: views do not call that a fault. */
#define ERROR_TEXT_CANCELLED "cancelled by its client"

struct error {
    enum error_code code;
    char text[320];
    struct culprit culprit; /* the text names the same */
};

/* The short name of a code ("refused", "link", ...); never NULL. */
const char *error_name(enum error_code code);

/* Fills *e, unless `e` is NULL, without a culprit. A text that is too long is cut. Returns -1,
 * so that callers can write `return error_set(...)`. */
int error_set(struct error *e, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the text of *e; the code and the culprit stay. Returns -1. */
int error_wrap(struct error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Set the culprit of *e, unless `e` is NULL. Return -1. */
int error_blame_node(struct error *e, uint32_t node);
int error_blame_link(struct error *e, uint32_t node, uint32_t port);
int error_blame_program(struct error *e, uint32_t node);
/* Sets the culprit only if the error has none yet. Returns -1. */
int error_blame_node_by_default(struct error *e, uint32_t node);
/* Puts "node 3: " before the text, and sets that node as the culprit unless there is one.
 * Returns -1. */
int error_wrap_node(struct error *e, uint32_t node);
