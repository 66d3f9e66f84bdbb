/* Barriers and groups that clients enter while a node goes down: whoever waits for it hears of that, whatever
 * the root has withdrawn in between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/sim/checks.h"
#include "tests/sim/events.h"
#include "tests/sim/programs.h"

static uint64_t first_seed, seeds = 400;

#define NODES 9u
#define VICTIM 1u
/* Far more than it takes to hear that a node is down, and far less than any timeout here. */
#define HEARD_TIME (20 * SECONDS)

static void kill_victim(struct sim *sim, void *unused)
{
    (void)unused;
    sim_kill(sim, VICTIM, SIM_CRASH);
}

/* At a moment when some have entered and others have not. */
static struct sim *new_sim(uint64_t seed)
{
    const struct sim_setup setup = {.dims = "3mx3m",
                                    .seed = seed,
                                    .latency = 100 * MICROSECONDS,
                                    .rate = 12500000,
                                    .chop = true};
    struct sim *sim = sim_new(&setup);

    sim_run_until_whole(sim);
    sim_at(sim, sim_now(sim) + chance_below(sim_chance(sim), 1 * MILLISECONDS), kill_victim, NULL);
    return sim;
}

static void a_group_is_opened(void **state)
{
    static const struct sim_call call = {.operation = GROUP_BARRIER};

    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct sim *sim = new_sim(seed);
        const struct sim_programs_setup setup = {
            .name = "g", .call = &call, .calls = 1, .seed = seed, .depth = 1, .pause = 2000000};
        struct sim_programs *programs = sim_programs_new(sim, &setup);
        if (!sim_programs_run(programs, HEARD_TIME))
            sim_violated(sim, "entered", "a program waits for a node that is down");
        sim_programs_free(programs);
        sim_free(sim);
    }
}

/* When each client comes to the barrier. */
struct arrivals {
    struct sim_request *request[NODES];
    unsigned next;
};

static void enter(struct sim *sim, void *context)
{
    static const struct spec spec = {.operation = OPERATION_BARRIER,
                                     .algorithm = SPEC_AUTO,
                                     .from = "",
                                     .to = "",
                                     .barrier = "b",
                                     .timeout_ns = 1000 * SECONDS};
    struct arrivals *a = context;
    uint32_t rank = a->next++;

    if (sim_alive(sim, rank))
        a->request[rank] = sim_exchange(sim, rank, &spec);
}

static bool all_have_heard(struct sim *sim, void *context)
{
    const struct arrivals *a = context;

    for (uint32_t rank = 0; rank < NODES; rank++)
        if (sim_alive(sim, rank) && (a->request[rank] == NULL || !a->request[rank]->ended))
            return false;
    return true;
}

static void a_barrier_is_entered(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct sim *sim = new_sim(seed);
        struct arrivals a = {.next = 0};
        for (uint32_t rank = 0; rank < NODES; rank++)
            sim_at(sim, sim_now(sim) + chance_below(sim_chance(sim), 1 * MILLISECONDS), enter, &a);
        if (!sim_run(sim, HEARD_TIME, all_have_heard, &a))
            sim_violated(sim, "entered", "a client waits for a node that is down");
        sim_free(sim);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_is_opened),
        cmocka_unit_test(a_barrier_is_entered),
    };
    if (argc == 3) {
        first_seed = strtoull(argv[1], NULL, 10);
        seeds = strtoull(argv[2], NULL, 10);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
