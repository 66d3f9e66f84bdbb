/* The names that a daemon uses are those that libtorus knows. */
#include <torus/torus.h>

#undef fail /* of cmocka; libtorus has a function of this name */
#include "client/libtorus/common.h"
#include "daemon/torusd/exchange/exchange.h"
#include "tests/support/cmocka.h"

TEST(test_states)
{
    for (unsigned i = 0; i <= EXCHANGE_IN_DOUBT; i++) {
        if (i == EXCHANGE_STARTING || i == EXCHANGE_WITHDRAWN)
            continue; /* clients are told of a job that waits */
        const char *name = exchange_state_name((enum exchange_state)i);
        enum torus_state public = state_named(name);
        assert_int_not_equal(public, TORUS_STATE_UNKNOWN);
        assert_string_equal(torus_state_name(public), name);
    }
    assert_string_equal(exchange_state_name((enum exchange_state)(EXCHANGE_IN_DOUBT + 1)),
                        "unknown");
}

TEST(test_links)
{
    for (unsigned i = PORT_UNUSED + 1; i <= PORT_UP; i++)
        assert_int_not_equal(link_state_named(port_state_name((enum port_state)i)),
                             TORUS_LINK_UNKNOWN);
}

TEST(test_operations_and_modes)
{
    static const enum schedule_operation operations[] = {OPERATION_EXCHANGE, OPERATION_ALLGATHER,
                                                         OPERATION_BROADCAST, OPERATION_BARRIER};

    for (size_t i = 0; i < 4; i++) {
        enum torus_operation public;
        assert_int_equal(operation_named(schedule_operation_name(operations[i]), &public), 0);
        assert_int_equal((int)public, (int)operations[i]);
    }
    assert_int_equal(mode_named(mode_name(MODE_STEPPED)), TORUS_MODE_STEPPED);
    assert_int_equal(mode_named(mode_name(MODE_STREAMING)), TORUS_MODE_STREAMING);
}
