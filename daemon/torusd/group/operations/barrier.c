/* Barriers, and what the group itself calls like one. Their waves prove that all members have called. */
#include "daemon/torusd/group/operations/operations.h"

static int check_barrier(struct checked_call *c, const struct members *members, struct error *e)
{
    (void)c, (void)members, (void)e;
    return 0;
}

const struct collective collective_barrier = {
    .compares = COMPARES_SIZE,
    .proves = true,
    .check = check_barrier,
};
const struct collective collective_proof = {
    .compares = COMPARES_SIZE,
    .proves = true,
    .check = check_barrier,
};
const struct collective collective_leave = {
    .compares = COMPARES_SIZE,
    .proves = true,
    .check = check_barrier,
};
