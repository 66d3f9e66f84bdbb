/* The engine that combines vectors: whole tori in memory. See reducing_fixture.h. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "reducing_fixture.h"
#include "tests/support/cmocka.h"
#include "tests/support/long_legs.h"

SEEDS(40);

static void run(const struct how *how, uint64_t seed)
{
    struct net *net = net_open(how, seed);
    net_run(net);
    net_check(net);
    net_close(net);
}

TEST(every_type_and_operator)
{
    struct how how = {.dims = "3x4", .algorithm = "balanced", .elements = 20};

    for (how.type = REDUCTION_INT8; how.type < REDUCTION_TYPES; how.type++)
        for (how.operation = REDUCTION_SUM; how.operation < REDUCTION_OPERATORS; how.operation++)
            if (reduction_allowed(how.type, how.operation))
                run(&how, how.type * 100u + how.operation);
}

static const char *const shapes[] = {"1",    "2",    "2m",  "3",     "7m",    "1x5",   "2x2",
                                     "2mx2", "3x3m", "4x5", "4mx4m", "2x2x2", "2x3mx3"};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

TEST(every_shape_with_every_algorithm)
{
    static const char *const algorithms[] = {NULL, "balanced", "yangwang", "saadschultz"};
    struct how how = {.type = REDUCTION_FLOAT32, .operation = REDUCTION_SUM, .elements = 11};
    uint64_t runs = 0;

    for (unsigned i = 0; i < SHAPES; i++)
        for (unsigned j = 0; j < 4; j++) {
            struct torus t;
            how.dims = shapes[i];
            how.algorithm = algorithms[j];
            assert_int_equal(torus_parse(&t, shapes[i], NULL), 0);
            if (how.algorithm != NULL &&
                algorithm_accepts(algorithm_find(how.algorithm), &t, NULL) != 0)
                continue;
            for (unsigned k = 0; k < 8; k++) {
                how.everywhere = k % 2 == 0;
                how.unchecked = k / 2 % 2 == 0;
                how.varied = k / 4 == 0;
                how.root = (uint32_t)(runs % t.nodes);
                run(&how, ++runs);
            }
        }
}

/* Reduces to one owner, along all of its trees. */
TEST(every_shape_with_the_trees_of_a_root)
{
    static const char *const algorithms[] = {"balanced", "yangwang", "saadschultz", "disjoint"};
    struct how how = {.rooted = true, .type = REDUCTION_FLOAT32, .operation = REDUCTION_SUM};
    uint64_t runs = 0;

    for (unsigned i = 0; i < SHAPES; i++)
        for (unsigned j = 0; j < 4; j++) {
            struct torus t;
            how.dims = shapes[i];
            how.algorithm = algorithms[j];
            assert_int_equal(torus_parse(&t, shapes[i], NULL), 0);
            if (algorithm_accepts(algorithm_find(how.algorithm), &t, NULL) != 0)
                continue;
            for (unsigned k = 0; k < 8; k++) {
                how.elements = k % 2 == 0 ? 7 : 30; /* not one for each of twelve parts, and more */
                how.unchecked = k / 2 % 2 == 0;
                how.per_round = k / 4 == 0 ? 0 : 13;
                how.window = 1 + k / 4;
                how.root = (uint32_t)(runs % t.nodes);
                run(&how, ++runs);
            }
        }
}

/* The sums of numbers of different magnitudes depend on their order. */
TEST(bits_do_not_depend_on_what_comes_first)
{
    const struct how hows[] = {
        {.dims = "3x4",
         .algorithm = "balanced",
         .everywhere = true,
         .late = true,
         .elements = 40,
         .per_round = 9,
         .window = 3},
        {.dims = "4x4",
         .algorithm = "saadschultz",
         .elements = 1500,
         .per_round = 1100,
         .window = 2},
        {.dims = "3x3m", .root = 4, .everywhere = true, .late = true, .elements = 3},
        {.dims = "4x4",
         .algorithm = "disjoint",
         .rooted = true,
         .root = 6,
         .late = true,
         .elements = 7000,
         .per_round = 2000,
         .window = 2},
    };

    for (unsigned i = 0; i < 4; i++)
        for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
            struct how how = hows[i];
            how.type = seed % 2 == 0 ? REDUCTION_FLOAT64 : REDUCTION_FLOAT32;
            how.operation = REDUCTION_SUM;
            run(&how, 1000 * i + seed);
        }
}

/* --- chunks, rounds, segments --- */

TEST(long_blocks_go_in_chunks_and_rounds)
{
    struct how how = {.dims = "2x3",
                      .algorithm = "balanced",
                      .type = REDUCTION_FLOAT64,
                      .operation = REDUCTION_PRODUCT,
                      .elements = 5001};

    for (unsigned i = 0; i < 16; i++) {
        how.everywhere = i % 2 == 0;
        how.late = i / 2 % 2 == 0;
        how.varied = i / 4 % 2 == 0;
        how.per_round = i / 8 % 2 == 0 ? 0 : 999;
        how.window = 1 + i % 3;
        run(&how, i);
    }
}

/* Chunks so long that they stay in the slab into which they were read. */
TEST(long_chunks_are_not_copied)
{
    struct how how = {.dims = "3m",
                      .type = REDUCTION_FLOAT64,
                      .operation = REDUCTION_SUM,
                      .everywhere = true,
                      .elements = 50000};

    run(&how, 1);
    how.everywhere = false;
    run(&how, 2);
}

/* An element has more bytes than the last chunk of a round would leave for it. */
TEST(elements_are_not_split)
{
    struct how how = {.dims = "2x2", .algorithm = "balanced", .operation = REDUCTION_SUM};

    for (how.type = REDUCTION_INT8; how.type < REDUCTION_TYPES; how.type++)
        for (how.elements = 4095; how.elements < 4100; how.elements++)
            run(&how, how.elements);
    /* Chunks of more than the least length, which are not of whole elements by chance. */
    how.type = REDUCTION_COMPLEX128;
    for (how.elements = 12289; how.elements < 12300; how.elements++)
        run(&how, how.elements);
}

TEST(segments_go_along_different_trees)
{
    const struct algorithm made = {.name = "made",
                                   .operation = OPERATION_ALLGATHER,
                                   .segments = 3,
                                   .max_legs = one_leg_a_dimension,
                                   .period = torus_full_period,
                                   .route = long_legs};
    struct how how = {.dims = "3x4m",
                      .other = &made,
                      .type = REDUCTION_FLOAT32,
                      .operation = REDUCTION_SUM,
                      .window = 2};

    for (how.elements = 0; how.elements < 9; how.elements++)
        for (unsigned i = 0; i < 4; i++) {
            how.everywhere = i % 2 == 0;
            how.per_round = i / 2 == 0 ? 0 : 4;
            run(&how, i);
        }
    how.elements = 9000; /* several chunks in each */
    how.per_round = 0;
    run(&how, 1);
}

/* --- how much is sent --- */

TEST(short_vectors_cross_each_edge_once_up_and_once_down)
{
    struct how how = {
        .dims = "4x4", .type = REDUCTION_UINT64, .operation = REDUCTION_MAX, .everywhere = true};

    for (how.elements = 0; how.elements < 3; how.elements++) {
        struct net *net = net_open(&how, how.elements);
        net_run(net);
        net_check(net);
        assert_int_equal(net->packets, 2 * 15);
        assert_int_equal(net->bodies, 2 * 15 * (8 * how.elements + 8)); /* with digests */
        net_close(net);
    }
    how.unchecked = true;
    struct net *net = net_open(&how, 5);
    net_run(net);
    net_check(net);
    assert_int_equal(net->bodies, 2 * 15 * 8 * 3);
    net_close(net);
}

/* A gate that opens when all members have arrived. */
TEST(nothing_is_known_before_everybody_has_come)
{
    struct how how = {
        .dims = "3x3", .root = 2, .type = REDUCTION_UINT8, .operation = REDUCTION_SUM};

    for (uint32_t late = 0; late < 9; late++) {
        struct net *net = net_open(&how, late);
        net->member[late].admitted = 1; /* which it has not been */
        net_run(net);
        assert_int_equal(net->member[2].engine->rounds_finished, 0);
        engine_admit(net->member[late].engine, 0);
        net_run(net);
        net_check(net);
        assert_int_equal(net->packets, 8);
        net_close(net);
    }
}

/* 15 of 16 parts of each vector leave each node, and as many come in: the bound. */
TEST(a_long_vector_takes_no_more_than_the_bound)
{
    const struct how how = {.dims = "4x4",
                            .algorithm = "balanced",
                            .type = REDUCTION_INT32,
                            .operation = REDUCTION_SUM,
                            .unchecked = true,
                            .elements = 4000};
    struct net *net = net_open(&how, 1);

    net_run(net);
    net_check(net);
    assert_int_equal(net->bodies, 16 * 15 * 16000);
    for (uint32_t rank = 0; rank < 16; rank++)
        for (unsigned port = 0; port < 4; port++)
            assert_in_range(net->member[rank].engine->counts.port[port].tx_bytes, 3 * 16000,
                            4 * 16000);
    net_close(net);
}

/* A message with a digest from each node except the root; each node has finished when it has passed on its data,
 * whether the root has called or not. */
TEST(nodes_other_than_the_root_only_relay)
{
    const struct how how = {.dims = "4x4",
                            .algorithm = "balanced",
                            .rooted = true,
                            .root = 9,
                            .type = REDUCTION_FLOAT64,
                            .operation = REDUCTION_SUM,
                            .elements = 3};
    struct net *net = net_open(&how, 1);

    net->member[9].admitted = 1; /* not yet */
    net_run(net);
    for (uint32_t rank = 0; rank < 16; rank++)
        assert_int_equal(net->member[rank].engine->rounds_finished, rank != 9);
    assert_int_equal(net->packets, 15);
    assert_int_equal(net->bodies, 15 * (3 * 8 + 8));
    engine_admit(net->member[9].engine, 0);
    net_run(net);
    net_check(net);
    assert_int_equal(net->packets, 15);
    net_close(net);
}

/* A quarter of the vector comes to the root by each of its links, and no channel carries more. */
TEST(a_long_vector_comes_to_the_root_by_all_links)
{
    const struct how how = {.dims = "4x4",
                            .algorithm = "disjoint",
                            .rooted = true,
                            .root = 5,
                            .type = REDUCTION_INT32,
                            .operation = REDUCTION_SUM,
                            .unchecked = true,
                            .elements = 12000};
    struct net *net = net_open(&how, 1);

    net_run(net);
    net_check(net);
    assert_int_equal(net->bodies, 15 * 48000);
    for (uint32_t rank = 0; rank < 16; rank++)
        for (unsigned port = 0; port < 4; port++)
            assert_true(net->member[rank].engine->counts.port[port].tx_bytes <= 12000);
    for (unsigned port = 0; port < 4; port++) {
        assert_int_equal(net->member[5].engine->counts.port[port].rx_bytes, 12000);
        assert_int_equal(net->member[5].engine->counts.port[port].tx_bytes, 0);
    }
    net_close(net);
}

TEST(empty_blocks_of_several_owners_are_not_sent)
{
    const struct how how = {.dims = "2x3",
                            .algorithm = "balanced",
                            .type = REDUCTION_INT8,
                            .operation = REDUCTION_SUM,
                            .everywhere = true};
    struct net *net = net_open(&how, 1);

    net_run(net);
    net_check(net);
    assert_int_equal(net->packets, 0);
    net_close(net);
}

/* --- damage --- */

static void check_damage(const struct how *how, uint64_t seed, uint64_t packet)
{
    struct net *net = net_open(how, seed);
    char expected[200], name[TORUS_PORT_NAME_SIZE];

    net->damage = packet;
    net_run(net);
    assert_true(net_check_part(net)); /* no wrong result has left the engine */
    for (uint32_t rank = 0; rank < net->torus.nodes; rank++) {
        const struct error *e = engine_failed(net->member[rank].engine);
        assert_int_equal(e != NULL, rank == net->damaged_at);
        if (e == NULL)
            continue;
        (void)snprintf(expected, sizeof expected,
                       "node %u received a damaged frame from node %u on port %s", rank,
                       torus_neighbour(&net->torus, rank, net->damaged_port),
                       torus_port_name(&net->torus, rank, net->damaged_port, name));
        assert_int_equal(e->code, ERROR_DAMAGED);
        assert_memory_equal(e->text, expected, strlen(expected));
    }
    net_close(net);
}

TEST(damaged_data_is_not_combined)
{
    const struct how hows[] = {
        {.dims = "3x3", .algorithm = "balanced", .elements = 5},
        {.dims = "2x3", .root = 4, .everywhere = true, .elements = 2},
        {.dims = "2x2", .algorithm = "balanced", .everywhere = true, .elements = 3000},
        {.dims = "3x3", .algorithm = "disjoint", .rooted = true, .root = 7, .elements = 40},
    };

    for (unsigned i = 0; i < 4; i++)
        for (uint64_t packet = 1; packet <= 8; packet++) {
            struct how how = hows[i];
            how.type = REDUCTION_FLOAT64;
            how.operation = REDUCTION_SUM;
            for (uint64_t seed = 0; seed < 6; seed++)
                check_damage(&how, seed, packet);
        }
}

/* --- states --- */

TEST(where_it_stands_can_be_said)
{
    const struct how how = {.dims = "3m",
                            .type = REDUCTION_UINT8,
                            .operation = REDUCTION_SUM,
                            .everywhere = true,
                            .elements = 3};
    struct net *net = net_open(&how, 1);
    char text[120];

    net->member[2].admitted = net->member[0].admitted = 1; /* not yet */
    net_run(net);
    engine_describe(net->member[1].engine, text, sizeof text);
    assert_string_equal(
        text, "waiting for 1 contribution, the first one for the block of node 0 on port +0");
    engine_admit(net->member[2].engine, 0);
    net_run(net);
    engine_describe(net->member[1].engine, text, sizeof text);
    assert_string_equal(text, "waiting for 1 result, the first one from node 0 on port -0");
    net->member[1].full = true;
    engine_admit(net->member[0].engine, 0);
    net_run(net);
    assert_int_equal(net->member[1].engine->rounds_finished, 0);
    engine_describe(net->member[1].engine, text, sizeof text);
    assert_string_equal(text, "writing received data");
    net->member[1].full = false;
    engine_wake(net->member[1].engine);
    net_check(net);
    assert_int_equal(net->member[1].engine->counts.bytes_delivered, 3);
    assert_int_equal(net->member[1].engine->counts.blocks_delivered, 1);
    net_close(net);
}

TEST(nothing_is_sent_on_a_link_that_was_down)
{
    const struct how how = {
        .dims = "3m", .type = REDUCTION_UINT8, .operation = REDUCTION_SUM, .elements = 3};
    struct net *net = net_open(&how, 1);
    char text[120];

    engine_lose_port(net->member[1].engine, 1);
    net_run(net);
    assert_int_equal(net->packets, 1);
    assert_int_equal(net->member[0].engine->rounds_finished, 0);
    engine_describe(net->member[1].engine, text, sizeof text);
    assert_string_equal(text, "still sending 1 chunk");
    net_close(net);
}

/* A row of a torus, whose data is marked with its call. */
TEST(a_part_of_a_torus_is_a_torus)
{
    struct peer_group_call call = {0};
    struct how how = {.dims = "4",
                      .whole = "2x4",
                      .algorithm = "balanced",
                      .type = REDUCTION_INT32,
                      .operation = REDUCTION_SUM,
                      .everywhere = true,
                      .elements = 5,
                      .call = &call};

    call.number = 7;
    run(&how, 1);
    how.algorithm = NULL;
    run(&how, 2);

    struct net *net = net_open(&how, 3);
    net->damage = 1;
    net->member[0].admitted = net->member[1].admitted = 1;
    net->member[3].admitted = 1; /* only node 2 sends, to node 3 or to node 1 */
    for (uint32_t rank = 0; rank < 4; rank++)
        net->member[rank].deaf = true;
    net_run(net);
    assert_int_equal(net->packets, 1);
    const struct packet *p = net->member[net->damaged_at].first[net->damaged_port];
    assert_true(p->head->streamed_data.has_call);
    assert_int_equal(p->head->streamed_data.call.number, 7);
    net->member[net->damaged_at].deaf = false;
    net_run(net);
    assert_int_equal(net->damaged_at, 1);
    assert_memory_equal(engine_failed(net->member[1].engine)->text,
                        "node 5 received a damaged frame from node 6 on port +1", 54);
    net_close(net);
}
