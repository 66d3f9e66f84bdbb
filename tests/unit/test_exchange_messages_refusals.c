/* Objections of a node to a valid prepare. */
#include "daemon/lib/schedule/algorithms/family.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "line_fixture.h"
#include "tests/support/cmocka.h"

/* Stands for 0 in a row, where 0 means the usual value. */
#define ZERO (UINT64_MAX - 1)

static char long_path[SPEC_PATH_SIZE + 1];

/* Differences from a usual exchange of generated blocks. NULL and 0: no difference. */
struct row {
    enum error_code code;
    uint32_t operation, repeat;
    const char *algorithm, *mode, *from, *to;
    uint64_t block_bytes, round_bytes, window;
    const char *resumes;
    bool entered; /* of a barrier that a client has entered here */
};

static const struct row rows[] = {
    {ERROR_USAGE, .operation = UINT32_MAX},
    {ERROR_USAGE, .operation = OPERATION_BROADCAST}, /* has other algorithms */
    {ERROR_USAGE, .algorithm = "no\ne"},
    {ERROR_USAGE, .algorithm = SPEC_AUTO},
    {ERROR_USAGE, .algorithm = "cccube-best"},      /* the root names a member */
    {ERROR_REFUSED, .algorithm = "cccube-q524288"}, /* too many packets */
    {ERROR_USAGE, .mode = ""},
    {ERROR_USAGE, .mode = "dreaming"},
    {ERROR_USAGE, .from = "/in"},
    {ERROR_USAGE, .from = long_path, .to = long_path},
    {ERROR_USAGE, .block_bytes = UINT64_MAX},
    {ERROR_USAGE, .from = "/x", .to = "/x", .repeat = 2},
    {ERROR_USAGE, .repeat = SPEC_REPEAT_MOST + 1},
    {ERROR_PROTOCOL, .round_bytes = ZERO},
    /* A round for which no algorithm was chosen yet. */
    {ERROR_PROTOCOL, .algorithm = SPEC_AUTO, .mode = "", .from = "/x", .to = "/x"},
    {ERROR_PROTOCOL, .resumes = XF_ID},
    {ERROR_PROTOCOL, .operation = OPERATION_ALLGATHER, .algorithm = "balanced", .mode = "streaming",
     .from = "/x", .to = "/x", .resumes = XF_ID, .round_bytes = ZERO},
    {ERROR_PROTOCOL, .repeat = 2, .resumes = XF_ID, .round_bytes = ZERO},
    {ERROR_PROTOCOL, .resumes = "7-00000001-1", .round_bytes = ZERO},
    {ERROR_PROTOCOL, .round_bytes = UINT64_MAX},
    {ERROR_PROTOCOL, .window = ZERO},
    {ERROR_PROTOCOL, .window = UINT32_MAX},
    {ERROR_PROTOCOL, .operation = OPERATION_BARRIER, .algorithm = "saadschultz",
     .round_bytes = ZERO, .entered = true},
    {ERROR_MEMORY, .block_bytes = 2 * EXCHANGE_FIXTURE_BUDGET,
     .round_bytes = 2 * EXCHANGE_FIXTURE_BUDGET},
    {ERROR_NONE},
};

static void set_text(char **field, const char *text)
{
    if (text != NULL)
        *field = (char *)(uintptr_t)text; /* only encoded */
}

static uint64_t number(uint64_t usual, uint64_t other)
{
    return other == 0 ? usual : other == ZERO ? 0 : other;
}

static void change(struct xf_prepare *p, const struct row *row)
{
    struct peer_prepare *prepare = &p->message.prepare;

    set_text(&p->spec.algorithm, row->algorithm);
    set_text(&p->spec.mode, row->mode);
    set_text(&p->spec.from, row->from);
    set_text(&p->spec.to, row->to);
    p->spec.operation = row->operation;
    p->spec.repeat = row->repeat;
    p->spec.block_bytes = row->block_bytes;
    prepare->round_bytes = number(prepare->round_bytes, row->round_bytes);
    prepare->window = (uint32_t)number(prepare->window, row->window);
    if (row->resumes != NULL) {
        prepare->avoids_links = true;
        prepare->resumes = row->resumes;
    }
}

static void enter_barrier(struct exchange_fixture *n, struct exchange_client_seen *seen)
{
    static const struct spec barrier = {
        .algorithm = SPEC_AUTO, .operation = OPERATION_BARRIER, .barrier = "b"};
    struct error e;

    assert_non_null(xf_start(n, &barrier, seen, &e));
    xf_settle(n);
}

TEST(a_node_objects_to_impossible_requests)
{
    memset(long_path, 'x', sizeof long_path - 1);
    assert_non_null(algorithm_at(0)); /* the registry has members of families */
    const size_t made = family_made_count();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct exchange_client_seen seen;
        struct exchange_fixture n;
        struct xf_prepare p;

        line_open(&n, 1);
        xf_prepare_init(&p, &n);
        xf_prepare_generated(&p);
        change(&p, &rows[i]);
        if (rows[i].entered) {
            enter_barrier(&n, &seen);
            set_text(&p.spec.barrier, "b");
        }
        if (!xf_say(&n, PARENT, &p.message)) /* the neighbour is not to blame */
            fail_msg("row %zu: %s", i, n.f.up[PARENT]->last);
        if (rows[i].code == ERROR_NONE)
            assert_int_equal(xf_state(&n), EXCHANGE_PREPARING);
        else
            line_hears_objection(&n, rows[i].code, 1, NULL);
        if (rows[i].code != ERROR_NONE) /* an impossible request takes no memory */
            assert_int_equal(exchanges_reserved(core_exchanges(n.core)), 0);
        assert_int_equal(family_made_count(), made);
        (void)xf_drain(&n);
        xf_close(&n);
    }
}
