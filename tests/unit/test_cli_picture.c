/* Pictures of schedules that no algorithm in the registry has, and without memory. tests/integration/test_picture.py
 * tests pictures of the registry's algorithms with `torusctl plan --svg`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/cli/drawing/drawing.h"
#include "client/cli/drawing/svg.h"
#include "daemon/schedule/algorithms/registry.h"

static int callocs_left = -1; /* < 0: none fails */

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
    if (callocs_left == 0)
        return NULL;
    if (callocs_left > 0)
        callocs_left--;
    return __real_calloc(count, size);
}

static const struct drawing_choice all = {.source = TORUS_NO_NODE, .node = TORUS_NO_NODE};

static struct torus torus_of(const char *dims)
{
    struct torus t;
    assert_int_equal(torus_parse(&t, dims, NULL), 0);
    return t;
}

/* The document; to be freed. */
static char *draw(const char *dims, const struct algorithm *a)
{
    struct torus t = torus_of(dims);
    struct schedule_report report;
    struct drawing d;
    struct error e;
    char *text = NULL;
    size_t size = 0;

    if (schedule_verify(&t, a, &report, &e) != 0 || drawing_make(&d, &t, a, &all, &e) != 0)
        fail_msg("%s", e.text);
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    svg_draw(out, &d, &report);
    assert_int_equal(fclose(out), 0);
    drawing_free(&d);
    return text;
}

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;
    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what))
        n++;
    return n;
}

static void names_are_escaped(void **state)
{
    struct algorithm a = *algorithm_find("direct");
    (void)state;
    a.name = "<a&\"b\">\x01\xff\xc3\xa9";
    char *text = draw("2", &a);
    assert_int_equal(count(text, "&lt;a&amp;&quot;b&quot;&gt;??\xc3\xa9 on 2<"), 2);
    assert_null(strstr(text, "<a"));
    free(text);
}

static void a_name_too_long_is_cut(void **state)
{
    struct algorithm a = *algorithm_find("direct");
    char name[400];
    (void)state;
    memset(name, '&', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    a.name = name;
    char *text = draw("2", &a);
    assert_int_equal(count(text, "&"), count(text, "&amp;"));
    free(text);
}

/* Ring of 4: each block goes round once before it arrives. */
static uint32_t round_about(const struct torus *t, uint32_t source, uint32_t destination,
                            uint32_t segment, struct leg *legs)
{
    uint32_t hops = (destination + t->nodes - source) % t->nodes + t->nodes;
    (void)segment;
    legs[0] = (struct leg){.step = hops, .hops = (uint16_t)hops, .dim = 0, .direction = 1};
    return 1;
}

static void a_leg_may_go_round(void **state)
{
    struct algorithm a = *algorithm_find("direct");
    (void)state;
    a.route = round_about;
    char *text = draw("4", &a);
    /* From 3 to 0 in 5 hops: out of the frame, once across it, and in again. From 0 to 1 in 5 hops:
     * out and in. */
    assert_non_null(strstr(text, "<title>3 to 2, port +0, 7 hops: 1 block</title>"));
    const char *far = strstr(text, "<title>3 to 0, port +0, 5 hops"),
               *near = strstr(text, "<title>0 to 1, port +0, 5 hops");
    char *first = strndup(far, (size_t)(strchr(far, '\n') - far));
    char *second = strndup(near, (size_t)(strchr(near, '\n') - near));
    assert_int_equal(count(first, "class=\"l\""), 3);
    assert_int_equal(count(first, "class=\"h\""), 1);
    assert_int_equal(count(second, "class=\"l\""), 2);
    assert_int_equal(count(second, "class=\"h\""), 1);
    free(first);
    free(second);
    free(text);
}

static void lack_of_memory_is_told(void **state)
{
    static const struct {
        const char *dims, *algorithm;
        struct drawing_choice choice;
    } drawings[] = {
        {"4x4", "direct", {.source = 3, .node = TORUS_NO_NODE}},
        {"4x4", "cccube", {.load = true, .source = TORUS_NO_NODE, .node = TORUS_NO_NODE}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof drawings / sizeof drawings[0]; i++) {
        struct torus t = torus_of(drawings[i].dims);
        int failures = 0, rc;
        do {
            struct drawing d;
            struct error e = {0};
            callocs_left = failures;
            rc = drawing_make(&d, &t, algorithm_find(drawings[i].algorithm), &drawings[i].choice,
                              &e);
            callocs_left = -1;
            if (rc == 0) {
                drawing_free(&d);
                break;
            }
            assert_int_equal(e.code, ERROR_MEMORY);
            failures++;
        } while (failures < 100);
        assert_int_equal(rc, 0);
        assert_true(failures > 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_escaped),
        cmocka_unit_test(a_name_too_long_is_cut),
        cmocka_unit_test(a_leg_may_go_round),
        cmocka_unit_test(lack_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
