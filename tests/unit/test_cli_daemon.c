/* torusctl with a fake daemon whose replies the test sets: its output, and its exit codes. */
#include <signal.h>
#include <unistd.h>

#include <jansson.h>

#include "proto/error.h"
#include "tests/support/cmocka.h"
#include "tests/unit/cli_fixture.h"
#include "tests/unit/json_expect.h"
#include "tests/unit/test_client_fake.h"

static void serve_status(int fd)
{
    control__request__free_unpacked(fake_request(fd), NULL);
    fake_reply_status(fd);
}

TEST(test_status)
{
    assert_int_equal(CLI_SERVED(serve_status, "status"), 0);
    assert_contains(cli_output, "torus        4x4m\n");
    assert_contains(cli_output, "faults       link +0 of ?[31mnode 3?is down ?\n");
    assert_contains(cli_output, "committed");
    assert_non_null(strstr(
        cli_output,
        "group    state    without     process  calls  done   sent  received  early  reserved\n"
        "job?1    open     link 3:+0?     4321     12    11  4 KiB     8 KiB  100 B    64 KiB\n"
        "default  opening                    -      0     0    0 B       0 B    0 B       0 B\n"));

    assert_contains(cli_output, "copy    asked  phase   files  moved     of  target\n"
                                "c0ffee      2  moving      0  1 KiB  4 KiB  /data/?x\n");

    assert_int_equal(CLI_SERVED(serve_status, "status", "--json"), 0);
    cli_expect("whole=false faults=#1 groups=#2 groups.0.early_bytes=100");
}

static void serve_links(int fd)
{
    control__request__free_unpacked(fake_request(fd), NULL);
    fake_reply_links(fd);
}

TEST(test_links)
{
    assert_int_equal(CLI_SERVED(serve_links, "links"), 0);
    assert_contains(cli_output, "the neighbour has not dialled");
    assert_contains(cli_output, "940 Mbit/s");
}

static void reply_candidates(int fd, double seconds)
{
    Control__Candidates__Candidate candidate = CONTROL__CANDIDATES__CANDIDATE__INIT;
    Control__Candidates__Candidate *candidates[] = {&candidate};
    Control__Costs costs = CONTROL__COSTS__INIT;
    Control__Calibration calibration = CONTROL__CALIBRATION__INIT;
    Control__Candidates body = CONTROL__CANDIDATES__INIT;

    candidate.algorithm = (char *)(uintptr_t) "at2";
    candidate.mode = (char *)(uintptr_t) "stepped";
    candidate.segments = 1;
    candidate.seconds = seconds;
    costs.step_seconds = 4e-5;
    calibration.costs = &costs;
    calibration.measured_at = 86400;
    body.n_candidate = 1;
    body.candidate = candidates;
    body.calibration = &calibration;
    fake_reply(fd, CONTROL_REPLY(CANDIDATES, candidates, &body));
}

static void expect_candidates_request(int fd)
{
    Control__Request *request = fake_request(fd);
    FAKE_MUST(request->kind_case == CONTROL__REQUEST__KIND_CANDIDATES);
    FAKE_MUST(request->candidates->block_bytes == 4096);
    control__request__free_unpacked(request, NULL);
}

static void serve_explained(int fd)
{
    expect_candidates_request(fd);
    reply_candidates(fd, 0.25);
    Control__Request *request = fake_request(fd);
    FAKE_MUST(request->kind_case == CONTROL__REQUEST__KIND_EXCHANGE);
    control__request__free_unpacked(request, NULL);
    fake_reply_accepted(fd, "0.7.1");
    fake_reply_result(fd);
}

static void serve_dry_run(int fd)
{
    expect_candidates_request(fd);
    reply_candidates(fd, 0.25);
    FAKE_MUST(fake_request(fd) == NULL); /* and nothing is exchanged */
}

static void serve_senseless_candidates(int fd)
{
    expect_candidates_request(fd);
    reply_candidates(fd, -1);
}

TEST(test_explain)
{
    assert_int_equal(
        CLI_SERVED(serve_explained, "exchange", "--json", "--block-size", "4K", "--explain"), 0);
    cli_expect("candidates=#1 predicted_seconds=0.25 verified=every_byte");

    assert_int_equal(CLI_SERVED(serve_explained, "exchange", "--block-size", "4K", "--explain"), 0);
    assert_contains(cli_output, "1970-01-02 00:00:00Z");
    assert_contains(cli_output, "at2 (auto)");
    assert_contains(cli_output, "predicted     ");

    assert_int_equal(CLI_SERVED(serve_dry_run, "exchange", "--block-size", "4K", "--dry-run"), 0);
    assert_contains(cli_output, "250 ms");

    assert_int_equal(
        CLI_SERVED(serve_senseless_candidates, "exchange", "--block-size", "4K", "--explain"), 1);
    assert_contains(cli_problem, "is invalid");
}

static void serve_exchange(int fd)
{
    Control__Request *request = fake_request(fd);
    FAKE_MUST(request->kind_case == CONTROL__REQUEST__KIND_EXCHANGE);
    FAKE_MUST(strcmp(request->exchange->spec->algorithm, "auto") == 0);
    FAKE_MUST(request->exchange->spec->block_bytes == 65536);
    FAKE_MUST(request->exchange->spec->timeout_ms == 2500);
    control__request__free_unpacked(request, NULL);
    fake_reply_accepted(fd, "0.7.1");
    fake_reply_result(fd);
}

TEST(test_exchange)
{
    assert_int_equal(CLI_SERVED(serve_exchange, "--json", "exchange", "--block-size", "64KiB",
                                "--timeout", "2.5"),
                     0);
    assert_string_equal(cli_problem, "");
    cli_expect("verified=every_byte requested=auto algorithm=at2");
    json_t *value = cli_object();
    assert_true(json_real_value(json_object_get(value, "call_seconds")) > 0);
    assert_non_null(json_at(value, "per_node.0.ports.+0"));
    json_decref(value);
}

static void serve_packets(int fd, const char *name)
{
    Control__Request *request = fake_request(fd);
    FAKE_MUST(request != NULL && request->kind_case == CONTROL__REQUEST__KIND_EXCHANGE);
    FAKE_MUST(strcmp(request->exchange->spec->algorithm, name) == 0);
    control__request__free_unpacked(request, NULL);
    fake_reply_error(fd, ERROR_LINK, "node 3 is down", "0.7.1");
}

static void serve_five_packets(int fd)
{
    serve_packets(fd, "cccube-q5");
}

static void serve_best_packets(int fd)
{
    serve_packets(fd, "cccube-best");
}

static void serve_bench_in_packets(int fd)
{
    Control__Request *request = fake_request(fd);
    FAKE_MUST(request != NULL && request->kind_case == CONTROL__REQUEST__KIND_STATUS);
    control__request__free_unpacked(request, NULL);
    fake_reply_status(fd);
    serve_packets(fd, "cccube-q5");
}

/* Invalid values of --q, and their errors. */
static const struct {
    const char *says;
    const char *words[8];
} wrong_packets[] = {
    {"requires --algorithm cccube", {"plan", "--dims", "4x4", "--q", "5"}},
    {"requires --algorithm cccube", {"plan", "--dims", "4x4", "--algorithm", "at2", "--q", "5"}},
    {"unknown algorithm", {"plan", "--dims", "4x4", "--algorithm", "at22", "--q", "5"}},
    {"or omit --q", {"plan", "--dims", "4x4", "--algorithm", "cccube-q2", "--q", "5"}},
    {"'05' is not a number", {"plan", "--dims", "4x4", "--algorithm", "cccube", "--q", "05"}},
    {"at most cccube-q8", {"plan", "--dims", "4x4", "--algorithm", "cccube", "--q", "9"}},
    {"depending on the size", {"plan", "--dims", "4x4", "--algorithm", "cccube", "--q", "best"}},
    {"give one or the other", {"plan", "--import", "nothing", "--q", "5"}},
    {"requires --algorithm cccube", {"exchange", "--block-size", "1", "--q", "5"}},
    {"requires --algorithm cccube",
     {"exchange", "--block-size", "1", "--algorithm", "auto", "--q", "5"}},
    {"'many' is not a number",
     {"exchange", "--block-size", "1", "--algorithm", "cccube", "--q", "many"}},
    {"give one or the other",
     {"exchange", "--block-size", "1", "--schedule", "nothing", "--q", "5"}},
    {"name it in --algorithms", {"bench", "--q", "5"}},
    {"name it in --algorithms", {"bench", "--algorithms", "all", "--q", "5"}},
    {"is not in the list", {"bench", "--algorithms", "at2,cccube-q2", "--q", "5"}},
    {"cccube-q5 is given twice", {"bench", "--algorithms", "cccube,cccube-q5", "--q", "5"}},
    {"'-1' is not a number", {"bench", "--algorithms", "cccube", "--q", "-1"}},
    {"--q is for --dims", {"simulate", "--banyan", "4", "--q", "5"}},
    {"requires --algorithm cccube", {"simulate", "--dims", "4x4", "--q", "5"}},
};

/* --q is another spelling of the algorithm's name, in all commands. */
TEST(test_packets)
{
    char *plan;

    assert_int_equal(CLI_RUN("plan", "--dims", "4x4", "--algorithm", "cccube-q5", "--json"), 0);
    plan = strdup(cli_output);
    assert_int_equal(CLI_RUN("plan", "--dims", "4x4", "--algorithm", "cccube", "--q=5", "--json"),
                     0);
    assert_string_equal(cli_output, plan);
    free(plan);
    assert_int_equal(CLI_RUN("simulate", "--dims", "4x4", "--algorithm", "cccube", "--q", "5"), 0);
    assert_contains(cli_output, "cccube-q5");
    for (size_t i = 0; i < sizeof wrong_packets / sizeof wrong_packets[0]; i++) {
        const char *argv[10] = {"torusctl"};
        for (size_t k = 0; k < 8 && wrong_packets[i].words[k] != NULL; k++)
            argv[k + 1] = wrong_packets[i].words[k];
        assert_int_equal(cli_run(argv), 2);
        assert_contains(cli_problem, wrong_packets[i].says);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(CLI_SERVED(i == 0 ? serve_five_packets : serve_best_packets, "exchange",
                                    "--algorithm", "cccube", "--q", i == 0 ? "5" : "best",
                                    "--block-size", "1"),
                         1);
        assert_contains(cli_problem, "node 3 is down");
    }
    assert_int_equal(CLI_SERVED(serve_bench_in_packets, "bench", "--algorithms", "cccube", "--q",
                                "5", "--sizes", "1", "--repeat", "1", "--csv"),
                     1);
    assert_contains(cli_output, "cccube-q5");
}

/* The algorithms that calibrate has run with blocks of 16 bytes. */
static struct {
    char name[64][32];
    unsigned count;
} sixteen;

/* Every exchange takes the same time. */
static void serve_calibration(int fd)
{
    Control__Request *request;

    fake_expect(fd, CONTROL__REQUEST__KIND_STATUS);
    fake_reply_status(fd);
    while ((request = fake_request(fd)) != NULL) {
        bool last = request->kind_case == CONTROL__REQUEST__KIND_CALIBRATION;
        if (last) {
            fake_reply_error(fd, ERROR_LINK, "enough", "");
        } else {
            const Torus__Spec *spec = request->exchange->spec;
            FAKE_MUST(request->kind_case == CONTROL__REQUEST__KIND_EXCHANGE);
            if (spec->block_bytes == 16 && sixteen.count < 64)
                (void)snprintf(sixteen.name[sixteen.count++], 32, "%s", spec->algorithm);
            fake_reply_repetitions(fd);
        }
        control__request__free_unpacked(request, NULL);
        if (last)
            return;
    }
}

/* The model predicts that unmeasured algorithms are good: then calibrate measures them, too. */
TEST(test_calibrate_measures_what_looks_good)
{
    static const char *const usual[] = {"tree",   "pair",     "pair-s2", "pair-s4", "dim",
                                        "dim-s2", "dim-tree", "stream",  "at2",     "direct"};
    unsigned others = 0;

    assert_int_equal(CLI_SERVED(serve_calibration, "calibrate"), 1);
    assert_contains(cli_problem, "enough");
    for (unsigned i = 0; i < sixteen.count; i++) {
        bool is_usual = false;
        for (size_t k = 0; k < sizeof usual / sizeof usual[0]; k++)
            is_usual |= strcmp(sixteen.name[i], usual[k]) == 0;
        others += !is_usual;
        for (unsigned k = 0; k < i; k++) /* none twice */
            assert_string_not_equal(sixteen.name[i], sixteen.name[k]);
    }
    assert_in_range(others, 1, sixteen.count - 1);
}

/* Two algorithms; the first one fails and the daemon can be asked again. */
static void serve_bench(int fd)
{
    for (int i = 0; i < 4; i++) {
        Control__Request *request = fake_request(fd);
        bool first = i == 1;
        FAKE_MUST(request != NULL);
        if (i % 2 == 0) {
            FAKE_MUST(request->kind_case == CONTROL__REQUEST__KIND_STATUS);
            fake_reply_status(fd);
        } else {
            FAKE_MUST(request->kind_case == CONTROL__REQUEST__KIND_EXCHANGE);
            FAKE_MUST(strcmp(request->exchange->spec->algorithm, first ? "at2" : "direct") == 0);
            FAKE_MUST(request->exchange->spec->block_bytes == 65536);
            FAKE_MUST(request->exchange->spec->repeat == 3);
            FAKE_MUST(strcmp(request->exchange->spec->mode, "stepped") == 0);
            if (first)
                fake_reply_error(fd, ERROR_LINK, "node 3 is \"down\"", "0.7.1");
            else
                fake_reply_repetitions(fd);
        }
        control__request__free_unpacked(request, NULL);
    }
}

#define BENCH(...)                                                                                 \
    CLI_SERVED(serve_bench, "bench", "--algorithms", "at2,direct", "--sizes", "64K", "--repeat",   \
               "3", "--mode", "stepped", __VA_ARGS__)

TEST(test_bench)
{
    assert_int_equal(BENCH("--json"), 1);
    assert_string_equal(cli_problem, "torusctl: 1 of 2 measurements failed\n");
    cli_expect("results=#2 results.0.error.code=link results.1.seconds=0.2 results.1.best=true");

    assert_int_equal(BENCH("--csv"), 1);
    assert_string_equal(cli_output,
                        "block_bytes,algorithm,mode,seconds,seconds_min,seconds_max,seconds_spread,"
                        "sustained_seconds,bound_seconds,efficiency,repeat,error\n"
                        "65536,at2,,,,,,,,,3,\"node 3 is \"\"down\"\"\"\n"
                        "65536,direct,stepped,0.2,0.1,0.6,0.25,0.4,0.08388608,0.4194304,3,\n");

    assert_int_equal(BENCH("--timeout", "9"), 1);
    assert_non_null(
        strstr(cli_output, " block  at2     direct     bound\n64 KiB  failed  200 ms *  168 ms\n"));
    assert_non_null(
        strstr(cli_output, "failed   block  reason\nat2     64 KiB  node 3 is \"down\"\n"));
}

static void serve_files(int fd)
{
    Control__Request *request = fake_request(fd);
    char here[256], from[300];
    FAKE_MUST(getcwd(here, sizeof here) != NULL);
    (void)snprintf(from, sizeof from, "%s/out/%%r", here);
    FAKE_MUST(strcmp(request->exchange->spec->from, from) == 0);
    FAKE_MUST(strcmp(request->exchange->spec->to, "/data/in") == 0);
    FAKE_MUST(request->exchange->spec->missing_ok != 0);
    FAKE_MUST(request->exchange->spec->replace != 0);
    control__request__free_unpacked(request, NULL);
    fake_reply_accepted(fd, "0.7.1");
}

TEST(test_exchange_in_doubt)
{
    assert_int_equal(CLI_SERVED(serve_files, "--json", "exchange", "--algorithm", "at2", "--from",
                                "out/%r", "--to", "/data/in", "--missing-ok", "--replace"),
                     4);
    cli_check_error("in doubt", "0.7.1");
    assert_contains(cli_problem, "0.7.1");
}

static _Atomic pid_t to_interrupt; /* the client, once it is known */

static void serve_until_cancelled(int fd)
{
    control__request__free_unpacked(fake_request(fd), NULL);
    fake_reply_accepted(fd, "0.7.1");
    while (to_interrupt == 0)
        (void)usleep(1000);
    (void)kill(to_interrupt, SIGINT);
    fake_expect(fd, CONTROL__REQUEST__KIND_CANCEL);
    fake_reply_error(fd, ERROR_CANCELLED, "cancelled by the client", "0.7.1");
}

TEST(test_interrupted_exchange)
{
    struct fake f;
    const char *const words[] = {"torusctl",    "--json", "--socket",     f.path, "exchange",
                                 "--algorithm", "at2",    "--block-size", "1",    NULL};
    int o, e;

    fake_start(&f, serve_until_cancelled);
    to_interrupt = cli_start(words, &o, &e);
    assert_int_equal(cli_finish(to_interrupt, o, e), 1);
    fake_stop(&f);
    assert_contains(cli_problem, "cancelled");
    cli_check_error("cancelled", "0.7.1");
}
