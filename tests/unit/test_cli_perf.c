/* torusctl perf: its options, the data that its operations make and check, its bounds and its table. The test carries
 * out calls by their definitions; tests/integration/test_programs.py runs it with daemons. */
#include <stdbool.h>

#include "client/cli/measuring/perf.h"
#include "client/cli/terminal/cli.h"
#include "tests/support/cmocka.h"
#include "tests/unit/run_cli.h"

#define MEMBERS 5u

/* ---- Options --------------------------------------------------------------------------------- */

TEST(wrong_usage_is_explained)
{
    static const struct {
        const char *arguments, *said;
    } cases[] = {
        {"perf", "the operation is missing: give one of alltoall, alltoallv,"},
        {"perf alltoal", "'alltoal' is not an operation"},
        {"perf alltoall extra", "unexpected argument 'extra'"},
        {"perf barrier --sizes 1", "--sizes does not apply to barrier"},
        {"perf barrier --verify", "--verify does not apply to barrier"},
        {"perf alltoall --type int8", "--type does not apply to alltoall"},
        {"perf allgather --op sum", "--op does not apply to allgather"},
        {"perf alltoall --root 0", "--root does not apply to alltoall"},
        {"perf alltoall --registered --ordinary", "--registered and --ordinary"},
        {"perf allreduce --type int", "--type: 'int' is not one of int8, int16"},
        {"perf allreduce --op plus", "--op: 'plus' is not one of sum, product"},
        {"perf allreduce --op xor", "--op: xor is for integers, not for float64"},
        {"perf reduce-scatter --op or --type float32", "or is for integers, not for float32"},
        {"perf alltoall --sizes 4-x", "--sizes: 'x' is not a size"},
        {"perf alltoall --sizes 8-4", "--sizes: '8-4' is not a range"},
        {"perf alltoall --sizes 0-4", "--sizes: '0-4' is not a range"},
        {"perf alltoall --repeat 0", "--repeat: at least 1"},
        {"perf alltoall --warm-up -1", "--warm-up: '-1' is not a number from 0 to 1000"},
        {"perf alltoall --pause x", "--pause: 'x' is not a time"},
        {"perf alltoall --timeout 0", "--timeout: a time of 0"},
        {"perf alltoall --part 8", "--part: '8' is not a number from 0 to 7"},
        {"perf alltoall --part 0,", "--part: '' is not a number"},
        {"perf broadcast --root x", "--root: 'x' is not a number"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int code = run_cli(cases[i].arguments);
        if (code != EXIT_USAGE || strstr(run_cli_output, cases[i].said) == NULL)
            fail_msg("%s: %d: %s", cases[i].arguments, code, run_cli_output);
    }
}

TEST(without_a_daemon_it_says_so)
{
    assert_int_equal(run_cli("perf alltoall --socket /nonexistent/socket"), EXIT_NO_DAEMON);
    assert_contains(run_cli_output, "/nonexistent/socket");
}

TEST(help_names_every_operation)
{
    assert_int_equal(run_cli("help perf"), EXIT_DONE);
    for (const struct perf_operation *o = perf_operations; o->name != NULL; o++)
        assert_contains(run_cli_output, o->name);
}

/* ---- Sent and expected data ------------------------------------------------------------------ */

static const struct perf_operation *operation(const char *name)
{
    const struct perf_operation *o = perf_operations;

    while (strcmp(o->name, name) != 0)
        o++;
    return o;
}

static void *list(void)
{
    void *memory = calloc(MEMBERS, sizeof(size_t));
    assert_non_null(memory);
    return memory;
}

/* The jobs of all members, filled. */
static void begin(struct perf_job *jobs, const struct perf_plan *plan, uint64_t bytes,
                  uint64_t number)
{
    for (uint32_t r = 0; r < MEMBERS; r++) {
        struct perf_job *job = &jobs[r];
        *job = (struct perf_job){
            .plan = plan, .rank = r, .members = MEMBERS, .bytes = bytes, .number = number};
        job->send_bytes = list();
        job->send_offset = list();
        job->receive_bytes = list();
        job->receive_offset = list();
        assert_int_equal(perf_lay_out(job, &(struct torus_error){0}), 0);
        job->send = calloc(1, job->send_size + 1);
        job->receive = calloc(1, job->receive_size + 1);
        plan->operation->fill(job);
    }
}

static void end(struct perf_job *jobs)
{
    for (uint32_t r = 0; r < MEMBERS; r++) {
        free(jobs[r].send_bytes);
        free(jobs[r].send_offset);
        free(jobs[r].receive_bytes);
        free(jobs[r].receive_offset);
        free(jobs[r].send);
        free(jobs[r].receive);
    }
}

/* By the definitions. Reductions: of int32 sums only. */
static void deliver(struct perf_job *jobs)
{
    const char *name = jobs->plan->operation->name;

    for (uint32_t i = 0; i < MEMBERS; i++)
        for (uint32_t j = 0; j < MEMBERS; j++) {
            struct perf_job *from = &jobs[i], *to = &jobs[j];
            size_t n = (size_t)from->bytes;
            if (strcmp(name, "alltoall") == 0) {
                memcpy(to->receive + i * n, from->send + j * n, n);
            } else if (strcmp(name, "alltoallv") == 0) {
                assert_int_equal(from->send_bytes[j], to->receive_bytes[i]);
                memcpy(to->receive + to->receive_offset[i], from->send + from->send_offset[j],
                       from->send_bytes[j]);
            } else if (strcmp(name, "allgather") == 0) {
                memcpy(to->receive + i * n, from->send, n);
            } else if (strcmp(name, "gather") == 0) {
                if (j == to->plan->root)
                    memcpy(to->receive + i * n, from->send, n);
            } else if (strcmp(name, "scatter") == 0) {
                if (i == from->plan->root)
                    memcpy(to->receive, from->send + j * n, n);
            } else if (strcmp(name, "broadcast") == 0) {
                if (i == from->plan->root && i != j)
                    memcpy(to->receive, from->receive, n);
            } else {
                bool scattered = strcmp(name, "reduce-scatter") == 0;
                size_t first = scattered ? to->receive_offset[j] : 0;
                size_t count = scattered ? to->receive_bytes[j] : to->count;
                for (size_t e = 0; e < count; e++)
                    ((int32_t *)(void *)to->receive)[e] +=
                        ((int32_t *)(void *)from->send)[first + e];
            }
        }
}

static const char *const with_data[] = {"alltoall", "alltoallv", "allgather", "gather",
                                        "scatter",  "broadcast", "allreduce", "reduce-scatter"};

TEST(right_contents_are_right_and_each_wrong_byte_is_found)
{
    static const uint64_t sizes[] = {1, 3, 8, 100};
    struct perf_job jobs[MEMBERS];

    for (size_t o = 0; o < sizeof with_data / sizeof with_data[0]; o++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            struct perf_plan plan = {.operation = operation(with_data[o]),
                                     .root = 2,
                                     .type = TORUS_INT32,
                                     .combination = TORUS_SUM};
            begin(jobs, &plan, sizes[s], 7);
            deliver(jobs);
            for (uint32_t r = 0; r < MEMBERS; r++) {
                struct perf_job *job = &jobs[r];
                assert_int_equal(plan.operation->wrong(job), 0);
                for (size_t at = 0; at < job->receive_size; at++) {
                    job->receive[at] ^= 1;
                    if (plan.operation->wrong(job) != 1)
                        fail_msg("%s of %d: byte %zu at %u", with_data[o], (int)sizes[s], at, r);
                    job->receive[at] ^= 1;
                }
                /* Data of an earlier call are not accepted for this one. */
                job->number++;
                assert_true(job->receive_size < 4 || plan.operation->wrong(job) > 0);
            }
            end(jobs);
        }
}

/* Vectors have whole elements: size 0 has none, any other size at least one. */
TEST(a_size_of_nothing_is_nothing)
{
    static const struct {
        uint64_t bytes, becomes;
    } sizes[] = {{0, 0}, {1, 4}, {4, 4}, {11, 8}};
    struct perf_job jobs[MEMBERS];

    for (size_t o = 0; o < sizeof with_data / sizeof with_data[0]; o++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            if (!operation(with_data[o])->reduces)
                break;
            struct perf_plan plan = {.operation = operation(with_data[o]),
                                     .type = TORUS_INT32,
                                     .combination = TORUS_SUM};
            begin(jobs, &plan, sizes[s].bytes, 7);
            assert_int_equal(jobs[0].bytes, sizes[s].becomes);
            assert_int_equal(jobs[0].send_size, sizes[s].becomes);
            end(jobs);
        }
}

/* If their sizes overflowed, areas would be smaller than the data written into them. */
TEST(sizes_that_overflow_are_refused)
{
    static const uint64_t sizes[] = {UINT64_MAX / MEMBERS + 1, INT64_MAX,
                                     INT64_MAX / 4 / MEMBERS + 1};

    for (size_t o = 0; o < sizeof with_data / sizeof with_data[0]; o++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            struct perf_plan plan = {.operation = operation(with_data[o]), .type = TORUS_INT8};
            struct perf_job job = {.plan = &plan, .members = MEMBERS, .bytes = sizes[s]};
            struct torus_error e;
            assert_fails(perf_lay_out(&job, &e), e, TORUS_ERROR_USAGE, "too many for 5 members");
        }
}

TEST(uneven_blocks_have_the_size_on_average)
{
    uint64_t sum = 0;
    bool none = false;

    for (uint32_t i = 0; i < 10; i++)
        for (uint32_t j = 0; j < 10; j++) {
            sum += perf_uneven(1000, i, j);
            none = none || perf_uneven(1000, i, j) == 0;
            assert_true(perf_uneven(1000, i, j) <= 2000);
        }
    assert_int_equal(sum, 100 * 1000);
    assert_true(none);
}

/* Every type and operator: the expected values computed in another way, bit by bit for integers. */
static double number_at(const uint8_t *at, enum torus_type type)
{
    union {
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        float f;
        double d;
    } v = {0};
    memcpy(&v, at, torus_type_size(type));
    switch (type) {
    case TORUS_INT8:
        return v.i8;
    case TORUS_INT16:
        return v.i16;
    case TORUS_INT32:
        return v.i32;
    case TORUS_INT64:
    case TORUS_UINT64:
        return (double)v.i64;
    case TORUS_UINT8:
        return v.u8;
    case TORUS_UINT16:
        return v.u16;
    case TORUS_UINT32:
        return v.u32;
    case TORUS_FLOAT32:
        return (double)v.f;
    case TORUS_FLOAT64:
        return v.d;
    default: /* not for perf */
        return -1;
    }
    return -1;
}

TEST(vectors_are_filled_in_every_type)
{
    struct perf_job jobs[MEMBERS];

    for (unsigned type = TORUS_INT8; type <= TORUS_FLOAT64; type++) {
        struct perf_plan plan = {.operation = operation("allreduce"),
                                 .type = (enum torus_type)type,
                                 .combination = TORUS_MAX};
        size_t width = torus_type_size(plan.type);
        begin(jobs, &plan, 100 * width + width - 1, 3);
        assert_int_equal(jobs[0].count, 100);
        assert_int_equal(jobs[0].bytes, 100 * width);
        for (uint32_t r = 0; r < MEMBERS; r++)
            for (size_t e = 0; e < 100; e++) {
                double v = number_at(jobs[r].send + e * width, plan.type);
                assert_true(v >= 0 && v <= 100);
                if (v > number_at(jobs[0].receive + e * width, plan.type))
                    memcpy(jobs[0].receive + e * width, jobs[r].send + e * width, width);
            }
        assert_int_equal(plan.operation->wrong(&jobs[0]), 0);
        end(jobs);
    }
}

/* ---- Bounds ---------------------------------------------------------------------------------- */

static size_t even(uint64_t bytes, uint32_t i, uint32_t j)
{
    return (size_t)bytes;
}

/* All data go from node 0 to node 1. */
static size_t one_block(uint64_t bytes, uint32_t i, uint32_t j)
{
    return i == 0 && j == 1 ? (size_t)bytes : 0;
}

TEST(the_bound_of_uneven_blocks_is_the_known_one_where_they_are_even)
{
    static const char *const dims[] = {"1",   "2",    "2m",  "7",     "8m",    "4x4",
                                       "4x8", "5x3m", "1x6", "2x2x2", "3mx5m", "3x4x5"};
    struct torus t;
    struct error e;

    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        assert_int_equal(torus_parse(&t, dims[i], &e), 0);
        assert_true(perf_bound_uneven(&t, 10, even) == 10 * torus_bound_all_port(&t));
    }
    assert_int_equal(torus_parse(&t, "3x3", &e), 0);
    assert_true(perf_bound_uneven(&t, 10, one_block) == 2.5); /* out by four links */
    assert_int_equal(torus_parse(&t, "2m", &e), 0);
    assert_true(perf_bound_uneven(&t, 10, one_block) == 10);
}

TEST(bounds_of_the_operations)
{
    static const struct {
        const char *name;
        double received, bound; /* of 1600 bytes on 4x4: 4 links a node */
    } cases[] = {
        {"alltoall", 15 * 1600, 8 * 1600},     {"allgather", 15 * 1600, 4 * 1600},
        {"gather", 15 * 100, 4 * 1600},        {"scatter", 15 * 100, 4 * 1600},
        {"broadcast", 15 * 100, 400},          {"allreduce", 2 * 15 * 100, 2 * 15 * 25},
        {"reduce-scatter", 15 * 100, 15 * 25},
    };
    struct torus t, alone;
    struct error e;

    assert_int_equal(torus_parse(&t, "4x4", &e), 0);
    assert_int_equal(torus_parse(&alone, "1", &e), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct perf_plan plan = {.operation = operation(cases[i].name)};
        struct perf_job job = {.plan = &plan, .bytes = 1600, .members = 16};
        assert_true(perf_received(&job) == cases[i].received);
        assert_true(perf_bound(&job, &t) == cases[i].bound);
        job.members = 1;
        assert_true(perf_bound(&job, &alone) == 0);
    }
}

TEST(repetitions_take_about_a_second)
{
    assert_int_equal(perf_repetitions(0.02), 50);
    assert_int_equal(perf_repetitions(0), 100);
    assert_int_equal(perf_repetitions(1e-6), 100);
    assert_int_equal(perf_repetitions(60), 5);
}

/* ---- The table ------------------------------------------------------------------------------- */

static double real(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static bool near(double a, double b)
{
    return a > b * (1 - 1e-9) && a < b * (1 + 1e-9);
}

TEST(a_row_has_medians_and_quartiles)
{
    double latency[] = {1e-3, 2e-3, 3e-3, 4e-3, 5e-3}, period[] = {1e-3, 1e-3, 2e-3, 2e-3, 2e-3};
    struct perf_plan plan = {.operation = operation("alltoall"), .verify = true};
    struct perf_row row = {.bytes = 1000,
                           .repeat = 5,
                           .latency = latency,
                           .period = period,
                           .received = 2500,
                           .bound = 1250};
    json_t *o = perf_row_value(&plan, &row, 10);

    assert_true(near(real(o, "latency_seconds"), 3e-3));
    assert_true(near(real(o, "latency_q1_seconds"), 2e-3));
    assert_true(near(real(o, "latency_q3_seconds"), 4e-3));
    assert_true(near(real(o, "period_seconds"), 2e-3));
    assert_true(near(real(o, "period_q1_seconds"), 1e-3));
    assert_true(near(real(o, "bits_per_second"), 2500 * 8 / 2e-3)); /* by the period */
    assert_true(near(real(o, "bound_seconds"), 1e-3));
    assert_true(near(real(o, "ratio"), 2));
    assert_string_equal(json_string_value(json_object_get(o, "contents")), "right");
    assert_int_equal(json_array_size(json_object_get(o, "latency_seconds_each")), 5);
    json_decref(o);

    row.period = NULL;
    row.wrong = 3;
    o = perf_row_value(&plan, &row, 10);
    assert_true(json_is_null(json_object_get(o, "period_seconds")));
    assert_true(near(real(o, "ratio"), 3)); /* by the latency */
    assert_string_equal(json_string_value(json_object_get(o, "contents")), "WRONG");
    json_decref(o);

    o = perf_row_value(&plan, &row, 0);
    assert_true(json_is_null(json_object_get(o, "bound_seconds")));
    assert_true(json_is_null(json_object_get(o, "ratio")));
    json_decref(o);
}

TEST(the_table)
{
    double latency[] = {1.5e-3}, period[] = {1e-3};
    struct perf_plan plan = {.operation = operation("allreduce"),
                             .type = TORUS_FLOAT32,
                             .combination = TORUS_MAX,
                             .pause_ns = 20000000,
                             .dimensions = 2};
    struct perf_row row = {.bytes = 4096,
                           .repeat = 1,
                           .latency = latency,
                           .period = period,
                           .received = 7000,
                           .bound = 1000};
    const char *wanted =
        "torus      4x8\n"
        "nodes      32\n"
        "links      10 Mbit/s\n"
        "operation  allreduce\n"
        "part       8\n"
        "type       float32\n"
        "operator   max\n"
        "memory     registered\n"
        "pause      20 ms\n"
        "\n"
        " size  calls  latency    25 %    75 %  back to back  25 %  75 %   per node"
        "   bound  ratio\n"
        "4 KiB      1   1.5 ms  1.5 ms  1.5 ms          1 ms  1 ms  1 ms  56 Mbit/s"
        "  800 us   1.25\n";
    struct torus whole, part;
    struct error e;
    char text[2048];
    FILE *out = fmemopen(text, sizeof text, "w");

    assert_int_equal(torus_parse(&whole, "4x8", &e), 0);
    assert_int_equal(torus_parse(&part, "8", &e), 0);
    json_t *rows = json_array();
    (void)json_array_append_new(rows, perf_row_value(&plan, &row, 10));
    json_t *value = perf_value(&plan, &whole, &part, 10, rows);
    writer_text(out, value, perf_view(false));
    (void)fclose(out);
    assert_string_equal(text, wanted);
    json_decref(value);
}
