/* Decisions of the ranks of a communicator about the torus (client/mpi/communicators/claims.h). */
#include "client/mpi/communicators/claims.h"
#include "tests/support/cmocka.h"

/* A lane that all ranks of this communicator know, whose owner has made that many calls. */
static struct lane_votes owned(int owner, int calls)
{
    return (struct lane_votes){
        .yields = 1, .owner = owner, .minus_owner = -owner, .calls = calls, .minus_calls = -calls};
}

static struct votes one_lane(struct lane_votes lane)
{
    return (struct votes){.proceeds = 1, .lanes = 1, .lane = {lane}};
}

/* The decision after the votes `before` at call 4. */
static struct claim then(struct votes before, struct votes now, uint32_t calls)
{
    struct lanes_seen seen = {0};

    claims_remember(&seen, &before, 4);
    return claims_decide(&now, &seen, calls);
}

TEST(a_free_lane_is_taken)
{
    const struct lanes_seen none = {0};
    struct votes v = one_lane(owned(1, 10));

    v.lane[1].free = 1;
    assert_int_equal(claims_decide(&v, &none, 2).kind, CLAIM_LANE);
    assert_int_equal(claims_decide(&v, &none, 2).lane, 1);
    v.proceeds = 0; /* another one asks */
    assert_int_equal(claims_decide(&v, &none, 2).kind, CLAIM_NOTHING);
}

TEST(an_idle_owner_loses_it)
{
    const struct lanes_seen none = {0};
    struct votes idle = one_lane(owned(1, 10)), used = one_lane(owned(1, 11));

    assert_int_equal(claims_decide(&idle, &none, 2).kind, CLAIM_NOTHING); /* nothing to compare */
    assert_int_equal(then(idle, idle, 8).kind, CLAIM_LANE);
    assert_int_equal(then(idle, used, 6).kind, CLAIM_NOTHING);
}

TEST(a_caller_that_is_twice_as_frequent_gets_the_lane)
{
    struct votes before = one_lane(owned(1, 10)), after = one_lane(owned(1, 20));

    assert_int_equal(then(before, after, 4 + 20).kind, CLAIM_NOTHING);
    assert_int_equal(then(before, after, 4 + 22).kind, CLAIM_LANE);
}

/* If both lanes are used, the one that is used less is taken. */
TEST(the_less_used_lane_is_taken)
{
    struct votes before = one_lane(owned(1, 10)), after = one_lane(owned(1, 20));

    before.lane[1] = owned(3, 5);
    after.lane[1] = owned(3, 6);
    assert_int_equal(then(before, after, 4 + 40).kind, CLAIM_LANE);
    assert_int_equal(then(before, after, 4 + 40).lane, 1);
}

static void a_lane_stays_with_an_owner_that(struct votes before, struct votes after)
{
    assert_int_equal(then(before, after, 1000).kind, CLAIM_NOTHING);
}

TEST(it_is_not_taken_where_ranks_differ)
{
    struct votes before = one_lane(owned(1, 10)), after = before;

    after.lane[0].yields = 0; /* is in a call, or has ranks that would not hear of it */
    a_lane_stays_with_an_owner_that(before, after);
    after = before;
    after.lane[0].minus_calls = -11; /* has made more calls at one rank than at another */
    a_lane_stays_with_an_owner_that(before, after);
    after = one_lane(owned(2, 10)); /* is another one than before */
    a_lane_stays_with_an_owner_that(before, after);
    after = before;
    before.lane[0].minus_owner = -2; /* was not the same everywhere */
    a_lane_stays_with_an_owner_that(before, after);
}

TEST(a_lane_is_opened_after_some_use)
{
    struct votes before = one_lane(owned(1, 10)), after = one_lane(owned(1, 20));

    after.opens = 1;
    assert_int_equal(then(before, after, 8).kind, CLAIM_NOTHING);
    assert_int_equal(then(before, after, 16).kind, CLAIM_NEW);
    assert_int_equal(then(before, after, 16).lane, 1);
    after.lane[0] = owned(1, 10); /* idle: the one that there is will do */
    assert_int_equal(then(before, after, 16).kind, CLAIM_LANE);
}

/* Ranks that have never used a lane leave the decision to others. */
TEST(unknown_lanes_are_nobodys)
{
    struct votes v = one_lane((struct lane_votes){.yields = 1,
                                                  .owner = VOTE_ANY,
                                                  .minus_owner = VOTE_ANY,
                                                  .calls = VOTE_ANY,
                                                  .minus_calls = VOTE_ANY});

    assert_int_equal(then(v, v, 1000).kind, CLAIM_NOTHING);
}
