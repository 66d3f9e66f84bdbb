#include "client/mpi/job/choice.h"

#define FIRST_END 16u  /* the most bytes in class 0 */
#define SMALL_END 4096 /* up to here, timing pays off after many calls only */
#define LARGE 65536    /* from here, a call may take long: it is timed less often */

/* Calls before the first question. A few timed calls of small ones cost as much as 10 to 40 calls by MPI, so after the first
 * question, whether other communicators have timed such calls, there are more calls before they are timed here. */
#define FIRST_SMALL 32u
#define LATER_SMALL 96u
#define FIRST_OTHER 16u

/* Steps of timing. D: a timed call by the present way; O: by the other way, o: not timed, because the first call may
 * need memory. The ways take turns, so that other work on the machines disturbs both. At "?", a clear difference ends the
 * timing. */
#define SCRIPT "oDODO?DODODO!"
#define SCRIPT_LARGE "DOD?ODODD!"

/* Questions may cost 1/500 of the time of all calls; the first timing that repeats another one 1/64 of the calls since
 * then, and each further one half of that. */
#define QUESTIONS 500u
#define TIMINGS 64u
#define DISTANCE_LEAST 16u
#define DISTANCE_UNKNOWN 256u
#define DISTANCE_MOST 4096u
#define TIMES_MOST 6u /* the distance between timings doubles that often */
#define NEVER UINT32_MAX

unsigned choice_class(size_t bytes)
{
    unsigned size_class = 0;

    while (size_class + 1 < CHOICE_ANY_SIZE && bytes > choice_class_end(size_class))
        size_class++;
    return size_class;
}

uint64_t choice_class_end(unsigned size_class)
{
    return (uint64_t)FIRST_END << 2 * size_class;
}

static bool is_large(unsigned size_class)
{
    return choice_class_end(size_class) > LARGE && size_class != CHOICE_ANY_SIZE;
}

static bool is_small(unsigned size_class)
{
    return choice_class_end(size_class) <= SMALL_END;
}

enum way choice_usual(unsigned size_class)
{
    return is_large(size_class) ? WAY_TORUS : WAY_MPI;
}

enum way choice_usual_nonblocking(unsigned size_class)
{
    return is_small(size_class) ? WAY_MPI : WAY_TORUS;
}

void choice_begin(struct choice *c, unsigned size_class)
{
    *c = (struct choice){.way = choice_usual(size_class), .size_class = (uint8_t)size_class};
    c->left = is_small(size_class) ? FIRST_SMALL : FIRST_OTHER;
}

static void begin_timing(struct choice *c, uint32_t changes, bool decides)
{
    c->decides = decides;
    c->script = is_large(c->size_class) ? SCRIPT_LARGE : SCRIPT;
    c->samples[WAY_MPI] = c->samples[WAY_TORUS] = 0;
    c->changes = changes;
}

enum way choice_next(struct choice *c, struct choice_sample **sample)
{
    enum way way = c->way;

    *sample = NULL;
    if (c->script == NULL) {
        c->left--;
        return way;
    }
    if (*c->script != 'D')
        way = way == WAY_MPI ? WAY_TORUS : WAY_MPI;
    if (*c->script++ != 'o') {
        *sample = &c->sample[way][c->samples[way]++];
        **sample = (struct choice_sample){0};
    }
    return way;
}

/* ---- Votes ----------------------------------------------------------------------------------- */

/* Other work on the machines may have disturbed a timing, so the second communicator times again, and the fifth, the
 * 17th... */
static bool is_confirmed(const struct choice_known *known)
{
    const uint32_t n = known->used;

    return (n & (n + 1)) != 0 || __builtin_popcount(n) % 2 != 0;
}

struct choice_vote choice_vote(const struct choice *c, uint32_t changes,
                               const struct choice_known *known)
{
    struct choice_vote v = {.lacks = {true, true}, .changed = c->settled && changes != c->changes};

    if (!c->settled && known->known && known->changes == changes) {
        v.lacks[known->way] = false;
        v.confirms = !is_confirmed(known);
        for (unsigned w = 0; w < WAYS; w++)
            v.known[w] = known->time[w];
    }
    for (unsigned w = 0; w < WAYS; w++)
        for (unsigned i = 0; i < c->samples[w]; i++)
            v.sample[w][i] = c->sample[w][i];
    return v;
}

/* ---- Deciding -------------------------------------------------------------------------------- */

static unsigned magnitude(uint64_t bytes)
{
    return bytes == 0 ? 0 : 64 - (unsigned)__builtin_clzll(bytes);
}

static unsigned between(unsigned a, unsigned b)
{
    return a < b ? b - a : a - b;
}

/* Which of the times of a call counts, from the shortest to the longest. */
enum quantile { SHORTEST, MIDDLE, LONGEST };

/* Returns the time of a call of that many bytes, from those samples whose sizes are the most similar. */
static uint64_t estimate(const struct choice_sample *sample, unsigned samples, uint64_t bytes,
                         enum quantile quantile)
{
    uint64_t sorted[CHOICE_SAMPLES];
    unsigned nearest = UINT32_MAX, count = 0;

    for (unsigned i = 0; i < samples; i++) {
        unsigned far = between(magnitude(sample[i].bytes), magnitude(bytes)), at;
        if (far > nearest)
            continue;
        if (far < nearest)
            count = 0;
        nearest = far;
        for (at = count++; at > 0 && sorted[at - 1] > sample[i].nanoseconds; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = sample[i].nanoseconds;
    }
    return sorted[(count - 1) * quantile / LONGEST];
}

/* Sets the mean time of a call by each way, for calls of the sizes that both ways have carried out. */
static void estimate_both(const struct choice *c, const struct choice_vote *v,
                          enum quantile quantile, uint64_t *time)
{
    for (unsigned w = 0; w < WAYS; w++) {
        uint64_t sum = 0;
        for (unsigned other = 0; other < WAYS; other++)
            for (unsigned i = 0; i < c->samples[other]; i++)
                sum += estimate(v->sample[w], c->samples[w], v->sample[other][i].bytes, quantile);
        time[w] = 1 + sum / (c->samples[WAY_MPI] + c->samples[WAY_TORUS]);
    }
}

static uint64_t limit(uint64_t value, uint64_t least, uint64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Returns how many nanoseconds longer calls take because they are timed, by the last timing. */
static uint64_t timing_cost(const struct choice *c, enum way way, const uint64_t *time,
                            uint64_t question)
{
    const uint64_t chosen = time[way], other = time[way == WAY_MPI ? WAY_TORUS : WAY_MPI];
    unsigned samples = c->samples[WAY_MPI] + c->samples[WAY_TORUS];

    if (samples == 0) /* other communicators have timed such calls */
        samples = 2 * CHOICE_SAMPLES;
    /* The barrier before a timed call costs about as much as a question; there are one or two questions. */
    return (samples + 2) * question + (samples / 2 + 1) * (other > chosen ? other - chosen : 0);
}

static void settle(struct choice *c, enum way way, const uint64_t *time, uint64_t question)
{
    const uint64_t cost = timing_cost(c, way, time, question);

    c->times = c->settled && way == c->way && c->times < TIMES_MOST ? c->times + 1 : c->times;
    if (way != c->way)
        c->times = 0;
    c->way = way;
    c->settled = true;
    c->script = NULL;
    c->time[WAY_MPI] = time[WAY_MPI];
    c->time[WAY_TORUS] = time[WAY_TORUS];
    c->distance = question == 0 ? DISTANCE_UNKNOWN
                                : (uint32_t)limit(QUESTIONS * question / time[way], DISTANCE_LEAST,
                                                  DISTANCE_MOST);
    c->timed_in = limit(cost * TIMINGS / time[way], c->distance, NEVER) << c->times;
    c->left = c->distance;
}

/* After the first timing MPI wins a draw. Later, a way is left only for one that is clearly faster. */
static enum way choose(const struct choice *c, const uint64_t *time)
{
    const enum way other = c->way == WAY_MPI ? WAY_TORUS : WAY_MPI;

    if (c->settled)
        return time[other] < time[c->way] - time[c->way] / 10 ? other : c->way;
    return time[WAY_TORUS] < time[WAY_MPI] - time[WAY_MPI] / 32 ? WAY_TORUS : WAY_MPI;
}

/* Whether the shortest time of one way is half as long again as the longest time of the other. */
static bool is_clear(const struct choice *c, const struct choice_vote *v)
{
    uint64_t shortest[WAYS], longest[WAYS];

    if (c->size_class ==
        CHOICE_ANY_SIZE) /* the first samples may be long by one way and short by the other */
        return false;
    estimate_both(c, v, SHORTEST, shortest);
    estimate_both(c, v, LONGEST, longest);
    return shortest[WAY_TORUS] >= longest[WAY_MPI] * 3 / 2 ||
           shortest[WAY_MPI] >= longest[WAY_TORUS] * 3 / 2;
}

/* Whether all ranks know the faster way from other communicators. */
static bool all_know(const struct choice *c, const struct choice_vote *all, enum way *way)
{
    *way = all->lacks[WAY_MPI] ? WAY_TORUS : WAY_MPI;
    return !c->settled && !all->lacks[*way] && all->known[*way] > 0;
}

/* Whether a way has been chosen before, here or on all ranks for other communicators; and which. */
static bool has_earlier(const struct choice *c, const struct choice_vote *v, enum way *way)
{
    if (!c->settled)
        return all_know(c, v, way);
    *way = c->way;
    return true;
}

/* A timing that contradicts an earlier one is repeated at once: of these three, one may have been disturbed. */
static bool decide_timed(struct choice *c, const struct choice_vote *v)
{
    uint64_t time[WAYS];
    enum way chosen, earlier;

    if (*c->script == '?' && !is_clear(c, v)) {
        c->script++;
        return false;
    }
    estimate_both(c, v, MIDDLE, time);
    chosen = choose(c, time);
    if (!c->decides && has_earlier(c, v, &earlier) && chosen != earlier) {
        begin_timing(c, c->changes, true);
        return false;
    }
    settle(c, chosen, time, v->question);
    return true;
}

void choice_remember(const struct choice *c, struct choice_known *known)
{
    *known = (struct choice_known){.known = true,
                                   .way = c->way,
                                   .time = {c->time[WAY_MPI], c->time[WAY_TORUS]},
                                   .changes = c->changes,
                                   .used = known->changes == c->changes ? known->used : 0};
}

/* Before the first timing. Returns whether a way has been chosen. */
static bool decide_fresh(struct choice *c, const struct choice_vote *all, uint32_t changes)
{
    enum way way;
    const bool is_known = all_know(c, all, &way);

    if (is_known && !all->confirms && !c->waited) {
        c->changes = changes;
        settle(c, way, all->known, all->question);
        return true;
    }
    if (c->waited || !is_small(c->size_class)) {
        begin_timing(c, changes, false);
        return false;
    }
    c->waited = true;
    c->left = LATER_SMALL;
    if (is_known)
        c->way = way;
    return false;
}

bool choice_decide(struct choice *c, const struct choice_vote *all, uint32_t changes)
{
    if (all->failed) {
        c->script = NULL;
        c->left = NEVER;
        return false;
    }
    if (c->script != NULL)
        return decide_timed(c, all);
    if (!c->settled)
        return decide_fresh(c, all, changes);
    c->timed_in = c->timed_in > c->distance ? c->timed_in - c->distance : 0;
    if (all->changed)
        c->times = 0;
    if (all->changed || c->timed_in == 0)
        begin_timing(c, changes, all->changed != 0);
    else
        c->left = c->distance;
    return false;
}
