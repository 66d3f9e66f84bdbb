/* Networks with factors that are neither rings nor lines: schedules in files, also hostile ones; files of hosts; bounds;
 * faults of cables; what torusctl says of algorithms. */
#include <unistd.h>

#include <arpa/inet.h>

#include "client/cli/measuring/perf.h"
#include "daemon/lib/cluster/hosts_file.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/file/export.h"
#include "daemon/torusd/router/faults.h"
#include "tests/support/cmocka.h"
#include "tests/unit/msccl_fixture.h"
#include "tests/unit/run_cli.h"

static const char *const networks[] = {"complete:4",     "star:5", "tree:2^2",
                                       "5 x complete:3", "2m^3",   "complete:3 x star:3 x 4m"};
#define NETWORKS (sizeof networks / sizeof networks[0])

static struct torus parse(const char *dims)
{
    struct torus t;

    assert_int_equal(torus_parse(&t, dims, NULL), 0);
    return t;
}

/* ---- Schedules in files ---------------------------------------------------------------------- */

static void same_routes(const struct torus *t, const struct algorithm *a, const struct algorithm *b)
{
    struct leg one[100], other[100];

    assert_true(algorithm_max_legs(a, t) < 100 && algorithm_max_legs(b, t) < 100);
    for (uint32_t from = 0; from < t->nodes; from++)
        for (uint32_t to = 0; to < t->nodes; to++)
            for (uint32_t n = 0; n < a->segments && from != to; n++) {
                uint32_t legs = algorithm_route(a, t, from, to, n, one);
                assert_int_equal(algorithm_route(b, t, from, to, n, other), legs);
                for (uint32_t m = 0; m < legs; m++) {
                    assert_int_equal(one[m].step, other[m].step);
                    assert_int_equal(one[m].dim, other[m].dim);
                    assert_int_equal(one[m].direction, other[m].direction);
                    assert_int_equal(one[m].hops, other[m].hops);
                }
            }
}

TEST(schedules_are_read_back)
{
    for (size_t i = 0; i < NETWORKS; i++) {
        struct torus t = parse(networks[i]);
        unsigned read = 0;
        for (size_t k = 0; k < 4 * algorithm_count(); k++) {
            const struct algorithm *a = algorithm_at(k / 4);
            struct imported *s;
            struct error e;
            size_t length;
            char *text;
            if (algorithm_accepts(a, &t, NULL) != 0)
                continue;
            FILE *out = open_memstream(&text, &length);
            assert_int_equal(schedule_export(out, &t, a, k % 2 == 1, NULL), 0);
            assert_int_equal(fclose(out), 0);
            if (imported_read(&s, text, length, k / 2 % 2 == 1 ? &t : NULL, NULL, &e) != 0)
                fail_msg("%s on %s: %s", a->name, networks[i], e.text);
            assert_int_equal(algorithm_accepts(imported_algorithm(s), &t, NULL), 0);
            same_routes(&t, a, imported_algorithm(s));
            imported_free(s);
            free(text);
            read++;
        }
        assert_true(read >= 12);
    }
}

TEST(schedules_of_msccl_are_read_back)
{
    for (size_t i = 0; i < NETWORKS; i++) {
        struct torus t = parse(networks[i]);
        for (size_t k = 0; k < algorithm_count(); k++) {
            const struct algorithm *a = algorithm_at(k);
            struct schedule_report report;
            size_t length;
            if (a->operation != OPERATION_EXCHANGE || algorithm_accepts(a, &t, NULL) != 0)
                continue;
            char *xml = msccl_xml(&t, a->name, &length);
            struct imported *s = msccl_read_back(xml, length, &t, &report);
            same_routes(&t, a, imported_algorithm(s));
            imported_free(s);
            free(xml);
        }
    }
}

/* On a complete graph every peer is a neighbour; in a star only the middle is one. */
TEST(schedules_of_others_need_neighbours)
{
    struct torus complete = parse("complete:3"), star = parse("star:3");
    struct schedule_report report;

    imported_free(msccl_read_back(BY_HAND, strlen(BY_HAND), &complete, &report));
    msccl_refused(BY_HAND, &star, "is not a neighbour of node", "on star:3");
}

/* Fails the test unless a daemon of this network refuses the schedule. */
static struct error refused(const struct torus *t, const char *text)
{
    struct imported *s = NULL;
    struct error e;

    if (imported_read(&s, text, strlen(text), t, NULL, &e) == 0)
        fail_msg("taken: %s", text);
    return e;
}

/* A client may send any schedule to a daemon: it does not read the file that the header names, and makes no graph. */
TEST(a_header_names_no_files_and_makes_no_graphs)
{
    static const char *const others[] = {"complete:17", "star:19",
                                         "tree:1^70",   "graph:10:0123456789abcdef",
                                         "graph:",      "complete:03"};
    struct torus t = parse("complete:3");
    char text[200];

    const char *path = text_file("0 secret\n");
    (void)snprintf(text, sizeof text, "{\"schedule\":1,\"dims\":\"graph:%s\"}\n", path);
    struct error e = refused(&t, text);
    assert_null(strstr(e.text, "secret"));
    assert_contains(e.text, "is not the network of this node");
    path = text_file("0 1\n1 2\n2 0\n");
    e = refused(&t, text);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        (void)snprintf(text, sizeof text, "{\"schedule\":1,\"dims\":\"%s\"}\n", others[i]);
        e = refused(&t, text);
        assert_null(graph_known(others[i], strlen(others[i])));
    }
}

/* Without a network to compare with, torusctl makes the graphs of a header, but opens no file either. */
TEST(a_header_alone_names_no_files)
{
    char text[200];
    const char *path = text_file("0 1\n1 2\n2 0\n");
    (void)snprintf(text, sizeof text, "{\"schedule\":1,\"dims\":\"graph:%s\"}\n", path);
    struct error e = refused(NULL, text);
    assert_contains(e.text, "names a file of edges");
    e = refused(NULL, "{\"schedule\":1,\"dims\":\"star:21\"}\n");
    assert_non_null(graph_known("star:21", strlen("star:21")));
}

/* A direction that a graph does not have would be looked up beyond the graph's table of neighbours. */
TEST(directions_must_exist)
{
    static const struct {
        const char *dims, *leg, *says;
    } cases[] = {
        {"complete:3", "[0,0,-1,1]", "must be 1 to 2"},
        {"complete:3", "[0,0,0,1]", "must be 1 to 2"},
        {"complete:3", "[0,0,3,1]", "must be 1 to 2"},
        {"complete:3", "[0,0,32,1]", "must be 1 to 2"},
        {"star:4", "[0,0,4,1]", "must be 1 to 3"},
        {"3 x star:4", "[0,0,2,1]", "1 or -1"},
        {"3 x star:4", "[0,1,-1,1]", "must be 1 to 3"},
        {"5", "[0,0,7,1]", "1 or -1"},
        {"complete:4", "[0,0,1,2]", "a leg has one hop in dimension 0"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct torus t = parse(cases[i].dims);
        char text[200];
        (void)snprintf(text, sizeof text,
                       "{\"schedule\":1,\"dims\":\"%s\"}\n{\"src\":0,\"dst\":1,\"legs\":[%s]}\n",
                       cases[i].dims, cases[i].leg);
        struct error e = refused(&t, text);
        assert_contains(e.text, cases[i].says);
    }
}

/* ---- Bounds ---------------------------------------------------------------------------------- */

static size_t even(uint64_t bytes, uint32_t i, uint32_t j)
{
    return i == j ? 0 : (size_t)bytes;
}

/* With blocks of one size the bound is that of all-to-all exchanges, or lower. */
TEST(uneven_blocks_have_a_true_bound)
{
    struct torus t = parse("complete:4");

    assert_true(perf_bound_uneven(&t, 100, even) == 100);
    t = parse("complete:8");
    assert_true(perf_bound_uneven(&t, 100, even) == 100);
    t = parse("star:4");
    assert_true(perf_bound_uneven(&t, 100, even) == 300);
    t = parse("tree:2^2");
    assert_true(perf_bound_uneven(&t, 100, even) <= 1200);
    for (size_t i = 0; i < NETWORKS; i++) {
        t = parse(networks[i]);
        double bound = perf_bound_uneven(&t, 100, even);
        assert_true(bound > 0 && bound <= 100 * torus_bound_all_port(&t) + 1e-6);
    }
}

/* ---- Cables ---------------------------------------------------------------------------------- */

TEST(faults_of_cables_have_a_text)
{
    struct torus t = parse("complete:3 x 4");
    unsigned port = (unsigned)torus_port_parse(&t, 0, "0:2");
    struct fault_report report = {
        .rank = 0,
        .port = port,
        .fault = {.code = LINK_FAULT_SAME_SIDE,
                  .found_rank = 4,
                  .found_port = (unsigned)torus_port_parse(&t, 4, "0:2")}};
    char text[LINK_FAULT_TEXT_SIZE];

    link_fault_text(&t, &report, text, sizeof text);
    assert_string_equal(text,
                        "node 0 port 0:2 is cabled to node 4 port 0:2: one end of a cable must "
                        "dial, and the other one listen; it expects node 8 port 0:0");
    report.fault.code = LINK_FAULT_WRONG_CABLE;
    link_fault_text(&t, &report, text, sizeof text);
    assert_string_equal(text,
                        "node 0 port 0:2 is cabled to node 4 port 0:2; it expects node 8 port 0:0");
    report.port = (unsigned)torus_port_parse(&t, 0, "+1");
    report.fault = (struct link_fault){
        .code = LINK_FAULT_SAME_SIDE, .found_rank = 1, .found_port = report.port};
    link_fault_text(&t, &report, text, sizeof text);
    assert_contains(text, "a + port must be cabled to a - port");
}

/* ---- Files of hosts -------------------------------------------------------------------------- */

#define TRIANGLE                                                                                   \
    "[a]\nrank = 0\n0:1 = e1\n0:2 = e2 10.0.0.2\n[b]\nrank = 1\n0:0 = e0\n0:2 = e2\n"              \
    "[c]\nrank = 2\n0:0 = e0\n0:1 = e1\n"

static int read_hosts(const char *text, const char *without, struct host *hosts, struct error *e)
{
    struct torus t = parse("complete:3");
    struct ip_routes r;

    assert_int_equal(ip_routes_init(&r, &t, without, e), 0);
    int rc = hosts_file_read(hosts, &r, text_file(text), (struct in_addr){htonl(0x0a800001)}, e);
    ip_routes_free(&r);
    return rc;
}

TEST(hosts_have_ports_of_graphs)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"[*]\n0:1 = e1\n" TRIANGLE, "[*] cannot have port 0:1"},
        {"[a]\n0:0 = e0\n", ":2: node 0 has no port \"0:0\""},
        {"[a]\n0:1 = e1\n0:2 = e2\n[b]\n0:0 = e0\n0:3 = e3\n", ":6: node 1 has no port \"0:3\""},
        {"[a]\n+0 = e1\n", ":2: the torus has no port \"+0\""},
        {"[a]\n0:1 = e1\nrank = 0\n", ":3: the rank of [a] must stand above its ports"},
        {"[a]\n0:1 = e1\n0:2 = e1\n[b]\n0:0 = e0\n0:2 = e2\n[c]\n0:0 = e0\n0:1 = e1\n",
         ":3: [a] has e1 at two ports"},
        {"[a]\n0:1 = e1\n[b]\n0:0 = e0\n0:2 = e2\n[c]\n0:0 = e0\n0:1 = e1\n",
         ":1: [a] needs the interface of port 0:2, as in \"0:2 = eth1\" (if this cable is broken: "
         "--without 0:0:2)"},
        {"[a]\n0:1 = e1\n0:1 = e2\n", ":3: port 0:1 of [a] is given twice"},
    };
    struct host hosts[3];
    struct error e;

    assert_int_equal(read_hosts(TRIANGLE, NULL, hosts, &e), 0);
    struct torus t = parse("complete:3");
    assert_string_equal(hosts[0].port[torus_port_parse(&t, 0, "0:2")].interface, "e2");
    assert_string_equal(hosts[2].port[torus_port_parse(&t, 2, "0:1")].interface, "e1");
    assert_int_equal(
        read_hosts("[a]\n0:1 = e1\n[b]\n0:0 = e0\n0:2 = e2\n[c]\n0:1 = e1\n", "0:0:2", hosts, &e),
        0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (read_hosts(cases[i].text, NULL, hosts, &e) == 0)
            fail_msg("taken: %s", cases[i].text);
        assert_contains(e.text, cases[i].says);
    }
}

/* ---- torusctl -------------------------------------------------------------------------------- */

static const json_t *row_of(const json_t *list, const char *algorithm)
{
    const json_t *row;
    size_t i;

    json_array_foreach(list, i,
                       row) if (strcmp(json_string_value(json_object_get(row, "algorithm")),
                                       algorithm) == 0) return row;
    return NULL;
}

/* `stream`, which auto chooses, is compared with the others, with the routes that are found for the network. */
TEST(stream_is_counted)
{
    static const struct {
        const char *dims;
        double busiest;
    } cases[] = {{"complete:4", 1}, {"star:5", 4}, {"'5 x complete:3'", 9}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char command[100];
        (void)snprintf(command, sizeof command, "algorithms --dims %s", cases[i].dims);
        json_t *value = run_cli_json(command);
        const json_t *row = row_of(json_object_get(value, "algorithms"), "stream");
        assert_non_null(row);
        assert_true(json_is_true(json_object_get(row, "accepts")));
        assert_true(json_number_value(json_object_get(row, "bound")) >= cases[i].busiest - 1e-9);
        json_decref(value);
        (void)snprintf(command, sizeof command, "predict --dims %s", cases[i].dims);
        value = run_cli_json(command);
        assert_non_null(row_of(json_object_get(value, "algorithms"), "stream"));
        assert_null(row_of(json_object_get(value, "refused"), "stream"));
        json_decref(value);
        (void)snprintf(command, sizeof command, "simulate --dims %s", cases[i].dims);
        value = run_cli_json(command);
        assert_true(json_number_value(json_object_get(value, "block_times")) >= cases[i].busiest);
        json_decref(value);
    }
}
