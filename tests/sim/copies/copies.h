/* Copies that clients ask simulated nodes for, and how they must end.
 *
 * When a copy is asked for, the trees that its targets shall become are noted. When its client is told of its end, and
 * at the end of the test, the targets are compared: a target where the copy has succeeded is that tree, a target where
 * it has failed is as it was before, or, after a copy that failed as a whole, either of them. With as_it_comes each
 * file is one of them. */
#pragma once

#include "daemon/torusd/copy/copy.h"
#include "tests/sim/copies/store.h"
#include "tests/sim/sim.h"

#define SIM_COPY_VERSIONS 4u

/* A target of a copy. */
struct sim_copy_place {
    uint32_t node, from;
    char *target;
    struct sim_tree before;
    struct sim_tree wanted[SIM_COPY_VERSIONS]; /* more than one if sources have changed meanwhile */
    uint32_t versions;                         /* 0: the source does not exist */
};

struct sim_copy {
    struct sim_copy *next;
    struct sim *sim;
    uint32_t asked;              /* the node */
    struct copy_request request; /* a copy */
    struct copy *copy;           /* NULL: refused, ended, cancelled, or its node has died */
    bool ended, left;            /* left: its client hears no more */
    bool in_time;                /* its client has stopped it before any node put it in place */
    bool calling;                /* a function of copy.h runs */
    bool settled;              /* its targets have been changed since: they are no longer checked */
    struct error error;        /* code ERROR_NONE: it has ended, with */
    struct copy_result result; /* copied, with what it points to */
    struct sim_copy_place *place;
    uint32_t places;
    uint64_t asked_at, ended_at;
    unsigned harms; /* sim_harms() when it was asked */
};

/* Asks a node. The request is copied; the copy is valid until sim_free(). */
struct sim_copy *sim_copy_start(struct sim *sim, uint32_t asked,
                                const struct copy_request *request);
/* The client asks to stop; if it is too late, it goes away. */
void sim_copy_cancel(struct sim_copy *copy);
/* Runs until the client has been told of the end. Fails the test if that takes longer than `most`. */
void sim_copy_run(struct sim_copy *copy, uint64_t most);
/* Whether the asked node lists the copy. */
bool sim_copy_is_listed(const struct sim_copy *copy);
/* Starts a copy, and runs it to its end. */
struct sim_copy *sim_copy_whole(struct sim *sim, uint32_t asked,
                                const struct copy_request *request);
/* Starts a copy with default options, from `source` of the asked node to all others. */
struct sim_copy *sim_copy_to_all(struct sim *sim, uint32_t asked, const char *source,
                                 const char *target);
/* Call this when sources have changed, as by sim_copy_change_source(): they may arrive in their old or new state. */
void sim_copies_sources_changed(struct sim *sim);

/* Call this before a test changes targets itself: copies that have ended are no longer checked. */
void sim_copies_settle(struct sim *sim);

/* The outcome at a node; NULL: there is none. */
const struct copy_outcome *sim_copy_outcome(const struct sim_copy *copy, uint32_t node,
                                            uint32_t from);
/* Fails the test unless the copy has succeeded at all places, except those of absent nodes. */
void sim_copy_must_succeed(const struct sim_copy *copy);
/* Fails the test unless the copy has failed as a whole with this code. */
void sim_copy_must_fail(const struct sim_copy *copy, enum error_code code);
/* Bytes of the ranges that the copy had to move, at least: the most that any place lacked. */
uint64_t sim_copy_lacked(const struct sim_copy *copy);

/* Whether no node takes part in a copy any more, nothing of it is open, and no group is left. */
bool sim_copies_are_quiet(struct sim *sim, void *unused);
/* Waits until that is so, and checks all targets. Fails the test if it takes too long. */
void sim_copies_check(struct sim *sim);

/* --- for the simulator --- */

/* Call this when a node has died: its clients hear nothing more. */
void sim_copies_lose_node(struct sim *sim, uint32_t rank);
void sim_copies_free(struct sim *sim);

/* Notes the targets of a copy, and what they shall become. */
void sim_copy_note_places(struct sim_copy *copy);
/* Notes what the targets shall become, if the sources are copied now. */
void sim_copy_note_wanted(struct sim_copy *copy);
void sim_copy_free_places(struct sim_copy *copy);
/* Checks the targets when the client has been told of the end, or later. */
void sim_copy_check_places(const struct sim_copy *copy);

/* A random copy, and random trees for it on the nodes' disks, up to `files` files of `most` bytes in each. `number`
 * makes the paths differ from those of other copies. The caller gives the request to sim_copy_draw_free(). */
struct copy_request *sim_copy_draw(struct sim *sim, uint32_t number, uint32_t files, uint64_t most,
                                   struct chance *c);
void sim_copy_draw_free(struct copy_request *request);
/* Changes the sources of a random reader of the copy. */
void sim_copy_change_sources(struct sim *sim, const struct copy_request *request, struct chance *c);

/* --- for all of these --- */

/* A path of a request with a rank for %r, and below it another rank (SIM_NO_RANK: none); malloc'ed. */
#define SIM_NO_RANK UINT32_MAX
char *sim_copy_path(const char *path, uint32_t rank, uint32_t below);
/* The nodes that read, and write, by number; return false behind the last pair. Absent nodes are included. */
bool sim_copy_pair(const struct copy_request *request, uint32_t nodes, uint32_t number,
                   uint32_t *reader, uint32_t *writer);
/* What the reader's sources for a writer are: their manifest as a tree. False if a source does not exist. */
bool sim_copy_sources(struct sim *sim, const struct copy_request *request, uint32_t reader,
                      uint32_t writer, struct sim_tree *tree);
