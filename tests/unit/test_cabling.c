/* What cabling_find() says about given cables. */
#include "tests/support/cmocka.h"
#include "tests/unit/cabling_fixture.h"

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
struct ring {
    struct cabling_interface interface[4][3];
    struct cabling_end heard[4][3];
    struct cabling_host host[4];
    struct cabling_input input;
};

static void hear(struct ring *r, uint32_t at, uint32_t interface, uint32_t host, uint32_t there)
{
    r->heard[at][interface] = (struct cabling_end){host, there};
    r->interface[at][interface].heard = &r->heard[at][interface];
    r->interface[at][interface].heard_count = 1;
    r->interface[at][interface].carrier = true;
}

static void silence(struct ring *r, uint32_t at, uint32_t interface, bool carrier)
{
    r->interface[at][interface].heard_count = 0;
    r->interface[at][interface].carrier = carrier;
}

/* eth1 of each leads to eth2 of the next; eth0 is free. */
static void make_ring(struct ring *r)
{
    static const char *const names[] = {"alpha", "beta", "gamma", "delta"};
    static const char *const interfaces[] = {"eth0", "eth1", "eth2"};

    memset(r, 0, sizeof *r);
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t k = 0; k < 3; k++)
            r->interface[i][k] = (struct cabling_interface){.name = interfaces[k], .port = -1};
        r->host[i] = (struct cabling_host){
            .name = names[i], .interface = r->interface[i], .interfaces = 3, .rank = CABLING_NONE};
    }
    for (uint32_t i = 0; i < 4; i++) {
        hear(r, i, 1, (i + 1) % 4, 2);
        hear(r, (i + 1) % 4, 2, i, 1);
    }
    r->input = (struct cabling_input){.host = r->host, .hosts = 4};
}

static struct cabling_result find(const struct ring *r)
{
    struct cabling_result result;
    struct error e;

    assert_int_equal(cabling_find(&result, &r->input, &e), 0);
    return result;
}

static void expect_move(const struct ring *ring, struct cabling_result *r,
                        enum cabling_move_kind kind, const char *sentence)
{
    char text[512];

    assert_int_equal(r->moves, 1);
    assert_int_equal(r->move[0].kind, kind);
    assert_true(cabling_move_text(r, &ring->input, 0, text, sizeof text) > 0);
    assert_string_equal(text, sentence);
    cabling_free(r);
}

static struct torus torus_of(const char *dims)
{
    struct torus t;
    struct error e;

    assert_int_equal(torus_parse(&t, dims, &e), 0);
    return t;
}

TEST(sentences_name_hosts_and_interfaces)
{
    struct ring ring;
    struct torus wanted = torus_of("4");
    struct cabling_result r;

    make_ring(&ring);
    r = find(&ring);
    assert_int_equal(r.finding, CABLING_FITS);
    assert_int_equal(r.rank_of_host[0], 0);
    assert_int_equal(r.rank_of_host[1], 1); /* beta comes before delta */
    assert_int_equal(cabling_port(&r, (struct cabling_end){0, 1}), 0);
    assert_int_equal(cabling_port(&r, (struct cabling_end){0, 2}), 1);
    assert_int_equal(cabling_port(&r, (struct cabling_end){0, 0}), -1);
    cabling_free(&r);

    silence(&ring, 1, 2, true); /* alpha hears beta, beta hears nothing */
    r = find(&ring);
    assert_int_equal(r.finding, CABLING_FITS);
    assert_null(strstr(r.text, "carrier"));
    expect_move(&ring, &r, CABLING_REPLACE,
                "replace the cable between beta's eth2 and alpha's eth1: only alpha's eth1 hears "
                "the other end");

    silence(&ring, 0, 1, true); /* without wanted dimensions, this is a line */
    r = find(&ring);
    assert_int_equal(r.finding, CABLING_FITS);
    assert_string_equal(r.text, "the cables make the line 4m of 4 hosts; alpha's eth1 and others "
                                "have a carrier, but no host is heard there");
    cabling_free(&r);
    ring.input.wanted = &wanted;
    r = find(&ring);
    assert_int_equal(r.finding, CABLING_NEAR);
    expect_move(&ring, &r, CABLING_CHECK,
                "connect alpha's eth1 and beta's eth2 directly: both have a carrier, but hear "
                "nobody");
    silence(&ring, 0, 1, false);
    r = find(&ring);
    expect_move(&ring, &r, CABLING_PLUG,
                "plug the other end of the cable in beta's eth2, which leads to no known host, "
                "into alpha's eth0");
    silence(&ring, 1, 2, false);
    r = find(&ring);
    expect_move(&ring, &r, CABLING_ADD,
                "add a cable between alpha's eth0 and beta's eth0, or replace it if there is one");
    hear(&ring, 0, 1, 2, 0); /* the cable leads to gamma */
    hear(&ring, 2, 0, 0, 1);
    r = find(&ring);
    expect_move(&ring, &r, CABLING_MOVE_END,
                "move the cable in gamma's eth0 to beta's eth0 (its other end stays in alpha's "
                "eth1)");
}

/* The interfaces have ports: the cable has to be where the port is. */
TEST(ports_are_kept)
{
    struct ring ring;
    struct torus wanted = torus_of("4");
    struct cabling_result r;

    make_ring(&ring);
    ring.input.wanted = &wanted;
    for (uint32_t i = 0; i < 4; i++) {
        ring.host[i].rank = (i + 2) % 4;
        ring.interface[i][1].port = 0;
        ring.interface[i][2].port = 1;
    }
    r = find(&ring);
    assert_int_equal(r.finding, CABLING_FITS);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(r.rank_of_host[i], (i + 2) % 4);
    cabling_free(&r);
    silence(&ring, 1, 2, false); /* alpha's cable is in beta's eth0 instead of eth2 */
    hear(&ring, 0, 1, 1, 0);
    hear(&ring, 1, 0, 0, 1);
    r = find(&ring);
    expect_move(&ring, &r, CABLING_MOVE_END,
                "move the cable in beta's eth0 to beta's eth2 (its other end stays in alpha's "
                "eth1)");
    ring.interface[1][0].port = 1;
    ring.interface[1][2].port = -1;
    r = find(&ring);
    assert_int_equal(r.finding, CABLING_FITS);
    cabling_free(&r);
}

/* All hosts hear each other on eth0, a management network. */
TEST(switches_are_left_out)
{
    struct ring ring;
    struct cabling_end all[4];
    struct cabling_result r;

    make_ring(&ring);
    for (uint32_t i = 0; i < 4; i++) {
        all[i] = (struct cabling_end){i, 0};
        ring.interface[i][0].carrier = true;
        ring.interface[i][0].heard = all;
        ring.interface[i][0].heard_count = 4;
    }
    r = find(&ring);
    assert_int_equal(r.finding, CABLING_FITS);
    assert_int_equal(r.cables, 4);
    assert_int_equal(r.shared_count, 4);
    cabling_free(&r);
    for (uint32_t i = 0; i < 4;
         i++) { /* only beta and gamma hear each other: it looks like a cable */
        ring.interface[i][0].heard_count = 0;
        ring.interface[i][1].excluded = false;
    }
    hear(&ring, 0, 0, 2, 0);
    hear(&ring, 2, 0, 0, 0);
    r = find(&ring);
    assert_int_equal(r.cables, 5);
    expect_move(&ring, &r, CABLING_REMOVE,
                "remove the cable between alpha's eth0 and gamma's eth0");
    ring.interface[0][0].excluded = true;
    r = find(&ring);
    assert_int_equal(r.finding, CABLING_FITS);
    assert_int_equal(r.cables, 4);
    cabling_free(&r);
}

/* alpha and beta hear each other over two functions of one port at each end: eth0 and eth1 of alpha, eth0 and eth2 of
 * beta. */
TEST(functions_of_a_port_are_one_cable)
{
    struct cabling_end all[] = {{0, 0}, {0, 1}, {1, 0}, {1, 2}};
    struct torus wanted = torus_of("4");
    struct ring ring;
    struct cabling_result r;

    make_ring(&ring);
    for (uint32_t i = 0; i < 4; i++) {
        ring.interface[all[i].host][all[i].interface].carrier = true;
        ring.interface[all[i].host][all[i].interface].heard = all;
        ring.interface[all[i].host][all[i].interface].heard_count = 4;
    }
    r = find(&ring);
    assert_int_equal(r.finding, CABLING_FITS);
    assert_int_equal(r.cables, 4);
    assert_int_equal(r.shared_count, 0);
    assert_int_equal(r.twins, 2);
    assert_int_equal(r.twin[0].left_out.host, 0);
    assert_int_equal(r.twin[0].left_out.interface, 1);
    assert_int_equal(r.twin[0].taken, 0);
    assert_int_equal(r.twin[1].left_out.interface, 2);
    cabling_free(&r);
    ring.interface[0][1].port = 0; /* the cluster file has this one */
    ring.host[0].rank = 0;
    ring.input.wanted = &wanted;
    r = find(&ring);
    assert_int_equal(r.finding, CABLING_FITS);
    assert_int_equal(r.twin[0].left_out.interface, 0);
    assert_int_equal(r.twin[0].taken, 1);
    assert_int_equal(cabling_port(&r, (struct cabling_end){0, 1}), 0);
    cabling_free(&r);
    /* gamma is there, too: a switch. */
    ring.interface[2][0].heard = all;
    ring.interface[2][0].heard_count = 4;
    r = find(&ring);
    assert_int_equal(r.twins, 0);
    assert_int_equal(r.shared_count, 5);
    cabling_free(&r);
}

TEST(invalid_input_is_refused)
{
    struct ring ring;
    struct torus wanted = torus_of("4");
    struct cabling_result r;
    struct error e;

    make_ring(&ring);
    ring.host[1].name = "alpha";
    assert_fails(cabling_find(&r, &ring.input, &e), e, ERROR_USAGE, "");
    make_ring(&ring);
    ring.heard[0][1].host = 4;
    assert_int_equal(cabling_find(&r, &ring.input, &e), -1);
    make_ring(&ring);
    ring.heard[0][1].interface = 3;
    assert_int_equal(cabling_find(&r, &ring.input, &e), -1);
    make_ring(&ring);
    ring.interface[0][1].name = "eth0";
    assert_int_equal(cabling_find(&r, &ring.input, &e), -1);
    make_ring(&ring);
    ring.input.wanted = &wanted;
    ring.host[0].rank = 4;
    assert_int_equal(cabling_find(&r, &ring.input, &e), -1);
    ring.host[0].rank = ring.host[1].rank = 3;
    assert_int_equal(cabling_find(&r, &ring.input, &e), -1);
    ring.host[1].rank = 1;
    ring.interface[1][0].port = 2;
    assert_fails(cabling_find(&r, &ring.input, &e), e, ERROR_USAGE, "");
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
    struct cabling_input none = {.hosts = 0};
    struct ring ring;
    struct cabling_result r;
    struct error e;

    assert_int_equal(cabling_find(&r, &none, &e), 0);
    assert_int_equal(r.finding, CABLING_UNCLEAR);
    cabling_free(&r);
    make_ring(&ring);
    for (uint32_t i = 0; i < 12; i++)
        silence(&ring, i / 3, i % 3, false);
    r = find(&ring);
    assert_int_equal(r.finding, CABLING_UNCLEAR);
    assert_int_not_equal(r.text[0], '\0');
    cabling_free(&r);
}
