/* What links carry: stated to neighbours, heard from them, observed, and probed. */
#include "daemon/torusd/router/link.h"
#include "daemon/torusd/router/rates.h"
#include "proto/frame.h"
#include "router_fixture.h"
#include "tests/support/cmocka.h"

/* Returns the rates that were sent of a node the last time, `*count` of them. */
static const uint32_t *sent_rates(struct fixture_connection *c, uint32_t rank, size_t *count)
{
    static uint32_t rates[2 * TORUS_MAX_PORTS];
    struct peer_message *head;

    *count = 0;
    while ((head = fixture_next(c, NULL, 0, NULL)) != NULL) {
        for (size_t i = 0; head->kind == PEER_LINK_STATE && i < head->link_state.n_entry; i++) {
            const struct peer_link_state_entry *entry = &head->link_state.entry[i];
            if (entry->rank != rank)
                continue;
            *count = entry->n_rates;
            if (entry->n_rates > 0)
                memcpy(rates, entry->rates, entry->n_rates * sizeof *rates);
        }
        message_forget(head);
    }
    return rates;
}

/* Checks what plans use for a port, and from where. */
static void planned(const struct router *router, unsigned port, uint32_t kbit, const char *from)
{
    struct port_rates rates;

    router_port_rates(router, port, &rates);
    assert_int_equal(rates.planned, kbit);
    assert_string_equal(rate_source_name(rates.source), from);
}

ROUTER_TEST(a_node_states_what_its_links_carry)
{
    size_t count;

    fixture_link_up(f, 0);
    fixture_pass(f, 50 * MILLISECONDS);
    (void)sent_rates(f->up[0], 5, &count);
    assert_int_equal(count, 0); /* nothing is known */
    router_set_nominal(f->router, 0, (struct nominal_rate){20, 10});
    router_set_negotiated(f->router, 0, 15000);
    router_set_negotiated(f->router, 3, 1000000);
    fixture_pass(f, 50 * MILLISECONDS);
    const uint32_t *sent = sent_rates(f->up[0], 5, &count);
    assert_int_equal(count, 8);
    assert_int_equal(sent[0], 15000); /* never above what is configured or negotiated */
    assert_int_equal(sent[1], 10000);
    assert_int_equal(sent[2], 0);
    assert_int_equal(sent[6], 1000000);
    planned(f->router, 0, 15000, "negotiated");
    planned(f->router, 2, 0, "");
    router_set_nominal(f->router, 0, (struct nominal_rate){0, 0});
    router_set_negotiated(f->router, 0, 0);
    router_set_negotiated(f->router, 3, 0);
    fixture_pass(f, 50 * MILLISECONDS);
    (void)sent_rates(f->up[0], 5, &count);
    assert_int_equal(count, 0);
}

static void say_rates(struct fixture_connection *c, uint32_t rank, uint32_t version,
                      const uint32_t *rates, size_t count)
{
    const struct peer_link_state_entry entry = {.rank = rank,
                                                .hops = rank == 9 ? 0 : 4,
                                                .version = version,
                                                .up = 3,
                                                .boot = 9,
                                                .minor = PROTOCOL_MINOR,
                                                .n_rates = count,
                                                .rates = rates};

    fixture_say(c, &(struct peer_message){.kind = PEER_LINK_STATE, .link_state = {1, &entry}}, NULL,
                0);
}

/* The neighbour at port +0 is node 9. */
ROUTER_TEST(what_the_other_end_states_counts)
{
    const uint32_t low[8] = {[2] = 7000, [3] = 6000},
                   high[8] = {[2] = UINT32_MAX, [3] = UINT32_MAX};

    fixture_link_up(f, 0);
    router_set_nominal(f->router, 0, (struct nominal_rate){20, 20});
    say_rates(f->up[0], 9, 1, low, 8);
    fixture_pass(f, 50 * MILLISECONDS);
    planned(f->router, 0, 6000, "neighbour");
    assert_int_equal(router_channel_rate(f->router, 9, 1), 7000);
    say_rates(f->up[0], 9, 2, high, 8);
    fixture_pass(f, 50 * MILLISECONDS);
    planned(f->router, 0, 20000, "nominal");
    assert_int_equal(router_channel_rate(f->router, 9, 1), 20000);
}

ROUTER_TEST(rates_that_are_not_two_a_port_cost_the_connection)
{
    static const uint32_t rates[9];

    for (size_t count = 1; count <= 9; count++) {
        fixture_link_up(f, 0);
        say_rates(f->up[0], 9, 1, rates, count);
        assert_true((f->up[0]->link == NULL) == (count != 8));
        if (count != 8)
            assert_contains(f->up[0]->last, "rates, not 8");
    }
}

/* Rates are passed on with the link states, and kept back from an older node. */
ROUTER_TEST(rates_are_passed_on_once_all_know_them)
{
    const uint32_t said[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    size_t count;

    router_set_minor(f->router, RATES_MINOR);
    f->minor = RATES_MINOR;
    fixture_link_up(f, 0);
    f->minor = RATES_MINOR - 1;
    fixture_link_up(f, 1);
    say_rates(f->up[0], 12, 1, said, 8);
    router_set_nominal(f->router, 0, (struct nominal_rate){20, 20});
    fixture_pass(f, 50 * MILLISECONDS);
    for (unsigned port = 0; port < 2; port++) {
        (void)sent_rates(f->up[port], port == 0 ? 5 : 12, &count);
        assert_int_equal(count, 0);
    }
    assert_false(router_knows_rates(f->router));
    assert_int_equal(router_channel_rate(f->router, 5, 0), 0);
    link_closed(f->up[1]->link, "reset");
    f->up[1]->link = NULL;
    f->minor = RATES_MINOR;
    fixture_link_up(f, 1);
    fixture_pass(f, 50 * MILLISECONDS);
    assert_memory_equal(sent_rates(f->up[1], 12, &count), said, sizeof said);
    assert_int_equal(count, 8);
    assert_true(router_knows_rates(f->router));
}

/* Lets beats pass in which the port's connection was measured at this rate; a measurement a beat. */
static void measure(struct router_fixture *f, unsigned port, uint64_t bps, unsigned beats)
{
    for (unsigned i = 0; i < beats; i++) {
        f->up[port]->stat.rate_bps = bps;
        f->up[port]->stat.measured += bps > 0;
        f->up[port]->stat.acked++;
        for (unsigned up = 0; up < 4; up++)
            if (f->up[up] != NULL && f->up[up]->link != NULL)
                fixture_say_heartbeat(f->up[up]);
        fixture_pass(f, ROUTER_HEARTBEAT);
    }
}

/* Returns how many bytes of filler a connection sends until it has nothing more to send, at most `most`. */
static size_t take_filler(struct fixture_connection *c, size_t most)
{
    struct peer_message *head;
    size_t bytes = 0;

    while (bytes < most && (head = fixture_next(c, NULL, 0, NULL)) != NULL) {
        bytes += head->kind == PEER_HEARTBEAT ? head->heartbeat.filler.len : 0;
        message_forget(head);
    }
    return bytes;
}

ROUTER_TEST(a_link_that_carries_less_than_it_should_is_stated)
{
    struct port_rates rates;

    fixture_link_up(f, 0);
    router_set_nominal(f->router, 0, (struct nominal_rate){20, 20});
    measure(f, 0, 1900000, 8);
    router_port_rates(f->router, 0, &rates);
    assert_true(rates.planned > 1940 && rates.planned < 2060); /* with headers */
    assert_int_equal(rates.observed / 100, 19);
    assert_string_equal(rate_source_name(rates.source), "observed");
    assert_int_equal(router_channel_rate(f->router, 9, 1), 20000); /* the other direction is well */
    assert_int_equal(take_filler(f->up[0], 100000), 0); /* it is in use, and needs no probe */
    link_closed(f->up[0]->link, "reset");
    f->up[0]->link = NULL;
    fixture_link_up(f, 0);
    fixture_pass(f, 50 * MILLISECONDS);
    router_port_rates(f->router, 0, &rates);
    assert_int_equal(rates.planned, 20000); /* nothing is known about the new one */
}

/* As measure() at port 0, while heartbeats are so long on their way from the neighbour, and to it. */
static void measure_between(struct router_fixture *f, uint64_t in, uint64_t out, uint64_t bps,
                            unsigned beats)
{
    for (unsigned i = 0; i < beats; i++) {
        const struct peer_heartbeat beat = {.at = f->now + 77 * SECONDS - in,
                                            .echo = f->now - in - out};
        fixture_say(f->up[0], &(struct peer_message){.kind = PEER_HEARTBEAT, .heartbeat = beat},
                    NULL, 0);
        measure(f, 0, bps, 1);
    }
}

/* Acknowledgements that wait behind what the neighbour sends let TCP send little, but the link may carry more. */
ROUTER_TEST(a_link_is_not_slow_because_acknowledgements_wait)
{
    const uint64_t soon = MILLISECONDS / 20, late = 600 * MILLISECONDS;
    struct port_rates rates;

    fixture_link_up(f, 0);
    router_set_nominal(f->router, 0, (struct nominal_rate){20, 20});
    measure_between(f, soon, soon, 0, 1);
    f->up[0]->stat.unacked = 500000;
    measure_between(f, late, late / 5, 5000000, 20);
    planned(f->router, 0, 20000, "nominal");
    router_port_rates(f->router, 0, &rates);
    assert_int_equal(rates.observed, 0);
    measure_between(f, late, late / 5, 19100000, 4); /* at least that much is carried */
    router_port_rates(f->router, 0, &rates);
    assert_int_equal(rates.observed / 100, 199);
    measure_between(f, late / 5, late, 1900000, 8);
    router_port_rates(f->router, 0, &rates);
    assert_int_equal(rates.observed / 100, 19);
    assert_string_equal(rate_source_name(rates.source), "observed");
}

/* A slow link that is not in use is filled now and then for a moment, where nothing else leaves by it. */
ROUTER_TEST(a_slow_link_is_probed)
{
    const struct peer_message other = {.kind = PEER_GO};
    struct port_rates rates;
    unsigned filled = 0;

    fixture_link_up(f, 0);
    router_set_nominal(f->router, 0, (struct nominal_rate){20, 20});
    measure(f, 0, 1900000, 8);
    for (unsigned beat = 0; beat < 200; beat++) {
        measure(f, 0, 0, 1);
        filled += take_filler(f->up[0], 100000) > 0;
    }
    assert_true(filled >= 20 && filled <= 60);
    while (take_filler(f->up[0], 100000) == 0)
        measure(f, 0, 0, 1);
    measure(f, 0, 19100000, 1);
    router_send(f->router, 0, &other);
    assert_true(take_filler(f->up[0], 100000) > 0); /* for long, none had come to its end */
    measure(f, 0, 0, 4);
    while (take_filler(f->up[0], 100000) == 0)
        measure(f, 0, 0, 1);
    router_send(f->router, 0, &other); /* otherwise a probe gives way */
    assert_int_equal(take_filler(f->up[0], 100000), 0);
    measure(f, 0, 19100000, 2);
    router_port_rates(f->router, 0, &rates);
    assert_int_equal(rates.planned, 20000);
    for (unsigned beat = 0; beat < 100; beat++) {
        measure(f, 0, 0, 1);
        assert_int_equal(take_filler(f->up[0], 100000), 0);
    }
}

/* A link that carries more than before is measured until it is known how much, whatever else leaves by it. */
ROUTER_TEST(the_probe_of_a_link_that_is_well_again_does_not_give_way)
{
    const struct peer_message other = {.kind = PEER_GO};

    fixture_link_up(f, 0);
    router_set_nominal(f->router, 0, (struct nominal_rate){20, 20});
    measure(f, 0, 1900000, 8);
    while (take_filler(f->up[0], 100000) == 0)
        measure(f, 0, 0, 1);
    f->up[0]->stat.acked += 200000;
    measure(f, 0, 0, 1);
    router_send(f->router, 0, &other);
    assert_true(take_filler(f->up[0], 100000) > 0);
    measure(f, 0, 0, 1); /* it carries no more than before after all */
    measure(f, 0, 0, 3);
    router_send(f->router, 0, &other);
    assert_int_equal(take_filler(f->up[0], 100000), 0);
}

ROUTER_TEST(an_older_neighbour_is_not_probed)
{
    router_set_minor(f->router, RATES_MINOR);
    f->minor = RATES_MINOR - 1;
    fixture_link_up(f, 0);
    router_set_nominal(f->router, 0, (struct nominal_rate){20, 20});
    measure(f, 0, 1900000, 8);
    for (unsigned beat = 0; beat < 100; beat++) {
        measure(f, 0, 0, 1);
        assert_int_equal(take_filler(f->up[0], 100000), 0);
    }
}
