#include "daemon/lib/schedule/tally.h"
#include "daemon/lib/schedule/torus.h"
#include "proto/dims.h"
#include "tests/support/cmocka.h"

static struct torus parse(const char *text)
{
    struct torus t;
    struct error e;
    assert_success(torus_parse(&t, text, &e), e);
    return t;
}

TEST(text_goes_both_ways)
{
    static const char *const texts[] = {"1",         "6",        "4x8",
                                        "4x8m",      "3mx4x5m",  "1x1x1x1x1x1x1x1",
                                        "1024x1024", "1048576m", "4mx4mx4mx4mx4mx4mx4mx4m"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char text[TORUS_TEXT_SIZE];
        struct torus t = parse(texts[i]);
        assert_string_equal(torus_format(&t, text), texts[i]);
    }
    struct torus t = parse("4x8m");
    assert_int_equal(t.dims, 2);
    assert_int_equal(t.size[0], 4);
    assert_int_equal(t.size[1], 8);
    assert_true(t.wrap[0]);
    assert_false(t.wrap[1]);
    assert_int_equal(t.nodes, 32);
}

TEST(bad_text_is_refused)
{
    static const struct {
        const char *text, *says;
    } bad[] = {{"", "at \"\""},
               {"x4", "at \"x4\""},
               {"4x", "at \"\""},
               {"4xx4", "at \"x4\""},
               {"-4", "at \"-4\""},
               {" 4", "expected a factor"},
               {"m", "expected a factor"},
               {"4 y4", "expected x between sizes, not \" y4\""},
               {"4x4 ", "expected x between sizes, not \" \""},
               {"4x x4", "expected a factor"},
               {"2m^0", "expected a number of dimensions"},
               {"2^", "expected a number of dimensions"},
               {"2^9", "more than 8 dimensions"},
               {"complete:", "expected a number of nodes"},
               {"complete:1", "2 to 33 nodes"},
               {"complete:34", "2 to 33 nodes"},
               {"complete:33 x complete:2", "more than 32 ports"},
               {"star:1", "2 to 33 nodes"},
               {"tree:2", "expected children and levels"},
               {"tree:2^0", "at least one"},
               {"tree:32^1", "at most 31"},
               {"tree:2^10", "at most 1024 nodes"},
               {"graph:", "expected a file of edges"},
               {"graph:/nowhere/edges", "/nowhere/edges"},
               {"graph:10:0123456789abcdef", "are not known here"},
               {"ring:", "expected a factor"},
               {"moebius:4", "expected a factor"},
               {"4mm", "expected x between sizes, not \"m\""},
               {"4X4", "expected x between sizes, not \"X4\""},
               {"4x4\n", "expected x between sizes"},
               {"0", "sizes start at 1"},
               {"4x0x4", "sizes start at 1"},
               {"1048577", "more than 1048576 nodes"},
               {"1024x1025", "more than 1048576 nodes"},
               {"65536x65536", "more than 1048576 nodes"},
               {"99999999999999999999999", "more than 1048576 nodes"},
               {"4294967297", "more than 1048576 nodes"},
               {"2x2x2x2x2x2x2x2x2", "more than 8 dimensions"},
               {"1x1x1x1x1x1x1x1x", "more than 8 dimensions"}};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct torus t = {.dims = 77};
        struct error e = {.code = ERROR_NONE};
        assert_fails(torus_parse(&t, bad[i].text, &e), e, ERROR_USAGE, bad[i].says);
        assert_int_equal(t.dims, 77); /* untouched */
        assert_int_equal(torus_parse(&t, bad[i].text, NULL), -1);
    }
}

TEST(equality)
{
    struct torus t = parse("4x8"), same = parse("4x8");
    struct torus mesh = parse("4x8m"), turned = parse("8x4"), longer = parse("4x8x1");

    assert_true(torus_equal(&t, &same));
    assert_false(torus_equal(&t, &mesh));
    assert_false(torus_equal(&t, &turned));
    assert_false(torus_equal(&t, &longer));
}

TEST(ranks_are_row_major)
{
    struct torus t = parse("3x4x5m");
    uint32_t at[TORUS_MAX_DIMS];

    torus_coordinates(&t, 1 * 20 + 2 * 5 + 3, at);
    assert_int_equal(at[0], 1);
    assert_int_equal(at[1], 2);
    assert_int_equal(at[2], 3);
    for (uint32_t rank = 0; rank < t.nodes; rank++) {
        torus_coordinates(&t, rank, at);
        assert_int_equal(torus_rank(&t, at), rank);
    }
}

TEST(walking)
{
    struct torus t = parse("3x4mx5");
    uint32_t at[] = {1, 2, 3}, rank = torus_rank(&t, at);

    assert_int_equal(torus_walk(&t, rank, 0, 1, 1), rank + 20);
    assert_int_equal(torus_walk(&t, rank, 0, 1, 2), rank - 20); /* round the end */
    assert_int_equal(torus_walk(&t, rank, 0, -1, 2), rank + 20);
    assert_int_equal(torus_walk(&t, rank, 2, 1, 2), rank - 3);
    assert_int_equal(torus_walk(&t, rank, 2, -1, 4), rank + 1);
    assert_int_equal(torus_walk(&t, rank, 2, 1, 5), rank);
    assert_int_equal(torus_walk(&t, rank, 2, -1, 13), rank - 3);
    assert_int_equal(torus_walk(&t, rank, 1, 1, 1), rank + 5);
    assert_int_equal(torus_walk(&t, rank, 1, -1, 2), rank - 10);
    assert_int_equal(torus_walk(&t, rank, 1, 1, 2), TORUS_NO_NODE);
    assert_int_equal(torus_walk(&t, rank, 1, -1, 3), TORUS_NO_NODE);
    assert_int_equal(torus_walk(&t, rank, 1, 1, 0), rank);
}

/* Walking hop by hop gives the same node as walking at once, and walking back leads to the start. */
TEST(walks_add_up)
{
    static const char *const shapes[] = {"1", "2", "5", "5m", "2x3", "4x1x3m", "2x2mx3x2"};

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = parse(shapes[i]);
        for (uint32_t rank = 0; rank < t.nodes; rank++) {
            for (unsigned port = 0; port < torus_ports(&t); port++) {
                uint32_t here = rank;
                for (uint32_t hops = 1; hops < 12 && here != TORUS_NO_NODE; hops++) {
                    uint32_t before = here;
                    here = torus_neighbour(&t, here, port);
                    assert_int_equal(torus_walk(&t, rank, torus_port_dim(&t, port),
                                                torus_port_direction(&t, port), hops),
                                     here);
                    if (here != TORUS_NO_NODE)
                        assert_int_equal(torus_neighbour(&t, here, torus_port_opposite(&t, port)),
                                         before);
                }
            }
        }
    }
}

TEST(links_of_small_dimensions)
{
    struct torus pair = parse("2"), two = parse("2m"), one = parse("1x1m");

    assert_int_equal(torus_neighbour(&pair, 0, 0), 1); /* two links between the same nodes */
    assert_int_equal(torus_neighbour(&pair, 0, 1), 1);
    assert_int_equal(torus_neighbour(&two, 0, 0), 1);
    assert_int_equal(torus_neighbour(&two, 0, 1), TORUS_NO_NODE);
    for (unsigned port = 0; port < 4; port++)
        assert_int_equal(torus_neighbour(&one, 0, port), TORUS_NO_NODE);
}

TEST(ports_have_names)
{
    struct torus t = parse("4x4x4");
    char name[TORUS_PORT_NAME_SIZE];

    assert_string_equal(torus_port_name(&t, 0, 0, name), "+0");
    assert_string_equal(torus_port_name(&t, 0, 1, name), "-0");
    assert_string_equal(torus_port_name(&t, 0, 15, name), "-7");
    for (unsigned port = 0; port < torus_ports(&t); port++) {
        assert_int_equal(torus_port_parse(&t, 0, torus_port_name(&t, 0, port, name)), port);
        assert_int_equal(torus_port(&t, torus_port_dim(&t, port), torus_port_direction(&t, port)),
                         port);
    }
    static const char *const bad[] = {"", "+", "0", "+3", "-9", "+00", "+0 ", "*0", "+x", "++"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(torus_port_parse(&t, 0, bad[i]), -1);
}

TEST(shortest_ways)
{
    static const struct {
        const char *torus;
        uint32_t from, to, hops;
        int direction; /* 0: left alone */
    } ways[] = {{"6", 0, 0, 0, 0},   {"6", 0, 2, 2, 1},  {"6", 0, 3, 3, 0},   {"6", 0, 4, 2, -1},
                {"6", 5, 1, 2, 1},   {"6", 1, 5, 2, -1}, {"6", 4, 1, 3, 0},   {"5", 0, 2, 2, 1},
                {"5", 0, 3, 2, -1},  {"6m", 0, 5, 5, 1}, {"6m", 4, 1, 3, -1}, {"2", 0, 1, 1, 0},
                {"2m", 1, 0, 1, -1}, {"1", 0, 0, 0, 0},  {"5", 4, 3, 1, -1}};

    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct torus t = parse(ways[i].torus);
        int direction = 0;
        assert_int_equal(torus_shortest(&t, 0, ways[i].from, ways[i].to, &direction), ways[i].hops);
        assert_int_equal(direction, ways[i].direction);
    }
}

/* Compared with a breadth-first search over the neighbours. */
TEST(distances)
{
    static const char *const shapes[] = {"1", "7", "7m", "4x5", "4mx5", "2x3x4m", "2x2x2x2"};

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = parse(shapes[i]);
        for (uint32_t root = 0; root < t.nodes; root++) {
            uint32_t queue[64], far[64], head = 0, tail = 0;
            memset(far, 0xff, sizeof far);
            far[root] = 0;
            queue[tail++] = root;
            while (head < tail) {
                uint32_t here = queue[head++];
                for (unsigned port = 0; port < torus_ports(&t); port++) {
                    uint32_t next = torus_neighbour(&t, here, port);
                    if (next != TORUS_NO_NODE && far[next] == UINT32_MAX) {
                        far[next] = far[here] + 1;
                        queue[tail++] = next;
                    }
                }
            }
            assert_int_equal(tail, t.nodes);
            for (uint32_t node = 0; node < t.nodes; node++)
                assert_int_equal(torus_distance(&t, root, node), far[node]);
        }
    }
}

TEST(bounds)
{
    static const struct {
        const char *torus;
        double all_port, one_port;
    } expected[] = {{"1", 0, 0},     {"2", 0.5, 1},       {"2m", 1, 1},
                    {"3", 1, 2},     {"6", 4.5, 5},       {"8", 8, 8},
                    {"5m", 6, 6},    {"4x4", 8, 15},      {"4x8", 32, 32},
                    {"8x4", 32, 32}, {"5x5", 15, 24},     {"6x6", 27, 35},
                    {"7x5", 30, 34}, {"16x16", 512, 512}, {"4x4m", 16, 16},
                    {"3mx3m", 6, 8}, {"3x4x5", 36, 59},   {"1024x1024", 134217728, 134217728}};

    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        struct torus t = parse(expected[i].torus);
        assert_true(torus_bound_all_port(&t) == expected[i].all_port);
        assert_true(torus_bound_one_port(&t) == expected[i].one_port);
    }
}

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

/* Counts by key: right, and in order. */

/* Keys that differ in a few bits here and there, as those of messages do. */
static uint64_t key_of(uint64_t number)
{
    return number << 30 | (number & 7) << 7 | (number & 3) << 62;
}

static int compare_keys(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Adds keys of which every second one comes twice, and every third one once more, in another order than
 * theirs. */
static void check_tally(uint64_t keys)
{
    struct tally t = {0};
    uint64_t *sorted = calloc(keys, sizeof *sorted);

    assert_non_null(sorted);
    for (uint64_t times = 1; times <= 3; times++)
        for (uint64_t i = 0; i < keys; i += times)
            assert_int_equal(tally_add_many(&t, key_of(keys - i), i + 1), 0);
    for (uint64_t i = 0; i < keys; i++)
        sorted[i] = key_of(keys - i);
    qsort(sorted, keys, sizeof *sorted, compare_keys);
    assert_int_equal(tally_sort(&t), 0);
    assert_int_equal(t.count, keys);
    for (uint64_t i = 0; i < keys; i++) {
        const uint64_t added = keys - (t.at[i].key >> 30 & UINT32_MAX);
        const uint64_t times = added % 6 == 0 ? 3 : added % 2 == 0 || added % 3 == 0 ? 2 : 1;
        assert_true(t.at[i].key == sorted[i]);
        assert_int_equal(t.at[i].count, (added + 1) * times);
    }
    tally_free(&t);
    free(sorted);
}

/* In one part, in parts, and with sorting in between. */
TEST(each_key_is_counted_in_order)
{
    static const uint64_t keys[] = {1, 2, 1000, 50000, 3000000};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        check_tally(keys[i]);
}

/* Keys that come again do not take more and more memory. */
TEST(equal_keys_take_the_memory_of_one)
{
    struct tally t = {0};

    for (uint64_t i = 0; i < 600000; i++)
        assert_int_equal(tally_add(&t, i % 5000), 0);
    assert_true(t.room <= UINT64_C(1) << 17);
    assert_int_equal(tally_sort(&t), 0);
    assert_int_equal(t.count, 5000);
    assert_int_equal(t.at[17].count, 120);
    tally_free(&t);
}

TEST(an_empty_tally_can_be_sorted)
{
    struct tally t = {0};

    assert_int_equal(tally_sort(&t), 0);
    assert_int_equal(t.count, 0);
    tally_free(&t);
}
