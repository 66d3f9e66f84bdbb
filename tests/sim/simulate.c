/* Exchanges of the real core in virtual time, for benchmarks: the median of several, on links with a given rate
 * and latency, and with infinitely fast processors.
 *
 *     simulate 4x4 stream 65536 5960000 20 0  ->  {"seconds": 0.0881, ...}
 *
 * The arguments: dimensions, algorithm, bytes per block, bytes per second of every link in each direction,
 * microseconds of latency, bytes that a link's limiter lets through at once (see sim.h; 0: a plain wire). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/schedule/algorithms/registry.h"
#include "tests/sim/sim.h"

#define REPEAT 9

static double number(const char *text)
{
    char *end;
    double value = strtod(text, &end);

    if (*text == '\0' || *end != '\0' || !(value >= 0) || value > 1e15) {
        (void)fprintf(stderr, "simulate: not a number: %s\n", text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    struct torus torus;
    struct error e;

    if (argc != 7) {
        (void)fprintf(stderr, "usage: simulate DIMS ALGORITHM BLOCK_BYTES LINK_BYTES_A_SECOND "
                              "LATENCY_MICROSECONDS BURST_BYTES\n");
        return 2;
    }
    const struct algorithm *a = algorithm_find(argv[2]);
    if (torus_parse(&torus, argv[1], &e) != 0 ||
        (a == NULL && error_set(&e, ERROR_USAGE, "no algorithm %s", argv[2]) != 0) ||
        algorithm_accepts(a, &torus, &e) != 0) {
        (void)fprintf(stderr, "simulate: %s\n", e.text);
        return 2;
    }
    const struct sim_setup setup = {.dims = argv[1],
                                    .seed = 1,
                                    .rate = (uint64_t)number(argv[4]),
                                    .latency = (uint64_t)(number(argv[5]) * 1000),
                                    .burst = (uint64_t)number(argv[6]),
                                    .memory = UINT64_C(1) << 32};
    const struct spec spec = {.algorithm = argv[2],
                              .block_bytes = (uint64_t)number(argv[3]),
                              .timeout_ns = 86400 * SECONDS,
                              .repeat = REPEAT,
                              .from = "",
                              .to = ""};
    struct sim *sim = sim_new(&setup);
    sim_run_until_whole(sim);
    struct sim_request *r = sim_exchange(sim, 0, &spec);
    (void)sim_run_until_ended(r, 86400 * SECONDS);
    if (!r->ended || r->error.code != ERROR_NONE) {
        (void)fprintf(stderr, "simulate: %s\n",
                      r->ended ? r->error.text : "the exchange does not end");
        return 1;
    }
    (void)printf("{\"dims\": \"%s\", \"algorithm\": \"%s\", \"block_bytes\": %" PRIu64
                 ", \"seconds\": %.9f}\n",
                 argv[1], argv[2], spec.block_bytes, sim_median_seconds(r));
    sim_free(sim);
    return 0;
}
