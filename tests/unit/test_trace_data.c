/* Trace files from others: whatever they hold, they are read or refused, and a page is made of them. */
#include <unistd.h>

#include "client/cli/animation/animation.h"
#include "client/cli/animation/phase_name.h"
#include "client/cli/reporting/findings.h"
#include "client/cli/reporting/report_page.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/plan.h"
#include "tests/support/cmocka.h"
#include "tests/unit/trace_fixture.h"

SEEDS(15);

static uint64_t chance;

static size_t below(size_t most)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(chance >> 33) % most;
}

TEST(a_trace_is_read)
{
    json_t *file = trace_fixture_new("2x3");
    struct trace_data d;
    struct error e;

    (void)json_object_del(trace_fixture_node(file, 4), "used");
    trace_fixture_add_event(file, 1, 0.5, TORUS_TRACE_STEP, 3, 0);
    assert_int_equal(trace_fixture_read(file, &d, &e), 0);
    assert_int_equal(d.torus.nodes, 6);
    assert_string_equal(d.id, "0-1-2");
    assert_false(d.node[4].traced);
    assert_string_equal(d.node[4].name, "host4");
    assert_true(d.node[1].traced);
    assert_int_equal(d.node[1].port[0].neighbour, torus_neighbour(&d.torus, 1, 0));
    assert_true(d.node[1].port[0].bytes == 1e6 * TRACE_FIXTURE_INTERVALS);
    double busy = d.node[1].port[0].state[TORUS_TRACE_LINK];
    assert_true(busy > 0.599 && busy < 0.601);
    assert_int_equal(json_array_size(d.node[1].events), 1);
    trace_data_free(&d);
}

/* Refused, with the member's name. */
static void check_refused(json_t *file, const char *word)
{
    struct trace_data d;
    struct error e;

    assert_fails(trace_fixture_read(file, &d, &e), e, ERROR_USAGE, word);
}

TEST(what_does_not_fit_is_refused)
{
    static const char *const lists[] = {"sent",   "received", "queue",   "unacked", "resent",
                                        "state",  "used",     "delayed", "writing", "neighbour",
                                        "loaded", "drained",  "no_room", "carried"};
    static const char *const times[] = {"began", "ended", "interval", "clock_error"};
    json_t *file;

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        char quoted[32];
        /* A change of "used" is a change of the number of intervals. */
        bool counts = strcmp(lists[i], "used") == 0;
        (void)snprintf(quoted, sizeof quoted, "\"%s\"", lists[i]);
        file = trace_fixture_new("4");
        (void)json_array_remove(json_object_get(trace_fixture_node(file, 2), lists[i]), 0);
        check_refused(file, counts ? "node 2" : quoted);
        file = trace_fixture_new("4");
        trace_fixture_set(file, 2, lists[i], 0, -1);
        check_refused(file, quoted);
        file = trace_fixture_new("4");
        (void)json_array_set_new(json_object_get(trace_fixture_node(file, 2), lists[i]), 0,
                                 json_string("<b>"));
        check_refused(file, quoted);
    }
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        file = trace_fixture_new("4");
        (void)json_object_set_new(trace_fixture_node(file, 0), times[i], json_string("1"));
        check_refused(file, times[i]);
    }
}

TEST(contradictions_are_refused)
{
    static const double lengths[] = {-1, 1e300};
    json_t *file;

    file = trace_fixture_new("4");
    trace_fixture_set(file, 1, "state", 3, 256);
    check_refused(file, "\"state\"");
    file = trace_fixture_new("4");
    (void)json_object_set_new(trace_fixture_node(file, 1), "interval", json_real(0));
    check_refused(file, "\"interval\"");
    file = trace_fixture_new("4");
    (void)json_object_set_new(trace_fixture_node(file, 1), "interval", json_real(1e308));
    check_refused(file, "\"interval\"");
    file = trace_fixture_new("4");
    trace_fixture_set(file, 1, "neighbour", 0, 3);
    check_refused(file, "\"neighbour\"");
    file = trace_fixture_new("6x6"); /* cables that a mesh does not have */
    (void)json_object_set_new(json_object_get(file, "torusd"), "dims", json_string("6mx6m"));
    check_refused(file, "\"neighbour\"");
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        file = trace_fixture_new("4");
        (void)json_object_set_new(json_object_get(file, "torusd"), "seconds",
                                  json_real(lengths[i]));
        check_refused(file, "\"seconds\"");
    }
    file = trace_fixture_new("4");
    (void)json_array_append_new(json_object_get(trace_fixture_node(file, 1), "events"),
                                json_pack("[f, i, i, s]", 0.5, 1, 2, "<i>"));
    check_refused(file, "\"events\"");
    file = trace_fixture_new("4");
    (void)json_object_set_new(json_object_get(file, "torusd"), "dims", json_string("2x3"));
    check_refused(file, "do not fit together");
    file = trace_fixture_new("4");
    (void)json_object_set_new(json_object_get(file, "torusd"), "version", json_integer(2));
    check_refused(file, "version 1");
}

TEST(other_files_are_refused)
{
    static const struct {
        const char *text;
        enum error_code code;
    } files[] = {{"", ERROR_USAGE},
                 {"{", ERROR_USAGE},
                 {"[]", ERROR_USAGE},
                 {"{}", ERROR_USAGE},
                 {"null", ERROR_USAGE},
                 {"\x80\xff", ERROR_USAGE},
                 {"{\"torusd\": 5}", ERROR_USAGE},
                 {"{\"torusd\": {\"version\": 1, \"dims\": \"1000000x1000000\"}}", ERROR_USAGE}};
    struct trace_data d;
    struct error e;

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *path = file_of(files[i].text, strlen(files[i].text));
        assert_int_equal(trace_data_read(&d, path, &e), -1);
        assert_int_equal(e.code, files[i].code);
        assert_int_equal(unlink(path), 0);
        assert_null(d.file);
    }
    assert_fails(trace_data_read(&d, "/nonexistent/trace", &e), e, ERROR_IO, "");
}

/* Changes some bytes: digits to other digits, any byte to one that is common in JSON or to any other, or moves some. */
static void mutate(char *text, size_t length)
{
    static const char common[] = "0123456789{}[],:\"-.eE \\";

    for (size_t i = 1 + below(3); i-- > 0;) {
        size_t at = below(length), size = below(length - at < 20 ? length - at : 20);
        switch (below(8)) {
        case 0:
            text[at] = common[below(sizeof common - 1)];
            break;
        case 1:
            text[at] = (char)below(256);
            break;
        case 2:
            memmove(text + at, text + below(length - size), size);
            break;
        default:
            if (text[at] >= '0' && text[at] <= '9')
                text[at] = common[below(10)];
            break;
        }
    }
}

/* If the file is still a trace, everything that torusctl makes of a trace is made. */
TEST(random_changes)
{
    json_t *file = trace_fixture_new("2x2");
    const unsigned tries = 40 * (unsigned)seeds;
    unsigned accepted = 0;
    struct finding list[FINDINGS_MOST];
    const struct cli cli = {.json = false};

    trace_fixture_add_event(file, 1, 0.5, TORUS_TRACE_CALL_BEGUN, 3, 0);
    trace_fixture_add_event(file, 1, 0.6, TORUS_TRACE_CALL_ENDED, 3, 0);
    char *text = json_dumps(file, JSON_COMPACT);
    size_t length = strlen(text);
    json_decref(file);
    char *changed = malloc(length);
    chance = 99 + first_seed;
    for (unsigned i = 0; i < tries; i++) {
        struct trace_data d;
        struct error e;
        memcpy(changed, text, length);
        mutate(changed, length);
        const char *path = file_of(changed, below(10) == 0 ? below(length) : length);
        int r = trace_data_read(&d, path, &e);
        if (r != 0)
            assert_true(e.code == ERROR_USAGE && e.text[0] != '\0');
        if (r == 0) {
            assert_in_range(findings_make(&d, list), 1, FINDINGS_MOST);
            if (accepted++ % 16 == 0)
                assert_int_equal(report_page_write(&cli, path, &d), EXIT_DONE);
            trace_data_free(&d);
        }
        assert_int_equal(unlink(path), 0);
    }
    assert_true(accepted > tries / 20);
    free(changed);
    free(text);
}

/* A name, an id and states of a file are text on the page, and unknown members do not come there. */
TEST(texts_stay_texts)
{
    const char *evil = "</script><img src=x onerror=alert(1)>";
    json_t *file = trace_fixture_new("2x2"), *own = json_object_get(file, "torusd");
    const struct cli cli = {.json = false};
    struct trace_data d;
    struct error e;
    char *page = NULL;
    size_t length = 0;

    (void)json_object_set_new(trace_fixture_node(file, 0), "name", json_string(evil));
    (void)json_object_set_new(own, "id", json_string(evil));
    (void)json_object_set_new(own, "run",
                              json_pack("{s:s, s:s}", "seconds", evil, "other", "OTHER"));
    (void)json_object_set_new(own, "states", json_pack("[s, s]", "STATE", evil));
    assert_int_equal(trace_fixture_read(file, &d, &e), 0);
    const char *path = file_of("", 0);
    assert_int_equal(report_page_write(&cli, path, &d), EXIT_DONE);
    trace_data_free(&d);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    assert_true(getdelim(&page, &length, '\0', in) > 0);
    (void)fclose(in);
    assert_null(strstr(page, evil));
    assert_null(strstr(page, "<img"));
    assert_null(strstr(page, "OTHER"));
    assert_null(strstr(page, "STATE\""));
    assert_null(strstr(page, "\"run\":{\"seconds\""));
    assert_contains(page, "\\u003c/script>");
    free(page);
    assert_int_equal(unlink(path), 0);
}

/* As programs write it that have one type for all numbers. */
TEST(numbers_without_a_fraction)
{
    json_t *file = trace_fixture_new("4");
    json_t *node = trace_fixture_node(file, 2), *own = json_object_get(file, "torusd");
    struct trace_data d;
    struct error e;

    (void)json_object_set_new(node, "began", json_integer(0));
    (void)json_object_set_new(node, "ended", json_integer(1));
    (void)json_object_set_new(node, "interval", json_integer(1));
    (void)json_object_set_new(own, "seconds", json_integer(1));
    (void)json_array_append_new(json_object_get(node, "events"),
                                json_pack("[i, i, i, i]", 0, TORUS_TRACE_STEP, 3, 0));
    assert_int_equal(trace_fixture_read(file, &d, &e), 0);
    assert_true(d.seconds == 1);
    assert_true(d.node[2].ended == 1);
    trace_data_free(&d);
}

/* The report prints names on terminals. */
TEST(names_do_not_command_terminals)
{
    json_t *file = trace_fixture_new("4");
    struct trace_data d;
    struct error e;

    (void)json_object_set_new(trace_fixture_node(file, 2), "name", json_string("a\x1b[31mred"));
    (void)json_object_del(trace_fixture_node(file, 3), "used");
    (void)json_object_set_new(trace_fixture_node(file, 3), "name", json_string("b\r"));
    (void)json_object_set_new(json_object_get(file, "torusd"), "id", json_string("\x1b]0;x\x07"));
    assert_int_equal(trace_fixture_read(file, &d, &e), 0);
    assert_string_equal(d.node[2].name, "a?[31mred");
    assert_string_equal(d.node[3].name, "b?");
    assert_string_equal(d.id, "?]0;x?");
    trace_data_free(&d);
}

/* The schedules on pages: messages are those of the routes, and steps have the papers' names. */

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
    assert_contains(e.text, "--source");
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

/* The messages go in the directions that the name states. */
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
            assert_contains(reason, dim);
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
