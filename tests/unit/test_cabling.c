/* What cabling_find() says about given cables. */
#include <stdarg.h>

#include "tests/support/cmocka.h"
#include "tests/unit/cabling_fixture.h"

enum { TEXT_MOST = 1000 };

/* Networks, and the dimensions that are found for them. */
TEST(networks_are_recognised)
{
    static const char *const networks[][2] = {
        {"3", "3"},
        {"2", "2"},
        {"2m", "2m"},
        {"6m", "6m"},
        {"2x2", "2x2"},
        {"4x8", "4x8"},
        {"5x3m", "5x3m"},
        {"2m^2", "4"},
        {"2m^4", "4x4"},
        {"3x4x5", "3x4x5"},
        {"4x4x8x8", "4x4x8x8"},
        {"2m^10", "4x4x4x4x4"},
        {"2x3mx4x5m", "2x3mx4x5m"},
        {"complete:5", "complete:5"},
        {"star:6", "star:6"},
        {"tree:2^3", "tree:2^3"},
        {"5 x complete:4", "5 x complete:4"},
        {"complete:4 x complete:5", "complete:4 x complete:5"},
        {"star:4 x 3 x 2m", "star:4 x 3 x 2m"},
        {"tree:3^2 x 4", "tree:3^2 x 4"},
    };

    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        struct torus cube = {.nodes = 1};
        struct world *w;
        struct cabling_result r;
        struct error e;
        char text[TORUS_TEXT_SIZE];
        if (torus_parse(&cube, networks[i][0], &e) != 0)
            continue; /* 2m^10 has too many dimensions to be written */
        w = world_make(networks[i][0], 1, true, i);
        assert_int_equal(cabling_find(&r, world_input(w, false, false), &e), 0);
        assert_int_equal(r.finding, CABLING_FITS);
        assert_int_equal(r.moves, 0);
        (void)cabling_dims(&r.torus, NULL, text, sizeof text);
        assert_string_equal(text, networks[i][1]);
        world_repair(w, &r);
        cabling_free(&r);
        world_free(w);
    }
}

/* If names follow the ranks, each host gets the rank that its name has. */
TEST(names_give_the_ranks)
{
    static const char *const networks[] = {"12", "4x8", "3x5m", "4x4", "3x4x2", "complete:5 x 3"};

    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        struct world *w = world_make(networks[i], 0, true, i + 50);
        struct cabling_result r;
        struct error e;
        assert_int_equal(cabling_find(&r, world_input(w, false, false), &e), 0);
        assert_int_equal(r.torus.nodes, w->hosts);
        for (uint32_t rank = 0; rank < w->hosts; rank++)
            assert_int_equal(w->host_of[r.host_of_rank[rank]], w->host_at[rank]);
        cabling_free(&r);
        world_free(w);
    }
}

/* Four hosts of a ring; each test changes something about them. */
static struct ring {
    struct cabling_interface interface[4][3];
    struct cabling_end heard[4][3];
    struct cabling_host host[4];
    struct cabling_input input;
} ring;

static struct torus wanted; /* its dimensions */

static void hear(uint32_t at, uint32_t interface, uint32_t host, uint32_t there)
{
    ring.heard[at][interface] = (struct cabling_end){host, there};
    ring.interface[at][interface].heard = &ring.heard[at][interface];
    ring.interface[at][interface].heard_count = 1;
    ring.interface[at][interface].carrier = true;
}

/* It hears four interfaces. */
static void hear_all(struct cabling_end at, const struct cabling_end *heard)
{
    ring.interface[at.host][at.interface].heard = heard;
    ring.interface[at.host][at.interface].heard_count = 4;
    ring.interface[at.host][at.interface].carrier = true;
}

static void silence(uint32_t at, uint32_t interface, bool carrier)
{
    ring.interface[at][interface].heard_count = 0;
    ring.interface[at][interface].carrier = carrier;
}

/* eth1 of each leads to eth2 of the next; eth0 is free. */
static void begin(void)
{
    static const char *const names[] = {"alpha", "beta", "gamma", "delta"};
    static const char *const interfaces[] = {"eth0", "eth1", "eth2"};

    ring = (struct ring){.input = {.host = ring.host, .hosts = 4}};
    assert_int_equal(torus_parse(&wanted, "4", NULL), 0);
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t k = 0; k < 3; k++)
            ring.interface[i][k] = (struct cabling_interface){.name = interfaces[k], .port = -1};
        ring.host[i] = (struct cabling_host){.name = names[i],
                                             .interface = ring.interface[i],
                                             .interfaces = 3,
                                             .rank = CABLING_NONE};
    }
    for (uint32_t i = 0; i < 4; i++) {
        hear(i, 1, (i + 1) % 4, 2);
        hear((i + 1) % 4, 2, i, 1);
    }
}

static size_t add(char *text, size_t length, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    length += (size_t)vsnprintf(text + length, TEXT_MOST - length, format, list);
    va_end(list);
    assert_true(length < TEXT_MOST);
    return length;
}

/* The port of an interface, as a digit; '.': it has none. */
static char port_of(const struct cabling_result *r, uint32_t host, uint32_t interface)
{
    const unsigned ports = torus_ports(&r->torus);

    for (unsigned port = 0; r->rank_of_host[host] != CABLING_NONE && port < ports; port++)
        if (r->interface_at[(size_t)r->rank_of_host[host] * ports + port] == interface)
            return (char)('0' + port);
    return '.';
}

/* Fails the test unless this is found: what the cables make, the rank of each host, the interface at each port and the
 * moves. */
static void expect(const char *expected)
{
    static const char *const findings[] = {"fits", "near", "graph", "unclear"};
    struct cabling_result r;
    struct error e;
    char text[TEXT_MOST];

    assert_success(cabling_find(&r, &ring.input, &e), e);
    size_t length = add(text, 0, "%s: %s; %u cables", findings[r.finding], r.text, r.cables);
    if (r.shared_count > 0)
        length = add(text, length, ", %u shared", r.shared_count);
    for (uint32_t i = 0; i < r.twins; i++)
        length = add(text, length, ", %u:%u as %u", r.twin[i].left_out.host,
                     r.twin[i].left_out.interface, r.twin[i].taken);
    length = add(text, length, "; ranks");
    for (uint32_t i = 0; i < 4 && r.finding != CABLING_UNCLEAR; i++) {
        length = add(text, length, " %u:", r.rank_of_host[i]);
        for (uint32_t k = 0; k < 3; k++)
            length = add(text, length, "%c", port_of(&r, i, k));
    }
    for (uint32_t i = 0; i < r.moves; i++) {
        length = add(text, length, "; ");
        length +=
            (size_t)cabling_move_text(&r, &ring.input, i, text + length, sizeof text - length);
    }
    assert_string_equal(text, expected);
    cabling_free(&r);
}

TEST(sentences_name_hosts_and_interfaces)
{
    begin();
    expect("fits: the cables make the ring 4 of 4 hosts; 4 cables; ranks 0:.01 1:.01 2:.01 3:.01");
    silence(1, 2, true); /* alpha hears beta, beta hears nothing */
    expect("fits: the cables make the ring 4 of 4 hosts, but some of them work in one direction "
           "only; 4 cables; ranks 0:.01 1:.01 2:.01 3:.01; replace the cable between beta's eth2 "
           "and alpha's eth1: only alpha's eth1 hears the other end");
    silence(0, 1, true); /* without wanted dimensions, this is a line */
    expect("fits: the cables make the line 4m of 4 hosts; alpha's eth1 and others have a carrier, "
           "but no host is heard there; 3 cables; ranks 0:..0 3:.1. 2:.10 1:.10");
    ring.input.wanted = &wanted;
    expect("near: the cables make the ring 4 of 4 hosts after 1 change; 3 cables; ranks 0:.01 "
           "1:.01 2:.01 3:.01; connect alpha's eth1 and beta's eth2 directly: both have a carrier, "
           "but hear nobody");
    silence(0, 1, false);
    expect("near: the cables make the ring 4 of 4 hosts after 1 change; 3 cables; ranks 0:0.1 "
           "1:.01 2:.01 3:.01; plug the other end of the cable in beta's eth2, which leads to no "
           "known host, into alpha's eth0");
    silence(1, 2, false);
    expect("near: the cables make the ring 4 of 4 hosts after 1 change; 3 cables; ranks 0:0.1 "
           "1:10. 2:.01 3:.01; add a cable between alpha's eth0 and beta's eth0, or replace it if "
           "there is one");
    hear(0, 1, 2, 0); /* the cable leads to gamma */
    hear(2, 0, 0, 1);
    expect("near: the cables make the ring 4 of 4 hosts after 1 change; 4 cables; ranks 0:.01 "
           "1:10. 2:.01 3:.01; move the cable in gamma's eth0 to beta's eth0 (its other end stays "
           "in alpha's eth1)");
}

/* The interfaces have ports: the cable has to be where the port is. */
TEST(ports_are_kept)
{
    begin();
    ring.input.wanted = &wanted;
    for (uint32_t i = 0; i < 4; i++) {
        ring.host[i].rank = (i + 2) % 4;
        ring.interface[i][1].port = 0;
        ring.interface[i][2].port = 1;
    }
    expect("fits: the cables make the ring 4 of 4 hosts; 4 cables; ranks 2:.01 3:.01 0:.01 1:.01");
    silence(1, 2, false); /* alpha's cable is in beta's eth0 instead of eth2 */
    hear(0, 1, 1, 0);
    hear(1, 0, 0, 1);
    expect("near: the cables make the ring 4 of 4 hosts after 1 change; 4 cables; ranks 2:.01 "
           "3:.01 0:.01 1:.01; move the cable in beta's eth0 to beta's eth2 (its other end stays "
           "in alpha's eth1)");
    ring.interface[1][0].port = 1;
    ring.interface[1][2].port = -1;
    expect("fits: the cables make the ring 4 of 4 hosts; 4 cables; ranks 2:.01 3:10. 0:.01 1:.01");
}

/* All hosts hear each other on eth0, a management network. */
TEST(switches_are_left_out)
{
    struct cabling_end all[4];

    begin();
    for (uint32_t i = 0; i < 4; i++) {
        all[i] = (struct cabling_end){i, 0};
        hear_all(all[i], all);
    }
    expect("fits: the cables make the ring 4 of 4 hosts; 4 cables, 4 shared; ranks 0:.01 1:.01 "
           "2:.01 3:.01");
    for (uint32_t i = 0; i < 4;
         i++) { /* only alpha and gamma hear each other: it looks like a cable */
        ring.interface[i][0].heard_count = 0;
        ring.interface[i][1].excluded = false;
    }
    hear(0, 0, 2, 0);
    hear(2, 0, 0, 0);
    expect("near: the cables make the ring 4 of 4 hosts after 1 change; 5 cables; ranks 0:.01 "
           "1:.01 2:.01 3:.01; remove the cable between alpha's eth0 and gamma's eth0");
    ring.interface[0][0].excluded = true;
    expect("fits: the cables make the ring 4 of 4 hosts; beta's eth0 and others have a carrier, "
           "but no host is heard there; 4 cables; ranks 0:.01 1:.01 2:.01 3:.01");
}

/* alpha and beta hear each other over two functions of one port at each end: eth0 and eth1 of alpha, eth0 and eth2 of
 * beta. */
TEST(functions_of_a_port_are_one_cable)
{
    struct cabling_end all[] = {{0, 0}, {0, 1}, {1, 0}, {1, 2}};

    begin();
    for (uint32_t i = 0; i < 4; i++)
        hear_all(all[i], all);
    expect("fits: the cables make the ring 4 of 4 hosts; 4 cables, 0:1 as 0, 1:2 as 0; ranks 0:0.1 "
           "1:10. 2:.01 3:.01");
    ring.interface[0][1].port = 0; /* the cluster file has this one */
    ring.host[0].rank = 0;
    ring.input.wanted = &wanted;
    expect("fits: the cables make the ring 4 of 4 hosts; 4 cables, 0:0 as 1, 1:2 as 0; ranks 0:.01 "
           "1:10. 2:.01 3:.01");
    /* gamma is there, too: a switch. */
    hear_all((struct cabling_end){2, 0}, all);
    expect("near: the cables make the ring 4 of 4 hosts after 2 changes; 3 cables, 5 shared; ranks "
           "0:.01 3:.1. 2:.10 1:.10; move the cable in alpha's eth2 to alpha's eth1 (its other end "
           "stays in delta's eth1); add a cable between a new interface of beta (none is free) and "
           "alpha's eth2, or replace it if there is one");
}

static void check_refused(void)
{
    struct cabling_result r;
    struct error e;

    assert_fails(cabling_find(&r, &ring.input, &e), e, ERROR_USAGE, "");
    begin();
}

TEST(invalid_input_is_refused)
{
    begin();
    ring.host[1].name = "alpha";
    check_refused();
    ring.heard[0][1].host = 4;
    check_refused();
    ring.heard[0][1].interface = 3;
    check_refused();
    ring.interface[0][1].name = "eth0";
    check_refused();
    ring.input.wanted = &wanted;
    ring.host[0].rank = 4;
    check_refused();
    ring.input.wanted = &wanted;
    ring.host[0].rank = ring.host[1].rank = 3;
    check_refused();
    ring.input.wanted = &wanted;
    ring.host[0].rank = 3;
    ring.host[1].rank = 1;
    ring.interface[1][0].port = 2;
    check_refused();
}

/* Three hosts of which each has a cable to each of eight others: no few moves make a torus of this. */
TEST(other_networks_are_graphs)
{
    struct world *w = world_make("star:11", 0, true, 1);
    struct cabling_result r;
    struct error e;
    char text[128];

    w->cables = 0;
    for (uint32_t i = 0; i < 11; i++)
        w->interfaces[i] = i < 3 ? 8 : 3;
    for (uint32_t a = 0; a < 3; a++)
        for (uint32_t b = 0; b < 8; b++)
            world_plug(w, (struct cabling_end){a, b}, (struct cabling_end){3 + b, a});
    assert_int_equal(cabling_find(&r, world_input(w, false, false), &e), 0);
    assert_int_equal(r.finding, CABLING_GRAPH);
    assert_int_equal(r.torus.nodes, 11);
    (void)cabling_dims(&r.torus, "/etc/torusd/cables.edges", text, sizeof text);
    assert_string_equal(text, "graph:/etc/torusd/cables.edges");
    world_repair(w, &r);
    cabling_free(&r);
    world_free(w);
}

TEST(no_cables_are_unclear)
{
    begin();
    for (uint32_t i = 0; i < 12; i++)
        silence(i / 3, i % 3, false);
    expect("unclear: no interface hears another host, so that there is no cable; 0 cables; ranks");
    ring.input.hosts = 0;
    expect("unclear: no interface hears another host, so that there is no cable; 0 cables; ranks");
}
