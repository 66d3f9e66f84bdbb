/* Exchanges of the real core in virtual time, for benchmarks: the median of several, on links with a given rate
 * and latency, and with infinitely fast processors.
 *
 *     simulate 4x4 stream 65536 5960000 20 0  ->  {"seconds": 0.0881, ...}
 *
 * The arguments: dimensions, algorithm, bytes per block, bytes per second of every link in each direction,
 * microseconds of latency, bytes that a link's limiter lets through at once (see sim.h; 0: a plain wire).
 *
 * With a file as seventh argument, one exchange is carried out, and its trace is written to the file, for Perfetto and
 * 'torusctl report'. */
#include <stdio.h>
#include <stdlib.h>

#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/sim/trace_save.h"

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

    if (argc != 7 && argc != 8) {
        (void)fprintf(stderr, "usage: simulate DIMS ALGORITHM BLOCK_BYTES LINK_BYTES_A_SECOND "
                              "LATENCY_MICROSECONDS BURST_BYTES [TRACE_FILE]\n");
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
    const struct spec spec =
        GENERATED(.algorithm = argv[2], .block_bytes = (uint64_t)number(argv[3]),
                  .timeout_ns = 86400 * SECONDS, .repeat = argc == 7 ? REPEAT : 1,
                  .trace = argc == 8);
    struct sim *sim = sim_new(&setup);
    sim_run_until_whole(sim);
    if (spec.trace)
        sim_pass(sim, SIM_CLOCKS_KNOWN);
    struct sim_request *r = sim_exchange(sim, 0, &spec);
    (void)sim_run_until_ended(r, 86400 * SECONDS);
    if (!r->ended || r->error.code != ERROR_NONE) {
        (void)fprintf(stderr, "simulate: %s\n",
                      r->ended ? r->error.text : "the exchange does not end");
        return 1;
    }
    json_t *value =
        json_pack("{s:s, s:s, s:I, s:f}", "dims", argv[1], "algorithm", argv[2], "block_bytes",
                  (json_int_t)spec.block_bytes, "seconds", sim_median_seconds(r));
    if (spec.trace && sim_trace_save(sim, argv[7], value, &e) != 0) {
        (void)fprintf(stderr, "simulate: %s\n", e.text);
        return 1;
    }
    (void)json_dumpf(value, stdout, JSON_REAL_PRECISION(12));
    (void)printf("\n");
    json_decref(value);
    sim_free(sim);
    return 0;
}
