#include "daemon/torusd/exchange/choose_routes.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/algorithms/family.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/torusd/exchange/job.h"
#include "daemon/torusd/exchange/link_costs.h"
#include "daemon/torusd/exchange/membership.h"
#include "daemon/torusd/planning/schedule_store.h"

int choose_candidates(struct exchanges *exchanges, const struct block_sizes *sizes, enum mode mode,
                      struct candidate *list, unsigned *count, struct link_rates *links,
                      struct error *e)
{
    struct predict_costs costs = exchanges_costs(exchanges);
    struct damage d;

    costs.burst = 0; /* measurements already include bursts */
    if (membership_view(exchanges, (struct left_out){.down = false}, &d, e) != 0)
        return -1;
    int result = membership_add_rates(exchanges, &d, e);
    const bool rated = d.rate != NULL && damage_is_whole(&d);
    if (result == 0)
        result = choose_from(exchanges->planner, &d.torus, &costs, rated ? &d : NULL, sizes, mode,
                             list, count, e);
    if (result > 0 && links != NULL) {
        link_rates_of(links, rated ? &d : NULL);
        link_rates_bound_exchange(links,
                                  rated ? planner_find_detour(exchanges->planner, &d) : NULL);
    }
    damage_free(&d);
    return result;
}

void choose_learn(const struct attempt *x)
{
    const struct predict_costs costs = exchanges_costs(x->exchanges);
    const struct repetitions *r = &x->job->repetitions;

    /* What slow links cost is not a property of the algorithm. */
    if (x->exchanges->rates.used == NULL && x->spec.operation == OPERATION_EXCHANGE &&
        !spec_has_folders(&x->spec) && !spec_has_schedule(&x->spec) && r->each != NULL &&
        r->kept == 0 && x->mode == (x->algorithm->streaming ? MODE_STREAMING : MODE_STEPPED))
        choose_learn_times(x->exchanges->planner, &costs,
                           &(struct session_times){x->algorithm, x->spec.block_bytes, r->each,
                                                   x->spec.repeat, x->rounds.all_ns});
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

/* Files keep the rates, because their sizes become known when all nodes have the routes. This holds in steps, too: the
 * times of found routes have been counted for streaming only. */
static bool may_be_unrated(const struct spec *s)
{
    return s->operation == OPERATION_EXCHANGE && strcmp(s->algorithm, SPEC_AUTO) == 0 &&
           !spec_has_folders(s) && s->mode != MODE_STEPPED;
}

int choose_whether_rated(const struct attempt *x, struct damage *d, struct error *e)
{
    const struct block_sizes sizes = sizes_of(x);
    struct candidate list[CHOOSE_MOST];
    unsigned count = 0;
    int result = 1;

    if (d->rate == NULL || !damage_is_whole(d) || !may_be_unrated(&x->spec))
        return 1;
    result = choose_candidates(x->exchanges, &sizes, x->spec.mode, list, &count, NULL, e);
    if (result > 0 && count > 0 && list[0].algorithm != algorithm_find(FOUND_NAME))
        damage_clear_rates(d);
    return result;
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
        result = choose_candidates(x->exchanges, &sizes, x->mode, list, &count, NULL, e);
    else if (x->spec.operation == OPERATION_ALLGATHER || x->spec.operation == OPERATION_BROADCAST)
        result = choose_gather(x, list, &count, e);
    if (result <= 0)
        return result;
    if (count > 0)
        x->mode = list[0].mode;
    if (count > 0 && !torus_is_plain(t) && list[0].algorithm == algorithm_find(FOUND_NAME))
        return choose_found(x, e);
    x->algorithm = count > 0 ? list[0].algorithm : choose_first(t, x->spec.operation);
    if (x->algorithm == NULL)
        return error_set(e, ERROR_REFUSED,
                         "no algorithm for the operation %s works on a torus of %s",
                         schedule_operation_name(x->spec.operation), torus_format(t, dims));
    return 1;
}

static int choose_best(struct attempt *x, const struct family *f, struct error *e)
{
    const struct predict_costs costs = exchanges_costs(x->exchanges);

    x->algorithm = choose_of_family(f, torus_of(x), &costs, sizes_of(x).mean);
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
