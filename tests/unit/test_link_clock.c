/* Clocks compared by heartbeats: the offset is wrong by no more than the error that is reported with it. */
#include "daemon/lib/base/limits.h"
#include "daemon/torusd/router/link_clock.h"
#include "proto/peer/peer_message.h"
#include "tests/support/cmocka.h"

#define US UINT64_C(1000)

static uint64_t chance;

static uint64_t below(uint64_t most)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (chance >> 33) % most;
}

/* Two nodes. Clock of a node at true time t: base + t + t / 1000000 * ppm. */
struct world {
    uint64_t base[2];
    int64_t ppm[2];
    struct link_clock clock[2];
};

static uint64_t clock_at(const struct world *w, unsigned node, uint64_t t)
{
    return w->base[node] + t + (uint64_t)((int64_t)(t / 1000000) * w->ppm[node]);
}

/* Checks what the node knows of the other one. Returns the reported error; 0: nothing is known. */
static uint64_t check(const struct world *w, unsigned node, uint64_t t)
{
    int64_t ahead, truth = (int64_t)(clock_at(w, !node, t) - clock_at(w, node, t));
    uint64_t error;

    if (!link_clock_ahead(&w->clock[node], clock_at(w, node, t), &ahead, &error))
        return 0;
    if ((uint64_t)llabs(ahead - truth) > error)
        fail_msg("at %ju us: the offset is %jd ns, told is %jd +- %ju", (uintmax_t)(t / US),
                 (intmax_t)truth, (intmax_t)ahead, (uintmax_t)error);
    return error;
}

/* Exchanges heartbeats for two minutes: each arrives after `least` to `most` nanoseconds. Returns the error at the end. */
static uint64_t exchange(struct world *w, uint64_t interval, uint64_t least, uint64_t most)
{
    uint64_t sends[2] = {0, interval / 3}, arrives[2] = {UINT64_MAX, UINT64_MAX}, error = 0;
    struct peer_heartbeat beat[2];

    for (uint64_t t = 0; t < 120 * SECONDS;) {
        for (unsigned node = 0; node < 2; node++) {
            if (t == arrives[node]) {
                link_clock_take(&w->clock[!node], &beat[node], clock_at(w, !node, t));
                arrives[node] = UINT64_MAX;
            }
            if (t == sends[node]) {
                beat[node] = (struct peer_heartbeat){.at = 0};
                link_clock_fill(&w->clock[node], &beat[node], clock_at(w, node, t));
                sends[node] += interval;
                arrives[node] = t + least + below(most - least + 1);
            }
        }
        error = check(w, 0, t);
        (void)check(w, 1, t);
        t = sends[0] < sends[1] ? sends[0] : sends[1];
        for (unsigned node = 0; node < 2; node++)
            t = arrives[node] < t ? arrives[node] : t;
    }
    return error;
}

TEST(the_truth_is_within_the_error)
{
    static const struct {
        uint64_t interval, least, most;
    } links[] = {
        {500 * MILLISECONDS, 20 * US, 60 * US},
        {1 * SECONDS, 5 * US,
         10 * US}, /* heartbeats are held for much longer than they are on their way */
        {100 * MILLISECONDS, 100 * US, 90 * MILLISECONDS},
        {1 * SECONDS, 0, 900 * MILLISECONDS},
    };

    for (unsigned run = 0; run < 200; run++) {
        struct world w = {.base = {1 + below(UINT64_C(1) << 50), 1 + below(UINT64_C(1) << 50)}};
        unsigned k = run % 4;
        chance += run;
        w.ppm[0] = (int64_t)below(49) - 24; /* together at most 50 */
        w.ppm[1] = (int64_t)below(49) - 24;
        uint64_t error = exchange(&w, links[k].interval, links[k].least, links[k].most);
        assert_true(error > 0);
        /* The best of many measurements counts if it is not older than a minute. */
        assert_true(error < (links[k].least + links[k].most) / 2 + 4 * MILLISECONDS);
    }
}

/* A fast clock holds a heartbeat for longer than it was away by the slow clock. */
TEST(a_faster_clock_is_known)
{
    struct world w = {.base = {5 * SECONDS, 77 * SECONDS}, .ppm = {-24, 24}};

    assert_true(exchange(&w, 2 * SECONDS, 1, 2) > 0);
    assert_true(w.clock[0].known && w.clock[1].known);
}

/* The error is never less than what the time on the way allows. */
TEST(ways_of_different_length_are_in_the_error)
{
    struct link_clock c = {.known = false};
    int64_t ahead;
    uint64_t error;

    /* Sent at 1000 us; 30 us there, held 500 us, 70 us back. The other clock is 1 s ahead. */
    link_clock_take(&c,
                    &(struct peer_heartbeat){
                        .at = 1 * SECONDS + 1530 * US, .echo = 1000 * US, .held = 500 * US},
                    1600 * US);
    assert_true(link_clock_ahead(&c, 1600 * US, &ahead, &error));
    assert_int_equal(ahead, (int64_t)(1 * SECONDS) - 20 * (int64_t)US);
    assert_in_range(error, 50 * US, 50 * US + 100);
    /* A minute later it may be wrong by 3 ms more. */
    assert_true(link_clock_ahead(&c, 60 * SECONDS + 1600 * US, &ahead, &error));
    assert_in_range(error, 3050 * US, 3051 * US);
    /* A longer path changes nothing at first; after a minute it does. */
    const struct peer_heartbeat later = {.at = 62 * SECONDS, .echo = 59 * SECONDS, .held = 0};
    link_clock_take(&c, &later, 60 * SECONDS);
    assert_true(link_clock_ahead(&c, 60 * SECONDS, &ahead, &error));
    assert_in_range(error, 3050 * US - 100, 3050 * US);
    const struct peer_heartbeat latest = {.at = 65 * SECONDS, .echo = 63 * SECONDS, .held = 0};
    link_clock_take(&c, &latest, 64 * SECONDS);
    assert_true(link_clock_ahead(&c, 64 * SECONDS, &ahead, &error));
    assert_in_range(error, 500 * MILLISECONDS, 501 * MILLISECONDS);
}

/* A heartbeat that was so long on its way here, and that answers one that was so long on its way there. */
static void hear(struct link_clock *c, uint64_t now, uint64_t in, uint64_t out)
{
    const uint64_t ahead = 77 * SECONDS, held = 30 * MILLISECONDS;

    link_clock_take(c,
                    &(struct peer_heartbeat){
                        .at = now + ahead - in, .echo = now - in - held - out, .held = held},
                    now);
}

TEST(acknowledgements_wait_behind_what_the_neighbour_sends)
{
    const uint64_t beat = 250 * MILLISECONDS, now = 100 * SECONDS;
    struct link_clock c = {.known = false};

    assert_false(link_clock_acks_wait(&c, beat, now));
    hear(&c, now, 50 * US, 50 * US);
    assert_false(link_clock_acks_wait(&c, beat, now));
    hear(&c, now, 400 * MILLISECONDS, 60 * MILLISECONDS);
    assert_true(link_clock_acks_wait(&c, beat, now));
    hear(&c, now, 60 * MILLISECONDS, 400 * MILLISECONDS); /* seen from the other end */
    assert_false(link_clock_acks_wait(&c, beat, now));
    hear(&c, now, 400 * MILLISECONDS, 300 * MILLISECONDS); /* both directions are as slow */
    assert_false(link_clock_acks_wait(&c, beat, now));
    hear(&c, now, 900 * US, 50 * US); /* nothing waits */
    assert_false(link_clock_acks_wait(&c, beat, now));
    assert_false(link_clock_acks_wait(&c, beat, now + beat));
    assert_true(link_clock_acks_wait(&c, beat, now + beat + 2 * MILLISECONDS)); /* overdue */
}

TEST(nonsense_is_ignored)
{
    const uint64_t now = 100 * SECONDS;
    const struct peer_heartbeat nonsense[] = {
        {.at = 0},                                           /* an older version */
        {.at = 0, .echo = 5, .held = 5},                     /* the same */
        {.at = 50, .echo = 0, .held = 0},                    /* nothing has arrived there yet */
        {.at = 50 * SECONDS, .echo = now + 1, .held = 0},    /* not sent yet */
        {.at = 50 * SECONDS, .echo = UINT64_MAX, .held = 1}, /* the same */
        {.at = 50, .echo = 10, .held = 51},                  /* held before its clock began */
        {.at = 50 * SECONDS, .echo = now - 5, .held = 9 * SECONDS}, /* held before it was sent */
        {.at = UINT64_MAX, .echo = now, .held = UINT64_MAX},
        {.at = 50 * SECONDS, .echo = now - 11 * SECONDS, .held = 0}, /* too long on the way */
    };

    for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
        struct link_clock c = {.known = false};
        int64_t ahead;
        uint64_t error;
        link_clock_take(&c, &nonsense[i], now);
        assert_false(link_clock_ahead(&c, now, &ahead, &error));
    }
    for (unsigned i = 0; i < 100000; i++) { /* anything: no overflow is undefined */
        struct link_clock c = {.known = false};
        int64_t ahead;
        uint64_t error;
        const uint64_t at = below(2) == 0 ? UINT64_MAX - below(10) : below(200) * SECONDS;
        link_clock_take(&c,
                        &(struct peer_heartbeat){
                            .at = at, .echo = below(150) * SECONDS, .held = below(90) * SECONDS},
                        now);
        (void)link_clock_ahead(&c, now + below(1000) * SECONDS, &ahead, &error);
        (void)link_clock_acks_wait(&c, below(10) * SECONDS, now + below(1000) * SECONDS);
    }
}
