/* Resources that users share: the rule, its guarantee, and errors. */
#include "daemon/lib/base/shares.h"
#include "tests/support/cmocka.h"

static struct shares *with(enum share share, uint64_t capacity)
{
    struct shares *all = shares_new();

    assert_non_null(all);
    shares_set_capacity(all, share, capacity);
    return all;
}

/* Takes one after another until it is refused. Returns the number. */
static unsigned take_all(struct shares *all, enum share share, uint32_t user)
{
    struct error e;
    unsigned n = 0;

    while (shares_take(all, share, user, 1, &e) == 0)
        n++;
    assert_int_equal(e.code, ERROR_BUSY);
    return n;
}

TEST(test_halves)
{
    struct shares *all = with(SHARE_PROGRAMS, 256);
    static const unsigned expected[] = {128, 64, 32, 16, 8, 4, 2, 1, 1, 0};

    for (uint32_t user = 0; user < sizeof expected / sizeof *expected; user++)
        assert_int_equal(take_all(all, SHARE_PROGRAMS, 1000 + user), expected[user]);
    assert_int_equal(shares_total(all, SHARE_PROGRAMS), 256);
    shares_give(all, SHARE_PROGRAMS, 1001, 64);
    assert_int_equal(shares_of(all, SHARE_PROGRAMS, 1001), 0);
    assert_int_equal(take_all(all, SHARE_PROGRAMS, 2000), 32);
    assert_int_equal(take_all(all, SHARE_PROGRAMS, 1000), 0);
    shares_free(all);
}

TEST(test_what_is_said)
{
    struct shares *all = with(SHARE_PROGRAMS, 4);
    struct error e;

    assert_int_equal(take_all(all, SHARE_PROGRAMS, 1000), 2);
    assert_int_equal(shares_take(all, SHARE_PROGRAMS, 1000, 1, &e), -1);
    assert_contains(e.text, "user 1000 has 2 of 4 ");
    assert_int_equal(take_all(all, SHARE_PROGRAMS, 1001), 1);
    assert_int_equal(take_all(all, SHARE_PROGRAMS, 1002), 1);
    assert_int_equal(shares_take(all, SHARE_PROGRAMS, 1003, 1, &e), -1);
    assert_contains(e.text, "4 of 4 ");
    shares_free(all);
}

TEST(test_bytes)
{
    struct shares *all = with(SHARE_TRANSIT, 1000);
    struct error e;

    assert_int_equal(shares_take(all, SHARE_TRANSIT, 1, 751, &e), -1);
    assert_contains(
        e.text, "user 1 has 0 of 1000 bytes of the memory budget for exchanges, wants 751 more");
    assert_int_equal(shares_total(all, SHARE_TRANSIT), 0);
    assert_int_equal(shares_take(all, SHARE_TRANSIT, 1, 750, &e), 0);
    assert_int_equal(shares_take(all, SHARE_TRANSIT, 1, 1, &e), -1);
    assert_int_equal(shares_limit(all, SHARE_TRANSIT, 2), 187);
    assert_int_equal(shares_take(all, SHARE_TRANSIT, 2, 187, &e), 0);
    assert_int_equal(shares_limit(all, SHARE_TRANSIT, 1), 609); /* it keeps what it has */
    assert_int_equal(shares_of(all, SHARE_TRANSIT, 1), 750);
    assert_int_equal(shares_take(all, SHARE_TRANSIT, 3, UINT64_MAX, &e), -1);
    shares_free(all);

    all = with(SHARE_TRANSIT, 1000); /* if there is room for only one, the rule keeps nobody out */
    shares_set_least(all, SHARE_TRANSIT, 900);
    assert_int_equal(shares_take(all, SHARE_TRANSIT, 1, 900, &e), 0);
    assert_int_equal(shares_take(all, SHARE_TRANSIT, 1, 1, &e), -1);
    assert_int_equal(shares_limit(all, SHARE_TRANSIT, 2), 100);
    shares_free(all);

    all = with(SHARE_TRANSIT, 1000); /* one budget for both */
    shares_set_capacity(all, SHARE_GROUPS, 1000);
    assert_int_equal(shares_take(all, SHARE_GROUPS, 1, 600, &e), 0);
    assert_int_equal(shares_limit(all, SHARE_TRANSIT, 1), 300);
    assert_int_equal(shares_take(all, SHARE_TRANSIT, 1, 300, &e), 0);
    assert_int_equal(shares_limit(all, SHARE_GROUPS, 2), 75);
    shares_free(all);
}

/* Whatever users take and release: with k users, at least capacity / 2^k is free. */
TEST(test_guarantee)
{
    const uint64_t capacity = 1u << 20;
    struct shares *all = with(SHARE_CLIENTS, capacity);
    uint64_t random = 88172645463325252u;
    struct share_holder holder[8];
    struct error e;

    for (unsigned i = 0; i < 200000; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        uint32_t user = (uint32_t)(random >> 8) % 8;
        uint64_t held = shares_of(all, SHARE_CLIENTS, user);
        uint64_t amount = (random >> 16) % (capacity >> (random >> 40) % 20);
        if ((random & 1) != 0)
            (void)shares_take(all, SHARE_CLIENTS, user, amount, &e);
        else
            shares_give(all, SHARE_CLIENTS, user, amount < held ? amount : held);
        size_t users = shares_holders(all, SHARE_CLIENTS, holder, 8);
        uint64_t sum = 0;
        for (size_t k = 0; k < users; k++)
            sum += holder[k].held;
        assert_int_equal(sum, shares_total(all, SHARE_CLIENTS));
        assert_true(capacity - sum >= capacity >> users);
    }
    shares_free(all);
}

TEST(test_names)
{
    for (enum share a = 0; a < SHARES; a++)
        for (enum share b = 0; b < a; b++)
            assert_string_not_equal(shares_name(a), shares_name(b));
}
