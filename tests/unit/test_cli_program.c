/* torusctl as a whole: what it prints where, and its exit codes. */
#include <err.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "tests/unit/test_client_fake.h"

#define MOST 65536 /* of output; what pipes hold */

static char out[MOST], problem[MOST];

static void take(int fd, char *text)
{
    size_t length = 0;
    ssize_t n;
    while (length < MOST - 1 && (n = read(fd, text + length, MOST - 1 - length)) > 0)
        length += (size_t)n;
    text[length] = '\0';
    (void)close(fd);
}

/* Starts torusctl with these words (the first one its own name); *o and *e are its output. */
static pid_t start(const char *const *words, int *o, int *e)
{
    int first[2], second[2];
    pid_t pid;

    if (pipe2(first, O_CLOEXEC) != 0 || pipe2(second, O_CLOEXEC) != 0)
        err(1, "pipe");
    pid = fork();
    if (pid < 0)
        err(1, "fork");
    if (pid == 0) {
        (void)signal(SIGINT,
                     SIG_DFL); /* a shell's background job would pass on that it is ignored */
        (void)dup2(first[1], STDOUT_FILENO);
        (void)dup2(second[1], STDERR_FILENO);
        (void)execv(TORUSCTL, (char *const *)(uintptr_t)words);
        _exit(99);
    }
    (void)close(first[1]);
    (void)close(second[1]);
    *o = first[0];
    *e = second[0];
    return pid;
}

static int finish(pid_t pid, int o, int e)
{
    int status;
    take(o, out);
    take(e, problem);
    if (waitpid(pid, &status, 0) != pid)
        err(1, "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run(const char *const *words)
{
    int o, e;
    pid_t pid = start(words, &o, &e);
    return finish(pid, o, e);
}

#define RUN(...) run((const char *const[]){"torusctl", __VA_ARGS__, NULL})

/* The output as the one JSON object that it must be. */
static json_t *object(void)
{
    json_t *value = json_loads(out, 0, NULL);
    assert_true(json_is_object(value));
    assert_non_null(strchr(out, '\n'));
    assert_ptr_equal(strchr(out, '\n'), out + strlen(out) - 1);
    return value;
}

/* The output must be an error with this code, and perhaps the id of an exchange. */
static void check_error(const char *code, const char *id)
{
    json_t *value = object(), *error = json_object_get(value, "error");
    assert_string_equal(json_string_value(json_object_get(error, "code")), code);
    assert_non_null(json_string_value(json_object_get(error, "text")));
    if (id != NULL)
        assert_string_equal(json_string_value(json_object_get(value, "id")), id);
    else
        assert_null(json_object_get(value, "id"));
    json_decref(value);
}

/* ---- Without a daemon ------------------------------------------------------------------------ */

static void test_plan(void **state)
{
    (void)state;
    assert_int_equal(RUN("plan", "--dims", "8x8", "--algorithm", "at2", "--json"), 0);
    assert_string_equal(out, "{\"dims\":[8,8],\"algorithm\":\"at2\",\"port_model\":\"all-port\","
                             "\"startups\":6,\"transmission\":64,\"critical_path\":64,"
                             "\"bound\":64,\"bound_of\":\"all-port\",\"contended_steps\":0,"
                             "\"port_model_kept\":true,\"minimal\":true}\n");
    assert_string_equal(problem, "");
    assert_int_equal(RUN("--json", "plan", "--dims=6", "--algorithm=ar"), 0);
    assert_non_null(strstr(out, "\"bound\":4.5,"));
    assert_int_equal(RUN("plan", "--dims", "8x8", "--algorithm", "a2"), 0);
    assert_non_null(strstr(out, "lower bound      256\nbound of         one-port, single hops\n"));
    assert_int_equal(RUN("plan", "--dims", "4x4m", "--algorithm", "direct", "--json"), 0);
    assert_non_null(strstr(out, "\"wrap\":[true,false]"));
    assert_int_equal(RUN("plan", "--dims", "5x5", "--algorithm", "direct"), 0);
    assert_non_null(strstr(out, "port model kept  no\n"));
    assert_int_equal(RUN("plan", "--dims", "8x8"), 0);
    assert_non_null(strstr(out, "port model kept  yes\n"));
    assert_non_null(strstr(out, "efficiency       100.0 %\n"));
    assert_int_equal(RUN("plan", "--dims", "4x4", "--node", "5"), 0);
    assert_non_null(strstr(out, "sends"));
    assert_non_null(strstr(out, "relays"));
    assert_non_null(strstr(out, "receives"));
}

static void test_plan_routes(void **state)
{
    size_t lines = 0;

    (void)state;
    assert_int_equal(RUN("plan", "--dims", "3", "--algorithm", "direct", "--routes"), 0);
    for (char *line = strtok(out, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        int source, destination, segment;
        json_t *legs, *leg, *value = json_loads(line, 0, NULL);
        size_t i;
        assert_int_equal(json_unpack(value, "{s:i,s:i,s:i,s:o!}", "src", &source, "dst",
                                     &destination, "segment", &segment, "legs", &legs),
                         0);
        assert_int_not_equal(source, destination);
        assert_true(json_array_size(legs) > 0);
        json_array_foreach(legs, i, leg)
        {
            int step, dim, direction, hops;
            assert_int_equal(json_unpack(leg, "[i,i,i,i!]", &step, &dim, &direction, &hops), 0);
            assert_true((direction == 1 || direction == -1) && hops >= 1);
        }
        json_decref(value);
        lines++;
    }
    assert_int_equal(lines, 6);
}

/* A file with this in it; its name. */
static const char *file_of(const char *text)
{
    static char path[] = "/tmp/torusctl-schedule-XXXXXX";
    FILE *file;
    int fd;

    memcpy(path + sizeof path - 7, "XXXXXX", 6);
    fd = mkstemp(path);
    assert_true(fd >= 0);
    file = fdopen(fd, "w");
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void test_plan_without(void **state)
{
    (void)state;
    assert_int_equal(RUN("plan", "--dims", "4x4", "--without", "7:-0,7", "--json"), 0);
    assert_string_equal(out, "{\"dims\":[4,4],\"algorithm\":\"detour\",\"port_model\":\"all-port\","
                             "\"without\":\"7\",\"segments\":12,\"busiest\":8.08333333333333,"
                             "\"bound\":8,\"bound_of\":\"all-port, what is in order\","
                             "\"efficiency\":0.989690721649484,\"streamed\":8.08333333333333}\n");
    assert_int_equal(RUN("plan", "--dims", "4x4", "--without", "3:+0"), 0);
    assert_non_null(strstr(out, "without          3:+0\n"));
    assert_non_null(strstr(out, "lower bound      9.14286\n"));
    assert_int_equal(RUN("plan", "--dims", "4x4", "--without", "3:+0", "--node", "3"), 0);
    assert_non_null(strstr(out, "sends"));
    assert_null(strstr(out, "sends     +0"));
    assert_int_equal(RUN("plan", "--dims", "3", "--without", "0:+0", "--export", "torusd"), 0);
    const char *path = file_of(out);
    assert_int_equal(RUN("plan", "--import", path), 0);
    assert_non_null(strstr(out, "every segment of all 6 blocks arrives once"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(RUN("plan", "--dims", "3m", "--without", "0:+0"), 1);
    assert_non_null(strstr(problem, "the torus is in parts: node 0 cannot be reached from node 1"));
    assert_int_equal(RUN("plan", "--without", "0:+0"), 2);
    assert_non_null(strstr(problem, "--dims is missing"));
    assert_int_equal(RUN("plan", "--dims", "4x4", "--without", "16"), 2);
    assert_non_null(strstr(problem, "--without: '16': a torus of 4x4 has the nodes 0 to 15"));
    assert_int_equal(RUN("plan", "--dims", "4x4", "--without", "1", "--algorithm", "at2"), 2);
    assert_non_null(strstr(problem, "--without and --algorithm: give one or the other"));
    assert_int_equal(RUN("plan", "--dims", "4x4", "--without", "7", "--node", "7"), 2);
    assert_non_null(strstr(problem, "node 7 is out of order"));
    assert_int_equal(RUN("plan", "--dims", "4x4", "--without", "7", "--export", "torusd"), 2);
    assert_non_null(strstr(problem, "node 7 is out of order"));
}

static void test_plan_import_and_export(void **state)
{
    static const char *const formats[] = {"torusd", "msccl"};
    json_t *value, *again;

    (void)state;
    assert_int_equal(RUN("plan", "--dims", "2x3", "--algorithm", "stream", "--json"), 0);
    value = json_loads(out, 0, NULL);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(
            RUN("plan", "--dims", "2x3", "--algorithm", "stream", "--export", formats[i]), 0);
        const char *path = file_of(out);
        assert_int_equal(RUN("plan", "--import", path, "--dims", "2x3", "--json"), 0);
        again = json_loads(out, 0, NULL);
        assert_int_equal(strlen(json_string_value(json_object_get(again, "digest"))), 64);
        assert_non_null(strstr(json_string_value(json_object_get(again, "algorithm")), "stream@"));
        for (const char *const *key =
                 (const char *const[]){"startups", "transmission", "bound", "critical_path", NULL};
             *key != NULL; key++)
            assert_true(json_equal(json_object_get(value, *key), json_object_get(again, *key)));
        json_decref(again);
        assert_int_equal(RUN("plan", "--import", path, "--dims", "3x2"), 1);
        assert_non_null(strstr(problem, "2x3, not 3x2"));
        assert_int_equal(RUN("plan", "--import", path), i == 0 ? 0 : 2);
        assert_int_equal(unlink(path), 0);
    }
    json_decref(value);
    const char *path = file_of("{\"schedule\":1,\"dims\":\"2\"}\n"
                               "{\"src\":1,\"dst\":0,\"legs\":[[0,0,1,1]]}\n");
    assert_int_equal(RUN("plan", "--import", path), 1);
    assert_non_null(strstr(problem, path));
    assert_non_null(strstr(problem, "block 0 -> 1, segment 0 has no route: node 0"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(RUN("plan", "--import", path), 1);
    assert_non_null(strstr(problem, "No such file"));
    assert_int_equal(RUN("plan", "--import", path, "--algorithm", "ar"), 2);
    assert_int_equal(RUN("plan", "--dims", "2", "--export", "svg"), 2);
    assert_non_null(strstr(problem, "torusd, msccl and goal"));
    assert_int_equal(RUN("plan", "--dims", "2", "--routes", "--period"), 2);
    assert_int_equal(RUN("plan", "--dims", "2", "--export", "msccl", "--block-size", "1"), 2);
}

/* The messages of a schedule in GOAL: each send has its receive, and the bytes are those of all
 * blocks and hops. */
static void test_plan_goal(void **state)
{
    unsigned long long sent = 0, received = 0, rank = 0, bytes, peer, tag, port;
    unsigned label;

    (void)state;
    assert_int_equal(RUN("plan", "--dims", "3x3", "--algorithm", "stream", "--export", "goal",
                         "--block-size", "10"),
                     0);
    assert_memory_equal(out, "num_ranks 9\n", 12);
    for (char *line = strtok(out, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        (void)sscanf(line, "rank %llu {", &rank);
        if (sscanf(line, "l%u: send %llub to %llu tag %llu nic %llu", &label, &bytes, &peer, &tag,
                   &port) == 5)
            sent += bytes * (1000 + tag + 100 * peer + 10000 * rank);
        if (sscanf(line, "l%u: recv %llub from %llu tag %llu nic %llu", &label, &bytes, &peer, &tag,
                   &port) == 5)
            received += bytes * (1000 + tag + 100 * rank + 10000 * peer);
    }
    assert_true(sent > 0);
    assert_int_equal(sent, received);
}

static void test_wrong_usage(void **state)
{
    (void)state;
    assert_int_equal(RUN("exchnge"), 2);
    assert_non_null(strstr(problem, "did you mean exchange?"));
    assert_int_equal(run((const char *const[]){"torusctl", NULL}), 2);
    assert_non_null(strstr(problem, "usage:"));
    assert_int_equal(RUN("plan"), 2);
    assert_int_equal(RUN("plan", "--dims", "4y4"), 2);
    assert_int_equal(RUN("plan", "--dims", "4x4", "--algorithm", "at3"), 2);
    assert_non_null(strstr(problem, "at2"));
    assert_non_null(strstr(problem, "direct"));
    assert_int_equal(RUN("plan", "--dims", "4x4", "--algorithm", "ar"), 2);
    assert_non_null(strstr(problem, "ring"));
    assert_int_equal(RUN("plan", "--dims", "4x4", "extra"), 2);
    assert_int_equal(RUN("plan", "--dims", "4x4", "--node", "16"), 2);
    assert_int_equal(RUN("plan", "--dims", "2x1", "--node", "3"), 2);
    assert_int_equal(RUN("plan", "--dims", "4x4", "--node", "1", "--routes"), 2);
    assert_int_equal(RUN("exchange"), 2);
    assert_int_equal(RUN("exchange", "--block-size", "1Q"), 2);
    assert_int_equal(RUN("exchange", "--block-size", "1", "--algorithm", "none"), 2);
    assert_int_equal(RUN("exchange", "--from", "a"), 2);
    assert_int_equal(RUN("exchange", "--from", "a", "--to", "b", "--block-size", "1"), 2);
    assert_int_equal(RUN("exchange", "--block-size", "1", "--missing-ok"), 2);
    assert_int_equal(RUN("exchange", "--block-size", "1", "--replace"), 2);
    assert_non_null(strstr(problem, "--replace is for files"));
    assert_int_equal(RUN("exchange", "--block-size", "1", "--timeout", "0"), 2);
    assert_int_equal(RUN("exchange", "--block-size", "1", "--repeat", "0"), 2);
    assert_int_equal(RUN("exchange", "--block-size", "1", "--repeat", "1000001"), 2);
    assert_int_equal(RUN("exchange", "--from", "a", "--to", "b", "--repeat", "2"), 2);
    assert_non_null(strstr(problem, "--repeat is for generated patterns"));
    assert_int_equal(RUN("exchange", "--block-size", "1", "--mode", "dreaming"), 2);
    assert_non_null(strstr(problem, "neither stepped nor streaming"));
    assert_int_equal(RUN("broadcast", "--block-size", "1", "--root", "0", "--mode", "none"), 2);
    assert_non_null(strstr(problem, "neither stepped nor streaming"));
    assert_string_equal(out, "");
    assert_int_equal(RUN("--json", "exchange", "--block-size", "\xff\n"), 2);
    check_error("usage", NULL);
    assert_int_equal(RUN("--json"), 2);
    check_error("usage", NULL);
}

/* Only the algorithms that can carry out what is asked for are offered. */
static void test_unknown_algorithms(void **state)
{
    (void)state;
    assert_int_equal(RUN("exchange", "--algorithm", "nonsense", "--block-size", "1"), 2);
    assert_non_null(strstr(problem, " direct"));
    assert_null(strstr(problem, "yangwang"));
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            assert_int_equal(RUN("allgather", "--algorithm", "direkt", "--block-size", "1"), 2);
        else
            assert_int_equal(
                RUN("broadcast", "--root", "0", "--algorithm", "direkt", "--block-size", "1"), 2);
        assert_non_null(strstr(problem, "known are: balanced, yangwang, saadschultz"));
        assert_null(strstr(problem, "direct"));
    }
    assert_int_equal(RUN("plan", "--dims", "4x4", "--algorithm", "nonsense"), 2);
    assert_non_null(strstr(problem, " direct"));
    assert_non_null(strstr(problem, "yangwang"));
}

static void test_help(void **state)
{
    (void)state;
    assert_int_equal(RUN("--help"), 0);
    assert_non_null(strstr(out, "examples:"));
    assert_int_equal(RUN("help", "plan"), 0);
    assert_non_null(strstr(out, "--dims"));
    assert_int_equal(RUN("plan", "--help"), 0);
    assert_non_null(strstr(out, "--dims"));
    assert_int_equal(RUN("help", "pln"), 2);
    assert_non_null(strstr(problem, "did you mean plan?"));
    assert_int_equal(RUN("--version"), 0);
    assert_non_null(strstr(out, "torusctl " TORUSD_VERSION));
    assert_int_equal(RUN("algorithms"), 0);
    assert_non_null(strstr(out, "at2"));
    assert_int_equal(RUN("algorithms", "--dims", "8x8", "--json"), 0);
    json_decref(object());
    assert_string_equal(problem, "");
}

/* Behind "--" there are no options. */
static void test_a_file_named_as_an_option(void **state)
{
    (void)state;
    assert_int_equal(RUN("key", "id", "--", "--json"), 1);
    assert_string_equal(out, "");
}

static void test_no_daemon(void **state)
{
    (void)state;
    assert_int_equal(RUN("--socket", "/nonexistent/control.sock", "status", "--json"), 3);
    assert_non_null(strstr(problem, "/nonexistent/control.sock"));
    assert_non_null(strstr(problem, "--socket"));
    check_error("no daemon", NULL);
    (void)setenv("TORUS_SOCKET", "/nonexistent/other.sock", 1);
    assert_int_equal(RUN("exchange", "--block-size", "1"), 3);
    assert_non_null(strstr(problem, "/nonexistent/other.sock"));
    assert_string_equal(out, "");
    (void)unsetenv("TORUS_SOCKET");
}

static void test_output_that_cannot_be_written(void **state)
{
    const char *const words[] = {"torusctl", "plan", "--dims", "16x16", "--routes", NULL};
    int o, e;
    pid_t pid;

    (void)state;
    assert_int_equal(system("'" TORUSCTL "' algorithms >/dev/full 2>/dev/null") >> 8, 1);
    assert_int_equal(system("'" TORUSCTL "' algorithms >&- 2>/dev/null") >> 8, 1);

    /* A reader that goes away ends it, without a word. */
    pid = start(words, &o, &e);
    assert_int_equal(read(o, out, 1), 1);
    (void)close(o);
    take(e, problem);
    assert_int_equal(waitpid(pid, &o, 0), pid);
    assert_true(WIFEXITED(o) && WEXITSTATUS(o) == 1);
    assert_string_equal(problem, "");
}

/* File names that are not text can be used; what is printed of them is text. */
static void test_names_that_are_not_text(void **state)
{
    char folder[] = "/tmp/torusctl-XXXXXX", key[64], hosts[64], routes[64], command[128];
    json_t *o;
    FILE *file;

    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(key, sizeof key, "%s/key\xff", folder);
    (void)snprintf(hosts, sizeof hosts, "%s/hosts\xff", folder);
    (void)snprintf(routes, sizeof routes, "%s/routes\xff", folder);
    assert_int_equal(RUN("--json", "key", "generate", key), 0);
    o = object();
    assert_string_equal(strrchr(json_string_value(json_object_get(o, "file")), '/'), "/key?");
    json_decref(o);
    file = fopen(hosts, "we");
    assert_non_null(file);
    (void)fputs("[alone]\nrank = 0\n", file);
    (void)fclose(file);
    assert_int_equal(RUN("--json", "ip-routes", "--dims", "1", "--hosts", hosts, "--to", routes),
                     0);
    o = object();
    assert_non_null(strstr(json_string_value(json_object_get(o, "names")), "/routes?/hosts"));
    json_decref(o);
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

/* ---- With a daemon --------------------------------------------------------------------------- */

static void serve_status(int fd)
{
    control__request__free_unpacked(fake_request(fd), NULL);
    fake_reply_status(fd);
}

static void test_status(void **state)
{
    struct fake f;
    json_t *value, *groups;

    (void)state;
    fake_start(&f, serve_status);
    assert_int_equal(RUN("--socket", f.path, "status"), 0);
    fake_stop(&f);
    assert_non_null(strstr(out, "torus        4x4m\n"));
    assert_non_null(strstr(out, "faults       link +0 of ?[31mnode 3?is down ?\n"));
    assert_non_null(strstr(out, "committed"));
    assert_non_null(strstr(
        out,
        "group    state    without     process  calls  done   sent  received  early  reserved\n"
        "job?1    open     link 3:+0?     4321     12    11  4 KiB     8 KiB  100 B    64 KiB\n"
        "default  opening                    -      0     0    0 B       0 B    0 B       0 B\n"));

    fake_start(&f, serve_status);
    assert_int_equal(RUN("status", "--json", "--socket", f.path), 0);
    fake_stop(&f);
    value = object();
    assert_true(json_is_false(json_object_get(value, "whole")));
    assert_int_equal(json_array_size(json_object_get(value, "faults")), 1);
    groups = json_object_get(value, "groups");
    assert_int_equal(json_array_size(groups), 2);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(groups, 0), "parked_bytes")),
                     100);
    json_decref(value);
}

static void serve_links(int fd)
{
    control__request__free_unpacked(fake_request(fd), NULL);
    fake_reply_links(fd);
}

static void test_links(void **state)
{
    struct fake f;

    (void)state;
    fake_start(&f, serve_links);
    assert_int_equal(RUN("--socket", f.path, "links"), 0);
    fake_stop(&f);
    assert_non_null(strstr(out, "the neighbour has not dialled"));
    assert_non_null(strstr(out, "940 Mbit/s"));
}

static void reply_candidates(int fd, double seconds)
{
    Control__Candidates__Candidate candidate = CONTROL__CANDIDATES__CANDIDATE__INIT;
    Control__Candidates__Candidate *candidates[] = {&candidate};
    Control__Costs costs = CONTROL__COSTS__INIT;
    Control__Calibration calibration = CONTROL__CALIBRATION__INIT;
    Control__Candidates body = CONTROL__CANDIDATES__INIT;
    Control__Reply reply = CONTROL__REPLY__INIT;

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
    reply.kind_case = CONTROL__REPLY__KIND_CANDIDATES;
    reply.candidates = &body;
    fake_reply(fd, &reply);
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

static void test_explain(void **state)
{
    struct fake f;
    json_t *value;

    (void)state;
    fake_start(&f, serve_explained);
    assert_int_equal(
        RUN("exchange", "--json", "--socket", f.path, "--block-size", "4K", "--explain"), 0);
    fake_stop(&f);
    value = object();
    assert_int_equal(json_array_size(json_object_get(value, "candidates")), 1);
    assert_true(json_number_value(json_object_get(value, "predicted_seconds")) == 0.25);
    assert_string_equal(json_string_value(json_object_get(value, "verified")), "every byte");
    json_decref(value);

    fake_start(&f, serve_explained);
    assert_int_equal(RUN("exchange", "--socket", f.path, "--block-size", "4K", "--explain"), 0);
    fake_stop(&f);
    assert_non_null(strstr(out, "1970-01-02 00:00:00Z"));
    assert_non_null(strstr(out, "at2 (auto)"));
    assert_non_null(strstr(out, "predicted     "));

    fake_start(&f, serve_dry_run);
    assert_int_equal(RUN("exchange", "--socket", f.path, "--block-size", "4K", "--dry-run"), 0);
    fake_stop(&f);
    assert_non_null(strstr(out, "250 ms"));

    fake_start(&f, serve_senseless_candidates);
    assert_int_equal(RUN("exchange", "--socket", f.path, "--block-size", "4K", "--explain"), 1);
    fake_stop(&f);
    assert_non_null(strstr(problem, "makes no sense"));
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

static void test_exchange(void **state)
{
    struct fake f;
    json_t *value, *node;

    (void)state;
    fake_start(&f, serve_exchange);
    assert_int_equal(
        RUN("--json", "--socket", f.path, "exchange", "--block-size", "64KiB", "--timeout", "2.5"),
        0);
    fake_stop(&f);
    assert_string_equal(problem, "");
    value = object();
    assert_string_equal(json_string_value(json_object_get(value, "verified")), "every byte");
    assert_string_equal(json_string_value(json_object_get(value, "requested")), "auto");
    assert_string_equal(json_string_value(json_object_get(value, "algorithm")), "at2");
    assert_true(json_real_value(json_object_get(value, "call_seconds")) > 0);
    node = json_array_get(json_object_get(value, "per_node"), 0);
    assert_non_null(json_object_get(json_object_get(node, "ports"), "+0"));
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

/* --q is a spelling of the name, wherever an algorithm is named. */
static void test_packets(void **state)
{
    static const struct {
        const char *says;
        const char *words[8];
    } wrong[] = {
        {"requires --algorithm cccube", {"plan", "--dims", "4x4", "--q", "5"}},
        {"requires --algorithm cccube",
         {"plan", "--dims", "4x4", "--algorithm", "at2", "--q", "5"}},
        {"unknown algorithm", {"plan", "--dims", "4x4", "--algorithm", "at22", "--q", "5"}},
        {"or omit --q", {"plan", "--dims", "4x4", "--algorithm", "cccube-q2", "--q", "5"}},
        {"'05' is not a number", {"plan", "--dims", "4x4", "--algorithm", "cccube", "--q", "05"}},
        {"at most cccube-q8", {"plan", "--dims", "4x4", "--algorithm", "cccube", "--q", "9"}},
        {"depends on the size", {"plan", "--dims", "4x4", "--algorithm", "cccube", "--q", "best"}},
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
        {"not among them", {"bench", "--algorithms", "at2,cccube-q2", "--q", "5"}},
        {"cccube-q5 is given twice", {"bench", "--algorithms", "cccube,cccube-q5", "--q", "5"}},
        {"'-1' is not a number", {"bench", "--algorithms", "cccube", "--q", "-1"}},
        {"--q is for --dims", {"simulate", "--banyan", "4", "--q", "5"}},
        {"requires --algorithm cccube", {"simulate", "--dims", "4x4", "--q", "5"}},
    };
    struct fake f;
    char *plan;

    (void)state;
    assert_int_equal(RUN("plan", "--dims", "4x4", "--algorithm", "cccube-q5", "--json"), 0);
    plan = strdup(out);
    assert_int_equal(RUN("plan", "--dims", "4x4", "--algorithm", "cccube", "--q=5", "--json"), 0);
    assert_string_equal(out, plan);
    free(plan);
    assert_int_equal(RUN("simulate", "--dims", "4x4", "--algorithm", "cccube", "--q", "5"), 0);
    assert_non_null(strstr(out, "cccube-q5"));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const char *argv[10] = {"torusctl"};
        for (size_t k = 0; k < 8 && wrong[i].words[k] != NULL; k++)
            argv[k + 1] = wrong[i].words[k];
        assert_int_equal(run(argv), 2);
        assert_non_null(strstr(problem, wrong[i].says));
    }
    for (int i = 0; i < 2; i++) {
        fake_start(&f, i == 0 ? serve_five_packets : serve_best_packets);
        assert_int_equal(RUN("--socket", f.path, "exchange", "--algorithm", "cccube", "--q",
                             i == 0 ? "5" : "best", "--block-size", "1"),
                         1);
        fake_stop(&f);
        assert_non_null(strstr(problem, "node 3 is down"));
    }
    fake_start(&f, serve_bench_in_packets);
    assert_int_equal(RUN("--socket", f.path, "bench", "--algorithms", "cccube", "--q", "5",
                         "--sizes", "1", "--repeat", "1", "--csv"),
                     1);
    fake_stop(&f);
    assert_non_null(strstr(out, "cccube-q5"));
}

/* What calibrate has exchanged with blocks of 16 bytes. */
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

/* The model lets algorithms look good that were not measured: then they are. */
static void test_calibrate_measures_what_looks_good(void **state)
{
    static const char *const usual[] = {"tree",   "pair",     "pair-s2", "pair-s4", "dim",
                                        "dim-s2", "dim-tree", "stream",  "at2",     "direct"};
    unsigned others = 0;
    struct fake f;

    (void)state;
    fake_start(&f, serve_calibration);
    assert_int_equal(RUN("--socket", f.path, "calibrate"), 1);
    fake_stop(&f);
    assert_non_null(strstr(problem, "enough"));
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

#define BENCH(f, ...)                                                                              \
    RUN("--socket", (f).path, "bench", "--algorithms", "at2,direct", "--sizes", "64K", "--repeat", \
        "3", "--mode", "stepped", __VA_ARGS__)

static void test_bench(void **state)
{
    struct fake f;
    json_t *value, *results;

    (void)state;
    fake_start(&f, serve_bench);
    assert_int_equal(BENCH(f, "--json"), 1);
    fake_stop(&f);
    assert_string_equal(problem, "torusctl: 1 of 2 failed\n");
    value = object();
    results = json_object_get(value, "results");
    assert_int_equal(json_array_size(results), 2);
    assert_string_equal(json_string_value(json_object_get(
                            json_object_get(json_array_get(results, 0), "error"), "code")),
                        "link");
    assert_true(json_real_value(json_object_get(json_array_get(results, 1), "seconds")) == 0.2);
    assert_true(json_is_true(json_object_get(json_array_get(results, 1), "best")));
    json_decref(value);

    fake_start(&f, serve_bench);
    assert_int_equal(BENCH(f, "--csv"), 1);
    fake_stop(&f);
    assert_string_equal(out,
                        "block_bytes,algorithm,mode,seconds,seconds_min,seconds_max,seconds_spread,"
                        "sustained_seconds,bound_seconds,efficiency,repeat,error\n"
                        "65536,at2,,,,,,,,,3,\"node 3 is \"\"down\"\"\"\n"
                        "65536,direct,stepped,0.2,0.1,0.6,0.25,0.4,0.08388608,0.4194304,3,\n");

    fake_start(&f, serve_bench);
    assert_int_equal(BENCH(f, "--timeout", "9"), 1);
    fake_stop(&f);
    assert_non_null(
        strstr(out, " block  at2     direct     bound\n64 KiB  failed  200 ms *  168 ms\n"));
    assert_non_null(strstr(out, "failed   block  reason\nat2     64 KiB  node 3 is \"down\"\n"));
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

static void test_exchange_in_doubt(void **state)
{
    struct fake f;

    (void)state;
    fake_start(&f, serve_files);
    assert_int_equal(RUN("--json", "--socket", f.path, "exchange", "--algorithm", "at2", "--from",
                         "out/%r", "--to", "/data/in", "--missing-ok", "--replace"),
                     4);
    fake_stop(&f);
    check_error("in doubt", "0.7.1");
    assert_non_null(strstr(problem, "0.7.1"));
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

static void test_interrupted_exchange(void **state)
{
    struct fake f;
    const char *const words[] = {"torusctl",    "--json", "--socket",     f.path, "exchange",
                                 "--algorithm", "at2",    "--block-size", "1",    NULL};
    int o, e;

    (void)state;
    fake_start(&f, serve_until_cancelled);
    to_interrupt = start(words, &o, &e);
    assert_int_equal(finish(to_interrupt, o, e), 1);
    fake_stop(&f);
    assert_non_null(strstr(problem, "cancelled"));
    check_error("cancelled", "0.7.1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_plan_without),
        cmocka_unit_test(test_plan_routes),
        cmocka_unit_test(test_plan_import_and_export),
        cmocka_unit_test(test_plan_goal),
        cmocka_unit_test(test_wrong_usage),
        cmocka_unit_test(test_unknown_algorithms),
        cmocka_unit_test(test_packets),
        cmocka_unit_test(test_calibrate_measures_what_looks_good),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_a_file_named_as_an_option),
        cmocka_unit_test(test_no_daemon),
        cmocka_unit_test(test_output_that_cannot_be_written),
        cmocka_unit_test(test_names_that_are_not_text),
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_exchange),
        cmocka_unit_test(test_bench),
        cmocka_unit_test(test_explain),
        cmocka_unit_test(test_exchange_in_doubt),
        cmocka_unit_test(test_interrupted_exchange),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
