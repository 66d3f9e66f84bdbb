/* Random copies with random faults: at each node the trees are in place or nothing has changed, whatever happens, and
 * nothing is left. */
#include "tests/sim/copy_fixture.h"
#include "tests/support/cmocka.h"

SEEDS(200 / SIM_SHARE);

#define COPIES 4u
#define FAULTS 10u

struct play {
    struct sim *sim;
    struct copy_request *request[COPIES];
    struct sim_copy *copy[COPIES];
    uint32_t copies;
};

static void fault_of_trees(struct play *p, uint32_t rank)
{
    struct tree_disk *trees = &p->sim->node[rank].trees;

    switch (sim_any(p->sim, 5)) {
    case 0:
        sim_disk_full(p->sim, rank, sim_any(p->sim, 3) > 0);
        break;
    case 1:
        trees->room = sim_any(p->sim, 50000);
        break;
    case 2:
        if (trees->writers == NULL)
            tree_disk_lose_staged(trees);
        break;
    case 3:
        sim_copy_change_sources(p->sim, p->request[sim_any(p->sim, p->copies)], sim_chance(p->sim));
        break;
    default:
        trees->fault[sim_any(p->sim, SIM_TREE_FAULTS)] = true;
    }
}

static void fault(struct sim *sim, void *context)
{
    struct play *p = context;
    uint32_t rank;
    unsigned port;

    copy_any_link(sim, &rank, &port);
    switch (sim_any(sim, 10)) {
    case 0:
        sim_set_wire(sim, rank, port, SIM_WIRE_CUT);
        break;
    case 1:
        sim_set_wire(sim, rank, port, SIM_WIRE_UP);
        break;
    case 2:
        sim_stall(sim, rank, port, SIM_WIRE_SILENT, sim_any(sim, 12000) * MILLISECONDS);
        break;
    case 3:
        sim_kill(sim, rank, (enum sim_death)sim_any(sim, 3));
        break;
    case 4:
    case 5:
        sim_restart(sim, rank);
        break;
    case 6:
        sim_freeze(sim, rank, sim_any(sim, 10000) * MILLISECONDS);
        break;
    case 7:
        if (p->copies > 0 && !sim_frozen(sim, p->copy[0]->asked))
            sim_copy_cancel(p->copy[sim_any(sim, p->copies)]);
        break;
    default:
        if (p->copies > 0)
            fault_of_trees(p, rank);
    }
}

static void ask(struct sim *sim, void *context)
{
    struct play *p = context;
    uint32_t asked = sim_any(sim, sim_torus(sim)->nodes);

    if (!sim_alive(sim, asked) || sim_frozen(sim, asked) || p->copies == COPIES)
        return;
    struct copy_request *r = sim_copy_draw(sim, p->copies, 40, 30000, sim_chance(sim));
    r->timeout_ns = sim_any(sim, 2) == 0 ? 60 * SECONDS : 0;
    p->request[p->copies] = r;
    p->copy[p->copies++] = sim_copy_start(sim, asked, r);
}

static bool all_have_ended(struct sim *sim, void *context)
{
    const struct play *p = context;

    for (uint32_t i = 0; i < p->copies; i++)
        if (!p->copy[i]->ended && !p->copy[i]->left)
            return false;
    return true;
}

/* How all copies ended, so that the test is known to try something. */
static unsigned made, whole, failed, in_part, retried;

static void count(const struct sim_copy *c)
{
    bool part = false;

    for (uint32_t i = 0; i < c->result.outcomes; i++)
        part |= c->result.outcome[i].error.code != ERROR_NONE;
    if (c->request.wait && c->ended &&
        (c->error.code == ERROR_LINK || c->error.code == ERROR_IN_DOUBT))
        sim_violated(c->sim, "nodes are waited for", "a copy of node %u has failed: %s", c->asked,
                     c->error.text);
    made++;
    in_part += part;
    failed += c->ended && c->error.code != ERROR_NONE;
    whole += c->ended && c->error.code == ERROR_NONE && !part;
    retried += c->result.attempts > 1;
}

static void any_world(uint64_t seed)
{
    struct play p = {.sim = copy_begin(seed)};
    uint64_t window = chance_magnitude(sim_chance(p.sim), 1 * MILLISECONDS, 5 * SECONDS);

    for (uint32_t i = 0; i < 1 + seed % COPIES; i++)
        sim_at(p.sim, sim_now(p.sim) + chance_below(sim_chance(p.sim), window), ask, &p);
    for (uint32_t left = sim_any(p.sim, FAULTS); left > 0; left--)
        sim_at(p.sim, sim_now(p.sim) + chance_below(sim_chance(p.sim), 2 * window), fault, &p);
    sim_pass(p.sim, 2 * window);
    (void)sim_run(p.sim, 60 * SECONDS, all_have_ended, &p);
    sim_heal(p.sim);
    sim_run_until_whole(p.sim);
    if (!sim_run(p.sim, 120 * SECONDS, all_have_ended, &p))
        sim_violated(p.sim, "ends", "a copy does not end although everything works");
    sim_copies_check(p.sim);
    for (uint32_t i = 0; i < p.copies; i++) {
        count(p.copy[i]);
        struct sim_copy *again = sim_copy_whole(p.sim, p.request[i]->node, p.request[i]);
        sim_copy_must_succeed(again);
        sim_copy_draw_free(p.request[i]);
    }
    copy_end(p.sim);
}

TEST(any_worlds)
{
    with_seeds(seeds, any_world);
    print_message(
        "%u copies: %u succeeded, %u of all after a retry, %u failed at some nodes, %u at all\n",
        made, whole, retried, in_part, failed);
    if (seeds >= 100) {
        assert_true(whole > made / 4);
        assert_true(failed > made / 20);
        assert_true(in_part > made / 200);
        assert_true(retried > 0);
    }
}
