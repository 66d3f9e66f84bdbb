/* What a client asks for. The control socket, the root and all nodes use the same struct, checks and
 * codec. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"
#include "proto/error.h"
#include "proto/spec.pb-c.h"

#define SPEC_AUTO "auto" /* the algorithm that is predicted to be the fastest */
#define SPEC_PATH_SIZE 4096u
#define SPEC_BARRIER_SIZE 64u
#define SPEC_REPEAT_MOST 1000000u
#define SPEC_MEMBERS_SIZE 8192u /* room for spec.members */
#define SPEC_BLOCK_MOST (UINT64_C(1) << 46)
#define SPEC_LONGEST_TIMEOUT (UINT64_C(366) * 24 * 3600 * 1000000000) /* nanoseconds */

enum mode { MODE_OF_ALGORITHM, MODE_STEPPED, MODE_STREAMING };

/* Reads "stepped" or "streaming"; "" leaves the mode to the algorithm. Returns 0, or -1 for any
 * other name. */
int mode_parse(const char *name, enum mode *mode);
/* Returns the name of a mode, as mode_parse() reads it. Static. */
const char *mode_name(enum mode mode);

struct spec {
    const char *schedule; /* "", or instead of an algorithm: the digest of a schedule from a file */
    const char *algorithm; /* all texts are owned by the caller of spec_copy() or spec_unpack() */
    enum mode mode;
    enum schedule_operation operation;
    uint32_t sender;       /* broadcast: rank of the node that has the block */
    const char *barrier;   /* barrier, group: its name; see exchange/entry.c */
    const char *members;   /* group: "", or its members, if they are not all nodes (below) */
    uint64_t block_bytes;  /* size of generated blocks */
    const char *from, *to; /* "": generated blocks, verified; else folders, see
                            * engine/output_store.h */
    bool missing_ok;
    bool replace;   /* old results at `to` are replaced; otherwise there must be none */
    bool shrink;    /* exchange, group: nodes that are down are left out; otherwise they fail it */
    bool wait;      /* nodes that are down are waited for, within the timeout; otherwise they
                      * fail it */
    bool unchecked; /* group: blocks travel without digests */
    bool
        grows; /* group: it reserves memory for large calls and parts as it needs it; set by the root */
    /* Group, at its root: how long it waits for memory of any node until it fails; 0: until its timeout. Other nodes are not
     * told. */
    uint64_t memory_wait_ns;
    bool trace;          /* every node records what it does (daemon/lib/trace) */
    uint32_t repeat;     /* exchanges back to back; 0 means 1 */
    uint64_t timeout_ns; /* limit for all repetitions; 0: a default by sizes and link rate */
};

/* Copies a spec with its texts; NULL becomes "". The caller gives the copy to spec_free().
 * Returns 0, or -1 with *e and nothing to free. */
int spec_copy(struct spec *to, const struct spec *from, struct error *e);
/* Frees the texts of a spec from spec_copy() or spec_unpack(). */
void spec_free(struct spec *s);

/* Reads the message of a client or peer, and makes the texts printable. The caller gives *s to
 * spec_free(). Returns 0, or -1 with *e and nothing to free: no memory, or a value that does not
 * exist (ERROR_USAGE). */
int spec_unpack(struct spec *s, const Torus__Spec *message, struct error *e);

/* Fills a message, which borrows the texts of *s. */
void spec_pack(const struct spec *s, Torus__Spec *message);

/* Checks every rule that does not depend on the node. Returns 0, or -1 with *e. */
int spec_check(const struct spec *s, const struct torus *t, struct error *e);

/* Checks the rules for the chosen algorithm and mode. Sets *mode if it was left to the
 * algorithm. Returns 0, or -1 with *e. */
int spec_check_algorithm(const struct spec *s, const struct torus *t, const struct algorithm *a,
                         enum mode *mode, struct error *e);

/* Whether the root chooses the algorithm by the size of the blocks: among all ("auto") or in a
 * family ("cccube-best", family.h). */
bool spec_leaves_choice(const struct spec *s);

/* Whether the root chooses only when all nodes have told the sizes of their blocks. */
bool spec_chooses_late(const struct spec *s);

/* Whether the operation has no blocks of its own, and starts when a client has entered it at
 * every node. */
static inline bool spec_is_entered(const struct spec *s)
{
    return s->operation == OPERATION_BARRIER || s->operation == OPERATION_GROUP;
}

/* --- members: the text of spec.members is the only one for these nodes: ranks and ranges of ranks, each longer than the
 * nodes between two of them require, in ascending order: "0-2,7" --- */

/* Whether not all nodes are members. */
static inline bool spec_has_members(const struct spec *s)
{
    return s->members[0] != '\0';
}

/* Writes the text for the members of a network of `nodes` nodes; "" if all are. Returns 0, or -1 with *e: there is none,
 * or `size` bytes are not enough. */
int spec_members_write(const bool *is_member, uint32_t nodes, char *text, size_t size,
                       struct error *e);
/* Reads such a text. Sets is_member[], if it is not NULL, for all nodes. Returns 0, or -1 with *e: it is not the text that
 * spec_members_write() makes. */
int spec_members_read(const char *text, uint32_t nodes, bool *is_member, struct error *e);
/* Whether a node is a member, in a valid text or "". */
bool spec_is_member(const struct spec *s, uint32_t rank);
/* The member with the lowest rank; 0 for "" and texts that are not valid. */
uint32_t spec_first_member(const char *members);

static inline bool spec_has_folders(const struct spec *s)
{
    return s->to[0] != '\0';
}

static inline bool spec_has_schedule(const struct spec *s)
{
    return s->schedule[0] != '\0';
}
