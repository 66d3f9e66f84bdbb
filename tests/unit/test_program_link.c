/* What a program does to the page that it shares with its daemon. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client/libtorus/program_link.h"

/* Nobody looks at the page. */
static void test_quiet_calls(void **state)
{
    static struct program_page page;
    struct program_link link = {.doorbell = eventfd(0, EFD_NONBLOCK), .page = &page};
    uint64_t rings;

    (void)state;
    assert_true(link.doorbell >= 0);
    assert_false(link_submit(&link, true));
    assert_int_equal(atomic_load(&page.submitted), 1);
    assert_int_equal(read(link.doorbell, &rings, sizeof rings), -1);
    link_ring(&link);
    assert_int_equal(read(link.doorbell, &rings, sizeof rings), sizeof rings);
    atomic_store(&page.rung, 0);
    /* The daemon asks for calls: this once. */
    atomic_store(&page.wanted, 1);
    assert_true(link_submit(&link, true));
    assert_int_equal(read(link.doorbell, &rings, sizeof rings), sizeof rings);
    atomic_store(&page.rung, 0);
    assert_false(link_submit(&link, true));
    assert_int_equal(read(link.doorbell, &rings, sizeof rings), -1);
    /* Others are not quiet, and rung for once until the daemon has looked. */
    assert_true(link_submit(&link, false));
    assert_true(link_submit(&link, false));
    assert_int_equal(atomic_load(&page.submitted), 5);
    assert_int_equal(read(link.doorbell, &rings, sizeof rings), sizeof rings);
    assert_int_equal(rings, 1);
    (void)close(link.doorbell);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_quiet_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
