#include "daemon/torusd/planning/choose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/algorithms/family.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/detour/detour.h"

#define LEARN_LEAST 5u  /* fewest exchanges of a session from which this node learns */
#define LEARNT_REACH 4u /* octaves of the block size to which a measurement applies */

/* Inserts a candidate behind those that are faster. If two candidates are equal, the later one in the registry comes
 * first: those schedules are made for few messages on real links, the earlier ones are from papers. */
static void insert_candidate(struct candidate *list, size_t count, const struct candidate *one)
{
    size_t at = count;

    while (at > 0 && one->seconds <= list[at - 1].seconds) {
        list[at] = list[at - 1];
        at--;
    }
    list[at] = *one;
}

static unsigned octave_of(uint64_t block_bytes)
{
    return block_bytes < 2 ? 0 : 63u - (unsigned)__builtin_clzll(block_bytes);
}

/* Sets *log_ratio to the logarithm of measured over predicted time at an octave. Returns false if nothing was
 * measured there. */
static bool correction_at(const struct counted *p, const struct predict_costs *costs, unsigned at,
                          double *log_ratio)
{
    const struct learnt *l = &p->learnt[at];

    if (l->seconds > 0)
        *log_ratio = log(l->seconds / predict_seconds(&p->counts, costs, l->block_bytes));
    return l->seconds > 0;
}

/* Returns the predicted seconds, corrected by measurements at the nearest block sizes; below 0 if there are
 * none. */
static double corrected_seconds(const struct counted *p, const struct predict_costs *costs,
                                uint64_t block_bytes)
{
    double seconds = predict_seconds(&p->counts, costs, block_bytes);
    double exact = block_bytes < 1 ? 0 : log2((double)block_bytes), below = 0, above = 0;
    unsigned here = octave_of(block_bytes), low = 0, high = 0;
    bool is_below = false, is_above = false;

    for (unsigned i = 0; i <= LEARNT_REACH; i++) {
        if (!is_below && i <= here && here - i < PLANNER_OCTAVES &&
            correction_at(p, costs, here - i, &below)) {
            is_below = true;
            low = here - i;
        }
        if (!is_above && i > 0 && here + i < PLANNER_OCTAVES &&
            correction_at(p, costs, here + i, &above)) {
            is_above = true;
            high = here + i;
        }
    }
    if (is_below && is_above) {
        double from = log2((double)p->learnt[low].block_bytes);
        double to = log2((double)p->learnt[high].block_bytes);
        double part = to > from && exact > from ? (exact - from) / (to - from) : 0;
        return seconds * exp(below + (above - below) * (part < 1 ? part : 1));
    }
    if (!is_below && !is_above)
        return -1;
    double by_ratio = seconds * exp(is_below ? below : above);
    if (!is_below)
        return by_ratio;
    /* Only smaller blocks were measured. If they were faster than predicted, a burst saved time, and saves
     * larger blocks the same time, not the same fraction. If they were slower, only a part of the delay grows
     * with the block size, so the result is the geometric mean of both corrections. */
    const struct learnt *l = &p->learnt[low];
    double by_difference =
        seconds + l->seconds - predict_seconds(&p->counts, costs, l->block_bytes);
    return by_ratio > by_difference ? sqrt(by_ratio * by_difference) : by_difference;
}

static int compare_times(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* --- learning --- */

/* Adds the time that links need after a burst before they can carry the next exchange of a session. A single
 * exchange does not pay for that, but in a session each exchange waits. hypot() nearly ignores small delays,
 * and counts large ones fully. */
static double with_recovery_time(struct planner *planner, double median, double sustained)
{
    double pause = fmax(sustained - median, 0);

    return hypot(median, pause - planner_least_pause(planner, pause));
}

/* Returns the median of a session's times, in seconds; 0 if there is no memory. */
static double median_of(const struct session_times *times)
{
    uint64_t *each = calloc(times->repeat, sizeof *each);
    double median;

    if (each == NULL)
        return 0;
    memcpy(each, times->each, times->repeat * sizeof *each);
    qsort(each, times->repeat, sizeof *each, compare_times);
    median = (double)each[times->repeat / 2] / 1e9;
    free(each);
    return median;
}

/* Returns the algorithm of the registry that stands for this one: `stream` for routes that were found where nothing is
 * avoided. */
static const struct algorithm *listed_algorithm(const struct algorithm *a)
{
    if (a == NULL || a->detour == NULL || !damage_is_none(detour_damage(a->detour)))
        return a;
    return algorithm_find(FOUND_NAME);
}

void choose_learn_times(struct planner *planner, const struct predict_costs *costs,
                        const struct session_times *times)
{
    const struct algorithm *a = listed_algorithm(times->algorithm);
    size_t index = 0;

    if (times->repeat < LEARN_LEAST || times->block_bytes == 0)
        return;
    while (algorithm_at(index) != NULL && algorithm_at(index) != a)
        index++;
    if (algorithm_at(index) == NULL)
        return; /* "auto" does not choose from this algorithm */
    struct counted *c = &planner_counted(planner)[index];
    struct learnt *l = &c->learnt[octave_of(times->block_bytes) % PLANNER_OCTAVES], before = *l;
    double median = median_of(times);
    if (median <= 0)
        return; /* no memory: nothing is learnt */
    l->block_bytes = times->block_bytes;
    l->seconds = with_recovery_time(planner, median, (double)times->all_ns / 1e9 / times->repeat);
    /* Average with the value before, because one session may have been unusually fast or slow. */
    if (before.seconds > 0 && c->candidate)
        l->seconds =
            (l->seconds + before.seconds * predict_seconds(&c->counts, costs, l->block_bytes) /
                              predict_seconds(&c->counts, costs, before.block_bytes)) /
            2;
}

/* --- choosing --- */

/* Returns the seconds that the largest block takes longer than a block of mean size. Its links carry the excess at the
 * end, all at the same time when streaming, one after another in steps. */
static double skew_seconds(const struct torus *t, const struct predict_counts *counts,
                           const struct predict_costs *costs, const struct block_sizes *sizes)
{
    double more = sizes->largest > sizes->mean ? (double)(sizes->largest - sizes->mean) : 0;
    double legs = counts->streaming ? 1 : fmax(1, fmin(counts->steps, 2.0 * t->dims));

    return costs->bytes_per_second > 0 ? more / counts->segments * legs / costs->bytes_per_second
                                       : 0;
}

/* Returns how different two schedules are; 0: their counts are equal. */
static double schedule_distance(const struct predict_counts *a, const struct predict_counts *b)
{
    return fabs(log((a->steps + a->hops + 1) / (b->steps + b->hops + 1))) +
           fabs(log((a->messages + 1) / (b->messages + 1))) +
           fabs(log((a->blocks + 1) / (b->blocks + 1)));
}

/* Returns the factor that corrects the prediction for an algorithm that was not measured: the `ratio` of the
 * most similar one that was, at least 1. Without that, algorithms would win only because nobody measured them.
 * `ratio`: measured over predicted time; below 0: not measured. */
static double unmeasured_factor(const struct counted *counted, const size_t *index,
                                const double *ratio, unsigned found, unsigned which)
{
    double nearest = INFINITY, result = 1;

    for (unsigned i = 0; i < found; i++) {
        double far = schedule_distance(&counted[index[i]].counts, &counted[index[which]].counts);
        if (ratio[i] >= 0 && far < nearest) {
            nearest = far;
            result = ratio[i];
        }
    }
    return fmax(1, result);
}

/* Collects the algorithms that "auto" chooses from, in the registry's order. */
static unsigned collect_candidates(const struct counted *counted, const struct counted *here,
                                   enum mode mode, size_t *index)
{
    unsigned count = 0;

    for (size_t i = 0; i < algorithm_count() && count < CHOOSE_MOST; i++) {
        const struct algorithm *a = algorithm_at(i);
        enum mode its_mode = a->streaming ? MODE_STREAMING : MODE_STEPPED;
        if (counted[i].candidate && here[i].candidate && a->operation == OPERATION_EXCHANGE &&
            (mode == MODE_OF_ALGORITHM || mode == its_mode))
            index[count++] = i;
    }
    return count;
}

int choose_from(struct planner *planner, const struct torus *t, const struct predict_costs *costs,
                const struct damage *rates, const struct block_sizes *sizes, enum mode mode,
                struct candidate *list, unsigned *count, struct error *e)
{
    double seconds[CHOOSE_MOST], ratio[CHOOSE_MOST];
    size_t index[CHOOSE_MOST];
    struct counted *counted;
    const struct counted *here; /* the counts at these rates */
    int result = planner_count(planner, &counted, e);

    *count = 0;
    here = counted;
    if (result > 0 && rates != NULL)
        result = planner_count_rated(planner, rates, &here, e);
    if (result <= 0)
        return result;
    unsigned found = collect_candidates(counted, here, mode, index);
    for (unsigned i = 0; i < found; i++) {
        const struct counted *c = &counted[index[i]];
        double by_model = predict_unmeasured_seconds(&c->counts, costs, sizes->mean);
        seconds[i] = corrected_seconds(c, costs, sizes->mean);
        ratio[i] = seconds[i] / by_model;
        if (seconds[i] < 0)
            seconds[i] = by_model;
        if (rates != NULL) /* what was measured applies to them as well */
            seconds[i] *=
                predict_unmeasured_seconds(&here[index[i]].counts, costs, sizes->mean) / by_model;
    }
    for (unsigned i = 0; i < found; i++) {
        const struct algorithm *a = algorithm_at(index[i]);
        const struct counted *c = &here[index[i]];
        if (ratio[i] < 0)
            seconds[i] *= unmeasured_factor(counted, index, ratio, found, i);
        const struct candidate one = {
            .algorithm = a,
            .mode = a->streaming ? MODE_STREAMING : MODE_STEPPED,
            .counts = c->counts,
            .piece_bytes = (sizes->mean + c->counts.segments - 1) / c->counts.segments,
            .seconds = seconds[i] + skew_seconds(t, &c->counts, costs, sizes),
        };
        insert_candidate(list, (*count)++, &one);
    }
    return 1;
}

int choose_gather_from(struct planner *planner, const struct predict_costs *costs,
                       enum schedule_operation operation, uint64_t block_bytes, enum mode mode,
                       struct candidate *list, unsigned *count, struct error *e)
{
    bool one = operation == OPERATION_BROADCAST;
    struct counted *counted;
    int result = planner_count(planner, &counted, e);

    *count = 0;
    if (result <= 0)
        return result;
    for (size_t i = algorithm_count();
         i-- > 0;) { /* candidates with equal times stay in the registry's order, stepped first */
        const struct algorithm *a = algorithm_at(i);
        if (!counted[i].candidate || a->operation != OPERATION_ALLGATHER)
            continue;
        for (int streaming = 1; streaming >= 0; streaming--) {
            const struct predict_counts *counts = &counted[i].gather[one][streaming];
            enum mode its_mode = streaming ? MODE_STREAMING : MODE_STEPPED;
            if ((mode != MODE_OF_ALGORITHM && mode != its_mode) || *count == CHOOSE_MOST)
                continue;
            const struct candidate candidate = {
                .algorithm = a,
                .mode = its_mode,
                .counts = *counts,
                .piece_bytes = (block_bytes + a->segments - 1) / a->segments,
                .seconds = predict_unmeasured_seconds(counts, costs, block_bytes),
            };
            insert_candidate(list, (*count)++, &candidate);
        }
    }
    return 1;
}

const struct algorithm *choose_first(const struct torus *t, enum schedule_operation operation)
{
    const struct algorithm *direct = algorithm_find("direct");

    if (!torus_is_plain(t) && operation == OPERATION_EXCHANGE &&
        algorithm_accepts(direct, t, NULL) == 0)
        return direct;
    for (size_t i = 0; i < algorithm_count(); i++) {
        const struct algorithm *a = algorithm_at(i);
        if (a->operation == schedule_operation_of_algorithms(operation) &&
            algorithm_accepts(a, t, NULL) == 0)
            return a;
    }
    return NULL;
}

const struct algorithm *choose_named(const struct spec *spec)
{
    const struct family *family = family_of_best(spec->algorithm);
    return family != NULL ? family->base : algorithm_find(spec->algorithm);
}

/* The values by which the best of a family is chosen. */
struct offer {
    struct predict_costs costs;
    uint64_t block_bytes;
};

static double family_price(const struct family *f, const struct torus *t, uint32_t degree,
                           void *context)
{
    const struct offer *offer = context;
    const struct cost_counts c = f->counts(f, t, degree);
    const struct predict_counts counts = {.segments = 1,
                                          .steps = c.startups,
                                          .hops = c.hops > c.startups ? c.hops - c.startups : 0,
                                          .messages = (double)f->messages(f, t, degree),
                                          .blocks = c.transmission};

    return predict_seconds(&counts, &offer->costs, offer->block_bytes);
}

const struct algorithm *choose_of_family(const struct family *f, const struct torus *t,
                                         const struct predict_costs *costs, uint64_t block_bytes)
{
    struct offer offer = {*costs, block_bytes};

    return family_of_degree(f, family_best(f, t, family_price, &offer));
}
