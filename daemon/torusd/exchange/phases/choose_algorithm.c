#include "daemon/torusd/exchange/phases/choose_algorithm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/algorithms/families.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/torusd/exchange/record/avoided.h"
#include "daemon/torusd/exchange/record/job.h"
#include "daemon/torusd/exchange/record/link_costs.h"
#include "daemon/torusd/planning/planner.h"
#include "daemon/torusd/planning/schedule_store.h"

#define LEARN_LEAST 5u  /* fewest exchanges of a session from which this node learns */
#define LEARNT_REACH 4u /* octaves of the block size to which a measurement applies */

/* Inserts a candidate behind those that are faster. Of two equal candidates the later one in the registry comes
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

/* Adds the time that links need after a burst before they can carry the next exchange of a session. A single
 * exchange does not pay for that, but in a session each exchange waits. hypot() nearly ignores small delays,
 * and counts large ones fully. */
static double with_recovery_time(struct exchanges *exchanges, double median, double sustained)
{
    double pause = fmax(sustained - median, 0);

    exchanges->least_pause =
        fmin(exchanges->least_pause, pause); /* the pause that the waves alone cause */
    return hypot(median, pause - exchanges->least_pause);
}

/* Returns the median of a session's times, in seconds; 0 if there is no memory. */
static double median_of(const struct attempt *x)
{
    uint64_t *each = calloc(x->spec.repeat, sizeof *each);
    double median;

    if (each == NULL)
        return 0;
    memcpy(each, x->job->repetitions.each, x->spec.repeat * sizeof *each);
    qsort(each, x->spec.repeat, sizeof *each, compare_times);
    median = (double)each[x->spec.repeat / 2] / 1e9;
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

void choose_learn(const struct attempt *x)
{
    struct exchanges *exchanges = x->exchanges;
    const struct predict_costs costs = exchanges_costs(exchanges);
    const struct algorithm *a = listed_algorithm(x->algorithm);
    size_t index = 0;

    if (x->spec.operation != OPERATION_EXCHANGE || spec_has_folders(&x->spec) ||
        spec_has_schedule(&x->spec) || x->job->repetitions.each == NULL ||
        x->spec.repeat < LEARN_LEAST || x->job->repetitions.kept > 0 || x->spec.block_bytes == 0 ||
        x->mode != (x->algorithm->streaming ? MODE_STREAMING : MODE_STEPPED))
        return;
    while (algorithm_at(index) != NULL && algorithm_at(index) != a)
        index++;
    if (algorithm_at(index) == NULL)
        return; /* "auto" does not choose from this algorithm */
    struct counted *c = &planner_counted(exchanges->planner)[index];
    struct learnt *l = &c->learnt[octave_of(x->spec.block_bytes) % PLANNER_OCTAVES], before = *l;
    double median = median_of(x);
    if (median <= 0)
        return; /* no memory: nothing is learnt */
    l->block_bytes = x->spec.block_bytes;
    l->seconds =
        with_recovery_time(exchanges, median, (double)x->rounds.all_ns / 1e9 / x->spec.repeat);
    /* Average with the value before, because one session may have been unusually fast or slow. */
    if (before.seconds > 0 && c->candidate)
        l->seconds =
            (l->seconds + before.seconds * predict_seconds(&c->counts, &costs, l->block_bytes) /
                              predict_seconds(&c->counts, &costs, before.block_bytes)) /
            2;
}

/* Returns the extra seconds of the largest block: its links carry the excess after everything else; with steps,
 * one link after another. */
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
static unsigned collect_candidates(const struct counted *counted, enum mode mode, size_t *index)
{
    unsigned count = 0;

    for (size_t i = 0; i < algorithm_count() && count < CHOOSE_MOST; i++) {
        const struct algorithm *a = algorithm_at(i);
        enum mode its_mode = a->streaming ? MODE_STREAMING : MODE_STEPPED;
        if (counted[i].candidate && a->operation == OPERATION_EXCHANGE &&
            (mode == MODE_OF_ALGORITHM || mode == its_mode))
            index[count++] = i;
    }
    return count;
}

int choose_from(struct planner *planner, const struct torus *t, const struct predict_costs *costs,
                const struct block_sizes *sizes, enum mode mode, struct candidate *list,
                unsigned *count, struct error *e)
{
    double seconds[CHOOSE_MOST], ratio[CHOOSE_MOST];
    size_t index[CHOOSE_MOST];
    struct counted *counted;
    int result = planner_count(planner, &counted, e);

    *count = 0;
    if (result <= 0)
        return result;
    unsigned found = collect_candidates(counted, mode, index);
    for (unsigned i = 0; i < found; i++) {
        const struct counted *c = &counted[index[i]];
        double by_model = predict_unmeasured_seconds(&c->counts, costs, sizes->mean);
        seconds[i] = corrected_seconds(c, costs, sizes->mean);
        ratio[i] = seconds[i] / by_model;
        if (seconds[i] < 0)
            seconds[i] = by_model;
    }
    for (unsigned i = 0; i < found; i++) {
        const struct algorithm *a = algorithm_at(index[i]);
        const struct counted *c = &counted[index[i]];
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

int choose_candidates(struct exchanges *exchanges, const struct block_sizes *sizes, enum mode mode,
                      struct candidate *list, unsigned *count, struct error *e)
{
    struct predict_costs costs = exchanges_costs(exchanges);

    costs.burst = 0; /* measurements already include bursts */
    return choose_from(exchanges->planner, router_torus(exchanges->set.router), &costs, sizes, mode,
                       list, count, e);
}

int choose_gather_from(struct planner *planner, const struct predict_costs *costs,
                       enum operation operation, uint64_t block_bytes, enum mode mode,
                       struct candidate *list, unsigned *count, struct error *e)
{
    bool one = operation == OPERATION_BROADCAST;
    struct counted *counted;
    int result = planner_count(planner, &counted, e);

    *count = 0;
    if (result <= 0)
        return result;
    for (size_t i = algorithm_count();
         i-- > 0;) { /* equal ones end up in the registry's order, stepped first */
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

/* Returns an algorithm for a torus where none could be counted: the first of the registry that can do the operation.
 * On other networks these are `tree` and one-port algorithms; `direct` loads links less. */
static const struct algorithm *first_for(const struct torus *t, enum operation operation)
{
    const struct algorithm *direct = algorithm_find("direct");

    if (!torus_is_plain(t) && operation == OPERATION_EXCHANGE &&
        algorithm_accepts(direct, t, NULL) == 0)
        return direct;
    for (size_t i = 0; i < algorithm_count(); i++) {
        const struct algorithm *a = algorithm_at(i);
        if (a->operation == operation_of_algorithms(operation) &&
            algorithm_accepts(a, t, NULL) == 0)
            return a;
    }
    return NULL;
}

/* Returns the sizes of the blocks that nodes have told. */
static struct block_sizes sizes_of(const struct attempt *x)
{
    uint64_t blocks = (uint64_t)torus_of(x)->nodes * (torus_of(x)->nodes - 1), total;

    if (!spec_has_folders(&x->spec))
        return (struct block_sizes){x->spec.block_bytes, x->spec.block_bytes};
    if (__builtin_add_overflow(x->local.bytes_here, x->local.bytes_below, &total))
        total = UINT64_MAX;
    return (struct block_sizes){blocks > 0 ? total / blocks + (total % blocks != 0) : 0,
                                x->local.largest_block};
}

/* Bytes that a block of files is assumed to have while sizes are unknown. */
#define FILE_BYTES (UINT64_C(1) << 20)

static uint64_t gathered_bytes(const struct attempt *x)
{
    return spec_has_folders(&x->spec) ? FILE_BYTES : x->spec.block_bytes;
}

static int choose_gather(struct attempt *x, struct candidate *list, unsigned *count,
                         struct error *e)
{
    const struct predict_costs costs = exchanges_costs(x->exchanges);

    return choose_gather_from(x->exchanges->planner, &costs, x->spec.operation, gathered_bytes(x),
                              x->mode, list, count, e);
}

/* The root chooses, and names the disjoint trees in the prepare if it has chosen these: other nodes may have other
 * costs. Returns 1 with *out, or -1 with *e. */
static int choose_trees(const struct attempt *x, const struct algorithm **out, struct error *e)
{
    const struct detour *found = x->avoided->detour;
    const struct predict_costs costs = exchanges_costs(x->exchanges);

    *out = detour_gather(found);
    if (strcmp(x->spec.algorithm, FOUND_DISJOINT_NAME) == 0) {
        *out = detour_disjoint(found);
        if (*out == NULL)
            return error_set(e, ERROR_REFUSED,
                             "disjoint finds trees on networks of up to %u nodes, and this one has "
                             "%u: take algorithm auto or trees",
                             DETOUR_DISJOINT_MOST, torus_of(x)->nodes);
    } else if (attempt_is_root(x)) {
        *out = detour_gather_for(found, x->spec.operation == OPERATION_BROADCAST,
                                 x->mode != MODE_STEPPED, &costs, gathered_bytes(x));
    }
    return 1;
}

/* Takes the routes that are found for the attempt's links. */
static int choose_detour(struct attempt *x, struct error *e)
{
    struct avoided *avoided = x->avoided;
    int result = 1;

    if (avoided->detour == NULL)
        result = planner_get_detour(x->exchanges->planner, &avoided->damage, &avoided->detour, e);
    if (result > 0 && x->spec.operation != OPERATION_EXCHANGE)
        return choose_trees(x, &x->algorithm, e);
    if (result > 0)
        x->algorithm = detour_algorithm(avoided->detour);
    return result;
}

/* Takes the routes that are found where nothing is avoided, as the fastest ones. */
static int choose_found(struct attempt *x, struct error *e)
{
    int result = choose_detour(x, e);

    x->avoided->takes_found = result > 0;
    return result;
}

/* Chooses the algorithm for "auto", and the mode if it was left to the algorithm. */
static int choose_fastest(struct attempt *x, struct error *e)
{
    const struct torus *t = torus_of(x);
    const struct block_sizes sizes = sizes_of(x);
    struct candidate list[CHOOSE_MOST];
    char dims[TORUS_TEXT_SIZE];
    unsigned count = 0;
    int result = 1;

    if (x->spec.operation == OPERATION_EXCHANGE)
        result = choose_candidates(x->exchanges, &sizes, x->mode, list, &count, e);
    else if (x->spec.operation == OPERATION_ALLGATHER || x->spec.operation == OPERATION_BROADCAST)
        result = choose_gather(x, list, &count, e);
    if (result <= 0)
        return result;
    if (count > 0)
        x->mode = list[0].mode;
    if (count > 0 && !torus_is_plain(t) && list[0].algorithm == algorithm_find(FOUND_NAME))
        return choose_found(x, e);
    x->algorithm = count > 0 ? list[0].algorithm : first_for(t, x->spec.operation);
    if (x->algorithm == NULL)
        return error_set(e, ERROR_REFUSED,
                         "no algorithm for the operation %s works on a torus of %s",
                         operation_name(x->spec.operation), torus_format(t, dims));
    return 1;
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

static int choose_best(struct attempt *x, const struct family *f, struct error *e)
{
    const struct torus *t = torus_of(x);
    struct offer offer = {exchanges_costs(x->exchanges), sizes_of(x).mean};

    x->algorithm = family_of_degree(f, family_best(f, t, family_price, &offer));
    return x->algorithm != NULL ? 1 : error_set(e, ERROR_MEMORY, "out of memory for a schedule");
}

/* Chooses the schedule that the spec names, once this node has it. The attempt keeps the name after the
 * schedule is gone. */
static int choose_schedule(struct attempt *x, struct error *e)
{
    const struct algorithm *a;
    char *name;
    int result = schedule_ready(x->schedule, &a, e);

    if (result <= 0)
        return result;
    name = strdup(a->name);
    if (name == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    free((char *)(uintptr_t)x->spec.algorithm);
    x->spec.algorithm = name;
    x->algorithm = a;
    return 1;
}

int choose_for(struct attempt *x, struct error *e)
{
    const struct family *family = family_of_best(x->spec.algorithm);
    int result = 1;

    if (x->algorithm != NULL)
        return 1;
    x->mode = x->spec.mode;
    if (avoided_has_routes(x))
        result = choose_detour(x, e);
    else if (spec_has_schedule(&x->spec))
        result = choose_schedule(x, e);
    else if (strcmp(x->spec.algorithm, SPEC_AUTO) == 0)
        result = choose_fastest(x, e);
    else if (family != NULL)
        result = choose_best(x, family, e);
    else
        x->algorithm = algorithm_find(x->spec.algorithm);
    if (result <= 0)
        return result;
    return spec_check_algorithm(&x->spec, torus_of(x), x->algorithm, &x->mode, e) == 0 ? 1 : -1;
}
