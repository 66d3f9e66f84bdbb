#include "streaming_fixture.h"

#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/support/cmocka.h"

struct passages passages;

static struct node *open; /* or NULL */

const struct how whole = {.block = 4};

struct node *open_engine(const struct how *how)
{
    const struct algorithm *a = algorithm_find(how->algorithm != NULL ? how->algorithm : "direct");
    const char *dims = how->dims != NULL ? how->dims : "3m";
    uint32_t rank = how->dims != NULL ? how->rank : 1;
    struct node *node = node_open(dims, rank, how->block);
    struct error e;

    assert_int_equal(passages_build(&passages, &node->f.torus, a, rank,
                                    how->broadcast ? how->sender : TORUS_NO_NODE, NULL),
                     0);
    node->setup.gather = a->operation == OPERATION_ALLGATHER;
    node->setup.idle = how->broadcast && how->sender != rank;
    node->source.in_order = node->sink.in_order = a->segments == 1;
    node->setup.uniform = !how->sizes;
    node->setup.digests = how->digests;
    node->setup.repairs = how->repairs;
    if (how->round_bytes > 0)
        node->setup.round_bytes = how->round_bytes;
    node->setup.segments = a->segments;
    if (how->window > 0)
        node->setup.window = how->window;
    node->engine = streaming_new(&node->setup, &passages, &e);
    assert_non_null(node->engine);
    node_connect(node);
    return open = node;
}

struct node *begin_engine(const struct how *how)
{
    struct node *node = open_engine(how);

    engine_admit(node->engine, 0);
    return node;
}

void check_out_of_memory(const struct node *node, bool failed)
{
    const struct engine *engine = node->engine;
    bool closed = node->f.up[MINUS]->link == NULL || node->f.up[PLUS]->link == NULL;

    if (!failed) {
        assert_int_equal(engine->rounds_finished, 1);
        return;
    }
    assert_true(closed || engine_failed(engine) != NULL);
    if (engine_failed(engine) != NULL)
        assert_int_equal(engine_failed(engine)->code, ERROR_MEMORY);
}

void close_engine(struct node *node)
{
    node_close(node);
    passages_free(&passages);
    open = NULL;
}

int engine_teardown(void **state)
{
    if (open != NULL)
        close_engine(open);
    return 0;
}
