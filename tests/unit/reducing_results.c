/* The expected results of reductions, for reducing_fixture.h. */
#include "reducing_fixture.h"
#include "tests/support/cmocka.h"

/* The vector that a node passes on in the tree of one segment, as if the segment were the whole block. */
static void reduce(const struct net *net, uint32_t node, uint32_t index, uint32_t owner,
                   uint8_t *into)
{
    const struct member *m = &net->member[node];
    const struct reduction_tree *tree = &m->trees.tree[index];
    uint64_t size = net_size(net, owner);
    uint8_t *part = malloc(size + 1);

    assert_non_null(part);
    memcpy(into, m->vector[owner], size);
    for (uint32_t i = tree->first; i < tree->first + tree->children; i++) {
        unsigned port = m->trees.child[i].port;
        reduce(net, torus_neighbour(&net->torus, node, port), index, owner, part);
        for (uint64_t at = 0; at < size; at += net->element)
            reduction_combine(net->how.type, net->how.operation, into + at, part + at, 1);
    }
    free(part);
}

/* The segment that an element belongs to. */
static uint32_t segment_of(const struct net *net, uint32_t owner, uint64_t element)
{
    uint64_t elements = net_size(net, owner) / net->element;
    uint64_t round = net->how.per_round > 0 ? net->how.per_round : elements;
    uint64_t first = element / round * round, segments = net->member[0].trees.segments;
    uint64_t here = elements - first < round ? elements - first : round;

    return (uint32_t)((element - first) / ((here + segments - 1) / segments));
}

static void check_result(const struct net *net, const struct member *m, uint32_t owner, bool has,
                         bool whole, uint8_t *const *segment)
{
    for (uint64_t i = 0; i < net_size(net, owner); i += net->element) {
        bool written = m->written[owner][i] != 0; /* elements are not split */
        bool right = !written || memcmp(m->result[owner] + i,
                                        segment[segment_of(net, owner, i / net->element)] + i,
                                        net->element) == 0;
        if ((has && whole && !written) || (!has && written) || !right)
            fail_msg("byte %u of the block for node %u is %s", (unsigned)i, owner,
                     !right    ? "wrong"
                     : written ? "written where it is not known"
                               : "missing");
    }
}

static void check_results(const struct net *net, bool whole)
{
    uint32_t segments = net->member[0].trees.segments;
    uint8_t **segment = calloc(segments, sizeof *segment);

    assert_non_null(segment);
    for (uint32_t i = 0; i < net->member[0].trees.count; i += segments) {
        uint32_t owner = net->member[0].trees.tree[i].owner;
        for (uint32_t j = 0; j < segments; j++) {
            segment[j] = malloc(net_size(net, owner) + 1);
            assert_non_null(segment[j]);
            reduce(net, owner, i + j, owner, segment[j]);
        }
        for (uint32_t rank = 0; rank < net->torus.nodes; rank++)
            check_result(net, &net->member[rank], owner, rank == owner || net->how.everywhere,
                         whole, segment);
        for (uint32_t j = 0; j < segments; j++)
            free(segment[j]);
    }
    free(segment);
}

void net_check(const struct net *net)
{
    for (uint32_t rank = 0; rank < net->torus.nodes; rank++) {
        const struct engine *engine = net->member[rank].engine;
        char text[200];
        engine_describe(engine, text, sizeof text);
        if (engine_failed(engine) != NULL)
            fail_msg("node %u: %s", rank, engine_failed(engine)->text);
        if (engine->rounds_finished != net->rounds)
            fail_msg("node %u has finished %u rounds of %u: %s", rank,
                     (unsigned)engine->rounds_finished, (unsigned)net->rounds, text);
        assert_string_equal(text, "all sent and received");
    }
    check_results(net, true);
}

bool net_check_part(const struct net *net)
{
    bool failed = false;

    for (uint32_t rank = 0; rank < net->torus.nodes; rank++)
        failed = failed || net->member[rank].engine == NULL ||
                 engine_failed(net->member[rank].engine) != NULL;
    check_results(net, false);
    return failed;
}
