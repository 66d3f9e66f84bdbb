/* No memory, at every place where memory is asked for: an error, nothing lost (the leak checkers
 * see to that), and the same result as ever once there is enough. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/schedule/plan.h"
#include "daemon/schedule/simulate.h"
#include "daemon/schedule/verify.h"

static unsigned allowed; /* allocations before the one that fails */

void *__real_calloc(size_t count, size_t size);
void *__real_reallocarray(void *old, size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
    return allowed-- == 0 ? NULL : __real_calloc(count, size);
}

void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
    return allowed-- == 0 ? NULL : __real_reallocarray(old, count, size);
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
        assert_int_equal(rc, -1);
        assert_int_equal(e.code, ERROR_MEMORY);
    }
    assert_in_range(failures, 4, 100);
}

static void plans(void **state)
{
    (void)state;
    fails_at_each("at2", try_plan);
    fails_at_each("yangwang", try_plan);
    fails_at_each("tree", try_plan);
}

static void peaks(void **state)
{
    (void)state;
    fails_at_each("at2", try_peak);
    fails_at_each("yangwang", try_peak);
}

static void reports(void **state)
{
    (void)state;
    fails_at_each("at2", try_verify);
    fails_at_each("yangwang", try_verify);
}

static void simulations(void **state)
{
    (void)state;
    fails_at_each("stream", try_simulation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans),
        cmocka_unit_test(peaks),
        cmocka_unit_test(reports),
        cmocka_unit_test(simulations),
    };
    allowed = UINT32_MAX;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
