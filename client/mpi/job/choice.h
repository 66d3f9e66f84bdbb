/* Decides whether the calls of an operation, of about the same size, on a communicator go by MPI or by the torus. Both
 * are timed in early calls, and the faster one gets the calls that follow.
 *
 * Every rank of the communicator has this record and decides by itself. All decide alike: the ranks make the same
 * calls, and at fixed numbers of calls they *ask*, which means that they combine their votes (struct choice_vote) by
 * MPI. Everything that is decided follows from the number of calls and from combined votes. Nothing here uses MPI, so
 * tests can play all ranks of a communicator.
 *
 *     FRESH ----> TIMED ----> SETTLED ----> TIMED ...
 *       |                        ^
 *       +---- known already -----+
 *
 * FRESH: the first calls go by the usual way for their size. A program that makes only a few calls is never timed. Small calls
 * have two questions, of which the first one only asks what is known already.
 * TIMED: calls go by both ways in turn; all ranks begin a timed call together, and its time is that of the slowest
 * rank. SETTLED: calls go by the faster way. From time to time the ranks ask whether the torus has changed; then, and
 * after many more calls, both ways are timed again. Other work on the machines may disturb a timing: the first one is
 * repeated after fewer calls than later ones, and one that contradicts an earlier one is repeated at once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum way { WAY_MPI, WAY_TORUS, WAYS };

/* Classes of sizes: up to 16 bytes, up to 64, up to 256... The last class has all calls of an operation whose sizes
 * differ between the ranks. */
#define CHOICE_CLASSES 16u
#define CHOICE_ANY_SIZE (CHOICE_CLASSES - 1)
#define CHOICE_SAMPLES 5u /* the most timed calls of each way */

/* Returns the class of a number of bytes; and the largest number of bytes in a class. */
unsigned choice_class(size_t bytes);
uint64_t choice_class_end(unsigned size_class);
/* Return the way that calls of this class go before they are timed; and that of nonblocking calls, which are not timed. */
enum way choice_usual(unsigned size_class);
enum way choice_usual_nonblocking(unsigned size_class);

/* What a rank knows of such calls from other communicators. */
struct choice_known {
    bool known;
    enum way way;
    uint64_t time[WAYS]; /* nanoseconds of a call */
    uint32_t changes;    /* torus_group_changes() at that time */
    uint32_t used; /* how many communicators have asked for it; some of them time the calls, too */
};

struct choice {
    enum way way;       /* of calls that are not timed */
    const char *script; /* TIMED: the next steps; NULL: FRESH or SETTLED */
    uint32_t left;      /* FRESH, SETTLED: calls until the next question */
    bool waited;        /* FRESH: the first question has been asked */
    bool settled;       /* a way has been chosen */
    bool decides;       /* TIMED: this timing counts, whatever an earlier one has found */
    uint8_t size_class;
    uint8_t times;       /* how often a question in a row has chosen the same way */
    uint32_t distance;   /* SETTLED: calls between questions */
    uint64_t timed_in;   /* SETTLED: calls until both ways are timed again */
    uint32_t changes;    /* torus_group_changes() when the timing began */
    uint64_t time[WAYS]; /* SETTLED: nanoseconds of a call */
    uint8_t samples[WAYS];
    struct choice_sample {
        uint64_t nanoseconds, bytes;
    } sample[WAYS][CHOICE_SAMPLES]; /* TIMED: of this rank */
};

/* The vote of one rank or, number by number, the maximum of the votes of all ranks (MPI_MAX of uint64_t). */
struct choice_vote {
    uint64_t lacks[WAYS]; /* this rank does not know that this way is faster */
    uint64_t known[WAYS]; /* if it does: nanoseconds of a call, */
    uint64_t confirms;    /* and whether they are to be compared with another timing */
    uint64_t changed;     /* the torus has changed since the last timing */
    uint64_t failed;      /* the torus can no longer be used */
    uint64_t question;    /* nanoseconds of the last question */
    struct choice_sample sample[WAYS][CHOICE_SAMPLES];
};

#define CHOICE_VOTE_NUMBERS (sizeof(struct choice_vote) / sizeof(uint64_t))

void choice_begin(struct choice *c, unsigned size_class);

/* Returns whether such calls have not been timed on this communicator, and no way has been chosen. */
static inline bool choice_is_fresh(const struct choice *c)
{
    return c->script == NULL && !c->settled;
}

/* Returns whether the ranks must ask before the next call. */
static inline bool choice_asks(const struct choice *c)
{
    return c->script != NULL ? *c->script == '?' || *c->script == '!' : c->left == 0;
}

/* Returns the way of the next call. *sample is where its time must be stored, or NULL. */
enum way choice_next(struct choice *c, struct choice_sample **sample);

/* Returns whether the next call goes by MPI without being timed, and without a question before it; and counts it as
 * choice_next() does. */
static inline bool choice_stays(const struct choice *c)
{
    return c->script == NULL && c->way == WAY_MPI && c->left > 0;
}

static inline void choice_count(struct choice *c)
{
    c->left--;
}

/* Returns the vote of this rank. `changes` is the present number of changes of the torus. `known`: from other
 * communicators. The caller fills in `failed` and `question`. */
struct choice_vote choice_vote(const struct choice *c, uint32_t changes,
                               const struct choice_known *known);
/* Adds a choice that has been made to what is known. */
void choice_remember(const struct choice *c, struct choice_known *known);
/* Uses the combined votes. Returns whether they have chosen a way. */
bool choice_decide(struct choice *c, const struct choice_vote *all, uint32_t changes);
