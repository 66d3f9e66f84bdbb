/* Random worlds of the real core. A seed determines everything: the torus, the requests of clients and their times
 * (world.c), and the faults (nemeses.c). A world is played in virtual time (play.c); after every event, at intervals
 * and at the end, invariants are checked (invariants.c). The same seed gives the same trace.
 *
 * Each request and each fault is drawn from a stream of its own, so that any of them can be left out without changing
 * the others. This is how a failing world is made smaller (shrink.c). */
#pragma once

#include "tests/sim/events.h"
#include "tests/sim/programs.h"
#include "tests/sim/sim.h"

#define SWARM_REQUESTS 64u /* bits of a mask */
#define SWARM_FAULTS 24u
#define SWARM_GROUPS 4u
#define SWARM_CALLS 64u
#define SWARM_NEMESES 32u
#define SWARM_COPIES 3u
#define SWARM_LOAD_TIMEOUT                                                                         \
    (200 * SECONDS) /* of exchanges that load links, also of those that are slow all the time */

struct copy_request;
struct sim_copy;
struct swarm_world;
struct swarm_play;

struct swarm_request {
    uint64_t at;                 /* since the torus was whole, or since that one had ended: */
    struct swarm_request *after; /* NULL, or this request repeats that one, with its target */
    uint32_t root;
    struct spec spec;
    char from[64], to[64], barrier[32];

    bool imported; /* its algorithm comes from a file */
    bool hurries;  /* its timeout is short: it may not finish in time */
    /* While it is played: */
    struct sim_request *asked; /* NULL: not requested yet, or its node was dead */
    bool left, seen_ended;     /* left: its client does not wait for the end, */
    bool orphaned;             /* because its node has died */
    uint64_t asked_at, due;
    uint64_t vain_since; /* committed, and all unconfirmed nodes down, since then; or 0 */
    struct swarm_play *play;
};

/* A group, and a program on every node that opens it. */
struct swarm_group {
    uint64_t at;
    char name[16];
    struct sim_call call[SWARM_CALLS];
    struct sim_programs_setup setup;
    bool hurries; /* some calls, or opening it, have a short timeout */
    /* While it is played: */
    struct sim_programs *programs; /* NULL: not opened yet */
    bool over;                     /* the programs are told nothing more */
    char id[48];                   /* at node 0 */
    bool passed;     /* whether a mistake was made, as far as programs have been told */
    unsigned faults; /* programs made to die, to leave or to be wrong */
    struct swarm_play *play;
};

/* A copy of trees. */
struct swarm_copy {
    uint64_t at;
    uint32_t asked_node;
    uint64_t leaves,
        changes; /* its client leaves, or a source changes, this much later; 0: never */
    uint64_t timeout;
    bool hurries; /* its timeout is short */
    /* While it is played: */
    struct copy_request *request;
    struct sim_copy *asked; /* NULL: not yet, or its node was dead */
    bool changed, over;
    uint64_t due;
    struct swarm_play *play;
};

struct swarm_fault;

enum nemesis_kind {
    NEMESIS_ANY,
    NEMESIS_PROGRAMS, /* it concerns programs, so there must be some */
    NEMESIS_RATES,    /* the rates of links, and who knows them */
};

struct nemesis {
    const char *name;
    unsigned weight;
    enum nemesis_kind kind;
    const char *does; /* a description */
    /* The longest duration; 0: it is over at once. */
    uint64_t longest;
    /* NULL: only rank, port, time and amount are drawn. */
    void (*draw)(struct swarm_fault *fault, const struct swarm_world *world, struct chance *c);
    void (*begin)(struct swarm_fault *fault, struct sim *sim);
    void (*end)(struct swarm_fault *fault, struct sim *sim); /* NULL: there is nothing to do */
};

struct swarm_fault {
    const struct nemesis *nemesis;
    uint32_t rank;
    unsigned port;              /* of that node, with a link */
    uint64_t at;                /* since the torus was whole, or since the frame */
    Peer__Head__KindCase frame; /* not 0: when that node has sent `nth` of this kind */
    unsigned nth;
    uint64_t time; /* it lasts */
    uint64_t amount;
    struct sim_call call; /* a mistake */
    unsigned group;
    /* While it is played: */
    struct swarm_play *play;
    bool begun, over;
    uint64_t changed_at; /* when it has begun, or is over */
};

struct swarm_world {
    uint64_t seed;
    const char *dims; /* as --dims has it */
    struct torus torus;
    struct sim_setup setup;
    struct swarm_request request[SWARM_REQUESTS];
    unsigned requests;
    struct swarm_fault fault[SWARM_FAULTS];
    unsigned faults;
    struct swarm_group group[SWARM_GROUPS];
    unsigned groups;
    struct swarm_copy copy[SWARM_COPIES];
    unsigned copies;
    bool rated;                                       /* links change their rates */
    uint64_t no_request, no_fault, no_group, no_copy; /* bits: parts that are left out */
    const char *find; /* NULL, or part of an error that counts as a violation */
};

/* Draws the world of a seed. `dims` is NULL, or a torus or network to use instead of the world's own. `rated`: links
 * change their rates even if the seed says that they do not. */
void swarm_draw(struct swarm_world *world, uint64_t seed, const char *dims, bool rated);
void swarm_print(const struct swarm_world *world);
/* The possible tori of worlds, the smallest first, and then the networks; NULL after the last. */
const char *swarm_dims(unsigned index);

/* networks.c. The network of a seed, as --dims has it; NULL: its world is on a torus. */
const char *swarm_draw_network(uint64_t seed);
/* The possible networks of worlds, the smallest first; NULL after the last. */
const char *swarm_network(unsigned index);
/* The text that torus_parse() reads for `dims`, valid as long as `dims`. Makes the graphs "petersen" and "random", which
 * depends on the seed. */
const char *swarm_network_text(const char *dims, uint64_t seed);
/* Whether all other nodes can still reach each other if any one link or node fails. */
bool swarm_stays_connected(const struct torus *torus);

/* nemeses.c. The table; NULL after the last. */
const struct nemesis *swarm_nemesis(unsigned index);
unsigned swarm_nemesis_index(const struct nemesis *nemesis);
void swarm_draw_fault(struct swarm_fault *fault, const struct swarm_world *world,
                      enum nemesis_kind kind, struct chance *c);

/* The rate that the fault gives a link in this direction, in bytes per second; 0: it does not. */
uint64_t swarm_fault_rate(const struct swarm_fault *fault, uint32_t rank, unsigned port);
/* Whether links carry nothing for a while because of the fault, though they stay up. */
bool swarm_fault_stalls(const struct swarm_fault *fault);

/* rates.c. Decides whether links of a world change their rates, unless `rated` says that already. */
void swarm_draw_rate(struct swarm_world *world);
/* Makes links slow, with faults and with exchanges that show it. */
void swarm_draw_rates(struct swarm_world *world);
/* At intervals. */
void swarm_check_rates(struct swarm_play *play);
/* When everything has healed: what nodes state of links that were slow. */
void swarm_end_rates(struct swarm_play *play);

/* group_draws.c, groups.c, group_ends.c. Draws the groups of a world. */
void swarm_draw_groups(struct swarm_world *world);
/* A random operation on a part of these dimensions; 0: the whole torus. */
struct sim_call swarm_draw_call(const struct swarm_world *world, uint32_t part, struct chance *c);
void swarm_print_groups(const struct swarm_world *world);
void swarm_open_groups(struct swarm_play *play);
/* After every event. */
void swarm_check_groups(struct swarm_play *play);
bool swarm_groups_over(const struct swarm_play *play);
/* When everything has healed: groups that still go on end, and a new one works. */
void swarm_end_groups(struct swarm_play *play);

/* Call this last: checks that a group goes on without one or two nodes that die. */
void swarm_end_deaths(struct swarm_play *play);

/* The outcome of a world, in memory shared between the process that plays it and the process that started it. */
enum swarm_end { SWARM_NOT_ENDED, SWARM_HELD, SWARM_VIOLATED };

struct swarm_outcome {
    enum swarm_end end;
    char invariant[40], text[600];
    uint64_t at; /* nanoseconds of virtual time when it was violated, or the end */
    uint64_t trace, frames;
    uint32_t asked, succeeded, failed, in_doubt;
    uint32_t rerouted,
        resumed;     /* of those that succeeded: retried without links; and in the middle */
    uint32_t shrunk; /* succeeded without some nodes */
    uint32_t groups, groups_done, groups_failed, calls;
    uint32_t copies, copies_done, copies_failed;
    uint32_t copies_retried; /* of those that are done */
    uint32_t begun[SWARM_NEMESES];
};

struct swarm_play {
    struct swarm_world *world;
    struct swarm_outcome *outcome;
    struct sim *sim;
    uint64_t began;          /* the torus was whole */
    uint64_t next_dear;      /* the next check of the expensive invariants */
    unsigned harms;          /* faults so far that may fail an exchange */
    uint64_t apart_at;       /* the last time when a node was down or cut off; or 0 */
    uint64_t torn_at;        /* the last time when more was broken than one node; or 0 */
    bool apart, torn;        /* it is so now, according to */
    uint64_t links[64];      /* what each node says about its links */
    uint64_t asked;          /* requests (bits) whose clients wait */
    uint64_t delays;         /* that faults are to blame for, added up */
    uint64_t frames[64][32]; /* by rank and kind */
    uint32_t stated[64]
                   [TORUS_MAX_PORTS]; /* kbit/s that each node said it sends, at the last look */
    bool healing;                     /* no more faults happen */
    bool tell;                        /* print events on standard error */
};

/* Plays it to the end. On a violation the process exits with status 1, *outcome filled. */
void swarm_play(struct swarm_world *world, struct swarm_outcome *outcome, bool tell);
/* Writes a line to standard error if `tell`. */
void swarm_tell(const struct swarm_play *play, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Call this when the client of a request has heard of the end, or never will: makes the request that waits for that. */
void swarm_ask_again(struct swarm_play *play, const struct swarm_request *request);

/* invariants.c */
void swarm_check_event(struct swarm_play *play);
void swarm_check_dear(struct swarm_play *play);
void swarm_check_ended(struct swarm_play *play, struct swarm_request *request);
/* Ends all faults, waits until no events are left, and checks the final invariants. */
void swarm_check_end(struct swarm_play *play);

/* heap.c: bytes that statically linked code has allocated in this process. */
uint64_t heap_used(void);

/* routes.c: frees the routes that nodes share; call this when there are no nodes. */
void swarm_forget_routes(void);

/* shrink.c. Starts to play a world in a process of its own. Its outcome must be in shared memory, and is complete after
 * swarm_ended() with the status of the process. Standard error goes to the file `log`, unless that is -1. */
void swarm_begin(struct swarm_world *world, struct swarm_outcome *outcome, bool tell, int log,
                 int *pid);
void swarm_ended(struct swarm_outcome *outcome, int status, int log);
/* Both, one after another. */
void swarm_run(struct swarm_world *world, struct swarm_outcome *outcome, bool tell, int log);
/* Leaves out all parts that are not needed to violate the same invariant. */
void swarm_shrink(struct swarm_world *world, struct swarm_outcome *outcome);
/* The options that play this world again; "" if the seed says it all. */
void swarm_options(const struct swarm_world *world, char *text, size_t size);
