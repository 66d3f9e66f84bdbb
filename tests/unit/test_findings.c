/* What stands out in a trace: of each planted fault, the first sentence names the place. */
#include "client/cli/reporting/findings.h"
#include "tests/support/cmocka.h"
#include "tests/unit/trace_fixture.h"

#define PORTS 4u

static struct finding list[FINDINGS_MOST]; /* of the last trace */

/* What a trace shows must be this: "down 5:2, link 6:0, disk 14, nothing", with nodes and ports, where a finding has
 * them. */
static void expect_found(json_t *file, const char *expected)
{
    char found[40 * FINDINGS_MOST] = "";
    struct trace_data d;
    struct error e;

    assert_success(trace_fixture_read(file, &d, &e), e);
    unsigned count = findings_make(&d, list);
    assert_in_range(count, 1, FINDINGS_MOST);
    for (unsigned i = 0; i < count; i++) {
        char *end = found + strlen(found);
        const enum finding_kind kind = list[i].kind;
        const bool of_link =
            kind == FINDING_DOWN || kind == FINDING_LINK || kind == FINDING_RESENDING;
        assert_true(i == 0 || list[i].seconds <= list[i - 1].seconds);
        end += sprintf(end, "%s%s", i > 0 ? ", " : "", finding_name(kind));
        if (list[i].node != TORUS_NO_NODE)
            end += sprintf(end, " %u", list[i].node);
        if (of_link)
            (void)sprintf(end, ":%u", list[i].port);
    }
    trace_data_free(&d);
    assert_string_equal(found, expected);
}

/* The same for one finding; the text names its node. */
static void expect_only(json_t *file, const char *expected)
{
    char host[32];

    expect_found(file, expected);
    (void)snprintf(host, sizeof host, "host%u (node %u)", list[0].node, list[0].node);
    assert_contains(list[0].text, host);
}

TEST(nothing_stands_out)
{
    static const char *const tori[] = {"1", "2", "4x4", "3x4x5", "complete:5"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        expect_found(trace_fixture_new(tori[i]), "nothing");
    }
}

/* A slow link makes all others wait; it is busy all the time. */
TEST(a_slow_link)
{
    json_t *file = trace_fixture_new("4x4");

    trace_fixture_slow(file, 5, 2);
    expect_only(file, "link 5:2");

    file = trace_fixture_new("4x4"); /* in both directions, and with losses */
    for (uint32_t rank = 0; rank < 16; rank++)
        for (unsigned port = 0; port < PORTS; port++)
            trace_fixture_wait(file, rank, port, TORUS_TRACE_OTHERS, 0.5);
    trace_fixture_slow(file, 3, 0);
    trace_fixture_wait(file, 3, 0, TORUS_TRACE_RESENDING, 0.9);
    trace_fixture_set(file, 3, "resent", 0, 700);
    expect_found(file, "link 3:0, link 0:0, link 0:1"); /* whose traffic waits for others */
    assert_contains(list[0].text, "port +0");
    assert_contains(list[0].text, "TCP sent packets again");
}

/* The link is as fast as others while it carries, but TCP repeats packets. */
TEST(a_lossy_link)
{
    json_t *file = trace_fixture_new("4x4");

    trace_fixture_wait(file, 9, 3, TORUS_TRACE_RESENDING, 0.4);
    trace_fixture_scale(file, 9, 3, "sent", 1.2);
    trace_fixture_set(file, 9, "resent", 3, 90);
    expect_only(file, "resending 9:3");
}

/* Each kind has its worst three, and the last of them counts the others. */
TEST(many_of_a_kind)
{
    static const char *const found[] = {"resending 0:3, disk 11",
                                        "resending 1:3, resending 0:3, disk 11",
                                        "resending 2:3, resending 1:3, resending 0:3, disk 11",
                                        "resending 3:3, resending 2:3, resending 1:3, disk 11",
                                        "resending 4:3, resending 3:3, resending 2:3, disk 11",
                                        "resending 5:3, resending 4:3, resending 3:3, disk 11"};

    for (unsigned lossy = 1; lossy <= 6; lossy++) {
        json_t *file = trace_fixture_new("4x4");
        unsigned kept = lossy < 3 ? lossy : 3, more = lossy - kept;
        char words[60];

        for (uint32_t rank = 0; rank < lossy; rank++) {
            trace_fixture_wait(file, rank, 3, TORUS_TRACE_RESENDING, 0.3 + 0.05 * rank);
            trace_fixture_scale(file, rank, 3, "sent", 1.2);
            trace_fixture_set(file, rank, "resent", 3, 1);
        }
        trace_fixture_wait(file, 11, 0, TORUS_TRACE_SINK, 0.3);
        expect_found(file, found[lossy - 1]);
        for (unsigned i = 0; i < kept; i++) {
            assert_contains(list[i].text, "sent 1 packet again");
            assert_true((strstr(list[i].text, "The same holds") != NULL) == (i == 2 && more > 0));
        }
        (void)snprintf(words, sizeof words, "The same holds for %u more %s.", more,
                       more == 1 ? "link" : "links");
        if (more > 0)
            assert_contains(list[2].text, words);
    }
}

static void wait_at(json_t *file, uint32_t rank, enum torus_trace_state state, double part)
{
    for (unsigned port = 0; port < PORTS; port++)
        trace_fixture_wait(file, rank, port, state, part);
}

TEST(a_node_that_waits)
{
    static const struct {
        enum torus_trace_state state;
        const char *found;
    } waits[] = {{TORUS_TRACE_SOURCE, "source 11"},
                 {TORUS_TRACE_SINK, "disk 11"},
                 {TORUS_TRACE_PROCESSOR, "processor 11"}};

    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        json_t *file = trace_fixture_new("4x4");
        for (uint32_t rank = 0; rank < 16; rank++) /* all do, a little */
            wait_at(file, rank, waits[i].state, 0.1);
        wait_at(file, 11, waits[i].state, 0.5);
        expect_only(file, waits[i].found);
    }
}

/* The system says that the daemon could have run, and did not. */
TEST(a_daemon_without_a_processor)
{
    json_t *file = trace_fixture_new("4x4");

    for (size_t i = 0; i < TRACE_FIXTURE_INTERVALS; i++)
        trace_fixture_set(file, 6, "delayed", i, 100);
    expect_only(file, "processor 6");
}

/* Nobody takes what arrives at a node whose daemon has no processor, and it sends nothing in time: its links seem slow. */
TEST(links_of_a_daemon_without_a_processor)
{
    json_t *file = trace_fixture_new("4x4");

    for (size_t i = 0; i < TRACE_FIXTURE_INTERVALS; i++)
        trace_fixture_set(file, 6, "delayed", i, 240);
    for (unsigned port = 0; port < PORTS; port++)
        trace_fixture_wait(file, 6, port, TORUS_TRACE_LINK, 1);
    trace_fixture_wait(file, 2, 0, TORUS_TRACE_LINK, 1); /* to node 6 */
    expect_found(file, "processor 6");
}

/* Ten calls, all of which end at the same time; the program at node 7 makes each of them 50 ms late. */
TEST(a_late_program)
{
    json_t *file = trace_fixture_new("4x4");

    for (uint32_t rank = 0; rank < 16; rank++)
        for (int call = 0; call < 10; call++) {
            double late = rank == 7 ? 0.05 : 0.0001 * rank;
            trace_fixture_add_event(file, rank, 0.1 * call + late, TORUS_TRACE_CALL_BEGUN, 2, call);
            trace_fixture_add_event(file, rank, 0.1 * call + 0.09, TORUS_TRACE_CALL_ENDED, 2, call);
        }
    wait_at(file, 7, TORUS_TRACE_PROGRAM, 0.5);
    expect_only(file, "program 7");
}

/* The calls of node 7 end late, so the node begins its next calls late: its program is not to blame. */
TEST(a_program_that_is_kept_waiting)
{
    json_t *file = trace_fixture_new("4x4");

    for (uint32_t rank = 0; rank < 16; rank++)
        for (int call = 0; call < 10; call++) {
            double late = rank == 7 && call > 0 ? 0.05 : 0;
            trace_fixture_add_event(file, rank, 0.1 * call + late, TORUS_TRACE_CALL_BEGUN, 2, call);
            trace_fixture_add_event(file, rank, 0.1 * call + (rank == 7 ? 0.1499 : 0.09),
                                    TORUS_TRACE_CALL_ENDED, 2, call);
        }
    expect_found(file, "nothing");
}

/* The worst is first, and there are not too many. */
TEST(several_faults)
{
    json_t *file = trace_fixture_new("4x4");

    for (uint32_t rank = 0; rank < 16; rank++)
        if (rank % 2 == 0)
            wait_at(file, rank, TORUS_TRACE_SINK, 0.5 + 0.02 * rank);
        else
            wait_at(file, rank, TORUS_TRACE_SINK, 0);
    expect_found(file, "disk 14, disk 12, disk 10");
    assert_contains(list[2].text, "The same holds for 5 more nodes.");
}

/* Nodes without a trace are not compared. */
TEST(nodes_that_have_not_answered)
{
    json_t *file = trace_fixture_new("4x4");

    for (uint32_t rank = 0; rank < 16; rank += 3)
        (void)json_object_del(trace_fixture_node(file, rank), "used");
    wait_at(file, 7, TORUS_TRACE_SOURCE, 0.5);
    expect_found(file, "source 7, missing 0, missing 3, missing 6");
    assert_contains(list[3].text, "The same holds for 3 more nodes.");

    file = trace_fixture_new("3");
    (void)json_object_del(trace_fixture_node(file, 1), "used");
    expect_found(file, "nothing, missing 1");
}

/* Both ends say so; one of them is enough. */
TEST(a_link_that_goes_down)
{
    json_t *file = trace_fixture_new("4x4");

    trace_fixture_slow(file, 9, 3); /* and a slow one */
    trace_fixture_add_event(file, 5, 0.25, TORUS_TRACE_LINK_DOWN, 2, 0);
    trace_fixture_add_event(file, 6, 0.26, TORUS_TRACE_LINK_DOWN, 3, 0);
    trace_fixture_add_event(file, 6, 0.5, TORUS_TRACE_LINK_DOWN, 0, 0);
    expect_found(file, "down 5:2, down 6:0, link 9:3");
    assert_contains(list[0].text, "(port +1) and host6 (node 6) went down, 0.25 s");
}

/* A cable is one fault: the slower direction is named, and the other one only if it is as slow. */
TEST(directions_of_a_cable)
{
    static const struct {
        unsigned back_carries; /* in thousands; 1000: as much as others, in as much time */
        bool both;
    } cables[] = {{1000, false}, {700, false}, {450, true}};

    for (size_t i = 0; i < sizeof cables / sizeof cables[0]; i++) {
        json_t *file = trace_fixture_new("4x4");
        trace_fixture_wait(file, 5, 2, TORUS_TRACE_LINK, 1); /* to node 6 */
        trace_fixture_load(file, 5, 2, 1, 0, 400000);
        if (cables[i].back_carries < 1000)
            trace_fixture_load(file, 6, 3, 1, 0, cables[i].back_carries * 1000);
        expect_found(file, "link 5:2");
        assert_true((strstr(list[0].text, "in both directions") != NULL) == cables[i].both);
    }
}

/* Bytes waited at these ports all the time, and little passed, but not because of their links: short messages wait for
 * their acknowledgement, the link carries at once what there is, or the receiver has no room. */
TEST(links_that_hold_nothing_up)
{

    for (unsigned why = 0; why < 3; why++) {
        json_t *file = trace_fixture_new("4x4");
        for (unsigned port = 0; port < PORTS; port++) {
            trace_fixture_wait(file, 3, port, TORUS_TRACE_LINK, 1);
            trace_fixture_scale(file, 3, port, "sent", 0.2);
            trace_fixture_load(file, 3, port, why == 1 ? 0.1 : 0, why == 1 ? 0.9 : 0,
                               why == 1 ? 200000 : 0);
            for (size_t i = 0; i < TRACE_FIXTURE_INTERVALS; i++)
                trace_fixture_set(file, 3, "no_room", i * PORTS + port, why == 2 ? 255 : 0);
        }
        expect_found(file, "nothing");
    }
}

/* Older releases do not tell what links held up. Then no link is accused, and the report says so. */
TEST(links_of_older_nodes)
{
    static const char *const members[] = {"loaded", "drained", "no_room", "carried"};
    json_t *file = trace_fixture_new("4x4");

    trace_fixture_slow(file, 5, 2);
    for (uint32_t rank = 0; rank < 16; rank++)
        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
            (void)json_object_del(trace_fixture_node(file, rank), members[i]);
    expect_found(file, "nothing");
    assert_contains(list[0].text, "not known");
}

static void set_run(json_t *file, json_t *run)
{
    assert_int_equal(json_object_set_new(json_object_get(file, "torusd"), "run", run), 0);
}

static json_t *run_of(const char *algorithm, double seconds)
{
    /* 256 KiB on links of 20 Mbit/s */
    return json_pack("{s:s, s:s, s:f, s:f}", "operation", "exchange", "algorithm", algorithm,
                     "seconds", seconds, "bound_seconds", 0.8388608);
}

/* As measured on a healthy torus: tree takes 33.9 s, pair 3.5 s, and stream is near the bound. */
TEST(an_algorithm_that_is_slow)
{
    static const struct {
        const char *algorithm, *blocks;
        double seconds;
    } runs[] = {{"tree", "310 blocks", 33.86}, {"pair", "32 blocks", 3.5}};
    json_t *file;

    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        file = trace_fixture_new("4x4");
        set_run(file, run_of(runs[i].algorithm, runs[i].seconds));
        expect_found(file, "algorithm");
        assert_contains(list[0].text, runs[i].algorithm);
        assert_contains(list[0].text, runs[i].blocks);
        assert_contains(list[0].text, "--algorithm stream");
    }
    file = trace_fixture_new("4x4"); /* late, but not because of its plan */
    set_run(file, run_of("stream", 3.5));
    expect_found(file, "nothing");
}

/* The calls of a copy are torusd's own: whatever makes them late is a disk, a source or the network. */
TEST(a_copy_has_no_program)
{
    static const char *const operations[] = {"copy", "gather", "scatter", "perf"};

    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        json_t *file = trace_fixture_new("4x4");
        for (uint32_t rank = 0; rank < 16; rank++)
            for (int call = 0; call < 10; call++)
                trace_fixture_add_event(file, rank, 0.1 * call + (rank == 7 ? 0.05 : 0),
                                        TORUS_TRACE_CALL_BEGUN, 2, call);
        /* An older release says that node 7 waited for its program. */
        wait_at(file, 7, TORUS_TRACE_PROGRAM, 0.5);
        set_run(file, json_pack("{s:s}", "operation", operations[i]));
        expect_found(file, i < 3 ? "nothing" : "program 7");
    }
}

/* Short messages occupy a link until they are acknowledged: that does not make it slow. */
TEST(short_messages)
{
    json_t *file = trace_fixture_new("4x4");

    for (size_t i = 0; i < TRACE_FIXTURE_INTERVALS; i += 2)
        trace_fixture_set(file, 3, "sent", i * PORTS, 0);
    expect_found(file, "nothing");
}

TEST(names_that_are_cut)
{
    json_t *file = trace_fixture_new("4x4");
    char name[200] = "x";

    for (unsigned i = 0; i < 60; i++)
        (void)strcat(name, "\xc3\xa4");
    for (uint32_t rank = 0; rank < 16; rank++)
        (void)json_object_set_new(trace_fixture_node(file, rank), "name", json_string(name));
    wait_at(file, 7, TORUS_TRACE_SOURCE, 0.5);
    expect_found(file, "source 7");
    json_t *text = json_string(list[0].text); /* NULL unless it is UTF-8 */
    assert_non_null(text);
    json_decref(text);
}
