/* Networks of members: their links are paths on which no other node is a member, they connect all members, and
 * those that share links have lower rates. */
#include "daemon/lib/schedule/detour/overlay.h"

#include <stdlib.h>

#include "tests/support/cmocka.h"

static const char *const tori[] = {"4x4",        "8m",       "5",   "2x3",  "3x3x3",
                                   "4mx3",       "2x2x2",    "2x2", "1x4",  "star:7",
                                   "complete:5", "tree:2^3", "8x8", "6mx6m"};

static uint32_t chance_below(uint64_t *state, uint32_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((*state >> 33) % below);
}

/* Follows a channel from its beginning, and with `count` 1 counts it for each link on its way. Returns the member where it
 * ends; with 0, how many channels the busiest link on its way has. */
static uint32_t follow(const struct overlay *o, const struct damage *d,
                       struct overlay_hop *const *hop, uint32_t channel, uint32_t *used,
                       uint32_t count)
{
    const unsigned ports = torus_ports(&d->torus);
    uint32_t node = o->node[channel / torus_ports(&o->torus)], most = 0;

    assert_int_equal(hop[node][channel].in, -1);
    for (uint32_t hops = 0; hop[node][channel].out >= 0; hops++) {
        const unsigned port = (unsigned)hop[node][channel].out;
        assert_true(hops < d->torus.nodes);
        assert_true(damage_has_link(d, node, port));
        most = used[node * ports + port] > most ? used[node * ports + port] : most;
        used[node * ports + port] += count;
        node = torus_neighbour(&d->torus, node, port);
        assert_int_equal(hop[node][channel].in, torus_port_opposite(&d->torus, port));
    }
    for (uint32_t m = 0; count > 0 && m < o->torus.nodes; m++)
        if (o->node[m] == node)
            return m;
    if (count > 0)
        fail_msg("channel %u ends at node %u, which is no member", channel, node);
    return most;
}

/* Checks all channels. */
static void check_channels(const struct overlay *o, const struct damage *d, const bool *is_member)
{
    const struct torus *t = &d->torus;
    const unsigned ports = torus_ports(&o->torus);
    struct overlay_hop **hop = calloc(t->nodes, sizeof *hop);
    uint32_t *used = calloc((size_t)t->nodes * torus_ports(t), sizeof *used);

    assert_non_null(hop);
    assert_non_null(used);
    for (uint32_t node = 0; node < t->nodes; node++) {
        hop[node] = calloc(overlay_channels(o), sizeof *hop[node]);
        assert_non_null(hop[node]);
        overlay_hops(o, t, node, hop[node]);
        for (uint32_t i = 0; i < overlay_channels(o); i++) /* members pass nothing on */
            assert_true(!is_member[node] || hop[node][i].in < 0 || hop[node][i].out < 0);
    }
    for (uint32_t i = 0; i < overlay_channels(o); i++)
        if (torus_neighbour(&o->torus, i / ports, i % ports) != TORUS_NO_NODE)
            assert_int_equal(follow(o, d, hop, i, used, 1),
                             torus_neighbour(&o->torus, i / ports, i % ports));
    /* How many channels the busiest link of each has: the rates are in inverse proportion. */
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < overlay_channels(o); i++)
        if (torus_neighbour(&o->torus, i / ports, i % ports) != TORUS_NO_NODE)
            least = follow(o, d, hop, i, used, 0) < least ? follow(o, d, hop, i, used, 0) : least;
    for (uint32_t i = 0; i < overlay_channels(o); i++)
        if (torus_neighbour(&o->torus, i / ports, i % ports) != TORUS_NO_NODE) {
            const uint32_t rate = damage_rate(&o->damage, i / ports, i % ports);
            const uint32_t wanted = DAMAGE_FULL_RATE * least / follow(o, d, hop, i, used, 0);
            assert_in_range(rate, wanted > 3 ? wanted - 3 : 0, wanted + 3);
        }
    for (uint32_t node = 0; node < t->nodes; node++)
        free(hop[node]);
    free(hop);
    free(used);
}

/* Whether a path over links that are up leads from one member to all others. */
static bool can_reach(const struct damage *d, const bool *is_member)
{
    bool *seen = calloc(d->torus.nodes, sizeof *seen);
    uint32_t *order = calloc(d->torus.nodes, sizeof *order), known = 0, first = 0;
    assert_true(seen != NULL && order != NULL);
    while (!is_member[first])
        first++;
    order[known++] = first;
    seen[first] = true;
    for (uint32_t i = 0; i < known; i++)
        for (unsigned port = 0; port < torus_ports(&d->torus); port++) {
            const uint32_t there = damage_has_link(d, order[i], port)
                                       ? torus_neighbour(&d->torus, order[i], port)
                                       : order[i];
            if (!seen[there])
                order[known++] = there;
            seen[there] = true;
        }
    bool result = true;
    for (uint32_t node = 0; node < d->torus.nodes; node++)
        result = result && (seen[node] || !is_member[node]);
    free(seen);
    free(order);
    return result;
}

SEED_TEST(200, overlay_connects_members)
{
    uint64_t chance = seed * 7919 + 1;
    struct torus t;
    struct damage d;
    struct overlay o;
    struct error e;
    bool is_member[64] = {false};

    assert_success(torus_parse(&t, tori[seed % (sizeof tori / sizeof tori[0])], &e), e);
    assert_success(damage_init(&d, &t, &e), e);
    for (uint32_t i = 0; i < seed % 5; i++) {
        const uint32_t node = (uint32_t)chance_below(&chance, t.nodes);
        const unsigned port = (unsigned)chance_below(&chance, torus_ports(&t));
        if (damage_has_link(&d, node, port))
            damage_add_link(&d, node, port);
    }
    is_member[chance_below(&chance, t.nodes)] = true;
    for (uint32_t node = 0; node < t.nodes; node++)
        is_member[node] = is_member[node] || chance_below(&chance, 4) < seed % 4;
    const bool connected = can_reach(&d, is_member);
    const int result = overlay_find(&o, &d, is_member, &e);
    if (connected) {
        assert_success(result, e);
        assert_int_equal(damage_is_connected(&o.damage, &e), 0);
        check_channels(&o, &d, is_member);
        overlay_free(&o);
    } else {
        assert_fails(result, e, ERROR_LINK, "cannot reach each other");
    }
    damage_free(&d);
}

/* Leaves of a star share the links of its middle, which pass on what they send. */
TEST(overlay_of_leaves)
{
    const bool is_member[6] = {false, true, true, true, true, true};
    struct torus t;
    struct damage d;
    struct overlay o;
    struct error e;

    assert_success(torus_parse(&t, "star:6", &e), e);
    assert_success(damage_init(&d, &t, &e), e);
    assert_success(overlay_find(&o, &d, is_member, &e), e);
    assert_int_equal(o.links, 4);
    assert_int_equal(o.passing, 8);
    overlay_free(&o);
    damage_free(&d);
}
