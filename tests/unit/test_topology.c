#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/router/topology.h"

static struct torus torus;

static void open_topology(struct topology *p, const char *dims, uint32_t self)
{
    assert_int_equal(torus_parse(&torus, dims, NULL), 0);
    assert_int_equal(topology_init(p, &torus, self, 1000 + self), 0);
}

static uint32_t all_ports(uint32_t rank)
{
    uint32_t up = 0;
    for (unsigned port = 0; port < torus_ports(&torus); port++)
        if (torus_neighbour(&torus, rank, port) != TORUS_NO_NODE)
            up |= 1u << port;
    return up;
}

static void all_up(struct topology *p)
{
    for (uint32_t rank = 0; rank < torus.nodes; rank++)
        if (rank != p->self)
            assert_int_equal(topology_hear(p, rank, 5, all_ports(rank), 1000 + rank), TOPOLOGY_NEW);
    for (unsigned port = 0; port < torus_ports(&torus); port++)
        if (torus_neighbour(&torus, p->self, port) != TORUS_NO_NODE)
            topology_set_self(p, port, true);
}

static void the_newer_word_counts(void **state)
{
    struct topology p;
    (void)state;
    open_topology(&p, "4x4", 0);
    assert_int_equal(topology_hear(&p, 5, 3, 0xf, 7), TOPOLOGY_NEW);
    assert_int_equal(topology_hear(&p, 5, 3, 0x0, 7), TOPOLOGY_OLD);
    assert_int_equal(topology_hear(&p, 5, 2, 0x0, 7), TOPOLOGY_OLD);
    assert_int_equal(p.entry[5].up, 0xf);
    assert_int_equal(topology_hear(&p, 5, 4, 0x7, 7), TOPOLOGY_NEW);
    assert_int_equal(p.entry[5].up, 0x7);
    /* The same version of another start: all nodes must come to prefer the same. */
    assert_int_equal(topology_hear(&p, 5, 4, 0x1, 8), TOPOLOGY_NEW);
    assert_int_equal(topology_hear(&p, 5, 4, 0x7, 7), TOPOLOGY_OLD);
    assert_int_equal(p.entry[5].up, 0x1);
    topology_free(&p);
}

static void words_about_us_from_before_our_start_are_outdone(void **state)
{
    struct topology p;
    (void)state;
    open_topology(&p, "4x4", 3);
    uint32_t version = p.entry[3].version;
    assert_int_equal(topology_hear(&p, 3, version, 0, 1003), TOPOLOGY_OLD); /* our own */
    assert_int_equal(topology_hear(&p, 3, version, 0xf, 55), TOPOLOGY_OUTDATED_SELF);
    assert_int_equal(topology_hear(&p, 3, 77, 0xf, 55), TOPOLOGY_OUTDATED_SELF);
    assert_int_equal(p.entry[3].version, 78);
    assert_int_equal(p.entry[3].up, 0);
    assert_int_equal(p.entry[3].boot, 1003);
    assert_int_equal(topology_hear(&p, 3, 77, 0xf, 55), TOPOLOGY_OLD);
    topology_free(&p);
}

static void our_version_rises_with_every_change(void **state)
{
    struct topology p;
    (void)state;
    open_topology(&p, "4x4", 0);
    uint32_t version = p.entry[0].version;
    topology_set_self(&p, 2, true);
    assert_int_equal(p.entry[0].version, version + 1);
    topology_set_self(&p, 2, true);
    assert_int_equal(p.entry[0].version, version + 1);
    topology_set_self(&p, 2, false);
    assert_int_equal(p.entry[0].version, version + 2);
    assert_int_equal(p.entry[0].up, 0);
    topology_free(&p);
}

static void a_link_needs_both_ends(void **state)
{
    struct topology p;
    char text[100];
    (void)state;
    open_topology(&p, "4x4", 0);
    assert_false(topology_whole(&p));
    all_up(&p);
    assert_true(topology_whole(&p));
    assert_false(topology_fault(&p, 0, text, sizeof text));
    assert_true(topology_link_up(&p, 1, torus_port(1, 1)));
    /* Node 2's port -1 is down: the link from node 1. */
    assert_int_equal(topology_hear(&p, 2, 6, all_ports(2) & ~(1u << torus_port(1, -1)), 1002),
                     TOPOLOGY_NEW);
    assert_false(topology_whole(&p));
    assert_false(topology_link_up(&p, 1, torus_port(1, 1)));
    assert_false(topology_link_up(&p, 2, torus_port(1, -1)));
    assert_true(topology_link_up(&p, 2, torus_port(1, 1)));
    assert_true(topology_fault(&p, 0, text, sizeof text));
    assert_string_equal(text, "link 1:+1 to node 2 is down");
    assert_false(topology_fault(&p, 1, text, sizeof text));
    assert_int_equal(topology_first_down(&p), TORUS_NO_NODE);
    topology_free(&p);
}

/* All neighbours of `rank` say that their link to it is down; it itself says nothing any more. */
static void lose(struct topology *p, uint32_t rank, uint32_t version)
{
    for (unsigned port = 0; port < torus_ports(&torus); port++) {
        uint32_t peer = torus_neighbour(&torus, rank, port);
        if (peer == TORUS_NO_NODE)
            continue;
        unsigned opposite = torus_port_opposite(port);
        if (peer == p->self)
            topology_set_self(p, opposite, false);
        else
            (void)topology_hear(p, peer, version++, p->entry[peer].up & ~(1u << opposite),
                                p->entry[peer].boot);
    }
}

static void a_node_is_down_by_the_word_of_its_neighbours(void **state)
{
    struct topology p;
    char text[100];
    (void)state;
    open_topology(&p, "4x4", 0);
    all_up(&p);
    lose(&p, 5, 10);
    assert_true(topology_node_down(&p, 5));
    assert_int_equal(topology_first_down(&p), 5);
    assert_true(topology_fault(&p, 0, text, sizeof text));
    assert_string_equal(text, "node 5 is down: none of its links is up");
    assert_false(topology_fault(&p, 1, text, sizeof text)); /* its links are not named as well */
    lose(&p, 1, 20);
    assert_int_equal(topology_first_down(&p), 1);
    assert_true(topology_fault(&p, 1, text, sizeof text));
    assert_string_equal(text, "node 5 is down: none of its links is up");
    topology_free(&p);
}

static void we_are_never_down_ourselves(void **state)
{
    struct topology p;
    (void)state;
    open_topology(&p, "2x2", 3);
    assert_false(topology_node_down(&p, 3)); /* though nobody has said anything */
    assert_true(topology_node_down(&p, 0));
    topology_free(&p);
}

static void a_mesh_has_no_link_beyond_its_end(void **state)
{
    struct topology p;
    (void)state;
    open_topology(&p, "3m", 0);
    assert_false(topology_link_up(&p, 0, torus_port(0, -1)));
    assert_int_equal(topology_hear(&p, 1, 1, 3, 1001), TOPOLOGY_NEW);
    assert_int_equal(topology_hear(&p, 2, 1, 2, 1002), TOPOLOGY_NEW);
    topology_set_self(&p, 0, true);
    assert_true(topology_whole(&p));
    topology_free(&p);
}

static void a_single_node_is_whole(void **state)
{
    struct topology p;
    (void)state;
    open_topology(&p, "1x1", 0);
    assert_true(topology_whole(&p));
    assert_false(topology_node_down(&p, 0));
    assert_int_equal(topology_first_down(&p), TORUS_NO_NODE);
    topology_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newer_word_counts),
        cmocka_unit_test(words_about_us_from_before_our_start_are_outdone),
        cmocka_unit_test(our_version_rises_with_every_change),
        cmocka_unit_test(a_link_needs_both_ends),
        cmocka_unit_test(a_node_is_down_by_the_word_of_its_neighbours),
        cmocka_unit_test(we_are_never_down_ourselves),
        cmocka_unit_test(a_mesh_has_no_link_beyond_its_end),
        cmocka_unit_test(a_single_node_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
