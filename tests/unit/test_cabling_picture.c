/* Pictures of networks that cables make. */
#include <expat.h>

#include "client/cli/drawing/cabling_picture.h"
#include "tests/support/cmocka.h"
#include "tests/unit/cabling_fixture.h"

typedef void draw(FILE *out, const struct cabling_result *r, const struct cabling_input *in);

/* Draws a network with a fault; WORLD_FAULTS: without. The caller frees the text. */
static char *drawn(const char *dims, enum world_fault fault, uint64_t seed, draw *function)
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
    assert_non_null(strstr(text, "node0"));
    assert_null(strstr(text, "rank"));
    free(text);
    text = drawn("8x9", WORLD_FAULTS, 1, cabling_picture_draw);
    assert_non_null(strstr(text, "rank")); /* a table */
    free(text);
}

TEST(what_is_wrong_is_marked)
{
    char *text = drawn("3x3", FAULT_MISSING, 5, cabling_picture_draw);

    assert_non_null(strstr(text, "X"));
    assert_non_null(strstr(text, "1. add a cable between"));
    free(text);
    text = drawn("3x3", FAULT_ONE_WAY, 5, cabling_picture_draw);
    assert_non_null(strstr(text, "!"));
    assert_non_null(strstr(text, "1. replace the cable"));
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
            assert_non_null(strstr(text, ">node0</text>"));
            assert_true((strstr(text, "class=\"w\"") != NULL) == broken);
            free(text);
        }
    free(drawn("4x4", FAULT_CROSSED, 3, cabling_svg_draw));
    free(drawn("4x4", FAULT_HOST_DOWN, 3, cabling_svg_draw));
}
