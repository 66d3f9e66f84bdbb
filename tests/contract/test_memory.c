/* Memory runs out at every allocation in turn: the result is an error, nothing leaks (leak checkers
 * watch), and the next attempt with enough memory succeeds as usual. Also: how much memory is
 * allocated. */
#include <malloc.h>

#include "client/theory/simulate.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/lib/schedule/plan.h"
#include "daemon/lib/schedule/verify.h"
#include "tests/support/cmocka.h"

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED true
#else
#define SANITIZED false
#endif

static unsigned allowed = UINT32_MAX; /* allocations before the one that fails */

static size_t held, most_held; /* bytes */

void *__real_calloc(size_t count, size_t size);
void *__real_reallocarray(void *old, size_t count, size_t size);
void __real_free(void *memory);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size);
void __wrap_free(void *memory);

static void *hold(void *memory)
{
    held += malloc_usable_size(memory);
    most_held = held > most_held ? held : most_held;
    return memory;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return allowed-- == 0 ? NULL : hold(__real_calloc(count, size));
}

void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
    if (allowed-- == 0)
        return NULL;
    held -= malloc_usable_size(old);
    return hold(__real_reallocarray(old, count, size));
}

void __wrap_free(void *memory)
{
    held -= malloc_usable_size(memory);
    __real_free(memory);
}

static int try_plan(const struct torus *t, const struct algorithm *a, struct error *e)
{
    struct plan p;
    int rc = plan_build(&p, t, a, 7, e);
    if (rc == 0)
        plan_free(&p);
    return rc;
}

static int try_peak(const struct torus *t, const struct algorithm *a, struct error *e)
{
    uint32_t peak = 0;
    int rc = plan_peak_transit(t, a, &peak, e);
    assert_true(rc != 0 || peak > 0);
    return rc;
}

static int try_verify(const struct torus *t, const struct algorithm *a, struct error *e)
{
    struct schedule_report r;
    return schedule_verify(t, a, &r, e);
}

static int try_simulation(const struct torus *t, const struct algorithm *a, struct error *e)
{
    uint64_t ticks = 0;
    return simulate_stream(t, a, &ticks, e);
}

static int try_broadcast(const struct torus *t, const struct algorithm *a, struct error *e)
{
    struct simulation s = {
        .streaming = true, .switching = 1, .segment = 4, .place = SIMULATE_AT_INPUT};
    struct simulate_report r;
    return simulate_schedule(t, a, &s, &r, e);
}

/* Steps, with worms and one port. */
static int try_steps(const struct torus *t, const struct algorithm *a, struct error *e)
{
    struct simulation s = {
        .timed = {.switching = TIMED_WORMHOLE, .ports = 1, .startup = 3, .buffer = 2},
        .segment = 4};
    struct simulate_report r;
    return simulate_schedule(t, a, &s, &r, e);
}

static void fails_at_each(const char *algorithm,
                          int (*attempt)(const struct torus *, const struct algorithm *,
                                         struct error *))
{
    struct torus t;
    unsigned failures = 0;

    assert_int_equal(torus_parse(&t, "8x12", NULL), 0);
    for (;; failures++) {
        struct error e = {.code = ERROR_NONE};
        allowed = failures;
        int rc = attempt(&t, algorithm_find(algorithm), &e);
        if (rc == 0)
            break;
        assert_fails(rc, e, ERROR_MEMORY, "");
    }
    assert_in_range(failures, 4, 100);
}

TEST(plans)
{
    fails_at_each("at2", try_plan);
    fails_at_each("direct", try_plan);
    fails_at_each("balanced", try_plan);
    fails_at_each("tree", try_plan);
}

TEST(peaks)
{
    fails_at_each("at2", try_peak);
    fails_at_each("balanced", try_peak);
}

TEST(reports)
{
    fails_at_each("at2", try_verify);
    fails_at_each("direct", try_verify);
    fails_at_each("balanced", try_verify);
}

TEST(detours)
{
    struct error e = {.code = ERROR_NONE};
    struct detour *detour = NULL;
    struct damage damage;
    struct torus t;
    unsigned failures = 0;

    allowed = UINT32_MAX;
    assert_int_equal(torus_parse(&t, "4x5", NULL), 0);
    assert_int_equal(damage_parse(&damage, &t, "3:+0,7", &e), 0);
    for (; (allowed = failures, detour_new(&detour, &damage, &e)) != 0; failures++)
        assert_int_equal(e.code, ERROR_MEMORY);
    assert_in_range(failures, 10, 100);
    allowed = 3;
    detour_find_bound(detour);
    assert_true(detour_bound(detour) <= 0);
    allowed = UINT32_MAX;
    detour_find_bound(detour);
    assert_true(detour_bound(detour) > 0);
    detour_free(detour);
    assert_int_equal(damage_parse_rates(&damage, "6:-1=0.4", true, &e), 0);
    for (failures = 0; (allowed = failures, detour_new(&detour, &damage, &e)) != 0; failures++)
        assert_int_equal(e.code, ERROR_MEMORY);
    assert_in_range(failures, 10, 100);
    for (unsigned room = 3; room < 12;
         room++) { /* not enough for the ways or the lengths: no bound, or a lower one */
        allowed = room;
        detour_find_bound(detour);
    }
    allowed = UINT32_MAX;
    detour_find_bound(detour);
    assert_true(detour_bound(detour) > 0);
    detour_free(detour);
    damage_free(&damage);
}

/* On 32x32, a node's plan fits into 1 MiB for each segment of a block with every algorithm that
 * runs in steps, and into twice that if the blocks that pass the node take more. */
TEST(plans_are_small)
{
    struct torus t;
    unsigned built = 0;

    if (SANITIZED)
        skip(); /* would take long, and count the same bytes */
    allowed = UINT32_MAX;
    assert_int_equal(torus_parse(&t, "32x32", NULL), 0);
    for (size_t i = 0; i < algorithm_count(); i++) {
        const struct algorithm *a = algorithm_at(i);
        struct plan p;
        struct error e;

        if (a->streaming || algorithm_accepts(a, &t, NULL) != 0)
            continue;
        allowed = UINT32_MAX;
        most_held = held;
        size_t before = held;
        if (plan_build(&p, &t, a, 434, &e) != 0)
            fail_msg("%s: %s", a->name, e.text);
        if (most_held - before > (size_t)a->segments << 20 &&
            most_held - before > 2 * sizeof *p.block * p.blocks)
            fail_msg("%s: %zu MiB", a->name, (most_held - before) >> 20);
        plan_free(&p);
        assert_int_equal(held, before);
        built++;
    }
    assert_true(built >= 14);
}

TEST(simulations)
{
    fails_at_each("stream", try_simulation);
    fails_at_each("balanced", try_broadcast);
    fails_at_each("at2-1port", try_steps);
}
