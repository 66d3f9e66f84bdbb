/* torusctl without a daemon: its output, and its exit codes. */
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/support/cmocka.h"
#include "tests/unit/cli_fixture.h"

TEST(test_plan)
{
    assert_int_equal(CLI_RUN("plan", "--dims", "8x8", "--algorithm", "at2", "--json"), 0);
    assert_string_equal(cli_output,
                        "{\"dims\":[8,8],\"algorithm\":\"at2\",\"port_model\":\"all-port\","
                        "\"startups\":6,\"transmission\":64,\"critical_path\":64,"
                        "\"bound\":64,\"bound_of\":\"all-port\",\"contended_steps\":0,"
                        "\"port_model_kept\":true,\"minimal\":true}\n");
    assert_string_equal(cli_problem, "");
    assert_int_equal(CLI_RUN("--json", "plan", "--dims=6", "--algorithm=ar"), 0);
    assert_contains(cli_output, "\"bound\":4.5,");
    assert_int_equal(CLI_RUN("plan", "--dims", "8x8", "--algorithm", "a2"), 0);
    assert_non_null(
        strstr(cli_output, "lower bound      256\nbound of         one-port, single hops\n"));
    assert_int_equal(CLI_RUN("plan", "--dims", "4x4m", "--algorithm", "direct", "--json"), 0);
    assert_contains(cli_output, "\"wrap\":[true,false]");
    assert_int_equal(CLI_RUN("plan", "--dims", "5x5", "--algorithm", "direct"), 0);
    assert_contains(cli_output, "port model kept  no\n");
    assert_int_equal(CLI_RUN("plan", "--dims", "8x8"), 0);
    assert_contains(cli_output, "port model kept  yes\n");
    assert_contains(cli_output, "efficiency       100.0 %\n");
    assert_int_equal(CLI_RUN("plan", "--dims", "4x4", "--node", "5"), 0);
    assert_contains(cli_output, "sends");
    assert_contains(cli_output, "relays");
    assert_contains(cli_output, "receives");
}

TEST(test_plan_routes)
{
    size_t lines = 0;

    assert_int_equal(CLI_RUN("plan", "--dims", "3", "--algorithm", "direct", "--routes"), 0);
    for (char *line = strtok(cli_output, "\n"); line != NULL; line = strtok(NULL, "\n")) {
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

TEST(test_plan_without)
{
    assert_int_equal(CLI_RUN("plan", "--dims", "4x4", "--without", "7:-0,7", "--json"), 0);
    assert_string_equal(cli_output,
                        "{\"dims\":[4,4],\"algorithm\":\"detour\",\"port_model\":\"all-port\","
                        "\"without\":\"7\",\"segments\":12,\"busiest\":8.08333333333333,"
                        "\"bound\":8,\"bound_of\":\"all-port, what is in order\","
                        "\"efficiency\":0.989690721649484,\"streamed\":8.08333333333333}\n");
    assert_int_equal(CLI_RUN("plan", "--dims", "4x4", "--without", "3:+0"), 0);
    assert_contains(cli_output, "without          3:+0\n");
    assert_contains(cli_output, "lower bound      9.14286\n");
    assert_int_equal(CLI_RUN("plan", "--dims", "4x4", "--without", "3:+0", "--node", "3"), 0);
    assert_contains(cli_output, "sends");
    assert_null(strstr(cli_output, "sends     +0"));
    assert_int_equal(CLI_RUN("plan", "--dims", "3", "--without", "0:+0", "--export", "torusd"), 0);
    const char *path = text_file(cli_output);
    assert_int_equal(CLI_RUN("plan", "--import", path), 0);
    assert_contains(cli_output, "every segment of all 6 blocks arrives once");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(CLI_RUN("plan", "--dims", "3m", "--without", "0:+0"), 1);
    assert_non_null(
        strstr(cli_problem, "the torus is in parts: node 0 cannot be reached from node 1"));
    assert_int_equal(CLI_RUN("plan", "--without", "0:+0"), 2);
    assert_contains(cli_problem, "--without needs --dims");
    assert_int_equal(CLI_RUN("plan", "--dims", "4x4", "--without", "16"), 2);
    assert_contains(cli_problem, "--without: '16': a torus of 4x4 has the nodes 0 to 15");
    assert_int_equal(CLI_RUN("plan", "--dims", "4x4", "--without", "1", "--algorithm", "at2"), 2);
    assert_non_null(
        strstr(cli_problem, "--without and --algorithm: only --algorithm disjoint can"));
    assert_int_equal(CLI_RUN("plan", "--dims", "4x4", "--without", "7", "--node", "7"), 2);
    assert_contains(cli_problem, "node 7 is down");
    assert_int_equal(CLI_RUN("plan", "--dims", "4x4", "--without", "7", "--export", "torusd"), 2);
    assert_contains(cli_problem, "node 7 is down");
}

TEST(test_plan_import_and_export)
{
    static const char *const formats[] = {"torusd", "msccl"};
    json_t *value, *again;

    assert_int_equal(CLI_RUN("plan", "--dims", "2x3", "--algorithm", "stream", "--json"), 0);
    value = json_loads(cli_output, 0, NULL);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(
            CLI_RUN("plan", "--dims", "2x3", "--algorithm", "stream", "--export", formats[i]), 0);
        const char *path = text_file(cli_output);
        assert_int_equal(CLI_RUN("plan", "--import", path, "--dims", "2x3", "--json"), 0);
        again = json_loads(cli_output, 0, NULL);
        assert_int_equal(strlen(json_string_value(json_object_get(again, "digest"))), 64);
        assert_non_null(strstr(json_string_value(json_object_get(again, "algorithm")), "stream@"));
        for (const char *const *key =
                 (const char *const[]){"startups", "transmission", "bound", "critical_path", NULL};
             *key != NULL; key++)
            assert_true(json_equal(json_object_get(value, *key), json_object_get(again, *key)));
        json_decref(again);
        assert_int_equal(CLI_RUN("plan", "--import", path, "--dims", "3x2"), 1);
        assert_contains(cli_problem, "2x3, not 3x2");
        assert_int_equal(CLI_RUN("plan", "--import", path), i == 0 ? 0 : 2);
        assert_int_equal(unlink(path), 0);
    }
    json_decref(value);
    const char *path = text_file("{\"schedule\":1,\"dims\":\"2\"}\n"
                                 "{\"src\":1,\"dst\":0,\"legs\":[[0,0,1,1]]}\n");
    assert_int_equal(CLI_RUN("plan", "--import", path), 1);
    assert_contains(cli_problem, path);
    assert_contains(cli_problem, "block 0 -> 1, segment 0 has no route");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(CLI_RUN("plan", "--import", path), 1);
    assert_contains(cli_problem, "No such file");
    assert_int_equal(CLI_RUN("plan", "--import", path, "--algorithm", "ar"), 2);
    assert_int_equal(CLI_RUN("plan", "--dims", "2", "--export", "svg"), 2);
    assert_contains(cli_problem, "give torusd, msccl or goal");
    assert_int_equal(CLI_RUN("plan", "--dims", "2", "--routes", "--period"), 2);
    assert_int_equal(CLI_RUN("plan", "--dims", "2", "--export", "msccl", "--block-size", "1"), 2);
}

/* Checks the messages of a schedule in GOAL: each send has its receive, and the bytes are those of all blocks and
 * hops. */
TEST(test_plan_goal)
{
    unsigned long long sent = 0, received = 0, rank = 0, bytes, peer, tag, port;
    unsigned label;

    assert_int_equal(CLI_RUN("plan", "--dims", "3x3", "--algorithm", "stream", "--export", "goal",
                             "--block-size", "10"),
                     0);
    assert_memory_equal(cli_output, "num_ranks 9\n", 12);
    for (char *line = strtok(cli_output, "\n"); line != NULL; line = strtok(NULL, "\n")) {
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

TEST(test_wrong_usage)
{
    assert_int_equal(CLI_RUN("exchnge"), 2);
    assert_contains(cli_problem, "did you mean exchange?");
    assert_int_equal(cli_run((const char *const[]){"torusctl", NULL}), 2);
    assert_contains(cli_problem, "usage:");
    assert_int_equal(CLI_RUN("plan"), 2);
    assert_int_equal(CLI_RUN("plan", "--dims", "4y4"), 2);
    assert_int_equal(CLI_RUN("plan", "--dims", "4x4", "--algorithm", "at3"), 2);
    assert_contains(cli_problem, "at2");
    assert_contains(cli_problem, "direct");
    assert_int_equal(CLI_RUN("plan", "--dims", "4x4", "--algorithm", "ar"), 2);
    assert_contains(cli_problem, "ring");
    assert_int_equal(CLI_RUN("plan", "--dims", "4x4", "extra"), 2);
    assert_int_equal(CLI_RUN("plan", "--dims", "4x4", "--node", "16"), 2);
    assert_int_equal(CLI_RUN("plan", "--dims", "2x1", "--node", "3"), 2);
    assert_int_equal(CLI_RUN("plan", "--dims", "4x4", "--node", "1", "--routes"), 2);
    assert_int_equal(CLI_RUN("exchange"), 2);
    assert_int_equal(CLI_RUN("exchange", "--block-size", "1Q"), 2);
    assert_int_equal(CLI_RUN("exchange", "--block-size", "1", "--algorithm", "none"), 2);
    assert_int_equal(CLI_RUN("exchange", "--from", "a"), 2);
    assert_int_equal(CLI_RUN("exchange", "--from", "a", "--to", "b", "--block-size", "1"), 2);
    assert_int_equal(CLI_RUN("exchange", "--block-size", "1", "--missing-ok"), 2);
    assert_int_equal(CLI_RUN("exchange", "--block-size", "1", "--replace"), 2);
    assert_contains(cli_problem, "--replace is for files");
    assert_int_equal(CLI_RUN("exchange", "--block-size", "1", "--timeout", "0"), 2);
    assert_int_equal(CLI_RUN("exchange", "--block-size", "1", "--repeat", "0"), 2);
    assert_int_equal(CLI_RUN("exchange", "--block-size", "1", "--repeat", "1000001"), 2);
    assert_int_equal(CLI_RUN("exchange", "--from", "a", "--to", "b", "--repeat", "2"), 2);
    assert_contains(cli_problem, "--repeat is for generated patterns");
    assert_int_equal(CLI_RUN("exchange", "--block-size", "1", "--mode", "dreaming"), 2);
    assert_contains(cli_problem, "neither stepped nor streaming");
    assert_int_equal(CLI_RUN("broadcast", "--block-size", "1", "--root", "0", "--mode", "none"), 2);
    assert_contains(cli_problem, "neither stepped nor streaming");
    assert_string_equal(cli_output, "");
    assert_int_equal(CLI_RUN("--json", "exchange", "--block-size", "\xff\n"), 2);
    cli_check_error("usage", NULL);
    assert_int_equal(CLI_RUN("--json"), 2);
    cli_check_error("usage", NULL);
}

/* An error offers only algorithms that can carry out the request. */
TEST(test_unknown_algorithms)
{
    assert_int_equal(CLI_RUN("exchange", "--algorithm", "nonsense", "--block-size", "1"), 2);
    assert_contains(cli_problem, " direct");
    assert_null(strstr(cli_problem, "yangwang"));
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            assert_int_equal(CLI_RUN("allgather", "--algorithm", "direkt", "--block-size", "1"), 2);
        else
            assert_int_equal(
                CLI_RUN("broadcast", "--root", "0", "--algorithm", "direkt", "--block-size", "1"),
                2);
        assert_contains(cli_problem, "known are: balanced, yangwang, saadschultz");
        assert_null(strstr(cli_problem, "direct"));
    }
    assert_int_equal(CLI_RUN("plan", "--dims", "4x4", "--algorithm", "nonsense"), 2);
    assert_contains(cli_problem, " direct");
    assert_contains(cli_problem, "yangwang");
}

TEST(test_help)
{
    assert_int_equal(CLI_RUN("--help"), 0);
    assert_contains(cli_output, "examples:");
    assert_int_equal(CLI_RUN("help", "plan"), 0);
    assert_contains(cli_output, "--dims");
    assert_int_equal(CLI_RUN("plan", "--help"), 0);
    assert_contains(cli_output, "--dims");
    assert_int_equal(CLI_RUN("help", "pln"), 2);
    assert_contains(cli_problem, "did you mean plan?");
    assert_int_equal(CLI_RUN("--version"), 0);
    assert_contains(cli_output, "torusctl " TORUSD_VERSION);
    assert_int_equal(CLI_RUN("algorithms"), 0);
    assert_contains(cli_output, "at2");
    assert_int_equal(CLI_RUN("algorithms", "--dims", "3x3", "--json"), 0);
    json_decref(cli_object());
    assert_string_equal(cli_problem, "");
}

/* There are no options after "--". */
TEST(test_a_file_named_as_an_option)
{
    assert_int_equal(CLI_RUN("key", "id", "--", "--json"), 1);
    assert_string_equal(cli_output, "");
}

TEST(test_no_daemon)
{
    assert_int_equal(CLI_RUN("--socket", "/nonexistent/control.sock", "status", "--json"), 3);
    assert_contains(cli_problem, "/nonexistent/control.sock");
    assert_contains(cli_problem, "--socket");
    cli_check_error("no daemon", NULL);
    (void)setenv("TORUS_SOCKET", "/nonexistent/other.sock", 1);
    assert_int_equal(CLI_RUN("exchange", "--block-size", "1"), 3);
    assert_contains(cli_problem, "/nonexistent/other.sock");
    assert_string_equal(cli_output, "");
    (void)unsetenv("TORUS_SOCKET");
}

TEST(test_output_that_cannot_be_written)
{
    const char *const words[] = {"torusctl", "plan", "--dims", "16x16", "--routes", NULL};
    int o, e;
    pid_t pid;

    assert_int_equal(system("'" TORUSCTL "' algorithms >/dev/full 2>/dev/null") >> 8, 1);
    assert_int_equal(system("'" TORUSCTL "' algorithms >&- 2>/dev/null") >> 8, 1);

    /* If the reader goes away, torusctl ends without a message. */
    pid = cli_start(words, &o, &e);
    assert_int_equal(read(o, cli_output, 1), 1);
    (void)close(o);
    cli_take(e, cli_problem);
    assert_int_equal(waitpid(pid, &o, 0), pid);
    assert_true(WIFEXITED(o) && WEXITSTATUS(o) == 1);
    assert_string_equal(cli_problem, "");
#ifndef __SANITIZE_ADDRESS__ /* stdbuf preloads a library, which has to come after the sanitizer's */
    /* It also ends without a message if nothing is left to be written in the end: then the C library does not tell why
     * it failed before. */
    assert_int_equal(system("problem=$({ stdbuf -o0 '" TORUSCTL
                            "' plan --dims 16x16 --routes | true; } 2>&1); test -z \"$problem\""),
                     0);
#endif
}

/* File names that are not text can be used, and are printed as text. */
TEST(test_names_that_are_not_text)
{
    char folder[] = "/tmp/torusctl-XXXXXX", key[64], hosts[64], routes[64], command[128];
    json_t *o;
    FILE *file;

    assert_non_null(mkdtemp(folder));
    (void)snprintf(key, sizeof key, "%s/key\xff", folder);
    (void)snprintf(hosts, sizeof hosts, "%s/hosts\xff", folder);
    (void)snprintf(routes, sizeof routes, "%s/routes\xff", folder);
    assert_int_equal(CLI_RUN("--json", "key", "generate", key), 0);
    o = cli_object();
    assert_string_equal(strrchr(json_string_value(json_object_get(o, "file")), '/'), "/key?");
    json_decref(o);
    file = fopen(hosts, "we");
    assert_non_null(file);
    (void)fputs("[alone]\nrank = 0\n", file);
    (void)fclose(file);
    assert_int_equal(
        CLI_RUN("--json", "ip-routes", "--dims", "1", "--hosts", hosts, "--to", routes), 0);
    o = cli_object();
    assert_non_null(strstr(json_string_value(json_object_get(o, "names")), "/routes?/hosts"));
    json_decref(o);
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}
