/* Links and nodes that are down: as text, and whether the rest of the torus is connected. */
#include "daemon/lib/schedule/damage.h"
#include "tests/support/cmocka.h"

static struct torus torus_of(const char *dims)
{
    struct torus t;
    struct error e;
    if (torus_parse(&t, dims, &e) != 0)
        fail_msg("%s", e.text);
    return t;
}

static struct damage read_damage(const char *dims, const char *text)
{
    struct torus t = torus_of(dims);
    struct damage d;
    struct error e;
    if (damage_parse(&d, &t, text, &e) != 0)
        fail_msg("%s", e.text);
    return d;
}

TEST(read_and_written)
{
    static const char *const cases[][4] = {
        {"4x4", "2:+0,7", "2:+0,7", "link 2:+0"},
        {"4x4", "7,2:+0", "2:+0,7", "link 2:+0"},
        {"4x4", "3:+0,7", "7", ""}, /* one of its own links */
        {"4x4", "7:-0", "3:+0", "link 3:+0"},
        {"4x4", "4:-1", "7:+1", "link 7:+1"},
        {"4x4", "3:+0,3:+0,7:-0", "3:+0", "link 3:+0"},
        {"4x4", "7,7:+0,8:-1", "7,11:+1", "link 11:+1"},
        {"2x3", "0:+0", "0:+0", "link 0:+0"}, /* two links between the same nodes */
        {"2x3", "0:-0", "3:+0", "link 3:+0"},
        {"3m", "0:+0,2", "0:+0,2", "link 0:+0"}};
    char text[100];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct damage d = read_damage(cases[i][0], cases[i][1]), again;
        struct error e;
        assert_string_equal(damage_format(&d, text, sizeof text), cases[i][2]);
        assert_int_equal(damage_parse(&again, &d.torus, text, &e), 0);
        assert_true(damage_equal(&d, &again));
        damage_free(&again);
        assert_string_equal(damage_describe_links(&d, text, sizeof text), cases[i][3]);
        assert_int_equal(damage_copy(&again, &d, &e), 0);
        assert_true(damage_equal(&d, &again));
        assert_false(damage_is_none(&d));
        damage_free(&again);
        damage_free(&d);
    }
}

TEST(refused)
{
    static const char *const cases[][3] = {
        {"4x4", "", "'' is neither"},
        {"4x4", "3:+0,", "'' is neither"},
        {"4x4", "16", "'16': a torus of 4x4 has the nodes 0 to 15"},
        {"4x4", "99999999999999999999", "has the nodes 0 to 15"},
        {"4x4", "-1", "'-1' is neither"},
        {"4x4", "3;+0", "'3;+0' is neither"},
        {"4x4", "3:", "'3:': node 3 of a torus of 4x4 has no link at that port"},
        {"4x4", "3:+2", "has no link at that port"},
        {"4x4", "3:+00", "has no link at that port"},
        {"3m", "2:+0", "node 2 of a torus of 3m has no link at that port"},
        {"1x4", "2:+0", "has no link at that port"},
        {"4x4", "3:+0 ,7", "has no link at that port"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct torus t = torus_of(cases[i][0]);
        struct damage d;
        struct error e;
        assert_int_equal(damage_parse(&d, &t, cases[i][1], &e), -1);
        assert_int_equal(e.code, ERROR_USAGE);
        if (strstr(e.text, cases[i][2]) == NULL)
            fail_msg("%s", e.text);
    }
}

TEST(nothing)
{
    struct torus t = torus_of("3x3");
    struct damage d;
    struct error e;
    char text[4];

    assert_int_equal(damage_init(&d, &t, &e), 0);
    assert_true(damage_is_none(&d));
    assert_string_equal(damage_format(&d, text, sizeof text), "");
    damage_add_node(&d, 4);
    assert_false(damage_is_none(&d));
    for (unsigned port = 0; port < 4; port++) {
        assert_false(damage_has_link(&d, 4, port));
        assert_false(damage_has_link(&d, torus_neighbour(&t, 4, port), port ^ 1));
    }
    assert_true(damage_has_link(&d, 0, 0));
    damage_free(&d);
}

/* A text that does not fit is cut between its parts. */
TEST(cut_off)
{
    struct damage d = read_damage("4x4", "0:+0,1:+0,2:+0,3:+0");
    char text[40];

    assert_string_equal(damage_format(&d, text, 20), "0:+0,1:+0,2:+0...");
    assert_string_equal(damage_format(&d, text, 18), "0:+0,1:+0,2:+0...");
    assert_string_equal(damage_format(&d, text, 17), "0:+0,1:+0...");
    assert_string_equal(damage_format(&d, text, 4), "...");
    damage_free(&d);
}

TEST(in_parts)
{
    static const char *const cases[][3] = {
        {"4", "0:+0", NULL},
        {"4", "0:+0,2:+0", "nodes 1, 2 cannot be reached from node 0"},
        {"4", "0:+0,2", "node 1 cannot be reached from node 0"},
        {"4", "0,2", "node 3 cannot be reached from node 1"},
        {"4m", "0:+0", "node 0 cannot be reached from node 1"},
        {"4m", "2:+0", "node 3 cannot be reached from node 0"},
        {"4m", "3", NULL},
        {"2", "0:+0", NULL},
        {"2", "0:+0,1:+0", "cannot be reached"},
        {"2", "0", NULL},
        {"2", "0,1", NULL},
        {"1", "0", NULL},
        {"3x3", "4:+0,4:-0,4:+1,4:-1", "node 4 cannot be reached from node 0"},
        {"3x3", "4:+0,4:-0,4:+1,4:-1,4", NULL},
        {"80m", "40", "64... cannot be reached"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct damage d = read_damage(cases[i][0], cases[i][1]);
        struct error e = {.text = ""};
        int rc = damage_is_connected(&d, &e);
        if (rc != (cases[i][2] == NULL ? 0 : -1) ||
            (rc != 0 && strstr(e.text, cases[i][2]) == NULL))
            fail_msg("%s without %s: %s", cases[i][0], cases[i][1], e.text);
        damage_free(&d);
    }
}

TEST(described_for_people)
{
    struct damage d = read_damage("4x4", "11:+1,2:+0,7");
    char text[100];

    assert_string_equal(damage_describe(&d, text, sizeof text), "link 2:+0, node 7, link 11:+1");
    assert_string_equal(damage_describe(&d, text, 24), "link 2:+0, node 7...");
    damage_free(&d);
}
