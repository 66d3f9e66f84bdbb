/* What a copy is asked to do, the same at all nodes; its check, and its codec (proto/copy.proto.in).
 *
 * In paths, %r stands for the rank of a node and %% for a per cent sign:
 *
 *     COPY_TO_ALL    sources are read at `node`. %r is not allowed in sources; in the target it is the rank of the node
 *                    that writes.
 *     COPY_GATHER    each node that takes part reads its sources (%r: its own rank), and `node` writes them; the target
 *                    must contain %r, the rank of the node that they come from.
 *     COPY_SCATTER   `node` reads, for each node that takes part, the sources, which must contain %r (the rank of that
 *                    node), and that node writes them (%r in the target: its own rank).
 *     COPY_EXCHANGE  each node reads SOURCE/d for each node d, and writes TARGET/s for each node s. There is one source.
 *
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/torusd/planning/spec.h"
#include "proto/error.h"

#define COPY_SOURCES_MOST 256u
#define COPY_PATTERNS_MOST 256u
#define COPY_REQUEST_MOST (16u * 1024u) /* bytes of an encoded request */

enum copy_kind { COPY_TO_ALL = 1, COPY_GATHER, COPY_SCATTER, COPY_EXCHANGE };
#define COPY_KINDS (COPY_EXCHANGE + 1u)

struct copy_request {
    enum copy_kind kind;
    uint32_t node; /* that has the trees; gather: that gets them; exchange: that was asked */
    char **source; /* absolute paths, with %r; names of any bytes except 0 */
    uint32_t sources;
    char *target;
    bool
        into; /* sources keep their names, in the folder `target`; otherwise the one source becomes `target` */
    uint32_t *nodes; /* the other nodes that take part, ascending; NULL: all other nodes */
    uint32_t nodes_count;
    char **
        pattern; /* "- PATTERN" leaves names out, "+ PATTERN" keeps them; the first that matches decides */
    uint32_t patterns;
    bool delete, checksum, dry_run, verify, as_it_comes;
    bool missing_ok;   /* a source that does not exist counts as an empty one */
    bool trace;        /* every node records what it does (daemon/lib/trace) */
    bool shrink, wait; /* as in struct spec */
    /* All nodes must have COPY_MORE_MINOR for these: */
    bool skip_changing; /* files that change meanwhile are left out; otherwise the copy fails */
    bool delete_root;   /* `delete` may have a data root as its target */
    bool copy_links;    /* symbolic links are copied as what they lead to */
    uint64_t
        delete_most; /* 0: no limit; otherwise one more than the entries that may be removed at a node */
    bool told;       /* step reports have what COPY_MORE_MINOR has added; set by the asked node */
    /* All nodes must have COPY_BY_MINOR for these, which are only for COPY_EXCHANGE: */
    char *algorithm; /* that carries the trees; NULL: the group chooses one for each call */
    enum mode mode;
    uint64_t timeout_ns; /* for the whole copy; 0: none */
    uint32_t user;
};

/* Reads an encoded request, which may contain anything, and checks all rules that need no torus. Returns 0 with *r,
 * which the caller gives to copy_request_free(), or -1 with *e and nothing to free. */
int copy_request_unpack(struct copy_request *r, const uint8_t *bytes, size_t length,
                        struct error *e);
/* Encodes a request. Returns 0 with *bytes, which the caller frees, and *length; or -1 with *e: it is too long
 * (ERROR_USAGE), no memory. */
int copy_request_pack(const struct copy_request *r, uint8_t **bytes, size_t *length,
                      struct error *e);
void copy_request_free(struct copy_request *r);
/* As copy_request_unpack(), from a message that has been unpacked. */
struct Torus__CopyRequest; /* proto/copy.pb-c.h */
int copy_request_take(struct copy_request *r, const struct Torus__CopyRequest *message,
                      struct error *e);
/* Copies a request. Returns 0 with *to, which the caller gives to copy_request_free(), or -1 with *e. */
int copy_request_copy(struct copy_request *to, const struct copy_request *from, struct error *e);

/* Checks the rules that depend on the torus: ranks, what they make of paths, and the algorithm. Returns 0, or -1 with
 * *e. */
int copy_request_check(const struct copy_request *r, const struct torus *t, struct error *e);
/* Returns the algorithm of a checked request, and sets *mode; NULL: the group chooses. */
const struct algorithm *copy_request_algorithm(const struct copy_request *r, const struct torus *t,
                                               enum mode *mode);

/* Whether a node reads or writes trees; other nodes only pass data on. */
bool copy_request_takes_part(const struct copy_request *r, uint32_t node);

/* --- paths --- */

#define COPY_PATH_MOST 4000u /* bytes, so that the path has room for ranks */

/* Returns a checked path with `rank` for %r, and then, unless `below` is NULL, "/" and that rank. The caller frees it.
 * Returns NULL without memory. */
char *copy_path_expand(const char *path, uint32_t rank, const uint32_t *below);
