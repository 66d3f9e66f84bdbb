#include "daemon/torusd/router/topology.h"
#include "tests/support/cmocka.h"

static struct torus torus;

static void open_topology(struct topology *p, const char *dims, uint32_t self)
{
    assert_int_equal(torus_parse(&torus, dims, NULL), 0);
    assert_int_equal(topology_init(p, &torus, self, 1000 + self), 0);
}

/* TOPOLOGY_TEST(DIMS, SELF, NAME) { ... }: a test with what node SELF knows, `p`. */
#define TOPOLOGY_TEST(dims, self, name)                                                            \
    TEST_BETWEEN(struct topology, p, open_topology(&fixture, dims, self), topology_free(&fixture), \
                 name)

static uint32_t all_ports(uint32_t rank)
{
    uint32_t up = 0;
    for (unsigned port = 0; port < torus_ports(&torus); port++)
        if (torus_neighbour(&torus, rank, port) != TORUS_NO_NODE)
            up |= 1u << port;
    return up;
}

/* Takes the port with the shortest route. */
static enum topology_news hear(struct topology *p, uint32_t rank, uint32_t up)
{
    unsigned nearest = TORUS_MAX_PORTS;
    uint32_t hops = UINT32_MAX;

    for (unsigned port = 0; port < torus_ports(&torus); port++) {
        uint32_t peer = torus_neighbour(&torus, p->self, port);
        if (peer != TORUS_NO_NODE && torus_distance(&torus, peer, rank) < hops) {
            hops = torus_distance(&torus, peer, rank);
            nearest = port;
        }
    }
    static uint32_t version = 1;
    const struct topology_entry claim = {
        .hops = hops, .version = version++, .up = up, .boot = 1000 + rank};
    return topology_take_claim(p, nearest, rank, &claim);
}

static void all_up(struct topology *p)
{
    for (uint32_t rank = 0; rank < torus.nodes; rank++)
        if (rank != p->self)
            assert_int_equal(hear(p, rank, all_ports(rank)), TOPOLOGY_NEW);
    for (unsigned port = 0; port < torus_ports(&torus); port++)
        if (torus_neighbour(&torus, p->self, port) != TORUS_NO_NODE)
            topology_set_self(p, port, true);
}

static enum topology_news claim(struct topology *p, unsigned port, uint32_t hops, uint32_t version,
                                uint32_t up)
{
    const struct topology_entry claim = {.hops = hops, .version = version, .up = up, .boot = 7};
    return topology_take_claim(p, port, 5, &claim);
}

TOPOLOGY_TEST("4x4", 0, the_newest_claim_is_believed_then_the_nearest)
{
    assert_int_equal(claim(p, 1, 5, 3, 0xf), TOPOLOGY_NEW);
    assert_int_equal(p->entry[5].hops, 6);
    assert_int_equal(claim(p, 0, 5, 3, 0x0), TOPOLOGY_SAME); /* as near: no reason to change */
    assert_int_equal(claim(p, 1, 5, 3, 0xf), TOPOLOGY_SAME);
    assert_int_equal(topology_drop_claim(p, 0, 5), TOPOLOGY_SAME);
    assert_int_equal(claim(p, 0, 5, 3, 0xf), TOPOLOGY_SAME);
    assert_int_equal(claim(p, 1, 1, 2, 0x0), TOPOLOGY_SAME); /* older */
    assert_int_equal(p->entry[5].up, 0xf);
    assert_int_equal(claim(p, 2, 1, 3, 0xf), TOPOLOGY_REPEAT); /* nearer */
    assert_int_equal(p->entry[5].hops, 2);
    assert_int_equal(claim(p, 0, 7, 4, 0x7), TOPOLOGY_NEW); /* newer */
    assert_int_equal(p->entry[5].hops, 8);
    assert_int_equal(p->entry[5].up, 0x7);
    assert_int_equal(claim(p, 2, 1, 4, 0x7), TOPOLOGY_REPEAT);
    /* When links go down, the remaining claims count, even if they are old. */
    assert_int_equal(topology_drop_claim(p, 0, 5), TOPOLOGY_SAME);
    assert_int_equal(topology_drop_claim(p, 2, 5), TOPOLOGY_NEW);
    assert_int_equal(p->entry[5].up, 0x0);
    assert_int_equal(p->entry[5].version, 2);
    assert_int_equal(topology_drop_claim(p, 1, 5), TOPOLOGY_REPEAT);
    assert_true(p->entry[5].hops >= torus.nodes); /* it cannot be reached: the known state stays */
    assert_int_equal(p->entry[5].up, 0x0);
    assert_int_equal(p->entry[5].boot, 7);
    uint64_t changes = p->changes;
    assert_int_equal(claim(p, 0, torus.nodes - 1, 9, 0xf), TOPOLOGY_SAME); /* no path is so long */
    assert_int_equal(p->changes, changes);
    assert_int_equal(claim(p, 0, 1, 9, 0xf), TOPOLOGY_NEW); /* its ports are up again */
    assert_int_equal(p->changes, changes + 1);
}

TOPOLOGY_TEST("4x4", 5, reports_about_ourselves_are_ignored)
{
    topology_set_self(p, 2, true);
    assert_int_equal(p->entry[5].version, 2);
    assert_int_equal(p->changes, 1);
    topology_set_self(p, 2, true);
    assert_int_equal(p->entry[5].version, 2);
    assert_int_equal(p->changes, 1);
    const struct topology_entry echo = {.hops = 3, .version = 2, .up = 1u << 2, .boot = 1005};
    assert_int_equal(topology_take_claim(p, 0, 5, &echo), TOPOLOGY_SAME);
    assert_int_equal(claim(p, 0, 1, 1, 0xf), TOPOLOGY_SAME); /* an old one */
    assert_int_equal(claim(p, 0, 1, 2, 0xf), TOPOLOGY_REPEAT);
    assert_int_equal(p->entry[5].version, 3);
    assert_int_equal(claim(p, 1, 1, UINT32_MAX - 1, 0xf), TOPOLOGY_REPEAT);
    assert_int_equal(claim(p, 1, 1, UINT32_MAX, 0xf), TOPOLOGY_SAME); /* fewer hops will tell */
    assert_int_equal(p->entry[5].version, UINT32_MAX);
    assert_int_equal(p->entry[5].up, 1u << 2);
    assert_int_equal(p->entry[5].boot, 1005);
    assert_int_equal(p->entry[5].hops, 0);
    topology_set_self(p, 2, false);
    assert_int_equal(p->entry[5].version, UINT32_MAX);
    assert_int_equal(p->entry[5].up, 0);
}

/* --- nodes that tell each other, and one that lies --- */

static uint64_t random_state;

static uint32_t below(uint32_t limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % limit);
}

#define GOSSIP_NODES 24u
#define GOSSIP_RATES (2 * 6u) /* of a torus of three dimensions */

struct gossip {
    struct topology node[GOSSIP_NODES];
    bool cut[GOSSIP_NODES][TORUS_MAX_PORTS];
};

/* One round: node `rank` sends what it believes to all neighbours to which it has a link. Returns whether any node
 * changes what it believes. */
static bool gossip_round(struct gossip *g)
{
    static struct topology_entry told[GOSSIP_NODES][GOSSIP_NODES];
    static uint32_t rates[GOSSIP_NODES][GOSSIP_NODES][GOSSIP_RATES];
    bool changed = false;

    for (uint32_t rank = 0; rank < torus.nodes; rank++)
        for (uint32_t about = 0; about < torus.nodes; about++) {
            struct topology_entry *one = &told[rank][about];
            *one = g->node[rank].entry[about];
            if (one->rates == NULL)
                continue;
            memcpy(rates[rank][about], one->rates,
                   topology_rates_count(&g->node[rank]) * sizeof one->rates[0]);
            one->rates = rates[rank][about];
        }
    for (uint32_t rank = 0; rank < torus.nodes; rank++)
        for (unsigned port = 0; port < torus_ports(&torus); port++) {
            uint32_t peer = torus_neighbour(&torus, rank, port);
            for (uint32_t about = 0; peer != TORUS_NO_NODE && about < torus.nodes; about++)
                changed |=
                    (g->cut[rank][port] ? topology_drop_claim(&g->node[rank], port, about)
                                        : topology_take_claim(&g->node[rank], port, about,
                                                              &told[peer][about])) != TOPOLOGY_SAME;
        }
    return changed;
}

/* Cut or connect a link, at both ends. */
static void gossip_link(struct gossip *g, uint32_t rank, unsigned port, bool up)
{
    uint32_t peer = torus_neighbour(&torus, rank, port);
    unsigned opposite = torus_port_opposite(&torus, port);

    if (peer == TORUS_NO_NODE)
        return;
    g->cut[rank][port] = g->cut[peer][opposite] = !up;
    topology_set_self(&g->node[rank], port, up);
    topology_set_self(&g->node[peer], opposite, up);
}

/* A node states other rates, or none. */
static void gossip_rates(struct gossip *g)
{
    uint32_t rates[GOSSIP_RATES];

    for (unsigned i = 0; i < GOSSIP_RATES; i++)
        rates[i] = below(3);
    (void)topology_set_rates(&g->node[below(torus.nodes)], below(3) > 0 ? rates : NULL);
}

static void gossip_lie(struct gossip *g)
{
    static const uint32_t extreme[] = {0, 1, 0xf, 0x7fffffff, 0xfffffffe, 0xffffffff};
    uint32_t rank = below(torus.nodes), about = below(torus.nodes), rates[GOSSIP_RATES];
    unsigned port = below(torus_ports(&torus));
    struct topology_entry lie = {
        .version = extreme[below(6)], .up = extreme[below(6)], .boot = extreme[below(6)]};

    for (unsigned i = 0; i < GOSSIP_RATES; i++)
        rates[i] = extreme[below(6)];
    lie.rates = below(2) > 0 ? rates : NULL;
    uint32_t peer = torus_neighbour(&torus, rank, port);

    if (peer == TORUS_NO_NODE || g->cut[rank][port])
        return;
    /* The reports that flood.c passes on. */
    lie.hops = about == peer
                   ? 0
                   : torus_distance(&torus, peer, about) + below(below(2) ? 1 : 2 * torus.nodes);
    (void)topology_take_claim(&g->node[rank], port, about, &lie);
}

/* Which nodes `from` can reach. */
static void reach(const struct gossip *g, uint32_t from, bool *reached)
{
    reached[from] = true;
    for (unsigned port = 0; port < torus_ports(&torus); port++) {
        uint32_t peer = torus_neighbour(&torus, from, port);
        if (peer != TORUS_NO_NODE && !g->cut[from][port] && !reached[peer])
            reach(g, peer, reached);
    }
}

static void check_truth(const struct gossip *g)
{
    for (uint32_t rank = 0; rank < torus.nodes; rank++) {
        bool reached[GOSSIP_NODES] = {false};
        reach(g, rank, reached);
        for (uint32_t about = 0; about < torus.nodes; about++) {
            const struct topology_entry *said = &g->node[rank].entry[about];
            const struct topology_entry *own = &g->node[about].entry[about];
            assert_int_equal(said->hops < torus.nodes, reached[about]);
            if (reached[about]) {
                assert_int_equal(said->up, own->up);
                assert_int_equal(said->boot, own->boot);
                assert_true((said->rates != NULL) == (own->rates != NULL));
                if (own->rates != NULL)
                    assert_memory_equal(said->rates, own->rates,
                                        topology_rates_count(&g->node[rank]) * sizeof *own->rates);
            }
        }
    }
}

/* Whatever any node has claimed: once that stops, all nodes know the truth after the number of rounds in topology.h:
 * until false claims are gone, until older ones are gone, until the truth has arrived. */
TEST(lies_do_not_last)
{
    static const char *const dims[] = {"4x4", "2x2", "6", "5m", "2x3x4", "3mx4", "2", "1x7"};

    for (unsigned seed = 0; seed < 400; seed++) {
        static struct gossip g;
        random_state = seed;
        memset(&g, 0, sizeof g);
        assert_int_equal(torus_parse(&torus, dims[seed % 8], NULL), 0);
        assert_true(torus.nodes <= GOSSIP_NODES);
        for (uint32_t rank = 0; rank < torus.nodes; rank++)
            assert_int_equal(topology_init(&g.node[rank], &torus, rank, 1000 + rank), 0);
        for (uint32_t rank = 0; rank < torus.nodes; rank++)
            for (unsigned dim = 0; dim < torus.dims; dim++)
                gossip_link(&g, rank, torus_port(&torus, dim, 1), true);
        for (unsigned event = below(60); event > 0; event--) {
            if (below(8) == 0)
                gossip_rates(&g);
            else if (below(3) == 0)
                gossip_link(&g, below(torus.nodes), below(torus_ports(&torus)), below(3) > 0);
            else if (below(4) == 0)
                (void)gossip_round(&g);
            else
                gossip_lie(&g);
        }
        for (uint32_t round = 0; round < 3 * torus.nodes; round++)
            (void)gossip_round(&g);
        check_truth(&g);
        assert_false(gossip_round(&g));
        for (uint32_t rank = 0; rank < torus.nodes; rank++)
            topology_free(&g.node[rank]);
    }
}

TOPOLOGY_TEST("4x4", 0, a_link_needs_both_ends)
{
    struct error e;

    assert_false(topology_whole(p));
    all_up(p);
    assert_true(topology_whole(p));
    assert_false(topology_fault(p, 0, &e));
    assert_true(topology_link_up(p, 1, torus_port(&torus, 1, 1)));
    /* Node 2's port -1 is down: the link from node 1. */
    assert_int_equal(hear(p, 2, all_ports(2) & ~(1u << torus_port(&torus, 1, -1))), TOPOLOGY_NEW);
    assert_false(topology_whole(p));
    assert_false(topology_link_up(p, 1, torus_port(&torus, 1, 1)));
    assert_false(topology_link_up(p, 2, torus_port(&torus, 1, -1)));
    assert_true(topology_link_up(p, 2, torus_port(&torus, 1, 1)));
    assert_true(topology_fault(p, 0, &e));
    assert_int_equal(e.code, ERROR_LINK);
    assert_int_equal(e.culprit.kind, CULPRIT_LINK);
    assert_int_equal(e.culprit.node, 1);
    assert_int_equal(e.culprit.port, torus_port(&torus, 1, 1));
    assert_false(topology_fault(p, 1, &e));
    assert_int_equal(topology_first_down(p), TORUS_NO_NODE);
}

/* All neighbours of `rank` report that their link to it is down; the node itself sends nothing any more. */
static void lose(struct topology *p, uint32_t rank)
{
    for (unsigned port = 0; port < torus_ports(&torus); port++) {
        uint32_t peer = torus_neighbour(&torus, rank, port);
        if (peer == TORUS_NO_NODE)
            continue;
        unsigned opposite = torus_port_opposite(&torus, port);
        if (peer == p->self)
            topology_set_self(p, opposite, false);
        else
            (void)hear(p, peer, p->entry[peer].up & ~(1u << opposite));
    }
}

static enum topology_news claim_rates(struct topology *p, uint32_t rank, uint32_t version,
                                      const uint32_t *rates)
{
    const struct topology_entry claim = {.version = version, .boot = 7, .rates = rates};

    return topology_take_claim(p, 0, rank, &claim);
}

/* A link carries the smaller of what its two ends state, in each direction. */
TOPOLOGY_TEST("4x4", 0, rates_need_both_ends)
{
    uint32_t here[8] = {[0] = 100, [1] = 200}, there[8] = {[2] = 150, [3] = 80};

    const uint32_t peer = torus_neighbour(&torus, 0, 0);
    assert_int_equal(topology_rates_count(p), 8);
    assert_int_equal(topology_channel_rate(p, 0, 0), 0);
    assert_true(topology_set_rates(p, here));
    assert_false(topology_set_rates(p, here));
    assert_int_equal(topology_channel_rate(p, 0, 0), 100); /* the other end says nothing */
    assert_int_equal(topology_channel_rate(p, peer, 1), 200);
    assert_int_equal(claim_rates(p, peer, 1, NULL), TOPOLOGY_NEW);
    const uint64_t changes = p->rate_changes;
    assert_int_equal(claim_rates(p, peer, 2, there), TOPOLOGY_REPEAT);
    assert_int_equal(p->rate_changes, changes + 1);
    assert_int_equal(topology_channel_rate(p, 0, 0), 80);
    assert_int_equal(topology_channel_rate(p, peer, 1), 150);
    assert_int_equal(claim_rates(p, peer, 2, there), TOPOLOGY_SAME);
    there[3] = UINT32_MAX;
    assert_int_equal(topology_channel_rate(p, 0, 0), 80); /* the claim was copied */
    assert_int_equal(claim_rates(p, peer, 3, there), TOPOLOGY_REPEAT);
    assert_int_equal(topology_channel_rate(p, 0, 0), 100); /* a lie about one end draws no more */
    assert_int_equal(claim_rates(p, peer, 4, NULL), TOPOLOGY_REPEAT);
    assert_int_equal(topology_channel_rate(p, peer, 1), 200);
    assert_true(topology_set_rates(p, NULL));
    assert_int_equal(topology_channel_rate(p, peer, 1), 0);
}

TOPOLOGY_TEST("4x4", 0, a_node_is_down_when_all_its_neighbours_say_so)
{
    struct error e;

    all_up(p);
    lose(p, 5);
    assert_true(topology_node_down(p, 5));
    assert_int_equal(topology_first_down(p), 5);
    assert_true(topology_fault(p, 0, &e));
    assert_int_equal(e.code, ERROR_LINK);
    assert_int_equal(e.culprit.kind, CULPRIT_NODE);
    assert_int_equal(e.culprit.node, 5);
    assert_false(topology_fault(p, 1, &e)); /* its links are not named as well */
    lose(p, 1);
    assert_int_equal(topology_first_down(p), 1);
    assert_true(topology_fault(p, 1, &e));
    assert_int_equal(e.code, ERROR_LINK);
    assert_int_equal(e.culprit.kind, CULPRIT_NODE);
    assert_int_equal(e.culprit.node, 5);
}

TOPOLOGY_TEST("2x2", 3, we_are_never_down_ourselves)
{
    assert_false(topology_node_down(p, 3)); /* although no node has reported it */
    assert_true(topology_node_down(p, 0));
}

TOPOLOGY_TEST("3m", 0, a_mesh_has_no_link_beyond_its_end)
{
    assert_false(topology_link_up(p, 0, torus_port(&torus, 0, -1)));
    assert_int_equal(hear(p, 1, 3), TOPOLOGY_NEW);
    assert_int_equal(hear(p, 2, 2), TOPOLOGY_NEW);
    topology_set_self(p, 0, true);
    assert_true(topology_whole(p));
}

TOPOLOGY_TEST("1x1", 0, a_single_node_is_whole)
{
    assert_true(topology_whole(p));
    assert_false(topology_node_down(p, 0));
    assert_int_equal(topology_first_down(p), TORUS_NO_NODE);
}
