#include "tests/sim/copy_fixture.h"

#include <stdlib.h>

static const char *const networks[] = {
    "3x3", "2x3", "4",    "2x2x2",    "3mx3m",          "complete:4",
    "4x4", "2",   "5mx2", "tree:2^2", "5 x complete:3", "star:4",
};

struct sim *copy_begin_on(const char *dims, uint64_t seed)
{
    const struct sim_setup setup = {
        .dims = dims, .seed = seed, .latency = 100 * MICROSECONDS, .rate = 125000000, .chop = true};
    struct sim *sim = sim_new(&setup);

    sim_run_until_whole(sim);
    return sim;
}

struct sim *copy_begin(uint64_t seed)
{
    return copy_begin_on(networks[seed % (sizeof networks / sizeof *networks)], seed);
}

void copy_end(struct sim *sim)
{
    sim_copies_check(sim);
    sim_heal(sim);
    sim_run_until_whole(sim);
    sim_copies_check(sim);
    uint32_t rank = sim_any(sim, sim_torus(sim)->nodes);
    copy_tree(sim, rank, "/last", 0);
    struct sim_copy *last = sim_copy_to_all(sim, rank, "/last", "/last");
    sim_copy_run(last, 60 * SECONDS);
    sim_copy_must_succeed(last);
    sim_copies_check(sim);
    sim_free(sim);
}

void copy_tree(struct sim *sim, uint32_t rank, const char *path, uint64_t large)
{
    struct sim_tree *tree = &sim->node[rank].trees.tree;

    sim_tree_draw(tree, path, 80, 20000, sim_chance(sim));
    if (large == 0)
        return;
    struct tree_content *content = tree_content_draw(sim->set.seed, large);
    char *name = tree_join(path, "large");
    sim_tree_put_file(tree, name, 1000, content);
    tree_content_release(content);
    free(name);
}

struct reaching {
    struct sim_copy *copy;
    enum copy_phase phase;
    uint64_t bytes;
};

static bool has_reached(const struct reaching *r)
{
    struct copy_progress progress;

    if (r->copy->copy == NULL)
        return false;
    copy_progress(r->copy->copy, &progress);
    return progress.phase > r->phase || (progress.phase == r->phase && progress.bytes >= r->bytes);
}

static bool reached_or_ended(struct sim *sim, void *context)
{
    const struct reaching *r = context;

    return r->copy->ended || has_reached(r);
}

bool copy_reaches(struct sim_copy *copy, enum copy_phase phase, uint64_t bytes)
{
    struct reaching r = {copy, phase, bytes};

    if (!sim_run(copy->sim, 60 * SECONDS, reached_or_ended, &r))
        sim_violated(copy->sim, "ends", "a copy does not reach phase %u", (unsigned)phase);
    return !copy->ended;
}

uint32_t copy_other(struct sim *sim, uint32_t rank)
{
    uint32_t other;

    do
        other = sim_any(sim, sim_torus(sim)->nodes);
    while (other == rank);
    return other;
}

void copy_any_link(struct sim *sim, uint32_t *rank, unsigned *port)
{
    const struct torus *t = sim_torus(sim);

    do {
        *rank = sim_any(sim, t->nodes);
        *port = sim_any(sim, torus_ports(t));
    } while (torus_neighbour(t, *rank, *port) == TORUS_NO_NODE);
}

struct copy_request copy_default(uint32_t node)
{
    static char from[] = "/from", to[] = "/to";
    static char *source[] = {from};

    return (struct copy_request){
        .kind = COPY_TO_ALL, .node = node, .source = source, .sources = 1, .target = to};
}
