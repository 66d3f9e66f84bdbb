/* Messages between two members (torus/group.h), with the stand-in for the groups of a daemon, which sends 'm'. */
#include "tests/support/cmocka.h"
#include "tests/unit/client_group_fixture.h"

#define TAG_MOST ((UINT64_C(1) << 56) - 1)

CLIENT_GROUP_TEST(test_usage_of_messages)
{
    struct torus_group *g = client_group_open();
    uint8_t buffer[10] = {0};
    uint32_t from;

    FAILS(TORUS_ERROR_USAGE, "no member 6", torus_send(g, buffer, 1, 6, 0, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "no member 9", torus_receive(g, buffer, 1, 9, 0, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "cannot send itself",
          torus_send(g, buffer, 1, 4, 0, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "send area is NULL",
          torus_send(g, NULL, 1, 0, 0, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "receive area is NULL",
          torus_receive(g, NULL, 1, 0, 0, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "`from` is NULL",
          torus_receive_any(g, buffer, 1, 0, NULL, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "is not a tag",
          torus_receive_any(g, buffer, 1, UINT64_C(1) << 56, &from, &client_group_error));
    assert_int_equal(client_group_daemon.groups.calls, 0);
    torus_group_close(g);
}

CLIENT_GROUP_TEST(test_messages_from_any)
{
    struct torus_group *g = client_group_open();
    uint8_t to[1000] = {0};
    uint32_t from = 77;

    OK(torus_receive_any(g, to, 1000, TAG_MOST, &from, &client_group_error));
    assert_int_equal(from, STANDIN_SENDER);
    assert_int_equal(to[999], 'm');
    assert_int_equal(client_group_daemon.groups.last.size, TAG_MOST);
    assert_int_equal(client_group_daemon.groups.last.root, GROUP_ANY_MEMBER);
    torus_group_close(g);
}

/* Messages that nobody sends yet do not hold up other calls. */
CLIENT_GROUP_TEST(test_messages_that_wait)
{
    struct torus_group *g = client_group_open();
    struct torus_call *call[63], *more;
    uint8_t to[63];

    programs_hold_messages(&client_group_daemon, true);
    for (unsigned i = 0; i < 63; i++)
        OK(torus_start_receive(g, &to[i], 1, 5, i, &call[i], &client_group_error));
    for (unsigned i = 0; i < 200; i++)
        OK(torus_barrier(g, &client_group_error));
    OK(torus_start_receive(g, NULL, 0, 5, 63, &more, &client_group_error));
    programs_hold_messages(&client_group_daemon, false);
    for (unsigned i = 0; i < 63; i++)
        OK(torus_call_wait(call[i], &client_group_error));
    OK(torus_call_wait(more, &client_group_error));
    torus_group_close(g);
}
