/* Draws the world of a seed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/sim/swarm/copies.h"

/* Streams of the seed, beside those of the simulator. */
enum { STREAM_WORLD = 16, STREAM_REQUESTS, STREAM_FAULTS, STREAM_SCHEDULES, STREAM_TRACES = 40 };

static const char *const dims_list[] = {
    "2",    "1x2",   "2m",  "3",    "3m",  "2x2",   "1x4", "2x3",
    "3mx2", "2x2x2", "3x3", "2x4m", "3x4", "2x2x3", "4x4",
};

const char *swarm_dims(unsigned index)
{
    const unsigned tori = sizeof dims_list / sizeof dims_list[0];

    return index < tori ? dims_list[index] : swarm_network(index - tori);
}

/* Blocks are not larger than the links can carry in a moderate time. */
static uint64_t largest_block(const struct swarm_world *w)
{
    uint64_t nodes = w->torus.nodes, most = 128 * 1024 / nodes;

    if (w->setup.rate > 0 && w->setup.rate / (64 * nodes) < most)
        most = w->setup.rate / (64 * nodes);
    return most;
}

static const struct algorithm *draw_algorithm(const struct swarm_world *w,
                                              enum schedule_operation operation, struct chance *c)
{
    const struct algorithm *fits[64];
    size_t n = 0;

    for (size_t i = 0; i < algorithm_count() && n < 64; i++) {
        const struct algorithm *a = algorithm_at(i);
        if (a->operation == schedule_operation_of_algorithms(operation) &&
            algorithm_accepts(a, &w->torus, NULL) == 0)
            fits[n++] = a;
    }
    uint64_t chosen = chance_word(c);
    if (chosen >> 32 & 1) /* auto avoids links that are down */
        return NULL;
    return n > 0 && chosen % (n + 1) > 0 ? fits[chosen % (n + 1) - 1] : NULL;
}

static void draw_timeout(struct swarm_request *r, struct chance *c)
{
    uint64_t longest = chance_magnitude(c, 20 * SECONDS, 60 * SECONDS);
    uint64_t shortest = chance_magnitude(c, 1 * MILLISECONDS, 2 * SECONDS);

    r->hurries = chance_below(c, 8) == 0;
    r->spec.timeout_ns = r->hurries ? shortest : longest;
}

static void draw_folders(const struct swarm_world *w, struct swarm_request *r, unsigned index,
                         struct chance *c)
{
    uint64_t most = chance_magnitude(c, 1, largest_block(w));
    unsigned shared = (unsigned)chance_below(c, 8);

    (void)snprintf(r->from, sizeof r->from, "/%s/%" PRIu64,
                   chance_below(c, 3) == 0 ? "same" : "random",
                   chance_below(c, 12) == 0 ? 0 : most);
    if (shared == 0)
        (void)snprintf(r->to, sizeof r->to, "/out/shared");
    else
        (void)snprintf(r->to, sizeof r->to, "/out/%u", index);
}

/* Large enough that a link can go down after parts of most blocks have arrived. */
static void draw_long(const struct swarm_world *w, struct swarm_request *r, struct chance *c)
{
    r->spec.algorithm = "auto";
    r->spec.mode = MODE_STREAMING;
    r->spec.block_bytes = 8 * largest_block(w) / (1 + chance_below(c, 8));
    r->spec.repeat = 1;
}

/* A request other than a barrier. */
static void draw_request(const struct swarm_world *w, struct swarm_request *r, unsigned index,
                         enum schedule_operation operation, struct chance *c)
{
    static const enum mode modes[] = {MODE_OF_ALGORITHM, MODE_OF_ALGORITHM, MODE_STEPPED,
                                      MODE_STREAMING};
    const struct algorithm *a = draw_algorithm(w, operation, c);
    bool folders = chance_below(c, 2) == 0;
    uint64_t block = chance_magnitude(c, 1, largest_block(w));

    r->root = (uint32_t)(chance_word(c) % w->torus.nodes);
    r->spec =
        (struct spec)GENERATED(.algorithm = a != NULL ? (char *)(uintptr_t)a->name : "auto",
                               .operation = operation, .mode = modes[chance_below(c, 4)],
                               .barrier = "", .block_bytes = chance_below(c, 12) == 0 ? 0 : block);
    if (r->spec.mode == MODE_STREAMING && /* for all-port algorithms only */
        (a == NULL || a->port_model == PORT_MODEL_ONE))
        r->spec.mode = MODE_OF_ALGORITHM;
    uint64_t repeat = chance_below(c, 4) == 0 ? chance_magnitude(c, 2, 20) : 1;
    if (operation == OPERATION_BROADCAST)
        r->spec.sender = (uint32_t)(chance_word(c) % w->torus.nodes);
    draw_timeout(r, c);
    if (operation == OPERATION_EXCHANGE && chance_below(c, 6) == 0) {
        draw_long(w, r, c);
    } else if (folders) {
        r->spec.block_bytes = 0;
        draw_folders(w, r, index, c);
    } else {
        r->spec.repeat = (uint32_t)repeat;
    }
    r->spec.shrink = chance_below(c, 2) == 0 && a == NULL && operation == OPERATION_EXCHANGE;
    r->spec.wait = chance_below(c, 3) == 0 && !r->spec.shrink;
}

/* Repeats a request, perhaps at another node, perhaps at once. */
static void draw_retry(struct swarm_world *w, struct swarm_request *before, struct chance *c)
{
    uint64_t later = chance_magnitude(c, 1, 10 * SECONDS);
    uint32_t root = (uint32_t)(chance_word(c) % w->torus.nodes);

    if (w->requests == SWARM_REQUESTS)
        return;
    struct swarm_request *r = &w->request[w->requests++];
    *r = *before;
    r->after = before;
    r->at = chance_below(c, 2) == 0 ? 0 : later;
    r->root = chance_below(c, 2) == 0 ? root : before->root;
}

/* A client at each node enters the barrier, some later than others. */
static void draw_barrier(struct swarm_world *w, uint64_t window, struct chance *c)
{
    unsigned first = w->requests;
    uint64_t at = chance_below(c, window), spread = chance_magnitude(c, 1, 2 * SECONDS);

    if (w->requests + w->torus.nodes > SWARM_REQUESTS)
        return;
    for (uint32_t rank = 0; rank < w->torus.nodes; rank++) {
        struct swarm_request *r = &w->request[w->requests++];
        r->at = at + chance_below(c, spread);
        r->root = rank;
        (void)snprintf(r->barrier, sizeof r->barrier, "barrier %u", first);
        r->spec = (struct spec)GENERATED(.algorithm = "auto", .operation = OPERATION_BARRIER);
        draw_timeout(r, c);
    }
    bool wait = chance_below(c, 3) == 0;
    for (uint32_t rank = 0; rank < w->torus.nodes; rank++)
        w->request[first + rank].spec.wait = wait;
}

static void draw_setup(struct swarm_world *w, struct chance *c)
{
    static const uint64_t memory[] = {256 * 1024, 1024 * 1024, 64 * 1024 * 1024};
    uint64_t rate = chance_magnitude(c, 1000000, 1000000000);

    w->setup = (struct sim_setup){
        .dims = swarm_network_text(w->dims, w->seed),
        .seed = w->seed,
        .latency = chance_magnitude(c, 10 * MICROSECONDS, 5 * MILLISECONDS),
        .rate = chance_below(c, 4) == 0 ? 0 : rate,
        .memory = memory[chance_below(c, 3)],
        .chop = chance_below(c, 4) > 0,
        .shared = w->seed % 2 == 1,
    };
    swarm_draw_rate(w);
}

void swarm_draw(struct swarm_world *w, uint64_t seed, const char *dims, bool rated)
{
    struct chance c = chance_stream(seed, STREAM_WORLD, 0);
    unsigned kinds = sizeof dims_list / sizeof dims_list[0];

    *w = (struct swarm_world){.seed = seed, .rated = rated};
    /* The smaller of two, because most faults do not need a large torus. */
    unsigned a = (unsigned)chance_below(&c, kinds), b = (unsigned)chance_below(&c, kinds);
    const char *network = swarm_draw_network(seed);
    w->dims = dims != NULL ? dims : network != NULL ? network : dims_list[a < b ? a : b];
    if (torus_parse(&w->torus, swarm_network_text(w->dims, seed), NULL) != 0)
        abort();
    draw_setup(w, &c);
    uint64_t window = chance_magnitude(&c, 1 * MILLISECONDS, 10 * SECONDS);
    unsigned asked = (unsigned)chance_magnitude(&c, 1, 12);
    unsigned barriers = chance_below(&c, 3) == 0 ? (unsigned)chance_magnitude(&c, 1, 3) : 0;
    unsigned faults = chance_below(&c, 4) == 0 ? 0 : (unsigned)chance_magnitude(&c, 1, 12);
    for (unsigned i = 0; i < asked; i++) {
        static const enum schedule_operation operations[] = {
            OPERATION_EXCHANGE, OPERATION_EXCHANGE, OPERATION_ALLGATHER, OPERATION_BROADCAST};
        struct chance own = chance_stream(seed, STREAM_REQUESTS, i);
        struct swarm_request *r = &w->request[w->requests++];
        r->at = chance_below(&own, window);
        draw_request(w, r, i, operations[chance_below(&own, 4)], &own);
        struct chance file = chance_stream(seed, STREAM_SCHEDULES, i);
        r->imported = r->spec.operation != OPERATION_BROADCAST &&
                      strcmp(r->spec.algorithm, "auto") != 0 && chance_below(&file, 4) == 0;
        if (chance_below(&own, 3) == 0)
            draw_retry(w, r, &own);
    }
    for (unsigned i = 0; i < barriers; i++) {
        struct chance own = chance_stream(seed, STREAM_REQUESTS, SWARM_REQUESTS + i);
        draw_barrier(w, window, &own);
    }
    for (unsigned i = 0; i < faults; i++) {
        struct chance own = chance_stream(seed, STREAM_FAULTS, i);
        swarm_draw_fault(&w->fault[w->faults++], w, NEMESIS_ANY, &own);
    }
    swarm_draw_groups(w);
    swarm_draw_copies(w);
    swarm_draw_rates(w);
    for (unsigned i = 0; i < w->requests; i++) { /* the requests do not move any more */
        w->request[i].spec.from = w->request[i].from;
        w->request[i].spec.to = w->request[i].to;
        w->request[i].spec.barrier = w->request[i].barrier;
        struct chance own = chance_stream(seed, STREAM_TRACES, i);
        w->request[i].spec.trace =
            w->request[i].spec.operation != OPERATION_BARRIER && chance_below(&own, 4) == 0;
    }
}

void swarm_print(const struct swarm_world *w)
{
    (void)fprintf(stderr,
                  "seed %" PRIu64 ": %s, latency %.6f s, %" PRIu64 " bytes/s, budget %" PRIu64
                  " bytes%s\n",
                  w->seed, w->dims, (double)w->setup.latency / 1e9, w->setup.rate, w->setup.memory,
                  w->setup.chop ? ", chopped" : "");
    for (unsigned i = 0; i < w->requests; i++) {
        const struct swarm_request *r = &w->request[i];
        if ((w->no_request & UINT64_C(1) << i) != 0)
            continue;
        (void)fprintf(
            stderr,
            "  request %2u: %s%.6f s, node %u: %s %s%s%s%s, %" PRIu64
            " bytes, %s -> %s, repeat %u, timeout %.3f s%s%s\n",
            i, r->after != NULL ? "after the one before + " : "+", (double)r->at / 1e9, r->root,
            schedule_operation_name(r->spec.operation), r->spec.algorithm,
            r->imported ? " from a file" : "", r->spec.mode == MODE_OF_ALGORITHM ? "" : " ",
            r->spec.mode == MODE_OF_ALGORITHM ? "" : mode_name(r->spec.mode), r->spec.block_bytes,
            r->from, r->spec.operation == OPERATION_BARRIER ? r->barrier : r->to, r->spec.repeat,
            (double)r->spec.timeout_ns / 1e9,
            r->spec.shrink ? ", shrinks"
            : r->spec.wait ? ", waits"
                           : "",
            r->spec.trace ? ", traced" : "");
    }
    swarm_print_groups(w);
    swarm_print_copies(w);
    for (unsigned i = 0; i < w->faults; i++) {
        const struct swarm_fault *f = &w->fault[i];
        if ((w->no_fault & UINT64_C(1) << i) != 0)
            continue;
        (void)fprintf(stderr,
                      "  fault %2u: %s of node %u port %u for %.6f s, amount %" PRIu64 ", +%.6f s",
                      i, f->nemesis->name, f->rank, f->port, (double)f->time / 1e9, f->amount,
                      (double)f->at / 1e9);
        if (f->frame != 0)
            (void)fprintf(stderr, " after frame %u of kind %u", f->nth, (unsigned)f->frame);
        (void)fprintf(stderr, "\n");
    }
}
