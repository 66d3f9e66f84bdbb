/* Copies of trees of files from node to node. Part of torus/torus.h, which has the rules for errors, ownership and
 * threads. */
#ifndef TORUS_COPY_H
#define TORUS_COPY_H

#include <string.h>
#include <torus/client.h>
#include <torus/exchange.h>

#ifdef __cplusplus
extern "C" {
#endif

enum torus_copy_kind {
    TORUS_COPY_TO_ALL = 1, /* the trees of one node to other nodes */
    TORUS_COPY_GATHER,     /* trees of other nodes to one node */
    TORUS_COPY_SCATTER,    /* trees of one node, different ones to each other node */
    TORUS_COPY_EXCHANGE,   /* each node has different trees for each other node */
};

#define TORUS_COPY_LIST_MAX 256 /* sources, and patterns, of one copy */

/* What to copy. Call torus_copy_init() first, and then set the fields that differ from the defaults.
 *
 * In paths, %r stands for the rank of a node, and %% for a per cent sign:
 * - TORUS_COPY_TO_ALL: sources must not contain %r; in `target` it is the node that writes.
 * - TORUS_COPY_GATHER: in sources it is the node that reads; `target` must contain it, and there it is the node that
 *   the trees come from.
 * - TORUS_COPY_SCATTER: sources must contain it; in sources and in `target` it is the node that writes.
 * - TORUS_COPY_EXCHANGE: there is one source. Node s reads `source`/d for node d, which writes it as `target`/s. In
 *   both paths %r is the node that reads or writes. */
struct torus_copy {
    size_t struct_size; /* set by torus_copy_init() */

    enum torus_copy_kind kind;
    uint32_t
        node; /* rank of the node that was asked (torus_status.rank): its trees are copied, or it gathers */
    size_t source_count;
    const char *const *source; /* absolute paths; names may have any bytes */
    const char *target;        /* absolute path */
    size_t node_count;         /* 0: all nodes */
    const uint32_t *nodes;     /* the other nodes that take part, ascending */
    /* Filters for names: "- PATTERN" leaves names out, "+ PATTERN" keeps them, and the first pattern that matches
     * decides. Patterns are those of rsync's --exclude and --include. */
    size_t pattern_count;
    const char *const *pattern;
    uint64_t timeout_ms; /* for the whole copy; 0: no limit */

    bool
        into; /* sources keep their names in the folder `target`; otherwise the one source gets this name */
    bool
        remove; /* remove what the target has and the source lacks, except what patterns leave out */
    bool checksum; /* compare contents even if sizes and times are equal */
    bool dry_run;  /* only compare, and report what a copy would do */
    bool verify;   /* only compare contents, and report what differs */
    bool
        as_it_comes; /* put each file in place when it is complete; otherwise all or nothing at each node */
    bool shrink; /* leave out nodes that are down */
    /* Wait for nodes that are down, within timeout_ms. If the daemon that was asked is restarted, the library connects
     * to it again and repeats the request. Not together with `shrink`. */
    bool wait;
    bool missing_ok; /* a source that does not exist counts as an empty one */
    bool
        trace; /* all nodes record what they do; torus_client_survey() with TORUS_SURVEY_TRACE then has it */
    /* Leave out files that change while they are copied, and copy the rest; otherwise the copy fails. Not together with
     * `as_it_comes`. Files that only grow are copied as they were found, in both cases. */
    bool skip_changing;
    bool remove_root;  /* `remove` may have a data root as its target */
    bool copy_links;   /* copy symbolic links as what they lead to */
    bool limit_remove; /* remove_most counts */
    char reserved[2];  /* 0 */
    uint64_t
        remove_most; /* if a node would have to remove more entries, it copies nothing, and has an error */
    /* TORUS_COPY_EXCHANGE: the algorithm that carries the trees, such as "at2", and its mode. It needs all links, so it
     * goes neither with `shrink` nor around links that are down. NULL, "" and TORUS_AUTO let the nodes choose one, and
     * its mode, for each part of the copy. */
    const char *algorithm;
    enum torus_mode mode;
    char reserved_too[4]; /* 0 */
};

/* Sets all fields to their defaults. */
static inline void torus_copy_init(struct torus_copy *copy)
{
    memset(copy, 0, sizeof *copy);
    copy->struct_size = sizeof *copy;
    copy->kind = TORUS_COPY_TO_ALL;
}

enum torus_copy_phase {
    TORUS_COPY_CALLING,   /* the nodes are called together */
    TORUS_COPY_READING,   /* the trees are listed, and with `checksum` or `verify` read */
    TORUS_COPY_COMPARING, /* the nodes find out what is missing */
    TORUS_COPY_MOVING,
    TORUS_COPY_PLACING, /* the files get their final names */
};

/* Returns "calling", "reading"..., or "unknown" for any other value. Static, never NULL. */
TORUS_EXPORT const char *torus_copy_phase_name(enum torus_copy_phase phase);

struct torus_copy_progress {
    enum torus_copy_phase phase;
    uint64_t files;    /* files that the phase has read or compared at the node that was asked */
    uint64_t bytes;    /* bytes of files that have been moved */
    uint64_t bytes_of; /* bytes that will be moved; 0: not known yet */
    const char
        *waits_for; /* with torus_copy.wait: nodes that the copy waits for, for people; "": none */
};

/* Called for every report of the daemon, and about five times a second between reports. `progress` is valid during the
 * call only. Return 0 to continue, or another value to cancel the copy as torus_client_cancel() does; once nodes may
 * put files in place, the copy continues anyway. The callback must not start operations or close the client. */
typedef int torus_copy_progress_fn(void *data, const struct torus_copy_progress *progress);

/* How a copy ended at a node that writes. With torus_copy.dry_run or .verify, numbers are what a copy would do. */
struct torus_copy_node {
    uint32_t rank;
    uint32_t from;              /* the node whose trees these are */
    enum torus_error_code code; /* TORUS_ERROR_NONE: everything is in place */
    const char *error;          /* "" with TORUS_ERROR_NONE */
    uint64_t files;             /* in the source: regular files, hard links included */
    uint64_t folders;
    uint64_t links; /* symbolic links */
    /* Entries of any kind. */
    uint64_t added, changed, removed, unchanged;
    uint64_t bytes;          /* of all files, without holes */
    uint64_t bytes_missing;  /* of these, bytes that were not there */
    uint64_t not_owned;      /* entries whose owner could not be set */
    uint64_t not_attributed; /* entries with extended attributes that the file system refuses */
    const char *first;       /* a path that differs: the first one; "": none */
    uint64_t
        grown; /* with torus_copy.verify: changed files that have grown since: their beginning is there */
    /* With torus_copy.dry_run: paths below the target that would be removed, the first ones if there are many;
     * printable like torus_copy_result.first_left_out. */
    size_t going_count;
    const char *const *going;
};

struct torus_copy_result {
    const char *id;
    size_t node_count;
    const struct torus_copy_node *const *node; /* by rank, then by `from` */
    uint64_t bytes_sent;          /* of files, each byte once, however many nodes lacked it */
    uint64_t bytes_all;           /* of all files in the sources */
    uint64_t nanoseconds;         /* the whole copy */
    uint64_t compare_nanoseconds; /* of these, until it was known what was missing */
    uint64_t left_out;            /* sockets, FIFOs and devices, which are not copied */
    /* The path of one of them, or "". Control characters, backslashes and bytes that are not UTF-8 are written as \xHH
     * (two hexadecimal digits). */
    const char *first_left_out;
    uint32_t attempts; /* 1, or more if links or nodes went down */
    size_t absent_count;
    const uint32_t *absent; /* with torus_copy.shrink: nodes that were left out; ascending */
    uint64_t
        skipped; /* with torus_copy.skip_changing: files that changed during the copy, and were left out at all nodes */
    uint64_t links_out; /* symbolic links that lead to places which the copy does not have */
    const char *first_link_out;
    const char *first_skipped; /* the path of one of them, printable like first_left_out; or "" */
    const char *algorithm; /* the algorithm that carried most of the files; "": nothing was moved */
    enum torus_mode mode;  /* the mode of that algorithm; TORUS_MODE_ANY if there is none */
    /* For which the routes were found; NULL: all links were taken for equal. A copy to all nodes has bounds, for the time of
     * a byte that all nodes lack. */
    const struct torus_link_rates *link_rates;
};

/* Copies trees of files. Waits until all nodes that take part have put everything in place, or have failed.
 * `progress` may be NULL; `data` is passed to it.
 *
 * A copy is delivered all or nothing at each node, not at all nodes together. Returns 0 with a *result that the caller
 * frees with torus_copy_result_free(), also if nodes have failed: look at the code of each node. Returns -1 with *error
 * set if the copy has failed as a whole. In both cases, what has arrived at nodes that do not have everything stays
 * there for a day, and the next copy to the same target does not send it again. */
TORUS_EXPORT int torus_client_copy(struct torus_client *client, const struct torus_copy *copy,
                                   torus_copy_progress_fn *progress, void *data,
                                   struct torus_copy_result **result, struct torus_error *error);
TORUS_EXPORT void torus_copy_result_free(struct torus_copy_result *result); /* NULL does nothing */

/* The same without waiting; see torus_client_start_status(). `data` is passed to `progress` and `done`. An invalid
 * request fails at once with TORUS_ERROR_USAGE. */
TORUS_EXPORT int torus_client_start_copy(struct torus_client *client, const struct torus_copy *copy,
                                         torus_copy_progress_fn *progress,
                                         struct torus_copy_result **result, torus_done_fn *done,
                                         void *data, struct torus_error *error);

#ifdef __cplusplus
}
#endif

#endif
