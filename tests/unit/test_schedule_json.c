/* The schedules on pages: messages are those of the routes, and steps have the papers' names. */
#include "client/cli/animation/animation.h"

#include "client/cli/animation/phase_name.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/plan.h"
#include "tests/support/cmocka.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One block in one message. */
struct moved {
    uint32_t step, node, port, hops, block;
};

struct moves {
    struct moved *list;
    size_t count, room;
};

static void add(struct moves *m, struct moved one)
{
    if (m->count == m->room) {
        m->room = 2 * m->room + 64;
        m->list = realloc(m->list, m->room * sizeof *m->list);
        assert_non_null(m->list);
    }
    m->list[m->count++] = one;
}

static int by_all(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct moved));
}

/* Sorts, and removes what is there twice: routes of an allgather share legs. */
static void order(struct moves *m)
{
    size_t kept = 0;

    if (m->count == 0)
        return;
    qsort(m->list, m->count, sizeof *m->list, by_all);
    for (size_t i = 0; i < m->count; i++)
        if (kept == 0 || memcmp(&m->list[i], &m->list[kept - 1], sizeof *m->list) != 0)
            m->list[kept++] = m->list[i];
    m->count = kept;
}

static void add_route(struct moves *m, const struct torus *t, const struct algorithm *a,
                      uint32_t source, uint32_t destination, uint32_t segment)
{
    struct leg *legs = calloc(algorithm_max_legs(a, t) + 1u, sizeof *legs);
    uint32_t count = algorithm_route(a, t, source, destination, segment, legs), at = source;
    uint32_t block = segment * t->nodes + source;

    if (a->operation == OPERATION_EXCHANGE)
        block = block * t->nodes + destination;
    for (uint32_t i = 0; i < count; i++) {
        unsigned port = torus_port(t, legs[i].dim, legs[i].direction);
        add(m, (struct moved){legs[i].step, at, port, legs[i].hops, block});
        for (unsigned hop = 0; hop < legs[i].hops; hop++)
            at = torus_neighbour(t, at, port);
    }
    assert_int_equal(at, destination);
    free(legs);
}

static uint32_t number(const json_t *array, size_t index)
{
    return (uint32_t)json_integer_value(json_array_get(array, index));
}

static void add_json(struct moves *m, const json_t *schedule)
{
    json_t *step, *message;
    size_t s, k;

    json_array_foreach(json_object_get(schedule, "steps"), s, step)
        json_array_foreach(json_object_get(step, "messages"), k, message)
    {
        assert_true(json_array_size(message) > 3);
        for (size_t i = 3; i < json_array_size(message); i++)
            add(m, (struct moved){(uint32_t)s, number(message, 0), number(message, 1),
                                  number(message, 2), number(message, i)});
    }
}

static json_t *make(const struct torus *t, const char *name, uint32_t source, uint64_t *blocks)
{
    static struct schedule_report report;
    const struct animated a = {.algorithm = algorithm_find(name), .report = &report};
    struct error e;

    assert_non_null(a.algorithm);
    if (schedule_verify(t, a.algorithm, &report, &e) != 0)
        fail_msg("%s: %s", name, e.text);
    json_t *o = schedule_json(t, &a, source, blocks, &e);
    if (o == NULL)
        fail_msg("%s: %s", name, e.text);
    assert_int_equal(json_integer_value(json_object_get(o, "startups")), report.startups);
    return o;
}

/* Checks the messages of a schedule; only of `source`, unless it is TORUS_NO_NODE. */
static void check(const char *dims, const char *name, uint32_t source)
{
    struct moves expected = {.count = 0}, found = {.count = 0};
    const struct algorithm *a = algorithm_find(name);
    struct torus t;
    uint64_t blocks = 0;

    assert_int_equal(torus_parse(&t, dims, NULL), 0);
    if (algorithm_accepts(a, &t, NULL) != 0)
        fail_msg("%s does not take %s", name, dims);
    for (uint32_t from = 0; from < t.nodes; from++)
        for (uint32_t to = 0; to < t.nodes && (source == TORUS_NO_NODE || from == source); to++)
            for (uint32_t segment = 0; from != to && segment < a->segments; segment++)
                add_route(&expected, &t, a, from, to, segment);
    json_t *o = make(&t, name, source, &blocks);
    add_json(&found, o);
    assert_int_equal(blocks, found.count);
    order(&expected);
    order(&found);
    assert_int_equal(blocks, found.count); /* none is there twice */
    assert_int_equal(found.count, expected.count);
    for (size_t i = 0; i < found.count; i++)
        assert_memory_equal(&found.list[i], &expected.list[i], sizeof found.list[i]);
    json_decref(o);
    free(expected.list);
    free(found.list);
}

TEST(messages_are_those_of_the_routes)
{
    static const char *const cases[][2] = {
        {"8", "ar"},       {"4x4", "at2"},       {"3x5", "at2"},       {"4x4", "direct"},
        {"3x4", "stream"}, {"3x4x2", "dim"},     {"8x8", "at2-1port"}, {"6x6", "mt"},
        {"4mx3", "a2"},    {"complete:5", "a2"}, {"4x4", "disjoint"},  {"4x5", "saadschultz"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check(cases[i][0], cases[i][1], TORUS_NO_NODE);
        check(cases[i][0], cases[i][1], 4);
    }
}

TEST(too_many_blocks_are_refused)
{
    struct schedule_report report = {.startups = 1};
    const struct animated a = {.algorithm = algorithm_find("direct"), .report = &report};
    struct torus t;
    struct error e;
    uint64_t blocks = 0;

    assert_int_equal(torus_parse(&t, "24x24", NULL), 0);
    assert_null(schedule_json(&t, &a, TORUS_NO_NODE, &blocks, &e));
    assert_int_equal(e.code, ERROR_REFUSED);
    assert_non_null(strstr(e.text, "--source"));
    blocks = 0;
    json_t *o = schedule_json(&t, &a, 3, &blocks, &e);
    assert_non_null(o);
    assert_true(blocks > 0);
    json_decref(o);
}

/* --- names --- */

static uint32_t startups_of(const struct torus *t, const char *name)
{
    struct schedule_report report;

    assert_int_equal(schedule_verify(t, algorithm_find(name), &report, NULL), 0);
    return report.startups;
}

/* How many of the steps have a name that begins so. */
static uint32_t count_named(const struct torus *t, const char *algorithm, const char *begin)
{
    uint32_t count = 0, steps = startups_of(t, algorithm);

    for (uint32_t step = 0; step < steps + 4; step++) {
        char name[PHASE_NAME_SIZE];
        phase_name(algorithm_find(algorithm), t, step, name);
        if (step < steps && name[0] == '\0')
            fail_msg("%s on %u nodes: step %u has no name", algorithm, (unsigned)t->nodes,
                     (unsigned)step);
        count += step < steps && strncmp(name, begin, strlen(begin)) == 0;
    }
    return count;
}

/* Paper 001: stage 1 is a step, stage 2 has floor(p/4), stage 3 has ceil(p/4) - 1. */
TEST(stages_of_ar)
{
    for (uint32_t p = 4; p <= 24; p += 2) {
        char dims[16];
        struct torus t;
        (void)snprintf(dims, sizeof dims, "%u", (unsigned)p);
        assert_int_equal(torus_parse(&t, dims, NULL), 0);
        assert_int_equal(count_named(&t, "ar", "Stage 1:"), 1);
        assert_int_equal(count_named(&t, "ar", "Stage 2,"), p / 4);
        assert_int_equal(count_named(&t, "ar", "Stage 3,"), (p + 3) / 4 - 1);
    }
}

/* Two steps of phase 1, c/4 of each of the others. */
TEST(phases_of_at2)
{
    static const char *const tori[] = {"4x4",  "8x8",   "8x4",   "12x12",
                                       "8x12", "16x16", "32x12", "8x16"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t;
        uint32_t longest = 0;
        assert_int_equal(torus_parse(&t, tori[i], NULL), 0);
        for (unsigned d = 0; d < t.dims; d++)
            longest = t.size[d] > longest ? t.size[d] : longest;
        assert_int_equal(count_named(&t, "at2", "Phase 1, step"), 2);
        assert_int_equal(count_named(&t, "at2", "Phase 2,"), longest / 4);
        assert_int_equal(count_named(&t, "at2", "Phase 3,"), longest / 4);
        assert_int_equal(startups_of(&t, "at2"), 2 + longest / 2);
    }
}

/* A swap, ceil(p/4) - 1 rotations, a swap; in the other algorithms in as many rounds as there are dimensions. */
TEST(rounds_of_one_port)
{
    struct torus t;

    assert_int_equal(torus_parse(&t, "12", NULL), 0);
    assert_int_equal(count_named(&t, "ar1", "Even nodes swap"), 1);
    assert_int_equal(count_named(&t, "ar1", "Rotation"), 2);
    assert_int_equal(count_named(&t, "ar1", "Swap with"), 1);
    assert_int_equal(torus_parse(&t, "16x16", NULL), 0);
    for (unsigned round = 1; round <= 2; round++) {
        char begin[40];
        (void)snprintf(begin, sizeof begin, "Phase 1, round %u of 2: ", round);
        assert_int_equal(count_named(&t, "at2-1port", begin), 8 / 4 + 1);
        assert_int_equal(count_named(&t, "mt", begin), 8 / 4 + 1);
    }
    assert_int_equal(count_named(&t, "at2-1port", "Phase 2, step") + 6,
                     startups_of(&t, "at2-1port"));
    assert_int_equal(torus_parse(&t, "12x12x12", NULL), 0);
    assert_int_equal(count_named(&t, "mt", "Phase 1, round 3 of 3: "), 4 / 4 + 1);
    assert_true(count_named(&t, "mt", "Phase 2, step") > 0);
}

/* What a name says of the directions is true of the messages. */
TEST(names_say_what_happens)
{
    static const char *const tori[] = {"8", "12", "20", "8x8", "12x12", "8x12", "32x12", "16x8"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t;
        uint64_t blocks = 0;
        json_t *step, *message;
        size_t s, k;
        assert_int_equal(torus_parse(&t, tori[i], NULL), 0);
        json_t *o = make(&t, t.dims == 1 ? "ar" : "at2", TORUS_NO_NODE, &blocks);
        json_array_foreach(json_object_get(o, "steps"), s, step)
        {
            const char *name = json_string_value(json_object_get(step, "name"));
            bool plus = strstr(name, "even nodes send +") != NULL;
            if (!plus && strstr(name, "even nodes send -") == NULL)
                continue;
            json_array_foreach(json_object_get(step, "messages"), k, message)
            {
                uint32_t at[TORUS_MAX_DIMS];
                unsigned port = number(message, 1), dim = torus_port_dim(&t, port);
                torus_coordinates(&t, number(message, 0), at);
                uint32_t ring_place = t.dims == 1 ? at[0] : at[dim] / 2;
                if ((torus_port_direction(&t, port) > 0) != (plus == (ring_place % 2 == 0)))
                    fail_msg("%s, step %zu: \"%s\": node %u sends by port %u", tori[i], s, name,
                             (unsigned)number(message, 0), port);
                /* "nodes with x + y even along dimension 1" */
                if (t.dims == 2)
                    assert_int_equal(dim, strncmp(name, "Phase 2", 7) == 0 ? (at[0] + at[1] + 1) % 2
                                                                           : (at[0] + at[1]) % 2);
            }
        }
        json_decref(o);
    }
}

/* The only dimension of the messages of all nodes in a step; torus dims: more than one. */
static unsigned dim_of_step(const struct torus *t, const struct algorithm *a, uint32_t step)
{
    unsigned dim = t->dims;

    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        struct plan plan;
        assert_int_equal(plan_build(&plan, t, a, rank, NULL), 0);
        for (uint32_t i = 0; i < plan.sends; i++) {
            if (plan.send[i].step != step)
                continue;
            const unsigned own = torus_port_dim(t, plan.send[i].port);
            assert_true(dim == t->dims || dim == own);
            dim = own;
        }
        plan_free(&plan);
    }
    return dim;
}

/* Each step with a name has a reason, which fits; and a dimension in a reason is that of the messages. */
TEST(reasons_of_steps)
{
    static const char *const cases[][2] = {
        {"12", "ar"},      {"8x8", "at2"},       {"8x12", "at2"},
        {"12", "ar1"},     {"8x8", "at2-1port"}, {"12x12x6", "mt"},
        {"3x4x5m", "dim"}, {"4x6", "pair"},      {"4x4", "direct"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct algorithm *a = algorithm_find(cases[i][1]);
        struct torus t;
        assert_int_equal(torus_parse(&t, cases[i][0], NULL), 0);
        const uint32_t steps = startups_of(&t, cases[i][1]);
        for (uint32_t step = 0; step < steps; step++) {
            char reason[PHASE_REASON_SIZE], dim[16];
            phase_reason(a, &t, step, reason);
            if (reason[0] == '\0' || strlen(reason) + 1 == PHASE_REASON_SIZE)
                fail_msg("%s on %s: step %u: '%s'", cases[i][1], cases[i][0], (unsigned)step,
                         reason);
            if (strstr(reason, "in dimension ") == NULL)
                continue;
            (void)snprintf(dim, sizeof dim, "dimension %u", dim_of_step(&t, a, step));
            assert_non_null(strstr(reason, dim));
        }
    }
}

/* On a padded torus, and for algorithms whose papers have no phases, steps have no names. */
TEST(no_names)
{
    static const char *const cases[][2] = {
        {"9", "ar"},   {"5x5", "at2"},    {"6x6", "at2-1port"},
        {"5x5", "mt"}, {"8x8", "direct"}, {"7", "ar1"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct torus t;
        char name[PHASE_NAME_SIZE];
        assert_int_equal(torus_parse(&t, cases[i][0], NULL), 0);
        phase_name(algorithm_find(cases[i][1]), &t, 0, name);
        assert_string_equal(name, "");
    }
}
