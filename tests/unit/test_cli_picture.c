/* Pictures of schedules that no algorithm in the registry has, and without memory. tests/integration/test_picture.py
 * tests pictures of the registry's algorithms with `torusctl plan --svg`. */
#include <expat.h>

#include "client/cli/drawing/cabling_picture.h"
#include "client/cli/drawing/drawing.h"
#include "client/cli/drawing/svg.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/support/cmocka.h"
#include "tests/unit/cabling_fixture.h"

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

TEST(names_are_escaped)
{
    struct algorithm a = *algorithm_find("direct");

    a.name = "<a&\"b\">\x01\xff\xc3\xa9";
    char *text = draw("2", &a);
    assert_int_equal(count(text, "&lt;a&amp;&quot;b&quot;&gt;??\xc3\xa9 on 2<"), 2);
    assert_null(strstr(text, "<a"));
    free(text);
}

TEST(a_name_too_long_is_cut)
{
    struct algorithm a = *algorithm_find("direct");
    char name[400];

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

    legs[0] = (struct leg){.step = hops, .hops = (uint16_t)hops, .dim = 0, .direction = 1};
    return 1;
}

TEST(a_leg_may_go_round)
{
    struct algorithm a = *algorithm_find("direct");

    a.route = round_about;
    char *text = draw("4", &a);
    /* From 3 to 0 in 5 hops: out of the frame, once across it, and in again. From 0 to 1 in 5 hops:
     * out and in. */
    assert_contains(text, "<title>3 to 2, port +0, 7 hops: 1 block</title>");
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

static bool walk_crosses(const struct drawing_part *p, const struct torus *t, uint32_t node,
                         const struct leg *leg)
{
    for (uint16_t hop = 0; hop < leg->hops; hop++) {
        if (drawing_part_has(p, t, node))
            return true;
        node = torus_neighbour(t, node, torus_port(t, leg->dim, leg->direction));
        if (node == TORUS_NO_NODE)
            return false;
    }
    return drawing_part_has(p, t, node);
}

TEST(legs_cross_a_part_as_walks_do)
{
    static const char *const tori[] = {"7x6", "5x4m", "3x4x5", "9"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t = torus_of(tori[i]);
        struct drawing_part p = drawing_part_choose(&t, 6, t.nodes / 2);
        assert_true(drawing_part_nodes(&p, &t) <= 6 && drawing_part_has(&p, &t, t.nodes / 2));
        for (uint32_t start = 0; start < t.nodes; start++)
            for (unsigned port = 0; port < torus_ports(&t); port++)
                for (uint16_t hops = 1; hops < t.size[torus_port_dim(&t, port)]; hops++) {
                    struct leg leg = {.hops = hops,
                                      .dim = (uint8_t)torus_port_dim(&t, port),
                                      .direction = (int8_t)torus_port_direction(&t, port)};
                    uint32_t at[TORUS_MAX_DIMS];
                    torus_coordinates(&t, start, at);
                    uint32_t ahead =
                        leg.direction > 0 ? t.size[leg.dim] - 1 - at[leg.dim] : at[leg.dim];
                    if (t.wrap[leg.dim] || hops <= ahead) /* else it would leave the mesh */
                        assert_int_equal(drawing_part_is_crossed(&p, &t, start, &leg),
                                         walk_crosses(&p, &t, start, &leg));
                }
    }
}

TEST(parts_keep_planes_whole)
{
    struct torus t = torus_of("16x1x16x8");
    struct drawing_part p = drawing_part_choose(&t, 1024, TORUS_NO_NODE);
    char text[DRAWING_PART_TEXT_SIZE];

    assert_string_equal(drawing_part_format(&p, &t, text, sizeof text), "(0-7, 0, 0-15, 0-7)");
    assert_false(drawing_part_is_whole(&p, &t));
    p = drawing_part_choose(&t, t.nodes, TORUS_NO_NODE);
    assert_true(drawing_part_is_whole(&p, &t));
    (void)drawing_part_format(&p, &t, text, 8);
    assert_int_equal(strlen(text), 7);
}

TEST(lack_of_memory_is_told)
{
    static const struct {
        const char *dims, *algorithm;
        struct drawing_choice choice;
    } drawings[] = {
        {"4x4", "direct", {.source = 3, .node = TORUS_NO_NODE}},
        {"4x4", "cccube", {.load = true, .source = TORUS_NO_NODE, .node = TORUS_NO_NODE}},
        {"star:3 x tree:2^2", "direct", {.source = TORUS_NO_NODE, .node = TORUS_NO_NODE}},
    };

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

/* Pictures of networks that cables make. */

typedef void draw_cabling(FILE *out, const struct cabling_result *r,
                          const struct cabling_input *in);

/* Draws a network with a fault; WORLD_FAULTS: without. The caller frees the text. */
static char *drawn(const char *dims, enum world_fault fault, uint64_t seed, draw_cabling *function)
{
    struct world *w = world_make(dims, 1, true, seed);
    struct cabling_result r;
    struct error e;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    if (fault != WORLD_FAULTS)
        assert_true(world_break(w, fault));
    assert_int_equal(cabling_find(&r, world_input(w, false, false), &e), 0);
    function(out, &r, &w->input);
    assert_int_equal(fclose(out), 0);
    if (getenv("TORUS_CABLING_PICTURES") != NULL) { /* a folder, to look at them */
        char path[256];
        (void)snprintf(path, sizeof path, "%s/%s-%d.%s", getenv("TORUS_CABLING_PICTURES"), dims,
                       (int)fault, function == cabling_svg_draw ? "svg" : "txt");
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        (void)fputs(text, file);
        (void)fclose(file);
    }
    cabling_free(&r);
    world_free(w);
    return text;
}

TEST(grids_show_rows_and_columns)
{
    char *text = drawn("2mx3", WORLD_FAULTS, 1, cabling_picture_draw);

    assert_string_equal(text, "the cables make the mesh 2mx3 of 6 hosts\n"
                              "\n"
                              "  node0 -- node1 -- node2 --\n"
                              "   |        |        |\n"
                              "  node3 -- node4 -- node5 --\n"
                              "  to the right: port +1, from the last column to the first\n"
                              "  down: port +0\n");
    free(text);
}

/* The longest line, in characters. */
static size_t longest_line(const char *text)
{
    size_t longest = 0, length = 0;

    for (; *text != '\0'; text++) {
        length = *text == '\n' ? 0 : length + 1;
        longest = length > longest ? length : longest;
    }
    return longest;
}

TEST(eight_by_eight_fits_a_terminal)
{
    char *text = drawn("8x8", WORLD_FAULTS, 1, cabling_picture_draw);

    assert_true(longest_line(text) <= 80);
    assert_contains(text, "node0");
    assert_null(strstr(text, "rank"));
    free(text);
    text = drawn("8x9", WORLD_FAULTS, 1, cabling_picture_draw);
    assert_contains(text, "rank"); /* a table */
    free(text);
}

TEST(what_is_wrong_is_marked)
{
    char *text = drawn("3x3", FAULT_MISSING, 5, cabling_picture_draw);

    assert_contains(text, "X");
    assert_contains(text, "1. add a cable between");
    free(text);
    text = drawn("3x3", FAULT_ONE_WAY, 5, cabling_picture_draw);
    assert_contains(text, "!");
    assert_contains(text, "1. replace the cable");
    free(text);
}

TEST(svg_is_valid)
{
    static const char *const networks[] = {"4x4", "3x3x3", "5m",  "complete:5",    "star:6",
                                           "2",   "8x8",   "2x2", "5 x complete:3"};

    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
        for (unsigned broken = 0; broken < 2; broken++) {
            char *text =
                drawn(networks[i], broken ? FAULT_ONE_WAY : WORLD_FAULTS, i + 1, cabling_svg_draw);
            XML_Parser parser = XML_ParserCreate(NULL);
            assert_non_null(parser);
            assert_int_equal(XML_Parse(parser, text, (int)strlen(text), 1), XML_STATUS_OK);
            XML_ParserFree(parser);
            assert_contains(text, ">node0</text>");
            assert_true((strstr(text, "class=\"w\"") != NULL) == broken);
            free(text);
        }
    free(drawn("4x4", FAULT_CROSSED, 3, cabling_svg_draw));
    free(drawn("4x4", FAULT_HOST_DOWN, 3, cabling_svg_draw));
}
