#include "daemon/torusd/group/record/limits.h"

/* Limits of the whole. All other parts together may use half as much. */
#define EARLY_MOST ((UINT64_C(4) << 20) / GROUP_SCALE)
#define ROUNDS_MOST ((UINT64_C(6) << 20) / GROUP_SCALE)

_Static_assert(GROUP_COPIES <= 8,
               "the copies of all parts fit into the memory that group_memory() adds for them");

/* Chooses the eager limit so that a late member can keep the frames of two calls that it has not made, both for
 * itself and for others: a node's blocks once for each of their hops, or a vector from each neighbour, with
 * digests. Instead of the first call there may be several unproven calls, which together have no more bytes. */
static uint64_t choose_eager(const struct torus *t, bool damaged, uint64_t early)
{
    uint32_t times = torus_diameter(t) / 2 + 1, half = (torus_ports(t) + 1) / 2;

    if (damaged || !torus_is_plain(t)) /* all blocks may have to pass through one node */
        times = t->nodes;

    times = times > half ? times : half;
    times = times > 2 ? times : 2; /* for the copies */
    uint64_t eager = early / 4 / times;
    while (eager > 0 && limits_wire_bytes(eager) > early / 4 / times)
        eager -= eager / 1024 + 1;
    return eager < GROUP_EAGER_MOST ? eager : GROUP_EAGER_MOST;
}

struct limits limits_of(const struct torus *whole, const struct torus *t, bool damaged)
{
    struct limits l = {EARLY_MOST, ROUNDS_MOST, 0};

    if (t->dims < whole->dims) {
        uint32_t parts = (1u << whole->dims) - 2;
        l.early = EARLY_MOST / 2 / parts;
        l.rounds = ROUNDS_MOST / 2 / parts;
    }
    l.eager = choose_eager(t, damaged, l.early);
    return l;
}

uint64_t group_memory(const struct torus *whole)
{
    const uint64_t most = EARLY_MOST + ROUNDS_MOST;
    const uint64_t undo = ROUNDS_MOST / (2 * whole->dims + 1); /* for a large vector in place */
    const uint64_t own = most + undo + GROUP_COPIES * limits_of(whole, whole, false).eager;

    return whole->dims > 1 ? own + (most + undo) / 2 + EARLY_MOST / 2 * GROUP_COPIES / 8 : own;
}
