/* Which of two calibrations is newer, whatever versions and times they claim. */
#include "daemon/torusd/planning/calibration.h"
#include "tests/support/cmocka.h"

static uint64_t random_state;

static uint64_t any(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state ^ random_state >> 29;
}

static uint32_t below(uint32_t limit)
{
    return (uint32_t)(any() >> 20) % limit;
}

static const struct predict_costs costs = {1e-6, 2e-6, 3e6, 0, 0};

static struct calibration set(const struct calibration *known, uint64_t id)
{
    struct calibration c = calibration_after(known, id);

    c.measured_at = 5;
    c.costs = costs;
    assert_int_equal(calibration_check(&c, NULL), 0);
    return c;
}

TEST(a_newer_calibration_replaces_an_older_one)
{
    const struct calibration highest = {.id = UINT64_MAX,
                                        .version = UINT32_MAX,
                                        .measured_at = CALIBRATION_TIME_MOST,
                                        .costs = {60, 60, 1e14}};
    struct calibration reset = calibration_after(&highest, 1), mine = highest;

    assert_int_equal(reset.version, UINT32_MAX);
    assert_true(calibration_newer(&reset, &highest));
    assert_false(calibration_newer(&highest, &reset));
    assert_int_equal(calibration_merge(&mine, &reset), CALIBRATION_TAKEN);
    assert_int_equal(mine.id, 1);
    assert_int_equal(calibration_merge(&mine, &reset), CALIBRATION_SAME);
    assert_int_equal(calibration_merge(&mine, &highest), CALIBRATION_OUTDATED);
    assert_int_equal(mine.id, 1);
    /* And the next calibration, and a node that has missed both. */
    struct calibration next = set(&mine, 2);
    mine = highest;
    assert_int_equal(calibration_merge(&mine, &next), CALIBRATION_TAKEN);
}

TEST(without_a_relation_the_higher_version_counts)
{
    const struct calibration none = {0};
    struct calibration first = set(&none, 10), second = set(&first, 11), other = set(&none, 12);

    assert_true(calibration_newer(&first, &none));
    assert_true(calibration_newer(&second, &other));
    assert_false(calibration_newer(&other, &second));
    assert_true(calibration_newer(&first, &other) != calibration_newer(&other, &first));
}

TEST(many_are_remembered_the_last_ones_first)
{
    struct calibration c = {0}, old[40];

    for (unsigned i = 0; i < 40; i++) {
        c = set(&c, 100 + i);
        old[i] = c;
    }
    for (unsigned i = 39 - CALIBRATION_REPLACED; i < 39; i++) {
        old[i].version = UINT32_MAX;
        assert_true(calibration_newer(&c, &old[i]));
    }
}

TEST(text_and_back)
{
    char text[CALIBRATION_TEXT_SIZE + 2];
    struct calibration c = {0}, again;

    for (unsigned i = 0; i < 30; i++) {
        c = set(&c, UINT64_MAX - i);
        c.version = UINT32_MAX - i;
        size_t length = calibration_format(&c, text);
        assert_int_equal(strlen(text), length);
        assert_int_equal(calibration_parse(text, &again), 0);
        assert_memory_equal(&c, &again, sizeof c);
        text[length - 1] = ' ';
        assert_int_equal(calibration_parse(text, &again), -1);
    }
}

/* --- nodes in a ring that tell each other, and one that lies --- */

#define NODES 7u

struct message {
    uint32_t from, to;
    struct calibration c;
};

struct ring {
    struct calibration node[NODES];
    struct message queue[100000];
    uint32_t first, count;
};

static void tell(struct ring *r, uint32_t from, uint32_t to)
{
    assert_true(r->count < 100000); /* or they talk for ever */
    r->queue[r->count++] = (struct message){from, to, r->node[from]};
}

static void tell_neighbours(struct ring *r, uint32_t from)
{
    tell(r, from, (from + 1) % NODES);
    tell(r, from, (from + NODES - 1) % NODES);
}

static void deliver(struct ring *r)
{
    struct message *m = &r->queue[r->first + below(r->count - r->first)], now = *m;

    *m = r->queue[r->first++]; /* in any order */
    switch (calibration_merge(&r->node[now.to], &now.c)) {
    case CALIBRATION_SAME:
        break;
    case CALIBRATION_TAKEN:
        tell_neighbours(r, now.to);
        break;
    case CALIBRATION_OUTDATED:
        tell(r, now.to, now.from);
        break;
    }
}

static void lie(struct ring *r, uint32_t to)
{
    const struct calibration *known = &r->node[below(NODES)];
    struct calibration c = *known;

    if (below(2) == 0)
        c = set(known, any() | 1);
    if (below(2) == 0)
        c.id = below(2) == 0 ? UINT64_MAX : known->id | 1;
    if (below(2) == 0)
        c.version = UINT32_MAX - below(3);
    if (below(3) == 0)
        for (unsigned i = 0; i < CALIBRATION_REPLACED; i++)
            c.replaced[i] = below(3) == 0 ? r->node[below(NODES)].id : any();
    if (c.id == 0 || c.version == 0)
        return;
    c.measured_at = 1 + below(3);
    c.costs = costs;
    r->queue[r->count++] = (struct message){(to + 1) % NODES, to, c};
}

/* Whatever lies came before: a calibration that is set at one node is known to all, once all have been told. */
TEST(the_latest_calibration_is_known_to_all)
{
    static struct ring r;

    for (uint64_t seed = 0; seed < 3000; seed++) {
        random_state = seed;
        memset(&r.node, 0, sizeof r.node);
        r.first = r.count = 0;
        for (uint32_t event = below(40); event > 0; event--) {
            uint32_t node = below(NODES);
            if (below(3) == 0) {
                r.node[node] = set(&r.node[node], any() | 1);
                tell_neighbours(&r, node);
            } else if (below(2) == 0) {
                lie(&r, node);
            } else if (r.first < r.count) {
                deliver(&r);
            }
        }
        while (r.first < r.count)
            deliver(&r);
        uint32_t asked = below(NODES);
        r.node[asked] = calibration_after(&r.node[asked], any() | 1);
        tell_neighbours(&r, asked);
        while (r.first < r.count)
            deliver(&r);
        for (uint32_t node = 0; node < NODES; node++) {
            assert_int_equal(r.node[node].id, r.node[asked].id);
            assert_int_equal(r.node[node].measured_at, 0);
        }
    }
}
