/* How long copies of trees take, in virtual time: little longer than the links need for the bytes; and what their clients
 * see meanwhile. */
#include "tests/sim/copy_fixture.h"
#include "tests/support/cmocka.h"

SEEDS(24 / SIM_SHARE);

#define RATE 125000000u
#define BYTES (64u << 20)
#define SMALL_FILES 2000u

/* The time in which the node with the fewest links can take in all bytes, in nanoseconds. */
static double bound(struct sim *sim, uint64_t bytes)
{
    const struct torus *t = sim_torus(sim);
    unsigned least = TORUS_MAX_PORTS;

    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        unsigned links = 0;
        for (unsigned port = 0; port < torus_ports(t); port++)
            links += torus_neighbour(t, rank, port) != TORUS_NO_NODE;
        least = links < least ? links : least;
    }
    return (double)bytes * 1e9 / RATE / least;
}

static void put_small_files(struct sim_tree *tree)
{
    char path[20];

    sim_tree_put_folder(tree, "/from", 1);
    for (unsigned i = 0; i < SMALL_FILES; i++) {
        struct tree_content *content = tree_content_draw(i, BYTES / SMALL_FILES);
        (void)snprintf(path, sizeof path, "/from/%06u", i);
        sim_tree_put_file(tree, path, 1, content);
        tree_content_release(content);
    }
}

static void must_take(const char *dims, bool small, double most)
{
    const struct sim_setup setup = {
        .dims = dims, .seed = 1, .latency = 100 * MICROSECONDS, .rate = RATE};
    struct sim *sim = sim_new(&setup);

    sim_run_until_whole(sim);
    if (small)
        put_small_files(&sim->node[0].trees.tree);
    else
        copy_tree(sim, 0, "/from", BYTES);
    struct sim_copy *c = sim_copy_to_all(sim, 0, "/from", "/to");
    sim_copy_run(c, 60 * SECONDS);
    sim_copy_must_succeed(c);
    double ratio = (double)(c->ended_at - c->asked_at) / bound(sim, c->result.bytes_all);
    if (ratio > most || ratio < 1)
        fail_msg("%s: %.3f times the bound, not %.2f", dims, ratio, most);
    assert_int_equal(c->result.nanoseconds / MILLISECONDS,
                     (c->ended_at - c->asked_at) / MILLISECONDS);
    assert_true(c->result.compare_nanoseconds < c->result.nanoseconds / 10);
    copy_end(sim);
}

TEST(copies_are_as_fast_as_the_links)
{
    must_take("4", false, 1.05);
    must_take("4", true, 1.05);
    must_take("4m", false, 1.05);
    must_take("4x4", true, 1.1);
}

/* The phases follow each other, and bytes are counted up to what was announced. */
struct watched {
    struct sim_copy *copy;
    struct copy_progress last;
    bool moved;
};

static bool watch_progress(struct sim *sim, void *context)
{
    struct watched *w = context;
    struct copy_progress now;

    if (w->copy->copy == NULL)
        return false;
    copy_progress(w->copy->copy, &now);
    if (now.phase < w->last.phase || now.phase >= COPY_PHASES ||
        (now.phase == w->last.phase && now.bytes < w->last.bytes) ||
        (now.bytes_of > 0 && now.bytes > now.bytes_of))
        sim_violated(sim, "progress", "phase %u, %llu of %llu bytes, after phase %u, %llu bytes",
                     (unsigned)now.phase, (unsigned long long)now.bytes,
                     (unsigned long long)now.bytes_of, (unsigned)w->last.phase,
                     (unsigned long long)w->last.bytes);
    w->moved |= now.phase == COPY_MOVING && now.bytes > 0 && now.bytes < now.bytes_of;
    w->last = now;
    return false;
}

SEED_TEST(seeds, clients_see_progress)
{
    struct sim *sim = copy_begin(seed);
    struct copy_request r = copy_default(sim_any(sim, sim_torus(sim)->nodes));
    struct watched w = {0};

    copy_tree(sim, r.node, "/from", 10000000);
    w.copy = sim_copy_start(sim, sim_any(sim, sim_torus(sim)->nodes), &r);
    sim_watch(sim, watch_progress, &w);
    sim_copy_run(w.copy, 60 * SECONDS);
    sim_watch(sim, NULL, NULL);
    sim_copy_must_succeed(w.copy);
    assert_true(w.moved);
    copy_end(sim);
}
