/* The lower bounds of broadcasts against a search of all schedules on small networks. In a round, every
 * channel carries one message that its sender had before the round. */
#include "client/theory/broadcast_run.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"
#include <string.h>

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

/* Whether all nodes can have all messages after so many rounds. */
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
