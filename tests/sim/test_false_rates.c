/* Nodes that lie about the rates of links: one of them, or the two ends of a link. */
#include <inttypes.h>

#include "daemon/torusd/core/core.h"
#include "daemon/torusd/exchange/plan_rates.h"
#include "tests/sim/internal.h"
#include "tests/sim/lies.h"
#include "tests/support/cmocka.h"

#define RATE UINT64_C(2500000) /* 20 Mbit/s */

/* An exchange that succeeds; its blocks are verified where they arrive. */
static struct sim_request *exchange_of(struct sim *sim, const char *algorithm, uint64_t block)
{
    const struct spec spec = {.algorithm = algorithm, .block_bytes = block, .from = "", .to = ""};
    struct sim_request *r = sim_exchange(sim, 0, &spec);

    (void)sim_run_until_ended(r, 600 * SECONDS);
    if (!r->ended || r->error.code != ERROR_NONE)
        sim_violated(sim, "success", "%s: %s", r->id, r->ended ? r->error.text : "not ended");
    return r;
}

#define LIAR 4u
#define LIES_TIME (25 * SECONDS)
#define RATES 8u /* of a node: two for each of four ports */

/* What the liar states of each of its links, and perhaps of those of others: one number after another. */
struct lie_of_rates {
    uint32_t liars; /* LIAR, and the nodes after it */
    uint32_t number[4];
    unsigned numbers;
    bool of_others;
    unsigned told;
};

static const struct lie_of_rates lies_of_rates[] = {
    {1, {0}, 1, false, 0},
    {1, {20000, 2000}, 2, false, 0},
    {1, {20000, 2000, UINT32_MAX, 1}, 4, true, 0},
};

static unsigned state_false_rates(struct sim *sim, uint32_t rank, unsigned port, uint8_t **bytes,
                                  size_t *length)
{
    struct lie_of_rates *lie = sim_context(sim);
    size_t body;
    Peer__Head *head = rank - LIAR < lie->liars ? lie_read(*bytes, *length, &body) : NULL;

    if (head == NULL)
        return 1;
    for (size_t i = 0; head->kind_case == PEER__HEAD__KIND_LINK_STATE && lie->numbers > 0 &&
                       i < head->link_state->n_entry;
         i++) {
        Peer__LinkState__Entry *entry = head->link_state->entry[i];
        const bool of_liar = entry->rank - LIAR < lie->liars;
        if (!of_liar && !lie->of_others)
            continue;
        entry->version += !of_liar;
        free(entry->rates);
        entry->n_rates = RATES;
        entry->rates = malloc(RATES * sizeof *entry->rates);
        for (size_t k = 0; k < RATES; k++)
            entry->rates[k] = lie->number[lie->told % lie->numbers];
    }
    if (head->kind_case == PEER__HEAD__KIND_LINK_STATE && lie->numbers > 0) {
        const size_t rest = *length - body;
        uint8_t *old = *bytes;
        *bytes = lie_frame(head, old + body, rest, length);
        free(old);
        lie->told++;
    }
    peer__head__free_unpacked(head, NULL);
    return 1;
}

/* Makes the liars say everything that they know once more, again and again. */
static void say_again(struct sim *sim, void *context)
{
    struct lie_of_rates *lie = context;

    if (lie->numbers == 0 || !sim_alive(sim, LIAR))
        return;
    for (uint32_t rank = LIAR; rank < LIAR + lie->liars; rank++) {
        for (unsigned port = 0; port < 4; port++)
            flood_mark_all_unsent(sim_router(sim, rank), port);
        sim_settle(&sim->node[rank]);
    }
    sim_at(sim, sim_now(sim) + 100 * MILLISECONDS, say_again, lie);
}

/* What node 0 makes its plans from is what honest nodes have said. */
static bool knows_the_truth(struct sim *sim, void *context)
{
    const struct torus *t = sim_torus(sim);

    for (uint32_t rank = 0; rank < t->nodes; rank++)
        for (unsigned port = 0; port < torus_ports(t); port++)
            if (router_channel_rate(sim_router(sim, 0), rank, port) != RATE * 8 / 1000)
                return false;
    return sim_exchanges(sim, 0)->rates.used == NULL;
}

/* Exchanges with such a node are done, others do not plan for each of its words, and nothing is left when it is gone. */
static void lie_of(const struct lie_of_rates *what)
{
    struct lie_of_rates lie = *what, nothing = {.numbers = 0};
    const struct sim_setup setup = {.dims = "3x3",
                                    .seed = 1,
                                    .latency = 100 * 1000,
                                    .rate = RATE,
                                    .on_bytes = state_false_rates,
                                    .context = &lie};
    struct sim *sim = sim_new(&setup);
    uint64_t most = PLAN_RATES_AT_ONCE + LIES_TIME / PLAN_RATES_HOLD + 1, exchanges = 0;

    lie.numbers = 0;
    sim_run_until_whole(sim);
    sim_pass(sim, 1 * SECONDS);
    lie.numbers = what->numbers;
    sim_set_lying(sim, LIAR, true);
    const uint64_t end = sim_now(sim) + LIES_TIME;
    say_again(sim, &lie);
    while (sim_now(sim) < end) {
        (void)exchange_of(sim, "auto", 1000);
        exchanges++;
        sim_pass(sim, 4 * SECONDS);
    }
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (rank != LIAR && sim_exchanges(sim, rank)->rates.changes > most)
            sim_violated(sim, "plans do not follow a liar", "%" PRIu64 " changes at node %u",
                         sim_exchanges(sim, rank)->rates.changes, rank);
    assert_true(exchanges > 3 && lie.told > 500);
    lie = nothing;
    sim_set_lying(sim, LIAR, false);
    sim_kill(sim, LIAR, SIM_CRASH);
    sim_restart(sim, LIAR);
    sim_run_until_whole(sim);
    assert_true(sim_run(sim, 2 * PLAN_RATES_HOLD, knows_the_truth, NULL));
    sim_free(sim);
}

TEST(a_node_that_lies_about_rates)
{
    for (size_t i = 0; i < sizeof lies_of_rates / sizeof *lies_of_rates; i += SIM_SHARE)
        lie_of(&lies_of_rates[i]);
}

#define MOST_KBIT (64 * 20000u) /* the median is 20 Mbit/s: see FASTEST in damage.c */

/* Starts a torus in which LIAR and the next node state this rate of their links, truly or not. 0: the true one. Returns how
 * many bytes of an exchange cross the link between them. */
static uint64_t drawn(uint32_t kbit, bool lies)
{
    struct lie_of_rates lie = {.liars = 2, .number = {kbit}};
    struct sim *sim = SIM_WHOLE(.dims = "3x3", .seed = 1, .latency = 100 * 1000, .rate = RATE,
                                .on_bytes = state_false_rates, .context = &lie);
    const unsigned port = 2, back = torus_port_opposite(sim_torus(sim), port); /* +1, -1 */

    for (uint32_t rank = LIAR; rank <= LIAR + 1; rank++) {
        sim_set_lying(sim, rank, lies);
        for (unsigned i = 0; i < 4 && !lies && kbit > 0; i++)
            router_set_nominal(sim_router(sim, rank), i,
                               (struct nominal_rate){kbit / 1e3, kbit / 1e3});
        sim_settle(&sim->node[rank]);
    }
    lie.numbers = lies;
    say_again(sim, &lie);
    sim_pass(sim, 2 * SECONDS);
    assert_true(kbit == 0 || router_channel_rate(sim_router(sim, 0), LIAR, port) == kbit);
    const struct exchange_node_report *node = exchange_of(sim, "auto", 65536)->result.node;
    const uint64_t bytes = node[LIAR].port[port].tx_bytes + node[LIAR + 1].port[back].tx_bytes;
    lie.numbers = 0;
    sim_free(sim);
    return bytes;
}

/* The two ends of a link agree on a false rate: it draws what an honest link of that rate would, a slow one no more than
 * before, and however high the rate is, at most what one of 64 times the median would. */
TEST(a_pair_that_lies_about_its_link)
{
    static const uint32_t numbers[] = {1, 2000, 40000, UINT32_MAX};
    const uint64_t nominal = drawn(0, false);

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const uint32_t kbit = numbers[i];
        const uint64_t bytes = drawn(kbit, true);
        const uint64_t honest = drawn(kbit < MOST_KBIT ? kbit : MOST_KBIT, false);
        print_message("%" PRIu32 " kbit/s: %" PRIu64 " bytes, an honest link %" PRIu64
                      ", at 20 Mbit/s %" PRIu64 "\n",
                      kbit, bytes, honest, nominal);
        assert_true(bytes <= honest);
        assert_true(kbit > 20000 || bytes <= nominal);
    }
}
