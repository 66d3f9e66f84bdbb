/* GOAL: every node's messages are those of its plan, in the order of steps. */
#include "client/cli/schedule_files/goal.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/file/export.h"
#include "daemon/lib/schedule/file/imported.h"
#include "daemon/lib/schedule/plan.h"
#include "tests/support/cmocka.h"

#define BLOCK 1001u /* bytes: not a multiple of any number of segments above 1 */

static uint64_t bytes_of(const struct plan *p, const struct plan_message *m, uint32_t segments)
{
    uint64_t stride = (BLOCK + segments - 1) / segments, sum = 0;

    for (uint32_t i = 0; i < m->blocks; i++) {
        uint64_t begin = p->block[m->first + i].segment * stride;
        if (begin < BLOCK)
            sum += BLOCK - begin < stride ? BLOCK - begin : stride;
    }
    return sum;
}

static void expect_message(FILE *out, const struct torus *t, const struct plan *p,
                           const struct plan_message *m, uint32_t segments, bool sends)
{
    unsigned dim = torus_port_dim(t, m->port),
             port = sends ? m->port : torus_port_opposite(t, m->port);
    uint32_t peer = torus_walk(t, p->rank, dim, torus_port_direction(t, m->port), m->hops);

    (void)fprintf(out, "%s %lub %s %u tag %u nic %u\n", sends ? "send" : "recv",
                  (unsigned long)bytes_of(p, m, segments), sends ? "to" : "from", peer,
                  m->step * TORUS_MAX_PORTS + port, (unsigned)m->port);
}

/* A node's messages by its plan, one in each line. */
static void expect_node(FILE *out, const struct torus *t, const struct algorithm *a, uint32_t rank)
{
    uint32_t send = 0, arrival = 0;
    struct plan p;

    assert_int_equal(plan_build(&p, t, a, rank, NULL), 0);
    (void)fprintf(out, "rank %u {\n", rank);
    for (uint32_t step = 0; step < p.steps; step++) {
        for (; send < p.sends && p.send[send].step == step; send++)
            expect_message(out, t, &p, &p.send[send], a->segments, true);
        for (; arrival < p.arrivals && p.arrival[arrival].step == step; arrival++)
            if (p.arrival[arrival].left == 0)
                expect_message(out, t, &p, &p.arrival[arrival], a->segments, false);
    }
    plan_free(&p);
}

static char *expected(const struct torus *t, const struct algorithm *a)
{
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    assert_non_null(out);
    for (uint32_t rank = 0; rank < t->nodes; rank++)
        expect_node(out, t, a, rank);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* The lines of GOAL that begin a node or are messages, without labels. */
static char *printed(const struct torus *t, const struct algorithm *a)
{
    char *goal, *text, *rest;
    size_t length;
    struct error e;
    FILE *out = open_memstream(&goal, &length);

    assert_non_null(out);
    if (goal_print(out, t, a, BLOCK, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(fclose(out), 0);
    out = open_memstream(&text, &length);
    assert_non_null(out);
    for (char *line = strtok_r(goal, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        const char *what = strstr(line, ": ");
        if (strncmp(line, "rank ", 5) == 0)
            (void)fprintf(out, "%s\n", line);
        else if (what != NULL &&
                 (strncmp(what, ": send", 6) == 0 || strncmp(what, ": recv", 6) == 0))
            (void)fprintf(out, "%s\n", what + 2);
    }
    assert_int_equal(fclose(out), 0);
    free(goal);
    return text;
}

static void check(const struct torus *t, const struct algorithm *a)
{
    char *wanted = expected(t, a), *found = printed(t, a);

    assert_string_equal(found, wanted);
    free(wanted);
    free(found);
}

/* The same routes from a file that names them all, so that no node is like another one. */
static void check_without_period(const struct torus *t, const struct algorithm *a)
{
    struct imported *s;
    struct error e;
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    assert_non_null(out);
    assert_int_equal(schedule_export(out, t, a, false, &e), 0);
    assert_int_equal(fclose(out), 0);
    if (imported_read(&s, text, length, t, NULL, &e) != 0)
        fail_msg("%s", e.text);
    check(t, imported_algorithm(s));
    imported_free(s);
    free(text);
}

TEST(messages_are_those_of_the_plans)
{
    static const char *const tori[] = {"1", "2", "3", "2x2", "4x4", "3x5", "4mx3", "8", "2x3x4"};

    for (size_t i = 0; i < sizeof tori / sizeof *tori; i++)
        for (size_t k = 0; k < algorithm_count(); k++) {
            const struct algorithm *a = algorithm_at(k);
            struct torus t;
            assert_int_equal(torus_parse(&t, tori[i], NULL), 0);
            if (algorithm_accepts(a, &t, NULL) != 0)
                continue;
            check(&t, a);
            check_without_period(&t, a);
        }
}
