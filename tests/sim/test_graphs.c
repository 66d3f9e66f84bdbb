/* The real core on networks with factors that are neither rings nor lines: exchanges, allgathers and broadcasts by every
 * algorithm, also from files; groups; links that go down, and nodes that die. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/damage.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "tests/sim/checks.h"
#include "tests/sim/group_fixture.h"
#include "tests/support/cmocka.h"

#define NETWORKS 7u

/* The texts of the networks, the last one a Petersen graph. */
static const char *network(size_t i)
{
    static const char *const named[NETWORKS - 1] = {"complete:4",     "star:4", "tree:2^2",
                                                    "5 x complete:3", "2m^3",   "star:3 x 4m"};
    uint32_t edge[30];

    if (i < NETWORKS - 1)
        return named[i];
    for (uint32_t k = 0; k < 5; k++) {
        const uint32_t some[] = {k, (k + 1) % 5, k, k + 5, 5 + k, 5 + (k + 2) % 5};
        memcpy(&edge[6 * k], some, sizeof some);
    }
    const struct graph *g = graph_of_edges(edge, 15, NULL);
    assert_non_null(g);
    return g->text;
}

static struct sim_request *must_succeed(struct sim *sim, const struct spec *spec, bool imported)
{
    uint32_t root = sim_any(sim, sim_torus(sim)->nodes);

    while (!sim_alive(sim, root))
        root = sim_any(sim, sim_torus(sim)->nodes);
    struct sim_request *r =
        imported ? sim_exchange_imported(sim, root, spec) : sim_exchange(sim, root, spec);
    struct spec done = *spec;

    if (!sim_run_until_ended(r, 60 * SECONDS) || r->error.code != ERROR_NONE)
        sim_violated(sim, "success", "%s%s: %s", spec->algorithm, imported ? " from a file" : "",
                     r->ended ? r->error.text : "not ended");
    done.algorithm = r->algorithm;
    check_success(r, &done);
    return r;
}

TEST(operations_by_every_algorithm)
{
    for (size_t i = 0; i < NETWORKS; i++) {
        struct sim *sim = sim_new_whole(network(i), i);
        unsigned from_files = 0;
        for (size_t k = 0; k < 2 * algorithm_count(); k++) {
            const struct algorithm *a = algorithm_at(k / 2);
            if (algorithm_accepts(a, sim_torus(sim), NULL) != 0)
                continue;
            const struct spec spec =
                GENERATED(.algorithm = (char *)(uintptr_t)a->name, .operation = a->operation,
                          .block_bytes = 1 + sim_any(sim, 3000));
            (void)must_succeed(sim, &spec, k % 2 == 1);
            from_files += k % 2;
        }
        assert_true(from_files >= 2);
        static const enum schedule_operation operations[] = {
            OPERATION_EXCHANGE, OPERATION_ALLGATHER, OPERATION_BROADCAST};
        for (unsigned k = 0; k < 6; k++) {
            const struct spec spec = GENERATED(.algorithm = "auto", .operation = operations[k % 3],
                                               .sender = sim_any(sim, sim_torus(sim)->nodes),
                                               .block_bytes = k < 3 ? 1 : 20001);
            struct sim_request *r = must_succeed(sim, &spec, false);
            if (torus_is_plain(sim_torus(sim)) || k % 3 == 0)
                continue;
            if (k < 3)
                assert_string_equal(r->algorithm, FOUND_GATHER_NAME);
            else /* whichever is predicted to be faster */
                assert_true(strcmp(r->algorithm, FOUND_GATHER_NAME) == 0 ||
                            strcmp(r->algorithm, FOUND_DISJOINT_NAME) == 0);
        }
        for (unsigned k = 0; k < 8; k++) {
            const struct spec spec =
                GENERATED(.algorithm = FOUND_DISJOINT_NAME,
                          .mode = k / 2 % 2 == 0 ? MODE_OF_ALGORITHM : MODE_STEPPED,
                          .operation = operations[1 + k % 2],
                          .sender = sim_any(sim, sim_torus(sim)->nodes),
                          .block_bytes = k < 4 ? sim_any(sim, 4) : 20001);
            (void)must_succeed(sim, &spec, false);
        }
        sim_free(sim);
    }
}

TEST(files)
{
    static const struct spec spec = {
        .algorithm = "auto", .from = "/random/3000", .to = "/out/files"};

    for (size_t i = 0; i < NETWORKS; i++) {
        struct sim *sim = sim_new_whole(network(i), 10 + i);
        assert_true(check_agreement(must_succeed(sim, &spec, false), &spec));
        sim_free(sim);
    }
}

/* A cut link of a connected network is avoided, whether it is cut before the exchange or meanwhile. */
TEST(links_that_are_cut)
{
    static const struct spec spec = GENERATED(.algorithm = "auto", .block_bytes = 20000);

    for (uint64_t seed = 0; seed < 6 * NETWORKS; seed++) {
        struct sim *sim = sim_new_whole(network(seed % NETWORKS), seed);
        const struct torus *t = sim_torus(sim);
        uint32_t rank = sim_any(sim, t->nodes);
        unsigned port = sim_any(sim, torus_ports(t));
        struct damage d;
        struct error e;
        while (torus_neighbour(t, rank, port) == TORUS_NO_NODE)
            port = (port + 1) % torus_ports(t);
        assert_int_equal(damage_init(&d, t, &e), 0);
        damage_add_link(&d, rank, port);
        bool connected = damage_is_connected(&d, &e) == 0, before = seed / NETWORKS % 2 == 0;
        damage_free(&d);
        if (before) {
            sim_set_wire(sim, rank, port, SIM_WIRE_CUT);
            sim_pass(sim, 100 * MILLISECONDS);
        }
        struct sim_request *r = sim_exchange(sim, sim_any(sim, t->nodes), &spec);
        if (!before) {
            sim_pass(sim, sim_any(sim, 3000) * MICROSECONDS);
            sim_set_wire(sim, rank, port, SIM_WIRE_CUT);
        }
        assert_true(sim_run_until_ended(r, 60 * SECONDS));
        if (connected && r->error.code != ERROR_NONE)
            sim_violated(sim, "links are avoided", "%s", r->error.text);
        if (!connected && before)
            assert_int_equal(r->error.code, ERROR_LINK);
        sim_heal(sim);
        check_next_exchange(sim, sim_any(sim, t->nodes));
        sim_free(sim);
    }
}

/* A node dies whose neighbours stay connected, and is left out. */
TEST(a_node_that_dies)
{
    static const struct spec spec =
        GENERATED(.algorithm = "auto", .block_bytes = 20000, .shrink = true);

    for (uint64_t seed = 0; seed < 3 * NETWORKS; seed++) {
        struct sim *sim = sim_new_whole(network(seed % NETWORKS), seed);
        const struct torus *t = sim_torus(sim);
        uint32_t last = t->nodes - 1; /* a leaf of trees and stars */
        struct sim_request *r = sim_exchange(sim, sim_any(sim, last), &spec);
        sim_pass(sim, sim_any(sim, 3000) * MICROSECONDS);
        sim_kill(sim, last, SIM_POWER);
        assert_true(sim_run_until_ended(r, 60 * SECONDS));
        if (r->error.code != ERROR_NONE)
            sim_violated(sim, "nodes are left out", "%s", r->error.text);
        struct sim_request *next = must_succeed(sim, &spec, false);
        assert_int_equal(sim_missing(next), UINT64_C(1) << last);
        sim_heal(sim);
        check_next_exchange(sim, sim_any(sim, t->nodes));
        sim_free(sim);
    }
}

TEST(groups)
{
    for (uint64_t seed = 0; seed < 2 * NETWORKS; seed++) {
        struct sim *sim = group_sim(network(seed % NETWORKS), seed);
        /* Without a link a part may not be connected. */
        const bool parts = sim_torus(sim)->dims > 1 && seed < NETWORKS;
        struct sim_call call[40] = {{.operation = GROUP_PART, .part = 1}};
        uint32_t calls = parts ? 1 : 0;
        for (uint32_t o = GROUP_ALLTOALL; o < GROUP_OPERATIONS; o++)
            for (unsigned k = 0; k < 2 && o != GROUP_PART && group_operation_exists(o); k++)
                call[calls++] = (struct sim_call){.operation = (enum group_operation)o,
                                                  .size = k == 0 ? 1000 : 30007,
                                                  .part = parts && k == 0 ? 1 : 0,
                                                  .type = REDUCTION_INT32,
                                                  .operator= REDUCTION_SUM };
        const struct sim_programs_setup setup = {
            .name = "g", .call = call, .calls = calls, .seed = seed, .depth = 4};
        struct sim_programs *programs = sim_programs_new(sim, &setup);
        if (seed >= NETWORKS) {
            sim_pass(sim, sim_any(sim, 20) * MILLISECONDS);
            if (!group_cut(sim, sim_any(sim, sim_torus(sim)->nodes), 0)) {
                sim_programs_free(programs);
                sim_free(sim);
                continue;
            }
        }
        if (!sim_programs_run(programs, 600 * SECONDS))
            sim_violated(sim, "ends", "the programs on %s have not ended",
                         network(seed % NETWORKS));
        for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
            if (sim_program_error(programs, rank)->code != ERROR_NONE)
                sim_violated(sim, "calls", "node %u: %s", rank,
                             sim_program_error(programs, rank)->text);
        sim_programs_free(programs);
        sim_free(sim);
    }
}
