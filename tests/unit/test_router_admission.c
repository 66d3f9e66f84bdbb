/* Which connections are accepted, and when a link is up. */
#include "router_fixture.h"
#include "tests/support/cmocka.h"

static const unsigned plus = 0, minus = 1;

TEST(the_plus_side_dials_and_says_hello_first)
{
    struct router_fixture f;

    fixture_open(&f, "4x4", 5, NULL);
    assert_int_equal(f.dials[0], 0);
    router_start(f.router);
    for (unsigned port = 0; port < 4; port++)
        assert_int_equal(f.dials[port], torus_port_direction(&f.torus, port) > 0);
    assert_int_equal(fixture_state_of(&f, plus), PORT_DIALLING);
    assert_int_equal(fixture_state_of(&f, minus), PORT_WAITING);
    struct fixture_connection *c = fixture_connect(&f, plus, true);
    struct peer_message *head = fixture_next(c, NULL, 0, NULL);
    assert_int_equal(head->kind, PEER_HELLO);
    assert_string_equal(head->hello.dims, "4x4");
    assert_int_equal(head->hello.rank, 5);
    assert_int_equal(head->hello.port, plus);
    assert_int_equal(head->hello.version, PROTOCOL_VERSION);
    message_forget(head);
    assert_null(fixture_next(c, NULL, 0, NULL)); /* nothing else before the peer's hello */
    assert_int_equal(fixture_state_of(&f, plus), PORT_HELLO);
    fixture_close(&f);
}

TEST(a_valid_hello_brings_the_link_up)
{
    struct router_fixture f;

    fixture_open(&f, "4x4", 5, NULL);
    for (unsigned port = 0; port < 4; port++) {
        fixture_link_up(&f, port);
        assert_int_equal(fixture_state_of(&f, port), PORT_UP);
        assert_int_equal(f.topology_changes, port + 1);
    }
    assert_int_equal(router_topology(f.router)->entry[5].up, 0xf);
    fixture_close(&f);
}

static void check_stranger(struct peer_hello *hello, const char *text)
{
    struct router_fixture f;
    fixture_open(&f, "4x4", 5, NULL);
    struct fixture_connection *c = fixture_connect(&f, minus, false);
    fixture_say_hello(c, hello);
    assert_null(c->link);
    if (strstr(c->last, text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, c->last);
    assert_int_equal(router_topology(f.router)->entry[5].up, 0);
    fixture_close(&f);
}

TEST(a_dialler_that_is_not_the_neighbour_is_told_why)
{
    struct router_fixture f;
    char dims[TORUS_TEXT_SIZE], versions[80];
    struct peer_hello good, bad;

    fixture_open(&f, "4x4", 5, NULL);
    fixture_hello(&f, minus, &good, dims);
    fixture_close(&f);
    bad = good, bad.version = PROTOCOL_VERSION + 1;
    (void)snprintf(versions, sizeof versions, "version %u.%u, node 5 speaks version %u.%u",
                   PROTOCOL_VERSION + 1, PROTOCOL_MINOR, PROTOCOL_VERSION, PROTOCOL_MINOR);
    check_stranger(&bad, versions);
    bad = good, bad.minor = PROTOCOL_MINOR + 2;
    (void)snprintf(versions, sizeof versions, "version %u.%u, node 5 speaks version %u.%u",
                   PROTOCOL_VERSION, PROTOCOL_MINOR + 2, PROTOCOL_VERSION, PROTOCOL_MINOR);
    check_stranger(&bad, versions);
    bad = good, bad.dims = (char[]){"4x8"};
    check_stranger(&bad, "torus 4x8, node 5 is in a torus 4x4");
    bad = good, bad.dims = (char[]){"\n\x1b"};
    check_stranger(&bad, "is in a torus ??");
    bad = good, bad.rank++;
    check_stranger(&bad, "node 2 port +0 is connected to node 5 port -0");
    bad = good, bad.port = 3;
    check_stranger(&bad, "node 1 port -1");
    bad = good, bad.port = UINT32_MAX;
    check_stranger(&bad, "node 1 port ? is");
}

/* The minor version of the neighbour counts before it has stated its links. */
TEST(a_neighbour_may_be_one_minor_version_away)
{
    for (uint32_t minor = PROTOCOL_MINOR - 1; minor <= PROTOCOL_MINOR + 1; minor++) {
        struct router_fixture f;
        fixture_open(&f, "4x4", 5, NULL);
        assert_int_equal(router_least_minor(f.router), PROTOCOL_MINOR);
        f.minor = minor;
        fixture_link_up(&f, minus);
        assert_int_equal(fixture_state_of(&f, minus), PORT_UP);
        assert_int_equal(router_least_minor(f.router),
                         minor < PROTOCOL_MINOR ? minor : PROTOCOL_MINOR);
        fixture_say_unknown(f.up[minus]);
        /* Only a newer neighbour may send what this node does not know. */
        assert_int_equal(fixture_state_of(&f, minus) == PORT_UP, minor > PROTOCOL_MINOR);
        fixture_close(&f);
    }
}

TEST(strangers_say_hello_first_and_briefly)
{
    struct router_fixture f;
    uint8_t prefix[FRAME_PREFIX_SIZE];

    fixture_open(&f, "4x4", 5, NULL);
    struct fixture_connection *c = fixture_connect(&f, minus, false);
    fixture_say_heartbeat(c);
    assert_null(c->link);
    assert_non_null(strstr(c->last, "did not begin with a hello"));
    c = fixture_connect(&f, minus, false);
    frame_prefix_write(prefix, FRAME_MAX_STRANGER_HEAD + 1, 0);
    fixture_feed(c, prefix, sizeof prefix);
    assert_null(c->link);
    c = fixture_connect(&f, minus, false);
    frame_prefix_write(prefix, 10, 1);
    fixture_feed(c, prefix, sizeof prefix);
    assert_null(c->link);
    fixture_close(&f);
}

TEST(hello_is_said_once)
{
    struct router_fixture f;
    char dims[TORUS_TEXT_SIZE];
    struct peer_hello hello;

    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, minus);
    fixture_hello(&f, minus, &hello, dims);
    fixture_say_hello(f.up[minus], &hello);
    assert_null(f.up[minus]->link);
    assert_non_null(strstr(f.up[minus]->last, "hello twice"));
    assert_int_equal(router_topology(f.router)->entry[5].up, 0);
    fixture_close(&f);
}

TEST(strangers_do_not_touch_a_link_that_is_up)
{
    struct router_fixture f;
    struct fixture_connection *stranger[40];

    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, minus);
    unsigned open = 0;
    for (int i = 0; i < 40; i++)
        stranger[i] = fixture_connect(&f, minus, false);
    for (int i = 0; i < 40; i++)
        open += stranger[i]->link != NULL;
    assert_in_range(open, 1, 32); /* bounded, and not the last one is turned away */
    assert_non_null(stranger[39]->link);
    fixture_say_heartbeat(stranger[39]);
    assert_non_null(f.up[minus]->link);
    assert_int_equal(fixture_state_of(&f, minus), PORT_UP);
    fixture_close(&f);
}

TEST(a_new_connection_of_the_neighbour_replaces_the_old_one)
{
    struct router_fixture f;

    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, minus);
    struct fixture_connection *old = f.up[minus];
    unsigned changes = f.topology_changes;
    fixture_link_up(&f, minus);
    assert_null(old->link);
    assert_non_null(f.up[minus]->link);
    assert_int_equal(f.topology_changes, changes + 2); /* down and up: an exchange must notice */
    fixture_close(&f);
}

TEST(a_connection_without_a_hello_is_closed)
{
    struct router_fixture f;

    fixture_open(&f, "4x4", 5, NULL);
    struct fixture_connection *c = fixture_connect(&f, minus, false);
    fixture_pass(&f, ROUTER_HELLO_TIME - 1);
    assert_non_null(c->link);
    fixture_pass(&f, 1);
    assert_null(c->link);
    fixture_close(&f);
}

/* A connection after its handshake; discards what the router has sent. */
static struct fixture_connection *shaken(struct router_fixture *f, unsigned port)
{
    struct fixture_connection *c =
        fixture_connect(f, port, torus_port_direction(&f->torus, port) > 0);
    char dims[TORUS_TEXT_SIZE];
    struct peer_hello hello;

    fixture_hello(f, port, &hello, dims);
    c->stat.segment = 8948;
    fixture_say_hello(c, &hello);
    return c;
}

/* Discards what the router sends. Returns the bytes of its probe, or 0. *answered: whether it has answered a probe. */
static size_t probe_sent(struct fixture_connection *c, bool *answered)
{
    size_t bytes = 0;
    struct peer_message *head;

    *answered = false;
    while ((head = fixture_next(c, NULL, 0, NULL)) != NULL) {
        if (head->kind == PEER_PROBE)
            bytes = head->probe.filler.len;
        *answered |= head->kind == PEER_PROBE_ANSWERED;
        message_forget(head);
    }
    return bytes;
}

TEST(a_link_is_up_when_full_frames_have_passed_both_ways)
{
    for (unsigned first = 0; first < 2; first++) {
        struct router_fixture f;
        bool answered;
        fixture_open(&f, "4x4", 5, NULL);
        struct fixture_connection *c = shaken(&f, minus);
        assert_int_equal(probe_sent(c, &answered), 2 * 8948);
        assert_false(answered);
        assert_int_equal(fixture_state_of(&f, minus), PORT_PROBING);
        if (first == 0)
            fixture_say_probe(c);
        else
            fixture_answer_probe(c);
        (void)probe_sent(c, &answered);
        assert_int_equal(answered, first == 0);
        assert_int_equal(fixture_state_of(&f, minus), PORT_PROBING);
        assert_int_equal(router_topology(f.router)->entry[5].up, 0);
        if (first == 0)
            fixture_answer_probe(c);
        else
            fixture_say_probe(c);
        assert_int_equal(fixture_state_of(&f, minus), PORT_UP);
        fixture_say_probe(c); /* once is enough */
        assert_null(c->link);
        c = shaken(&f, minus);
        fixture_say_heartbeat(c); /* nothing else before it */
        assert_null(c->link);
        assert_non_null(strstr(c->last, "neither a probe nor"));
        fixture_close(&f);
    }
}

/* The reason is reported early, and the probe repeated until the kernel may have found smaller packets. */
TEST(a_cable_that_drops_the_probe_is_named)
{
    static const char question[] = "same MTU (9000 here)";
    struct router_fixture f;
    struct port_info info;

    fixture_open(&f, "4x4", 5, NULL);
    struct fixture_connection *c = shaken(&f, plus);
    c->stat.unacked = 2 * 8948;
    c->stat.mtu = 9000;
    fixture_pass(&f, ROUTER_PROBE_TELL - 1);
    router_port_info(f.router, plus, &info);
    assert_string_equal(info.reason, "");
    fixture_pass(&f, 1);
    fixture_check_reason(&f, plus, question);
    assert_int_equal(fixture_state_of(&f, plus), PORT_PROBING);
    c->stat.acked += 1000; /* it passes after all, slowly */
    fixture_pass(&f, ROUTER_PROBE_TIME - 1);
    assert_non_null(c->link);
    fixture_pass(&f, ROUTER_PROBE_TIME);
    assert_null(c->link);
    fixture_check_reason(&f, plus, question);
    c = shaken(&f, minus); /* the other way */
    c->stat.mtu = 9000;
    fixture_pass(&f, ROUTER_PROBE_TIME);
    assert_null(c->link);
    router_port_info(f.router, minus, &info);
    assert_non_null(strstr(info.reason, "same MTU (9000 here)"));
    fixture_close(&f);
}

/* While the neighbour probes, strangers do not replace its connection; its own next connection does. */
TEST(a_neighbour_that_probes_is_not_a_stranger)
{
    struct router_fixture f;

    fixture_open(&f, "4x4", 5, NULL);
    struct fixture_connection *c = shaken(&f, minus);
    for (unsigned i = 0; i < 40; i++)
        (void)fixture_connect(&f, minus, false);
    assert_non_null(c->link);
    struct fixture_connection *next = shaken(&f, minus);
    assert_null(c->link);
    fixture_pass_probe(next);
    assert_int_equal(fixture_state_of(&f, minus), PORT_UP);
    fixture_close(&f);
}
