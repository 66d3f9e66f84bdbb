/* The routes of torus-routed: links are lost, and everything that follows happens in every possible order: which node
 * hears of which loss first, and when each node hears what each other node has confirmed. Nobody waits so long that it
 * adds ports without confirmations. After each step the ports in use everywhere are checked for loops. */
#include "daemon/lib/cluster/route_planner.h"
#include "tests/support/cmocka.h"

#define MOST 5u
#define LOSSES 2u
#define CONVERGENCE 100u
#define BEGIN 1000u
#define CUT 100000u                /* long after that */
#define STATEMENTS (2 * LOSSES)    /* of a node, at most */
#define FORWARDING TORUS_MAX_PORTS /* in the place of a port: the node does not forward any more */
#define TABLE (UINT32_C(1) << 21)

/* What can change, with the memory of the planners. */
struct node {
    struct route_planner planner;
    uint32_t up[MOST];
    bool forwards[MOST];
    struct planner_route route[MOST];
    uint64_t confirmed[MOST];
    uint32_t heard;              /* bit by loss */
    uint64_t stated[STATEMENTS]; /* what it has confirmed, in this order */
    unsigned count, known[MOST]; /* by node: how many statements of that node it knows */
};

struct search {
    struct torus torus;
    struct route_planner planner[MOST]; /* with the memory that the nodes' planners use */
    struct {
        uint32_t rank;
        unsigned port;
    } loss[LOSSES];
    unsigned losses;
    bool blind; /* nodes do not wait for confirmations */
    uint64_t *seen;
    unsigned states, ends;
    bool looped;
};

/* --- nodes --- */

static void save(const struct search *s, uint32_t rank, struct node *n)
{
    const struct route_planner *p = &s->planner[rank];

    n->planner = *p;
    memcpy(n->up, p->up, s->torus.nodes * sizeof *n->up);
    memcpy(n->forwards, p->forwards, s->torus.nodes * sizeof *n->forwards);
    memcpy(n->route, p->route, s->torus.nodes * sizeof *n->route);
    memcpy(n->confirmed, p->confirmed, s->torus.nodes * sizeof *n->confirmed);
}

static void load(struct search *s, uint32_t rank, const struct node *n)
{
    struct route_planner *p = &s->planner[rank];

    *p = n->planner;
    memcpy(p->up, n->up, s->torus.nodes * sizeof *n->up);
    memcpy(p->forwards, n->forwards, s->torus.nodes * sizeof *n->forwards);
    memcpy(p->route, n->route, s->torus.nodes * sizeof *n->route);
    memcpy(p->confirmed, n->confirmed, s->torus.nodes * sizeof *n->confirmed);
}

static void all_up(const struct torus *t, uint32_t *up)
{
    for (uint32_t rank = 0; rank < t->nodes; rank++)
        for (unsigned port = 0; port < torus_ports(t); port++)
            if (torus_neighbour(t, rank, port) != TORUS_NO_NODE)
                up[rank] |= 1u << port;
}

/* Does what torus-routed does after each change and confirmation. */
static void act(const struct search *s, uint32_t rank, struct node *n)
{
    struct route_planner *p = (struct route_planner *)(uintptr_t)&s->planner[rank];
    const uint64_t digest = route_planner_statement(p);

    route_planner_confirm(p, rank, digest);
    for (uint32_t other = 0; s->blind && other < s->torus.nodes; other++)
        route_planner_confirm(p, other, p->digest);
    route_planner_tick(p, CUT);
    if (digest == (n->count > 0 ? n->stated[n->count - 1] : 0))
        return;
    assert_true(n->count < STATEMENTS);
    n->stated[n->count++] = digest;
}

static void hear_loss(struct search *s, uint32_t rank, struct node *n, unsigned loss)
{
    uint32_t up[MOST] = {0};
    bool forwards[MOST];

    memset(forwards, true, sizeof forwards);
    n->heard |= 1u << loss;
    all_up(&s->torus, up);
    for (unsigned i = 0; i < s->losses; i++)
        if ((n->heard & 1u << i) != 0) {
            uint32_t at = s->loss[i].rank;
            unsigned port = s->loss[i].port;
            forwards[at] &= port != FORWARDING;
            if (port == FORWARDING)
                continue;
            up[at] &= ~(1u << port);
            up[torus_neighbour(&s->torus, at, port)] &=
                ~(1u << torus_port_opposite(&s->torus, port));
        }
    load(s, rank, n);
    route_planner_heard(&s->planner[rank], up, forwards, NULL, CUT);
    act(s, rank, n);
    save(s, rank, n);
}

static void hear_statement(struct search *s, struct node *nodes, uint32_t rank, uint32_t from)
{
    struct node *n = &nodes[rank];

    load(s, rank, n);
    route_planner_confirm(&s->planner[rank], from, nodes[from].stated[n->known[from]++]);
    act(s, rank, n);
    save(s, rank, n);
}

/* --- checks --- */

static bool visit(const struct search *s, const struct node *nodes, uint32_t at, uint32_t to,
                  uint8_t *state)
{
    state[at] = 1;
    for (unsigned port = 0; port < torus_ports(&s->torus); port++) {
        if (at == to || (nodes[at].route[to].ports & 1u << port) == 0)
            continue;
        uint32_t next = torus_neighbour(&s->torus, at, port);
        if (state[next] == 1 || (state[next] == 0 && visit(s, nodes, next, to, state)))
            return true;
    }
    state[at] = 2;
    return false;
}

static bool has_loop(const struct search *s, const struct node *nodes)
{
    for (uint32_t to = 0; to < s->torus.nodes; to++) {
        uint8_t state[MOST] = {0};
        for (uint32_t at = 0; at < s->torus.nodes; at++)
            if (state[at] == 0 && visit(s, nodes, at, to, state))
                return true;
    }
    return false;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* Whether this state is new; then it is noted. */
static bool is_new(struct search *s, const struct node *nodes)
{
    uint64_t hash = 1;

    for (uint32_t i = 0; i < s->torus.nodes; i++) {
        hash = mix(hash, nodes[i].heard);
        hash = mix(hash, nodes[i].planner.converged);
        for (uint32_t to = 0; to < s->torus.nodes; to++) {
            hash = mix(hash, nodes[i].route[to].ports);
            hash = mix(hash, nodes[i].known[to]);
            hash = mix(hash, nodes[i].confirmed[to]);
        }
        for (unsigned k = 0; k < nodes[i].count; k++)
            hash = mix(hash, nodes[i].stated[k]);
    }
    for (uint64_t at = hash % TABLE;; at = (at + 1) % TABLE) {
        if (s->seen[at] == hash)
            return false;
        if (s->seen[at] == 0) {
            assert_true(++s->states < TABLE / 2);
            s->seen[at] = hash;
            return true;
        }
    }
}

/* Everybody has heard everything: all nodes use the shortest paths, without having waited. */
static void check_end(struct search *s, const struct node *nodes)
{
    s->ends++;
    for (uint32_t i = 0; i < s->torus.nodes; i++) {
        assert_true(nodes[i].planner.converged);
        for (uint32_t to = 0; to < s->torus.nodes; to++)
            assert_int_equal(nodes[i].route[to].ports, nodes[i].route[to].nearer);
    }
}

/* --- the search --- */

static void go_on(struct search *s, const struct node *nodes)
{
    struct node next[MOST];
    bool any = false;

    if (s->looped || !is_new(s, nodes))
        return;
    if (has_loop(s, nodes)) {
        s->looped = true;
        return;
    }
    for (uint32_t rank = 0; rank < s->torus.nodes; rank++) {
        for (unsigned loss = 0; loss < s->losses; loss++) {
            if ((nodes[rank].heard & 1u << loss) != 0)
                continue;
            any = true;
            memcpy(next, nodes, sizeof next);
            hear_loss(s, rank, &next[rank], loss);
            go_on(s, next);
        }
        for (uint32_t from = 0; from < s->torus.nodes; from++) {
            if (from == rank || nodes[rank].known[from] == nodes[from].count)
                continue;
            any = true;
            memcpy(next, nodes, sizeof next);
            hear_statement(s, next, rank, from);
            go_on(s, next);
        }
    }
    if (!any)
        check_end(s, nodes);
}

/* Returns whether any order leads to a loop. Links are lost at these ports. */
static bool search(const char *dims, unsigned losses, const uint32_t (*ports)[2], bool blind)
{
    static struct search s;
    struct node nodes[MOST] = {0};
    uint32_t up[MOST] = {0};
    struct error e;

    memset(&s, 0, sizeof s);
    assert_int_equal(torus_parse(&s.torus, dims, &e), 0);
    assert_true(s.torus.nodes <= MOST);
    s.blind = blind;
    s.losses = losses;
    for (unsigned i = 0; i < losses; i++) {
        s.loss[i].rank = ports[i][0];
        s.loss[i].port = ports[i][1];
    }
    s.seen = calloc(TABLE, sizeof *s.seen);
    assert_non_null(s.seen);
    all_up(&s.torus, up);
    for (uint32_t i = 0; i < s.torus.nodes; i++) {
        assert_int_equal(route_planner_init(&s.planner[i], &s.torus, i, CONVERGENCE), 0);
        route_planner_heard(&s.planner[i], up, NULL, NULL, BEGIN);
        route_planner_tick(&s.planner[i], BEGIN + MOST * CONVERGENCE);
        assert_true(s.planner[i].converged);
        save(&s, i, &nodes[i]);
    }
    go_on(&s, nodes);
    assert_true(s.looped || s.ends > 0);
    for (uint32_t i = 0; i < s.torus.nodes; i++) {
        load(&s, i, &nodes[i]);
        route_planner_free(&s.planner[i]);
    }
    free(s.seen);
    return s.looped;
}

static const struct {
    const char *dims;
    unsigned losses;
    uint32_t ports[LOSSES][2];
    bool loops; /* if nodes do not wait */
} cases[] = {
    {"4", 1, {{0, 0}}, true},         /* one way around */
    {"3", 2, {{0, 0}, {1, 0}}, true}, /* a node is cut off */
    {"4m",
     1,
     {{1, 0}},
     false}, /* two parts that do not reach each other: there is nothing to add */
    {"complete:4", 1, {{0, 0}}, false},         /* several paths around */
    {"4", 1, {{1, FORWARDING}}, false},         /* there is another way */
    {"3", 2, {{0, 0}, {2, FORWARDING}}, false}, /* a link is lost, and what would lead around it */
};

TEST(no_order_leads_to_a_loop)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_false(search(cases[i].dims, cases[i].losses, cases[i].ports, false));
}

/* The search finds loops, if nodes do not wait for confirmations. */
TEST(nodes_that_do_not_wait_cause_loops)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(search(cases[i].dims, cases[i].losses, cases[i].ports, true),
                         cases[i].loops);
}
