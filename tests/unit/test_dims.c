#include "daemon/lib/schedule/torus.h"
#include "proto/dims.h"
#include "tests/support/cmocka.h"

/* What torus_format() writes is read as the sizes of that network. */
TEST(sizes_are_those_of_the_network)
{
    static const char *const texts[] = {
        "1",
        "4x8",
        "4x8m",
        "2m^8",
        "complete:33",
        "5 x complete:3",
        "star:5 x 4 x tree:3^2",
        "tree:1^1000",
        "1048576",
        "line:7 x ring:2",
    };
    const struct graph *g;
    struct error e;

    g = graph_of_edges((const uint32_t[]){0, 1, 1, 2, 2, 3, 0, 2}, 4, &e);
    for (size_t i = 0; i <= sizeof texts / sizeof texts[0]; i++) {
        bool last = i == sizeof texts / sizeof texts[0];
        struct torus t = {.nodes = 1};
        uint32_t size[TORUS_MAX_DIMS];
        char text[TORUS_TEXT_SIZE];
        if (last) { /* a graph by its digest, twice and between others */
            assert_int_equal(torus_append(&t, 0, false, g), 0);
            assert_int_equal(torus_append(&t, 3, false, NULL), 0);
            assert_int_equal(torus_append(&t, 0, false, g), 0);
        } else if (torus_parse(&t, texts[i], &e) != 0) {
            continue;
        }
        assert_int_equal(dims_sizes(torus_format(&t, text), size, TORUS_MAX_DIMS), t.dims);
        for (unsigned dim = 0; dim < t.dims; dim++)
            assert_int_equal(size[dim], t.size[dim]);
        assert_int_equal(dims_sizes(text, size, t.dims - 1), 0);
    }
}

TEST(other_texts_are_refused)
{
    static const char *const bad[] = {"",
                                      "x",
                                      "4x",
                                      "4xx4",
                                      "4 y 4",
                                      "-4",
                                      "0",
                                      "4x0",
                                      "m",
                                      "complete:",
                                      "complete",
                                      "65536x65536",
                                      "99999999999999999999",
                                      "tree:9^99",
                                      "4x4x4x4x4x4x4x4x4",
                                      " "};
    uint32_t size[8];

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(dims_sizes(bad[i], size, 8), 0);
}
