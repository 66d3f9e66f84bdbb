/* Bits that flip on the way: a peer that sends what it must not. An exchange may fail of it, links
 * may be closed; but nothing hangs, nothing wrong is delivered, and the torus works again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/sim/checks.h"
#include "tests/sim/events.h"

static uint64_t first_seed, seeds = 150;

/* A flipped bit in a length makes a decoder swallow the frames that follow: such a link is up, and
 * useless until it is closed. */
static void set_all_wires(struct sim *sim, enum sim_wire state)
{
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        for (unsigned port = 0; port < torus_ports(sim_torus(sim)); port += 2)
            sim_set_wire(sim, rank, port, state);
}

static void close_all_links(struct sim *sim)
{
    set_all_wires(sim, SIM_WIRE_CUT);
    sim_pass(sim, 1 * MILLISECONDS); /* no carrier, for long enough to be noticed */
    set_all_wires(sim, SIM_WIRE_UP);
    sim_pass(sim, 1 * SECONDS);
}

static void damage(uint64_t seed)
{
    const struct sim_setup setup = {.dims = seed % 2 == 0 ? "3x4" : "2x2",
                                    .seed = seed,
                                    .latency = 100 * MICROSECONDS,
                                    .rate = 125000000,
                                    .memory = seed % 3 == 0 ? 64 * 1024 : 0,
                                    .chop = true};
    struct sim *sim = sim_new(&setup);
    struct chance *chance = sim_chance(sim);
    static const char *const algorithms[] = {"at2", "direct", "stream"};
    const struct spec spec = {.algorithm = algorithms[chance_below(chance, 3)],
                              .block_bytes = chance_below(chance, 3000),
                              .from = "",
                              .to = "",
                              .timeout_ns = 20 * SECONDS};

    sim_run_until_whole(sim);
    struct sim_request *r =
        sim_exchange(sim, (uint32_t)chance_below(chance, sim_torus(sim)->nodes), &spec);
    sim_pass(sim, chance_below(chance, 3 * MILLISECONDS));
    sim_damage(sim, 1 + (unsigned)chance_below(chance, 5));
    if (!sim_run_until_ended(r, 60 * SECONDS))
        fail_msg("seed %llu: does not end", (unsigned long long)seed);
    sim_damage(sim, 0);
    sim_pass(sim, 100 * MILLISECONDS);
    if (!sim_run(sim, 60 * SECONDS, sim_is_quiet, NULL))
        fail_msg("seed %llu: does not end everywhere", (unsigned long long)seed);
    close_all_links(sim);
    check_next_exchange(sim, r->root);
    sim_free(sim);
}

static void flipped_bits_cost_an_exchange_at_most(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++)
        damage(seed);
}

static void flipped_bits_do_not_keep_the_torus_from_coming_up(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        const struct sim_setup setup = {
            .dims = "3x4", .seed = seed, .latency = 100 * MICROSECONDS, .chop = true};
        struct sim *sim = sim_new(&setup);
        sim_damage(sim, 40);
        sim_pass(sim, 1 * SECONDS);
        sim_damage(sim, 0);
        close_all_links(sim);
        check_next_exchange(sim, 0);
        sim_free(sim);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flipped_bits_cost_an_exchange_at_most),
        cmocka_unit_test(flipped_bits_do_not_keep_the_torus_from_coming_up),
    };
    if (argc == 3) {
        first_seed = strtoull(argv[1], NULL, 10);
        seeds = strtoull(argv[2], NULL, 10);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
