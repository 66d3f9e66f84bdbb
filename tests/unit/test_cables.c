/* Faults of cables: how a node finds them, and how they are reported to other nodes. */
#include "router_fixture.h"
#include "tests/support/cmocka.h"

enum { plus0, minus0, plus1, minus1 };

static void pass(struct router_fixture *f, uint64_t nanoseconds)
{
    const uint64_t end = f->now + nanoseconds;

    while (router_deadline(f->router) <= end) {
        const uint64_t at = router_deadline(f->router);
        f->now = at > f->now ? at : f->now;
        router_tick(f->router);
    }
    f->now = end;
}

static struct fault_report only_fault(struct router_fixture *f)
{
    struct fault_report report = {0};

    (void)router_fault(f->router, 0, &report);
    assert_false(router_fault(f->router, 1, &(struct fault_report){0}));
    return report;
}

/* The number of messages about faults that the router sends on a connection; *last is the last one. */
static unsigned told(struct fixture_connection *c, struct peer_link_fault *last)
{
    unsigned count = 0;
    struct peer_message *head;

    while ((head = fixture_next(c, NULL, 0, NULL)) != NULL) {
        if (head->kind == PEER_LINK_FAULT) {
            *last = head->link_fault;
            count++;
        }
        message_forget(head);
    }
    return count;
}

static void say(struct fixture_connection *c, const struct peer_link_fault *fault)
{
    const struct peer_message message = {.kind = PEER_LINK_FAULT, .link_fault = *fault};

    fixture_say(c, &message, NULL, 0);
}

static void say_link_state(struct fixture_connection *c, uint32_t rank, uint32_t hops,
                           uint32_t version, uint32_t up)
{
    fixture_say_entry(
        c, &(struct peer_link_state_entry){
               .rank = rank, .hops = hops, .up = up, .boot = 70 + rank, .version = version});
}

struct sighting_case {
    struct sighting sighting;
    enum link_fault_code code;
    const char *text;
};

/* The fault at +0 of node 5 of a 4x4. */
static void check_sighting(const struct sighting_case *c)
{
    struct router_fixture f;
    struct sighting s = c->sighting;
    struct fault_report report;
    struct port_info info;
    char text[LINK_FAULT_TEXT_SIZE];
    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, plus1);
    say_link_state(f.up[plus1], 6, 0, 3, 0xf);
    if (s.boot == 0)
        s.boot = router_boot(f.router);
    router_sighted(f.router, plus1, &s); /* a link that is up knows the truth */
    router_sighted(f.router, plus0, &s);
    report = only_fault(&f);
    assert_int_equal(report.fault.code, c->code);
    router_port_info(f.router, plus0, &info);
    if (report.fault.code != LINK_FAULT_NONE) {
        assert_int_equal(report.rank, 5);
        assert_int_equal(report.port, plus0);
        assert_int_equal(report.fault.found_rank, s.rank);
        assert_int_equal(report.fault.found_port, s.port);
        link_fault_text(&f.torus, &report, text, sizeof text);
        assert_string_equal(info.reason, text);
    }
    if (c->text != NULL)
        assert_string_equal(info.reason, c->text);
    router_unsighted(f.router,
                     plus0); /* the cable was another one, but the machine has this rank */
    assert_int_equal(only_fault(&f).fault.code,
                     c->code == LINK_FAULT_DUPLICATE_RANK ? c->code : LINK_FAULT_NONE);
    fixture_link_up(&f, plus0);
    assert_int_equal(only_fault(&f).fault.code, LINK_FAULT_NONE);
    fixture_close(&f);
}

/* Node 5 of a 4x4: +0 leads to 9, -0 to 1, +1 to 6, -1 to 4. */
TEST(ends_of_cables_are_told_apart)
{
    static const struct sighting_case cases[] = {
        {{9, minus0, 7}, LINK_FAULT_NONE, ""},
        {{10, minus0, 7},
         LINK_FAULT_WRONG_CABLE,
         "node 5 port +0 is cabled to node 10 port -0; it expects node 9 port -0"},
        {{9, minus1, 7},
         LINK_FAULT_WRONG_CABLE,
         "node 5 port +0 is cabled to node 9 port -1; it expects node 9 port -0"},
        {{1, plus0, 7},
         LINK_FAULT_SAME_SIDE,
         "node 5 port +0 is cabled to node 1 port +0: a + port must be cabled to a - port; it "
         "expects node 9 port -0"},
        {{5, minus0, 7},
         LINK_FAULT_DUPLICATE_RANK,
         "node 5 port +0 is cabled to node 5 port -0, but another machine has that rank, too: "
         "correct its rank; it expects node 9 port -0"},
        {{6, minus0, 7}, LINK_FAULT_DUPLICATE_RANK, NULL}, /* 6 is up, and is another one */
        {{6, minus0, 76}, LINK_FAULT_WRONG_CABLE, NULL},
        {{5, minus1, 0},
         LINK_FAULT_LOOP,
         "node 5 port +0 is cabled to node 5 port -1, of the same machine; it expects node 9 port "
         "-0"},
        {{16, minus0, 7}, LINK_FAULT_NONE, ""}, /* cannot be */
        {{9, 4, 7}, LINK_FAULT_NONE, ""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_sighting(&cases[i]);
}

/* Found by the hello, before the neighbour has proved that it has the key. */
ROUTER_TEST(a_wrong_hello_tells_it_too)
{
    char dims[TORUS_TEXT_SIZE];
    struct peer_hello hello;

    fixture_hello(f, minus0, &hello, dims);
    hello.rank = 2;
    fixture_say_hello(fixture_connect(f, minus0, false), &hello);
    assert_int_equal(only_fault(f).fault.code, LINK_FAULT_WRONG_CABLE);
    assert_int_equal(only_fault(f).fault.found_rank, 2);
    router_carrier(f->router, minus0, "no carrier on eth1"); /* another cable may come */
    assert_int_equal(only_fault(f).fault.code, LINK_FAULT_NONE);
    hello.dims = (char[]){"4x8"}; /* the ranks of the other torus mean something else */
    fixture_say_hello(fixture_connect(f, minus0, false), &hello);
    assert_int_equal(only_fault(f).fault.code, LINK_FAULT_NONE);
}

ROUTER_TEST(it_is_told_when_it_is_news_and_while_it_lasts)
{
    struct peer_link_fault last = {0};

    router_set_heartbeats(f->router, 5 * SECONDS, 400 * SECONDS);
    fixture_link_up(f, minus0);
    for (unsigned i = 0; i < 1000; i++) /* any node reports anything, any number of times */
        router_sighted(f->router, plus0, &(struct sighting){10 + i % 2, minus0, 7});
    assert_int_equal(told(f->up[minus0], &last), 0);
    pass(f, SECONDS);
    assert_int_equal(told(f->up[minus0], &last), 1);
    assert_int_equal(last.rank, 5);
    assert_int_equal(last.port, plus0);
    assert_int_equal(last.code, LINK_FAULT_WRONG_CABLE);
    assert_int_equal(last.found_rank, 11);
    assert_int_equal(last.left, 16);
    const uint32_t number = last.number;
    for (int second = 0; second < 10; second++) {
        router_sighted(f->router, plus0, &(struct sighting){11, minus0, 7});
        pass(f, SECONDS);
    }
    assert_int_equal(told(f->up[minus0], &last), 0);
    fixture_link_up(f,
                    minus1); /* fixture_link_up() has discarded the first report; and then again */
    router_sighted(f->router, plus0, &(struct sighting){11, minus0, 7});
    pass(f, 22 * SECONDS);
    assert_int_equal(told(f->up[minus1], &last), 1);
    assert_true(last.number > number);
    pass(f, 60 * SECONDS); /* it was not found again, so it is over */
    assert_true(told(f->up[minus1], &last) >= 1);
    assert_int_equal(last.code, LINK_FAULT_NONE);
    assert_int_equal(only_fault(f).fault.code, LINK_FAULT_NONE);
}

static struct peer_link_fault fault_of(uint32_t rank, uint32_t number)
{
    return (struct peer_link_fault){.rank = rank,
                                    .port = plus1,
                                    .boot = 70 + rank,
                                    .number = number,
                                    .code = LINK_FAULT_WRONG_CABLE,
                                    .found_rank = 3,
                                    .found_port = minus1,
                                    .left = 16};
}

ROUTER_TEST(reports_of_others_are_passed_on_once)
{
    struct peer_link_fault fault = fault_of(13, 7), last = {0};

    fixture_link_up(f, plus0);
    fixture_link_up(f, minus0);
    say_link_state(f->up[plus0], 13, 1, 3, 0xb);
    say(f->up[plus0], &fault);
    assert_int_equal(told(f->up[plus0], &last), 0);
    assert_int_equal(told(f->up[minus0], &last), 1);
    assert_int_equal(last.left, 15);
    say(f->up[minus0], &fault); /* it has come round */
    assert_int_equal(told(f->up[plus0], &last), 0);
    assert_int_equal(only_fault(f).rank, 13);
    fixture_link_up(f, plus1); /* a new neighbour is told */
    fault.number++;
    fault.left = 1;
    say(f->up[plus0], &fault); /* the most hops that it may go */
    assert_int_equal(told(f->up[minus0], &last), 0);
    fault.number++;
    fault.code = LINK_FAULT_NONE;
    say(f->up[plus0], &fault);
    assert_int_equal(only_fault(f).fault.code, LINK_FAULT_NONE);
    fault = fault_of(5, 9); /* of this node itself */
    say(f->up[plus0], &fault);
    assert_int_equal(only_fault(f).fault.code, LINK_FAULT_NONE);
}

ROUTER_TEST(an_mtu_is_told_with_its_numbers)
{
    struct fault_report report;
    struct peer_link_fault fault = fault_of(13, 7);
    char text[LINK_FAULT_TEXT_SIZE];

    fixture_link_up(f, plus0);
    say_link_state(f->up[plus0], 13, 1, 3, 0xb);
    fault.code = LINK_FAULT_MTU;
    fault.sent = 17896;
    fault.mtu = 9000;
    say(f->up[plus0], &fault);
    report = only_fault(f);
    link_fault_text(&f->torus, &report, text, sizeof text);
    assert_string_equal(text, "node 13 port +1 to node 14: sent 17896 bytes, none acknowledged: "
                              "do both ends have the same MTU (9000 at node 13)?");
}

ROUTER_TEST(faults_that_are_over_are_not_shown)
{
    struct peer_link_fault fault = fault_of(13, 7);

    router_set_heartbeats(f->router, 5 * SECONDS, 400 * SECONDS);
    fixture_link_up(f, plus0);
    fault.boot++; /* from an earlier start */
    say_link_state(f->up[plus0], 13, 1, 3, 0xb);
    say(f->up[plus0], &fault);
    assert_int_equal(only_fault(f).fault.code, LINK_FAULT_NONE);
    fault.boot--;
    say(f->up[plus0], &fault);
    assert_int_equal(only_fault(f).fault.code, LINK_FAULT_WRONG_CABLE);
    say_link_state(f->up[plus0], 13, 1, 4, 0xf); /* the link is up */
    say_link_state(f->up[plus0], 14, 2, 4, 0xf);
    assert_int_equal(only_fault(f).fault.code, LINK_FAULT_NONE);
    say_link_state(f->up[plus0], 13, 1, 5, 0xb);
    assert_int_equal(only_fault(f).fault.code, LINK_FAULT_WRONG_CABLE);
    f->now += 100 * SECONDS; /* no node has reported it again */
    assert_int_equal(only_fault(f).fault.code, LINK_FAULT_NONE);
}

TEST(impossible_reports_cost_the_link)
{
    for (int i = 0; i < 6; i++) {
        struct router_fixture f;
        struct peer_link_fault fault = fault_of(13, 7);
        fixture_open(&f, "4x4", 5, NULL);
        fixture_link_up(&f, plus0);
        *(uint32_t *[]){&fault.rank,       &fault.port,       &fault.code,
                        &fault.found_rank, &fault.found_port, &fault.left}[i] = 17;
        say(f.up[plus0], &fault);
        assert_null(f.up[plus0]->link);
        fixture_close(&f);
    }
}

TEST(few_are_kept)
{
    struct router_fixture f;
    struct fault_report report;
    unsigned count = 0;

    fixture_open(&f, "16x16", 5, NULL);
    fixture_link_up(&f, plus0);
    for (uint32_t rank = 100; rank < 200; rank++) {
        const struct peer_link_fault fault = fault_of(rank, 1);
        say_link_state(f.up[plus0], rank, 30, 3, 0);
        say(f.up[plus0], &fault);
        f.now += MILLISECONDS;
    }
    while (router_fault(f.router, count, &report))
        count++;
    assert_int_equal(count, 64);
    assert_int_not_equal(report.rank, 100); /* the oldest go */
    fixture_close(&f);
}

/* Another machine of rank 5 is in the torus, with links of its own: both report the links of node 5. */
ROUTER_TEST(two_machines_of_one_rank_do_not_overrule_each_other_for_ever)
{
    unsigned count = 0;
    char text[LINK_FAULT_TEXT_SIZE];

    fixture_link_up(f, plus0);
    for (uint32_t version = 10; version < 10 + 3; version++) /* from an earlier start */
        say_link_state(f->up[plus0], 5, 2, version, 3);
    pass(f, 1 * SECONDS);
    assert_int_equal(only_fault(f).fault.code, LINK_FAULT_NONE);
    for (uint32_t i = 0; i < 60 * 100; i++) {
        say_link_state(f->up[plus0], 5, 2, 1000 + 2 * i, 3);
        pass(f, 10 * MILLISECONDS);
        count += fixture_entries_sent(f->up[plus0], 5, NULL);
    }
    assert_true(count > 30 && count < 100);
    struct fault_report report = only_fault(f);
    assert_int_equal(report.fault.code, LINK_FAULT_DUPLICATE_RANK);
    link_fault_text(&f->torus, &report, text, sizeof text);
    assert_string_equal(
        text,
        "two machines have rank 5, reports the one whose port +0 is cabled to node 9: correct "
        "the rank of one of them");
    pass(f, 40 * SECONDS);
    assert_int_equal(only_fault(f).fault.code, LINK_FAULT_NONE);
}
