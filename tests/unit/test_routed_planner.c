/* The routes of torus-routed: links are cut, return and have other rates at random, every node hears of it, and of what
 * the others confirm, at its own random moment, and after each step of any node the ports in use everywhere are checked
 * for loops. test_routed_orders.c tries all orders of a few events. */
#include "daemon/lib/cluster/route_planner.h"
#include "tests/support/cmocka.h"

#define MOST 32u
#define CONVERGENCE 100u
#define CHANGES 100u
#define WAITING 32768u
#define FULL 1000u
#define CHANNELS (MOST * 8u)

/* A change, or what `rank` has confirmed, on its way to a node. */
struct news {
    uint64_t at;
    uint32_t node, rank;
    unsigned port;
    bool up, is_confirmation, is_forwarding; /* up: links; or the node forwards */
    uint32_t kbit;                           /* not 0: only the rate of the link has changed */
    unsigned number;                         /* of the confirmation: later ones replace it */
    uint64_t digest;
};

struct world {
    struct torus torus;
    struct route_planner planner[MOST];
    uint32_t up[MOST];                              /* the truth */
    uint32_t seen[MOST][MOST];                      /* by node: what it has heard */
    bool forwards[MOST], seen_forwards[MOST][MOST]; /* the same of who forwards */
    uint64_t changed_forwards[MOST];
    uint32_t kbit[CHANNELS], seen_kbit[MOST][CHANNELS]; /* the same of rates */
    uint64_t rated[CHANNELS];
    uint64_t changed[MOST][TORUS_MAX_PORTS], now;
    struct news news[WAITING];
    unsigned count;
    uint64_t delay; /* the most until a node hears of a change */
    uint32_t seed;
    bool looped;
    bool silent[MOST];     /* the node never confirms */
    bool with_rates;       /* rates change, too */
    bool blind;            /* nodes believe at once that all others have confirmed */
    uint64_t stated[MOST]; /* what each node has confirmed last */
    unsigned statements[MOST],
        known[MOST][MOST];     /* how many there were; by node: the last one it knows */
    unsigned by_confirmations; /* how often a node need not wait */
};

static uint32_t draw(struct world *w, uint32_t below)
{
    w->seed = w->seed * 1664525u + 1013904223u;
    return (w->seed >> 8) % below;
}

static void set_bit(uint32_t *up, const struct torus *t, uint32_t rank, unsigned port, bool on)
{
    uint32_t there = torus_neighbour(t, rank, port);
    unsigned its = torus_port_opposite(t, port);

    up[rank] = on ? up[rank] | 1u << port : up[rank] & ~(1u << port);
    up[there] = on ? up[there] | 1u << its : up[there] & ~(1u << its);
}

/* Whether packets to `to` can come back to a node: a search in depth for an edge to a node on the way. */
static bool visit(const struct world *w, uint32_t at, uint32_t to, uint8_t *state)
{
    state[at] = 1;
    for (unsigned port = 0; port < torus_ports(&w->torus); port++) {
        if (at == to || (w->planner[at].route[to].ports & 1u << port) == 0)
            continue;
        uint32_t next = torus_neighbour(&w->torus, at, port);
        assert_int_not_equal(next, TORUS_NO_NODE);
        if (state[next] == 1 || (state[next] == 0 && visit(w, next, to, state)))
            return true;
    }
    state[at] = 2;
    return false;
}

static bool has_loop(const struct world *w)
{
    for (uint32_t to = 0; to < w->torus.nodes; to++) {
        uint8_t state[MOST] = {0};
        for (uint32_t at = 0; at < w->torus.nodes; at++)
            if (state[at] == 0 && visit(w, at, to, state))
                return true;
    }
    return false;
}

/* Whether every path from `at` arrives, over links that are up. */
static bool arrives(const struct world *w, uint32_t at, uint32_t to, uint32_t hops)
{
    uint32_t ports = w->planner[at].route[to].ports;

    if (at == to)
        return true;
    if (hops > 0 && !w->forwards[at])
        return false;
    if (ports == 0 || hops > w->torus.nodes || (ports & ~w->up[at]) != 0)
        return false;
    for (unsigned port = 0; port < torus_ports(&w->torus); port++)
        if ((ports & 1u << port) != 0 &&
            !arrives(w, torus_neighbour(&w->torus, at, port), to, hops + 1))
            return false;
    return true;
}

static void begin(struct world *w, const char *dims, uint64_t convergence_time, uint64_t delay,
                  uint32_t seed)
{
    struct error e;

    memset(w, 0, sizeof *w);
    assert_int_equal(torus_parse(&w->torus, dims, &e), 0);
    assert_true(w->torus.nodes <= MOST);
    w->delay = delay;
    w->seed = seed;
    w->now = 1000;
    for (uint32_t i = 0; i < w->torus.nodes; i++)
        for (unsigned port = 0; port < torus_ports(&w->torus); port++)
            if (torus_neighbour(&w->torus, i, port) != TORUS_NO_NODE)
                w->up[i] |= 1u << port;
    for (uint32_t i = 0; i < w->torus.nodes; i++)
        w->forwards[i] = true;
    assert_true(w->torus.nodes * torus_ports(&w->torus) <= CHANNELS);
    for (uint32_t i = 0; i < CHANNELS; i++)
        w->kbit[i] = FULL;
    for (uint32_t i = 0; i < w->torus.nodes; i++) {
        memcpy(w->seen_forwards[i], w->forwards, sizeof w->forwards);
        assert_int_equal(route_planner_init(&w->planner[i], &w->torus, i, convergence_time), 0);
        memcpy(w->seen[i], w->up, sizeof w->up);
        memcpy(w->seen_kbit[i], w->kbit, sizeof w->kbit);
        route_planner_heard(&w->planner[i], w->up, w->forwards, w->kbit, w->now);
    }
}

static void end(struct world *w)
{
    for (uint32_t i = 0; i < w->torus.nodes; i++)
        route_planner_free(&w->planner[i]);
}

/* All nodes hear of it, each after a time of its own. */
static void tell_all(struct world *w, struct news news)
{
    for (news.node = 0; news.node < w->torus.nodes; news.node++) {
        assert_true(w->count < WAITING);
        news.at = w->now + draw(w, (uint32_t)w->delay + 1);
        w->news[w->count++] = news;
    }
}

/* Changes a link. Every node hears of it within the delay, the ends of the link first. */
static void change(struct world *w, uint32_t rank, unsigned port, bool up)
{
    set_bit(w->up, &w->torus, rank, port, up);
    w->changed[rank][port] = w->now;
    w->changed[torus_neighbour(&w->torus, rank, port)][torus_port_opposite(&w->torus, port)] =
        w->now;
    tell_all(w, (struct news){.rank = rank, .port = port, .up = up});
}

/* A node forwards no more, or again. */
static void change_forwards(struct world *w, uint32_t rank, bool forwards)
{
    w->forwards[rank] = forwards;
    w->changed_forwards[rank] = w->now;
    tell_all(w, (struct news){.rank = rank, .is_forwarding = true, .up = forwards});
}

/* A direction of a link has another rate. */
static void change_rate(struct world *w, uint32_t rank, unsigned port, uint32_t kbit)
{
    const uint32_t channel = rank * torus_ports(&w->torus) + port;

    w->kbit[channel] = kbit;
    w->rated[channel] = w->now;
    tell_all(w, (struct news){.rank = rank, .port = port, .kbit = kbit});
}

/* Returns whether any rate was changed. */
static bool change_any_rate(struct world *w)
{
    static const uint32_t some[] = {FULL, FULL, FULL, 980, 700, 500, 250, 100, 10};
    const uint32_t rank = draw(w, w->torus.nodes), ports = torus_ports(&w->torus);
    const unsigned port = draw(w, ports);

    if (torus_neighbour(&w->torus, rank, port) == TORUS_NO_NODE ||
        w->now < w->rated[rank * ports + port] + w->delay + 1)
        return false;
    change_rate(w, rank, port, some[draw(w, sizeof some / sizeof some[0])]);
    return true;
}

/* Does what torus-routed does after each change and confirmation. */
static void act(struct world *w, uint32_t node)
{
    struct route_planner *p = &w->planner[node];
    const uint64_t digest = w->silent[node] ? 0 : route_planner_statement(p);
    bool moved = false, waits;

    for (uint32_t other = 0; w->blind && other < w->torus.nodes; other++)
        route_planner_confirm(p, other, p->digest);
    route_planner_confirm(p, node, digest);
    waits = !p->converged;
    route_planner_tick(p, w->now);
    w->by_confirmations += waits && p->converged && w->now <= p->heard + p->convergence_time;
    for (uint32_t to = 0; to < w->torus.nodes; to++) {
        moved |= p->route[to].is_new;
        p->route[to].is_new = false;
    }
    w->looped |= moved && has_loop(w);
    if (digest == w->stated[node])
        return;
    w->stated[node] = digest;
    w->statements[node]++;
    for (uint32_t to = 0; to < w->torus.nodes; to++) {
        assert_true(w->count < WAITING);
        if (to != node)
            w->news[w->count++] = (struct news){.at = w->now + draw(w, (uint32_t)w->delay + 1),
                                                .node = to,
                                                .rank = node,
                                                .is_confirmation = true,
                                                .number = w->statements[node],
                                                .digest = digest};
    }
}

static void hear(struct world *w, unsigned which)
{
    struct news n = w->news[which];

    w->news[which] = w->news[--w->count];
    if (n.is_confirmation && n.number > w->known[n.node][n.rank]) {
        w->known[n.node][n.rank] = n.number;
        route_planner_confirm(&w->planner[n.node], n.rank, n.digest);
    } else if (!n.is_confirmation) {
        if (n.kbit != 0)
            w->seen_kbit[n.node][n.rank * torus_ports(&w->torus) + n.port] = n.kbit;
        else if (n.is_forwarding)
            w->seen_forwards[n.node][n.rank] = n.up;
        else
            set_bit(w->seen[n.node], &w->torus, n.rank, n.port, n.up);
        route_planner_heard(&w->planner[n.node], w->seen[n.node], w->seen_forwards[n.node],
                            w->seen_kbit[n.node], w->now);
        w->looped |= has_loop(w);
    }
    act(w, n.node);
}

/* Lets everything happen that is due until `until`, one step of one node after another. */
static void run(struct world *w, uint64_t until)
{
    for (;;) {
        uint64_t next = until;
        int which = -1, ticks = -1;
        for (unsigned i = 0; i < w->count; i++)
            if (w->news[i].at < next) {
                next = w->news[i].at;
                which = (int)i;
            }
        for (uint32_t i = 0; i < w->torus.nodes; i++)
            if (route_planner_deadline(&w->planner[i]) < next) {
                next = route_planner_deadline(&w->planner[i]);
                ticks = (int)i;
            }
        w->now = next;
        if (next == until)
            return;
        if (ticks >= 0) {
            route_planner_tick(&w->planner[ticks], w->now);
            w->looped |= has_loop(w);
        } else {
            hear(w, (unsigned)which);
        }
    }
}

/* A link that was lost takes a while to return: its two ends have to find each other, and to prove it. */
static void change_any(struct world *w)
{
    uint32_t rank = draw(w, w->torus.nodes);
    unsigned port = draw(w, torus_ports(&w->torus));

    if (w->with_rates && draw(w, 3) > 0 && change_any_rate(w))
        return;
    if (draw(w, 3) == 0 && w->now >= w->changed_forwards[rank] + w->delay + 1) {
        change_forwards(w, rank, !w->forwards[rank]);
        return;
    }
    if (torus_neighbour(&w->torus, rank, port) == TORUS_NO_NODE ||
        w->now < w->changed[rank][port] + w->delay + 1)
        return;
    change(w, rank, port, (w->up[rank] & 1u << port) == 0);
}

static void check_converged(const struct world *w)
{
    for (uint32_t at = 0; at < w->torus.nodes; at++)
        for (uint32_t to = 0; to < w->torus.nodes; to++) {
            const struct planner_route *r = &w->planner[at].route[to];
            assert_int_equal(r->ports, r->nearer);
            if (r->hops != PLANNER_FAR)
                assert_true(arrives(w, at, to, 0));
            else
                assert_int_equal(r->ports, 0);
        }
}

/* Who confirms. */
enum confirming { NOBODY, EVERYBODY, MANY, BLIND };

/* Returns whether any loop was seen. `pause` is the most between two changes. */
static bool change_at_random(const char *dims, uint64_t convergence_time, uint64_t delay,
                             uint32_t pause, uint32_t seed, enum confirming confirming,
                             bool with_rates)
{
    static struct world w;
    bool looped;

    begin(&w, dims, convergence_time, delay, seed);
    for (uint32_t i = 0; i < w.torus.nodes; i++)
        w.silent[i] = confirming == NOBODY || (confirming == MANY && draw(&w, 8) == 0);
    w.blind = confirming == BLIND;
    w.with_rates = with_rates;
    run(&w, w.now + 2 * CONVERGENCE * MOST);
    check_converged(&w);
    for (unsigned i = 0; i < CHANGES; i++) {
        change_any(&w);
        run(&w, w.now + 1 + draw(&w, pause));
        if (i % 16 == 15)
            run(&w, w.now + 2 * CONVERGENCE * MOST);
        if (i % 16 == 15 && convergence_time > 0)
            check_converged(&w);
    }
    looped = w.looped;
    end(&w);
    return looped;
}

static bool cut_at_random(const char *dims, uint64_t convergence_time, uint64_t delay,
                          uint32_t pause, uint32_t seed, enum confirming confirming)
{
    return change_at_random(dims, convergence_time, delay, pause, seed, confirming, false);
}

static const char *const networks[] = {"4", "7", "5m", "3x3m", "4x4", "2x2x2", "complete:5", "2x3"};

SEEDS(6);

TEST(test_no_loop_whatever_the_order)
{
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
        for (uint32_t seed = 1 + (uint32_t)first_seed; seed <= first_seed + seeds; seed++) {
            const enum confirming who = (enum confirming)(seed % 3);
            assert_false(cut_at_random(networks[i], CONVERGENCE, CONVERGENCE / 2, 40, seed, who));
            assert_false(
                cut_at_random(networks[i], CONVERGENCE, CONVERGENCE / 2, 250, 100 + seed, who));
            assert_false(
                cut_at_random(networks[i], CONVERGENCE, CONVERGENCE / 2, 1500, 200 + seed, who));
        }
}

TEST(test_no_loop_while_rates_change)
{
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
        for (uint32_t seed = 1 + (uint32_t)first_seed; seed <= first_seed + seeds; seed++) {
            const enum confirming who = (enum confirming)(seed % 3);
            assert_false(
                change_at_random(networks[i], CONVERGENCE, CONVERGENCE / 2, 40, seed, who, true));
            assert_false(change_at_random(networks[i], CONVERGENCE, CONVERGENCE / 2, 250,
                                          100 + seed, who, true));
            assert_false(change_at_random(networks[i], CONVERGENCE, CONVERGENCE / 2, 1500,
                                          200 + seed, who, true));
        }
}

/* The check finds loops if nodes change to other rates too soon. */
TEST(test_loops_of_rates_would_be_seen)
{
    static struct world w;
    unsigned seen = 0;

    for (uint32_t seed = 1; seed <= 20; seed++) {
        begin(&w, "4", 1, CONVERGENCE / 2, seed);
        run(&w, w.now + 2 * CONVERGENCE * MOST);
        for (unsigned i = 0; i < CHANGES; i++) {
            (void)change_any_rate(&w);
            run(&w, w.now + CONVERGENCE);
        }
        seen += w.looped;
        end(&w);
    }
    assert_true(seen >= 4);
}

/* The check finds loops, if the convergence time is too short for the delay. */
TEST(test_loops_would_be_seen)
{
    unsigned seen = 0;

    for (uint32_t seed = 1; seed <= 8; seed++)
        seen += cut_at_random("4x4", 1, CONVERGENCE / 2, 250, seed, NOBODY);
    assert_true(seen >= 4);
}

/* The check finds loops, if nodes do not wait for the confirmations. */
TEST(test_confirmations_are_needed)
{
    unsigned seen = 0;

    for (uint32_t seed = 1; seed <= 8; seed++)
        seen += cut_at_random("4x4", CONVERGENCE, CONVERGENCE / 2, 1500, seed, BLIND);
    assert_true(seen >= 4);
}

/* Whether all nodes reach each other now. */
static bool all_arrive(const struct world *w)
{
    for (uint32_t at = 0; at < w->torus.nodes; at++)
        for (uint32_t to = 0; to < w->torus.nodes; to++)
            if (!arrives(w, at, to, 0))
                return false;
    return true;
}

TEST(test_nothing_is_lost_when_a_link_returns)
{
    static struct world w;

    for (uint32_t seed = 1; seed <= 20; seed++) {
        begin(&w, seed % 2 == 0 ? "4x4" : "6", CONVERGENCE, CONVERGENCE / 2, seed);
        run(&w, w.now + 2 * CONVERGENCE * MOST);
        change(&w, 0, 0, false);
        run(&w, w.now + 2 * CONVERGENCE * MOST);
        assert_true(all_arrive(&w));
        change(&w, 0, 0, true);
        for (uint64_t stop = w.now + CONVERGENCE * MOST; w.now < stop;) {
            run(&w, w.now + 5);
            assert_true(all_arrive(&w));
        }
        check_converged(&w);
        end(&w);
    }
}

/* Only rates change: each node replaces its ports in place. */
TEST(test_nothing_is_lost_when_rates_change)
{
    static struct world w;

    for (uint32_t seed = 1; seed <= 20; seed++) {
        begin(&w, seed % 2 == 0 ? "4x4" : "6", CONVERGENCE, CONVERGENCE / 2, seed);
        run(&w, w.now + 2 * CONVERGENCE * MOST);
        for (unsigned i = 0; i < 5; i++)
            (void)change_any_rate(&w);
        for (uint64_t stop = w.now + 2 * CONVERGENCE * MOST; w.now < stop;) {
            run(&w, w.now + 5);
            assert_true(all_arrive(&w));
            if (draw(&w, 40) == 0)
                (void)change_any_rate(&w);
        }
        run(&w, w.now + 2 * CONVERGENCE * MOST);
        check_converged(&w);
        assert_false(w.looped);
        end(&w);
    }
}

/* A ring of four, a direction of a link at a tenth: connections to the next node go around, too, and return. */
TEST(test_weights_follow_rates)
{
    static struct world w;
    const struct route_planner *p = &w.planner[0];

    begin(&w, "4", CONVERGENCE, CONVERGENCE / 2, 3);
    run(&w, w.now + 2 * CONVERGENCE * MOST);
    route_planner_weigh(&w.planner[0]);
    assert_int_equal(p->route[1].ports, 1);
    assert_int_equal(route_planner_weight(p, 1, 0), 0);
    change_rate(&w, 0, 0, FULL / 10);
    run(&w, w.now + 2 * CONVERGENCE * MOST);
    assert_true(p->rated);
    route_planner_weigh(&w.planner[0]);
    assert_int_equal(p->route[1].ports, 3);
    assert_true(route_planner_weight(p, 1, 0) > 0);
    assert_true(route_planner_weight(p, 1, 0) * 3 < route_planner_weight(p, 1, 1));
    assert_int_equal(p->route[1].hops, 1);
    assert_int_equal(p->route[1].longest, 3);
    change_rate(&w, 0, 0, FULL);
    run(&w, w.now + 2 * CONVERGENCE * MOST);
    route_planner_weigh(&w.planner[0]);
    assert_int_equal(p->route[1].ports, 1);
    assert_int_equal(route_planner_weight(p, 1, 0), 0);
    end(&w);
}

TEST(test_time_without_a_way_after_a_cut)
{
    static struct world w;
    uint64_t cut;

    begin(&w, "4", CONVERGENCE, 20, 7);
    w.silent[2] = true;
    run(&w, w.now + 2 * CONVERGENCE * MOST);
    change(&w, 0, 0, false);
    cut = w.now;
    run(&w, cut + 21);
    assert_false(all_arrive(&w));
    run(&w, cut + CONVERGENCE);
    assert_false(all_arrive(&w));
    run(&w, cut + CONVERGENCE + 22);
    assert_true(all_arrive(&w));
    end(&w);
}

/* Node 0 of a ring: one way to 1, one to 3, two to 2. */
TEST(test_ways_are_counted)
{
    static struct world w;
    const struct route_planner *p = &w.planner[0];
    uint64_t before;

    begin(&w, "4", CONVERGENCE, CONVERGENCE / 2, 7);
    assert_int_equal(p->changed, w.now);
    run(&w, w.now + 2 * CONVERGENCE * MOST);
    assert_int_equal(p->lost, 0);
    assert_int_equal(p->gained, 4);
    before = p->changed;
    run(&w, w.now + CONVERGENCE);
    assert_int_equal(p->changed, before);
    change(&w, 0, 0, false);
    run(&w, w.now + 2 * CONVERGENCE * MOST);
    assert_int_equal(p->lost, 2);
    assert_int_equal(p->gained, 5);
    assert_true(p->changed > before);
    change(&w, 0, 0, true);
    run(&w, w.now + 2 * CONVERGENCE * MOST);
    assert_int_equal(p->lost, 3);
    assert_int_equal(p->gained, 7);
    end(&w);
}

/* All have heard after 5, and know all confirmations after 5 more. */
TEST(test_confirmations_shorten_it)
{
    static struct world w;
    uint64_t cut;

    begin(&w, "4x4", CONVERGENCE, 5, 7);
    run(&w, w.now + 2 * CONVERGENCE * MOST);
    change(&w, 0, 0, false);
    cut = w.now;
    run(&w, cut + 11);
    assert_true(all_arrive(&w));
    check_converged(&w);
    assert_int_equal(w.by_confirmations, 16);
    /* A second link, which is lost soon after. */
    change(&w, 5, 1, false);
    run(&w, cut + 22);
    check_converged(&w);
    assert_int_equal(w.by_confirmations, 32);
    /* A link has just come up: the old confirmations say nothing about this loss, and new ones do not count. */
    change(&w, 0, 0, true);
    run(&w, w.now + CONVERGENCE);
    change(&w, 0, 0, false);
    cut = w.now;
    run(&w, cut + CONVERGENCE + 7);
    check_converged(&w);
    assert_int_equal(w.by_confirmations, 32);
    end(&w);
}

/* Ways lead around the node; it is reached, and reaches all others. Nothing is lost. */
TEST(test_a_node_that_does_not_forward_is_avoided)
{
    static struct world w;

    begin(&w, "4", CONVERGENCE, 5, 7);
    run(&w, w.now + 2 * CONVERGENCE * MOST);
    assert_int_equal(w.planner[0].route[2].ports, 3);
    for (int again = 0; again < 2; again++) {
        change_forwards(&w, 1, again != 0);
        w.forwards[1] = true; /* the state of the node until all others know of the change */
        for (uint64_t stop = w.now + CONVERGENCE * MOST; w.now < stop;) {
            run(&w, w.now + 5);
            assert_true(all_arrive(&w));
        }
        w.forwards[1] = again != 0;
        assert_true(all_arrive(&w));
        check_converged(&w);
        assert_int_equal(w.planner[0].route[2].ports, again != 0 ? 3 : 2);
        assert_int_equal(w.planner[1].route[3].ports, 3);
    }
    end(&w);
    /* On a line, there is no way around it; links lead on. */
    begin(&w, "3m", CONVERGENCE, 5, 7);
    change_forwards(&w, 1, false);
    run(&w, w.now + 2 * CONVERGENCE * MOST);
    assert_int_equal(w.planner[0].route[2].hops, PLANNER_FAR);
    assert_true(w.planner[0].route[2].linked);
    assert_int_equal(w.planner[0].route[1].hops, 1);
    assert_int_equal(w.planner[1].route[2].hops, 1);
    end(&w);
}

TEST(test_ports_of_a_former_process_stay)
{
    struct torus t;
    struct route_planner p;
    struct error e;
    uint32_t up[4] = {3, 3, 3, 3};

    assert_int_equal(torus_parse(&t, "4", &e), 0);
    assert_int_equal(route_planner_init(&p, &t, 0, CONVERGENCE), 0);
    assert_int_equal(route_planner_deadline(&p), PLANNER_NEVER);
    route_planner_adopt(&p, 1, 3); /* one of them is not nearer */
    route_planner_adopt(&p, 2, 3);
    route_planner_heard(&p, up, NULL, NULL, 5);
    assert_int_equal(p.route[1].ports, 1);
    assert_int_equal(p.route[2].ports, 3);
    assert_int_equal(p.route[3].ports, 0);
    assert_int_equal(route_planner_deadline(&p), 5 + CONVERGENCE);
    route_planner_tick(&p, 5 + CONVERGENCE);
    assert_int_equal(p.route[3].ports, 2);
    assert_int_equal(p.route[2].hops, 2);
    route_planner_tick(&p, 5 + 2 * CONVERGENCE);
    assert_int_equal(route_planner_deadline(&p), PLANNER_NEVER);
    route_planner_free(&p);
}
