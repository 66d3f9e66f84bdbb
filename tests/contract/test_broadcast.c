/* The lower bounds of broadcasts against a search of all schedules on small networks. In a round, every
 * channel carries one message that its sender had before the round. */
#include "client/theory/broadcast_bound.h"
#include "client/theory/simulate.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"

enum { MOST_NODES = 9, MOST_CHANNELS = 64 };

/* Which messages each node has, a bit each. */
struct known {
    uint32_t at[MOST_NODES];
};

struct network {
    uint32_t nodes, channels;
    uint32_t from[MOST_CHANNELS], to[MOST_CHANNELS];
};

static struct network make_network(const struct torus *t)
{
    struct network n = {.nodes = t->nodes};

    assert_in_range(t->nodes, 1, MOST_NODES);
    for (uint32_t node = 0; node < t->nodes; node++) {
        for (unsigned port = 0; port < torus_ports(t); port++) {
            uint32_t to = torus_neighbour(t, node, port);
            if (to == TORUS_NO_NODE)
                continue;
            assert_true(n.channels < MOST_CHANNELS);
            n.from[n.channels] = node;
            n.to[n.channels++] = to;
        }
    }
    return n;
}

static uint32_t all_of(const struct network *n)
{
    return (1u << n->nodes) - 1;
}

static bool is_done(const struct network *n, const struct known *k)
{
    for (uint32_t node = 0; node < n->nodes; node++)
        if (k->at[node] != all_of(n))
            return false;
    return true;
}

static bool search(const struct network *n, const struct known *before, unsigned rounds);

/* Chooses what the channels from `channel` on carry in a round. A message that its receiver has, or
 * receives by another channel in this round, would be of no use. */
static bool search_round(const struct network *n, const struct known *before, struct known after,
                         uint32_t channel, unsigned rounds)
{
    if (channel == n->channels)
        return search(n, &after, rounds - 1);
    uint32_t useful = before->at[n->from[channel]] & ~after.at[n->to[channel]];
    if (useful == 0)
        return search_round(n, before, after, channel + 1, rounds);
    for (uint32_t message = 0; message < n->nodes; message++) {
        if ((useful >> message & 1) == 0)
            continue;
        struct known next = after;
        next.at[n->to[channel]] |= 1u << message;
        if (search_round(n, before, next, channel + 1, rounds))
            return true;
    }
    return false;
}

/* Whether all nodes can have all messages after that many rounds. */
static bool search(const struct network *n, const struct known *before, unsigned rounds)
{
    if (is_done(n, before))
        return true;
    if (rounds == 0)
        return false;
    return search_round(n, before, *before, 0, rounds);
}

/* The fewest rounds of an all-to-all broadcast. */
static unsigned rounds_of_all(const struct network *n)
{
    struct known start = {{0}};
    unsigned rounds = 0;

    for (uint32_t node = 0; node < n->nodes; node++)
        start.at[node] = 1u << node;
    while (!search(n, &start, rounds))
        rounds++;
    return rounds;
}

/* The rounds of a one-to-all broadcast from the worst source, in which every node that has the
 * message sends it by all its channels. */
static unsigned rounds_of_one(const struct network *n)
{
    unsigned most = 0;

    for (uint32_t source = 0; source < n->nodes; source++) {
        uint32_t has = 1u << source;
        unsigned rounds = 0;
        for (; has != all_of(n); rounds++) {
            uint32_t next = has;
            for (uint32_t i = 0; i < n->channels; i++)
                next |= (has >> n->from[i] & 1) << n->to[i];
            has = next;
        }
        most = rounds > most ? rounds : most;
    }
    return most;
}

/* On all of these networks the bounds are the optimum. */
TEST(bounds_are_attained)
{
    static const char *const networks[] = {"1",
                                           "2",
                                           "2m",
                                           "3",
                                           "3m",
                                           "4",
                                           "4m",
                                           "5",
                                           "5m",
                                           "6",
                                           "7",
                                           "8",
                                           "9",
                                           "6m",
                                           "2x2",
                                           "2mx2m",
                                           "2x2m",
                                           "2x3",
                                           "3x3",
                                           "2mx3m",
                                           "2mx2mx2m",
                                           "2x2x2",
                                           "complete:4",
                                           "complete:5",
                                           "complete:3 x 2m",
                                           "3x2m",
                                           "2x4m",
                                           "4x2m",
                                           "3x3m",
                                           "3mx3m",
                                           "complete:3 x 3"};

    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        struct torus t = contract_torus(networks[i]);
        struct product p = product_of_torus(&t);
        struct network n = make_network(&t);
        if (broadcast_bound_one_to_all(&p) != rounds_of_one(&n))
            fail_msg("%s: %u rounds from one", networks[i], rounds_of_one(&n));
        if (broadcast_bound_all_to_all(&p) != rounds_of_all(&n))
            fail_msg("%s: %u rounds from all", networks[i], rounds_of_all(&n));
    }
}

/* The theorem, for n x n. */
TEST(theorem)
{
    for (uint32_t n = 3; n <= 40; n++) {
        struct product torus = {2, {{FACTOR_RING, n, NULL}, {FACTOR_RING, n, NULL}}, n * n};
        struct product mesh = {2, {{FACTOR_ARRAY, n, NULL}, {FACTOR_ARRAY, n, NULL}}, n * n};
        assert_int_equal(broadcast_bound_one_to_all(&torus), 2 * (n / 2));
        assert_int_equal(broadcast_bound_one_to_all(&mesh), 2 * (n - 1));
        assert_int_equal(broadcast_bound_all_to_all(&torus), n * n / 4);
        assert_int_equal(broadcast_bound_all_to_all(&mesh), n * n / 2);
    }
}

/* Theorem 4 of Yang and Wang: All-to-All Communication, in time. The theorem says that the broadcast
 * pattern takes at most
 *
 *     alpha + delta + L*gamma + ((n^2-1)/4 - 1) * max(delta, L*gamma) + min(delta, L*gamma)
 *
 * on an n x n torus. With the buffers of the paper, first come, first served, it takes min(delta, L*gamma) more;
 * with the longest path first it takes no more. client/doc/open-questions.md has the proof. Here are
 * its premises, the machine to which it reduces the network, and the network itself in the timed
 * simulator.
 *
 * test_printed.c shows that the routes are those of the paper. */

enum { ALPHA = 1000, LARGEST_N = 31, LARGEST_OF_EACH_NODE = 13, LARGEST_OF_MACHINE = 61 };

static const struct {
    uint64_t delta, send; /* send: L*gamma */
} ratios[] = {{1, 8}, {1, 3}, {2, 3}, {5, 5},   {3, 2},  {4, 1},
              {6, 5}, {5, 6}, {5, 4}, {1, 100}, {100, 1}};
enum { RATIOS = sizeof ratios / sizeof ratios[0] };

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Theorem 4, as printed. */
static uint64_t theorem_of_run(uint64_t n, uint64_t delta, uint64_t send)
{
    uint64_t larger = delta > send ? delta : send;
    return ALPHA + delta + send + ((n * n - 1) / 4 - 1) * larger + smaller(delta, send);
}

static struct simulate_report broadcast(const struct torus *t, const char *name,
                                        const struct simulation *s)
{
    struct simulate_report r = {0};
    struct error e;

    assert_success(simulate_schedule(t, algorithm_find(name), s, &r, &e), e);
    assert_int_equal(r.messages, t->nodes * (t->nodes - 1));
    return r;
}

static uint64_t delay(uint32_t n, const struct simulation *s)
{
    struct torus t = contract_rectangle(n, n);
    struct simulate_report r = broadcast(&t, "yangwang", s);

    assert_int_equal(r.timed.busiest, (n * n - 1) / 4); /* corollary 1 */
    return r.timed.time;
}

static struct simulation model(size_t ratio, enum timed_queue queue, enum simulate_place place)
{
    return (struct simulation){.timed = {.startup = ALPHA, .queue = queue},
                               .streaming = true,
                               .switching = ratios[ratio].delta,
                               .segment = ratios[ratio].send,
                               .place = place};
}

TEST(first_come_takes_longer)
{
    for (uint32_t n = 3; n <= LARGEST_N; n += 2) {
        for (size_t i = 0; i < RATIOS; i++) {
            uint64_t delta = ratios[i].delta, send = ratios[i].send;
            uint64_t more = n == 3 ? 0 : smaller(delta, send);
            struct simulation input = model(i, TIMED_FIFO, SIMULATE_AT_INPUT);
            struct simulation output = model(i, TIMED_FIFO, SIMULATE_AT_OUTPUT);
            assert_int_equal(delay(n, &input), theorem_of_run(n, delta, send) + more);
            assert_int_equal(delay(n, &output), theorem_of_run(n, delta, send) + more);
        }
    }
}

/* Where input buffers switch and that takes longer than to send, it takes less: messages that go no
 * further are switched after those that count. */
TEST(longest_way_first_does_not)
{
    for (uint32_t n = 3; n <= LARGEST_N; n += 2) {
        for (size_t i = 0; i < RATIOS; i++) {
            uint64_t delta = ratios[i].delta, send = ratios[i].send;
            struct simulation input = model(i, TIMED_LONGEST, SIMULATE_AT_INPUT);
            struct simulation output = model(i, TIMED_LONGEST, SIMULATE_AT_OUTPUT);
            uint64_t most = theorem_of_run(n, delta, send), taken = delay(n, &input);
            assert_int_equal(delay(n, &output), most);
            assert_true(delta <= send ? taken == most : taken <= most);
        }
    }
}

/* ---- The proof ------------------------------------------------------------------------------- */

/* The direction of a leg, a number around the compass. */
static unsigned compass(const struct leg *leg)
{
    return leg->direction > 0 ? leg->dim : leg->dim + 2u;
}

/* Lemma 1: by its length p and by its first hops in one direction, d, a block's path is the only one
 * that ends with its channel. d is at most p and 2k+1-p, where n = 2k+1. The path to the node before has the
 * same d, or is straight. Whether the last turn is to the left or to the right depends on p alone. */
TEST(one_message_of_each_kind)
{
    for (uint32_t n = 3; n <= LARGEST_N; n += 2) {
        struct torus t = contract_rectangle(n, n);
        bool has[4][LARGEST_N][LARGEST_N] = {{{false}}};
        for (uint32_t node = 1; node < t.nodes; node++) {
            struct leg legs[2 * LARGEST_N];
            uint32_t p = algorithm_route(algorithm_find("yangwang"), &t, 0, node, 0, legs), d = 1;
            while (d < p && legs[d].dim == legs[0].dim && legs[d].direction == legs[0].direction)
                d++;
            unsigned port = torus_port(&t, legs[p - 1].dim, legs[p - 1].direction);
            assert_true(d <= p && d + p <= n && !has[port][p][d]);
            has[port][p][d] = true;
            for (uint32_t i = d; i < p; i++) /* it turns at each hop after that */
                assert_int_not_equal(legs[i].dim, legs[i - 1].dim);
            if (d < p)
                assert_int_equal((compass(&legs[p - 1]) - compass(&legs[p - 2])) & 3,
                                 p % 2 == 0 ? 3 : 1);
        }
        for (unsigned port = 0; port < 4; port++)
            for (uint32_t p = 1; p < n; p++)
                for (uint32_t d = 1; d <= p && d + p <= n; d++)
                    assert_true(has[port][p][d]);
    }
}

/* The machine of the proof: all channels and all input buffers do the same at the same time. A message (p, d) that has
 * crossed its channel is switched; then (p+1, d) can cross, and if p = d, (p+1, p+1). */
enum rule { TURNS_FIRST, STRAIGHT_FIRST, LONGEST_FIRST };

struct job {
    uint32_t p, d;
    uint64_t asked; /* for the channel, then for the switch; UINT64_MAX: not yet, or served */
    bool crossed;
};

struct server {
    struct job *serves; /* NULL: it is free */
    uint64_t until;
};

struct machine {
    struct job job[(LARGEST_OF_MACHINE / 2) * (LARGEST_OF_MACHINE / 2 + 1)];
    size_t jobs;
    uint32_t n;
    enum rule rule;
    uint64_t now;
};

static bool goes_first(const struct machine *m, const struct job *a, const struct job *b)
{
    if (m->rule == LONGEST_FIRST && a->p + a->d != b->p + b->d)
        return a->p + a->d < b->p + b->d;
    if (a->asked != b->asked)
        return a->asked < b->asked;
    return m->rule == STRAIGHT_FIRST ? a->d > b->d : a->d < b->d;
}

/* Begins with the next message, if the server is free and one waits. */
static void begin(struct machine *m, struct server *s, bool crossed, uint64_t takes)
{
    for (size_t i = 0; i < m->jobs && (s->serves == NULL || s->until == UINT64_MAX); i++) {
        struct job *j = &m->job[i];
        if (j->crossed != crossed || j->asked > m->now)
            continue;
        if (s->serves == NULL || goes_first(m, j, s->serves))
            s->serves = j;
        s->until = UINT64_MAX; /* still choosing */
    }
    if (s->serves != NULL && s->until == UINT64_MAX) {
        s->until = m->now + takes;
        s->serves->asked = UINT64_MAX;
    }
}

static void ask_for_channel(struct machine *m, uint32_t p, uint32_t d)
{
    for (size_t i = 0; i < m->jobs; i++)
        if (m->job[i].p == p && m->job[i].d == d)
            m->job[i].asked = m->now;
}

/* The time of the last message, without the startup. */
static uint64_t run_machine(uint32_t n, uint64_t delta, uint64_t send, enum rule rule)
{
    static struct machine m;
    struct server channel = {0}, inner = {0};
    uint64_t last = 0;

    m = (struct machine){.n = n, .rule = rule, .now = delta};
    for (uint32_t p = 1; p < n; p++)
        for (uint32_t d = 1; d <= p && d + p <= n; d++)
            m.job[m.jobs++] = (struct job){.p = p, .d = d, .asked = UINT64_MAX};
    ask_for_channel(&m, 1, 1);
    for (size_t left = m.jobs; left > 0;) {
        if (channel.serves != NULL && channel.until == m.now) {
            channel.serves->crossed = true;
            channel.serves->asked = last = m.now;
            channel.serves = NULL;
            left--;
        }
        if (inner.serves != NULL && inner.until == m.now) {
            uint32_t p = inner.serves->p, d = inner.serves->d;
            ask_for_channel(&m, p + 1, d);
            if (p == d)
                ask_for_channel(&m, p + 1, p + 1);
            inner.serves = NULL;
        }
        begin(&m, &channel, false, send);
        begin(&m, &inner, true, delta);
        uint64_t next = UINT64_MAX;
        if (channel.serves != NULL)
            next = channel.until;
        if (inner.serves != NULL && inner.until < next)
            next = inner.until;
        assert_true(left == 0 || next != UINT64_MAX);
        m.now = next;
    }
    return last;
}

TEST(machine)
{
    for (uint32_t n = 3; n <= LARGEST_OF_MACHINE; n += 2) {
        for (size_t i = 0; i < RATIOS; i++) {
            uint64_t delta = ratios[i].delta, send = ratios[i].send;
            uint64_t most = theorem_of_run(n, delta, send) - ALPHA;
            uint64_t more = n == 3 ? 0 : smaller(delta, send);
            uint64_t turns = run_machine(n, delta, send, TURNS_FIRST);
            uint64_t longest = run_machine(n, delta, send, LONGEST_FIRST);
            assert_int_equal(run_machine(n, delta, send, STRAIGHT_FIRST), most + more);
            assert_true(delta <= send ? turns == most && longest == most
                                      : turns <= most && longest <= most);
        }
    }
}

/* ---- The gap --------------------------------------------------------------------------------- */

/* The order in which channels send. */
struct order {
    const struct torus *torus;
    uint32_t *source; /* (node * 4 + port) * most + place */
    uint32_t *sent;   /* node * 4 + port */
    uint32_t most;    /* messages on a channel */
};

static void note(void *context, uint32_t source, uint32_t from, unsigned port, uint64_t now)
{
    (void)now;
    struct order *o = context;
    uint32_t channel = from * 4 + port;

    assert_true(o->sent[channel] < o->most);
    o->source[channel * o->most + o->sent[channel]++] = source;
}

/* The place of a message among those of the channel through which it comes to a node. */
static uint32_t place_of(const struct order *o, uint32_t source, uint32_t node)
{
    struct leg legs[2 * LARGEST_OF_EACH_NODE];
    uint32_t count = algorithm_route(algorithm_find("yangwang"), o->torus, source, node, 0, legs);
    const struct leg *last = &legs[count - 1];
    uint32_t from = torus_walk(o->torus, node, last->dim, -last->direction, 1);
    uint32_t channel = from * 4 + torus_port(o->torus, last->dim, last->direction), place = 0;

    while (place < o->most && o->source[channel * o->most + place] != source)
        place++;
    assert_true(place < o->most);
    return place;
}

/* Counts the channels whose last message follows the last message of an earlier phase. */
static uint32_t channels_that_wait(uint32_t n, enum timed_queue queue)
{
    struct torus t = contract_rectangle(n, n);
    struct order o = {.torus = &t, .most = (n * n - 1) / 4};
    struct simulation m = model(0, queue, SIMULATE_AT_INPUT);
    uint32_t waiting = 0;

    o.source = calloc((size_t)t.nodes * 4 * o.most, sizeof *o.source);
    o.sent = calloc((size_t)t.nodes * 4, sizeof *o.sent);
    assert_true(o.source && o.sent);
    m.each_node = true;
    m.takes = note;
    m.context = &o;
    (void)delay(n, &m);
    for (uint32_t channel = 0; channel < t.nodes * 4; channel++) {
        uint32_t last = o.source[channel * o.most + o.most - 1], node = channel / 4;
        assert_int_equal(o.sent[channel], o.most);
        if (torus_distance(&t, last, node) + 1 < torus_diameter(&t))
            continue; /* of an earlier phase */
        waiting += place_of(&o, last, node) == o.most - 2;
    }
    free(o.source);
    free(o.sent);
    return waiting;
}

TEST(last_message_waits)
{
    for (uint32_t n = 5; n <= LARGEST_OF_EACH_NODE; n += 2) {
        assert_true(channels_that_wait(n, TIMED_FIFO) >= n * n);
        assert_int_equal(channels_that_wait(n, TIMED_LONGEST), 0);
    }
}

/* ---- Other networks -------------------------------------------------------------------------- */

/* A line of 3 by hand: node 0 and 2 send 1 message, node 1 sends its own and one more each way. */
TEST(by_hand)
{
    struct torus t = contract_torus("3m");
    struct simulation s = {.timed = {.startup = 100},
                           .streaming = true,
                           .switching = 2,
                           .segment = 10,
                           .place = SIMULATE_AT_INPUT};
    struct simulate_report r = broadcast(&t, "yangwang", &s);

    assert_int_equal(r.timed.time, 100 + 2 + 10 + 2 + 10);
    assert_int_equal(r.timed.busiest, 2);
    t = contract_torus("1");
    assert_int_equal(broadcast(&t, "yangwang", &s).timed.time, 0);
}

/* Every block reaches every node, and no delay is below the bound of the busiest channel. */
TEST(other_algorithms)
{
    static const char *const names[] = {"balanced", "saadschultz", "yangwang"};
    static const char *const shapes[] = {"4x4", "3x9", "5mx4m", "2x5m", "7", "1x6m", "4x5m"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (size_t j = 0; j < sizeof shapes / sizeof shapes[0]; j++) {
            struct torus t = contract_torus(shapes[j]);
            struct simulation s = {
                .streaming = true, .switching = 1, .segment = 5, .place = SIMULATE_AT_INPUT};
            if (algorithm_accepts(algorithm_find(names[i]), &t, NULL) != 0)
                continue;
            struct simulate_report r = broadcast(&t, names[i], &s);
            assert_int_equal(r.timed.busiest, contract_verify(&t, names[i]).busiest);
            assert_true(r.timed.time >= 1 + r.timed.busiest * 5);
        }
    }
}

TEST(refusals)
{
    struct torus five = contract_torus("5x5"), four = contract_torus("4x4");
    struct simulation s = {.streaming = true, .segment = 1};
    struct simulate_report r;
    struct error e;

    assert_fails(simulate_schedule(&four, algorithm_find("yangwang"), &s, &r, &e), e, ERROR_REFUSED,
                 "");
    s.switching = SIMULATE_TIME_MOST + 1;
    assert_fails(simulate_schedule(&five, algorithm_find("yangwang"), &s, &r, &e), e, ERROR_REFUSED,
                 "");
}
